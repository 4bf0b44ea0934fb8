"""Takes back lapsed leases, and removes what retention lets go, beside any workers.

Theory of operation
-------------------
A lease that ran out says that its worker was not heard, which is a fact about the worker only
if it could have been heard. So a monitor passes the store the time for which it has itself
watched without a break, and the store takes back no lease longer than that: after an outage of
the database every worker has a full lease to be heard again. A break is a call that failed, an
answer that came long after the one before it (this process stood still, or the call hung), or
a database clock that did not move as the local one did (the machine slept, or somebody set the
clock).

Any number of monitors may run: the store decides each lease once, and deleting twice is
nothing. With what retention removes from the store go its files, as far as they are on this
host: `verify --files` finds those of others. Every transaction is short: leases, expired tasks
and runs, definitions that nothing names, and workers that are long gone are worked off in
batches.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tidewheel.api.tasks import HistoryEntry, Task
from tidewheel.config import MonitorSettings
from tidewheel.core.queue.task import Instant
from tidewheel.errors import NotFound, Refused, Unavailable
from tidewheel.ports.store import Store
from tidewheel.services.file_removal import remove_run_files, remove_task_files
from tidewheel.services.paths import tasks_directory
from tidewheel.services.service import Service, ServiceReport, Surroundings

BATCHES_PER_PASS_MAX = 100
# Every worker that lives and can reach the store is heard within this time.
HEARD_SECONDS_MAX = 60.0
UNNAMED_SECONDS_MIN = 3600.0  # a definition is saved before anything names it
STANDSTILL_SECONDS_MIN = 1.0  # a shorter one is not worth a full lease of patience


class StoreWatch:
    """Measures how long a monitor has seen the store without a break, by the local clock."""

    def __init__(self, rest_seconds_max: float) -> None:
        self._rest_seconds_max = rest_seconds_max
        self._since: float | None = None
        self._answered_at = 0.0
        self._ahead = 0.0  # of the database's clock, before the local one

    def begin_pass(self, local: float, store: Instant) -> None:
        """Notes the store's time at the beginning of a pass; a clock that jumped is a break."""
        if abs(store - local - self._ahead) > self._rest_seconds_max:
            self._since = None
        self._ahead = store - local
        self.answered(local)

    def answered(self, local: float) -> None:
        """Notes that the store answered a call, in the middle of a pass or at its beginning.

        An answer that comes after a break may have been given long ago: it proves nothing, and
        watching begins with the next one.
        """
        if local - self._answered_at > self._rest_seconds_max:
            self._since = None
        elif self._since is None:
            self._since = local
        self._answered_at = local

    def lost(self) -> None:
        """Notes that the store did not answer, which is a break."""
        self._since = None

    def seconds(self, local: float) -> float:
        return 0.0 if self._since is None else local - self._since


