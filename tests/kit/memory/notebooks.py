"""Queries of the memory store about notebooks."""

from __future__ import annotations

from tests.kit.memory.tables import Tables
from tidewheel.store.transaction import Row

__all__ = [
    "claim_notebook",
    "ensure_notebook",
    "get_notebook",
    "leave_notebook",
    "write_notebook",
]

_COLUMNS = ("epoch", "owner", "deadline_at", "body", "updated_at")


def ensure_notebook(t: Tables, *, name: str) -> list[Row]:
    if name not in t.notebook:
        new = {"epoch": 0, "owner": None, "deadline_at": None, "body": ""}
        t.notebook[name] = new | {"updated_at": t.clock()}
    return []


def claim_notebook(
    t: Tables, *, name: str, owner: str, lease_seconds: float, dead_epoch: int | None
) -> list[Row]:
    row, now = t.notebook[name], t.clock()
    is_held = row["deadline_at"] is not None and row["deadline_at"] > now
    if is_held and row["epoch"] != dead_epoch:
        return []
    held = {"epoch": row["epoch"] + 1, "owner": owner, "deadline_at": now + lease_seconds}
    t.update(t.notebook, name, **held)
    return get_notebook(t, name=name)


def write_notebook(
    t: Tables, *, name: str, epoch: int, body: str, lease_seconds: float
) -> list[Row]:
    row, now = t.notebook.get(name), t.clock()
    if row is None or row["epoch"] != epoch or row["owner"] is None:
        return []
    t.update(t.notebook, name, body=body, deadline_at=now + lease_seconds, updated_at=now)
    return [(epoch,)]


def leave_notebook(t: Tables, *, name: str, epoch: int) -> list[Row]:
    if t.notebook.get(name, {}).get("epoch") == epoch:
        t.update(t.notebook, name, owner=None, deadline_at=None)
    return []


def get_notebook(t: Tables, *, name: str) -> list[Row]:
    row = t.notebook.get(name)
    return [] if row is None else [tuple(row[column] for column in _COLUMNS)]
