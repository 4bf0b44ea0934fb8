"""Power cuts for a store on SQLite: what its disk was told, and what a cut may leave of it.

Theory of operation
-------------------
``RecordedDisk`` is a VFS that passes everything on to the real one and writes down each write,
truncation, sync, creation and removal of a file in its order. Whoever uses the store notes, in
the same sequence, what was acknowledged. ``Recording.image`` then answers for a cut at any
recorded moment which files a machine may find when the power is back: everything synced, and
of what came later any part, chosen by chance: nothing, everything, the first writes with a
torn one at the end, some of the writes, or some of their sectors.

The disk is assumed to keep what SQLite needs of it: a sync that has returned is kept; a sector
of 512 bytes is written whole or not at all, and leaves its neighbours alone. Creations and
removals reach the disk in their order; a new -wal file's first sync takes the folder along, as
SQLite's own VFS does. Disks that lie about a sync are not promised to be survived.

``weakened`` is for the control: a test that finds nothing lost must find losses when
``synchronous`` is NORMAL, or it is blind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self, assert_never

import apsw

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Created:
    """A new, empty file."""

    name: str


@dataclass(frozen=True, slots=True)
class Written:
    """Some bytes at some place."""

    name: str
    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    """The file ends here from now on."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything written to the file so far is kept."""

    name: str


@dataclass(frozen=True, slots=True)
class Removed:
    """The file has no name any more; ``kept`` if the folder was synced after it."""

    name: str
    kept: bool


Event = Created | Written | Truncated | Synced | Removed


class _File:
    """One file between its creation and its removal: what is kept, and what came after."""

    def __init__(self, content: bytes, *, is_new: bool) -> None:
        self.kept = bytearray(content)
        self.is_new = is_new
        self.later: list[Written | Truncated] = []

    def sync(self) -> None:
        for event in self.later:
            _apply(event, self.kept)
        self.later = []

    def content(self, chance: Random) -> bytes:
        """What a cut now may leave of it."""
        found = bytearray(self.kept)
        for event in _survivors(self.later, chance):
            _apply(event, found)
        return bytes(found)


class _Folder:
    """Names and the files behind them; names may be kept later than what is in the files."""

    def __init__(self, before: dict[str, bytes]) -> None:
        self.files = {name: _File(content, is_new=False) for name, content in before.items()}
        # The folder as it may be found: the oldest is kept for sure, the last is how it is.
        self._listings: list[dict[str, _File]] = [dict(self.files)]

    def apply(self, event: Event) -> None:
        match event:
            case Created(name):
                self.files[name] = _File(b"", is_new=True)
                self._listings.append(dict(self.files))
            case Written(name) | Truncated(name):
                self.files[name].later.append(event)
            case Synced(name):
                self._sync(self.files[name])
            case Removed(name, kept):
                del self.files[name]
                self._listings.append(dict(self.files))
                if kept:
                    self._keep_names()
            case _:
                assert_never(event)

    @property
    def is_at_rest(self) -> bool:
        """Whether a cut now could not change any file but a -wal."""
        return not any(f.later for n, f in self.files.items() if not n.endswith("-wal"))

    def found_after_cut(self, chance: Random) -> dict[str, bytes]:
        names = chance.choice(self._listings)
        return {name: file.content(chance) for name, file in names.items()}

    def _sync(self, file: _File) -> None:
        file.sync()
        if file.is_new:
            file.is_new = False
            self._keep_names()

    def _keep_names(self) -> None:
        del self._listings[:-1]


@dataclass(slots=True)
class Recording:
    """Everything that happened to the files of one folder, and who was told what when."""

    before: dict[str, bytes] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    notes: list[tuple[int, object]] = field(default_factory=list)

    def note(self, fact: object) -> None:
        """Somebody has been told this: no later cut may undo it."""
        self.notes.append((len(self.events), fact))

    def noted_before(self, cut: int) -> list[object]:
        """What had been acknowledged when the power went."""
        return [fact for moment, fact in self.notes if moment <= cut]

    def image(self, cut: int, chance: Random) -> dict[str, bytes]:
        """The files as they may be found after a cut behind the first ``cut`` events."""
        [(_, found)] = self._images([cut], chance)
        return found

    def images(self, count: int, chance: Random) -> Iterator[tuple[int, dict[str, bytes]]]:
        """Cuts in the order of their moments, each with what may be found after it.

        Half of them are anywhere, half while more than a log is written: most writes go to
        the -wal file, and left to chance alone few cuts would meet a checkpoint.
        """
        anywhere = range(len(self.events) + 1)
        busy = self._busy_moments() or anywhere
        cuts = [chance.choice(busy if number % 2 else anywhere) for number in range(count)]
        return self._images(sorted(cuts), chance)

    def _images(
        self, cuts: Sequence[int], chance: Random
    ) -> Iterator[tuple[int, dict[str, bytes]]]:
        folder, done = _Folder(self.before), 0
        for cut in cuts:
            for event in self.events[done:cut]:
                folder.apply(event)
            done = cut
            yield cut, folder.found_after_cut(chance)

    def _busy_moments(self) -> list[int]:
        folder, busy = _Folder(self.before), []
        for moment, event in enumerate(self.events, start=1):
            folder.apply(event)
            if not folder.is_at_rest:
                busy.append(moment)
        return busy


