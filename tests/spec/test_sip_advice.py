"""What an author reads at night: advice that can be copied into the file that it is about."""

import json
import re

import pytest

from tests.support.sips import COMPOSE, codes, found, judged, sip, with_compose, yaml_value
from tests.support.workflow_folders import put
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.formats.sip.bundle import read_folder, sources_in
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.formats.sip.validation import validate

STAGE = {
    "id": "a",
    "version": "1.0.0",
    "type": "setup",
    "timeout": "60s",
    "resources_required": [],
}


def as_json(stages, **more):
    document = {"schema_version": "2.0", "stages": stages, **more}
    return validate(sip(json.dumps(document), with_compose("a"), file="f-1.0.0.json"))


def without(key):
    return {name: value for name, value in STAGE.items() if name != key}


@pytest.mark.req("R004-11", "R004-14")
@pytest.mark.parametrize("key", ["version", "timeout", "resources_required"])
def test_advice_about_a_json_file_is_json(key):
    (one,) = found(as_json([without(key)]).findings)
    advised = re.search(r'write ("\w+": \S+)', one.hint)[1]
    assert json.loads(f"{{{advised}}}").keys() == {key}


@pytest.mark.parametrize(
    "wrong",
    [["a"], [{**STAGE, "resources_required": ["cpu"]}], [{**STAGE, "dependencies": ["b"]}]],
)
@pytest.mark.parametrize("file", ["f-1.0.0.json", "f-1.0.0.yaml"])
def test_an_entry_that_is_advised_is_read_as_a_mapping(wrong, file):
    text = json.dumps({"schema_version": "2.0", "stages": wrong})
    (error,) = found(validate(sip(text, with_compose("a"), file=file)).findings, Severity.ERROR)
    advised = re.search(r"(- )?\{.*\}", error.hint)[0]
    read = json.loads(f"[{advised}]") if file.endswith("json") else yaml_value(advised)
    (entry,) = read
    assert "type" in entry


@pytest.mark.req("R004-11")
@pytest.mark.parametrize("file", ["f-1.0.0.json", "f-1.0.0.yaml"])
def test_a_file_of_another_kind_is_told_how_a_definition_begins(file):
    (error,) = found(validate(sip("[]", file=file)).findings)
    assert error.code == "no-definition"
    beginning = error.hint.removeprefix("write ")
    assert validate(sip(beginning, file=file)).runnable


@pytest.mark.req("R004-35", "R004-36", "R004-38")
@pytest.mark.parametrize(
    ("key", "where"), [("ee_config", "docker_compose.yaml"), ("app_config", "args.json")]
)
def test_a_key_of_an_earlier_version_is_told_where_its_content_goes_now(key, where):
    (error,) = found(as_json([{**STAGE, key: {}}]).findings)
    assert error.code == "unknown-key"
    assert "earlier version of the format" in error.message
    assert where in error.hint


@pytest.mark.parametrize(
    ("stages", "more", "owner"),
    [
        ([STAGE], {"dependencies": []}, "a stage"),
        ([{**STAGE, "condition": "complete"}], {}, "a dependency"),
        ([{**STAGE, "flavour": "x"}], {}, "a resource"),
        ([{**STAGE, "value": "b"}], {}, "a dependency or a resource"),
        ([{**STAGE, "schema_version": "2.0"}], {}, "the definition"),
    ],
)
def test_a_key_in_the_wrong_mapping_is_told_where_it_belongs(stages, more, owner):
    (error,) = found(as_json(stages, **more).findings)
    assert (error.code, error.hint) == (
        "unknown-key",
        f"it belongs to {owner}: check its indentation",
    )


@pytest.mark.parametrize(
    ("resource", "meant"),
    [
        ({"type": "nodes", "value": 1, "exclusive": True, "flavour": "x"}, "number"),
        ({"type": "cpu", "number": 1}, "value"),
        ({"type": "memory", "size": "1GB"}, "value"),
    ],
)
def test_another_word_for_how_much_is_understood(resource, meant):
    errors = found(as_json([{**STAGE, "resources_required": [resource]}]).findings)
    assert f"did you mean {meant!r}?" in " ".join(one.hint for one in errors)


@pytest.mark.req("R004-53")
def test_a_scheduling_block_instance_is_no_definition_and_told_what_to_do_with_it():
    instance = {"id": "SBI-20190117-test-001", "version": "2.0", "processing_blocks": []}
    source = sip(json.dumps(instance), file="sbi.json")
    (error,) = found(validate(source).findings)
    assert error.code == "no-definition"
    assert "tidewheel sbi submit sbi.json" in error.hint


