"""Limits of a SIP definition's size; beyond a limit there is a finding, never a hang."""

from __future__ import annotations

YAML_BYTES_MAX = 256 * 1024  # a YAML parser takes seconds for a megabyte
JSON_BYTES_MAX = 5 * 1000 * 1000
DEPTH_MAX = 32  # of nested lists and mappings
NODES_MAX = 100_000  # texts, lists and mappings of one file
NUMBER_LENGTH_MAX = 100  # digits
# What a stage asks for is added up, and the sums are kept as numbers of 64 bits.
NUMBER_MAX = 1_000_000  # of nodes or cores, in one entry
SIZE_BYTES_MAX = 90 * 1000**5
TIMEOUT_SECONDS_MAX = 100 * 365 * 86_400
STAGES_MAX = 10_000
DEPENDENCIES_MAX = 1_000  # of one stage
RESOURCES_MAX = 100  # of one stage
NAME_LENGTH_MAX = 200
STAGE_FILE_BYTES_MAX = 1024 * 1024
STAGE_FILES_MAX = 1_000  # of all stages of one definition
SOURCE_BYTES_MAX = 32 * 1024 * 1024  # of all files of one definition
FOLDER_DEPTH_MAX = 8
WORD_BYTES_MAX = 100_000  # of a command, and of arguments as JSON: Linux takes 128 KiB
PARAMETERS_BYTES_MAX = 64_000  # of a request, as JSON; jobs get them in their environment
