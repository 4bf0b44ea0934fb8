"""Event handlers and mail that fail: nobody may believe that somebody was told."""

import json
import re
import signal

import pytest

from tests.support.ports import free_port

FLOW = """
[scheduler]
    [[mail]]
        task event batch interval = PT0S
[scheduling]
    [[graph]]
        R1 = load
[runtime]
    [[load]]
        script = false
        [[[events]]]
            failed handlers = no-such-program %(id)s
            handler retry delays = PT0S, PT1S
"""
BROKEN = (
    'event handler of 1/load/01 for the event "failed" failed: exit status 127; its last line: '
)


@pytest.fixture
def flow(tidewheel):
    folder = tidewheel.folder / "flow"
    folder.mkdir()
    (folder / "flow.cylc").write_text(FLOW)
    return folder / "flow.cylc"


@pytest.mark.usefixtures("flow")
def test_a_handler_that_fails_is_said_by_the_run_and_in_its_log(tidewheel):
    answer = tidewheel("run", "flow", "--stall-timeout", "0")
    assert answer.out.count(BROKEN) == 2  # with its retry
    assert "no-such-program: command not found" in answer.out
    assert BROKEN in tidewheel("log", "flow", "--level", "error").out


def test_mail_that_no_server_takes_is_said_by_the_run_and_in_its_log(tidewheel, flow):
    text = flow.read_text().replace(
        "failed handlers = no-such-program %(id)s", "mail events = failed"
    )
    flow.write_text(text)
    server = f"127.0.0.1:{free_port()}"
    answer = tidewheel("run", "flow", "--stall-timeout", "0", TIDEWHEEL_SMTP=server)
    for said in (answer.out, tidewheel("log", "flow", "--level", "error").out):
        assert re.search(r"no mail to \S+ was sent: .*refused", said)
        assert f"(mail server {server}; set TIDEWHEEL_SMTP to use another one)" in said


@pytest.mark.usefixtures("flow")
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_handler_that_fails_under_up_is_said_and_tried_again(tidewheel, form):
    """A fact of that name took the place of the event: the report broke the handler."""
    with tidewheel.started("run", "flow", "--pause") as run:
        run.read_until("paused")
        run.send(signal.SIGTERM)
        run.wait()
    as_json = ("--json",) if form == "json" else ()
    with tidewheel.started("up", "--port", "0", *as_json) as up:
        up.read_until("run.taken")
        assert tidewheel("resume", "flow").status == 0
        lines = [up.read_until("handler.failed") for _ in range(2)]
        assert not any("program.error" in line for line in up.lines)
    for line in lines:
        if form == "json":
            document = json.loads(line)
            assert (document["event"], document["handled"]) == ("handler.failed", "failed")
            assert (document["run"], document["error"]) == ("flow/run1", "exit status 127")
        else:
            assert f"flow/run1  {BROKEN}" in line
