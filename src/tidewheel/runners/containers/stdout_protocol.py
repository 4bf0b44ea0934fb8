"""Reads what a job in a container says: lines of its output that begin as only it knows.

A container has no way to its worker's socket, and on a Swarm it may run on another machine;
its output reaches the worker from anywhere. ``$TIDEWHEEL_SAY`` is a prefix of this attempt
alone, so that what a job prints of others' texts says nothing by chance:

    echo "$TIDEWHEEL_SAY"'{"text": "half way", "output": "ready", "progress": 0.5}'
    echo "$TIDEWHEEL_SAY"'{"values": {"beams": 4}}'

Values are for later stages. A container beside the worker may also write them to
``$TIDEWHEEL_OUTPUTS``, in a folder that holds nothing else and that no compose file can mount.
Both together are ``outputs.json`` of the attempt, as for any other job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tidewheel.core.queue.values import values_text
from tidewheel.errors import BadValues
from tidewheel.exact_json import decode, encode
from tidewheel.runners.job_directory import OUTPUTS_NAME, read_values, write_whole

SAY = "TIDEWHEEL_SAY"
SPEC = "TIDEWHEEL_SPEC"
PREFIX_START = "::tidewheel:"


class StdoutMessage(NamedTuple):
    """Holds what one line says."""

    text: str
    output: str | None
    progress: float | None
    values: dict[str, object]


def prefix_of(secret: str) -> str:
    """The prefix that belongs to a secret."""
    return f"{PREFIX_START}{secret}: "


def read_said(line: str) -> StdoutMessage | None:
    """Returns what follows the prefix; None if it is nothing that can be said."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    text, output, progress = fields.get("text"), fields.get("output"), fields.get("progress")
    if not isinstance(text, str | None) or not isinstance(output, str | None):
        return None
    if not (progress is None or (isinstance(progress, int | float) and 0 <= progress <= 1)):
        return None
    values = fields.get("values")
    return StdoutMessage(
        text or "",
        output,
        None if progress is None else float(progress),
        values if isinstance(values, dict) else {},
    )


TARGET = "/tidewheel"  # of the folder, in a container
FOLDER = "outputs"
FOLDER_MODE = 0o777
SAID_BYTES_MAX = 1024 * 1024  # by one stage, corrections included


def make_outputs_folder(directory: Path) -> Path:
    """The folder that every container beside the worker has."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    folder.chmod(FOLDER_MODE)
    return folder


class SaidValues:
    """Holds what containers of a stage have said so far; the last word on each name counts."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._bytes = 0

    def hear(self, values: Mapping[str, object], line: str) -> None:
        self._bytes += len(line) if values else 0
        if self._bytes <= SAID_BYTES_MAX:
            self._values |= values

    def gather(self, directory: Path) -> str | None:
        """Returns the values with what was written; BadValues if it cannot be handed on."""
        if self._bytes > SAID_BYTES_MAX:
            raise BadValues(f"more than {SAID_BYTES_MAX} bytes of values were said")
        return gather_values(directory, self._values)


def gather_values(directory: Path, said: Mapping[str, object]) -> str | None:
    """Joins what was written and what was said, which counts more; kept beside the logs."""
    text = read_values(directory / FOLDER / OUTPUTS_NAME)
    if said:
        written = {} if text is None else decode(text)
        assert isinstance(written, dict), written
        try:
            text = values_text(encode(written | dict(said)))
        except ValueError as error:
            raise BadValues(str(error)) from None
    if text is not None:
        with suppress(OSError):
            write_whole(directory / OUTPUTS_NAME, text.encode(), mode=0o600)
    return text
