"""``python -m bench.giants``: what one team's giant runs cost another team and the server.

A real ``tidewheel up``, or a server with a scheduler and a worker of their own, answers
``/healthz`` all the time. Another team's small runs begin and end, first alone, then beside
giant runs of the first team. Told are the slowest answers, and how long small runs took.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.machine import facts_text, machine_facts
from bench.markdown import table

PROBE_SECONDS = 0.02
SMALL_EVERY_SECONDS = 0.5
GIANT = """[task parameters]
i = 1..400
j = 1..250
[scheduling]
[[graph]]
R1 = a<i,j>
[runtime]
[[a<i,j>]]
script = true
"""
SMALL = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true\n"
HEADER = (
    "roles",
    "giants",
    "healthz p50 / p99 / worst ms",
    "small run begun / ended, p50 (worst) s",
)
OK, CREATED = 200, 201
SMALL_SECONDS_MAX = 300.0


class Api:
    """Asks a server; each call has a connection of its own."""

    def __init__(self, url: str, token: str) -> None:
        self._address, self._token = url.partition("://")[2], token

    def ask(self, method: str, path: str, body: Any = None, seconds: float = 120.0) -> Any:
        connection = http.client.HTTPConnection(self._address, timeout=seconds)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        raw = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, raw, headers)
            reply = connection.getresponse()
            said = reply.read()
            return reply.status, json.loads(said) if said else None
        finally:
            connection.close()

    def begin(self, workflow: str, flow: str) -> Any:
        body = {"workflow": workflow, "flow": flow, "options": {"mode": "live"}}
        return self.ask("POST", "/api/v1/runs", body)


class Health:
    """Asks for ``/healthz`` again and again in a thread, and keeps how long each took."""

    def __init__(self, api: Api) -> None:
        self._api, self._stop = api, threading.Event()
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._probe)
        self._thread.start()

    def _probe(self) -> None:
        while not self._stop.wait(PROBE_SECONDS):
            started = time.monotonic()
            status, _ = self._api.ask("GET", "/healthz")
            assert status == OK, status
            self.seconds.append(time.monotonic() - started)

    def ended(self) -> list[float]:
        self._stop.set()
        self._thread.join()
        return sorted(self.seconds)


def small_run(api: Api) -> tuple[float, float]:
    """Begins a small run; returns when it was begun, and when it had ended."""
    started = time.monotonic()
    status, told = api.begin("team-b/small", SMALL)
    begun = time.monotonic() - started
    assert status == CREATED, told
    path = "/api/v1/runs/" + told["run"]["name"].replace("/", "%2F") + "/facts"
    while True:
        status, told = api.ask("GET", path)
        if status == OK and told["run"]["status"] == "completed":
            return begun, time.monotonic() - started
        assert time.monotonic() - started < SMALL_SECONDS_MAX, told
        time.sleep(0.02)


def measured(api: Api, giants: int, seconds: float) -> tuple[list[float], list[Any]]:
    """Runs small runs, beside as many giants, for so long and until all giants have begun."""
    health, small = Health(api), []
    with ThreadPoolExecutor(max(1, giants)) as threads:
        started = time.monotonic()
        beginning = [
            threads.submit(api.begin, f"team-a/giant{number}", GIANT)
            for number in range(giants)
        ]
        while time.monotonic() - started < seconds or not all(one.done() for one in beginning):
            small.append(small_run(api))
            time.sleep(SMALL_EVERY_SECONDS)
        for one in beginning:
            print("giant:", str(one.result())[:200], file=sys.stderr)
    return health.ended(), small


@contextmanager
def processes(home: Path, roles: str) -> Iterator[Api]:
    """Starts the roles; yields the way to the server."""
    environment = os.environ | {"TIDEWHEEL_HOME": str(home), "HOME": str(home)}
    lines = {"up": [["up", "--port", "0"]]}.get(
        roles, [["server", "--port", "0"], ["scheduler"], ["worker", "--queue", "run:*"]]
    )
    started: list[subprocess.Popen[bytes]] = []
    url = ""
    try:
        for line in lines:
            command = [sys.executable, "-m", "tidewheel", "--json", *line]
            said = home / f"{line[0]}.log"  # a pipe that nobody reads would stop them
            with said.open("w") as file:
                started.append(subprocess.Popen(command, env=environment, stdout=file))
            while not url and line[0] in ("up", "server"):
                first = said.read_text().splitlines(keepends=True)[:1]
                url = json.loads(first[0])["url"] if first and first[0][-1] == "\n" else ""
                time.sleep(PROBE_SECONDS)
        yield Api(url, (home / "token").read_text().strip())
        for one in started:
            print(peak_memory(one.pid), file=sys.stderr)
    finally:
        for one in reversed(started):
            one.send_signal(signal.SIGKILL)
            one.wait()


def peak_memory(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(line for line in status.splitlines() if line.startswith("VmHWM"))


def row(roles: str, giants: int, found: tuple[list[float], list[Any]]) -> tuple[str, ...]:
    health, small = found
    points = (health[len(health) // 2], health[int(len(health) * 0.99)], health[-1])
    begun, ended = sorted(one[0] for one in small), sorted(one[1] for one in small)
    texts = [f"{one[len(one) // 2]:.2f} ({one[-1]:.2f})" for one in (begun, ended)]
    return (
        roles,
        str(giants),
        " / ".join(f"{one * 1000:.0f}" for one in points),
        " / ".join(texts),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--roles", nargs="*", default=["up", "apart"])
    parser.add_argument("--giants", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=30.0, help="at least, for each row")
    given = parser.parse_args()
    rows = []
    for roles in given.roles:
        with (
            TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            processes(Path(folder), roles) as api,
        ):
            small_run(api)  # what is loaded once is loaded
            rows.append(row(roles, 0, measured(api, 0, given.seconds / 3)))
            print(rows[-1], file=sys.stderr)
            rows.append(row(roles, given.giants, measured(api, given.giants, given.seconds)))
            print(rows[-1], file=sys.stderr)
    print(facts_text(machine_facts(Path())))
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()
