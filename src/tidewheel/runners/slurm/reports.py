"""What is said about a Slurm job, in an order that makes sense: who speaks has begun."""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.graph.outputs import SUBMITTED
from tidewheel.core.queue.requests import UsageSample
from tidewheel.ports.runners import JobReports
from tidewheel.runners.slurm.waits import is_of_queue


@dataclass(slots=True)
class SlurmReports:
    """The port ``JobReports``. A job on the worker's own host may be heard through its socket
    before a round of the watch sees that it has begun."""

    reports: JobReports
    begun: bool = False

    def started(self) -> None:
        """Tell it once."""
        if not self.begun:
            self.begun = True
            self.reports.started()

    def progress(self, value: float) -> None:
        self.started()
        self.reports.progress(value)

    def message(self, text: str, output: str | None = None) -> None:
        is_of_runner = output == SUBMITTED or (output is None and is_of_queue(text))
        if not is_of_runner:  # the runner itself says that before the job begins
            self.started()
        self.reports.message(text, output)

    def usage(self, sample: UsageSample) -> None:
        self.reports.usage(sample)
