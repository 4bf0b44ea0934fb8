"""Describes a run as a whole: who drives it, since when, with which options."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tidewheel.api.runs import (
    ListedRun,
    RunAction,
    RunCreated,
    RunFacts,
    RunList,
    UndoneCounts,
)
from tidewheel.core.operator.blocks import NeedState
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.verbs import ExtTrigger
from tidewheel.core.operator.views import (
    RUN_STATES,
    RunAttempt,
    RunView,
    SubmissionView,
    undone_in,
)
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.errors import Refused
from tidewheel.ports.runs import Arguments
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.vocabulary import time_text

if TYPE_CHECKING:
    from tidewheel.views.snapshot import AskedView

Document = dict[str, object]

RUNS_MAX = 1_000
PORTIONS_MAX = 20  # of so many runs, for one page of those that fit a filter

D = TypeVar("D")
_NONE_SUCH = object()
_LISTED: dict[type[object], Callable[[Any], object]] = {frozenset: sorted, tuple: list}


def described(kind: type[D], *sources: object, **given: object) -> D:
    """Returns a document of this TypedDict, put together by ``document_of``, as that type."""
    return cast("D", document_of(kind, *sources, **given))


def document_of(kind: type[object], *sources: object, **given: object) -> Document:
    """Returns a document with the keys of this TypedDict; `given` has the values of some of
    them.

    Every other value is the attribute of that name of the first source that has one: times as
    texts, sets as sorted lists. It is None if no source has it; then one of the sources must be
    None. A large run has many thousands of these, so nothing is called that need not be.
    """
    found: Document = {}
    for key in kind.__annotations__:
        if key in given:
            found[key] = given[key]
            continue
        for source in sources:
            value = getattr(source, key, _NONE_SUCH)
            if value is not _NONE_SUCH:
                break
        else:
            assert None in sources, key
            value = None
        if type(value) in _LISTED:
            value = _LISTED[type(value)](value)
        elif key[-2:] == "at" and isinstance(value, int | float):
            value = show_instant(value)
        found[key] = value
    return found


def job_facts(one: SubmissionView | RunAttempt) -> Document:
    """Returns the parts of the name of a submission (point, node, submit number), and since
    when it is queued."""
    job = read_job_name(one.task_id)
    return {
        "id": f"{job.point}/{job.node}",
        "point": job.point,
        "name": job.node,
        "submit": job.submit,
        "task": one.task_id,
        "queued_at": time_text(one.submitted_at),
    }


def run_facts(view: RunView, now: Instant) -> RunFacts:
    """Returns a run as one row; `driven`: a scheduler holds it; `offered`: any may take it."""
    owner = view.owner
    return described(
        RunFacts,
        view,
        undone=undone_facts(view.reason),
        driven=view.is_driven(now),
        offered=view.given is not None,
        mode=view.options.mode,
        parent=None if view.parent is None else read_job_name(TaskId(view.name)).run,
        scheduler=None if owner is None else {"host": owner.host, "pid": owner.pid},
    )


def undone_facts(reason: str) -> UndoneCounts:
    """Counts the tasks that were not done when a run completed, read from its reason."""
    return described(UndoneCounts, undone_in(reason))


def option_facts(view: RunView) -> Document:
    """Returns the options that were given when the run was made; others are left out."""
    said = asdict(view.options)
    del said["now"]
    return {name: value for name, value in said.items() if value not in ("", (), None)}


async def facts(asked: AskedView) -> RunCreated:
    """Shows the run without its tasks; `options` has all, also those that were not given."""
    view = asked.run
    run = {**run_facts(view, await asked.store.now()), "options": asdict(view.options)}
    return cast("RunCreated", {"run": run})


async def runs(store: Store, arguments: Arguments) -> RunList:
    """Lists runs, newest first; `next` is the `before` of the next page.

    For a filter, runs are looked at until there are so many that fit, or a limit is reached.
    """
    now, workflow = await store.now(), read_text(arguments, "workflow") or None
    limit = min(read_number(arguments, "count") or 100, RUNS_MAX)
    before = read_number(arguments, "before")
    nested = arguments.get("nested") is True
    matching = read_text(arguments, "matching")
    asked: dict[str, Any] = {"workflow": workflow, "nested": nested}
    if matching:
        found, before = await _fitting(store, matching, (limit, before), asked)
    else:
        found = await store.runs(count=limit, before=before, **asked)
        before = found[-1].number if len(found) == limit else None
    waits = await _waits(store, found, read_names(arguments))
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
        "next": before,
    }


async def _fitting(
    store: Store, matching: str, page: tuple[int, int | None], asked: dict[str, Any]
) -> tuple[list[RunView], int | None]:
    """Returns runs that fit a filter, so many from a place on, and where the next page begins;
    no more than PORTIONS_MAX portions are looked at."""
    from tidewheel.core.queue.filters import read_filter  # noqa: PLC0415 - few ask for any

    sought, (limit, before) = read_filter(matching, RUN_STATES), page
    found: list[RunView] = []
    for _ in range(PORTIONS_MAX):
        part = await store.runs(count=RUNS_MAX, before=before, **asked)
        before = part[-1].number if len(part) == RUNS_MAX else None
        found += [one for one in part if sought.fits((one.name,), (one.status,))]
        if before is None or len(found) >= limit:
            break
    return found[:limit], found[limit - 1].number if len(found) > limit else before


async def kept_commands(store: Store, view: RunView, now: Instant) -> int:
    """Counts the commands that are kept for an ended run until a scheduler goes on with it
    because of them."""
    if view.given is None or not view.can_be_reopened(now):
        return 0
    return sum(one.answered_at is None for one in await store.commands(view.number))


def kept_text(count: int) -> str:
    """Returns the number of kept commands in words; "" if there are none."""
    if not count:
        return ""
    are = "1 command waits and is" if count == 1 else f"{count} commands wait and are"
    return f"{are} carried out when the run resumes"


async def _waits(
    store: Store, found: Sequence[RunView], names: tuple[str, ...] | None
) -> dict[int, list[str]]:
    """Returns what keeps runs from beginning, by their numbers, as told to somebody who may
    know of these names."""
    unbegun = [view.number for view in found if view.batch == 0 and view.given is not None]
    waits: dict[int, list[str]] = {}
    for need in await store.needs_of(unbegun) if unbegun else ():
        if need.state is not NeedState.MET:
            waits.setdefault(need.run, []).append(str(need.told_to(names)))
    return waits


# What a view is asked with.


def read_names(arguments: Arguments) -> tuple[str, ...] | None:
    """Returns the patterns for what whoever asks may know of; None: everything."""
    return None if arguments.get("sees") is None else tuple(read_texts(arguments, "sees"))


def read_texts(arguments: Arguments, name: str) -> list[str]:
    value = arguments.get(name) or []
    if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
        raise Refused(f"{name} must be a list of strings, not {json.dumps(value)}")
    return list(value)


def read_text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name) or ""
    if not isinstance(value, str | int):
        raise Refused(f"{name} must be a string, not {json.dumps(value)}")
    return str(value)


def read_number(arguments: Arguments, name: str) -> int | None:
    value = arguments.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise Refused(f"{name} must be a whole number, 0 or more, not {json.dumps(value)}")


# The commands of reasons, as the core writes them, become lines to copy and actions.


PROGRAM = "tidewheel"


def actions(command: str) -> list[RunAction]:
    """Returns commands as REST takes them: a verb and its fields; `run` resumes a run."""
    return [_action(shlex.split(one)) for one in command.split(", or ") if one]


def _action(words: Sequence[str]) -> RunAction:
    found: RunAction = {"verb": words[0]}
    rest = iter(words[1:])
    for word in rest:
        match word:  # an option in the core's words, or an id
            case "--pre":
                found["prerequisites"] = [next(rest)]
            case "--out":
                found["outputs"] = next(rest).split(",")
            case "--flow":
                found["flow"] = next(rest)
            case "--reflow":
                found["flow"] = "new"
            case _ if found["verb"] == ExtTrigger.verb:
                found["message"] = word
            case _:
                found["ids"] = [word]
    return found


def command_lines(run: str, command: str) -> list[str]:
    """Returns the commands of a reason as whole lines for people; the core writes several as
    `trigger 1/a, or set 1/a`."""
    lines = []
    for one in command.split(", or "):
        verb, _, rest = one.partition(" ")
        if verb:
            lines.append(f"{PROGRAM} {verb} {shlex.quote(run)} {rest}".rstrip())
    return lines
