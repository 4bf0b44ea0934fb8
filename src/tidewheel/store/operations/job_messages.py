"""Stores what jobs say with a token of their own, past their worker.

A worker numbers what it hears from a job 1, 2, … and knows nothing of this. So what comes past
it has numbers of its own, given here, far above: neither can be taken for the other, and each
keeps its order. A request that comes again is known by the answer that was kept for its key,
which is written by the same transaction.
"""

from __future__ import annotations

from tidewheel.core.queue.access import JobWords
from tidewheel.core.queue.lease import check_holder
from tidewheel.core.queue.requests import JobMessage, Report
from tidewheel.core.queue.submission import MESSAGES_MAX
from tidewheel.core.queue.task import TaskState
from tidewheel.errors import NotFound, Refused
from tidewheel.store.operations.access import keep_answer, kept_answer
from tidewheel.store.operations.run_events import spoken, tell_runs
from tidewheel.store.operations.transitions import Effects, apply, lock_tasks
from tidewheel.store.rows import storable
from tidewheel.store.transaction import Transaction

PAST_WORKER = 1_000_000_000  # no worker's message has such a number


def hear_job(tx: Transaction, effects: Effects, words: JobWords) -> None:
    """Stores what was said, once for each key; LeaseLost if the attempt has no lease."""
    task = lock_tasks(tx, [words.holder.task_id]).get(words.holder.task_id)
    if task is None:
        raise NotFound("task", words.holder.task_id)
    check_holder(task, words.holder, "a message")
    if words.kept is not None:
        if kept_answer(tx, words.kept.token, words.kept.key) is not None:
            return
        keep_answer(tx, words.kept)
    if words.progress is not None:
        tx.rows("set_progress", seq=task.seq, progress=words.progress)
    if words.text or words.output is not None:
        _say(tx, task, words, effects)


def _say(tx: Transaction, task: TaskState, words: JobWords, effects: Effects) -> None:
    place = {"seq": task.seq, "attempt": task.attempt}
    [[last]] = tx.rows("get_last_message", **place, above=PAST_WORKER)
    number = (last or PAST_WORKER) + 1
    if number > PAST_WORKER + MESSAGES_MAX:
        raise Refused(f"this attempt has said {MESSAGES_MAX} things; no more are accepted")
    message = JobMessage(number=number, text=words.text, output=words.output)
    said = {"text": storable(message.text), "output": storable(message.output)}
    tx.rows("add_messages", messages=[place | {"number": number} | said])
    if task.run is not None:
        report = Report(holder=words.holder, messages=(message,))
        tell_runs(tx, spoken(task, report, [message], None), effects)
    output = storable(words.output)
    if output is not None and task.graph is not None:
        apply(tx, [], effects, {task.seq: {output}})
