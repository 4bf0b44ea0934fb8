"""Why a task does not run, with the commands that would change it, ready to be copied."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.explain import Reason, why
from tidewheel.core.sched.stall import STALL
from tidewheel.core.sched.task_state import JobPhase, Key
from tidewheel.errors import NotFound
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.services.explain import reasons
from tidewheel.views.run_facts import Document, kept_commands, kept_text
from tidewheel.views.snapshot import RunSnapshot, due_times, wait_document
from tidewheel.views.status_text import words_of
from tidewheel.views.why import post_commands
from tidewheel.vocabulary import time_text

PROGRAM = "tidewheel"
WAITING = "waiting: "  # so begins what a runner says of a job that its engine does not begin


async def why_document(store: Store, looked: RunSnapshot, key: Key) -> Document:
    """Every reason, those of the run as a whole first, those of the queue last."""
    words = words_of(looked.pool, key)
    kept = await kept_commands(store, looked.view, looked.now)
    known = [*_of_the_run(looked, kept), *why(looked.pool, key, due_times(looked))]
    queued = [_queue_reason(one) for one in await _of_the_queue(store, looked, key)]
    queued += await _said_by_the_job(store, looked, key)
    queued += await _of_the_job(store, looked, key)
    found = [
        *waits(looked),
        *(_with_objects(looked, key, one) for one in known),
        *queued,
    ]
    return {
        "run": looked.view.name,
        "id": looked.id_of(key),
        "state": words.state,
        "remarks": list(words.remarks),
        "flows": sorted(words.flows),
        "reasons": found,
    }


def _with_objects(looked: RunSnapshot, key: Key, reason: Reason) -> Document:
    """An object does not come by itself: somebody posts it."""
    document = reason_document(looked.view.name, reason)
    posting = post_commands(looked, key, reason.text)
    if not posting:
        return document
    commands = [*posting, *command_lines(looked.view.name, reason.command)]
    return document | {"passes": False, "commands": commands}


def reason_document(run: str, reason: Reason) -> Document:
    return {
        "text": reason_text(reason),
        "passes": reason.passes,
        "until": None if reason.until is None else whole_second(reason.until),
        "commands": command_lines(run, reason.command),
        "actions": actions(reason.command),
    }


def reason_text(reason: Reason) -> str:
    """With the time at which it passes, where that is known."""
    if reason.until is None:
        return reason.text
    return f"{reason.text} until {whole_second(reason.until)}"


def whole_second(instant: Instant) -> str:
    """As people say a time to come: not before it."""
    return show_instant(math.ceil(instant))


def stall_document(looked: RunSnapshot) -> Document | None:
    """Since when the run is stalled, and when its stall timer ends it; None: it is not."""
    if looked.stalled_since is None:
        return None
    timers = looked.stored.timers
    ends = (one.at for one in timers if one.point is None and one.timer == STALL)
    end = next(ends, None)
    return {
        "since": time_text(looked.stalled_since),
        "until": None if end is None else whole_second(end),
    }


async def _of_the_queue(store: Store, looked: RunSnapshot, key: Key) -> list[str]:
    """What keeps the job of a task that was submitted from beginning."""
    task = looked.pool.tasks.get(key)
    if task is None or task.stage not in (JobPhase.PREPARING, JobPhase.SUBMITTED):
        return []
    if looked.view.status in WITHDRAWN_STATUSES:  # nobody can claim it, which is told apart
        return []
    task_id = TaskId(f"{looked.view.name}/{looked.id_of(key)}/{task.submit}")
    try:
        return await reasons(store, task_id)
    except NotFound:  # it is played, or was removed since
        return []


async def _said_by_the_job(store: Store, looked: RunSnapshot, key: Key) -> list[Document]:
    """What an engine has to say about a job that it has and does not begin."""
    task = looked.pool.tasks.get(key)
    if task is None or task.stage not in (JobPhase.SUBMITTED, JobPhase.RUNNING):
        return []
    task_id = TaskId(f"{looked.view.name}/{looked.id_of(key)}/{task.submit}")
    try:
        said = await store.outputs(task_id)
    except NotFound:
        return []
    if not said or not said[-1].text.startswith(WAITING):
        return []
    text = f"its job since {time_text(said[-1].at)} is {said[-1].text}"
    reason = Reason(text, passes=False, command=f"kill {looked.id_of(key)}")
    return [reason_document(looked.view.name, reason)]


async def _of_the_job(store: Store, looked: RunSnapshot, key: Key) -> list[Document]:
    """What the last job of a task that ended otherwise than asked for says about its end."""
    task = looked.pool.tasks.get(key)
    if task is None or task.stage is not JobPhase.INCOMPLETE:
        return []
    name, ran = looked.view.name, looked.id_of(key)
    try:
        job = await store.get(TaskId(f"{name}/{ran}/{task.submit}"))
    except NotFound:  # it was never handed over, is played, or was removed since
        return []
    if not job.errors:
        return []
    text = f"its last job: {job.errors[-1].description}"
    commands = [f"{PROGRAM} log {shlex.quote(name)} {shlex.quote(ran)} --err"]
    said = Reason(text, passes=False)
    return [reason_document(name, said) | {"commands": commands}]


def _queue_reason(sentence: str) -> Document:
    """One that ends with a command needs somebody to give it."""
    text, colon, command = sentence.rstrip(".").partition(f": {PROGRAM} ")
    commands = [f"{PROGRAM} {command}"] if colon else []
    return {
        "text": text,
        "passes": not commands,
        "until": None,
        "commands": commands,
        "actions": [],
    }


# How the core's words for a command are fields of one (core.runs.commands).
_OPTIONS = {
    "--pre": "prerequisites",
    "--out": "outputs",
    "--flow": "flow",
    "--reflow": "flow",
}


def actions(command: str) -> list[Document]:
    """The same commands as values of REST: a verb and its fields; `run` carries a run on."""
    return [_action(one.split()) for one in command.split(", or ") if one]


def _action(words: Sequence[str]) -> Document:
    found: Document = {"verb": words[0]}
    rest = iter(words[1:])
    for word in rest:
        match _OPTIONS.get(word):
            case None:
                found["ids"] = [word]
            case "prerequisites":
                found["prerequisites"] = [next(rest)]
            case "outputs":
                found["outputs"] = next(rest).split(",")
            case _:
                found["flow"] = "new" if word == "--reflow" else next(rest)
    return found


def command_lines(run: str, command: str) -> list[str]:
    """The core says `trigger 1/a, or set 1/a`; people need the whole line."""
    lines = []
    for one in command.split(", or "):
        verb, _, rest = one.partition(" ")
        if verb:
            lines.append(f"tidewheel {verb} {shlex.quote(run)} {rest}".rstrip())
    return lines


def waits(looked: RunSnapshot) -> list[Document]:
    """What keeps a run from beginning; nothing, once it has begun."""
    return [wait_document(looked.view.name, one) for one in looked.waits]


def _how_to_do_again(looked: RunSnapshot) -> str:
    """A completed run is reopened by hand, or goes further."""
    view, cycling = looked.view, looked.graph.cycling
    cycles = cycling.final is not None and cycling.final > cycling.initial
    command = f"{PROGRAM} run {shlex.quote(view.name)} --fcp POINT"
    further = f"; it goes further with a later final point ({command})" if cycles else ""
    return f"{view.name} has completed: trigger, set and release reopen it{further}"


def _of_the_run(looked: RunSnapshot, kept: int) -> list[Reason]:
    view, run = looked.view, looked.pool.run
    if looked.waits:
        return []  # told apart
    if not looked.started:
        return [Reason(f"{view.name} has not been started", passes=False, command="run")]
    if not view.is_driven(looked.now):
        return [_why_undriven(looked, kept)]
    if run.paused:
        return [Reason(f"{view.name} is paused", passes=False, command="resume")]
    return []


def _why_undriven(looked: RunSnapshot, kept: int) -> Reason:
    """Why nobody drives a run that was begun."""
    view = looked.view
    if view.is_aborted:
        return Reason(f"{view.name} was {view.reason}, which is final", passes=False)
    if view.given is not None and view.can_be_reopened(looked.now):
        how = kept_text(kept) or "it is to go on"
        text = f"{view.name} is {view.status}, and no scheduler has taken it yet; {how}"
        return Reason(text, passes=False, command="run")
    over = {
        "error": Reason(f"{view.name} is in quarantine: {view.reason}", False, "run"),
        "completed": Reason(_how_to_do_again(looked), False, ""),
        "stopped": Reason(f"{view.name} is stopped", False, "run"),
    }
    if view.status in over:
        return over[view.status]
    gone = view.ended_at is None or view.ended_at < view.updated_at
    seen = "the last one is gone" if gone else f"it was let go, {view.status}"
    # What has stalled would do so again at once; this leaves time to mend it.
    command = "run --stall-timeout 1h" if view.status == "stalled" else "run"
    return Reason(f"no scheduler drives {view.name}: {seen}", passes=False, command=command)
