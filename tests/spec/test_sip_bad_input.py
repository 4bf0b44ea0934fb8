"""RELIABILITY S15 and S17: files that would cost too much, refused at once with a reason."""

import json

import pytest

from tests.support.sips import A_STAGE, HEAD, codes, definition, sip, stage, with_compose
from tidewheel.core.graph.findings import Severity
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.formats.sip.validation import validate

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (BOMB.encode(), "yaml-alias"),
        (b"a: 1\na: 2\n", "duplicate-key"),
        (b"[" * 50_000, "nested-too-deeply"),
        (b"\xff\xfe", "not-text"),
        (b"a: \0", "not-text"),
        (b"x" * (256 * 1024 + 1), "file-too-large"),
        (b"!!python/object/apply:os.system [id]", "yaml-tag"),
        (b"", "empty-file"),
    ],
)
def test_a_definition_that_costs_too_much_is_refused(content, code):
    judgement = validate(SipSource(file="f-1.0.0.yaml", files={"f-1.0.0.yaml": content}))
    assert code in codes(judgement.findings)
    assert not judgement.registrable


def test_json_has_a_limit_too():
    content = b'{"schema_version": "2.0", "stages": []}' + b" " * 5_000_000
    judgement = validate(SipSource(file="f-1.0.0.json", files={"f-1.0.0.json": content}))
    assert codes(judgement.findings) == ["file-too-large"]


@pytest.mark.parametrize("name", ["args.yaml", "parameters.yaml", "docker_compose.yaml"])
def test_so_is_each_file_of_a_stage(name):
    folders = with_compose(a={name: BOMB})
    judgement = validate(sip(definition(stage("a")), folders))
    assert "yaml-alias" in codes(judgement.findings)


@pytest.mark.slow
def test_a_large_definition_is_written_in_json():
    stages = [
        {
            "id": f"s{number}",
            "version": "1.0.0",
            "type": "processing",
            "timeout": "60s",
            "resources_required": [],
            "dependencies": [
                {"type": "stage", "value": f"s{number - 1}", "condition": "complete"}
            ][: bool(number)],
        }
        for number in range(2_000)
    ]
    text = json.dumps({"schema_version": "2.0", "stages": stages}, indent=1)
    assert len(text) > 256 * 1024
    folders = with_compose(*(one["id"] for one in stages))
    judgement = validate(sip(text, folders, file="f-1.0.0.json"))
    assert judgement.runnable, codes(judgement.findings)
    assert len(judgement.definition.stages) == 2_000


def test_more_dependencies_than_a_stage_may_have_are_refused():
    needs = [f"s{number} complete" for number in range(1_001)]
    judgement = validate(sip(definition(stage("a", *needs)), with_compose("a")))
    assert codes(judgement.findings, Severity.ERROR) == ["too-many-dependencies"]


def test_more_stages_than_a_workflow_may_have_are_refused():
    text = json.dumps({"schema_version": "2.0", "stages": [0] * 10_001})
    judgement = validate(sip(text, file="f-1.0.0.json"))
    assert codes(judgement.findings) == ["too-many-stages"]


def test_a_circle_of_a_thousand_stages_is_one_short_finding():
    stages = [stage(f"s{n}", f"s{(n + 1) % 1000} complete") for n in range(1000)]
    judgement = validate(
        sip(definition(*stages), with_compose(*(f"s{n}" for n in range(1000))))
    )
    (error,) = judgement.findings.sorted()
    assert error.code == "stage-circle"
    assert len(error.message) < 300


def test_a_text_without_end_is_shown_short():
    text = HEAD + A_STAGE.replace("60s", "x" * 10_000)
    (error,) = validate(sip(text, with_compose("a"))).findings.sorted()
    assert len(error.message) < 200


def test_windows_line_ends_and_a_byte_order_mark_are_fine():
    content = b"\xef\xbb\xbf" + definition().replace("\n", "\r\n").encode()
    judgement = validate(SipSource(file="f-1.0.0.yaml", files={"f-1.0.0.yaml": content}))
    assert judgement.runnable
    assert not list(judgement.findings)
