"""/workflows/{name}/stages: what each stage is, with its files, for whoever may read it."""

import pytest

from tests.support.http_server import running_server
from tests.support.workflow_folders import FLOW, put, sip_files
from tidewheel import Client
from tidewheel.core.graph.findings import InvalidDefinition

SKY = """\
schema_version: "2.0"
stages:
  - id: engine
    version: 1.0.0
    type: simulator
    timeout: 2h
    resources_required: []
    until: [image]
  - id: ingest
    version: 1.2.0
    type: setup
    timeout: 90s
    resources_required:
      - {type: nodes, number: 2, flavour: receiver, exclusive: true}
      - {type: cpu, value: 0.5}
      - {type: memory, value: 2GiB}
    dependencies: [{type: buffer_object, value: vis.1, condition: present}]
  - id: image
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required: []
    dependencies: [{type: stage, value: ingest, condition: completed}]
    for_each: "{{ beams }}"
    for_each_max: 7
  - id: plot
    version: 1.0.0
    type: cleanup
    timeout: 60s
    resources_required: []
    when: "{{ plots }}"
    dependencies: [{type: stage, value: image, condition: ended}]
"""
COMPOSE = """\
version: '3.7'
services:
  receive: {image: "busybox:1.36", network_mode: host}
"""
HOSTILE = "<script>window.hit = 1</script>\n"
FILES = {
    "sky-1.0.0.yaml.j2": SKY,
    "stages/engine/1.0.0/script.sh": "sleep 1d\n",
    "stages/ingest/1.2.0/docker_compose.yaml": COMPOSE,
    "stages/ingest/1.2.0/outputs.yaml": "[loudest]\n",
    "stages/ingest/1.2.0/bin/receive": "#!/bin/sh\n",
    "stages/image/1.0.0/command.yaml.j2": '[echo, "{{ site }}", "{{ item }}"]\n',
    "stages/image/1.0.0/parameters.yaml": "site:\nloudest:\nbeams: [1, 2]\nplots: true\n",
    "stages/image/1.0.0/notes.html": HOSTILE,
    "stages/image/1.0.0/picture": {"base64": "iVBORw=="},
    "stages/plot/1.0.0/script.sh": "true\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stages")
    with running_server(f"sqlite:///{folder}/t.db", home=folder / "home") as running:
        sky = {"files": FILES, "executable": ["stages/ingest/1.2.0/bin/receive"]}
        tide = {"files": {"flow.cylc": FLOW}, "name": "tide", "version": "1"}
        made = running.caller("submit").post("/workflows", {"bundles": [sky, tide]})
        assert made.status == 201, made.body
        yield running


@pytest.fixture
def reader(server):
    return server.caller("read")


def stages(caller, **parameters):
    reply = caller.post("/workflows/sky/1.0.0/stages", {"parameters": parameters})
    assert reply.status == 200, reply.body
    return {one["id"]: one for one in reply.json["stages"]}


def test_each_stage_is_told_as_the_definition_says_it(reader):
    told = stages(reader)
    assert list(told) == ["engine", "ingest", "image", "plot"]
    engine, ingest, image = told["engine"], told["ingest"], told["image"]
    assert (engine["type"], engine["timeout_seconds"]) == ("simulator", 7200.0)
    assert (engine["until"], ingest["until"]) == (["image"], [])
    assert (ingest["version"], ingest["timeout_seconds"]) == ("1.2.0", 90.0)
    assert ingest["resources"] == [
        {
            "type": "nodes",
            "number": 2,
            "flavour": "receiver",
            "exclusive": True,
            "label": "",
        },
        {"type": "cpu", "value": 0.5},
        {"type": "memory", "value": 2 * 1024**3},
    ]
    assert ingest["dependencies"] == [
        {"type": "buffer_object", "value": "vis.1", "condition": "present"}
    ]
    assert image["dependencies"] == [
        {"type": "stage", "value": "ingest", "condition": "complete"}
    ]
    assert image["for_each"] == {"max": 7, "count": 2, "items": [1, 2]}
    assert ingest["for_each"] is None


def test_what_a_worker_must_allow_is_told_of_the_stage(reader):
    told = stages(reader)
    assert told["ingest"]["allow"] == ["host-network"]
    assert [told[one]["allow"] for one in ("engine", "image", "plot")] == [[], [], []]


