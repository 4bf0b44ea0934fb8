"""How each status looks, everywhere: colour and shape, so that neither is needed alone."""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.tasks.status import Status


@dataclass(frozen=True, slots=True)
class Look:
    """A colour that every terminal has, the same for the web, and a shape."""

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
