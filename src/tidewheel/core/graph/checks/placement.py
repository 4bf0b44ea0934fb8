"""Reports parents that are not there when they are asked for.

A task without an offset is placed by being named, so only parents with an offset can be
missing: named nowhere without one, or off their sequences where children look for them.

`check_failures` finds what a handled failure will leave undone. Handling a failure lets a run
go on without the task that failed. A task that needs its success does not run then: within the
point that is a branch not taken, at other points it stops the workflow from there on (SEMANTICS
§5, blocked).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tidewheel.core.cycling.calendar import Calendar, Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph.checks.names import mentions_of, some, xtriggers_asked
from tidewheel.core.graph.definition import Atom, GraphSection, Group, WorkflowDef, leaves
from tidewheel.core.graph.findings import NOWHERE, Findings, Position, Severity
from tidewheel.core.graph.graph import Graph, Link, Node
from tidewheel.core.graph.outputs import FAILED, SUCCEEDED
from tidewheel.lazy_dataclasses import dataclass

POINTS_FIRST = 60  # looked at for every parent with an offset
POINTS_MAX = 2_000  # looked at before a parent is called missing at every point


@dataclass(slots=True)
class _Look:
    """Counts the points at which a parent is there, and those at which it is missing.

    `missing_at` is the first point without it.
    """

    present: int = 0
    missing: int = 0
    missing_at: Point | None = None
    ended: bool = False  # the sequence has no further point


def _check_pace(workflow: WorkflowDef, findings: Findings) -> None:
    """Warns of days to come that are run at once: who comes from a system with schedules
    believes that each point waits for its date."""
    cycling, special = workflow.cycling, workflow.special
    is_ended = cycling.final is not None or cycling.stop is not None
    waits = xtriggers_asked(workflow) or special.wait_for_clock or special.wait_for_message
    if cycling.style.calendar is not Calendar.GREGORIAN or is_ended or waits:
        return
    for section in workflow.sections:
        if section.sequence.step is not None and section.sequence.endless:
            findings.warning(
                "nothing-waits-for-the-clock",
                f"{section.recurrence} has no end and nothing waits for the clock, so tasks of "
                "future dates run at once, and never stop",
                "if each point is to wait for its date, write @wall_clock => TASK (Python: "
                'wait_for_clock="PT0S"); else give a final cycle point',
                section.position,
            )
            return


def check_placement(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    _check_unplaced(workflow, graph, findings)
    _check_sequences(workflow, findings)
    _check_pace(workflow, findings)
    # Many nodes stand on the same sequences and are asked for alike: one look serves them all.
    # Equal sequences and offsets of a graph are one object, whose identity is a quicker key.
    looks: dict[tuple[int, ...], _Look] = {}
    told: set[tuple[Sequence, str, Offset]] = set()
    for sequence, name, offset, position in _asked_elsewhere(graph):
        node = graph.nodes[name]
        if not node.sequences:
            continue
        alike = (id(sequence), id(offset), *map(id, node.sequences))
        look = looks.get(alike)
        if look is None:
            look = looks[alike] = _look_for(graph, node, offset, sequence)
        if look.missing and (sequence, name, offset) not in told:
            told.add((sequence, name, offset))
            _report_missing(graph, node, offset, look, position, findings)
    _check_lists(graph, findings)
    _check_surprises(workflow, findings)


def _asked_elsewhere(graph: Graph) -> Iterable[tuple[Sequence, str, Offset, Position]]:
    """Returns which parents are asked for with an offset, on which sequence, where first."""
    asked: dict[tuple[int, str, int], tuple[Sequence, str, Offset, Position]] = {}
    for arrow in graph.arrows:
        condition = arrow.condition
        if type(condition) is Atom and condition.offset is None:
            continue
        for leaf in leaves(condition):
            assert isinstance(leaf, (Atom, Group)), (
                "xtriggers are kept apart from prerequisites"
            )
            if leaf.offset is None:
                continue
            if isinstance(leaf, Atom):
                names: tuple[str, ...] = (leaf.node,)
            else:
                names = graph.families[leaf.family].members
            sequence, offset = arrow.sequence, leaf.offset
            for name in names:
                key = (id(sequence), name, id(offset))
                if key not in asked:
                    asked[key] = (sequence, name, offset, arrow.position)
    return asked.values()


def _check_lists(graph: Graph, findings: Findings) -> None:
    """Reports mapped tasks at points where the task that returns their list is not."""
    first, last = graph.cycling.initial, graph.cycling.final
    for name, over in graph.mapped.items():
        source, mapped = graph.nodes.get(over.source), graph.nodes.get(name)
        if source is None or mapped is None:
            continue
        for sequence in mapped.sequences:
            points = islice(sequence.points(first, last), POINTS_MAX)
            missing = next((one for one in points if not source.is_at(one)), None)
            if missing is not None:
                where = graph.cycling.style.text(missing)
                seen = (
                    f"{name} runs at {where}, but {over.source} does not: {name} would have "
                    "no list"
                )
                hint = (
                    f"write {over.source} => {name} under the recurrence of {name}; if the "
                    "list is made only once, let a task at each point return it again "
                    f"([[[inputs]]] NAME = {over.source}[^].{over.value}), and use its list"
                )
                findings.error("mapped-task", seen, hint)


def _check_unplaced(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    unplaced = [node for node in graph.nodes.values() if not node.sequences]
    if not unplaced:
        return
    doomed = {
        name
        for section in workflow.sections
        for arrow in section.arrows
        if arrow.suicide
        for name in arrow.targets
    }
    mentions = mentions_of(graph)
    for node in unplaced:
        if node.name in doomed and not node.links:
            findings.warning(
                "removed-but-not-there",
                f"an arrow removes {node.name} (!{node.name}), but no recurrence runs it",
                "remove the arrow, or name the task without '!' where it should run",
                mentions.get(node.name, NOWHERE),
            )
            continue
        findings.error(
            "task-at-no-point",
            f"{node.name} is only named with an offset, so no recurrence says where it runs",
            f"name it without an offset under the recurrence where it runs, for example "
            f"R1 = {node.name}",
            mentions.get(node.name, NOWHERE),
        )


def _check_sequences(workflow: WorkflowDef, findings: Findings) -> None:
    initial = workflow.cycling.initial
    for section in workflow.sections:
        first = section.sequence.first_from(initial)
        final = workflow.cycling.final
        if first is None or (final is not None and first > final):
            findings.warning(
                "empty-recurrence",
                f"{section.recurrence} has no point between the initial and the final point",
                "its tasks will not run; check the recurrence and the two points",
                section.position,
            )


def _report_missing(
    graph: Graph,
    node: Node,
    offset: Offset,
    look: _Look,
    position: Position,
    findings: Findings,
) -> None:
    assert look.missing_at is not None
    where = graph.cycling.style.text(look.missing_at)
    if look.present:
        findings.warning(
            "parent-sometimes-missing",
            f"tasks wait for {node.name} at points where it does not run, first at {where}",
            "these tasks cannot run; check the offset and the recurrences",
            position,
        )
        return
    missing = graph.policy.parent_off_sequence is Severity.ERROR
    report = findings.error if missing else findings.warning
    is_one = offset.is_absolute or look.missing == 1
    report(
        "parent-never-there",
        f"tasks wait for {node.name} "
        + (f"at {where}, where" if is_one else "only at points where")
        + " it never runs"
        + ("" if is_one else f", first at {where}"),
        f"{node.name} runs at {_example(graph, node)}; check the offset and the recurrences",
        position,
    )


def _look_for(graph: Graph, node: Node, offset: Offset, sequence: Sequence) -> _Look:
    look = _Look()
    initial, final = graph.cycling.initial, graph.cycling.final
    count = 0
    for point in sequence.points(initial, final):
        count += 1
        if count > POINTS_MAX or (count > POINTS_FIRST and look.present):
            return look
        parent = graph.parent_point(offset, point)
        if parent < initial or (final is not None and parent > final):
            continue  # before the start everything is true; beyond the end nothing is asked
        if node.is_at(parent):
            look.present += 1
        else:
            look.missing += 1
            look.missing_at = look.missing_at or parent
        if offset.is_absolute:
            break
    return look


def _example(graph: Graph, node: Node) -> str:
    points: list[str] = []
    point = node.first_from(graph.cycling.initial)
    while point is not None and len(points) < 3:  # noqa: PLR2004 - enough to see the pattern
        points.append(graph.cycling.style.text(point))
        point = node.next_after(point)
    more = [] if point is None else ["…"]
    return ", ".join(points + more) or "no point"


def _check_surprises(workflow: WorkflowDef, findings: Findings) -> None:
    """Warns of `R1 = a` with `P1 = a:fail => m`, where naming `a` places it at every point."""
    for once in workflow.sections:
        if once.sequence.first is None or once.sequence.first != once.sequence.last:
            continue
        heads = _heads(once)
        for often in workflow.sections:
            if often.sequence.first == often.sequence.last:
                continue
            if not often.sequence.contains(once.sequence.first):
                continue
            for name in heads & _heads(often):
                place = next(p.position for p in often.placements if p.node == name)
                findings.warning(
                    "placed-twice",
                    f"{name} runs at every point of {often.recurrence}, because it is named "
                    f"there without an offset, although {once.recurrence} runs it once",
                    f"write {name}[^] if it should run only once; else remove it from "
                    f"{once.recurrence}",
                    place,
                )


def _heads(section: GraphSection) -> set[str]:
    """Returns the tasks that a section places but leads no arrow to."""
    targets = {name for arrow in section.arrows for name in arrow.targets}
    return {placement.node for placement in section.placements} - targets


def check_failures(graph: Graph, findings: Findings) -> None:
    """Warns of each arrow that handles failures of tasks whose success other points wait for.

    There is one finding for each such arrow, however many parents it has.
    """
    traps: dict[int, tuple[list[str], dict[str, None]]] = {}
    for node in graph.nodes.values():
        if node.completion.marked or not node.completion.is_complete({FAILED}):
            continue
        handler = next((link.arrow for link in _links(graph, node, FAILED)), None)
        waiting = _waiting_elsewhere(graph, node)
        if handler is not None and waiting:
            names, needing = traps.setdefault(handler, ([], {}))
            names.append(node.name)
            needing.update(dict.fromkeys(waiting))
    for handler, (names, needing) in traps.items():
        arrow = graph.arrows[handler]
        findings.warning(
            "failure-stops-later-points",
            f"if {some(names)} {'fails' if len(names) == 1 else 'fail'}, "
            f"{some(arrow.targets)} {'runs' if len(arrow.targets) == 1 else 'run'}, but "
            f"{some(needing)} at other points still "
            f"{'needs' if len(needing) == 1 else 'need'} {some(names)} to succeed and will be "
            "blocked",
            f"write {names[0]}[…]:finish there if the next point should run anyway",
            arrow.position,
        )


def _waiting_elsewhere(graph: Graph, node: Node) -> list[str]:
    """Returns tasks that need a node's success at another point and accept no failure of it."""
    accepting = {(link.arrow, link.offset) for link in _links(graph, node, FAILED)}
    found: dict[str, None] = {}
    for link in _links(graph, node, SUCCEEDED):
        arrow = graph.arrows[link.arrow]
        if link.offset is None or arrow.suicide:
            continue
        if (link.arrow, link.offset) not in accepting:
            found.update(dict.fromkeys(arrow.targets))
    return list(found)


def _links(graph: Graph, node: Node, output: str) -> Iterator[Link]:
    yield from node.links.get(output, ())
    for index in node.groups.get(output, ()):
        yield from graph.groups[index].links
