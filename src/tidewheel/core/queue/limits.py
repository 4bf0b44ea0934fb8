"""Limits say how many tasks of a queue, or of a key within it, may be claimed now.

A limit caps how many run at once, how many start within a period (a token bucket), or both.
It is for the whole queue (key ""), for one key, or for each key without one of its own ("*").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Holds how many tasks a claim may take: in all, by key, and of every other key."""

    whole_queue: int
    by_key: dict[str, int]
    each_key: int


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


def allowance(
    limits: Iterable[Limit],
    running: Mapping[str, int],
    buckets: Iterable[Bucket],
    now: Instant,
) -> Allowance:
    """Returns how many tasks a claim may take under the limits of its queue.

    ``running`` counts the leases by key, and under WHOLE_QUEUE all of them.
    """
    rules = {limit.key: limit for limit in limits}
    filled = {bucket.key: bucket for bucket in buckets}
    each_key = rules.get(EACH_KEY)
    named = (set(rules) | set(running) | set(filled)) - {WHOLE_QUEUE, EACH_KEY}
    return Allowance(
        whole_queue=room(
            rules.get(WHOLE_QUEUE), running.get(WHOLE_QUEUE, 0), filled.get(WHOLE_QUEUE), now
        ),
        by_key={
            key: room(rules.get(key, each_key), running.get(key, 0), filled.get(key), now)
            for key in sorted(named)
        },
        each_key=room(each_key, 0, None, now),
    )


def spent(
    limits: Iterable[Limit], buckets: Iterable[Bucket], taken: Mapping[str, int], now: Instant
) -> list[Bucket]:
    """Returns the buckets as they are after a claim; only keys with a rate have one.

    ``taken`` counts the claimed tasks by key, and under WHOLE_QUEUE all of them.
    """
    rules = {limit.key: limit for limit in limits}
    filled = {bucket.key: bucket for bucket in buckets}
    after = []
    for key, count in sorted(taken.items()):
        limit = rules.get(key) or (rules.get(EACH_KEY) if key != WHOLE_QUEUE else None)
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
        findings.append(f"concurrency_max is {limit.concurrency_max}; accepted is 0 or more")
    if limit.rate_max is not None and limit.rate_max < 1:
        findings.append(
            f"rate_max is {limit.rate_max}; accepted is 1 or more (pause the queue to stop it)"
        )
    if not 0 < limit.rate_seconds < math.inf:
        findings.append(f"rate_seconds is {limit.rate_seconds:g}; accepted is more than 0")
    return findings
