"""Blocks aborted in each of their states, on both stores; and instances as a whole."""

import json
import signal
from contextlib import ExitStack

import pytest

from tests.support.patience import eventually_told
from tests.support.sips import definition, stage
from tests.support.workflow_folders import put

QUICK = {
    "TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS": "0.1",
    "TIDEWHEEL_SCHEDULER_LEASE_SECONDS": "2",
}
HUNGRY = stage("a").replace(
    "resources_required: []", "resources_required: [{type: cpu, value: 99}]"
)
RETRYING = """\
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        script = false
        execution retry delays = PT1H
    [[b]]
        script = true
"""
# Each: the first stage of a workflow, what it does, and how its block and its stages are then.
WORKFLOWS = {
    "waits": (stage("a", "object:never present"), "", "waiting_for_object"),
    "hungry": (HUNGRY, "", "waiting_for_resources"),
    "runs": (stage("a"), "sleep 100\n", "running"),
    "stops": (stage("a"), "sleep 100\n", "running"),
    "fails": (stage("a"), "exit 3\n", "failed"),
    "ends": (stage("a"), "true\n", "completed"),
}
# Each: the status of a block before, those of its stages before, and those after its abort.
STATES = {
    "waits": (
        "waiting_for_object",
        "waiting_for_object waiting_for_dependencies",
        "aborted aborted",
    ),
    "hungry": (
        "waiting_for_resources",
        "waiting_for_resources waiting_for_dependencies",
        "aborted aborted",
    ),
    "runs": ("running", "running waiting_for_dependencies", "aborted aborted"),
    "retries": ("running", "retrying", "failed"),
    "fails": ("failed", "failed waiting_for_dependencies", "failed aborted"),
    "stops": ("stopped", "failed waiting_for_dependencies", "aborted aborted"),
    "later": ("waiting_for_blocks", "created created", "aborted aborted"),
    "ends": ("completed", "succeeded succeeded", "succeeded succeeded"),
}


def block_id(name):
    return f"PB-20261115-sip-{name}"


def block(name, workflow="", after=""):
    needs = [{"type": "processing_block", "value": block_id(after), "condition": "complete"}]
    return {
        "id": block_id(name),
        "type": "offline",
        "workflow": {"id": workflow or name},
        "dependencies": needs if after else [],
    }


def instance(*blocks):
    return json.dumps(
        {
            "id": "SBI-20261115-sip-1",
            "version": "2.0",
            "scheduling_block": {"id": "SB-1"},
            "subarray_id": "7",
            "processing_blocks": blocks,
        }
    )


@pytest.fixture(params=["sqlite", "postgres"])
def station(request, tidewheel):
    """With workflows that come to stand in each state."""
    if request.param == "postgres":
        tidewheel.environment["TIDEWHEEL_STORE"] = request.getfixturevalue("postgres_url")
    for name, (first, script, _) in WORKFLOWS.items():
        files = {
            f"{name}-1.0.0.yaml": definition(first, stage("b", "a complete")),
            "stages/a/1.0.0/script.sh": script or "true\n",
            "stages/b/1.0.0/script.sh": "true\n",
        }
        put(tidewheel.folder / name, files)
        assert tidewheel("register", f"{name}/{name}-1.0.0.yaml").status == 0
    put(tidewheel.folder / "retries", {"flow.cylc": RETRYING})
    assert tidewheel("register", "retries").status == 0
    return tidewheel


@pytest.fixture
def started(station):
    with ExitStack() as stack:
        yield lambda *words: stack.enter_context(station.started(*words, **QUICK))


def blocks(cli, *words):
    found = cli("blocks", *words, "--json").json["blocks"]
    return {one["id"].rpartition("-")[2]: one["status"] for one in found}


def stages(cli, name):
    shown = cli("blocks", "show", block_id(name), "--json").json
    return " ".join(one["status"] for one in shown["stages"] if one["stage"])


def reason(cli, name):
    return cli("blocks", "show", block_id(name), "--json").json["reason"]


