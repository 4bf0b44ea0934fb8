"""Removes files of runs and tasks that are in no store any more: the one place that deletes.

Theory of operation. A folder is named by its parts below a root, each a plain name. It is
reached by descriptors of directories, from the root on, and no link is followed on the way or
within: what a job made of its folder leads nowhere else. It is renamed before it is emptied, so
that whoever makes a folder of the same name meanwhile loses nothing, and what is left of it is
found again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tidewheel.core.runs.views import RunView
from tidewheel.core.tasks.requests import Page, TaskFilter
from tidewheel.ports.store import Store
from tidewheel.services.home_folders import runs_directory, store_name, tasks_directory
from tidewheel.services.scheduler.run_owner import OWNER, STORE, owner_text

GOING = ".removed-"  # how folders are called that are being emptied
PAGE = 1_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_run_files(home: Path, run: RunView) -> bool:
    """Removes the folder of a run that the store has let go; whether there was one.

    A folder that says that it is another run's stays, though it has the same name.
    """
    parts = run.name.split("/")
    return remove_folder(runs_directory(home), parts, whose=owner_text(run))


def remove_task_files(home: Path, store_id: str, seqs: Sequence[int]) -> int:
    """Removes the folders of tasks that the store has let go; how many there were."""
    root = tasks_directory(home, store_id)
    return sum(remove_folder(root, [str(seq)]) for seq in seqs)


def remove_folder(root: Path, parts: Sequence[str], whose: str = "") -> bool:
    """Removes a folder below the root with all that is in it; whether there was one.

    Nothing happens where a part is no plain name, or the way leads over a link. `whose` is what
    its file of the owner says, if it says anything.
    """
    if not parts or not all(map(_is_plain, parts)):
        return False
    try:
        with _Descriptors() as opened:
            folder = opened.way(root, parts[:-1])
            name = parts[-1]
            if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            if whose and _owner(opened, folder, name) not in ("", whose):
                return False
            going = f"{GOING}{name}"
            with suppress(OSError):
                shutil.rmtree(going, dir_fd=folder)  # of a try before
            os.rename(name, going, src_dir_fd=folder, dst_dir_fd=folder)
            shutil.rmtree(going, dir_fd=folder)
            _remove_empty(opened, root, parts[:-1])
    except (OSError, RecursionError):
        return False
    return True


def bytes_below(root: Path, parts: Sequence[str]) -> int:
    """How much room the files of a folder take; links count as what they are."""
    total = 0
    for where, _, names, at in os.fwalk(root.joinpath(*parts)):
        del where
        for name in names:
            with suppress(OSError):
                total += os.stat(name, dir_fd=at, follow_symlinks=False).st_size
    return total


class _Descriptors:
    """Directories that are open, and closed together."""

    def __init__(self) -> None:
        self._opened: list[int] = []

    def __enter__(self) -> _Descriptors:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._opened:
            os.close(descriptor)

    def way(self, root: Path, parts: Sequence[str]) -> int:
        at = self.open(str(root), None)
        for part in parts:
            at = self.open(part, at)
        return at

    def open(self, name: str, at: int | None) -> int:
        self._opened.append(os.open(name, _FOLDER, dir_fd=at))
        return self._opened[-1]


def _is_plain(part: str) -> bool:
    return part not in ("", ".", "..") and "/" not in part and "\0" not in part


def _owner(opened: _Descriptors, folder: int, name: str) -> str:
    """What the folder says whose it is; nothing, if it does not."""
    try:
        at = opened.open(name, folder)
        for part in OWNER.parts[:-1]:
            at = opened.open(part, at)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(OWNER.name, flags, dir_fd=at), "rb") as file:
            return file.read(1_000).decode(errors="replace")
    except OSError:
        return ""


def _remove_empty(opened: _Descriptors, root: Path, parts: Sequence[str]) -> None:
    """The folder of a workflow whose last run is gone."""
    for length in range(len(parts), 0, -1):
        above = opened.way(root, parts[: length - 1])
        try:
            os.rmdir(parts[length - 1], dir_fd=above)
        except OSError:
            return


class Orphan(NamedTuple):
    """A folder below the home that belongs to nothing in the store."""

    kind: str  # runs or tasks
    parts: tuple[str, ...]
    size: int

    @property
    def path(self) -> str:
        """Below the home."""
        return "/".join((self.kind, *self.parts))


async def find_orphans(store: Store, home: Path) -> list[Orphan]:
    """Folders of runs and of tasks that the store does not know.

    Folders are looked for first: what is made meanwhile is in the store by then.
    """
    store_id = await store.store_id()
    runs = await asyncio.to_thread(lambda: list(_run_folders(home, store_id)))
    tasks = await asyncio.to_thread(lambda: list(_task_folders(home, store_id)))
    known = await _known_runs(store) if runs else {}
    seqs = await _known_seqs(store) if tasks else set()
    found = [
        ("runs", parts)
        for parts, owner in runs
        if "/".join(parts) not in known or owner not in ("", known["/".join(parts)])
    ]
    found += [
        (f"tasks/{store_name(store_id)}", (name,))
        for name in tasks
        if not name.isdecimal() or int(name) not in seqs
    ]
    return [
        Orphan(kind, parts, await asyncio.to_thread(bytes_below, home / kind, parts))
        for kind, parts in found
    ]


def remove_orphan(home: Path, orphan: Orphan) -> bool:
    """Whether it was there and is gone."""
    return remove_folder(home / orphan.kind, orphan.parts)


def _run_folders(home: Path, store_id: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every folder of a run below the home, by its parts, and whose it says to be; not those
    that say that they belong to another store."""
    root = runs_directory(home)
    if not root.is_dir():  # nothing has run here yet
        return
    for where, names, _, _ in os.fwalk(root):
        folder = Path(where)
        parts = folder.relative_to(root).parts
        if not parts:
            continue
        # A worker of another host, and earlier versions, have made no file of the owner.
        is_run = (folder / OWNER).is_file() or any(map(os.path.isdir, _logs(folder)))
        if is_run or parts[-1].startswith(GOING):
            names.clear()  # what lies in it is its own
            if _text(folder / STORE) in ("", store_id):
                yield parts, _text(folder / OWNER)


def _logs(folder: Path) -> list[Path]:
    return [folder / "log" / name for name in ("scheduler", "job", "config")]


def _task_folders(home: Path, store_id: str) -> Iterator[str]:
    with suppress(OSError):
        for one in os.scandir(tasks_directory(home, store_id)):
            if one.is_dir(follow_symlinks=False):
                yield one.name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:1_000]
    except OSError:
        return ""


async def _known_runs(store: Store) -> dict[str, str]:
    """Their names, and what their folders say whose they are."""
    found: dict[str, str] = {}
    before = None
    while page := await store.runs(count=PAGE, before=before):
        found |= {run.name: owner_text(run) for run in page}
        before = page[-1].number
    return found


async def _known_seqs(store: Store) -> set[int]:
    found: set[int] = set()
    before = None
    while page := await store.list_tasks(TaskFilter(), Page(count=PAGE, before=before)):
        found |= {task.seq for task in page}
        before = page[-1].seq
    return found
