"""Keeps what all workers of one home share in it: its identity, and programs for jobs.

By the identity two processes find out whether they share one folder. The programs are what
jobs of a run find on their PATH: `tidewheel`, and `cylc` in its place. They are scripts of one
line, so that they start the very tidewheel that the worker is, and no other one, nor a Cylc,
that may be installed.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from tidewheel.runners.job_directory import make_private_directory, write_whole

HOME_FILE = "home.id"
_LENGTH_MAX = 64


def home_id(home: Path) -> str:
    """Returns the identity of this home; it is given one the first time."""
    if found := known_home_id(home):
        return found
    make_private_directory(home)
    new = home / f"{HOME_FILE}.{secrets.token_hex(4)}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(16))
    try:
        with suppress(FileExistsError):  # of several that are first, one is
            os.link(new, home / HOME_FILE)
    finally:
        os.unlink(new)
    found = known_home_id(home)
    assert found is not None, "it was just written"
    return found


def known_home_id(home: Path) -> str | None:
    """Returns the identity of this home, if it has one."""
    try:
        return (home / HOME_FILE).read_text(encoding="ascii")[:_LENGTH_MAX] or None
    except (OSError, UnicodeDecodeError):
        return None


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
