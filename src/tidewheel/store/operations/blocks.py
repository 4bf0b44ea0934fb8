"""Stores scheduling block instances with their runs, what runs wait for, and buffer objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tidewheel.core.operator.blocks import (
    BlockView,
    CreatedSbi,
    NeedView,
    NewBlock,
    NewObject,
    NewSbi,
    ObjectView,
    SbiView,
)
from tidewheel.core.operator.definition import SIP
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.errors import Duplicate, NotFound, SbiTaken, UnknownDependency
from tidewheel.store.operations.queries import page_count
from tidewheel.store.operations.runs import create_run, save_definition
from tidewheel.store.operations.task_admin import cancel
from tidewheel.store.operations.transitions import Effects
from tidewheel.store.rows import filled, storable
from tidewheel.store.run_rows import NeedRow, RunRow, need_view, run_view
from tidewheel.store.transaction import (
    ROWS_PER_STATEMENT_MAX,
    Row,
    Transaction,
    records_in_chunks,
    rows_in_chunks,
)

ONE_SBI_MAX = 10_000  # more blocks than any instance has


class BlockRow(NamedTuple):
    """Holds one row of list_blocks, beside a RunRow."""

    id: str
    sbi: str
    position: int
    body: str
    priority: int


# ---- making ----


def create_sbi(tx: Transaction, new: NewSbi) -> CreatedSbi:
    """Creates an instance with its runs and blocks, all or nothing."""
    made = tx.rows(
        "insert_sbi", id=new.id, body=new.body, fingerprint=new.fingerprint, who=new.who
    )
    if not made:
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
    taken = tx.records("find_run_named", RunRow, name=block.id)
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
    """Returns an instance with its blocks, in their order."""
    found = tx.rows("get_sbi", id=sbi_id)
    if not found:
        raise NotFound("scheduling block instance", sbi_id)
    blocks = _views(tx, sbi=sbi_id, id=None, count=ONE_SBI_MAX)
    return _sbi_view(found[0], sorted(blocks, key=lambda one: one.position))


def list_sbis(tx: Transaction, count: int = 100) -> list[SbiView]:
    """Returns instances without their blocks, newest first."""
    return [_sbi_view(row) for row in tx.rows("list_sbis", count=page_count(count))]


def _sbi_view(row: Row, blocks: Iterable[BlockView] = ()) -> SbiView:
    sbi_id, body, fingerprint, at, who = row
    return SbiView(
        id=sbi_id,
        body=body,
        fingerprint=fingerprint,
        requested_at=Instant(at),
        requested_by=who,
        blocks=tuple(blocks),
    )


def get_block(tx: Transaction, block_id: str) -> BlockView:
    """Returns a block with what it waits for."""
    found = _views(tx, sbi=None, id=block_id, count=1)
    if not found:
        raise NotFound("processing block", block_id)
    return found[0]


def list_blocks(
    tx: Transaction, *, sbi: str | None = None, count: int = 100
) -> list[BlockView]:
    """Returns blocks, newest first."""
    return _views(tx, sbi=sbi, id=None, count=page_count(count))


def _views(tx: Transaction, **which: object) -> list[BlockView]:
    found = [
        (row, run_view(run)) for row, run in tx.pairs("list_blocks", BlockRow, RunRow, **which)
    ]
    needs: dict[int, list[NeedView]] = {}
    waiting = [run.number for _, run in found if run.batch == 0]
    for need in needs_of(tx, waiting):
        needs.setdefault(need.run, []).append(need)
    return [
        filled(BlockView, row, run=run, needs=tuple(needs.get(run.number, ())))
        for row, run in found
    ]


def needs_of(tx: Transaction, runs: Sequence[int]) -> list[NeedView]:
    """Returns what runs have to wait for, or had to."""
    return list(map(need_view, records_in_chunks(tx, "list_needs", NeedRow, "runs", runs)))


# ---- ending ----


def stop_run(tx: Transaction, effects: Effects, run: int, reason: str) -> bool:
    """Stops a run that nobody drives; the ends of its tasks are kept until it is resumed."""
    if not tx.rows("stop_run", run=run, reason=storable(reason)):
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
    """Posts each object once, as it was said last; runs that may wait for one look again."""
    rows = {one.name: {"name": one.name, "facts": one.facts} for one in objects}
    tx.rows("put_objects", objects=list(rows.values()), who=who)
    effects.runs.update(row[0] for row in tx.rows("list_driven_runs", kind=SIP))
    return objects_there(tx, list(rows))


def objects_there(tx: Transaction, names: Sequence[str]) -> list[ObjectView]:
    return [_object(row) for row in rows_in_chunks(tx, "find_objects", "names", names)]


def list_objects(tx: Transaction, *, after: str = "", count: int = 1_000) -> list[ObjectView]:
    return [
        _object(row) for row in tx.rows("list_objects", after=after, count=page_count(count))
    ]


def remove_object(tx: Transaction, name: str) -> ObjectView:
    gone = tx.rows("delete_object", name=name)
    if not gone:
        raise NotFound("object", name)
    return _object(gone[0])


def _object(row: Sequence[Any]) -> ObjectView:
    name, facts, at, who = row
    return ObjectView(name=name, facts=facts, posted_at=Instant(at), posted_by=who)
