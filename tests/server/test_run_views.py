"""Runs as the web page asks for them: rows, the graph with its edges, a summary, actions."""

import gzip
import json

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import PreparedRun


@pytest.fixture(scope="module")
def tidewheel(tmp_path_factory):
    return CommandLine(tmp_path_factory.mktemp("runs"))


PRODUCTS = """
[scheduling]
    [[graph]]
        R1 = PRODUCTS:finish-all => archive
[runtime]
    [[PRODUCTS]]
    [[waves, wind]]
        inherit = PRODUCTS
    [[archive]]
"""


WIDE = """
[task parameters]
    i = 1..400
[scheduling]
    [[graph]]
        R1 = part<i>
[runtime]
    [[part<i>]]
"""


class Look:
    """Views of one run, and the list of runs."""

    def __init__(self, reader, path):
        self.reader, self.path = reader, path

    def __call__(self, view):
        return self.reader.get(self.path + view).json

    def at(self, run, view):
        return self.reader.get(f"/runs/{in_path(run)}{view}").json

    def runs(self, query):
        return self.reader.get(f"/runs{query}").json


@pytest.fixture(scope="module")
def look(tidewheel):
    """A view of the run, which waits for somebody: a failed model."""
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    PreparedRun(tidewheel, PRODUCTS, "products").starts().succeeds("1/wind").fails("1/waves")
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        reader = running.caller("read")
        yield Look(reader, f"/runs/{in_path(run.name)}")


def test_every_task_is_a_row_in_the_words_of_the_event_stream(look):
    seen = look("/tasks")
    rows = {row["id"]: row for row in seen["tasks"]}
    assert rows["1/prep"]["state"] == "succeeded" and not rows["1/prep"]["in_pool"]
    assert rows["1/model_a"]["submit"] == 1
    assert set(seen["nodes"]) == {row["name"] for row in seen["tasks"]}
    assert seen["points"][0] == "1" and seen["points_left_out"] == 0
    assert seen["cursor"]


def test_rows_of_many_tasks_are_sent_compressed_to_those_who_can_unpack_them(look, tmp_path):
    tidewheel = CommandLine(tmp_path)
    run = PreparedRun(tidewheel, WIDE, "wide").starts()
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        reader, path = running.caller("read"), f"/runs/{in_path(run.name)}/tasks"
        plain = reader.get(path)
        packed = reader.get(path, accept_encoding="gzip, br")
    assert "content-encoding" not in plain.headers and len(plain.json["tasks"]) == 400
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert json.loads(gzip.decompress(packed.body))["tasks"] == plain.json["tasks"]
    assert 5 * len(packed.body) < len(plain.body)
    few = look.reader.get(f"{look.path}/tasks", accept_encoding="gzip")
    assert "content-encoding" not in few.headers and few.json["tasks"]


def test_the_graph_has_edges_with_what_they_wait_for(look):
    seen = look("/graph?n=2")
    states = {(one["from"], one["to"], one["output"]): one["state"] for one in seen["edges"]}
    assert states["1/prep", "1/model_a", "succeeded"] == "true"
    assert states["1/model_a", "1/post", "succeeded"] == "lost"
    assert states["1/model_b", "1/post", "succeeded"] == "open"
    ids = {task["id"] for task in seen["tasks"]}
    assert all(edge["from"] in ids and edge["to"] in ids for edge in seen["edges"])
    assert set(seen["families"]) == {task["name"] for task in seen["tasks"]}


def test_a_larger_window_shows_more_and_may_be_around_one_task(look):
    few, many = look("/graph?n=0"), look("/graph?n=2")
    assert len(few["tasks"]) < len(many["tasks"])
    around = look("/graph?n=1&ids=1/post")["tasks"]
    assert {one["id"] for one in around if one["distance"] == 0} == {"1/post"}
    assert {"1/model_a", "1/model_b"} <= {one["id"] for one in around}


