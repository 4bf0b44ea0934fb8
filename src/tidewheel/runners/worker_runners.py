"""Every runner of one worker, made and stopped together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidewheel.config import WorkerSettings
from tidewheel.failpoints import Failpoint
from tidewheel.ports import Runner
from tidewheel.runners.handlers import Handlers
from tidewheel.runners.job_environment import RunAids
from tidewheel.runners.messages import MessageServer
from tidewheel.runners.others import RunnerParts, open_runner
from tidewheel.runners.own_programs import write_programs
from tidewheel.runners.python import PythonRunner
from tidewheel.runners.shell import ShellRunner
from tidewheel.runners.usage import UsageSampler


class WorkerRunners:
    """Commands by bash, handlers if there are any, and what else the settings name."""

    def __init__(
        self,
        settings: WorkerSettings,
        messages: MessageServer,
        handlers: Handlers | None,
        *,
        environ: Mapping[str, str],
        failpoint: Failpoint,
    ) -> None:
        self._sampler = UsageSampler(settings.usage_interval_seconds)
        aids = RunAids(programs=write_programs(settings.home))
        self._shell = ShellRunner(
            environ=environ,
            messages=messages,
            sampler=self._sampler,
            tie_jobs=settings.tie_jobs,
            failpoint=failpoint,
            limits=settings.job_limits,
            aids=aids,
        )
        parts = RunnerParts(
            environ=environ,
            messages=messages,
            limits=settings.job_limits,
            aids=aids,
            usage_interval_seconds=settings.usage_interval_seconds,
            failpoint=failpoint,
        )
        self._others = [open_runner(name, parts) for name in settings.runners]
        self._python = None
        if handlers is not None:
            self._python = PythonRunner(
                handlers,
                threads=settings.slots,
                message_bytes_max=messages.message_bytes_max,
            )

    @property
    def all(self) -> list[Runner]:
        return [self._shell, *self._others, *([self._python] if self._python else [])]

    def tell_trouble_to(self, hear: Callable[[str | None], None]) -> None:
        """Who is told when an engine is out of reach, and (None) when it is back."""
        for other in self._others:
            other.tell_trouble_to(hear)

    def stop(self) -> None:
        """What they hold of this machine is let go."""
        self._sampler.stop()
        self._shell.stop()
        for other in self._others:
            other.stop()
        if self._python is not None:
            self._python.stop()
