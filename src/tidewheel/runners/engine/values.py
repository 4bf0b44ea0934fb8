"""What a stage hands to later ones: a JSON object, kept as ``outputs.json`` of its attempt.

A container beside the worker writes it to ``$TIDEWHEEL_OUTPUTS``, in a folder that holds
nothing else and that no compose file can mount; any container may say it. What a container
wrote is read without following links: it may have put there what it likes.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tidewheel.runners.job_directory import write_whole

OUTPUTS = "TIDEWHEEL_OUTPUTS"
OUTPUTS_NAME = "outputs.json"
TARGET = "/tidewheel"  # of the folder, in a container
FOLDER = "outputs"
FOLDER_MODE = 0o777
BYTES_MAX = 256 * 1024


def make_outputs_folder(directory: Path) -> Path:
    """The folder that every container beside the worker has."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    folder.chmod(FOLDER_MODE)
    return folder


def keep_values(directory: Path, said: Mapping[str, object]) -> None:
    """Keep what was written, and what was said; the latter counts more."""
    values = read_written(directory / FOLDER) | dict(said)
    if values:
        with suppress(OSError, ValueError):
            write_whole(directory / OUTPUTS_NAME, json.dumps(values).encode(), mode=0o600)


def read_written(folder: Path) -> dict[str, object]:
    """What containers wrote; nothing if it is not an object of bearable size."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(folder / OUTPUTS_NAME, flags)
    except OSError:
        return {}
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return {}
        text = file.read(BYTES_MAX + 1)
    if len(text) > BYTES_MAX:
        return {}
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
