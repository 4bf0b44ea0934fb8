"""RELIABILITY 11, 16: kill -9 of `tidewheel run`, at every named place, at any moment (P16)."""

import asyncio
import os
import random
import signal
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from tests.support.mail_server import mail_server
from tests.support.patience import eventually, scaled
from tests.support.run_crew import ended, run_crew, was_killed
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.client.local_run import own_settings
from tidewheel.failpoints import RUN_TOLD
from tidewheel.scheduler.event_handlers import DRAIN_SECONDS
from tidewheel.services.paths import OWNER
from tidewheel.wiring.services import deliver_left

# Of everything something: dependence on the point before and on one point, xtriggers, a limit
# group, a family, a suicide, a handled failure, retries, a task that is skipped, an output by
# message, a command.
MORE = """
    runahead limit = P2
    [[xtriggers]]
        said = echo(succeed=True, word=hello)
        mine = mine(point=%(point)s):PT0.2S
    [[queues]]
        [[[narrow]]]
            limit = 2
            members = q1, q2, q3
"""
GRAPH = """
        R1 = start
        P1 = '''
            @said => a
            @mine & a & start[^] & skipped[-P1] => skipped
            skipped & flaky => q1 & q2 & q3 => teller
            teller:told => hearer
            bad
            bad:fail? => !quiet & mend
            bad? => never
            teller & mend => FAMILY
            FAMILY:succeed-all => last
        '''
"""
SCRIPTS = """
    [[FAMILY]]
    [[f1, f2]]
        inherit = FAMILY
    [[a]]
        script = test $said_word = hello
    [[skipped]]
        run mode = skip
    [[flaky]]
        script = test $CYLC_TASK_TRY_NUMBER -gt 2
        execution retry delays = PT0.2S, PT0S
    [[bad]]
        script = false
    [[teller]]
        script = '''
            cylc broadcast -p $CYLC_TASK_CYCLE_POINT -n hearer -s '[environment]WORD=heard'
            cylc message told
        '''
        [[[outputs]]]
            told = told
    [[hearer]]
        script = test $WORD = heard
"""
XTRIGGER = """
def mine(point):
    return (True, {"point": point})
"""
JOBS_PER_POINT = 14
FAILED, TERMINATED = ExitCode.FAILED, ExitCode.TERMINATED
# Before the run is there a restart is a new start: see test_faults_run_store.
AT_THE_START = [
    "create_run_after_commit",
    *("claim_run_before_commit", "claim_run_after_commit"),
    *("register_worker_before_commit", "register_worker_after_commit"),
]
WHILE_IT_RUNS = [
    *("batch_before_write", "write_batch_before_commit", "write_batch_after_commit"),
    *("output_recorded", "children_spawned", "child_enqueued", "retry_scheduled"),
    *("batch_written", "batch_told", "run_opened"),
    *("claim_before_commit", "claim_after_commit"),
    *("job_before_start", "job_spawned_before_record", "job_exited_before_report"),
    *("report_before_commit", "report_after_commit"),
]
WHILE_A_JOB_RUNS = [
    f"{one}_{when}_commit"
    for one in ("adopt", "scheduler_lease_renew", "heartbeat")
    for when in ("before", "after")
]
AT_THE_END = ["stop_worker_before_commit", "stop_worker_after_commit"]
AT_ONCE = ("--stall-timeout", "0")
CARRIED_ON = ("flow/run1", *AT_ONCE)
LONG_SECONDS = scaled(100)  # for a whole run: a hundred jobs on two busy cores


@pytest.fixture
def chance(request):
    seed = request.config.getoption("randomly_seed", 1)
    return random.Random(seed)


def define(crew, final):
    crew.define(GRAPH, SCRIPTS, final=final, more=MORE)
    library = crew.folder / "flow" / "lib" / "python"
    library.mkdir(parents=True)
    (library / "mine.py").write_text(XTRIGGER)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """How a run to a final point ends that is left alone."""

    @cache
    def state(final):
        with run_crew(tmp_path_factory.mktemp("undisturbed")) as crew:
            define(crew, final)
            program = crew.run(*AT_ONCE)
            assert ended(program, LONG_SECONDS) == 0, program.log
            return crew.final_state()

    return state


def carry_on(crew):
    program = crew.run(*CARRIED_ON)
    assert ended(program, LONG_SECONDS) == 0, program.log