def test_a_summary_says_how_far_it_is_and_what_to_look_at(look):
    seen = look("/summary")
    whole = look("")
    assert seen["counts"] == whole["counts"]
    assert seen["done"] == sum(point["done"] for point in whole["points"])
    assert (seen["tasks"], seen["total"]) == (10, 15)  # of two points, and of all three
    assert seen["causes_count"] == len(whole["causes"]) and seen["lost"] == len(whole["lost"])


def test_a_family_that_has_finished_is_not_told_as_succeeded(look):
    """`finish-all` is met by failures, too: nobody may read it as if all had succeeded."""
    [archive] = look.at("products/run1", "?ids=1/archive")["tasks"]
    [atom] = [one for each in archive["prerequisites"] for one in each["atoms"]]
    assert (atom["text"], atom["output"]) == ("1/PRODUCTS:finished-all", "finished")
    assert (atom["state"], atom["parent"]) == ("true", "2 of 2")
    edges = look.at("products/run1", "/graph?n=1")["edges"]
    assert {(one["from"], one["output"]) for one in edges} == {
        ("1/waves", "finished"),
        ("1/wind", "finished"),
    }


def test_what_would_help_can_be_sent_as_it_is(look):
    """Every reason, also what a failed job said, has its actions as commands of REST."""
    for task in ("1/post", "1/model_a"):
        [why] = look(f"/why?ids={task}")["tasks"]
        assert all("actions" in reason for reason in why["reasons"])
        actions = [action for reason in why["reasons"] for action in reason["actions"]]
        assert {("trigger", "1/model_a")} <= {(one["verb"], *one["ids"]) for one in actions}


def test_every_attempt_tells_when_it_waited_and_ran_and_what_it_asked_for(look):
    seen = look("/attempts")
    found = {(one["id"], one["submit"], one["attempt"]): one for one in seen["attempts"]}
    failed = found["1/model_a", 1, 1]
    assert failed["queued_at"] <= failed["claimed_at"] <= failed["ended_at"]
    assert failed["ended_by"] == "fail" and failed["asked"]["memory_bytes"] == 0
    waits = found["1/model_b", 1, 1]
    assert waits["worker"] is None and waits["ended_at"] is None
    assert not seen["left_out"] and look("/attempts?limit=1")["left_out"]


def test_the_critical_path_leads_back_through_what_was_waited_for(look):
    seen = look("/critical-path?id=1/model_a")
    assert [step["id"] for step in seen["steps"]] == ["1/prep", "1/model_a"]
    assert seen["seconds"] >= 0
    assert look("/critical-path")["steps"][0]["id"] == "1/prep"


def test_a_row_says_in_which_families_it_is_drawn(look):
    assert look("/tasks")["nodes"]["model_a"]["branch"] == ["MODELS"]


def test_runs_come_page_by_page_with_how_far_each_is(look):
    [_, run] = look.runs("?summary=true")["runs"]
    assert run["summary"]["counts"] == look("/summary")["counts"]
    assert look.runs("?summary=true")["summaries_left"] == 0
    page = look.runs("?limit=1")
    assert "summary" not in page["runs"][0] and page["next"] == page["runs"][0]["number"]
    page = look.runs(f"?limit=1&before={page['next']}")
    assert page["runs"][0]["number"] == page["next"] == run["number"]
    assert look.runs(f"?limit=1&before={page['next']}") == {"runs": [], "next": None}


def test_a_graph_that_is_known_is_told_by_what_has_changed(look):
    whole = look("/graph?n=2")
    assert whole["since"] is None and whole["version"]
    again = look(f"/graph?n=2&since={whole['version']}")
    assert again["since"] == again["version"] == whole["version"]
    assert (again["tasks"], again["edges"], again["families"]) == ([], [], {})
    assert not any(again["gone"].values())
    assert (again["points"], again["cut"]) == (whole["points"], whole["cut"])


def test_of_a_version_that_nobody_remembers_the_whole_graph_is_told(look):
    whole, other = look("/graph?n=2"), look("/graph?n=1")
    for version in ("0123", other["version"]):
        assert look(f"/graph?n=2&since={version}") == whole
