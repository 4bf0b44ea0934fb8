"""The event stream over HTTP: nothing missed, nothing told twice, to those who may know it."""

import random
import socket
import threading
from itertools import count

import pytest

from tests.server.conftest import register
from tests.support.event_reader import EventReader, Reduced
from tests.support.http_server import Caller, running_server
from tests.support.patience import eventually

_numbers = count(1)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kind(request):
    return request.param


@pytest.fixture
def queue():
    """Of one test alone."""
    return f"q{next(_numbers)}"


@pytest.fixture
def follow(reader):
    """Open streams; they are closed afterwards."""
    opened = []

    def following(caller=reader, **query):
        opened.append(EventReader(caller, **query))
        return opened[-1]

    yield following
    for one in opened:
        one.close()


def put(client, queue, *names):
    for name in names:
        reply = client.post("/tasks", {"id": name, "queue": queue, "spec": 1})
        assert reply.status == 201, reply.body


def work_off(worker, queue):
    """Claim one task and finish it."""
    [task] = worker.post(f"/queues/{queue}/claim", {"worker": worker.id, "n": 1}).json["tasks"]
    body = {"worker": worker.id, "attempt": task["attempt"], "ending": "succeeded"}
    assert worker.post(f"/tasks/{task['id']}/finish", body).status == 200
    return task["id"]


@pytest.fixture(scope="module")
def worker(server):
    caller = server.caller("worker")
    caller.id = register(caller, "default")
    return caller


def test_every_step_of_a_task_is_told_as_it_happens(client, worker, follow, queue):
    stream = follow(queue=queue).ready()
    assert stream.answer.status == 200
    assert stream.answer.getheader("content-type").startswith("text/event-stream")
    put(client, queue, f"{queue}-a")
    work_off(worker, queue)
    told = [stream.next() for _ in range(3)]
    assert [one.kind for one in told] == ["task"] * 3
    assert [(one.data["signal"], one.data["from"], one.data["to"]) for one in told] == [
        (None, None, "ready"),
        ("claim", "ready", "running"),
        ("succeed", "running", "succeeded"),
    ]
    last = told[-1].data
    assert (last["id"], last["queue"], last["run"], last["point"]) == (
        *(f"{queue}-a", queue, None, None),
    )
    assert (last["attempt"], last["worker"], last["progress"]) == (1, worker.id, 1.0)
    assert last["at"].endswith("Z")
    assert len({one.id for one in told}) == 3


def test_a_stream_goes_on_from_an_id_in_a_header_or_a_parameter(client, follow, queue):
    first = follow(queue=queue).ready()
    put(client, queue, f"{queue}-a", f"{queue}-b", f"{queue}-c")
    a, b, c = first.some(3)
    assert follow(queue=queue, last=a.id).some(2) == [b, c]
    assert follow(queue=queue, since=b.id).some(1) == [c]
    # A browser that reconnects asks with the address of the first time.
    assert follow(queue=queue, since=a.id, last=b.id).some(1) == [c]


def test_a_burst_is_told_whole_to_who_was_there_and_who_comes_late(client, follow, queue):
    first = follow(queue=queue).ready()
    start, names = first.last, [f"{queue}-{n}" for n in range(1_200)]
    reply = client.post("/tasks", [{"id": one, "queue": queue, "spec": 1} for one in names])
    assert reply.status == 201
    assert [told.data["id"] for told in first.some(len(names))] == names
    late = follow(queue=queue, last=start)
    assert [told.data["id"] for told in late.some(len(names))] == names


def test_whoever_joins_in_the_middle_of_a_burst_hears_all_of_it_once(client, follow, queue):
    """Who is too slow for it, and closed, goes on from the last that it heard."""
    start, names = follow(queue=queue).ready().last, [f"{queue}-{n}" for n in range(3_000)]
    bodies = [{"id": one, "queue": queue, "spec": 1} for one in names]
    heard = {}

    def read(number):
        last, told = start, []
        while len(told) < len(names):
            stream = follow(queue=queue, last=last)
            while (one := stream.next()) is not None and one.kind == "task":
                told.append(one.data["id"])
                last = one.id
                if len(told) == len(names):
                    break
        heard[number] = told

    readers = [threading.Thread(target=read, args=(number,)) for number in range(6)]
    for number, one in enumerate(readers):
        one.start()
        part = bodies[number * 500 : number * 500 + 500]
        assert client.post("/tasks", part).status == 201
    for one in readers:
        one.join()
    assert heard == dict.fromkeys(range(6), names)


