"""The RunStore port over any database that can run scripts.

What a script about runs needs is loaded by the first one that runs: a store that is opened for
tasks alone would start half as slowly again with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tidewheel.failpoints import Failpoint
from tidewheel.store.operations.transitions import Effects
from tidewheel.store.transaction import Result, Script, Transaction

if TYPE_CHECKING:
    from tidewheel.core.cycling.calendar import Point
    from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
    from tidewheel.core.operator.requests import (
        Batch,
        Inbox,
        NewCommand,
        RunClaim,
        RunLease,
        StoredRun,
        Undelivered,
    )
    from tidewheel.core.operator.views import (
        ChangesView,
        CommandView,
        RunAttempt,
        RunView,
        SubmissionView,
    )
    from tidewheel.core.queue.task import Instant, TaskId
    from tidewheel.core.sched.pool import Past
    from tidewheel.core.sched.records import PutMemory
    from tidewheel.core.sched.states import Memory

WritingScript = Callable[[Transaction, Effects], Result]


class StoredPast:
    """What a store remembers of a run; asked by the core, which waits."""

    def __init__(self, look_now: Callable[[Script[object]], object], run: int) -> None:
        self._look_now, self._run = look_now, run

    def recall(self, point: Point, name: str) -> Memory | None:
        from tidewheel.core.sched.states import Memory
        from tidewheel.store.operations import run_batch

        found = self._look_now(lambda tx: run_batch.remembered(tx, self._run, point, name))
        assert found is None or isinstance(found, Memory)
        return found


class RunOperations(ABC):
    """A RunStore whose operations are scripts."""

    _failpoint: Failpoint

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Run a script that only reads."""

    @abstractmethod
    def look_now(self, script: Script[Result]) -> Result:
        """The same for somebody who cannot await: a few rows, at once."""

    @abstractmethod
    async def _write(self, operation: str, script: WritingScript[Result]) -> Result:
        """Run a script in one transaction."""

    # ---- definitions ----

    async def save_definition(self, definition: StoredDefinition) -> None:
        from tidewheel.store.operations import runs

        await self._write("save_definition", lambda tx, _: runs.save_definition(tx, definition))

    async def definition(self, digest: str) -> StoredDefinition:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.definition(tx, digest))

    # ---- runs ----

    async def create_run(self, new: NewRun) -> RunView:
        from tidewheel.store.operations import runs

        return await self._write("create_run", lambda tx, _: runs.create_run(tx, new))

    async def run(self, number: int) -> RunView:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.get_run(tx, number))

    async def find_run(self, text: str) -> RunView:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.find_run(tx, text))

    async def runs(
        self, *, workflow: str | None = None, count: int = 100, before: int | None = None
    ) -> list[RunView]:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.list_runs(tx, workflow, count, before))

    async def delete_run(self, number: int) -> None:
        while not await self.delete_run_part(number):
            pass

    async def delete_run_part(self, number: int) -> bool:
        from tidewheel.store.operations import runs

        return await self._write("delete_run", lambda tx, _: runs.delete_part(tx, number))

    async def expired_runs(self, retention_seconds: float, count_max: int) -> list[int]:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.expired_runs(tx, retention_seconds, count_max))

    async def delete_definitions(self, retention_seconds: float, count_max: int) -> int:
        from tidewheel.store.operations import runs

        return await self._write(
            "delete_definitions",
            lambda tx, _: runs.delete_definitions(tx, retention_seconds, count_max),
        )

    # ---- schedulers ----

    async def claim_run(self, claim: RunClaim) -> RunLease:
        from tidewheel.store.operations import runs

        return await self._write("claim_run", lambda tx, _: runs.claim_run(tx, claim))

    async def claimable_runs(self, count_max: int) -> list[RunView]:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.claimable_runs(tx, count_max))

    async def undelivered_runs(self, quiet_seconds: float, count_max: int) -> list[RunView]:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.undelivered_runs(tx, quiet_seconds, count_max))

    async def offer_run(self, number: int, given: RunOptions) -> RunView:
        from tidewheel.store.operations import runs

        return await self._write("offer_run", lambda tx, _: runs.offer_run(tx, number, given))

    async def status_since(self, number: int) -> Instant:
        from tidewheel.store.operations import runs

        return await self.look(lambda tx: runs.status_since(tx, number))

    async def renew_run(self, lease: RunLease) -> None:
        from tidewheel.store.operations import runs

        await self._write("scheduler_lease_renew", lambda tx, _: runs.renew_run(tx, lease))

    async def read_run(self, number: int) -> StoredRun:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.read_run(tx, number))

    async def read_inbox(self, number: int, count_max: int) -> Inbox:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.read_inbox(tx, number, count_max))

    async def write_batch(self, lease: RunLease, batch: Batch) -> None:
        from tidewheel.store.change_rows import changed_rows
        from tidewheel.store.operations import run_batch

        rows = changed_rows(batch.changes)  # here, where the writer need not wait for it
        await self._write(
            "write_batch",
            lambda tx, effects: run_batch.write_batch(
                tx, lease, batch, rows, effects, self._failpoint
            ),
        )

    async def withdrawn(self, number: int) -> set[TaskId]:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.withdrawn(tx, number))

    async def undelivered(self, number: int) -> list[Undelivered]:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.undelivered(tx, number))

    async def delivered(self, number: int, events: Sequence[Undelivered]) -> None:
        from tidewheel.store.operations import run_batch

        await self._write("delivered", lambda tx, _: run_batch.delivered(tx, number, events))

    def past(self, number: int) -> Past:
        return StoredPast(self.look_now, number)

    # ---- operators ----

    async def post_command(self, command: NewCommand) -> int:
        from tidewheel.store.operations import runs

        return await self._write(
            "post_command", lambda tx, effects: runs.post_command(tx, command, effects)
        )

    async def command(self, number: int) -> CommandView:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.command(tx, number))

    async def commands(self, run: int, count: int = 100) -> list[CommandView]:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.commands(tx, run, count))

    # ---- looking ----

    async def submissions(
        self, run: int, *, point: str | None = None, name: str | None = None, count: int = 1000
    ) -> list[SubmissionView]:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.submissions(tx, run, point, name, count))

    async def run_attempts(self, run: int, count: int) -> list[RunAttempt]:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.run_attempts(tx, run, count))

    async def run_changes(
        self, run: int, after: int = 0, count: int = 100
    ) -> list[ChangesView]:
        from tidewheel.store.operations import run_batch

        return await self.look(lambda tx: run_batch.run_changes(tx, run, after, count))

    async def forgotten(
        self, run: int, count: int = 10_000, *, only_undone: bool = False
    ) -> list[PutMemory]:
        from tidewheel.store.operations import run_batch

        return await self.look(
            lambda tx: run_batch.forgotten(tx, run, count, only_undone=only_undone)
        )