class RecordedDisk(apsw.VFS):
    """``with RecordedDisk("recorded") as disk: open_sqlite_store(…, vfs="recorded")``."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.recording = Recording()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unregister()

    # The methods of a VFS have SQLite's names.
    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Every file of ours has a name; files without one are sorting space."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:
            return apsw.VFSFile("", name, flags)
        self._notice(path)
        return _RecordedFile(self.recording, Path(path).name, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Also names that are gone already are deleted; those leave no trace."""
        existed = os.path.exists(filename)
        super().xDelete(filename, syncdir)
        if existed:
            self.recording.events.append(Removed(Path(filename).name, kept=syncdir))

    def _notice(self, path: str) -> None:
        """A file that was there before us, or one that is about to be made."""
        name = Path(path).name
        known = {*self.recording.before, *(e.name for e in self._creations())}
        if not os.path.exists(path):
            self.recording.events.append(Created(name))
        elif name not in known:
            self.recording.before[name] = Path(path).read_bytes()

    def _creations(self) -> Iterator[Created]:
        return (event for event in self.recording.events if isinstance(event, Created))


class _RecordedFile(apsw.VFSFile):
    """What is done to a file is written down once it has been done."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        filename: str | apsw.URIFilename | None,
        flags: list[int],
    ) -> None:
        self._recording = recording
        self._name = name
        super().__init__("", filename, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._recording.events.append(Written(self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._recording.events.append(Truncated(self._name, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._recording.events.append(Synced(self._name))


def write_image(image: dict[str, bytes], folder: Path) -> None:
    """Put the files of an image into a folder of their own."""
    folder.mkdir(mode=0o700)
    for name, content in image.items():
        (folder / name).write_bytes(content)


@contextmanager
def weakened(synchronous: str = "normal") -> Iterator[None]:
    """Connections that are opened meanwhile keep this setting, whatever they are told.

    Nothing else is changed: SQLite itself decides what it then no longer syncs.
    """

    def authorise(action: int, name: str | None, *_: str | None) -> int:
        ignored = action == apsw.SQLITE_PRAGMA and name == "synchronous"
        return apsw.SQLITE_IGNORE if ignored else apsw.SQLITE_OK

    def weaken(connection: apsw.Connection) -> None:
        connection.pragma("synchronous", synchronous)
        connection.authorizer = authorise

    apsw.connection_hooks.append(weaken)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(weaken)


def _survivors(
    later: Sequence[Written | Truncated], chance: Random
) -> Iterator[Written | Truncated]:
    """Of what no sync has covered yet, what a cut happens to leave."""
    match chance.choice(("nothing", "everything", "the first", "some", "sectors")):
        case "nothing":
            return
        case "everything":
            yield from later
        case "the first":
            count = chance.randint(0, len(later))
            yield from later[:count]
            if count < len(later):
                yield from _torn(later[count], chance)
        case "some":
            yield from (event for event in later if chance.getrandbits(1))
        case "sectors":
            share = chance.random()
            for event in later:
                yield from (part for part in _sectors(event) if chance.random() < share)


def _torn(event: Written | Truncated, chance: Random) -> Sequence[Written | Truncated]:
    sectors = _sectors(event)
    return sectors[: chance.randint(0, len(sectors))]


def _sectors(event: Written | Truncated) -> Sequence[Written | Truncated]:
    """The same write in pieces, each within one sector of the file."""
    if isinstance(event, Truncated):
        return [event]
    pieces, start = [], 0
    while start < len(event.content):
        offset = event.offset + start
        length = SECTOR_BYTES - offset % SECTOR_BYTES
        pieces.append(Written(event.name, offset, event.content[start : start + length]))
        start += length
    return pieces


def _apply(event: Written | Truncated, content: bytearray) -> None:
    if isinstance(event, Truncated):
        del content[event.size :]
        _grow(content, event.size)
        return
    _grow(content, event.offset)
    content[event.offset : event.offset + len(event.content)] = event.content


def _grow(content: bytearray, size: int) -> None:
    """What was never written inside a file reads as zeros."""
    if len(content) < size:
        content.extend(bytes(size - len(content)))
