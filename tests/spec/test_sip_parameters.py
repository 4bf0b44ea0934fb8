"""Seed 004, "parameters" and "Use of templates": which value a name has, and when."""

import pytest

from tests.support.sips import (
    codes,
    definition,
    found,
    judged,
    parts,
    sip,
    stage,
    with_compose,
    yaml_value,
)
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.formats.sip.validation import render_stages, validate

pytestmark = pytest.mark.slow  # each template is rendered in a process of its own

TWO = definition(stage("first"), stage("second", "first complete"))
PRINTS = "n: {{ n }}\n"


def args_of(judgement, name="second"):
    assert judgement.runnable, [str(one) for one in judgement.all_findings()]
    return judgement.rendered[name].args


def two(first=None, second=None):
    return sip(TWO, with_compose(first=first or {}, second=second or {}))


def due(judgement, outputs, request=None, name="second"):
    """A stage that is due when others have made these outputs, and what is said about it."""
    findings = Findings()
    found = render_stages(
        judgement.parameters, parts(judgement, name), request or {}, outputs, findings
    )
    return found and found[name], findings


@pytest.mark.req("R004-41", "R004-40")
def test_a_default_counts_where_nobody_says_otherwise():
    source = two(second={"args.yaml.j2": PRINTS, "parameters.yaml": "n: 1\n"})
    assert args_of(validate(source, {})) == {"n": 1}


@pytest.mark.req("R004-46")
def test_a_request_counts_more_than_a_default():
    source = two(second={"args.yaml.j2": PRINTS, "parameters.yaml": "n: 1\n"})
    assert args_of(validate(source, {"n": 7})) == {"n": 7}


@pytest.mark.slow
@pytest.mark.req("R004-44")
def test_an_output_of_an_earlier_stage_counts_more_than_a_default_and_less_than_a_request():
    source = two(
        first={"outputs.yaml": "- n\n"},
        second={"args.yaml.j2": PRINTS, "parameters.yaml": "n: 1\n"},
    )
    judgement = validate(source, {})
    assert judgement.runnable
    assert due(judgement, {"first": {"n": 5}})[0].args == {"n": 5}
    assert due(judgement, {"first": {}})[0].args == {"n": 1}
    assert due(judgement, {"first": {"n": 5}}, {"n": 7})[0].args == {"n": 7}


@pytest.mark.slow
@pytest.mark.req("R004-42", "R004-43", "R004-45")
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("parameters.yaml", "n:\n"),
        ("parameters.yaml", "n: ~\n"),
        ("parameters.yaml", "n: ''\n"),
        ("parameters.json", '{"n": null}'),
        ("parameters.json", '{"n": ""}'),
    ],
)
def test_an_empty_parameter_must_be_given(file, text):
    source = two(second={"args.yaml.j2": PRINTS, file: text})
    assert args_of(validate(source, {"n": 3})) == {"n": 3}
    refused = validate(source, {})
    assert not refused.runnable
    error = next(one for one in refused.obstacles if one.code == "missing-parameter")
    assert "stage second" in error.message and "'n'" in error.message


@pytest.mark.req("R004-41")
def test_an_empty_list_a_zero_and_false_are_defaults():
    files = {"parameters.json": '{"a": [], "b": 0, "c": false, "d": {}}'}
    (a, b, c, d) = validate(two(second=files)).specs
    assert [one.default for one in (a, b, c, d)] == [[], 0, False, {}]
    assert not any(one.is_needed for one in (a, b, c, d))


@pytest.mark.slow
@pytest.mark.req("R004-44", "R004-45")
def test_a_required_parameter_may_come_from_a_stage_before_but_not_from_one_after():
    needs = {"args.yaml.j2": PRINTS, "parameters.yaml": "n:\n"}
    gives = {"outputs.json": '["n"]'}
    good = validate(two(first=gives, second=needs), {})
    assert good.runnable
    late, findings = due(good, {"first": {"n": [1, 2]}})
    assert (late.args, list(findings)) == ({"n": [1, 2]}, [])
    assert (
        codes(validate(two(first=needs, second=gives), {}).obstacles)[0] == "missing-parameter"
    )


@pytest.mark.req("R004-45")
def test_an_output_that_was_promised_and_not_made_is_missed_when_the_stage_is_due():
    source = two(
        first={"outputs.yaml": "n: how many there are\n"},
        second={"args.yaml.j2": PRINTS, "parameters.yaml": "n:\n"},
    )
    late, findings = due(validate(source, {}), {"first": {}})
    assert late is None
    (error,) = findings
    assert error.code == "missing-parameter"
    assert "second" in error.message and "'n'" in error.message