@pytest.mark.timeout(3600)
def test_wherever_it_dies_the_run_ends_as_if_nothing_had_happened(
    tmp_path, chance, undisturbed
):
    final = 3
    expected = undisturbed(final)
    with run_crew(tmp_path / "crew") as crew:
        define(crew, final)
        for place in AT_THE_START:
            program = crew.run(*AT_ONCE, TIDEWHEEL_FAILPOINT=place)
            assert was_killed(program), (place, program.log)
        places = list(WHILE_IT_RUNS)
        chance.shuffle(places)
        for place in places:
            program = crew.run(*CARRIED_ON, TIDEWHEEL_FAILPOINT=place)
            assert was_killed(program), (place, program.log)
        carry_on(crew)
        assert crew.final_state() == expected
        crew.judge()


def test_a_job_that_runs_meanwhile_is_begun_once(tmp_path):
    """Adopted every time, although its worker is killed wherever it has to do with it."""
    with run_crew(tmp_path) as crew:
        gate = crew.folder / "gate"
        os.mkfifo(gate)
        crew.define("R1 = long => last", f"    [[long]]\n        script = read -r _ < {gate}")
        crew.run(*AT_ONCE, TIDEWHEEL_FAILPOINT="create_run_after_commit")
        eventually(lambda: not crew.programs[0].runs, "it has made the run")
        with crew.client() as client:
            client.configure_queue("run:flow/run1", lease_seconds=6.0)
        first = crew.run(*CARRIED_ON)
        eventually(crew.executions, "the job has begun")
        first.kill()
        for place in WHILE_A_JOB_RUNS:
            program = crew.run(*CARRIED_ON, TIDEWHEEL_FAILPOINT=place)
            assert was_killed(program), (place, program.log)
        last = crew.run(*CARRIED_ON, TIDEWHEEL_FAILPOINT=AT_THE_END[0])
        gate.write_text("go\n")
        assert was_killed(last), last.log
        assert [status for _, status in crew.final_state()["submissions"]] == ["succeeded"] * 2
        happened = crew.judge()
        assert happened["claim"] == 2 and happened["adopt"] >= 4, happened
        assert was_killed(crew.run(*CARRIED_ON, TIDEWHEEL_FAILPOINT=AT_THE_END[1]))


@pytest.mark.timeout(3600)
def test_a_run_that_is_killed_again_and_again_ends_as_if_nothing_had_happened(
    tmp_path, chance, undisturbed
):
    """`make campaign`: 2,000 tasks and more."""
    final, kills = scaled(7), scaled(6)
    expected = undisturbed(final)
    with run_crew(tmp_path / "crew") as crew:
        define(crew, final)
        program = crew.run(*AT_ONCE)
        part = final * JOBS_PER_POINT // (kills + 1)
        for _ in range(kills):
            more = len(crew.executions()) + chance.randint(1, part)
            eventually(lambda n=more: len(crew.executions()) >= n, "jobs have begun")
            program.kill()
            program = crew.run(*CARRIED_ON)
        assert ended(program, LONG_SECONDS) == 0, program.log
        assert crew.final_state() == expected
        crew.judge()


@pytest.mark.timeout(3600)
def test_schedulers_and_workers_may_be_killed_one_by_one(
    tmp_path, chance, postgres_url, undisturbed
):
    """RELIABILITY 10: whoever is left goes on with the run, and with the jobs."""
    final, kills = scaled(7), scaled(5)
    expected = undisturbed(final)
    with run_crew(tmp_path / "crew", postgres_url) as crew:
        define(crew, final)
        maker = crew.run(*AT_ONCE, TIDEWHEEL_FAILPOINT="batch_told")
        assert was_killed(maker), maker.log
        crew.monitor()
        start = [
            crew.scheduler,
            lambda: crew.worker("--queue", "run:flow/*", "--slots", "9"),
        ]
        alive = [(one, one()) for one in start * 2]
        part = final * JOBS_PER_POINT // (kills + 1)
        for _ in range(kills):
            more = len(crew.executions()) + chance.randint(1, part)
            eventually(lambda n=more: len(crew.executions()) >= n, "jobs have begun")
            again, program = alive.pop(chance.randrange(len(alive)))
            program.kill()
            alive.append((again, again()))
        eventually(lambda: crew.view().status == "completed", "it is complete", LONG_SECONDS)
        assert crew.final_state() == expected
        crew.judge()


def test_when_jobs_are_killed_with_it_they_have_failed_and_are_retried_as_defined(tmp_path):
    """Nobody saw how they ended; which of them may run again is for the definition to say."""
    with run_crew(tmp_path) as crew:
        script = "        script = test $CYLC_TASK_TRY_NUMBER -gt 1 || sleep 600\n"
        retry = "        execution retry delays = PT0S\n"
        crew.define("R1 = long => last", f"    [[long]]\n{script}{retry}")
        program = crew.run()
        eventually(crew.executions, "the job has begun")
        program.kill()
        while jobs := crew.jobs():
            for pid in jobs:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        carry_on(crew)
        found = dict(crew.final_state()["submissions"])
        assert found == {
            "flow/run1/1/long/1": "failed",
            "flow/run1/1/long/2": "succeeded",
            "flow/run1/1/last/1": "succeeded",
        }
        crew.judge()
        with crew.client() as client:
            [attempt] = client.attempts("flow/run1/1/long/1")
            assert "was killed while no" in attempt.error.description