@pytest.mark.slow
@pytest.mark.req("R004-49")
@pytest.mark.parametrize("name", ["n", "args"])
def test_a_value_that_is_looked_for_in_the_stage_is_told_its_own_name(name):
    files = {
        "parameters.yaml": "n: 1\n",
        "args.yaml": "a: 1\n",
        "docker_compose.yaml.j2": f"{COMPOSE}    command: '{{{{ stage.{name} }}}}'\n",
    }
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (error,) = found(validate(sip(text, {"a": files})).obstacles)
    assert (error.code, error.position.line) == ("template-undefined", 6)
    assert f"write {{{{ {name} }}}}" in error.hint


@pytest.mark.req("R004-34")
def test_a_comma_that_is_missing_hides_no_other_finding():
    text = json.dumps({"schema_version": "2.0", "stages": [without("timeout")]}, indent=1)
    broken = text.replace('"1.0.0",', '"1.0.0"')
    judgement = validate(sip(broken, with_compose("a"), file="f-1.0.0.json"))
    assert codes(judgement.findings) == ["json-syntax", "no-timeout"]


@pytest.mark.req("R004-49")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{{ args.text - 1 }}", "a string - a number"),
        ("{{ args.text + 1 }}", "a string + a number"),
        ("{{ 1 + args.text }}", "a number + a string"),
        ("{{ args.text < 1 }}", "a string < a number"),
        ("{{ args.items + {} }}", "a list + a mapping"),
    ],
)
def test_values_that_do_not_go_together_are_named_by_their_kinds(line, words):
    compose = f"{COMPOSE}    labels: ['{line}']\n"
    files = {"docker_compose.yaml.j2": compose, "args.yaml": "text: '2'\nitems: [1]\n"}
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (error,) = found(validate(sip(text, {"a": files})).obstacles)
    assert error.message == f"this cannot be computed: {words}"


@pytest.mark.req("R004-14", "R004-17")
@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        ("timeout", "1 day", "1d"),
        ("timeout", "30 mins", "30m"),
        ("timeout", "1.5Hours", "1.5h"),
        ("resources_required", [{"type": "memory", "value": "16Gi"}], "16GiB"),
        ("resources_required", [{"type": "buffer", "value": "2 ti"}], "2TiB"),
    ],
)
def test_units_of_others_are_told_as_they_are_written_here(key, value, meant):
    (error,) = found(as_json([{**STAGE, key: value}]).findings, Severity.ERROR)
    assert error.code == "value-kind"
    assert error.hint.startswith(f"did you mean {meant}? Expected a ")
    (other,) = found(as_json([{**STAGE, "timeout": "1 parsec"}]).findings, Severity.ERROR)
    assert other.hint.startswith("expected a ")


@pytest.mark.req("R004-34", "R004-38")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docker_compose.yaml", f"{COMPOSE}    command: [run, '{{{{ n }}}}']\n"),
        ("command.yaml", "- run\n- '{{ args }}'\n"),
        ("command.json", '["run",\n"{% if n %}x{% endif %}"]'),
    ],
)
def test_a_template_whose_name_does_not_say_so_is_warned_of(name, text):
    definition = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (warning,) = found(validate(sip(definition, {"a": {name: text}})).findings)
    assert (warning.code, warning.severity) == ("template-name", Severity.WARNING)
    line = text.splitlines()[warning.position.line - 1]
    assert "{{" in line or "{%" in line
    assert f"call it {name}.j2" in warning.hint


def test_what_an_engine_reads_itself_is_no_template():
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    compose = f"{COMPOSE}    hostname: '{{{{.Node.Hostname}}}}'\n"
    assert not list(validate(sip(text, {"a": {"docker_compose.yaml": compose}})).findings)


@pytest.mark.req("R004-35")
@pytest.mark.parametrize("name", ["script.py", "script.sh.j2"])
def test_a_script_of_another_kind_is_told_how_it_is_called(name):
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (error,) = found(validate(sip(text, {"a": {name: "x"}})).findings)
    assert error.code == "script-file-kind"
    assert "TIDEWHEEL_STAGE_DIR" in error.hint and "$PARAMETER_name" in error.hint


