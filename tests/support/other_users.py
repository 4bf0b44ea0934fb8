"""Programs as other users, who are really others: no test stands in for them.

The interpreter of these tests may lie in a folder that only root may enter. A mount namespace
of its own shows the program such a folder with nothing but the interpreter in it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")

_SHOWN = """\
set -e
mount --make-rprivate /
mount --bind "$1" "$2"
mount -t tmpfs -o mode=755 none "$3"
mkdir -p "$1"
mount --bind "$2" "$1"
shift 3
exec "$@"
"""


def become(user: int, *options: str, group: int | None = None) -> list[str]:
    """The beginning of a command that turns into the rest of it as this user."""
    own = str(user if group is None else group)
    words = ["setpriv", "--reuid", str(user), "--regid", own, *(options or ("--clear-groups",))]
    return [*reachable(), *words]


def reachable() -> list[str]:
    """The beginning of a command for which everybody may enter the interpreter's folder."""
    prefix = Path(sys.base_prefix).resolve()
    closed = [one for one in prefix.parents if not one.stat().st_mode & 0o001]
    if not closed:
        return []
    kept = Path(tempfile.gettempdir()) / f"tidewheel-interpreter-{os.getuid()}"
    kept.mkdir(exist_ok=True)
    return ["unshare", "-m", "sh", "-c", _SHOWN, "sh", str(prefix), str(kept), str(closed[-1])]


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter; pytest's own are for one user."""
    folder = Path(tempfile.mkdtemp(prefix="tidewheel-users-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
