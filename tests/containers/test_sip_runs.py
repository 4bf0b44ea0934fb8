"""Runs of SIP definitions whose stages are real containers, by the real program."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.container_engine import (
    DOCKER,
    IMAGE,
    running_engines,
    until_nothing_is_left,
)
from tests.support.patience import eventually, eventually_told
from tests.support.run_crew import ended, run_crew
from tests.support.seed_blocks import FIRST_JSON, FIRST_YAML, SIMPLE_JSON, TEMPLATE
from tests.support.sip_files import one_service, waiting, write_sip
from tests.support.sips import definition, stage

EXAMPLE = Path(__file__).parents[2] / "examples" / "containers"
FILE = "flow-1.0.0.yaml"
SECONDS_MAX = 100.0  # of a run: its stages take seconds each, on a busy machine many
pytestmark = pytest.mark.timeout(170)


@pytest.fixture
def crew(tmp_path, engine):
    with run_crew(tmp_path) as crew:
        crew.environment |= engine.environment
        yield crew


def share(crew, name="flow/run1"):
    return crew.home / "runs" / name / "share"


def journal(crew):
    path = share(crew) / "journal"
    return path.read_text().splitlines() if path.exists() else []


def until_begun(crew, *names):
    wanted = sorted(f"begin {name}" for name in names)
    eventually(lambda: sorted(journal(crew)) == wanted, f"{wanted} begun", SECONDS_MAX)


def go(crew):
    (share(crew) / "go").touch()


def outcomes(crew, name="flow/run1"):
    """Each stage's submissions, with their statuses."""
    found = crew.final_state(name)["submissions"]
    return {task_id.removeprefix(f"{name}/1/"): status for task_id, status in found}


def test_the_example_with_containers_runs_by_one_command(crew, engine, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "example")
    run = crew.run(
        *("example/survey-1.0.0.yaml.j2", "--runner", "compose", "-p", f"image={IMAGE}")
    )
    assert ended(run, SECONDS_MAX) == 0, run.log
    made = (share(crew, "survey/run1") / "image").read_text()
    assert made == "phase scaled by 8\namplitude scaled by 8\n"
    assert engine.left_behind() == {}


@pytest.mark.req("R004-34", "R004-12")
@pytest.mark.parametrize(
    ("file", "text"), [(FILE, FIRST_YAML), ("flow-1.0.0.json", FIRST_JSON)]
)
def test_the_seeds_definition_without_stages_is_complete_at_once(crew, tmp_path, file, text):
    write_sip(tmp_path / "flow", file, text, {})
    assert ended(crew.run(f"flow/{file}", "--runner", "compose"), SECONDS_MAX) == 0


BLOCKS = {
    "flow-1.0.0.json": (SIMPLE_JSON, ("prepare", "reduce"), ()),
    "flow-1.0.0.yaml.j2": (
        TEMPLATE,
        ("stage-a", "stage-b"),
        ("-p", "longest=60s", "-p", "how_many=10"),
    ),
}


@pytest.mark.req("R004-34", "R004-57", "R004-58")
@pytest.mark.parametrize("file", BLOCKS)
def test_the_seeds_examples_run_where_their_nodes_are_offered(crew, engine, tmp_path, file):
    text, stages, parameters = BLOCKS[file]
    scripts = {name: one_service(f"echo {name} >> /share/journal") for name in stages}
    write_sip(tmp_path / "flow", file, text, scripts)
    offered = ("--runner", "swarm", "--label", "compute_a", "--nodes", "10")
    run = crew.run(f"flow/{file}", *parameters, *offered)
    assert ended(run, SECONDS_MAX) == 0, run.log
    assert sorted(journal(crew)) == sorted(stages)
    assert set(outcomes(crew).values()) == {"succeeded"}
    until_nothing_is_left(engine)


@pytest.mark.req("R004-32", "R004-18", "R004-57")
def test_stages_without_a_dependency_overlap_on_the_nodes_that_their_labels_name(
    crew, swarm, tmp_path
):
    manager, node = swarm
    manager.docker("node", "update", "--label-add", "sender=true", "m1")
    manager.docker("node", "update", "--label-add", "receiver=true", "w1")
    needs = "resources_required:\n  - {type: nodes, number: 1, exclusive: false, label: %s}"
    text = definition(
        stage("send", more=needs % "sender").replace("    resources_required: []\n", ""),
        stage("receive", more=needs % "receiver").replace("    resources_required: []\n", ""),
        stage("last", "send complete", "receive complete"),
    )
    scripts = {name: waiting(name) for name in ("send", "receive", "last")}
    write_sip(tmp_path / "flow", FILE, text, scripts)
    run = crew.run(f"flow/{FILE}", "--runner", "swarm")

    def names(engine):
        rows = engine.rows("ps", "--filter", "label=tidewheel.runner=swarm")
        return [row["Names"] for row in rows]

    eventually_told(
        lambda: names(manager) and names(node), "one stage on each node", SECONDS_MAX
    )
    [sender], [receiver] = names(manager), names(node)
    assert sender.startswith("tw-flow-run1-1-send-")
    assert receiver.startswith("tw-flow-run1-1-receive-")
    until_begun(crew, "send", "receive")
    go(crew)
    assert ended(run, SECONDS_MAX) == 0, run.log
    assert journal(crew)[-1] == "begin last"
    until_nothing_is_left(*swarm)


