"""Shows the log of a run or of one of its jobs: where it is, and what is in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tidewheel.api.run_details import LogContent, LogDocument
from tidewheel.core.operator.definition import JobName, read_job_name
from tidewheel.core.operator.views import RunView
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.ports.runs import Arguments, LogPart, LogPlace
from tidewheel.ports.store import Store
from tidewheel.runners.job_logs import open_plain
from tidewheel.services.paths import (
    log_generations,
    run_directory,
    runs_directory,
    submission_directory,
)
from tidewheel.views.context import AskedView, ViewContext
from tidewheel.views.snapshot import RunSnapshot, submissions_by_task
from tidewheel.views.task_lookup import find_task

# The first part names and reads the files that a run leaves on the host where it ran.
#
# A path is put together from a run's name, a point and a node's name that were looked up
# before, and from the names below; nothing else of what people write becomes part of it.


TEXT_BYTES_MAX = 1024 * 1024
TRIES_MAX = 3  # to open a log that begins anew at the same moment
RUN_LOG = Path("log", "scheduler", "log")
JOB_FILES = {
    "out": "job.out",
    "err": "job.err",
    "job": "job",
    "status": "job.status",
    "activity": "job-activity.log",
    "xtrace": "job.xtrace",
}
# The short names that people type for Cylc.
SHORT_NAMES = {
    "o": "out",
    "e": "err",
    "j": "job",
    "s": "status",
    "a": "activity",
    "x": "xtrace",
}


def run_log(home: Path, run: str) -> Path:
    return run_directory(home, run) / RUN_LOG


def job_file(word: str) -> str:
    """Returns the name of a job's file; `out`, `o` and `job.out` all mean `job.out`."""
    long = SHORT_NAMES.get(word, word)
    if long in JOB_FILES:
        return JOB_FILES[long]
    if word in JOB_FILES.values():
        return word
    accepted = ", ".join(JOB_FILES)
    raise Refused(f"a job has no file {word!r}; it has {accepted}")


def found_files(folder: Path) -> list[str]:
    """Returns the files of an attempt that are on this host."""
    paths = (folder / name for name in JOB_FILES.values())
    return [str(path) for path in paths if not path.is_symlink() and path.is_file()]


def part_of_file(
    root: Path, path: Path, offset: int | None, bytes_max: int
) -> tuple[bytes, int, int] | None:
    """Returns some bytes of a log, where they begin, and how long the log is.

    Without an offset these are its last bytes.

    Returns None if there is no plain file below the root: whatever a job made of its folder,
    nothing outside is opened.
    """
    try:
        with _opened_parts(root, path) as parts:
            return _read_parts(parts, offset, bytes_max)
    except (OSError, Refused):
        return None


def last_text(root: Path, path: Path, bytes_max: int = TEXT_BYTES_MAX) -> tuple[str, bool]:
    """Returns the end of a file below the root, and whether anything was left out."""
    with _opened_parts(root, path) as parts:
        content, start, _ = _read_parts(parts, None, bytes_max)
    return content.decode(errors="replace"), start > 0


class _Part(NamedTuple):
    """Is a file that is a part of a log; `start` is where in the whole log it begins."""

    start: int
    size: int
    file: BinaryIO


@contextmanager
def _opened_parts(root: Path, path: Path) -> Iterator[list[_Part]]:
    """Opens the parts of a log for the block; it may begin anew while it is being opened."""
    with ExitStack() as stack:

        def opened(start: int, one: Path) -> _Part:
            file = stack.enter_context(open_plain(root, one))
            return _Part(start, os.fstat(file.fileno()).st_size, file)

        def all_parts() -> list[_Part]:
            before = log_generations(path) if path.name == RUN_LOG.name else []
            parts = [opened(*one) for one in before]
            end = parts[-1].start + parts[-1].size if parts else 0
            try:
                parts.append(opened(end, path))
            except OSError:
                if not parts:
                    raise
            return parts if not before or before == log_generations(path) else []

        parts: list[_Part] = []
        for _ in range(TRIES_MAX):
            if parts := all_parts():
                break
        yield parts


