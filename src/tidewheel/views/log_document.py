"""The log of a run or of one of its jobs: where it is, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tidewheel.core.operator.names import JobName, read_job_name
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.services.paths import runs_directory, submission_directory
from tidewheel.views.log import (
    TEXT_BYTES_MAX,
    found_files,
    job_file,
    last_text,
    run_log,
)
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot, submissions_by_task


class LogWish(NamedTuple):
    """Which log; None is the latest."""

    file: str = "out"
    submit: int | None = None
    attempt: int | None = None
    bytes_max: int = TEXT_BYTES_MAX
    awaited: bool = False  # it may not be there yet


def run_log_document(home: Path, run: str, wish: LogWish) -> Document:
    """The log of the run itself."""
    path = run_log(home, run)
    return {"run": run, "id": None, "submit": None, "attempt": None} | _content(
        home, path, run, wish
    )


async def log_document(
    store: Store, looked: RunSnapshot, key: Key, home: Path, wish: LogWish
) -> Document:
    """The log of a job."""
    folder, submit, attempt = await job_place(store, looked, key, home, wish)
    path = folder / job_file(wish.file)
    run, task = looked.view.name, looked.id_of(key)
    never = f"if it never began, this says why: tidewheel show {run} {task}"
    told = {"run": run, "id": task, "submit": submit, "attempt": attempt}
    return told | _content(home, path, task, wish, never)


async def job_place(
    store: Store, looked: RunSnapshot, key: Key, home: Path, wish: LogWish
) -> tuple[Path, int, int]:
    """The folder of an attempt, with the submit and attempt numbers that were meant."""
    view, point = looked.view, looked.pool.plan.text(key[0])
    by_task = await submissions_by_task(store, view, point=point, name=key[1])
    found = {read_job_name(one.task_id).submit: one for one in by_task.get((point, key[1]), ())}
    if not found:
        raise Refused(
            f"{looked.id_of(key)} has not been submitted, so it has no log; "
            f"see why: tidewheel why {view.name} {looked.id_of(key)}"
        )
    # One that no worker has taken yet has written nothing.
    submit = wish.submit or max([n for n, one in found.items() if one.attempt] or found)
    if submit not in found:
        known = ", ".join(map(str, sorted(found)))
        raise Refused(f"{looked.id_of(key)} has no submission {submit}; there are {known}")
    attempts = found[submit].attempt
    attempt = wish.attempt or max(1, attempts)
    if attempt > max(1, attempts):
        raise Refused(
            f"{looked.id_of(key)} has had {attempts} attempts of submission {submit}; "
            "name one of these"
        )
    job = JobName(view.name, point, key[1], submit)
    return submission_directory(home, job, attempt), submit, attempt


def _content(home: Path, path: Path, what: str, wish: LogWish, never: str = "") -> Document:
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