@pytest.mark.req("R004-59")
def test_a_stage_with_one_bad_service_has_failed_and_the_run_says_which(crew, engine, tmp_path):
    text = definition(stage("a"), stage("b", "a complete"), stage("c", "a failed"))
    scripts = {
        "a": one_service("echo no data >&2; exit 3"),
        "b": one_service("echo b >> /share/journal"),
        "c": one_service("echo c >> /share/journal"),
    }
    write_sip(tmp_path / "flow", FILE, text, scripts)
    run = crew.run(f"flow/{FILE}", "--runner", "compose")
    assert ended(run, SECONDS_MAX) == 0, run.log
    assert "a failed: service work: exit status 3; last line of its log: no data" in run.log
    assert outcomes(crew) == {"a/1": "failed", "c/1": "succeeded"}
    assert journal(crew) == ["c"]
    with crew.client() as client:
        [attempt] = client.attempts("flow/run1/1/a/1")
    assert attempt.error.description.startswith("service work: exit status 3")
    assert json.loads(attempt.error.args) == {"service": "work", "exit_status": 3}
    assert engine.left_behind() == {}


@pytest.mark.req("R004-60")
def test_a_run_that_is_stopped_in_mid_stage_leaves_no_container(crew, engine, tmp_path):
    text = definition(stage("a"), stage("b"), stage("c", "a complete"))
    write_sip(tmp_path / "flow", FILE, text, {name: waiting(name) for name in ("a", "b", "c")})
    run = crew.run(f"flow/{FILE}", "--runner", "compose")
    until_begun(crew, "a", "b")
    assert crew.ask("stop", "--kill", "flow")[0] == 0
    ended(run, SECONDS_MAX)
    assert engine.docker("ps", "-aq") == ""
    assert engine.left_behind() == {}
    assert sorted(journal(crew)) == ["begin a", "begin b"]


@pytest.mark.req("R004-62")
@pytest.mark.parametrize("victim", ["scheduler", "both"])
def test_whoever_dies_in_mid_stage_no_stage_is_started_twice(crew, engine, tmp_path, victim):
    text = definition(stage("a"), stage("b", "a complete"))
    write_sip(tmp_path / "flow", FILE, text, {"a": waiting("a"), "b": waiting("b")})
    with crew.client() as client:
        client.configure_queue("run:flow/run1", lease_seconds=600.0)
    worker_of = ("worker", "--queue", "run:*", "--runner", "compose")
    worker = crew.start(*worker_of)
    scheduler = crew.run(f"flow/{FILE}")
    until_begun(crew, "a")
    scheduler.kill()
    if victim == "both":
        worker.kill()
    scheduler = crew.run("flow/run1")
    if victim == "both":
        crew.start(*worker_of).says("adopted", SECONDS_MAX)
    go(crew)
    assert ended(scheduler, SECONDS_MAX) == 0, scheduler.log
    assert journal(crew) == ["begin a", "begin b"]
    assert outcomes(crew) == {"a/1": "succeeded", "b/1": "succeeded"}
    until_nothing_is_left(engine)


@pytest.mark.req("R004-62")
def test_a_stage_that_its_engine_took_with_it_runs_again_and_the_run_goes_on(tmp_path):
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    text = definition(stage("a"), stage("b", "a complete"))
    write_sip(tmp_path / "flow", FILE, text, {"a": waiting("a"), "b": waiting("b")})
    with running_engines("e1") as [engine], run_crew(tmp_path) as crew:
        crew.environment |= engine.environment
        run = crew.run(f"flow/{FILE}", "--runner", "compose")
        until_begun(crew, "a")
        eventually_told(lambda: engine.docker("ps", "-q"), "the engine shows what runs")
        engine.kill()
        engine.start()
        until_begun(crew, "a", "a")
        go(crew)
        assert ended(run, SECONDS_MAX) == 0, run.log
        assert journal(crew) == ["begin a", "begin a", "begin b"]
        assert outcomes(crew) == {"a/1": "succeeded", "b/1": "succeeded"}
        with crew.client() as client:
            again = client.get("flow/run1/1/a/1")
        assert (again.attempt, again.failures) == (2, 0)
        until_nothing_is_left(engine)


@pytest.mark.req("R004-49", "R004-50")
@pytest.mark.parametrize(("runner", "version"), [("compose", "2.1"), ("swarm", "2.1")])
def test_a_stage_in_the_form_of_sips_own_files_runs_where_it_is_allowed(
    crew, tmp_path, runner, version
):
    """What a service joins and how it stops stand under deploy, as no engine takes it."""
    compose = (
        f"version: '{version}'\nservices:\n  work:\n    mem_limit: 64m\n    cpu_shares: 512\n"
        f"    image: {IMAGE}\n    command: [sh, -c, 'echo done >> /share/journal']\n"
        "    volumes: ['${TIDEWHEEL_RUN_DIR}/share:/share']\n"
        "    deploy: {networks: [hostnet], stop_signal: INT, mode: replicated}\n"
        "networks:\n  hostnet: {external: true, name: host}\n"
    )
    write_sip(tmp_path / "flow", FILE, definition(stage("a")), {"a": compose})
    allowed = ("--runner", runner, "--allow-compose", "host-network")
    run = crew.run(f"flow/{FILE}", *allowed)
    assert ended(run, SECONDS_MAX) == 0, run.log
    assert journal(crew) == ["done"]
