"""A log read in parts, and followed while it grows: of a run, or of one of its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tidewheel.core.operator.names import JobName, read_job_name
from tidewheel.core.operator.views import RunView
from tidewheel.ports.runs import LogPart, LogPlace
from tidewheel.ports.store import Store
from tidewheel.services.paths import runs_directory, submission_directory
from tidewheel.views.catalogue import Ground, look
from tidewheel.views.log import job_file, part_of_file
from tidewheel.views.snapshot import submissions_by_task

LOOK_SECONDS = 0.2  # between two looks at a file that may grow
LOOKS_PER_QUESTION = 5  # whether more can come is asked of the store
TAKE_OVER_SECONDS = 60.0
FINAL = ("succeeded", "failed", "cancelled")

Arguments = Mapping[str, object]


class Span(NamedTuple):
    """Which bytes, and how long to wait for the first of them."""

    offset: int | None
    bytes_max: int
    wait_seconds: float


async def log_part(
    store: Store, ground: Ground, view: RunView, wish: Arguments, span: Span
) -> LogPart:
    """Some bytes; only plain files below the folder of runs are opened."""
    home = ground.home
    place = await _exact_place(store, home, view, wish)
    if place is None:
        place = await _place(store, ground, view, wish)
    loop = asyncio.get_running_loop()
    until = loop.time() + span.wait_seconds
    over = False
    for number in count():
        # Before the file is read: what is written between the two would be missed.
        if number % LOOKS_PER_QUESTION == 0:
            over = await _is_over(store, view, place)
        part = await asyncio.to_thread(_read, home, place, span)
        part = part._replace(over=over and part.next_offset >= part.size)
        if part.content or over or loop.time() >= until:
            return part
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError("counting ends never")


def _read(home: Path, place: LogPlace, span: Span) -> LogPart:
    read = part_of_file(runs_directory(home), Path(place.path), span.offset, span.bytes_max)
    content, offset, size = (b"", span.offset or 0, 0) if read is None else read
    return LogPart(place, content, offset, size, found=read is not None, over=False)


async def _place(store: Store, ground: Ground, view: RunView, wish: Arguments) -> LogPlace:
    asked = {**wish, "run": view.name, "bytes_max": 1, "awaited": True}
    page = await look(store, ground, "log", asked)
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
    """Whoever follows a log names all of it; then nothing of the run has to be read again."""
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
        # One whose scheduler died may be taken over by another.
        left_at = run.deadline_at
        return left_at is None or left_at + TAKE_OVER_SECONDS < await store.now()
    point, node = place.id.split("/")
    job = JobName(view.name, point, node, place.submit)
    return (await store.get(job.task_id)).status.value in FINAL
