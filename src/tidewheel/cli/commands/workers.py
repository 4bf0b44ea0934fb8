"""``tidewheel workers``: who executes tasks, and what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.documents import worker_document
from tidewheel.cli.output import Row, note, safe, say_json, say_table
from tidewheel.cli.session import Session, session_command
from tidewheel.quantities import show_duration, show_size
from tidewheel.services.explain import SILENT_SECONDS

if TYPE_CHECKING:
    from tidewheel.api.tasks import WorkerView
    from tidewheel.client import AsyncClient

DROP = ("BUFFER", "NODES", "GPU", "LABELS", "MEMORY", "CORES", "NAME")
HEADERS = (
    "WORKER",
    "NAME",
    "STATE",
    "QUEUES",
    "BUSY",
    "CORES",
    "MEMORY",
    "GPU",
    "NODES",
    "BUFFER",
    "LABELS",
    "SEEN",
)


@session_command("workers")
@click.option("--all", "show_all", is_flag=True, help="Also list workers that have stopped.")
def command(session: Session, *, show_all: bool) -> int:
    """List workers, newest first."""
    workers, now = session.ask(lambda client: _look(client, show_all=show_all))
    if session.as_json:
        say_json({"workers": [worker_document(worker) for worker in workers]})
    elif not workers:
        note("no workers; start one: tidewheel worker")
    else:
        rows = [_row(worker, now) for worker in workers]
        say_table(HEADERS, rows, drop=DROP)
        for worker in workers:
            if worker.trouble is not None and worker.stopped_at is None:
                note(f"{worker.id} takes no tasks: {safe(worker.trouble)}")
    return 0


async def _look(client: AsyncClient, *, show_all: bool) -> tuple[list[WorkerView], float]:
    return await client.workers(live_only=not show_all), await client.store.now()


def _row(worker: WorkerView, now: float) -> Row:
    offered = worker.capacity
    return (
        worker.id,
        worker.name,
        _state(worker, now),
        ",".join(worker.queues),
        f"{worker.leases}/{worker.slots}",
        f"{offered.cpu:g}",
        show_size(offered.memory_bytes),
        str(offered.gpu or ""),
        str(offered.nodes),
        show_size(offered.buffer_bytes) if offered.buffer_bytes else "",
        ",".join(sorted(offered.labels)),
        show_duration(now - worker.seen_at) + " ago",
    )


def _state(worker: WorkerView, now: float) -> str:
    if worker.stopped_at is not None:
        return "stopped"
    if now - worker.seen_at <= SILENT_SECONDS and worker.trouble is not None:
        return "in trouble"
    return "silent" if now - worker.seen_at > SILENT_SECONDS else "live"
