"""Removes files of runs and tasks that are in no store any more: the one place that deletes.

Theory of operation. A folder is named by its parts below a root, each a plain name. It is
reached by descriptors of directories, from the root on, and no link is followed on the way or
within: what a job made of its folder leads nowhere else. It is renamed before it is emptied, so
that a folder of the same name that is made meanwhile loses nothing, and what is left of it is
found again.

Several stores may use one home, and have runs of the same name. A folder of a run says which
store knows it, and whose it is; one that says neither is taken for nobody's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import KeysetPage, TaskFilter
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store
from tidewheel.runners.job_directory import STATUS_NAME, parse_status, read_plain
from tidewheel.runners.processes import boot_id, is_alive
from tidewheel.services import paths

GOING = ".removed-"  # how folders are called that are being emptied
PAGE = 1_000
SMALL_BYTES_MAX = 10_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_run_files(home: Path, run: RunView, store_id: str) -> bool:
    """Removes the folder of a run that was deleted from the store; returns if it was removed.

    A folder that says that it is another run's or another store's stays, though it has the same
    name, and so does one that does not say whose it is.
    """
    mark = FolderMark(owner=paths.owner_text(run), store=store_id)
    return remove_folder(paths.runs_directory(home), run.name.split("/"), mark)


def remove_task_files(home: Path, store_id: str, seqs: Sequence[int]) -> int:
    """Removes the folders of tasks that were deleted from the store; returns how many."""
    root = paths.tasks_directory(home, store_id)
    return sum(remove_folder(root, [str(seq)]) for seq in seqs)


class FolderMark(NamedTuple):
    """Says which run, of which store, a folder belongs to; "" means that it does not say."""

    owner: str
    store: str

    def is_of(self, mine: FolderMark) -> bool:
        """Says whether this mark says anything, and nothing that differs from `mine`."""
        said = [(there, my) for there, my in zip(self, mine, strict=True) if there]
        return bool(said) and all(there == my for there, my in said)


def remove_folder(root: Path, parts: Sequence[str], mark: FolderMark | None = None) -> bool:
    """Removes a folder below the root with all that is in it; returns if it was removed.

    Nothing happens where a part is no plain name, or the way leads over a link, or the folder
    does not have the mark.
    """
    if not parts or not all(map(_is_plain, parts)):
        return False
    try:
        with ExitStack() as stack:
            folder = _way(stack, root, parts[:-1])
            name = parts[-1]
            if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            if mark is not None and not _mark(stack, folder, name).is_of(mark):
                return False
            going = f"{GOING}{name}"
            with suppress(OSError):
                shutil.rmtree(going, dir_fd=folder)  # of a try before
            os.rename(name, going, src_dir_fd=folder, dst_dir_fd=folder)
            shutil.rmtree(going, dir_fd=folder)
            _remove_empty(stack, root, parts[:-1])
    except (OSError, RecursionError):
        return False
    return True


def bytes_below(root: Path, parts: Sequence[str]) -> int:
    """Returns the bytes that the files of a folder take; links count as what they are."""
    total = 0
    for _, _, names, at in os.fwalk(root.joinpath(*parts)):
        for name in names:
            with suppress(OSError):
                total += os.stat(name, dir_fd=at, follow_symlinks=False).st_size
    return total


def _open(stack: ExitStack, name: str, at: int | None) -> int:
    """Opens a directory until the stack is left; no link is followed."""
    descriptor = os.open(name, _FOLDER, dir_fd=at)
    stack.callback(os.close, descriptor)
    return descriptor


def _way(stack: ExitStack, root: Path, parts: Sequence[str]) -> int:
    at = _open(stack, str(root), None)
    for part in parts:
        at = _open(stack, part, at)
    return at


def _is_plain(part: str) -> bool:
    return part not in ("", ".", "..") and "/" not in part and "\0" not in part


def _mark(stack: ExitStack, folder: int, name: str) -> FolderMark:
    said = ["", ""]
    for number, path in enumerate((paths.OWNER, paths.STORE)):
        with suppress(OSError):  # it does not say so
            at = folder
            for part in (name, *path.parts[:-1]):
                at = _open(stack, part, at)
            said[number] = _read(path.name, at)
    return FolderMark(*said)


def _read(name: str, at: int) -> str:
    """Returns the text of a file in an open directory, up to SMALL_BYTES_MAX bytes of it."""
    return read_plain(Path(name), SMALL_BYTES_MAX, at=at).decode(errors="replace")


def _remove_empty(stack: ExitStack, root: Path, parts: Sequence[str]) -> None:
    """Removes the folder of a workflow whose last run is gone, and empty ones above it."""
    with suppress(OSError):
        for length in range(len(parts), 0, -1):
            above = _way(stack, root, parts[: length - 1])
            os.rmdir(parts[length - 1], dir_fd=above)


class Orphan(NamedTuple):
    """Describes a folder below the home that belongs to nothing in the store."""

    kind: str  # runs or tasks
    parts: tuple[str, ...]
    size: int
    mark: FolderMark | None  # what it said; None: it is not of a run
    in_use: bool = False  # a job of it runs, or may run, on this host

    @property
    def path(self) -> str:
        """Returns the path below the home."""
        return "/".join((self.kind, *self.parts))

    @property
    def is_unmarked(self) -> bool:
        """Says whether a folder of a run names no store.

        It may be another store's: workers and schedulers of earlier versions noted none.
        """
        is_left = self.parts[-1].startswith(GOING)  # somebody has decided it already
        return self.mark is not None and not self.mark.store and not is_left


async def find_orphans(store: Store, home: Path) -> list[Orphan]:
    """Returns the folders of runs and of tasks that the store does not know.

    Folders are looked for first: what is made meanwhile is in the store by then.
    """
    store_id = await store.store_id()
    runs = await asyncio.to_thread(lambda: list(_run_folders(home, store_id)))
    tasks = await asyncio.to_thread(lambda: list(_task_folders(home, store_id)))
    known = await _known_runs(store) if runs else {}
    seqs = await _known_seqs(store) if tasks else set()
    found: list[tuple[str, tuple[str, ...], FolderMark | None]] = [
        ("runs", parts, mark)
        for parts, mark in runs
        if "/".join(parts) not in known or mark.owner not in ("", known["/".join(parts)])
    ]
    found += [
        (f"tasks/{paths.store_name(store_id)}", (name,), None)
        for name in tasks
        if not name.isdecimal() or int(name) not in seqs
    ]
    return [await asyncio.to_thread(_orphan, home, *one) for one in found]


def _orphan(home: Path, kind: str, parts: tuple[str, ...], mark: FolderMark | None) -> Orphan:
    root = home / kind
    return Orphan(kind, parts, bytes_below(root, parts), mark, has_live_job(root, parts))


def remove_orphan(home: Path, orphan: Orphan) -> bool:
    """Removes a folder and says whether it was there; one in which a job runs stays."""
    root = home / orphan.kind
    return not has_live_job(root, orphan.parts) and remove_folder(root, orphan.parts)


def has_live_job(root: Path, parts: Sequence[str]) -> bool:
    """Says whether a process of this host is, or may be, the job of an attempt in this folder.

    It reads the status files by which adoption knows jobs, too. Of a job in another pid
    namespace nothing can be seen: it may be alive.
    """
    here = boot_id()
    for _, _, names, at in os.fwalk(root.joinpath(*parts)):
        if STATUS_NAME not in names:
            continue
        with suppress(OSError):
            status = parse_status(_read(STATUS_NAME, at))
            process = status.process
            if process is None or status.exit_status is not None:
                continue
            if status.boot_id != here:
                if status.boot_id.partition("/")[0] == here.partition("/")[0]:
                    return True
            elif is_alive(process.pid, process.started):
                return True
    return False


def _run_folders(home: Path, store_id: str) -> Iterator[tuple[tuple[str, ...], FolderMark]]:
    """Yields every folder of a run below the home, by its parts, with its mark; not those that
    say that they belong to another store."""
    root = paths.runs_directory(home)
    if not root.is_dir():  # nothing has run here yet
        return
    for where, names, _, _ in os.fwalk(root):
        folder = Path(where)
        parts = folder.relative_to(root).parts
        if not parts:
            continue
        # A worker of another host, and earlier versions, have made no file of the owner.
        logs = (folder / "log" / name for name in ("scheduler", "job", "config"))
        is_run = (folder / paths.OWNER).is_file() or any(map(os.path.isdir, logs))
        if is_run or parts[-1].startswith(GOING):
            names.clear()  # what lies in it is its own
            mark = FolderMark(_text(folder / paths.OWNER), _text(folder / paths.STORE))
            if mark.store in ("", store_id):
                yield parts, mark


def _task_folders(home: Path, store_id: str) -> Iterator[str]:
    with suppress(OSError):
        for one in os.scandir(paths.tasks_directory(home, store_id)):
            if one.is_dir(follow_symlinks=False):
                yield one.name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:1_000]
    except OSError:
        return ""


async def _known_runs(store: Store) -> dict[str, str]:
    """Returns the owner that the folder of each run names, by the name of the run."""
    found: dict[str, str] = {}
    before = None
    while page := await store.runs(count=PAGE, before=before, nested=True):
        found |= {run.name: paths.owner_text(run) for run in page}
        before = page[-1].number
    return found


async def _known_seqs(store: Store) -> set[int]:
    found: set[int] = set()
    before = None
    while page := await store.list_tasks(TaskFilter(), KeysetPage(count=PAGE, before=before)):
        found |= {task.seq for task in page}
        before = page[-1].seq
    return found