# ---- between the end of the run and the exit of its process ----


def submissions_of(crew):
    return [one for one, _ in crew.final_state("flow/run1")["submissions"]]


@pytest.mark.parametrize("place", [*AT_THE_END, *RUN_TOLD])
def test_the_same_command_tells_the_result_of_a_run_whose_exit_status_nobody_got(
    tmp_path, place
):
    with run_crew(tmp_path) as crew:
        crew.define("        R1 = a => b")
        doomed = crew.run(TIDEWHEEL_FAILPOINT=place)
        assert was_killed(doomed)
        assert crew.view().status == "completed"
        done = submissions_of(crew)

        elsewhere = crew.run("--stopcp", "1", TIDEWHEEL_FAILPOINT=place)  # in other words
        assert was_killed(elsewhere) and "flow/run2 starts" in elsewhere.log

        for _ in range(2):  # told twice rather than never
            again = crew.run("--stopcp", "1", TIDEWHEEL_FAILPOINT=RUN_TOLD[0])
            assert was_killed(again)
            assert "flow/run2 ended at" in again.log
        told = crew.run("--stopcp", "1")
        assert ended(told) == 0, told.log
        assert "flow/run2 completed after" in told.log and "2 succeeded" in told.log
        assert submissions_of(crew) == done

        after = crew.run("--stopcp", "1")
        assert ended(after) == 0 and "flow/run3 starts" in after.log
        assert ended(crew.run("--stopcp", "1", "--new")) == 0


def test_a_result_that_is_told_late_is_that_of_the_run(tmp_path):
    with run_crew(tmp_path) as crew:
        graph = "        R1 = '''\n a:fail => mail\n a => b\n'''"
        crew.define(graph, "    [[a]]\n        script = false")
        assert was_killed(crew.run("--fail-on", "lost", TIDEWHEEL_FAILPOINT=RUN_TOLD[0]))
        told = crew.run("--fail-on", "lost")
        assert ended(told) == FAILED, told.log
        assert "flow/run1 completed after" in told.log and "1 lost" in told.log
        assert "1/b will not run" in told.log


def test_a_run_in_which_nothing_ran_has_failed_also_when_that_is_told_late(tmp_path):
    with run_crew(tmp_path) as crew:
        crew.define("        R1 = a")
        doomed = crew.run("--pause", TIDEWHEEL_FAILPOINT=RUN_TOLD[0])
        doomed.says("paused")
        assert crew.ask("remove", "flow", "1/a")[0] == 0
        assert crew.ask("resume", "flow")[0] == 0
        assert was_killed(doomed)
        told = crew.run("--pause")
        assert ended(told) == FAILED, told.log
        assert "1 skipped" in told.log and "no task was ready at any point" in told.log


def test_a_result_of_a_definition_that_has_changed_since_is_named_and_the_next_run_begins(
    tmp_path,
):
    with run_crew(tmp_path) as crew:
        crew.define("        R1 = a")
        assert was_killed(crew.run(TIDEWHEEL_FAILPOINT=RUN_TOLD[0]))
        crew.define("        R1 = a => b")
        after = crew.run()
        assert ended(after) == 0, after.log
        assert "flow/run1 ended before, and its result was not shown: completed;" in after.log
        assert "the definition has changed" in after.log
        assert "flow/run2 starts" in after.log and "2 succeeded" in after.log


def test_a_run_that_another_scheduler_ended_after_a_sigterm_is_told_and_not_begun_anew(
    tmp_path,
):
    with run_crew(tmp_path) as crew:
        gate = crew.folder / "gate"
        os.mkfifo(gate)
        crew.define("        R1 = a => b", f"    [[a]]\n        script = read -r _ < {gate}")
        left = crew.run()
        eventually(crew.executions, "the job has begun")
        left.send(signal.SIGTERM)
        assert ended(left) == TERMINATED, left.log
        crew.scheduler()
        crew.worker("--queue", "run:*")
        gate.write_text("go\n")
        eventually(lambda: crew.view().status == "completed", "it is completed")
        told = crew.run()
        assert ended(told) == 0 and "flow/run1 ended at" in told.log, told.log
        assert len(submissions_of(crew)) == 2


