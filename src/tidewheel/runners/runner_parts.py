"""Holds what the runners of a worker are made with; each takes of it what it needs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidewheel.config import JobLimits, WorkerSettings
from tidewheel.core.queue.submission import MESSAGE_BYTES_MAX
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.runners.job_environment import RunAids
from tidewheel.runners.messages.server import MessageServer

NO_LIMITS = JobLimits()
RUN_AIDS = RunAids(programs=Path(sys.executable).parent)
USAGE_INTERVAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerParts:
    """The parts that all runners of a worker share."""

    environ: Mapping[str, str]
    messages: MessageServer | None = None  # None: jobs cannot speak
    limits: JobLimits = NO_LIMITS
    aids: RunAids = RUN_AIDS
    usage_interval_seconds: float = USAGE_INTERVAL_SECONDS
    failpoint: Failpoint = go_on
    allow_compose: tuple[str, ...] = ()
    runners: tuple[str, ...] = ()  # all that the worker has

    @classmethod
    def of(
        cls,
        settings: WorkerSettings,
        messages: MessageServer,
        aids: RunAids,
        environ: Mapping[str, str],
        failpoint: Failpoint,
    ) -> RunnerParts:
        """Returns those of a worker with these settings."""
        return cls(
            environ=environ,
            messages=messages,
            limits=settings.job_limits,
            aids=aids,
            usage_interval_seconds=settings.usage_interval_seconds,
            failpoint=failpoint,
            allow_compose=settings.allow_compose,
            runners=settings.runners,
        )

    @property
    def message_bytes_max(self) -> int:
        """Returns how long a message may be."""
        return MESSAGE_BYTES_MAX if self.messages is None else self.messages.message_bytes_max
