"""The work that is measured: the same shape as a flow.cylc and as a list of tasks with parents.

Two front ends need it. tidewheel and Cylc read the text; HyperQueue, Dask and the bare loop are
given the tasks, each with the numbers of those it comes after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CYCLE = 10  # tasks in a cycle
# One task leads from cycle to cycle; in each, three chains of three follow it.
_ARROWS = ((0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (6, 9))

Parents = list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One piece of work."""

    name: str
    graph: str
    cycles: int
    runahead: int
    parents: Parents
    size: int
    queue_limit: int = 100  # tasks at once, as by default; 0: any number

    def flow(self, length: str = "PT0S") -> str:
        """The text of flow.cylc; ``length`` is that of a simulated job."""
        return f"""\
[scheduler]
    allow implicit tasks = True
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = {self.cycles}
    runahead limit = P{self.runahead}
    [[queues]]
        [[[default]]]
            limit = {self.queue_limit}
    [[graph]]
{self.graph}
[runtime]
    [[root]]
        script = true
        [[[simulation]]]
            default run length = {length}
"""


def cycles(count: int, *, width: int = CYCLE, runahead: int = 5) -> Shape:
    """So many cycles of ``width`` tasks, a multiple of ten."""
    assert width % CYCLE == 0, width
    lines = []
    for group in range(width // CYCLE):
        names = [f"t{group * CYCLE + number}" for number in range(CYCLE)]
        lines.append(f"{names[0]}[-P1] => {names[0]}")
        lines += [f"{names[before]} => {names[after]}" for before, after in _ARROWS]
    return Shape(
        name=f"{count:,} cycles × {width:,}",
        graph=_graph("P1", lines),
        cycles=count,
        runahead=runahead,
        parents=_parents_of_cycles(count) if width == CYCLE else [],
        size=count * width,
    )


def chain(length: int) -> Shape:
    """One task after the other."""
    return Shape(
        name=f"chain of {length:,}",
        graph=_graph("R1", [f"t{n} => t{n + 1}" for n in range(length - 1)]),
        cycles=1,
        runahead=5,
        parents=[[]] + [[n] for n in range(length - 1)],
        size=length,
    )


def fan(width: int) -> Shape:
    """One task, then ``width`` at once, then one."""
    middle = [f"first => m{n} => last" for n in range(width)]
    return Shape(
        name=f"fan 1 → {width:,} → 1",
        graph=_graph("R1", middle),
        cycles=1,
        runahead=5,
        parents=[[], *([0] for _ in range(width)), list(range(1, width + 1))],
        size=width + 2,
    )


def alone() -> Shape:
    """One task."""
    return Shape(
        name="one task",
        graph=_graph("R1", ["t0"]),
        cycles=1,
        runahead=5,
        parents=[[]],
        size=1,
    )


def parentless(points: int, width: int, runahead: int, queue_limit: int = 100) -> Shape:
    """Tasks without parents, at every point: held back by the limits alone."""
    names = " & ".join(f"t{n}" for n in range(width))
    return Shape(
        name=f"{points:,} × {width:,} without parents",
        graph=_graph("P1", [names]),
        cycles=points,
        runahead=runahead,
        parents=[[] for _ in range(points * width)],
        size=points * width,
        queue_limit=queue_limit,
    )


def _graph(recurrence: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"            {line}" for line in lines)
    return f'        {recurrence} = """\n{body}\n        """'


def _parents_of_cycles(count: int) -> Parents:
    parents: Parents = []
    for cycle in range(count):
        first = cycle * CYCLE
        parents.append([first - CYCLE] if cycle else [])
        parents += [[first + before] for before, _ in _ARROWS]
    return parents
