"""Stores runs: how they are made, found, leased, commanded and deleted."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from tidewheel import errors
from tidewheel.core.operator.blocks import NeedState, NeedView
from tidewheel.core.operator.definition import (
    ACCEPTED,
    NewRun,
    RunOptions,
    StoredDefinition,
    StoredFile,
    is_run_name,
    names_above,
    read_job_name,
)
from tidewheel.core.operator.requests import NewCommand, RunClaim, RunLease
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.access import ANY_TEXT, covers, narrowed, run_name
from tidewheel.core.queue.lease import LEASE_SECONDS_MAX
from tidewheel.core.queue.task import Instant, TaskId, TaskState
from tidewheel.store.operations.queries import page_count
from tidewheel.store.operations.transitions import COMMAND, Effects, tell_runs
from tidewheel.store.transaction import (
    ROWS_PER_STATEMENT_MAX,
    STORED,
    Conflict,
    Stored,
    Transaction,
    found_one,
    row_of,
)

NAMES_SHOWN_MAX = 10
RUNS_LOOKED_THROUGH_MAX = 1_000  # of a workflow, for the newest that one may see
NUMBER_DIGITS_MAX = 18
NESTED_MAX = 1_000_000  # runs that are tasks of one


def options_text(options: RunOptions) -> str:
    """Returns options of a run as the JSON text that its row keeps."""
    return json.dumps(asdict(options))


def _files(text: str) -> tuple[StoredFile, ...]:
    return tuple(
        StoredFile(path, base64.b64decode(content), executable)
        for path, content, executable in json.loads(text)
    )


def _files_text(files: Sequence[StoredFile]) -> str:
    """Returns files as JSON text, with their content, which may be any bytes, as base64.
    ``json`` is used because msgspec refuses a path that is no Unicode."""
    return json.dumps(
        [(one.path, base64.b64encode(one.content).decode(), one.executable) for one in files]
    )


PATTERNS = Stored(lambda text: tuple(json.loads(text)), json.dumps)
STORED |= {
    RunOptions: Stored(lambda text: msgspec.json.decode(text, type=RunOptions), options_text),
    tuple[StoredFile, ...]: Stored(_files, _files_text),
    (NewRun, "sees"): PATTERNS,
    (RunView, "sees"): PATTERNS,
    (NeedView, "aborted"): None,  # the run's own status says it
}


# ---- definitions ----


def save_definition(tx: Transaction, definition: StoredDefinition) -> None:
    """Stores a definition; if its digest is there, it is only kept for longer."""
    tx.rows("save_definition", **row_of(definition))


def definition(tx: Transaction, digest: str) -> StoredDefinition:
    """Returns the definition with this digest; raises NotFound if there is none."""
    found = tx.records("get_definition", StoredDefinition, digest=digest)
    return found_one(found, "definition", digest)


# ---- making and finding ----


def create_run(tx: Transaction, new: NewRun) -> RunView:
    """Creates a run under the name that it was given, or as the next one of its workflow.

    For a request that made a run before, that run is returned.
    """
    if new.request and (made := tx.rows("find_run_by_request", request=new.request)):
        return get_run(tx, made[0][0])
    if not 0 < new.lease_seconds <= LEASE_SECONDS_MAX:
        accepted = f"more than 0, up to {LEASE_SECONDS_MAX:.0f}"
        raise errors.BadSetting("lease_seconds", new.lease_seconds, accepted)
    name = new.name
    if not name:
        prefix = f"{new.workflow}/run"
        name = f"{prefix}{tx.rows('find_last_run_number', prefix=prefix)[0][0] + 1}"
    try:
        _check_name(tx, name, is_nested=new.parent is not None)
    except errors.Duplicate:
        if new.name or not tx.rows("find_run_named", name=name):
            raise
        raise Conflict("another run of this workflow was made at the same moment") from None
    if not tx.rows("get_definition", digest=new.definition):
        raise errors.NotFound("definition", new.definition)
    row: dict[str, Any] = row_of(new) | {
        "name": name,
        "queue": new.queue or f"run:{name}",
        "request": new.request or None,
        "priority": new.options.priority or 0,
    }
    lease_seconds = row.pop("lease_seconds")  # of its tasks, which is its queue's
    number = tx.rows("insert_run", **row)[0][0]
    tx.rows("ensure_queue", queue=row["queue"], lease_seconds=lease_seconds)
    return get_run(tx, number)


def _check_name(tx: Transaction, name: str, *, is_nested: bool) -> None:
    """Refuses a name that is taken, or whose folder would lie in another run's or hold one.
    A run that is a task lies in the folder of its parent."""
    if not is_run_name(name):
        raise errors.BadSetting("run", name, ACCEPTED)
    taken = tx.records("find_run_named", RunView, name=name)
    if taken:
        raise errors.Duplicate("run name", name, f"run {taken[0].number}")
    for above in () if is_nested else names_above(name):
        if tx.rows("find_run_named", name=above):
            raise errors.BadSetting("run", name, f"a name outside the folder of run {above}")
    if tx.rows("find_runs_by_prefix", prefix=f"{name}/", count=1, nested=True):
        raise errors.BadSetting("run", name, "a name whose folder contains no other run")


def get_run(tx: Transaction, number: int) -> RunView:
    """Returns a run; raises NotFound if there is none with this number."""
    return found_one(tx.records("get_run", RunView, run=number), "run", str(number))


def status_since(tx: Transaction, number: int) -> Instant:
    """Returns since when the run has its status, whatever batches were written meanwhile."""
    run = get_run(tx, number)
    found = tx.rows("find_status_since", run=number, status=run.status)
    return Instant(run.updated_at if found[0][0] is None else found[0][0])


def find_run(tx: Transaction, text: str, names: tuple[str, ...] | None = None) -> RunView:
    """Returns a run by name, number, workflow (its newest run) or the beginning of one name.

    Raises NotFound if there is none, AmbiguousRun if several names begin so. A run that these
    patterns do not cover is as if it were not there; None: all are covered.
    """

    def is_seen(name: str) -> bool:
        return names is None or covers(names, run_name(name))

    found = [
        run
        for run in tx.records("find_run_named", RunView, name=text)
        if run.status != "deleted"
    ]
    if text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS_MAX:
        found += tx.records("get_run", RunView, run=int(text))
    if (run := next((run for run in found if is_seen(run.name)), None)) is not None:
        return run
    count = 1 if names is None or ANY_TEXT in names else RUNS_LOOKED_THROUGH_MAX
    newest = {"count": count, "before": None, "parent": None, "nested": False}
    for run in tx.records("list_runs", RunView, workflow=text, **newest):
        if is_seen(run.name):
            return run
    count = max(count, NAMES_SHOWN_MAX)
    shown: list[tuple[int, str]] = []
    for nested in (False, True) if text else ():
        asked = {"prefix": text, "count": count, "nested": nested}
        begin_so = tx.rows("find_runs_by_prefix", **asked)
        shown = shown or [(number, name) for number, name in begin_so if is_seen(name)]
    if len(shown) > 1:
        raise errors.AmbiguousRun(text, [name for _, name in shown[:NAMES_SHOWN_MAX]])
    if not shown:
        raise errors.NotFound("run", text)
    return get_run(tx, shown[0][0])


def list_runs(
    tx: Transaction,
    *,
    workflow: str | None = None,
    count: int = 100,
    before: int | None = None,
    parent: int | None = None,
    nested: bool = False,
) -> list[RunView]:
    """Returns runs, of one workflow or of all, newest first.

    Runs that are tasks of a run come only if they are asked for: those of one (``parent``), or
    all (``nested``).
    """
    asked = {"workflow": workflow, "count": page_count(count), "before": before}
    return tx.records("list_runs", RunView, **asked, parent=parent, nested=nested)


def narrow_run(tx: Transaction, number: int, names: tuple[str, ...]) -> None:
    """Lets jobs of a run see no more than these patterns cover, beside their own run."""
    sees = narrowed(get_run(tx, number).sees, names)
    tx.rows("narrow_run", run=number, sees=json.dumps(sees))


# ---- driving ----


def claim_run(tx: Transaction, claim: RunClaim) -> RunLease:
    """Leases a run under a new epoch if nobody holds it, or its owner is known to be dead.

    Else raises the error that says why not.
    """
    if (run := get_run(tx, claim.run)).is_aborted:
        raise errors.Aborted(run.name, run.reason)
    claimed = tx.rows("claim_run", **row_of(claim))
    if not claimed:
        raise _why_not(tx, get_run(tx, claim.run), claim.seen_epoch)
    epoch, batch = claimed[0]
    return RunLease(run=claim.run, epoch=epoch, batch=batch, lease_seconds=claim.lease_seconds)


def _why_not(
    tx: Transaction, run: RunView, seen_epoch: int | None
) -> errors.RunWaits | errors.RunHeld | errors.RunLost | Conflict:
    """Returns the error that says why a run cannot be leased. It waits for others, is held, or
    was leased since the caller looked."""
    needs = [] if run.batch else tx.records("list_needs", NeedView, runs=[run.number])
    waits = [str(one) for one in needs if one.state is not NeedState.MET]
    if waits:
        return errors.RunWaits(run.name, waits)
    if run.owner is not None:
        return _held(tx, run)
    if seen_epoch not in (None, run.epoch):
        return errors.RunLost(run.name, seen_epoch, run.epoch)
    return Conflict("the scheduler of the run released it at this moment")


def _held(tx: Transaction, run: RunView) -> errors.RunHeld:
    assert run.owner is not None and run.deadline_at is not None
    seconds_left = run.deadline_at - tx.rows("get_now")[0][0]
    owner = f"process {run.owner.pid} on {run.owner.host}"
    return errors.RunHeld(run.name, owner, max(0.0, seconds_left))


def claimable_runs(tx: Transaction, count_max: int, under: str | None = None) -> list[RunView]:
    """Returns open runs whose lease ran out, and those that any scheduler is asked to drive;
    with ``under`` only those whose names begin so."""
    asked = {"count": page_count(count_max), "under": under}
    return tx.records("list_claimable_runs", RunView, **asked)


def nested_count(tx: Transaction, name: str) -> int:
    """Returns how many runs are tasks of this one, or of those, and have not ended."""
    count: int = tx.rows("count_nested_runs", under=f"{name}/")[0][0]
    return count


def undelivered_runs(tx: Transaction, quiet_seconds: float, count_max: int) -> list[RunView]:
    """Returns runs that nobody drives and that have events which were not delivered.

    Only those that have not changed for ``quiet_seconds``.
    """
    asked = {"quiet_seconds": quiet_seconds, "count": page_count(count_max)}
    return tx.records("list_undelivered_runs", RunView, **asked)


def offer_run(tx: Transaction, number: int, given: RunOptions) -> RunView:
    """Offers a run to the scheduler that looks next; raises RunHeld while one drives it."""
    if (run := get_run(tx, number)).is_aborted:
        raise errors.Aborted(run.name, run.reason)
    if not tx.rows("offer_run", run=number, given=options_text(given)):
        raise _held(tx, get_run(tx, number))
    return get_run(tx, number)


def renew_run(tx: Transaction, lease: RunLease) -> None:
    """Renews the lease of a run; raises RunLost if the epoch is not the current one."""
    renewed = tx.rows(
        "renew_run", run=lease.run, epoch=lease.epoch, lease_seconds=lease.lease_seconds
    )
    if not renewed:
        raise lost(tx, lease)


def lost(tx: Transaction, lease: RunLease) -> errors.RunLost:
    """Returns the error for a scheduler whose epoch is not the current one of a run."""
    run = get_run(tx, lease.run)
    return errors.RunLost(run.name, lease.epoch, run.epoch)


# ---- commands ----


def post_command(tx: Transaction, effects: Effects, command: NewCommand) -> int:
    """Stores a command as a row that stays, and as an event for the run's scheduler.

    Returns its number; raises NotRunning if the run has ended and the command does not reopen
    it.
    """
    asked = {"run": command.run, "who": command.who, "body": command.body}
    given = tx.rows("insert_command", **asked)
    if not given:
        _reopen(tx, command)
        given = tx.rows("keep_command", **asked)
    number: int = given[0][0]
    event = {"run": command.run, "kind": COMMAND, "command": number}
    tell_runs(tx, [event], effects)
    return number


def _reopen(tx: Transaction, command: NewCommand) -> None:
    """Lets any scheduler go on with a run that has ended, if the command is one for that.
    Raises NotRunning if it is not, Aborted if the run was aborted."""
    run = get_run(tx, command.run)
    if run.is_aborted:
        raise errors.Aborted(run.name, run.reason)
    if not (command.reopens and reopen_run(tx, run.number)):
        raise errors.NotRunning(run.name, run.status)


def reopen_run(tx: Transaction, number: int) -> bool:
    """Lets any scheduler go on with a run that nobody drives.

    Returns False if somebody drives it, or it cannot go on.
    """
    nothing_anew = options_text(RunOptions(mode=""))
    return bool(tx.rows("reopen_run", run=number, given=nothing_anew))


# ---- deleting ----


def delete_part(tx: Transaction, number: int) -> bool:
    """Deletes a part of a run: tasks first, at last all else; says whether the run is gone.

    With the first part nobody sees the run or may drive it any more. Its name is free when all
    of it is gone, since the ids of its tasks begin with it. The runs that are its tasks go with
    it, and only so.
    """
    begins = tx.records("get_run", RunView, run=number)
    for run in begins:
        if run.parent is not None and tx.rows("get_run", run=run.parent):
            raise errors.Refused(
                f"{run.name} is a task of {read_job_name(TaskId(run.name)).run}, and is "
                "removed together with it; remove that run"
            )
    marked = tx.rows("mark_run_deleted", run=number)
    if not marked:
        raise _held(tx, get_run(tx, number))
    if begins:
        _mark_nested(tx, number)
    # After the mark, as a submission of a child at this moment holds a lock (lock_parents).
    waiting = tx.rows("list_waiting_children", run=number, count=NAMES_SHOWN_MAX)
    if waiting:
        raise errors.RunNeeded(marked[0][0], [row[0] for row in waiting])
    return _erase_part(tx, number)


def _mark_nested(tx: Transaction, number: int) -> None:
    """Lets nobody drive the runs that are tasks of this one, or of those; raises RunHeld if
    somebody does."""
    for (child,) in tx.rows("list_nested_runs", run=number, count=NESTED_MAX):
        _mark_nested(tx, child)
        if not tx.rows("mark_run_deleted", run=child):
            raise _held(tx, get_run(tx, child))


def _erase_part(tx: Transaction, number: int) -> bool:
    for (child,) in tx.rows("list_nested_runs", run=number, count=1):
        _erase_part(tx, child)
        return False
    if not _erase_tasks(tx, number):
        return False
    for query in (
        *("delete_pool", "delete_memory", "delete_facts", "delete_timers"),
        *("delete_run_events", "delete_empty_sbi", "delete_run"),
    ):
        tx.rows(query, run=number)
    return True


def _erase_tasks(tx: Transaction, number: int) -> bool:
    """Deletes some tasks of a run, oldest first; says whether those were the last."""
    found = tx.rows("find_run_tasks", run=number, count=ROWS_PER_STATEMENT_MAX)
    erase_tasks(tx, [row[0] for row in found])
    return len(found) < ROWS_PER_STATEMENT_MAX


def erase_tasks(tx: Transaction, seqs: Sequence[int]) -> None:
    """Deletes tasks of runs with all that is known of them, whatever they are doing."""
    if seqs:
        tx.rows("remove_ready", seqs=seqs)
        tx.rows("lock_tasks_by_seq", seqs=seqs)
        tasks = tx.records("read_tasks", TaskState, seqs=seqs)
        tx.rows("erase_tasks", seqs=seqs)  # with joint steps, which leases and attempts name
        tx.rows("drop_leases", seqs=[task.seq for task in tasks if task.lease])
        tx.rows("delete_attempts", seqs=seqs)
        tx.rows("delete_history", seqs=seqs)


def delete_definitions(tx: Transaction, retention_seconds: float, count_max: int) -> int:
    """Deletes definitions that no run and no workflow names, and returns how many.

    Those that were saved within the retention stay.
    """
    count = page_count(count_max)
    return len(tx.rows("delete_definitions", retention_seconds=retention_seconds, count=count))


def expired_runs(tx: Transaction, retention_seconds: float, count_max: int) -> list[int]:
    """Returns the numbers of runs that can be deleted, oldest first.

    These completed longer ago than the retention, or an earlier deletion was interrupted.
    """
    found = tx.rows(
        "list_expired_runs", retention_seconds=retention_seconds, count=page_count(count_max)
    )
    return [row[0] for row in found]
