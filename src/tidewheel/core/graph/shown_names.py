"""Names tasks as people read them: by point and name, in a run of stages by the stage alone.

Whoever writes stages has never asked for cycles: nobody has written a point there
(`PointStyle.is_unwritten`). Ids for programs are POINT/NAME in every run.
"""

from __future__ import annotations

from collections.abc import Collection

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.definition import NodeDef
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import (
    EXPIRED,
    FAILED,
    FINISHED,
    STARTED,
    SUBMIT_FAILED,
    SUCCEEDED,
)

POINTS_KNOWN_MAX = 4096  # forgotten all at once
# How people call what a stage announces.
_OUTPUTS = {
    STARTED: "the start",
    SUCCEEDED: "the success",
    FAILED: "the failure",
    SUBMIT_FAILED: "the failure",
    EXPIRED: "the expiry",
    FINISHED: "the end",
}
_ENDS = {SUBMIT_FAILED: "could not be started"}


def task_text(graph: Graph, point: Point, name: str) -> str:
    """Returns a task of a graph as people read it."""
    style, node = graph.cycling.style, graph.nodes.get(name)
    if not style.is_unwritten:
        return f"{style.text(point)}/{name}"
    return stage_name(name) if node is None else stage_text(node.definition)


def stage_name(node: str) -> str:
    """Returns the stage of a node: of one with for_each the name before its parameter."""
    return node.partition("<")[0]


def stage_text(definition: NodeDef) -> str:
    """Returns a node of a run of stages as people read it.

    A stage is called by its name; a node that only waits, such as a buffer object, by its
    title.
    """
    title = dict(definition.meta).get("title", "") if definition.is_gate else ""
    return title or stage_name(definition.name)


def output_text(definition: NodeDef | None, name: str, output: str) -> str:
    """Returns an output of a stage, called `name`, as people read it: `the success of a`."""
    if definition is not None and definition.is_gate:
        return name
    return f"{_OUTPUTS.get(output, f'the output {output}')} of {name}"


def stage_output(graph: Graph, key: tuple[Point, str], output: str) -> str:
    """Returns an output of a task of a run of stages as people read it."""
    node = graph.nodes.get(key[1])
    return output_text(
        None if node is None else node.definition, task_text(graph, *key), output
    )


def joined_output(outputs: Collection[str]) -> str:
    """Returns the output as which any of some outputs of one stage is told."""
    if len(outputs) == 1:
        return next(iter(outputs))
    return FINISHED if SUCCEEDED in outputs else FAILED


def end_text(end: str) -> str:
    """Returns how a stage ended: `failed`, or without a job, `could not be started`."""
    return _ENDS.get(end, end)


class WrittenPoints(dict[Point, str]):
    """Holds points as people write them, since the same few are asked for repeatedly."""

    __slots__ = ("_style",)

    def __init__(self, style: PointStyle) -> None:
        self._style = style

    def __missing__(self, point: Point) -> str:
        if len(self) >= POINTS_KNOWN_MAX:
            self.clear()
        text = self[point] = self._style.text(point)
        return text
