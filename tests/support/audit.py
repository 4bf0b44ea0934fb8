"""RELIABILITY T16: after the storm, count what was submitted, executed and ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.support.fleet import Execution, Fleet
from tests.support.patience import eventually
from tidewheel.api.tasks import HistoryEntry
from tidewheel.client import Client
from tidewheel.core.queue.status import FINAL, Signal

# What may come before another attempt at the same task.
EXCUSES = {Signal.LAPSE, Signal.YIELD, Signal.RETRY}
PAGE = 1000


def until_all_ended(client: Client, count: int, seconds_max: float = 90.0) -> dict[str, str]:
    """Wait until so many tasks are there and have ended; id to status."""

    def look() -> dict[str, str]:
        found = statuses(client)
        ended = all(status in FINAL for status in found.values())
        return found if ended and len(found) >= count else {}

    return eventually(look, f"{count} tasks have ended", seconds_max, interval_seconds=0.25)


def statuses(client: Client) -> dict[str, str]:
    """Every task of the store."""
    found: dict[str, str] = {}
    before = None
    while page := client.list(limit=PAGE, before=before):
        found |= {task.id: task.status.value for task in page}
        before = page[-1].seq
    return found


def audit(client: Client, fleet: Fleet, submitted: Iterable[str]) -> Counter[str]:
    """Nothing lost, nothing unexpected, nothing ended twice, each re-run explained.

    The answer counts what happened to the tasks.
    """
    expected = set(submitted)
    assert client.verify() == []
    found = statuses(client)
    assert found.keys() == expected, "lost or unexpected tasks"
    executed: dict[str, list[Execution]] = {}
    for one in fleet.executions():
        executed.setdefault(one.task_id, []).append(one)
    assert executed.keys() <= expected, "unexpected executions"
    happened: Counter[str] = Counter()
    for task_id in sorted(expected):
        history = client.history(task_id)
        _check_life(task_id, history, executed.get(task_id, []))
        happened.update(entry.signal.value for entry in history if entry.signal)
    return happened


def _check_life(
    task_id: str, history: Sequence[HistoryEntry], executions: Sequence[Execution]
) -> None:
    life = [entry.signal for entry in history]
    ends = [entry for entry in history if entry.to_status in FINAL]
    assert len(ends) == 1 and history[-1] is ends[0], (task_id, life)
    claims = life.count(Signal.CLAIM)
    excused = sum(signal in EXCUSES for signal in life)
    assert claims <= excused + 1, (task_id, life)
    attempts = Counter(one.attempt for one in executions)
    twice = [attempt for attempt, count in attempts.items() if count > 1]
    assert not twice, f"{task_id}: attempts {twice} were begun twice: {executions}"
    assert all(1 <= attempt <= claims for attempt in attempts), (task_id, life, executions)
    # A success is somebody's work: the attempt that ended it has begun.
    if life[-1] is Signal.SUCCEED:
        assert claims in attempts, (task_id, life, executions)
