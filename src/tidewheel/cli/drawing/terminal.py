"""Writes the graph as text: per point, the tasks by depth and what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from tidewheel.cli.drawing.layers import find_depths, without_circles
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.graph.definition import AllOf, AnyOf, Atom, Condition, Group
from tidewheel.core.graph.graph import Graph, TaskAt, Window
from tidewheel.core.graph.outputs import FAILED, FINISHED, SUCCEEDED
from tidewheel.core.graph.shown_names import joined_output, output_text, stage_name, stage_text
from tidewheel.lazy_dataclasses import NamedTuple

INDENT_MAX = 12  # steps; deeper tasks are not moved further to the right


class TextRow(NamedTuple):
    """Holds a task at one point: how deep it is, and what it waits for or is removed by."""

    depth: int
    name: str
    waits_for: str
    removed_by: str


class TextPoint(NamedTuple):
    """Holds a point and its tasks."""

    point: str
    rows: list[TextRow]


def text_points(graph: Graph, shown: Window) -> Iterator[TextPoint]:
    """Yields all points of the window in order, each with its tasks."""
    by_point: dict[Point, list[TaskAt]] = {}
    numbers = {name: number for number, name in enumerate(graph.nodes)}
    for task in sorted(shown.tasks, key=lambda one: (one.point, numbers.get(one.node, -1))):
        if task.node in graph.nodes:
            by_point.setdefault(task.point, []).append(task)
    depths = _depths(shown)
    for point, tasks in by_point.items():
        tasks.sort(key=lambda task: depths[task])
        yield TextPoint(
            graph.cycling.style.text(point),
            [_row(graph, task, min(depths[task], INDENT_MAX)) for task in tasks],
        )


def _depths(shown: Window) -> dict[TaskAt, int]:
    """Returns how far each task is from the first ones of its own point."""
    tasks = sorted(task for task in shown.tasks if not task.node.startswith("@"))
    numbers = {task: number for number, task in enumerate(tasks)}
    pairs = sorted(
        (numbers[edge.parent], numbers[edge.child])
        for edge in shown.edges
        if edge.parent in numbers and edge.parent.point == edge.child.point and not edge.suicide
    )
    depths = find_depths(len(tasks), without_circles(len(tasks), pairs))
    return dict(zip(tasks, depths, strict=True))


def _row(graph: Graph, task: TaskAt, depth: int) -> TextRow:
    node = graph.nodes[task.node]
    waits = [f"@{label}" for sequence, label in node.xtriggers if sequence.contains(task.point)]
    removals: list[str] = []
    for index in (*node.arrows, *node.suicides):
        arrow = graph.arrows[index]
        if arrow.sequence.contains(task.point):
            text = _text(graph, arrow.condition, task.point)
            if text:
                (removals if arrow.suicide else waits).append(text)
    name = task.node
    if graph.cycling.style.is_unwritten:
        each = " (for each)" if name in graph.mapped else ""
        name = stage_text(node.definition) + each
    return TextRow(depth, name, _all(waits), _any(removals))


def _text(graph: Graph, condition: Condition, point: Point) -> str:
    """Returns a condition as text; "" for one that is met as it lies before the initial
    point."""
    match condition:
        case Atom(name, output, offset):
            return _leaf(graph, name, (output,), offset, point)
        case Group(family, outputs, every, offset):
            leaf = _leaf(graph, family, outputs, offset, point)
            return leaf and ("all of " if every else "any of ") + leaf
        case AllOf(terms):
            return _all([text for term in terms if (text := _text(graph, term, point))])
        case AnyOf(terms) if graph.cycling.style.is_unwritten and _is_of_one(terms):
            return _stage_text(graph, terms[0].node, {term.output for term in terms})
        case AnyOf(terms):
            texts = [_text(graph, term, point) for term in terms]
            return _finished(texts) or (_any(texts) if all(texts) else "")
        case _:
            return f"@{condition.label}"


def _leaf(
    graph: Graph, name: str, outputs: tuple[str, ...], offset: Offset | None, point: Point
) -> str:
    at = graph.parent_point(offset, point)
    if at < graph.cycling.initial:
        return ""
    if graph.cycling.style.is_unwritten:
        return _stage_text(graph, name, set(outputs))
    output = FINISHED if set(outputs) == {SUCCEEDED, FAILED} else outputs[0]
    place = "" if at == point else f"{graph.cycling.style.text(at)}/"
    return f"{place}{name}" + ("" if output == SUCCEEDED else f":{output}")


def _is_of_one(terms: tuple[Condition, ...]) -> TypeGuard[tuple[Atom, ...]]:
    """Says whether all terms are outputs of one task."""
    atoms = [one for one in terms if isinstance(one, Atom)]
    return len(atoms) == len(terms) and len({one.node for one in atoms}) == 1


def _stage_text(graph: Graph, name: str, outputs: set[str]) -> str:
    """Returns what is waited for of a stage."""
    node = graph.nodes.get(name)
    shown = stage_name(name) if node is None else stage_text(node.definition)
    if outputs == {SUCCEEDED}:
        return shown
    return output_text(None if node is None else node.definition, shown, joined_output(outputs))


def _all(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    return " & ".join(
        f"({text})" if " | " in text and text[0] != "(" else text
        for text in dict.fromkeys(texts)
    )


def _any(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    return " | ".join(f"({text})" if " & " in text else text for text in dict.fromkeys(texts))


def _finished(texts: list[str]) -> str:
    """Shortens `a | a:failed` to `a:finished`; returns "" for any other texts."""
    if len(texts) == 2 and texts[0] and set(texts) == {texts[0], f"{texts[0]}:{FAILED}"}:  # noqa: PLR2004
        return f"{texts[0]}:{FINISHED}"
    return ""
