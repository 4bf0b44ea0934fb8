"""Follows tasks to their end: a live display on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewheel.api.tasks import Task
from tidewheel.cli.output import Row, coloured, note, rich_table, safe, say
from tidewheel.client import AsyncClient
from tidewheel.core.queue.status import Status
from tidewheel.quantities import show_duration

if TYPE_CHECKING:
    from rich.live import Live

SHOWN_MAX = 20
BAR_WIDTH = 20


async def follow(client: AsyncClient, ids: Sequence[str]) -> list[Task]:
    """Waits until the tasks have ended, shows how they get on, and returns them."""
    display = Display()
    with display:
        try:
            return await client.wait(*ids, on_progress=display.show)
        except BaseException:
            display.stop()
            note("the tasks continue without this command; list them: tidewheel tasks")
            raise


class Display:
    """Shows the tasks that are followed, on standard error."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True),
                refresh_per_second=8,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the live display; nothing more is shown."""
        if self._live is not None:
            self._live.stop()

    def show(self, task: Task) -> None:
        """Shows a task that is new to this display or has changed."""
        before = self._tasks.get(task.id)
        self._tasks[task.id] = task
        if self._live is not None:
            self._live.update(rich_table(("TASK", "STATUS", "PROGRESS"), self._rows()))
        elif before is None or (before.status, before.attempt) != (task.status, task.attempt):
            attempt = f"  attempt {task.attempt}" if task.attempt > 1 else ""
            note(f"{label(task)}  {task.status}{attempt}")
        elif task.progress > before.progress:
            note(f"{label(task)}  {task.status}  {task.progress:.0%}")

    def _rows(self) -> list[Row]:
        """Returns a row per task, those that have not ended first; of a long list the rest
        is counted."""
        order = sorted(self._tasks.values(), key=lambda task: task.ended)
        rows: list[Row] = [
            (label(task), task.status, bar(task.progress)) for task in order[:SHOWN_MAX]
        ]
        if more := len(order) - len(rows):
            rows.append((f"and {more} more", "", ""))
        return rows


def label(task: Task) -> str:
    """Returns the name of a task if it has one, else its id."""
    return safe(task.name or task.id)


def bar(progress: float) -> str:
    """Returns a bar that shows how far a task is, with the percentage."""
    filled = round(progress * BAR_WIDTH)
    return "█" * filled + "░" * (BAR_WIDTH - filled) + f" {progress:4.0%}"


async def say_results(client: AsyncClient, tasks: Sequence[Task]) -> None:
    """Prints how each task ended, and why if it did not go well."""
    for task in tasks:
        took = ""
        for last in (await client.attempts(task.id))[-1:]:
            if last.ended_at is not None:
                took = f" in {show_duration(last.ended_at - last.claimed_at)}"
        say(f"{label(task)}  {coloured(task.status)}{took}")
        for error in task.errors:
            say(f"  {safe(error.code)}: {safe(error.description)}")
        if task.status is Status.FAILED or len(tasks) == 1:
            say(f"  its log: tidewheel log {safe(task.id)}")
