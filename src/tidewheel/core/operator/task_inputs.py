"""Decides which values of the tasks before it a task is given (docs/howto/passing_data.md).

Of each parent the newest submission counts that ran in a flow of the child; if none did, the
newest of any flow. Of a list of which tasks are made it is the one that has counted in that
flow since, whatever was returned later: no element is worked on twice or passed over because
the list changes. A child names parents at its own point by their names, others by their ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import ARGUMENT, NodeInput, Pairs, element_name
from tidewheel.core.graph.graph import PARAMETER_VARIABLES, Graph, element_of
from tidewheel.core.operator.requests import StoredValues
from tidewheel.core.queue.values import (
    FILE,
    RETURN,
    FileValue,
    file_value,
    files_in,
    inputs_text,
    may_have_files,
)
from tidewheel.core.sched.dependency_index import MappedTasks
from tidewheel.core.sched.elements import list_at, size_at
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Flows, Key
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass

VARIABLE_BYTES_MAX = 100 * 1024  # Linux: a variable of an environment has at most 128 KiB

Values = Mapping[str, object]
# How many elements a mapped task has at a point, for the one that is asked about.
Sizes = Callable[[Point, str], int]


def no_elements(_point: Point, _mapped: str) -> int:
    return 0


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


def lists_in(pool: TaskPool, key: Key, flows: Flows) -> dict[str, int]:
    """Returns, for each list of a task of which elements are made in these flows, the number of
    the submission that returned it; one that was run before the task could say so is left out.
    """
    node = pool.plan.nodes.get(key[1])
    found = {}
    for tasks in () if node is None else node.lists:
        said = list_at(pool, tasks, key[0], flows)
        if said is None:  # as of values: of any flow, if there is none of its own
            said = list_at(pool, tasks, key[0], frozenset(pool.flows))
        if said is not None and said.submit is not None:
            found[said.value] = said.submit
    return found


def values_with_lists(
    rows: Sequence[StoredValues], flows: Flows, lists: Mapping[str, int]
) -> StoredValues | None:
    """Returns the values of a task that count for a child in these flows, as `values_for` does,
    with each of these lists as that submission has returned it."""
    found = values_for(rows, flows)
    by_submit = {one.submit: one for one in rows}
    others = {
        name: by_submit.get(submit)
        for name, submit in lists.items()
        if found is None or found.submit != submit
    }
    if not others:
        return found
    values = {} if found is None else json.loads(found.body)
    for name, row in others.items():
        values.pop(name, None)  # better none than those of another list
        first = json.loads(row.body) if row is not None and row.body else {}
        if name in first:
            values[name] = first[name]
    row = found or next((one for one in others.values() if one is not None), None)
    return row and row._replace(body=json.dumps(values, ensure_ascii=False))


def size_returned(tasks: MappedTasks, values: Values) -> int:
    """Returns how many elements a list has that was returned; raises Refused without one."""
    over, mapped = tasks.over, ", ".join(tasks.templates)
    if over.size is not None:
        return over.size
    found = values.get(over.value)
    wish = f"which {mapped} needs"
    if over.value == RETURN and not isinstance(found, list):
        but = "" if over.value in values else f"; it returned {_names(values)}"
        raise Refused(f"returned no list, {wish}{but}")
    if over.value not in values:
        raise Refused(f"returned no list {over.value}, {wish}")
    if not isinstance(found, list):
        raise Refused(f"returned {over.value}, {wish}, but not as a list")
    if len(found) > over.elements_max:
        name = "" if over.value == RETURN else f" of {over.value}"
        raise Refused(
            f"returned {len(found)} elements{name} for {mapped}; at most "
            f"{over.elements_max} are accepted ({over.max_item})"
        )
    return len(found)


def sizes_told(
    lists: Iterable[MappedTasks], values: Values, submit: int | None = None
) -> tuple[str, ...]:
    """Returns the outputs by which a task says how many elements its lists have, each once;
    raises Refused if it has not returned one that can be used."""
    sizes = (one.over.size_output(size_returned(one, values), submit) for one in lists)
    return tuple(dict.fromkeys(sizes))


def sizes_given(
    name: str, lists: Iterable[MappedTasks], row: StoredValues | None
) -> tuple[str, ...]:
    """Returns what `sizes_told` does of values that are stored of a task; raises Refused with
    the command by which a list is given."""
    values, submit = ({}, None) if row is None else (json.loads(row.body), row.submit)
    found: dict[str, None] = {}
    for one in lists:
        try:
            found |= dict.fromkeys(sizes_told((one,), values, submit))
        except Refused as refused:
            repair = f"give the list first (set {name} --value '{one.over.value}=[…]')"
            raise Refused(f"{name} {refused}; {repair}") from None
    return tuple(found)


def sizes_in(pool: TaskPool, flows: Flows) -> Sizes:
    """Returns how many elements mapped tasks have for a task in these flows."""
    mapped = {name: tasks for tasks in pool.plan.mapped for name in tasks.templates}

    def size(point: Point, name: str) -> int:
        own = size_at(pool, mapped[name], point, flows)
        if own is None:  # as of values: of any flow, if there are none of its own
            own = size_at(pool, mapped[name], point, frozenset(pool.flows))
        return own or 0

    return size


def inputs_of(
    graph: Graph,
    key: Key,
    known: Mapping[Key, StoredValues],
    sizes: Sizes = no_elements,
    asked: Sequence[NodeInput] | None = None,
) -> Inputs:
    """Returns what a task is given of its parents' values; ``asked`` stands for what the
    definition says that it asks for.

    Raises Refused if it lacks one that it asks for, or if they are too many.
    """
    text = graph.cycling.style.text
    found = _returned(graph, key, known, sizes)
    if graph.mapped:
        told = _as_told(graph, key, found, sizes)
        bodies = {one: json.dumps(values, ensure_ascii=False) for one, values in told.items()}
    else:
        bodies = {parent: known[parent].body for parent in found}
    said = inputs_text(
        {
            name if point == key[0] else f"{text(point)}/{name}": body
            for (point, name), body in bodies.items()
        }
    )
    wanted = graph.inputs_of(key[1]) if asked is None else asked
    chosen = tuple(_chosen(graph, key, found, wanted, sizes))
    files = tuple(_files(graph, key, found, wanted)) if may_have_files(said) else ()
    return Inputs(said, chosen, files) if said or chosen else NO_INPUTS


def _returned(
    graph: Graph, key: Key, known: Mapping[Key, StoredValues], sizes: Sizes
) -> dict[Key, Values]:
    """Returns what those before a task have returned, as far as that is known."""
    return {
        parent: json.loads(known[parent].body)
        for parent in parents_of(graph, key, sizes)
        if parent in known
    }


def _files(
    graph: Graph, key: Key, found: Mapping[Key, Values], asked: Sequence[NodeInput]
) -> Iterator[tuple[str, FileValue]]:
    """Yields the files that a task is given: those that it asks for, else all of them."""
    text = graph.cycling.style.text
    chosen = [one for one in asked if not _is_own(one)]
    own = next((one for one in asked if _is_own(one)), None)
    for parent, values in found.items():
        taken: list[object] = [values]
        if not chosen and own is not None and parent == (key[0], own.node):
            # An element that chooses nothing is given the rest of what its source returned.
            rest = [value for name, value in values.items() if name != own.path[0]]
            taken = [_at(values, own.path), *rest]
        elif chosen:
            element = element_of(graph.mapped, parent[1]) if graph.mapped else None
            names = (parent[1],) if element is None else (parent[1], element[0])
            taken = [
                _at(values, one.path)
                for one in asked
                if one.node in names and graph.parent_point(one.offset, key[0]) == parent[0]
            ]
        for told in taken:
            for one in files_in(told):
                yield f"{text(parent[0])}/{parent[1]}", file_value(one)


def _at(values: object, path: Iterable[str]) -> object:
    for part in path:
        values = _part(values, part)
    return values


def _as_told(
    graph: Graph, key: Key, found: Mapping[Key, Values], sizes: Sizes
) -> dict[Key, object]:
    """Returns values as `$TIDEWHEEL_INPUTS` has them where elements are among them.

    An element finds its own element of the list instead of all, by the name of the parameter,
    and its parent among other elements by the mapped task's name; a task after all elements
    finds what they returned as a list.
    """
    own = element_of(graph.mapped, key[1])
    over = None if own is None else graph.mapped[own[0]]
    told: dict[Key, object] = {
        parent: []  # of no elements, too, so that a script finds what it reads
        for parent in graph.parents(key[1], key[0])
        if parent[1] in graph.mapped and not sizes(*parent)
    }
    for (point, name), values in found.items():
        element = element_of(graph.mapped, name)
        if over is not None and own is not None and (point, name) == (key[0], over.source):
            rest = {one: value for one, value in values.items() if one != over.value}
            whole = values.get(over.value)
            if isinstance(whole, list) and own[1] < len(whole):
                rest[over.parameter] = whole[own[1]]
            told[point, name] = rest
        elif element is None:
            told[point, name] = values
        elif own is not None and element[1] == own[1] and graph.mapped[element[0]] == over:
            told[point, element[0]] = values
        else:
            every = told.setdefault(
                (point, element[0]), [None] * max(sizes(point, element[0]), element[1] + 1)
            )
            assert isinstance(every, list)
            every[element[1]] = values
    return told


def parents_of(graph: Graph, key: Key, sizes: Sizes = no_elements) -> dict[Key, None]:
    """Returns the tasks before a task, those whose values it asks for included, in order."""
    point, name = key
    if name not in graph.nodes:
        return {}
    asked = ((graph.parent_point(one.offset, point), one.node) for one in graph.inputs_of(name))
    found = dict.fromkeys((*graph.parents(name, point), *asked))
    if not graph.mapped:
        return found
    return dict.fromkeys(
        (where, one)
        for where, parent in found
        for one in (
            _elements(parent, sizes(where, parent)) if parent in graph.mapped else (parent,)
        )
    )


@dataclass(frozen=True, slots=True)
class RunInputs:
    """Holds the values that a run is given which is a task, by name, and the files in them."""

    parameters: Mapping[str, object]
    files: tuple[tuple[str, FileValue], ...] = ()


def run_inputs_of(
    graph: Graph, key: Key, known: Mapping[Key, StoredValues], sizes: Sizes = no_elements
) -> RunInputs:
    """Returns what a task asks for that is a run of another workflow.

    Raises Refused if it lacks a value.
    """
    found, asked = _returned(graph, key, known, sizes), graph.inputs_of(key[1])
    chosen = _chosen_values(graph, key, found, asked, sizes)
    parameters = {one.variable: value for one, value in chosen}
    return RunInputs(parameters, tuple(_files(graph, key, found, asked)) if asked else ())


def files_text(run: str, files: Iterable[tuple[str, FileValue]]) -> str:
    """Returns the files that a run is given by a task of another, as text; "" for none."""
    told = [(f"{task} of {run}", *file) for task, file in files]
    return json.dumps(told, ensure_ascii=False) if told else ""


def files_named(text: str, script: str) -> tuple[tuple[str, FileValue], ...]:
    """Returns those of such files whose paths stand in a script."""
    told = ((task, FileValue(*file)) for task, *file in json.loads(text))
    return tuple((task, file) for task, file in told if file.path in script)


def _elements(mapped: str, size: int) -> Iterator[str]:
    return (element_name(mapped, index) for index in range(size))


def _chosen_values(
    graph: Graph,
    key: Key,
    found: Mapping[Key, Values],
    asked: Sequence[NodeInput],
    sizes: Sizes,
) -> Iterator[tuple[NodeInput, object]]:
    """Yields the values that a task asks for, in the order of its definition."""
    for one in asked:
        point = graph.parent_point(one.offset, key[0])
        parent = (point, one.node)
        if parent not in found and not _is_ever(graph, parent):
            continue  # before the start, or at no point of its own: nobody waits for it
        where = graph.cycling.style.text(point)
        if one.node in graph.mapped:  # of each element, as a list
            every = _elements(one.node, sizes(point, one.node))
            yield (
                one,
                [_part_of(f"{where}/{name}", one, found.get((point, name))) for name in every],
            )
        else:
            yield one, _part_of(f"{where}/{one.node}", one, found.get(parent))


def _chosen(
    graph: Graph,
    key: Key,
    found: Mapping[Key, Values],
    asked: Sequence[NodeInput],
    sizes: Sizes,
) -> Iterator[tuple[str, str]]:
    """Yields the variables that a task asks for, in the order of its definition."""
    for one, value in _chosen_values(graph, key, found, asked, sizes):
        is_argument = one.variable.startswith(ARGUMENT)  # a text and a number differ there
        if isinstance(value, str) and not is_argument:
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False)
        if "\0" in text:
            raise Refused(
                f"{_value_text(one)} has a NUL character, which no environment variable can "
                f"hold{_elsewhere(one)}"
            )
        if len(text.encode()) > VARIABLE_BYTES_MAX:
            if is_argument and one.offset is None:
                continue  # its function finds it in $TIDEWHEEL_INPUTS
            raise Refused(
                f"{_value_text(one)} has more than {VARIABLE_BYTES_MAX} bytes, which is too "
                f"much for an environment variable{_elsewhere(one)}"
            )
        yield one.variable, text


def _is_own(one: NodeInput) -> bool:
    """Says whether an input is an element's own value, which nobody can do without."""
    return one.variable.startswith(PARAMETER_VARIABLES)


