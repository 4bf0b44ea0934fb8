"""Where the benches keep what they build and measure: below ``build/``, which git ignores."""

from __future__ import annotations

import array
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / "build"
VENV = BUILD / "bench-venv"
NODE = BUILD / "bench-node"
GET_FLAGS, SET_FLAGS, SPREAD_OUT = 0x80086601, 0x40086602, 0x00020000  # of <linux/fs.h>


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
    else:
        spread_out(parent)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ext4 gives nobody an inode that was freed within the last minute, and passes by each of them
# whenever one is wanted nearby: after the removal of some thousand files, each new one costs
# half a millisecond. So nothing is removed while something is measured, nor near the next
# folder.


def put_aside(path: Path) -> None:
    """Moves what was measured out of the way; it is removed with the folder that it is in."""
    if path.exists():
        path.rename(Path(tempfile.mkdtemp(prefix="done-", dir=path.parent)) / path.name)


def spread_out(folder: Path) -> None:
    """Asks ext4 to put each new folder in this one into another part of the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    flags = array.array("l", [0])
    with suppress(OSError):  # other file systems have no such thing
        fcntl.ioctl(opened, GET_FLAGS, flags)
        flags[0] |= SPREAD_OUT
        fcntl.ioctl(opened, SET_FLAGS, flags)
    os.close(opened)


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
