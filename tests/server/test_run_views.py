"""Runs as the web page asks for them: rows, the graph with its edges, a summary, actions."""

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import PreparedRun


@pytest.fixture(scope="module")
def tidewheel(tmp_path_factory):
    return CommandLine(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def look(tidewheel):
    """A view of the run, which waits for somebody: a failed model."""
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        reader = running.caller("read")
        yield lambda view: reader.get(f"/runs/{in_path(run.name)}{view}").json


def test_every_task_is_a_row_in_the_words_of_the_event_stream(look):
    seen = look("/tasks")
    rows = {row["id"]: row for row in seen["tasks"]}
    assert rows["1/prep"]["state"] == "succeeded" and not rows["1/prep"]["in_pool"]
    assert rows["1/model_a"]["submit"] == 1
    assert set(seen["nodes"]) == {row["name"] for row in seen["tasks"]}
    assert seen["points"][0] == "1" and seen["points_left_out"] == 0
    assert seen["cursor"]


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
    assert seen["causes_count"] == len(whole["causes"]) and seen["lost"] == len(whole["lost"])


def test_what_would_help_can_be_sent_as_it_is(look):
    """The actions of a reason are commands: a dry run of each is understood."""
    [why] = look("/why?ids=1/post")["tasks"]
    actions = [action for reason in why["reasons"] for action in reason["actions"]]
    assert {"verb": "trigger", "ids": ["1/post"]} in actions or actions