def _value_text(one: NodeInput) -> str:
    if _is_own(one):
        return f"its element of {one.node}.{one.path[0]}"
    return f"the value {one} for {_called(one)}"


def _called(one: NodeInput) -> str:
    """Returns what people call an input: a variable, or an argument of a function."""
    argument = one.variable.removeprefix(ARGUMENT)
    return argument if argument == one.variable else f"the argument {argument}"


def _elsewhere(one: NodeInput) -> str:
    return "" if _is_own(one) else "; read it from the file $TIDEWHEEL_INPUTS"


def _is_ever(graph: Graph, key: Key) -> bool:
    """Says whether the graph has this task, from the point on at which the run starts."""
    node, cycling = graph.nodes.get(key[1]), graph.cycling
    start = cycling.initial if cycling.start is None else cycling.start
    return node is not None and key[0] >= start and node.is_at(key[0])


def _part_of(parent: str, one: NodeInput, values: object) -> object:
    """Returns the part of a parent's values that an input asks for."""
    wish = f"it takes {_called(one)} from {one}"
    name = one.path[0] if one.path else "NAME"
    repair = f"give it (set {parent} --value {name}=…), then trigger this task"
    if values is None:
        raise Refused(f"{wish}, but {parent} returned no values; {repair}")
    for depth, part in enumerate(one.path):
        there = _part(values, part)
        if there is _MISSING:
            where = ".".join((parent, *one.path[:depth]))
            raise Refused(f"{wish}, but {where} has {_names(values)}; {repair}")
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
        return "1 element" if len(values) == 1 else f"{len(values)} elements"
    if not isinstance(values, dict):
        return "no named values"
    names = [_shown(name) for name in values]
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"only {', '.join(names[:_NAMES_MAX])}{more}" if names else "no named values"


def _shown(name: str) -> str:
    """Returns a name that a job chose as it may stand in a message: short, and in one line."""
    kept = name if len(name) <= _NAME_LENGTH_MAX else f"{name[:_NAME_LENGTH_MAX]}…"
    return kept if kept.isprintable() else repr(kept)