@pytest.mark.req("R004-43", "R004-44")
def test_a_later_stage_that_lacks_a_parameter_is_told_who_could_give_it():
    stages = [STAGE, {**STAGE, "id": "b", "dependencies": [_AFTER_A]}]
    files = {"docker_compose.yaml": COMPOSE, "parameters.yaml": "n:\n"}
    for last, is_told in ((stages[:1], False), (stages, True)):
        text = json.dumps({"schema_version": "2.0", "stages": last})
        folders = {"a": {"docker_compose.yaml": COMPOSE}, last[-1]["id"]: files}
        (note,) = validate(sip(text, folders, file="f-1.0.0.json")).findings
        assert note.hint.startswith("give it with each request: n=VALUE")
        assert note.hint.endswith("in the outputs.yaml of an earlier stage") is is_told


_AFTER_A = {"type": "stage", "value": "a", "condition": "complete"}


def test_nothing_is_advised_in_json_about_a_yaml_file():
    (one,) = found(judged("schema_version: '2.0'\n").findings)
    assert "write stages: [{id: ingest, version: 1.0.0, type: processing," in one.hint


@pytest.mark.slow
@pytest.mark.req("R004-49")
@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("{{.ImageName}}/{{.ID}}", "between {% raw %} and {% endraw %}"),
        ("{{ args.a[2] }}", "counted from 0"),
        ("{{ args.a | lenght }}", "did you mean 'length'?"),
        ("{{ args.b.colour }}", "did you mean 'color'?"),
        ("{{ args.b.color - 1 }}", "a number in quotes is a string"),
        ("{{ args.a }", "write }} where it ends"),
        ("{{ args.a\n", "write }} where it ends"),
        ("{% for one in args.a %}", "add {% endfor %} where it ends"),
        ("{% for one in args.a %}{% endfro %}", "did you mean 'endfor'?"),
        ("{%d}", "between {% raw %} and {% endraw %}"),
    ],
)
def test_a_template_that_fails_is_told_what_would_do(line, hint):
    compose = f"{COMPOSE}    labels: ['{line}']\n"
    files = {"docker_compose.yaml.j2": compose, "args.yaml": "a: [1]\nb: {color: '2'}\n"}
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (error,) = found(validate(sip(text, {"a": files})).obstacles)
    assert error.position.line == 6
    assert hint in error.hint


@pytest.mark.req("R004-35")
def test_a_stage_folder_without_one_for_its_version_is_told_what_to_make():
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    files = {"f-1.0.0.yaml": text.encode(), "stages/a/docker_compose.yaml": COMPOSE.encode()}
    (error,) = found(validate(SipSource(file="f-1.0.0.yaml", files=files)).findings)
    assert error.code == "no-stage-folder"
    assert error.hint == "create it, and move the files of stages/a into it"


@pytest.mark.req("R004-35")
@pytest.mark.parametrize(
    ("folder", "hint"),
    [
        ("Stages", "Stages is there: rename it to stages"),
        ("stage", "stage is there: rename it to stages"),
        ("data", "create stages/a/1.0.0 with a docker_compose.yaml in it"),
    ],
)
def test_a_missing_folder_of_stages_is_told_once_with_the_one_that_is_there(
    folder, hint, tmp_path
):
    stages = [STAGE, {**STAGE, "id": "b"}]
    text = json.dumps({"schema_version": "2.0", "stages": stages})
    files = {"f-1.0.0.json": text, f"{folder}/a/1.0.0/docker_compose.yaml": COMPOSE}
    put(tmp_path, files)
    (uploaded,) = sources_in({path: one.encode() for path, one in files.items()}, Findings())
    for source in (uploaded, read_folder(tmp_path / "f-1.0.0.json", Findings())):
        (error,) = found(validate(source).findings)
        assert (error.code, error.hint.startswith(hint)) == ("no-stages-folder", True)


@pytest.mark.req("R004-36")
@pytest.mark.parametrize("name", ["docker_compose.j2.yaml", "Docker_Compose.yaml.j2"])
def test_a_compose_file_of_almost_the_right_name_is_named_whole(name):
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (error,) = found(validate(sip(text, {"a": {name: COMPOSE}})).findings)
    assert (error.code, error.hint.split(" is there")[0]) == ("no-compose-file", name)


