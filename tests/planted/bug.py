"""A known bug, as the change of source that puts it in, and programs that run with it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Edit(NamedTuple):
    """Replace ``old``, which stands in ``file`` exactly once."""

    file: str
    old: str
    new: str

    def apply(self, package: Path) -> None:
        beside = package.parent if self.file.startswith("tests/") else package
        path = beside / self.file
        source = path.read_text(encoding="utf-8")
        found = source.count(self.old)
        assert found == 1, (
            f"{self.file} holds this text {found} times, it must be once; if the source has "
            f"moved, write the bug anew for it:\n{self.old}"
        )
        path.write_text(source.replace(self.old, self.new), encoding="utf-8")


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
