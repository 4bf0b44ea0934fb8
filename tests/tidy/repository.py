"""The files that the tidy rules look at.

A rule is a function from one file's text to its findings, so that a test can plant a bad
example; `broken` runs a rule over files and says where.
"""

from __future__ import annotations

import ast
import gc
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tidewheel"
CODE_SUFFIXES = {".py", ".sql", ".toml", ".sh", ".ts", ".tsx"}
CODE_NAMES = {"Makefile", "run", ".importlinter"}

# What .gitignore names. The tree is walked rather than asked of git: a source archive has none.
GENERATED = {
    ".git",
    ".venv",
    "build",
    "dist",
    "node_modules",
    "built_page",
    "__pycache__",
    ".hypothesis",
    ".import_linter_cache",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "manual_pages",
}

Rule = Callable[[str], Iterable[str]]


def all_files() -> Iterator[Path]:
    """Every file that a commit could hold; in a linked worktree .git is a file."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - GENERATED)
        yield from (Path(folder, name) for name in sorted(set(names) - GENERATED))


def code_files() -> Iterator[Path]:
    """Files in which a comment is a programmer's note."""
    for path in all_files():
        if path.suffix in CODE_SUFFIXES or path.name in CODE_NAMES:
            yield path


def python_files(*folders: str) -> Iterator[Path]:
    """The Python files below these folders of the repository."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def broken(rule: Rule, files: Iterable[Path]) -> list[str]:
    """Where a rule is broken, as `path: finding`."""
    return [
        f"{path.relative_to(ROOT)}: {finding}"
        for path in files
        for finding in rule(read_text(path))
    ]


def read_text(path: Path) -> str:
    """A file's text; of a picture or another binary file, nothing."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@cache
def parsed(text: str) -> ast.Module:
    """The tree of a Python file, made once for all rules; who asks leaves it as it is.

    The collector of garbage would walk through all trees again and again while they are made.
    """
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.freeze()
        gc.enable()
