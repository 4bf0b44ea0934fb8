"""Style 2: one module, one reason; files and functions stay short."""

import ast

from tests.tidy.repository import PACKAGE, ROOT, broken, parsed, python_files, read_text
from tidewheel.store.sqlite_file import SQLITE_SCHEMA

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

# Functions that may stay long until somebody shortens them, as `path::name`. It only shrinks.
GRANDFATHERED: frozenset[str] = frozenset()


def too_long_file(text: str) -> list[str]:
    lines = len(text.splitlines())
    return [f"{lines} lines, {FILE_LINES_MAX} are allowed"] if lines > FILE_LINES_MAX else []


def long_functions(text: str) -> list[str]:
    return [
        node.name
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]


def test_files_are_short():
    # One is written by docs/write_schema.py.
    written = [path for path in PACKAGE.rglob("*.sql") if path != SQLITE_SCHEMA]
    files = [*python_files("src"), *written]
    assert broken(too_long_file, files) == []


def test_functions_are_short_and_the_list_of_exceptions_only_shrinks():
    long = {
        f"{path.relative_to(ROOT)}::{name}"
        for path in python_files("src")
        for name in long_functions(read_text(path))
    }
    assert long == GRANDFATHERED


def test_a_long_file_and_a_long_function_are_found():
    body = "    pass\n"
    assert too_long_file("\n" * 601)
    assert not too_long_file("\n" * 600)
    assert long_functions("async def f():\n" + body * 70) == ["f"]
    assert long_functions("def f():\n" + body * 69) == []
