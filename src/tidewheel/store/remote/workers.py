"""Holds what workers ask of a server: claims, heartbeats, reports, a channel, logs, tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from tidewheel.api.operation import ServiceName
from tidewheel.api.operations import check_worker
from tidewheel.api.tasks import Task
from tidewheel.api.wire import Fields, read, read_all
from tidewheel.config import StoreSettings
from tidewheel.core.queue.lease import Holder, LeaseAnswer, check_lease_seconds, check_progress
from tidewheel.core.queue.requests import (
    Beat,
    Claimed,
    ClaimedTasks,
    ClaimRequest,
    NewWorker,
    Report,
    Reported,
)
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.submission import message_refusal
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.core.queue.tokens import attempt_token, secret_digest, split_token
from tidewheel.errors import NotFound, Refused
from tidewheel.store.remote.connection import path_of
from tidewheel.store.remote.operations import (
    ServerPart,
    claim_body,
    in_portions,
    is_possible,
    json_list,
    report_body,
    task_path,
    worker_body,
)
from tidewheel.store.remote.transport import ReceivedProblem, Transport, refusal_from
from tidewheel.store.rows import storable

if TYPE_CHECKING:
    from tidewheel.store.remote.runs import RemoteRunDoor

TROUBLE_LENGTH_MAX = 1_000


class BeatAnswer(msgspec.Struct):
    """Holds the answer to a heartbeat for one lease."""

    answer: LeaseAnswer


class ReportAnswer(msgspec.Struct):
    """Holds the status after a report, or why the report was refused."""

    id: str
    status: Status | None
    refused: ReceivedProblem | None = None


class _Claims(msgspec.Struct):
    """Holds the answer to a claim; an older server does not say when the next task is due."""

    tasks: list[Fields]
    next_due_s: float | None = None


class RemoteWorkers(ServerPart):
    """Implements the operations of a Store that workers use, over HTTP."""

    async def register_worker(self, worker: NewWorker) -> WorkerId:
        response = await self.transport.call("POST", "/workers", body=worker_body(worker))
        return WorkerId(response.part("id", str))

    async def set_trouble(self, worker: WorkerId, trouble: str | None) -> None:
        told = None if trouble is None else storable(trouble)[:TROUBLE_LENGTH_MAX]
        await self.ask(ServiceName.STORE, "set_trouble", {"worker": worker, "trouble": told})

    async def claim(self, request: ClaimRequest) -> ClaimedTasks:
        """Claims tasks; never asks twice, since an answer that was lost may hold tasks."""
        if request.lease_seconds is not None:
            check_lease_seconds(request.lease_seconds)
        if not is_possible(request.queue):
            return ClaimedTasks()
        path = path_of("queues", request.queue, "claim")
        response = await self.transport.call("POST", path, body=claim_body(request))
        told = response.read(_Claims)
        return ClaimedTasks(read_all(Claimed, told.tasks), told.next_due_s)

    async def claim_by_id(
        self, task_id: TaskId, worker: WorkerId, lease_seconds: float | None = None
    ) -> Claimed:
        if lease_seconds is not None:
            check_lease_seconds(lease_seconds)
        body = {"worker": worker, "lease_s": lease_seconds}
        path = task_path(task_id, "claim")
        return read(Claimed, (await self.transport.call("POST", path, body=body)).read(Fields))

    async def heartbeat(self, worker: WorkerId, beats: Sequence[Beat]) -> list[LeaseAnswer]:
        for beat in beats:
            check_progress(beat.progress)
        good = [beat for beat in beats if is_possible(beat.task_id)]
        body = {
            "worker": worker,
            "beats": [
                {"id": beat.task_id, "attempt": beat.attempt, "progress": beat.progress}
                for beat in good
            ],
        }
        try:
            response = await self.transport.call("POST", "/heartbeats", body=body, again=True)
        except NotFound:
            return [LeaseAnswer.LOST] * len(beats)  # the worker is forgotten: it holds nothing
        rest = iter(response.part("answers", list[BeatAnswer]))
        return [
            next(rest).answer if is_possible(beat.task_id) else LeaseAnswer.LOST
            for beat in beats
        ]

    async def report(self, reports: Sequence[Report]) -> list[Reported]:
        """Sends reports, and returns what became of each, in their order.

        Those of a worker go in few requests; too large ones are refused here.
        """
        refused = {
            position: Reported(task_id=one.holder.task_id, refused=why)
            for position, one in enumerate(reports)
            if (why := _no_task(one.holder) or message_refusal(one, self._limits))
        }
        good = [one for position, one in enumerate(reports) if position not in refused]
        answers: list[Reported] = []
        for worker, some in groupby(good, lambda one: one.holder.worker):
            answers += await self._report(worker, list(some))
        rest = iter(answers)
        return [refused.get(position) or next(rest) for position in range(len(reports))]

    async def _report(self, worker: WorkerId, reports: list[Report]) -> list[Reported]:
        answers: list[Reported] = []
        try:
            for some in in_portions(msgspec.json.encode(report_body(one)) for one in reports):
                body = {"worker": worker, "reports": msgspec.Raw(json_list(some))}
                response = await self.transport.call("POST", "/reports", body=body)
                told = response.part("answers", list[ReportAnswer])
                answers += [
                    Reported(
                        task_id=TaskId(one.id),
                        status=one.status,
                        refused=refusal_from(one.refused),
                    )
                    for one in told
                ]
        except NotFound:  # a worker that was forgotten holds nothing
            return answers + [await self._lost(one.holder) for one in reports[len(answers) :]]
        return answers

    async def _lost(self, holder: Holder) -> Reported:
        try:
            response = await self.transport.call("GET", task_path(holder.task_id))
            task = read(Task, response.read(Fields))
        except NotFound as error:
            return Reported(task_id=holder.task_id, refused=error)
        return Reported(task_id=task.id, refused=task.lease_lost(holder.worker, holder.attempt))

    async def cancelling(self, worker: WorkerId) -> list[tuple[TaskId, int]]:
        try:
            check_worker(worker)
            path = path_of("workers", worker, "cancelling")
            response = await self.transport.call("GET", path)
        except NotFound:
            return []  # a worker that was deleted holds nothing
        return [(TaskId(one["id"]), one["attempt"]) for one in response.json["leases"]]

    async def adopt(self, holder: Holder, new_owner: WorkerId) -> Claimed:
        body = {"worker": new_owner, "attempt": holder.attempt, "owner": holder.worker}
        path = task_path(holder.task_id, "adopt")
        return read(Claimed, (await self.transport.call("POST", path, body=body)).read(Fields))


def _no_task(holder: Holder) -> NotFound | None:
    return None if is_possible(holder.task_id) else NotFound("task", holder.task_id)


# Beyond a store: a channel, logs, tokens for jobs.

RAW = {"content-type": "application/octet-stream"}
TAKES_NO_MORE = (0, True)
VOICES_MAX = 10_000


async def channel(
    transport: Transport, worker: WorkerId
) -> AsyncIterator[tuple[TaskId, int] | None]:
    """Yields what a server tells a worker at once: an attempt to cancel, or None.

    None means that there may be work.
    """
    async for event in transport.events(path_of("workers", worker, "channel")):
        if event.event == "wake":
            yield None
        elif event.event == "cancel":
            said = event.json
            yield TaskId(said["id"]), int(said["attempt"])


class LogSender:
    """Sends parts of logs, unless the server finds them in a folder that both share."""

    def __init__(self, transport: Transport, own_home_id: Callable[[], str | None]) -> None:
        self._transport, self._own_home_id = transport, own_home_id
        self._is_shared: bool | None = None

    async def send(
        self, holder: Holder, stream: str, offset: int, content: bytes
    ) -> tuple[int, bool]:
        """Sends a part of a log; returns the size of the server's copy, and if it is full."""
        if await self._shares_folder():
            return TAKES_NO_MORE
        response = await self._transport.call(
            "PUT",
            path_of("tasks", holder.task_id, "logs", stream),
            query={"worker": holder.worker, "attempt": holder.attempt, "offset": offset},
            body=content,
            headers=RAW,
            again=True,
        )
        end = response.json
        return int(end["size"]), bool(end["full"])

    async def _shares_folder(self) -> bool:
        if self._is_shared is None:
            theirs = (await self._transport.call("GET", "/home")).json["id"]
            # Read after it was asked for: the server may have made it for us.
            self._is_shared = theirs == self._own_home_id()
        return self._is_shared