@pytest.mark.req("R004-44")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{ n }}", "<output of first: n>"),
        ("pre-{{ parameters.n }}", "pre-<output of first: n>"),
        ("{{ n ~ '/x' }}", "<output of first: n>/x"),
        ("{{ n | int + 1 }}", "<output of first: n>"),
        ("{{ n | upper }}", "<output of first: n>"),
        ("{{ first.outputs.k }}", "<output of first: k>"),
        ("{{ stages.first.outputs }}", "<output of first: all of them>"),
        ("{{ [n] }}", '["<output of first: n>"]'),
        ("{{ args.n }}", "at <output of first: n>"),
        ("{{ args }}", '{"n":"at <output of first: n>"}'),
        ("{{ args ~ '!' }}", '{"n":"at <output of first: n>"}!'),
        ("{{ n | default(3) }}", "3"),
    ],
)
def test_an_output_that_is_still_to_come_is_seen_where_it_will_stand(text, shown):
    folders = with_compose(first={"outputs.yaml": "- n\n"})
    folders["second"] = {
        "args.yaml.j2": "n: at {{ n }}\n",
        "command.yaml.j2": f'[echo, "{text}"]\n',
    }
    rendered = validate(sip(TWO, folders), {}).rendered["second"]
    assert rendered.command == ("echo", shown)
    assert (rendered.is_whole, rendered.to_come) == (False, {"n": "first"})


@pytest.mark.req("R004-44")
def test_the_nearest_of_several_earlier_stages_counts():
    text = definition(
        stage("a"), stage("b", "a complete"), stage("c", "b complete"), stage("d", "b complete")
    )
    gives = {"outputs.yaml": "- n\n"}
    folders = with_compose(a=gives, b=gives, c=gives, d={"args.yaml.j2": PRINTS})
    judgement = validate(sip(text, folders), {})
    outputs = {"a": {"n": "a"}, "b": {"n": "b"}, "c": {"n": "c"}}
    assert due(judgement, outputs, name="d")[0].args == {"n": "b"}


@pytest.mark.req("R004-47")
def test_each_stage_sees_all_parameters_of_the_request_as_they_were_sent():
    template = {"args.yaml.j2": "a: {{ sky.ra }}\nb: {{ parameters.sky['dec'][0] }}\n"}
    judgement = validate(
        two(first=template, second=template), {"sky": {"ra": 1.5, "dec": ["x", "y"]}}
    )
    assert args_of(judgement, "first") == args_of(judgement) == {"a": 1.5, "b": "x"}


@pytest.mark.req("R004-47")
def test_a_template_knows_its_stage_and_the_others():
    text = (
        "a: '{{ stage.id }} {{ stage.version }} {{ stage.type }} {{ stage.timeout }}'\n"
        "b: {{ first.parameters.n }}\n"
        "c: {{ stages['first'].id }}\n"
    )
    source = two(first={"parameters.yaml": "n: 4\n"}, second={"args.yaml.j2": text})
    assert args_of(validate(source, {})) == {
        "a": "second 1.0.0 processing 60",
        "b": 4,
        "c": "first",
    }


@pytest.mark.slow
@pytest.mark.req("R004-44", "R004-47")
def test_a_template_may_look_at_the_outputs_of_a_stage_by_its_name():
    source = two(second={"args.yaml.j2": "n: {{ first.outputs.n }}\n"})
    judgement = validate(source, {})
    assert judgement.runnable
    assert due(judgement, {"first": {"n": 9}})[0].args == {"n": 9}
    late, findings = due(judgement, {"first": {"m": 9}})
    assert late is None
    assert codes(findings) == ["template-undefined"]


def test_a_stage_may_be_called_as_something_that_jinja2_knows():
    text = definition(stage("range"), stage("b"))
    template = "{% for i in range(2) %}\n- {{ i }}{{ stages['range'].id }}\n{% endfor %}\n"
    judgement = validate(sip(text, with_compose("range", b={"args.yaml.j2": template})), {})
    assert args_of(judgement, "b") == ["0range", "1range"]


def test_a_parameter_counts_more_than_a_stage_of_the_same_name():
    source = two(second={"args.yaml.j2": "a: {{ first }}\nb: {{ stages.first.id }}\n"})
    assert args_of(validate(source, {"first": 1})) == {"a": 1, "b": "first"}


def test_a_name_with_a_hyphen_is_found_among_the_parameters():
    files = {
        "args.json.j2": '{"d": {{ parameters["my-stage_duration"] }}}',
        "parameters.json": '{"my-stage_duration": 10.0}',
    }
    assert args_of(validate(two(second=files), {})) == {"d": 10.0}


