"""SQL, one statement per file and dialect; read when a store is opened."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def load_queries(dialect: str) -> dict[str, str]:
    """Every query of a dialect by its name."""
    folder = files(__package__) / dialect
    return {
        entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }
