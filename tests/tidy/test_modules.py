"""Style 1 and 2: a module is named after its subject and says it in its first line."""

import ast
from pathlib import PurePath

import pytest

from tests.tidy.repository import ROOT, broken, parsed, python_files

VAGUE = {"base", "common", "helpers", "utils"}


def is_vague(path: PurePath) -> bool:
    return not VAGUE.isdisjoint((*path.parent.parts, path.stem))


def missing_first_line(text: str) -> list[str]:
    docstring = ast.get_docstring(parsed(text))
    if not docstring:
        return ["has no docstring"]
    first = docstring.splitlines()[0]
    return [] if first.endswith(".") else [f"first line is no sentence: {first!r}"]


def test_no_module_has_a_name_that_fits_anything():
    files = python_files("src", "tests", "bench", "examples")
    assert [path for path in files if is_vague(path.relative_to(ROOT))] == []


def test_every_module_says_what_it_is_for():
    files = python_files("src", "tests", "bench", "examples")
    assert broken(missing_first_line, files) == []


@pytest.mark.parametrize("path", ["store/utils.py", "common/lease.py"])
def test_a_vague_name_is_found(path):
    assert is_vague(PurePath(path))


@pytest.mark.parametrize("text", ["x = 1\n", '"""No full stop\n\nMore."""\n', ""])
def test_a_missing_first_line_is_found(text):
    assert missing_first_line(text)


def test_a_good_module_is_accepted():
    assert not is_vague(PurePath("store/database.py"))
    assert not missing_first_line('"""What it is for."""\n')
