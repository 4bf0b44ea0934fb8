"""Remembers what keeps a worker from starting jobs, and when it tries again.

A full disk is the worker's trouble, not the task's. The task goes back without a failure; the
worker takes no other until a back-off has passed, and then one, to see whether it can.
"""

from __future__ import annotations

import math

from tidewheel.services.service import Backoff, ServiceReport, Surroundings
from tidewheel.services.wakeup import Wakeup

CLAIMS = "claims"  # the service that rests while the host is in trouble
PATIENCE = Backoff(first_seconds=2.0, seconds_max=60.0)


class HostHealth:
    """Jobs and runners say what they meet, claims ask; from the worker's loop alone."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._clock = surroundings.clock
        self._chance = surroundings.chance
        self._on_report = surroundings.on_report
        self.claims_wakeup = Wakeup(surroundings.clock)  # rung when a claim may be tried
        self._failures = 0
        self._retry_at = -math.inf  # a local clock may begin anywhere
        self.text: str | None = None  # None: all is well
        self.text_told: str | None = None  # what the store knows

    def hear(self, text: str | None) -> None:
        """Notes that a job could not be started on this host, or could again (None)."""
        if not self._note(text):
            return
        if text is None:
            self._tell("worker.able")
        else:
            self._tell("worker.unable", error=text, delay_seconds=self.rest_seconds)
        self.claims_wakeup.ring()

    def _tell(self, event: str, **facts: object) -> None:
        self._on_report(ServiceReport(service=CLAIMS, event=event, facts=facts))

    def _note(self, text: str | None) -> bool:
        """Returns whether that is news."""
        if text is None:
            is_news = self.text is not None
            self.text, self._failures, self._retry_at = None, 0, -math.inf
            return is_news
        is_news = self.text is None
        self.text = text
        if is_news:
            self.try_later()
        return is_news

    def claimable(self, count: int) -> int:
        """Returns how many of ``count`` tasks to take now."""
        if self.text is None:
            return count
        return min(count, 1) if self.rest_seconds <= 0.0 else 0

    def try_later(self) -> None:
        """Waits as if the last try had failed, since its outcome is unknown."""
        self._failures += 1
        delay = PATIENCE.delay_seconds(self._failures, self._chance)
        self._retry_at = self._clock.monotonic() + delay

    @property
    def rest_seconds(self) -> float:
        """Returns the time until the next try."""
        return max(0.0, self._retry_at - self._clock.monotonic())
