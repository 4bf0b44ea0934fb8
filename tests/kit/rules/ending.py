"""What must hold once everything is quiet: nothing lost, nothing unexpected, nothing open.

T13 every acknowledged task is there · T15 history complete and paged · T16 the counts agree
with what the machines saw · D2 everything came to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.kit.memory import MemoryStore
from tests.kit.rules.executions import Executions
from tests.kit.rules.facts import Facts, TaskFacts, demand
from tidewheel.core.queue.task import TaskId

PAGE = 3

# How a job must have ended for its attempt to be told so. Whoever runs longer than its limit
# is aborted, even if it succeeds while it is being stopped.
_TRUE_ENDINGS = {
    "succeed": ("succeeded",),
    "retry": ("failed",),
    "fail": ("failed",),
    "abort": ("aborted", "failed", "succeeded"),
}


def check_ending(
    store: MemoryStore, facts: Facts, executions: Executions, run: Callable[..., Any]
) -> None:
    """``run`` gives the result of a coroutine of the store."""
    demand(not facts.live, "D2 everything comes to its end", _describe(facts.live.values()))
    demand(
        not store.tables.lease, "T5 no lease without a running task", str(store.tables.lease)
    )
    found = run(store.verify())
    demand(not found, "verify finds nothing", str(found))
    for task_id, seq in facts.seq_of.items():
        _check_stored(store, facts.tasks[seq], TaskId(task_id), run)
        _check_words(store, facts.tasks[seq], executions, run)
        _check_truth(facts.tasks[seq], executions)
    executions.check_end()


def _describe(live: Iterable[TaskFacts]) -> str:
    return ", ".join(
        f"{facts.id} {facts.status} in {facts.asked.queue} ({' '.join(facts.signals[-4:])})"
        for facts in live
    )


def _check_stored(
    store: MemoryStore, facts: TaskFacts, task_id: TaskId, run: Callable[..., Any]
) -> None:
    view = run(store.get(task_id))
    demand(view.status.value == facts.status, "T13 what was accepted is kept", f"{view}")
    entries, after = [], 0
    while page := run(store.history(task_id, after, PAGE)):
        entries += page
        after = page[-1].seq
    signals = [entry.signal.value for entry in entries[1:]]
    demand(signals == facts.signals, "T15 history complete and paged", f"{task_id}: {signals}")
    attempts = run(store.attempts(task_id))
    numbers = [attempt.attempt for attempt in attempts]
    demand(numbers == list(range(1, facts.attempt + 1)), "T3 attempts", f"{task_id}: {numbers}")
    ends = [attempt.ended_by.value if attempt.ended_by else None for attempt in attempts]
    wanted = [facts.ended_by.get(number) for number in numbers]
    demand(ends == wanted, "T16 how each attempt ended is kept", f"{task_id}: {ends}")


def _check_truth(facts: TaskFacts, executions: Executions) -> None:
    """The store believes of each job what really happened: no retry without a failure."""
    for attempt, signal in facts.ended_by.items():
        execution = executions.all.get((facts.seq, attempt))
        if execution is None or signal not in _TRUE_ENDINGS:
            continue
        demand(
            execution.ending in _TRUE_ENDINGS[signal],
            "T16 ends as it ended",
            f"{execution} ended by {signal}, really {execution.ending}",
        )


def _check_words(
    store: MemoryStore, facts: TaskFacts, executions: Executions, run: Callable[..., Any]
) -> None:
    """Stored messages are the first ones that the job said, all of them if it succeeded."""
    stored: dict[int, list[str]] = {}
    for output in run(store.outputs(TaskId(facts.id))):
        stored.setdefault(output.attempt, []).append(output.text)
    for attempt in range(1, facts.attempt + 1):
        execution = executions.all.get((facts.seq, attempt))
        said = execution.said if execution else []
        kept = stored.get(attempt, [])
        demand(
            kept == said[: len(kept)],
            "P11 messages as they were said",
            f"{facts.id} attempt {attempt}: {kept}, said {said}",
        )
        whole = facts.ended_by.get(attempt) != "succeed" or len(kept) == len(said)
        demand(
            whole, "P11 the end comes last", f"{facts.id} attempt {attempt}: {kept} of {said}"
        )