def test_kinds_can_be_chosen_and_nonsense_is_refused(client, follow, reader, queue):
    stream = follow(kind="run", queue=queue).ready()
    put(client, queue, f"{queue}-a")
    for query in ("since=5", "since=a-b-c", "kind=worker", "colour=blue"):
        assert reader.get(f"/events?{query}").status == 422, query
    assert reader.get("/events?run=nobody").status == 404
    assert stream.answer.status == 200
    assert reader.get("/events/snapshot").status == 422
    assert reader.get(f"/events/snapshot?queue={queue}&run=x").status in (404, 422)


def test_whoever_missed_something_is_told_to_look_anew(server, client, follow, queue):
    stream = follow(queue=queue).ready()
    start = stream.last
    put(client, queue, f"{queue}-a")
    stream.next()
    seq = client.get(f"/tasks/{queue}-a").json["seq"]
    client.post(f"/tasks/{queue}-a/cancel")
    stream.next()
    assert server.do(server.store.delete_tasks([seq])) == 1
    late = follow(queue=queue, last=start)
    told = late.next()
    assert (told.kind, told.data) == ("resync", {})
    put(client, queue, f"{queue}-b")
    assert late.next().data["id"] == f"{queue}-b"
    assert stream.next().data["id"] == f"{queue}-b"
    own = start.partition("-")[0]
    for beyond in ("ffffffff-1-0", f"{own}-999999999-0"):
        assert follow(queue=queue, since=beyond).next().kind == "resync"


def test_a_token_is_told_only_what_it_covers(server, client, follow, queue):
    """S5: by queue; asking for another's queue is refused."""
    narrow = server.caller("read", queues=[f"{queue}*"])
    stream = follow(narrow).ready()
    put(client, "elsewhere", f"{queue}-hidden")
    put(client, queue, f"{queue}-shown")
    assert stream.next().data["id"] == f"{queue}-shown"
    assert narrow.get("/events?queue=elsewhere").status == 403
    assert narrow.get("/events/snapshot?queue=elsewhere").status == 403


def test_a_stream_ends_when_its_token_is_revoked(server, admin, follow):
    """S4."""
    caller = server.caller("read")
    stream = follow(caller).ready()
    admin.post(f"/tokens/{caller.token.split('_')[1]}/revoke")
    assert stream.until(lambda _: False) is not None
    assert stream.answer.isclosed()


def test_a_page_of_another_site_hears_nothing(server, reader):
    """S8: a browser says from whose page it asks."""
    headers = {"Origin": "http://evil.example", "Accept": "text/event-stream"}
    assert reader.get("/events", **headers).status == 403
    assert Caller(server.address).get("/events", Accept="text/event-stream").status == 401


def test_a_snapshot_and_what_comes_after_it_are_the_state(
    client, worker, reader, follow, queue
):
    """RELIABILITY 42; the seed is printed by pytest-randomly."""
    dice = random.Random(random.random())
    put(client, queue, *(f"{queue}-{n}" for n in range(5)))
    snapshot = reader.get(f"/events/snapshot?queue={queue}").json
    state, last, numbers = Reduced(snapshot), snapshot["id"], count(5)
    seen = []

    def read_on(stream, until):
        for told in stream.until(lambda told: told.data["id"] == until):
            seen.append((told.data["id"], told.data["signal"]))
            state.apply(told)
        return stream.last

    for turn in range(6):
        stream = follow(queue=queue, last=last)
        for _ in range(dice.randint(1, 6)):
            what = dice.choice(("put", "work", "cancel"))
            if what == "put":
                put(client, queue, f"{queue}-{next(numbers)}")
            elif reader.get(f"/tasks?queue={queue}&status=ready").json["tasks"]:
                if what == "work":
                    work_off(worker, queue)
                else:
                    client.post("/tasks/cancel", {"filter": {"queue": queue}, "limit": 1})
        mark = f"{queue}-mark-{turn}"
        put(client, queue, mark)
        last = read_on(stream, mark)
        stream.close()
    assert len(seen) == len(set(seen))
    listed = reader.get(f"/tasks?queue={queue}&limit=1000").json["tasks"]
    assert state.tasks == {
        one["id"]: (one["status"], one["attempt"], one["owner"]) for one in listed
    }
    again = Reduced(reader.get(f"/events/snapshot?queue={queue}").json)
    assert again.tasks == state.open


