"""Measures how long a job is prepared, and how long it runs.

A job begins when the first of its parts runs. What comes before is preparation: docker fetches
images and makes containers, for which the worker has a limit; until a Swarm has a node for a
part, it may wait for ever. Both clocks are kept in the job's folder, for an adopter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from tidewheel.core.queue.requests import End
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.quantities import show_duration
from tidewheel.runners.containers.outcome import failure
from tidewheel.runners.containers.project import Phase, ProjectPart
from tidewheel.runners.job_directory import write_whole

CLOCKS_NAME = "job.clocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptClocks:
    """Holds since when a job is prepared, and since when it runs, by the clock of this boot.

    A job of an earlier boot has no adopter.
    """

    preparing_at: float | None = None  # None: it is not, or waits for a node
    begun_at: float | None = None


def read_clocks(directory: Path) -> KeptClocks:
    """Returns the clocks that a worker kept of a job; none of them, if nothing was kept."""
    try:
        return msgspec.json.decode((directory / CLOCKS_NAME).read_bytes(), type=KeptClocks)
    except (OSError, ValueError):
        return KeptClocks()


class JobClocks:
    """Holds the clocks of one job; it is used from the worker's loop alone."""

    def __init__(self, directory: Path, prepare_seconds: float) -> None:
        self.directory, self.prepare_seconds = directory, prepare_seconds
        self._kept = read_clocks(directory)
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._kept.begun_at is not None:
            self._begun.set_result(None)

    @property
    def has_begun(self) -> bool:
        return self._begun.done()

    async def begun(self) -> float:
        """Waits until the job runs, and returns for how many seconds it has run by then."""
        await asyncio.shield(self._begun)
        assert self._kept.begun_at is not None
        return max(0.0, time.monotonic() - self._kept.begun_at)

    def begin(self, seconds_ago: float = 0.0) -> None:
        """Notes that the job runs, and since when."""
        self._keep(KeptClocks(begun_at=time.monotonic() - max(0.0, seconds_ago)))
        self._begun.set_result(None)

    def judge_preparation(self, parts: Iterable[ProjectPart]) -> End | None:
        """Returns the end of a job that is prepared for too long; None if it is not."""
        if self.has_begun:
            return None
        preparing = next((one for one in parts if one.phase is Phase.PREPARING), None)
        since = self._kept.preparing_at
        if preparing is None or since is None:
            if (preparing is None) != (since is None):
                at = None if preparing is None else time.monotonic()
                self._keep(KeptClocks(preparing_at=at))
            return None
        if time.monotonic() - since <= self.prepare_seconds:
            return None
        return self.too_slow(f"service {preparing.service}: no node began to run it")

    def too_slow(self, what: str) -> End:
        """Returns the end of a job whose preparation took too long."""
        limit = show_duration(self.prepare_seconds)
        words = (
            f"{what} within {limit}: that is the worker's limit for pulling images and "
            "creating containers (--prepare-limit), not the timeout of the stage"
        )
        return failure("prepare", words)

    def _keep(self, clocks: KeptClocks) -> None:
        self._kept = clocks
        with suppress(OSError):
            content = msgspec.json.encode(clocks)
            write_whole(self.directory / CLOCKS_NAME, content, mode=0o600)
