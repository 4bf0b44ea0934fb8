"""Seed 004: what people do to runs of SIP definitions, and values that mean harm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tests.support.sips import definition, stage
from tidewheel.core.operator import verbs
from tidewheel.errors import Refused, RunLost

pytestmark = pytest.mark.slow  # each template is rendered in a process of its own

FILE = "flow-1.0.0.yaml"
USES_PLACE = {"command.yaml.j2": "[echo, '{{ place }}']\n", "parameters.yaml": "place:\n"}
FILES = {
    FILE: definition(stage("make"), stage("use", "make complete")),
    "stages/make/1.0.0/script.sh": "true\n",
    "stages/make/1.0.0/outputs.yaml": "- place\n",
    **{f"stages/use/1.0.0/{name}": text for name, text in USES_PLACE.items()},
}
COMPOSE = "services:\n  work:\n    image: busybox:1.36\n    command: [echo, '{{ place }}']\n"

PLAIN = "services:\n  work:\n    image: busybox:1.36\n"


@pytest.fixture
def run(tmp_path: Path):
    made = []

    def make(flow=FILES, **options: object) -> DrivenRun:
        made.append(DrivenRun(tmp_path, flow, stall_timeout_seconds=60.0, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


CONTAINERS = FILES | {"stages/use/1.0.0/docker_compose.yaml.j2": COMPOSE}
del CONTAINERS["stages/use/1.0.0/command.yaml.j2"]
FLOW = "[scheduling]\n[[graph]]\nR1 = make => use\n"


def broadcast(*settings: str) -> verbs.Broadcast:
    return verbs.Broadcast(namespaces=("use",), settings=settings)


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("script=echo instead", "echo instead"),
        ("pre-script=echo before", "echo before"),
        ("[environment]NEW=1", "export NEW"),
    ],
)
def test_a_broadcast_counts_for_a_stage_that_is_made_when_it_is_due(run, setting, line):
    flow = run()
    flow.gives(broadcast(setting))
    flow.ends("1/make", place="/data/7")
    assert line in flow.jobs["1/use/01"]
    assert "export PARAMETER_place=/data/7" in flow.jobs["1/use/01"]


def test_a_broadcast_limit_counts_for_containers_that_are_made_when_they_are_due(run):
    flow = run(CONTAINERS)
    flow.gives(broadcast("execution time limit=PT5S"))
    flow.ends("1/make", place="p")
    assert flow.tasks["1/use"].timeout_seconds == 5.0


@pytest.mark.parametrize("namespace", ["use", "root"])
def test_broadcast_variables_go_to_the_containers_of_a_stage(run, namespace):
    flow = run(CONTAINERS)
    settings = ("[environment]GRID=coarse $x", "[environment]LEVEL=3")
    flow.gives(verbs.Broadcast(namespaces=(namespace,), settings=settings))
    flow.ends("1/make", place="p")
    spec = json.loads(flow.tasks["1/use"].spec)
    assert spec["environment"] == {"GRID": "coarse $x", "LEVEL": "3"}


@pytest.mark.parametrize("item", ["script", "pre-script", "platform", "[directives]--mem"])
def test_what_no_container_has_cannot_be_broadcast_to_one(run, item):
    flow = run(CONTAINERS)
    with pytest.raises(Refused, match="use runs as containers, and what they do is in their"):
        flow.gives(broadcast("[environment]A=1", f"{item}=x"))
    value = "localhost" if item == "platform" else "x"  # one that somebody has described
    flow.gives(verbs.Broadcast(namespaces=("root",), settings=(f"{item}={value}",)))
    flow.ends("1/make", place="p")
    assert "environment" not in json.loads(flow.tasks["1/use"].spec)


def test_a_script_cannot_be_broadcast_to_all_where_all_are_containers(run):
    only = {FILE: definition(stage("use")), "stages/use/1.0.0/docker_compose.yaml": PLAIN}
    with pytest.raises(Refused, match="to root: every task of root runs as containers"):
        run(only).gives(verbs.Broadcast(namespaces=("root",), settings=("script=x",)))


def test_an_output_that_is_set_by_hand_brings_no_values_and_the_next_stage_says_so(run):
    flow = run()
    flow.gives(verbs.Set(ids=("1/make",), outputs=("succeeded",)))
    assert flow.submitted == ["1/make/01"]
    assert "stage use needs the parameter 'place', but no earlier stage" in flow.log
    flow.ends("1/make", place="late")
    flow.gives(verbs.Trigger(ids=("1/use",)))
    assert "echo late" in flow.jobs["1/use/02"]


def test_a_stage_that_is_triggered_too_early_can_be_triggered_again(run):
    flow = run()
    flow.gives(verbs.Trigger(ids=("1/use",)))
    assert flow.ends("1/make", place="p").submitted == ["1/make/01"]
    assert "no earlier stage has returned it" in flow.view.reason
    flow.gives(verbs.Trigger(ids=("1/use",)))
    assert "echo p" in flow.jobs["1/use/02"]
    assert flow.ends("1/use").status == "completed" and flow.view.reason == "completed"


def test_values_of_a_stage_that_was_removed_are_still_there(run):
    flow = run().ends("1/make", place="p").fails("1/use")
    flow.gives(verbs.Remove(ids=("1/make",)))
    flow.gives(verbs.Trigger(ids=("1/use",)))
    assert "echo p" in flow.crash().jobs["1/use/02"]


@pytest.mark.parametrize(("first", "then"), [(FLOW, FILES), (FILES, FLOW)], ids=["flow", "sip"])
def test_a_run_does_not_become_one_of_another_kind_of_definition(run, first, then):
    flow = run(first)
    digest = flow.reads(then)
    with pytest.raises(Refused, match="start another run"):
        flow.gives(verbs.Reload(definition=digest))
    assert flow.ends("1/make", place="p").running == ["1/use/1"]


@pytest.mark.parametrize(
    ("place", "word"),
    [
        ("{{ 7*7 }}", "'{{ 7*7 }}'"),
        ("x\ny: z", "'x\ny: z'"),
        ("'; rm -rf / #", "''\"'\"'; rm -rf / #'"),
        ({"a": "{% raw %}"}, """'{"a":"{% raw %}"}'"""),
        (None, "null"),
        ("x" * 60_000, "x" * 60_000),
    ],
    ids=["template", "line", "quote", "object", "null", "long"],
)
def test_a_value_that_means_harm_is_one_word_of_the_command(run, place, word):
    flow = run().ends("1/make", place=place, **{"a b": 1, "__class__": 2, "stage": 3})
    assert f"(exec -- echo {word})" in flow.jobs["1/use/01"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("\0", "NUL"),
        ("\U000f5ee0", "U\\+F5EE0"),
        (json.loads("[" * 40 + "]" * 40), "nested more than 32 deep"),
    ],
    ids=["nul", "mark", "deep"],
)
def test_a_value_that_no_stage_can_be_given_ends_the_run_with_that_message(run, place, said):
    flow = run().ends("1/make", place=place)
    assert flow.status == "stalled" and re.search(said, flow.view.reason)


@pytest.mark.req("R004-62")
def test_a_run_is_kept_while_its_stages_take_longer_to_make_than_its_lease_lasts(run):
    flow = run()
    flow.way_to_store.delays("values_of", before=25.0)
    flow.ends_unheard("1/make", place="p")
    renewed = flow.way_to_store.calls["renew_run"]
    flow.waits_in_the_middle(4.0, times=7)
    assert flow.way_to_store.calls["renew_run"] - renewed >= 5
    assert flow.submitted == ["1/make/01", "1/use/01"]


def test_a_scheduler_that_lost_the_run_while_it_made_a_stage_leaves_it(run):
    flow = run()
    flow.way_to_store.delays("values_of", before=25.0)
    flow.way_to_store.breaks("renew_run", RunLost("flow/run1", 1, 2))
    flow.ends_unheard("1/make", place="p").waits_in_the_middle(4.0, times=7)
    assert "run.lost" in [one.event for one in flow.reports]
    assert flow.submitted == ["1/make/01"]


def many_stages(count):
    """All after `make`, with values of it."""
    names = [f"use{number}" for number in range(count)]
    text = definition(stage("make"), *(stage(name, "make complete") for name in names))
    kept = {path: text for path, text in FILES.items() if "/make/" in path}
    files = {FILE: text} | kept
    for name in names:
        files |= {f"stages/{name}/1.0.0/{path}": told for path, told in USES_PLACE.items()}
    return files


def made_slowly(flow, command):
    """`make` has ended; the command is given while the first of the others are made."""
    flow.way_to_store.delays("values_of", before=2.0)
    return flow.ends_unheard("1/make", place="p").goes_on_slowly(1.5, meanwhile=command)


def test_a_command_is_heard_while_many_slow_stages_are_made(run):
    flow = made_slowly(run(many_stages(20)), verbs.Kill(ids=("1/use19",)))
    others = sorted(f"1/use{number}/01" for number in range(19))
    assert sorted(flow.submitted) == ["1/make/01", *others]
    assert "echo p" in flow.jobs["1/use18/01"]


def test_a_run_that_is_left_while_many_slow_stages_are_made_makes_the_others_later(run):
    flow = made_slowly(run(many_stages(20)), verbs.Stop(mode="now"))
    assert flow.status == "stopped" and 1 < len(flow.submitted) < 21
    flow.way_to_store.delays("values_of")
    flow.carries_on()
    assert sorted(flow.submitted) == sorted(
        ["1/make/01", *(f"1/use{number}/01" for number in range(20))]
    )


def test_a_stage_that_is_triggered_anew_while_it_is_put_off_is_made_once(run):
    flow = made_slowly(run(many_stages(20)), verbs.Trigger(ids=("1/use19",)))
    assert sorted(flow.submitted) == sorted(
        ["1/make/01", *(f"1/use{number}/01" for number in range(20))]
    )


def test_of_many_stages_that_cannot_be_made_a_few_say_why(run):
    reason = run(many_stages(9)).ends("1/make").view.reason
    assert reason.count("needs the parameter 'place'") == 3
    assert reason.endswith("; and 6 more)")