@pytest.mark.req("R004-37", "R004-38")
@pytest.mark.parametrize(
    ("name", "meant"), [("params.yaml", "parameters.yaml"), ("arguments.json.j2", "args.json")]
)
def test_a_file_that_was_probably_meant_to_be_read_is_warned_of(name, meant):
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (warning,) = found(validate(sip(text, with_compose(a={name: "{}"}))).findings)
    assert (warning.code, warning.severity) == ("unread-file", Severity.WARNING)
    assert meant in warning.hint
    right = with_compose(a={name: "{}", "parameters.yaml": "n: 1\n", "args.json": "{}"})
    assert not list(validate(sip(text, right)).findings)


@pytest.mark.req("R004-37")
def test_parameters_that_look_like_a_template_are_warned_of():
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    files = with_compose(a={"parameters.yaml": "n: 1\nm: '{{ n }}0'\n"})
    assert codes(validate(sip(text, files)).findings) == ["parameters-template"]


def test_yaml_in_a_json_file_is_told_so():
    (error,) = found(validate(sip("# x\nschema_version: '2.0'\n", file="f.json")).findings)
    assert (error.code, error.position.line) == ("json-syntax", 2)
    assert "call the file .yaml" in error.hint


@pytest.mark.req("R004-49")
def test_a_parameter_with_a_hyphen_is_told_how_templates_name_it():
    files = {
        "docker_compose.yaml.j2": f"{COMPOSE}    labels: ['{{{{ image-tag }}}}']\n",
        "parameters.yaml": "image-tag: latest\n",
    }
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    judgement = validate(sip(text, {"a": files}))
    assert {one.code for one in judgement.findings} == {"undeclared-parameter"}
    assert all("parameters['image-tag']" in one.hint for one in judgement.findings)


def test_a_name_is_not_taken_for_one_of_ours_that_is_hardly_like_it():
    files = {"docker_compose.yaml.j2": f"{COMPOSE}    labels: ['{{{{ tag }}}}']\n"}
    text = "schema_version: '2.0'\nstages:\n- " + json.dumps(STAGE)
    (note,) = validate(sip(text, {"a": files})).findings
    assert (note.severity, note.hint) == (Severity.NOTE, "give it with each request: tag=VALUE")


@pytest.mark.slow
@pytest.mark.req("R004-12")
@pytest.mark.parametrize("stages", ["{a: {version: 1.0.0}}", "a"])
def test_stages_that_are_no_list_are_told_so_in_a_template_too(stages):
    text = f"schema_version: '2.0'\n# {{{{ n }}}}\nstages: {stages}\n"
    (error,) = found(validate(sip(text, file="f-1.0.0.yaml.j2")).findings, Severity.ERROR)
    assert (error.code, error.position.line) == ("value-kind", 3)


@pytest.mark.parametrize(
    ("lines", "line", "hint"),
    [
        (["    type:setup", "    timeout: 60s"], 4, "with a space after the colon"),
        (["    timeout:", "      most", "        hours: 2"], 6, "a colon there: most:"),
        (["   type: setup"], 4, "column 4, the key of the line before in column 5"),
        (["\ttype: setup"], 4, "not accept tabs"),
        (["    resources_required: [{type: cpu", "    timeout: 60s"], 4, "close it with }"),
        (["    resources_required: [{type: cpu}", "    type: setup"], 4, "close it with ]"),
        (["    <<: {type: setup}"], 4, "write each key"),
    ],
)
def test_a_mistake_in_yaml_is_told_in_the_line_where_it_is_mended(lines, line, hint):
    text = "\n".join(["schema_version: '2.0'", "stages:", "  - id: a", *lines, ""])
    errors = found(judged(text, "a").findings, Severity.ERROR)
    assert (line, True) in [(one.position.line, hint in one.hint) for one in errors]


@pytest.mark.req("R004-17", "R004-18", "S15")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("timeout", "9" * 30),
        ("resources_required", [{"type": "cpu", "value": 10**30}]),
        ("resources_required", [{"type": "memory", "value": 10**30}]),
        ("resources_required", [{"type": "buffer", "value": "9" * 5000}]),
        ("resources_required", [{"type": "memory", "value": "9" * 400 + ".5MB"}]),
        (
            "resources_required",
            [{"type": "nodes", "number": 10**30, "flavour": "x", "exclusive": True}],
        ),
    ],
)
def test_more_than_any_machine_has_is_refused_before_it_is_kept(key, value):
    (error,) = found(as_json([{**STAGE, key: value}]).findings, Severity.ERROR)
    assert error.code == "value-kind"
    assert "up to" in error.hint or "from 1 to" in error.hint