def test_whoever_is_refused_a_run_takes_nobodys_result_away(tmp_path):
    with run_crew(tmp_path) as crew:
        gate = crew.folder / "gate"
        os.mkfifo(gate)
        crew.define("        R1 = a => b", f"    [[a]]\n        script = read -r _ < {gate}")
        doomed = crew.run(TIDEWHEEL_FAILPOINT=RUN_TOLD[0])
        eventually(crew.executions, "the job has begun")
        assert ended(crew.run("flow/run1")) == ExitCode.REFUSED
        gate.write_text("go\n")
        assert was_killed(doomed)
        told = crew.run()
        assert ended(told) == 0 and "flow/run1 ended at" in told.log, told.log


HANDLED = """
        [[[events]]]
            handler events = submitted, started, succeeded
            handlers = echo %(event)s %(workflow)s/%(id)s >> {told}
"""
OF_THE_RUN = """
    [[events]]
        shutdown handlers = "{handler}"
"""


def handle_shutdown(crew, told, handler="echo %(event)s %(workflow)s >> {told}"):
    """Once the workflow is defined."""
    path, first = crew.folder / "flow" / "flow.cylc", "allow implicit tasks = True"
    text = path.read_text().replace(
        first, first + OF_THE_RUN.format(handler=handler.format(told=told)), 1
    )
    path.write_text(text)


def handled(crew, final):
    """A workflow whose handlers write down what they are called for."""
    told = crew.folder / "told"
    root = HANDLED.format(told=told)
    crew.define("P1 = '''a => b & c\nc[-P1] => a'''", final=final, root=root)
    handle_shutdown(crew, told)
    return told


def everything(final):
    """What they are called for, at least once each."""
    tasks = {
        f"{event} flow/run1/{point}/{name}"
        for event in ("submitted", "started", "succeeded")
        for point in range(1, final + 1)
        for name in "abc"
    }
    return tasks | {"shutdown flow/run1"}


@pytest.mark.timeout(3600)
def test_no_call_of_an_event_handler_is_lost_however_often_the_run_is_killed(tmp_path, chance):
    """RELIABILITY: at least once. Killed where the batch is in the store and nobody was told
    of it, and at any other moment."""
    final, kills = scaled(4), scaled(10)
    with run_crew(tmp_path) as crew:
        told = handled(crew, final)
        assert was_killed(crew.run(*AT_ONCE, TIDEWHEEL_FAILPOINT="batch_written"))
        for number in range(kills):
            # The first batch after a restart tells of what happened meanwhile, if anything.
            place = f"batch_written:{number % 4 + 1}"
            program = crew.run(*CARRIED_ON, TIDEWHEEL_FAILPOINT=place)
            if number % 3 == 2:
                more = len(crew.executions()) + chance.randint(0, 2)
                eventually(
                    lambda n=more, one=program: len(crew.executions()) >= n or not one.runs,
                    "jobs have begun",
                )
                program.kill()
            elif not was_killed(program):
                break  # it was over before it came there
        while crew.view().status != "completed":
            ended(crew.run(*CARRIED_ON), LONG_SECONDS)
        # What was left when it was killed at its very end is done by the next run of the flow.
        assert ended(crew.run("flow", "--new", *AT_ONCE), LONG_SECONDS) == 0
        assert everything(final) <= set(told.read_text().splitlines())


# Its first batch, or the one after, is its last: there is no job to wait for.
AT_A_STROKE = "    [[a]]\n        run mode = skip"


def kill_at_its_end(crew, run, *words):
    """When it is completed and nobody was told of that."""
    assert was_killed(crew.run(*words, TIDEWHEEL_FAILPOINT="batch_written"))
    while crew.view(run).status != "completed":
        assert was_killed(crew.run(TIDEWHEEL_FAILPOINT="batch_written"))


def test_what_a_run_left_when_it_was_killed_at_its_end_is_told_by_the_next(tmp_path):
    with run_crew(tmp_path) as crew:
        told = crew.folder / "told"
        crew.define("R1 = a", AT_A_STROKE)
        handle_shutdown(crew, told)
        kill_at_its_end(crew, "flow/run1")
        assert not told.exists()
        assert ended(crew.run("flow", "--new")) == 0
        said = sorted(told.read_text().splitlines())
        assert said == ["shutdown flow/run1", "shutdown flow/run2"]
        assert crew.look(lambda store: store.undelivered_runs(0.0, 10)) == []


