"""Processing blocks whose stages are real containers, aborted in the middle of one."""

import json

import pytest

from tests.support.container_engine import until_nothing_is_left
from tests.support.patience import eventually, eventually_told
from tests.support.run_crew import run_crew
from tests.support.sip_files import one_service, waiting, write_sip
from tests.support.sips import definition, stage

ABORTED, OTHER = "PB-20261115-sip-aborted", "PB-20261115-sip-other"


def instance():
    """Two blocks of one workflow, as a request writes them."""
    flow = {"id": "flow", "version": "1.0.0"}
    return {
        "id": "SBI-20261115-sip-1",
        "version": "2.0",
        "scheduling_block": {"id": "SB-1"},
        "processing_blocks": [
            {"id": name, "type": "offline", "workflow": flow} for name in (ABORTED, OTHER)
        ],
    }


@pytest.fixture
def crew(tmp_path, engine):
    with run_crew(tmp_path) as crew:
        crew.environment |= engine.environment
        text = definition(stage("a"), stage("b", "a complete"))
        write_sip(tmp_path / "flow", "flow-1.0.0.yaml", text, {n: waiting(n) for n in "ab"})
        (tmp_path / "sbi.json").write_text(json.dumps(instance()))
        yield crew


def share(crew, block):
    return crew.home / "runs" / block / "share"


def containers(engines, block):
    """The names of its containers on either node, whether they run or not."""
    asked = ("ps", "--all", "--filter", "label=tidewheel.runner")
    rows = [row for engine in engines for row in engine.rows(*asked)]
    return [row["Names"] for row in rows if block.lower() in row["Names"]]


def blocks(crew):
    status, said = crew.ask("blocks", "--json")
    assert status == 0, said
    return {one["id"]: one for one in json.loads(said)["blocks"]}


@pytest.mark.timeout(170)
@pytest.mark.req("R004-60", "R004-61", "R004-57")
def test_an_aborted_block_leaves_no_container_and_the_other_one_alone(crew, swarm):
    for words in (("register", "flow/flow-1.0.0.yaml"), ("sbi", "submit", "sbi.json")):
        status, said = crew.ask(*words)
        assert status == 0, said
    crew.scheduler()
    crew.start("worker", "--queue", "run:*", "--runner", "swarm")
    for block in (ABORTED, OTHER):
        journal = share(crew, block) / "journal"
        eventually(journal.exists, f"{block} has begun", 90.0)
        assert len(containers(swarm, block)) == 1
    assert crew.ask("blocks", "abort", ABORTED, "--reason", "wrong field")[0] == 0
    eventually_told(lambda: not containers(swarm, ABORTED), "nothing of it is left", 90.0)
    assert len(containers(swarm, OTHER)) == 1
    for block in (ABORTED, OTHER):
        (share(crew, block) / "go").touch()
    over = {ABORTED: "aborted", OTHER: "completed"}
    eventually_told(
        lambda: {name: one["status"] for name, one in blocks(crew).items()} == over,
        lambda: f"one is aborted, the other ends: {blocks(crew)}",
        90.0,
    )
    assert (share(crew, ABORTED) / "journal").read_text() == "begin a\n"
    shown = json.loads(crew.ask("blocks", "show", ABORTED, "--json")[1])
    assert "wrong field" in shown["reason"]
    statuses = {one["stage"]: one["status"] for one in shown["stages"]}
    assert statuses == {"a": "aborted", "b": "aborted"}
    until_nothing_is_left(*swarm)
    assert [engine.docker("ps", "-aq") for engine in swarm] == ["", ""]


