"""The peers' own installations, so that ours stays clean of what we only compare with."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from bench.folders import BUILD, NODE, VENV, ignored_folder

PYTHON = VENV / "bin" / "python"
INSTALL_SECONDS_MAX = 600.0
# Latest releases on purpose: a peer is met at its best. The output names the versions.
DRIVERS = ("psycopg[binary]", "psycopg-pool", "asyncpg", "uvloop", "apsw")


class CannotInstall(Exception):
    """A peer could not be installed; the report shows the reason instead of figures."""


def ensure_python_peer(*requirements: str) -> Path:
    """The interpreter of the peers' virtual environment, with the requirements in it."""
    if not PYTHON.exists():
        ignored_folder(VENV)
        _install([sys.executable, "-m", "venv", str(VENV)])
    for wanted in (DRIVERS, requirements):
        if not _has(wanted):
            _install([str(PYTHON), "-m", "pip", "install", "--quiet", *wanted])
    return PYTHON


def ensure_own_environment(requirement: str) -> Path:
    """The interpreter of an environment for one peer alone, whose pins suit no other."""
    folder = BUILD / f"bench-venv-{requirement}"
    python = folder / "bin" / "python"
    if not python.exists():
        ignored_folder(folder)
        _install([sys.executable, "-m", "venv", str(folder)])
    if python_version_of(requirement, python) == "?":
        _install([str(python), "-m", "pip", "install", "--quiet", requirement])
    return python


def ensure_node_peer(*packages: str) -> Path:
    """The folder in which node finds the packages; npm writes nowhere else."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise CannotInstall("node and npm are not installed")
    ignored_folder(NODE)
    if not all((NODE / "node_modules" / package).exists() for package in packages):
        _install([npm, "install", "--no-fund", "--no-audit", "--prefix", str(NODE), *packages])
    return NODE


def python_version_of(distribution: str, interpreter: Path) -> str:
    """The installed version of a distribution, as that interpreter sees it."""
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    command = [str(interpreter), "-c", code, distribution]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    return answer.stdout.strip() or "?"


def node_version_of(package: str) -> str:
    """The installed version of an npm package."""
    path = NODE / "node_modules" / package / "package.json"
    return str(json.loads(path.read_text())["version"]) if path.exists() else "?"


def _has(requirements: tuple[str, ...]) -> bool:
    names = (requirement.partition("[")[0] for requirement in requirements)
    return all(python_version_of(name, PYTHON) != "?" for name in names)


def _install(command: list[str]) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX
        )
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout).strip().splitlines() or ["no message"]
        raise CannotInstall(f"{' '.join(command[-2:])}: {lines[-1]}") from error
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"{' '.join(command[-2:])}: took over {error.timeout} s") from error
