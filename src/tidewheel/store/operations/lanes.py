"""Claims tasks of queues with rules: limits, rates, aging, turns of keys.

Theory of operation
-------------------
In a queue that is fair, or has a limit of a key, keyed tasks stand in lanes, one for each key:
apart from others in ``ready``, along an index of their key. The table ``lane`` has the head of
each lane, whether it is closed for want of room, and in a fair queue its latest turn. A claim
reads the first open lanes and the first tasks of each: it costs what it takes, not what waits.

Triggers note in ``lane_news`` which keys are to be looked at anew: a task came or went, or a
lease ended. Notes are only added, so whoever submits or reports waits for nobody; the next
claim takes them and puts the lanes right. Claims under such rules hold the rows of their
queue's limits, or of a fair queue itself, so there is one at a time.

PostgreSQL is asked three times: for the plan with its locks, for the lanes put right with
their first tasks, and to take those that were chosen. What is seen of lanes must not be older
than the lock, so the first two cannot be one statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from tidewheel.core.queue.limits import (
    AGED_PRIORITY_MAX,
    UNLIMITED,
    WHOLE_QUEUE,
    Bucket,
    KeyLane,
    Limit,
    NextTask,
    Waiting,
    choose,
    limit_of,
    opens_at,
    refilled,
    room,
    spent,
)
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.task import Instant
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.store.rows import ClaimedRow
from tidewheel.store.transaction import Transaction, rows_in_chunks

ANY_RANK = {"lowest": -(2**40), "highest": 0}
ABOVE_AGING = {"lowest": -(2**40), "highest": -AGED_PRIORITY_MAX - 1}
LANES_MAX = 2**31 - 1
LANES_SPARE = 1  # beside one for each task that is wanted


class ClaimPlan(NamedTuple):
    """Holds what a claim needs to know of its queue and worker: one row of plan_claim."""

    worker_known: bool
    paused: bool
    aging: bool
    fair: bool
    lanes: bool
    limited: bool
    fence_kill: bool
    lease_seconds: float
    next_due_seconds: float | None  # until the next delayed task can be claimed
    now: float

    @property
    def has_rules(self) -> bool:
        return self.limited or self.aging or self.lanes

    @property
    def is_plain(self) -> bool:
        """Says whether a claim need not look further than at what is ready."""
        is_due = self.next_due_seconds is not None and self.next_due_seconds <= 0.0
        return self.worker_known and not (self.has_rules or is_due)


class FairTurns(NamedTuple):
    """Holds how many turns a fair queue gave, and the latest of tasks without a key."""

    turns: int
    keyless_turn: int | None


class LockedRule(NamedTuple):
    """Holds what a row of lock_plan has beside the plan: the turns of a fair queue, and one of
    its limits. Turns None: it is not fair. Key None: it has no limits."""

    turns_given: int | None
    keyless_turn: int | None
    key: str | None
    concurrency_max: int | None
    rate_max: int | None
    rate_seconds: float | None


class Candidate(NamedTuple):
    """Holds a lane and one of its first tasks, if it has one that fits: a row of
    list_candidates. Key None: a task without a lane."""

    key: str | None
    turn: int | None
    head_rank: int | None
    head_seq: int | None
    running: int | None
    tokens: float | None
    refilled_at: float | None
    rank: int | None
    task_seq: int | None
    ready_at: float | None


@dataclass(slots=True)
class _Rules:
    """Holds what the rules of a queue say at the moment of a claim; turns None: not fair."""

    limits: Sequence[Limit]
    now: Instant
    buckets: list[Bucket]
    turns: FairTurns | None
    aging: bool


def claim_by_rules(
    tx: Transaction,
    wanted: Mapping[str, object],
    plan: ClaimPlan,
    locked: Sequence[LockedRule],
) -> list[ClaimedRow]:
    """Claims tasks under the rules of their queue, which are locked, in their order."""
    queue = str(wanted["queue"])
    rules, whole = _rules(tx, queue, plan, locked)
    wanted = {**wanted, "count": min(cast("int", wanted["count"]), whole)}
    if wanted["count"] == 0:
        return []
    if plan.lanes or plan.aging:
        rows = _claim_chosen(tx, wanted, plan, rules)
    else:
        rows = tx.claim("claim_tasks", plan.lease_seconds, **wanted)
        rows.sort(key=lambda row: (-row.priority, row.seq))
    taken = Counter(key for row in rows if (key := row.limit_key) is not None)
    taken[WHOLE_QUEUE] = len(rows)
    after = spent(rules.limits, rules.buckets, taken, rules.now)
    if rows and after:
        tx.tell("save_buckets", queue=queue, buckets=after)
    return rows


def _rules(
    tx: Transaction, queue: str, plan: ClaimPlan, locked: Sequence[LockedRule]
) -> tuple[_Rules, int]:
    """Returns the rules of a queue, locked so that no two claims count the same places, and how
    many tasks of the whole queue may start."""
    given, now = locked[0], Instant(plan.now)
    turns = None
    if given.turns_given is not None:
        turns = FairTurns(given.turns_given, given.keyless_turn)
    limits = [
        Limit(
            key=one.key,
            concurrency_max=one.concurrency_max,
            rate_max=one.rate_max,
            rate_seconds=one.rate_seconds,
        )
        for one in locked
        if one.key is not None and one.rate_seconds is not None
    ]
    rules = _Rules(limits, now, [], turns, bool(plan.aging))
    whole = limit_of(limits, WHOLE_QUEUE)
    if whole is None:
        return rules, UNLIMITED
    running, bucket = 0, None
    if whole.concurrency_max is not None:
        running = tx.rows("count_leases", queue=queue)[0][0]
    if whole.rate_max is not None:
        rules.buckets = tx.records("list_buckets", Bucket, queue=queue)
        bucket = next(iter(rules.buckets), None)
    return rules, room(whole, running, bucket, now)


def _claim_chosen(
    tx: Transaction, wanted: Mapping[str, object], plan: ClaimPlan, rules: _Rules
) -> list[ClaimedRow]:
    queue = str(wanted["queue"])
    chosen = _chosen(tx, wanted, rules, lanes=bool(plan.lanes))
    if not chosen:
        return []
    places = {one.task.seq: place for place, one in enumerate(chosen)}
    rows = tx.claim(
        "claim_chosen_tasks",
        plan.lease_seconds,
        **wanted,
        chosen=[
            {"place": place, "laned": one.key is not None, "rank": one.task.rank}
            | {"seq": one.task.seq}
            for place, one in enumerate(chosen)
        ],
    )
    rows.sort(key=lambda row: places[row.seq])
    if rules.turns is not None and rows:
        keys = {one.task.seq: one.key or "" for one in chosen}
        _save_turns(tx, queue, [keys[row.seq] for row in rows], rules.turns.turns)
    return rows


def _save_turns(tx: Transaction, queue: str, keys: Sequence[str], turns: int) -> None:
    had = {key: turns + place for place, key in enumerate(keys, start=1)}
    lanes = [{"key": key, "turn": turn} for key, turn in had.items()]
    rows_in_chunks(tx, "save_turns", "lanes", lanes, queue=queue)
    tx.rows("count_turns", queue=queue, turns=turns + len(keys))


def _chosen(
    tx: Transaction, wanted: Mapping[str, object], rules: _Rules, *, lanes: bool
) -> list[NextTask]:
    """Returns the tasks that are to be claimed. More lanes are read until it is certain that no
    other has one that goes before; with aging, which no index follows, all that are open."""
    count, levels = cast("int", wanted["count"]), [ANY_RANK]
    if rules.aging:
        ranks = tx.rows("list_ranks", queue=wanted["queue"])
        levels = [ABOVE_AGING, *({"lowest": rank, "highest": rank} for (rank,) in ranks)]
    asked = 0 if not lanes else LANES_MAX if rules.aging else count + LANES_SPARE
    turns = None if rules.turns is None else rules.turns.turns
    while True:
        given = {**wanted, "lanes": asked, "levels": levels}
        found = tx.candidates(Candidate, **given)
        read, last = _lanes(tx, str(wanted["queue"]), found, rules)
        aging_at = rules.now if rules.aging else None
        chosen = choose(read, count, aging_at=aging_at, turns=turns)
        known = len({one.key for one in found if one.key is not None})
        if known < asked or asked in (0, LANES_MAX):
            return chosen
        in_turn = turns is None or len({one.key for one in chosen}) == count
        if len(chosen) == count and in_turn and _is_certain(read, chosen, last):
            return chosen
        asked = min(LANES_MAX, asked * 8)


Place = tuple[int, int, int]  # turn, rank and seq: by these lanes are read


def _is_certain(lanes: Sequence[KeyLane], chosen: Sequence[NextTask], last: Place) -> bool:
    """Says whether no lane beyond the last that was read has a task that goes before these."""
    turns = {lane.key: lane.turn for lane in lanes}
    return all((turns[one.key], one.task.rank, one.task.seq) <= last for one in chosen)


def _lanes(
    tx: Transaction, queue: str, found: Sequence[Candidate], rules: _Rules
) -> tuple[list[KeyLane], Place]:
    """Returns the lanes that were read, and where the last stands; those without room for the
    sake of a rate are closed until they have some."""
    tasks: dict[str | None, list[Waiting]] = {}
    of_key: dict[str, Candidate] = {}
    for one in found:
        waiting = tasks.setdefault(one.key, [])
        if one.key is not None:
            of_key[one.key] = one
        if one.task_seq is not None and one.rank is not None and one.ready_at is not None:
            waiting.append(Waiting(rank=one.rank, seq=one.task_seq, ready_at=one.ready_at))
    lanes, shut = [], []
    for key, waiting in tasks.items():
        waiting.sort(key=lambda task: (task.rank, task.seq))
        if key is None:
            turn = rules.turns.keyless_turn if rules.turns else None
            lanes.append(KeyLane(key=None, tasks=waiting, room=UNLIMITED, turn=turn or 0))
            continue
        lane, opens = _lane(key, of_key[key], waiting, rules)
        lanes.append(lane)
        if opens is not None:
            shut.append({"key": key, "opens_at": opens})
    if shut:
        rows_in_chunks(tx, "close_lanes", "lanes", shut, queue=queue)
    places = [(one.turn or 0, one.head_rank or 0, one.head_seq or 0) for one in of_key.values()]
    return lanes, max(places, default=(0, 0, 0))


def _lane(
    key: str, one: Candidate, waiting: Sequence[Waiting], rules: _Rules
) -> tuple[KeyLane, Instant | None]:
    """Returns a lane, and when it has room again if its rate leaves none."""
    limit, bucket = limit_of(rules.limits, key), None
    if one.tokens is not None and one.refilled_at is not None:
        bucket = Bucket(key=key, tokens=one.tokens, refilled_at=Instant(one.refilled_at))
        rules.buckets.append(bucket)
    free = room(limit, one.running or 0, bucket, rules.now)
    lane = KeyLane(key=key, tasks=waiting, room=free, turn=one.turn or 0)
    if limit is None or limit.rate_max is None or free > 0:
        return lane, None
    now_in = refilled(limit, bucket, rules.now)
    return lane, opens_at(limit, now_in) if now_in.tokens < 1.0 else None


# ---- the settings of a queue ----


def lay_lanes(tx: Transaction, settings: QueueSettings) -> bool:
    """Locks what becomes ready while a queue gets lanes; returns whether it is to have some."""
    lanes = settings.fair or any(limit.key != WHOLE_QUEUE for limit in settings.limits)
    if lanes:
        tx.rows("lock_lanes")
    return lanes


def fill_lanes(tx: Transaction, queue: str, *, lanes: bool) -> int:
    """Puts the keyed tasks of a queue into lanes, or back; heads and room are found anew.
    Returns how many ready tasks were moved."""
    moved = len(tx.rows("set_laned", queue=queue, laned=lanes))
    tx.rows("clear_lanes", queue=queue)
    tx.rows("clear_news", queue=queue)
    if lanes:
        tx.rows("tell_lanes", queue=queue)
        tx.fold_lanes(queue)
    return moved
