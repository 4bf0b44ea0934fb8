"""Stops the jobs of cancelled tasks as soon as the store says that there are some.

The push may get lost; then the next heartbeat says the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.core.queue.task import WorkerId
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.service import Service, ServiceReport, Surroundings
from tidewheel.worker.attempts import StopReason
from tidewheel.worker.jobs import Jobs


class Cancellations(Service):
    """Woken when a task of this worker was cancelled."""

    def __init__(
        self, store: TaskStore, worker: WorkerId, jobs: Jobs, surroundings: Surroundings
    ) -> None:
        super().__init__("cancellations", surroundings)
        self._store = store
        self._worker = worker
        self._jobs = jobs

    def rest_seconds(self) -> float | None:
        return None

    async def run_once(self) -> Sequence[ServiceReport]:
        if not len(self._jobs):
            return ()
        for key in await self._store.cancelling(self._worker):
            self._jobs.stop_by_key(key, StopReason.CANCEL)
        return ()
