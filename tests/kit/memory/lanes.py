"""Queries of the memory store about claims by rules: lanes of keys, turns, priorities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.kit.memory.leases import can_be_claimed, candidates, take
from tests.kit.memory.tables import Record, Tables
from tidewheel.store.transaction import Row

__all__ = [
    "claim_chosen_tasks",
    "clear_lanes",
    "clear_news",
    "close_lanes",
    "count_turns",
    "fold_lanes",
    "list_candidates",
    "list_ranks",
    "lock_lanes",
    "save_turns",
    "set_laned",
    "tell_lanes",
]


def _nothing(_: Tables, **given: object) -> list[Row]:
    """Lanes are read off the tasks themselves: there are no heads to be kept right."""
    del given
    return []


lock_lanes = set_laned = clear_news = tell_lanes = close_lanes = _nothing


def _is_laned(t: Tables, task: Record) -> bool:
    has_lanes = task["queue"] in t.queue and t.queue[task["queue"]]["lanes"]
    return bool(has_lanes) and task["limit_key"] is not None


def fold_lanes(t: Tables, *, queue: str) -> list[Row]:
    """A key of which something is ready has a lane, and with it its turn."""
    ready = {
        task["limit_key"]
        for task in t.task.values()
        if task["queue"] == queue and task["due_at"] is None and can_be_claimed(t, task)
    } - {None}
    for of, key in list(t.lane):
        if of == queue and key and key not in ready:
            del t.lane[of, key]
    for key in ready:
        if (queue, key) not in t.lane:
            t.lane[queue, key] = t.queue[queue]["turns"]
    return []


def clear_lanes(t: Tables, *, queue: str) -> list[Row]:
    for of, key in list(t.lane):
        if of == queue:
            del t.lane[of, key]
    return []


def save_turns(t: Tables, *, queue: str, lanes: Sequence[Record]) -> list[Row]:
    for lane in lanes:
        t.lane[queue, lane["key"]] = lane["turn"]
    return []


def count_turns(t: Tables, *, queue: str, turns: int) -> list[Row]:
    t.update(t.queue, queue, turns=turns)
    return []


def list_ranks(t: Tables, *, queue: str) -> list[Row]:
    ranks = {
        -task["priority"]
        for task in t.task.values()
        if task["queue"] == queue and task["due_at"] is None and can_be_claimed(t, task)
    }
    return [(rank,) for rank in sorted(ranks) if rank >= -255]


def list_candidates(
    t: Tables, *, lanes: int, levels: Sequence[Record], **given: Any
) -> list[Row]:
    fitting = candidates(t, given)
    queue = given["queue"]
    heads = {
        key: min(
            (-task["priority"], task["seq"])
            for task in t.task.values()
            if task["queue"] == queue and task["limit_key"] == key and can_be_claimed(t, task)
        )
        for key in {task["limit_key"] for task in fitting if _is_laned(t, task)}
    }
    turns = {key: t.lane.get((queue, key), 0) for key in heads}
    opened = sorted(heads, key=lambda key: (turns[key], heads[key]))[:lanes]
    rows: list[Row] = []
    for level in levels:
        within = [
            task for task in fitting if level["lowest"] <= -task["priority"] <= level["highest"]
        ]
        for key in opened:
            running = sum(
                (lease["queue"], lease["limit_key"]) == (queue, key)
                for lease in t.lease.values()
            )
            bucket = t.bucket.get((queue, key))
            left = (bucket.tokens, bucket.refilled_at) if bucket else (None, None)
            first = [task for task in within if task["limit_key"] == key][: given["count"]]
            lane = (key, turns[key], *heads[key], running, *left)
            rows += [(*lane, *_place(task)) for task in first]
        others = [task for task in within if not _is_laned(t, task)][: given["count"]]
        rows += [(*[None] * 7, *_place(task)) for task in others]
    return rows


def _place(task: Record) -> Row:
    return -task["priority"], task["seq"], task["ready_at"]


def claim_chosen_tasks(t: Tables, *, chosen: Sequence[Record], **given: Any) -> list[Row]:
    return take(t, [t.task[one["seq"]] for one in chosen], given)
