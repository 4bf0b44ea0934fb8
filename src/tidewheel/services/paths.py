"""Makes the paths of files of runs and tasks below a state directory, and says whose they are.

Paths are made only here.

runs/<run>/                          a run: its definition's files, log, share, work
runs/<run>/log/job/<point>/<name>/   its submissions, see ``JobName``
runs/<run>/log/scheduler/log         its log; log.<start> are earlier parts of it
tasks/<store>/<task>/<attempt>/      an attempt of a task that belongs to no run
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tidewheel.core.operator.definition import JobName
from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import pattern
from tidewheel.runners.job_directory import make_private_directory, write_whole

RUNS_REMEMBERED_MAX = 1024
STORE_NAME_LENGTH = 8


def runs_directory(home: Path) -> Path:
    """Returns the folder of all runs; to show a run, nothing outside of this folder is read."""
    return home / "runs"


def run_directory(home: Path, run: str) -> Path:
    """Returns the folder of a run; every host that drives it or runs its jobs has one."""
    return _run_directory(str(home), run)


@lru_cache(maxsize=RUNS_REMEMBERED_MAX)  # each job asks, and a Path takes long to make
def _run_directory(home: str, run: str) -> Path:  # and to compare: so a text is the key
    return runs_directory(Path(home)) / run


def submission_directory(home: Path, job: JobName, attempt: int = 1) -> Path:
    """Returns the folder of an attempt of a submission, on the host that ran it."""
    return Path(submission_folder(home, job, attempt))


def submission_folder(home: Path, job: JobName, attempt: int) -> str:
    """Returns the same as a text, which each job needs: to make a Path takes long."""
    return f"{run_directory(home, job.run)}/{job.log_folder(attempt)}"


def log_generations(path: Path) -> list[tuple[int, Path]]:
    """Returns the earlier parts of a log that is kept in several files, oldest first.

    Each is (start, path): the offset in the whole log at which it begins stands in its name.
    """
    named = re.compile(re.escape(path.name) + r"\.([0-9]{15})")
    try:
        found = [(named.fullmatch(one.name), one) for one in path.parent.iterdir()]
    except OSError:
        return []
    return sorted((int(match[1]), one) for match, one in found if match)


def log_generation(path: Path, start: int) -> Path:
    """Returns the path under which the part of a log that begins at this offset is kept."""
    return path.with_name(f"{path.name}.{start:015d}")


def store_name(store_id: str) -> str:
    """Returns the name of a store in folders and labels: the beginning of its id."""
    return store_id[:STORE_NAME_LENGTH]


def tasks_directory(home: Path, store_id: str) -> Path:
    """Returns the folder of all tasks of a store that belong to no run."""
    return home / "tasks" / store_name(store_id)


def attempt_directory(tasks: Path, task_seq: int, attempt: int) -> Path:
    """Returns the folder of one attempt of a task without a run, on the host that ran it."""
    return tasks / f"{task_seq}/{attempt}"


# A new run is refused a folder that another run uses or has left.
#
# Names are unique in a store, and folders belong to a home: a store that was begun anew,
# another one with the same home, or a run whose rows are gone give a name twice. Its logs would
# be mixed with those of the other, and the other's scripts would be taken for its own.


OWNER = Path("log", "config", "run")
STORE = Path("log", "config", "store")  # which store knows it, by its id
_NUMBERED = pattern(r"run([0-9]{1,9})")


def owner_text(run: RunView) -> str:
    """Returns the text by which a folder names its run: number and time of creation."""
    return f"{run.number} {run.created_at!r}\n"


def take_folder(run: RunView, home: Path) -> None:
    """Writes into the folder of a run that it is this run's; raises Refused if it is another's.

    Where the folder cannot be written, it does nothing.
    """
    folder = run_directory(home, run.name)
    path, mine = folder / OWNER, owner_text(run)
    try:
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        if not there:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, mine.encode(), mode=0o600)
    except OSError:  # the program that prepares the folder will say it
        return
    if there not in ("", mine):
        raise Refused(
            f"the folder {folder} belongs to another run of this name, which this store does "
            "not know; move it away, or choose another name for this run: --new --run-name NAME"
        )


def note_store(folder: Path, store_id: str) -> None:
    """Writes into a run's folder which store knows the run: several may use one home."""
    with suppress(OSError):
        make_private_directory((folder / STORE).parent)
        write_whole(folder / STORE, store_id.encode(), mode=0o600)


def last_numbered(workflow: str, home: Path) -> int:
    """Returns the highest N of the folders called WORKFLOW/runN; 0 if there is none."""
    found = [0]
    with suppress(OSError):
        for path in run_directory(home, workflow).iterdir():
            match = _NUMBERED.fullmatch(path.name)
            found += [int(match[1])] if match else []
    return max(found)
