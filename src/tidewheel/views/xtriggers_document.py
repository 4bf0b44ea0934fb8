"""What a task waits for besides other tasks: xtriggers and timers, and which it did without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidewheel.core.operator.views import CommandView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.spawn import CLOCK, EXPIRY, RETRY
from tidewheel.core.sched.task_state import Key
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot, due_times
from tidewheel.views.task import let_go_at
from tidewheel.vocabulary import time_text

TIMERS = ((CLOCK, "clock-trigger"), (RETRY, "retry delay"), (EXPIRY, "expiry"))


def xtriggers_document(
    looked: RunSnapshot, key: Key, commands: Sequence[CommandView], submitted_at: Instant | None
) -> list[Document]:
    """Each with whether the task still waits for it; `submitted_at` is when it first ran."""
    task = looked.pool.tasks.get(key)
    waits = {} if task is None else task.waits
    node = looked.pool.plan.nodes[key[1]]
    times = {
        timer.timer: timer.at
        for timer in looked.stored.timers
        if (timer.point, timer.name) == key
    }
    due_at = due_times(looked)
    labels = (label for sequence, label in node.xtriggers if sequence.has(key[0]))
    own = list(dict.fromkeys(labels))
    found = []
    for label in own:
        call = looked.graph.xtriggers.get(label)
        # What left the pool without a submission has not waited to its end.
        gone = label not in waits if task is not None else submitted_at is not None
        by_hand = gone and _did_without(looked, key, label, commands, submitted_at)
        text = "" if call is None else call.function
        at = None if gone else due_at(key, label)
        found.append(_xtrigger(label, text, gone, by_hand, at))
    for label, text in _others(waits, own, times):
        found.append(_xtrigger(label, text, False, False, times.get(label)))
    return found


def _others(
    waits: dict[str, None], own: list[str], times: dict[str, Instant]
) -> Iterator[tuple[str, str]]:
    """Timers that are set, and messages from outside."""
    for label, text in TIMERS:
        if label in waits or (label == EXPIRY and label in times):
            yield label, text
    known = {label for label, _ in TIMERS}.union(own)
    yield from ((label, "external trigger") for label in waits if label not in known)


def _did_without(
    looked: RunSnapshot,
    key: Key,
    label: str,
    commands: Sequence[CommandView],
    submitted_at: Instant | None,
) -> bool:
    """Whether somebody let it go before the xtrigger did; a later trigger changes nothing."""
    at = let_go_at(looked, key, label, commands)
    if at is None or (submitted_at is not None and submitted_at < at):
        return False
    due = ClockTriggers(looked.graph.xtriggers, looked.graph.cycling).due_at(label, key[0])
    return due is None or due > at


def _xtrigger(
    label: str, call: str, satisfied: bool, by_hand: bool, at: Instant | None
) -> Document:
    return {
        "label": label,
        "call": call,
        "satisfied": satisfied,
        "by_hand": by_hand,
        "at": time_text(at),
    }
