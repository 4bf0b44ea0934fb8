"""Real files by others, with the verdicts that are expected of them (../shared/cases/sip)."""

from pathlib import Path

import pytest

from tests.support.sips import codes
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.formats.sip.bundle import read_folder
from tidewheel.formats.sip.validation import validate

CASES = Path(__file__).parents[3] / "shared" / "cases" / "sip" / "workflows_v2.0"
STAGES = "stages"

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason="there are no cases of others beside this repository"
)


def verdict(name, request=None):
    findings = Findings()
    source = read_folder(CASES / name, findings)
    assert source is not None, [str(one) for one in findings]
    return validate(source, request)


def told(findings):
    """(file, line, code) of each."""
    return [
        (one.position.file.removeprefix("stages/"), one.position.line, one.code)
        for one in findings.sorted()
    ]


@pytest.mark.req("R004-3", "R004-49")
def test_simple_1_stage():
    judgement = verdict("simple-1-stage.json")
    assert judgement.registrable
    (warning,) = judgement.findings
    assert (warning.code, warning.position.line) == ("compose-mode", 11)
    assert "replciated" in warning.message and "'replicated'" in warning.hint
    (error,) = judgement.obstacles
    assert (error.position.file, error.position.line) == (
        f"{STAGES}/stage1/1.0.0/args.json.j2",
        2,
    )
    assert "parameters['stage-01_duration']" in error.hint


@pytest.mark.req("R004-30", "R004-34")
def test_simple_3_stage():
    judgement = verdict("simple-3-stage.yaml")
    assert judgement.registrable
    assert told(judgement.findings) == [
        ("simple-3-stage.yaml", 19, "other-spelling"),
        ("simple-3-stage.yaml", 25, "unknown-stage"),
        ("simple-3-stage.yaml", 38, "unknown-stage"),
        ("stage1/1.0.0/docker_compose.yml.j2", 11, "compose-mode"),
        ("stage3/1.0.0/docker_compose.yml.j2", 11, "compose-mode"),
    ]
    assert told(judgement.obstacles) == [
        ("simple-3-stage.yaml", 25, "unknown-stage"),
        ("simple-3-stage.yaml", 38, "unknown-stage"),
        ("stage1/1.0.0/args.json.j2", 2, "template-syntax"),
        ("stage3/1.0.0/args.json.j2", 2, "template-syntax"),
    ]
    hints = [one.hint for one in judgement.obstacles.sorted()[:2]]
    assert hints == ["did you mean 'stage1'?", "did you mean 'stage2'?"]


@pytest.mark.req("R004-3", "R004-41", "R004-52")
def test_ingest_test_01():
    judgement = verdict("ingest-test-01.yaml.j2")
    assert judgement.registrable
    assert {spec.name: spec.default for spec in judgement.specs} == {
        "timeout": "60s",
        "send_nodes": 10,
        "recv_nodes": 10,
        "ip_addresses": [],
    }
    assert told(judgement.findings) == [
        ("ingest_test/1.0.0/docker_compose.yml.j2", 17, "compose-key"),
        ("ingest_test/1.0.0/docker_compose.yml.j2", 19, "compose-key"),
    ]
    quote, empty = judgement.obstacles.sorted()
    assert (quote.position.line, quote.code) == (5, "json-quote")
    assert "ip_addresses" in empty.hint
    (only,) = judgement.definition.stages
    assert only.timeout_seconds == 60
    assert [one.number for one in only.resources] == [10, 10]


@pytest.mark.req("R004-46", "R004-52")
def test_ingest_test_01_with_addresses_has_only_its_quote_against_it():
    request = {"send_nodes": 2, "recv_nodes": 3, "ip_addresses": ["a", "b"], "timeout": "1h"}
    judgement = verdict("ingest-test-01.yaml.j2", request)
    assert codes(judgement.obstacles) == ["json-quote"]
    assert judgement.definition.stages[0].timeout_seconds == 3600
    assert "send-01" in judgement.rendered["ingest_test"].compose


@pytest.mark.req("R004-8", "R004-36", "R004-37", "R004-38")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("no-compose-file", "no-compose-file"),
        ("invalid-args-file", "args-file-kind"),
        ("invalid-parameters-file", "parameters-file-kind"),
    ],
)
def test_each_broken_definition_is_refused_for_its_own_reason(name, code):
    judgement = verdict(f"{name}.json")
    assert codes(judgement.findings, Severity.ERROR) == [code]
    assert not judgement.registrable
    # The files that its stage has are judged all the same: one has a mistake of its own.
    others = ["template-syntax"] if name == "no-compose-file" else []
    assert codes(judgement.obstacles) == others
