"""The Store port over any database that can run scripts; what is about runs: ``run_facade``.

A store gives two things: ``transact`` runs a script in a transaction and commits it, ``look``
runs one that changes nothing. Everything else is here, once. After a commit, and only then,
listeners are told what they may be waiting for.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tidewheel.core.queue.lease import Answer, Holder
from tidewheel.core.queue.requests import (
    Amendment,
    Beat,
    Cancelled,
    Claimed,
    ClaimedTasks,
    ClaimRequest,
    HeldLease,
    Message,
    NewWorker,
    Page,
    QueueSettings,
    Report,
    Reported,
    Submitted,
    TaskFilter,
    Wake,
)
from tidewheel.core.queue.status import Signal
from tidewheel.core.queue.submission import (
    SubmitLimits,
    message_refusal,
    refusal,
    run_refusal,
)
from tidewheel.core.queue.task import Instant, NewTask, TaskId, WorkerId
from tidewheel.core.queue.views import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    QueueView,
    TaskView,
    UsageView,
    Violation,
    WorkerView,
)
from tidewheel.errors import BadSetting, NotFound
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.store.access_facade import AccessOperations
from tidewheel.store.block_facade import BlockOperations
from tidewheel.store.event_facade import EventOperations
from tidewheel.store.notebook_facade import NotebookOperations
from tidewheel.store.operations import (
    claim,
    edges,
    lease_expiry,
    queries,
    report,
    submit,
    task_admin,
)
from tidewheel.store.operations.transitions import Effects
from tidewheel.store.registry_facade import RegistryOperations
from tidewheel.store.resource_rows import resource_columns
from tidewheel.store.rows import storable, worker_number
from tidewheel.store.run_facade import RunOperations, WritingScript
from tidewheel.store.transaction import News, Result, Script, Transaction, no_news
from tidewheel.store.worker_rows import abilities_text

if TYPE_CHECKING:
    from tidewheel.core.queue.job_words import JobWords
    from tidewheel.core.queue.statistics import EndedAttempt


class ScriptedStore(
    RunOperations,
    AccessOperations,
    EventOperations,
    RegistryOperations,
    BlockOperations,
    NotebookOperations,
):
    """A Store whose operations are scripts."""

    def __init__(
        self,
        limits: SubmitLimits,
        chance: Callable[[], float],
        failpoint: Failpoint = go_on,
    ) -> None:
        self._limits = limits
        self._chance = chance
        self._failpoint = failpoint
        self._listeners: list[Callable[[Wake], None]] = []

    @abstractmethod
    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        """Run a script in one transaction; run it again if somebody was faster.

        Listeners in other processes hear the news, asked for after the script, once it is
        committed; where there is no way to tell them, they find out by themselves.
        """

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Run a script that only reads."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of files and connections."""

    # ---- clients ----

    async def submit(self, tasks: Sequence[NewTask], *, atomic: bool = True) -> list[Submitted]:
        if len(tasks) > self._limits.tasks_per_call_max:
            accepted = f"up to {self._limits.tasks_per_call_max} tasks in one call"
            raise BadSetting("tasks", len(tasks), accepted)
        answers, good = {}, []
        for position, task in enumerate(tasks):
            why = refusal(task, self._limits) or run_refusal(task)
            if why is None:
                good.append((position, task))
            elif atomic:
                raise why
            else:
                answers[position] = Submitted(id=task.id, refused=why)
        answers |= await self._write(
            "submit",
            lambda tx, effects: submit.submit(tx, good, atomic=atomic, effects=effects),
        )
        return [answers[position] for position in range(len(tasks))]

    async def arm(self, task_id: TaskId) -> TaskView:
        await self._write("arm", lambda tx, effects: task_admin.arm(tx, task_id, effects))
        return await self.get(task_id)

    async def amend(self, task_id: TaskId, amendment: Amendment) -> TaskView:
        await self._write(
            "amend", lambda tx, _: task_admin.amend(tx, task_id, amendment, self._limits)
        )
        return await self.get(task_id)

    async def cancel(self, task_ids: Sequence[TaskId]) -> list[Cancelled]:
        return await self._write(
            "cancel", lambda tx, effects: task_admin.cancel(tx, task_ids, effects)
        )

    async def cancel_matching(
        self, which: TaskFilter, count_max: int = 1000
    ) -> list[Cancelled]:
        return await self._write(
            "cancel_matching",
            lambda tx, effects: task_admin.cancel_matching(tx, which, count_max, effects),
        )

    async def add_edges(self, new: Sequence[tuple[TaskId, TaskId]]) -> None:
        await self._write("add_edges", lambda tx, effects: edges.add_edges(tx, new, effects))

    async def remove_edges(self, old: Sequence[tuple[TaskId, TaskId]]) -> None:
        await self._write(
            "remove_edges", lambda tx, effects: edges.remove_edges(tx, old, effects)
        )

    async def configure_queue(self, queue: str, settings: QueueSettings) -> None:
        await self._write(
            "configure_queue",
            lambda tx, effects: task_admin.configure_queue(tx, queue, settings, effects),
        )

    async def pause_queue(self, queue: str, *, paused: bool) -> None:
        await self._write(
            "pause_queue",
            lambda tx, effects: task_admin.pause_queue(
                tx, queue, paused=paused, effects=effects
            ),
        )

    # ---- workers ----

    async def register_worker(self, worker: NewWorker) -> WorkerId:
        row = {
            "name": worker.name,
            "host": worker.process.host,
            "boot_id": worker.process.boot_id,
            "pid": worker.process.pid,
            "process_started": worker.process.started,
            "queues": json.dumps(worker.queues),
            "slots": worker.slots,
            **resource_columns(worker.capacity),
            "abilities": abilities_text(worker.abilities),
        }
        del row["exclusive"]  # of what is asked
        number = await self._write(
            "register_worker", lambda tx, _: tx.rows("insert_worker", **row)[0][0]
        )
        return WorkerId(f"worker-{number}")

    async def stop_worker(self, worker: WorkerId) -> None:
        number = worker_number(worker)
        if not await self._write(
            "stop_worker", lambda tx, _: tx.rows("stop_worker", worker_number=number)
        ):
            raise NotFound("worker", worker)

    async def set_trouble(self, worker: WorkerId, trouble: str | None) -> None:
        given = {"worker_number": worker_number(worker), "trouble": storable(trouble)}
        if not await self._write("set_trouble", lambda tx, _: tx.rows("set_trouble", **given)):
            raise NotFound("worker", worker)

    async def claim(self, request: ClaimRequest) -> ClaimedTasks:
        return await self._write("claim", lambda tx, _: claim.claim(tx, request))

    async def claim_by_id(
        self, task_id: TaskId, worker: WorkerId, lease_seconds: float | None = None
    ) -> Claimed:
        return await self._write(
            "claim_by_id", lambda tx, _: claim.claim_by_id(tx, task_id, worker, lease_seconds)
        )

    async def heartbeat(self, worker: WorkerId, beats: Sequence[Beat]) -> list[Answer]:
        return await self._write("heartbeat", lambda tx, _: report.heartbeat(tx, worker, beats))

    async def report(self, reports: Sequence[Report]) -> list[Reported]:
        refused = {
            position: Reported(task_id=one.holder.task_id, refused=why)
            for position, one in enumerate(reports)
            if one.messages and (why := message_refusal(one, self._limits))
        }
        good = (
            [one for k, one in enumerate(reports) if k not in refused] if refused else reports
        )
        answers = await self._write(
            "report", lambda tx, effects: report.report(tx, good, self._chance, effects)
        )
        if not refused:
            return answers
        rest = iter(answers)
        return [refused.get(k) or next(rest) for k in range(len(reports))]

    async def hear_job(self, words: JobWords) -> None:
        # Only servers hear jobs.
        from tidewheel.store.operations import job_messages  # noqa: PLC0415

        said = Message(number=1, text=words.text)
        if why := message_refusal(Report(holder=words.holder, messages=(said,)), self._limits):
            raise why
        await self._write(
            "hear_job", lambda tx, effects: job_messages.hear_job(tx, words, effects)
        )

    async def cancelling(self, worker: WorkerId) -> list[tuple[TaskId, int]]:
        return await self.look(lambda tx: report.cancelling(tx, worker))

    async def orphans(self, host: str, boot_id: str) -> list[HeldLease]:
        return await self.look(lambda tx: queries.orphans(tx, host, boot_id))

    async def adopt(self, holder: Holder, new_owner: WorkerId) -> Claimed:
        return await self._write("adopt", lambda tx, _: report.adopt(tx, holder, new_owner))

    # ---- monitors ----

    async def take_back_lapsed_leases(
        self, *, watched_seconds: float, count_max: int
    ) -> list[tuple[TaskId, Signal]]:
        return await self._write(
            "take_back_lapsed_leases",
            lambda tx, effects: lease_expiry.take_back_lapsed_leases(
                tx, watched_seconds, count_max, effects
            ),
        )

    async def expired_tasks(self, retention_seconds: float, count_max: int) -> list[TaskView]:
        return await self.look(
            lambda tx: lease_expiry.expired_tasks(tx, retention_seconds, count_max)
        )

    async def delete_tasks(self, seqs: Sequence[int]) -> int:
        return await self._write(
            "delete_tasks", lambda tx, _: lease_expiry.delete_tasks(tx, seqs)
        )

    async def delete_workers(self, retention_seconds: float, count_max: int) -> int:
        return await self._write(
            "delete_workers",
            lambda tx, _: lease_expiry.delete_workers(tx, retention_seconds, count_max),
        )

    # ---- looking ----

    async def get(self, task_id: TaskId) -> TaskView:
        return await self.look(lambda tx: queries.get(tx, task_id))

    async def get_many(self, task_ids: Sequence[TaskId]) -> list[TaskView]:
        return await self.look(lambda tx: queries.get_many(tx, task_ids))

    async def list_tasks(self, which: TaskFilter, page: Page) -> list[TaskView]:
        return await self.look(lambda tx: queries.list_tasks(tx, which, page))

    async def peek(self, queue: str, count: int) -> list[TaskView]:
        return await self.look(lambda tx: queries.peek(tx, queue, count))

    async def history(
        self, task_id: TaskId, after: int = 0, count: int = 100
    ) -> list[HistoryEntry]:
        return await self.look(lambda tx: queries.history(tx, task_id, after, count))

    async def attempts(self, task_id: TaskId) -> list[AttemptView]:
        return await self.look(lambda tx: queries.attempts(tx, task_id))

    async def outputs(self, task_id: TaskId) -> list[OutputView]:
        return await self.look(lambda tx: queries.outputs(tx, task_id))

    async def values_of(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, str]:
        return await self.look(lambda tx: queries.values_of(tx, task_ids))

    async def usage(self, task_id: TaskId) -> list[UsageView]:
        return await self.look(lambda tx: queries.usage(tx, task_id))

    async def edges(self, task_id: TaskId) -> list[EdgeView]:
        return await self.look(lambda tx: queries.edges(tx, task_id))

    async def ended_attempts(self, count: int) -> list[EndedAttempt]:
        # Only whoever asks for figures needs it.
        from tidewheel.store.operations import statistics  # noqa: PLC0415

        return await self.look(lambda tx: statistics.ended_attempts(tx, count))

    async def queues(self) -> list[QueueView]:
        return await self.look(queries.queues)

    async def ready_queues(self) -> Mapping[str, int]:
        return await self.look(lambda tx: dict(tx.rows("list_ready_queues")))

    async def workers(self, *, live_only: bool = True) -> list[WorkerView]:
        return await self.look(lambda tx: queries.workers(tx, live_only=live_only))

    async def verify(self) -> list[Violation]:
        return await self.look(queries.verify)

    async def now(self) -> Instant:
        return await self.look(lambda tx: Instant(tx.rows("get_now")[0][0]))

    async def store_id(self) -> str:
        return await self.look(lambda tx: str(tx.rows("get_store_id")[0][0]))

    # ---- being told ----

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell_listeners(self, wake: Wake) -> None:
        """Call everybody in this process who waits; from any thread."""
        for listener in tuple(self._listeners):
            listener(wake)

    async def _write(self, operation: str, script: WritingScript[Result]) -> Result:
        # Fresh effects for each run of the script: one that is undone must wake nobody.
        effects = Effects()

        def attempt(tx: Transaction) -> Result:
            nonlocal effects
            effects = Effects()
            answer = script(tx, effects)
            self._failpoint(f"{operation}_before_commit")
            return answer

        def news() -> Wake | None:
            return effects.wake()  # of the run of the script that counts

        result = await self.transact(attempt, news)
        self._failpoint(f"{operation}_after_commit")
        if wake := effects.wake():
            self.tell_listeners(wake)
        return result
