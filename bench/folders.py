"""Where the benches keep what they build and measure: below ``build/``, which git ignores."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / "build"
VENV = BUILD / "bench-venv"
NODE = BUILD / "bench-node"


def ignored_folder(path: Path) -> Path:
    """Make the folder, and keep git out of it whatever the repository's own rules say."""
    path.mkdir(parents=True, exist_ok=True)
    (path / ".gitignore").write_text("*\n")
    return path


@contextmanager
def data_folder() -> Iterator[Path]:
    """A fresh folder for databases, on a real disk that the postgres user can reach."""
    parent = ignored_folder(BUILD / "bench-data")
    if not _open_to_others(parent):
        parent = Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def filesystem_of(path: Path) -> str:
    """The type of the file system below ``path``: durable figures on tmpfs would be a lie."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        mount, mount_kind = line.split()[1:3]
        if path.is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, mount_kind
    return kind


def _open_to_others(path: Path) -> bool:
    searchable = 0o001
    return os.getuid() != 0 or all(
        step.stat().st_mode & searchable for step in (path, *path.parents)
    )
