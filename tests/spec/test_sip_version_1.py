"""Version 1 of SIP's files: known by its shape, told with one finding, converted to 2.0."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sip_version_1 import (
    ARGS,
    COMPOSE,
    block_1,
    definition_1,
    folder_1,
    rendered_1,
    sbi_1,
    stage_1,
)
from tests.support.sips import codes, found, sip
from tests.support.workflow_folders import put
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.formats.sip.bundle import path_problem, sources_in
from tidewheel.formats.sip.scheduling_block import read_sbi
from tidewheel.formats.sip.text_files import read_plain
from tidewheel.formats.sip.validation import validate
from tidewheel.formats.sip.version_1_definition import FilesBeside, convert_definition
from tidewheel.formats.sip.version_1_templates import Rewriter
from tidewheel.services.blocks.requests import fingerprint
from tidewheel.services.definitions.conversion import convert

FILE = "mock_1.0.0.json"


def read(document, file="sbi.json"):
    findings = Findings()
    return read_sbi(file, json.dumps(document).encode(), findings), findings


def converted(folder, files, name=FILE):
    put(folder, files)
    made = convert(folder / name)
    assert len(made.converted) <= 1
    return (made.converted or [None])[0], made.findings


def stages_of(one):
    return json.loads(one.files[one.file])["stages"]


# ---- what a reader says ----


@pytest.mark.req("R004-11")
@pytest.mark.parametrize(
    "text",
    [
        definition_1(stage_1("a"), stage_1("b", "a")),
        definition_1(stage_1("a"), schema_version="1.0"),
        definition_1({"id": "a", "app_config": {}}, {"nonsense": 1}),
        json.dumps({"schema_version": "1.0", "stages": 7}),
    ],
)
def test_a_version_1_definition_has_one_finding_that_names_the_command(text):
    validation = validate(sip(text, file=FILE))
    (only,) = validation.all_findings()
    assert (only.code, only.severity) == ("version-1", Severity.ERROR)
    assert only.message.startswith("this is a version 1 definition")
    assert f"tidewheel convert {FILE}" in only.hint
    assert only.position.line == 1


@pytest.mark.req("R004-11")
def test_a_version_1_template_has_one_finding_too():
    text = definition_1(stage_1("a"), id="{{ workflow_id }}", version="{{ v }}")
    (only,) = found(validate(sip(text, file=f"{FILE}.j2")).findings)
    assert only.code == "version-1"


def test_a_definition_that_only_lacks_its_schema_version_is_not_taken_for_version_1():
    text = json.dumps({"id": "mock", "version": "1.0.0", "stages": []})
    assert codes(validate(sip(text, file=FILE)).findings) == ["missing-key"]


# ---- definitions ----


def test_a_converted_definition_validates_and_keeps_its_stages(tmp_path):
    one, findings = converted(tmp_path, folder_1("a", "b"))
    assert list(findings) == []
    assert (one.name, one.is_valid) == ("mock/1.0.0", True)
    assert one.verdict == "it can be registered and run; each request must give duration"
    assert sorted(one.files) == [
        FILE,
        *(
            f"stages/{name}/1.0.0/{file}"
            for name in "ab"
            for file in ("args.json.j2", "docker_compose.yaml.j2", "parameters.yaml")
        ),
    ]
    document = json.loads(one.files[FILE])
    assert (document["schema_version"], document["id"]) == ("2.0", "mock")
    assert [stage["id"] for stage in document["stages"]] == ["a", "b"]
    assert document["stages"][1]["dependencies"] == stage_1("b", "a")["dependencies"]
    assert yaml.safe_load(one.files["stages/a/1.0.0/parameters.yaml"]) == {"duration": None}


# Quotes and backslashes broke the files of version 1.
TEXTS = st.text("abcäöü 019-_.:,;#&*!|>%@[]{}$", max_size=8)


@settings(max_examples=8)  # each renders in processes of its own
@given(duration=st.integers(0, 10**6) | st.floats(0, 100), message=TEXTS)
def test_a_converted_stage_executes_what_version_1_executed(duration, message):
    """The oracle renders as the prototype did: Jinja2, then JSON, then YAML."""
    args = '{"duration": {{ stage.duration }}, "id": "{{stage.id}}", "to": {{ stage["to"] }}}'
    given_1 = {"duration": duration, "to": json.dumps(message)}
    wanted, compose = rendered_1(stage_1("a"), args, COMPOSE, given_1)
    files = folder_1("a", args=args.replace('{{ stage["to"] }}', '"{{ stage["to"] }}"'))
    made = rewritten(files)
    request = {"a": {"duration": duration, "to": message}}
    rendered = validate(made, request).rendered["a"]
    assert rendered.args == wanted
    service = yaml.safe_load(rendered.compose)["services"]["work"]
    (word,) = service.pop("command")
    (before,) = compose["services"]["work"].pop("command")
    assert json.loads(word.replace("$$", "$")) == json.loads(before)
    assert service == compose["services"]["work"]


def rewritten(files):
    """The converted definition of version 1 files that lie in no folder."""
    findings = Findings()
    root = read_plain(FILE, files[FILE], findings)
    source = FilesBeside(look=lambda path: files[path].encode() if path in files else None)
    made = convert_definition(FILE, root, source, findings)
    assert list(findings) == []
    (only,) = sources_in(made.files, findings)
    return only


def test_the_stage_itself_is_named_by_its_id_as_well():
    made = rewritten(folder_1("setup", args='{"n": {{ setup.channels }}}'))
    assert validate(made, {"setup": {"channels": 7}}).rendered["setup"].args == {"n": 7}


def test_a_default_of_a_template_is_the_default_of_the_parameter():
    args = '{"n": {{ stage.n | default(3) }}, "site": "{{ stage.site|d("north") }}"}'
    made = rewritten(folder_1("a", args=args))
    validation = validate(made, {})
    assert validation.runnable
    assert validation.rendered["a"].args == {"n": 3, "site": "north"}


@pytest.mark.parametrize(
    "text",
    [
        "{# {{ stage.duration }} #}[]",
        "{% raw %}{{ stage.duration }}{% endraw %}",
        '["stage.duration"]',
        "{{ 'stage.duration' }}",
        "{{ other.stage.duration }}",
        "{{ stage.duration",
        "{{ '",
        "{% raw %}{{ stage.x }}",
        "{# stage.x",
    ],
)
def test_what_is_no_name_of_a_template_stays_as_it_was_written(tmp_path, text):
    one, _ = converted(tmp_path, folder_1("a", args=text))
    made = [content for path, content in one.files.items() if "/args.json" in path]
    if text in ("{{ stage.duration", "{% raw %}{{ stage.x }}", "{# stage.x"):
        return  # it ends too early for any reader: that it is read at all is enough
    assert made == [text.encode()]


@given(st.text("{}%#stage.['\"]x| \n-", max_size=60))
def test_any_text_is_rewritten_and_one_without_the_name_stays_as_it_is(text):
    made = Rewriter("other", Findings()).rewritten("args.json.j2", text, is_compose=True)
    assert made == text or "stage" in text


@pytest.mark.parametrize(
    ("args", "compose", "seen"),
    [
        ('{"x": {{ stage }}}', COMPOSE, "stage as a whole"),
        ('{"x": "{{ stage.ee_config }}"}', COMPOSE, "stage.ee_config"),
        (ARGS, COMPOSE.replace("stage.args", "stage.args | tojson"), "stage.args, which is a"),
        (ARGS, COMPOSE.replace("1.36", "{{ stage.tag }}"), "stage.tag"),
    ],
)
def test_what_a_template_cannot_have_in_2_0_is_told_with_its_line(
    tmp_path, args, compose, seen
):
    _, findings = converted(tmp_path, folder_1("a", args=args, compose=compose))
    (only,) = [one for one in findings if one.code == "not-carried-over"]
    assert seen in only.message
    assert only.position.line == (
        1 if args != ARGS else compose[: compose.index("{{")].count("\n") + 1
    )


@pytest.mark.parametrize(
    ("asked", "becomes"),
    [
        ({"type": "cpu", "value": 0.1}, {"type": "cpu", "value": 0.1}),
        ({"type": "memory", "value": "2GB"}, {"type": "memory", "value": "2GB"}),
        (
            {
                "type": "node",
                "value": "3",
                "parameters": {"flavour": "compute_a", "exclusive": True},
            },
            {"type": "nodes", "number": 3, "flavour": "compute_a", "exclusive": True},
        ),
        ({"type": "node", "value": 2}, {"type": "nodes", "number": 2, "exclusive": False}),
        (
            {"id": "node:p3:compute_a", "value": 1, "parameters": {"exclusive": True}},
            {"type": "nodes", "number": 1, "flavour": "compute_a", "exclusive": True},
        ),
    ],
)
def test_resources_become_those_of_2_0(tmp_path, asked, becomes):
    files = folder_1("a")
    files[FILE] = definition_1(stage_1("a", resources_required=[asked]))
    one, findings = converted(tmp_path, files)
    assert stages_of(one)[0]["resources_required"] == [becomes]
    assert one.is_valid
    assert bool(list(findings)) == ("id" in asked)


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        ({"ee_type": "NONE"}, "'ee_type'"),
        ({"resources_required": {"type": "cpu", "value": 1, "volume": "bind"}}, "volume"),
        ({"ee_config": {"compose_template": "docker-compose.yaml.j2", "x": 1}}, "'x'"),
        (
            {
                "dependencies": [
                    {**stage_1("x", "b")["dependencies"][0], "parameters": {"y": 1}}
                ]
            },
            "'parameters'",
        ),
        (
            {"resources_required": [{"type": "node", "value": 1, "parameters": {"cpu": 7}}]},
            "cpu",
        ),
    ],
)
def test_what_2_0_has_no_place_for_is_told_with_its_place(tmp_path, changed, seen):
    files = folder_1("a", "b")
    files[FILE] = definition_1(stage_1("a", **changed), stage_1("b"))
    one, findings = converted(tmp_path, files)
    (only,) = findings
    assert (only.code, only.severity) == ("not-carried-over", Severity.WARNING)
    assert seen in only.message
    assert only.position.line > 1
    assert one.is_valid


def test_dependencies_that_version_1_passed_over_hold_now_and_are_told(tmp_path):
    files = folder_1("a", "b", "c")
    late = stage_1("c")
    del late["dependencies"]
    late["dependencies:"] = [{"type": "stages", "value": "a, b", "condition": "complete"}]
    files[FILE] = definition_1(stage_1("a"), stage_1("b"), late)
    one, findings = converted(tmp_path, files)
    assert [found.code for found in findings] == ["dependencies-spelling"]
    assert [need["value"] for need in stages_of(one)[2]["dependencies"]] == ["a", "b"]


def test_templates_that_are_not_there_are_told_one_by_one_with_other_mistakes(tmp_path):
    text = definition_1(stage_1("a"), stage_1("b", "gone"))
    one, findings = converted(tmp_path, {FILE: text})
    assert [found.code for found in findings] == ["missing-template"] * 4
    assert "templates/mock/1.0.0/a/1.0.0/args.json.j2" in "".join(
        found.hint for found in findings
    )
    assert [found.code for found in one.problems] == ["unknown-stage"]
    assert not one.is_valid
    assert one.verdict == "it cannot be registered yet"


@pytest.mark.parametrize("where", ["../secret", "/etc/passwd", "./../x", "a/../../b"])
def test_a_template_outside_of_the_folder_is_not_read(tmp_path, where):
    (tmp_path / "secret").write_text("x: 1")
    files = folder_1("a")
    engine = {"compose_template": where}
    files[FILE] = definition_1(stage_1("a", ee_config=engine))
    one, findings = converted(tmp_path / "in", files)
    assert "bad-path" in [found.code for found in findings]
    assert not any("compose" in path for path in one.files)


def test_a_link_among_the_templates_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("x: 1")
    files = folder_1("a")
    lead = "templates/mock/1.0.0/a/1.0.0/docker-compose.yaml.j2"
    del files[lead]
    put(tmp_path / "in", files)
    (tmp_path / "in" / lead).symlink_to(tmp_path / "secret")
    made = convert(tmp_path / "in" / FILE)
    assert "link" in [found.code for found in made.findings]
    assert not any(b"x: 1" in content for content in made.files().values())


@pytest.mark.parametrize("name", ["../../x", "a/b", "stage", "a b", ""])
def test_a_stage_whose_name_no_folder_can_have_is_refused_with_its_line(tmp_path, name):
    files = {FILE: definition_1(stage_1(name))}
    one, findings = converted(tmp_path, files)
    assert "bad-name" in [found.code for found in findings]
    assert list(one.files) == [FILE]


def test_the_name_of_a_template_is_that_of_its_file(tmp_path):
    files = folder_1("a")
    text = definition_1(stage_1("a"), id="{{ workflow_id }}", version="{{ v }}")
    files["survey_2.1.0.json.j2"] = text
    one, findings = converted(tmp_path, files, "survey_2.1.0.json.j2")
    assert [found.code for found in findings] == ["not-carried-over"] * 2
    assert (one.name, one.file) == ("survey/2.1.0", "survey_2.1.0.json")
    assert one.is_valid


def test_stages_of_one_name_that_differ_are_kept_apart(tmp_path):
    files = folder_1("a")
    other = COMPOSE.replace("1.36", "1.35")
    files |= {
        "mock_1.1.0.json": definition_1(stage_1("a"), version="1.1.0"),
        "templates/mock/1.1.0/a/1.0.0/args.json.j2": ARGS,
        "templates/mock/1.1.0/a/1.0.0/docker-compose.yaml.j2": other,
    }
    put(tmp_path, files)
    made = convert(tmp_path)
    assert [one.file for one in made.converted] == [FILE, "mock-1.1.0/mock_1.1.0.json"]
    assert all(one.is_valid for one in made.converted)
    assert (
        made.files()["mock-1.1.0/stages/a/1.0.0/docker_compose.yaml.j2"]
        != made.files()["stages/a/1.0.0/docker_compose.yaml.j2"]
    )


def test_a_yaml_definition_stays_yaml(tmp_path):
    files = folder_1("a")
    files["mock_1.0.0.yaml"] = yaml.safe_dump(json.loads(files.pop(FILE)))
    one, findings = converted(tmp_path, files, "mock_1.0.0.yaml")
    assert list(findings) == []
    assert one.is_valid
    assert yaml.safe_load(one.files["mock_1.0.0.yaml"])["schema_version"] == "2.0"


WORDS = [
    *("id", "version", "type", "timeout", "dependencies", "dependencies:", "parameters"),
    *("resources_required", "ee_config", "app_config", "compose_template", "args_template"),
    *("value", "condition", "number", "flavour", "exclusive", "stages", "schema_version"),
]
SAID = ["", "a", "../x", "/etc/passwd", "node:p3:a", "a,b", "stages", "{{ x }}", "x.yaml.j2"]


def nested(leaf, words, depth=3):
    """Values, and lists and mappings of them, up to this depth."""
    if depth == 0:
        return leaf
    inner = nested(leaf, words, depth - 1)
    keys = st.sampled_from(words)
    return leaf | st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3)


PLAIN = st.none() | st.booleans() | st.integers(-2, 2)
ANYTHING = nested(PLAIN | st.sampled_from(SAID), WORDS)


@given(st.lists(st.dictionaries(st.sampled_from(WORDS), ANYTHING), max_size=3), ANYTHING)
def test_no_definition_of_any_shape_crashes_or_leads_out_of_the_folder(stages, other):
    text = json.dumps({"id": other, "version": other, "stages": stages or other, "x": other})
    findings = Findings()
    root = read_plain(FILE, text, findings)
    source = FilesBeside(look=lambda _: b"{{ stage.x }}", workflows=("templates/a/b",))
    made = convert_definition(FILE, root, source, findings)
    assert [path for path in made.files if path_problem(path)] == []
    assert all(one.position.file for one in findings)


# ---- requests ----


@pytest.mark.req("R004-53")
def test_a_version_1_request_is_read_as_2_0_with_a_warning_for_each_change():
    request, findings = read(sbi_1())
    assert codes(findings, Severity.ERROR) == []
    assert codes(findings, Severity.WARNING) == ["version-1", "other-spelling"]
    (block,) = request.blocks
    assert (request.id, block.id, block.priority) == (
        "SBI-20181116-sip-0000",
        "PB-20181116-sip-000",
        1,
    )
    assert (block.workflow, block.version) == ("mock", "1.0.0")
    assert block.parameters == {"a": {"duration": 1}}
    assert request.body["version"] == "2.0"


@pytest.mark.req("R004-53")
def test_the_same_request_written_as_2_0_is_the_same():
    now = sbi_1(block_1(), version="2.0")
    del now["processing_blocks"][0]["resources_required"]
    request, findings = read(now)
    assert not list(findings)
    assert fingerprint(request) == fingerprint(read(sbi_1())[0])


@pytest.mark.parametrize(
    ("document", "seen"),
    [
        (sbi_1(block_1(type="real-time")), ("type", "realtime")),
        (sbi_1(subarray="subarray-8"), ("subarray_id", "subarray-8")),
        (sbi_1(sub_array_id="s8"), ("subarray_id", "s8")),
        (sbi_1(scans={"id": "scan-1"}), ("scans", [{"id": "scan-1"}])),
    ],
)
def test_other_words_of_version_1_mean_what_they_meant(document, seen):
    request, findings = read(document)
    assert codes(findings, Severity.ERROR) == []
    key, value = seen
    assert value in (request.body.get(key), request.body["processing_blocks"][0].get(key))


def test_a_workflow_that_is_named_in_the_words_of_the_database_is_found():
    block = block_1(workflow_id="mock", workflow_version="1.0.1", status="created")
    block["workflow_parameters"] = block.pop("workflow")["parameters"]
    request, findings = read(sbi_1(block))
    assert codes(findings, Severity.ERROR) == []
    (one,) = request.blocks
    assert (one.workflow, one.version) == ("mock", "1.0.1")
    assert one.parameters == {"a": {"duration": 1}}


def test_the_scheduling_block_may_be_named_at_the_top():
    document = sbi_1(scheduling_block_id="SB-9", project="sip")
    del document["scheduling_block"]
    request, findings = read(document)
    assert codes(findings, Severity.ERROR) == []
    assert request.body["scheduling_block"] == {"id": "SB-9", "project": "sip"}


def test_configuration_is_what_parameters_are():
    block = block_1(workflow={"id": "mock", "version": "1.0.0", "configuration": {"n": 1}})
    request, findings = read(sbi_1(block))
    assert codes(findings, Severity.ERROR) == []
    assert request.blocks[0].parameters == {"n": 1}


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        (block_1(), "SBI-20181116-sip-000"),
        (block_1(sbi_id="SBI-20181116-sip-7"), "SBI-20181116-sip-7"),
    ],
)
def test_a_block_alone_is_asked_for_in_an_instance_of_its_name(block, wanted):
    request, findings = read(block)
    assert codes(findings, Severity.ERROR) == []
    assert "version-1" in codes(findings, Severity.WARNING)
    assert request.id == wanted
    assert [one.id for one in request.blocks] == ["PB-20181116-sip-000"]


@pytest.mark.parametrize(
    "document",
    [
        sbi_1(block_1(resources_required=[{"type": "cpu", "value": 1}])),
        sbi_1(block_1(workflow_stages=[stage_1("a")])),
        sbi_1(block_1(workflow={"id": "mock", "stages": [stage_1("a")]})),
        sbi_1(something_else="x"),
        sbi_1(block_1(workflow=[{"configuration": {}}])),
    ],
)
def test_a_request_whose_meaning_is_not_certain_has_one_finding_with_the_command(document):
    request, findings = read(document)
    assert request is None
    (only,) = findings
    assert (only.code, only.severity) == ("version-1", Severity.ERROR)
    assert "tidewheel convert sbi.json" in only.hint
    assert only.position.file == "sbi.json"


def test_mistakes_of_a_version_1_request_are_found_at_their_places():
    text = json.dumps(sbi_1(block_1(id="PB-1", priority=1000)), indent=1)
    findings = Findings()
    read_sbi("sbi.json", text.encode(), findings)
    assert codes(findings, Severity.ERROR) == ["bad-id", "bad-priority"]
    lines = text.splitlines()
    at = {one.code: lines[one.position.line - 1] for one in findings}
    assert '"PB-1"' in at["bad-id"]
    assert "1000" in at["bad-priority"]


KEYS = [
    *("id", "version", "workflow", "processing_blocks", "scheduling_block", "workflow_id"),
    *("scans", "subarray", "stages", "name", "type", "sbi_id"),
]


@given(nested(PLAIN | st.sampled_from(["", "PB-1", "1.0.0"]), KEYS))
def test_no_request_of_any_shape_crashes_its_reader_and_every_finding_has_a_place(value):
    document = value if isinstance(value, dict) else {"processing_blocks": value}
    _, findings = read({"version": "1.0.0", **document})
    assert all(one.position.file == "sbi.json" for one in findings)
    root = {"id": "w", "version": "1.0.0", "stages": [{"ee_config": value, **document}]}
    validate(sip(json.dumps(root), file=FILE))


def test_a_converted_request_is_one_of_2_0(tmp_path):
    (tmp_path / "sbi.json").write_text(json.dumps(sbi_1()))
    made = convert(tmp_path / "sbi.json")
    assert not list(made.findings)
    (one,) = made.converted
    request, findings = read(json.loads(one.files["sbi.json"]))
    assert not list(findings)
    assert fingerprint(request) == fingerprint(read(sbi_1())[0])
