"""Every runner passes the one suite for runners."""

import asyncio
import os
import threading
from contextlib import asynccontextmanager, suppress

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    JOBS_AT_ONCE,
    SPOKEN,
    Behaviour,
    ProcessRunnerConformance,
    RunnerConformance,
    claimed,
)
from tests.support.runner_commands import command
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.python.runner import Handlers, PythonRunner
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tidewheel.runners.usage import UsageSampler


class TestShellRunner(ProcessRunnerConformance):
    ties_jobs = False

    @asynccontextmanager
    async def open_runner(self, home):
        messages, sampler = MessageServer(home), UsageSampler(0.05)
        await messages.start()
        try:
            yield ShellRunner(
                RunnerParts(environ=os.environ, messages=messages),
                sampler=sampler,
                tie_jobs=self.ties_jobs,
            )
        finally:
            sampler.stop()
            await messages.stop()

    def task(self, behaviour, mailbox, **fields):
        return claimed(command=command(behaviour, mailbox), **fields)


class TestShellRunnerWithTiedJobs(TestShellRunner):
    ties_jobs = True


class TestPythonRunnerWithFunctions(RunnerConformance):
    @asynccontextmanager
    async def open_runner(self, home):
        released = threading.Event()
        runner = PythonRunner(functions(home / "mailbox", released), threads=JOBS_AT_ONCE)
        yield runner
        released.set()
        runner.stop()

    def task(self, behaviour, _mailbox, **fields):
        return claimed(handler=behaviour.value, **fields)


class TestPythonRunnerWithCoroutines(RunnerConformance):
    @asynccontextmanager
    async def open_runner(self, home):
        released = asyncio.Event()
        yield PythonRunner(coroutines(home / "mailbox", released))
        released.set()

    def task(self, behaviour, _mailbox, **fields):
        return claimed(handler=behaviour.value, **fields)


def functions(mailbox, released):
    handlers = Handlers()

    @handlers.register(Behaviour.SUCCEED)
    def succeed(spec, _job):
        return {"spec": spec}

    @handlers.register(Behaviour.FAIL)
    def fail(_spec, _job):
        raise LookupError("it was set to fail")

    @handlers.register(Behaviour.SPEAK)
    def speak(_spec, job):
        say_everything(job)

    @handlers.register(Behaviour.REPEAT_SPEC)
    def repeat_spec(spec, job):
        job.message(spec["say"])

    @handlers.register(Behaviour.LAST)
    def last(_spec, job):
        mailbox.write_text("there\n")
        while not job.wait_for_stop(DEADLINE_SECONDS):
            assert not job.should_stop()
        raise InterruptedError("it was asked to end")

    @handlers.register(Behaviour.REFUSE_TO_END)
    def refuse_to_end(_spec, _job):
        mailbox.write_text("there\n")
        released.wait()

    return handlers


def coroutines(mailbox, released):
    handlers = Handlers()

    @handlers.register(Behaviour.SUCCEED)
    async def succeed(spec, _job):
        return {"spec": spec}

    @handlers.register(Behaviour.FAIL)
    async def fail(_spec, _job):
        raise LookupError("it was set to fail")

    @handlers.register(Behaviour.SPEAK)
    async def speak(_spec, job):
        say_everything(job)

    @handlers.register(Behaviour.REPEAT_SPEC)
    async def repeat_spec(spec, job):
        job.message(spec["say"])

    @handlers.register(Behaviour.LAST)
    async def last(_spec, job):
        mailbox.write_text("there\n")
        await job.stopped()

    @handlers.register(Behaviour.REFUSE_TO_END)
    async def refuse_to_end(_spec, _job):
        mailbox.write_text("there\n")
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    return handlers


def say_everything(job):
    for text, output in SPOKEN:
        if output is None:
            job.message(text)
        else:
            job.output(output, text)
    job.progress(0.5)
