"""One token or team keeps nobody else waiting, and whoever hangs up costs nothing more."""

import asyncio
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import API, in_path, running_server
from tests.support.patience import eventually
from tests.support.prepared_run import PreparedRun
from tidewheel.core.queue.access import Grant, Identity, Scope, TokenKind, TokenView
from tidewheel.core.queue.task import Instant
from tidewheel.server.call import Call
from tidewheel.server.load_shedding import Places, Urgency, holders_of
from tidewheel.server.route_table import ROUTES
from tidewheel.server.routes import Needs, Route, no_name

BEGIN = f"POST {API}/runs"
SMALL = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"
# Some seconds of computing, after which it is ended.
SLOW = (
    "#!jinja2\n{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
)
LONG = SLOW + "#" * 100_000  # and some more
GIANT = (
    "[task parameters]\ni = 1..1000\nj = 1..100\n[scheduling]\n[[graph]]\n"
    "R1 = a<i,j>\n[runtime]\n[[a<i,j>]]\n"
)


def begin(caller, workflow, flow):
    return caller.post("/runs", {"workflow": workflow, "flow": flow})


def figure(caller, name):
    text = caller.get("//metrics").body.decode()
    [line] = [one for one in text.splitlines() if one.startswith(f"tidewheel_{name} ")]
    return int(line.rsplit(" ", 1)[1])


def at_slow_work(caller):
    return figure(caller, "http_slow_requests")


def children(word):
    """The processes that a server in this process has begun and whose words have this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rpartition(")")[2].split()
            words = (path / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if int(stat[1]) == os.getpid() and (word in words or not words):
            found.append(words)
    return found


def hangs_up(server, caller, method, path, body=b""):
    """A request whose sender is not told the answer: who asked closes the connection."""
    host, _, port = server.address.rpartition(":")
    one = socket.create_connection((host, int(port)), timeout=20)
    where = path[1:] if path.startswith("//") else API + path
    lines = [
        f"{method} {where} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {caller.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    one.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    return one


def json_run(workflow, flow):
    flow = flow.replace("\n", "\\n")
    return f'{{"workflow": "{workflow}", "flow": "{flow}"}}'.encode()


# ---- shares ----


def token(number, *names, **rest):
    grant = Grant(scopes=frozenset({Scope.READ}), names=names)
    at = Instant(0.0)
    known = {"kind": TokenKind.BEARER, "parent": None, "digest": "", "name": "x"} | rest
    times = {"created_at": at, "expires_at": None, "used_at": None, "revoked_at": None}
    return TokenView(number=number, grant=grant, **known, **times)


def test_sessions_of_a_person_and_what_was_made_from_a_token_share_its_places():
    ada = Identity(person="ada", source="https://id.example")
    assert holders_of(token(5, "team-a", "team-a/x")) == ("names 'team-a'", "token 'x' (5)")
    assert holders_of(token(5, "queue:team-a", "run:team-a/*")) == (
        "names 'team-a'",
        "token 'x' (5)",
    )
    for names in (("*",), ("team-a", "team-b"), ("team-*",)):
        assert holders_of(token(5, *names)) == ("token 'x' (5)",)
    session = token(9, "*", kind=TokenKind.SESSION, parent=5)
    assert holders_of(session) == ("token 'x' (5)",)
    people = {holders_of(token(number, "*", identity=ada)) for number in (6, 7)}
    assert people == {("person 'ada' of 'https://id.example'",)}
    jobs = holders_of(token(5, "*"), "run:team-a/nightly/run1")
    assert jobs == ("names 'team-a'", "jobs of 'team-a'")


def test_alone_somebody_has_three_quarters_of_the_places_and_beside_others_less():
    places = Places()

    def taken(holder, most=64):
        count = 0
        while places.has_room(most, (holder,)):
            places.count((holder,), +1)
            count += 1
        return count

    assert (taken("a"), taken("b"), taken("c")) == (48, 12, 3)
    assert not places.has_room(64, ("a",)) and places.has_room(64, ("d",))
    places.count(("a",), -40)
    assert places.has_room(64, ("b",)) and places.held == 23


class Held:
    """A route whose requests are under way until they are let go on, or given up."""

    def __init__(self, method="GET"):
        self.begun, self.ended, self.given_up = 0, 0, 0
        self.go_on = threading.Event()
        self.route = Route(
            method=method,
            path="/held",
            guard=Needs(scopes=(Scope.READ,), names=no_name),
            handler=self._handler,
            says="X.",
            urgency=Urgency.READ,
        )

    async def _handler(self, call: Call) -> object:
        self.begun += 1
        try:
            while not self.go_on.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        self.ended += 1
        return {"by": call.who}


def test_a_token_that_holds_its_share_leaves_places_to_others_and_so_does_its_team(tmp_path):
    held = Held()
    limits = {"reads_max": 8, "streams_max": 8}
    url = f"sqlite:///{tmp_path}/t.db"
    with (
        running_server(url, (held.route, *ROUTES), **limits) as server,
        ThreadPoolExecutor(8) as threads,
    ):
        greedy, mate, other = (
            server.caller("read", names=[name]) for name in ("team-a", "team-a/x", "team-b")
        )
        asked = []
        for number in range(6):
            asked.append(threads.submit(greedy.get, "//held"))
            eventually(lambda most=number: held.begun > most, "it is under way")
        assert greedy.get("/tasks").code == "overloaded"
        assert mate.get("/tasks").code == "overloaded"  # another token, and the same team
        assert other.get("/tasks").status == 200
        held.go_on.set()
        assert {one.result().status for one in asked} == {200}
        assert greedy.get("/tasks").status == 200


# ---- slow work ----


def test_slow_templates_of_one_token_keep_nobody_from_reading_or_beginning_runs(tmp_path):
    limits = {"reads_max": 3, "streams_max": 3, "submits_max": 4, "slow_max": 8}
    with (
        running_server(f"sqlite:///{tmp_path}/t.db", home=tmp_path, **limits) as server,
        ThreadPoolExecutor(6) as threads,
    ):
        greedy, other = server.caller("submit"), server.caller("submit", "read")
        begun = []
        for number in range(1, 7):  # more than there are places for anything else
            begun.append(threads.submit(begin, greedy, f"a/{number}", LONG))
            eventually(lambda most=number: at_slow_work(other) == most, "it is let in")
        assert begin(greedy, "a/more", SMALL).code == "overloaded"  # it has had its share
        assert other.get("/tasks").status == 200
        assert other.post("/tasks", {"queue": "q"}).status == 201
        assert begin(other, "b/small", SMALL).status == 201  # its turn comes before theirs
        assert not all(one.done() for one in begun)
        assert {one.result().status for one in begun} == {422}
        assert at_slow_work(other) == 0


class CountedPlace:
    """A request's place that counts how often it goes to slow work."""

    def __init__(self, place, counts):
        self._place, self._counts = place, counts

    def __getattr__(self, name):
        return getattr(self._place, name)

    def slow(self, **how):
        self._counts.append(how)
        return self._place.slow(**how)


