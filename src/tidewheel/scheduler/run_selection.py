"""Which run `tidewheel run DIR` means: one to carry on, or a new one (SEMANTICS §9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidewheel.core.operator.views import CARRY_ON_STATUSES, OPEN_STATUSES, RunView
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.pool import RunStatus

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
    """The newest run of the definition in a folder, if it can go on; None: begin the next.

    ``goes_further``: a final point was given, which may lie beyond that of a completed run.
    ``request`` are the parameters of a SIP definition: with others it is another run, and one
    that has failed is over.
    """
    newest = newest_of(runs, folder)
    if newest is None or newest.is_aborted or is_driven(newest, now, is_alive):
        return None
    if request is not None and not _is_answered_still(newest, request):
        return None
    if newest.status in (CREATED, *CARRY_ON_STATUSES, *OPEN_STATUSES):
        return newest
    if newest.wants_scheduler:  # a command was kept for it
        return newest
    return newest if goes_further and newest.status == RunStatus.COMPLETED else None


def newest_of(runs: Iterable[RunView], folder: str) -> RunView | None:
    """The newest run of the definition in a folder."""
    return next((run for run in runs if run.folder == folder), None)


def is_same_request(run: RunView, request: str | None) -> bool:
    """Whether a run does what is asked for; of a SIP definition, with the same parameters."""
    return request is None or run.options.parameters == request


def _is_answered_still(run: RunView, request: str) -> bool:
    return is_same_request(run, request) and run.status != RunStatus.STALLED


def is_driven(run: RunView, now: Instant, is_alive: Callable[[HostProcess], bool]) -> bool:
    """Whether a scheduler has it that is not known to be dead."""
    return run.is_driven(now) and run.owner is not None and is_alive(run.owner)
