"""RELIABILITY 14: a run has one scheduler at a time, and does not wait for the next (P21)."""

import os
import signal

import apsw
import pytest

from tests.support.patience import eventually, scaled
from tests.support.run_crew import LEASE_SECONDS, ended, run_crew
from tidewheel.cli.exit_codes import ExitCode

GRAPH = "        P1 = a[-P1] => a => b"
RUN = "flow/run1"
LOST, HELD = ExitCode.STOPPED, ExitCode.REFUSED
# What two busy cores may take for anything.
SLACK_SECONDS = 10.0


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with run_crew(tmp_path, url) as crew:
        yield crew


@pytest.fixture
def sqlite_crew(tmp_path):
    with run_crew(tmp_path) as crew:
        yield crew


def until_driven_by(crew, program):
    eventually(lambda: (o := crew.view().owner) and o.pid == program.pid, "it drives the run")


def until_over(crew, status="completed"):
    eventually(lambda: crew.view().status == status, f"the run is {status}")


def slow_jobs(crew, final):
    crew.define(GRAPH, root="        script = sleep 0.2", final=final)


def test_a_standby_takes_over_within_the_lease(crew):
    slow_jobs(crew, 4)
    first = crew.run()
    crew.worker("--queue", f"run:{RUN}", "--slots", "9").says("worker.registered")
    standby = crew.scheduler()
    eventually(lambda: len(crew.executions()) >= 2, "it is in the middle of it")
    first.kill()
    killed_at = crew.look(lambda store: store.now())
    until_driven_by(crew, standby)
    assert crew.look(lambda store: store.now()) - killed_at < LEASE_SECONDS + SLACK_SECONDS
    until_over(crew)
    standby.says("run.left")
    assert standby.end() == 0
    assert len(crew.final_state()["submissions"]) == 8
    crew.judge()


def test_a_scheduler_that_stood_still_is_refused_and_lets_go(crew):
    """Its jobs are its own to their end: none is begun again."""
    gate = crew.folder / "open"
    script = f"until test -e {gate}; do sleep 0.05; done"
    crew.define("        R1 = a => b", f"    [[a]]\n        script = {script}")
    first = crew.run()
    first.says("1/a started")
    # Nothing happens in the run now: who is stopped in the middle of a transaction of SQLite
    # holds up everybody, scheduler or not.
    first.send(signal.SIGSTOP)
    standby = crew.scheduler()
    until_driven_by(crew, standby)
    first.send(signal.SIGCONT)
    first.says("is now driven by another scheduler (its epoch is 2, here 1)")
    assert crew.view().epoch == 2
    gate.touch()
    assert ended(first) == LOST, first.log
    crew.worker("--queue", f"run:{RUN}")
    until_over(crew)
    assert [status for _, status in crew.final_state()["submissions"]] == ["succeeded"] * 2
    happened = crew.judge()
    assert happened["claim"] == 2, happened


def test_of_two_that_want_a_run_at_once_one_gets_it(crew):
    gate = crew.folder / "gate"
    os.mkfifo(gate)
    crew.define("        R1 = a", f"    [[a]]\n        script = read -r _ < {gate}")
    maker = crew.run(TIDEWHEEL_FAILPOINT="create_run_after_commit")
    ended(maker)
    races = scaled(2)
    for number in range(races):
        rivals = [crew.run(RUN), crew.run(RUN)]
        eventually(lambda both=rivals: not all(one.runs for one in both), "one has lost")
        [loser] = [one for one in rivals if not one.runs]
        assert loser.process.returncode == HELD, loser.log
        [winner] = [one for one in rivals if one is not loser]
        assert f"{RUN} is driven by process {winner.pid} on" in loser.log
        until_driven_by(crew, winner)
        assert crew.view().epoch == number + 1
        eventually(crew.executions, "the job has begun")
        if number + 1 < races:
            winner.kill()
    gate.write_text("go\n")
    assert ended(winner) == 0, winner.log
    crew.judge()


