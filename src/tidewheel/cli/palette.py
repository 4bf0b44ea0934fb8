"""Gives each status one look everywhere: a colour and a shape; either alone is enough."""

from __future__ import annotations

from tidewheel.core.queue.status import Status
from tidewheel.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """Holds a colour that every terminal has, a similar one for the web, and a shape."""

    colour: str
    web_colour: str
    shape: str


PALETTE: dict[Status, Look] = {
    Status.WAITING: Look("bright_black", "#8a8f98", "○"),
    Status.READY: Look("cyan", "#0e9aa7", "◔"),
    Status.RUNNING: Look("blue", "#2f6fde", "▶"),
    Status.CANCELLING: Look("yellow", "#c98a00", "◌"),
    Status.SUCCEEDED: Look("green", "#2e9e4f", "✔"),
    Status.FAILED: Look("red", "#d33f3f", "✖"),
    Status.CANCELLED: Look("magenta", "#9a4fb5", "⊘"),
}

# Tasks of a run have more states: the same looks where the meaning is the same.
_QUIET = Look("bright_black", "#8a8f98", "·")
_BAD = Look("red", "#d33f3f", "✖")
_WARNING = Look("yellow", "#c98a00", "!")

TASK_STATES: dict[str, Look] = {
    "waiting": PALETTE[Status.WAITING],
    "ready": PALETTE[Status.READY],
    "preparing": Look("cyan", "#0e9aa7", "◑"),
    "submitted": Look("cyan", "#0e9aa7", "◕"),
    "running": PALETTE[Status.RUNNING],
    "succeeded": PALETTE[Status.SUCCEEDED],
    "failed": PALETTE[Status.FAILED],
    "submit-failed": _BAD,
    "expired": Look("magenta", "#9a4fb5", "⊘"),
    "ended": Look("green", "#2e9e4f", "✓"),
    "lost": _WARNING,
    "not taken": _QUIET,
    "removed": _QUIET,
    "future": _QUIET,
}

RUN_STATUSES: dict[str, Look] = {
    "created": PALETTE[Status.WAITING],
    "running": PALETTE[Status.RUNNING],
    "paused": Look("yellow", "#c98a00", "‖"),
    "waiting for release": Look("yellow", "#c98a00", "◌"),
    "stalled": _BAD,
    "stopping": Look("yellow", "#c98a00", "◌"),
    "stopped": Look("magenta", "#9a4fb5", "■"),
    "completed": PALETTE[Status.SUCCEEDED],
    "error": _BAD,
}

# Blocks, instances and stages in the words of SIP.
_WAITS = Look("cyan", "#0e9aa7", "◔")
BLOCK_STATUSES: dict[str, Look] = {
    **{name: RUN_STATUSES[name] for name in ("created", "running", "stopped", "completed")},
    "waiting_for_blocks": PALETTE[Status.WAITING],
    "waiting_for_dependencies": PALETTE[Status.WAITING],
    "waiting_for_object": PALETTE[Status.WAITING],
    "waiting_for_resources": _WAITS,
    "held": Look("yellow", "#c98a00", "‖"),
    "retrying": _WARNING,
    "preparing": TASK_STATES["preparing"],
    "succeeded": PALETTE[Status.SUCCEEDED],
    "failed": _BAD,
    "aborted": PALETTE[Status.CANCELLED],
    "switched_off": _QUIET,
    "present": PALETTE[Status.SUCCEEDED],
    "absent": PALETTE[Status.WAITING],
    "withdrawn": Look("yellow", "#c98a00", "◌"),
}
