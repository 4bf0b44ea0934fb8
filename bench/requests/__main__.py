"""``python -m bench.requests``: requests per second and CPU per request, ours and bare."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.folders import REPOSITORY, data_folder
from bench.goals import GOALS, Verdict, judged
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table
from bench.postgres import PostgresServer, cpu_seconds
from bench.requests.load import Answers, Question, run_load

API = "/api/v1"
START_SECONDS_MAX = 20.0
HEADER = ("server", "request", "requests/s", "CPU µs", "p50 ms", "p99 ms", "of bare CPU")
MICRO, MILLI = 1_000_000, 1_000
GOAL_NAMES = {"SQLite": "sqlite", "PostgreSQL": "postgres"}
JUDGED = {"GET /healthz": "healthz", "GET /tasks/{id}": "get", "POST /tasks": "post"}


def task(number: int) -> bytes:
    return json.dumps(_task(f"bench-{number}")).encode()


def many_tasks(number: int) -> bytes:
    return json.dumps([_task(f"many-{number}-{n}") for n in range(100)]).encode()


def _task(task_id: str) -> dict[str, object]:
    return {"id": task_id, "queue": "bench", "handler": "h", "spec": {"n": 1}}


BARE = (
    Question(name="GET", method="GET", path="/answer"),
    Question(name="POST", method="POST", path="/check", body=task, status=201),
)
OURS = (
    Question(name="GET /healthz", method="GET", path="/healthz"),
    Question(name="POST /tasks", method="POST", path=f"{API}/tasks", body=task, status=201),
    Question(name="GET /tasks/{id}", method="GET", path=f"{API}/tasks/bench-1"),
    Question(
        name="POST /tasks, 100", method="POST", path=f"{API}/tasks", body=many_tasks, status=201
    ),
)


def main() -> None:
    wish = _arguments()
    with data_folder() as folder:
        facts = machine_facts(folder)
        rows, verdicts = _measured(folder, wish)
    load = f"{wish.connections} connections, {wish.seconds:g} s each"
    figures = table(HEADER, rows)
    publish(wish.write, "requests", facts_text(facts), load, figures, judged(verdicts))


def _measured(folder: Path, wish: argparse.Namespace) -> tuple[list[list[str]], list[Verdict]]:
    with started([sys.executable, "-m", "bench.requests.bare"], {}) as (port, pid):
        bare = {one.method: _ask(one, port, pid, "", wish) for one in BARE}
    rows = [_row("bare Starlette", name, *found, found[1]) for name, found in bare.items()]
    verdicts = []
    with PostgresServer(folder) as server:
        stores = {
            "SQLite": f"sqlite:///{folder}/requests.db",
            "PostgreSQL": server.address.fresh_database("requests"),
        }
        for store, url in stores.items():
            home = folder / store
            environment = {"TIDEWHEEL_HOME": str(home), "TIDEWHEEL_STORE": url}
            command = [sys.executable, "-m", "tidewheel", "server", "--no-monitor", "--port"]
            with started(command, environment) as (port, pid):
                token = (home / "token").read_text().strip()
                for one in OURS:
                    answers, cpu = _ask(one, port, pid, token, wish)
                    peer = bare[one.method][1]
                    rows.append(_row(f"tidewheel, {store}", one.name, answers, cpu, peer))
                    if (goal := JUDGED.get(one.name)) is not None:
                        goal = goal if goal in GOALS else f"{goal} {GOAL_NAMES[store]}"
                        beside = f"{cpu * MICRO:,.0f} to {peer * MICRO:,.0f} µs"
                        verdicts.append(Verdict(goal, cpu / peer, beside))
    return rows, verdicts


def _ask(
    question: Question, port: int, pid: int, token: str, wish: argparse.Namespace
) -> tuple[Answers, float]:
    """The answers, and CPU seconds for each."""

    async def load(seconds: float) -> Answers:
        return await run_load(
            port, question, token, connections=wish.connections, seconds=seconds
        )

    before = cpu_seconds(pid)
    answers = asyncio.run(load(wish.seconds))
    return answers, (cpu_seconds(pid) - before) / answers.count


def _row(server: str, name: str, answers: Answers, cpu: float, peer: float) -> list[str]:
    return [
        server,
        name,
        f"{answers.count / answers.seconds:,.0f}",
        f"{cpu * MICRO:,.0f}",
        f"{answers.quantile(0.5) * MILLI:.2f}",
        f"{answers.quantile(0.99) * MILLI:.2f}",
        f"{cpu / peer:.1f}×",
    ]


@contextmanager
def started(command: list[str], environment: dict[str, str]) -> Iterator[tuple[int, int]]:
    """A server in a process of its own; where it listens, and its pid."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = subprocess.Popen(
        [*command, str(port)],
        cwd=REPOSITORY,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    ends_at = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > ends_at:
                raise
            time.sleep(0.05)
        else:
            return


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.requests", description=__doc__)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
