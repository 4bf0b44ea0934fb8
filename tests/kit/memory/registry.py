"""Queries of the memory store about registered workflows."""

from __future__ import annotations

from typing import Any

from tests.kit.memory.tables import Tables
from tidewheel.store.transaction import Row

__all__ = ["delete_workflow", "get_workflow", "insert_workflow", "list_workflows"]


def insert_workflow(t: Tables, **row: Any) -> list[Row]:
    assert row["definition"] in t.definition, row  # what the SQL schemas promise
    key = (row["name"], row["version"])
    if key in t.workflow:
        return []
    t.workflow[key] = row | {"registered_at": t.clock()}
    return [key]


def _row(t: Tables, name: str, version: str) -> Row:
    row = t.workflow[name, version]
    return (
        *(name, version, row["definition"], t.definition[row["definition"]]["kind"]),
        *(row["runnable"], row["findings"], row["parameters"]),
        *(row["registered_at"], row["registered_by"], row["sees"], row["source"]),
    )


def get_workflow(t: Tables, *, name: str, version: str) -> list[Row]:
    return [_row(t, name, version)] if (name, version) in t.workflow else []


def list_workflows(t: Tables, *, name: str | None, count: int) -> list[Row]:
    found = [key for key in sorted(t.workflow) if name in (None, key[0])]
    return [_row(t, *key) for key in found[:count]]


def delete_workflow(t: Tables, *, name: str, version: str) -> list[Row]:
    if (name, version) not in t.workflow:
        return []
    del t.workflow[name, version]
    return [(name, version)]
