"""Counts what a unit of work costs, in numbers that do not depend on the machine.

A hop is a task of a chain, from its parent's end to its own, by scheduler, queue and worker,
with a handler that does nothing, in one process on SQLite. A job is such a task with a script,
a fan has four of them at once.
A submission is a `submit_many` of 1,000 tasks, each with a spec of its own, on SQLite or
PostgreSQL; its calls are those of one task. Counted are 60 of them less 20 of them, so what it
takes to begin is left out. Fifty simulated tasks are five cycles of ten tasks (narrow) or a
twentieth of a cycle of 1,000 (wide), most of which are spawned by one batch and end in another;
calls are those of one of them. Modules are those that are loaded when a command has ended.

    python -m bench.counts
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

import apsw
import psycopg

import tidewheel
from bench.goals import Verdict, judged
from bench.scheduler import shapes
from tidewheel.store import sqlite_writer

SOURCE = str(Path(tidewheel.__file__).parent) + os.sep
FEW, MANY = 20, 60
AT_ONCE = 4  # jobs of a fan, as the goal has it
UNIX = "unix"  # the disk of SQLite itself
# What Python tells an audit hook of, and what it is called here.
AUDITED = {
    "os.mkdir": "folders",
    "os.symlink": "links",
    "os.posix_spawn": "processes",
    "subprocess.Popen": "processes",
}
# What of psycopg's is called for each statement, and for each wait for the server.
POSTGRES = {
    psycopg.Cursor.execute.__code__: "statements",
    psycopg.Connection.wait.__code__: "waits",
}
STORE = "COUNTED_STORE"  # the variable that names the store of submissions
TASKS = 1_000  # of a submission
FIFTY = 50  # simulated tasks
WIDE = 1_000  # tasks of a cycle: as many as there are steps in a batch
FLOW = """\
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = {cycles}
    [[graph]]
        P1 = a[-P1] => a
[runtime]
    [[a]]
        script = true
"""


FAN = """\
[task parameters]
    n = 1..{last}
[scheduling]
    [[graph]]
        R1 = a<n>
[runtime]
    [[a<n>]]
        script = true
"""


class CountedDisk(apsw.VFS):
    """Is the disk of every SQLite file that is opened from now on, and counts its syncs."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__("counted", UNIX, makedefault=True)
        self._counts = counts

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _CountedFile(self._counts, name, flags)


