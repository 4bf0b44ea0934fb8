"""Queries of the memory store about what schedulers write and read, event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.kit.memory.stream import tell_run
from tests.kit.memory.tables import Record, Table, Tables
from tidewheel.core.sched.pool import RunStatus
from tidewheel.store.transaction import Row

__all__ = [
    "add_events",
    "add_first_version",
    "add_run_change",
    "add_run_version",
    "advance_run",
    "answer_commands",
    "count_pool",
    "delete_events",
    "drop_broadcasts",
    "drop_facts",
    "drop_outbox",
    "drop_pool",
    "drop_run_versions",
    "drop_timers",
    "drop_xtriggers",
    "find_memory",
    "find_run_values",
    "find_unheard",
    "forget_memory",
    "get_command",
    "insert_command",
    "keep_command",
    "list_broadcasts",
    "list_commands",
    "list_events",
    "list_facts",
    "list_forgotten",
    "list_last_values",
    "list_memory",
    "list_outbox",
    "list_pool",
    "list_run_attempts",
    "list_run_changes",
    "list_run_versions",
    "list_run_values",
    "list_timers",
    "list_unheard_commands",
    "list_xtriggers",
    "measure_store",
    "put_broadcasts",
    "put_facts",
    "put_memory",
    "put_outbox",
    "put_pool",
    "put_run_values",
    "put_timers",
    "put_xtriggers",
    "redefine_run",
]

_EVENT = (
    *("task_id", "attempt", "text", "output", "status", "error_code", "error"),
    *("exit_status", "told"),
)
_STATUSES = {*RunStatus, "created", "error"}
# What is remembered of a task that was lost, removed by hand, or has expired.
_SIGNS_OF_UNDONE = ('"kind":"pruned","death":1,', '"kind":"removed",', '"ended":"expired"')
_COMMAND = ("number", "run", "at", "who", "body", "answered_at", "answer", "refused")


def advance_run(
    t: Tables,
    *,
    run: int,
    epoch: int,
    batch: int,
    ends: bool,
    lease_seconds: float,
    **said: Any,
) -> list[Row]:
    row = t.run.get(run)
    if row is None or row["host"] is None:
        return []
    if (row["epoch"], row["batch"]) != (epoch, batch - 1):
        return []
    now = t.clock()
    # What the SQL schemas promise.
    assert said["status"] in _STATUSES, said
    held: Record = {"deadline_at": now + lease_seconds, "ended_at": None}
    if ends:
        held = dict.fromkeys(("host", "boot_id", "pid", "process_started", "deadline_at"))
        held["ended_at"] = now
    if row["status"] == said["status"] == "completed" and row["ended_at"] is not None:
        held["ended_at"] = row["ended_at"]
    t.update(
        t.run,
        run,
        batch=batch,
        status=said["status"],
        reason=said["reason"],
        options=said["options"] or row["options"],
        given=None,
        updated_at=now,
        **held,
    )
    tell_run(t, run)
    return [(run,)]


def redefine_run(t: Tables, *, run: int, definition: str) -> list[Row]:
    assert definition in t.definition, definition
    t.update(t.run, run, definition=definition)
    return []


def add_first_version(t: Tables, *, run: int, definition: str) -> list[Row]:
    row = t.run[run]
    if row["definition"] != definition and not _of(t.run_version, run):
        first = {"definition": row["definition"], "at": row["created_at"], "who": ""}
        t.run_version[run, 1] = first
    return []


def add_run_version(t: Tables, *, run: int, definition: str, command: int | None) -> list[Row]:
    if t.run[run]["definition"] != definition:
        version = 1 + max(key[1] for key, _ in _of(t.run_version, run))
        who = "" if command is None else t.command[command]["who"]
        new = {"definition": definition, "at": t.clock(), "who": who}
        t.run_version[run, version] = new
    return []


def drop_run_versions(t: Tables, *, run: int, count: int) -> list[Row]:
    versions = sorted(key[1] for key, _ in _of(t.run_version, run))
    for version in versions[:-count]:
        del t.run_version[run, version]
    return []


def list_run_versions(t: Tables, *, run: int) -> list[Row]:
    rows = sorted(_of(t.run_version, run), reverse=True, key=lambda found: found[0])
    return [(key[1], row["definition"], row["at"], row["who"]) for key, row in rows]


# ---- events and commands ----


def add_events(t: Tables, events: Sequence[Record]) -> list[Row]:
    for event in events:
        seq = t.next_number("event")
        t.event[seq] = dict.fromkeys((*_EVENT, "command")) | event | {"at": t.clock()}
    return []


def delete_events(t: Tables, *, run: int, seqs: Sequence[int]) -> list[Row]:
    for seq in seqs:
        if seq in t.event and t.event[seq]["run"] == run:
            del t.event[seq]
    return []


def list_events(t: Tables, *, run: int, count: int) -> list[Row]:
    found: list[Row] = []
    for seq, event in sorted(t.event.items()):
        if event["run"] == run:
            command = t.command.get(event["command"], {})
            found.append(
                (
                    *(seq, event["at"], event["kind"], *(event[name] for name in _EVENT)),
                    *(event["command"], command.get("who"), command.get("body")),
                    t.clock(),
                )
            )
    if not found and run in t.run:
        return [(*(None,) * (len(_EVENT) + 6), t.clock())]  # the clock alone
    return found[:count]


def find_unheard(t: Tables, *, run: int, ids: Sequence[str]) -> list[Row]:
    told = ((seq, one["run"], one["task_id"]) for seq, one in t.event.items())
    return [(seq,) for seq, of, task_id in told if of == run and task_id in ids][:1]


def list_unheard_commands(t: Tables, run: int) -> list[Row]:
    heard = [event for _, event in sorted(t.event.items()) if event["run"] == run]
    return [(t.command[one["command"]]["body"],) for one in heard if one["command"]]


def insert_command(t: Tables, *, run: int, who: str, body: str) -> list[Row]:
    row = t.run.get(run)
    if row is None or row["deadline_at"] is None or row["deadline_at"] <= t.clock():
        return []
    return keep_command(t, run=run, who=who, body=body)


def keep_command(t: Tables, *, run: int, who: str, body: str) -> list[Row]:
    number = t.next_number("command")
    unanswered = {"answered_at": None, "answer": None, "refused": None}
    command = {"number": number, "run": run, "at": t.clock(), "who": who, "body": body}
    t.command[number] = command | unanswered
    return [(number,)]


def answer_commands(t: Tables, *, run: int, answers: Sequence[Record]) -> list[Row]:
    for given in answers:
        command = t.command.get(given["number"])
        if command and command["run"] == run and command["answered_at"] is None:
            said = {"answer": given["answer"], "refused": given["refused"]}
            t.update(t.command, given["number"], answered_at=t.clock(), **said)
    return []


def get_command(t: Tables, number: int) -> list[Row]:
    command = t.command.get(number)
    return [] if command is None else [tuple(command[name] for name in _COMMAND)]


def list_commands(t: Tables, *, run: int, count: int) -> list[Row]:
    found = [row for _, row in sorted(t.command.items(), reverse=True) if row["run"] == run]
    return [tuple(row[name] for name in _COMMAND) for row in found[:count]]


# ---- what a scheduler knows ----


def _put(table: Table, run: int, key: Sequence[str], rows: Sequence[Record]) -> list[Row]:
    """Rows under (run, key…)."""
    for row in rows:
        table[(run, *(row[name] for name in key))] = row
    return []


def _drop(table: Table, run: int, key: Sequence[str], rows: Sequence[Record]) -> list[Row]:
    for row in rows:
        where = (run, *(row[name] for name in key))
        if where in table:
            del table[where]
    return []


def _of(table: Table, run: int) -> list[tuple[Any, Record]]:
    found = [(key, row) for key, row in table.items() if key[0] == run]
    return sorted(found, key=lambda one: one[0])


_TASK, _FACT, _SIGNATURE = ("point", "name"), ("kind", "key"), ("signature",)
_TIMER, _BROADCAST = ("point", "name", "timer"), ("point", "namespace", "setting")
_EVENT_PLACE = ("batch", "place")


def put_pool(t: Tables, *, run: int, tasks: Sequence[Record]) -> list[Row]:
    return _put(t.pool, run, _TASK, tasks)


def drop_pool(t: Tables, *, run: int, tasks: Sequence[Record]) -> list[Row]:
    return _drop(t.pool, run, _TASK, tasks)


def put_memory(t: Tables, *, run: int, memories: Sequence[Record]) -> list[Row]:
    for row in memories:
        key = (run, row["point"], row["name"])
        submits = max(row["submits"], t.memory.get(key, row)["submits"])
        t.memory[key] = row | {"submits": submits}
    return []


def forget_memory(t: Tables, *, run: int, tasks: Sequence[Record]) -> list[Row]:
    for key in [(run, one["point"], one["name"]) for one in tasks]:
        if key in t.memory:
            t.memory[key] = t.memory[key] | {"forgotten": True}
    return []


def put_facts(t: Tables, *, run: int, facts: Sequence[Record]) -> list[Row]:
    return _put(t.fact, run, _FACT, facts)


def drop_facts(t: Tables, *, run: int, facts: Sequence[Record]) -> list[Row]:
    return _drop(t.fact, run, _FACT, facts)


def put_timers(t: Tables, *, run: int, timers: Sequence[Record]) -> list[Row]:
    return _put(t.timer, run, _TIMER, timers)


def drop_timers(t: Tables, *, run: int, timers: Sequence[Record]) -> list[Row]:
    return _drop(t.timer, run, _TIMER, timers)


def put_xtriggers(t: Tables, *, run: int, xtriggers: Sequence[Record]) -> list[Row]:
    return _put(t.xtrigger, run, _SIGNATURE, xtriggers)


def drop_xtriggers(t: Tables, *, run: int, xtriggers: Sequence[Record]) -> list[Row]:
    return _drop(t.xtrigger, run, _SIGNATURE, xtriggers)


def put_broadcasts(t: Tables, *, run: int, broadcasts: Sequence[Record]) -> list[Row]:
    return _put(t.broadcast, run, _BROADCAST, broadcasts)


def drop_broadcasts(t: Tables, *, run: int, broadcasts: Sequence[Record]) -> list[Row]:
    return _drop(t.broadcast, run, _BROADCAST, broadcasts)


_VALUES = ("point", "name", "submit")


def put_run_values(t: Tables, *, run: int, values: Sequence[Record]) -> list[Row]:
    return _put(t.run_values, run, _VALUES, values)


def list_last_values(t: Tables, *, run: int, count: int) -> list[Row]:
    last: dict[str, tuple[Any, ...]] = {}
    for key, row in _of(t.run_values, run):  # by point, name and submission
        last[key[2]] = (key[1], key[2], len(row["body"]))
    return [last[name] for name in sorted(last)][:count]


def list_run_values(t: Tables, *, run: int, tasks: Sequence[Record]) -> list[Row]:
    wanted = {(one["point"], one["name"]) for one in tasks}
    found = ((*key, row["flows"], row["body"]) for key, row in _of(t.run_values, run))
    return [row[1:] for row in found if row[1:3] in wanted]


def find_run_values(t: Tables, run: int) -> list[Row]:
    return [(key[-1],) for key, _ in _of(t.run_values, run)][:1]


def put_outbox(t: Tables, *, run: int, events: Sequence[Record]) -> list[Row]:
    return _put(t.outbox, run, _EVENT_PLACE, events)


def drop_outbox(t: Tables, *, run: int, events: Sequence[Record]) -> list[Row]:
    return _drop(t.outbox, run, _EVENT_PLACE, events)


def add_run_change(t: Tables, *, run: int, batch: int, changes: str) -> list[Row]:
    t.run_change[(run, batch)] = (t.clock(), changes)
    return []


def count_pool(t: Tables) -> list[Row]:
    return list(Counter(key[0] for key in t.pool).items())


def measure_store(t: Tables) -> list[Row]:
    """There is no database to measure."""
    del t
    return []


def list_pool(t: Tables, run: int) -> list[Row]:
    return [(row["body"],) for _, row in _of(t.pool, run)]


def list_memory(t: Tables, run: int) -> list[Row]:
    return [(row["body"],) for _, row in _of(t.memory, run) if not row["forgotten"]]


def list_forgotten(t: Tables, *, run: int, count: int, only_undone: bool) -> list[Row]:
    found = [
        (-key[1], key[2], row["body"])
        for key, row in _of(t.memory, run)
        if row["forgotten"] and (not only_undone or _is_undone(row["body"]))
    ]
    return [(body,) for _, _, body in sorted(found)[:count]]


def _is_undone(body: str) -> bool:
    is_over = '"verdicts":' in body or '"spawned":[]' in body or '"spawned":[' not in body
    return not is_over or any(sign in body for sign in _SIGNS_OF_UNDONE)


def find_memory(t: Tables, *, run: int, tasks: Sequence[Record]) -> list[Row]:
    keys = [(run, one["point"], one["name"]) for one in tasks]
    found = [(key, t.memory[key]) for key in keys if key in t.memory]
    return [(point, name, row["submits"], row["body"]) for (_, point, name), row in found]


def list_facts(t: Tables, run: int) -> list[Row]:
    found = [(key[1], row["body"]) for key, row in _of(t.fact, run)]
    return sorted(found, key=lambda row: row[0], reverse=True)


def list_timers(t: Tables, run: int) -> list[Row]:
    found = sorted((row["at"], *key[1:]) for key, row in _of(t.timer, run))
    return [(point, name, timer, at) for at, point, name, timer in found]


def list_xtriggers(t: Tables, run: int) -> list[Row]:
    return [(key[1], row["result"]) for key, row in _of(t.xtrigger, run)]


def list_outbox(t: Tables, run: int) -> list[Row]:
    return [(*key[1:], row["body"]) for key, row in _of(t.outbox, run)]


def list_broadcasts(t: Tables, run: int) -> list[Row]:
    rows = sorted(_of(t.broadcast, run), key=lambda found: found[1]["place"])
    return [(*key[1:], row["value"]) for key, row in rows]


def list_run_changes(t: Tables, *, run: int, after: int, count: int) -> list[Row]:
    found = [(batch, *row) for (of, batch), row in sorted(t.run_change.items()) if of == run]
    return [row for row in found if row[0] > after][:count]


# ---- attempts ----

_TRIED = ("worker", "claimed_at", "started_at", "ended_at", "ended_by", "exit_status")


def list_run_attempts(t: Tables, *, run: int, count: int) -> list[Row]:
    own = (seq for seq, task in t.task.items() if task["run"] == run and task["tag"] is None)
    latest = sorted(own, reverse=True)[:count]
    found: list[Row] = []
    for seq in latest:
        task, lease = t.task[seq], t.lease.get(seq)
        over = [(number, row) for (of, number), row in t.attempt.items() if of == seq]
        tried = [(number, tuple(row[name] for name in _TRIED)) for number, row in over]
        if lease is not None:
            live = (lease["owner"], lease["claimed_at"], lease["started_at"])
            tried.append((lease["attempt"], live + (None,) * 3))
        if task["status"] in ("waiting", "ready"):
            tried.append((task["attempt"] + 1, (None,) * 6))
        for number, facts in sorted(tried, reverse=True):
            asked = (task["cpu"], task["memory_bytes"], task["gpu"])
            created = (task["id"], task["created_at"], number)
            found.append((*created, *facts, *asked, *_used(t, seq, number)))
    return found


def _used(t: Tables, seq: int, attempt: int) -> Row:
    """Peak memory, mean share of a core, mean share of GPUs, peak of their memory."""
    samples = [one[3:] for one in t.usage.values() if one[:2] == (seq, attempt)]
    columns = list(zip(*samples, strict=True)) or [()] * 4
    memory, cpu, gpu, gpu_memory = (
        [value for value in column if value is not None] for column in columns
    )
    return (
        max(memory, default=None),
        sum(cpu) / len(cpu) if cpu else None,
        sum(gpu) / len(gpu) if gpu else None,
        max(gpu_memory, default=None),
    )
