"""A log has one line per event, whatever is in it (S12)."""

import json
import subprocess
import sys

import pytest

from tests.kit.runner_conformance import claimed
from tidewheel.cli.service_log import Outage, ServiceLog
from tidewheel.runners.containers.stage_spec import stand_in
from tidewheel.services.service import ServiceReport

FAILING = """
import logging, sys
from tidewheel.cli.service_log import ServiceLog
from tidewheel.services.service import ServiceReport

journal = ServiceLog(as_json=sys.argv[1] == "json")
journal.hear_logs()
odd = "x\\r\\n2026-01-01T00:00:00Z  job.ended  forged\\x1b[2J\\u202e\\u2028"
try:
    raise ValueError(odd)
except ValueError:
    logging.getLogger("tidewheel.server").exception("request %s failed", odd)
logging.getLogger("uvicorn.error").warning("strangers speak nonsense")
facts = {"run": odd, "error": odd}
journal.report(ServiceReport(service="s", event="run.failed", facts=facts))
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_of_ours_with_its_traceback_is_one_line(form):
    done = subprocess.run(
        [sys.executable, "-c", FAILING, form], capture_output=True, check=True, text=True
    )
    lines = done.stdout.splitlines(keepends=True)
    assert done.stderr == ""
    assert len(lines) == 2 and all(line.endswith("\n") for line in lines)
    assert all(line[:-1].isprintable() for line in lines)
    assert "Traceback" in lines[0] and "ValueError" in lines[0]
    if form == "json":
        assert [json.loads(line)["event"] for line in lines] == ["program.error", "run.failed"]
    else:
        assert "program.error" in lines[0] and "run.failed" in lines[1]


def test_a_stage_of_containers_is_told_as_that(capsys):
    ServiceLog(as_json=False).job(claimed(command=stand_in("compose")), None)
    assert capsys.readouterr().out.endswith(
        "task-1  attempt 1: a stage for the runner compose\n"
    )


def test_the_log_of_a_task_of_the_queue_is_searched(tidewheel):
    script = "echo start; echo 'ERROR: CFL violated' >&2; echo end"
    tidewheel("submit", "--id", "sought", "--", "bash", "-c", script)
    assert tidewheel("worker", "--exit-when-idle").status == 0
    found = tidewheel("log", "sought", "--search", "cfl")
    assert (found.out, found.err) == (
        "sought err:1: ERROR: CFL violated\n",
        "1 line in 2 logs, 30 B\n",
    )
    assert tidewheel("log", "sought", "--level", "error").out == "ERROR: CFL violated\n"
    refused = tidewheel("log", "sought", "--search", "x", "--task", "model*")
    assert refused.status == 2


def test_people_are_told_once_that_the_store_is_away_and_programs_each_time(capsys):
    def told(*, as_json):
        log = ServiceLog(as_json=as_json)
        for service in ("worker", "monitor", "claims"):
            facts = {"error": "it is away; try again", "failures": 1, "delay_seconds": 0.5}
            for event in ["store.unavailable"] * 3:
                log.report(ServiceReport(service=service, event=event, facts=facts))
        for service in ("worker", "monitor", "claims"):
            facts = {"failures": 3}
            log.report(ServiceReport(service=service, event="store.back", facts=facts))
        return capsys.readouterr().out

    said = told(as_json=False)
    assert said.count("store.unavailable") == said.count("store.back") == 1
    assert "it is away; trying again until it works; running jobs continue\n" in said
    assert told(as_json=True).count("store.unavailable") == 9


def reported(outage, now, event="store.unavailable", service="worker", error="it is away"):
    facts = {"error": error, "failures": 1}
    return outage.told(ServiceReport(service=service, event=event, facts=facts), now)


def test_a_long_outage_is_told_again_each_minute_with_how_long_it_has_lasted():
    outage = Outage()
    assert reported(outage, 100.0)
    assert not reported(outage, 159.0, error="another text of the same cause")
    assert reported(outage, 161.0, error="it starts") == "still trying after 1m 1s: it starts"
    assert not reported(outage, 162.0, service="monitor")
    back = reported(outage, 190.0, event="store.back", service="monitor")
    assert back == "the store can be used again, after 1m 30s"
    assert not outage.lasts(190.0)


def test_a_try_that_was_under_way_when_the_store_came_back_is_no_new_outage():
    outage = Outage()
    reported(outage, 0.0, service="worker")
    reported(outage, 0.1, service="monitor")
    assert reported(outage, 4.0, event="store.back", service="worker")
    assert not reported(outage, 5.0, service="monitor"), "its try began before"
    assert not reported(outage, 6.0, event="store.back", service="monitor")
    assert reported(outage, 7.0, service="worker"), "it is away again"


@pytest.mark.parametrize(
    ("event", "facts", "said"),
    [
        ("definitions.forgotten", {"count": 1}, "1 definition, used by no run"),
        ("definitions.forgotten", {"count": 2}, "2 definitions, used by no run"),
        ("rules.read", {"count": 1, "findings": []}, "1 rule\n"),
    ],
)
def test_a_line_counts_one_and_many(capsys, event, facts, said):
    ServiceLog(as_json=False).report(ServiceReport(service="s", event=event, facts=facts))
    assert said in capsys.readouterr().out
