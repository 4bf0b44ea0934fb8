"""Seed 004, "Top level structure" and "Workflow stages": every key, and each tolerance."""

import json

import pytest

from tests.support.sips import (
    A_STAGE,
    HEAD,
    codes,
    definition,
    found,
    judged,
    sip,
    stage,
    with_compose,
)
from tidewheel.core.graph.findings import Severity
from tidewheel.formats.sip.model import (
    BufferNeeded,
    CpuNeeded,
    MemoryNeeded,
    NodesNeeded,
    StageType,
)
from tidewheel.formats.sip.validation import validate


def stage_of(judgement):
    assert judgement.definition is not None
    return judgement.definition.stages[0]


def with_line(*lines):
    """The stage a with these lines more."""
    return HEAD + A_STAGE + "".join(f"    {line}\n" for line in lines)


def without(key):
    kept = [line for line in A_STAGE.splitlines() if not line.strip(" -").startswith(f"{key}:")]
    text = "\n".join(kept)
    if key == "id":
        text = text.replace("    version", "  - version", 1)
    return f"{HEAD}{text}\n"


@pytest.mark.req("R004-11", "R004-34")
@pytest.mark.parametrize("written", ["2.0", "'2.0'", '"2.0"'])
def test_schema_version_is_a_text_or_a_number(written):
    assert judged(f"schema_version: {written}\nstages: []\n").runnable


@pytest.mark.req("R004-11")
@pytest.mark.parametrize("written", ["1.0", "2.1", "2", "two", "[]", ""])
def test_another_schema_version_is_refused(written):
    refused = judged(f"schema_version: {written}\nstages: []\n")
    assert set(codes(refused.findings)) <= {"schema-version", "value-kind", "version-1"}
    assert not refused.registrable


@pytest.mark.req("R004-11", "R004-12")
@pytest.mark.parametrize("text", ["stages: []", "schema_version: '2.0'"])
def test_both_top_level_keys_are_required(text):
    refused = judged(text)
    assert codes(refused.findings, Severity.ERROR) == ["missing-key"]


@pytest.mark.req("R004-12")
def test_a_workflow_without_stages_is_accepted():
    judgement = judged(definition())
    assert judgement.runnable
    assert not list(judgement.findings)


@pytest.mark.req("R004-12")
@pytest.mark.parametrize("stages", ["", "3", "{a: 1}", "[a]", "[[1]]"])
def test_stages_are_a_list_of_mappings(stages):
    assert not judged(f"schema_version: '2.0'\nstages: {stages}\n").registrable


@pytest.mark.parametrize("text", ["[]", "text", "3", "- a"])
def test_a_file_that_is_no_mapping_is_no_definition(text):
    assert codes(judged(text).findings) == ["no-definition"]


@pytest.mark.req("R004-13", "R004-14", "R004-15")
@pytest.mark.parametrize("key", ["id", "version", "type"])
def test_a_stage_has_an_id_a_version_and_a_type(key):
    refused = judged(without(key), "a")
    assert "missing-key" in codes(refused.findings, Severity.ERROR)
    assert f"no {key}" in found(refused.findings, Severity.ERROR)[0].message


@pytest.mark.req("R004-13")
def test_two_stages_cannot_have_one_id():
    refused = judged(definition(stage("a"), stage("b"), stage("a")), "a", "b")
    (error,) = refused.findings.sorted()
    assert (error.code, error.position.line) == ("duplicate-stage", 13)
    assert "line 3" in error.message


@pytest.mark.parametrize(
    "name", ["..", "a/b", "a b", "-a", "ü", "stage", "args", "parameters", "object@x", "_cylc"]
)
def test_an_id_that_cannot_be_a_folder_or_a_name_is_refused(name):
    text = (HEAD + A_STAGE).replace("id: a", f"id: '{name}'")
    assert "bad-name" in codes(judged(text, "a").findings)


