"""Queries of the memory store about blocks, what runs wait for, and objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.kit.memory.stream import tell_run
from tests.kit.memory.tables import Record, Tables
from tidewheel.core.operator.blocks import (
    NO_WORK,
    BlockStatus,
    BlockWork,
    NeedState,
    NeedView,
    block_status,
    plain_status,
    sbi_status,
)
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.store.transaction import Row, columns_of, reader

__all__ = [
    "count_sbi_blocks",
    "delete_empty_sbi",
    "delete_object",
    "find_objects",
    "find_open_run_tasks",
    "get_sbi",
    "insert_block",
    "insert_needs",
    "insert_sbi",
    "list_blocks",
    "list_driven_runs",
    "list_leased_runs",
    "list_needs",
    "list_objects",
    "list_run_statuses",
    "list_run_work",
    "list_sbis",
    "list_waiting_children",
    "lock_parents",
    "put_objects",
    "stop_run",
]

_SBI = ("id", "body", "fingerprint", "requested_at", "requested_by")
_OBJECT = ("name", "facts", "posted_at", "posted_by")
_OVER = ("completed", "deleted")


# ---- what runs wait for ----


def insert_needs(t: Tables, needs: Sequence[Mapping[str, Any]]) -> list[Row]:
    for need in needs:
        assert need["run"] in t.run and need["parent"] in t.run, need
        t.run_need[need["run"], need["parent"], need["condition"]] = need
    return []


def lock_parents(t: Tables, blocks: Sequence[str]) -> list[Row]:
    found = [t.processing_block[one] for one in blocks if one in t.processing_block]
    there = [
        (one["id"], one["run"]) for one in found if t.run[one["run"]]["status"] != "deleted"
    ]
    return sorted(there, key=lambda row: row[1])


def list_needs(t: Tables, runs: Sequence[int]) -> list[Row]:
    wanted = set(runs)
    return [_need_row(t, key) for key in sorted(t.run_need) if key[0] in wanted]


def _need_row(t: Tables, key: tuple[int, int, str]) -> Row:
    run, parent, condition = key
    there = t.run[parent]
    going = there["given"] is not None or _is_driven(t, there)
    seen = (there["status"], there["batch"] > 0, going, there["reason"])
    return (run, there["name"], condition, *seen)


def _is_driven(t: Tables, run: Record) -> bool:
    return run["deadline_at"] is not None and run["deadline_at"] > t.clock()


def waits_for_others(t: Tables, run: Record) -> bool:
    """Whether it has not begun and something that it needs has not happened."""
    if run["batch"] > 0:
        return False
    needs = (_need_row(t, key) for key in t.run_need if key[0] == run["number"])
    read = reader(columns_of(NeedView), NeedView)
    return any(read(row).state is not NeedState.MET for row in needs)


def list_waiting_children(t: Tables, *, run: int, count: int) -> list[Row]:
    children = sorted({child for child, parent, _ in t.run_need if parent == run})
    found = [t.run[child] for child in children]
    waiting = [(one["name"],) for one in found if one["batch"] == 0]
    return waiting[:count]


def forget_run(t: Tables, run: int) -> None:
    """What goes with a run, as foreign keys have it."""
    for key in [key for key in t.run_need if run in key[:2]]:
        del t.run_need[key]
    for key in [key for key, block in t.processing_block.items() if block["run"] == run]:
        del t.processing_block[key]


def stop_run(t: Tables, *, run: int, reason: str, aborted: str) -> list[Row]:
    row = t.run.get(run)
    if row is None or row["status"] in _OVER or _is_driven(t, row):
        return []
    if row["status"] == "stopped" and row["reason"].startswith(aborted):
        return []
    was = row["status"]
    nobody = dict.fromkeys(
        ("host", "boot_id", "pid", "process_started", "deadline_at", "given")
    )
    now = t.clock()
    ended = {"status": "stopped", "reason": reason, "updated_at": now, "ended_at": now}
    t.update(t.run, run, **nobody, **ended, epoch=row["epoch"] + 1)
    if was != "stopped":
        tell_run(t, run)
    return [(run,)]


def find_open_run_tasks(t: Tables, *, run: int, count: int) -> list[Row]:
    ended = {*FINAL, Status.CANCELLING}
    found = [
        (task["id"],)
        for _, task in sorted(t.task.items())
        if task["run"] == run and task["status"] not in ended
    ]
    return found[:count]


# ---- blocks ----


def insert_sbi(t: Tables, *, who: str, **row: Any) -> list[Row]:
    if row["id"] in t.sbi:
        return []
    t.sbi[row["id"]] = row | {"requested_at": t.clock(), "requested_by": who}
    return [(row["id"],)]


def insert_block(t: Tables, **row: Any) -> list[Row]:
    assert row["id"] not in t.processing_block and row["run"] in t.run, row
    t.processing_block[row["id"]] = row
    return []


def get_sbi(t: Tables, id: str) -> list[Row]:
    row = t.sbi.get(id)
    return [] if row is None else [tuple(row[name] for name in _SBI)]


def list_sbis(
    t: Tables, *, count: int, before: str | None, status: str | None, statuses: Sequence[str]
) -> list[Row]:
    rows = [
        tuple(row[name] for name in _SBI)
        for row in t.sbi.values()
        if status is None or _is_sbi_with(t, row["id"], status, statuses)
    ]
    rows.sort(key=lambda row: (row[3], row[0]), reverse=True)
    ids = [row[0] for row in rows]
    start = 0 if before is None else ids.index(before) + 1 if before in ids else len(rows)
    return rows[start : start + count]


def _is_sbi_with(t: Tables, sbi: str, status: str, statuses: Sequence[str]) -> bool:
    runs = [t.run[one["run"]] for one in t.processing_block.values() if one["sbi"] == sbi]
    kept = [run for run in runs if run["status"] != "deleted"]
    counts = Counter(plain_status(run["status"], run["reason"]) for run in kept)
    return any(run["status"] in statuses for run in runs) and sbi_status(counts) == status


def list_blocks(  # noqa: PLR0913 - the parameters of the statement
    t: Tables,
    *,
    sbi: str | None,
    id: str | None,
    status: str | None,
    statuses: Sequence[str],
    workflow: str | None,
    before: int | None,
    count: int,
) -> list[Row]:
    found = [
        (block, t.run[block["run"]])
        for block in t.processing_block.values()
        if sbi in (None, block["sbi"]) and id in (None, block["id"])
    ]
    found.sort(key=lambda pair: pair[1]["number"], reverse=True)
    there = [
        pair
        for pair in found
        if pair[1]["status"] != "deleted"
        and (status is None or pair[1]["status"] in statuses)
        and status in (None, _status_of(t, pair[1]))
        and workflow in (None, pair[1]["workflow"])
        and (before is None or pair[1]["number"] < before)
    ]
    return [_block_row(block, run) for block, run in there[:count]]


def _status_of(t: Tables, run: Record) -> BlockStatus:
    number = run["number"]
    leased = (number,) in list_leased_runs(t, [number])
    work = [row[1:] for row in list_run_work(t, [number])]
    seen = [BlockWork(leased or bool(one[0]), *map(bool, one[1:])) for one in work]
    waits = waits_for_others(t, run)
    return block_status(
        run["status"], run["reason"], waits=waits, work=next(iter(seen), NO_WORK)
    )


def count_sbi_blocks(t: Tables, sbis: Sequence[str]) -> list[Row]:
    found: Counter[tuple[str, str, str]] = Counter()
    for block in t.processing_block.values():
        run = t.run[block["run"]]
        if block["sbi"] in sbis and run["status"] != "deleted":
            begins = run["reason"][:11] if run["status"] == "stopped" else ""
            found[block["sbi"], run["status"], begins] += 1
    return [(*key, count) for key, count in found.items()]


def list_leased_runs(t: Tables, runs: Sequence[int]) -> list[Row]:
    leased = {t.task[seq]["run"] for seq in t.lease}
    return [(run,) for run in runs if run in leased]


def list_run_work(t: Tables, runs: Sequence[int]) -> list[Row]:
    found: dict[int, list[bool]] = {}
    timed = {key[:3] for key in t.timer}
    for (run, point, name), row in t.pool.items():
        if run in runs:
            stage = row["stage"]
            seen = found.setdefault(run, [False] * 4)
            seen[0] |= stage in (2, 3)
            seen[1] |= stage == 1
            seen[2] |= (run, point, name) in timed
            seen[3] |= stage == 0 and name.startswith("object@")
    return [(run, *map(int, seen)) for run, seen in found.items()]


def list_run_statuses(t: Tables, run: int) -> list[Row]:
    told = [one for _, one in sorted(t.run_history.items()) if one["run"] == run]
    kept: list[Row] = []
    for one in told:
        if not kept or kept[-1][1] != one["status"]:
            kept.append((one["at"], one["status"], one["reason"]))
    return kept


def _block_row(block: Record, run: Record) -> Row:
    own = tuple(block[name] for name in ("id", "sbi", "position", "body"))
    return (*own, *(run[name] for name in columns_of(RunView)), run["priority"])


def delete_empty_sbi(t: Tables, run: int) -> list[Row]:
    for block in t.processing_block.values():
        if block["run"] == run:
            alike = [one for one in t.processing_block.values() if one["sbi"] == block["sbi"]]
            if len(alike) == 1:
                del t.sbi[block["sbi"]]
            break
    return []


# ---- objects ----


def put_objects(t: Tables, *, objects: Sequence[Mapping[str, Any]], who: str) -> list[Row]:
    for one in objects:
        t.buffer_object[one["name"]] = {**one, "posted_at": t.clock(), "posted_by": who}
    return []


def find_objects(t: Tables, names: Sequence[str]) -> list[Row]:
    return [_object(t, name) for name in sorted(set(names)) if name in t.buffer_object]


def list_objects(t: Tables, *, after: str, count: int) -> list[Row]:
    return [_object(t, name) for name in sorted(t.buffer_object) if name > after][:count]


def delete_object(t: Tables, name: str) -> list[Row]:
    found = find_objects(t, [name])
    if found:
        del t.buffer_object[name]
    return found


def _object(t: Tables, name: str) -> Row:
    return tuple(t.buffer_object[name][one] for one in _OBJECT)


def list_driven_runs(t: Tables, kind: str) -> list[Row]:
    return [
        (number,)
        for number, run in sorted(t.run.items())
        if t.definition[run["definition"]]["kind"] == kind and _is_driven(t, run)
    ]
