"""What is said about services in SIP definitions, before anything runs (R011-10)."""

import pytest

from tests.support.sips import (
    codes,
    definition,
    found,
    graph_of,
    judged,
    sip,
    stage,
    with_compose,
)
from tidewheel.core.graph.findings import Severity
from tidewheel.formats.sip.validation import validate

pytestmark = pytest.mark.req("R011-10")


def judgement(*stages, **options):
    names = [one.split()[2] for one in stages]
    return judged(definition(*stages), *names, **options)


@pytest.mark.parametrize("until", ["use", "[use]", "\n  - use"])
def test_until_is_a_stage_or_a_list_of_them(until):
    checked = judgement(stage("engine", more=f"until: {until}"), stage("use", "engine running"))
    assert codes(checked.all_findings()) == [] and checked.runnable
    assert graph_of(checked).nodes["engine"].definition.until == ("use",)


def test_a_service_that_is_switched_off_is_none():
    checked = judgement(
        stage("engine", more="until: use\nwhen: false"),
        stage("use", "engine running"),
        request={},
    )
    assert graph_of(checked).nodes["engine"].definition.until == ()


WRONG = {
    "[]": "until of stage engine has 0 entries",
    "": "until of stage engine is empty",
    "{use: 1}": "until of stage engine is a mapping",
    "[[use]]": "until of stage engine is a list",
}


@pytest.mark.parametrize("until", WRONG)
def test_until_of_another_kind_is_an_error_with_what_is_accepted(until):
    checked = judgement(stage("engine", more=f"until: {until}"), stage("use"))
    (one,) = found(checked.all_findings(), Severity.ERROR)
    assert (one.code, one.message) == ("value-kind", WRONG[until])
    assert "the id of a stage, or a list of" in one.hint and one.position.line


def test_a_parameter_does_not_decide_for_whom_a_service_runs():
    text = definition(stage("engine", more="until: {{ who }}"), stage("use"))
    files = with_compose("engine", use={"parameters.yaml": "who: use\n"})
    checked = validate(sip(text, files, file="flow-1.0.0.yaml.j2"))
    errors = found(checked.all_findings(), Severity.ERROR)
    assert [one.message for one in errors] == ["until of stage engine is a parameter"]


def test_a_service_for_no_stage_cannot_run_and_the_nearest_is_named():
    checked = judgement(stage("engine", more="until: imag"), stage("image", "engine running"))
    (one,) = found(checked.all_findings(), Severity.ERROR)
    assert one.code == "unknown-stage" and "did you mean 'image'?" in one.hint
    assert checked.registrable and not checked.runnable


def test_a_service_does_not_run_until_its_own_end():
    checked = judgement(stage("engine", more="until: engine"))
    assert codes(checked.findings, Severity.ERROR) == ["self-dependency"]


@pytest.mark.parametrize("condition", ["complete", "failed", "aborted", "finished"])
def test_a_stage_that_waits_for_the_end_of_a_service_that_runs_for_it_is_a_circle(condition):
    checked = judgement(
        stage("engine", more="until: use"),
        stage("between", f"engine {condition}"),
        stage("use", "between complete"),
    )
    (one,) = found(checked.findings, Severity.ERROR)
    assert one.code == "service-circle" and not checked.registrable
    assert one.message == (
        "service engine runs until use has ended, but use waits for the end of engine"
    )


def test_two_services_that_run_for_each_other_are_a_circle():
    checked = judgement(stage("a", more="until: b"), stage("b", more="until: a"))
    assert codes(checked.findings, Severity.ERROR) == ["service-circle"]


def test_a_service_for_a_stage_that_is_before_it_would_end_as_it_begins():
    checked = judgement(
        stage("first"),
        stage("second", "first complete"),
        stage("engine", "second running", more="until: first"),
    )
    (one,) = found(checked.findings, Severity.ERROR)
    assert one.code == "service-too-late"
    assert (
        one.message == "service engine runs until first has ended, but begins only after that"
    )


def test_a_service_may_begin_beside_the_stage_for_which_it_runs():
    checked = judgement(stage("use"), stage("engine", "use running", more="until: use"))
    assert codes(checked.all_findings()) == []


def test_a_stage_that_uses_a_service_which_may_be_over_before_it_is_warned_of():
    checked = judgement(
        stage("engine", more="until: use"),
        stage("use", "engine running"),
        stage("watch", "engine running"),
    )
    (one,) = found(checked.all_findings())
    assert (one.code, one.severity) == ("service-may-be-over", Severity.WARNING)
    assert one.hint == "add watch to 'until' of stage engine"


def test_a_stage_before_one_for_which_a_service_runs_may_use_it_too():
    checked = judgement(
        stage("engine", more="until: last"),
        stage("use", "engine running"),
        stage("last", "use complete"),
    )
    assert codes(checked.all_findings()) == []


def test_more_services_than_anybody_has_are_refused_at_once():
    many = [stage(f"s{number}", more="until: use") for number in range(101)]
    checked = judgement(*many, stage("use"))
    assert codes(checked.findings, Severity.ERROR) == ["too-many-stages"]


def test_stages_share_a_network_where_there_is_a_service_or_the_definition_says_so():
    plain, service = stage("a"), stage("b", more="until: a")
    assert not judgement(plain).definition.shares_network
    assert judgement(plain, service).definition.shares_network
    off = judgement(plain, stage("b", more="until: a\nwhen: false"), request={})
    assert not off.definition.shares_network
    said = judged("network: block\n" + definition(plain), "a")
    assert said.definition.shares_network and codes(said.all_findings()) == []
    other = judged("network: host\n" + definition(plain), "a")
    assert codes(other.findings, Severity.ERROR) == ["unknown-network"]


def test_a_service_that_uses_another_may_be_ended_with_it():
    checked = judgement(
        stage("scheduler", more="until: client"),
        stage("workers", "scheduler running", more="until: client"),
        stage("client", "workers running"),
    )
    assert codes(checked.all_findings()) == []
