"""Says which run `tidewheel run DIR` carries on, and with which options (SEMANTICS §9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import SPELLED, RunOptions, check_options
from tidewheel.core.operator.views import CARRY_ON_STATUSES, OPEN_STATUSES, RunView
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.pool import RunStatus
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from tidewheel.services.definitions.snapshot import RestoredDefinition

CREATED = "created"


def run_to_carry_on(
    runs: Iterable[RunView],
    folder: str,
    now: Instant,
    is_alive: Callable[[HostProcess], bool],
    *,
    goes_further: bool,
    request: str | None = None,
) -> RunView | None:
    """Returns the newest run of a folder's definition if it can go on; None: a new run begins.

    ``goes_further``: a final point was given, which may lie beyond that of a completed run.
    ``request`` are the parameters of a SIP definition: with others it is another run, and one
    that has failed is over.
    """
    newest = newest_of(runs, folder)
    if newest is None or newest.is_aborted or is_driven(newest, now, is_alive):
        return None
    if request is not None and (
        not is_same_request(newest, request) or newest.status == RunStatus.STALLED
    ):
        return None
    if newest.status in (CREATED, *CARRY_ON_STATUSES, *OPEN_STATUSES):
        return newest
    if newest.wants_scheduler:  # a command was kept for it
        return newest
    return newest if goes_further and newest.status == RunStatus.COMPLETED else None


def newest_of(runs: Iterable[RunView], folder: str) -> RunView | None:
    """Returns the newest run of a folder's definition, or None; runs come newest first."""
    return next((run for run in runs if run.folder == folder), None)


def is_same_request(run: RunView, request: str | None) -> bool:
    """Says whether a run has the SIP parameters that are asked for; True if none are."""
    return request is None or run.options.parameters == request


def is_driven(run: RunView, now: Instant, is_alive: Callable[[HostProcess], bool]) -> bool:
    """Says whether a scheduler that is not known to be dead holds the lease of a run."""
    return run.is_driven(now) and run.owner is not None and is_alive(run.owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartOptions:
    """Holds the options given to carry a run on, all its options then, and its definition."""

    given: RunOptions
    options: RunOptions
    restored: RestoredDefinition


# Options that cannot change after the start of a run.
FIXED = ("compat", "mode", "initial", "start", "start_tasks", "priority")


def options_from_now_on(
    run_name: str, stored: RunOptions, given: RunOptions, kind: str
) -> RunOptions:
    """Returns the stored options with the given ones over them; defaults change nothing.

    Raises Refused for an option that cannot change after the start, or that has no effect on
    a definition of this kind.
    """
    check_options(kind, given)
    for field in FIXED:
        option = SPELLED[field]
        old, new = getattr(stored, field), getattr(given, field)
        if new not in (None, "", ()) and (new or None) != (old or None):
            was = f"no {option}" if old in (None, "", ()) else f"{option} {_shown(old)}"
            raise Refused(
                f"{run_name} was started with {was}, which cannot be changed to {_shown(new)}; "
                f"leave {option} out to resume it, or start a new run with --new"
            )
    seconds = given.stall_timeout_seconds
    return replace(
        stored,
        final=given.final or stored.final,
        stop=given.stop or stored.stop,
        hold_after=given.hold_after or stored.hold_after,
        paused=stored.paused or given.paused,
        abort_if_any_task_fails=stored.abort_if_any_task_fails or given.abort_if_any_task_fails,
        stall_timeout_seconds=stored.stall_timeout_seconds if seconds is None else seconds,
    )


def _shown(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


def check_final(run_name: str, old: Graph, new: Graph) -> None:
    """Raises Refused for a graph that would end before points that may have run already."""
    before, after = old.cycling.final, new.cycling.final
    if after is None or (before is not None and after >= before):
        return
    wanted = _text(new, after)
    if before is None:
        refused = "has no final point, and a run that has begun cannot be given one"
    else:
        refused = (
            f"ends at {_text(old, before)}; its final point can only be moved to a later one, "
            f"not to {wanted}"
        )
    raise Refused(f"{run_name} {refused}. To stop at {wanted}: --stopcp {wanted}")


def _text(graph: Graph, point: Point) -> str:
    return graph.cycling.style.text(point)
