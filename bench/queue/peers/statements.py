"""The raw loops' SQL, read from one file per dialect so that it is easy to keep in step."""

from __future__ import annotations

from pathlib import Path

from bench.folders import REPOSITORY

FOLDER = Path(__file__).resolve().parent.parent / "sql"
MIGRATIONS = REPOSITORY / "src" / "tidewheel" / "store" / "migrations"
NAME = "-- name: "


def load_statements(dialect: str) -> dict[str, str]:
    """Statement texts by name; comments and the closing semicolon are dropped."""
    statements: dict[str, list[str]] = {}
    name = None
    for line in (FOLDER / f"raw_{dialect}.sql").read_text().splitlines():
        if line.startswith(NAME):
            name = line.removeprefix(NAME).strip()
            statements[name] = []
        elif name is not None and not line.startswith("--"):
            statements[name].append(line)
    return {
        name: "\n".join(lines).strip().removesuffix(";") for name, lines in statements.items()
    }


def tidewheel_schema(dialect: str) -> str:
    """What tidewheel itself would make; the peers' interpreter has no tidewheel to ask."""
    files = sorted((MIGRATIONS / dialect).glob("*.sql"))
    return "\n".join(file.read_text() for file in files)
