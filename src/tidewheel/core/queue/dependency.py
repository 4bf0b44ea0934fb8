"""Decides when a task may run: by its edges to other tasks. Finds circles among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from tidewheel.core.queue.status import FINAL, Status

FINISHED = "finished"  # either end of a job, as in a graph
ALWAYS_KNOWN = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, FINISHED)
# What people write for these, and outputs that only tasks of runs make.
_MEANT = {
    "succeed": Status.SUCCEEDED,
    "success": Status.SUCCEEDED,
    "fail": Status.FAILED,
    "failure": Status.FAILED,
    "cancel": Status.CANCELLED,
    "canceled": Status.CANCELLED,
    "finish": FINISHED,
}
_OF_RUNS = ("submit", "submitted", "submit-fail", "submit-failed", "start", "started")
_OF_RUNS_ONLY = frozenset((*_OF_RUNS, "expire", "expired"))


def output_finding(task: str, output: str) -> str | None:
    """Returns what is wrong with an output that a task in a queue is to make; None if its job
    may make it."""
    if output not in _MEANT and output not in _OF_RUNS_ONLY:
        return None
    hint = f"did you mean {_MEANT[output]}? A" if output in _MEANT else "a"
    return (
        f"it needs the output {output!r} of {task}, which no task of a queue has; {hint} task "
        f"of a queue has {', '.join(ALWAYS_KNOWN)}, and what its job says with `tidewheel "
        "message --output`"
    )


class EdgeState(StrEnum):
    """Says whether a dependency is open, met, or can never be met (dead).

    It is kept for each edge, not as a count of open edges: so a repeated report changes
    nothing.
    """

    OPEN = "open"
    MET = "met"
    DEAD = "dead"  # the parent ended without that output; the child will not run


def edge_state(output: str, parent_status: Status, parent_outputs: Iterable[str]) -> EdgeState:
    """Returns the state of an edge that waits for an output, from what its parent made.

    A final status counts as an output of that name, and success and failure as `finished`.
    """
    if output == parent_status.value and parent_status in FINAL:
        return EdgeState.MET
    if output == FINISHED and parent_status in (Status.SUCCEEDED, Status.FAILED):
        return EdgeState.MET
    # What a job calls "succeeded" or "finished" while it runs is a message, not its end.
    if output in parent_outputs and output not in ALWAYS_KNOWN:
        return EdgeState.MET
    if parent_status is Status.CANCELLING:
        # It can only end cancelled, so a child that needs anything else need not wait for that.
        return EdgeState.OPEN if output == Status.CANCELLED.value else EdgeState.DEAD
    return EdgeState.DEAD if parent_status in FINAL else EdgeState.OPEN


def status_from_edges(states: Sequence[EdgeState], *, armed: bool) -> Status:
    """Returns the status of a task that has not begun, from the states of the edges into it.

    ``armed`` matters only without edges: a task that waits for others is made ready by the last
    of them (seed 003, release_continuation).
    """
    if EdgeState.DEAD in states:
        return Status.CANCELLED
    if EdgeState.OPEN in states:
        return Status.WAITING
    return Status.READY if armed or states else Status.WAITING


def find_cycle(children: Mapping[str, Iterable[str]]) -> list[str] | None:
    """Returns a path that ends where it began; None if there is none.

    It does not recurse, so that a graph may have any depth.
    """
    done: set[str] = set()
    for root in children:
        if root in done:
            continue
        path: list[str] = [root]
        on_path = {root}
        branches = [iter(children.get(root, ()))]
        while branches:
            child = next(branches[-1], None)
            if child is None:
                branches.pop()
                last = path.pop()
                on_path.discard(last)
                done.add(last)
            elif child in on_path:
                return [*path[path.index(child) :], child]
            elif child not in done:
                path.append(child)
                on_path.add(child)
                branches.append(iter(children.get(child, ())))
    return None
