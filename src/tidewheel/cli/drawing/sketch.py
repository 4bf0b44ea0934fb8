"""Makes the sketch of a picture from the tasks of a window: boxes, lines and frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Edge, Graph, TaskAt, Window
from tidewheel.core.graph.shown_names import stage_text
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.services.definitions.graph import EdgeFact

# The parts of a sketch, which have no places yet: boxes, lines and frames around boxes.

NO_FRAME = -1


class BoxKind(Enum):
    """Says what a box stands for."""

    TASK = "task"
    FAMILY = "family"  # collapsed into one box
    XTRIGGER = "xtrigger"


@dataclass(frozen=True, slots=True)
class Box:
    """Describes one box of the sketch; `frame` is the innermost frame around it."""

    key: str
    lines: tuple[str, ...]
    kind: BoxKind = BoxKind.TASK
    frame: int = NO_FRAME


@dataclass(frozen=True, slots=True)
class Arc:
    """Describes a line between two boxes, which are given by their numbers in the sketch."""

    parent: int
    child: int
    label: str = ""
    dashed: bool = False
    suicide: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """Describes a frame around boxes and other frames; `order` sorts frames from top to
    bottom."""

    key: str
    title: str
    parent: int = NO_FRAME
    order: int | None = None


@dataclass(frozen=True, slots=True)
class Sketch:
    """Holds the boxes, lines and frames of a picture; a frame comes after the one around it."""

    boxes: tuple[Box, ...]
    lines: tuple[Arc, ...]
    frames: tuple[Frame, ...] = ()


def frames_around(frame: int, frames: tuple[Frame, ...]) -> Iterator[int]:
    """Yields the frame itself and those around it, innermost first."""
    while frame != NO_FRAME:
        yield frame
        frame = frames[frame].parent


# From the tasks of a window to a sketch: families collapsed or framed, points framed.

TASKS_ON_TWO_LINES_MAX = 120  # where there are more, a box has one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Says how the picture shall look: which families are one box, and what has a frame."""

    # The family that each task and family is drawn in; those in none are left out.
    drawn_in: Mapping[str, str] = field(default_factory=dict)
    collapsed: frozenset[str] = frozenset()
    frame_points: bool = False


def make_sketch(
    graph: Graph, shown: Window, facts: Mapping[Edge, EdgeFact], wishes: Wishes
) -> Sketch:
    """Returns the sketch of a window of the graph.

    Boxes are in the order of points and the definition, so that the same window gives the same
    sketch.
    """
    return _Sketcher(graph, shown, wishes).sketch(facts)


class _Sketcher:
    def __init__(self, graph: Graph, shown: Window, wishes: Wishes) -> None:
        self._shown, self._wishes = shown, wishes
        self._texts = {
            point: graph.cycling.style.text(point)
            for point in sorted({task.point for task in shown.tasks})
        }
        self._rows = {name: number for number, name in enumerate(graph.nodes)}
        self._shown_as: dict[str, str] = {}  # how people call the nodes of a run of stages
        if graph.cycling.style.is_unwritten:
            nodes = graph.nodes.items()
            self._shown_as = {name: stage_text(node.definition) for name, node in nodes}
        self._frames: dict[tuple[Point, str], int] = {}
        self._made: list[Frame] = []
        self._boxes: dict[TaskAt, Box] = {}

    def sketch(self, facts: Mapping[Edge, EdgeFact]) -> Sketch:
        for task in sorted(self._shown.tasks, key=self._order):
            seen_as = self._seen_as(task)
            if seen_as not in self._boxes:
                self._boxes[seen_as] = self._box(seen_as)
        numbers = {task: number for number, task in enumerate(self._boxes)}
        lines: dict[tuple[int, int, bool], Arc] = {}
        for edge in sorted(
            facts, key=lambda one: (self._order(one.child), self._order(one.parent))
        ):
            parent, child = self._seen_as(edge.parent), self._seen_as(edge.child)
            if parent == child and edge.parent != edge.child:
                continue  # inside of a collapsed family
            key = (numbers[parent], numbers[child], edge.suicide)
            lines[key] = _joined(lines.get(key), key, facts[edge])
        return Sketch(tuple(self._boxes.values()), tuple(lines.values()), tuple(self._made))

    def _order(self, task: TaskAt) -> tuple[int, int, str]:
        return task.point, self._rows.get(task.node, -1), task.node

    def _seen_as(self, task: TaskAt) -> TaskAt:
        """Returns the outermost collapsed family around a task, or the task itself."""
        seen, name = task.node, task.node
        while name in self._wishes.drawn_in:
            name = self._wishes.drawn_in[name]
            if name in self._wishes.collapsed:
                seen = name
        return TaskAt(seen, task.point)

    def _box(self, task: TaskAt) -> Box:
        point = self._texts[task.point]
        kind = BoxKind.FAMILY if task.node in self._wishes.collapsed else BoxKind.TASK
        if task.node.startswith("@"):
            kind = BoxKind.XTRIGGER
        lines: tuple[str, ...] = (task.node, point)
        if self._wishes.frame_points or len(self._texts) == 1:
            lines = (self._shown_as.get(task.node, task.node),)
        elif len(self._shown.tasks) > TASKS_ON_TWO_LINES_MAX:
            lines = (f"{point}/{task.node}",)
        return Box(f"{point}/{task.node}", lines, kind, self._frame_around(task))

    def _frame_around(self, task: TaskAt) -> int:
        """Returns the frame of the family that a task is drawn in, or that of its point."""
        family = self._wishes.drawn_in.get(task.node, "")
        if not family and not self._wishes.frame_points:
            return NO_FRAME
        key, text = (task.point, family), self._texts[task.point]
        if key not in self._frames:
            if family:
                around = self._frame_around(TaskAt(family, task.point))
                frame = Frame(f"{text}/{family}", family, around)
            else:
                frame = Frame(text, text, order=list(self._texts).index(task.point))
            self._frames[key] = len(self._made)
            self._made.append(frame)
        return self._frames[key]


def _joined(known: Arc | None, key: tuple[int, int, bool], fact: EdgeFact) -> Arc:
    """Returns one line for all edges between the same boxes, which shows what they have in
    common."""
    parent, child, suicide = key
    label, dashed = fact.label, not fact.certain
    if known is not None:
        label = label if label == known.label else ""
        dashed = dashed and known.dashed
    return Arc(parent, child, label, dashed, suicide)
