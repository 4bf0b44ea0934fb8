"""Jobs of a run, started for real by the shell runner, without a scheduler or a store."""

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import fields

from tests.kit.runner_conformance import DEADLINE_SECONDS, RecordedReports, claimed
from tidewheel.core.graph.definition import NodeDef, Scripts
from tidewheel.core.queue.task import WorkerId
from tidewheel.runners.job_environment import RunAids, write_programs
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tidewheel.scheduler.submissions import JobFacts, JobWriter, RunFacts
from tidewheel.services.paths import tasks_directory
from tidewheel.worker.attempts import JobFolders

RUN = "flows/tide/run1"


def run_facts(**said):
    known = {
        "number": 7,
        "name": RUN,
        "workflow": "flows/tide",
        "queue": f"run:{RUN}",
        "initial": "1",
        "final": "3",
        "cycling_mode": "integer",
    }
    return RunFacts(**(known | said))


def job_facts(**said):
    known = {"point": "1", "submit": 1, "try_number": 1, "flows": frozenset({1})}
    return JobFacts(**(known | said))


def node(name="foo", *, lineage=None, **said):
    scripts = {one.name: said.pop(one.name) for one in fields(Scripts) if one.name in said}
    family = lineage or (name, "root")
    return NodeDef(name=name, lineage=family, scripts=Scripts(**scripts), **said)


def submission(node, *, run=None, attempt=1, **facts):
    """The task of one submission, as a worker would claim it."""
    new = JobWriter(run or run_facts()).new_task(node, job_facts(**facts))
    return claimed(
        attempt=attempt,
        id=new.id,
        command=new.command,
        name=new.name,
        queue=new.queue,
        run=new.run,
        timeout_seconds=new.timeout_seconds,
    )


def assigned_in(home, task):
    secret = f"secret-of-{task.id}-{task.attempt}"
    folders = JobFolders(home, tasks_directory(home, "store"), new_secret=lambda: secret)
    return folders.assignment(task, WorkerId("w1"))


@asynccontextmanager
async def open_runner(home, *, calls=None, environ=os.environ, **options):
    messages = MessageServer(home, calls=calls)
    await messages.start()
    try:
        aids = RunAids(programs=write_programs(home))
        yield ShellRunner(RunnerParts(environ=environ, messages=messages, aids=aids), **options)
    finally:
        await messages.stop()


class Ran:
    """How a job went, and what it left."""

    def __init__(self, home, end, directory, reports):
        self.home, self.end, self.directory, self.reports = home, end, directory, reports
        self.run = home / "runs" / RUN

    @property
    def status(self):
        return self.end.exit_status

    @property
    def out(self):
        return (self.directory / "job.out").read_text()

    @property
    def err(self):
        return (self.directory / "job.err").read_text()


async def play(home, task, *, during=None, **options):
    """Run a task to its end; `during(runner's job, reports)` may interfere."""
    assignment = assigned_in(home, task)
    async with open_runner(home, **options) as runner:
        reports = RecordedReports()
        job = await runner.start(assignment, reports)
        async with asyncio.timeout(DEADLINE_SECONDS):
            if during is not None:
                await during(job, assignment.directory)
            end = await job.wait()
            await job.stop(0)
    return Ran(home, end, assignment.directory, reports)


def run_node(home, node, *, run=None, attempt=1, during=None, calls=None, **facts):
    task = submission(node, run=run, attempt=attempt, **facts)
    return asyncio.run(play(home, task, during=during, calls=calls))