def test_the_definition_of_a_new_run_is_read_once(tmp_path):
    """A giant takes a minute for each time."""
    counts = []

    def counted(route):
        async def handler(call):
            call.place = CountedPlace(call.place, counts)
            return await route.handler(call)

        return replace(route, handler=handler) if route.verb == BEGIN else route

    routes = tuple(map(counted, ROUTES))
    with running_server(f"sqlite:///{tmp_path}/t.db", routes, home=tmp_path) as server:
        submitter = server.caller("submit")
        assert begin(submitter, "team/text", SMALL).status == 201
        bundle = {"name": "team/kept", "version": "1.0.0", "files": {"flow.cylc": SMALL}}
        assert submitter.post("/workflows", bundle).status == 201
        assert submitter.post("/runs", {"workflow": "team/kept"}).status == 201
        assert len(counts) == 2
        nowhere = SMALL + "platform = atlantis\n"
        reply = begin(submitter, "team/text", nowhere)  # where jobs go is looked at, too
        assert (reply.status, reply.code) == (422, "invalid_definition"), reply.body


def test_giants_of_one_token_come_one_at_a_time_whatever_names_it_invents(tmp_path):
    with (
        running_server(
            f"sqlite:///{tmp_path}/t.db", home=tmp_path, definition_cpu_seconds_max=2.0
        ) as server,
        ThreadPoolExecutor(4) as threads,
    ):
        wide = server.caller("submit")
        begun = [threads.submit(begin, wide, f"x{one}/giant", GIANT) for one in range(3)]
        seen = 0
        while not all(one.done() for one in begun):
            seen = max(seen, len(children("limited_process")))
        assert seen == 1
        assert {one.result().code for one in begun} == {"too_large"}


# ---- callers who are gone ----


def test_a_look_whose_caller_hangs_up_ends_at_once_and_gives_its_place_back(tmp_path):
    held = Held()
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, (held.route, *ROUTES), reads_max=4) as server:
        caller = server.caller("read")
        for number in range(1, 21):
            gone = hangs_up(server, caller, "GET", "//held")
            eventually(lambda most=number: held.begun == most, "it is under way")
            gone.close()
            eventually(lambda most=number: held.given_up == most, "it is given up")
        assert figure(caller, "http_requests_under_way") == 1  # the one that asks
        held.go_on.set()


def test_a_change_whose_caller_hangs_up_is_done_and_in_the_audit(tmp_path):
    held = Held("POST")
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, (held.route, *ROUTES)) as server:
        caller, admin = server.caller("read"), server.caller("admin")
        gone = hangs_up(server, caller, "POST", "//held")
        eventually(lambda: held.begun == 1, "it is under way")
        gone.close()
        eventually(lambda: figure(admin, "http_connections") == 1, "it is gone")
        held.go_on.set()
        eventually(lambda: held.ended == 1, "it is done all the same")
        assert held.given_up == 0
        eventually(lambda: _audited(admin, "POST /held"), "it is in the audit")


