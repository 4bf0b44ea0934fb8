"""Whatever is done to a definition and its files, there are findings and never a crash."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.sips import COMPOSE, HEAD, stage
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.sip.templates import RenderedText
from tidewheel.formats.sip.text_files import SipSource, read_rendered
from tidewheel.formats.sip.translation import workflow_of
from tidewheel.formats.sip.validation import validate

YAML = HEAD + stage("a") + stage("b", "a complete", "object:x present", more="label: [x]")
PIECES = st.sampled_from(
    [
        *("", " ", "\n", "  ", "\t", "-", ":", ": ", "- ", "[", "]", "{", "}", ",", "'", '"'),
        *("#", "&a", "*a", "!", "!!x", "|", ">", "%", "@", "`", "~", "null", "1.0", "\0", "é"),
        *("id: a", "stages:", "type", "value", "2.0", "\U000f5ee0", "\U000f5ee00\U000f5ee1"),
    ]
)
FILES = {
    "stages/a/1.0.0/docker_compose.yaml": COMPOSE,
    "stages/a/1.0.0/parameters.yaml": "n: 1\nm:\n",
    "stages/b/1.0.0/command.yaml": "[a, b]\n",
    "stages/b/1.0.0/args.json": '{"a": [1, {"b": null}]}',
    "stages/b/1.0.0/outputs.yaml": "- x\n",
}


@st.composite
def mutations(draw, text):
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(PIECES) + text[stop:]
    return text


def look_at(files, file="f-1.0.0.yaml"):
    source = SipSource(file=file, files={name: one.encode() for name, one in files.items()})
    judgement = validate(source)
    for one in judgement.all_findings().sorted():
        assert one.message
        assert str(one)
        assert one.position.file in files, one
    if judgement.registrable:
        workflow_of(judgement.definition, judgement.rendered)


def is_plain(text):
    """A text with templates starts a process, which is too slow for thousands of them."""
    return not any(sign in text for sign in ("{{", "{%", "{#"))


@given(mutations(YAML).filter(is_plain))
def test_a_definition(text):
    look_at({**FILES, "f-1.0.0.yaml": text})


@given(mutations(json.dumps({"schema_version": "2.0", "stages": [{"id": "a", "x": [1]}]})))
def test_a_definition_in_json(text):
    if is_plain(text):
        look_at({**FILES, "f-1.0.0.json": text}, "f-1.0.0.json")


@example(("stages/a/1.0.0/parameters.yaml", "stages: 1\nm:\n"))
@given(
    st.sampled_from(sorted(FILES)).flatmap(
        lambda name: st.tuples(st.just(name), mutations(FILES[name]))
    )
)
def test_a_file_of_a_stage(changed):
    name, text = changed
    look_at({**FILES, "f-1.0.0.yaml": YAML.replace("    label: [x]\n", ""), name: text})


BROKEN_ARGS = {"stages/a/1.0.0/args.json": '{"a": }'}
ITS_MISTAKE = ("stages/a/1.0.0/args.json", "json-syntax")
FIRST_STAGE = HEAD + stage("a")
IN_JSON = json.dumps({"schema_version": "2.0", "stages": [{"id": "a", "version": "1.0.0"}, {}]})
REST = IN_JSON.index(", {}")
NO_TEXT = {"not-text", "reserved-character"}


def told(files, file):
    source = SipSource(file=file, files={name: one.encode() for name, one in files.items()})
    return {(one.position.file, one.code) for one in validate(source).all_findings()}


@pytest.mark.req("R011-11")
@given(mutations(stage("b", "a complete")).filter(is_plain))
def test_nothing_that_stands_after_a_stage_hides_what_is_wrong_in_its_files(rest):
    found = told({**FILES, **BROKEN_ARGS, "f-1.0.0.yaml": FIRST_STAGE + rest}, "f-1.0.0.yaml")
    assert ITS_MISTAKE in found or {code for _, code in found} & NO_TEXT


@pytest.mark.req("R011-11")
@given(mutations(IN_JSON[REST:]).filter(is_plain))
def test_nor_does_it_in_json(rest):
    files = {**FILES, **BROKEN_ARGS, "f-1.0.0.json": IN_JSON[:REST] + rest}
    found = told(files, "f-1.0.0.json")
    assert ITS_MISTAKE in found or {code for _, code in found} & NO_TEXT


TEMPLATES = {
    "f-1.0.0.yaml.j2": YAML.replace("    label: [x]\n", "").replace("60s", "{{ n }}"),
    "stages/a/1.0.0/docker_compose.yaml.j2": COMPOSE
    + "    command: ['{{ n }}', '{{ b.m }}']\n",
    "stages/a/1.0.0/parameters.yaml": "n: 1\nm:\n",
    "stages/b/1.0.0/command.yaml.j2": "[a, '{{ args.a[0] }}', '{{ a.n }}', '{{ stages.a.m }}']",
    "stages/b/1.0.0/args.json.j2": '{"a": [{{ n }}, {"b": "{{ m }}"}]}',
    "stages/b/1.0.0/outputs.yaml": "- x\n",
}
SIGNS = st.sampled_from(
    [
        *("{{", "}}", "{%", "%}", "{{ n.x }}", "{{ a }}", "{{ stages }}", "{{ stage.n }}"),
        *("{{ zz }}", "{% for i in n %}", "{% endfor %}", "{% if a.m %}", "{% endif %}"),
        *("{{ n - 1 }}", "{{ args }}", "{{ parameters.q }}", "{{ b.outputs.x }}", "|", "."),
        *(
            "{{ self }}",
            "{{ a.__class__ }}",
            "{{ zz() }}",
            "{{ zz[0].y ~ 1 }}",
            "{{ zz | int }}",
        ),
        *("{{ dict }}", "{{ loop }}", "{{ zz == 1 }}", "{{ {zz: 1} }}", "{{ [zz] | tojson }}"),
        *("{{ '%s' | format(zz) }}", "{{ zz is defined }}", "{{ zz | default(1) }}"),
    ]
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_templates_that_are_torn_are_told_with_their_places(data):
    files = dict(TEMPLATES)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(files)))
        text, start = files[name], data.draw(st.integers(0, len(files[name])))
        stop = start + data.draw(st.integers(0, 4))
        files[name] = text[:start] + data.draw(SIGNS | PIECES) + text[stop:]
    source = SipSource(
        file="f-1.0.0.yaml.j2", files={name: one.encode() for name, one in files.items()}
    )
    for request in (None, {"m": 2}, {"a": {"m": [1]}, "n": {"x": 1}}):
        for one in validate(source, request).all_findings().sorted():
            assert one.message and one.position.file in {*files, "request"}, one
            is_line = 0 <= one.position.line <= files.get(one.position.file, "").count("\n") + 1
            assert is_line, one


def test_a_definition_that_names_many_folders_is_looked_at_once():
    words = " ".join(f"s{number}" for number in range(30_000))
    text = f"schema_version: '2.0\n# 1.0.0 {words}\n"
    folders = frozenset(f"stages/s{number}/1.0.0" for number in range(30_000))
    source = SipSource(
        file="f-1.0.0.yaml", files={"f-1.0.0.yaml": text.encode()}, folders=folders
    )
    assert "yaml-syntax" in {one.code for one in validate(source).all_findings()}


@settings(max_examples=50)
@given(st.text(max_size=60), st.sampled_from(["x.yaml", "x.json"]))
def test_any_rendered_text(text, name):
    lines = tuple(text.split("\n"))
    rendered = RenderedText(lines, tuple(range(1, len(lines) + 1)))
    read_rendered(name, rendered, Findings())
