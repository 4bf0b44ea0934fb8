"""A SIP definition as the scheduler and its jobs meet it: limits, resources, scripts."""

import json
import subprocess

import pytest

from tests.support.sips import definition, graph_of, sip, stage, with_compose
from tidewheel.formats.sip.translation import stage_environment, stage_scripts
from tidewheel.formats.sip.validation import validate
from tidewheel.scheduler.submissions import JobFacts, JobWriter, RunFacts

FACTS = RunFacts(
    number=1,
    name="vis/run1",
    workflow="vis",
    queue="q",
    initial="1",
    final="1",
    cycling_mode="integer",
)
EVIL = [
    "$(touch oops)",
    "`touch oops`",
    "'; touch oops; '",
    '"; touch oops; "',
    "x\ntouch oops\n",
    "-rf",
    "~",
    "\\",
    "*",
    "$HOME ${PATH}",
]


def task_of(text, **folder):
    judgement = validate(sip(definition(text), with_compose(a=folder)))
    node = graph_of(judgement).nodes["a"].definition
    job = JobFacts(point="1", submit=1, try_number=1, flows=frozenset({1}))
    return JobWriter(FACTS).new_task(node, job)


@pytest.mark.req("R004-16")
def test_the_timeout_of_a_stage_is_that_of_its_task():
    assert task_of(stage("a")).timeout_seconds == 60


@pytest.mark.req("R004-17", "R004-20")
def test_the_task_of_a_stage_asks_for_its_resources():
    resources = (
        "resources_required: [{type: cpu, value: 2}, {type: memory, value: 1GiB}, "
        "{type: nodes, number: 1, flavour: big, exclusive: false}]"
    )
    text = stage("a").replace("resources_required: []", resources)
    asked = task_of(text).resources
    assert (asked.cpu, asked.memory_bytes) == (2.0, 1024**3)
    assert [(one.flavour, one.nodes, one.idle) for one in asked.flavours] == [
        ("", 1, 0),
        ("big", 1, 0),
    ]


def test_a_workflow_runs_once_at_one_point():
    graph = graph_of(validate(sip(definition(stage("a")), with_compose("a"))))
    assert (graph.cycling.initial, graph.cycling.final) == (1, 1)
    assert graph.name == "flow"


@pytest.mark.slow
@pytest.mark.parametrize("value", EVIL)
def test_a_shell_never_reads_a_value_of_a_command(tmp_path, value):
    files = {"command.yaml.j2": "[printf, '%s|', '{{ word }}', {{ word }}, '{{ args }}']"}
    source = sip(definition(stage("a")), {"a": {**files, "args.yaml.j2": "w: '{{ word }}'"}})
    rendered = validate(source, {"word": value}).rendered["a"]
    scripts = stage_scripts("a", rendered)
    said = bash(f"{scripts.env}\n{scripts.main}", tmp_path)
    assert said == f"{value}|{value}|{json.dumps({'w': value}, separators=(',', ':'))}|"
    assert not (tmp_path / "oops").exists()


@pytest.mark.parametrize("value", EVIL)
def test_a_script_is_given_its_values_as_they_are(tmp_path, value):
    files = {"script.sh": 'printf "%s" "$PARAMETER_word" "$TIDEWHEEL_PARAMETERS"'}
    rendered = validate(sip(definition(stage("a")), {"a": files}), {"word": value}).rendered[
        "a"
    ]
    scripts = stage_scripts("a", rendered)
    said = bash(f"{scripts.env}\n{scripts.main}", tmp_path)
    assert said == value + json.dumps({"word": value}, separators=(",", ":"))
    assert not (tmp_path / "oops").exists()


def test_the_environment_has_plain_parameters_by_name_and_all_of_them_as_json():
    request = {"n": 1.5, "flag": True, "my-name": "x", "list": [1], "none": None}
    files = {"script.sh": "true"}
    rendered = validate(sip(definition(stage("a")), {"a": files}), request).rendered["a"]
    assert dict(stage_environment(rendered)) == {
        "TIDEWHEEL_PARAMETERS": '{"n":1.5,"flag":true,"my-name":"x","list":[1]}',
        "TIDEWHEEL_ARGS": "{}",
        "PARAMETER_n": "1.5",
        "PARAMETER_flag": "true",
    }


def test_a_stage_that_no_shell_can_run_never_seems_to_succeed_in_one(tmp_path):
    text = definition(stage("a"), stage("b", "a complete"))
    folders = with_compose(a={"outputs.yaml": "- n\n"})
    folders["b"] = {"command.yaml.j2": "[echo, '{{ n }}']"}
    judgement = validate(sip(text, folders), {})
    assert judgement.runnable
    for name, said in (("a", "runs in containers"), ("b", "was started without its values")):
        main = graph_of(judgement).nodes[name].definition.scripts.main
        with pytest.raises(subprocess.CalledProcessError) as failed:
            bash(main, tmp_path)
        assert said in failed.value.stderr


def bash(script, folder):
    here = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(
        ["bash", "-euc", script],
        env=here,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
