"""``python -m bench.compile``: tidewheel and cylc-flow read the same generated file."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from bench.compile.generated import definition, workflow
from bench.environments import CannotInstall, ensure_own_environment, python_version_of
from bench.folders import data_folder
from bench.goals import Verdict, judged
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table

LINES = 5_000
TASKS = (100, 1_000, 10_000)
PEER_SECONDS_MAX = 600.0
CYLC_SCRIPT = Path(__file__).with_name("cylc_seconds.py")  # it imports cylc, we do not


def main() -> None:
    wish = _arguments()
    with data_folder() as folder:
        facts = machine_facts(folder)
        parts = (_beside_cylc(folder, wish.lines), _growth(folder, wish.tasks))
    publish(wish.write, "compile", facts_text(facts), *parts)


def _beside_cylc(folder: Path, lines: int) -> str:
    path = folder / "lines" / "flow.cylc"
    path.parent.mkdir()
    path.write_text(definition(lines))
    counted = len(path.read_text().splitlines())
    ours, _ = _measured(path)
    try:
        interpreter = ensure_own_environment("cylc-flow")
        theirs, command = _cylc(interpreter, path)
    except (CannotInstall, subprocess.SubprocessError) as error:
        return f"{counted} lines: tidewheel {ours:.3f} s; cylc-flow not measured: {error}\n"
    version = python_version_of("cylc-flow", interpreter)
    rows = [
        ["tidewheel", f"{ours:.3f}", "", "1", ""],
        [
            f"cylc-flow {version}",
            f"{theirs:.2f}",
            f"{command:.2f}",
            f"{theirs / ours:.1f}",
            f"{command / ours:.1f}",
        ],
    ]
    header = ("system", "in process s", "`cylc validate` s", "ratio", "ratio to the command")
    verdicts = [
        Verdict("compile command", command / ours, f"{ours:.3f} to {command:.2f} s"),
        Verdict("compile process", theirs / ours, f"{ours:.3f} to {theirs:.2f} s"),
    ]
    what = f"{counted} lines, read, compiled and checked:"
    return f"{what}\n\n{table(header, rows)}\n\n{judged(verdicts)}\n"


def _cylc(interpreter: Path, path: Path) -> tuple[float, float]:
    """Seconds in process, and of the whole command."""
    answer = subprocess.run(
        [str(interpreter), str(CYLC_SCRIPT), str(path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=PEER_SECONDS_MAX,
    )
    begin = time.perf_counter()
    subprocess.run(
        [str(interpreter.parent / "cylc"), "validate", str(path.parent)],
        check=True,
        capture_output=True,
        timeout=PEER_SECONDS_MAX,
    )
    return float(answer.stdout), time.perf_counter() - begin


def _growth(folder: Path, sizes: list[int]) -> str:
    rows = []
    for tasks in sizes:
        path = folder / str(tasks) / "flow.cylc"
        path.parent.mkdir()
        path.write_text(workflow(tasks))
        seconds, megabytes = _measured(path)
        per_task = seconds / tasks * 1e6
        rows.append([f"{tasks:,}", f"{seconds:.3f}", f"{per_task:.0f}", f"{megabytes:.0f}"])
    header = ("tasks", "seconds", "µs per task", "peak memory MB")
    return f"Growth:\n\n{table(header, rows)}\n"


def _measured(path: Path) -> tuple[float, float]:
    """Best seconds and peak memory in MB."""
    command = [sys.executable, "-m", "bench.compile.measured", str(path)]
    answer = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=PEER_SECONDS_MAX
    )
    seconds, megabytes = json.loads(answer.stdout)
    return seconds, megabytes


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--tasks", type=int, nargs="+", default=list(TASKS))
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