def test_a_change_that_is_given_up_halfway_or_breaks_is_in_the_audit_all_the_same(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    async def waits(call: Call) -> object:
        begun.set()

        async def long() -> None:
            while not go_on.is_set():
                await asyncio.sleep(0.01)

        await call.doors.view("x", long)  # what it did before, nobody takes back
        return {}

    async def breaks(_: Call) -> object:
        raise ZeroDivisionError

    reads = Needs(scopes=(Scope.READ,), names=no_name)
    broken = Route(method="POST", path="/broken", guard=reads, handler=breaks, says="X.")
    slow = replace(broken, path="/held", handler=waits)
    late = replace(slow, path="/late", seconds_max=0.2)
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, (broken, slow, late, *ROUTES)) as server:
        caller, admin = server.caller("read"), server.caller("admin")
        gone = hangs_up(server, caller, "POST", "//held")
        assert begun.wait(20)
        gone.close()
        eventually(lambda: _audited(admin, "POST /held", 499), "it is in the audit")
        assert caller.post("//late").code == "timed_out"
        assert _audited(admin, "POST /late", 503)
        assert caller.post("//broken").status == 500
        assert _audited(admin, "POST /broken", 500)
        go_on.set()


def test_who_begins_a_run_is_told_so_while_all_turns_of_slow_looks_are_taken(tmp_path):
    begun, go_on = [], threading.Event()

    async def waits(call: Call) -> object:
        async def long() -> None:
            begun.append(call)
            while not go_on.is_set():
                await asyncio.sleep(0.01)

        await call.doors.view("x", long)
        return {}

    reads = Needs(scopes=(Scope.READ,), names=no_name)
    held = Route(method="GET", path="/held", guard=reads, handler=waits, says="X.")
    url = f"sqlite:///{tmp_path}/t.db"
    with (
        running_server(url, (held, *ROUTES)) as server,
        ThreadPoolExecutor(2) as threads,
    ):
        caller = server.caller("submit", names=["team-a"])
        asked = [threads.submit(caller.get, "//held") for _ in range(2)]
        eventually(lambda: len(begun) == 2, "the turns of this team are taken")
        told = begin(caller, "team-a/x", SMALL)
        go_on.set()
        assert told.status == 201
        assert [one.result().status for one in asked] == [200, 200]


def _audited(admin, verb, status=200):
    entries = admin.get("/audit").json["entries"]
    return any((one["verb"], one["status"]) == (verb, status) for one in entries)


@pytest.fixture
def large(tmp_path):
    """A server, and a run with some thousand tasks."""
    tidewheel = CommandLine(tmp_path)
    names = [f"t{number}" for number in range(1_500)]
    flow = f"[scheduling]\n[[graph]]\nR1 = {' & '.join(names)}\n[runtime]\n[[root]]\n"
    run = PreparedRun(tidewheel, flow + f"[[{', '.join(names)}]]\n", "large").starts()
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        yield server, f"/runs/{in_path(run.name)}"


def test_after_a_hundred_hang_ups_nothing_is_held_and_no_process_is_left(large):
    server, path = large
    caller, other = server.caller("submit", "operate", "read"), server.caller("submit", "read")
    tried = b'{"command": {"verb": "hold", "ids": ["1/t1"]}}'
    ways = [
        ("POST", "/runs", json_run("a/slow", SLOW)),
        ("POST", f"{path}/dry-run", tried),
        ("POST", "/runs", json_run("a/giant", GIANT)),
        ("GET", f"{path}/dump", b""),
        ("POST", "/runs", json_run("b/slow", LONG) + b" " * 500_000),
    ]
    for _ in range(20):
        there = [hangs_up(server, caller, *way) for way in ways]
        eventually(lambda: at_slow_work(other) > 0, "some are at work")
        for one in there:
            one.close()
    eventually(lambda: at_slow_work(other) == 0, "all places for slow work are free")
    # But for the one that asks; those that were given up are put into the audit before.
    eventually(lambda: figure(other, "http_requests_under_way") == 1, "all places are free")
    given_up = 'http_requests_total{route="POST /api/v1/runs",status="499"}'
    assert figure(other, given_up) > 40  # of 60: not even behind a large body it is read on
    eventually(lambda: children("template_child") == [], "no template is rendered")
    assert begin(other, "c/small", SMALL).status == 201
    assert other.get(f"{path}/dump").status == 200
    eventually(lambda: children("limited_process") == [], "no giant is read")
    assert not any(
        one["workflow"].endswith(("slow", "giant")) for one in other.get("/runs").json["runs"]
    )
