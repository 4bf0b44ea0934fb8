"""Seed 004, "parameters … modify the workflow": `for_each` and `when` of stages."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tests.support.sips import definition, found, graph_of, sip, stage
from tidewheel.core.graph.definition import AllOf, Atom, Group
from tidewheel.core.graph.findings import Severity
from tidewheel.core.operator import verbs
from tidewheel.errors import Refused
from tidewheel.formats.sip.translation import stage_scripts
from tidewheel.formats.sip.validation import validate

pytestmark = [pytest.mark.slow, pytest.mark.req("R011-9")]

SCRIPT = {"script.sh": "true\n"}
FINDS = {**SCRIPT, "outputs.yaml": "- beams\n"}
ITEMS = {"command.yaml.j2": "[echo, '{{ item }}']\n", "outputs.yaml": "- path\n"}
JOINS = {"command.yaml.j2": "[echo, '{{ path }}']\n", "parameters.yaml": "path:\n"}
RETURNED = definition(
    stage("find"),
    stage("image", more="for_each: find.beams"),
    stage("plot", more="for_each: image"),
    stage("join", "plot complete"),
)
FOLDERS = {"find": FINDS, "image": ITEMS, "plot": SCRIPT, "join": SCRIPT}
GIVEN = definition(
    stage("first"), stage("image", "first complete", more='for_each: "{{ beams }}"'),
    stage("join", "image complete"),
)  # fmt: skip
GIVEN_FOLDERS = {"first": SCRIPT, "image": ITEMS, "join": JOINS}


def arrows_to(graph, name):
    """What a node waits for, all of it."""
    conditions = [one.condition for one in graph.arrows if name in one.targets]
    return {
        term for one in conditions for term in (one.terms if isinstance(one, AllOf) else (one,))
    }


def errors(judgement):
    return [
        (one.code, one.position.line, one.message)
        for one in found(judgement.all_findings(), Severity.ERROR)
    ]


# ---- what a definition amounts to ----


def test_a_stage_for_each_of_an_output_is_a_mapped_task_and_others_wait_for_all_of_it():
    graph = graph_of(validate(sip(RETURNED, FOLDERS)))
    over = graph.mapped["image<item>"]
    assert (over.parameter, over.source, over.value) == ("item", "find", "beams")
    assert (over.elements_max, over.size) == (1000, None)
    assert graph.mapped["plot<item>"] == over
    assert arrows_to(graph, "image<item>") == {Atom("find", "succeeded")}
    assert arrows_to(graph, "plot<item>") == {Atom("image<item>", "succeeded")}
    every = (Group(f"{one}<item>", ("succeeded",), True) for one in ("plot", "image"))
    assert arrows_to(graph, "join") == {*every}


@pytest.mark.parametrize("written", ["'{{ beams }}'", "{{ beams }}", "[a, 1, {x: [2]}]"])
def test_a_list_of_the_request_is_known_before_the_run(written):
    text = GIVEN.replace('"{{ beams }}"', written)
    request = {"beams": ["a", 1, {"x": [2]}]} if "beams" in written else {}
    judgement = validate(sip(text, GIVEN_FOLDERS, file="flow-1.0.0.yaml.j2"), request)
    graph = graph_of(judgement)
    over = graph.mapped["image<item>"]
    assert (over.source, over.size, over.elements_max) == ("list@image", 3, 3)
    assert arrows_to(graph, "list@image") == {Atom("first", "succeeded")}
    assert arrows_to(graph, "image<item>") == {Atom("list@image", "succeeded")}
    assert judgement.rendered["image"].command == ("echo", "a")


def test_a_definition_in_json_says_the_same():
    stages = [
        {"id": "image", "version": "1.0.0", "type": "setup", "for_each": "{{ beams }}"},
    ]
    text = json.dumps({"schema_version": "2.0", "stages": stages})
    source = sip(text, {"image": ITEMS}, file="flow-1.0.0.json.j2")
    graph = graph_of(validate(source, {"beams": [1, 2]}))
    assert graph.mapped["image<item>"].size == 2


def test_a_parameter_that_nobody_gives_is_the_output_of_a_stage_before():
    text = definition(
        stage("find"), stage("image", "find complete", more='for_each: "{{ beams }}"')
    )
    source = sip(text, {"find": FINDS, "image": ITEMS}, file="flow-1.0.0.yaml.j2")
    for request in (None, {}):
        over = graph_of(validate(source, request)).mapped["image<item>"]
        assert (over.source, over.value) == ("find", "beams")
    over = graph_of(validate(source, {"beams": [1]})).mapped["image<item>"]
    assert (over.source, over.size) == ("list@image", 1)


def test_without_a_request_a_list_of_it_has_an_unknown_number_of_elements():
    judgement = validate(sip(GIVEN, GIVEN_FOLDERS, file="flow-1.0.0.yaml.j2"))
    assert graph_of(judgement).mapped["image<item>"].size is None
    assert [one.name for one in judgement.specs if one.is_needed] == ["beams"]
    assert judgement.rendered["image"].command == ("echo", "{{ item }}")


def test_a_default_is_the_list_of_those_who_give_none():
    folders = {**GIVEN_FOLDERS, "image": {**ITEMS, "parameters.yaml": "beams: [x, y]\n"}}
    source = sip(GIVEN, folders, file="flow-1.0.0.yaml.j2")
    assert graph_of(validate(source, {})).mapped["image<item>"].size == 2
    assert graph_of(validate(source, {"beams": []})).mapped["image<item>"].size == 0


def test_conditions_on_a_stage_with_elements_are_about_all_or_any_of_them():
    text = definition(
        stage("find"),
        stage("image", more="for_each: find.beams"),
        stage("mend", "image failed"),
        stage("clean", "image finished"),
        stage("watch", "image started"),
        stage("other", "image complete", more="for_each: [1]"),
    )
    names = ("mend", "clean", "watch", "other")
    graph = graph_of(
        validate(sip(text, {"find": FINDS, "image": ITEMS, **dict.fromkeys(names, SCRIPT)}))
    )
    failed = ("failed", "submit-failed")
    assert arrows_to(graph, "mend") == {Group("image<item>", failed, False)}
    every = Group("image<item>", ("succeeded", *failed), True)
    assert arrows_to(graph, "clean") == {every}
    assert Group("image<item>", ("succeeded",), True) in arrows_to(graph, "list@other")
    assert arrows_to(graph, "other<item>") == {Atom("list@other", "succeeded")}


def test_a_stage_that_is_switched_off_is_skipped_and_says_so():
    text = definition(stage("a", more="when: '{{ deep }}'"), stage("b", "a complete"))
    source = sip(text, {"a": FINDS, "b": SCRIPT}, file="flow-1.0.0.yaml.j2")
    node = graph_of(validate(source, {"deep": False})).nodes["a"].definition
    assert (node.run_mode.value, node.skip.remark) == ("skip", "switched off")
    for request in (None, {"deep": True}):
        assert (
            graph_of(validate(source, request)).nodes["a"].definition.run_mode.value == "live"
        )


@pytest.mark.parametrize(
    ("condition", "request_", "is_on"),
    [
        ("{{ site == 'north' }}", {"site": "north"}, True),
        ("{{ site == 'north' }}", {"site": "south"}, False),
        ("{{ beams | length > 2 and site != 'x' }}", {"beams": [1, 2, 3], "site": "y"}, True),
        ("{{ not site }}", {"site": "south"}, False),
        ("false", {}, False),
        ("no", {}, False),
    ],
)
def test_a_condition_is_computed_from_parameters(condition, request_, is_on):
    text = definition(stage("a", more=f'when: "{condition}"'))
    judgement = validate(sip(text, {"a": SCRIPT}, file="flow-1.0.0.yaml.j2"), request_)
    assert judgement.runnable, errors(judgement)
    assert judgement.definition.stage("a").is_on is is_on


# ---- mistakes ----

MORE = {
    "for_each: fnd.beams": ("unknown-stage", "names 'fnd', which is not a stage"),
    "for_each: find.beam": ("for-each", "find.beam, which is not an output of find"),
    "for_each: find.": ("for-each", "for_each of stage image is 'find.'"),
    "for_each: find": ("for-each", "find has no for_each"),
    "for_each: {a: 1}": ("value-kind", "for_each of stage image is a mapping"),
    "for_each:": ("value-kind", "for_each of stage image is empty"),
    "for_each: '{{ site }}'": ("value-kind", 'image is "north", the value of site'),
    "for_each: '{{ evil }}'": ("value-kind", 'image is "find.beams", the value of evil'),
    "for_each: '{{ nobody }}'": ("template-undefined", "'nobody' is undefined"),
    "for_each: '{{ beams | length }}'": ("template-undefined", "'beams' is known only when"),
    "for_each: [1, '{{ beams }}']": ("template-undefined", "'beams' is known only when"),
    "timeout: '{{ beams }}'": ("template-undefined", "'beams' is known only when"),
    "for_each: image": ("self-dependency", "depends on itself"),
    "when: perhaps": ("value-kind", "when of stage image is 'perhaps'"),
    "when: '{{ site }}'": ("value-kind", "when of stage image is 'north'"),
    "when: '{{ nobody > 3 }}'": ("template-undefined", "'nobody' is undefined"),
    "when: [1]": ("value-kind", "when of stage image is a list"),
    "for_each_max: 3": ("for-each", "has for_each_max, but no for_each"),
    "for_each: [1]\nfor_each_max: 10001": ("value-kind", "for_each_max of stage image is"),
    "for_each: [1]\nfor_each_max: 0": ("value-kind", "for_each_max of stage image is '0'"),
    "for_each: [1, 2, 3]\nfor_each_max: 2": ("too-many-elements", "each of 3 elements"),
    "for_each: other\nfor_each_max: 2": ("for-each", "takes its elements from another"),
    "for_each: '{{ many }}'": ("too-many-elements", "each of 1001 elements"),
}


@pytest.mark.req("R011-11")
@pytest.mark.parametrize("more", MORE)
def test_a_mistake_is_told_with_its_line(more):
    image = stage("image", "find complete", more=more)
    if more.startswith("timeout"):
        image = image.replace("    timeout: 60s\n", "")
    source = sip(
        definition(stage("find"), stage("other", more="for_each: [1]"), image),
        {"find": FINDS, "image": SCRIPT, "other": SCRIPT},
        file="flow-1.0.0.yaml.j2",
    )
    request = {"site": "north", "evil": "find.beams", "many": [0] * 1001}
    judgement = validate(source, request)
    code, said = MORE[more]
    [(seen, line, message)] = errors(judgement)
    assert (seen, said in message) == (code, True), message
    text = source.files["flow-1.0.0.yaml.j2"].decode().splitlines()
    key = (
        more.splitlines()[-1]
        .partition(":")[0]
        .removesuffix("_max" if code[:3] == "too" else "")
    )
    assert line and text[line - 1].strip().startswith(key)


def test_mistakes_of_several_stages_are_told_at_once():
    text = definition(
        stage("a", more="when: perhaps"),
        stage("b", more="for_each: {x: 1}"),
        stage("c", more="for_each: [1]\nfor_each_max: 0"),
    )
    judgement = validate(sip(text, dict.fromkeys("abc", SCRIPT)))
    assert [code for code, *_ in errors(judgement)] == ["value-kind"] * 3


@pytest.mark.parametrize(("written", "meant"), [("loop", "for_each"), ("enabled", "when")])
def test_words_of_other_formats_are_understood_as_what_is_meant(written, meant):
    text = definition(stage("a", more=f"{written}: true"))
    [one] = found(validate(sip(text, {"a": SCRIPT})).all_findings(), Severity.ERROR)
    assert (one.code, f"did you mean {meant!r}?" in one.hint) == ("unknown-key", True)


def test_lists_of_a_stage_with_elements_are_refused():
    text = definition(
        stage("a", more="for_each: [1, 2]"), stage("b", more="for_each: a.path"),
        stage("a_item1"),
    )  # fmt: skip
    told = errors(validate(sip(text, {"a": ITEMS, "b": SCRIPT, "a_item1": SCRIPT})))
    assert [code for code, *_ in told] == ["for-each", "bad-name"]
    assert "has the name of an element of a" in told[1][2]


def test_what_a_switched_off_stage_would_have_made_is_missed_before_the_run():
    text = definition(
        stage("find", more="when: '{{ deep }}'"),
        stage("image", more="for_each: find.beams"),
        stage("use", "find complete"),
    )
    use = {**SCRIPT, "parameters.yaml": "beams:\n"}
    source = sip(text, {"find": FINDS, "image": ITEMS, "use": use}, file="flow-1.0.0.yaml.j2")
    assert validate(source, {"deep": True}).runnable
    told = {message for _, _, message in errors(validate(source, {"deep": False}))}
    assert told == {
        "stage image runs for each element from find, which is switched off",
        "stage use needs the parameter 'beams': find, which provides the parameter, is "
        "switched off, and there is no default",
    }
    with_own = replace(
        source, files={**source.files, "stages/use/1.0.0/parameters.yaml": b"beams: [1]\n"}
    )
    [only] = errors(validate(with_own, {"deep": False}))
    assert only[0] == "for-each"


def test_an_element_that_a_template_cannot_take_is_named_before_the_run():
    text = definition(stage("image", more="for_each: '{{ beams }}'"))
    image = {"command.yaml.j2": "[echo,\n '{{ item.freq }}']\n"}
    source = sip(text, {"image": image}, file="flow-1.0.0.yaml.j2")
    beams = [{"freq": one} for one in range(9)]
    assert validate(source, {"beams": beams}).runnable
    [(code, line, message)] = errors(validate(source, {"beams": [*beams, {"frq": 7}, 3]}))
    assert (code, line) == ("template-undefined", 2)
    assert '(element 9 of image: {"frq":7})' in message


@pytest.mark.parametrize(
    ("items", "code"),
    [
        (json.dumps([0] * 1_000_000), "file-too-large"),
        (json.dumps(["x" * 200 * 1024]), "list-too-large"),
        (json.dumps(["a\0b"]), "reserved-character"),
        ('["a\\ud800"]', "json-syntax"),
        ("[" * 40 + "]" * 40, "nested-too-deeply"),
    ],
)
def test_hostile_lists_in_a_definition_are_refused(items, code):
    text = (
        '{"schema_version": "2.0", "stages": [{"id": "image", "version": "1.0.0", '
        f'"type": "setup", "timeout": 1, "resources_required": [], "for_each": {items}}}]}}'
    )
    told = errors(validate(sip(text, {"image": SCRIPT}, file="flow-1.0.0.json"), {}))
    assert told and told[0][0] == code


@pytest.mark.parametrize(
    ("beams", "code"),
    [
        ([0] * 1_000_000, "parameters-too-large"),
        (["x" * 200 * 1024], "parameters-too-large"),
        (["a\0"], "reserved-character"),
        ({"a": 1}, "value-kind"),
        (None, "value-kind"),
    ],
)
def test_hostile_lists_of_a_request_are_refused(beams, code):
    text = definition(stage("image", more="for_each: '{{ beams }}'"))
    source = sip(text, {"image": SCRIPT}, file="flow-1.0.0.yaml.j2")
    assert code in [one for one, *_ in errors(validate(source, {"beams": beams}))]


def test_a_net_of_many_stages_with_elements_is_read_at_once_and_too_many_are_refused():
    names = [f"s{number}" for number in range(60)]
    stages = [stage("find"), stage("s0", more="for_each: find.beams")]
    for number, name in enumerate(names[1:], 1):  # each waits for the two before it
        needs = [f"{one} complete" for one in names[max(0, number - 2) : number]]
        stages.append(stage(name, *needs, more=f"for_each: {names[number - 1]}"))
    text = definition(*stages, stage("join", f"{names[-1]} complete"))
    source = sip(text, {"find": FINDS, "join": SCRIPT, **dict.fromkeys(names, SCRIPT)})
    graph = graph_of(validate(source))
    assert len(arrows_to(graph, "join")) == len(names)
    many = [f"m{number}" for number in range(201)]
    text = definition(*(stage(name, more="for_each: [1]") for name in many))
    [(code, *_, said)] = errors(validate(sip(text, dict.fromkeys(many, SCRIPT))))
    assert (code, "201 stages have for_each" in said) == ("too-many-stages", True)


def test_elements_may_be_lists_and_mappings_themselves():
    text = definition(stage("image", more="for_each: '{{ beams }}'"))
    image = {"command.yaml.j2": "[echo, '{{ item[0] }}', '{{ item }}', '{{ stage.index }}']\n"}
    source = sip(text, {"image": image}, file="flow-1.0.0.yaml.j2")
    judgement = validate(source, {"beams": [[["deep"], 2], [3]]})
    assert judgement.rendered["image"].command == ("echo", '["deep"]', '[["deep"],2]', "0")


EVIL = ["$(touch oops)", "'; touch oops; '", '"; touch oops; "', "x\ntouch oops\n", "-rf", "~"]


@pytest.mark.parametrize("value", EVIL)
def test_no_shell_ever_reads_an_element(tmp_path, value):
    files = {"script.sh": 'printf "%s|" "$PARAMETER_item" "$TIDEWHEEL_PARAMETERS"'}
    text = definition(stage("a", more="for_each: '{{ beams }}'"))
    source = sip(text, {"a": files}, file="flow-1.0.0.yaml.j2")
    rendered = validate(source, {"beams": [value]}).rendered["a"]
    scripts = stage_scripts("a", rendered)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{scripts.env}\n{scripts.main}"],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    shown, parameters, _ = done.stdout.split("|")
    assert (shown, json.loads(parameters)["item"]) == (value, value)
    assert not (tmp_path / "oops").exists()


def test_an_element_is_never_a_secret():
    text = definition(stage("a", more="for_each: '{{ beams }}'"))
    folder = {**SCRIPT, "parameters.yaml": "item:\n"}
    source = sip(text, {"a": folder}, file="flow-1.0.0.yaml.j2")
    judgement = validate(source, {"beams": ["secret:KEY"]})
    assert judgement.runnable, errors(judgement)
    assert judgement.rendered["a"].secrets == {}


# ---- runs ----


def files(text: str, folders: dict[str, dict[str, str]]) -> dict[str, str]:
    inside = {
        f"stages/{name}/1.0.0/{path}": content
        for name, folder in folders.items()
        for path, content in folder.items()
    }
    return {"flow-1.0.0.yaml.j2": text, **inside}


@pytest.fixture
def run(tmp_path: Path):
    made = []

    def make(text: str, folders: dict[str, dict[str, str]], **request: object) -> DrivenRun:
        flow = files(text, folders)
        made.append(DrivenRun(tmp_path, flow, parameters=json.dumps(request)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_each_element_of_a_given_list_runs_and_the_join_gets_all_their_outputs(run):
    flow = run(GIVEN, GIVEN_FOLDERS, beams=["a", "b c", {"x": 1}]).ends("1/first")
    assert flow.running == ["1/image_item0/1", "1/image_item1/1", "1/image_item2/1"]
    assert "echo 'b c'" in flow.jobs["1/image_item1/01"]
    assert "export PARAMETER_item='b c'" in flow.jobs["1/image_item1/01"]
    assert """echo '{"x":1}'""" in flow.jobs["1/image_item2/01"]
    for index in range(3):
        flow.ends(f"1/image_item{index}", path=f"p{index}")
    assert """echo '["p0","p1","p2"]'""" in flow.jobs["1/join/01"]
    assert flow.ends("1/join").status == "completed"


CHAIN = {
    **FOLDERS,
    "plot": {
        "command.yaml.j2": "[echo, '{{ item }}', '{{ path }}', '{{ image.outputs.path }}']\n",
        "parameters.yaml": "path:\n",
    },
}


@pytest.mark.req("R007-7")
def test_each_element_follows_its_own_and_sees_its_outputs_alone(run):
    flow = run(RETURNED, CHAIN).ends("1/find", beams=["x", "y"])
    flow.ends("1/image_item1", path="py")
    assert flow.running == ["1/image_item0/1", "1/plot_item1/1"]
    assert "echo y py py" in flow.jobs["1/plot_item1/01"]
    flow.ends("1/plot_item1").ends("1/image_item0", path="px")
    assert "echo x px px" in flow.jobs["1/plot_item0/01"]
    assert flow.ends("1/plot_item0").running == ["1/join/1"]
    assert flow.ends("1/join").status == "completed"


@pytest.mark.parametrize("size", [0, 1])
def test_a_stage_of_no_elements_is_complete_when_what_it_waits_for_is(run, size):
    flow = run(GIVEN, GIVEN_FOLDERS, beams=["a"] * size)
    assert flow.running == ["1/first/1"]
    flow.ends("1/first")
    if size:
        flow.ends("1/image_item0", path="p")
    assert flow.ends("1/join").status == "completed"
    assert "echo '[]'" in flow.jobs["1/join/01"] or size


def test_a_returned_list_of_no_elements_waits_for_the_other_dependencies_too(run):
    text = definition(
        stage("find"),
        stage("slow"),
        stage("image", "slow complete", more="for_each: find.beams"),
        stage("plot", more="for_each: image"),
        stage("join", "plot complete"),
    )
    flow = run(text, {**FOLDERS, "slow": SCRIPT}).ends("1/find", beams=[])
    assert flow.running == ["1/slow/1"]
    assert flow.ends("1/slow").running == ["1/join/1"]
    assert flow.ends("1/join").status == "completed"


def test_a_run_goes_on_in_the_middle_of_its_elements(run):
    flow = run(RETURNED, CHAIN).ends("1/find", beams=["x", "y"]).crash()
    flow.ends("1/image_item0", path="px").crash()
    assert "echo x px px" in flow.jobs["1/plot_item0/01"]
    flow.ends("1/image_item1", path="py").crash()
    flow.ends("1/plot_item1").crash().ends("1/plot_item0").crash()
    assert flow.ends("1/join").status == "completed"
    assert flow.submitted.count("1/image_item0/01") == 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "find returned no list beams, which image<item>, plot<item> needs"),
        ({"beams": "x"}, "but not as a list"),
        ({"beams": [0] * 1001}, "at most 1000 are accepted (for_each_max of stage image)"),
    ],
)
def test_a_stage_that_returns_no_list_has_failed(run, values, said):
    flow = run(RETURNED, FOLDERS).ends("1/find", **values)
    assert flow.status == "stalled"
    assert said in flow.log


def test_a_list_given_by_hand_is_what_elements_read(run):
    flow = run(RETURNED, FOLDERS)
    flow.gives(verbs.Set(ids=("1/find",), values=('beams=["by hand"]',)))
    flow.gives(verbs.Set(ids=("1/find",), outputs=("succeeded",)))
    assert "echo 'by hand'" in flow.goes_on().jobs["1/image_item0/01"]


def test_a_list_of_the_request_is_not_set_by_hand_as_nobody_would_read_it(run):
    flow = run(GIVEN, GIVEN_FOLDERS, beams=["a"]).ends("1/first")
    with pytest.raises(Refused, match="start a run with other parameters"):
        flow.gives(verbs.Set(ids=("1/list@image",), values=('item=["b"]',)))


def test_an_element_that_no_stage_can_take_is_not_started_and_the_reason_is_told(run):
    flow = run(RETURNED, FOLDERS).ends("1/find", beams=["a\0"])
    assert "1/image_item0" not in flow.tasks
    assert "a NUL character" in flow.log


def test_containers_of_an_element_are_told_their_item(run):
    compose = (
        "services:\n  work:\n    image: busybox:1.36\n"
        "    command: [echo, '{{ item }}', '{{ stage.index }}']\n"
    )
    text = definition(stage("image", more="for_each: '{{ beams }}'"))
    flow = run(text, {"image": {"docker_compose.yaml.j2": compose}}, beams=["a", "$(b) c"])
    told = json.loads(flow.tasks["1/image_item1"].spec)
    assert told["stage"] == "image"
    assert told["parameters"]["item"] == "$(b) c"
    assert "$$(b) c" in json.dumps(told)
    assert flow.ends("1/image_item0").ends("1/image_item1").status == "completed"


def test_many_outputs_reach_only_stages_that_declare_them_and_not_too_many_of_them(run):
    text = definition(
        stage("image", more="for_each: [1, 2, 3]"),
        stage("join", "image complete"),
        stage("other", "image complete"),
    )
    flow = run(text, {"image": ITEMS, "join": JOINS, "other": SCRIPT})
    for index in range(3):
        flow.ends(f"1/image_item{index}", path="x" * 30_000)
    assert flow.running == ["1/other/1"]
    assert "xxx" not in flow.jobs["1/other/01"]
    assert "the outputs of image have more than 64000 bytes" in flow.log


def test_an_element_that_fails_is_mended_by_others(run):
    text = definition(
        stage("find"),
        stage("image", more="for_each: find.beams"),
        stage("mend", "image failed"),
    )
    flow = run(text, {"find": FINDS, "image": ITEMS, "mend": SCRIPT})
    flow.ends("1/find", beams=[1, 2]).fails("1/image_item1")
    assert flow.running == ["1/image_item0/1", "1/mend/1"]
    assert flow.ends("1/image_item0", path="p").ends("1/mend").status == "completed"


def test_stages_after_one_that_is_switched_off_go_on_and_those_after_its_failure_do_not(run):
    text = definition(
        stage("a"),
        stage("b", "a complete", more="when: '{{ deep }}'"),
        stage("c", "b complete"),
        stage("mend", "b failed"),
        stage("d", "b started"),
    )
    flow = run(text, dict.fromkeys(("a", "b", "c", "mend", "d"), SCRIPT), deep=False)
    assert flow.running == ["1/a/1"]
    assert flow.ends("1/a").running == ["1/c/1", "1/d/1"]
    assert flow.ends("1/c").ends("1/d").status == "completed"
    assert sorted(flow.submitted) == ["1/a/01", "1/c/01", "1/d/01"]


def test_a_reload_with_another_number_of_elements_is_refused_once_they_have_begun(run):
    text = definition(stage("image", more="for_each: [1, 2]"))
    flow = run(text, {"image": ITEMS})
    other = files(text.replace("[1, 2]", "[1, 2, 3]"), {"image": ITEMS})
    with pytest.raises(Refused, match=r"returned 2 elements of item; the new definition has 3"):
        flow.gives(verbs.Reload(definition=flow.reads(other)))
    same = files(text.replace("[1, 2]", "[1, 5]"), {"image": ITEMS})
    flow.gives(verbs.Reload(definition=flow.reads(same)))
    assert flow.ends("1/image_item0").ends("1/image_item1").status == "completed"


def test_a_request_without_the_list_is_refused():
    [(code, line, said)] = errors(
        validate(sip(GIVEN, GIVEN_FOLDERS, file="flow-1.0.0.yaml.j2"), {})
    )
    assert (code, "'beams' is undefined" in said) == ("template-undefined", True)
    assert "for_each" in GIVEN.splitlines()[line - 1]
