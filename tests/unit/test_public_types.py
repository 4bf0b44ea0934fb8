"""Types as users have them: mypy and pyright know what a program does, and find its mistakes.

The programs in `typed_programs` are judged from outside, by the installed package alone. A line
that ends in `# is TYPE` reveals that type, one that ends in `# mistake: …` is an error, and no
other line is one.
"""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyright
import pytest

import tidewheel

PROGRAMS = Path(__file__).with_name("typed_programs")
NODE = shutil.which("node")
STRICT = {
    "typeCheckingMode": "strict",
    # `a >> b` is a statement of a workflow.
    "reportUnusedExpression": "none",
}
# Module names and the words in which one checker tells a type; the other's are the test's.
_SPELLINGS = (
    (re.compile(r"\b(?:tidewheel|typing)(?:\.\w+)+\.(?=\w)"), ""),
    (re.compile(r"\btyping\."), ""),
    (re.compile(r"^def (\(.*\)) -> "), r"\1 -> "),
    (re.compile(r"^def (\(.*\))$"), r"\1 -> None"),
    (re.compile(r"FunctionTask\[\[(.*)\], (.*)\]$"), r"FunctionTask[(\1), \2]"),
    (re.compile(r": int =(?! )"), ": int = 1"),
    (re.compile(r"\bCoroutineType\b"), "Coroutine"),
)


def spelled(kind: str) -> str:
    for pattern, word in _SPELLINGS:
        kind = pattern.sub(word, kind)
    return kind


def wanted() -> tuple[dict[tuple[str, int], str], set[tuple[str, int]]]:
    """What the programs say themselves: types by line, and lines with mistakes."""
    kinds, mistakes = {}, set()
    for path in PROGRAMS.glob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if found := re.search(r"  # is (.*)$", line):
                kinds[path.name, number] = found[1]
            if "  # mistake: " in line:
                mistakes.add((path.name, number))
    return kinds, mistakes


def copied(tmp_path: Path) -> Path:
    """A folder of a user's own, with the programs."""
    return Path(shutil.copytree(PROGRAMS, tmp_path / "theirs"))


def by_mypy(folder: Path) -> list[tuple[str, int, str, str]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-pretty", "."]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert said.stderr == ""
    lines = (re.match(r"(\w+\.py):(\d+): (\w+): (.*)", one) for one in said.stdout.splitlines())
    return [(one[1], int(one[2]), one[3], one[4]) for one in lines if one]


def by_pyright(folder: Path) -> list[tuple[str, int, str, str]]:
    assert NODE is not None
    (folder / "pyrightconfig.json").write_text(json.dumps(STRICT))
    # The wheel has pyright itself; its command would look for a newer one elsewhere.
    program = Path(pyright.__file__).parent / "dist" / "index.js"
    command = [NODE, program, "--outputjson", "--pythonpath", sys.executable]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return [
        (
            Path(one["file"]).name,
            one["range"]["start"]["line"] + 1,
            one["severity"],
            one["message"],
        )
        for one in json.loads(said.stdout)["generalDiagnostics"]
    ]


needs_node = pytest.mark.skipif(NODE is None, reason="pyright needs Node, which is not here")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("checker", [by_mypy, pytest.param(by_pyright, marks=needs_node)])
def test_a_type_checker_knows_the_types_and_finds_the_mistakes_of_a_users_program(
    tmp_path, checker
):
    kinds, mistakes = wanted()
    revealed, errors = {}, defaultdict(list)
    for file, line, severity, text in checker(copied(tmp_path)):
        if found := re.search(r'(?:Revealed type is|Type of ".*" is) "(.*)"$', text):
            revealed[file, line] = spelled(found[1])
        elif severity in ("error", "warning"):
            errors[file, line].append(text)
    assert revealed == kinds
    assert set(errors) == mistakes, {where: errors[where] for where in set(errors) - mistakes}


def test_the_package_says_that_it_has_types():
    assert Path(tidewheel.__file__).with_name("py.typed").exists()