@pytest.mark.req("R004-14")
@pytest.mark.parametrize(("written", "kept"), [("1.0", "1.0"), ("1.10", "1.10"), ("2", "2")])
def test_a_version_that_looks_like_a_number_stays_as_written_and_is_warned_of(written, kept):
    text = (HEAD + A_STAGE).replace("version: 1.0.0", f"version: {written}")
    judgement = validate(sip(text, with_compose("a"), version=kept))
    assert stage_of(judgement).version == kept
    assert codes(judgement.findings) == ["version-is-a-number"]
    assert judgement.runnable


@pytest.mark.req("R004-14")
@pytest.mark.parametrize("written", ["'1.0'", "1.0.0", "v1", "1.0.0-rc.1+b5"])
def test_a_version_is_a_text(written):
    text = (HEAD + A_STAGE).replace("version: 1.0.0", f"version: {written}")
    version = written.strip("'")
    assert not list(validate(sip(text, with_compose("a"), version=version)).findings)


@pytest.mark.parametrize("written", ["..", "'1/2'", "'../x'", "'.'", "1..2"])
def test_a_version_that_leads_elsewhere_is_refused(written):
    text = (HEAD + A_STAGE).replace("version: 1.0.0", f"version: {written}")
    assert "bad-name" in codes(judged(text, "a").findings)


@pytest.mark.req("R004-15")
@pytest.mark.parametrize("kind", list(StageType))
def test_each_type_is_known(kind):
    text = (HEAD + A_STAGE).replace("setup", kind)
    assert stage_of(judged(text, "a")).type is kind


@pytest.mark.req("R004-15")
def test_a_capital_type_is_tolerated():
    judgement = judged((HEAD + A_STAGE).replace("setup", "Setup"), "a")
    (warning,) = judgement.findings.sorted()
    assert (warning.code, warning.hint, warning.position.line) == (
        "capital-letters",
        "write setup",
        5,
    )
    assert judgement.runnable


@pytest.mark.req("R004-15")
def test_an_unknown_type_is_refused_with_those_that_are_known():
    (error,) = judged((HEAD + A_STAGE).replace("setup", "procesing"), "a").findings.sorted()
    assert error.code == "unknown-type"
    assert error.hint.startswith("did you mean 'processing'? Expected one of setup,")


@pytest.mark.req("R004-16")
@pytest.mark.parametrize(
    ("written", "seconds"),
    [("60s", 60), ("20m", 1200), ("1.5h", 5400), ("90", 90), ("PT1H", 3600), ("250ms", 0.25)],
)
def test_a_timeout_is_seconds_or_has_a_unit(written, seconds):
    text = (HEAD + A_STAGE).replace("60s", written)
    assert stage_of(judged(text, "a")).timeout_seconds == seconds


@pytest.mark.req("R004-16")
@pytest.mark.parametrize("written", ["soon", "-5", "0", "1:30", "[]", "true", ""])
def test_a_timeout_that_is_no_time_is_refused(written):
    (error,) = judged((HEAD + A_STAGE).replace("60s", written), "a").findings.sorted()
    assert error.code == "value-kind"
    assert "60s" in error.hint or "90s" in error.hint


@pytest.mark.parametrize(
    ("key", "code"), [("timeout", "no-timeout"), ("resources_required", "no-resources")]
)
def test_a_missing_timeout_or_resource_is_tolerated(key, code):
    judgement = judged(without(key), "a")
    assert codes(judgement.findings) == [code]
    assert judgement.runnable


@pytest.mark.req("R004-34")
@pytest.mark.parametrize(
    ("right", "written"), [("timeout", "timout"), ("resources_required", "resources")]
)
def test_another_spelling_is_tolerated(right, written):
    judgement = judged((HEAD + A_STAGE).replace(right, written), "a")
    (warning,) = judgement.findings.sorted()
    assert (warning.code, warning.hint) == ("other-spelling", f"write {right}")
    assert stage_of(judgement).timeout_seconds == 60


@pytest.mark.parametrize("line", ["timout: 5s", "resources: []"])
def test_two_spellings_at_once_are_refused(line):
    assert codes(judged(with_line(line), "a").findings) == ["two-spellings"]


def test_an_unknown_key_is_refused_with_the_nearest_one():
    (error,) = judged(with_line("dependancies: []"), "a").findings.sorted()
    assert (error.code, error.position.line, error.position.column) == ("unknown-key", 8, 5)
    assert error.hint.startswith("did you mean 'dependencies'?")


