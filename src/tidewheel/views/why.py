"""Explains why a task does not run, with the commands that would change it, to be copied."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from tidewheel.api.run_details import TaskReasons
from tidewheel.api.runs import RunAction, RunReason, RunStall
from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.explain import Reason, why
from tidewheel.core.sched.spawn import STALL
from tidewheel.core.sched.task_state import JobPhase, Key, PooledTask
from tidewheel.errors import NotFound
from tidewheel.formats.sip.model import OBJECT_PREFIX
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.services.explain import reasons
from tidewheel.views.run_facts import kept_commands, kept_text
from tidewheel.views.snapshot import RunSnapshot, due_times, wait_document
from tidewheel.views.status_text import words_of
from tidewheel.vocabulary import time_text

PROGRAM = "tidewheel"
WAITING = "waiting: "  # so begins what a runner says of a job that its engine does not begin


async def why_document(store: Store, snapshot: RunSnapshot, key: Key) -> TaskReasons:
    """Returns why a task does not run: reasons of the run first, those of the queue last."""
    words = words_of(snapshot.pool, key)
    kept = await kept_commands(store, snapshot.view, snapshot.now)
    known = [*_of_the_run(snapshot, kept), *why(snapshot.pool, key, due_times(snapshot))]
    queued = [_queue_reason(one) for one in await _of_the_queue(store, snapshot, key)]
    queued += await _said_by_the_job(store, snapshot, key)
    queued += await _of_the_job(store, snapshot, key)
    found = [
        *waits(snapshot),
        *(_with_objects(snapshot, key, one) for one in known),
        *queued,
    ]
    return {
        "run": snapshot.view.name,
        "id": snapshot.id_of(key),
        "state": words.state,
        "remarks": list(words.remarks),
        "flows": sorted(words.flows),
        "reasons": found,
    }


def _with_objects(snapshot: RunSnapshot, key: Key, reason: Reason) -> RunReason:
    """Adds commands that post a reason's buffer objects, which do not come by themselves."""
    document = reason_document(snapshot.view.name, reason)
    posting = post_commands(snapshot, key, reason.text)
    if not posting:
        return document
    commands = [*posting, *command_lines(snapshot.view.name, reason.command)]
    return {**document, "passes": False, "commands": commands}


def reason_document(run: str, reason: Reason) -> RunReason:
    return {
        "text": reason_text(reason),
        "passes": reason.passes,
        "until": None if reason.until is None else whole_second(reason.until),
        "commands": command_lines(run, reason.command),
        "actions": actions(reason.command),
    }


def reason_text(reason: Reason) -> str:
    """Returns a reason with the time at which it passes, where that is known."""
    if reason.until is None:
        return reason.text
    return f"{reason.text} until {whole_second(reason.until)}"


def whole_second(instant: Instant) -> str:
    """Writes a future time for people, rounded up to the second."""
    return show_instant(math.ceil(instant))


def stall_document(snapshot: RunSnapshot) -> RunStall | None:
    """Returns since when a run is stalled, and when its timer ends it; None if it is not."""
    if snapshot.stalled_since is None:
        return None
    timers = snapshot.stored.timers
    ends = (one.at for one in timers if one.point is None and one.timer == STALL)
    end = next(ends, None)
    return {
        "since": show_instant(snapshot.stalled_since),
        "until": None if end is None else whole_second(end),
    }


async def _of_the_queue(store: Store, snapshot: RunSnapshot, key: Key) -> list[str]:
    """Returns what keeps the job of a submitted task from beginning."""
    task = snapshot.pool.tasks.get(key)
    if task is None or task.stage not in (JobPhase.PREPARING, JobPhase.SUBMITTED):
        return []
    if snapshot.view.status in WITHDRAWN_STATUSES:  # nobody can claim it: said elsewhere
        return []
    try:
        return await reasons(store, _task_id(snapshot, task))
    except NotFound:  # it is played, or was removed since
        return []


async def _said_by_the_job(store: Store, snapshot: RunSnapshot, key: Key) -> list[RunReason]:
    """Returns why an engine, by its own words, does not begin a job that it has."""
    task = snapshot.pool.tasks.get(key)
    if task is None or task.stage not in (JobPhase.SUBMITTED, JobPhase.RUNNING):
        return []
    try:
        said = await store.outputs(_task_id(snapshot, task))
    except NotFound:
        return []
    if not said or not said[-1].text.startswith(WAITING):
        return []
    text = f"its job since {time_text(said[-1].at)} is {said[-1].text}"
    reason = Reason(text, passes=False, command=f"kill {snapshot.id_of(key)}")
    return [reason_document(snapshot.view.name, reason)]


async def _of_the_job(store: Store, snapshot: RunSnapshot, key: Key) -> list[RunReason]:
    """Returns the error with which the last job of an incomplete task ended."""
    task = snapshot.pool.tasks.get(key)
    if task is None or task.stage is not JobPhase.INCOMPLETE:
        return []
    name, ran = snapshot.view.name, snapshot.id_of(key)
    try:
        job = await store.get(_task_id(snapshot, task))
    except NotFound:  # it was never handed over, is played, or was removed since
        return []
    if not job.errors:
        return []
    text = f"its last job: {job.errors[-1].description}"
    commands = [f"{PROGRAM} log {shlex.quote(name)} {shlex.quote(ran)} --err"]
    said = Reason(text, passes=False)
    return [{**reason_document(name, said), "commands": commands}]


