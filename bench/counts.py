"""Counts what a unit of work costs, in numbers that do not depend on the machine.

A hop is a task of a chain, from its parent's end to its own, by scheduler, queue and worker,
with a handler that does nothing, in one process on SQLite. A job is such a task with a script.
Counted are 60 of them less 20 of them, so what it takes to begin is left out. Modules are those
that are loaded when a command has ended.

    python -m bench.counts
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import apsw

import tidewheel

SOURCE = str(Path(tidewheel.__file__).parent) + os.sep
FEW, MANY = 20, 60
UNIX = "unix"  # the disk of SQLite itself
# What Python tells an audit hook of, and what it is called here.
AUDITED = {
    "os.mkdir": "folders",
    "os.symlink": "links",
    "os.posix_spawn": "processes",
    "subprocess.Popen": "processes",
}
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
    """Counts syncs, statements, calls, and what is made, in this process from now on."""

    def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        del cursor, statement, bindings
        counts["statements"] += 1
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

    apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(trace))
    sys.addaudithook(heard)
    threading.setprofile(hook)
    sys.setprofile(hook)
    return CountedDisk(counts)


def hops(folder: Path) -> dict[str, int]:
    """Returns what a chain of handlers takes, in this process."""
    from bench.scheduler.handler_chain import run, use_handlers

    counts: Counter[str] = Counter()
    disk = count_into(counts)
    use_handlers()
    status = asyncio.run(run(folder / "flow", folder / "home"))
    assert status == "completed", status
    disk.unregister()
    return {name: counts[name] for name in ("syncs", "statements", "calls")}


def jobs(folder: Path) -> dict[str, int]:
    """Returns what ``tidewheel run`` of a chain of scripts makes, in this process."""
    from tidewheel.cli.main import run

    counts: Counter[str] = Counter()
    disk = count_into(counts)
    status = run(["run", str(folder / "flow")])
    assert status == 0, status
    disk.unregister()
    return {name: counts[name] for name in ("processes", "folders", "files", "links")}


CHILDREN = {"hops": hops, "jobs": jobs}


def of_each(unit: str) -> dict[str, float]:
    """Returns what each further unit costs."""
    few, many = (_in_child(unit, cycles) for cycles in (FEW, MANY))
    return {name: round((many[name] - few[name]) / (MANY - FEW), 2) for name in many}


def _in_child(unit: str, cycles: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="counts-") as name:
        folder = Path(name)
        (folder / "flow").mkdir()
        (folder / "flow" / "flow.cylc").write_text(FLOW.format(cycles=cycles))
        asked = [sys.executable, "-m", "bench.counts", unit, name]
        subprocess.run(asked, env=_environment(folder), check=True, stdout=subprocess.DEVNULL)
        counts: dict[str, int] = json.loads((folder / "counts").read_text())
        return counts


def modules(*words: str, within: Path) -> tuple[int, int]:
    """Returns how many modules a command loads: of tidewheel, and all."""
    asked = [sys.executable, "-X", "importtime", "-m", "tidewheel", *words]
    told = subprocess.run(
        asked, cwd=within, env=_environment(within), check=True, capture_output=True, text=True
    )
    names = [line.rpartition("|")[2].strip() for line in told.stderr.splitlines()]
    loaded = {name for name in names if name and not name.startswith("imported package")}
    return len([name for name in loaded if name.startswith("tidewheel")]), len(loaded)


COMMANDS = {
    "--version": ("--version",),
    "submit": ("submit", "true"),
    "run": ("run", "flow"),
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
    for unit in CHILDREN:
        print(
            f"{unit}: "
            + ", ".join(f"{count:g} {name}" for name, count in of_each(unit).items())
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        where = Path(sys.argv[2])
        (where / "counts").write_text(json.dumps(CHILDREN[sys.argv[1]](where)))
        os._exit(0)
    main()
