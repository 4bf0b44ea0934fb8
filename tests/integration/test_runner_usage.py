"""What jobs use is sampled for the whole tree, and only while they run."""

import asyncio
import os
import shlex
import sys

import pytest

from tests.kit.runner_conformance import (
    LONG_GRACE_SECONDS,
    Mailbox,
    RecordedReports,
    assigned,
    claimed,
)
from tidewheel.core.queue.requests import UsageSample
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tidewheel.runners.usage import (
    CardReading,
    GpuUse,
    UsageSampler,
    open_gpus,
    use_by_process,
)

HELD_BYTES = 100_000_000

HOLDER = """
import signal, sys
held = b"x" * int(sys.argv[1])
with open(sys.argv[2], "w") as told:
    told.write("there\\n")
while True:
    signal.pause()
"""


def play(home, command, scenario, **options):
    async def on_stage():
        sampler = UsageSampler(0.05, **options)
        runner = ShellRunner(RunnerParts(environ=os.environ), sampler=sampler)
        reports = RecordedReports()
        assignment = assigned(claimed(command=command), home)
        job = await runner.start(assignment, reports)
        try:
            await scenario(job, reports, assignment.directory)
        finally:
            await job.stop(LONG_GRACE_SECONDS)
            sampler.stop()

    asyncio.run(on_stage())


@pytest.mark.req("R003-55")
def test_memory_is_that_of_the_whole_tree(tmp_path):
    mailbox = Mailbox(tmp_path / "mailbox")
    words = (sys.executable, "-c", HOLDER, str(HELD_BYTES), str(mailbox.path))
    holder = " ".join(map(shlex.quote, words))

    async def scenario(_job, reports, _directory):
        await mailbox.line()
        await mailbox.line()
        seen = len(reports.samples)
        await reports.until(lambda said: len(said.samples) > seen + 1)
        assert reports.samples[-1].memory_bytes > 2 * HELD_BYTES

    play(tmp_path, f"{holder} & setsid {holder} & wait", scenario)
    mailbox.close()


def test_cpu_counts_children_that_have_ended(tmp_path):
    # No process of this job lives long enough to be seen at work.
    command = "while :; do bash -c 'for i in {1..3000}; do :; done'; done"

    async def scenario(_job, reports, _directory):
        await reports.until(lambda said: any(s.cpu_percent > 10 for s in said.samples))

    play(tmp_path, command, scenario)


def test_a_job_that_has_ended_is_not_sampled(tmp_path):
    async def scenario(job, reports, _directory):
        await job.wait()
        seen = len(reports.samples)
        await job.stop(0)
        assert len(reports.samples) == seen

    play(tmp_path, "true", scenario)


def test_a_log_that_grows_too_large_is_cut_while_the_job_runs(tmp_path):
    command = "head -c 3000000 /dev/zero; sleep 600"

    async def scenario(_job, reports, directory):
        log = directory / "job.out"
        await reports.until(lambda _: log.exists() and 0 < log.stat().st_size < 1_000_000)

    play(tmp_path, command, scenario, log_bytes_max=1_000_000)


def test_no_library_or_no_card_means_no_gpu():
    gpus = open_gpus()
    assert gpus is None or gpus.read() is not None


def test_use_of_several_cards_is_added_up_by_process():
    first = CardReading(memory_bytes={10: 1000, 20: 0}, percent={10: 30.0})
    second = CardReading(memory_bytes={10: 500}, percent={10: 70.0, 30: 5.0})
    assert use_by_process([first, second]) == {
        10: GpuUse(percent=100.0, memory_bytes=1500),
        20: GpuUse(),
        30: GpuUse(percent=5.0),
    }


def test_gpu_use_is_that_of_the_jobs_own_processes(tmp_path):
    async def on_stage():
        sampler = UsageSampler(3600.0)
        runner = ShellRunner(RunnerParts(environ=os.environ), sampler=sampler)
        reports = RecordedReports()
        mailbox = Mailbox(tmp_path / "mailbox")
        command = f"echo $$ > {shlex.quote(str(mailbox.path))}; sleep 600"
        job = await runner.start(assigned(claimed(command=command), tmp_path), reports)
        pid = int(await mailbox.line())
        gpu = {pid: GpuUse(percent=12.0, memory_bytes=7), 1: GpuUse(percent=80.0)}
        sampler.run_once(gpu)
        await job.stop(LONG_GRACE_SECONDS)
        sampler.stop()
        mailbox.close()
        return reports.samples

    (sample,) = asyncio.run(on_stage())
    assert isinstance(sample, UsageSample)
    assert (sample.gpu_percent, sample.gpu_memory_bytes) == (12.0, 7)