@pytest.mark.timeout(170)
@pytest.mark.req("R004-60", "R004-61")
def test_a_stage_that_no_node_takes_says_so_and_its_abort_leaves_nothing(crew, swarm):
    nowhere = waiting(
        "a", deploy={"placement": {"constraints": ["node.labels.zone == nowhere"]}}
    )
    text = definition(stage("a"), stage("b", "a complete"))
    stages = {"a": nowhere, "b": waiting("b")}
    write_sip(crew.home / "nowhere", "nowhere-1.0.0.yaml", text, stages)
    request = json.dumps(instance()).replace('"flow"', '"nowhere"')
    (crew.home / "nowhere.json").write_text(request)
    for words in (
        ("register", str(crew.home / "nowhere" / "nowhere-1.0.0.yaml")),
        ("sbi", "submit", str(crew.home / "nowhere.json")),
    ):
        status, said = crew.ask(*words)
        assert status == 0, said
    crew.scheduler()
    crew.start("worker", "--queue", "run:*", "--runner", "swarm")

    def shown():
        return json.loads(crew.ask("blocks", "show", ABORTED, "--json")[1])

    def told():
        found = {one["stage"]: one for one in shown()["stages"]}["a"]
        return found["status"], "; ".join(found["why"])

    eventually(lambda: "waiting: " in told()[1], "the engine says why it does not begin", 90.0)
    assert blocks(crew)[ABORTED]["status"] == "running"
    assert crew.ask("sbi", "abort", "SBI-20261115-sip-1", "--reason", "no such node")[0] == 0
    eventually_told(
        lambda: {one["status"] for one in blocks(crew).values()} == {"aborted"},
        lambda: f"both are aborted: {blocks(crew)}",
        90.0,
    )
    eventually_told(lambda: told()[0] == "aborted", lambda: f"its stage is aborted: {told()}")
    assert shown()["reason"].endswith(": no such node")
    until_nothing_is_left(*swarm)
    assert swarm[0].docker("service", "ls", "-q") == ""


# The stages of a block, how the block is when it is aborted, and how its stages are afterwards.
STATES = {
    "hungry": (
        {"a": waiting("a", network_mode="host")},
        (stage("a"),),
        ("waiting_for_resources", 0),
        {"a": "aborted"},
    ),
    "between": (
        {"a": one_service("true"), "b": waiting("b")},
        (stage("a"), stage("b", "a complete", "object:never present")),
        ("waiting_for_object", 0),
        {"a": "succeeded", "b": "aborted"},
    ),
    "serving": (
        {"a": waiting("a"), "b": waiting("b")},
        (stage("a", more="until: b"), stage("b", "a running")),
        ("running", 2),
        {"a": "aborted", "b": "aborted"},
    ),
    "paused": (
        {"a": waiting("a"), "b": waiting("b")},
        (stage("a"), stage("b", "a complete")),
        ("running", 1),
        {"a": "aborted", "b": "aborted"},
    ),
}


@pytest.mark.timeout(300)
@pytest.mark.req("R004-60", "R004-61", "R004-57")
def test_an_abort_ends_a_block_of_containers_in_each_state_and_leaves_nothing(crew, engine):
    names = {name: f"PB-20261115-sip-{name}" for name in STATES}
    for name, (files, stages, _, _) in STATES.items():
        folder = crew.home / "states"
        write_sip(folder / name, f"{name}-1.0.0.yaml", definition(*stages), files)
        path = str(folder / name / f"{name}-1.0.0.yaml")
        assert crew.ask("register", path)[0] == 0
    asked = [
        {"id": names[one], "type": "offline", "workflow": {"id": one, "version": "1.0.0"}}
        for one in STATES
    ]
    request = instance() | {"processing_blocks": asked}
    (crew.home / "states.json").write_text(json.dumps(request))
    status, said = crew.ask("sbi", "submit", str(crew.home / "states.json"))
    assert status == 0, said
    crew.scheduler()
    crew.start("worker", "--queue", "run:*", "--slots", "9", "--runner", "compose")

    def running(name):
        return len(containers([engine], names[name]))

    def seen():
        there = blocks(crew)
        return {one: (there[names[one]]["status"], running(one)) for one in STATES}

    wanted = {name: one[2] for name, one in STATES.items()}
    eventually_told(lambda: seen() == wanted, lambda: f"each is in its state: {seen()}", 150.0)
    assert crew.ask("pause", names["paused"])[0] == 0
    assert crew.ask("sbi", "abort", "SBI-20261115-sip-1", "--reason", "rain")[0] == 0
    over = dict.fromkeys(STATES, ("aborted", 0))
    eventually_told(lambda: seen() == over, lambda: f"all are aborted: {seen()}", 150.0)
    for name, (_, _, _, after) in STATES.items():
        shown = json.loads(crew.ask("blocks", "show", names[name], "--json")[1])
        assert {one["stage"]: one["status"] for one in shown["stages"] if one["stage"]} == after
        assert shown["reason"].endswith(": rain")
    until_nothing_is_left(engine)
