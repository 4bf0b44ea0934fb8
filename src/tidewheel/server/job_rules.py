"""Says what a job may do with its own token: see its task and its run, and operate its run.

To operate its run, the run's definition must let jobs do so (`job commands`), as for a job that
asks through its worker.
"""

from __future__ import annotations

from tidewheel.client.log_places import is_submission
from tidewheel.core.operator.definition import read_job_name
from tidewheel.server.call import Call
from tidewheel.server.errors import NotAllowed
from tidewheel.services.job_api import JobApi
from tidewheel.wiring.services import run_door


async def any_job(call: Call) -> None:
    """The request concerns nothing but the job that makes it."""
    assert call.job is not None


async def own_task(call: Call) -> None:
    """The path names the task that the job executes."""
    assert call.job is not None
    if call.path["id"] != call.job.task.id:
        raise NotAllowed(f"this token is of task {call.job.task.id!r} alone")


async def own_run(call: Call) -> None:
    """The path names the run that the job belongs to."""
    assert call.job is not None
    task_id, run = call.job.task.id, await call.found_run()
    belongs = await is_submission(call.asking, task_id)
    if not belongs or read_job_name(task_id).run != run.name:
        raise NotAllowed(f"this token is of task {task_id!r}, which is not of {run.name}")


async def operating_own_run(call: Call) -> None:
    """Requires that the path names the job's own run, and that jobs of it may give commands."""
    await own_run(call)
    run = await call.found_run()
    home = call.settings.state_directory
    if not await JobApi(run_door(call.store, home), home).allows_commands(run):
        raise NotAllowed(
            f"jobs of {run.name} may send messages and look; "
            "allow more with [scheduler] job commands = True"
        )
