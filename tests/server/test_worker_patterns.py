"""Workers that serve queues by pattern, over HTTP: what a token must cover."""

from itertools import count
from urllib.parse import quote

import pytest

from tests.server.conftest import register
from tests.server.test_streams import Channel

_numbers = count(1)


@pytest.fixture
def runs_worker(server):
    """A token for the queues of runs alone."""
    return server.caller("worker", queues=["run:*"])


@pytest.mark.parametrize("pattern", ["run:*", "run:nightly/*", "run:*/run1", "run:exact"])
def test_a_worker_may_serve_a_pattern_that_its_token_covers(runs_worker, pattern):
    body = {"name": "w", "queues": [pattern]}
    assert runs_worker.post("/workers", body).status == 201


@pytest.mark.parametrize(
    "pattern", ["*", "r*", "run*", "*run:*", "**", "run", "RUN:*", "run;*"]
)
def test_a_worker_may_not_serve_a_pattern_that_is_wider_than_its_token(runs_worker, pattern):
    """S6."""
    reply = runs_worker.post("/workers", {"name": "w", "queues": ["run:*", pattern]})
    assert reply.status == 403
    assert repr(pattern) in reply.json["message"]


def test_each_claim_of_a_pattern_worker_is_judged_by_its_real_queue(server, client):
    """S6: a pattern says nothing about workflows, so the queue of the claim does."""
    mine, theirs = f"run:mine/{next(_numbers)}", f"run:theirs/{next(_numbers)}"
    for queue in (mine, theirs):
        assert client.post("/tasks", {"queue": queue, "command": "true"}).status == 201
    caller = server.caller("worker", names=["workflow:mine"])
    worker = register(caller, "run:*")
    assert mine in caller.get("/ready-queues").json["queues"]
    assert theirs not in caller.get("/ready-queues").json["queues"]
    claimed = caller.post(f"/queues/{quote(mine, safe='')}/claim", {"worker": worker})
    assert len(claimed.json["tasks"]) == 1
    refused = caller.post(f"/queues/{quote(theirs, safe='')}/claim", {"worker": worker})
    assert refused.status == 403


def test_a_worker_hears_of_work_in_a_queue_that_its_pattern_matches(server, client):
    caller = server.caller("worker", queues=["run:*"])
    channel = Channel(caller, register(caller, "run:heard/*"))
    client.post("/tasks", {"queue": "run:heard/run1", "command": "true"})
    assert channel.until("wake") == ("wake", {})
    channel.close()
