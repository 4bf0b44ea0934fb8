"""Disks for tests: in memory, where a sync costs nothing, or with a size, to be filled."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder on which nothing waits for a disk; syncs are called no less."""
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="tidewheel-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class Volume:
    """A mounted folder with room for so many bytes."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.path = path
        self._mount("-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "tmpfs")

    def grow(self, size_bytes: int) -> None:
        """Somebody has made room."""
        self._mount("-o", f"remount,size={size_bytes}")

    def fill(self, spare_bytes: int = 0) -> Path:
        """Take all the room that is left but this; the answer is the file that has it."""
        ballast = self.path / "ballast"
        with ballast.open("wb", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue
            file.truncate(file.tell() - spare_bytes)
        return ballast

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", self.path], check=True)

    def _mount(self, *options: str) -> None:
        subprocess.run(["mount", *options, self.path], check=True, capture_output=True)


@contextmanager
def mounted(path: Path, size_bytes: int) -> Iterator[Volume]:
    """A volume for the length of a `with` block; skips where we may not mount."""
    path.mkdir(parents=True)
    if os.getuid() != 0:
        pytest.skip("only root can mount a volume of a given size")
    try:
        volume = Volume(path, size_bytes)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this machine lets nobody mount: {error.stderr.decode().strip()}")
    try:
        yield volume
    finally:
        volume.unmount()
