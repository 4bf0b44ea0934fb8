"""Rows of tasks and leases against what is known about them.

T2 a final row never changes · T5 a lease exactly while running or cancelling, and it is the
owner's · T13 what was asked for is stored, and only retention removes it · T15 progress.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tests.kit.rules.facts import Facts, TaskFacts, demand
from tidewheel.core.queue.task import NewTask

Record = dict[str, Any]

# What a client asks for is stored as it was asked for.
_OTHERWISE = ("run", "delay_seconds", "armed", "needs", "continuations", "retry", "resources")
_KEPT = ("executes", *(one.name for one in fields(NewTask) if one.name not in _OTHERWISE))


def check_created(facts: TaskFacts, row: Record) -> None:
    """The row holds what the client asked for."""
    for name in _KEPT:
        if row[name] != getattr(facts.asked, name):
            seen = (
                f"{facts.id}: {name} is {row[name]!r}, asked was {getattr(facts.asked, name)!r}"
            )
            demand(False, "T13 stored as asked", seen)
    asked = facts.asked.resources
    names = ("cpu", "memory_bytes", "gpu", "nodes", "exclusive", "buffer_bytes")
    stored = tuple(row[name] for name in names)
    wanted = tuple(getattr(asked, name) for name in names)
    demand(stored == wanted, "T13 stored as asked", f"{facts.id}: {stored}")


def check_row(facts: TaskFacts, row: Record, before: Record | None) -> None:
    """One task's row after a commit that touched it."""
    seen = (row["status"], row["attempt"], row["failures"], row["lapses"])
    known = (facts.status, facts.attempt, facts.failures, facts.lapses)
    if seen != known:
        demand(False, "T1 the row is what its history says", f"{facts.id}: {seen}, not {known}")
    if row["owner"] != facts.owner:
        demand(False, "T5 the owner is known", f"{facts.id}: {row['owner']}, not {facts.owner}")
    progress = row["progress"]
    whole = facts.status != "succeeded" or progress == 1.0
    demand(0.0 <= progress <= 1.0 and whole, "T15 progress", f"{facts.id} at {progress}")
    if before is not None and before["status"] == row["status"] and facts.final:
        # Which graph it belongs to is no part of the task: new children may join two graphs.
        same = before | {"graph": None} == row | {"graph": None}
        demand(same, "T2 a final row never changes", f"{facts.id}: {before} became {row}")


def check_lease(facts: TaskFacts, lease: Record | None) -> None:
    """One task's lease after a commit that touched it or its task."""
    if (lease is not None) != facts.leased:
        seen = f"{facts.id} is {facts.status} {'with' if lease else 'without'} a lease"
        demand(False, "T5 a lease exactly while it runs", seen)
    if lease is None:
        return
    seen_lease = (
        lease["owner"],
        lease["attempt"],
        lease["claimed_at"],
        lease["deadline_at"],
        lease["messages"],
    )
    known = (
        facts.owner,
        facts.attempt,
        facts.claimed_at,
        facts.granted_until,
        facts.messages,
    )
    if seen_lease != known:
        demand(
            False,
            "T4 only its owner extends a lease, by the database's clock",
            f"{facts.id}: (owner, attempt, claimed, deadline, messages) is {seen_lease}, "
            f"not {known}",
        )


def check_deleted(facts: TaskFacts, everything: Facts, age: float, retention: float) -> None:
    """A task that is gone was final and old."""
    demand(facts.final, "T13 only final tasks are removed", f"{facts.id} was {facts.status}")
    demand(age > retention, "T13 kept until retention", f"{facts.id} was {age:.1f} s old")
    demand(facts.seq not in everything.leased, "T13 nothing leased is removed", f"{facts.id}")
