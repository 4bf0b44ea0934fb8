"""Jobs call their run through their worker: who may, how it is answered, what is refused."""

import asyncio
import json
import os
from contextlib import asynccontextmanager

import pytest

from tests.kit.runner_conformance import DEADLINE_SECONDS, RecordedReports
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import Declined, Refused, StoreBusy, Unavailable
from tidewheel.runners.messages.client import call_run, send_message
from tidewheel.runners.messages.server import MessageServer

SECRET = "a secret"
CALLER = TaskId("flow/run1/1/foo/1")


class Job:
    """A job with a secret, and its worker's socket."""

    def __init__(self, server, directory):
        self.server, self.directory = server, directory
        self.reports = RecordedReports()

    async def calls(self, call):
        return await asyncio.to_thread(call_run, self.directory, SECRET, call)

    async def sends(self, line):
        folder = os.open(self.directory, os.O_PATH)
        try:
            reader, writer = await asyncio.open_unix_connection(
                f"/proc/self/fd/{folder}/job.socket"
            )
        finally:
            os.close(folder)
        writer.write(line + b"\n")
        answer = json.loads(await reader.readline())
        writer.close()
        return answer


@asynccontextmanager
async def job_with(home, hook, caller=CALLER):
    server = MessageServer(home, calls=hook)
    await server.start()
    try:
        directory = home / "job"
        directory.mkdir()
        job = Job(server, directory)
        server.expect(SECRET, directory, job.reports, caller)
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield job
    finally:
        await server.stop()


LONG = "ü" * 1_000_000


async def echo(caller, call):
    return {"from": caller, "call": call, "more": LONG}


def test_a_call_is_answered_to_whom_it_came_from(tmp_path):
    async def scenario():
        async with job_with(tmp_path, echo) as job:
            return await job.calls({"look": "show"})

    answer = asyncio.run(scenario())
    assert answer == {"from": CALLER, "call": {"look": "show"}, "more": LONG}


@pytest.mark.parametrize(("hook", "caller"), [(None, CALLER), (echo, None)])
def test_who_belongs_to_no_run_may_not_call(tmp_path, hook, caller):
    async def scenario():
        async with job_with(tmp_path, hook, caller) as job:
            await job.calls({"look": "show"})

    with pytest.raises(Refused, match="belongs to no run"):
        asyncio.run(scenario())


def test_a_job_that_has_ended_may_not_call(tmp_path):
    async def scenario():
        async with job_with(tmp_path, echo) as job:
            job.server.forget(SECRET)
            await job.calls({"look": "show"})

    with pytest.raises(Refused, match="has ended"):
        asyncio.run(scenario())


@pytest.mark.parametrize("call", ["text", 7, None, ["a"]])
def test_what_is_no_call_is_refused(tmp_path, call):
    async def scenario():
        async with job_with(tmp_path, echo) as job:
            return await job.sends(json.dumps({"secret": SECRET, "call": call}).encode())

    assert "JSON object" in asyncio.run(scenario())["refused"]


@pytest.mark.parametrize(
    ("raised", "met"),
    [
        (Declined("no such task"), Declined),
        (Refused("not like this"), Refused),
        (StoreBusy("not now"), Refused),
    ],
)
def test_why_a_call_failed_comes_back(tmp_path, raised, met):
    async def fail(_caller, _call):
        raise raised

    async def scenario():
        async with job_with(tmp_path, fail) as job:
            await job.calls({"command": {}})

    with pytest.raises(met, match=str(raised)):
        asyncio.run(scenario())


def test_a_call_that_takes_its_time_holds_up_no_message(tmp_path):
    async def scenario():
        go_on = asyncio.Event()

        async def slow(_caller, _call):
            await go_on.wait()
            return {"done": True}

        async with job_with(tmp_path, slow) as job:
            answer = asyncio.create_task(job.calls({"command": {}}))
            await asyncio.to_thread(send_message, job.directory, SECRET, text="meanwhile")
            assert job.reports.messages == [("meanwhile", None)]
            go_on.set()
            return await answer

    assert asyncio.run(scenario()) == {"done": True}


def test_without_a_worker_a_call_is_unavailable(tmp_path):
    with pytest.raises(Unavailable, match="does not answer"):
        call_run(tmp_path, SECRET, {"look": "show"}, patience_seconds=0.1)
