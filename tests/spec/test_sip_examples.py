"""Seed 004, "Examples": the six blocks, written again by us with the seed's peculiarities."""

import pytest

from tests.support.seed_blocks import (
    FIRST_JSON,
    FIRST_YAML,
    REQUEST,
    SIMPLE_JSON,
    SIMPLE_YAML,
    TEMPLATE,
)
from tests.support.sips import codes, graph_of, sip, with_compose
from tidewheel.core.graph.findings import Severity
from tidewheel.formats.sip.model import CpuNeeded, NodesNeeded
from tidewheel.formats.sip.validation import validate


@pytest.mark.req("R004-34", "R004-3")
@pytest.mark.parametrize(
    ("file", "text"), [("f-1.0.0.yaml", FIRST_YAML), ("f-1.0.0.json", FIRST_JSON)]
)
def test_the_smallest_definition_in_yaml_and_in_json(file, text):
    judgement = validate(sip(text, file=file))
    assert judgement.runnable
    assert not list(judgement.findings)


@pytest.mark.req("R004-34", "R004-30")
def test_the_simple_definition_has_a_float_an_old_key_and_a_dangling_name():
    judgement = validate(sip(SIMPLE_YAML, with_compose("prepare", "reduce")))
    assert [(one.code, one.position.line) for one in judgement.findings.sorted()] == [
        ("other-spelling", 7),
        ("unknown-stage", 16),
        ("other-spelling", 18),
    ]
    assert (judgement.registrable, judgement.runnable) == (True, False)
    assert judgement.definition.stages[0].resources == (CpuNeeded(0.1),)


@pytest.mark.req("R004-34", "R004-3")
def test_the_same_in_json_with_its_misspelt_timeout():
    judgement = validate(
        sip(SIMPLE_JSON, with_compose("prepare", "reduce"), file="f-1.0.0.json")
    )
    assert [(one.hint, one.position.line) for one in judgement.findings.sorted()] == [
        ("write resources_required", 9),
        ("write timeout", 15),
        ("write resources_required", 16),
    ]
    assert judgement.runnable
    assert judgement.definition.stages[1].timeout_seconds == 1200


@pytest.mark.req("R004-34", "R004-3", "R004-48")
def test_the_template_can_be_registered_before_its_parameters_are_known():
    judgement = validate(
        sip(TEMPLATE, with_compose("stage-a", "stage-b"), file="f-1.0.0.yml.j2")
    )
    assert judgement.runnable
    assert codes(judgement.findings, Severity.ERROR) == []
    assert [spec.name for spec in judgement.specs if spec.is_needed] == ["longest", "how_many"]


@pytest.mark.req("R004-34", "R004-43", "R004-48")
def test_the_template_with_the_parameters_of_a_request():
    source = sip(TEMPLATE, with_compose("stage-a", "stage-b"), file="f-1.0.0.yml.j2")
    judgement = validate(source, REQUEST)
    assert judgement.runnable
    second = judgement.definition.stages[1]
    assert second.timeout_seconds == 20
    assert second.resources == (NodesNeeded(number=10, flavour="compute_a", exclusive=True),)
    node = graph_of(judgement).nodes["stage-b"].definition
    assert (node.time_limit_seconds, node.resources.nodes) == (20, 10)
    assert node.resources.offered_of("compute_a").idle == 10


@pytest.mark.req("R004-34")
def test_a_template_whose_name_does_not_say_so_is_rendered_with_a_warning():
    source = sip(TEMPLATE, with_compose("stage-a", "stage-b"))
    judgement = validate(source, REQUEST)
    assert judgement.runnable
    assert "template-name" in codes(judgement.findings, Severity.WARNING)


@pytest.mark.slow
@pytest.mark.req("R004-45", "R004-49")
def test_a_request_without_the_parameters_is_refused_with_file_and_line():
    source = sip(TEMPLATE, with_compose("stage-a", "stage-b"), file="f-1.0.0.yml.j2")
    (error,) = validate(source, {"how_many": 3}).obstacles.sorted()
    assert (error.code, str(error.position)) == ("template-undefined", "f-1.0.0.yml.j2:13")
    assert "longest" in error.message
