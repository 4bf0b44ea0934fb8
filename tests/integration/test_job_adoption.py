"""A kill -9 of the worker kills no job of a run: the next worker of the host finds it."""

import asyncio
import os
import shlex
import subprocess
import sys

from tests.kit.runner_conformance import DEADLINE_SECONDS, Mailbox, RecordedReports
from tests.support.run_jobs import assigned_in, node, open_runner, submission

# A worker in miniature: it starts one job of a run and waits for it, until it is killed.
WORKER = """
import asyncio, sys
from pathlib import Path
from tests.support.run_jobs import node, play, submission

asyncio.run(play(Path(sys.argv[1]), submission(node(main=sys.argv[2]), attempt=2)))
"""


async def orphan(home, script, mailbox):
    with subprocess.Popen((sys.executable, "-c", WORKER, str(home), script)) as worker:
        await mailbox.line()
        worker.kill()


def test_a_job_whose_worker_was_killed_is_found_where_it_left_its_files(tmp_path):
    mailbox, go_on = Mailbox(tmp_path / "mailbox"), tmp_path / "go_on"
    os.mkfifo(go_on)
    told, waits = shlex.quote(str(mailbox.path)), shlex.quote(str(go_on))
    script = f"cylc message before; echo up > {told}; read -r _ < {waits}; cylc message after"

    async def scenario():
        await orphan(tmp_path, script, mailbox)
        assignment = assigned_in(tmp_path, submission(node(), attempt=2))
        reports = RecordedReports()
        async with open_runner(tmp_path) as runner, asyncio.timeout(DEADLINE_SECONDS):
            job = await runner.adopt(assignment, reports)
            go_on.write_text("go\n")
            return await job.wait(), reports, assignment.directory

    end, reports, directory = asyncio.run(scenario())
    assert end.exit_status == 0
    assert reports.messages == [("before", None), ("after", None)]
    assert directory.name == "attempt-2"


def test_an_adopted_job_may_still_call_its_run(tmp_path):
    mailbox, go_on = Mailbox(tmp_path / "mailbox"), tmp_path / "go_on"
    os.mkfifo(go_on)
    told, waits = shlex.quote(str(mailbox.path)), shlex.quote(str(go_on))
    script = f"echo up > {told}; read -r _ < {waits}; cylc pause"
    calls = []

    async def answer(caller, call):
        calls.append((caller, call["command"]["verb"]))
        return {}

    async def scenario():
        await orphan(tmp_path, script, mailbox)
        assignment = assigned_in(tmp_path, submission(node(), attempt=2))
        async with (
            open_runner(tmp_path, calls=answer) as runner,
            asyncio.timeout(DEADLINE_SECONDS),
        ):
            job = await runner.adopt(assignment, RecordedReports())
            go_on.write_text("go\n")
            return (await job.wait()).exit_status

    assert asyncio.run(scenario()) == 0
    assert calls == [("flows/tide/run1/1/foo/1", "pause")]
