"""The programs that jobs of a run find on their PATH: `tidewheel`, and `cylc` in its place.

They are scripts of one line in a folder of the worker's own, so that they start the very
tidewheel that the worker is, and no other one, nor a Cylc, that may be installed.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tidewheel.runners.job_directory import make_private_directory, write_whole

# -E -P: modules of a workflow's lib/python and of the folder that a job is in are not ours.
_PROGRAMS = {
    "tidewheel": "-E -P -m tidewheel",
    "cylc": "-E -P -m tidewheel.cli.cylc",
}


def write_programs(home: Path) -> Path:
    """Put them into `<home>/bin`, where they are not yet; the answer is that folder."""
    folder = home.absolute() / "bin"
    make_private_directory(folder)
    python = shlex.quote(sys.executable)
    for name, arguments in _PROGRAMS.items():
        content = f'#!/bin/sh\nexec {python} {arguments} "$@"\n'.encode()
        path = folder / name
        # Written once for all workers of a home: a job may be just starting it.
        if not path.exists() or path.read_bytes() != content:
            write_whole(path, content, mode=0o700)
    return folder
