"""Describes a run as a whole: who drives it, since when, with which options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TypeVar, cast

from tidewheel.api.runs import (
    ListedRun,
    RunCreated,
    RunFacts,
    RunList,
    RunWithOptions,
    UndoneCounts,
)
from tidewheel.core.operator.blocks import NeedState
from tidewheel.core.operator.views import RunView, undone_in
from tidewheel.core.queue.task import Instant
from tidewheel.ports.store import Store
from tidewheel.vocabulary import time_text

Document = dict[str, object]

RUNS_MAX = 1_000

D = TypeVar("D")


def described(kind: type[D], source: object, **given: object) -> D:
    """Returns a document of this kind about something, with what is given for some of its keys.

    Every other key is the attribute of that name; times are written as texts.
    """
    found: dict[str, object] = {}
    for key in kind.__annotations__:
        value = given[key] if key in given else getattr(source, key)
        is_time = key.endswith("_at") and key not in given
        found[key] = time_text(value) if is_time else value  # type: ignore[arg-type]
    return cast("D", found)


def run_facts(view: RunView, now: Instant) -> RunFacts:
    """Describes a run by its row; `driven`: a scheduler holds it now; `offered`: any may."""
    owner = view.owner
    return described(
        RunFacts,
        view,
        undone=undone_facts(view.reason),
        driven=view.is_driven(now),
        offered=view.given is not None,
        scheduler=None if owner is None else {"host": owner.host, "pid": owner.pid},
    )


def undone_facts(reason: str) -> UndoneCounts:
    """Counts the tasks that were not done when a run completed."""
    undone = undone_in(reason)
    return {"lost": undone.lost, "skipped": undone.skipped}


def option_facts(view: RunView) -> Document:
    """Returns the options that were given when the run was made; others are left out."""
    said = asdict(view.options)
    del said["now"]
    return {name: value for name, value in said.items() if value not in ("", (), None)}


def facts_document(view: RunView, now: Instant) -> RunCreated:
    """Returns the run without its tasks; `options` has all, and the time when it was made."""
    run = {**run_facts(view, now), "options": asdict(view.options)}
    return {"run": cast("RunWithOptions", run)}


async def runs_document(
    store: Store, workflow: str | None = None, count: int = 100, before: int | None = None
) -> RunList:
    """Lists runs, newest first; `next` is the `before` of the next page."""
    now = await store.now()
    limit = min(count, RUNS_MAX)
    found = await store.runs(workflow=workflow, count=limit, before=before)
    waits = await _waits(store, found)
    rows = [
        {
            **run_facts(view, now),
            "waits": waits.get(view.number, []),
            "kept": await kept_commands(store, view, now),
        }
        for view in found
    ]
    return {
        "runs": cast("list[ListedRun]", rows),
        "next": found[-1].number if len(found) == limit else None,
    }


async def kept_commands(store: Store, view: RunView, now: Instant) -> int:
    """Counts the commands that are kept for an ended run, which goes on because of them."""
    if view.given is None or not view.can_be_reopened(now):
        return 0
    return sum(one.answered_at is None for one in await store.commands(view.number))


def kept_text(count: int) -> str:
    """Returns the number of kept commands in words; nothing if there are none."""
    if not count:
        return ""
    are = "1 command is kept: it is" if count == 1 else f"{count} commands are kept: they are"
    return f"{are} done when the run goes on"


async def _waits(store: Store, found: Sequence[RunView]) -> dict[int, list[str]]:
    """Returns what keeps runs from beginning, by their numbers."""
    unbegun = [view.number for view in found if view.batch == 0 and view.given is not None]
    waits: dict[int, list[str]] = {}
    for need in await store.needs_of(unbegun) if unbegun else ():
        if need.state is not NeedState.MET:
            waits.setdefault(need.run, []).append(str(need))
    return waits
