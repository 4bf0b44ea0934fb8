"""Seed 004, "Use of templates": a request has the structure of what it gives values to.

Whoever asks for a workflow gives parameters to all stages, or, under its id, to one alone.
"""

import pytest

from tests.support.sips import codes, definition, found, parts, sip, stage, with_compose
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.sip.validation import render_stages, validate

pytestmark = pytest.mark.slow  # each template is rendered in a process of its own

TWO = definition(stage("first"), stage("second", "first complete"))
PRINTS = {"args.yaml.j2": "n: {{ n }}\n", "parameters.yaml": "n: 1\n"}


def two(first=PRINTS, second=PRINTS, **more):
    return sip(TWO, with_compose(first=first, second=second), **more)


def args_of(judgement):
    assert judgement.runnable, [str(one) for one in judgement.all_findings()]
    return [judgement.rendered[name].args["n"] for name in ("first", "second")]


@pytest.mark.req("R004-46", "R004-47")
@pytest.mark.parametrize(
    ("request_", "seen"),
    [
        ({"first": {"n": 7}}, [7, 1]),
        ({"first": {"n": 7}, "second": {"n": 8}}, [7, 8]),
        ({"n": 3, "second": {"n": 8}}, [3, 8]),
        ({"n": 3, "second": {"n": None}}, [3, 3]),
        ({"second": {}}, [1, 1]),
    ],
)
def test_values_under_the_id_of_a_stage_are_for_this_stage_and_count_most_there(request_, seen):
    judgement = validate(two(), request_)
    assert args_of(judgement) == seen
    assert not list(judgement.findings)


@pytest.mark.req("R004-43", "R004-45")
def test_a_required_parameter_may_be_given_to_its_stage_alone():
    needs = {"args.yaml.j2": "n: {{ n }}\n", "parameters.yaml": "n:\n"}
    source = two(first=needs, second=needs)
    assert args_of(validate(source, {"first": {"n": 1}, "second": {"n": 2}})) == [1, 2]
    refused = validate(source, {"first": {"n": 1}})
    errors = [one for one in refused.obstacles if one.code == "missing-parameter"]
    assert ["stage second" in one.message for one in errors] == [True]


@pytest.mark.req("R004-44", "R004-46")
def test_what_is_given_to_a_stage_counts_more_than_an_output_of_an_earlier_one():
    judgement = validate(two(first={**PRINTS, "outputs.yaml": "- n\n"}), {"second": {"n": 9}})
    findings = Findings()
    made = {"first": {"n": 5}}
    given = {"second": {"n": 9}}
    late = render_stages(
        judgement.parameters, parts(judgement, "second"), given, made, findings
    )
    assert late["second"].args == {"n": 9}


@pytest.mark.req("R004-47", "R004-48")
def test_the_definition_takes_what_is_given_to_a_stage():
    text = TWO.replace("timeout: 60s", "timeout: {{ longest }}", 1)
    folders = with_compose(first={"parameters.yaml": "longest: 1m\n"}, second={})
    source = sip(text, folders, file="f-1.0.0.yaml.j2")
    given = validate(source, {"first": {"longest": "5m"}})
    assert given.definition.stages[0].timeout_seconds == 300
    assert (
        validate(source, {"longest": "7m", "first": {"longest": "5m"}})
        .definition.stages[0]
        .timeout_seconds
        == 420
    )


@pytest.mark.req("R004-47")
def test_the_definition_is_warned_if_two_stages_are_given_different_values():
    text = TWO.replace("timeout: 60s", "timeout: {{ longest }}", 1)
    same = {"parameters.yaml": "longest: 1m\n"}
    source = sip(text, with_compose(first=same, second=same), file="f-1.0.0.yaml.j2")
    judgement = validate(source, {"second": {"longest": "5m"}})
    (warning,) = judgement.findings
    assert warning.code == "conflicting-defaults"
    assert "the definition uses the value of second" in warning.message
    assert judgement.definition.stages[0].timeout_seconds == 300


@pytest.mark.req("R004-47")
def test_every_template_sees_the_request_as_it_was_given():
    prints = {"args.yaml.j2": "n: {{ first.n }}\n"}
    judgement = validate(two(second=prints), {"first": {"n": 7, "more": 8}})
    assert args_of(judgement) == [7, 7]
    assert not list(judgement.findings)  # `more` may be read there, too
    for stage_ in ("stages['first']", "first"):
        others = {"args.yaml.j2": f"n: {{{{ {stage_}.parameters.n }}}}\n"}
        assert args_of(validate(two(second=others), {"first": {"n": 7}})) == [7, 7]


