"""/workflows/{name}/{version}/graph: who would wait for whom, before anything has run."""

import pytest

from tests.support.http_server import running_server
from tests.support.workflow_folders import PYTHON, TEMPLATE, sip_files
from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import StoredDefinition, StoredFile, sealed
from tidewheel.core.operator.registry import NewWorkflow
from tidewheel.services.registry.bundles import read_bundles

CYCLING = """\
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    [[graph]]
        P1 = a[-P1] => a => b?
        P2 = b:fail? => !c & d
        R1 = c
[runtime]
    [[FAMILY]]
    [[a, b, c, d]]
        inherit = FAMILY
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    with running_server(f"sqlite:///{folder}/t.db", home=folder / "home") as running:
        sender = running.caller("submit")
        flows = {"tide": CYCLING, "named": TEMPLATE}
        bundles = [
            {"files": {"flow.cylc": text}, "name": name, "version": "1"}
            for name, text in flows.items()
        ]
        made = sender.post("/workflows", {"bundles": [*bundles, {"files": sip_files()}]})
        assert made.status == 201, made.body
        yield running


@pytest.fixture
def reader(server):
    return server.caller("read")


def drawn(caller, workflow, **asked):
    return caller.post(f"/workflows/{workflow}/graph", asked)


def edges(reply):
    assert reply.status == 200, reply.body
    return [f"{one['parent']} {one['child']}" for one in reply.json["edges"]]


def test_without_points_the_first_few_are_told(reader):
    told = drawn(reader, "tide/1").json
    assert (told["name"], told["kind"], told["points"]) == (
        "tide",
        "flow.cylc",
        ["1", "2", "3"],
    )
    assert {one["id"] for one in told["tasks"]} >= {"1/a", "3/b"}
    assert {one["family"] for one in told["tasks"]} == {"FAMILY"}


def test_points_are_those_of_the_command_line(reader):
    told = drawn(reader, "tide/1", start="5", stop="P1")
    assert told.json["points"] == ["5", "6"]
    assert "5/a 6/a" in edges(told)
    back = drawn(reader, "tide/1", start="5", stop="2")
    assert (back.status, back.code) == (409, "bad_window")


def test_the_points_of_a_run_to_come_say_which_points_and_tasks_it_would_have(reader):
    told = drawn(reader, "tide/1", options={"initial": "3", "final": "6"}).json
    assert told["range"] == {
        **{"first": "3", "last": "6", "points": 4, "cut": False},
        "tasks": {"a": 4, "b": 4, "c": 1, "d": 2},
    }
    assert (told["points"], told["cut"]) == (["3", "4", "5", "6"], False)
    part = drawn(reader, "tide/1", options={"final": "9", "start": "2", "stop": "3"}).json
    ends = {name: part["range"][name] for name in ("first", "last", "points")}
    assert (ends, part["points"]) == ({"first": "2", "last": "3", "points": 2}, ["2", "3"])
    open_end = drawn(reader, "tide/1", options={"start": "5"}).json
    ends = {name: open_end["range"][name] for name in ("first", "last", "tasks")}
    assert (ends, open_end["points"][0]) == ({"first": "5", "last": None, "tasks": {}}, "5")


def test_a_long_run_is_counted_to_its_end_and_drawn_at_its_first_points(reader):
    told = drawn(reader, "tide/1", options={"final": "30000"}).json
    assert (told["range"]["points"], told["range"]["tasks"]["d"]) == (30_000, 15_000)
    assert (told["range"]["cut"], told["cut"], len(told["tasks"]) <= 300) == (False, True, True)
    more = drawn(reader, "tide/1", options={"final": "3000000"}).json["range"]
    assert (more["cut"], more["points"] >= 100_000) == (True, True)


@pytest.mark.parametrize(
    "points", [{"initial": "soon"}, {"initial": "5", "final": "3"}, {"start": "5", "stop": "3"}]
)
def test_points_between_which_there_is_nothing_are_refused_before_a_run_is(reader, points):
    refused = drawn(reader, "tide/1", options=points)
    assert refused.status in (409, 422), refused.body
    assert any(text.encode() in refused.body for text in points.values())


def test_what_a_request_would_give_makes_the_graph(reader):
    """Of a template that cannot be rendered without it, every finding is told."""
    bare = drawn(reader, "named/1")
    assert (bare.status, bare.code) == (422, "invalid_definition")
    assert bare.json["findings"][0]["message"]
    assert edges(drawn(reader, "named/1", parameters={"NAMES": ["x", "y"]})) == ["1/x 1/y"]
    no_object = drawn(reader, "named/1", parameters=7)
    assert (no_object.status, no_object.code) == (422, "invalid")


def test_parameters_may_be_larger_than_a_url(reader):
    names = [f"n{number}{'x' * 200}" for number in range(100)]
    chain = edges(drawn(reader, "named/1", parameters={"NAMES": names}))
    assert f"1/{names[0]} 1/{names[1]}" in chain


def test_stages_are_drawn_though_a_parameter_is_lacking(reader):
    assert edges(drawn(reader, "vis/1.0.0")) == ["1/a 1/b"]


def test_what_an_earlier_version_kept_in_python_is_not_read_by_a_server(server, reader):
    """It was executed by whoever read it; since then what it amounts to is kept."""
    files = (StoredFile("cycle.py", PYTHON.encode()),)
    kept = StoredDefinition(
        digest="", workflow="old", kind="python", text="cycle.py", files=files
    )
    new = NewWorkflow(name="old", version="1", definition=sealed(kept), runnable=True)
    server.do(server.store.register([new]))
    told = drawn(reader, "old/1")
    assert (told.status, told.json["findings"][0]["code"]) == (422, "python-definition")


@pytest.mark.req("R007-12")
def test_what_a_python_file_amounts_to_is_drawn(server, reader, tmp_path):
    (tmp_path / "cycle.py").write_text(PYTHON)
    bundles = read_bundles([tmp_path / "cycle.py"], Findings(), version="1")
    files = {path: content.decode() for path, content in bundles[0].files.items()}
    bundle = {"files": files, "name": bundles[0].name, "version": "1"}
    made = server.caller("submit").post("/workflows", {"bundles": [bundle]})
    assert made.status == 201, made.body
    assert edges(drawn(reader, "cycle/1")) == ["1/a 1/b"]


def test_only_those_who_may_see_a_workflow_see_its_graph(server, reader):
    other = server.caller("read", names=("ebb",))
    assert drawn(other, "tide/1").status == 403
    assert drawn(reader, "none/1").status == 404
