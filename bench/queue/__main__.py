"""``python -m bench.queue``: measure tidewheel and its peers in one run and print both."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from bench.environments import (
    CannotInstall,
    ensure_node_peer,
    ensure_python_peer,
    node_version_of,
    python_version_of,
)
from bench.folders import REPOSITORY, data_folder
from bench.machine import machine_facts
from bench.markdown import publish
from bench.postgres import PostgresAddress, PostgresServer
from bench.queue import figures
from bench.queue.figures import Figures
from bench.queue.report import render
from bench.queue.roster import Entry, chosen

TASKS, QUICK_TASKS = 50_000, 2_000
SAMPLES, QUICK_SAMPLES = 200, 30
PEER_SECONDS_MAX = 900.0


def main() -> None:
    wish = _arguments()
    entries = chosen(wish.only)
    tasks = min(wish.tasks, QUICK_TASKS) if wish.quick else wish.tasks
    samples = QUICK_SAMPLES if wish.quick else wish.samples
    rounds: dict[Entry, list[Figures]] = {entry: [] for entry in entries}
    with data_folder() as folder:
        facts = machine_facts(folder)
        with PostgresServer(folder) as server:
            for _ in range(wish.rounds):  # interleaved: a slow minute of the machine hits all
                for entry in entries:
                    _say(f"{entry.name} …")
                    one = _measure(entry, server.address, folder, tasks, samples)
                    rounds[entry].append(one)
    results = {entry: figures.best_of(measured) for entry, measured in rounds.items()}
    text = render(results, {entry: _version(entry) for entry in entries}, facts)
    publish(wish.write, "queue", text)


def _measure(
    entry: Entry, postgres: PostgresAddress, folder: Path, tasks: int, samples: int
) -> Figures:
    """Run one peer in its own interpreter and process group, bounded in time."""
    try:
        interpreter = _interpreter(entry)
    except CannotInstall as error:
        return figures.failed(f"cannot be installed: {error}")
    answer = folder / f"{entry.name}.json"
    answer.unlink(missing_ok=True)
    command = [str(interpreter), "-m", "bench.queue.measure", entry.module, entry.variant]
    options = {
        "--tasks": min(tasks, entry.tasks_max or tasks),
        "--samples": samples,
        "--folder": folder,
        "--socket": postgres.socket,
        "--programs": postgres.programs,
        "--answer": answer,
    }
    command += [str(word) for option in options.items() for word in option]
    complaint = _run_bounded(command, folder / "measure.log")
    if not answer.exists():
        return figures.failed(complaint or "ended without an answer")
    measured = figures.load(answer)
    if complaint:
        measured.failures["run"] = complaint
    return measured


def _run_bounded(command: list[str], log: Path) -> str:
    """Why the command failed; empty if it did not. What it started is ended with it."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdout=output, stderr=output, start_new_session=True
        )
    try:
        status = process.wait(PEER_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return f"took over {PEER_SECONDS_MAX:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = log.read_text().strip().splitlines()
    return (lines[-1] if lines else f"exit status {status}") if status else ""


def _interpreter(entry: Entry) -> Path:
    """Ours for tidewheel; the peers' environment, with the peer installed, for all others."""
    if entry.role == "ours":
        return Path(sys.executable)
    if entry.node:
        ensure_node_peer(entry.distribution)
        return ensure_python_peer()
    return ensure_python_peer(entry.distribution)


def _version(entry: Entry) -> str:
    if entry.node:
        return node_version_of(entry.distribution)
    try:
        return python_version_of(entry.distribution, _interpreter(entry))
    except CannotInstall:
        return "?"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.queue", description=__doc__)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="wake-ups per system")
    parser.add_argument("--rounds", type=int, default=1, help="best rate of so many rounds")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small counts, to see it work")
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    main()
