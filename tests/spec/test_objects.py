"""Seed 004: stages wait for buffer objects, which somebody posts once for all."""

import pytest

from tests.kit.driven_run import DrivenRun
from tests.support.sips import definition, stage
from tidewheel.core.operator.blocks import NewObject
from tidewheel.wiring.services import run_door

STAGES = definition(
    stage("ingest", "object:visibilities-7 present"),
    stage("image", "ingest complete", "object:model present"),
)
FILES = {
    "flow-1.0.0.yaml": STAGES,
    "stages/ingest/1.0.0/script.sh": "true\n",
    "stages/image/1.0.0/script.sh": "true\n",
}
FLOW = """
[scheduling]
    [[special tasks]]
        external-trigger = a("visibilities-7")
    [[graph]]
        R1 = a
[runtime]
    [[a]]
"""


@pytest.fixture
def run(tmp_path):
    made = []

    def make(flow=FILES, **options):
        made.append(DrivenRun(tmp_path, flow, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def post(flow, *names):
    objects = [NewObject(name=name) for name in names]
    flow.look(lambda store, _: store.post_objects(objects, "ada"))
    return flow.goes_on()


@pytest.mark.req("R004-29")
def test_a_stage_waits_until_its_object_is_posted(run):
    flow = run()
    assert flow.running == []
    assert post(flow, "another").running == []
    assert post(flow, "visibilities-7").running == ["1/ingest/1"]
    assert flow.ends("1/ingest").running == []
    assert post(flow, "model").running == ["1/image/1"]
    assert flow.ends("1/image").status == "completed"


@pytest.mark.req("R004-29")
def test_an_object_is_there_for_runs_that_go_on_later(run):
    """What was posted while nobody drove the run is found by who does."""
    flow = run()
    flow.look(lambda store, _: store.post_objects([NewObject(name="visibilities-7")], "ada"))
    assert flow.crash().running == ["1/ingest/1"]


def test_m4_an_object_that_the_run_s_submitter_does_not_cover_lets_no_stage_go(run):
    flow = run(sees=("flow", "model"))
    assert post(flow, "visibilities-7", "model").running == []
    asked = {"run": "flow/run1", "ids": ["1/ingest"]}
    told = flow.look(lambda store, _: run_door(store, flow.home).look("why", asked))
    assert "visibilities-7 is not visible to this run: the owner of the run" in str(told)
    assert "model" not in str(told)  # what else that token is for is nobody's matter


def test_an_object_that_was_seen_may_go(run):
    flow = post(run(), "visibilities-7", "model")
    flow.look(lambda store, _: store.remove_object("model"))
    assert flow.crash().ends("1/ingest").running == ["1/image/1"]


def test_an_object_is_no_external_trigger_of_a_flow(run):
    """One message lets one task of a cycling workflow go; an object is there for all time."""
    flow = run(FLOW)
    assert post(flow, "visibilities-7").running == []
