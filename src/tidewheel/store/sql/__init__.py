"""SQL, one statement per file and dialect; read when a store is opened."""

from __future__ import annotations

from functools import cache
from pathlib import Path

# A plain path: importlib.resources would take longer to load than all the files to read.
HERE = Path(__file__).parent


@cache
def load_queries(dialect: str) -> dict[str, str]:
    """Every query of a dialect by its name."""
    return {
        path.stem: path.read_text(encoding="utf-8") for path in (HERE / dialect).glob("*.sql")
    }
