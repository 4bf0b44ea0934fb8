"""Servers are stopped and started in turn under load: nobody who tries again notices.

RELIABILITY, "Graceful stop": no call fails after a retry, nothing is lost, nothing runs twice.
"""

import http.client
import signal
import threading
import time
from contextlib import ExitStack
from itertools import count
from uuid import uuid4

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import Caller
from tests.support.patience import eventually, pace, scaled
from tests.support.ports import free_port

RESTARTS = scaled(10)
ENOUGH_SECONDS = scaled(90)  # where each takes long, each server is restarted once at least
SUBMITTERS, WORKERS = 3, 2
TRIES_MAX = 200  # of one call, a tenth of a second apart
AHEAD_MAX = 100  # tasks that wait for a worker, so that the end of the test does not
TROUBLE = (OSError, http.client.HTTPException)
LEASE_SECONDS = 60


class Patient:
    """A client that knows both servers and tries again, as a proxy or a library would."""

    def __init__(self, token, ports):
        self._callers = [Caller(f"127.0.0.1:{port}", token) for port in ports]
        self.given_up = []
        self.retries = 0

    def post(self, path, body):
        """The first answer that is none of trouble; the same key makes it one request."""
        key = uuid4().hex
        for number in range(TRIES_MAX):
            caller = self._callers[number % len(self._callers)]
            try:
                reply = caller.post(path, body, Idempotency_Key=key)
            except TROUBLE:
                reply = None
            if reply is not None and reply.status not in (429, 502, 503, 504):
                return reply
            self.retries += 1
            pace(0.1)
        self.given_up.append(path)
        raise AssertionError(f"nobody answered {path}")


class Load:
    """Submitters and workers that go on until they are told to stop."""

    def __init__(self, token, ports):
        self._token, self._ports, self._stop = token, ports, threading.Event()
        self.submitted, self.finished, self.wrong, self.patients = [], [], [], []
        self._numbers = count()
        self._threads = [threading.Thread(target=self._submit) for _ in range(SUBMITTERS)]
        self._threads += [threading.Thread(target=self._work) for _ in range(WORKERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _patient(self):
        self.patients.append(Patient(self._token, self._ports))
        return self.patients[-1]

    def _submit(self):
        client = self._patient()
        while not self._stop.is_set():
            if len(self.submitted) > len(self.finished) + AHEAD_MAX:
                pace(0.01)
                continue
            task_id = f"t{next(self._numbers)}"
            reply = client.post("/tasks", {"id": task_id, "queue": "q", "spec": 1})
            (self.submitted if reply.status == 201 else self.wrong).append(task_id)

    def _work(self):
        client = self._patient()
        worker = client.post("/workers", {"name": "w", "queues": ["q"], "slots": 10}).json["id"]
        ask = {"worker": worker, "n": 5, "wait_s": 1, "lease_s": LEASE_SECONDS}
        while True:
            tasks = client.post("/queues/q/claim", ask).json["tasks"]
            for task in tasks:
                end = {"worker": worker, "attempt": task["attempt"], "ending": "succeeded"}
                reply = client.post(f"/tasks/{task['id']}/finish", end)
                # 409: an answer was lost on its way, and the report was not.
                (self.finished if reply.status in (200, 409) else self.wrong).append(task["id"])
            if not tasks and self._stop.is_set():
                return


def every_task(caller):
    """{id: (status, attempts)} of all that are stored."""
    found, page = {}, ""
    while True:
        reply = caller.get(f"/tasks?limit=1000&fields=id,status,attempt{page}").json
        found |= {one["id"]: (one["status"], one["attempt"]) for one in reply["tasks"]}
        if reply["next"] is None:
            return found
        page = f"&before={reply['next']}"


@pytest.mark.timeout(70 + 10 * RESTARTS)  # its suite has 180
def test_servers_restarted_in_turn_under_load_fail_no_call(tmp_path, postgres_url):
    program = CommandLine(tmp_path)
    program.environment["TIDEWHEEL_STORE"] = postgres_url
    token = program("token", "create", "x", "--scope", "admin").word
    ports = [free_port(), free_port()]
    with ExitStack() as stack:

        def start(port):
            server = stack.enter_context(program.started("server", "--port", str(port)))
            server.read_until("answering at")
            return server

        servers = {port: start(port) for port in ports}
        with Load(token, ports) as load:
            enough_at = time.monotonic() + ENOUGH_SECONDS
            for number in range(RESTARTS):
                if number >= len(ports) and time.monotonic() > enough_at:
                    break
                so_far = len(load.finished)
                port = ports[number % len(ports)]
                servers[port].send(signal.SIGTERM)
                assert servers[port].wait().status == 0
                servers[port] = start(port)
                eventually(lambda seen=so_far: len(load.finished) > seen, "work goes on")
        assert load.wrong == []
        assert [one.given_up for one in load.patients if one.given_up] == []
        stored = every_task(Caller(f"127.0.0.1:{ports[0]}", token))
        assert stored.keys() == set(load.submitted)  # nothing lost
        assert set(stored.values()) == {("succeeded", 1)}  # nothing done twice
    assert program("verify").status == 0
