"""Reads which values tasks take of each other, and which are lists that tasks are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tidewheel.core.graph import definition
from tidewheel.core.graph.findings import NOWHERE, Findings, Position, meant
from tidewheel.core.graph.graph import element_of
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader
from tidewheel.formats.flow_cylc.names import variable_name_problem
from tidewheel.formats.flow_cylc.values import ListSource
from tidewheel.lazy_dataclasses import pattern

# Mapped tasks: their elements are made at run time, of a list that another task returns.


ELEMENTS_TOGETHER_MAX = 100_000  # of all mapped tasks at a point, as of static parameters


def read_mapped(
    lists: Mapping[str, ListSource],
    nodes: Mapping[str, definition.NodeDef],
    sequential: Collection[str],
    sections: Sequence[definition.GraphSection],
    policy: definition.Policy,
    findings: Findings,
) -> dict[str, definition.MappedOver]:
    """Returns the mapped tasks of the graph with their lists; what cannot be has a finding.

    ``lists`` are by parameter, ``sequential`` names the tasks that wait for themselves.
    """
    placed = {one.node: one.position for part in sections for one in part.placements}
    named = dict.fromkeys((*placed, *_asked_for(sections))) if lists else {}
    found: dict[str, definition.MappedOver] = {}
    for name in named:
        position = placed.get(name, NOWHERE)
        parameter = definition.parameter_of(name)
        if parameter not in lists:
            continue
        task, value, most = lists[parameter]
        found[name] = definition.MappedOver(parameter, task, value, most)
        problem = _mapping_problem(nodes, name, found[name], placed, policy)
        if problem is None and name in sequential:
            seen = f"{name} is sequential: its elements would wait for those of another point"
            problem = seen, f"lists at two points can differ: do not make {name} sequential"
        if problem is not None:
            findings.error("mapped-task", *problem, position)
    count = sum(over.elements_max for over in found.values())
    if count > ELEMENTS_TOGETHER_MAX:
        seen = f"all mapped tasks together have up to {count} elements at a point"
        hint = f"at most {ELEMENTS_TOGETHER_MAX} are accepted: give lists a smaller max"
        findings.error("too-many-tasks", seen, hint, placed.get(next(iter(found)), NOWHERE))
    heads: dict[str, str] = {}
    for name in found:
        head = definition.element_name(name, 0)
        if (other := heads.setdefault(head, name)) != name:
            seen = f"{name} and {other} both have elements called {head}, …"
            where = placed.get(name, NOWHERE)
            findings.error("mapped-task", seen, "rename one of them", where)
    for name in dict.fromkeys((*placed, *nodes)) if found else ():
        if (element := element_of(found, name)) is not None:
            seen = f"the task {name} has the name of an element of {element[0]}"
            findings.error("mapped-task", seen, "rename it", placed.get(name, NOWHERE))
    return found


def _asked_for(sections: Sequence[definition.GraphSection]) -> Iterator[str]:
    for section in sections:
        for arrow in section.arrows:
            for leaf in definition.leaves(arrow.condition):
                if isinstance(leaf, definition.Group):
                    yield leaf.family
                elif isinstance(leaf, definition.Atom):
                    yield leaf.node


def _mapping_problem(
    nodes: Mapping[str, definition.NodeDef],
    name: str,
    over: definition.MappedOver,
    placed: Mapping[str, Position],
    policy: definition.Policy,
) -> tuple[str, str] | None:
    if policy is definition.CYLC8:
        return f"{name}: Cylc 8 has no mapped tasks", "leave out --compat cylc8"
    if over.source not in placed:
        seen = (
            f"{name} is mapped over {over.source}.{over.value}, but the graph has no "
            f"{over.source}"
        )
        return seen, meant(over.source, placed, f"add {over.source} => {name} to the graph")
    source = nodes.get(over.source)
    if source is not None and source.workflow:
        seen = (
            f"{name} is mapped over {over.source}.{over.value}, but {over.source} is a run of "
            "another workflow"
        )
        return seen, f"let a task after {over.source} return the list"
    mapped = nodes.get(name)
    is_played = source is not None and source.run_mode is definition.RunMode.SKIP
    if is_played and not (mapped is not None and mapped.run_mode is definition.RunMode.SKIP):
        seen = f"{name} is mapped over {over.source}.{over.value}, but {over.source} is skipped"
        return seen, (
            "a skipped task returns no list: remove run mode = skip from "
            f"{over.source}, or write it for {name}, too"
        )
    return None


# Which values a task takes of those before it: `[[[inputs]]] NAME = model[-P1].path`.

_REFERENCE = pattern(
    r"(?P<node>[\w%@+-]+(?:<\w+>)?)\s*(?:\[(?P<offset>[^\]]*)\])?(?P<path>(?:\.[\w-]+)*)"
)
_INPUT_HINT = "write TASK.NAME, TASK[-P1].NAME, or TASK for all of its values"


def read_inputs(
    nodes: Mapping[str, definition.NodeDef], reader: CyclingReader, findings: Findings
) -> dict[str, tuple[definition.NodeInput, ...]]:
    """Returns the inputs of each node that has some; one that cannot be read has a finding."""
    found: dict[str, tuple[definition.NodeInput, ...]] = {}
    for name, node in nodes.items():
        if node.inputs:
            read = (_read_input(node, *pair, reader, findings) for pair in node.inputs)
            found[name] = tuple(one for one in read if one is not None)
    return found


def _read_input(
    node: definition.NodeDef,
    variable: str,
    text: str,
    reader: CyclingReader,
    findings: Findings,
) -> definition.NodeInput | None:
    if problem := variable_name_problem(variable):
        seen = f"{node.name}: {variable!r} cannot be the name of an input"
        findings.error("bad-name", seen, problem, node.position)
        return None
    where = f"{node.name}: the input {variable} = {text}"
    match = _REFERENCE.fullmatch(text.strip())
    if match is None:
        findings.error("bad-input", f"{where} is not understood", _INPUT_HINT, node.position)
        return None
    try:
        offset = None if match["offset"] is None else reader.offset(match["offset"])
    except BadCycling as bad:
        findings.error("bad-input", f"{where}: {bad.message}", bad.hint, node.position)
        return None
    path = tuple(match["path"].split(".")[1:])
    return definition.NodeInput(
        variable=variable, node=match["node"], offset=offset, path=path, text=text.strip()
    )
