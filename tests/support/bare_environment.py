"""A wheel in an environment that holds what the wheel asks for, and nothing else.

Nothing is fetched: what it asks for is linked from where these tests run.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def installed(wheel: Path, folder: Path) -> Path:
    """The program of tidewheel in a new environment there."""
    venv.create(folder, with_pip=False)
    there = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", there))
    [asked] = Distribution.discover(name="tidewheel", path=[str(wheel)])
    for one in _wanted(asked, set()):
        for name in {path.parts[0] for path in one.files or ()} - {"..", "__pycache__"}:
            (packages / name).symlink_to(str(one.locate_file(name)))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    command = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "bin" / "tidewheel"


def _wanted(asking: Distribution, seen: set[str]) -> Iterator[Distribution]:
    """What it requires, and what that requires, each once."""
    for text in asking.requires or ():
        one = Requirement(text)
        name = canonicalize_name(one.name)
        if name in seen or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        found = distribution(name)
        yield found
        yield from _wanted(found, seen)
