"""Defines the commands about the queue: queues, workers, events, and task about one task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from tidewheel.cli.output import json_line, note, plural, safe, say, say_found
from tidewheel.cli.parameters import DURATION, LIMIT, RATE
from tidewheel.cli.session import Session, option, session_command
from tidewheel.core.graph.findings import nearest
from tidewheel.core.queue.access import RUN_QUEUE
from tidewheel.core.queue.limits import EACH_KEY, Limit
from tidewheel.core.queue.status import Status
from tidewheel.quantities import show_duration, show_size

if TYPE_CHECKING:
    from tidewheel.api.tasks import QueueView, WorkerView
    from tidewheel.client import AsyncClient
    from tidewheel.core.operator.stream import FollowedEvent
    from tidewheel.core.queue.resources import Resources


@session_command("queues")
@click.argument("name", required=False)
@option(
    "--pause/--resume paused",
    "Stop workers from taking tasks, or allow it again.",
    default=None,
)
@option(
    "--aging/--no-aging",
    "Raise the priority of ready tasks by 1 per second, up to 255.",
    default=None,
)
@option(
    "--fair/--no-fair",
    "Let limit keys take turns, whatever the priorities of their tasks.",
    default=None,
)
@option(
    "--fence-kill/--no-fence-kill",
    "End a job before its lease ends if the store cannot be reached, and when its worker ends.",
    default=None,
)
@option("--lease lease_seconds", "How long a lease lasts without a heartbeat.", type=DURATION)
@option(
    "--limit ...",
    "How many tasks may run at once: 4 of the queue, KEY=4 of a limit key, '*=4' of each "
    "key without its own limit; repeatable.",
    type=LIMIT,
)
@option(
    "--rate ...",
    "How many tasks may start in a period: 10/1s of the queue, KEY=10/1m of a limit key, "
    "'*=10/1m' of each key without its own limit; repeatable.",
    type=RATE,
)
@option("--no-limits", "Remove all limits of the queue before setting new ones.", default=None)
@option("--all show_all", "Also list the queues of runs without open tasks.")
def queues_command(
    session: Session,
    name: str | None,
    *,
    show_all: bool,
    **options: Any,  # noqa: ANN401
) -> int:
    """List queues and count their tasks; with NAME and options, change a queue.

    Idle queues stay listed while they have settings, failed tasks or were used lately.
    The queue of a run is hidden while it has no open tasks: --all shows it. FAILED counts
    the tasks that failed and are still stored; a + says that older ones are not counted.
    tidewheel tasks --queue NAME --status failed lists them.
    """
    from tidewheel.api.wire import document

    given = {key: value for key, value in options.items() if value not in (None, ())}
    if given and name is None:
        raise click.UsageError("name the queue to change: tidewheel queues NAME --pause")
    ask = session.ask_to_write if given else session.ask
    found = ask(lambda client: _queues(client, name, given))
    is_shown = show_all or name is not None
    views = [view for view in found if is_shown or not _is_left_by_run(view)]
    empty = (
        "no queue has open tasks or settings; a queue appears when a task is submitted to it"
    )

    def show(_: object) -> None:
        say_found(views, QUEUE_COLUMNS, empty)
        if hidden := len(found) - len(views):
            which = plural(hidden, "queue of a run", "queues of runs")
            note(f"not listed: {which} without open tasks; list all: --all")

    return session.answer({"queues": [document(view) for view in views]}, show)


def _is_left_by_run(view: QueueView) -> bool:
    """Says whether a queue is that of a run, with nothing open in it, as the run made it."""
    is_idle = not any(view.counts.values())
    is_as_made = not view.settings.paused and not view.settings.limits
    return view.queue.startswith(RUN_QUEUE) and is_idle and is_as_made


async def _queues(
    client: AsyncClient, name: str | None, given: dict[str, Any]
) -> Sequence[QueueView]:
    """Changes a queue if something was given; returns it, or all queues if none is named."""
    if name is None:
        return await client.queues()
    before = await client.queue(name)
    known = [view.queue for view in await client.queues()]
    is_changed = bool(given)
    paused = given.pop("paused", None)
    counts, rates = given.pop("limit", ()), given.pop("rate", ())
    is_empty = given.pop("no_limits", False)
    if counts or rates or is_empty:
        given["limits"] = _merged_limits(
            () if is_empty else before.settings.limits, counts, rates
        )
    if given:
        await client.configure_queue(name, **given)
    if paused is not None:
        await (client.pause_queue if paused else client.resume_queue)(name)
    _tell_if_unused(name, known, is_changed=is_changed)
    return [await client.queue(name)]


def _tell_if_unused(name: str, known: Sequence[str], *, is_changed: bool) -> None:
    """Tells the user if no task was in the named queue: its name may be misspelt."""
    if name in known:
        return
    like = nearest(name, known)
    hint = "" if like is None else f"; did you mean {safe(like)}?"
    applies = "; the settings apply to future tasks" if is_changed else ""
    note(f"no task was in the queue {safe(name)} lately{applies}{hint}")


def _merged_limits(
    stored: Sequence[Limit], counts: Sequence[Limit], rates: Sequence[Limit]
) -> tuple[Limit, ...]:
    """Returns one limit per key, with both how many may run and how many may start in a time.

    What is given replaces what was stored.
    """
    limits = {limit.key: limit for limit in stored}
    for given, sides in (
        (counts, ("concurrency_max",)),
        (rates, ("rate_max", "rate_seconds")),
    ):
        for one in given:
            said = {side: getattr(one, side) for side in sides}
            limits[one.key] = replace(limits.get(one.key, Limit(key=one.key)), **said)
    return tuple(limits[key] for key in sorted(limits))


def _count(*statuses: Status) -> Callable[[QueueView], str]:
    return lambda view: str(sum(view.counts.get(status, 0) for status in statuses))


def _settings_text(view: QueueView) -> str:
    words = ["aging"] if view.settings.aging else []
    words += ["fair"] if view.settings.fair else []
    words += ["fence-kill"] if view.settings.fence_kill else []
    for limit in view.settings.limits:
        of = {"": "", EACH_KEY: " of each key"}.get(limit.key, f" of {limit.key}")
        if limit.concurrency_max is not None:
            words.append(f"at most {limit.concurrency_max}{of}")
        if limit.rate_max is not None:
            words.append(f"{limit.rate_max}{of} every {show_duration(limit.rate_seconds)}")
    return ", ".join(words)


QUEUE_COLUMNS: dict[str, Callable[[QueueView], str]] = {
    "QUEUE": lambda view: view.queue,
    "STATE": lambda view: "paused" if view.settings.paused else "open",
    "WAITING": _count(Status.WAITING),
    "READY": _count(Status.READY),
    "RUNNING": _count(Status.RUNNING, Status.CANCELLING),
    "FAILED": lambda view: f"{view.failed}{'+' if view.failed_more else ''}",
    "OLDEST": lambda view: (
        "" if view.oldest_ready_seconds is None else show_duration(view.oldest_ready_seconds)
    ),
    "LEASE": lambda view: show_duration(view.settings.lease_seconds),
    "SETTINGS": _settings_text,
}


# ---- `workers`: who executes tasks, and what they hold ----


@session_command("workers")
@option("--all show_all", "Also list workers that have stopped.")
def workers_command(session: Session, *, show_all: bool) -> int:
    """List workers, newest first."""
    from tidewheel.api.wire import document

    async def look(client: AsyncClient) -> tuple[list[WorkerView], float]:
        return await client.workers(live_only=not show_all), await client.store.now()

    workers, now = session.ask(look)

    def show(_: object) -> None:
        empty = "no workers; start one: tidewheel worker"
        say_found(workers, _worker_columns(now), empty, drop=WORKER_DROP)
        for worker in workers:
            if worker.trouble is not None and worker.stopped_at is None:
                note(f"{worker.id} takes no tasks: {safe(worker.trouble)}")

    return session.answer({"workers": [document(worker) for worker in workers]}, show)


WORKER_DROP = ("BUFFER", "NODES", "GPU", "LABELS", "MEMORY", "CORES", "NAME")


def _worker_columns(now: float) -> dict[str, Callable[[WorkerView], str]]:
    from tidewheel.core.queue.lease import LATE_SECONDS

    def state(one: WorkerView) -> str:
        if one.stopped_at is not None:
            return "stopped"
        if now - one.seen_at > LATE_SECONDS:
            return f"silent for {show_duration(round(now - one.seen_at))}"
        return "live" if one.trouble is None else "in trouble"

    return {
        "WORKER": lambda one: one.id,
        "NAME": lambda one: one.name,
        "STATE": state,
        "QUEUES": lambda one: ",".join(one.queues),
        "BUSY": lambda one: f"{one.leases}/{one.slots}",
        "CORES": lambda one: f"{one.capacity.cpu:g}",
        "MEMORY": lambda one: show_size(one.capacity.memory_bytes),
        "GPU": lambda one: str(one.capacity.gpu or ""),
        "NODES": lambda one: _nodes_text(one.capacity),
        "BUFFER": lambda one: (
            show_size(one.capacity.buffer_bytes) if one.capacity.buffer_bytes else ""
        ),
        "LABELS": lambda one: ",".join(sorted(one.capacity.labels)),
        "SEEN": lambda one: show_duration(now - one.seen_at) + " ago",
    }


def _nodes_text(offered: Resources) -> str:
    named = [f"{one.flavour} {one.nodes}" for one in offered.flavours]
    return f"{offered.nodes} ({', '.join(named)})" if named else str(offered.nodes)


# ---- `task`: everything about one ----


@session_command("task")
@click.argument("task_id", metavar="ID|NAME")
@option("--log stream", "Print what the task wrote.", type=click.Choice(["out", "err"]))
@option("--follow", "With --log: continue until the task has ended.")
@option(
    "--attempt", "With --log: print this attempt instead of the latest.", type=click.IntRange(1)
)
def task_command(
    session: Session, task_id: str, stream: str | None, *, follow: bool, attempt: int | None
) -> int:
    """Show a task: its fields, its history, and why it does not run."""
    if stream is None and (follow or attempt):
        raise click.UsageError("--follow and --attempt go with --log out or --log err")
    if stream is not None and session.as_json:
        raise click.UsageError(
            "--log prints what the task wrote as it is, so --json does not work with it; leave "
            f"--json out, or write: tidewheel log {task_id} --file {stream} --json"
        )

    from tidewheel.cli.pages.log import LogWish, named_task, printer, say_log
    from tidewheel.cli.pages.task import gather, say_page, say_page_json

    async def show(client: AsyncClient) -> None:
        task = await named_task(client, task_id)
        if stream is not None:
            await say_log(client, task, LogWish(stream, attempt, follow), printer)
        else:
            (say_page_json if session.as_json else say_page)(await gather(client, task))

    session.ask(show)
    return 0


# ---- `events`: what happens, line by line ----


@session_command(
    "events",
    "events",
    "events --run forecast",
    "events --queue default --json",
    "events --since ID      # an id that --json has shown",
)
@option("--run RUN", "Print only events of this run and its tasks.")
@option("--queue TEXT", "Print only events of this queue.")
@option(
    "--kind",
    "Print only events of tasks, or only events of runs.",
    type=click.Choice(["task", "run"]),
)
@option("--since ID", "Begin after this event instead of now.")
@option("--count", "Stop after this many events.", type=click.IntRange(1))
def events_command(session: Session, count: int | None, **which: str | None) -> int:
    """Print what happens to tasks and runs, one line each, until Ctrl-C.

    With --json, each line is an object with `event`, `id` and `data`, as in a server's stream.
    No event is left out or printed twice, even if the server or the database cannot be reached
    for a while. If events were deleted in the meantime, a message says so.
    """

    async def follow(client: AsyncClient) -> None:
        runs: dict[object, object] = {}  # as they were, to say only what is new
        told = 0
        async with aclosing(client.events(**which)) as events:
            async for event in events:
                if session.as_json:
                    say(
                        json_line({"event": event.kind, "id": event.id, "data": event.document})
                    )
                else:
                    _say(event, runs)
                told += event.kind in ("task", "run")
                if told == count:
                    return

    with suppress(KeyboardInterrupt):  # which is how one stops watching
        session.ask_existing(follow)
    return 0


# ---- Events as lines for people: time, what it is about, from what to what. ----

Document = dict[str, object]
SECONDS_LENGTH = len("2026-11-15T18:14:08")
MISSED = "some events were missed and cannot be recovered; continuing from here"


def _say(event: FollowedEvent, runs: dict[object, object]) -> None:
    told = event.document
    if event.kind == "task":
        before = f"{told['from']} " if told["from"] else ""
        beside = _beside([str(one) for one in (told["signal"], told["worker"]) if one])
        _say_line(told, told["id"], f"{before}→ {told['to']}{beside}")
    elif event.kind == "run":
        _say_run(told, runs)
    elif event.kind == "resync":
        note(MISSED)


def _say_run(batch: Document, runs: dict[object, object]) -> None:
    run, now = batch["run"], (batch["status"], batch["reason"])
    if runs.get(run) != now:
        runs[run] = now
        why = f" ({batch['reason']})" if batch["reason"] else ""
        _say_line(batch, run, f"{batch['status']}{why}")
    if batch["tasks"] is None:
        _say_line(batch, run, f"{plural(cast('int', batch['changed']), 'task')} changed")
    for task in cast("list[Document]", batch["tasks"] or []):
        beside = _beside(cast("list[str]", task["remarks"]))
        _say_line(batch, f"{run} {task['id']}", f"→ {task['state']}{beside}")


def _beside(remarks: list[str]) -> str:
    return f" ({', '.join(remarks)})" if remarks else ""


def _say_line(document: Document, what: object, change: str) -> None:
    say(f"{str(document['at'])[:SECONDS_LENGTH]}Z  {safe(what)}  {safe(change)}")
