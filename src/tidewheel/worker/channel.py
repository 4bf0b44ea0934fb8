"""News from a server for a worker that has no store of its own: what to cancel, where is work.

A channel that broke, or was never opened, costs nothing but time: the next poll and the next
heartbeat say the same. Whenever it is opened, the server begins with all that is to be
cancelled, and says that there may be work, since nobody knows what was said meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import Refused
from tidewheel.services.service import Service, ServiceReport, Surroundings
from tidewheel.worker.attempts import AttemptKey

REOPEN_SECONDS_MAX = 1.0  # after a server closed it, each worker at a time of its own
REFUSED_SECONDS = 30.0

# What to cancel, as (id, attempt); None: there may be work.
OpenChannel = Callable[[WorkerId], AsyncIterator[tuple[TaskId, int] | None]]


class Channel(Service):
    """Listens for as long as the worker lives."""

    def __init__(
        self,
        open_channel: OpenChannel,
        worker: WorkerId,
        surroundings: Surroundings,
        on_work: Callable[[], None],
        on_cancel: Callable[[AttemptKey], None],
    ) -> None:
        super().__init__("channel", surroundings)
        self._open = open_channel
        self._worker = worker
        self._on_work = on_work
        self._on_cancel = on_cancel
        self._rest_seconds = 0.0

    def rest_seconds(self) -> float | None:
        return self._rest_seconds

    async def run_once(self) -> Sequence[ServiceReport]:
        """One connection, to its end."""
        try:
            await self._listen()
        except Refused as refused:  # the worker goes on without
            self._rest_seconds = REFUSED_SECONDS
            return [self.report("channel.refused", code=refused.code, error=str(refused))]
        self._rest_seconds = REOPEN_SECONDS_MAX * self._surroundings.chance.random()
        return ()

    async def _listen(self) -> None:
        async for news in self._open(self._worker):
            if news is None:
                self._on_work()
            else:
                self._on_cancel(news)
