"""Queries of the memory store about definitions, which are kept by what is in them."""

from __future__ import annotations

from typing import Any

from tests.kit.memory.tables import Tables
from tidewheel.store.transaction import Row

__all__ = ["delete_definitions", "get_definition", "save_definition"]

_DEFINITION = ("digest", "workflow", "kind", "text", "variables", "files")


def save_definition(t: Tables, **row: Any) -> list[Row]:
    kept = t.definition.get(row["digest"], row)
    t.definition[row["digest"]] = kept | {"saved_at": t.clock()}
    return []


def get_definition(t: Tables, digest: str) -> list[Row]:
    row = t.definition.get(digest)
    return [] if row is None else [tuple(row[name] for name in _DEFINITION)]


def delete_definitions(t: Tables, *, retention_seconds: float, count: int) -> list[Row]:
    before = t.clock() - retention_seconds
    naming = (*t.run.values(), *t.run_version.values(), *t.workflow.values())
    named = {one["definition"] for one in naming}
    old = sorted(
        digest
        for digest, row in t.definition.items()
        if digest not in named and row["saved_at"] < before
    )
    for digest in old[:count]:
        del t.definition[digest]
    return [(digest,) for digest in old[:count]]
