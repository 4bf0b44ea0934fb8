"""One worker process: import the peer, wait at the gate, run the peer's own worker loop."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from bench.queue.crew import READY
from bench.queue.scoreboard import Slot


def gate() -> None:
    """Tell the crew that this worker is ready, and block until it opens the gate."""
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    sys.stdin.readline()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody reads the pipe from here on


def main() -> None:
    module, variant, store, board, slot = sys.argv[1:]
    marks = Slot(Path(board), int(slot))
    importlib.import_module(module).work(variant, store, marks.mark, gate)


if __name__ == "__main__":
    main()
