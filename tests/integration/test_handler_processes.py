"""Handlers of events are real commands, and mail goes to a real server."""

import asyncio
import os

from tests.support.mail_server import mail_server
from tests.support.patience import eventually
from tidewheel.core.graph.definition import Events, NodeDef
from tidewheel.formats.flow_cylc.settings import WorkflowEvents, WorkflowMail
from tidewheel.runners.event_handlers import HandlerCommand, run_handler
from tidewheel.runners.processes import read_row
from tidewheel.scheduler.event_handlers import (
    EventHandlers,
    HandledNotice,
    HandledRun,
    HandlerSurroundings,
    TaskFacts,
)
from tidewheel.scheduler.mail import Mailer, MailSettings
from tidewheel.services.service import SystemClock

RUN = HandledRun(name="flow/run1", owner="ada")


def ended(directory, command, **limits):
    environment = {"PATH": os.environ["PATH"], "GREETING": "hello"}
    one = HandlerCommand(
        command=command, directory=directory, environment=environment, **limits
    )
    return asyncio.run(run_handler(one))


def is_gone(pid):
    row = read_row(pid)
    return row is None or row.ended


def test_a_handler_runs_by_bash_in_the_run_directory_with_the_given_environment(tmp_path):
    end = ended(tmp_path, '[[ -t 0 ]] || echo "$GREETING from $PWD with ${HOME-nothing}"')
    assert (end.status, end.reason) == (0, "")
    assert end.output == f"hello from {tmp_path} with nothing\n"


def test_how_a_handler_failed_is_said(tmp_path):
    end = ended(tmp_path, "echo no disk >&2; exit 3")
    assert (end.status, end.reason, end.output) == (3, "exit status 3", "no disk\n")
    assert ended(tmp_path, "kill -9 $$").reason == "it was ended by SIGKILL"
    assert "could not be started" in ended(tmp_path / "missing", "true").reason
    assert "could not be started" in ended(tmp_path, "echo a\0b").reason


def test_a_handler_that_does_not_end_is_killed_with_all_that_it_started(tmp_path):
    end = ended(tmp_path, "sleep 60 & echo $!; wait", seconds_max=3)
    assert end.reason == "it took more than 3 seconds and was killed"
    pid = int(end.output)
    eventually(lambda: is_gone(pid), "the sleep is gone")


def test_what_a_handler_leaves_running_is_not_waited_for(tmp_path):
    end = ended(tmp_path, "sleep 60 & echo $!", seconds_max=30)
    assert end.status == 0
    os.kill(int(end.output), 9)


def test_only_the_beginning_of_what_a_handler_prints_is_kept(tmp_path):
    end = ended(tmp_path, "yes | head -c 1000000", output_bytes_max=100)
    assert end.output == "y\n" * 50 + "\n… and 999900 bytes more"


def handlers(directory, smtp, reports, **events):
    clock = SystemClock()
    settings = MailSettings(smtp=smtp, retry_delays_seconds=())
    mailer = Mailer(
        RUN, WorkflowMail(to="a@x.org, b@x.org"), clock, settings, on_report=reports.append
    )
    around = HandlerSurroundings(
        run=RUN,
        directory=directory,
        environment={"PATH": os.environ["PATH"]},
        clock=clock,
        mailer=mailer,
        on_report=reports.append,
    )
    return EventHandlers(WorkflowEvents(**events), around)


def test_a_failed_task_is_handled_and_mailed(tmp_path):
    async def fail():
        reports = []
        async with mail_server() as server:
            both = handlers(tmp_path, server.address, reports)
            events = Events(
                handlers=(("failed", ("echo %(id)s %(message)s >> told",)),),
                mail_events=("failed",),
            )
            task = TaskFacts(node=NodeDef(name="foo", events=events), point="1", submit=1)
            both.notice(HandledNotice(event="failed", message="it is over", task=task))
            await both.drain(20)
        return server, reports

    server, reports = asyncio.run(fail())
    assert (tmp_path / "told").read_text() == "1/foo it is over\n"
    (mail,) = server.mails
    assert mail["Subject"] == "[1/foo/01 failed] flow/run1"
    assert "message: it is over" in mail.get_content()
    assert server.recipients == ["<a@x.org>", "<b@x.org>"]
    assert [one.event for one in reports] == ["mail.sent"]


def test_a_server_that_refuses_and_one_that_is_not_there_are_reported(tmp_path):
    async def mail():
        reports = []
        async with mail_server(refuses=True) as server:
            refused = handlers(tmp_path, server.address, reports, mail_events=("stall",))
            refused.notice(HandledNotice(event="stall"))
            await refused.drain(20)
            address = server.address
        missing = handlers(tmp_path, address, reports, mail_events=("stall",))
        missing.notice(HandledNotice(event="stall"))
        await missing.drain(20)
        return reports

    assert [one.event for one in asyncio.run(mail())] == ["mail.failed", "mail.failed"]
