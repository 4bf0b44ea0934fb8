"""A log has one line per event, whatever is in it (S12)."""

import json
import subprocess
import sys

import pytest

from tests.kit.runner_conformance import claimed
from tidewheel.cli.service_log import ServiceLog
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
        for event in ["store.unavailable"] * 3 + ["store.back", "store.unavailable"]:
            facts = {"error": "it is away", "failures": 1, "delay_seconds": 0.5}
            log.report(ServiceReport(service="s", event=event, facts=facts))
        return capsys.readouterr().out.count("store.unavailable")

    assert told(as_json=False) == 2
    assert told(as_json=True) == 4


@pytest.mark.parametrize(
    ("event", "facts", "said"),
    [
        ("definitions.forgotten", {"count": 1}, "1 definition, used by no run"),
        ("definitions.forgotten", {"count": 2}, "2 definitions, used by no run"),
        ("store.back", {"failures": 1}, "after 1 failed try\n"),
        ("store.back", {"failures": 3}, "after 3 failed tries\n"),
        ("rules.read", {"count": 1, "findings": []}, "1 rule\n"),
    ],
)
def test_a_line_counts_one_and_many(capsys, event, facts, said):
    ServiceLog(as_json=False).report(ServiceReport(service="s", event=event, facts=facts))
    assert said in capsys.readouterr().out
