"""RELIABILITY 11: kill -9 around every write about a run leaves all of it or nothing (P16)."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.support import run_program
from tests.support.patience import eventually
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.operator.requests import RunClaim
from tidewheel.core.queue.requests import KeysetPage, TaskFilter
from tidewheel.errors import NotFound
from tidewheel.failpoints import FAILPOINTS, RUN_OPERATIONS, WITHIN_BATCH
from tidewheel.wiring.stores import open_store

PLACES = [
    *(f"{one}_{when}_commit" for one in RUN_OPERATIONS for when in ("before", "after")),
    *WITHIN_BATCH,
]


async def prepare(store):
    for digest in ("d", "unnamed"):
        await store.save_definition(StoredDefinition(digest=digest, workflow="wf"))
    for _ in range(2):
        await store.create_run(NewRun(workflow="wf", definition="d"))
    await store.claim_run(RunClaim(run=1, process=run_program.PROCESS, lease_seconds=60.0))


async def is_kept(store, digest):
    try:
        return bool(await store.definition(digest))
    except NotFound:
        return False


async def seen(store):
    """All that an operation can change."""
    return (
        await is_kept(store, "new"),
        await is_kept(store, "unnamed"),
        await store.runs(),
        await store.read_run(1),
        await store.commands(1),
        [task.id for task in await store.list_tasks(TaskFilter(), KeysetPage())],
        await store.verify(),
    )


def with_store(crew, use):
    async def main():
        store = open_store(crew.store)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(main())


def run(crew, operation, **environment):
    program = crew.run_python(str(Path(run_program.__file__)), operation, **environment)
    eventually(lambda: not program.runs, "it has ended")
    return program


def test_the_places_are_known():
    assert set(PLACES) <= set(FAILPOINTS)
    assert tuple(run_program.OPERATIONS) == RUN_OPERATIONS


@pytest.mark.parametrize("place", PLACES)
def test_whoever_dies_has_done_all_or_nothing(crew, place):
    with_store(crew, prepare)
    before = with_store(crew, seen)
    inside = place in WITHIN_BATCH
    operation = "write_batch" if inside else place.removesuffix("_commit").rpartition("_")[0]
    program = run(crew, operation, TIDEWHEEL_FAILPOINT=place)
    assert program.process.returncode == -signal.SIGKILL, program.log
    after = with_store(crew, seen)
    assert (after == before) is (inside or place.endswith("_before_commit"))
    assert after[-1] == []
    if operation == "write_batch":  # the scheduler that comes again writes it once
        assert run(crew, operation).process.returncode == 0
        *_, runs, stored, _, tasks, broken = with_store(crew, seen)
        assert (runs[1].batch, broken) == (1, [])
        assert (len(stored.changes), len(stored.timers), len(tasks)) == (1, 1, 1)