@pytest.mark.req("R004-64")
def test_the_reserved_key_says_where_parameters_go():
    (error,) = judged("schema_version: '2.0'\nstages: []\nparameters: {}\n").findings.sorted()
    assert error.code == "reserved-key"
    assert "parameters.yaml" in error.hint


RESOURCES = """\
resources_required:
  - {type: nodes, number: 10, flavour: compute_a, exclusive: true, label: sender}
  - {type: nodes, number: '2', flavour: compute_b, exclusive: false}
  - {type: cpu, value: 0.5}
  - {type: memory, value: 100M}
  - {type: buffer, value: 2 TB, label: hot}
"""


def with_resources(text):
    return judged(
        HEAD
        + A_STAGE.replace("    resources_required: []\n", "")
        + "".join(f"    {line}\n" for line in text.splitlines()),
        "a",
    )


@pytest.mark.req("R004-17", "R004-18", "R004-19")
def test_every_resource_is_read_also_several_of_one_type():
    judgement = with_resources(RESOURCES)
    assert not list(judgement.findings)
    assert stage_of(judgement).resources == (
        NodesNeeded(number=10, flavour="compute_a", exclusive=True, label="sender"),
        NodesNeeded(number=2, flavour="compute_b", exclusive=False),
        CpuNeeded(0.5),
        MemoryNeeded(100 * 1024**2),
        BufferNeeded(2 * 10**12, "hot"),
    )


@pytest.mark.req("R004-19", "R004-20")
def test_what_a_worker_must_offer_is_all_of_it_together():
    asked = stage_of(
        with_resources(
            RESOURCES + "  - {type: cpu, value: 1}\n  - {type: memory, value: 1024}\n"
        )
    ).asked()
    assert (asked.cpu, asked.memory_bytes) == (1.5, 100 * 1024**2 + 1024)
    assert (asked.nodes, asked.exclusive, asked.buffer_bytes) == (12, True, 2 * 10**12)
    assert asked.labels == {"sender", "hot"}
    assert [(one.flavour, one.nodes, one.idle) for one in asked.flavours] == [
        ("", 12, 10),
        ("compute_a", 10, 10),
        ("compute_b", 2, 0),
    ]


@pytest.mark.req("R004-20", "R004-21")
def test_a_stage_that_says_nothing_of_nodes_shares_one():
    asked = stage_of(with_resources("resources_required: []\n")).asked()
    assert (asked.nodes, asked.exclusive, asked.buffer_bytes) == (1, False, 0)


@pytest.mark.req("R004-34", "R004-17")
def test_node_is_tolerated_for_nodes():
    text = "resources_required:\n  - {type: node, number: 1, flavour: a, exclusive: true}\n"
    judgement = with_resources(text)
    (warning,) = judgement.findings.sorted()
    assert (warning.code, warning.hint) == ("other-spelling", "write nodes")
    assert stage_of(judgement).resources[0].number == 1


@pytest.mark.req("R004-18")
@pytest.mark.parametrize("missing", ["number", "exclusive"])
def test_nodes_have_a_number_and_say_whether_they_are_exclusive(missing):
    fields = {"type": "nodes", "number": 1, "flavour": "a", "exclusive": True}
    del fields[missing]
    text = f"resources_required:\n  - {json.dumps(fields)}\n"
    (error,) = with_resources(text).findings.sorted()
    assert (error.code, missing in error.message) == ("missing-key", True)


@pytest.mark.parametrize(("written", "meant"), [("yes", True), ("Off", False)])
def test_a_flag_of_older_yaml_is_tolerated(written, meant):
    entry = f"{{type: nodes, number: 1, flavour: a, exclusive: {written}}}"
    judgement = with_resources(f"resources_required:\n  - {entry}\n")
    assert codes(judgement.findings) == ["other-spelling"]
    assert stage_of(judgement).resources[0].exclusive is meant


@pytest.mark.req("R004-18")
def test_a_missing_flavour_is_tolerated():
    text = "resources_required:\n  - {type: nodes, number: 1, exclusive: true}\n"
    judgement = with_resources(text)
    assert codes(judgement.findings) == ["no-flavour"]
    assert judgement.runnable


