"""The JSON of the commands about definitions has the keys that docs/json.md promises."""

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
COMMANDS = {
    "tidewheel validate": ["validate", "bad"],
    "tidewheel graph": ["graph", "good", "1", "2"],
    "tidewheel list": ["list", "good"],
    "tidewheel list --tree": ["list", "good", "--tree"],
    "tidewheel list --points": ["list", "good", "--points", "1", "2"],
    "tidewheel config": ["config", "good"],
    "tidewheel config --item": ["config", "good", "--item", "[runtime][a]script"],
    "tidewheel view": ["view", "good"],
    "tidewheel rehearse": ["rehearse", "good", "--fail", "1/b"],
}
FREE = {"config"}  # its keys are those of the definition
FLOW = "[scheduling]\n [[graph]]\n  R1 = a => b\n[runtime]\n [[a]]\n  {item} = true\n [[b]]\n"


def example_under(heading: str) -> object:
    pattern = rf"^## {re.escape(heading)}\n.*?```json\n(.*?)```"
    [text] = re.findall(pattern, PAGE.read_text("utf-8"), re.M | re.S)
    return json.loads(text)


def shape(document, name=""):
    """The keys, all the way down; of a list, those of its first element."""
    if isinstance(document, dict) and name not in FREE:
        return {key: shape(value, key) for key, value in sorted(document.items())}
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return [shape(document[0])]
    return None


@pytest.mark.parametrize("heading", COMMANDS)
def test_every_answer_has_the_keys_of_its_example(tidewheel, heading):
    for name, item in (("good", "script"), ("bad", "scirpt")):
        (tidewheel.folder / name).write_text(FLOW.format(item=item), encoding="utf-8")
    answer = tidewheel("--json", *COMMANDS[heading])
    example = example_under(heading)
    if heading.endswith("--tree"):
        example["tree"]["children"][0]["children"] = []
    assert shape(answer.json) == shape(example)


def test_a_definition_that_leaves_nothing_to_show_says_why(tidewheel):
    refused = tidewheel("--json", "graph", "nowhere")
    error = json.loads(refused.err)["error"]
    assert (refused.status, refused.out, error["code"]) == (2, "", "definition")
    finding = example_under("tidewheel validate")["findings"][0]
    assert error["findings"][0].keys() == finding.keys()
