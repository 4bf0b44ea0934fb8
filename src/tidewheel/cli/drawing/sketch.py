"""What a picture shows, before anybody knows where: boxes, lines and frames around boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

NO_FRAME = -1


class Kind(Enum):
    """What a box stands for."""

    TASK = "task"
    FAMILY = "family"  # collapsed into one box
    XTRIGGER = "xtrigger"


@dataclass(frozen=True, slots=True)
class Box:
    """One box; `frame` is the innermost frame around it."""

    key: str
    lines: tuple[str, ...]
    kind: Kind = Kind.TASK
    frame: int = NO_FRAME


@dataclass(frozen=True, slots=True)
class Line:
    """From box to box, by their places in the sketch."""

    parent: int
    child: int
    label: str = ""
    dashed: bool = False
    suicide: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """Around boxes and other frames; those with an `order` have it from top to bottom."""

    key: str
    title: str
    parent: int = NO_FRAME
    order: int | None = None


@dataclass(frozen=True, slots=True)
class Sketch:
    """A frame comes after the frame around it."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    frames: tuple[Frame, ...] = ()


def frames_around(frame: int, frames: tuple[Frame, ...]) -> Iterator[int]:
    """The frame itself and those around it, innermost first."""
    while frame != NO_FRAME:
        yield frame
        frame = frames[frame].parent