def test_parameters_are_those_that_the_stage_declares(reader):
    told = stages(reader)["image"]["parameters"]
    assert {one["name"]: one for one in told} == {
        "beams": {"name": "beams", "required": False, "provided_by": None, "value": [1, 2]},
        "plots": {"name": "plots", "required": False, "provided_by": None, "value": True},
        "loudest": {"name": "loudest", "required": False, "provided_by": "ingest"},
        "site": {"name": "site", "required": True, "provided_by": None},
    }
    assert stages(reader)["ingest"]["outputs"] == ["loudest"]


def test_a_request_makes_lists_conditions_and_values(reader):
    told = stages(reader, site="north", plots=False, beams=["x"])
    assert (told["plot"]["when"], stages(reader)["plot"]["when"]) == (False, True)
    assert told["image"]["for_each"]["items"] == ["x"]
    values = {one["name"]: one.get("value") for one in told["image"]["parameters"]}
    assert (values["site"], values["beams"]) == ("north", ["x"])


def test_files_are_told_as_they_were_written_and_what_is_no_text_is_none(reader):
    told = stages(reader)
    assert told["ingest"]["executes"] == "stages/ingest/1.2.0/docker_compose.yaml"
    inside = {one["path"]: one for one in told["ingest"]["files"]}
    assert inside["stages/ingest/1.2.0/docker_compose.yaml"]["text"] == COMPOSE
    assert inside["stages/ingest/1.2.0/bin/receive"]["executable"]
    inside = {one["path"].rpartition("/")[2]: one for one in told["image"]["files"]}
    assert inside["command.yaml.j2"]["text"] == '[echo, "{{ site }}", "{{ item }}"]\n'
    assert (inside["notes.html"]["text"], inside["picture"]["text"]) == (HOSTILE, None)
    assert inside["picture"]["size"] == 4


def test_a_large_file_is_named_without_its_text(server, reader):
    files = sip_files("large-1.0.0.yaml") | {"stages/b/1.0.0/table": "x" * 70_000}
    assert server.caller("submit").post("/workflows", {"files": files}).status == 201
    told = reader.post("/workflows/large/stages", {}).json["stages"][1]["files"]
    (table,) = [one for one in told if one["path"].endswith("table")]
    assert (table["size"], table["text"]) == (70_000, None)


def test_stages_are_told_though_the_workflow_cannot_run(server, reader):
    files = sip_files("lame-1.0.0.yaml")
    files["lame-1.0.0.yaml"] = files["lame-1.0.0.yaml"].replace("value: a,", "value: alpha,")
    assert server.caller("submit").post("/workflows", {"files": files}).status == 201
    told = reader.post("/workflows/lame/stages", {})
    assert [one["id"] for one in told.json["stages"]] == ["a", "b"]
    assert "unknown-stage" in {one["code"] for one in told.json["findings"]}


def test_a_workflow_of_tasks_has_no_stages(reader):
    told = reader.post("/workflows/tide/stages", {})
    assert (told.status, told.json["findings"][0]["code"]) == (422, "no-stages")


def test_only_who_may_read_the_workflow_is_told_its_stages(server):
    """What another tenant keeps is not there; to be told needs no more than scope read."""
    own, other = (server.caller("read", names=[name]) for name in ("sky", "tide"))
    for path in ("/workflows/sky/stages", "/workflows/sky/1.0.0/stages"):
        assert own.post(path, {}).status == 200
        hidden, unknown = other.post(path, {}), other.post(path.replace("sky", "sly"), {})
        assert (hidden.status, hidden.code) == (unknown.status, unknown.code)
        assert (hidden.status, hidden.code) == (403, "forbidden")
        assert b"receive" not in hidden.body
        assert server.caller("submit", names=["tide"]).post(path, {}).status == 403
        assert server.stranger().post(path, {}).status == 401


def test_a_client_is_told_the_same_near_and_far(server, tmp_path):
    folder = put(tmp_path / "vis", sip_files())
    with Client(f"sqlite:///{tmp_path}/near.db") as near:
        near.workflows.register(folder)
        here = near.workflows.stages("vis", {"site": "north"})
        near.workflows.register(put(tmp_path / "tide", {"flow.cylc": FLOW}))
        with pytest.raises(InvalidDefinition, match="no stages"):
            near.workflows.stages("tide")
    with Client(f"http://{server.address}", token=server.caller("submit").token) as far:
        far.workflows.register(folder)
        assert far.workflows.stages("vis/1.0.0", {"site": "north"}) == here
