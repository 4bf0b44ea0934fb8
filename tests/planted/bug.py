"""A known bug, as the change of source that puts it in, and programs that run with it.

Bugs are planted to test tests. `make campaign` plants all of them; `make test` sees that each
still fits the source and plants one in six: by hand others each time, in CI always the same.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.sim.seeds import fresh_seed

ONE_IN = 6

ROOT = Path(__file__).parents[2]


class Edit(NamedTuple):
    """Replace ``old``, which stands in ``file`` exactly once."""

    file: str
    old: str
    new: str

    def apply(self, package: Path) -> None:
        path, edited = self.edited(package)
        path.write_text(edited, encoding="utf-8")

    def edited(self, package: Path) -> tuple[Path, str]:
        """The file and its text with the bug; an AssertionError if it does not fit."""
        beside = package.parent if self.file.startswith("tests/") else package
        path = beside / self.file
        source = path.read_text(encoding="utf-8")
        found = source.count(self.old)
        assert found == 1, (
            f"{self.file} holds this text {found} times, it must be once; if the source has "
            f"moved, write the bug anew for it:\n{self.old}"
        )
        return path, source.replace(self.old, self.new)


class Bug(NamedTuple):
    """One bug that the simulation must find."""

    name: str
    edits: tuple[Edit, ...]
    # Where to begin: a rare one is known to show soon after its own, and on the way there
    # nothing would be learnt but patience.
    seed: int | None = None

    def apply(self, package: Path) -> None:
        for edit in self.edits:
            edit.apply(package)


Planted = TypeVar("Planted")


def some_of(bugs: Iterable[Planted], name_of: Callable[[Planted], str]) -> list[ParameterSet]:
    """All of them, as parameters of a test; those that are not planted today are nightly."""
    today = (fresh_seed() or 0) % ONE_IN
    return [
        pytest.param(
            bug, id=name_of(bug), marks=() if at % ONE_IN == today else pytest.mark.nightly
        )
        for at, bug in enumerate(bugs)
    ]


def run_with(package: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """``python -m`` with a copy of the package and the test kit, and the tests as they are."""
    copy = str(package.parent)
    return subprocess.run(
        [sys.executable, "-P", "-m", *map(str, arguments)],  # what was copied comes first
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((copy, str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
