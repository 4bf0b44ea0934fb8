"""Workers and monitors as processes: signals, messages, handlers, and what they print."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import allowed
from tidewheel.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[2]

HANDLERS = """
import tidewheel

handlers = tidewheel.Handlers()


@handlers.register("double")
def double(spec, job):
    job.output("half done", "so far")
    return spec * 2


@handlers.register("give up")
async def give_up(spec, job):
    raise tidewheel.Abort("no point", code="pointless")
"""


def status_of(tidewheel, task_id):
    return tidewheel("task", task_id, "--json").json["task"]["status"]


def signals_of(tidewheel, task_id):
    return [one["signal"] for one in tidewheel("task", task_id, "--json").json["history"]]


def test_a_job_reports_progress_text_and_outputs(tidewheel):
    command = (
        "tidewheel message --progress 0.5 && tidewheel message 'some text'"
        " && tidewheel message --output data 'it is there'"
        " && tidewheel message --json --progress 1"
    )
    task_id = tidewheel("submit", "--command", command).word
    tidewheel("submit", "--id", "after", "--needs", f"{task_id}:data", "--", "true")
    assert tidewheel("worker", "--once").status == 0
    document = tidewheel("task", task_id, "--json").json
    said = [(one["text"], one["output"]) for one in document["outputs"]]
    assert said == [("some text", None), ("it is there", "data")]
    assert tidewheel("task", task_id, "--log", "out").out == '{"delivery": "accepted"}\n'
    assert status_of(tidewheel, "after") == "succeeded"


def test_handlers_that_a_module_does_not_have_are_refused_with_those_that_it_has(tidewheel):
    text = "import tidewheel\nhandlers = tidewheel.Handlers()\nother = 1\n"
    (tidewheel.folder / "pipe.py").write_text(text)
    missing = tidewheel("worker", "--handlers", "pipe:handlr")
    assert missing.status == 2
    assert "module pipe has no 'handlr'; the module has: handlers" in missing.err
    wrong = tidewheel("worker", "--handlers", "pipe:other")
    seen = "'other' of module pipe is not a tidewheel.Handlers; the module has: handlers"
    assert seen in wrong.err


def test_handlers_come_from_a_module_of_the_folder(tidewheel):
    (tidewheel.folder / "mine.py").write_text(HANDLERS)
    tidewheel("submit", "--id", "a", "--handler", "double", "--spec", "21")
    tidewheel("submit", "--id", "b", "--handler", "give up", "--retries", "5")
    tidewheel("submit", "--id", "c", "--handler", "nobody knows it")
    worked = tidewheel("worker", "--handlers", "mine:handlers", "--exit-when-idle")
    assert worked.status == ExitCode.FAILED
    assert "Idle, exiting. 1 task left: no handler 'nobody knows it'." in worked.out
    assert "a  attempt 1: double()" in worked.out
    document = tidewheel("task", "a", "--json").json
    assert document["attempts"][0]["metrics"] == 42
    assert document["outputs"][0]["output"] == "half done"
    assert tidewheel("task", "b", "--json").json["task"]["errors"][0]["code"] == "pointless"
    assert status_of(tidewheel, "c") == "ready"


@pytest.mark.parametrize("option", ["--gpu", "--cpu"])
def test_a_worker_cannot_offer_less_than_nothing(tidewheel, option):
    refused = tidewheel("worker", option, "-1", "--once")
    assert (refused.status, f"{option} is -1" in refused.err) == (2, True)


def test_a_worker_that_leaves_tasks_it_cannot_take_says_so(tidewheel):
    tidewheel("submit", "--label", "moon", "--", "true")
    tidewheel("submit", "--gpu", "9", "--", "true")
    tidewheel("submit", "--handler", "x")
    tidewheel("submit", "--handler", "x")
    tidewheel("submit", "--id", "mine", "--", "true")
    once = tidewheel("worker", "--once")
    assert once.status == ExitCode.FAILED
    for why in ("no label 'moon'", "too few GPUs"):
        assert f" 1 task left: {why}" in once.out
    assert "2 tasks left: no handler 'x'." in once.out
    assert status_of(tidewheel, "mine") == "succeeded"
    said = [
        json.loads(line) for line in tidewheel("worker", "--once", "--json").out.splitlines()
    ]
    [last] = [one for one in said if one["event"] == "worker.leaves"]
    assert (last["skipped"], last["reasons"]["no handler 'x'"]) == (4, 2)
    with tidewheel.started("worker") as worker:
        worker.read_until("worker.registered")
        worker.send(signal.SIGTERM)
        ended = worker.wait()
    assert ended.status == 0  # it is how workers end
    assert "Exiting. " in ended.out and "no handler 'x'" in ended.out


def test_a_worker_that_leaves_nothing_says_that(tidewheel):
    tidewheel("submit", "--", "true")
    done = tidewheel("worker", "--once")
    assert done.status == 0 and done.out.endswith("Idle, exiting.\n")


def test_a_worker_that_leaves_tasks_says_nowhere_that_all_is_done(tidewheel):
    tidewheel("submit", "--handler", "x")
    once = tidewheel("worker", "--once")
    assert once.out.endswith("Idle, exiting. 1 task left: no handler 'x'.\n")
    assert "all jobs have ended" not in once.out


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_worker_that_is_stopped_before_it_is_idle_says_what_is_left(
    tidewheel, number, status
):
    tidewheel("submit", "--delay", "1h", "--", "true")
    with tidewheel.started("worker", "--once") as worker:
        worker.read_until("worker.registered")
        worker.send(number)
        ended = worker.wait()
    assert re.search(r"  Exiting\. 1 task left: due at 20\S+Z\.\n$", ended.out), ended.out
    assert ended.status == status


def test_a_worker_says_that_nobody_knows_its_queue(tidewheel):
    tidewheel("submit", "--queue", "mail", "--", "true")
    typo = tidewheel("worker", "--once", "--queue", "mial")
    assert typo.status == 0
    told = "Idle, exiting. There is no queue 'mial' yet: no task was ever submitted to it."
    assert told in typo.out
    for known in ("mail", "mail", "default", "m*l"):  # also when its tasks have ended
        assert "no queue" not in tidewheel("worker", "--once", "--queue", known).out


def test_a_worker_has_done_its_work_also_if_a_job_failed(tidewheel):
    """How tasks end is told by `tasks`, and to whoever waits: docs/exit_codes.md."""
    tidewheel("submit", "--id", "a", "--", "false")
    assert tidewheel("worker", "--once").status == 0
    assert status_of(tidewheel, "a") == "failed"


@pytest.mark.req("R002-73", "R002-71", "R002-72")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_makes_the_worker_yield_its_tasks(tidewheel, number):
    tidewheel("submit", "--id", "long", "--", "sleep", "600")
    with tidewheel.started("worker") as worker:
        worker.read_until("job.started")
        worker.send(number)
        ended = worker.wait()
    assert ended.status == 0
    assert "long  attempt 1 stopped (yield)" in ended.out
    assert signals_of(tidewheel, "long") == [None, "claim", "yield"]
    assert status_of(tidewheel, "long") == "ready"


def test_a_draining_worker_finishes_its_tasks_and_takes_no_new_ones(tidewheel):
    gate = tidewheel.folder / "gate"
    os.mkfifo(gate)
    tidewheel("submit", "--id", "a", "--command", f"cat {gate}")
    with tidewheel.started("worker", "--drain", "--slots", "1") as worker:
        worker.read_until("job.started")
        tidewheel("submit", "--id", "b", "--", "true")
        worker.send(signal.SIGTERM)
        gate.write_text("go\n")
        assert worker.wait().status == 0
    assert (status_of(tidewheel, "a"), status_of(tidewheel, "b")) == ("succeeded", "ready")


def test_a_second_signal_ends_it_at_once(tidewheel):
    stubborn = "trap '' TERM; echo deaf > deaf; while :; do sleep 1; done"
    tidewheel("submit", "--id", "a", "--command", stubborn)
    with tidewheel.started("worker", "--grace", "10m") as worker:
        worker.read_until("job.started")
        worker.send(signal.SIGTERM)
        worker.read_until("job.stopping")
        worker.send(signal.SIGTERM)
        assert worker.wait().status == 0
    assert status_of(tidewheel, "a") == "ready"


@pytest.mark.req("R003-40", "R003-44")
def test_a_cancelled_job_is_told_to_end(tidewheel):
    tidewheel("submit", "--id", "a", "--", "sleep", "600")
    with tidewheel.started("worker") as worker:
        worker.read_until("job.started")
        assert tidewheel("cancel", "a").out == "a cancelling\n"
        assert "stopped (cancel)" in worker.read_until("job.ended")
        worker.send(signal.SIGTERM)
        worker.wait()
    assert status_of(tidewheel, "a") == "cancelled"


def test_a_time_limit_ends_a_job(tidewheel):
    tidewheel("submit", "--id", "a", "--timeout", "200ms", "--", "sleep", "600")
    tidewheel("worker", "--exit-when-idle")
    [error] = tidewheel("task", "a", "--json").json["task"]["errors"]
    assert error["code"] == "timed_out"


@pytest.mark.req("R002-53", "R002-58", "R002-85")
def test_the_monitor_beside_a_worker_takes_back_what_a_killed_one_left(tidewheel):
    tidewheel("queues", "default", "--lease", "3s")  # none but the killed one's may lapse
    (tidewheel.folder / "mine.py").write_text(
        "import tidewheel\nhandlers = tidewheel.Handlers()\n"
        "@handlers.register('wait')\n"
        "def wait(spec, job):\n"
        "    if job.attempt == 1:\n        job.wait_for_stop(600)\n"
    )
    tidewheel("submit", "--id", "a", "--handler", "wait")
    with tidewheel.started("worker", "--handlers", "mine:handlers") as first:
        first.read_until("job.started")
        first.send(signal.SIGKILL)
    worked = tidewheel("worker", "--handlers", "mine:handlers", "--exit-when-idle")
    assert "leases.taken_back" in worked.out
    assert signals_of(tidewheel, "a") == [None, "claim", "lapse", "claim", "succeed"]


def test_a_worker_of_another_queue_is_not_idle_before_an_adopted_job_has_ended(tidewheel):
    open_gate = tidewheel.folder / "open"
    waits = f"until test -e {open_gate}; do sleep 0.05; done"
    tidewheel("submit", "--id", "a", "--command", waits)
    with tidewheel.started("worker") as first:
        first.read_until("job.started")
        first.send(signal.SIGKILL)
    with tidewheel.started("worker", "--queue", "others", "--exit-when-idle") as second:
        second.read_until("lease.adopted")
        tidewheel("submit", "--id", "b", "--queue", "others", "--", "true")
        second.read_until("job.ended")  # b's: from now on its own queue has nothing to do
        open_gate.touch()
        assert "a  attempt 1 succeeded" in second.read_until("job.ended")
        assert second.wait().status == 0
    assert signals_of(tidewheel, "a").count("claim") == 1
    assert status_of(tidewheel, "a") == "succeeded"


@pytest.mark.req("R002-74", "R002-76", "R002-78", "R002-85")
def test_a_monitor_is_configured_by_its_environment(tidewheel):
    tidewheel("submit", "--id", "a", "--", "true")
    tidewheel("cancel", "a")
    settings = {
        "TIDEWHEEL_RETENTION_SECONDS": "0.000001",
        "TIDEWHEEL_EXPORT_DIRECTORY": str(tidewheel.folder / "kept"),
    }
    with tidewheel.started("monitor", **settings) as monitor:
        monitor.read_until("tasks.deleted")
        monitor.send(signal.SIGTERM)
        assert monitor.wait().status == 0
    assert tidewheel("task", "a").status == 2
    [kept] = (tidewheel.folder / "kept").iterdir()
    assert json.loads(kept.read_text())["task"]["id"] == "a"


def test_a_worker_tells_programs_in_json_lines(tidewheel):
    tidewheel("submit", "--id", "a", "--", "false")
    worked = tidewheel("worker", "--exit-when-idle", "--json")
    events = [json.loads(line) for line in worked.out.splitlines()]
    [ended] = [event for event in events if event["event"] == "job.ended"]
    assert (ended["task"], ended["ending"], ended["stopped"]) == ("a", "failed", None)
    assert {"worker.registered", "job.started", "worker.stopped"} <= {
        e["event"] for e in events
    }


def test_resources_and_paused_queues_keep_an_idle_worker_from_waiting_for_ever(tidewheel):
    tidewheel("submit", "--id", "big", "--memory", "900TiB", "--", "true")
    tidewheel("submit", "--id", "held", "--queue", "q", "--", "true")
    tidewheel("queues", "q", "--pause")
    worked = tidewheel("worker", "--queue", "default", "--queue", "q", "--exit-when-idle")
    assert worked.status == ExitCode.FAILED
    assert "1 task left: too little memory" in worked.out
    assert "1 task left: queue 'q' is paused." in worked.out
    assert (status_of(tidewheel, "big"), status_of(tidewheel, "held")) == ("ready", "ready")


# The program's second event loop is that of the last look: the worker has ended before it.
GOES_AWAY = """
import asyncio, os, threading
import tidewheel

