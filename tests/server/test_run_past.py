"""A run as it was: made again from what every batch changed."""

import random

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import FLOW, NOW, PreparedRun
from tidewheel.core.sched import events
from tidewheel.core.sched.events import JobEnd

TIMES = {"queued_at", "started_at", "ended_at", "exit_status", "worker"}


@pytest.fixture(scope="module")
def look(tmp_path_factory):
    """A run that went on until it had forgotten its first points."""
    tidewheel = CommandLine(tmp_path_factory.mktemp("past"))
    run = PreparedRun(tidewheel, FLOW.replace("point = 3", "point = 9")).starts()
    for point in range(1, 7):
        for name in ("prep", "model_a", "model_b", "post"):
            run.succeeds(f"{point}/{name}")
    run.succeeds("7/prep").fails("7/model_a")
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        reader = running.caller("read")
        path = f"/runs/{in_path(run.name)}"
        yield lambda view: reader.get(path + view)


def rows(document):
    return {
        one["id"]: {name: value for name, value in one.items() if name not in TIMES}
        for one in document["tasks"]
    }


def test_the_last_batch_is_the_present(look):
    now = look("/tasks").json
    for query in ("", f"?batch={now['batch']}", "?batch=999999", "?at=2999-01-01T00:00:00Z"):
        then = look(f"/past{query}").json
        assert rows(then) == rows(now), query
        assert then["batch"] <= then["last_batch"] == now["batch"]
        assert then["status"] == now["run"]["status"]


def test_behind_each_batch_is_what_that_batch_left(look):
    """Batch by batch: whatever a batch touched is, behind it, as the batch says."""
    changes = look("/changes").json["batches"]
    assert len(changes) > 5
    for one in changes:
        then = look(f"/past?batch={one['batch']}").json
        assert then["batch"] == one["batch"] and then["at"] == one["at"]
        found = rows(then)
        for task in one["tasks"]:
            if task["state"] != "future":
                there = found[task["id"]]
                assert (there["state"], there["in_pool"]) == (task["state"], task["in_pool"])
        pooled = {key for key, row in found.items() if row["in_pool"]}
        assert not pooled & set(one["left_pool"])


def test_what_the_scheduler_has_forgotten_is_shown_all_the_same(look):
    then = look("/past").json
    assert rows(then)["1/post"]["state"] == "succeeded"
    forgotten = look("/past?batch=10").json
    assert rows(forgotten)["1/prep"]["submit"] == 1


def test_what_came_later_is_not_known_then(look):
    first = look("/past?batch=1").json
    assert "7/model_a" not in rows(first)
    assert {"1/prep"} <= rows(first).keys()
    assert first["around"][0]["batch"] == 1 and len(first["around"]) > 1


def test_before_everything_there_is_nothing(look):
    for query in ("?batch=0", "?at=1999-01-01T00:00:00Z"):
        then = look(f"/past{query}").json
        assert then["tasks"] == [] and then["batch"] == 0 and then["status"] == "created"
        assert then["around"], "what happened next is shown"


def test_a_time_that_is_none_says_how_to_write_one(look):
    refused = look("/past?at=yesterday")
    assert 400 <= refused.status < 500 and "2030-01-01" in refused.json["message"]
    assert look("/past?batch=-1").status == 422


def test_the_graph_of_a_moment_has_the_states_of_that_moment(look):
    """Around the pool or around what is asked for, and never what came later."""
    for batch in (1, 4, 12):
        then = rows(look(f"/past?batch={batch}").json)
        pooled = {key for key, row in then.items() if row["in_pool"]}
        for query, there in (("", pooled), ("&n=2&ids=1/prep", {"1/prep", "1/post"})):
            graph = look(f"/past/graph?batch={batch}{query}").json
            drawn = {one["id"]: one["state"] for one in graph["tasks"]}
            assert graph["batch"] == batch and drawn.keys() >= there
            for key, state in drawn.items():
                assert state == (then[key]["state"] if key in then else "future")
    assert {one["state"] for one in look("/past/graph?batch=1").json["edges"]} == {"open"}


def test_the_graph_of_the_last_batch_is_that_of_the_present(look):
    now, last = look("/graph").json, look("/past").json["batch"]
    then = look(f"/past/graph?batch={last}").json

    def in_order(one):
        return sorted(one["edges"], key=lambda edge: (edge["from"], edge["to"], edge["output"]))

    assert rows(then) == rows(now)
    assert in_order(then) == in_order(now) and then["points"] == now["points"]


def test_what_a_batch_did_is_told_with_where_each_task_was_before(look):
    """Each task is before a batch as it was behind the one before it."""
    last = look("/past").json["batch"]
    before = {}
    for batch in range(1, last + 1):
        then = look(f"/past?batch={batch}").json
        for one in then["changed"]:
            was = before.get(one["id"], {"state": "future"})["state"]
            assert one["before"] == was
            assert one["state"] == rows(then).get(one["id"], {"state": "future"})["state"]
        before = rows(then)
    failed = {one["id"]: one for one in then["changed"]}["7/model_a"]
    assert failed["made"] == ["failed"] and failed["state"] == "failed"


def test_no_more_tasks_come_than_are_asked_for_but_whole_points(look):
    everything = look("/past?limit=20000").json
    few = look("/past?limit=6").json
    assert few["points"] == everything["points"][-len(few["points"]) :]
    assert few["points_left_out"] == len(everything["points"]) - len(few["points"]) > 0
    kept = {key: row for key, row in rows(everything).items() if row["point"] in few["points"]}
    assert rows(few) == kept
    assert look("/past?limit=0").status == 422


WIDE = """
[task parameters]
    i = 1..90
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 8
    runahead limit = P1
    [[graph]]
        P1 = \"\"\"
            begin => wide<i> => end
            end[-P1] => begin
        \"\"\"
[runtime]
    [[begin, wide<i>, end]]
"""


def test_a_moment_is_the_same_from_wherever_one_comes(tmp_path):
    """Thousands of changes, so that what was worked out for one moment helps with the next."""
    tidewheel = CommandLine(tmp_path)
    run = PreparedRun(tidewheel, WIDE).starts()
    while active := [task for task in run.pool.tasks.values() if task.is_active]:
        run.happens(
            *(events.JobEnded(one.key, one.submit, JobEnd.SUCCEEDED, NOW) for one in active)
        )
    seed = random.randrange(2**32)
    path = f"/runs/{in_path(run.name)}"
    batches = range(run.batch + 1)
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        reader = running.caller("read")
        # Each further than any before, and then here and there.
        first = [reader.get(f"{path}/past?batch={batch}").json for batch in batches]
        for batch in random.Random(seed).sample(batches, len(batches)):
            again = reader.get(f"{path}/past?batch={batch}").json
            assert rows(again) == rows(first[batch]), (seed, batch)
            assert again["around"] == first[batch]["around"]
        assert rows(first[-1]) == rows(reader.get(f"{path}/tasks").json)
    done = [sum(row["state"] == "succeeded" for row in rows(one).values()) for one in first]
    assert done == sorted(done) and done[-1] == 8 * 92
