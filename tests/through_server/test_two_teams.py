"""Two teams on one server: one fuzzes and begins giants, the other works (M1, M6, S17)."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from statistics import median

import pytest

from tests.support.browser import Site
from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, in_path
from tests.support.patience import busy, eventually

SECRET = "a-secret-of-team-b"
SMALL = f"[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = echo {SECRET}\n"
GIANT = (
    "[task parameters]\ni = 1..400\nj = 1..250\n[scheduling]\n[[graph]]\nR1 = a<i,j>\n"
    "[runtime]\n[[a<i,j>]]\n"
)
HEALTH_SECONDS_MAX = 0.1
RUNS = 5


@pytest.fixture
def site(tmp_path):
    with Site(CommandLine(tmp_path)).running() as made:
        yield made


def member(site, team, *scopes):
    """Somebody of a team, with a token for its names alone."""
    body = {"name": team, "scopes": scopes, "workflows": [f"{team}/*"]}
    reply = site.caller().post("/tokens", body | {"queues": [f"run:{team}/*"]})
    assert reply.status == 201, reply.body
    return Caller(site.caller().address, reply.json["token"])


def run_to_its_end(caller):
    """Seconds from asking for a small run to its end."""
    started = time.monotonic()
    reply = caller.post("/runs", {"workflow": "team-b/small", "flow": SMALL})
    assert reply.status == 201, reply.body
    path = f"/runs/{in_path(reply.json['run']['name'])}/facts"
    eventually(lambda: caller.get(path).json["run"]["status"] == "completed", "it ends", 60)
    return time.monotonic() - started


def begin_giant(caller, number):
    with suppress(OSError, HTTPException):
        caller.post("/runs", {"workflow": f"team-a/giant{number}", "flow": GIANT})


class Hostile:
    """A member of the other team, who does all that a token lets him do, and more."""

    def __init__(self, caller):
        self._caller, self._stop = caller, threading.Event()
        self._dice, self.seen, self.statuses = random.Random(17), [], set()

    def acts(self):
        there = in_path("team-b/small/run1")
        looks = ("", "/facts", "/dump", "/definition", "/log?id=1/a", "/summary", "/tree")
        while not self._stop.is_set():
            for path in (
                *(f"/runs/{there}{look}" for look in looks),
                "/runs?limit=100&summary=true",
                "/tasks?limit=1000",
                f"/tasks/{in_path('team-b/small/run1/1/a/1')}/logs/out",
                "/queues",
                f"/{'x' * self._dice.randrange(1, 3000)}",
            ):
                self._keep(self._caller.get(path))
            noise = self._dice.randbytes(self._dice.randrange(1, 20_000))
            for path in ("/tasks", "/runs", "/workflows", f"/runs/{there}/stop"):
                self._keep(self._caller.post(path, noise))

    def _keep(self, reply):
        self.statuses.add(reply.status)
        self.seen.append(reply.body)

    def stops(self):
        self._stop.set()


class Health:
    """Looks again and again whether the server lives, and how soon it says so."""

    def __init__(self, stranger):
        self._stranger, self._stop, self.seconds = stranger, threading.Event(), []

    def looks(self):
        while not self._stop.wait(0.02):
            started = time.monotonic()
            assert self._stranger.get("//healthz").status == 200
            self.seconds.append(time.monotonic() - started)

    def stops(self):
        self._stop.set()


def test_m1_m6_a_hostile_team_reads_nothing_of_another_and_does_not_hold_it_up(site):
    ours = member(site, "team-b", "submit", "read")
    theirs = member(site, "team-a", "submit", "read", "operate")
    run_to_its_end(ours)  # what is loaded once is loaded
    quiet = median(run_to_its_end(ours) for _ in range(RUNS))
    hostile, health = Hostile(theirs), Health(Caller(ours.address))
    for number in range(2):  # at work within their limits until the server is gone
        threading.Thread(target=begin_giant, args=(theirs, number), daemon=True).start()
    with ThreadPoolExecutor(2) as threads:
        acting = [threads.submit(hostile.acts), threads.submit(health.looks)]
        try:
            loud = median(run_to_its_end(ours) for _ in range(RUNS))
        finally:
            hostile.stops()
            health.stops()
        for one in acting:
            one.result()
    theirs_seen = b"".join(hostile.seen)
    assert SECRET.encode() not in theirs_seen
    assert b"team-b" not in b"".join(one for one in hostile.seen if b'"code"' not in one)
    assert hostile.statuses.isdisjoint({500, 502, 504}), hostile.statuses
    slowest = sorted(health.seconds)[int(len(health.seconds) * 0.99)]
    assert slowest < HEALTH_SECONDS_MAX * busy(), slowest
    # On a quiet machine less than twice; this one has few cores, and all of them at work.
    assert loud < 4 * busy() * quiet, (loud, quiet)
