"""Too much to do: who is let in and who has to come again (RELIABILITY, "Overload")."""

import asyncio
import socket
import threading
from http.client import HTTPConnection

import pytest

from tests.server.conftest import register
from tests.support.event_reader import EventReader
from tests.support.http_server import running_server
from tests.support.patience import allowed, eventually
from tests.support.raw_http import RawConnection
from tidewheel.config import ServerSettings, StoreSettings
from tidewheel.core.queue.access import Scope
from tidewheel.errors import BadSetting
from tidewheel.server.call import Call
from tidewheel.server.errors import QuotaSpent
from tidewheel.server.load_shedding import RateLimit, Urgency
from tidewheel.server.route_table import ROUTES
from tidewheel.server.routes import Needs, Open, Route, no_name

SHARES = {
    "streams_max": 1,
    "reads_max": 2,
    "submits_max": 3,
    "claims_max": 4,
    "cancels_max": 5,
}
# From the most urgent on; reports have no limit.
ORDER = (Urgency.CANCEL, Urgency.CLAIM, Urgency.SUBMIT, Urgency.READ, Urgency.STREAM)
LIMITS = dict(zip(ORDER, reversed(SHARES.values()), strict=True))
READERS = Needs(scopes=(Scope.READ,), names=no_name)


class Busy:
    """Requests that are under way until they are let go on."""

    def __init__(self):
        self._begun, self._go_on = threading.Semaphore(0), threading.Event()
        self._threads, self.replies = [], []

    async def handler(self, call: Call) -> object:
        self._begun.release()
        await asyncio.to_thread(self._go_on.wait, 30)
        return {"path": call.path}

    async def store_handler(self, call: Call) -> object:
        """Keeps one of the connections with which the store looks."""

        def script(tx):
            del tx
            self._begun.release()
            self._go_on.wait(30)

        await call.store.look(script)
        return {}

    def begins(self, ask):
        """One more request, which is under way afterwards."""
        thread = threading.Thread(target=lambda: self.replies.append(ask()))
        self._threads.append(thread)
        thread.start()
        assert self._begun.acquire(timeout=allowed(15))

    def ends(self):
        self._go_on.set()
        for thread in self._threads:
            thread.join(20)


async def quick(call: Call) -> object:
    return {"path": call.path}


def route(path, handler, urgency, method="POST"):
    return Route(
        method=method, path=path, guard=READERS, handler=handler, says="X.", urgency=urgency
    )


@pytest.fixture
def busy():
    made = Busy()
    yield made
    made.ends()


def test_the_least_urgent_are_turned_away_first_and_reports_never(tmp_path, busy):
    """Heartbeat and completion before cancel, claim, submit, read, stream."""
    routes = (
        route("/busy", busy.handler, Urgency.REPORT),
        *(route(f"/{kind.name}", quick, kind) for kind in Urgency),
    )
    with running_server(f"sqlite:///{tmp_path}/t.db", routes, **SHARES) as server:
        known = server.caller("read")
        for under_way in range(7):
            refused = {kind for kind in Urgency if known.post(f"//{kind.name}").status == 503}
            assert refused == {kind for kind in ORDER if under_way >= LIMITS[kind]}
            busy.begins(lambda: known.post("//busy"))
        reply = known.post("//READ")
        assert (reply.code, int(reply.headers["retry-after"]) in range(1, 4)) == (
            "overloaded",
            True,
        )
        busy.ends()
        assert [reply.status for reply in busy.replies] == [200] * 7
        assert {known.post(f"//{kind.name}").status for kind in Urgency} == {200}


def test_who_was_turned_away_did_no_work(tmp_path, busy):
    """Admission before work: nobody is even asked who they are."""
    routes = (route("/busy", busy.handler, Urgency.REPORT), *ROUTES)
    with running_server(f"sqlite:///{tmp_path}/t.db", routes, **SHARES) as server:
        stranger, known = server.stranger(), server.caller("read")
        assert stranger.get("/tasks").status == 401
        busy.begins(lambda: known.post("//busy"))
        busy.begins(lambda: known.post("//busy"))
        assert stranger.get("/tasks").code == "overloaded"
        busy.ends()


