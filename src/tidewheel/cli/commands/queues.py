"""``tidewheel queues``: what waits where; pause, resume or configure one queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from tidewheel.api.tasks import QueueView
from tidewheel.api.wire import document
from tidewheel.cli.output import Row, note, say_json, say_table
from tidewheel.cli.parameters import DURATION, LIMIT, RATE
from tidewheel.cli.session import Session, session_command
from tidewheel.core.queue.limits import EACH_KEY, Limit
from tidewheel.core.queue.status import Status
from tidewheel.quantities import show_duration

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.client.async_client import QueueChanges

HEADERS = ("QUEUE", "STATE", "WAITING", "READY", "RUNNING", "OLDEST", "LEASE", "SETTINGS")


class QueueOptions(TypedDict):
    """The settings to change; None or nothing leaves one as it is."""

    paused: bool | None
    aging: bool | None
    fence_kill: bool | None
    lease: float | None
    limit: tuple[Limit, ...]
    rate: tuple[Limit, ...]
    no_limits: bool | None


@session_command("queues")
@click.argument("name", required=False)
@click.option(
    "--pause/--resume",
    "paused",
    default=None,
    help="Stop workers from taking tasks, or let them again.",
)
@click.option(
    "--aging/--no-aging",
    default=None,
    help="Raise the priority of waiting tasks by 1 per second.",
)
@click.option(
    "--fence-kill/--no-fence-kill",
    default=None,
    help="End a job before its lease does if the store cannot be reached, and with its worker.",
)
@click.option("--lease", type=DURATION, help="How long a lease lasts without a heartbeat.")
@click.option(
    "--limit",
    type=LIMIT,
    multiple=True,
    help="How many may run at once: 4, or per key: KEY=4, '*=4'.",
)
@click.option(
    "--rate", type=RATE, multiple=True, help="How many may start in a time: 10/1s, KEY=10/1m."
)
@click.option("--no-limits", is_flag=True, default=None, help="Remove all limits first.")
def command(session: Session, name: str | None, **options: Unpack[QueueOptions]) -> int:
    """List queues with how many tasks wait in each; with NAME and options, change a queue."""
    changing = any(value not in (None, ()) for value in options.values())
    if changing and name is None:
        raise click.UsageError(
            "name the queue that shall change: tidewheel queues NAME --pause"
        )
    ask = session.ask_to_write if changing else session.ask
    views = ask(lambda client: _apply(client, name, options if changing else None))
    if session.as_json:
        say_json({"queues": [document(view) for view in views]})
    elif not views:
        note("no queue has open tasks or settings; tasks make theirs as they are submitted")
    else:
        say_table(HEADERS, [_row(view) for view in views])
    return 0


async def _apply(
    client: AsyncClient, name: str | None, options: QueueOptions | None
) -> Sequence[QueueView]:
    if name is None:
        return await client.queues()
    if options:
        changes = _changes((await client.queue(name)).settings.limits, options)
        if changes:
            await client.configure_queue(name, **changes)
        if options["paused"] is not None:
            await (client.pause_queue if options["paused"] else client.resume_queue)(name)
    return [await client.queue(name)]


def _changes(stored: tuple[Limit, ...], options: QueueOptions) -> QueueChanges:
    changes: QueueChanges = {}
    if options["aging"] is not None:
        changes["aging"] = options["aging"]
    if options["fence_kill"] is not None:
        changes["fence_kill"] = options["fence_kill"]
    if options["lease"] is not None:
        changes["lease_seconds"] = options["lease"]
    if options["limit"] or options["rate"] or options["no_limits"]:
        kept = () if options["no_limits"] else stored
        changes["limits"] = merged_limits(kept, options["limit"], options["rate"])
    return changes


def merged_limits(
    stored: Sequence[Limit], counts: Sequence[Limit], rates: Sequence[Limit]
) -> tuple[Limit, ...]:
    """One limit per key, with both sides; what is given replaces what was stored."""
    limits = {limit.key: limit for limit in stored}
    for limit in counts:
        known = limits.get(limit.key, Limit(key=limit.key))
        limits[limit.key] = replace(known, concurrency_max=limit.concurrency_max)
    for limit in rates:
        known = limits.get(limit.key, Limit(key=limit.key))
        limits[limit.key] = replace(
            known, rate_max=limit.rate_max, rate_seconds=limit.rate_seconds
        )
    return tuple(limits[key] for key in sorted(limits))


def _row(view: QueueView) -> Row:
    counts, settings = view.counts, view.settings
    running = counts.get(Status.RUNNING, 0) + counts.get(Status.CANCELLING, 0)
    oldest = view.oldest_ready_seconds
    return (
        view.queue,
        "paused" if settings.paused else "open",
        str(counts.get(Status.WAITING, 0)),
        str(counts.get(Status.READY, 0)),
        str(running),
        "" if oldest is None else show_duration(oldest),
        show_duration(settings.lease_seconds),
        ", ".join(_settings_words(view)),
    )


def _settings_words(view: QueueView) -> list[str]:
    words = ["aging"] if view.settings.aging else []
    words += ["fence-kill"] if view.settings.fence_kill else []
    for limit in view.settings.limits:
        of = {"": "", EACH_KEY: " of each key"}.get(limit.key, f" of {limit.key}")
        if limit.concurrency_max is not None:
            words.append(f"at most {limit.concurrency_max}{of}")
        if limit.rate_max is not None:
            words.append(f"{limit.rate_max}{of} every {show_duration(limit.rate_seconds)}")
    return words
