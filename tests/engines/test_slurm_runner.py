"""The Slurm runner passes the one suite for runners, on a real Slurm of three nodes."""

import os
from contextlib import asynccontextmanager

import pytest

from tests.kit.runner_conformance import ProcessRunnerConformance, claimed
from tests.support.runner_commands import command
from tidewheel.core.queue.resources import Resources
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.slurm.directives import RUNNER_LABEL
from tidewheel.runners.slurm.runner import SlurmRunner

FOR_SLURM = Resources(labels=frozenset({RUNNER_LABEL}))


class TestSlurmRunner(ProcessRunnerConformance):
    @pytest.fixture(autouse=True)
    def _cluster(self, slurm):
        self.slurm = slurm

    @asynccontextmanager
    async def open_runner(self, home):
        messages = MessageServer(home)
        await messages.start()
        runner = SlurmRunner(
            RunnerParts(
                environ=os.environ | self.slurm.environment,
                messages=messages,
                usage_interval_seconds=0.05,
            )
        )
        try:
            yield runner
        finally:
            runner.stop()
            await messages.stop()

    def task(self, behaviour, mailbox, **fields):
        said = {"resources": FOR_SLURM} | fields
        return claimed(command=command(behaviour, mailbox), **said)
