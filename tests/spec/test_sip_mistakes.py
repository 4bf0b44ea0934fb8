"""Issue 20: every mistake of a definition, its parameters and the files of its stages at once.

A mistake in one place hides none elsewhere, and what is said after it is true: each definition
here has several mistakes, and the findings are these and no others.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.support.sips import (
    COMPOSE,
    HEAD,
    codes,
    definition,
    found,
    judged,
    sip,
    stage,
    with_compose,
)
from tests.support.workflow_folders import put
from tidewheel.core.graph.findings import NOWHERE, Findings, Severity
from tidewheel.formats.sip.bundle import read_folder, sources_in
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.formats.sip.validation import validate
from tidewheel.services.definitions.sip import load_sip_request

pytestmark = [pytest.mark.slow, pytest.mark.req("R011-11")]

SCRIPT = {"script.sh": "true\n"}
NO_IMAGE = "services:\n  work:\n    command: [x]\n"
TWO = definition(stage("a"), stage("b", "a complete"))


def told(source, request=None):
    """Place and code of each error, in the order of their places."""
    errors = found(validate(source, request).all_findings(), Severity.ERROR)
    for one in errors:
        assert one.position != NOWHERE and one.hint, one
    return sorted(
        (one.position.file.rpartition("/")[2], one.position.line, one.code) for one in errors
    )


def hints(source, request=None):
    return " ".join(one.hint for one in validate(source, request).all_findings())


# ---- twelve broken definitions ----

BAD_FILES = {
    "args.json": '{"a": }',
    "docker_compose.yaml": NO_IMAGE,
}
BAD_FILES_TOLD = [("args.json", 1, "json-syntax"), ("docker_compose.yaml", 3, "compose-image")]

BROKEN = {
    "a type that is none, a key that is none, and files of the stage": (
        HEAD + "  - {id: a, version: 1.0.0, type: setpu, timeout: 1, resorces_required: []}\n",
        {"a": BAD_FILES},
        [
            *BAD_FILES_TOLD,
            ("flow-1.0.0.yaml", 3, "unknown-key"),
            ("flow-1.0.0.yaml", 3, "unknown-type"),
        ],
        [
            "did you mean 'setup'?",
            "did you mean 'resources_required'?",
            "write image: name:tag",
        ],
    ),
    "a condition that is none on a stage that is none": (
        definition(stage("a"), stage("b", "A finnished")),
        {"a": SCRIPT, "b": SCRIPT},
        [
            ("flow-1.0.0.yaml", 14, "unknown-condition"),
            ("flow-1.0.0.yaml", 14, "unknown-stage"),
        ],
        ["did you mean 'finished'?", "did you mean 'a'?"],
    ),
    "a definition that is no YAML, with stages that have mistakes": (
        TWO.replace("    type: processing", "\ttype: processing", 1),
        {"a": BAD_FILES, "b": {"script.sh": "true\n", "parameters.yaml": "- n\n"}},
        [
            ("args.json", 1, "json-syntax"),
            ("docker_compose.yaml", 3, "compose-image"),
            ("flow-1.0.0.yaml", 5, "yaml-syntax"),
            ("parameters.yaml", 1, "parameters-kind"),
        ],
        ["indent with spaces", "write each parameter as `name: default`"],
    ),
    "a circle, and a stage without a folder": (
        definition(stage("a", "b complete"), stage("b", "a complete"), stage("c")),
        {"a": BAD_FILES, "b": SCRIPT},
        [
            *BAD_FILES_TOLD,
            ("flow-1.0.0.yaml", 9, "stage-circle"),
            ("flow-1.0.0.yaml", 17, "no-stage-folder"),
        ],
        ["remove one of these dependencies", "stages/<id>/<version>"],
    ),
    "stages that have no id or no version, and are waited for": (
        definition(stage("a"), stage("b", "a complete"), stage("c", "b complete", "d complete"))
        .replace("  - id: a\n    version", "  - name: a\n    version")
        .replace("  - id: b\n    version: 1.0.0", "  - id: b"),
        {"c": BAD_FILES},
        [
            *BAD_FILES_TOLD,
            ("flow-1.0.0.yaml", 3, "missing-key"),
            ("flow-1.0.0.yaml", 3, "unknown-key"),
            ("flow-1.0.0.yaml", 8, "missing-key"),
            ("flow-1.0.0.yaml", 21, "unknown-stage"),
        ],
        ["did you mean 'id'?", "write version: 1.0.0"],
    ),
    "stages in a mapping": (
        "schema_version: '2.0'\nstages:\n  a: {version: 1.0.0, type: setup}\n",
        {"a": BAD_FILES},
        [*BAD_FILES_TOLD, ("flow-1.0.0.yaml", 3, "value-kind")],
        ["timeout: 60s, resources_required: []"],
    ),
    "files of every kind": (
        TWO,
        {
            "a": {
                "command.yaml": "run it\n",
                "args.yaml": "a: [1\n",
                "parameters.json": '{"n": 1,}',
                "outputs.yaml": "- [x]\n",
            },
            "b": {"docker_compose.yml": "services: {w: {image: }}\n", "outputs.txt": "x"},
        },
        [
            ("args.yaml", 1, "yaml-syntax"),
            ("command.yaml", 1, "command-kind"),
            ("docker_compose.yml", 1, "compose-image"),
            ("outputs.txt", 0, "outputs-file-kind"),
            ("outputs.yaml", 1, "outputs-kind"),
            ("parameters.json", 1, "json-syntax"),
        ],
        ["close it with ]", "write [program, argument", "remove the ',' before it"],
    ),
    "two values that do not exist, in one template": (
        definition(stage("a")),
        {
            "a": {
                "args.yaml": "send: [{port: 1}]\nsite: {name: x}\n",
                "command.yaml.j2": "- run\n- '{{ args.send.port }}'\n- '{{ args.site.nme }}'\n"
                "- '{{ stage.versoin }}'\n",
            }
        },
        [(("command.yaml.j2"), line, "template-undefined") for line in (2, 3, 4)],
        ["write [0].port", "did you mean 'name'?", "did you mean 'version'?"],
    ),
    "for_each of no output, and for_each of a stage without": (
        definition(
            stage("a"), stage("b", more="for_each: a.beam"), stage("c", more="for_each: a")
        ),
        {
            "a": {**SCRIPT, "outputs.yaml": "- beams\n"},
            "b": {"command.yaml.j2": "[run, '{{ item.x }}', '{{ args.x }}']\n"},
            "c": {"script.sh": "", "args.json": "{"},
        },
        [
            ("args.json", 1, "json-syntax"),
            ("command.yaml.j2", 1, "template-undefined"),
            ("flow-1.0.0.yaml", 13, "for-each"),
            ("flow-1.0.0.yaml", 19, "for-each"),
        ],
        ["did you mean 'beams'?", "write a.OUTPUT"],
    ),
    "two stages of one name, limits of resources, and a bad unit": (
        definition(stage("a"), stage("a"), stage("b"))
        .replace("timeout: 60s", "timeout: 1 fortnight", 1)
        .replace("resources_required: []", "resources_required: [{type: cpu}, 5]", 1),
        {"a": BAD_FILES, "b": BAD_FILES},
        [
            *sorted([*BAD_FILES_TOLD, *BAD_FILES_TOLD]),
            ("flow-1.0.0.yaml", 6, "value-kind"),
            ("flow-1.0.0.yaml", 7, "entry-kind"),
            ("flow-1.0.0.yaml", 7, "missing-key"),
            ("flow-1.0.0.yaml", 8, "duplicate-stage"),
        ],
        ["expected a time above zero", "give each stage a different id"],
    ),
    "a template that cannot be read, with files that cannot": (
        TWO.replace("timeout: 60s", "timeout: {{ longest", 1),
        {"a": BAD_FILES, "b": SCRIPT},
        [*BAD_FILES_TOLD, ("flow-1.0.0.yaml", 6, "template-syntax")],
        ["write }} where it ends"],
    ),
    "no schema version, no stages that are read, several files of a stage": (
        "stages:\n  - {id: a, version: 1.0.0, type: setup}\n",
        {"a": {**BAD_FILES, "script.sh": "true\n", "args.yaml": "{}\n"}},
        [
            ("1.0.0", 0, "two-executions"),
            ("args.json", 1, "json-syntax"),
            ("args.yaml", 0, "two-files"),
            ("docker_compose.yaml", 3, "compose-image"),
            ("flow-1.0.0.yaml", 1, "missing-key"),
        ],
        ["write schema_version: 2.0", "keep one of them", "keep only the file"],
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_every_mistake_is_told_at_once_with_its_place_and_what_to_do(what):
    text, folders, expected, advice = BROKEN[what]
    source = sip(text, folders)
    assert told(source) == sorted(expected)
    said = hints(source)
    for one in advice:
        assert one in said, said


def test_a_definition_that_is_mended_has_no_more_mistakes():
    assert told(sip(TWO, {"a": SCRIPT, "b": SCRIPT})) == []


# ---- requests ----


def test_what_a_request_lacks_in_the_definition_hides_nothing_in_the_files():
    text = definition(stage("a"), stage("b")).replace("60s", "{{ longest }}", 1)
    text = text.replace("timeout: 60s", "timeout: {{ shortest }}\n    whn: true")
    folders = {
        "a": {"command.yaml.j2": "- '{{ nme }}'\n- '{{ sitee }}'\n"},
        "b": {**SCRIPT, "parameters.yaml": "site:\nname: x\n"},
    }
    source = sip(text, folders, file="f-1.0.0.yaml.j2")
    assert told(source, {}) == [
        ("command.yaml.j2", 1, "template-undefined"),
        ("command.yaml.j2", 2, "template-undefined"),
        ("f-1.0.0.yaml.j2", 6, "template-undefined"),
        ("f-1.0.0.yaml.j2", 11, "template-undefined"),
        ("f-1.0.0.yaml.j2", 12, "unknown-key"),
        ("request", 0, "missing-parameter"),
    ]
    good = {"longest": 1, "shortest": 1, "site": 1, "nme": 1, "sitee": 1}
    assert told(source, good) == [("f-1.0.0.yaml.j2", 12, "unknown-key")]


def test_a_request_that_cannot_be_used_is_not_also_missed():
    folders = with_compose(a={"args.yaml.j2": "n: {{ n }}\n", "parameters.yaml": "n:\n"})
    source = sip(definition(stage("a")), {"a": {**folders["a"], **BAD_FILES}})
    expected = [("args.json", 1, "json-syntax"), ("args.yaml.j2", 0, "two-files")]
    expected += [("docker_compose.yaml", 3, "compose-image")]
    wanted = sorted([*expected, ("request", 0, "parameters-too-large")])
    assert told(source, {"n": "x" * 70_000}) == wanted


@pytest.mark.req("R011-9")
@pytest.mark.parametrize(
    ("value", "shown", "advised"),
    [
        (3, "3", "-p 'beams=[3]'"),
        ("north", '"north"', "-p 'beams=[\"north\"]'"),
        ({"a": 1}, "{…}", "-p 'beams=[{…}]'"),
        (True, "true", "-p 'beams=[true]'"),
        ("x" * 200, "…", "-p 'beams=[…]'"),
    ],
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_parameter_that_should_be_a_list_is_one_true_error(value, shown, advised, quote):
    text = definition(
        stage("image", more=f"for_each: {quote}{{{{ beams }}}}{quote}"),
        stage("plot", more="for_each: image"),
    )
    prints = {"command.yaml.j2": "[echo, '{{ item }}', '{{ stage.index }}']\n"}
    source = sip(text, {"image": prints, "plot": prints}, file="f-1.0.0.yaml.j2")
    [error] = found(validate(source, {"beams": value}).all_findings(), Severity.ERROR)
    assert (
        error.message
        == f"for_each of stage image is {shown}, the value of beams: that is not a list"
    )
    assert advised in error.hint and error.position.line == 8
    assert told(source, {"beams": [value]}) == []


def test_a_list_that_is_given_to_a_stage_alone_is_advised_so():
    text = definition(stage("image", more="for_each: '{{ image.beams }}'"))
    source = sip(
        text, {"image": {**SCRIPT, "parameters.yaml": "beams: 3\n"}}, file="f-1.0.0.yaml.j2"
    )
    [error] = found(validate(source, {}).all_findings(), Severity.ERROR)
    assert """-p 'image={"beams": [3]}'""" in error.hint


def test_elements_are_rendered_although_another_stage_has_a_mistake():
    text = definition(stage("a"), stage("b", more="for_each: [{x: 1}, {y: 1}]"))
    prints = {"command.yaml.j2": "[echo, '{{ item.x }}']\n"}
    assert told(sip(text, {"a": BAD_FILES, "b": prints})) == [
        *BAD_FILES_TOLD[:1],
        ("command.yaml.j2", 1, "template-undefined"),
        *BAD_FILES_TOLD[1:],
    ]


# ---- nothing that is not true ----


@pytest.mark.parametrize(
    "broken",
    [
        {"parameters.yaml": "n: '1' s\n"},
        {"parameters.yaml": "- n\n"},
        {"parameters.json": b"\xff".decode("latin-1")},
        {"parameters.txt": "n: 1\n"},
    ],
)
def test_what_an_unreadable_file_may_declare_is_not_missed(broken):
    uses = "- '{{ n }}'\n- '{{ a.n }}'\n- '{{ a.parameters.n }}'\n- '{{ stages.a.n }}'\n"
    text = TWO.replace("timeout: 60s", "timeout: {{ n }}", 1)
    folders = {
        "a": {**SCRIPT, **broken, "args.yaml.j2": "{{ n }}: {{ stage.parameters.n }}\n"},
        "b": {"command.yaml.j2": uses},
    }
    for request in (None, {}, {"other": 1}):
        [only] = told(sip(text, folders, file="f-1.0.0.yaml.j2"), request)
        assert only[0].startswith("parameters")


@pytest.mark.parametrize("broken", [{"outputs.json": "["}, {"outputs.yaml": "3\n"}])
def test_what_an_unreadable_file_may_promise_is_not_missed(broken):
    folders = {
        "a": {**SCRIPT, **broken},
        "b": {**SCRIPT, "parameters.yaml": "n:\n"},
        "c": {"command.yaml.j2": "[run, '{{ item }}']\n"},
    }
    text = definition(
        stage("a"), stage("b", "a complete"), stage("c", more="for_each: a.beams")
    )
    [only] = told(sip(text, folders), {})
    assert only[0].startswith("outputs")


@pytest.mark.parametrize("broken", [{"args.json": "{"}, {"args.txt": "x"}, {"args.yaml": "&a"}])
def test_arguments_that_cannot_be_read_are_not_missed_in_what_is_executed(broken):
    uses = {"command.yaml.j2": "[run, '{{ args.send[0].port }}', '{{ args | length }}']\n"}
    [only] = told(sip(definition(stage("a")), {"a": {**uses, **broken}}), {})
    assert only[0].startswith("args")


@pytest.mark.parametrize(
    "dependency",
    ["{type: stag, value: a, condition: complete}", "a", "{type: stage, condition: complete}"],
)
def test_a_stage_whose_dependency_is_lost_lacks_no_output_of_it(dependency):
    text = definition(stage("a"), stage("b", more=f"dependencies: [{dependency}]"))
    folders = {
        "a": {**SCRIPT, "outputs.yaml": "- n\n"},
        "b": {"command.yaml.j2": "[run, '{{ n }}']\n", "parameters.yaml": "n:\n"},
    }
    errors = told(sip(text, folders), {})
    assert errors and {one[0] for one in errors} == {"flow-1.0.0.yaml"}


def test_a_stage_that_may_be_switched_off_lacks_nothing():
    text = definition(stage("a", more="when: perhaps"))
    folders = {"a": {**SCRIPT, "parameters.yaml": "n:\n"}}
    assert told(sip(text, folders), {}) == [("flow-1.0.0.yaml", 8, "value-kind")]


def test_a_name_that_an_unnamed_stage_may_have_is_not_unknown():
    text = definition(
        stage("stage1"), stage("", "stage1 complete"), stage("c", "stage2 complete")
    )
    folders = with_compose("stage1", "c")
    assert [code for _, _, code in told(sip(text, folders))] == ["value-kind"]
    typed = text.replace("value: stage2", "value: stag1")
    assert "unknown-stage" in [code for _, _, code in told(sip(typed, folders))]


# ---- whatever was read from a disk ----


def test_a_link_in_one_stage_hides_nothing_in_another(tmp_path):
    files = {"f-1.0.0.yaml": TWO, "stages/b/1.0.0/args.json": "{", "secret": "x"}
    files |= {f"stages/{one}/1.0.0/docker_compose.yaml": COMPOSE for one in "ab"}
    put(tmp_path, files)
    link = tmp_path / "stages/a/1.0.0/parameters.yaml"
    link.symlink_to(tmp_path / "secret")
    findings = Findings()
    validated = load_sip_request(tmp_path / "f-1.0.0.yaml", None, findings)
    assert codes(findings) == ["link", "json-syntax"]
    assert validated.loaded.graph is None
    assert validated.verdicts.sentence(strict=False) == "it cannot be registered"


def test_a_definition_that_is_no_yaml_is_sent_with_the_stages_that_it_names(tmp_path):
    files = {
        "f-1.0.0.yaml": TWO.replace("schema_version: '2.0'", "schema_version: '2.0"),
        "stages/a/1.0.0/docker_compose.yaml": NO_IMAGE,
        "stages/b/1.0.0/docker_compose.yaml": COMPOSE,
        "stages/other/1.0.0/docker_compose.yaml": NO_IMAGE,
    }
    put(tmp_path, files)
    (sent,) = sources_in({path: one.encode() for path, one in files.items()}, Findings())
    for source in (sent, read_folder(tmp_path / "f-1.0.0.yaml", Findings())):
        assert [code for _, _, code in told(source)] == ["compose-image", "yaml-syntax"]


# ---- advice that can be followed ----


@pytest.mark.parametrize("file", ["f-1.0.0.yaml", "f-1.0.0.json"])
@pytest.mark.parametrize("stages", [None, {"a": {}}, "a", 3])
def test_a_stage_that_is_advised_has_no_findings_itself(file, stages):
    given = {"schema_version": "2.0"} | ({} if stages is None else {"stages": stages})
    [error] = found(validate(sip(json.dumps(given), file=file)).all_findings())
    advised = re.search(r"\[\{.*\}\]", error.hint)[0]
    head = '{"schema_version": "2.0", "stages": ' if file.endswith("json") else None
    text = f"{head}{advised}}}" if head else f"schema_version: '2.0'\nstages: {advised}\n"
    assert not list(validate(sip(text, with_compose("ingest"), file=file)).all_findings())


@pytest.mark.parametrize("file", ["f-1.0.0.yaml", "f-1.0.0.json"])
def test_a_stage_that_is_advised_for_a_text_has_none_either(file):
    text = json.dumps({"schema_version": "2.0", "stages": ["ingest"]})
    [error] = found(validate(sip(text, file=file)).all_findings())
    advised = re.search(r"\{.*\}", error.hint)[0]
    mended = f"schema_version: '2.0'\nstages: [{advised}]\n"
    if file.endswith("json"):
        mended = f'{{"schema_version": "2.0", "stages": [{advised}]}}'
    assert not list(validate(sip(mended, with_compose("ingest"), file=file)).all_findings())


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("[{port: 1}]", "write [0].port for the first element"),
        ("text", "only a mapping has keys: give a mapping {port: …}"),
        ("3", "only a mapping has keys"),
        ("true", "only a mapping has keys"),
        ("null", "only a mapping has keys"),
    ],
)
def test_a_name_in_a_value_without_names_is_told_what_would_do(value, hint):
    uses = {"args.yaml": f"send: {value}\n", "command.yaml.j2": "[a, '{{ args.send.port }}']\n"}
    [error] = found(validate(sip(definition(stage("a")), {"a": uses})).obstacles)
    assert hint in error.hint


def test_findings_of_a_folder_without_files_have_their_places():
    source = SipSource(file="f-1.0.0.yaml", files={"f-1.0.0.yaml": TWO.encode()})
    assert told(source) == [("f-1.0.0.yaml", 3, "no-stages-folder")]


@pytest.mark.parametrize(
    ("files", "request_", "place"),
    [
        ({"parameters.yaml": "key: 'secret:'\n"}, {}, "1.0.0"),
        ({"parameters.yaml": "key:\n"}, {"key": "secret:"}, "request"),
        ({"args.json.j2": '{"a": "{{ key * 120000 }}"}'}, {"key": "x"}, "args.json.j2"),
        ({"args.json": json.dumps(["x" * 120_000])}, {}, "args.json"),
    ],
)
def test_what_is_wrong_with_a_value_has_its_place_too(files, request_, place):
    [only] = told(sip(definition(stage("a")), {"a": {**SCRIPT, **files}}), request_)
    assert only[0] == place


def test_for_each_over_no_stage_is_told_as_such():
    text = definition(stage("a"), stage("b", more="for_each: 5"))
    (error,) = found(judged(text, "a", "b").obstacles)
    assert error.message == "for_each of stage b names '5', which is not a stage"
    assert error.hint.startswith("write a list, a parameter such as {{ names }}, STAGE.OUTPUT")


def test_a_condition_of_a_dependency_of_an_unknown_type_is_no_second_mistake():
    text = definition(stage("a", "object:x present").replace("buffer_object", "buffer"))
    (error,) = found(judged(text, "a").findings)
    assert error.message == "type of dependency 1 of stage a is 'buffer'"


@pytest.mark.req("R004-49")
def test_a_mistake_in_the_syntax_of_a_file_hides_no_other_of_it_or_of_other_files():
    first, second = "version: '3'\nservices:\n  one:\n", "    image: busybox\n    comand: x\n"
    source = sip(
        definition(stage("a"), stage("b").replace("60s", "60x").replace("type: p", "type p")),
        {
            "a": {"docker_compose.yaml": f"{first}{second}  two\n{second}", "args.json": "{,}"},
            "b": {"docker_compose.yaml": f"{first}{second}", "parameters.yaml": "x: 1\n y: 'z"},
        },
    )
    assert told(source) == [
        ("args.json", 1, "json-syntax"),
        ("docker_compose.yaml", 5, "compose-key"),
        ("docker_compose.yaml", 5, "compose-key"),
        ("docker_compose.yaml", 6, "yaml-syntax"),
        ("docker_compose.yaml", 8, "compose-key"),
        ("flow-1.0.0.yaml", 10, "yaml-syntax"),
        ("flow-1.0.0.yaml", 11, "value-kind"),
        ("parameters.yaml", 2, "yaml-syntax"),
        ("parameters.yaml", 2, "yaml-syntax"),
    ]
