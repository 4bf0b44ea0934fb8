"""Seed 004, "Use of templates", and RELIABILITY S16: what a template and its values may do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sips import codes, definition, parts, sip, stage, with_compose, yaml_value
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.sip.template_environment import answers
from tidewheel.formats.sip.validation import render_stages, validate

pytestmark = pytest.mark.slow  # each template is rendered in a process of its own

DEFINITION = """\
schema_version: 2.0
stages:
  - id: a
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required:
    {% for word in words %}
      - {type: nodes, number: 1, flavour: {{ word }}, exclusive: true, label: "{{ word }}"}
    {% endfor %}
"""
COMPOSE = """\
services:
{% for word in words %}
  work-{{ loop.index0 }}:
    image: busybox:1
    command: ['{{ word }}', "{{ word }}", {{ word }}]
    labels: {key: {{ word }}}
    environment:
      WORD: |
        {{ word }}
      # {{ word }}
{% endfor %}
"""
EVIL = [
    "x\n  - id: evil\n    version: 1.0.0\n    type: setup",
    "x\n    privileged: true",
    "x # and nothing more",
    "x', privileged: true, y: '",
    'x", privileged: true, y: "',
    "x}, privileged: true, y: {",
    "x]\n    privileged: true\n    y: [",
    "${HOME} $$x $",
    "*alias",
    "&anchor x",
    "!!python/object/apply:os.system [id]",
    "{{ 7 * 7 }}",
    "{% for x in y %}",
    "a: b",
    "- a",
    "---",
    "\t",
    "it's",
    '"',
    "\\",
    "%YAML 1.1",
    "é ü 漢 🙂",
    "yes",
    "1:30",
    "null",
]


def services_with(words):
    """What an engine would read, one service for each word."""
    folders = {"a": {"docker_compose.yaml.j2": COMPOSE}}
    judgement = validate(sip(definition(stage("a")), folders), {"words": words})
    assert judgement.runnable, [str(one) for one in judgement.obstacles]
    written = yaml_value(judgement.rendered["a"].compose)
    assert list(written) == ["services"]
    return written["services"]


def check_places(words):
    services = services_with(words)
    assert list(services) == [f"work-{number}" for number in range(len(words))]
    for word, work in zip(words, services.values(), strict=True):
        assert set(work) == {"image", "command", "labels", "environment"}
        meant = word.replace("$", "$$")  # to docker-compose one alone begins a variable
        assert work["command"][:2] == [meant, meant]
        assert len(work["command"]) == 3
        assert list(work["labels"]) == ["key"] and list(work["environment"]) == ["WORD"]


@pytest.mark.req("R004-51", "R004-48")
def test_no_value_leaves_its_place_in_a_definition():
    source = sip(DEFINITION, with_compose("a"), file="f-1.0.0.yaml.j2")
    judgement = validate(source, {"words": EVIL})
    (only,) = judgement.definition.stages
    assert (only.id, only.version, only.dependencies) == ("a", "1.0.0", ())
    assert [one.label for one in only.resources] == EVIL
    # `flavour: null` is an empty value to the schema, and so it is refused.
    assert [one.flavour or "null" for one in only.resources] == EVIL
    assert codes(judgement.obstacles) == ["value-kind"]


@pytest.mark.req("R004-51", "R004-50")
def test_no_value_leaves_its_place_in_a_compose_file():
    check_places(EVIL)


@settings(deadline=None, max_examples=5)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Co"])), min_size=1))
def test_no_text_at_all_leaves_its_place(words):
    check_places([word.replace("\0", "") for word in words])


def test_a_structure_stays_a_structure_where_it_stands_alone_and_a_text_elsewhere():
    compose = "services: {a: {image: x, command: {{ words }}, labels: {l: 'x {{ words }}'}}}\n"
    folders = {"a": {"docker_compose.yaml.j2": compose}}
    judgement = validate(sip(definition(stage("a")), folders), {"words": ["a b", 'c"']})
    a = yaml_value(judgement.rendered["a"].compose)["services"]["a"]
    assert a["command"] == ["a b", 'c"']
    assert a["labels"] == {"l": 'x ["a b","c\\""]'}


@pytest.mark.parametrize(
    "stages",
    [
        "{% for i in range(n) %}  - {id: s{{ i }}, version: '1', type: setup}\n{% endfor %}",
        "{% if n %}  - {id: s, version: '1', type: setup}\n{% endif %}",
        "  - {id: s{{ n }}, version: '1', type: setup}\n",
    ],
)
def test_a_parameter_never_adds_or_names_a_stage(stages):
    text = "schema_version: '2.0'\nstages:\n  - {id: a, version: '1', type: setup}\n" + stages
    judgement = validate(
        sip(text, with_compose("a"), file="f-1.0.0.yaml.j2", version="1"), {"n": 3}
    )
    refused = [*codes(judgement.findings), *codes(judgement.obstacles)]
    assert "stages-of-parameters" in refused or "stage-of-a-parameter" in refused
    assert not judgement.runnable


def test_a_loop_that_makes_every_stage_is_refused_for_what_it_is():
    text = (
        "schema_version: '2.0'\nstages:\n{% for i in range(n) %}\n"
        "  - {id: s{{ i }}, version: '1', type: setup}\n{% endfor %}\n"
    )
    source = sip(text, with_compose("s0"), file="f-1.0.0.yaml.j2", version="1")
    for request in (None, {"n": 1}):
        assert codes(validate(source, request).findings) == ["stages-of-parameters"]


@pytest.mark.req("R004-50", "R004-52")
def test_services_that_a_loop_over_a_list_of_the_request_makes_are_not_missed_before_it():
    compose = """
        services:
        {% for one in senders %}
          {{ one.name }}:
            image: {{ one.image }}
        {% endfor %}
    """
    source = sip(definition(stage("a")), {"a": {"docker_compose.yaml.j2": compose}})
    judgement = validate(source)
    assert judgement.runnable and judgement.undeclared == ("senders",)
    for senders, runs in (([{"name": "s", "image": "sender:1"}], True), ([], False)):
        asked = validate(source, {"senders": senders})
        assert asked.runnable == runs
        assert runs or codes(asked.obstacles) == ["compose-services"]


@pytest.mark.req("R004-52")
def test_loops_and_conditions_over_parameters_work_in_stage_files():
    args = """
        {"send": [
        {% for address in addresses %}
          {"host": "{{ address }}", "port": {{ 41000 + loop.index0 }}}
          {% if not loop.last %},{% endif %}
        {% endfor %}
        ]}
    """
    compose = """
        services:
        {% for i in range(parameters.addresses | length) %}
          send-{{ '%02d' % i }}:
            image: sender:1
            command: ['{{ args.send[i] }}']
            {% if loop.first %}
            labels: [first]
            {% endif %}
        {% endfor %}
    """
    files = {"args.json.j2": args, "docker_compose.yaml.j2": compose}
    judgement = validate(
        sip(definition(stage("a")), {"a": files}), {"addresses": ["10.0.0.1", "10.0.0.2"]}
    )
    services = yaml_value(judgement.rendered["a"].compose)["services"]
    assert services == {
        "send-00": {
            "image": "sender:1",
            "command": ['{"host":"10.0.0.1","port":41000}'],
            "labels": ["first"],
        },
        "send-01": {"image": "sender:1", "command": ['{"host":"10.0.0.2","port":41001}']},
    }


def test_macros_and_blocks_write_structure_and_their_values_do_not():
    compose = """
        {% macro service(name, image) %}
          {{ name }}:
            image: {{ image }}
        {% endmacro %}
        {% set line %}    tty: true{% endset %}
        services:
        {{ service('one', image) }}
        {{ line }}
    """
    folders = {"a": {"docker_compose.yaml.j2": compose}}
    judgement = validate(
        sip(definition(stage("a")), folders), {"image": "x\n    privileged: true"}
    )
    assert yaml_value(judgement.rendered["a"].compose) == {
        "services": {"one": {"image": "x\n    privileged: true", "tty": True}}
    }


@pytest.mark.req("R004-51")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "template-forbidden"),
        ("{{ ''.__class__.__mro__ }}", "template-forbidden"),
        ("{{ n.append(1) }}", "template-forbidden"),
        ("{{ ''|attr('__class__') }}", "template-forbidden"),
        ("{% include '/etc/passwd' %}", "template-include"),
        ("{% import 'os' as os %}", "template-include"),
        ("{{ environ }}", "template-undefined"),
        ("{% for x in y %}", "template-syntax"),
        ("{{ 1 / 0 }}", "template-failed"),
        ("{{ 'a' * 10**9 }}", "template-too-large"),
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "template-too-slow",
        ),
        ("{% for i in range(99999) %}{{ i }}{{ i }}{% endfor %}", "template-too-large"),
        (r"{{ '\U000f5ee09\U000f5ee1' }}", "reserved-character"),
        (r'"\U000f5ee09\U000f5ee1"', "reserved-character"),
    ],
)
def test_a_template_that_reaches_too_far_is_a_finding(text, code):
    folders = {"a": {"docker_compose.yaml.j2": f"a:\n  - {text}\n"}}
    judgement = validate(sip(definition(stage("a")), folders), {"n": [], "y": [1]})
    assert code in codes(judgement.obstacles)
    error = next(one for one in judgement.obstacles if one.code == code)
    assert error.position.file == "stages/a/1.0.0/docker_compose.yaml.j2"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("args.yaml", "a: \U000f5ee00\U000f5ee1"),
        ("args.yaml", r'a: "\U000f5ee00\U000f5ee1"'),
        ("args.json", r'{"a": "\udb97\udee00\udb97\udee1"}'),
        ("parameters.json", r'{"a": "\udb97\udee0"}'),
        ("args.yaml.j2", "a: \U000f5ee0"),
        ("docker_compose.yaml", "a: \U000f5ee1"),
    ],
)
def test_nobody_can_write_a_place(name, text):
    judgement = validate(sip(definition(stage("a")), with_compose(a={name: text})), {})
    assert "reserved-character" in codes(judgement.all_findings())
    assert not judgement.runnable


def test_one_endless_template_does_not_silence_the_others():
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    text = definition(stage("a"), stage("b"))
    folders = {
        "a": {"docker_compose.yaml.j2": endless},
        "b": {"docker_compose.yaml.j2": "services: {x: {{ oops }}}"},
    }
    found = {
        (one.code, one.position.file) for one in validate(sip(text, folders), {}).obstacles
    }
    assert ("template-too-slow", "stages/a/1.0.0/docker_compose.yaml.j2") in found
    assert ("template-undefined", "stages/b/1.0.0/docker_compose.yaml.j2") in found


def test_an_error_behind_a_loop_has_the_line_of_the_template():
    compose = (
        "services:\n{% for i in [1, 2] %}\n  s{{ i }}:\n    image: x\n{% endfor %}\n  bad: ]\n"
    )
    folders = {"a": {"docker_compose.yaml.j2": compose}}
    (error,) = validate(sip(definition(stage("a")), folders)).obstacles
    assert (error.code, error.position.line) == ("yaml-syntax", 6)


def test_a_name_with_a_hyphen_is_explained():
    folders = with_compose(a={"args.yaml.j2": "n: 1\nd: {{ my-stage_01 }}\n"})
    (error,) = validate(sip(definition(stage("a")), folders), {}).obstacles
    assert error.position.line == 2
    assert "parameters['my-stage_01']" in error.hint


def test_outputs_of_stages_are_values_like_any_other():
    text = definition(stage("a"), stage("b", "a complete"))
    folders = with_compose(a={"outputs.yaml": "- word\n"})
    folders["b"] = {"docker_compose.yaml.j2": COMPOSE.replace("in words", "in [word]")}
    judgement = validate(sip(text, folders), {})
    assert judgement.runnable
    findings = Findings()
    evil = "x\n    privileged: true"

    def rendered(word):
        return render_stages(
            judgement.parameters, parts(judgement, "b"), {}, {"a": {"word": word}}, findings
        )

    work = yaml_value(rendered(evil)["b"].compose)["services"]["work-0"]
    assert work["command"] == [evil, evil, evil]
    assert rendered("\U000f5ee0") is None
    assert codes(findings) == ["reserved-character"]


def ask(text, moment="request", unknown=(), **own):
    job = {
        "moment": moment,
        "glance": False,
        "hidden": [],
        "unknown": [],
        "shared": {},
        "memory_bytes": 1,
        "output_bytes": 1000,
        "templates": [{"text": text, "own": own, "unknown": [(way, "<x>") for way in unknown]}],
    }
    return next(answers(job))


@pytest.mark.parametrize(
    "text",
    [
        "{{ x }}",
        "{{ x.y[0].z }}",
        "{{ x + 1 }}{{ 2 * x }}{{ -x }}{{ x / 3 }}",
        "{% for i in x %}{% endfor %}{% for i in range(x) %}{% endfor %}",
        "{% if x %}{% endif %}{% if x == 1 or x < 2 or 'a' in x %}{% endif %}",
        "{{ x | length }}{{ x | int }}{{ x | join(',') }}{{ x | tojson }}",
        "{{ '%02d' % x }}{{ x ~ 'a' }}{{ x() }}{{ x | upper }}",
    ],
)
def test_whatever_is_done_to_an_unknown_value_is_no_mistake(text):
    assert "lines" in ask(text, moment="check")
    assert "lines" in ask(text, unknown=[["x"]])
    assert ask(text)["code"] in ("template-undefined", "template-failed")


def test_names_that_come_from_outside_are_told_with_their_lines():
    text = "{% set y = 1 %}{{ x }}{{ y }}\n{{ parameters.z }}{{ parameters['w-1'] }}{{ x }}"
    names = ask(text, moment="check")["names"]
    assert names == {"x": 1, "parameters": 2, "z": 2, "w-1": 2}


def test_the_values_of_a_template_count_for_its_size():
    assert ask("{{ x }}", x="a" * 2000)["code"] == "template-too-large"
    assert ask("a" * 2000)["code"] == "template-too-large"