@pytest.mark.req("R004-39", "R004-48")
def test_arguments_are_a_structure_and_a_text_in_the_compose_file():
    compose = """
        services:
        {% for one in args.workers %}
          worker-{{ loop.index }}:
            image: busybox:{{ tag }}
            command: ['{{ one }}', '{{ args }}', "{{ one.name }}"]
            environment: {{ one }}
        {% endfor %}
    """
    files = {
        "docker_compose.yaml.j2": compose,
        "args.json.j2": '{"workers": [{"name": "{{ who }}", "n": 1.0}]}',
        "parameters.yaml": "tag: '1.36'\n",
    }
    folders = {"a": files}
    judgement = validate(sip(definition(stage("a")), folders), {"who": 'it\'s "me"\n- x'})
    assert judgement.runnable, [str(one) for one in judgement.obstacles]
    one = '{"name":"it\'s \\"me\\"\\n- x","n":1.0}'
    assert yaml_value(judgement.rendered["a"].compose) == {
        "services": {
            "worker-1": {
                "image": "busybox:1.36",
                "command": [one, f'{{"workers":[{one}]}}', 'it\'s "me"\n- x'],
                "environment": {"name": 'it\'s "me"\n- x', "n": "1.0"},
            }
        }
    }


def test_without_a_file_the_arguments_are_empty():
    compose = "services: {a: {image: x, command: ['{{ args }}']}}\n"
    judgement = validate(
        sip(definition(stage("a")), {"a": {"docker_compose.yaml.j2": compose}})
    )
    assert "- {}" not in judgement.rendered["a"].compose
    assert '- "{}"' in judgement.rendered["a"].compose


@pytest.mark.req("R004-49")
def test_an_undefined_name_is_an_error_of_the_request_with_file_and_line():
    source = two(
        second={"args.yaml.j2": "a: 1\nb: {{ duraton }}\n", "parameters.yaml": "duration: 5"}
    )
    (error,) = validate(source, {}).obstacles
    assert (error.code, str(error.position)) == (
        "template-undefined",
        "stages/second/1.0.0/args.yaml.j2:2",
    )
    assert error.hint == "did you mean 'duration'?"


@pytest.mark.slow
@pytest.mark.req("R004-49")
def test_before_any_request_an_undeclared_name_is_only_remarked():
    source = two(
        second={"args.yaml.j2": "a: 1\nb: {{ duraton }}\n", "parameters.yaml": "duration: 5"}
    )
    judgement = validate(source)
    assert judgement.runnable
    (warning,) = found(judgement.findings, Severity.WARNING)
    assert (warning.code, warning.position.line) == ("undeclared-parameter", 2)
    assert validate(two(second={"args.yaml.j2": "{{ x.y }}: 1"})).undeclared == ("x",)


def test_a_parameter_that_changes_nothing_is_warned_of():
    source = two(second={"args.yaml.j2": PRINTS, "parameters.yaml": "n: 1\n"})
    (warning,) = validate(source, {"m": 2}).findings
    assert (warning.code, warning.severity) == ("unused-parameter", Severity.WARNING)


@pytest.mark.req("R004-42")
def test_what_a_workflow_needs_is_known_before_it_is_requested():
    source = two(
        first={"parameters.yaml": "n: 1\nm:\n", "outputs.yaml": "- k\n"},
        second={"parameters.yaml": "m: 2\nk:\n"},
    )
    specs = {one.name: one for one in validate(source).specs}
    assert {name: one.is_needed for name, one in specs.items()} == {
        "n": False,
        "m": True,
        "k": False,
    }
    assert specs["m"].stages == ("first", "second")
    assert specs["k"].provided_by == ("first",)


def test_a_parameter_that_a_fixed_name_hides_is_warned_of_and_still_there():
    files = {"parameters.yaml": "args: 1\n", "args.yaml.j2": "n: {{ parameters['args'] }}\n"}
    judgement = validate(two(second=files), {})
    assert codes(judgement.findings) == ["shadowed-parameter"]
    [finding] = judgement.all_findings()
    assert str(finding.position) == "stages/second/1.0.0/parameters.yaml:1:1"
    assert args_of(judgement) == {"n": 1}


@pytest.mark.slow
def test_the_definition_is_warned_if_two_stages_disagree_about_a_default():
    text = TWO.replace("timeout: 60s", "timeout: {{ longest }}", 1)
    folders = with_compose(
        first={"parameters.yaml": "longest: 1m\n"}, second={"parameters.yaml": "longest: 2m\n"}
    )
    source = sip(text, folders, file="f-1.0.0.yaml.j2")
    judgement = validate(source, {})
    assert codes(judgement.findings) == ["conflicting-defaults"]
    assert judgement.definition.stages[0].timeout_seconds == 60
    assert judgement.rendered["second"].parameters == {"longest": "2m"}
    assert not list(validate(source, {"longest": "3m"}).findings)


@pytest.mark.parametrize(
    "request_",
    [{"a": "x" * 70_000}, {"a": float("nan")}, {"a": object()}, {"a": "\0"}, {"a": "\ud800"}],
)
def test_a_request_that_cannot_be_used_is_refused(request_):
    assert not judged(definition(stage("a")), "a", request=request_).runnable


def test_a_request_nested_too_deeply_is_refused():
    deep = []
    for _ in range(100):
        deep = [deep]
    refused = judged(definition(stage("a")), "a", request={"a": deep})
    assert codes(refused.obstacles) == ["nested-too-deeply"]
