"""Brings the files of a run's definition to hosts that run its jobs, but not its scheduler.

Every job says in its script which definition it was written from. The folder of a run says
which one it holds. Where these differ, the definition that the run has now is fetched and its
files are put down before the job starts: after a reload the new ones replace the old. Nothing
is asked where they are the same: on the scheduler's own host it costs a look at a file, once.

Only one process of a host does it at a time, from the question to the last file: of two that
fetched around a reload, the older could come last.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tidewheel.core.operator.definition import (
    DEFINITION,
    FLOW_CYLC,
    PYTHON_SUFFIX,
    TRUSTED_MARK,
    read_job_name,
)
from tidewheel.core.queue.requests import Claimed
from tidewheel.errors import Refused, RunnerUnable, Unavailable
from tidewheel.lazy_dataclasses import pattern
from tidewheel.runners.job_directory import make_private_directory, write_whole
from tidewheel.services.paths import STORE, note_store

if TYPE_CHECKING:
    from tidewheel.core.operator.definition import StoredDefinition

HELD = Path("log", "config", "definition")
FILES = Path("log", "config", "definition-files")  # each with the digest of its content, JSON
LOCK = Path("log", "config", "definition.lock")
HEAD_LENGTH_MAX = 10_000
RUNS_REMEMBERED_MAX = 1_000
_DIGEST = pattern(
    rf"^TIDEWHEEL_{DEFINITION}=([0-9a-f]{{1,128}}(?:{TRUSTED_MARK})?)$", re.MULTILINE
)

Fetch = Callable[[Claimed], Awaitable["StoredDefinition"]]  # what the run of a task has now


def note_definition(directory: Path, definition: StoredDefinition) -> None:
    """Writes down which definition's files the folder of a run holds."""
    files = {one.path: _digest(one.content) for one in definition.files}
    write_whole(directory / FILES, json.dumps(files).encode(), mode=0o600)
    write_whole(directory / HELD, definition.digest.encode(), mode=0o600)


def remove_old_files(directory: Path, definition: StoredDefinition) -> None:
    """Removes files of the definition before that this one does not have: jobs would go on
    with them. One that a job has changed stays."""
    try:
        before = json.loads((directory / FILES).read_bytes())
    except (OSError, ValueError):  # an earlier version put them there
        return
    kept = {one.path for one in definition.files}
    for path, digest in before.items() if isinstance(before, dict) else ():
        file = directory / path
        is_inside = file.resolve().is_relative_to(directory.resolve())
        is_old = path not in kept and is_inside and file.is_file()
        if is_old and _digest(file.read_bytes()) == digest:
            file.unlink()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def held_definition(directory: Path) -> str:
    """Returns which definition a folder holds; "" if that is not known."""
    try:
        return (directory / HELD).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def differs_from_folder(definition: StoredDefinition, place: Path) -> bool:
    """Says whether files of a definition have changed where it came from, a folder or a file.

    A file that is gone counts where the folder as a whole is the definition. A file in Python
    was stored with the flow.cylc that it amounts to, which is not where it came from.
    """
    folder = place if place.is_dir() else place.parent
    made = FLOW_CYLC if place.suffix == PYTHON_SUFFIX else ""
    for one in definition.files:
        if one.path == made:
            continue
        try:
            path = folder / one.path
            if path.read_bytes() != one.content or os.access(path, os.X_OK) != one.executable:
                return True
        except OSError:
            if definition.kind == FLOW_CYLC and place.exists():
                return True
    return False


def wanted_definition(task: Claimed) -> str:
    """Returns which definition a job was written from; "" if it does not say so."""
    found = _DIGEST.search(task.command or "", 0, HEAD_LENGTH_MAX)
    return found[1] if found else ""


def script_head(task: Claimed) -> str:
    """Returns a job's script up to the end of the line that says which definition it was
    written from; whatever begins so was written from the same one."""
    found = _DIGEST.search(task.command or "", 0, HEAD_LENGTH_MAX)
    assert found is not None, "a task that names no definition needs no files"
    return f"{found.string[: found.end()]}\n"


class Supplies:
    """Brings the files of definitions into the folders of runs, for one worker."""

    def __init__(self, fetch: Fetch, store_id: Callable[[], Awaitable[str]]) -> None:
        self._fetch = fetch
        self._store_id = store_id
        # What the last job in it wanted, and the beginning of its script, which says so.
        self._supplied: dict[Path, tuple[str, str]] = {}
        self._one_by_one = asyncio.Lock()

    async def __call__(self, task: Claimed, directory: Path) -> None:
        """Brings the files that a task needs into the folder of its run, if they are not there.
        Raises RunnerUnable if they cannot be had now, Refused if never."""
        async with self._one_by_one:
            if not self.is_there(task, directory):
                wanted = wanted_definition(task)
                await self._bring(task, directory, wanted)
                if len(self._supplied) >= RUNS_REMEMBERED_MAX:
                    self._supplied.clear()
                self._supplied[directory] = wanted, script_head(task)

    def is_there(self, task: Claimed, directory: Path) -> bool:
        """Says whether the files that a task needs are known to be in the folder of its run."""
        held, head = self._supplied.get(directory, ("", ""))
        # Jobs of a run begin alike: then nothing has to be searched.
        if held and task.command is not None and task.command.startswith(head):
            return True
        wanted = wanted_definition(task)
        return wanted in ("", held)

    async def _bring(self, task: Claimed, directory: Path, wanted: str) -> None:
        run = read_job_name(task.id).run
        try:
            if not await asyncio.to_thread((directory / STORE).exists):
                note_store(directory, await self._store_id())
            if held_definition(directory) == wanted:
                return
            with await asyncio.to_thread(_locked, directory):
                if held_definition(directory) != wanted:
                    definition = await self._fetch(task)
                    await asyncio.to_thread(_put_down, definition, directory)
        except Refused as refused:
            raise Refused(f"the files of {run} are not available here: {refused}") from refused
        except Unavailable as error:
            raise RunnerUnable(f"the files of {run} cannot be fetched: {error}") from error
        except OSError as error:
            raise RunnerUnable(
                f"the files of {run} cannot be written here ({error.strerror}): {directory}"
            ) from error


def _put_down(definition: StoredDefinition, directory: Path) -> None:
    # It brings along all that reads definitions; most workers fetch none.
    from tidewheel.services.definitions.snapshot import unpack  # noqa: PLC0415

    held = held_definition(directory)
    if held != definition.digest:
        if held:
            remove_old_files(directory, definition)
        unpack(definition, directory, anew=bool(held))
        note_definition(directory, definition)


def _locked(directory: Path) -> IO[bytes]:
    """Locks a folder until the file is closed; waits for other processes that do the same."""
    make_private_directory((directory / LOCK).parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    file = open(os.open(directory / LOCK, flags, 0o600), "r+b", buffering=0)  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        file.close()
        raise
    return file
