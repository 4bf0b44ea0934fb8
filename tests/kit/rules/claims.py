"""Which tasks a claim must hand out: the oldest of the highest priority that may run.

T6 due, queue open, its run not let go, limits and resources kept · T14 the order of claims. A
second opinion, computed before the store executes the claim; the answer must be the same, task
by task.
"""

from __future__ import annotations

from collections import Counter

from tests.kit.rules.facts import Bucket, Facts, TaskFacts
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import ClaimRequest
from tidewheel.core.queue.resources import Resources

AGED_MAX = 255


def expected_claims(request: ClaimRequest, everything: Facts, now: float) -> list[int]:
    """The seqs in the order of claiming."""
    settings = everything.queue(request.queue)
    if settings.paused or request.queue in everything.withheld:
        return []
    found = [facts for facts in everything.live.values() if _may_run(facts, request, now)]
    found.sort(key=lambda facts: (-facts.asked.priority, facts.seq))
    if settings.aging:
        found = _by_heads(found, settings.limits, now)
    if settings.limits:
        found = _within_limits(found, settings.limits, request, everything, now)
    chosen = _that_fit_together(found[: request.count], request.free)
    return [facts.seq for facts in chosen]


def _may_run(facts: TaskFacts, request: ClaimRequest, now: float) -> bool:
    asked = facts.asked
    return (
        facts.status == "ready"
        and asked.queue == request.queue
        and (facts.due_at is None or facts.due_at <= now)
        and (request.commands or asked.command is None)
        and (
            request.handlers is None
            or asked.handler is None
            or asked.handler in request.handlers
        )
        and _fits(asked.resources, request.free)
    )


def _fits(asked: Resources, free: Resources) -> bool:
    return (
        asked.cpu <= free.cpu
        and asked.memory_bytes <= free.memory_bytes
        and asked.gpu <= free.gpu
        and asked.buffer_bytes <= free.buffer_bytes
        and _nodes_fit(asked, free)
        and asked.labels.issubset(free.labels)
    )


def _nodes_fit(asked: Resources, free: Resources) -> bool:
    if not asked.flavours:
        return asked.nodes <= (free.idle if asked.exclusive else free.nodes)
    offered = {label: (free.nodes, free.idle) for label in ("", *free.labels)}
    offered |= {one.flavour: (one.nodes, one.idle) for one in free.flavours}
    for one in asked.flavours:
        nodes, idle = offered.get(one.flavour, (0, 0))
        if one.nodes > nodes or one.idle > idle:
            return False
    return True


def _by_heads(found: list[TaskFacts], limits: tuple[Limit, ...], now: float) -> list[TaskFacts]:
    """With aging the heads of lines are compared: tasks of one priority and, where keys have
    limits, of one key stand in line, the oldest first. A limit only ends a line, since all the
    lines of its key end at once, so it may be looked at afterwards."""
    has_lanes = any(limit.key for limit in limits)
    lines: dict[object, list[TaskFacts]] = {}
    for facts in found:
        key = facts.asked.limit_key if has_lanes else None
        lines.setdefault((key, min(facts.asked.priority, AGED_MAX + 1)), []).append(facts)
    ordered = []
    while lines:
        first = min(lines, key=lambda line: (-_aged(lines[line][0], now), lines[line][0].seq))
        ordered.append(lines[first].pop(0))
        if not lines[first]:
            del lines[first]
    return ordered


def _aged(facts: TaskFacts, now: float) -> int:
    priority = facts.asked.priority
    if priority >= AGED_MAX:
        return priority
    return min(AGED_MAX, priority + int(now - facts.ready_at))


def _that_fit_together(found: list[TaskFacts], free: Resources) -> list[TaskFacts]:
    chosen: list[TaskFacts] = []
    cpu, memory, gpu, buffer = free.cpu, free.memory_bytes, free.gpu, free.buffer_bytes
    for facts in found:
        asked = facts.asked.resources
        if asked.cpu > cpu or asked.memory_bytes > memory or asked.gpu > gpu:
            break
        if asked.buffer_bytes > buffer or (asked.exclusive and chosen):
            break
        cpu = round(cpu - asked.cpu, 6)
        memory -= asked.memory_bytes
        gpu -= asked.gpu
        buffer -= asked.buffer_bytes
        chosen.append(facts)
        if asked.exclusive:
            break
    return chosen


def _within_limits(
    found: list[TaskFacts],
    limits: tuple[Limit, ...],
    request: ClaimRequest,
    everything: Facts,
    now: float,
) -> list[TaskFacts]:
    running = _running(everything, request.queue)
    rules = {limit.key: limit for limit in limits}

    def room(key: str) -> float:
        limit = rules.get(key) or (rules.get("*") if key else None)
        if limit is None:
            return float("inf")
        free = float("inf")
        if limit.concurrency_max is not None:
            free = max(0, limit.concurrency_max - running[key])
        if limit.rate_max is not None:
            tokens = _tokens(everything, (request.queue, key), limit, now)
            free = min(free, int(tokens + 1e-9))
        return free

    chosen = []
    taken: Counter[str] = Counter()
    for facts in found:
        key = facts.asked.limit_key
        if key is not None:
            taken[key] += 1
            if taken[key] > room(key):
                continue
        chosen.append(facts)
    whole = room("")
    return chosen if whole >= len(chosen) else chosen[: int(whole)]


def _running(everything: Facts, queue: str) -> Counter[str]:
    """How many leases each key has; the empty key counts all."""
    running: Counter[str] = Counter()
    for facts in everything.leased.values():
        if facts.asked.queue == queue:
            running[""] += 1
            if facts.asked.limit_key is not None:
                running[facts.asked.limit_key] += 1
    return running


def _tokens(everything: Facts, key: tuple[str, str], limit: Limit, now: float) -> float:
    assert limit.rate_max is not None
    bucket = everything.buckets.get(key)
    if bucket is None:
        return float(limit.rate_max)
    gained = (now - bucket.at) * limit.rate_max / limit.rate_seconds
    return min(float(limit.rate_max), bucket.tokens + gained)


def note_starts(queue: str, seqs: list[int], everything: Facts, now: float) -> None:
    """Take the starts of one claim out of the buckets."""
    rules = {limit.key: limit for limit in everything.queue(queue).limits}
    starts: Counter[str] = Counter({"": len(seqs)})
    starts.update(
        key for seq in seqs if (key := everything.tasks[seq].asked.limit_key) is not None
    )
    for key, count in starts.items():
        limit = rules.get(key) or (rules.get("*") if key else None)
        if limit is None or limit.rate_max is None or not count:
            continue
        tokens = _tokens(everything, (queue, key), limit, now) - count
        everything.buckets[(queue, key)] = Bucket(tokens, now)