@pytest.mark.req("R004-44", "R004-47")
def test_a_stage_that_is_given_values_is_still_known_by_its_id():
    says = {"args.yaml.j2": "n: '{{ first.id }} {{ first.timeout }} {{ first.outputs.m }}'\n"}
    source = two(first={**PRINTS, "outputs.yaml": "- m\n"}, second=says)
    given = {"first": {"n": 7, "timeout": "2m"}}
    judgement = validate(source, given)
    assert judgement.runnable, [str(one) for one in judgement.all_findings()]
    made = {"first": {"m": 5}}
    late = render_stages(
        judgement.parameters, parts(judgement, "second"), given, made, Findings()
    )
    assert late["second"].args == {"n": "first 2m 5"}  # what is given counts more


@pytest.mark.req("R004-47", "R004-49")
def test_a_parameter_of_another_stage_may_come_with_the_request():
    needs = {"args.yaml.j2": "n: {{ n }}\n", "parameters.yaml": "n:\n"}
    for name in ("first", "stages['first']", "stages.first"):
        looks = {"args.yaml.j2": f"n: {{{{ {name}.parameters.n }}}}\n"}
        source = two(first=needs, second=looks)
        assert validate(source).runnable
        assert args_of(validate(source, {"n": 4})) == [4, 4]
        assert args_of(validate(source, {"first": {"n": 7}})) == [7, 7]


@pytest.mark.req("R004-44", "R004-49")
@pytest.mark.parametrize(
    "text",
    [
        "{{ stage.parameters.n }}",
        "{{ second.parameters.n }}",
        "{% if first.outputs.n == 5 %}5{% else %}0{% endif %}",
        "{% if stages.second.parameters.n > 4 %}5{% else %}0{% endif %}",
    ],
)
def test_what_an_earlier_stage_makes_is_waited_for_wherever_a_template_looks_at_it(text):
    uses = {"args.yaml.j2": f"n: {text}\n", "parameters.yaml": "n: 1\n"}
    source = two(first={**PRINTS, "outputs.yaml": "- n\n"}, second=uses)
    judgement = validate(source, {"unused": 1})
    assert judgement.runnable, [str(one) for one in judgement.all_findings()]
    assert not judgement.rendered["second"].is_whole
    made = {"first": {"n": 5}}
    late = render_stages(judgement.parameters, parts(judgement, "second"), {}, made, Findings())
    assert late["second"].args == {"n": 5} and late["second"].is_whole


@pytest.mark.req("R004-49")
def test_a_stage_that_a_parameter_hides_is_told_how_to_be_named():
    takes = {"args.yaml.j2": "n: {{ first.parameters.n }}\n", "parameters.yaml": "first: [1]\n"}
    (error,) = validate(two(second=takes)).obstacles
    assert error.message == "a list has no 'parameters'"
    assert "write stages['first'].parameters" in error.hint


def test_a_parameter_that_is_called_like_a_stage_is_that_parameter():
    takes = {"args.yaml.j2": "n: {{ first.n }}\n", "parameters.yaml": "first: {n: 1}\n"}
    assert args_of(validate(two(second=takes), {"first": {"n": 7}})) == [1, 7]


@pytest.mark.parametrize(
    ("request_", "said", "hint"),
    [
        ({"first": {"nn": 7}}, "the parameter 'nn' of stage first changes nothing", "'n'"),
        ({"frist": {"n": 7}}, "the parameter 'frist' changes nothing", "'first'"),
        ({"first": 7}, "the parameter 'first' changes nothing", "a mapping"),
    ],
)
def test_what_changes_nothing_is_told_with_what_was_probably_meant(request_, said, hint):
    judgement = validate(two(), request_)
    assert codes(judgement.findings) == ["unused-parameter"]
    (warning,) = found(judgement.findings)
    assert warning.message == said
    assert hint in warning.hint


# ---- a stage by its id has the structure of its parameters ----


