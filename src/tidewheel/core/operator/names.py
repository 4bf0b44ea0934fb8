"""Names say how a submission of a run is called in the store, and where its files lie.

The id is `RUN/POINT/NAME/SUBMIT`; a run's name may have slashes, the other parts have none. A
run's name is a folder, too, below the state directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidewheel.core.queue.submission import NAME_LENGTH_MAX
from tidewheel.core.queue.task import TaskId

LATEST = "NN"  # the link to the submission that was made last
RUN_DIRECTORY = "TIDEWHEEL_RUN_DIR"  # in a job's environment: the folder of its run
JOB_OUTPUTS = "TIDEWHEEL_TASK_OUTPUTS"  # there: the outputs of its own that its task declares
DEFINITION = "WORKFLOW_DEFINITION"  # in a job's script: the digest of what it was written from
_PARTS_AFTER_RUN = 3


class JobName(NamedTuple):
    """One submission of one task of a run."""

    run: str
    point: str
    node: str
    submit: int

    @property
    def task_id(self) -> TaskId:
        return TaskId(f"{self.run}/{self.point}/{self.node}/{self.submit}")

    @property
    def text(self) -> str:
        """Returns it as people and existing scripts write it: `1/foo/01`."""
        return f"{self.point}/{self.node}/{self.submit:02d}"

    def log_folder(self, attempt: int) -> str:
        """Returns the folder of logs, below the run's; later attempts have a part of it."""
        folder = f"log/job/{self.point}/{self.node}/{self.submit:02d}"
        return folder if attempt <= 1 else f"{folder}/attempt-{attempt}"

    @property
    def work_folder(self) -> str:
        return f"work/{self.point}/{self.node}"

    @property
    def share_folder(self) -> str:
        """Shared by all tasks of one point."""
        return f"share/cycle/{self.point}"


def run_named_by(task_id: TaskId) -> str | None:
    """The run whose job is called so, if there is one of that name; None: it is no job's id."""
    run, *rest = task_id.rsplit("/", _PARTS_AFTER_RUN)
    return run if len(rest) == _PARTS_AFTER_RUN and rest[-1].isdecimal() else None


def read_job_name(task_id: TaskId) -> JobName:
    """Reads the id of a task that is known to belong to a run: others may look as they like."""
    run, point, node, submit = task_id.rsplit("/", _PARTS_AFTER_RUN)
    return JobName(run, point, node, int(submit))


PART_BYTES_MAX = 200  # a folder's name; what is put beside it needs some room
ACCEPTED = (
    f"a name of up to {NAME_LENGTH_MAX} printable characters; its parts between / may not be "
    f"empty, '.' or '..', begin with '-' or have more than {PART_BYTES_MAX} bytes"
)


def is_run_name(name: str) -> bool:
    """Says whether it leads to a folder of its own, and nowhere else (RELIABILITY S3)."""
    return (
        bool(name.strip())
        and len(name) <= NAME_LENGTH_MAX
        and name.isprintable()
        and all(map(_is_part, name.split("/")))
    )


def _is_part(part: str) -> bool:
    size = len(part.encode(errors="replace"))
    return 0 < size <= PART_BYTES_MAX and part not in (".", "..") and not part.startswith("-")


def names_above(name: str) -> Iterator[str]:
    """The names whose folders this one would lie in."""
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))
