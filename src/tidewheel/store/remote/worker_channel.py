"""Gives a worker what it needs of a server beyond a store: a channel, logs, tokens for jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tidewheel.config import StoreSettings
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.core.queue.tokens import attempt_token, secret_digest, split_token
from tidewheel.errors import Refused
from tidewheel.store.remote.connection import path_of
from tidewheel.store.remote.runs import RemoteRunDoor
from tidewheel.store.remote.transport import Transport

RAW = {"content-type": "application/octet-stream"}
TAKES_NO_MORE = (0, True)
VOICES_MAX = 10_000


async def channel(
    transport: Transport, worker: WorkerId
) -> AsyncIterator[tuple[TaskId, int] | None]:
    """Yields the attempts to cancel; None: there may be work."""
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
    """The tokens of this worker's jobs, with which they, or the worker for them, speak."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._parent = split_token(settings.credentials.token or "")
        self._tokens: dict[TaskId, str] = {}

    def environment(self, task: Claimed) -> dict[str, str]:
        """Returns the variables with which a job reaches the server from wherever it runs."""
        if self._parent is None:
            return {}
        number, secret = self._parent
        place = (task.id, task.seq)
        token = attempt_token(number, secret_digest(secret), place, task.attempt)
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
        """Gives the service for runs with the token of a job: it may do what the job may."""
        token = self._tokens.get(task_id)
        if token is None:
            raise Refused(f"nobody here speaks for task {task_id!r}")
        ca = self._settings.credentials.ca
        transport = Transport(self._settings.url, token, origin=f"job {task_id}", ca=ca)
        try:
            yield RemoteRunDoor(transport)
        finally:
            await transport.close()
