"""Issue 19: a run whose tasks are runs ends as if nothing had happened, whoever is killed."""

import os

import pytest

from tests.support.patience import eventually, scaled
from tests.support.run_crew import NOTE, ended, run_crew, was_killed

GRAPH = "        R1 = fetch => post => publish"
SCRIPTS = """
    [[post]]
        workflow = ./post/
        [[[inputs]]]
            FILE = fetch.file
    [[fetch]]
        script = echo '{"file": "obs.nc"}' > "$TIDEWHEEL_OUTPUTS"
    [[publish]]
        script = test "$IMAGE" = obs.nc.fits
        [[[inputs]]]
            IMAGE = post.image.path
"""
NESTED = """#!jinja2
[scheduling]
    [[graph]]
        R1 = grid => image
[runtime]
    [[root]]
        pre-script = '''{note}'''
    [[grid]]
        script = {script}
    [[image]]
        script = echo '{{"path": "{{{{ FILE }}}}.fits"}}' > "$TIDEWHEEL_OUTPUTS"
"""
PLACES = [
    *("batch_before_write", "write_batch_before_commit", "write_batch_after_commit"),
    *("output_recorded", "children_spawned", "batch_written", "batch_told", "run_opened"),
    "claim_run_after_commit",
]
# Passed once, when the nested run is made: a program that waits for it later dies nowhere.
FIRST = "save_definition_after_commit"
NAMES = ["flow/run1/1/fetch/1", "flow/run1/1/publish/1"]
NESTED_NAMES = ["flow/run1/1/post/01/1/grid/1", "flow/run1/1/post/01/1/image/1"]
LONG_SECONDS = scaled(100)


@pytest.fixture
def crew(tmp_path):
    with run_crew(tmp_path) as crew:
        yield crew


def define(crew, script="true"):
    crew.define(GRAPH, SCRIPTS)
    folder = crew.folder / "flow" / "post"
    folder.mkdir()
    note = NOTE.format(word="begin", journal=crew.journal)
    (folder / "flow.cylc").write_text(NESTED.format(note=note, script=script))


def states(crew, name="flow/run1"):
    state = crew.final_state(name)
    return state["status"], state["submissions"], state["timers"]


def judge(crew):
    done = "succeeded"
    assert states(crew) == ("completed", [(name, done) for name in NAMES], [])
    nested = ("completed", [(name, done) for name in NESTED_NAMES], [])
    assert states(crew, "flow/run1/1/post/01") == nested
    assert len(crew.look(lambda store: store.runs(nested=True))) == 2
    assert crew.look(lambda store: store.verify()) == []


@pytest.mark.timeout(3600)
def test_wherever_it_dies_a_run_with_a_run_in_it_ends_as_if_nothing_had_happened(crew):
    define(crew)
    first = crew.run("--stall-timeout", "0", TIDEWHEEL_FAILPOINT="create_run_after_commit")
    assert was_killed(first), first.log
    assert was_killed(crew.run("flow/run1", TIDEWHEEL_FAILPOINT=FIRST))
    deaths = 0
    for nth in (1, 2, 3):  # of the passes through a place: each gets a little further
        for place in PLACES:
            program = crew.run("flow/run1", TIDEWHEEL_FAILPOINT=f"{place}:{nth}")
            deaths += was_killed(program)
    assert deaths >= len(PLACES), deaths
    program = crew.run("flow/run1", "--stall-timeout", "0")
    ended(program, LONG_SECONDS)
    judge(crew)


def test_a_job_of_a_nested_run_is_found_again_after_kill_9(crew):
    gate = crew.folder / "gate"
    os.mkfifo(gate)
    define(crew, f"read -r _ < {gate}")
    program = crew.run()
    eventually(lambda: len(crew.executions()) == 2, "the job of the nested run has begun")
    program.kill()
    carried_on = crew.run("flow/run1", "--stall-timeout", "0")
    carried_on.says(f"{NESTED_NAMES[0]} was found running")
    gate.write_text("go\n")
    assert ended(carried_on, LONG_SECONDS) == 0, carried_on.log
    judge(crew)
    assert len(crew.executions()) == 4


def test_killing_the_task_ends_the_jobs_of_its_run(crew):
    gate = crew.folder / "gate"
    os.mkfifo(gate)
    define(crew, f"read -r _ < {gate}")
    program = crew.run("--stall-timeout", "0")
    eventually(lambda: len(crew.executions()) == 2, "the job of the nested run has begun")
    assert crew.ask("kill", "flow/run1", "1/post")[0] == 0
    assert ended(program, LONG_SECONDS) != 0, program.log
    assert crew.view("flow/run1/1/post/01").is_aborted
    assert "aborted by flow/run1, which killed 1/post" in program.log


@pytest.fixture(params=["sqlite", "postgres"])
def any_crew(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with run_crew(tmp_path, url) as crew:
        yield crew


def test_other_schedulers_take_over_the_run_and_the_run_in_it(any_crew):
    crew, gate = any_crew, any_crew.folder / "open"
    define(crew, f"until test -e {gate}; do sleep 0.05; done")
    first = crew.run()
    crew.worker("--queue", "run:flow/run1", "--slots", "9").says("worker.registered")
    eventually(lambda: len(crew.executions()) >= 2, "the job of the nested run has begun")
    first.kill()
    for _ in range(2):
        standby = crew.scheduler()
        names = ("flow/run1", "flow/run1/1/post/01")

        def drives_both(pid=standby.pid, names=names):
            owners = [crew.view(name).owner for name in names]
            return all(one is not None and one.pid == pid for one in owners)

        eventually(drives_both, "it drives the run and the run in it")
        standby.kill()
    gate.write_text("go\n")
    last = crew.scheduler()
    eventually(lambda: crew.view().status == "completed", lambda: last.log, LONG_SECONDS)
    judge(crew)
