"""Decides what a run that is a task of another run is called, and what its end means there.

A task may be a run of another workflow: the **nested run**. Each submission of the task is such
a run, called as the submission is, `PARENT/POINT/TASK/SUBMIT`. So patterns for names that cover
the parent cover it, its folder lies in that of the parent, and the same submission is always
the same run. How it ends is how the submission ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tidewheel.core.graph.checks.names import FOLDER, folder_problem
from tidewheel.core.operator.definition import (
    FLOW_CYLC,
    JobName,
    StoredDefinition,
    StoredFile,
    read_job_name,
    sealed,
)
from tidewheel.core.operator.requests import StoredValues
from tidewheel.core.operator.views import ABORTED_BY, is_at_own_stop_point, ran_nothing
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import TaskId
from tidewheel.core.queue.values import VALUES_BYTES_MAX
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple

DEPTH_MAX = 5  # runs in runs, the outermost not counted
OPEN_MAX = 1_000  # at once in the outermost run: each is held in memory by a scheduler
POINT_VARIABLE = "TIDEWHEEL_PARENT_POINT"  # of the template: the point of the parent's task


def nested_run_name(job: JobName) -> str:
    """Returns the name of the run that is this submission."""
    return f"{job.run}/{job.text}"


def submission_of(name: str) -> JobName:
    """Returns the submission that the nested run of this name is."""
    return read_job_name(TaskId(name))


def folder_definition(
    definition: StoredDefinition, workflow: str, flow_file: str
) -> StoredDefinition:
    """Returns the definition in a folder of another one, as it was written; it is trusted as
    much. Raises Refused if there is none."""
    if problem := folder_problem(workflow):
        raise Refused(f"workflow = {workflow}: {problem}")
    folder = workflow.removeprefix(FOLDER).removesuffix("/")
    files = tuple(
        StoredFile(one.path.removeprefix(f"{folder}/"), one.content, one.executable)
        for one in definition.files
        if one.path.startswith(f"{folder}/")
    )
    texts = [one.content for one in files if one.path == flow_file]
    if not texts:
        raise Refused(
            f"workflow = {workflow}: the stored definition has no file {folder}/{flow_file}; "
            "write this file, reload the run, then trigger this task"
        )
    kept = StoredDefinition(
        digest="",
        workflow=f"{definition.workflow}/{folder}",
        kind=FLOW_CYLC,
        text=texts[0].decode(errors="replace"),
        files=files,
    )
    return sealed(kept, trusted=definition.is_trusted)


class NestedEnd(NamedTuple):
    """Says how the task ends whose run has ended, and why if that is no success."""

    status: Status
    error: str | None = None


def nested_end(name: str, status: str, reason: str) -> NestedEnd:
    """Returns what the end of a nested run means for its task.

    One that ran nothing has done nothing; one that was let go before its end has not done all.
    """
    if status == "completed" and not ran_nothing(reason):
        return NestedEnd(Status.SUCCEEDED)
    if status == "stopped" and is_at_own_stop_point(reason):
        return NestedEnd(Status.SUCCEEDED)
    said = reason if reason.startswith(status) else f"{status}: {reason}".rstrip(": ")
    how = Status.CANCELLED if reason.startswith(ABORTED_BY) else Status.FAILED
    return NestedEnd(how, f"its run {name}: {said}")


def newest_values(rows: Iterable[StoredValues]) -> dict[str, StoredValues]:
    """Returns the values of each task that count when the run has ended, by its name: those of
    the last point, and there of the last submission."""
    newest: dict[str, StoredValues] = {}
    for row in rows:
        known = newest.get(row.name)
        if known is None or (row.point, row.submit) >= (known.point, known.submit):
            newest[row.name] = row
    return {name: row for name, row in sorted(newest.items()) if row.body}


def values_text(values: Mapping[str, StoredValues]) -> str | None:
    """Returns the values of a nested run: those of its tasks, by name; None if there are none.

    Raises Refused if they are too many.
    """
    if not values:
        return None
    text = json.dumps(
        {name: json.loads(row.body) for name, row in values.items()}, ensure_ascii=False
    )
    if len(text.encode()) > VALUES_BYTES_MAX:
        raise too_many_values()
    return text


def too_many_values() -> Refused:
    return Refused(
        f"the values of its tasks have more than {VALUES_BYTES_MAX} bytes in total, and are "
        "not passed on: write them to a file, and return the path"
    )