@pytest.mark.req("R004-17", "R004-18")
@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{type: gpus, value: 1}", "unknown-type"),
        ("{value: 1}", "missing-key"),
        ("{type: cpu}", "missing-key"),
        ("{type: cpu, value: many}", "value-kind"),
        ("{type: cpu, value: -1}", "value-kind"),
        ("{type: memory, value: lots}", "value-kind"),
        ("{type: nodes, number: 1.5, flavour: a, exclusive: true}", "value-kind"),
        ("{type: nodes, number: 0, flavour: a, exclusive: true}", "value-kind"),
        ("{type: nodes, number: 1, flavour: a, exclusive: maybe}", "value-kind"),
        ("{type: nodes, number: 1, flavor: a, exclusive: true}", "unknown-key"),
        ("{type: cpu, value: [1]}", "value-kind"),
        ("cpu", "entry-kind"),
    ],
)
def test_a_resource_that_makes_no_sense_is_refused(entry, code):
    refused = with_resources(f"resources_required:\n  - {entry}\n")
    assert code in codes(refused.findings, Severity.ERROR)


@pytest.mark.req("R004-22")
@pytest.mark.parametrize("written", ["a", "{type: stage}", "[a]", ""])
def test_dependencies_are_a_list_of_mappings(written):
    assert not judged(with_line(f"dependencies: {written}"), "a").registrable


@pytest.mark.req("R004-23", "R004-24")
@pytest.mark.parametrize(
    "entry",
    [
        "{value: a, condition: complete}",
        "{type: stage, condition: complete}",
        "{type: stage, value: a}",
        "{type: task, value: a, condition: complete}",
        "{type: stage, value: [a], condition: complete}",
        "{type: stage, value: a, condition: complete, when: now}",
    ],
)
def test_a_dependency_has_a_type_a_value_and_a_condition(entry):
    assert not judged(with_line("dependencies:", f"  - {entry}"), "a").registrable


@pytest.mark.req("R004-4")
@pytest.mark.parametrize(
    ("file", "name", "version"),
    [
        ("vis-ingest-1.0.0.yml", "vis-ingest", "1.0.0"),
        ("vis-ingest-1.2.yaml.j2", "vis-ingest", "1.2"),
        ("ingest_v2.0.1.json", "ingest", "2.0.1"),
    ],
)
def test_the_file_tells_name_and_version(file, name, version):
    text = '{"schema_version": "2.0", "stages": []}'
    judgement = validate(sip(text, file=file))
    assert not list(judgement.findings)
    assert (judgement.definition.id, judgement.definition.version) == (name, version)


@pytest.mark.req("R004-4")
def test_a_number_without_a_dot_is_no_version():
    judgement = validate(sip(definition(), file="ingest-test-01.yaml"))
    assert (judgement.definition.id, judgement.definition.version) == (
        "ingest-test-01",
        "0.0.0",
    )
    assert codes(judgement.findings) == ["no-version"]


@pytest.mark.req("R004-4")
def test_the_file_may_say_its_name_itself_and_is_warned_if_they_differ():
    text = "schema_version: '2.0'\nid: vis\nversion: 3.1.4\nstages: []\n"
    good = validate(sip(text, file="vis.yaml"))
    assert (good.definition.id, good.definition.version) == ("vis", "3.1.4")
    assert not list(good.findings)
    assert codes(validate(sip(text, file="other.yaml")).findings) == ["name-differs"]


@pytest.mark.req("R004-65")
def test_strict_makes_errors_of_warnings():
    judgement = judged(without("timeout"), "a")
    assert not judgement.all_findings().has_errors
    assert judgement.all_findings(strict=True).has_errors


def test_all_mistakes_are_found_at_once():
    text = HEAD + "  - id: a\n    verson: 1\n    type: x\n    timeout: soon\n" + A_STAGE
    found_codes = codes(judged(text, "a").findings)
    assert {"unknown-key", "missing-key", "unknown-type", "value-kind"} <= set(found_codes)
