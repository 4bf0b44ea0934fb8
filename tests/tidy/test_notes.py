"""Style 9: what is left to do has an issue, and what is broken is mended."""

import re

import pytest

from tests.tidy.repository import all_files, broken, code_files

# Written in two pieces, or this file would break its own rule.
FIX = "FIX" + "ME"
DO = "TO" + "DO"
BROKEN = re.compile(rf"\b{FIX}\b")
UNPLANNED = re.compile(rf"\b{DO}\b(?!.*#\d)")


def open_notes(text: str) -> list[str]:
    return [
        f"line {number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        if BROKEN.search(line) or UNPLANNED.search(line)
    ]


def test_every_open_note_has_its_issue():
    assert broken(open_notes, code_files()) == []


@pytest.mark.parametrize("note", [f"# {FIX} it leaks, #7", f"x = 1  # {DO} later"])
def test_an_open_note_is_found(note):
    assert open_notes(note)


def test_a_note_with_its_issue_is_accepted():
    assert not open_notes(f"# {DO} #12: batches")


CONFLICT = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


def conflicts(text: str) -> list[str]:
    return [f"holds {match[0]!r}, left by a merge" for match in CONFLICT.finditer(text)]


def test_no_merge_has_left_its_marks():
    assert broken(conflicts, all_files()) == []


def test_the_marks_of_a_merge_are_found():
    assert conflicts("a\n" + "<" * 7 + " HEAD\nb\n")
