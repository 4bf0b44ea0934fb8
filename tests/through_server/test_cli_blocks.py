"""Scheduling block instances through a server, with two schedulers and a worker behind it."""

from contextlib import ExitStack

import pytest

from tests.support.patience import eventually_told
from tests.support.sips import definition, stage
from tests.support.workflow_folders import put

A, B, C = (f"PB-20261115-sip-{letter}" for letter in "abc")
SBI = f"""
id: SBI-20261115-sip-1
version: 2.0
scheduling_block: {{id: SB-1}}
processing_blocks:
  - id: {B}
    type: offline
    workflow: {{id: vis, version: 1.0.0, parameters: {{word: second, seconds: 100}}}}
    dependencies: [{{type: processing_block, value: {A}, condition: complete}}]
  - id: {A}
    type: realtime
    priority: 100
    workflow: {{id: vis, version: 1.0.0, parameters: {{word: first, seconds: 0}}}}
  - id: {C}
    type: offline
    workflow: {{id: vis, version: 1.0.0, parameters: {{word: third, seconds: 0}}}}
    dependencies: [{{type: processing_block, value: {B}, condition: complete}}]
"""
FILES = {
    "vis-1.0.0.yaml": definition(
        stage("make", "object:data present"), stage("use", "make complete")
    ),
    "stages/make/1.0.0/script.sh": """
printf '{"made": "%s"}' "$PARAMETER_word" > "$TIDEWHEEL_OUTPUTS"
""",
    "stages/make/1.0.0/parameters.yaml": "word:\n",
    "stages/make/1.0.0/outputs.yaml": "[made]\n",
    "stages/use/1.0.0/command.yaml.j2": "[sleep, '{{ seconds }}', ]\n",
    "stages/use/1.0.0/parameters.yaml": "seconds:\nmade:\n",
}


def statuses(machine):
    return {one["id"]: one["status"] for one in machine("blocks", "--json").json["blocks"]}


def states(machine, block):
    shown = machine("blocks", "show", block, "--json").json
    return {one["stage"] or one["object"]: one["status"] for one in shown["stages"]}


@pytest.mark.req("R004-43", "R004-53", "R004-55", "R004-56", "R004-60", "R004-61", "R004-62")
def test_blocks_run_one_after_the_other_wait_for_objects_and_are_aborted(here, there):
    put(here.folder, FILES | {"request.yaml": SBI})
    assert here("register", "vis-1.0.0.yaml").status == 0
    assert here("sbi", "submit", "request.yaml").out.startswith("SBI-20261115-sip-1: accepted")
    quick = {"TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS": "0.1"}
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(there.started("scheduler", **quick))
        stack.enter_context(there.started("worker", "--queue", "run:*"))
        eventually_told(lambda: statuses(here)[A] == "waiting_for_object", "the first begins")
        assert "it has not been posted yet" in here("blocks", "show", A).out
        assert "tidewheel objects post data" in here("why", A, "1/make").out
        assert statuses(here)[B] == "waiting_for_blocks"
        assert states(here, A) == {
            "data": "absent",
            "make": "waiting_for_object",
            "use": "waiting_for_dependencies",
        }
        assert "use needs the success of make" in here("blocks", "show", A).out
        assert f"waits for {A} to be complete" in here("why", B, "1/make").out
        assert f"waits for {A} to be complete" in here("runs").out

        assert here("objects", "post", "data", "--fact", "size=2TB").out == "data: posted\n"
        eventually_told(lambda: statuses(here)[A] == "completed", "the first block ends")
        running = {"data": "present", "make": "succeeded", "use": "running"}
        eventually_told(
            lambda: states(here, B) == running, "the second block is at its last stage"
        )
        shown = here("processing-blocks", "show", B, "--json").json
        make = next(one for one in shown["stages"] if one["stage"] == "make")
        assert make["values"] == {"made": "second"}
        assert [one["event"] for one in make["events"]] == ["submitted", "started", "succeeded"]

        told = here("blocks", "abort", B, "--reason", "wrong field").out
        assert told.startswith(B)
        eventually_told(lambda: statuses(here)[B] == "aborted", "the second block is aborted")
        shown = here("blocks", "show", B, "--json").json
        assert shown["reason"].endswith("wrong field")
        assert states(here, B)["use"] == "aborted"
        assert statuses(here)[C] == "waiting_for_blocks"
        assert "never begins" in here("blocks").out
        assert (
            here("blocks", "abort", B).out == f"{B} was already aborted; nothing was changed\n"
        )
        jobs = there("tasks", "--jobs", "--json").json["tasks"]
        assert sorted(one["id"] for one in jobs) == sorted(
            f"{name}/1/{part}/1" for name in (A, B) for part in ("make", "use")
        )


