"""Limits say how many tasks of a queue, or of a key within it, may be claimed now; then which.

A limit caps how many run at once, how many start within a period (a token bucket), or both.
It is for the whole queue (key ""), for one key, or for each key without one of its own ("*").

Tasks of one key and one priority stand in line, the oldest first. Without aging the next task
is the oldest of the highest priority whose key has room. With aging the heads of the lines are
compared, each with one priority more for each whole second of being ready, up to 255. In a fair
queue the next task is of the key that had its turn longest ago; tasks without a key take turns
as if they had one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

from tidewheel.core.queue.task import Instant
from tidewheel.lazy_dataclasses import dataclass

WHOLE_QUEUE = ""
EACH_KEY = "*"
UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Limits running tasks, starts within a period, or both; None: this is not limited."""

    key: str = WHOLE_QUEUE
    concurrency_max: int | None = None
    rate_max: int | None = None
    rate_seconds: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Holds how many starts a key has left under its rate; they come back as time passes."""

    key: str
    tokens: float
    refilled_at: Instant


def refilled(limit: Limit, bucket: Bucket | None, now: Instant) -> Bucket:
    """Returns a bucket with the starts that came back until now; None is a new one, and full.

    A clock that was set back takes nothing away.
    """
    assert limit.rate_max is not None
    if bucket is None:
        return Bucket(key=limit.key, tokens=float(limit.rate_max), refilled_at=now)
    gained = max(0.0, now - bucket.refilled_at) * limit.rate_max / limit.rate_seconds
    tokens = min(float(limit.rate_max), bucket.tokens + gained)
    return Bucket(key=bucket.key, tokens=tokens, refilled_at=now)


def room(limit: Limit | None, running: int, bucket: Bucket | None, now: Instant) -> int:
    """Returns how many more tasks one limit lets start now; UNLIMITED if there is no limit."""
    if limit is None:
        return UNLIMITED
    free = (
        UNLIMITED if limit.concurrency_max is None else max(0, limit.concurrency_max - running)
    )
    if limit.rate_max is None:
        return free
    # Ten times 0.1 must count as one token, though as floats it is a little less.
    return min(free, int(refilled(limit, bucket, now).tokens + 1e-9))


def limit_of(limits: Iterable[Limit], key: str) -> Limit | None:
    """Returns the limit of a key: its own, or that for each key; of the queue only its own."""
    rules = {limit.key: limit for limit in limits}
    return rules.get(key) or (rules.get(EACH_KEY) if key != WHOLE_QUEUE else None)


def opens_at(limit: Limit, bucket: Bucket) -> Instant:
    """Returns when a bucket without a whole start has one again, or a little earlier."""
    assert limit.rate_max is not None
    missing = max(0.0, 1.0 - bucket.tokens) * limit.rate_seconds / limit.rate_max
    return Instant(bucket.refilled_at + missing - 1e-6 * (1.0 + limit.rate_seconds))


def spent(
    limits: Iterable[Limit], buckets: Iterable[Bucket], taken: Mapping[str, int], now: Instant
) -> list[Bucket]:
    """Returns the buckets as they are after a claim; only keys with a rate have one.

    ``taken`` counts the claimed tasks by key, and under WHOLE_QUEUE all of them.
    """
    rules = list(limits)
    filled = {bucket.key: bucket for bucket in buckets}
    after = []
    for key, count in sorted(taken.items()):
        limit = limit_of(rules, key)
        if limit is None or limit.rate_max is None:
            continue
        tokens = refilled(limit, filled.get(key), now).tokens - count
        after.append(Bucket(key=key, tokens=tokens, refilled_at=now))
    return after


def limit_findings(limit: Limit) -> list[str]:
    """Returns what is wrong with a limit, in words."""
    findings = []
    if not limit.key.isprintable():
        findings.append(f"key {limit.key!r} has characters that cannot be printed")
    if limit.concurrency_max is not None and limit.concurrency_max < 0:
        findings.append(f"concurrency_max is {limit.concurrency_max}; expected 0 or more")
    if limit.rate_max is not None and limit.rate_max < 1:
        findings.append(
            f"rate_max is {limit.rate_max}; expected 1 or more (pause the queue to stop it)"
        )
    if not 0 < limit.rate_seconds < math.inf:
        findings.append(f"rate_seconds is {limit.rate_seconds:g}; expected more than 0")
    return findings


# ---- which of those that may be claimed are next ----


AGED_PRIORITY_MAX = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Holds what the order of claims depends on; ``rank`` is minus the priority."""

    rank: int
    seq: int
    ready_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLane:
    """Holds the first tasks of a key that may be claimed, in the order of (rank, seq), how many
    of them may be, and the latest turn that the key had; key None: tasks without one."""

    key: str | None
    tasks: Sequence[Waiting]
    room: int
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTask:
    """Holds a task that is to be claimed, and the key of its lane."""

    task: Waiting
    key: str | None


Order = tuple[int, int]  # what is smaller goes first


def aged_order(task: Waiting, now: float) -> Order:
    """Returns where a task stands among the heads of lines in a queue with aging."""
    if task.rank <= -AGED_PRIORITY_MAX:
        return task.rank, task.seq
    aged = min(AGED_PRIORITY_MAX, int(now - task.ready_at) - task.rank)
    return -aged, task.seq


def choose(
    lanes: Sequence[KeyLane], count: int, *, aging_at: float | None, turns: int | None
) -> list[NextTask]:
    """Returns up to ``count`` tasks in the order in which they are claimed.

    ``aging_at`` is the time by which tasks have aged; None: they do not. ``turns`` is how many
    turns were given in a fair queue; None: the queue is not fair.
    """
    lines = [_line(lane, aging_at) for lane in lanes if lane.room > 0]
    if turns is None:
        ordered = heapq.merge(*lines, key=lambda placed: placed[0])
        return [chosen for _, chosen in islice(ordered, count)]
    return _in_turns(lines, [lane.turn for lane in lanes if lane.room > 0], count, turns)


Placed = tuple[Order, NextTask]


def _line(lane: KeyLane, aging_at: float | None) -> Iterator[Placed]:
    """Returns the tasks of one lane in their order, as many as there is room for."""
    if aging_at is None:
        placed = (((task.rank, task.seq), task) for task in lane.tasks)
    else:
        levels = [list(level) for _, level in groupby(lane.tasks, key=_level)]
        heads = [[(aged_order(task, aging_at), task) for task in level] for level in levels]
        placed = heapq.merge(*heads, key=lambda one: one[0])
    return (
        (order, NextTask(task=task, key=lane.key)) for order, task in islice(placed, lane.room)
    )


def _level(task: Waiting) -> int:
    """Returns what tasks of one line share: all above 255, which do not age, are one."""
    return max(task.rank, -AGED_PRIORITY_MAX - 1)


def _in_turns(
    lines: Sequence[Iterator[Placed]], had: Sequence[int], count: int, turns: int
) -> list[NextTask]:
    """Takes one task of each line after the other; the one that waited longest begins."""
    heads = [
        (turn, first[0], place, first[1])
        for place, (line, turn) in enumerate(zip(lines, had, strict=True))
        if (first := next(line, None)) is not None
    ]
    heapq.heapify(heads)
    taken: list[NextTask] = []
    while heads and len(taken) < count:
        _, _, place, chosen = heads[0]
        taken.append(chosen)
        following = next(lines[place], None)
        if following is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (turns + len(taken), following[0], place, following[1]))
    return taken
