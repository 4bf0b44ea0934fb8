"""The shapes of JSON that docs/json.md promises are those that the program answers with."""

import json

from tests.support import json_page
from tests.support.json_page import promised

FREE = {"metrics", "spec", "args", "retry"}  # what is in them is not ours to fix


# These read a definition and no store; test_cli_definitions_json is about them.
ABOUT_DEFINITIONS = ("validate", "graph", "list", "config", "view", "rehearse")
# And test_cli_runs_json is about these.
ABOUT_RUNS = (
    *("run", "runs", "show", "why", "tree", "log"),
    *("trigger", "broadcast", "message"),
)
ABOUT_OTHERS = {
    *ABOUT_DEFINITIONS,
    *ABOUT_RUNS,
    *("register", "workflows", "sbi", "blocks", "objects"),  # test_cli_registry_json
    "init",  # test_cli_init
    "convert",  # tests/stages/test_cli_convert.py
    "events",  # test_cli_events
    "audit",  # test_cli_through_server
}


def about_tasks() -> dict[str, object]:
    """The example under each heading about tasks."""
    return {
        heading: example
        for heading, example in promised().items()
        if not ABOUT_OTHERS.intersection(heading.split())
    }


def shape(document):
    return json_page.shape(document, FREE)


def test_every_answer_has_the_keys_of_its_example(tidewheel):
    examples = about_tasks()
    examples["tidewheel task"]["task"] = examples["tidewheel tasks"]["tasks"][0]
    lines = '{"id": "a", "command": "tidewheel message hi"}\n{"needs": ["x"]}\n{"c": 1}\n'
    answers = {
        "tidewheel submit --file": tidewheel("--json", "submit", "--file", "-", stdin=lines)
    }
    tidewheel("submit", "--id", "b", "--needs", "a", "--", "true")
    tidewheel("worker", "--exit-when-idle")
    answers["tidewheel submit"] = tidewheel("--json", "submit", "--", "true")
    tidewheel("queues", "default", "--limit", "4")
    commands = {
        "tasks": ["tasks"],
        "task": ["task", "a"],
        "cancel": ["cancel", "a"],
        "resubmit": ["resubmit", "a"],
        "queues": ["queues"],
        "workers": ["workers", "--all"],
        "verify": ["verify"],
        "export": ["export", "out.jsonl"],
        "backup": ["backup", "copy.db"],
        "migrate": ["migrate"],
    }
    for name, words in commands.items():
        answers[f"tidewheel {name}"] = tidewheel("--json", *words)
    shapes = {heading: shape(answer.json) for heading, answer in answers.items()}
    shapes["Errors"] = shape(json.loads(tidewheel("--json", "task", "nope").err))
    # The example shows both sides of the edge; of these tasks each has one.
    task, child = shapes["tidewheel task"], shape(tidewheel("--json", "task", "b").json)
    assert task["needed_by"] == child["needs"]
    shapes["tidewheel task"] = task | {"needs": child["needs"], "needed_by": None}
    assert shapes == {heading: shape(example) for heading, example in examples.items()}