class JobVoices:
    """Keeps the tokens with which a worker's jobs, or the worker for them, call the server."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._parent = split_token(settings.credentials.token or "")
        self._tokens: dict[TaskId, str] = {}

    def environment(self, task: Claimed) -> dict[str, str]:
        """Returns the variables with which a job reaches the server from wherever it runs.

        The server gives a token for it with the task. One of an earlier version gives none: it
        takes one that is made of the worker's own token, if the worker has any.
        """
        token = task.token
        if token is None and self._parent is not None:
            number, secret = self._parent
            key, place = secret_digest(secret).encode(), (task.id, task.seq)
            token = attempt_token(number, key, place, task.attempt)
        if token is None:
            return {}
        if len(self._tokens) >= VOICES_MAX:
            self._tokens.pop(next(iter(self._tokens)))
        self._tokens.pop(task.id, None)
        self._tokens[task.id] = token
        told = {"TIDEWHEEL_SERVER": self._settings.url, "TIDEWHEEL_TOKEN": token}
        if self._settings.credentials.ca is not None:
            told["TIDEWHEEL_CA"] = self._settings.credentials.ca
        return told

    @asynccontextmanager
    async def speaking_for(self, task_id: TaskId) -> AsyncIterator[RemoteRunDoor]:
        """Yields the service for runs with the token of a job: it may do what the job may.

        Raises Refused if this worker runs no such job.
        """
        from tidewheel.store.remote.runs import RemoteRunDoor  # noqa: PLC0415 - for few

        token = self._tokens.get(task_id)
        if token is None:
            raise Refused(f"nothing here reports for task {task_id!r}")
        ca = self._settings.credentials.ca
        transport = Transport(self._settings.url, token, origin=f"job {task_id}", ca=ca)
        try:
            yield RemoteRunDoor(transport)
        finally:
            await transport.close()
