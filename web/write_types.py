"""Writes the page's types of what the server answers, from ``tidewheel.api``.

Run it when a type there changes: .venv/bin/python web/write_types.py
"""

from __future__ import annotations

import inspect
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

from tidewheel.api import blocks, run_details, runs, workflows

HERE = Path(__file__).parent
FOLDER = Path("src/api/generated")
# Type aliases and no interfaces: what is one may be given where any fields are taken.
HEAD = "/** Written by web/write_types.py from tidewheel.api; do not edit it. */\n"
LONG, LINES_MAX = "/* eslint-disable max-lines */\n", 350
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null"}
FILES: dict[str, ModuleType] = {
    "runs.ts": runs,
    "run_details.ts": run_details,
    "blocks.ts": blocks,
    "workflows.ts": workflows,
}


def text(file: str) -> str:
    """Returns one file of types, in the order in which Python has them."""
    own = types_of(FILES[file])
    body = "\n".join(map(_alias, own))
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


def _type(hint: Any) -> str:  # noqa: ANN401 - a type
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any or is_typeddict(hint):
        return "unknown" if hint is Any else str(hint.__name__)
    if origin in (Union, UnionType):
        return " | ".join(map(_type, inside))
    if origin is Literal:
        return " | ".join(f'"{one}"' for one in inside)
    if origin is list:
        inner = _type(inside[0])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if origin is dict:
        return f"Record<string, {_type(inside[1])}>"
    return PLAIN[hint]


def main() -> None:
    for file in FILES:
        path = HERE / FOLDER / file
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text(file):  # or all is built anew
            path.write_text(text(file), "utf-8")


if __name__ == "__main__":
    main()
