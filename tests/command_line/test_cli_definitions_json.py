"""The JSON of the commands about definitions has the keys that docs/json.md promises."""

import json

import pytest

from tests.support.json_page import promised, shape

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


@pytest.mark.parametrize("heading", COMMANDS)
def test_every_answer_has_the_keys_of_its_example(tidewheel, heading):
    for name, item in (("good", "script"), ("bad", "scirpt")):
        (tidewheel.folder / name).write_text(FLOW.format(item=item), encoding="utf-8")
    answer = tidewheel("--json", *COMMANDS[heading])
    example = promised()[heading]
    if heading.endswith("--tree"):
        example["tree"]["children"][0]["children"] = []
    assert shape(answer.json, FREE) == shape(example, FREE)


def test_a_definition_that_leaves_nothing_to_show_says_why(tidewheel):
    refused = tidewheel("--json", "graph", "nowhere")
    error = json.loads(refused.err)["error"]
    assert (refused.status, refused.out, error["code"]) == (2, "", "definition")
    finding = promised()["tidewheel validate"]["findings"][0]
    assert error["findings"][0].keys() == finding.keys()
