"""POST /runs with a SIP definition and the files of its stages."""

import base64
import json

import pytest

from tests.support.http_server import running_server

FILE = "vis-1.0.0.yaml"
TEXT = """\
schema_version: "2.0"
stages:
  - {id: make, version: 1.0.0, type: setup, timeout: 60s, resources_required: []}
"""
STAGE = "stages/make/1.0.0"
FILES = {
    FILE: TEXT,
    f"{STAGE}/script.sh": "echo hello\n",
    f"{STAGE}/parameters.yaml": "site:\n",
}

SITE = {"parameters": {"site": "north"}}


@pytest.fixture(scope="module")
def sender(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sips")
    with running_server(f"sqlite:///{folder}/t.db", home=folder / "home") as running:
        yield running.caller("submit")


def sent(files=FILES, file=FILE, **more):
    encoded = [
        {"path": path, "content": base64.b64encode(text.encode()).decode()}
        for path, text in files.items()
    ]
    body = {"workflow": "vis", "kind": "sip", "text": file, "files": encoded}
    return {"definition": body, **more}


@pytest.mark.req("R004-43", "R004-46")
def test_a_definition_and_its_parameters_begin_a_run(sender):
    begun = sender.post("/runs", sent(parameters={"site": "north"}, options={"priority": 3}))
    assert begun.status == 201, begun.body
    options = begun.json["run"]["options"]
    assert (options["parameters"], options["priority"]) == ('{"site": "north"}', 3)
    kept = sender.get("/runs/vis/definition").json
    assert (kept["kind"], kept["text"]) == ("sip", FILE)
    again = sender.post("/runs", sent(options={"parameters": '{"site": "south"}'}))
    assert again.json["run"]["definition"] == begun.json["run"]["definition"]


@pytest.mark.req("R004-45")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (sent(), "stage make needs the parameter 'site'"),
        (sent(file="other.yaml"), "is not among the files"),
        (sent({**FILES, "../x": ""}), "leads somewhere else"),
        (sent({FILE: TEXT}), "stages/make/1.0.0"),
        (sent({**FILES, FILE: "- 1\n"}), FILE),
        (sent(options={"parameters": "[1"}), "JSON object"),
        (sent(parameters={"site": "\ud800"}), ""),
        (sent(options={"priority": 101}), "priority"),
        (sent(**SITE, options={"initial": "3"}), "--icp (initial) is for a flow.cylc or"),
        (sent(**SITE, options={"hold_after": "0"}), "--hold-after (hold_after) is for a flow"),
        (sent(**SITE, options={"start_tasks": ["mak"]}), "mak"),
        ({**sent(), "version": "1.0.0"}, "registered"),
    ],
)
def test_what_cannot_run_is_refused_with_its_reason(sender, body, said):
    answer = sender.post("/runs", body)
    assert answer.status in (400, 409, 422), answer.body
    assert said in json.dumps(answer.json)
