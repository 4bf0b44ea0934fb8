"""A disk that fails: a VFS over the real one whose n-th operation ends with an I/O error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

NEVER = 10**9


class FaultyDisk(apsw.VFS):
    """Counts reads, writes and syncs since `fail` was called, and fails as it was told."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.mend()

    def fail(self, nth: int, *, operations: set[str], forever: bool) -> None:
        """The n-th of these operations from now fails; with `forever`, all later ones too."""
        self.count, self._nth, self._operations, self._forever = 0, nth, operations, forever

    def mend(self) -> None:
        """The disk works again."""
        self.fail(NEVER, operations=set(), forever=False)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _FaultyFile(self, name, flags)

    def meet(self, operation: str, code: int) -> None:
        """One operation of a file."""
        if operation not in self._operations:
            return
        self.count += 1
        if self.count == self._nth or (self._forever and self.count > self._nth):
            error = apsw.IOError(f"injected: {operation} {self.count} failed")
            error.extendedresult = code
            raise error


class _FaultyFile(apsw.VFSFile):
    def __init__(
        self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.meet("read", apsw.SQLITE_IOERR_READ)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.meet("write", apsw.SQLITE_IOERR_WRITE)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.meet("sync", apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)


@contextmanager
def faulty_disk(name: str) -> Iterator[FaultyDisk]:
    """A disk for the length of a `with` block."""
    disk = FaultyDisk(name)
    try:
        yield disk
    finally:
        disk.unregister()
