"""RELIABILITY 24: whatever was acknowledged is there after a power cut at any moment (D1).

The real store does real work on a recorded disk. Each image is a disk as a cut may leave it;
our own code opens it, as it would when the power is back.
"""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from tests.kit.power_loss import (
    RecordedDisk,
    Removed,
    Synced,
    weakened,
    write_image,
)
from tests.support.patience import scaled
from tests.support.volumes import folder_in_memory
from tidewheel.config import StoreSettings
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    Beat,
    ClaimRequest,
    End,
    Ending,
    HostProcess,
    JobMessage,
    KeysetPage,
    NewWorker,
    Report,
    TaskFilter,
)
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.queue.task import Need, NewTask, TaskError
from tidewheel.store.sqlite import open_sqlite_store

IMAGES = scaled(320)
CONTROL_IMAGES = scaled(60)
SESSIONS, CHAINS, CLAIMS = 2, 20, 18
NAME = "tidewheel.db"
BROKEN = TaskError(code="exit", description="it exited with 3")
MESSAGES = "SELECT id, count(*) FROM output JOIN task ON seq = task_seq GROUP BY id"
HISTORY = "SELECT seq, task_seq, signal, to_status, attempt, worker FROM history ORDER BY seq"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What a caller was told about a task; a later step may have come on top of it."""

    task_id: str
    statuses: frozenset = frozenset(Status)
    attempt: int = 0
    messages: int = 0

    def is_kept(self, task, messages):
        """Whether a task as it was found, with so many messages, bears it out."""
        return (
            task is not None
            and task.status in self.statuses
            and task.attempt >= self.attempt
            and messages >= self.messages
        )


class Workload:
    """Clients and workers of one store at once; every answer that they get is noted."""

    def __init__(self, store, recording, chance):
        self.store, self.recording, self.chance = store, recording, chance

    async def run(self, session):
        async with asyncio.TaskGroup() as group:
            for chain in range(CHAINS):
                _ = group.create_task(self.submit(f"{session}.{chain}"))
            for number in range(3):
                _ = group.create_task(self.work(f"{session}.{number}"))

    async def submit(self, chain):
        """Three tasks in one call, two of which need the first; some are cancelled again."""
        ids = [f"{chain}.{part}" for part in range(3)]
        need = (Need(task_id=ids[0]),)
        # So much that every session meets a checkpoint, whatever the chance.
        spec = '"' + "x" * self.chance.randrange(3000, 6000) + '"'
        await self.store.submit(
            [
                NewTask(id=one, queue="q", spec=spec, max_retries=1, needs=need if n else ())
                for n, one in enumerate(ids)
            ]
        )
        for task_id in ids:
            self.recording.note(Fact(task_id=task_id))
        if self.chance.random() < 0.4:
            doomed = self.chance.choice(ids)
            await self.store.cancel([doomed])
            ending = FINAL | {Status.CANCELLING}
            self.recording.note(Fact(task_id=doomed, statuses=ending))

    async def work(self, name):
        process = HostProcess(host="tern", boot_id="b", pid=1, started=1.0)
        worker = await self.store.register_worker(
            NewWorker(name=name, process=process, queues=("q",), slots=9, capacity=Resources())
        )
        for _ in range(CLAIMS):
            count = self.chance.randint(1, 2)
            claimed = await self.store.claim(
                ClaimRequest(queue="q", worker=worker, count=count)
            )
            for task in claimed:
                self.recording.note(Fact(task_id=task.id, attempt=task.attempt))
                await self.execute(task, worker)

    async def execute(self, task, worker):
        holder = Holder(task_id=task.id, attempt=task.attempt, worker=worker)
        beat = Beat(task_id=task.id, attempt=task.attempt, progress=0.5)
        await self.store.heartbeat(worker, [beat])
        message = JobMessage(number=1, text="half of it")
        [answer] = await self.store.report([Report(holder=holder, messages=(message,))])
        if answer.refused is None:
            self.recording.note(Fact(task_id=task.id, messages=1))
        [answer] = await self.store.report([Report(holder=holder, end=self.end())])
        if answer.status in FINAL:
            ended = frozenset({answer.status})
            self.recording.note(Fact(task_id=task.id, statuses=ended, attempt=task.attempt))

    def end(self):
        ending = self.chance.choice([Ending.SUCCEEDED, Ending.FAILED, Ending.YIELDED])
        return End(ending=ending, error=BROKEN if ending is Ending.FAILED else None)


def settings_in(folder):
    return StoreSettings(url=f"sqlite:///{folder}/{NAME}", batch_operations_max=4)


def record(chance):
    """The workload in two sessions, so that the store is closed and opened on the way."""

    async def sessions(folder, recording):
        for session in range(SESSIONS):
            store = open_sqlite_store(settings_in(folder), vfs="recorded")
            await Workload(store, recording, chance).run(session)
            assert await store.verify() == []
            await store.close()

    with folder_in_memory() as folder, RecordedDisk("recorded") as disk:
        asyncio.run(sessions(folder, disk.recording))
        [history] = rows_in(folder, HISTORY)
        return disk.recording, history


def rows_in(folder, *queries):
    """Behind the store's back."""
    connection = apsw.Connection(str(folder / NAME), apsw.SQLITE_OPEN_READONLY)
    try:
        return [connection.execute(query).fetchall() for query in queries]
    finally:
        connection.close()


