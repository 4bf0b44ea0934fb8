"""What users read is free of the words that docs/GLOSSARY.md says we do not use.

Looked at are the texts of the program, the help of its commands, the web page, and the
documents; decisions keep the words of their day.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.tidy.repository import ROOT, python_files

TITLE = "## Words that we do not use\n"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
COMMENTS = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
LABEL_BEGINS, LABEL_ENDS = "[\"'`*>“]", "[\"'`*<”]"


@cache
def dropped() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Each phrase of the table, as a pattern, with what to write instead."""
    rows = ROW.findall(_section(_glossary()))[1:]  # below the head
    return tuple(
        (_pattern(phrase), f"{phrase!r}: write {instead}")
        for phrases, instead in rows
        for phrase in phrases.split(", ")
    )


def _pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, phrase.split()))
    if phrase[0].isupper():
        return re.compile(f"(?<={LABEL_BEGINS}){words}(?={LABEL_ENDS})")
    return re.compile(rf"(?<!\bthere )\b{words}\b", re.IGNORECASE)


def _glossary() -> str:
    return (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")


def _section(text: str) -> str:
    return text.partition(TITLE)[2].partition("\n## ")[0]


def findings(text: str) -> Iterator[str]:
    for pattern, advice in dropped():
        for _ in pattern.finditer(text):
            yield advice


def python_texts(source: str) -> Iterator[str]:
    """The texts of a module, as labels in quotes; of docstrings only those of commands."""
    tree = ast.parse(source)
    docstrings = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if isinstance(one, ast.FunctionDef) and _is_command(one):
                continue
            if one.body and isinstance(one.body[0], ast.Expr):
                docstrings.add(one.body[0].value)
    for one in ast.walk(tree):
        is_text = isinstance(one, ast.Constant) and isinstance(one.value, str)
        if is_text and " " in one.value and one not in docstrings:  # else: a name
            yield f'"{one.value}"'


def _is_command(function: ast.FunctionDef) -> bool:
    return any("command" in ast.unparse(one) for one in function.decorator_list)


def page_text(source: str) -> str:
    return COMMENTS.sub("", source)


def document_text(text: str) -> str:
    """A document without the table itself."""
    return text.replace(_section(text), "")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _in_documents() -> Iterator[tuple[Path, str]]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if "decisions" not in path.parts:
            yield path, document_text(_read(path))


def _in_page() -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / "web" / "src").rglob("*.ts*")):
        if ".test." not in path.name:
            yield path, page_text(_read(path))


def _unclean(texts: Iterator[tuple[Path, str]]) -> list[str]:
    found = []
    for path, text in texts:
        seen = list(findings(text))
        if seen:
            advice = "; ".join(sorted(set(seen)))
            found.append(f"{path.relative_to(ROOT)}: {advice} ({len(seen)} times)")
    return found


def test_no_text_of_the_program_has_a_dropped_word():
    texts = ((path, "\n".join(python_texts(_read(path)))) for path in python_files("src"))
    assert _unclean(texts) == []


def test_no_text_of_the_page_has_a_dropped_word():
    assert _unclean(_in_page()) == []


def test_no_document_has_a_dropped_word():
    assert _unclean(_in_documents()) == []


def test_a_dropped_word_is_found_where_users_read_it_and_nowhere_else():
    source = '''
def helper():
    """Whoever reads this is a programmer."""  # so is somebody here

@click.command
def run():
    """Carry on a run."""
    say(f"{name} failed (needs somebody)")
'''
    seen = [one for text in python_texts(source) for one in findings(text)]
    assert len(seen) == 3 and "'carry on': write resume (a run), continue" in seen
    assert list(findings(page_text("// nobody drives\n<Button>Leave it</Button>")))
    assert not list(findings(page_text("/* mend */ <p>Leave it out</p>")))
    assert not list(findings("there is no list of them"))
    assert list(findings("'x' is no list"))