class _CountedFile(apsw.VFSFile):
    def __init__(
        self, counts: Counter[str], name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__(UNIX, name, flags)
        self._counts = counts

    def xSync(self, flags: int) -> None:
        self._counts["syncs"] += 1
        super().xSync(flags)


def count_into(counts: Counter[str]) -> CountedDisk:
    """Counts syncs, statements, calls, and what is made, in this process from now on. One that
    is run for row after row is one statement.

    On a busy machine lone writes take long and are left to the writer's thread, which is a few
    calls more; what is counted must not depend on that.
    """
    last = ""
    sqlite_writer.LONG_SECONDS = sqlite_writer.VERY_LONG_SECONDS = math.inf

    def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        nonlocal last
        del cursor, bindings
        counts["statements"] += statement != last
        last = statement
        return True

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        if event in AUDITED:
            counts[AUDITED[event]] += 1
        elif event == "open" and isinstance(arguments[2], int):
            counts["files"] += bool(arguments[2] & os.O_CREAT)

    def hook(frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            counts["calls"] += 1
        elif event == "call" and frame.f_code in POSTGRES:
            counts[POSTGRES[frame.f_code]] += 1

    apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(trace))
    sys.addaudithook(heard)
    threading.setprofile(hook)
    sys.setprofile(hook)
    return CountedDisk(counts)


def hops(folder: Path, _: int) -> dict[str, float]:
    """Returns what a chain of handlers takes, in this process."""
    from bench.scheduler.handler_chain import run, use_handlers

    counts: Counter[str] = Counter()
    disk = count_into(counts)
    use_handlers()
    status = asyncio.run(run(folder / "flow", folder / "home"))
    assert status == "completed", status
    disk.unregister()
    return {name: counts[name] for name in ("syncs", "statements", "calls")}


def jobs(folder: Path, _: int) -> dict[str, float]:
    """Returns what ``tidewheel run`` of a chain of scripts makes, in this process."""
    counts = _run(folder)
    return {name: counts[name] for name in ("processes", "folders", "files", "links", "syncs")}


def starts(folder: Path, _: int) -> dict[str, float]:
    """Returns what ``tidewheel run`` takes in a new home, in this process."""
    counts = _run(folder)
    return {name: counts[name] for name in ("syncs", "statements")}


def simulated(folder: Path, _: int) -> dict[str, float]:
    """Returns what ``tidewheel run`` of simulated tasks takes, in this process."""
    return {"calls": _run(folder, "--mode", "simulation")["calls"] / FIFTY}


def _run(folder: Path, *options: str) -> Counter[str]:
    from tidewheel.cli.main import run

    counts: Counter[str] = Counter()
    disk = count_into(counts)
    status = run(["run", str(folder / "flow"), *options])
    assert status == 0, status
    disk.unregister()
    return counts


def submissions(folder: Path, count: int) -> dict[str, float]:
    """Returns what it takes to submit a thousand tasks so often, in this process."""
    counts: Counter[str] = Counter()
    disk = count_into(counts)
    store = os.environ.get(STORE) or f"sqlite:///{folder / 'store.db'}"
    with tidewheel.Client(store) as client:
        for _ in range(count):
            tasks = [{"queue": "q", "handler": "h", "spec": {"n": n}} for n in range(TASKS)]
            stored = client.submit_many(tasks)
            assert len(stored.inserted) == TASKS, stored
    disk.unregister()
    of_store = "waits" if STORE in os.environ else "syncs"
    return {name: counts[name] for name in (of_store, "statements")} | {
        "calls": counts["calls"] / TASKS
    }


def of_start() -> dict[str, float]:
    """Returns what the first run of a home, with one task, costs from its start to its end."""
    return _in_child("starts", 1, None)


def fans(folder: Path, _: int) -> dict[str, float]:
    """Returns what ``tidewheel run`` of so many scripts takes, four beside each other."""
    counts = _run(folder, "--slots", str(AT_ONCE))
    return {name: counts[name] for name in ("syncs", "statements")}


CHILDREN = {
    "hops": hops,
    "jobs": jobs,
    "fans": fans,
    "starts": starts,
    "submissions": submissions,
    "narrow": simulated,
    "wide": simulated,
}


def of_each(unit: str, store: str | None = None) -> dict[str, float]:
    """Returns what each further unit costs."""
    few, many = (_in_child(unit, count, store) for count in (FEW, MANY))
    return {name: round((many[name] - few[name]) / (MANY - FEW), 2) for name in many}


def _in_child(unit: str, count: int, store: str | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="counts-") as name:
        folder = Path(name)
        (folder / "flow").mkdir()
        (folder / "flow" / "flow.cylc").write_text(_flow(unit, count))
        asked = [sys.executable, "-m", "bench.counts", unit, name, str(count)]
        given = _environment(folder) | ({STORE: store} if store else {})
        subprocess.run(asked, env=given, check=True, stdout=subprocess.DEVNULL)
        counts: dict[str, float] = json.loads((folder / "counts").read_text())
        return counts


def _flow(unit: str, count: int) -> str:
    """Returns the definition of which so many units are run."""
    match unit:
        case "fans":
            return FAN.format(last=count)
        case "narrow":
            return shapes.cycles(count * FIFTY // shapes.CYCLE).flow()
        case "wide":
            return shapes.cycles(count * FIFTY // WIDE, width=WIDE).flow()
        case _:
            return FLOW.format(cycles=count)


def modules(*words: str, within: Path) -> tuple[int, int]:
    """Returns how many modules a command loads: of tidewheel, and all."""
    asked = [sys.executable, "-X", "importtime", "-m", "tidewheel", *words]
    told = subprocess.run(
        asked, cwd=within, env=_environment(within), check=True, capture_output=True, text=True
    )
    lines = [line for line in told.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip() for line in lines[1:]}  # the first is a heading
    return len([name for name in loaded if name.startswith("tidewheel")]), len(loaded)


COMMANDS = {
    "--version": ("--version",),
    "submit": ("submit", "true"),
    "run": ("run", "flow"),
    "runs": ("runs",),
}


def of_commands() -> dict[str, tuple[int, int]]:
    """Returns how many modules commands load in a home that is used already."""
    with tempfile.TemporaryDirectory(prefix="counts-") as name:
        folder = Path(name)
        (folder / "flow").mkdir()
        (folder / "flow" / "flow.cylc").write_text(FLOW.format(cycles=1))
        modules(*COMMANDS["run"], within=folder)
        return {what: modules(*words, within=folder) for what, words in COMMANDS.items()}


def _environment(folder: Path) -> dict[str, str]:
    ours = {"TIDEWHEEL_HOME": str(folder / "home"), "HOME": str(folder)}
    return {n: v for n, v in os.environ.items() if not n.startswith("TIDEWHEEL_")} | ours


def main() -> None:
    for what, (own, every) in of_commands().items():
        print(f"modules of `tidewheel {what}`: {own} of {every}")
    named = ("hops", "jobs", "fans", "submissions", "narrow", "wide")
    units = {unit: of_each(unit) for unit in named}
    for unit, counts in units.items():
        print(f"{unit}: {_told(counts)}")
    goals = {"chain syncs": "hops", "live chain syncs": "jobs", "live fan syncs": "fans"}
    print(judged(Verdict(goal, units[unit]["syncs"]) for goal, unit in goals.items()))
    print(f"the first run of a home, with one task: {_told(of_start())}")
    from bench.drain_counts import of_each_drained

    print(f"drained tasks: {_told(of_each_drained())}")


def _told(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{count:g} {name}" for name, count in counts.items())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        where = Path(sys.argv[2])
        (where / "counts").write_text(
            json.dumps(CHILDREN[sys.argv[1]](where, int(sys.argv[3])))
        )
        os._exit(0)
    main()
