"""Holds the state of the screen as one value; keys and news make another of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tidewheel.cli.tui.panes import TASK, Pane
from tidewheel.cli.tui.spans import Line
from tidewheel.cli.tui.tree import Tree

TREE_SHARE = 0.45  # of the width, where a pane is beside it
BETWEEN = " │ "
BESIDE_WIDTH_MIN = 110  # of a terminal in which a pane is beside the tree


class Question(NamedTuple):
    """Is a command to be confirmed: the verb, the ids it is for, and the keys that give it."""

    verb: str
    ids: tuple[str, ...]
    answers: tuple[tuple[str, str], ...]  # (key, mode), as (("y", ""),)
    filter: str = ""  # that chose the ids among others, as somebody sees it
    hidden: int = 0  # marked tasks that are left alone, because the filter hides them


class Choice(NamedTuple):
    """Holds the runs to choose from."""

    names: tuple[str, ...]
    lines: tuple[Line, ...]
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Holds everything that is seen, and what a key would be about."""

    run: str = ""
    tree: Tree = field(default_factory=Tree)
    everything: bool = False  # all points, not only the newest
    pane: Pane | None = None
    question: Question | None = None
    choice: Choice | None = None
    typed: str | None = None  # of what is looked for, while it is typed
    said: str = ""  # what became of the last command
    trouble: str = ""  # why what is seen may be old
    is_busy: bool = False
    size: tuple[int, int] = (80, 24)

    @property
    def height(self) -> int:
        """Returns the number of lines between head and foot."""
        return self.size[1] - 3

    @property
    def pane_size(self) -> tuple[int, int]:
        """Returns the width and height of a pane, below its title."""
        width = self.size[0]
        beside = width - int(width * TREE_SHARE) - len(BETWEEN)
        return (beside if self.is_wide else width), self.height - 1

    @property
    def task(self) -> str | None:
        """Returns the task whose pane is open, if one is."""
        pane = self.pane
        return pane.subject if pane is not None and pane.kind == TASK else None

    @property
    def is_wide(self) -> bool:
        return self.size[0] >= BESIDE_WIDTH_MIN
