"""What stays open: channels of workers, claims that wait, and what a stop does to them."""

import http.client
import json
import threading

import pytest

from tests.server.conftest import register
from tests.support.http_server import Caller, running_server
from tests.support.patience import allowed, eventually
from tidewheel.core.queue.access import Scope
from tidewheel.server.call import Call
from tidewheel.server.routes import Needs, Route, no_name


class Channel:
    """Events as they come."""

    def __init__(self, caller, worker):
        self._connection = http.client.HTTPConnection(caller.address, timeout=allowed(20))
        headers = {"Authorization": f"Bearer {caller.token}"}
        self._connection.request("GET", f"/api/v1/workers/{worker}/channel", headers=headers)
        self.answer = self._connection.getresponse()

    def next(self):
        """The next event that says something; None at the end."""
        name = None
        while line := self.answer.readline():
            text = line.decode().rstrip()
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            if text.startswith("data: "):
                return name, json.loads(text.removeprefix("data: "))
        return None

    def until(self, name):
        while (event := self.next()) is not None and event[0] != name:
            pass
        return event

    def close(self):
        self.answer.close()
        self._connection.close()


@pytest.fixture
def listener(server):
    caller = server.caller("worker")
    caller.id = register(caller, "c")
    channel = Channel(caller, caller.id)
    yield caller, channel
    channel.close()


@pytest.mark.req("R003-40", "R003-41")
def test_a_worker_hears_at_once_what_to_cancel_and_when_there_is_work(client, listener):
    caller, channel = listener
    assert channel.answer.status == 200
    assert channel.answer.getheader("content-type").startswith("text/event-stream")
    client.post("/tasks", {"id": "heard", "queue": "c", "spec": 1})
    assert channel.until("wake") == ("wake", {})
    held = caller.post("/tasks/heard/claim", {"worker": caller.id}).json
    client.post("/tasks/heard/cancel")
    told = {"id": "heard", "attempt": held["attempt"]}
    assert channel.until("cancel") == ("cancel", told)
    again = Channel(caller, caller.id)
    assert again.until("cancel") == ("cancel", told)
    again.close()


def test_a_worker_hears_nothing_of_work_that_it_may_not_claim(server, admin):
    """It may serve more queues by pattern than its token is for."""
    caller = server.caller("worker", names=["workflow:mine"])
    caller.id = register(caller, "run:*")
    for run in ("mine/run1", "zebra/run1"):
        admin.post("/tasks", {"id": run, "queue": f"run:{run}", "spec": 1})
    assert caller.post("/tasks/mine%2Frun1/claim", {"worker": caller.id}).status == 200
    channel = Channel(caller, caller.id)
    assert channel.next() == ("wake", {})  # for whatever came before
    for number in range(3):
        admin.post("/tasks", {"id": f"zebra-{number}", "queue": "run:zebra/run1", "spec": 1})
    admin.post("/tasks/mine%2Frun1/cancel")
    assert channel.next()[0] == "cancel"
    admin.post("/tasks", {"id": "mine-2", "queue": "run:mine/run1", "spec": 1})
    assert channel.next() == ("wake", {})
    channel.close()


def test_nobody_listens_to_a_worker_of_another(server, listener):
    """S6."""
    caller, _ = listener
    other = Channel(server.caller("worker"), caller.id)
    assert other.answer.status == 404
    other.close()


def test_a_channel_ends_when_its_token_is_revoked(server, admin):
    """S4."""
    caller = server.caller("worker")
    channel = Channel(caller, register(caller, "c"))
    admin.post(f"/tokens/{caller.token.split('_')[1]}/revoke")
    assert channel.until("never") is None
    channel.close()


def test_a_stop_ends_channels_and_waiting_claims_without_a_failure(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        caller = server.caller("worker")
        worker = register(caller, "c")
        channel, got = Channel(caller, worker), []
        body = {"worker": worker, "wait_s": 50}
        asking = threading.Thread(
            target=lambda: got.append(caller.post("/queues/c/claim", body))
        )
        asking.start()
        admin = server.caller("admin")
        eventually(lambda: b"worker_channels 1" in admin.get("//metrics").body, "a channel")
    asking.join(20)
    # It had not begun to wait, or was let go; in no case it was cut off.
    assert got[0].json["tasks"] == []
    assert channel.until("never") is None
    channel.close()


def test_too_many_channels_are_turned_away(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", channels_max=1) as server:
        caller = server.caller("worker")
        worker = register(caller, "c")
        first = Channel(caller, worker)
        assert first.answer.readline()
        second = Channel(caller, worker)
        assert second.answer.status == 503
        assert int(second.answer.getheader("retry-after")) > 0
        second.close()
        first.close()


def test_a_mistake_of_ours_is_told_without_its_reasons_and_a_slow_store_in_time(tmp_path):
    """S29."""

    async def broken(call: Call) -> object:
        raise RuntimeError(f"secret {call.client}")

    async def stuck(call: Call) -> object:
        await call.server.stopping.wait()
        return {}

    guard = Needs(scopes=(Scope.READ,), names=no_name)
    routes = tuple(
        Route(method="GET", path=path, guard=guard, handler=handler, says="A test.")
        for path, handler in (("/broken", broken), ("/stuck", stuck))
    )
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, routes) as server:
        caller: Caller = server.caller("read")
        reply = caller.get("//broken")
        assert (reply.status, reply.code) == (500, "internal")
        assert b"secret" not in reply.body and b"RuntimeError" not in reply.body
    with running_server(url, routes, request_seconds_max=0.2) as server:
        reply = server.caller("read").get("//stuck")
        assert (reply.status, reply.code) == (503, "timed_out")
