"""What a stage of containers hands to later ones: what they wrote, and what they said.

A container beside the worker writes to ``$TIDEWHEEL_OUTPUTS``, in a folder that holds nothing
else and that no compose file can mount; any container may say it. Both together are
``outputs.json`` of the attempt, as for any other job.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tidewheel.core.queue.values import values_text
from tidewheel.errors import BadValues
from tidewheel.exact_json import decode, encode
from tidewheel.runners.job_directory import write_whole
from tidewheel.runners.job_values import OUTPUTS_NAME, read_values

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
    """What the containers of a stage have said so far; the last word on each name counts."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._bytes = 0

    def hear(self, values: Mapping[str, object], line: str) -> None:
        self._bytes += len(line) if values else 0
        if self._bytes <= SAID_BYTES_MAX:
            self._values |= values

    def gather(self, directory: Path) -> str | None:
        """With what was written; BadValues if it cannot be handed on."""
        if self._bytes > SAID_BYTES_MAX:
            raise BadValues(f"more than {SAID_BYTES_MAX} bytes of values were said")
        return gather_values(directory, self._values)


def gather_values(directory: Path, said: Mapping[str, object]) -> str | None:
    """What was written and what was said, which counts more; kept beside the logs."""
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
