"""Seed 004: runs of SIP definitions under their scheduler, stage after stage."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec
import pytest

from tests.kit.driven_run import DrivenRun
from tests.support.sips import definition, stage
from tidewheel.core.graph.findings import InvalidDefinition
from tidewheel.core.operator import verbs
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.queue.task import PRIORITY_DEFAULT
from tidewheel.errors import Refused, StoreUnreachable
from tidewheel.services.definitions.snapshot import check_definition

pytestmark = pytest.mark.slow  # each template is rendered in a process of its own

FILE = "flow-1.0.0.yaml"
COMPOSE = "services:\n  work:\n    image: busybox:1.36\n    command: [echo, '{{ place }}']\n"
COMPOSE_PLAIN = "services:\n  work:\n    image: busybox:1.36\n"
MAKE_AND_USE = definition(stage("make"), stage("use", "make complete"))
MAKES_PLACE = {"script.sh": "true\n", "outputs.yaml": "- place\n"}
USES_PLACE = {"command.yaml.j2": "[echo, '{{ place }}']\n", "parameters.yaml": "place:\n"}


def files(text: str, **stages: dict[str, str]) -> dict[str, str]:
    """The definition and the folders of its stages."""
    inside = {
        f"stages/{name}/1.0.0/{path}": content
        for name, folder in stages.items()
        for path, content in folder.items()
    }
    return {FILE: text, **inside}


def script(text: str = "true\n") -> dict[str, str]:
    return {"script.sh": text}


@pytest.fixture
def run(tmp_path: Path):
    made = []

    def make(flow: dict[str, str], request: object = None, **options: object) -> DrivenRun:
        parameters = "" if request is None else json.dumps(request)
        made.append(DrivenRun(tmp_path, flow, parameters=parameters, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


MADE_AND_USED = files(MAKE_AND_USE, make=MAKES_PLACE, use=USES_PLACE)


@pytest.mark.req("R004-25", "R004-58")
def test_stages_run_one_after_the_other_and_the_run_ends(run):
    flow = run(files(MAKE_AND_USE, make=script(), use=script()))
    assert flow.running == ["1/make/1"]
    assert flow.ends("1/make").running == ["1/use/1"]
    assert flow.ends("1/use").status == "completed"


@pytest.mark.slow
@pytest.mark.req("R004-44", "R004-48")
def test_a_value_that_a_stage_left_is_there_for_the_next(run):
    flow = run(MADE_AND_USED).ends("1/make", place="/data/7")
    assert "echo /data/7" in flow.jobs["1/use/01"]
    assert "export PARAMETER_place=/data/7" in flow.jobs["1/use/01"]


@pytest.mark.slow
@pytest.mark.req("R004-46")
def test_a_request_counts_more_than_what_a_stage_left(run):
    flow = run(MADE_AND_USED, {"place": "here"}).ends("1/make", place="there")
    assert "echo here" in flow.jobs["1/use/01"]


@pytest.mark.slow
@pytest.mark.req("R004-44", "R004-41")
def test_a_default_stands_where_a_stage_left_nothing(run):
    use = {**USES_PLACE, "parameters.yaml": "place: home\n"}
    flow = run(files(MAKE_AND_USE, make=MAKES_PLACE, use=use)).ends("1/make")
    assert "echo home" in flow.jobs["1/use/01"]


@pytest.mark.slow
@pytest.mark.req("R004-44", "R004-45")
def test_a_stage_whose_value_is_missing_is_not_submitted_and_the_run_ends_saying_so(run):
    flow = run(MADE_AND_USED).ends("1/make", other=1).waits(0.1)
    assert flow.submitted == ["1/make/01"]
    assert flow.view.status == "stalled" and flow.view.ended_at is not None
    assert "use could not be started" in flow.view.reason
    assert "stage use needs the parameter 'place'" in flow.view.reason
    assert "stage use needs the parameter 'place'" in flow.log


@pytest.mark.slow
@pytest.mark.req("R004-49")
def test_a_template_that_cannot_be_rendered_when_it_is_due_names_file_and_line(run):
    use = {**USES_PLACE, "command.yaml.j2": "[echo,\n '{{ place.deeper.still }}']\n"}
    flow = run(files(MAKE_AND_USE, make=MAKES_PLACE, use=use)).ends("1/make", place="x")
    assert "use could not be started" in flow.view.reason
    assert "stages/use/1.0.0/command.yaml.j2:2" in flow.view.reason


@pytest.mark.req("R004-28")
def test_a_stage_that_could_not_be_rendered_has_failed_for_those_that_wait_for_that(run):
    text = definition(stage("make"), stage("use", "make complete"), stage("mend", "use failed"))
    flow = run(files(text, make=MAKES_PLACE, use=USES_PLACE, mend=script()))
    assert flow.ends("1/make").running == ["1/mend/1"]
    assert flow.ends("1/mend").status == "completed"


@pytest.mark.slow
def test_of_stages_that_are_due_at_once_one_that_cannot_be_rendered_harms_no_other(run):
    text = definition(
        stage("make"), stage("use", "make complete"), stage("also", "make complete")
    )
    also = {"command.yaml.j2": "[echo, '{{ word }}']\n", "parameters.yaml": "word:\n"}
    make = {**MAKES_PLACE, "outputs.yaml": "[place, word]\n"}
    flow = run(files(text, make=make, use=USES_PLACE, also=also)).ends("1/make", word="w")
    assert flow.running == ["1/also/1"]
    assert "stage use needs the parameter 'place'" in flow.log


@pytest.mark.slow
def test_a_stage_knows_nothing_of_one_that_does_not_come_before_it_whatever_has_ended(run):
    text = definition(
        stage("make"),
        stage("use", "make complete"),
        stage("other"),
        stage("late", "other complete"),
    )
    late = {"command.yaml.j2": "[echo, '{{ stages.make.outputs.place }}']\n"}
    flow = run(files(text, make=MAKES_PLACE, use=USES_PLACE, other=script(), late=late))
    flow.ends_unheard("1/make", place="p").ends_unheard("1/other", word="w").goes_on()
    assert flow.running == ["1/use/1"]
    assert "stages/late/1.0.0/command.yaml.j2:1" in flow.log


@pytest.mark.slow
@pytest.mark.req("R004-52")
@pytest.mark.parametrize(
    "value", ["'; touch /tmp/x; '", "$(id)\n- id: more", "\n'\"`\\", "{{ 7 * 7 }}"]
)
def test_a_value_never_leaves_its_place_in_a_command(run, value):
    flow = run(MADE_AND_USED).ends("1/make", place=value)
    begun = flow.jobs["1/use/01"].partition("tidewheel__script() {\n(exec -- ")[2]
    words = begun.rpartition(")\n}\ntidewheel__enter\n")[0]
    assert shlex.split(words) == ["echo", value]


@pytest.mark.slow
@pytest.mark.req("R004-62")
def test_a_scheduler_that_takes_over_between_stages_finds_the_values_again(run):
    flow = run(MADE_AND_USED)
    flow.ends_unheard("1/make", place="/data/7").crash()
    assert "echo /data/7" in flow.jobs["1/use/01"]


@pytest.mark.slow
def test_the_newest_values_of_a_stage_count(run):
    flow = run(MADE_AND_USED, stall_timeout_seconds=60.0).ends("1/make", place="old")
    flow.fails("1/use")
    flow.gives(verbs.Trigger(ids=("1/make",)))
    flow.ends("1/make", place="new")
    flow.gives(verbs.Trigger(ids=("1/use",)))
    assert "echo new" in flow.jobs["1/use/02"]


@pytest.mark.slow
@pytest.mark.req("R004-62")
def test_no_stage_is_submitted_twice_whoever_drives_the_run(run):
    flow = run(MADE_AND_USED).crash().ends("1/make", place="p").crash()
    assert flow.submitted == ["1/make/01", "1/use/01"]
    assert flow.ends("1/use").crash().status == "completed"
    assert flow.submitted == ["1/make/01", "1/use/01"]


@pytest.mark.slow
@pytest.mark.req("R004-62")
def test_a_store_that_fails_in_the_middle_of_it_costs_no_stage(run):
    text = definition(
        stage("make"), stage("other"), stage("use", "make complete", "other complete")
    )
    flow = run(files(text, make=MAKES_PLACE, use=USES_PLACE, other=script()))
    flow.ends("1/make", place="p").crash()
    flow.way_to_store.loses_requests("run_values")
    flow.ends_unheard("1/other")
    with pytest.raises(StoreUnreachable):
        flow.goes_on()
    flow.goes_on()
    assert flow.submitted == ["1/make/01", "1/other/01", "1/use/01"]
    assert "echo p" in flow.jobs["1/use/01"]


@pytest.mark.slow
def test_a_stage_that_is_killed_before_it_was_made_does_not_run(run):
    flow = run(MADE_AND_USED, stall_timeout_seconds=60.0).ends("1/make", place="p")
    flow.fails("1/use")
    flow.asks(verbs.Trigger(ids=("1/use",)))
    flow.asks(verbs.Kill(ids=("1/use",)))
    assert flow.goes_on().submitted == ["1/make/01", "1/use/01"]
    assert flow.status == "stalled" and flow.running == []


@pytest.mark.req("R004-59")
def test_a_run_whose_stage_failed_ends_by_itself_and_names_it(run):
    flow = run(files(MAKE_AND_USE, make=script(), use=script())).fails("1/make").waits(0.1)
    assert flow.submitted == ["1/make/01"]
    assert flow.view.status == "stalled" and flow.view.ended_at is not None
    assert flow.view.reason == "stalled: make failed"


@pytest.mark.req("R004-16")
def test_the_time_limit_of_a_stage_is_that_of_its_task(run):
    flow = run(files(MAKE_AND_USE, make=script(), use={"docker_compose.yaml": COMPOSE_PLAIN}))
    assert flow.tasks["1/make"].timeout_seconds == 60.0
    assert flow.ends("1/make").tasks["1/use"].timeout_seconds == 60.0


@pytest.mark.slow
@pytest.mark.req("R004-57", "R004-48")
def test_a_compose_stage_is_a_task_for_any_engine_with_its_values(run):
    use = {"docker_compose.yaml.j2": COMPOSE, "parameters.yaml": "place:\n"}
    flow = run(files(MAKE_AND_USE, make=MAKES_PLACE, use=use)).ends("1/make", place="a: b")
    task = flow.tasks["1/use"]
    spec = json.loads(task.spec)
    assert spec["runner"] == "containers"
    assert task.resources.labels == {"runner:containers"}
    assert "a: b" in spec["compose"] and "services:" in spec["compose"]
    assert spec["parameters"] == {"place": "a: b"}
    assert "exit 1" in task.command  # where nobody should execute it


@pytest.mark.req("R004-18")
@pytest.mark.parametrize(
    ("nodes", "node"),
    [
        ("{type: nodes, number: 2, flavour: any, exclusive: false}", None),
        (
            "{type: nodes, number: 1, flavour: any, exclusive: false, label: sender}",
            {"labels": ["sender"]},
        ),
    ],
)
def test_several_nodes_and_labels_of_nodes_are_for_a_swarm(run, nodes, node):
    text = definition(
        stage("a").replace("resources_required: []", f"resources_required: [{nodes}]")
    )
    flow = run(files(text, a={"docker_compose.yaml": COMPOSE_PLAIN}))
    found = flow.look(lambda store, number: store.submissions(number))
    task = flow.look(lambda store, _: store.get(found[0].task_id))
    assert task.resources.labels == {"runner:swarm"}
    assert [one.flavour for one in task.resources.flavours if one.flavour] == ["any"]
    assert task.spec.get("node") == node


@pytest.mark.req("R004-55")
def test_the_priority_of_a_run_is_that_of_its_tasks(run):
    flow = run(files(MAKE_AND_USE, make=script(), use=script()), priority=-1)
    task = flow.look(lambda store, _: store.get(flow.task_id("1/make")))
    assert task.priority == PRIORITY_DEFAULT - 1


@pytest.mark.req("R004-60")
def test_a_stage_that_is_killed_counts_as_aborted(run):
    text = definition(stage("make"), stage("tidy", "make aborted"))
    flow = run(files(text, make=script(), tidy=script()))
    flow.gives(verbs.Kill(ids=("1/make",)))
    assert flow.fails("1/make").running == ["1/tidy/1"]


@pytest.mark.req("R004-29")
def test_a_stage_waits_for_a_buffer_object_until_it_is_announced(run):
    flow = run(files(definition(stage("a", "object:vis present")), a=script()))
    assert flow.running == [] and flow.status == "running"
    flow.gives(verbs.ExtTrigger(message="vis", trigger_id="now"))
    assert flow.goes_on().running == ["1/a/1"]


@pytest.mark.slow
def test_a_reloaded_definition_counts_for_stages_to_come(run):
    flow = run(MADE_AND_USED)
    new = {**USES_PLACE, "command.yaml.j2": "[print, '{{ place }}', twice]\n"}
    digest = flow.reads(files(MAKE_AND_USE, make=MAKES_PLACE, use=new))
    assert flow.gives(verbs.Reload(definition=digest))["changed"]
    assert "print /p twice" in flow.ends("1/make", place="/p").jobs["1/use/01"]


@pytest.mark.slow
def test_a_definition_that_its_own_job_changed_is_read_again(run):
    flow = run(MADE_AND_USED)
    there = flow.home / "runs" / flow.view.name / "stages/use/1.0.0/command.yaml.j2"
    there.write_text("[print, '{{ place }}']\n")
    assert flow.gives(verbs.Reload())["changed"]
    assert "print /p" in flow.ends("1/make", place="/p").jobs["1/use/01"]


@pytest.mark.slow
def test_h1_a_sip_definition_is_never_trusted_and_its_templates_reach_no_code(run, monkeypatch):
    """H1: neither at first, nor when a job has changed it and the run reads it again."""
    monkeypatch.setenv("DATABASE_PASSWORD", "canary")
    flow = run(MADE_AND_USED)
    assert not flow.definition.is_trusted
    command = flow.directory / "stages/use/1.0.0/command.yaml.j2"
    for text in ("{{ environ.DATABASE_PASSWORD }}", '{% from "subprocess" import getoutput %}'):
        command.write_text(f"[echo, '{{{{ place }}}} {text}']\n")
        with pytest.raises((Refused, InvalidDefinition)):
            flow.gives(verbs.Reload())
    assert "canary" not in flow.ends("1/make", place="/data/7").jobs["1/use/01"]


@pytest.mark.slow
def test_a_reload_that_this_request_cannot_run_changes_nothing(run):
    flow = run(MADE_AND_USED)
    needy = {**MAKES_PLACE, "parameters.yaml": "never_given:\n"}
    there = flow.home / "runs" / flow.view.name / "stages/make/1.0.0/parameters.yaml"
    there.write_text(needy["parameters.yaml"])
    with pytest.raises(Refused, match="never_given"):
        flow.gives(verbs.Reload())
    assert "echo /p" in flow.ends("1/make", place="/p").jobs["1/use/01"]


@pytest.mark.slow
@pytest.mark.req("R004-42", "R004-45")
@pytest.mark.parametrize("request_text", ["", "{}", '{"place": null}'])
def test_a_run_that_lacks_a_parameter_is_refused_before_it_begins(run, request_text):
    captured = run(files(MAKE_AND_USE, make=script(), use=USES_PLACE), {"place": "here"})
    stored = captured.look(lambda store, _: store.definition(captured.view.definition))
    with pytest.raises(InvalidDefinition, match="stage use needs the parameter 'place'"):
        check_definition(stored, RunOptions(parameters=request_text))


@pytest.mark.slow
@pytest.mark.req("R004-5")
def test_a_definition_is_the_same_whatever_is_asked_of_it(run):
    flow = run(MADE_AND_USED, {"place": "here"})
    stored = flow.look(lambda store, _: store.definition(flow.view.definition))
    assert {one.path for one in stored.files} == set(MADE_AND_USED)
    assert flow.reads(MADE_AND_USED) == stored.digest
    assert "here" not in str(stored)


def test_runs_of_before_there_were_parameters_are_still_read():
    old = msgspec.json.encode({"mode": "live", "now": 1.0, "start_tasks": []})
    assert msgspec.json.decode(old, type=RunOptions).parameters == ""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["dummy", "simulation", "skip"])
def test_a_run_that_is_only_played_needs_no_values(run, mode):
    flow = run(MADE_AND_USED, mode=mode)
    if mode == "dummy":
        flow.ends("1/make").ends("1/use")
    else:
        flow.waits(10).waits(10)
    assert flow.status == "completed"