def test_every_mistake_is_told_at_once_and_nothing_is_stored(here):
    put(here.folder, FILES | {"request.yaml": SBI.replace("priority: 100", "priority: 101")})
    refused = here("sbi", "submit", "request.yaml")
    assert refused.status == 2
    assert "request.yaml:12:15: error: priority of block" in refused.err
    put(here.folder, {"request.yaml": SBI})
    refused = here("sbi", "submit", "-", stdin=SBI)
    assert refused.status == 2
    assert refused.err.count("no workflow 'vis' is registered") == 3
    assert here("blocks", "--json").json == {"blocks": []}
    assert here("sbi", "--json").json == {"sbis": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sbi", "submit"], "tidewheel sbi submit FILE"),
        (["sbi", "show"], "tidewheel sbi show ID"),
        (["sbi", "submit", "nowhere.json"], "nowhere.json cannot be read: no such file"),
        (["blocks", "abort"], "tidewheel blocks abort ID"),
        (["blocks", "list", "PB-1"], "tidewheel blocks show PB-1"),
        (["blocks", "show", "PB-1"], "there is no processing block 'PB-1'"),
        (["objects", "post"], "objects post NAME"),
        (["objects", "list", "a"], "objects post NAME"),
        (["objects", "post", "a", "--fact", "x"], "KEY=VALUE"),
    ],
)
def test_who_says_too_little_is_told_what_to_write(here, words, told):
    refused = here(*words)
    assert refused.status == 2
    assert told in refused.err


ELEMENTS = {
    "each-1.0.0.yaml.j2": definition(
        stage("find"),
        stage("image", more="for_each: find.beams"),
        stage("site", more="for_each: '{{ sites }}'"),
        stage("join", "image complete", "site complete"),
    ),
    "stages/find/1.0.0/script.sh": 'echo \'{"beams": [1, "b c"]}\' > "$TIDEWHEEL_OUTPUTS"\n',
    "stages/find/1.0.0/outputs.yaml": "[beams]\n",
    "stages/image/1.0.0/script.sh": """
echo "{\\"seen\\": \\"$PARAMETER_item\\"}" > "$TIDEWHEEL_OUTPUTS"
""",
    "stages/image/1.0.0/outputs.yaml": "[seen]\n",
    "stages/site/1.0.0/command.yaml.j2": "[echo, 'at {{ item }}']\n",
    "stages/join/1.0.0/command.yaml.j2": "[echo, '{{ seen }}']\n",
    "stages/join/1.0.0/parameters.yaml": "seen:\n",
}


@pytest.mark.req("R011-9")
def test_stages_for_each_element_run_through_a_server(here, there):
    put(here.folder, ELEMENTS)
    assert here("register", "each-1.0.0.yaml.j2").status == 0
    refused = here("run", "each/1.0.0", "-p", "sites=north", "--detach")
    assert (
        'for_each of stage site is "north", the value of sites: that is not a list'
        in refused.out + refused.err
    )
    begun = here("run", "each/1.0.0", "-p", 'sites=["x", "y"]', "--detach")
    assert begun.status == 0, begun
    with (
        there.started("scheduler", TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS="0.1"),
        there.started("worker", "--queue", "run:*"),
    ):
        eventually_told(
            lambda: here("show", "each", "--json").json["run"]["status"] == "completed",
            "the run is completed",
        )
    assert here("log", "each", "1/join").out == '["1","b c"]\n'
    assert here("log", "each", "1/site_item1").out == "at y\n"