def _task_id(snapshot: RunSnapshot, task: PooledTask) -> TaskId:
    return TaskId(f"{snapshot.view.name}/{snapshot.id_of(task.key)}/{task.submit}")


def _queue_reason(sentence: str) -> RunReason:
    """Makes a reason of a sentence; one that ends with a command does not pass by itself."""
    text, colon, command = sentence.rstrip(".").partition(f": {PROGRAM} ")
    commands = [f"{PROGRAM} {command}"] if colon else []
    return {
        "text": text,
        "passes": not commands,
        "until": None,
        "commands": commands,
        "actions": [],
    }


# The fields of commands (core.operator.verbs), by the options in the core's words for them.
_OPTIONS = {
    "--pre": "prerequisites",
    "--out": "outputs",
    "--flow": "flow",
    "--reflow": "flow",
}


def actions(command: str) -> list[RunAction]:
    """Returns commands as REST has them: a verb and its fields; `run` carries a run on."""
    return [_action(one.split()) for one in command.split(", or ") if one]


def _action(words: Sequence[str]) -> RunAction:
    found: RunAction = {"verb": words[0]}
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
    """Writes commands as whole lines for people; the core says `trigger 1/a, or set 1/a`."""
    lines = []
    for one in command.split(", or "):
        verb, _, rest = one.partition(" ")
        if verb:
            lines.append(f"tidewheel {verb} {shlex.quote(run)} {rest}".rstrip())
    return lines


def waits(snapshot: RunSnapshot) -> list[RunReason]:
    """Returns what keeps a run from beginning; nothing, once it has begun."""
    return [wait_document(snapshot.view.name, one) for one in snapshot.waits]


def _how_to_do_again(snapshot: RunSnapshot) -> str:
    """Says how a completed run is reopened by hand, or goes further."""
    view, cycling = snapshot.view, snapshot.graph.cycling
    cycles = cycling.final is not None and cycling.final > cycling.initial
    command = f"{PROGRAM} run {shlex.quote(view.name)} --fcp POINT"
    further = f"; it goes further with a later final point ({command})" if cycles else ""
    return f"{view.name} has completed: trigger, set and release reopen it{further}"


def _of_the_run(snapshot: RunSnapshot, kept: int) -> list[Reason]:
    view, run = snapshot.view, snapshot.pool.run
    if snapshot.waits:
        return []  # these are reasons of their own (`waits`)
    if not snapshot.started:
        return [Reason(f"{view.name} has not been started", passes=False, command="run")]
    if not view.is_driven(snapshot.now):
        return [_why_undriven(snapshot, kept)]
    if run.paused:
        return [Reason(f"{view.name} is paused", passes=False, command="resume")]
    return []


def _why_undriven(snapshot: RunSnapshot, kept: int) -> Reason:
    """Returns the reason why nobody drives a run that was begun."""
    view = snapshot.view
    if view.is_aborted:
        return Reason(f"{view.name} was {view.reason}, which is final", passes=False)
    if view.given is not None and view.can_be_reopened(snapshot.now):
        how = kept_text(kept) or "it is to go on"
        text = f"{view.name} is {view.status}, and no scheduler has taken it yet; {how}"
        return Reason(text, passes=False, command="run")
    over = {
        "error": Reason(f"{view.name} is in quarantine: {view.reason}", False, "run"),
        "completed": Reason(_how_to_do_again(snapshot), False, ""),
        "stopped": Reason(f"{view.name} is stopped", False, "run"),
    }
    if view.status in over:
        return over[view.status]
    gone = view.ended_at is None or view.ended_at < view.updated_at
    seen = "the last one is gone" if gone else f"it was let go, {view.status}"
    # A stalled run would stall again at once; this option leaves time to mend it.
    command = "run --stall-timeout 1h" if view.status == "stalled" else "run"
    return Reason(f"no scheduler drives {view.name}: {seen}", passes=False, command=command)


# The functions below tell which nodes stand for buffer objects, and how one is posted.


OBJECT_TITLE = "buffer object "


def object_name(snapshot: RunSnapshot, key: Key) -> str | None:
    """Names the buffer object that a node stands for; None for any other task."""
    node = snapshot.pool.plan.nodes.get(key[1])
    if node is None or not key[1].startswith(OBJECT_PREFIX):
        return None
    title = dict(node.definition.meta).get("title", "")
    return title.removeprefix(OBJECT_TITLE) if title.startswith(OBJECT_TITLE) else None


def post_commands(snapshot: RunSnapshot, key: Key, text: str) -> list[str]:
    """Returns the commands that post the objects of which a reason speaks."""
    if OBJECT_PREFIX not in text:
        return []
    others = (
        (key[0], name) for name in snapshot.pool.plan.nodes if name.startswith(OBJECT_PREFIX)
    )
    spoken = (object_name(snapshot, one) for one in others if snapshot.id_of(one) in text)
    return [post_command(name) for name in spoken if name is not None]


def post_command(name: str) -> str:
    return f"tidewheel objects post {shlex.quote(name)}"
