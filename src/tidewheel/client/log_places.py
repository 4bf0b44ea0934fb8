"""Finds the logs of attempts on the host that ran them."""

from __future__ import annotations

from pathlib import Path

from tidewheel.core.operator.definition import read_job_name, run_named_by
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.services import paths

STREAMS = {"out": "job.out", "err": "job.err"}


async def attempt_log(
    store: Store, home: Path, task: tuple[TaskId, int], stream: str, attempt: int
) -> Path:
    """Returns the path of one log stream of an attempt on the host that ran it.

    ``task`` is the id and the seq of the task.
    """
    return await attempt_folder(store, home, task, attempt) / STREAMS[stream]


async def attempt_folder(
    store: Store, home: Path, task: tuple[TaskId, int], attempt: int
) -> Path:
    """Returns the folder with the files of an attempt on the host that ran it.

    ``task`` is the id and the seq of the task.
    """
    task_id, seq = task
    if await is_submission(store, task_id):
        return paths.submission_directory(home, read_job_name(task_id), attempt)
    return paths.attempt_directory(
        paths.tasks_directory(home, await store.store_id()), seq, attempt
    )


async def is_submission(store: Store, task_id: TaskId) -> bool:
    """Says whether a task belongs to a run.

    The store is asked, because a task outside of runs may have an id of the same form.
    """
    if (run := run_named_by(task_id)) is None:
        return False
    try:
        view = await store.find_run(run)
    except Refused:
        return False
    _, point, name, _ = task_id.rsplit("/", 3)
    found = await store.submissions(view.number, point=point, name=name)
    return any(one.task_id == task_id for one in found)
