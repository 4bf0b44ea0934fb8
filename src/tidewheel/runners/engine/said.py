"""How a job in a container speaks: by a line of its output that begins as only it knows.

A container has no way to its worker's socket, and on a Swarm it may run on another machine;
its output reaches the worker from anywhere. ``$TIDEWHEEL_SAY`` is a prefix of this attempt
alone, so that what a job prints of others' texts says nothing by chance:

    echo "$TIDEWHEEL_SAY"'{"text": "half way", "output": "ready", "progress": 0.5}'
    echo "$TIDEWHEEL_SAY"'{"values": {"beams": 4}}'

Values are for later stages; beside the worker they may be written to a file, too.
"""

from __future__ import annotations

import json
from typing import NamedTuple

SAY = "TIDEWHEEL_SAY"
SPEC = "TIDEWHEEL_SPEC"
PREFIX_START = "::tidewheel:"


class Said(NamedTuple):
    """What one line says."""

    text: str
    output: str | None
    progress: float | None
    values: dict[str, object]


def prefix_of(secret: str) -> str:
    """The prefix that belongs to a secret."""
    return f"{PREFIX_START}{secret}: "


def read_said(line: str) -> Said | None:
    """What follows the prefix; None if it is nothing that can be said."""
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
    return Said(
        text or "",
        output,
        None if progress is None else float(progress),
        values if isinstance(values, dict) else {},
    )
