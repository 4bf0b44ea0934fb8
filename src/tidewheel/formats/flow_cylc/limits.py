"""Limits of a definition's size; beyond a limit there is a finding, never a hang."""

from __future__ import annotations

SOURCE_BYTES_MAX = 8_000_000  # of all files together, and of what a template renders
LINES_MAX = 200_000  # after includes and templates
LINE_LENGTH_MAX = 100_000
INCLUDE_DEPTH_MAX = 20
INCLUDES_MAX = 1_000
SECTION_DEPTH_MAX = 20  # brackets in a heading; the language has four
NAMESPACES_MAX = 100_000  # runtime sections after parameters were expanded
PARAMETER_VALUES_MAX = 10_000  # of one parameter
COMBINATIONS_MAX = 100_000  # of parameters in one heading or graph line
LIST_ITEMS_MAX = 10_000
ANCESTORS_MAX = 100  # of one namespace
COMPLETION_LENGTH_MAX = 2_000
VARIABLES_MAX = 1_000  # template variables
