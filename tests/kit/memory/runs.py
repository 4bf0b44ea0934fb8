"""Queries of the memory store about runs and who drives them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.kit.memory import blocks
from tests.kit.memory.leases import NO_SETTINGS
from tests.kit.memory.stream import forget_run, tell_run
from tests.kit.memory.tables import Record, Tables
from tidewheel.core.operator.views import OPEN_STATUSES, REOPENED_STATUSES, RunView
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.sched.task_state import JobPhase
from tidewheel.store.transaction import Row, columns_of

__all__ = [
    "add_withdrawn",
    "claim_run",
    "count_nested_runs",
    "delete_facts",
    "delete_memory",
    "delete_pool",
    "delete_run",
    "delete_run_events",
    "delete_timers",
    "drop_withdrawn",
    "ensure_queue",
    "erase_tasks",
    "find_last_run_number",
    "find_ready_of_run",
    "find_run_by_request",
    "find_run_named",
    "find_run_tasks",
    "find_runs_by_prefix",
    "find_withdrawn",
    "get_run",
    "get_submissions",
    "insert_run",
    "list_claimable_runs",
    "list_expired_runs",
    "list_nested_runs",
    "list_runs",
    "list_submissions",
    "lock_nested_runs",
    "lock_runs",
    "list_undelivered_runs",
    "mark_run_deleted",
    "narrow_run",
    "offer_run",
    "renew_run",
    "reopen_run",
    "verify_active",
    "verify_let_go",
    "verify_pool",
    "verify_submits",
]

_NOBODY: Record = dict.fromkeys(("host", "boot_id", "pid", "process_started", "deadline_at"))
_DIGITS_MAX = 9


# ---- finding runs ----


def _row(run: Record) -> Row:
    return tuple(run[name] for name in columns_of(RunView))


def _present(t: Tables) -> list[Record]:
    """Newest first, without those that are being deleted."""
    return [run for _, run in sorted(t.run.items(), reverse=True) if run["status"] != "deleted"]


def get_run(t: Tables, run: int) -> list[Row]:
    return [_row(one) for one in _present(t) if one["number"] == run]


def find_run_named(t: Tables, name: str) -> list[Row]:
    return [_row(run) for run in t.run.values() if run["name"] == name]


def find_run_by_request(t: Tables, request: str) -> list[Row]:
    return [(run["number"],) for run in _present(t) if run["request"] == request]


def find_runs_by_prefix(t: Tables, *, prefix: str, count: int, nested: bool) -> list[Row]:
    found = [
        run
        for run in _present(t)
        if run["name"].startswith(prefix) and (nested or run["parent"] is None)
    ]
    return [(run["number"], run["name"]) for run in found[:count]]


def find_last_run_number(t: Tables, prefix: str) -> list[Row]:
    ends = [
        run["name"].removeprefix(prefix)
        for run in t.run.values()
        if run["name"].startswith(prefix)
    ]
    numbers = [
        int(end)
        for end in ends
        if end.isascii() and end.isdecimal() and len(end) <= _DIGITS_MAX
    ]
    return [(max(numbers, default=0),)]


def list_runs(
    t: Tables,
    *,
    workflow: str | None,
    count: int,
    before: int | None,
    parent: int | None,
    nested: bool,
) -> list[Row]:
    found = [
        run
        for run in _present(t)
        if workflow in (None, run["workflow"])
        and (before is None or run["number"] < before)
        and (nested or run["parent"] == parent)
    ]
    return [_row(run) for run in found[:count]]


def insert_run(t: Tables, **row: Any) -> list[Row]:
    # What the SQL schemas promise.
    assert not find_run_named(t, row["name"]), row
    assert row["definition"] in t.definition, row
    number, now = t.next_number("run"), t.clock()
    t.run[number] = (
        row
        | _NOBODY
        | {"number": number, "status": "created", "reason": "", "epoch": 0, "batch": 0}
        | {"created_at": now, "updated_at": now, "ended_at": None}
    )
    tell_run(t, number)
    return [(number,)]


def ensure_queue(t: Tables, *, queue: str, lease_seconds: float) -> list[Row]:
    there = t.queue.get(queue)
    longest = max(lease_seconds, there["lease_seconds"]) if there else lease_seconds
    t.queue[queue] = (there or NO_SETTINGS) | {"lease_seconds": longest}
    return []


# ---- driving runs ----


def _is_free(t: Tables, run: Record) -> bool:
    return run["deadline_at"] is None or run["deadline_at"] <= t.clock()


def claim_run(
    t: Tables,
    *,
    run: int,
    lease_seconds: float,
    dead_epoch: int | None,
    seen_epoch: int | None,
    **owner: Any,
) -> list[Row]:
    row = t.run.get(run)
    if row is None or row["status"] == "deleted" or seen_epoch not in (None, row["epoch"]):
        return []
    if not _is_free(t, row) and row["epoch"] != dead_epoch:
        return []
    if blocks.waits_for_others(t, row):
        return []
    now, epoch = t.clock(), row["epoch"] + 1
    held = {"epoch": epoch, "deadline_at": now + lease_seconds, "updated_at": now}
    t.update(t.run, run, **owner, **held)
    return [(epoch, row["batch"])]


def _has_died(run: Record) -> bool:
    """Whoever drove it, perhaps before its first batch."""
    return run["deadline_at"] is not None and run["status"] in ("created", *OPEN_STATUSES)


def offer_run(t: Tables, *, run: int, given: str) -> list[Row]:
    row = t.run.get(run)
    if row is None or row["status"] == "deleted" or not _is_free(t, row):
        return []
    t.update(t.run, run, given=given, updated_at=t.clock())
    return [(run,)]


def reopen_run(t: Tables, *, run: int, given: str) -> list[Row]:
    row = t.run[run]
    if row["status"] not in REOPENED_STATUSES or not _is_free(t, row):
        return []
    t.update(t.run, run, given=row["given"] or given)
    return [(run,)]


def narrow_run(t: Tables, *, run: int, sees: str) -> list[Row]:
    t.update(t.run, run, sees=sees)
    return []


def list_nested_runs(t: Tables, *, run: int, count: int) -> list[Row]:
    found = [number for number, one in sorted(t.run.items()) if one["parent"] == run]
    return [(number,) for number in found[:count]]


def count_nested_runs(t: Tables, under: str) -> list[Row]:
    found = [
        one
        for one in t.run.values()
        if one["parent"] is not None
        and one["name"].startswith(under)
        and (one["deadline_at"] is not None or one["given"] is not None)
    ]
    return [(len(found),)]


def lock_nested_runs(t: Tables, *, run: int, names: Sequence[str]) -> list[Row]:
    return [
        (number, one["name"])
        for number, one in sorted(t.run.items())
        if one["parent"] == run
        and one["name"] in names
        and one["status"] in ("created", *OPEN_STATUSES)
        and (one["deadline_at"] is not None or one["given"] is not None)
    ]


def list_claimable_runs(t: Tables, count: int, under: str | None) -> list[Row]:
    def place(run: Record) -> tuple[object, ...]:
        return run["parent"] is None, -run["priority"], run["number"]

    found = [
        run
        for run in sorted(t.run.values(), key=place)
        if _is_free(t, run)
        and run["name"].startswith(under or "")
        and run["status"] != "deleted"
        and (run["given"] is not None or _has_died(run))
        and not blocks.waits_for_others(t, run)
    ]
    return [_row(run) for run in found[:count]]


def list_undelivered_runs(t: Tables, *, quiet_seconds: float, count: int) -> list[Row]:
    untold = {key[0] for key in t.outbox}
    found = [
        run
        for number, run in sorted(t.run.items())
        if number in untold
        and run["status"] in ("completed", "stopped", "stalled", "error")
        and run["deadline_at"] is None
        and run["given"] is None
        and run["updated_at"] <= t.clock() - quiet_seconds
    ]
    return [_row(run) for run in found[:count]]


def renew_run(t: Tables, *, run: int, epoch: int, lease_seconds: float) -> list[Row]:
    row = t.run.get(run)
    if row is None or row["epoch"] != epoch or row["host"] is None:
        return []
    t.update(t.run, run, deadline_at=t.clock() + lease_seconds)
    return [(run,)]


# ---- submissions ----


def list_submissions(  # noqa: PLR0913 - the parameters of the statement
    t: Tables,
    *,
    run: int,
    point: str | None,
    name: str | None,
    skip: int,
    count: int,
    before: int | None,
) -> list[Row]:
    found = []
    for seq in sorted(t.task, reverse=True):
        task = t.task[seq]
        rest = task["id"][skip:]
        if (
            task["run"] == run
            and task["tag"] is None
            and (point is None or rest.startswith(f"{point}/"))
            and (name is None or f"/{name}/" in rest)
            and (before is None or seq < before)
        ):
            found.append(_submission(t, task))
    return found[:count]


def get_submissions(t: Tables, *, run: int, ids: Sequence[str]) -> list[Row]:
    seqs = sorted((t.id[id_] for id_ in ids if id_ in t.id), reverse=True)
    return [_submission(t, t.task[seq]) for seq in seqs if t.task[seq]["run"] == run]


def _submission(t: Tables, task: Record) -> Row:
    lease = t.lease.get(task["seq"], {})
    attempt = t.attempt.get((task["seq"], task["attempt"]), {})
    ended_at = attempt.get("ended_at", task["updated_at"])
    return (
        *(task[name] for name in ("id", "seq", "status", "attempt", "created_at")),
        lease.get("started_at") or attempt.get("started_at"),
        ended_at if task["status"] in FINAL else None,
        attempt.get("exit_status"),
        attempt.get("error_description"),
        task["owner"],
    )


# ---- deleting runs ----


def mark_run_deleted(t: Tables, run: int) -> list[Row]:
    row = t.run.get(run)
    if row is None or not _is_free(t, row):
        return []
    gone = {"status": "deleted", "epoch": row["epoch"] + 1, "updated_at": t.clock()}
    t.update(t.run, run, **_NOBODY, **gone, given=None, request=None)
    if row["status"] != "deleted":
        tell_run(t, run)
    return [(row["name"],)]


def list_expired_runs(t: Tables, *, retention_seconds: float, count: int) -> list[Row]:
    before = t.clock() - retention_seconds
    found = [
        number
        for number, run in sorted(t.run.items())
        if run["status"] == "deleted"
        or (
            run["status"] == "completed"
            and run["ended_at"] is not None
            and run["ended_at"] < before
            and run["deadline_at"] is None
            and run["parent"] is None
            and not blocks.list_waiting_children(t, run=number, count=1)
        )
    ]
    return [(number,) for number in found[:count]]


def find_run_tasks(t: Tables, *, run: int, count: int) -> list[Row]:
    seqs = sorted(seq for seq, task in t.task.items() if task["run"] == run)
    return [(seq,) for seq in seqs[:count]]


def erase_tasks(t: Tables, seqs: Sequence[int]) -> list[Row]:
    gone = set(seqs)
    for seq in seqs:
        del t.id[t.task[seq]["id"]]
        del t.task[seq]
    for seq in [seq for seq in t.values if seq in gone]:
        del t.values[seq]
    for key in [key for key in t.message if key[0] in gone]:
        del t.message[key]
    for key in [key for key, row in t.usage.items() if row[0] in gone]:
        del t.usage[key]
    return []


def _delete_keys(t: Tables, table: str, run: int) -> list[Row]:
    rows = getattr(t, table)
    for key in [key for key in rows if key[0] == run]:
        del rows[key]
    return []


def delete_pool(t: Tables, run: int) -> list[Row]:
    return _delete_keys(t, "pool", run)


def delete_memory(t: Tables, run: int) -> list[Row]:
    return _delete_keys(t, "memory", run)


def delete_facts(t: Tables, run: int) -> list[Row]:
    return _delete_keys(t, "fact", run)


def delete_timers(t: Tables, run: int) -> list[Row]:
    return _delete_keys(t, "timer", run)


def delete_run_events(t: Tables, run: int) -> list[Row]:
    for seq in [seq for seq, event in t.event.items() if event["run"] == run]:
        del t.event[seq]
    return []


def delete_run(t: Tables, run: int) -> list[Row]:
    for table in ("broadcast", "xtrigger", "outbox", "run_change", "run_values", "run_version"):
        _delete_keys(t, table, run)
    for number in [n for n, command in t.command.items() if command["run"] == run]:
        del t.command[number]
    forget_run(t, run)
    blocks.forget_run(t, run)
    del t.run[run]
    return []


# ---- what can be claimed ----


def add_withdrawn(_: Tables, seqs: Sequence[int]) -> list[Row]:
    """Whether a ready task can be claimed is seen from its run here."""
    del seqs
    return []


def drop_withdrawn(_: Tables, run: int) -> list[Row]:
    del run
    return []


def find_ready_of_run(t: Tables, run: int) -> list[Row]:
    return [
        (seq,)
        for seq, task in sorted(t.task.items())
        if task["run"] == run and task["status"] == Status.READY and task["tag"] is None
    ]


def find_withdrawn(t: Tables, run: int) -> list[Row]:
    """The batch has changed the status of the run: there is nothing else to be undone."""
    ready = [(seq, t.task[seq]) for (seq,) in find_ready_of_run(t, run)]
    return [(seq, task["queue"], task["id"]) for seq, task in ready]


def lock_runs(t: Tables, runs: Sequence[int]) -> list[Row]:
    return [(number, t.run[number]["status"]) for number in runs if number in t.run]


# ---- verifying ----


def verify_pool(t: Tables) -> list[Row]:
    broken = []
    for (run, point, name), row in sorted(t.pool.items()):
        given = t.memory.get((run, point, name), {}).get("submits", 0)
        seen = None
        if run not in t.run:
            seen = "in the pool of a run that is not there"
        elif row["submit"] < given:
            submit = row["submit"]
            seen = f"in the pool with submit number {submit}, but {given} was given before"
        if seen:
            broken.append((f"{run}/{point}/{name}", seen))
    return broken


def verify_submits(t: Tables) -> list[Row]:
    broken = []
    last: dict[str, int] = {}
    for _, task in sorted(t.task.items()):
        if task["run"] is None:
            continue
        run = t.run.get(task["run"])
        stem = task["id"].rstrip("0123456789")
        submit = int(task["id"].removeprefix(stem) or 0)
        if run is None:
            broken.append((task["id"], "a submission of a run that is not there"))
        elif not task["id"].startswith(f"{run['name']}/") or not stem.endswith("/"):
            broken.append((task["id"], f"the id is not one of run {run['name']}"))
        elif submit <= last.get(stem, 0):
            broken.append((task["id"], f"submit number {submit} comes after {last[stem]}"))
        last[stem] = submit
    return broken


def verify_active(t: Tables) -> list[Row]:
    live: Counter[tuple[int, str]] = Counter()
    told = {event["task_id"] for event in t.event.values() if event["kind"] == "over"}
    for nested in t.run.values():
        if nested["parent"] is not None and (nested["deadline_at"] or nested["given"]):
            *_, name, submit = nested["name"].split("/")
            live[nested["parent"], f"/{name}/{int(submit)}"] += 1
    for event in t.event.values():
        if event["kind"] == "over" and event["task_id"] not in t.id:
            live[event["run"], "/" + "/".join(event["task_id"].split("/")[-2:])] += 1
    for task in t.task.values():
        if task["run"] is not None and (task["status"] not in FINAL or task["id"] in told):
            live[task["run"], "/" + "/".join(task["id"].split("/")[-2:])] += 1
    pooled: Counter[tuple[int, str]] = Counter()
    first: dict[tuple[int, str], int] = {}
    for (number, point, name), row in sorted(t.pool.items()):
        run = t.run.get(number)
        if run is None or json.loads(run["options"])["mode"] != "live":
            continue
        if JobPhase.WAITING < row["stage"] < JobPhase.INCOMPLETE and run["status"] != "deleted":
            where = (number, f"/{name}/{row['submit']}")
            pooled[where] += 1
            first.setdefault(where, point)
    return [
        (
            f"{t.run[run]['name']}/{first[run, ending]}{ending}",
            f"{count} active in the pool, {live[run, ending]} in the queue or running",
        )
        for (run, ending), count in sorted(pooled.items())
        if live[run, ending] < count
    ]


def verify_let_go(_: Tables) -> list[Row]:
    """There is no second table that could offer what a run let go has."""
    return []