@pytest.mark.req("R004-47")
@pytest.mark.parametrize("name", ["first", "stages.first", "stages['first']"])
@pytest.mark.parametrize(
    ("request_", "seen"),
    [
        ({}, "north"),
        ({"site": "west"}, "west"),
        ({"first": {"site": "east"}}, "east"),
        ({"site": "west", "first": {"site": "east"}}, "east"),
        ({"second": {"site": "east"}}, "north"),
        ({"first": {"site": None}}, "north"),
    ],
)
def test_another_stage_shows_the_value_that_it_has_itself(name, request_, seen):
    first = {"args.yaml.j2": "n: {{ site }}\n", "parameters.yaml": "site: north\n"}
    second = {
        "args.yaml.j2": f"n: {{{{ {name}.site }}}}\n",
        "parameters.yaml": "site: south\n",
    }
    judgement = validate(two(first=first, second=second), request_)
    assert args_of(judgement) == [seen, seen]
    assert not list(judgement.findings)


@pytest.mark.req("R004-47", "R004-48")
@pytest.mark.parametrize(
    ("request_", "seconds"),
    [({}, 120), ({"longest": "3m"}, 180), ({"second": {"longest": "4m"}}, 240)],
)
def test_the_definition_shows_the_value_that_a_stage_has(request_, seconds):
    text = TWO.replace("timeout: 60s", "timeout: {{ second.longest }}", 1)
    folders = with_compose(
        first={"parameters.yaml": "longest: 1m\n"}, second={"parameters.yaml": "longest: 2m\n"}
    )
    source = sip(text, folders, file="f-1.0.0.yaml.j2")
    judgement = validate(source, request_)
    assert judgement.runnable, [str(one) for one in judgement.all_findings()]
    assert judgement.definition.stages[0].timeout_seconds == seconds
    assert not list(judgement.findings)


@pytest.mark.req("R004-43", "R004-47")
def test_a_value_of_a_stage_that_a_request_must_give_may_stand_in_the_definition():
    text = TWO.replace("timeout: 60s", "timeout: {{ second.longest }}", 1)
    folders = with_compose(first={}, second={"parameters.yaml": "longest:\n"})
    source = sip(text, folders, file="f-1.0.0.yaml.j2")
    assert validate(source).runnable
    assert validate(source, {"longest": "4m"}).runnable
    refused = validate(source, {})
    assert codes(refused.obstacles) == ["template-undefined", "missing-parameter"]


@pytest.mark.req("R004-44", "R004-47")
@pytest.mark.parametrize(
    "text", ["{{ second.n }}", "{% if second.n == 5 %}5{% else %}0{% endif %}"]
)
def test_what_another_stage_is_given_by_an_earlier_one_is_waited_for(text):
    three = definition(
        stage("first"), stage("second", "first complete"), stage("third", "second complete")
    )
    folders = with_compose(
        first={"outputs.yaml": "- n\n"},
        second={"parameters.yaml": "n: 1\n"},
        third={"args.yaml.j2": f"n: {text}\n"},
    )
    judgement = validate(sip(three, folders), {"unused": 1})
    assert judgement.runnable, [str(one) for one in judgement.all_findings()]
    assert not judgement.rendered["third"].is_whole
    made = {"first": {"n": 5}}
    late = render_stages(judgement.parameters, parts(judgement, "third"), {}, made, Findings())
    assert late["third"].args == {"n": 5} and late["third"].is_whole


def test_a_parameter_counts_more_than_a_fact_by_the_id_and_less_among_all_stages():
    first = {"args.yaml": "n: 1\n", "parameters.yaml": "version: mine\n"}
    second = {"args.yaml.j2": "n: '{{ first.version }} {{ stages.first.version }}'\n"}
    assert args_of(validate(two(first=first, second=second), {})) == [1, "mine 1.0.0"]


@pytest.mark.req("R004-49")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("first.sit", "did you mean 'site'?"),
        ("first.gain", "name it in the parameters.yaml of first"),
        ("stage.gain", "write {{ gain }}: in its own stage it has no prefix"),
        ("stage.site", "name it in the parameters.yaml of the stage"),
    ],
)
def test_no_advice_leads_to_the_value_of_another_stage(name, hint):
    second = {"args.yaml.j2": f"n: {{{{ {name} }}}}\n", "parameters.yaml": "gain: 1\n"}
    (error,) = validate(
        two(first={"parameters.yaml": "site: north\n"}, second=second), {}
    ).obstacles
    assert (error.code, hint in error.hint) == ("template-undefined", True), error