def _read_parts(
    parts: Sequence[_Part], offset: int | None, bytes_max: int
) -> tuple[bytes, int, int]:
    if not parts:  # it begins anew faster than it can be read
        return b"", offset or 0, offset or 0
    first, end = parts[0].start, parts[-1].start + parts[-1].size
    start = end - bytes_max if offset is None else offset
    start = max(first, min(start, end))
    content = b""
    for part in parts:
        at = start + len(content) - part.start
        if 0 <= at < part.size and len(content) < bytes_max:
            part.file.seek(at)
            content += part.file.read(min(bytes_max - len(content), part.size - at))
    return content, start, end


class LogWish(NamedTuple):
    """Says which log is asked for; None stands for the latest submission or attempt."""

    file: str = "out"
    submit: int | None = None
    attempt: int | None = None
    bytes_max: int = TEXT_BYTES_MAX
    awaited: bool = False  # it may not be there yet


def run_log_document(home: Path, run: str, wish: LogWish) -> LogDocument:
    """Returns the log of the run itself."""
    path = run_log(home, run)
    content = _content(home, path, run, wish)
    return {"run": run, "id": None, "submit": None, "attempt": None, **content}


async def log_document(
    store: Store, snapshot: RunSnapshot, key: Key, home: Path, wish: LogWish
) -> LogDocument:
    """Returns the log of a job."""
    folder, submit, attempt = await job_place(store, snapshot, key, home, wish)
    path = folder / job_file(wish.file)
    run, task = snapshot.view.name, snapshot.id_of(key)
    never = f"if it never began, this says why: tidewheel show {run} {task}"
    content = _content(home, path, task, wish, never)
    return {"run": run, "id": task, "submit": submit, "attempt": attempt, **content}


async def job_place(
    store: Store, snapshot: RunSnapshot, key: Key, home: Path, wish: LogWish
) -> tuple[Path, int, int]:
    """Returns the folder of an attempt, with the submit and attempt numbers that were meant."""
    view, point = snapshot.view, snapshot.pool.plan.text(key[0])
    by_task = await submissions_by_task(store, view, point=point, name=key[1])
    found = {read_job_name(one.task_id).submit: one for one in by_task.get((point, key[1]), ())}
    if not found:
        raise Refused(
            f"{snapshot.id_of(key)} has not been submitted, so it has no log; "
            f"see why: tidewheel why {view.name} {snapshot.id_of(key)}"
        )
    # A submission that no worker has taken yet has written nothing.
    submit = wish.submit or max([n for n, one in found.items() if one.attempt] or found)
    if submit not in found:
        known = ", ".join(map(str, sorted(found)))
        raise Refused(f"{snapshot.id_of(key)} has no submission {submit}; there are {known}")
    attempts = found[submit].attempt
    attempt = wish.attempt or max(1, attempts)
    if attempt > max(1, attempts):
        raise Refused(
            f"{snapshot.id_of(key)} has had {attempts} attempts of submission {submit}; "
            "name one of these"
        )
    job = JobName(view.name, point, key[1], submit)
    return submission_directory(home, job, attempt), submit, attempt


def _content(home: Path, path: Path, what: str, wish: LogWish, never: str = "") -> LogContent:
    files = found_files(path.parent)
    try:
        text, cut = last_text(runs_directory(home), path, wish.bytes_max)
    except FileNotFoundError:
        if wish.awaited:
            return {"path": str(path), "files": files, "text": "", "cut": False}
        there = ", ".join(Path(one).name for one in files)
        elsewhere = "; ".join(filter(None, ("look on the host where it ran", never)))
        advice = f"there is {there}" if there else elsewhere
        raise Refused(f"{what} has no file {path} on this host; {advice}") from None
    return {"path": str(path), "files": files, "text": text, "cut": cut}


