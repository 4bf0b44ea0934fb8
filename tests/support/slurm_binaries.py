"""Slurm's daemons: on this machine, or installed because they are not."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")
PACKAGES = ("slurm-wlm", "munge")
FOLDERS = ("/usr/sbin", "/usr/local/sbin")  # of daemons; not on everybody's PATH


def missing_reason() -> str:
    """Why no Slurm can run here; empty if it can. Installs it where it is missing."""
    if os.getuid() != 0:
        return "Slurm's daemons run as root, and this is another user"
    if not _installed():
        with Path(sys.prefix, ".install-slurm.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _installed():
                _install()
    if not _installed():
        return f"apt-get could not install {' '.join(PACKAGES)}"
    return ""


def program(name: str) -> str:
    """The whole path of a program of Slurm."""
    found = shutil.which(name, path=os.pathsep.join((os.environ["PATH"], *FOLDERS)))
    assert found is not None, f"{name} is not installed"
    return found


def _installed() -> bool:
    path = os.pathsep.join((os.environ["PATH"], *FOLDERS))
    return all(shutil.which(name, path=path) for name in PROGRAMS)


def _install() -> None:
    if not shutil.which("apt-get"):
        return
    print("Installing Slurm for the tests ...", file=sys.stderr)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update", "-qq"],
        ["install", "-qq", "-y", "--no-install-recommends", *PACKAGES],
    ):
        subprocess.run(["apt-get", *arguments], env=environment, stdout=sys.stderr, check=False)
