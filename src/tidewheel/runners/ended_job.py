"""A job that was over when it was looked at."""

from __future__ import annotations

from tidewheel.core.queue.steps import End


class EndedJob:
    """Answers at once."""

    def __init__(self, end: End) -> None:
        self._end = end

    async def wait(self) -> End:
        """How it ended."""
        return self._end

    async def stop(self, grace_seconds: float) -> None:
        """There is nothing to end."""