class TestServers:
    """Restarts, stops and second servers."""

    @pytest.fixture
    def url(self, kind, tmp_path, request):
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/t.db"
        return request.getfixturevalue("postgres_url")

    def test_a_reader_goes_on_over_restarts_as_if_nothing_had_been(self, url):
        """RELIABILITY 42."""
        names, told, last, caller = [f"t{n}" for n in range(12)], [], None, None
        for turn in range(3):
            with running_server(url) as server:
                client = server.caller("submit")
                caller = Caller(server.address, caller.token if caller else client.token)
                stream = EventReader(caller, last)
                if last is None:
                    stream.ready()
                now = names[turn * 4 : turn * 4 + 4]
                put(client, "q", *now[:3])
                told += stream.until(lambda one, end=now[2]: one.data["id"] == end)
                last = stream.last
                # Whether this one is heard before the server is gone nobody knows.
                put(client, "q", now[3])
            rest = stream.until(lambda _: False)
            assert stream.retry is not None
            told += rest
            last = stream.last
            stream.close()
        with running_server(url) as server:
            stream = EventReader(Caller(server.address, caller.token), last)
            told += stream.some(len(names) - len(told))
            stream.close()
        assert [one.data["id"] for one in told] == names

    def test_a_stop_closes_streams_with_a_hint_when_to_come_again(self, url):
        with running_server(url) as server:
            stream = EventReader(server.caller("read")).ready()
            stream.retry = None
        assert stream.until(lambda _: False) == []
        assert stream.retry > 0
        stream.close()

    def test_too_many_readers_are_turned_away(self, url):
        with running_server(url, followers_max=1) as server:
            caller = server.caller("read")
            first = EventReader(caller).ready()
            second = EventReader(caller)
            assert second.answer.status == 503
            assert int(second.answer.getheader("retry-after")) > 0
            second.close()
            first.close()
            admin = server.caller("admin")
            eventually(lambda: b"event_streams 0" in admin.get("//metrics").body, "its end")
            third = EventReader(caller).ready()
            assert third.answer.status == 200
            third.close()

    def test_a_slow_reader_is_told_to_look_anew_and_loses_nothing(self, url):
        with running_server(url) as server:
            client, caller = server.caller("submit"), server.caller("read")
            stream = _stuck(caller)
            start = server.do(server.store.events_head())
            names = [f"t{n}-{'x' * 240}" for n in range(7_000)]
            for first in range(0, len(names), 1_000):
                some = names[first : first + 1_000]
                bodies = [{"id": one, "queue": "x" * 250, "spec": 1} for one in some]
                assert client.post("/tasks", bodies).status == 201
            admin = server.caller("admin")
            dropped = b"event_streams_dropped_total 1"
            eventually(lambda: dropped in admin.get("//metrics").body, "its end")
            quick = EventReader(caller, str(start))
            assert [one.data["id"] for one in quick.some(len(names))] == names
            quick.close()
            received = _rest(stream)
            assert b"event: resync\n" in received
            told = received.decode().split("event: resync")[0].count("event: task")
            assert told < len(names)
            # What it had read before is where it could have gone on, too.
            last = [line for line in received.decode().splitlines() if line.startswith("id: ")]
            after = EventReader(caller, last[-1].removeprefix("id: "))
            put(client, "q", "afterwards")
            assert after.until(lambda told: told.data.get("id") == "afterwards")
            after.close()


def _stuck(caller):
    """A connection whose other end takes its time to read."""
    host, port = caller.address.split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect((host, int(port)))
    lines = ("GET /api/v1/events HTTP/1.1", f"Host: {caller.address}", "Connection: close")
    head = "\r\n".join((*lines, f"Authorization: Bearer {caller.token}", "", ""))
    connection.sendall(head.encode())
    assert b"200" in connection.recv(100)
    return connection


def _rest(connection):
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    connection.close()
    return b"".join(parts)


class TestTwoServers:
    """Each has a hub of its own; the store is one."""

    @pytest.fixture
    def kind(self):
        return "postgres"

    def test_what_is_done_through_one_is_told_by_the_other(self, postgres_url):
        with running_server(postgres_url) as one, running_server(postgres_url) as two:
            client, caller = one.caller("submit"), two.caller("read")
            stream = EventReader(caller).ready()
            put(client, "q", "a")
            [first] = stream.some(1)
            assert first.data["id"] == "a"
            put(Caller(two.address, client.token), "q", "b")
            # The id of one server is good for the other.
            moved = EventReader(Caller(one.address, caller.token), first.id)
            assert [told.data["id"] for told in moved.some(1)] == ["b"]
            assert [told.data["id"] for told in stream.some(1)] == ["b"]
            moved.close()
            stream.close()