async def log_view(asked: AskedView) -> LogDocument:
    wish = LogWish(
        file=asked.text("file") or "out",
        submit=asked.number("submit"),
        attempt=asked.number("attempt"),
        bytes_max=asked.number("bytes_max") or TEXT_BYTES_MAX,
        awaited=bool(asked.arguments.get("awaited")),
    )
    text, home = asked.text("id"), asked.context.home
    if not text:
        return run_log_document(home, asked.run.name, wish)
    snapshot = await asked.snapshot()
    key, submit = find_task(snapshot, text)
    wish = wish._replace(submit=wish.submit or submit)
    return await log_document(asked.store, snapshot, key, home, wish)


# The second part reads a log in parts, and follows it while it grows.


LOOK_SECONDS = 0.2  # between two looks at a file that may grow
LOOKS_PER_QUESTION = 5  # whether more can come is asked of the store
TAKE_OVER_SECONDS = 60.0
FINAL_WORDS = ("succeeded", "failed", "cancelled")


class LogSpan(NamedTuple):
    """Says which bytes are asked for, and how long to wait for the first of them."""

    offset: int | None
    bytes_max: int
    wait_seconds: float


async def log_part(
    store: Store, context: ViewContext, view: RunView, wish: Arguments, span: LogSpan
) -> LogPart:
    """Returns some bytes of a log; only plain files below the folder of runs are opened."""
    home = context.home
    place = await _exact_place(store, home, view, wish)
    if place is None:
        place = await _place(store, context, view, wish)
    loop = asyncio.get_running_loop()
    until = loop.time() + span.wait_seconds
    over = False
    for number in count():
        # Asked before the file is read, or what is written between the two would be missed.
        if number % LOOKS_PER_QUESTION == 0:
            over = await _is_over(store, view, place)
        part = await asyncio.to_thread(_read, home, place, span)
        part = part._replace(over=over and part.next_offset >= part.size)
        if part.content or over or loop.time() >= until:
            return part
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError("counting ends never")


def _read(home: Path, place: LogPlace, span: LogSpan) -> LogPart:
    read = part_of_file(runs_directory(home), Path(place.path), span.offset, span.bytes_max)
    content, offset, size = (b"", span.offset or 0, 0) if read is None else read
    return LogPart(place, content, offset, size, found=read is not None, over=False)


async def _place(
    store: Store, context: ViewContext, view: RunView, wish: Arguments
) -> LogPlace:
    wished = {**wish, "run": view.name, "bytes_max": 1, "awaited": True}
    page = await log_view(AskedView(store, context, view, wished))
    task, submit, attempt = page["id"], page["submit"], page["attempt"]
    return LogPlace(
        task if isinstance(task, str) else None,
        submit if isinstance(submit, int) else None,
        attempt if isinstance(attempt, int) else None,
        str(page["path"]),
    )


async def _exact_place(
    store: Store, home: Path, view: RunView, wish: Arguments
) -> LogPlace | None:
    """Returns the place of a log that is named in full; else None.

    A follower names all of it, so that nothing of the run has to be read again.
    """
    task, submit, attempt = wish.get("id"), wish.get("submit"), wish.get("attempt")
    if not (isinstance(task, str) and isinstance(submit, int) and isinstance(attempt, int)):
        return None
    point, _, name = task.partition("/")
    by_task = await submissions_by_task(store, view, point=point, name=name)
    found = [read_job_name(one.task_id) for one in by_task.get((point, name), ())]
    job = next((one for one in found if one.submit == submit), None)
    if job is None:
        return None
    folder = submission_directory(home, job, attempt)
    path = folder / job_file(str(wish.get("file") or "out"))
    return LogPlace(f"{job.point}/{job.node}", submit, attempt, str(path))


async def _is_over(store: Store, view: RunView, place: LogPlace) -> bool:
    if place.id is None or place.submit is None:
        run = await store.run(view.number)
        if run.given is not None:  # a scheduler will take it
            return False
        # A run whose scheduler died may be taken over by another.
        left_at = run.deadline_at
        return left_at is None or left_at + TAKE_OVER_SECONDS < await store.now()
    point, node = place.id.split("/")
    job = JobName(view.name, point, node, place.submit)
    return (await store.get(job.task_id)).status.value in FINAL_WORDS
