"""Dependencies: open, then met or dead, never back; a task waits exactly while one is open.

T6 nothing starts with an open dependency · T10 waiting, releases and their order · T11 what
can only end without its parent's output is cancelled with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.kit.rules.facts import Call, Facts, TaskFacts, demand

Edge = tuple[int, int, str]  # parent, child, output


@dataclass(slots=True)
class Edges:
    """The edges as they stood after the last commit."""

    states: dict[Edge, Any] = field(default_factory=dict)
    into: dict[int, set[Edge]] = field(default_factory=dict)
    out_of: dict[int, set[Edge]] = field(default_factory=dict)

    def note(self, stored: dict[Edge, Any], call: Call) -> set[int]:
        """Take over what a commit left; the tasks whose edges changed."""
        if stored == self.states:
            return set()
        children = set()
        for edge, state in stored.items():
            before = self.states.get(edge)
            if before is state:
                continue
            children.add(edge[1])
            if before is None:
                self._add(edge, call)
            else:
                demand(
                    before == "open",
                    "T10 an edge is settled once",
                    f"{edge}: {before} → {state}",
                )
        for edge in self.states.keys() - stored.keys():
            self._remove(edge, call)
            children.add(edge[1])
        self.states = dict(stored)
        return children

    def _add(self, edge: Edge, call: Call) -> None:
        tied = call.operation in ("submit", "add_edges")
        demand(tied, "T10 only clients tie tasks", f"{edge} by {call.operation}")
        self.into.setdefault(edge[1], set()).add(edge)
        self.out_of.setdefault(edge[0], set()).add(edge)

    def _remove(self, edge: Edge, call: Call) -> None:
        untied = call.operation in ("remove_edges", "delete_tasks")
        demand(untied, "T10 only clients untie tasks", f"{edge} by {call.operation}")
        self.into[edge[1]].discard(edge)
        self.out_of[edge[0]].discard(edge)


def check_edges(
    edges: Edges, everything: Facts, touched: Iterable[int], cancelled: Iterable[int]
) -> None:
    """Every task that a commit touched, and every child of one; ``cancelled`` by cascade."""
    wanted = set(touched)
    for seq in list(wanted):
        wanted.update(edge[1] for edge in edges.out_of.get(seq, ()))
    for seq in sorted(wanted):
        facts = everything.tasks.get(seq)
        if facts is not None:
            _check_child(facts, edges, everything)
    for seq in cancelled:
        dead = any(_verdict(edge, everything) == "dead" for edge in edges.into.get(seq, ()))
        demand(dead, "T11 cancelled for a reason", f"{everything.tasks[seq].id}")


def _check_child(facts: TaskFacts, edges: Edges, everything: Facts) -> None:
    into = edges.into.get(facts.seq, ())
    waits = not into and not facts.armed
    for edge in into:
        state = str(edges.states[edge])
        if facts.final:
            demand(state != "open", "T10 a final child waits for nobody", f"{facts.id}: {edge}")
            continue
        verdict = _verdict(edge, everything)
        demand(
            verdict != "dead",
            "T11 cancelled with its parent",
            f"{facts.id} {facts.status} {edge}",
        )
        demand(
            state == verdict,
            "T10 an edge says what its parent did",
            f"{facts.id} {facts.status}: {edge} is {state}, should be {verdict}",
        )
        waits = waits or state == "open"
    if not facts.final and waits != (facts.status == "waiting"):
        demand(
            False,
            "T10 waiting exactly while something is open",
            f"{facts.id} is {facts.status}, edges {sorted(into)}, armed {facts.armed}",
        )


def _verdict(edge: Edge, everything: Facts) -> str:
    """What an edge must be, from what its parent did."""
    parent, _, output = edge
    facts = everything.tasks[parent]
    if output in facts.outputs or (facts.final and facts.status == output):
        return "met"
    if facts.final or (facts.status == "cancelling" and output != "cancelled"):
        return "dead"
    return "open"
