"""Gives commands to runs, and waits until whoever drives one has answered.

What reopens a run that has ended is stored in any case, and the store offers the run to every
scheduler. Where none serves, the command waits there until somebody carries the run on.
"""

from __future__ import annotations

import asyncio
import json
import shlex

from tidewheel.core.operator.requests import NewCommand
from tidewheel.core.operator.verbs import REOPENING, REOPENING_VERBS, Command, command_text
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import Wake
from tidewheel.errors import Aborted, Declined, NoAnswer, NotRunning
from tidewheel.ports.runs import Answer, Document
from tidewheel.ports.store import Store

POLL_SECONDS_FIRST = 0.02  # where nobody tells that something changed
POLL_SECONDS_MAX = 0.25
HANDOVER_SECONDS = 5.0  # a scheduler on standby takes a run sooner than that
# Whoever serves takes a run that was reopened within a second; then nobody serves it here.
REOPENING_SECONDS = 2.5


async def post_command(store: Store, run: RunView, command: Command, who: str) -> int:
    """The number of the command; NotRunning if nobody could obey.

    A run that is just between two schedulers hears it from the next one; one that has ended
    goes on with what reopens it.
    """
    asked = NewCommand(
        run=run.number,
        body=command_text(command),
        who=who,
        reopens=isinstance(command, REOPENING),
    )
    give_up_at = asyncio.get_running_loop().time() + HANDOVER_SECONDS
    while True:
        try:
            return await store.post_command(asked)
        except NotRunning:
            between = (await store.run(run.number)).wants_scheduler
            if not between or asyncio.get_running_loop().time() >= give_up_at:
                raise
        await asyncio.sleep(POLL_SECONDS_MAX)


async def awaited_answer(
    store: Store, run: RunView, number: int, verb: str, seconds_max: float
) -> Answer:
    """What became of a command; a refusal is raised."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def ring(wake: Wake) -> None:
        if wake.everything or run.number in wake.runs:
            loop.call_soon_threadsafe(changed.set)

    stop_listening = store.listen(ring)
    try:
        async with asyncio.timeout(seconds_max):
            return await _watch(store, run, number, verb, changed)
    except TimeoutError:
        raise NoAnswer(
            f"the scheduler of {run.name} did not answer {verb} within {seconds_max:g} s; "
            f"the command waits for it: tidewheel show {run.name} --history"
        ) from None
    finally:
        stop_listening()


async def _watch(
    store: Store, run: RunView, number: int, verb: str, changed: asyncio.Event
) -> Answer:
    pause = POLL_SECONDS_FIRST
    keep_at = asyncio.get_running_loop().time() + REOPENING_SECONDS
    at_rest: RunView | None = None  # it has ended, and nobody has taken it since
    is_late = False
    while True:
        changed.clear()
        seen = await store.command(number)
        if seen.refused is not None:
            raise Declined(seen.refused)
        if seen.answered_at is not None:
            return Answer(run.name, number, verb, _document(seen.answer))
        if at_rest is not None and verb in REOPENING_VERBS:
            if at_rest.is_aborted:
                raise Aborted(at_rest.name, at_rest.reason)
            if is_late:
                return Answer(run.name, number, verb, kept_document(at_rest))
        elif at_rest is not None and not at_rest.wants_scheduler:
            raise NotRunning(at_rest.name, at_rest.status)
        try:
            async with asyncio.timeout(pause):
                await changed.wait()
        except TimeoutError:
            pause = min(pause * 1.5, POLL_SECONDS_MAX)
            # A scheduler that lets a run go answers with its last batch, or nobody does.
            now_there = await store.run(run.number)
            rests = now_there.can_be_reopened(await store.now())
            at_rest = now_there if rests or not now_there.wants_scheduler else None
            is_late = asyncio.get_running_loop().time() >= keep_at


def kept_document(run: RunView) -> Document:
    """What is said of a command that nobody obeys yet."""
    return {
        "kept": True,
        "status": run.status,
        "next": f"tidewheel run {shlex.quote(run.name)}",
    }


def _document(answer: str | None) -> Document:
    said = json.loads(answer or "{}")
    return said if isinstance(said, dict) else {"answer": said}