class Monitor(Service):
    """Takes back lapsed leases, and removes what retention lets go."""

    def __init__(
        self,
        store: Store,
        settings: MonitorSettings,
        surroundings: Surroundings,
        home: Path | None = None,  # where files are; None: nowhere
    ) -> None:
        super().__init__("monitor", surroundings)
        self._home = home
        self._store = store
        self._settings = settings
        self._watch = StoreWatch(STANDSTILL_SECONDS_MIN + 2 * settings.interval_seconds)
        self._retention_at = self._clock.monotonic()

    def rest_seconds(self) -> float | None:
        retention_seconds = self._retention_at - self._clock.monotonic()
        return max(0.0, min(self._settings.interval_seconds, retention_seconds))

    async def run_once(self) -> Sequence[ServiceReport]:
        try:
            now = await self._store.now()
            self._watch.begin_pass(self._clock.monotonic(), now)
            reports = await self._take_back()
            if self._clock.monotonic() >= self._retention_at:
                reports += await self._keep_retention()
                reports += await self._let_runs_go()
                reports += await self._forget_definitions()
                reports += await self._forget_workers()
        except Unavailable:
            self._watch.lost()
            raise
        return reports

    async def _take_back(self) -> list[ServiceReport]:
        signals: Counter[str] = Counter()
        count_max = self._settings.lapsed_per_pass_max
        for _ in range(BATCHES_PER_PASS_MAX):
            ended = await self._store.take_back_lapsed_leases(
                watched_seconds=self._watch.seconds(self._clock.monotonic()),
                count_max=count_max,
            )
            self._answered()
            signals.update(signal.value for _, signal in ended)
            if len(ended) < count_max:
                break
        return [self.report("leases.taken_back", **signals)] if signals else []

    async def _keep_retention(self) -> list[ServiceReport]:
        """Exports and deletes one batch of old tasks. When the batch was full the next follows
        at once, after a look at the leases."""
        settings = self._settings
        self._retention_at = self._clock.monotonic() + settings.retention_interval_seconds
        if settings.retention_seconds is None:
            return []
        count_max = settings.deleted_per_batch_max
        expired = await self._store.expired_tasks(settings.retention_seconds, count_max)
        self._answered()
        try:
            await self._export(expired)
        except OSError as error:  # what cannot be written is not deleted; leases go first
            return [self.report("tasks.not_exported", count=len(expired), error=str(error))]
        self._surroundings.failpoint("retention_exported")
        deleted = await self._store.delete_tasks([task.seq for task in expired])
        self._answered()
        await self._remove_task_files(expired)
        if deleted and len(expired) == count_max:
            self._retention_at = self._clock.monotonic()
        return [self.report("tasks.deleted", count=deleted)] if deleted else []

    async def _let_runs_go(self) -> list[ServiceReport]:
        """Deletes one part of one old run and its files; the next pass deletes the next part.
        So leases are looked at between the parts."""
        if self._settings.retention_seconds is None:
            return []
        expired = await self._store.expired_runs(self._settings.retention_seconds, 1)
        self._answered()
        if not expired:
            return []
        self._retention_at = self._clock.monotonic()
        run = None
        with suppress(NotFound):  # of one whose deletion was interrupted the files went first
            run = await self._store.run(expired[0])
        try:
            gone = await self._store.delete_run_part(expired[0])
        except Refused:  # somebody was faster: it is driven again, or gone
            return []
        if run is not None and self._home is not None:
            store_id = await self._store.store_id()
            await asyncio.to_thread(remove_run_files, self._home, run, store_id)
        return [self.report("run.deleted", run=expired[0])] if gone else []

    async def _remove_task_files(self, expired: Sequence[Task]) -> None:
        """Removes the files of those of the expired tasks that are gone from the store. Each is
        looked up again: one that a new task depends on by now was not deleted."""
        if self._home is None or not expired:
            return
        store_id = await self._store.store_id()
        there = tasks_directory(self._home, store_id)
        seqs = []
        for task in expired:
            if await asyncio.to_thread((there / str(task.seq)).is_dir):
                try:
                    await self._store.get(task.id)
                except NotFound:
                    seqs.append(task.seq)
        await asyncio.to_thread(remove_task_files, self._home, store_id, seqs)

    def _forgotten(self, what: str, forgotten: int) -> list[ServiceReport]:
        """Returns a report of how many rows were removed, or none if there were none. After a
        full batch the next follows at once."""
        self._answered()
        if forgotten == self._settings.deleted_per_batch_max:
            self._retention_at = self._clock.monotonic()
        return [self.report(f"{what}.forgotten", count=forgotten)] if forgotten else []

    async def _forget_definitions(self) -> list[ServiceReport]:
        """Deletes old definitions that nothing names: only saved, or all of their runs gone."""
        if self._settings.retention_seconds is None:
            return []
        seconds = max(self._settings.retention_seconds, UNNAMED_SECONDS_MIN)
        count_max = self._settings.deleted_per_batch_max
        gone = await self._store.delete_definitions(seconds, count_max)
        return self._forgotten("definitions", gone)

    async def _forget_workers(self) -> list[ServiceReport]:
        """Deletes workers that were silent for long. After an outage all workers seem silent
        until they are heard again, so it waits first."""
        seconds = self._settings.workers_retention_seconds
        watched_seconds = self._watch.seconds(self._clock.monotonic())
        if seconds is None or watched_seconds < HEARD_SECONDS_MAX:
            return []
        count_max = self._settings.deleted_per_batch_max
        gone = await self._store.delete_workers(seconds, count_max)
        return self._forgotten("workers", gone)

    async def _export(self, expired: Sequence[Task]) -> None:
        directory = self._settings.export_directory
        if directory is None or not expired:
            return
        day = datetime.fromtimestamp(await self._store.now(), UTC).date()
        lines = []
        for task in expired:
            lines.append(await task_line(self._store, task))
            self._answered()
        path = directory / f"tasks-{day.isoformat()}.jsonl"
        await asyncio.to_thread(append_lines, path, lines)

    def _answered(self) -> None:
        self._watch.answered(self._clock.monotonic())


# Tasks are written as JSON lines before they are deleted: each with its history, attempts,
# outputs, usage and edges.
#
# A file only grows, and what was written is on the disk before the caller goes on. After a
# crash between writing and deleting, a task is in the file twice; a line that a crash tore
# apart is followed by a new one, so a reader skips what it cannot read.


HISTORY_PER_CALL = 1_000


async def task_line(store: Store, task: Task) -> bytes:
    """Returns everything about one task, as one line of JSON."""
    fields = msgspec.to_builtins(task, order="deterministic")
    fields["spec"] = fields.pop("spec_text")  # as files of earlier versions have it
    parts = {
        "task": fields,
        "history": await _whole_history(store, task),
        "attempts": await store.attempts(task.id),
        "outputs": await store.outputs(task.id),
        "values": (await store.values_of([task.id])).get(task.id),
        "usage": await store.usage(task.id),
        "edges": await store.edges(task.id),
    }
    return msgspec.json.encode(parts, order="deterministic") + b"\n"


def append_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Adds lines at the end of a file, and returns when they are on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    is_new = not path.exists()
    with open(path, "ab+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        size = file.tell()
        is_torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        file.write((b"\n" if is_torn else b"") + b"".join(lines))
        file.flush()
        os.fsync(file.fileno())
    if is_new:  # so must be its name
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


async def _whole_history(store: Store, task: Task) -> list[HistoryEntry]:
    entries: list[HistoryEntry] = []
    while True:
        after = entries[-1].seq if entries else 0
        page = await store.history(task.id, after=after, count=HISTORY_PER_CALL)
        entries += page
        if len(page) < HISTORY_PER_CALL:
            return entries
