"""Runs in the event stream: every batch with the tasks that it moved, in words."""

import random
from itertools import pairwise

import pytest

from tests.support.event_reader import EventReader, Reduced
from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import PreparedRun
from tidewheel.core.sched.events import JobEnd, JobEnded

VERBS = ("hold", "release", "trigger", "set", "remove")


@pytest.fixture
def run(tidewheel):
    return PreparedRun(tidewheel)


@pytest.fixture
def server(tidewheel, run):
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        running.path = f"/runs/{in_path(run.name)}"
        yield running


@pytest.fixture
def reader(server):
    return server.caller("read")


@pytest.fixture
def follow(reader):
    opened = []

    def following(caller=reader, **query):
        opened.append(EventReader(caller, **query))
        return opened[-1].ready()

    yield following
    for one in opened:
        one.close()


def snapshot_of(reader, run):
    reply = reader.get(f"/events/snapshot?run={in_path(run.name)}")
    assert reply.status == 200, reply.body
    return reply.json


def states(data):
    return {one["id"]: (one["state"], one["in_pool"]) for one in data["tasks"]}


def test_each_batch_tells_which_tasks_it_moved(follow, run):
    stream = follow(run=run.name, kind="run")
    run.starts().starts_job("1/prep")
    run.happens(JobEnded(run.key("1/prep"), 1, JobEnd.SUCCEEDED, run.now))
    begun, started, ended = (told.data for told in stream.some(3))
    assert (begun["run"], begun["workflow"], begun["status"]) == (
        run.name,
        "forecast",
        "running",
    )
    assert [one["batch"] for one in (begun, started, ended)] == [1, 2, 3]
    assert states(begun)["1/prep"] == ("preparing", True)
    assert states(started) == {"1/prep": ("running", True)}
    moved = states(ended)
    assert moved["1/prep"] == ("succeeded", False)
    assert moved["1/model_a"] == ("preparing", True)
    [prep] = [one for one in ended["tasks"] if one["id"] == "1/prep"]
    assert (prep["point"], prep["name"], prep["submit"], prep["flows"]) == ("1", "prep", 1, [1])


def test_submissions_are_told_with_their_point_and_name(follow, run):
    stream = follow(run=run.name, kind="task")
    run.starts().fails("1/prep")
    told = [one.data for one in stream.some(3)]
    assert [one["to"] for one in told] == ["ready", "running", "failed"]
    assert {(one["run"], one["point"], one["name"], one["submit"]) for one in told} == {
        (run.name, "1", "prep", 1)
    }


def test_a_run_can_be_named_by_its_number_or_the_beginning_of_its_name(follow, run, reader):
    for text in (str(run.view.number), "fore"):
        assert follow(run=text).answer.status == 200
        assert reader.get(f"/events/snapshot?run={text}").json["run"]["run"] == run.name


def test_a_token_for_another_workflow_hears_nothing_of_a_run(server, follow, run):
    """S5."""
    other = server.caller("read", names=["nightly*", "queue:*"])
    assert other.get(f"/events?run={in_path(run.name)}").status == 403
    assert other.get(f"/events/snapshot?run={in_path(run.name)}").status == 403
    stream = follow(other)
    run.starts()
    server.caller("submit").post("/tasks", {"id": "plain", "spec": 1})
    assert stream.next().data["id"] == "plain"


def test_a_run_that_is_deleted_says_so_last(server, follow, run):
    run.starts().is_let_go()
    stream = follow(run=run.name)
    server.do(server.store.delete_run(run.view.number))
    [told] = stream.some(1)
    assert (told.kind, told.data["status"], told.data["tasks"]) == ("run", "deleted", [])


def test_a_snapshot_and_the_batches_after_it_are_the_pool(server, follow, run, reader):
    """RELIABILITY 42; the seed is printed by pytest-randomly."""
    dice = random.Random(random.random())
    operator = server.caller("operate")
    run.starts()
    state = Reduced(snapshot_of(reader, run))
    stream = follow(run=run.name, last=snapshot_of(reader, run)["id"])
    batches = []
    for _ in range(12):
        active = [one["id"] for one in state.pool.values() if one["state"] == "preparing"]
        if active and dice.random() < 0.6:
            dice.choice((run.succeeds, run.fails))(dice.choice(active))
        else:
            with run.answering():
                name = dice.choice(["1/prep", "1/model_a", "1/post", "2/prep", "2/model_b"])
                operator.post(f"{server.path}/{dice.choice(VERBS)}", {"ids": [name]})
        wanted = snapshot_of(reader, run)["run"]["batch"]
        while state.run["batch"] < wanted:
            told = stream.next()
            state.apply(told)
            if told.kind == "run":
                batches.append(told.data["batch"])
        seen = snapshot_of(reader, run)
        assert {**state.run} == seen["run"]
        assert state.pool == {one["id"]: one for one in seen["pool"]}
    assert all(later == before + 1 for before, later in pairwise(batches))
    shown = reader.get(f"{server.path}/pool?n=0").json
    assert {point["point"] for point in shown["points"]} == {
        one["point"] for one in state.pool.values()
    }
