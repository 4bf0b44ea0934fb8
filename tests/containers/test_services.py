"""Services of a run on real engines: who finds whom, who ends when, what is left."""

import shutil
from pathlib import Path

import pytest

from tests.support.container_engine import IMAGE, until_nothing_is_left
from tests.support.patience import eventually
from tests.support.run_crew import ended, run_crew
from tests.support.sip_files import SHARE, WAIT, write_sip
from tests.support.sips import definition, stage
from tests.support.stages import compose_text, service

EXAMPLE = Path(__file__).parents[2] / "examples" / "engine"
FILE = "flow-1.0.0.yaml"
CHUNKS = 400  # more than a worker does before the next one is started
SECONDS_MAX = 100.0  # of a run: its stages take seconds each, on a busy machine many
pytestmark = [pytest.mark.timeout(170), pytest.mark.req("R011-10")]
# Says its name to whoever asks; a TERM ends it.
SERVE = (
    "trap 'echo asked to end >> /share/journal; exit 0' TERM; "
    "echo begin {name} >> /share/journal; "
    "while true; do echo {name} | nc -l -p 7000; done & wait"
)
ASK = "nc {host} 7000 < /dev/null > /tmp/said 2> /dev/null && [ -s /tmp/said ]"
TELL = f"until {ASK}; do sleep 0.2; done; cat /tmp/said >> /share/journal"


@pytest.fixture
def crew(tmp_path, engine):
    with run_crew(tmp_path) as crew:
        crew.environment |= engine.environment
        yield crew


def work(script, **keys):
    return service(script, volumes=SHARE, **keys)


def journal(crew, name="flow/run1"):
    path = crew.home / "runs" / name / "share" / "journal"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("runner", ["compose", "swarm"])
def test_stages_find_a_service_by_name_and_it_is_ended_when_they_are(
    crew, engine, tmp_path, runner
):
    text = definition(
        stage("engine", more="until: [one, two]"),
        stage("one", "engine running"),
        stage("two", "one complete"),
    )
    files = {
        "engine": compose_text(scheduler=work(SERVE.format(name="hello"))),
        "one": compose_text(work=work(TELL.format(host="scheduler"))),
        "two": compose_text(work=work(TELL.format(host="engine.scheduler"))),
    }
    write_sip(tmp_path / "flow", FILE, text, files)
    run = crew.run(f"flow/{FILE}", "--runner", runner)
    assert ended(run, SECONDS_MAX) == 0, run.log
    assert journal(crew) == ["begin hello", "hello", "hello", "asked to end"]
    until_nothing_is_left(engine)


@pytest.mark.parametrize(("runner", "workers"), [("compose", 50), ("swarm", 8)])
def test_the_example_of_an_execution_engine_runs_by_one_command(
    crew, engine, tmp_path, runner, workers
):
    shutil.copytree(EXAMPLE, tmp_path / "example")
    given = {"image": IMAGE, "workers": workers, "chunks": CHUNKS}
    run = crew.run(
        *("example/engine-1.0.0.yaml.j2", "--runner", runner),
        *(word for name, value in given.items() for word in ("-p", f"{name}={value}")),
    )
    assert ended(run, SECONDS_MAX) == 0, run.log
    made = (crew.home / "runs/engine/run1/share/result").read_text().splitlines()
    assert sorted(int(line.split()[1]) for line in made) == list(range(1, CHUNKS + 1))
    assert len({line.split()[3] for line in made}) > 1, "one worker did it all"
    until_nothing_is_left(engine)