handlers = tidewheel.Handlers()


class Loops(asyncio.DefaultEventLoopPolicy):
    made = 0

    def new_event_loop(self):
        if threading.current_thread() is threading.main_thread():
            Loops.made += 1
            if Loops.made == 2:
                os.rename({path!r}, {path!r} + ".away")
                {then}
        return super().new_event_loop()


asyncio.set_event_loop_policy(Loops())
"""


@pytest.mark.parametrize("then", ["os.mkdir({path!r})", "pass"])
def test_a_worker_that_cannot_see_what_it_leaves_says_so_and_is_no_success(tidewheel, then):
    tidewheel("submit", "--id", "a", "--", "true")
    store = tidewheel.state / "tidewheel.db"
    path = str(store)
    program = GOES_AWAY.format(path=path, then=then.format(path=path))
    (tidewheel.folder / "mine.py").write_text(program)
    worked = tidewheel("worker", "--handlers", "mine:handlers", "--exit-when-idle")
    assert "a  attempt 1 succeeded" in worked.out
    assert "Idle, exiting. Nobody knows whether tasks are left (" in worked.out
    assert worked.status == ExitCode.UNAVAILABLE
    assert not store.is_file()


def test_a_worker_that_starts_says_which_tasks_and_queues_are_not_for_it(tidewheel):
    tidewheel("submit", "--id", "a", "--handler", "resize", "--spec", "{}")
    tidewheel("submit", "--id", "late", "--delay", "1h", "--", "true")
    with tidewheel.started("worker", "--queue", "default", "--queue", "imgaes") as worker:
        said = worker.read_until("worker.skips")
        assert said.rstrip().endswith(
            "  1 task ready: no handler 'resize'. There is no queue 'imgaes' yet: no task was "
            "ever submitted to it."
        )
        worker.send(signal.SIGTERM)
        assert worker.wait().status == 0


def test_an_interrupted_wait_leaves_the_task_running(tidewheel):
    with tidewheel.started("submit", "--wait", "--id", "a", "--", "true") as waiting:
        waiting.read_until("a  ready")
        waiting.send(signal.SIGINT)
        ended = waiting.wait()
    assert ended.status == 130
    assert "the tasks continue without this command" in ended.out
    assert "Traceback" not in ended.out
    assert status_of(tidewheel, "a") == "ready"


def test_everything_works_on_postgresql(tidewheel, postgres_url):
    tidewheel.environment["TIDEWHEEL_STORE"] = postgres_url
    tidewheel("submit", "--id", "a", "--", "echo", "hello")
    tidewheel("submit", "--id", "b", "--needs", "a", "--", "true")
    assert tidewheel("worker", "--exit-when-idle").status == 0
    assert [status_of(tidewheel, one) for one in "ab"] == ["succeeded", "succeeded"]
    assert tidewheel("task", "a", "--log", "out").out == "hello\n"
    assert tidewheel("migrate").status == 0
    assert tidewheel("verify").status == 0


def test_the_demo_of_the_queue_shows_a_graph_and_ends_well():
    demo = [sys.executable, str(ROOT / "examples" / "queue_demo.py")]
    done = subprocess.run(
        demo, capture_output=True, text=True, timeout=allowed(50), check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"forecast  running  [2468]0%", done.stderr), done.stderr
    assert "first attempt: the warning service did not answer" in done.stdout
    assert "Try it yourself:" in done.stdout


NOBODY_THERE = "postgresql://nobody@127.0.0.1:1/none"


@pytest.mark.parametrize("role", ["worker", "monitor"])
def test_a_service_waits_for_its_database_and_can_be_stopped_meanwhile(tidewheel, role):
    with tidewheel.started(role, "--store", NOBODY_THERE) as service:
        line = service.read_until("store.awaited")
        assert "the database does not answer" in line
        assert line.rstrip().endswith("waiting until it does")
        service.send(signal.SIGTERM)
        assert service.wait().status == 0


@pytest.mark.parametrize("role", ["worker", "monitor"])
def test_a_service_gives_up_after_the_time_it_was_given(tidewheel, role):
    failed = tidewheel(role, "--store", NOBODY_THERE, "--wait-for-store", "2s")
    assert failed.status == 3
    assert "waiting up to 2s" in failed.out
    assert "the database does not answer" in failed.err
    failed = tidewheel(role, "--store", NOBODY_THERE, "--wait-for-store", "0")
    assert (failed.status, failed.out) == (3, "")


def test_ctrl_c_is_heard_also_by_what_was_started_in_the_background(tidewheel):
    """Where shells have SIGINT ignored, as `nohup make test &` has."""
    deaf = tidewheel.folder / "deaf"
    deaf.write_text(f"#!/bin/sh\ntrap '' INT\nexec {tidewheel.program} \"$@\"\n")
    deaf.chmod(0o700)
    tidewheel("submit", "--id", "a", "--", "true")
    tidewheel.program = deaf
    with tidewheel.started("submit", "--wait", "--", "true") as waiting:
        waiting.read_until("ready")
        waiting.send(signal.SIGINT)
        assert waiting.wait().status == ExitCode.INTERRUPTED