def test_two_standbys_take_each_run_once(sqlite_crew):
    crew = sqlite_crew
    crew.define("        R1 = a")
    names = [f"r{number}" for number in range(3)]
    for name in names:
        ended(crew.run("--new", "--run-name", name, TIDEWHEEL_FAILPOINT="batch_written"))
    standbys = [crew.scheduler(), crew.scheduler()]
    crew.worker(*(word for name in names for word in ("--queue", f"run:{name}")))
    for name in names:
        eventually(lambda n=name: crew.view(n).status == "completed", f"{name} is completed")
        assert crew.view(name).epoch == 2
    assert [one.end() for one in standbys] == [0, 0]
    assert crew.look(lambda store: store.verify()) == []


def test_a_scheduler_that_is_asked_to_stop_gives_its_run_back_at_once(sqlite_crew):
    crew = sqlite_crew
    crew.environment["TIDEWHEEL_SCHEDULER_LEASE_SECONDS"] = "2"
    crew.define("        R1 = a => b", "    [[a]]\n        script = sleep 600")
    first = crew.run()
    eventually(crew.executions, "it runs")
    first.kill()
    standby = crew.scheduler(TIDEWHEEL_SCHEDULER_LEASE_SECONDS="600")
    until_driven_by(crew, standby)
    assert standby.end() == 0
    assert crew.view().status == "running"
    next_one = crew.scheduler()
    until_driven_by(crew, next_one)


def test_a_run_that_cannot_be_read_is_put_aside_and_harms_no_other(sqlite_crew):
    """S18. What is broken is a definition; a repaired one is carried on."""
    crew = sqlite_crew
    for name in ("bad", "good"):
        crew.define(f"        R1 = {name} => last")
        ended(crew.run("--new", "--run-name", name, TIDEWHEEL_FAILPOINT="batch_written"))
    digest = crew.view("bad").definition
    kept = crew.look(lambda store: store.definition(digest)).text
    set_text(crew, digest, "[scheduling]\n    [[graph]]\n        R1 = bad => (")
    standby = crew.scheduler()
    eventually(lambda: crew.view("bad").status == "error", "it was put aside")
    reason = crew.view("bad").reason
    assert reason.startswith(
        "not tried again after 3 failures of the scheduler: the stored definition of flow "
        "cannot"
    )
    assert "not tried again after 3 failures of the scheduler" in crew.ask("runs")[1]
    crew.worker("--queue", "run:good", "--queue", "run:bad")
    eventually(lambda: crew.view("good").status == "completed", "the other one is completed")
    assert standby.runs and crew.view("bad").epoch == 2  # nobody tries it again and again
    refused, said = crew.ask("run", "bad")
    assert refused == 1 and "cannot be used" in said and "tidewheel run bad" in said
    set_text(crew, digest, kept)
    carried_on = crew.run("bad")
    assert ended(carried_on) == 0, carried_on.log
    assert crew.view("bad").status == "completed"
    assert crew.look(lambda store: store.verify()) == []


def set_text(crew, digest, text):
    """What no part of the program does."""
    with apsw.Connection(crew.store.removeprefix("sqlite:///")) as connection:
        connection.set_busy_timeout(10_000)  # the crew writes, too
        connection.execute("UPDATE definition SET text = ? WHERE digest = ?", (text, digest))


def test_a_run_outlives_crashes_of_its_database(postgres_server, postgres_url, tmp_path):
    with run_crew(tmp_path, postgres_url) as crew:
        slow_jobs(crew, 4)
        program = crew.run("--stall-timeout", "0")
        eventually(lambda: len(crew.executions()) >= 2, "jobs have begun")
        postgres_server.crash()
        program.says("trying again")
        postgres_server.start()
        eventually(lambda: len(crew.executions()) >= 4, "jobs have begun again")
        # It may be back before anybody asks; a connection that broke unused is just replaced.
        postgres_server.restart_immediately()
        assert ended(program) == 0, program.log
        assert len(crew.final_state()["submissions"]) == 8
        happened = crew.judge()
        assert happened["claim"] == 8, happened
