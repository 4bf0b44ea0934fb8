"""Counts what of tidewheel lies between the end of one job and the start of the next.

``tidewheel run`` drives ``a => b`` on SQLite in a process with a profile hook in all threads.
Counted is from the callback that hears the end of a's process to ``Jobs.begin`` of b: distinct
files, distinct functions and calls of tidewheel, without comprehensions, and how often one
thread goes on where another was. Files that only another thread touches meanwhile count, too.

    python -m bench.traced_path                 the counts, and the functions of each file
    python -m bench.traced_path --in-order      every call, in order, with its thread
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType

import tidewheel

ROOT = str(Path(tidewheel.__file__).parent) + os.sep
BEGINS = "watch.<locals>.readable"  # runners/processes.py: the pidfd of a job
ENDS = "Jobs.begin"
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
CHILD = "--child"
FLOW = """\
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        script = sleep 2  # so that its start has been told when it ends
    [[b]]
        script = true
"""


class Trace:
    """Notes each call of tidewheel between the two moments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, CodeType]] = []  # the thread's name, and what it called
        self._is_between = False
        self._is_over = False

    def hook(self, frame: FrameType, event: str, arg: object) -> None:
        """Is called by Python at each call and return, in each thread."""
        del arg
        if event != "call" or self._is_over:
            return
        code = frame.f_code
        if not code.co_filename.startswith(ROOT) or code.co_name in COMPREHENSIONS:
            return
        self._is_between = self._is_between or code.co_qualname == BEGINS
        if self._is_between:
            self.calls.append((threading.current_thread().name, code))
            self._is_over = code.co_qualname == ENDS

    def lines(self, *, in_order: bool) -> list[str]:
        """Returns the counts, then the functions by file or the calls in order."""
        functions: dict[str, dict[str, None]] = defaultdict(dict)
        changes = -1
        last = ""
        for thread, code in self.calls:
            functions[code.co_filename.removeprefix(ROOT)][code.co_qualname] = None
            changes += thread != last
            last = thread
        count = sum(map(len, functions.values()))
        head = (
            f"{len(functions)} files, {count} functions, {len(self.calls)} calls, "
            f"{max(0, changes)} changes of thread"
        )
        if in_order:
            return [
                head,
                *(
                    f"{thread:12} {code.co_filename.removeprefix(ROOT)} {code.co_qualname}"
                    for thread, code in self.calls
                ),
            ]
        return [
            head,
            *(
                f"{file} ({len(named)}): {', '.join(named)}"
                for file, named in functions.items()
            ),
        ]


def traced_run(arguments: list[str]) -> None:
    """Is the process that is traced: ``tidewheel run``, with the hook in all of its threads."""
    from tidewheel.cli.main import run

    report, *words = arguments
    trace = Trace()
    threading.setprofile(trace.hook)
    sys.setprofile(trace.hook)
    status = run(words)
    sys.setprofile(None)
    threading.setprofile(None)
    Path(report).write_text("\n".join(trace.lines(in_order="--in-order" in sys.argv)) + "\n")
    os._exit(status)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="traced-") as name:
        folder = Path(name)
        (folder / "flow").mkdir()
        (folder / "flow" / "flow.cylc").write_text(FLOW)
        report = folder / "report"
        environment = {**os.environ, "TIDEWHEEL_HOME": str(folder / "home")}
        environment.pop("TIDEWHEEL_STORE", None)
        environment.pop("TIDEWHEEL_SERVER", None)
        words = [str(report), "run", str(folder / "flow")]
        subprocess.run(
            [sys.executable, "-m", "bench.traced_path", *sys.argv[1:], CHILD, *words],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        sys.stdout.write(report.read_text())


if __name__ == "__main__":
    if CHILD in sys.argv:
        traced_run(sys.argv[sys.argv.index(CHILD) + 1 :])
    else:
        main()
