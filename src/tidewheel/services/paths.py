"""Paths of the files of runs and tasks below a state directory: they are made only here.

runs/<run>/                          a run: its definition's files, log, share, work
runs/<run>/log/job/<point>/<name>/   its submissions, see ``core.runs.job_names``
runs/<run>/log/scheduler/log         its log; log.<start> are earlier parts of it
tasks/<store>/<task>/<attempt>/      an attempt of a task that belongs to no run
"""

from __future__ import annotations

import re
from pathlib import Path

from tidewheel.core.operator.names import JobName

STORE_NAME_LENGTH = 8


def runs_directory(home: Path) -> Path:
    """Nothing outside of it is read for anybody who looks at a run."""
    return home / "runs"


def run_directory(home: Path, run: str) -> Path:
    """Returns the folder of a run, on a host that has to do with it."""
    return runs_directory(home) / run


def submission_directory(home: Path, job: JobName, attempt: int = 1) -> Path:
    """Returns the folder of an attempt of a submission, on the host that ran it."""
    return run_directory(home, job.run) / job.log_folder(attempt)


def log_generations(path: Path) -> list[tuple[int, Path]]:
    """Returns the earlier parts of a log that was begun anew, oldest first.

    Each has the offset in the whole log where it begins, which stands in its name.
    """
    named = re.compile(re.escape(path.name) + r"\.([0-9]{15})")
    try:
        found = [(named.fullmatch(one.name), one) for one in path.parent.iterdir()]
    except OSError:
        return []
    return sorted((int(match[1]), one) for match, one in found if match)


def log_generation(path: Path, start: int) -> Path:
    """Returns the name of the part of a log that begins there."""
    return path.with_name(f"{path.name}.{start:015d}")


def store_name(store_id: str) -> str:
    """Names a store in folders and labels: enough of its id to tell it from others."""
    return store_id[:STORE_NAME_LENGTH]


def tasks_directory(home: Path, store_id: str) -> Path:
    """Returns the folder of all tasks of a store that belong to no run."""
    return home / "tasks" / store_name(store_id)


def attempt_directory(tasks: Path, task_seq: int, attempt: int) -> Path:
    """Returns the folder of one attempt of such a task, on the host that ran it."""
    return tasks / f"{task_seq}/{attempt}"
