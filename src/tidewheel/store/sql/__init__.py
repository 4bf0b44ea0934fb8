"""Holds SQL, one statement per file, in ``common/`` for all databases or in a dialect's folder.

A parameter is written ``:name``. The driver of PostgreSQL gets ``%(name)s`` instead, and every
``%`` twice. A common statement is written for PostgreSQL; for SQLite these are rewritten:

``tidewheel.task``                        ``task``: a file has one schema
``:count::bigint``                        ``:count``: its values have types of their own
``= ANY (:seqs::bigint[])``               ``IN (SELECT value FROM json_each(:seqs))``
``= ANY (ARRAY[lease.seq])``              ``= lease.seq``
``json_to_recordset(:rows::json) AS t (a bigint, b text)``
                                          a subquery on ``jsonb_each(:rows)`` with such columns
``FOR UPDATE OF task SKIP LOCKED``        nothing: it has one writer
``COLLATE "C"``                           nothing: it compares texts so by itself

``{name}`` stands for ``fragments/name.sql``, in any statement and in fragments: a condition,
a list of columns, or a part that statements share. ``{task.name}`` is a list in which each
column has the name of its table, ``{:name}`` one of parameters. Fragments are written as common
statements are. Comments and literals stay as they are.

All files are read when a store is opened, so that a program that is replaced while it runs
meets no statement of its successor; one is put together when it is first used.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from tidewheel.lazy_dataclasses import pattern

# A plain path: importlib.resources would take longer to load than all the files to read.
HERE = Path(__file__).parent

LITERAL = r"'(?:[^']|'')*'|\"[^\"]*\""
_QUIET = rf"--[^\n]*|{LITERAL}"
_COMMENT = pattern(rf"--[^\n]*|(?P<literal>{LITERAL})")
_FRAGMENT = pattern(rf"{_QUIET}|\{{(?P<prefix>:|\w+\.)?(?P<fragment>\w+)\}}")
_FOR_POSTGRES = pattern(rf"(?P<quiet>{_QUIET}|::)|:(?P<name>\w+)|%")
_FOR_SQLITE = pattern(
    r"\bCOLLATE\s+\"C\""
    rf"|(?P<quiet>{_QUIET})"
    r"|\bjson_to_recordset\((?P<rows>:\w+)::json\)\s+AS\s+(?P<alias>\w+)\s*\((?P<columns>[^()]*)\)"
    r"|=\s*ANY\s*\(ARRAY\[(?P<one>[\w.]+)\]\)"
    r"|=\s*ANY\s*\((?P<list>:\w+)::\w+\[\]\)"
    r"|::\w+(?:\[\])?"
    r"|\btidewheel\.(?=\w)"
    r"|\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE)\b(?:\s+OF\s+\w+(?:,\s*\w+)*)?(?:\s+SKIP\s+LOCKED)?"
)


class Queries(dict[str, str]):
    """Holds every statement of a dialect by the name of its file."""

    def __init__(self, dialect: str) -> None:
        super().__init__()
        self._dialect, self._own, self._common = dialect, _texts(dialect), _texts("common")
        _texts("fragments")

    def __missing__(self, name: str) -> str:
        text = translate(self._own.get(name) or self._common[name], self._dialect)
        if self._dialect == "sqlite":
            text = _without_comments(text)
        self[name] = text
        return text


@cache
def load_queries(dialect: str) -> Queries:
    """Returns all statements for databases of this dialect; their files are read only once."""
    return Queries(dialect)


def is_common(name: str) -> bool:
    """Says whether there is a common statement of this name."""
    return name in _texts("common")


def translate(text: str, dialect: str) -> str:
    """Returns a statement, a common one or the dialect's own, as this dialect spells it."""
    text = _FRAGMENT.sub(_included, text)
    if dialect == "postgres":
        return _FOR_POSTGRES.sub(
            lambda found: (
                f"%({found['name']})s" if found["name"] else found[0].replace("%", "%%")
            ),
            text,
        )
    return _FOR_SQLITE.sub(_for_sqlite, text)


def _without_comments(text: str) -> str:
    """Returns a statement without comments and indentation: SQLite's driver reads all of it
    whenever it is run, to find what it has compiled. No literal has more than one line."""
    kept = _COMMENT.sub(lambda found: found["literal"] or "", text)
    return "\n".join(line for line in map(str.strip, kept.splitlines()) if line)


@cache
def _texts(folder: str) -> dict[str, str]:
    texts = {}
    for entry in os.scandir(HERE / folder):  # a Path for each file would take longer to make
        name, suffix = os.path.splitext(entry.name)
        if suffix == ".sql":
            with open(entry.path, "rb", buffering=0) as file:
                texts[name] = file.read().decode()
    return texts


def _included(found: re.Match[str]) -> str:
    if not (name := found["fragment"]):
        return found[0]
    _sentence, _, part = _texts("fragments")[name].partition("\n")
    part = _FRAGMENT.sub(_included, part.rstrip())
    prefix = found["prefix"]
    return re.sub(r"\w+", rf"{prefix}\g<0>", part) if prefix else part


def _for_sqlite(found: re.Match[str]) -> str:
    if found["quiet"]:
        return found[0]
    if found["list"]:
        return f"IN (SELECT value FROM json_each({found['list']}))"
    if found["one"]:
        return f"= {found['one']}"
    if not found["rows"]:
        return ""
    names = [column.split()[0] for column in found["columns"].split(",")]
    columns = ", ".join(f"value ->> '{name}' AS {name}" for name in names)
    return f"(SELECT {columns} FROM jsonb_each({found['rows']})) AS {found['alias']}"
