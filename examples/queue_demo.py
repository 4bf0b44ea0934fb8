"""A small forecast, from observations to a bulletin: what `make demo` shows.

It uses a separate store in a temporary folder, and one worker inside this process. You see
tasks that run at the same time (regrid), a task with nothing to execute that joins them
(regions), a diamond (forecast, then chart and text, then bulletin), a task that fails once
and is tried again (warnings), a task that reports its progress (forecast), and a task that
needs only an output of another task, and so starts before that task has ended (preview).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import tidewheel
from tidewheel.api.tasks import Task
from tidewheel.cli.output import Row, say, say_table
from tidewheel.cli.pages.task_progress import Display
from tidewheel.quantities import show_duration

REGIONS = ("north", "south", "west")
DAYS = 5
handlers = tidewheel.Handlers()


@handlers.register("forecast")
async def forecast(spec: dict[str, int], job: tidewheel.JobContext) -> dict[str, int]:
    """Computes one day after the other; a task that needs only the first day can start then."""
    for day in range(1, spec["days"] + 1):
        await asyncio.sleep(0.5)
        job.progress(day / spec["days"])
        if day == 1:
            job.output("first day", "tomorrow is computed")
    return {"days computed": spec["days"]}


@handlers.register("warnings")
def warnings(_spec: None, job: tidewheel.JobContext) -> str:
    """Fails the first time, as services do."""
    if job.attempt == 1:
        raise ConnectionError("the warning service did not answer")
    return "no warnings"


def graph() -> list[dict[str, object]]:
    """The tasks, each with what it needs; ids are ours to choose."""
    regrid = [f"regrid {region}" for region in REGIONS]
    side_by_side: list[dict[str, object]] = [
        {"id": name, "command": "sleep 0.4", "needs": ["observe"]} for name in regrid
    ]
    return [
        {"id": "observe", "command": "sleep 0.3; echo 1013 hPa"},
        *side_by_side,
        {"id": "regions", "needs": regrid},  # nothing to execute: it joins
        {"id": "forecast", "handler": "forecast", "spec": {"days": DAYS}, "needs": ["regions"]},
        {"id": "preview", "command": "sleep 0.2", "needs": [("forecast", "first day")]},
        {"id": "warnings", "handler": "warnings", "retries": 2, "retry_delays": ["500ms"]},
        {"id": "chart", "command": "sleep 0.6", "needs": ["forecast"]},
        {"id": "text", "command": "sleep 0.3", "needs": ["forecast", "warnings"]},
        {"id": "bulletin", "command": "echo fine weather", "needs": ["chart", "text"]},
    ]


async def run(home: Path) -> list[Row]:
    """Submit, work, watch; then what became of each task."""
    store = f"sqlite:///{home}/tidewheel.db"
    # A short lease, as progress is reported with each heartbeat.
    worker = tidewheel.Worker(store, handlers=handlers, home=home, slots=4, lease_seconds=1.0)
    async with tidewheel.AsyncClient(store) as client, worker:
        batch = await client.submit_many(graph(), atomic=True)
        with Display() as display:
            tasks = await client.wait(*batch.inserted, timeout=60, on_progress=display.show)
        return [await result(client, task) for task in tasks]


async def result(client: tidewheel.AsyncClient, task: Task) -> Row:
    """One row of the table at the end."""
    attempts = await client.attempts(task.id)
    started = attempts[0].claimed_at - task.created_at if attempts else None
    took = sum((a.ended_at or a.claimed_at) - a.claimed_at for a in attempts)
    remark = next((a.error.description for a in attempts if a.error), "")
    return (
        task.id,
        task.status,
        str(len(attempts) or "none needed"),
        "" if started is None else f"{started:.2f} s",
        show_duration(took) if attempts else "",
        f"first attempt: {remark}" if remark else "",
    )


def main() -> int:
    """The demo, and what to try next."""
    say(
        f"tidewheel {tidewheel.__version__}: a forecast of {len(graph())} tasks on one worker\n"
    )
    with tempfile.TemporaryDirectory(prefix="tidewheel-demo-") as folder:
        rows = asyncio.run(run(Path(folder)))
    say_table(("TASK", "STATUS", "ATTEMPTS", "STARTED AFTER", "TOOK", "REMARK"), rows)
    program = (
        "tidewheel"
        if sys.prefix == sys.base_prefix
        else f"{Path(sys.prefix).name}/bin/tidewheel"
    )
    say("\nTry it yourself:")
    say(f"  {program} submit --command 'date; sleep 2' --retries 2")
    say(f"  {program} worker --exit-when-idle")
    say(f"  {program} tasks")
    say(f"  {program} --help")
    return 0 if all(str(row[1]) == "succeeded" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
