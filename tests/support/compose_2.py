"""docker compose 2, a program of the next Debian, for tests of stages; kept in the venv.

Debian 12 has version 1, which the other tests use. The package of Debian 13 needs no other, so
its file is taken out and nothing is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.debian_packages import INSTALL_SECONDS_MAX, one_at_a_time

SUITE = "trixie"
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")  # as Debian's images have them
PROGRAM = "usr/libexec/docker/cli-plugins/docker-compose"
FOLDER = Path(sys.prefix, "compose-2")


def compose_2_folder() -> Path | None:
    """The folder that has docker-compose of version 2; None if it cannot be had here."""
    there = FOLDER / "docker-compose"
    if not there.exists() and shutil.which("apt-get") and SOURCES.exists():
        with one_at_a_time():
            if not there.exists():
                _fetch(there)
    return FOLDER if there.exists() else None


def _fetch(there: Path) -> None:
    first = SOURCES.read_text().strip().split("\n\n")[0]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for folder in ("lists/partial", "cache/archives/partial"):
            (work / folder).mkdir(parents=True)
        source = work / "next.sources"
        source.write_text(re.sub(r"(?m)^Suites:.*$", f"Suites: {SUITE}", first) + "\n")
        only = {
            "Dir::Etc::sourcelist": str(source),
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": str(work / "lists"),
            "Dir::Cache": str(work / "cache"),
            "APT::Sandbox::User": "root",
        }
        options = [word for key, value in only.items() for word in ("-o", f"{key}={value}")]
        for arguments in (("update", "-qq"), ("download", "-qq", "docker-compose")):
            subprocess.run(
                ("apt-get", *options, *arguments),
                cwd=work,
                stdout=sys.stderr,
                timeout=INSTALL_SECONDS_MAX,
                check=False,
            )
        for package in work.glob("docker-compose_2*.deb"):
            subprocess.run(("dpkg-deb", "-x", package, work / "out"), check=True)
            there.parent.mkdir(exist_ok=True)
            shutil.copy(work / "out" / PROGRAM, there)