@dataclass(frozen=True)
class Found:
    """What our code finds when it opens an image."""

    violations: list
    tasks: dict
    messages: Counter
    history: list

    def lost(self, facts):
        return [
            fact
            for fact in facts
            if not fact.is_kept(self.tasks.get(fact.task_id), self.messages[fact.task_id])
        ]


def open_image(image):
    """Open it, look at everything, and go on: the next task is stored."""

    async def look(folder):
        store = open_sqlite_store(settings_in(folder))
        try:
            violations = await store.verify()
            tasks = await store.list_tasks(TaskFilter(), KeysetPage(count=1000))
            history, messages = rows_in(folder, HISTORY, MESSAGES)
            await store.submit([NewTask(id="after the cut", queue="new", spec="{}")])
        finally:
            await store.close()
        return Found(violations, {t.id: t for t in tasks}, Counter(dict(messages)), history)

    with folder_in_memory() as folder:
        write_image(image, folder / "image")
        return asyncio.run(look(folder / "image"))


@pytest.fixture
def seed(request):
    """That of the whole run, so that a failure is repeated by `make test SEED=…`."""
    return request.config.getoption("randomly_seed", 1)


@pytest.mark.timeout(3600)
@pytest.mark.req("R002-89", "R002-59")
def test_no_power_cut_loses_or_halves_what_was_acknowledged(seed):
    chance = random.Random(seed)
    recording, history = record(chance)
    checkpoints = [e for e in recording.events if e == Synced(NAME)]
    assert len(checkpoints) > SESSIONS, "the workload is too small to meet a checkpoint"
    assert any(isinstance(e, Removed) for e in recording.events)
    for cut, image in recording.images(IMAGES, chance):
        where = f"seed {seed}, cut at {cut} of {len(recording.events)}"
        found = open_image(image)
        assert found.violations == [], where
        assert found.lost(recording.noted_before(cut)) == [], where
        # One of the states that the store has been in: each transaction whole or not at all.
        assert found.history == history[: len(found.history)], where


@pytest.mark.timeout(3600)
def test_the_same_cuts_lose_acknowledgements_where_not_every_commit_is_synced(seed):
    """The control: a test that could not see this would be blind."""
    chance = random.Random(seed)
    with weakened("normal"):
        recording, history = record(chance)
    losses = 0
    for cut, image in recording.images(CONTROL_IMAGES, chance):
        found = open_image(image)
        losses += bool(found.lost(recording.noted_before(cut)))
        # NORMAL loses the last commits, and nothing else.
        assert found.violations == []
        assert found.history == history[: len(found.history)]
    assert losses > CONTROL_IMAGES / 10, f"seed {seed}"


def test_an_image_has_everything_synced_and_any_part_of_the_rest():
    with folder_in_memory() as folder, RecordedDisk("recorded") as disk:
        path = str(folder / "a")
        Path(path).write_bytes(b"old")
        file = disk.xOpen(path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
        file.xWrite(b"new", 0)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
        file.xWrite(b"x" * 1024, 3)
        file.xClose()
        recording = disk.recording
    images = {recording.image(3, random.Random(n))["a"] for n in range(200)}
    assert {image[:3] for image in images} == {b"new"}
    assert {image[3:] for image in images} > {b"", b"x" * 1024, b"x" * 509}
    assert recording.image(1, random.Random(0))["a"] in (b"old", b"new")