def test_what_a_run_left_is_told_once_however_many_deliver_it(tmp_path):
    with run_crew(tmp_path) as crew:
        told = crew.folder / "told"
        crew.define("R1 = a", AT_A_STROKE)
        handle_shutdown(crew, told)
        kill_at_its_end(crew, "flow/run1")
        home = Path(crew.environment["TIDEWHEEL_HOME"])

        async def deliver(store):
            run = await store.find_run("flow/run1")
            return await asyncio.gather(
                *(deliver_left(crew.store, store, run, home, own_settings()) for _ in "abc")
            )

        assert sorted(crew.look(deliver)) == [0, 0, 1]
        assert told.read_text().splitlines() == ["shutdown flow/run1"]
        assert crew.look(deliver) == [0, 0, 0]


def test_a_mail_that_a_killed_run_owes_is_sent_by_the_next_and_not_again(tmp_path):
    async def mails(crew):
        async with mail_server() as server:
            crew.environment["TIDEWHEEL_SMTP"] = server.address
            await asyncio.to_thread(kill_at_its_end, crew, "flow/run1")
            assert not server.mails
            for _ in range(3):
                assert await asyncio.to_thread(lambda: ended(crew.run("flow", "--new"))) == 0
            return [mail["Subject"] for mail in server.mails]

    with run_crew(tmp_path) as crew:
        crew.define("R1 = a", AT_A_STROKE)
        flow, first = crew.folder / "flow" / "flow.cylc", "allow implicit tasks = True"
        mailed = "\n    [[mail]]\n        to = a@x.org"
        mailed += "\n    [[events]]\n        mail events = shutdown"
        flow.write_text(flow.read_text().replace(first, first + mailed, 1))
        found = asyncio.run(mails(crew))
    assert sorted(found) == [f"[workflow shutdown] flow/run{number}" for number in (1, 2, 3, 4)]


# ---- handlers that take their time at the end of a run ----


@pytest.fixture
def slow(tmp_path):
    """A crew whose first run has a handler of its shutdown that waits until it may go on."""
    with run_crew(tmp_path) as crew:
        crew.told, crew.gate = crew.folder / "told", crew.folder / "gate"
        wait = f"while test ! -e {crew.gate}; do sleep 0.1; done"
        handler = f"echo %(workflow)s >> {{told}}; test %(workflow)s != flow/run1 || {wait}"
        crew.define("R1 = a", AT_A_STROKE)
        handle_shutdown(crew, crew.told, handler)
        yield crew


def told_in(crew):
    return crew.told.read_text().split() if crew.told.exists() else []


def test_while_the_process_lives_that_tells_a_result_nobody_else_tells_it_or_calls_handlers(
    slow,
):
    first = slow.run()
    eventually(lambda: told_in(slow) == ["flow/run1"], "its handler is called")
    assert slow.view().status == "completed"
    second = slow.run()
    assert ended(second) == ExitCode.REFUSED, second.log
    assert "flow/run1 is completed, and its result is being shown" in second.log
    assert f"process {first.pid} on" in second.log
    assert ended(slow.run("--new")) == 0
    assert first.runs and told_in(slow) == ["flow/run1", "flow/run2"]
    slow.gate.touch()
    assert ended(first) == 0, first.log


def test_a_result_that_is_owed_does_not_wait_for_handlers_without_end(slow):
    """Which are called the next time."""
    kill_at_its_end(slow, "flow/run1")
    assert not told_in(slow)
    again = slow.run()
    again.says("flow/run1 ended at")
    again.says("flow/run1 completed after")
    assert again.runs
    eventually(lambda: told_in(slow) == ["flow/run1"], "its handler is called")
    assert ended(again, 2 * DRAIN_SECONDS) == 0, again.log
    assert [one.name for one in slow.look(lambda store: store.undelivered_runs(0.0, 9))]


def test_sigterm_does_not_wait_for_what_other_runs_have_left(slow):
    kill_at_its_end(slow, "flow/run1")
    second = slow.run("--new")
    eventually(lambda: sorted(told_in(slow)) == ["flow/run1", "flow/run2"], "both are called")
    eventually(lambda: slow.view("flow/run2").status == "completed", "it is completed")
    second.send(signal.SIGTERM)
    assert ended(second, DRAIN_SECONDS / 2) == 0, second.log


def test_a_run_whose_handlers_cannot_be_called_hides_no_other(slow):
    slow.gate.touch()
    kill_at_its_end(slow, "flow/run1")
    [owner] = slow.folder.rglob(str(Path("runs", "flow", "run1", OWNER)))
    owner.write_text("another run")
    kill_at_its_end(slow, "flow/run2", "--new")
    assert ended(slow.run("--new")) == 0
    assert sorted(told_in(slow)) == ["flow/run2", "flow/run3"]
