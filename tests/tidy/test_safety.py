"""Nothing read becomes code, and assertions stay on."""

import ast
import subprocess
import sys

import pytest

from tests.tidy.repository import broken, parsed, python_files

MODULES = {"dill", "marshal", "pickle", "shelve"}
BUILTINS = {"eval", "exec"}
# It calls functions in children that it started; of their answers it reads values only.
CALLS_CHILDREN = "src/tidewheel/wiring/limited_process.py: "
# It compiles methods of classes of ours, by the names of their fields.
WRITES_METHODS = "src/tidewheel/lazy_dataclasses.py: "
FUNCTIONS = {"yaml.load", "yaml.load_all", "yaml.unsafe_load"}


def data_as_code(text: str) -> list[str]:
    return [f"line {line}: {name}" for line, name in _dangerous(parsed(text))]


def _dangerous(tree: ast.AST):
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = {alias.name.partition(".")[0] for alias in names}
                yield from ((node.lineno, name) for name in sorted(imported & MODULES))
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in MODULES:
                yield node.lineno, module
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=attr)) if (
                f"{module}.{attr}" in FUNCTIONS
            ):
                yield node.lineno, f"{module}.{attr}"


def assertions_are_on(*interpreter_options: str) -> bool:
    command = [sys.executable, *interpreter_options, "-c", "print(__debug__)"]
    return subprocess.run(command, capture_output=True, check=True).stdout == b"True\n"


def test_nothing_read_is_executed():
    found = broken(data_as_code, python_files("src"))
    assert [one for one in found if not one.startswith((CALLS_CHILDREN, WRITES_METHODS))] == []


def test_assertions_are_on():
    # Not by `assert __debug__`: where it is false, that line is not there either.
    if not __debug__:
        pytest.fail("assertions are off: unset PYTHONOPTIMIZE, leave out -O")
    assert assertions_are_on()


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal, os",
        "eval(text)",
        "exec(text)",
        "yaml.load(text, Loader=CLoader)",
    ],
)
def test_data_as_code_is_found(line):
    assert data_as_code(line)


def test_missing_assertions_are_found():
    assert not assertions_are_on("-O")


def test_harmless_code_is_accepted():
    assert not data_as_code("import msgspec\ncursor.execute(query)\nyaml.compose(text)")
