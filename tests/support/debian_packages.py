"""Programs that tests need: on this machine, or installed by apt-get because they are not."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")  # of daemons; not on everybody's PATH
INSTALL_SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something real that tests start, each as root."""

    name: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]

    def missing_reason(self) -> str:
        """Why it cannot run here; empty if it can. Installs what is missing."""
        if os.geteuid() != 0:
            return f"{self.name} of a test runs as root, and this is another user"
        if self._absent():
            with one_at_a_time():
                if self._absent():
                    install(self.name, *self.packages)
        if absent := self._absent():
            return f"there is no {', '.join(absent)}, and apt-get could not install it"
        return ""

    def _absent(self) -> list[str]:
        return [name for name in self.programs if found(name) is None]


def found(name: str) -> str | None:
    """The whole path of a program, if it is here."""
    return shutil.which(name, path=os.pathsep.join((os.environ["PATH"], *FOLDERS)))


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """pytest-xdist's workers all come at once, and the first one installs for all."""
    with Path(sys.prefix, ".install-packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(name: str, *packages: str) -> None:
    """If this user can."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    print(f"Installing {name} for the tests ...", file=sys.stderr)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ("update", "-qq"),
        ("install", "-qq", "-y", "--no-install-recommends", *packages),
    ):
        subprocess.run(
            ("apt-get", *arguments),
            env=environment,
            stdout=sys.stderr,
            timeout=INSTALL_SECONDS_MAX,
            check=False,
        )
