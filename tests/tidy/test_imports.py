"""What tests, benches and documents take from our own modules is there.

Nothing runs the benches in a build, and types are checked in the package alone: a name that
moved would be missed by nobody until somebody measures again.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.tidy.repository import ROOT, broken, parsed, python_files

OWN = {"tidewheel": ROOT / "src", "tests": ROOT, "bench": ROOT}
FOLDERS = ("src", "tests", "bench", "docs", "examples")


def place_of(module: str) -> Path | None:
    """The file or folder of a module of ours."""
    path = OWN[module.partition(".")[0]].joinpath(*module.split("."))
    file = path.with_suffix(".py")
    return file if file.is_file() else path if path.is_dir() else None


@cache
def names_in(module: str) -> frozenset[str] | None:
    """All that a module may have; None if there is no such module."""
    place = place_of(module)
    if place is None:
        return None
    file = place / "__init__.py" if place.is_dir() else place
    return frozenset(_bound(file.read_text(encoding="utf-8")) if file.is_file() else ())


def _bound(text: str) -> Iterator[str]:
    """Names that statements of a module bind, also under `if`, `try` and `with`."""
    statements = list(parsed(text).body)
    while statements:
        node = statements.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (one.asname or one.name for one in node.names)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                yield from _stored(node)
            case _:
                yield from _stored(node)
                statements += [at for at in ast.walk(node) if isinstance(at, _BINDS)]


_BINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def _stored(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id


# Read by an expression: to parse all tests took longer than all other tests of this folder.
IMPORT = re.compile(
    rf"^[ \t]*from ((?:{'|'.join(OWN)})[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE
)


def missing_imports(text: str) -> Iterator[str]:
    for found in IMPORT.finditer(text):
        module, names = found[1], re.sub(r"#.*", "", found[2]).strip("() \n")
        known = names_in(module)
        for name in (one.split()[0] for one in names.split(",") if one.strip()):
            if known is None or not (name in known or place_of(f"{module}.{name}")):
                line = text.count("\n", 0, found.start()) + 1
                yield f"line {line}: there is no {name} in {module}"


def test_every_name_that_is_imported_from_a_module_of_ours_is_there():
    assert broken(missing_imports, python_files(*FOLDERS)) == []


def test_a_name_or_module_that_has_moved_is_found():
    assert list(missing_imports("from bench.folders import BUILD, moved")) == [
        "line 1: there is no moved in bench.folders"
    ]
    assert list(missing_imports("from tests.support.gone import anything")) == [
        "line 1: there is no anything in tests.support.gone"
    ]
    assert not list(missing_imports("from tests.support import fleet\nfrom os import path"))


EAGER = {("dataclasses", "dataclass"), ("typing", "NamedTuple")}


def eager_classes(text: str) -> list[str]:
    return [
        f"line {node.lineno}: from tidewheel.lazy_dataclasses import {one.name}"
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.ImportFrom)
        for one in node.names
        if (node.module, one.name) in EAGER
    ]


def test_no_class_of_ours_compiles_its_methods_while_it_is_loaded():
    alone = ("lazy_dataclasses.py", "launcher.py")  # these need nothing of tidewheel
    files = [at for at in python_files("src") if at.name not in alone]
    assert broken(eager_classes, files) == []


def test_a_named_tuple_of_typing_is_found():
    assert eager_classes("import os\nfrom typing import Any, NamedTuple") == [
        "line 2: from tidewheel.lazy_dataclasses import NamedTuple"
    ]
