"""Whatever is done to a definition and its files, there are findings and never a crash."""

import json

from hypothesis import given, settings
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


@given(
    st.sampled_from(sorted(FILES)).flatmap(
        lambda name: st.tuples(st.just(name), mutations(FILES[name]))
    )
)
def test_a_file_of_a_stage(changed):
    name, text = changed
    look_at({**FILES, "f-1.0.0.yaml": YAML.replace("    label: [x]\n", ""), name: text})


@settings(max_examples=50)
@given(st.text(max_size=60), st.sampled_from(["x.yaml", "x.json"]))
def test_any_rendered_text(text, name):
    lines = tuple(text.split("\n"))
    rendered = RenderedText(lines, tuple(range(1, len(lines) + 1)))
    read_rendered(name, rendered, Findings())