def test_a_claim_that_waits_for_tasks_takes_nobody_s_place(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", reads_max=1, streams_max=1) as server:
        caller, client = server.caller("worker"), server.caller("submit")
        worker = register(caller, "q")
        got = []
        body = {"worker": worker, "wait_s": 15}
        waiting = [
            threading.Thread(target=lambda: got.append(caller.post("/queues/q/claim", body)))
            for _ in range(3)
        ]
        for thread in waiting:
            thread.start()
        # They are all let in, and so is whoever looks meanwhile; each gets its task.
        while len(got) < 3:
            assert client.post("/tasks", {"queue": "q", "spec": 1}).status == 201
            assert caller.get("/queues/q").status in (200, 503)
        for thread in waiting:
            thread.join(20)
        assert [reply.status for reply in got] == [200, 200, 200]
        assert caller.get("/queues/q").status == 200


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_workers_are_heard_while_every_connection_to_the_database_is_busy(
    database, tmp_path, busy, request
):
    """What workers report has connections of its own."""
    url = f"sqlite:///{tmp_path}/t.db"
    if database == "postgres":
        url = request.getfixturevalue("postgres_url")
    routes = (route("/busy", busy.store_handler, Urgency.READ, "GET"), *ROUTES)
    where = StoreSettings(url=url, connections_max=2)
    with running_server(where, routes) as server:
        caller, stranger = server.caller("worker", "submit"), server.stranger()
        worker = register(caller, "q")
        caller.post("/tasks", {"id": "t", "queue": "q", "spec": 1})
        [task] = caller.post("/queues/q/claim", {"worker": worker}).json["tasks"]
        for _ in range(2):  # as many as there are
            busy.begins(lambda: caller.get("//busy"))
        held = {"worker": worker, "attempt": task["attempt"]}
        beats = {"worker": worker, "beats": [{"id": "t", "attempt": task["attempt"]}]}
        assert caller.post("/heartbeats", beats).json["answers"][0]["answer"] == "go_on"
        assert caller.post("/tasks/t/started", held).status == 200
        assert caller.post("/tasks/t/finish", {**held, "ending": "succeeded"}).status == 200
        assert stranger.get("//readyz").status == 200
        assert busy.replies == []  # they were busy all the time
        busy.ends()


def test_too_many_connections_keep_no_worker_from_reporting(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", connections_max=3) as server:
        caller = server.caller("worker")
        worker = register(caller, "q")
        idle = [RawConnection(server.address) for _ in range(3)]
        for connection in idle:  # of people who are known, and say nothing more
            assert connection.ask(request("GET", "/api/v1/session", caller))[0] == 200
        beats = {"worker": worker, "beats": []}
        assert caller.post("/heartbeats", beats).status == 200
        assert caller.get("/tasks").status == 503
        assert server.stranger().get("//healthz").status == 200
        for connection in idle:
            connection.close()


# ---- strangers ----


def request(method, path, caller=None, body=b"", **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if caller is not None:
        lines.append(f"Authorization: Bearer {caller.token}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def opened(server, data=b""):
    host, _, port = server.address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(data)
    return connection


def status_of(server, data):
    connection = RawConnection(server.address)
    try:
        return connection.ask(data)[0]
    finally:
        connection.close()


def works(caller, worker):
    """What known clients do: all of it is answered."""
    replies = [
        caller.get("/tasks"),
        caller.post("/tasks", {"queue": "q"}),
        caller.post("/queues/q/claim", {"worker": worker}),
    ]
    return [reply.status for reply in replies] == [200, 201, 200]


@pytest.mark.parametrize("limits", [{"connections_max": 8}, {"connections_per_address_max": 8}])
def test_idle_strangers_make_room_for_whoever_is_known(tmp_path, limits):
    """S27, H8: from the same address, too; the stranger who was there longest goes first."""
    with running_server(f"sqlite:///{tmp_path}/t.db", **limits) as server:
        caller = server.caller("worker", "submit")
        worker = register(caller, "q")
        friend = HTTPConnection(server.address, timeout=20)
        shown = {"Authorization": f"Bearer {caller.token}"}
        friend.request("GET", "/api/v1/session", headers=shown)
        assert friend.getresponse().read()
        friend.auto_open = 0
        idle = [opened(server) for _ in range(30)]
        assert works(caller, worker)
        assert idle[0].recv(1) == b""  # closed
        idle[-1].sendall(request("GET", "/healthz"))
        assert idle[-1].recv(12) == b"HTTP/1.1 200"
        friend.request("GET", "/api/v1/session", headers=shown)  # the connection is still there
        answer = friend.getresponse()
        assert answer.status == 200 and answer.read()
        for connection in (friend, *idle):
            connection.close()


def test_an_address_that_is_full_of_known_clients_takes_no_more_connections(tmp_path):
    limits = {"connections_per_address_max": 3}
    with running_server(f"sqlite:///{tmp_path}/t.db", **limits) as server:
        asks = request("GET", "/api/v1/session", server.caller("read"))
        known = [RawConnection(server.address) for _ in range(3)]
        assert [one.ask(asks)[0] for one in known] == [200, 200, 200]
        one_more = opened(server)
        assert one_more.recv(12) == b"HTTP/1.1 503"
        one_more.close()
        known[0].close()
        eventually(lambda: status_of(server, asks) == 200, "room again")
        for one in known:
            one.close()


def test_a_named_proxy_holds_as_many_connections_as_it_wants(tmp_path):
    """But nobody behind it may have more requests at the door than an address may."""
    limits = {"connections_per_address_max": 2, "proxies": ("127.0.0.1",)}
    with running_server(f"sqlite:///{tmp_path}/t.db", **limits) as server:
        slow = request("POST", "/login", X_Forwarded_For="6.6.6.6", Content_Length=100)
        idle = [opened(server, slow + b"c") for _ in range(2)]
        asks = request("GET", "/login", X_Forwarded_For="6.6.6.6")
        eventually(lambda: status_of(server, asks) == 503, "full")
        other = request("GET", "/login", X_Forwarded_For="7.7.7.7")
        assert status_of(server, other) == 200
        for one in idle:
            assert one.recv(12) == b"HTTP/1.1 408"
            one.close()


def test_a_body_that_comes_slowly_takes_nobody_s_place(tmp_path):
    """S27, H8: neither a stranger's at the login nor that of somebody who is known."""
    limits = {"reads_max": 2, "submits_max": 3, "claims_max": 3, "body_seconds_max": 5.0}
    with running_server(f"sqlite:///{tmp_path}/t.db", **limits) as server:
        caller = server.caller("worker", "submit")
        worker = register(caller, "q")
        login = request("POST", "/login", Content_Length=100)
        tasks = request(
            "POST", "/api/v1/tasks", caller, Content_Length=100, Content_Type="application/json"
        )
        slow = [opened(server, login + b"c") for _ in range(10)]
        slow += [opened(server, tasks + b"{") for _ in range(10)]
        assert works(caller, worker)
        # Those at the login are told after 2 s, without waiting for anybody else's limit.
        assert [one.recv(12) for one in slow[:10]] == [b"HTTP/1.1 408"] * 10
        for one in slow:
            one.close()


def test_a_login_has_at_most_a_kibibyte(server):
    """H8."""
    login = request("POST", "/login", Content_Length=1025)
    assert status_of(server, login + b"x" * 1025) == 413


def test_what_strangers_ask_for_takes_no_place_of_those_who_are_known(tmp_path, busy):
    """H8."""
    path = Route(
        method="GET",
        path="/open",
        guard=Open(because="it is a test"),
        handler=busy.handler,
        says="X.",
    )
    limits = {"reads_max": 1, "strangers_max": 2}
    with running_server(f"sqlite:///{tmp_path}/t.db", (path, *ROUTES), **limits) as server:
        stranger, known = server.stranger(), server.caller("read")
        for _ in range(2):
            busy.begins(lambda: stranger.get("//open"))
        assert stranger.get("//open").code == "overloaded"
        assert stranger.get("//healthz").status == 200
        assert known.get("/tasks").status == 200
        busy.ends()


RANKS = {
    "POST /api/v1/heartbeats": Urgency.REPORT,
    "POST /api/v1/tasks/{id}/finish": Urgency.REPORT,
    "POST /api/v1/tasks/{id}/heartbeat": Urgency.REPORT,
    "POST /api/v1/tasks/{id}/yield": Urgency.REPORT,
    "PATCH /api/v1/tasks/{id}": Urgency.REPORT,  # seed 003 reports an end so
    "POST /api/v1/tasks/cancel": Urgency.CANCEL,
    "POST /api/v1/tasks/{id}/cancel": Urgency.CANCEL,
    "POST /api/v1/queues/{queue}/pause": Urgency.CANCEL,
    "POST /api/v1/queues/{queue}/claim": Urgency.CLAIM,
    "POST /api/v1/tasks/{id}/claim": Urgency.CLAIM,
    "POST /api/v1/tasks": Urgency.SUBMIT,
    "GET /api/v1/tasks": Urgency.READ,
    "GET /api/v1/workers/{id}/channel": Urgency.STREAM,
}


def test_each_request_has_the_urgency_that_the_documents_say():
    found = {route.verb: route.rank for route in ROUTES}
    assert {verb: found[verb] for verb in RANKS} == RANKS


# ---- quotas ----


def test_a_queue_takes_so_many_tasks_a_second_and_others_are_not_concerned(tmp_path):
    """429 is the caller's quota, 503 the server's trouble."""
    # So slow that nothing flows in while the test runs: a burst of one.
    with running_server(f"sqlite:///{tmp_path}/t.db", submit_rate=0.001) as server:
        client = server.caller("submit")
        assert client.post("/tasks", {"queue": "a", "spec": 1}).status == 201
        reply = client.post("/tasks", {"queue": "a", "spec": 1})
        assert (reply.status, reply.code) == (429, "quota")
        assert int(reply.headers["retry-after"]) >= 900
        assert client.post("/tasks", [{"queue": "b"}, {"queue": "a"}]).status == 429
        assert client.post("/tasks", {"queue": "b", "spec": 1}).status == 201
        assert len(client.get("/tasks?queue=a").json["tasks"]) == 1
        assert client.get("/tasks").status == 200


def test_a_repeated_request_is_answered_without_a_second_count(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", submit_rate=0.001) as server:
        client = server.caller("submit")
        replies = [
            client.post("/tasks", {"queue": "a"}, Idempotency_Key="k").status for _ in range(3)
        ]
        assert replies == [201, 201, 201]


def test_m6_each_token_has_quotas_that_its_message_names(tmp_path):
    """M6: requests, runs, bytes and login links; those who administer the server have none."""
    few = [f"{one}=0.001" for one in ("requests", "runs", "bytes", "links", "tasks")]
    tries = {
        "requests": lambda one: one.get("/tasks"),
        "tasks": lambda one: one.post("/tasks", {"queue": "a"}),
        "runs": lambda one: one.post("/runs", {"workflow": "a/w", "flow": ""}),
        "bytes": lambda one: one.post("/tasks", {"queue": "a"}),
        "links": lambda one: one.post("/login-links"),
    }
    for quota, one_try in tries.items():
        quotas = tuple(one for one in few if one.startswith(quota))
        with running_server(f"sqlite:///{tmp_path}/{quota}.db", quotas=quotas) as server:
            caller, admin = server.caller("submit", "read"), server.caller("admin")
            assert one_try(caller).status not in (429, 500)
            reply = one_try(caller)
            assert (reply.status, reply.code) == (429, "quota"), (quota, reply.body)
            assert (
                "0.001" in reply.json["message"] and "token 'a test'" in reply.json["message"]
            )
            assert int(reply.headers["retry-after"]) > 900
            assert {one_try(admin).status for _ in range(3)}.isdisjoint({429, 500})
            figures = admin.get("//metrics").body.decode()
            assert f'tidewheel_quota_refused_total{{quota="{quota}"}} 1' in figures
            other = server.caller("submit", "read")  # of the same team
            is_of_team = quota in ("tasks", "runs")
            assert (one_try(other).status == 429) is is_of_team


def test_m6_no_quota_keeps_a_worker_from_its_work(tmp_path):
    quotas = ("requests=0.001", "bytes=0.001")
    with running_server(f"sqlite:///{tmp_path}/t.db", quotas=quotas) as server:
        worker = server.caller("worker")
        own = register(worker, "q")
        for _ in range(5):
            assert worker.post("/heartbeats", {"worker": own, "beats": []}).status == 200
            assert worker.post("/queues/q/claim", {"worker": own}).status == 200


def test_who_changes_a_task_as_workers_do_and_is_none_has_quotas(tmp_path):
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, quotas=("requests=0.5",)) as server:
        caller, worker = server.caller("submit"), server.caller("worker")
        replies = [caller.patch("/tasks/none", {"name": "x"}).status for _ in range(12)]
        assert replies[0] == 404 and replies[-1] == 429
        told = {worker.patch("/tasks/none", {"state": "running"}).status for _ in range(12)}
        assert told == {404}


def test_m6_one_token_holds_only_its_share_of_the_event_streams(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", quotas=("streams=2",)) as server:
        greedy, other = server.caller("read"), server.caller("read")
        held = [EventReader(greedy).ready() for _ in range(2)]
        reply = greedy.get("/events")
        assert (reply.status, reply.code) == (429, "quota")
        assert "2 open streams of events" in reply.json["message"]
        EventReader(other).ready().close()
        held[0].close()
        eventually(lambda: _can_follow(greedy), "its place is free again")
        held[1].close()


def test_a_token_gets_no_more_by_the_sessions_that_are_made_from_it(tmp_path):
    quotas = ("requests=0.5", "streams=1")
    with running_server(f"sqlite:///{tmp_path}/t.db", quotas=quotas) as server:
        caller, stranger = server.caller("read"), server.stranger()
        code = caller.post("/login-links").json["path"].partition("code=")[2].encode()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        entered = stranger.ask("POST", "//login", b"code=" + code, **form)
        session = {"Cookie": entered.headers["set-cookie"].partition(";")[0]}
        held = EventReader(caller).ready()
        assert not _can_follow(caller, session)
        held.close()
        while caller.get("/tasks").status == 200:
            pass
        assert stranger.get("/tasks", **session).code == "quota"


def _can_follow(caller, shown=None):
    connection = HTTPConnection(caller.address, timeout=20)
    try:
        shown = shown or {"Authorization": f"Bearer {caller.token}"}
        connection.request("GET", "/api/v1/events", headers=shown)
        return connection.getresponse().status == 200
    finally:
        connection.close()


@pytest.mark.parametrize("text", ["requests", "requests=", "requests=-1", "wishes=3", "=", "x"])
def test_a_quota_that_cannot_be_is_refused(text):
    with pytest.raises(BadSetting, match="requests, tasks, runs"):
        ServerSettings(quotas=(text,))
    assert ServerSettings(quotas=("requests=off",)).quota("requests") is None


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_bucket_fills_while_nobody_takes_and_never_above_ten_seconds_worth():
    clock = Clock()
    quota = RateLimit(2.0, clock)
    quota.take({"q": 20})
    with pytest.raises(QuotaSpent) as spent:
        quota.take({"q": 1})
    assert spent.value.seconds == 0.5
    clock.now = 0.5
    quota.take({"q": 1})
    clock.now = 1000.0
    quota.take({"q": 20})
    with pytest.raises(QuotaSpent):
        quota.take({"q": 1})


def test_a_list_that_is_longer_than_the_bucket_is_taken_once_and_paid_for_later():
    clock = Clock()
    quota = RateLimit(1.0, clock)
    quota.take({"q": 110})
    with pytest.raises(QuotaSpent) as spent:
        quota.take({"q": 1})
    assert spent.value.seconds == 101.0
    clock.now = 101.0
    quota.take({"q": 1})
