"""Writes web/src/api/storeTypes.ts, the page's types of what travels, from the types of `api`.

.venv/bin/python web/write_store_types.py    after a change there; a tidy test says when.
"""

from __future__ import annotations

import json
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from tidewheel.api.tasks import AttemptView, QueueView, Task, WorkerView
from tidewheel.api.wire import EXACT, FLAT, HIDDEN, JSON_FIELDS, NAMES
from tidewheel.client.fields import STORED_AS, Filters, TaskFields, explained
from tidewheel.core.queue.access import Scope, TokenView
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import RetryPolicy
from tidewheel.core.queue.statistics import Quantiles, Statistics
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, TaskError
from tidewheel.server.resources.tokens import AuditOut, AuditPage

FILE = Path(__file__).parent / "src" / "api" / "storeTypes.ts"
HEAD = """\
/** What travels about the whole store. Written by web/write_store_types.py: do not edit. */
import type { Counts, Scope } from "./types";
"""
SHOWN: dict[type, str] = {
    Resources: "Resources",
    Limit: "QueueLimit",
    QueueView: "QueueFacts",
    TaskError: "TaskFailure",
    Task: "StoredTask",
    AttemptView: "StoredAttempt",
    WorkerView: "WorkerFacts",
    Quantiles: "Quantiles",
    Statistics: "Statistics",
    AuditOut: "AuditEntry",
    AuditPage: "AuditPage",
    TokenView: "TokenFacts",
}
OTHERS: dict[Any, str] = {
    **dict.fromkeys((int, float), "number"),
    **dict.fromkeys((str, Instant), "string"),
    bool: "boolean",
    NoneType: "null",
    Scope: "Scope",
    RetryPolicy: "{ delays?: number[]; [name: string]: number | number[] | undefined }",
    dict[str, int]: "Counts",
    dict[Status, int]: "Counts",
}


def type_of(hint: Any) -> str:  # noqa: ANN401 - any type
    """Returns how the page calls a type."""
    if hint in OTHERS:
        return OTHERS[hint]
    if hint in SHOWN:
        return SHOWN[hint]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return "string"
    if hasattr(hint, "__supertype__"):
        return type_of(hint.__supertype__)
    origin, given = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " | ".join(type_of(one) for one in given)
    assert origin in (tuple, list, frozenset), hint
    return f"{type_of(given[0])}[]"


def lines_of(kind: type) -> list[str]:
    """Returns a line for each key of a thing's JSON."""
    hints = get_type_hints(kind)
    found: list[str] = []
    names = (
        [one.name for one in msgspec.structs.fields(kind)]
        if issubclass(kind, msgspec.Struct)
        else [one.name for one in fields(kind)]
    )
    for name in names:
        if name in FLAT:
            found += lines_of(hints[name])
        elif name in JSON_FIELDS:
            key = JSON_FIELDS[name]
            found.append(f"  {key}?: unknown;")
            if key in EXACT:
                found.append(f"  {key}_text?: string;")
        elif name not in HIDDEN:
            found.append(f"  {NAMES.get(name, name)}: {type_of(hints[name])};")
    return found


def names_of_tasks() -> list[str]:
    """Returns the names that tasks have, are found by, and are asked with once more."""
    shown = {one.name for one in fields(Task)}
    # An ended task that never was armed would not run a second time either.
    asked = {"queue": "queue"} | {
        said: stored for said, stored in STORED_AS.items() if stored in shown - {"armed"}
    }
    pairs = ", ".join(f'{said}: "{stored}"' for said, stored in asked.items())
    lists = {"FILTER_NAMES": explained(Filters), "TASK_NAMES": explained(TaskFields)}
    return [
        *(
            f"export const {name} = {json.dumps(list(one))} as const;"
            for name, one in lists.items()
        ),
        f"export const ASKED_AGAIN = {{ {pairs} }} as const;",
        "",
    ]


def text() -> str:
    """Returns what the file shall be."""
    parts = [HEAD, "\n".join(names_of_tasks())]
    for kind, name in SHOWN.items():
        parts.append("\n".join([f"export interface {name} {{", *lines_of(kind), "}", ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    if FILE.read_text("utf-8") != text():  # or the page would be built anew
        FILE.write_text(text(), "utf-8")
