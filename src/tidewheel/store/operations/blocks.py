"""Stores scheduling block instances with their runs, what runs wait for, and buffer objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidewheel.core.operator.blocks import (
    BlockStatus,
    BlockView,
    BlockWork,
    CreatedSbi,
    NeedView,
    NewBlock,
    NewObject,
    NewSbi,
    ObjectView,
    SbiView,
    StatusSince,
    plain_status,
    run_statuses,
    run_statuses_of_sbi,
    subarray_of,
)
from tidewheel.core.operator.definition import SIP
from tidewheel.core.operator.views import ABORTED_BY, RunView
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import Duplicate, SbiTaken, UnknownDependency
from tidewheel.store.operations.queries import page_count
from tidewheel.store.operations.runs import create_run, save_definition
from tidewheel.store.operations.task_admin import cancel
from tidewheel.store.operations.transitions import Effects
from tidewheel.store.rows import storable
from tidewheel.store.transaction import (
    ROWS_PER_STATEMENT_MAX,
    STORED,
    Transaction,
    found_one,
    records_in_chunks,
    row_of,
    rows_in_chunks,
)

ONE_SBI_MAX = 10_000  # more blocks than any instance has
LOOKED_AT_ONCE = 1_000  # for those that fit

# Neither is a column: both are counted.
STORED[BlockView, "work"] = STORED[SbiView, "counts"] = None


# ---- making ----


def create_sbi(tx: Transaction, new: NewSbi) -> CreatedSbi:
    """Creates a scheduling block instance with its runs and blocks, all or nothing.

    If there is one of this id, it is returned as it is; raises SbiTaken if its content differs.
    """
    if not tx.rows("insert_sbi", **row_of(new)):
        known = get_sbi(tx, new.id)
        if known.fingerprint != new.fingerprint:
            raise SbiTaken(new.id)
        return CreatedSbi(sbi=known, made=False)
    for definition in new.definitions:
        save_definition(tx, definition)
    numbers: dict[str, int] = {}
    for position, block in enumerate(new.blocks, 1):
        numbers[block.id] = _create_block(tx, new.id, block, position)
    _create_needs(tx, new.blocks, numbers)
    return CreatedSbi(sbi=get_sbi(tx, new.id), made=True)


def _create_block(tx: Transaction, sbi: str, block: NewBlock, position: int) -> int:
    taken = tx.records("find_run_named", RunView, name=block.id)
    if taken:
        raise Duplicate("block id", block.id, f"run {taken[0].number}")
    number = create_run(tx, block.run).number
    row = {"id": block.id, "sbi": sbi, "position": position, "run": number}
    tx.rows("insert_block", **row, body=block.body)
    return number


def _create_needs(tx: Transaction, blocks: Sequence[NewBlock], numbers: dict[str, int]) -> None:
    named = {need.parent for block in blocks for need in block.needs}
    others = rows_in_chunks(tx, "lock_parents", "blocks", sorted(named - numbers.keys()))
    there = numbers | dict(others)
    rows = []
    for block in blocks:
        if unknown := [need.parent for need in block.needs if need.parent not in there]:
            raise UnknownDependency(block.id, unknown[:1])
        rows += [
            {
                "run": numbers[block.id],
                "parent": there[need.parent],
                "condition": need.condition.value,
            }
            for need in block.needs
        ]
    rows_in_chunks(tx, "insert_needs", "needs", rows)


# ---- looking ----


def get_sbi(tx: Transaction, sbi_id: str) -> SbiView:
    """Returns a scheduling block instance, with its blocks in their order."""
    rows = tx.records("get_sbi", SbiView, id=sbi_id)
    [found] = _counted(tx, [found_one(rows, "scheduling block instance", sbi_id)])
    blocks = _views(tx, sbi=sbi_id, count=ONE_SBI_MAX)
    return replace(found, blocks=tuple(sorted(blocks, key=lambda one: one.position)))


def list_sbis(
    tx: Transaction,
    count: int = 100,
    before: str | None = None,
    *,
    status: BlockStatus | None = None,
    subarray: str | None = None,
) -> list[SbiView]:
    """Returns scheduling block instances without their blocks, newest first: those that are
    older than one, or all; with any status and subarray, or one."""
    wanted, shown = page_count(count), list[SbiView]()
    portion = wanted if subarray is None else max(wanted, LOOKED_AT_ONCE)
    asked: dict[str, object] = {"status": None, "statuses": []}
    if status is not None:
        asked = {"status": str(status), "statuses": run_statuses_of_sbi(status)}
    while True:
        found = tx.records("list_sbis", SbiView, count=portion, before=before, **asked)
        fitting = [one for one in found if subarray in (None, subarray_of(one.body, subarray))]
        shown += _counted(tx, fitting)
        if len(found) < portion or len(shown) >= wanted:
            return shown[:wanted]
        before = found[-1].id


def _counted(tx: Transaction, found: Sequence[SbiView]) -> list[SbiView]:
    """Returns instances with how many of their blocks have which status."""
    counts: dict[str, dict[BlockStatus, int]] = {one.id: {} for one in found}
    for sbi, status, reason, blocks in rows_in_chunks(
        tx, "count_sbi_blocks", "sbis", list(counts)
    ):
        plain = plain_status(status, reason)
        counts[sbi][plain] = counts[sbi].get(plain, 0) + blocks
    return [replace(one, counts=counts[one.id]) for one in found]


def get_block(tx: Transaction, block_id: str) -> BlockView:
    """Returns a processing block, with what its run waits for before it begins."""
    return found_one(_views(tx, id=block_id, count=1), "processing block", block_id)


def list_blocks(
    tx: Transaction,
    *,
    sbi: str | None = None,
    status: BlockStatus | None = None,
    workflow: str | None = None,
    count: int = 100,
    before: int | None = None,
) -> list[BlockView]:
    """Returns processing blocks newest first, of one instance, status and workflow or of all:
    those whose run is older than the one of this number, or all."""
    which: dict[str, object] = {"sbi": sbi, "workflow": workflow, "before": before}
    if status is not None:
        which |= {"status": str(status), "statuses": run_statuses(status)}
    return _views(tx, **which, count=page_count(count))


def _views(tx: Transaction, **which: object) -> list[BlockView]:
    anything: dict[str, object] = dict.fromkeys(("sbi", "id", "before", "workflow", "status"))
    anything |= {"statuses": []}
    found = tx.records("list_blocks", BlockView, **anything | which)
    needs: dict[int, list[NeedView]] = {}
    waiting = [block.run.number for block in found if block.run.batch == 0]
    for need in needs_of(tx, waiting):
        needs.setdefault(need.run, []).append(need)
    work = _work(tx, [block.run.number for block in found if block.run.status == "running"])
    return [
        replace(
            one,
            needs=tuple(needs.get(one.run.number, ())),
            work=work.get(one.run.number, one.work),
        )
        for one in found
    ]


def _work(tx: Transaction, runs: Sequence[int]) -> dict[int, BlockWork]:
    """Returns what the tasks of these runs do."""
    leased = {row[0] for row in rows_in_chunks(tx, "list_leased_runs", "runs", runs)}
    return {
        run: BlockWork(run in leased or bool(first), *map(bool, others))
        for run, first, *others in rows_in_chunks(tx, "list_run_work", "runs", runs)
    }


def statuses_of(tx: Transaction, run: int) -> list[StatusSince]:
    """Returns which statuses a run had, oldest first."""
    return tx.records("list_run_statuses", StatusSince, run=run)


def needs_of(tx: Transaction, runs: Sequence[int]) -> list[NeedView]:
    """Returns what runs have to wait for before they begin, or had to wait for."""
    return records_in_chunks(tx, "list_needs", NeedView, "runs", runs)


# ---- ending ----


def stop_run(tx: Transaction, effects: Effects, run: int, reason: str) -> bool:
    """Stops a run that nobody drives, and cancels its tasks.

    Returns False, and does nothing, if the run is driven, has completed or was aborted. The
    ends of its tasks are kept as events until the run is resumed.
    """
    if not tx.rows("stop_run", run=run, reason=storable(reason), aborted=ABORTED_BY):
        return False
    effects.runs.add(run)
    while True:
        found = tx.rows("find_open_run_tasks", run=run, count=ROWS_PER_STATEMENT_MAX)
        cancel(tx, effects, [TaskId(row[0]) for row in found])
        if len(found) < ROWS_PER_STATEMENT_MAX:
            return True


# ---- objects ----


def post_objects(
    tx: Transaction, effects: Effects, objects: Sequence[NewObject], who: str
) -> list[ObjectView]:
    """Stores buffer objects as present, and returns them; of equal names the last counts.

    Driven runs that may wait for one are woken, so that they look again.
    """
    rows = {one.name: {"name": one.name, "facts": one.facts} for one in objects}
    tx.rows("put_objects", objects=list(rows.values()), who=who)
    effects.runs.update(row[0] for row in tx.rows("list_driven_runs", kind=SIP))
    return objects_there(tx, list(rows))


def objects_there(tx: Transaction, names: Sequence[str]) -> list[ObjectView]:
    return records_in_chunks(tx, "find_objects", ObjectView, "names", names)


def list_objects(tx: Transaction, *, after: str = "", count: int = 1_000) -> list[ObjectView]:
    return tx.records("list_objects", ObjectView, after=after, count=page_count(count))


def remove_object(tx: Transaction, name: str) -> ObjectView:
    return found_one(tx.records("delete_object", ObjectView, name=name), "object", name)
