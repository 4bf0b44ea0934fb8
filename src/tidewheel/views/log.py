"""Shows the log of a run or of one of its jobs: where it is, and what is in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from tidewheel.api.run_details import LogDocument
from tidewheel.core.operator.definition import JobName, read_job_name
from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.runs import LogPart, LogPlace
from tidewheel.ports.store import Store
from tidewheel.runners.job_logs import open_plain
from tidewheel.services import paths
from tidewheel.views.snapshot import AskedView, submissions_by_task
from tidewheel.views.task_lookup import find_task
from tidewheel.views.why import nested_run

# The first part names and reads the files that a run leaves on the host where it ran.
#
# A path is put together from a run's name, a point and a node's name that were looked up
# before, and from the names below; nothing else of what people write becomes part of it.


TEXT_BYTES_MAX = 1024 * 1024
TRIES_MAX = 3  # to open a log that is rotated at the same moment
RUN_LOG = Path("log", "scheduler", "log")
JOB_FILES = {
    "out": "job.out",
    "err": "job.err",
    "job": "job",
    "status": "job.status",
    "activity": "job-activity.log",
    "xtrace": "job.xtrace",
}
# By what people type: also the first letter, as for Cylc, or the whole name.
_FILES = JOB_FILES | {name[0]: file for name, file in JOB_FILES.items()}
_FILES |= {file: file for file in JOB_FILES.values()}


def run_log(home: Path, run: str) -> Path:
    return paths.run_directory(home, run) / RUN_LOG


def job_file(word: str) -> str:
    """Returns the name of a job's file; `out`, `o` and `job.out` all mean `job.out`. Raises
    Refused for a word that means none."""
    if word not in _FILES:
        raise Refused(f"a job has no file {word!r}; it has {', '.join(JOB_FILES)}")
    return _FILES[word]


def found_files(folder: Path) -> list[str]:
    """Returns the paths of the files in the folder of an attempt that are on this host."""
    there = (folder / name for name in JOB_FILES.values())
    return [str(path) for path in there if not path.is_symlink() and path.is_file()]


def part_of_file(
    root: Path, path: Path, offset: int | None, bytes_max: int
) -> tuple[bytes, int, int] | None:
    """Returns some bytes of a log, where they begin, and how long the log is.

    Without an offset these are its last bytes.

    Returns None if there is no plain file below the root: whatever a job made of its folder,
    nothing outside is opened.
    """
    try:
        with opened_pieces(root, path) as parts:
            return read_pieces(parts, offset, bytes_max)
    except (OSError, Refused):
        return None


def last_text(root: Path, path: Path, bytes_max: int = TEXT_BYTES_MAX) -> tuple[str, bool]:
    """Returns the end of a file below the root, and whether anything was left out."""
    with opened_pieces(root, path) as parts:
        content, start, _ = read_pieces(parts, None, bytes_max)
    return content.decode(errors="replace"), start > 0


class LogPiece(NamedTuple):
    """Holds an open file that is a part of a log; `start` is its offset in the whole log."""

    start: int
    size: int
    file: BinaryIO


@contextmanager
def opened_pieces(root: Path, path: Path) -> Iterator[list[LogPiece]]:
    """Yields the open parts of a log, oldest first; none if it was rotated during each try."""
    with ExitStack() as stack:

        def opened(start: int, one: Path) -> LogPiece:
            file = stack.enter_context(open_plain(root, one))
            return LogPiece(start, os.fstat(file.fileno()).st_size, file)

        def all_parts() -> list[LogPiece]:
            before = paths.log_generations(path) if path.name == RUN_LOG.name else []
            parts = [opened(*one) for one in before]
            end = parts[-1].start + parts[-1].size if parts else 0
            try:
                parts.append(opened(end, path))
            except OSError:
                if not parts:
                    raise
            return parts if not before or before == paths.log_generations(path) else []

        parts: list[LogPiece] = []
        for _ in range(TRIES_MAX):
            if parts := all_parts():
                break
        yield parts


def read_pieces(
    parts: Sequence[LogPiece], offset: int | None, bytes_max: int
) -> tuple[bytes, int, int]:
    """Returns some bytes of an open log, where they begin, and how long the log is."""
    if not parts:  # it is rotated faster than it can be opened
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


async def log_view(asked: AskedView) -> LogDocument:
    """Shows the end of the log of a job, or if no job is named, of the run itself."""
    home, run, text = asked.context.home, asked.run.name, asked.text("id")
    place, never = LogPlace(None, None, None, str(run_log(home, run))), ""
    if text:
        place = await _job_place(asked, text)
        never = f"if the job never began, see why: tidewheel show {quote(run)} {place.id}"
    path = Path(place.path)
    files = found_files(path.parent)
    content, cut = "", False
    try:
        bytes_max = asked.number("bytes_max") or TEXT_BYTES_MAX
        content, cut = last_text(paths.runs_directory(home), path, bytes_max)
    except FileNotFoundError:
        if not asked.arguments.get("awaited"):
            there = ", ".join(Path(one).name for one in files)
            elsewhere = "; ".join(filter(None, ("look on the host where it ran", never)))
            advice = f"it has {there}" if there else elsewhere
            what = place.id or run
            raise Refused(f"{what} has no file {path} on this host; {advice}") from None
    return {
        "run": run,
        "id": place.id,
        "submit": place.submit,
        "attempt": place.attempt,
        "path": place.path,
        "files": files,
        "text": content,
        "cut": cut,
    }


async def _job_place(asked: AskedView, text: str) -> LogPlace:
    """Returns where the log of a job is: of the latest submission and attempt, if none is
    named."""
    snapshot = await asked.snapshot()
    key, named = find_task(snapshot, text)
    view, task, point = snapshot.view, snapshot.id_of(key), snapshot.pool.plan.text(key[0])
    by_task = await submissions_by_task(asked.store, view, point=point, name=key[1])
    found = {read_job_name(one.task_id).submit: one for one in by_task.get((point, key[1]), ())}
    if not found:
        if (nested := await nested_run(asked.store, snapshot, snapshot.shown(key))) is not None:
            raise Refused(
                f"{task} is the run {nested.name}, and has no job; "
                f"its log: tidewheel log {quote(nested.name)}"
            )
        raise Refused(
            f"{task} has not been submitted, so it has no log; "
            f"see why: tidewheel why {quote(view.name)} {task}"
        )
    # A submission that no worker has taken yet has written nothing.
    latest = max([n for n, one in found.items() if one.attempt] or found)
    submit = asked.number("submit") or named or latest
    if submit not in found:
        known = ", ".join(map(str, sorted(found)))
        raise Refused(f"{task} has no submission {submit}; its submissions: {known}")
    attempts = found[submit].attempt
    attempt = asked.number("attempt") or max(1, attempts)
    if attempt > max(1, attempts):
        raise Refused(
            f"{task} has no attempt {attempt} of submission {submit}; "
            + (f"the last is {attempts}" if attempts else "no worker has taken it yet")
        )
    job = JobName(view.name, point, key[1], submit)
    folder = paths.submission_directory(asked.context.home, job, attempt)
    return LogPlace(task, submit, attempt, str(folder / job_file(asked.text("file") or "out")))


# The second part reads a log in parts, and follows it while it grows.


LOOK_SECONDS = 0.2  # between two looks at a file that may grow
LOOKS_PER_QUESTION = 5  # whether more can come is asked of the store
TAKE_OVER_SECONDS = 60.0
FINAL_WORDS = ("succeeded", "failed", "cancelled")


async def log_part(
    asked: AskedView, start: int | None, bytes_max: int, wait_seconds: float
) -> LogPart:
    """Returns some bytes of a log, and waits up to `wait_seconds` for the first of them.

    Only plain files below the folder of runs are opened.
    """
    place = await asked_place(asked)
    root, path = paths.runs_directory(asked.context.home), Path(place.path)
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_seconds
    over = False
    for number in count():
        # Asked before the file is read, or what is written between the two would be missed.
        if number % LOOKS_PER_QUESTION == 0:
            over = await _is_over(asked.store, asked.run, place)
        read = await asyncio.to_thread(part_of_file, root, path, start, bytes_max)
        content, offset, size = (b"", start or 0, 0) if read is None else read
        part = LogPart(place, content, offset, size, found=read is not None, over=False)
        part = part._replace(over=over and part.next_offset >= part.size)
        if part.content or over or loop.time() >= until:
            return part
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError("counting ends never")


async def asked_place(asked: AskedView) -> LogPlace:
    """Returns where the log is that somebody asks for: of the run, unless a job is named."""
    if not (text := asked.text("id")):
        return LogPlace(None, None, None, str(run_log(asked.context.home, asked.run.name)))
    return await _exact_place(asked) or await _job_place(asked, text)


async def _exact_place(asked: AskedView) -> LogPlace | None:
    """Returns the place of a log that is named by task, submission and attempt; None if one of
    these is missing, or there is no such submission.

    A follower names all of them, so that nothing of the run has to be read again.
    """
    wish = asked.arguments
    task, submit, attempt = wish.get("id"), wish.get("submit"), wish.get("attempt")
    if not (isinstance(task, str) and isinstance(submit, int) and isinstance(attempt, int)):
        return None
    point, _, name = task.partition("/")
    by_task = await submissions_by_task(asked.store, asked.run, point=point, name=name)
    for one in by_task.get((point, name), ()):
        job = read_job_name(one.task_id)
        if job.submit == submit:
            folder = paths.submission_directory(asked.context.home, job, attempt)
            path = folder / job_file(str(wish.get("file") or "out"))
            return LogPlace(f"{job.point}/{job.node}", submit, attempt, str(path))
    return None


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