@pytest.mark.parametrize(
    "count", [4, pytest.param(50, marks=[pytest.mark.nightly, pytest.mark.timeout(900)])]
)
def test_each_element_of_a_stage_uses_the_service_which_ends_after_the_last(
    crew, engine, tmp_path, count
):
    text = definition(
        stage("engine", more="until: use"),
        stage("use", "engine running", more=f"for_each: {list(range(count))}"),
    )
    files = {
        "engine": compose_text(scheduler=work(SERVE.format(name="hello"))),
        "use": compose_text(work=work(TELL.format(host="engine.scheduler"))),
    }
    # Fifty that are made at once take minutes on a small machine, and the service waits.
    write_sip(tmp_path / "flow", FILE, text.replace("timeout: 60s", "timeout: 30m"), files)
    run = crew.run(f"flow/{FILE}", "--runner", "compose")
    assert ended(run, max(SECONDS_MAX, 15.0 * count)) == 0, run.log
    assert journal(crew) == ["begin hello", *["hello"] * count, "asked to end"]
    until_nothing_is_left(engine)


@pytest.mark.parametrize("runner", ["compose", "swarm"])
def test_a_stage_finds_its_own_service_first_where_another_has_one_of_that_name(
    crew, engine, tmp_path, runner
):
    text = definition(stage("engine", more="until: use"), stage("use", "engine running"))
    ask, ordered = ASK.format(host="db"), runner == "compose"
    # Until its own has started, the name is the other's, and a Swarm starts them in any order.
    waits = f"until {ask} && grep -q own /tmp/said; do sleep 0.2; done"
    first = "true" if ordered else waits
    often = f"for i in 1 2 3 4 5 6 7 8; do until {ask}; do sleep 0.2; done; cat /tmp/said; done"
    # An answer may get lost: it answers until the other has had all of them.
    own = work("while [ ! -e /share/done ]; do echo own | timeout 2 nc -l -p 7000; done; true")
    files = {
        "engine": compose_text(db=work(SERVE.format(name="other"))),
        "use": compose_text(
            app=work(
                f"{first}; ({often}) > /share/answers; touch /share/done",
                **({"depends_on": ["db"]} if ordered else {}),
            ),
            db=own,
        ),
    }
    write_sip(tmp_path / "flow", FILE, text, files)
    run = crew.run(f"flow/{FILE}", "--runner", runner)
    assert ended(run, SECONDS_MAX) == 0, run.log
    answers = (crew.home / "runs/flow/run1/share/answers").read_text().split()
    assert answers == ["own"] * 8
    until_nothing_is_left(engine)


def test_what_a_killed_worker_leaves_of_a_service_is_adopted_and_its_network_goes_at_the_end(
    crew, engine, tmp_path
):
    text = definition(stage("engine", more="until: use"), stage("use", "engine running"))
    ask = TELL.format(host="scheduler")
    files = {
        "engine": compose_text(scheduler=work(SERVE.format(name="hello"))),
        "use": compose_text(work=work(f"{WAIT.format(name='use')}; {ask}")),
    }
    write_sip(tmp_path / "flow", FILE, text, files)
    first = crew.run(f"flow/{FILE}", "--runner", "compose")
    eventually(lambda: "begin use" in journal(crew), "use has begun", SECONDS_MAX)
    first.kill()
    second = crew.run(f"flow/{FILE}", "--runner", "compose")
    (crew.home / "runs/flow/run1/share/go").touch()
    assert ended(second, SECONDS_MAX) == 0, second.log
    assert journal(crew) == ["begin hello", "begin use", "hello", "asked to end"]
    until_nothing_is_left(engine)


def test_a_run_that_is_killed_leaves_neither_services_nor_networks(crew, engine, tmp_path):
    text = definition(stage("engine", more="until: use"), stage("use", "engine running"))
    files = {
        "engine": compose_text(scheduler=work(SERVE.format(name="hello"))),
        "use": compose_text(work=work(WAIT.format(name="use"))),
    }
    write_sip(tmp_path / "flow", FILE, text, files)
    run = crew.run(f"flow/{FILE}", "--runner", "compose")
    eventually(lambda: "begin use" in journal(crew), "use has begun", SECONDS_MAX)
    status, said = crew.ask("stop", "flow/run1", "--kill")
    assert status == 0, said
    ended(run, SECONDS_MAX)
    until_nothing_is_left(engine)
