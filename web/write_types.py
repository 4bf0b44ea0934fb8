"""Writes the page's types of what the server answers, from ``tidewheel.api``.

.venv/bin/python web/write_types.py    after a change there; a tidy test says when.

Documents are typed dictionaries, written module by module. Things of the store are dataclasses,
whose JSON follows the rules of ``api.wire``: they are in storeTypes.ts.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from tidewheel.api import blocks, log_lines, run_details, runs, workflows
from tidewheel.api.tasks import AttemptView, QueueView, Resubmitted, Task, WorkerView
from tidewheel.api.wire import EXACT, FLAT, HIDDEN, JSON_FIELDS, NAMES
from tidewheel.client.fields import Filters, TaskFields, explained
from tidewheel.core.queue.access import Identity, Scope, TokenView
from tidewheel.core.queue.lease import SIGN_SECONDS_MAX
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.resources import FlavouredNodes, Resources
from tidewheel.core.queue.retry import RetryPolicy
from tidewheel.core.queue.statistics import Quantiles, Statistics
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, TaskError
from tidewheel.server.resources.tokens import AuditOut, AuditPage

HERE = Path(__file__).parent
FOLDER = Path("src/api/generated")
# Type aliases and no interfaces: what is one may be given where any fields are taken.
HEAD = "/** Written by web/write_types.py from tidewheel.api; do not edit it. */\n"
LONG, LINES_MAX = "/* eslint-disable max-lines */\n", 350
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null"}
FILES: dict[str, ModuleType] = {
    "runs.ts": runs,
    "run_details.ts": run_details,
    "log_lines.ts": log_lines,
    "blocks.ts": blocks,
    "workflows.ts": workflows,
}


STORE = "../storeTypes.ts"
STORE_HEAD = """\
/** What travels about the whole store. Written by web/write_types.py: do not edit. */
import type { Counts, Scope } from "./types";
"""
SHOWN: dict[type, str] = {
    Resources: "Resources",
    FlavouredNodes: "FlavouredNodes",
    Limit: "QueueLimit",
    QueueView: "QueueFacts",
    TaskError: "TaskFailure",
    Task: "StoredTask",
    AttemptView: "StoredAttempt",
    Resubmitted: "Resubmitted",
    WorkerView: "WorkerFacts",
    Quantiles: "Quantiles",
    Statistics: "Statistics",
    AuditOut: "AuditEntry",
    AuditPage: "AuditPage",
    TokenView: "TokenFacts",
    Identity: "SignedIn",
}
STORE_NAMES: dict[Any, str] = {
    **SHOWN,
    Instant: "string",
    Scope: "Scope",
    RetryPolicy: "{ delays?: number[]; [name: string]: number | number[] | undefined }",
    dict[str, int]: "Counts",
    dict[Status, int]: "Counts",
}


def text(file: str) -> str:
    """Returns one file of types, in the order in which Python has them."""
    if file == STORE:
        return "\n".join([STORE_HEAD, "\n".join(_names_of_tasks()), *map(_interface, SHOWN)])
    own = types_of(FILES[file])
    body = "\n".join(map(_alias, own))
    if FILES[file] is log_lines:
        body += f"\n{_levels()}"
    return (
        HEAD
        + (LONG if body.count("\n") > LINES_MAX else "")
        + _imports(file, own)
        + "\n"
        + body
    )


def types_of(module: ModuleType) -> list[Any]:
    """Returns the typed dictionaries that a module defines."""
    found = [one for name, one in vars(module).items() if not name.startswith("_")]
    return [one for one in found if is_typeddict(one) and one.__module__ == module.__name__]


def _imports(file: str, own: list[Any]) -> str:
    hints = [hint for kind in own for hint in get_type_hints(kind).values()]
    used = {one for hint in hints for one in _named(hint)}
    lines = []
    for other, module in FILES.items():
        names = sorted(one.__name__ for one in used if one.__module__ == module.__name__)
        if names and other != file:
            where = other.removesuffix(".ts")
            lines.append(f'import type {{ {", ".join(names)} }} from "./{where}";\n')
    return "".join(lines)


def _named(hint: Any) -> set[Any]:  # noqa: ANN401 - a type
    inside = {one for part in get_args(hint) for one in _named(part)}
    return inside | ({hint} if is_typeddict(hint) else set())


def _alias(kind: Any) -> str:  # noqa: ANN401 - a type
    said = inspect.cleandoc(kind.__doc__ or "") if kind.__doc__ != dict.__doc__ else ""
    lines = [f"/** {' '.join(said.split())} */"] if said else []
    lines.append(f"export type {kind.__name__} = {{")
    for name, hint in get_type_hints(kind, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        shown = _type(get_args(hint)[0] if optional else hint)
        lines.append(f"  {name}{'?' if optional else ''}: {shown};")
    return "\n".join([*lines, "};\n"])


def _names_of_tasks() -> list[str]:
    """Returns the names that tasks have, and are found by."""
    lists = {"FILTER_NAMES": explained(Filters), "TASK_NAMES": explained(TaskFields)}
    return [
        *(
            f"export const {name} = {json.dumps(list(one))} as const;"
            for name, one in lists.items()
        ),
        f"export const SIGN_SECONDS_MAX = {SIGN_SECONDS_MAX}; // of a worker",
        "",
    ]


def _levels() -> str:
    """Returns how the level of a line of a log is known."""
    said = {
        "LEVELS": log_lines.LEVELS,
        "SAME_LEVELS": log_lines.SAME_LEVELS,
        "PLAIN_RANK": log_lines.PLAIN_RANK,
        "HEAD_LENGTH": log_lines.HEAD_LENGTH,
        "LEVEL_PATTERN": log_lines.LEVEL_PATTERN,
    }
    lines = (f"export const {name} = {json.dumps(one)} as const;" for name, one in said.items())
    return "\n".join([*lines, ""])


def _interface(kind: type) -> str:
    return "\n".join([f"export interface {SHOWN[kind]} {{", *_lines(kind), "}", ""])


def _lines(kind: Any) -> list[str]:  # noqa: ANN401 - a type
    """Returns a line for each key of a thing's JSON."""
    hints = get_type_hints(kind)
    listed = msgspec.structs.fields if issubclass(kind, msgspec.Struct) else fields
    found: list[str] = []
    for name in (one.name for one in listed(kind)):
        if name in FLAT:
            found += _lines(hints[name])
        elif name in JSON_FIELDS:
            key = JSON_FIELDS[name]
            found.append(f"  {key}?: unknown;")
            if key in EXACT:
                found.append(f"  {key}_text?: string;")
        elif name not in HIDDEN:
            found.append(f"  {NAMES.get(name, name)}: {_type(hints[name], STORE_NAMES)};")
    return found


def _type(hint: Any, names: Mapping[Any, str] = PLAIN) -> str:  # noqa: ANN401, PLR0911 - a type, a line for each
    """Returns how the page calls a type; ``names`` has those that are called otherwise."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint in names:
        return names[hint]
    if hint is Any or is_typeddict(hint):
        return "unknown" if hint is Any else str(hint.__name__)
    if origin in (Union, UnionType):
        return " | ".join(_type(one, names) for one in inside)
    if origin is Literal:
        return " | ".join(f'"{one}"' for one in inside)
    if origin in (list, tuple, frozenset):
        inner = _type(inside[0], names)
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if origin is dict:
        return f"Record<string, {_type(inside[1], names)}>"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return "string"
    return PLAIN[getattr(hint, "__supertype__", hint)]


def main() -> None:
    (HERE / FOLDER).mkdir(exist_ok=True)
    for file in (*FILES, STORE):
        path = HERE / FOLDER / file
        if not path.exists() or path.read_text("utf-8") != text(file):  # or all is built anew
            path.write_text(text(file), "utf-8")


if __name__ == "__main__":
    main()
