"""Decides which values of the tasks before it a task is given (docs/howto/passing_data.md).

Of each parent the newest submission counts that ran in a flow of the child; if none did, the
newest of any flow. A child names parents at its own point by their names, others by their ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tidewheel.core.graph.definition import NodeInput, Pairs
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.requests import StoredValues
from tidewheel.core.queue.values import (
    FILE,
    FileValue,
    file_value,
    files_in,
    inputs_text,
    may_have_files,
)
from tidewheel.core.sched.task_state import Flows, Key
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass

VARIABLE_BYTES_MAX = 100 * 1024  # Linux: a variable of an environment has at most 128 KiB

Values = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Holds the values that a job is given: all as one JSON text, and chosen ones by name."""

    text: str = ""  # "": its parents returned nothing
    variables: Pairs = ()
    files: tuple[tuple[str, FileValue], ...] = ()  # to be checked, with who returned them


NO_INPUTS = Inputs()


def values_for(rows: Iterable[StoredValues], flows: Flows) -> StoredValues | None:
    """Returns the values of a task that count for a child in these flows; None if it has none.

    Of several rows of one submission the last counts: it was set by hand.
    """
    by_submit = {one.submit: one for one in rows}
    newest = [by_submit[submit] for submit in sorted(by_submit, reverse=True)]
    own = (row for row in newest if flows & set(json.loads(row.flows)))
    found = next(own, newest[0] if newest else None)
    return found if found is not None and found.body else None


def inputs_of(
    graph: Graph,
    key: Key,
    known: Mapping[Key, StoredValues],
    asked: Sequence[NodeInput] | None = None,
) -> Inputs:
    """Returns what a task is given of its parents' values; ``asked`` stands for what the
    definition says that it asks for.

    Raises Refused if it lacks one that it asks for, or if they are too many.
    """
    text = graph.cycling.style.text
    found = {
        parent: json.loads(known[parent].body)
        for parent in parents_of(graph, key)
        if parent in known
    }
    said = inputs_text(
        {
            name if point == key[0] else f"{text(point)}/{name}": known[point, name].body
            for point, name in found
        }
    )
    wanted = graph.inputs.get(key[1], ()) if asked is None else asked
    chosen = tuple(_chosen(graph, key, found, wanted))
    files = tuple(_files(graph, key, found, wanted)) if may_have_files(said) else ()
    return Inputs(said, chosen, files) if said or chosen else NO_INPUTS


def _files(
    graph: Graph, key: Key, found: Mapping[Key, Values], asked: Sequence[NodeInput]
) -> Iterator[tuple[str, FileValue]]:
    """Yields the files that a task is given: those that it asks for, else all of them."""
    text = graph.cycling.style.text
    for parent, values in found.items():
        taken: list[object] = [values]
        if asked:
            points = [(graph.parent_point(one.offset, key[0]), one.node) for one in asked]
            pairs = zip(points, asked, strict=True)
            taken = [_at(values, one.path) for point, one in pairs if point == parent]
        for told in taken:
            for one in files_in(told):
                yield f"{text(parent[0])}/{parent[1]}", file_value(one)


def _at(values: object, path: Iterable[str]) -> object:
    for part in path:
        values = _part(values, part)
    return values


def parents_of(graph: Graph, key: Key) -> dict[Key, None]:
    """Returns the tasks before a task, those whose values it asks for included, in order."""
    point, name = key
    if name not in graph.nodes:
        return {}
    asked = (
        (graph.parent_point(one.offset, point), one.node) for one in graph.inputs.get(name, ())
    )
    return dict.fromkeys((*graph.parents(name, point), *asked))


def parameters_of(
    graph: Graph, key: Key, known: Mapping[Key, StoredValues]
) -> dict[str, object]:
    """Returns the values that a task asks for, by name, which is a run of another workflow.

    Raises Refused if it lacks one.
    """
    found = {
        parent: json.loads(known[parent].body)
        for parent in parents_of(graph, key)
        if parent in known
    }
    asked = graph.inputs.get(key[1], ())
    return {one.variable: value for one, value in _chosen_values(graph, key, found, asked)}


def _chosen_values(
    graph: Graph, key: Key, found: Mapping[Key, Values], asked: Sequence[NodeInput]
) -> Iterator[tuple[NodeInput, object]]:
    """Yields the values that a task asks for, in the order of its definition."""
    for one in asked:
        parent = (graph.parent_point(one.offset, key[0]), one.node)
        if parent not in found and not _is_ever(graph, parent):
            continue  # before the start, or at no point of its own: nobody waits for it
        name = f"{graph.cycling.style.text(parent[0])}/{one.node}"
        yield one, _value(name, one, found.get(parent))


def _chosen(
    graph: Graph, key: Key, found: Mapping[Key, Values], asked: Sequence[NodeInput]
) -> Iterator[tuple[str, str]]:
    """Yields the variables that a task asks for, in the order of its definition."""
    for one, value in _chosen_values(graph, key, found, asked):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\0" in text:
            raise Refused(
                f"the value {one} for {one.variable} has a NUL character, which no variable "
                "can hold; read it from the file $TIDEWHEEL_INPUTS"
            )
        if len(text.encode()) > VARIABLE_BYTES_MAX:
            raise Refused(
                f"the value {one} for {one.variable} has more than {VARIABLE_BYTES_MAX} bytes, "
                "which is too much for a variable; read it from the file $TIDEWHEEL_INPUTS"
            )
        yield one.variable, text


def _is_ever(graph: Graph, key: Key) -> bool:
    """Says whether the graph has this task, from the point on at which the run starts."""
    node, cycling = graph.nodes.get(key[1]), graph.cycling
    start = cycling.initial if cycling.start is None else cycling.start
    return node is not None and key[0] >= start and node.is_at(key[0])


def _value(parent: str, one: NodeInput, values: object) -> object:
    wish = f"it takes {one.variable} from {one}"
    name = one.path[0] if one.path else "NAME"
    repair = f"give it (set {parent} --value {name}=…), then trigger this task"
    if values is None:
        raise Refused(f"{wish}, and {parent} returned no values; {repair}")
    for depth, part in enumerate(one.path):
        there = _part(values, part)
        if there is _MISSING:
            where = ".".join((parent, *one.path[:depth]))
            raise Refused(f"{wish}, and {where} has {_names(values)}; {repair}")
        values = there
    if one.path and isinstance(values, dict) and isinstance(values.get(FILE), str):
        return values[FILE]
    return values


_MISSING = object()
_NAMES_MAX = 10
_NAME_LENGTH_MAX = 40


def _part(values: object, part: str) -> object:
    if isinstance(values, dict):
        return values.get(part, _MISSING)
    if isinstance(values, list) and part.isdecimal() and int(part) < len(values):
        return values[int(part)]
    return _MISSING


def _names(values: object) -> str:
    """Returns what can be chosen of a value, in words."""
    if isinstance(values, list):
        return f"{len(values)} elements"
    if not isinstance(values, dict):
        return "nothing inside"
    names = [_shown(name) for name in values]
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"only {', '.join(names[:_NAMES_MAX])}{more}" if names else "nothing inside"


def _shown(name: str) -> str:
    """Returns a name that a job chose as it may stand in a message: short, and in one line."""
    kept = name if len(name) <= _NAME_LENGTH_MAX else f"{name[:_NAME_LENGTH_MAX]}…"
    return kept if kept.isprintable() else repr(kept)
