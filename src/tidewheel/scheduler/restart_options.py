"""The options with which a run is carried on, and the stop point that counts then."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.sched.pool import Pool, RunStatus
from tidewheel.core.sched.states import Standing
from tidewheel.errors import Refused
from tidewheel.services.definitions.kept import RestoredDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartOptions:
    """Options that were given when a run was carried on, and the run as it is with them."""

    given: RunOptions
    options: RunOptions
    restored: RestoredDefinition


# What a run is cannot be changed after its start, by the option that would.
FIXED = {
    "compat": "--compat",
    "mode": "--mode",
    "initial": "--icp",
    "start": "--startcp",
    "start_tasks": "--start-task",
}


def options_from_now_on(run_name: str, stored: RunOptions, given: RunOptions) -> RunOptions:
    """The stored options, with those that were given instead; a default says nothing."""
    for field, option in FIXED.items():
        old, new = getattr(stored, field), getattr(given, field)
        if new and new != old:
            was = f"{option} {_shown(old)}" if old else f"no {option}"
            raise Refused(
                f"{run_name} was started with {was}, which cannot become {_shown(new)}; "
                f"leave {option} out to carry it on, or begin a new run with --new"
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
    """A graph may go on beyond its end, and not end before what may have run already."""
    before, after = old.cycling.final, new.cycling.final
    if after is not None and (before is None or after < before):
        ended = "has no final point" if before is None else f"ends at {_text(old, before)}"
        raise Refused(
            f"{run_name} {ended}; a final point may only become later, not "
            f"{_text(new, after)}. To stop early: --stopcp {_text(new, after)}"
        )


def _text(graph: Graph, point: Point) -> str:
    return graph.cycling.style.text(point)


def stop_point(pool: Pool, given: Point | None) -> Point | None:
    """Up to where a run goes on: as it was told, unless it has got there (SEMANTICS §9)."""
    old = pool.run.stop
    if given is not None or old is None:
        return given
    return None if _is_reached(pool, old) else old


def _is_reached(pool: Pool, stop: Point) -> bool:
    return pool.run.status == RunStatus.STOPPED and not any(
        task.point <= stop and task.standing is not Standing.WAITING
        for task in pool.tasks.values()
    )
