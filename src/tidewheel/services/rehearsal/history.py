"""How long the jobs of a workflow took in its earlier runs."""

from __future__ import annotations

from statistics import median

from tidewheel.core.runs.job_names import read_job_name
from tidewheel.core.tasks.status import Status
from tidewheel.ports import RunStore

RUNS_MAX = 5  # the newest ones are looked at
SUBMISSIONS_MAX = 10_000  # of each


async def learnt_lengths(store: RunStore, workflow: str, folder: str) -> dict[str, float]:
    """The median seconds by name of the node, of jobs that succeeded, in the newest runs."""
    taken: dict[str, list[float]] = {}
    runs = [one for one in await store.runs(workflow=workflow) if one.folder == folder]
    for run in runs[:RUNS_MAX]:
        for one in await store.submissions(run.number, count=SUBMISSIONS_MAX):
            if one.status != Status.SUCCEEDED:
                continue
            if one.started_at is not None and one.ended_at is not None:
                seconds = max(0.0, one.ended_at - one.started_at)
                taken.setdefault(read_job_name(one.task_id).node, []).append(seconds)
    return {name: median(seconds) for name, seconds in taken.items()}