@pytest.mark.timeout(240)
@pytest.mark.req("R004-60", "R004-61")
def test_an_abort_is_final_in_every_state_and_its_reason_stays(station, started):
    asked = [block(name) for name in STATES if name != "later"]
    asked.append(block("later", "ends", after="runs"))
    assert station("sbi", "submit", "-", stdin=instance(*asked)).status == 0
    started("scheduler")
    started("worker", "--queue", "run:*", "--slots", "9", "--cpu", "9")
    eventually_told(lambda: blocks(station)["stops"] == "running", "that block has begun")
    eventually_told(lambda: stages(station, "stops").startswith("running"), "its stage runs")
    assert station("stop", block_id("stops"), "--kill").status == 0
    before = {name: status for name, (status, _, _) in STATES.items()}
    eventually_told(lambda: blocks(station) == before, lambda: f"{blocks(station)}")
    for name, (_, wanted, _) in STATES.items():
        eventually_told(
            lambda name=name, wanted=wanted: stages(station, name) == wanted,
            lambda name=name: f"{name}: {stages(station, name)}",
        )
    page = station("blocks", "show", block_id("hungry")).out
    assert "asks for 99 cores" in page and "tidewheel worker --queue" in page
    [row] = station("sbi", "--subarray", "7", "--json").json["sbis"]
    assert row["status"] == "running"

    for name in STATES:
        answer = station("blocks", "abort", block_id(name), "--reason", f"not {name}")
        assert answer.status == 0, answer
    after = dict.fromkeys(STATES, "aborted") | {"ends": "completed"}
    eventually_told(lambda: blocks(station) == after, lambda: f"{blocks(station)}")
    for name, (_, _, wanted) in STATES.items():
        eventually_told(
            lambda name=name, wanted=wanted: stages(station, name) == wanted,
            lambda name=name: f"{name}: {stages(station, name)}",
        )
        if name == "ends":
            continue
        assert reason(station, name).endswith(f": not {name}")
        assert station("blocks", "abort", block_id(name), "--reason", "again").status == 0
        for words in (("run", block_id(name)), ("trigger", block_id(name), "1/a")):
            refused = station(*words)
            assert refused.status == 2 and f"not {name}" in refused.err, refused
        assert reason(station, name).endswith(f": not {name}")
        told = station("blocks", "show", block_id(name), "--history").out
        assert "aborted by" in told and f": not {name}" in told
    assert blocks(station, "--status", "completed") == {"ends": "completed"}
    [row] = station("sbi", "--status", "aborted", "--json").json["sbis"]
    assert row["counts"] == {"aborted": len(STATES) - 1, "completed": 1}
    left = station("tasks", "--jobs", "--json").json["tasks"]
    assert {one["status"] for one in left} <= {"succeeded", "failed", "cancelled"}


@pytest.mark.timeout(120)
@pytest.mark.req("R004-60", "R004-62")
def test_an_instance_is_aborted_whole_though_its_scheduler_and_the_command_are_killed(
    station, started
):
    names = ["runs", "waits", "hungry"]
    asked = [block(name) for name in names] + [block("later", "ends", after="runs")]
    submitted = station("sbi", "submit", "-", "--dry-run", stdin=instance(*asked))
    assert "would be accepted, 4 blocks; nothing was stored" in submitted.out
    assert blocks(station) == {}
    assert station("sbi", "submit", "-", stdin=instance(*asked)).status == 0
    scheduler = started("scheduler")
    started("worker", "--queue", "run:*")
    eventually_told(lambda: stages(station, "runs").startswith("running"), "its stage runs")
    scheduler.send(signal.SIGKILL)
    with station.started("sbi", "abort", "SBI-20261115-sip-1", "--reason", "first") as half:
        half.send(signal.SIGKILL)
    again = station("sbi", "abort", "SBI-20261115-sip-1", "--reason", "second")
    assert again.status == 0, again
    over = dict.fromkeys((*names, "later"), "aborted")
    eventually_told(lambda: blocks(station) == over, lambda: f"{blocks(station)}")
    said = {name: reason(station, name).rpartition(": ")[2] for name in over}
    assert set(said.values()) <= {"first", "second"}
    third = station("sbi", "abort", "SBI-20261115-sip-1", "--reason", "third")
    assert third.out.count("was already aborted; nothing was changed") == len(over)
    assert {name: reason(station, name).rpartition(": ")[2] for name in over} == said
    eventually_told(
        lambda: all(
            one["status"] == "cancelled"
            for one in station("tasks", "--jobs", "--json").json["tasks"]
        ),
        "its worker has ended what ran",
    )
    started("scheduler")
    assert blocks(station) == over
    assert "aborted" in station("sbi", "show", "SBI-20261115-sip-1").out
