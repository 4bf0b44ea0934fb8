"""The glossary's table of statuses is the one that the program follows."""

import re
from itertools import product

from tests.tidy.repository import ROOT
from tidewheel.core.queue.status import FINAL, Status, legal_steps

HEADER = "| from | signal | to | who |\n"
STEP = re.compile(r"^\| ([a-z_, ]+) \| ([a-z_, ]+) \| ([a-z_]+) \| [^|]+ \|$", re.MULTILINE)


def steps_in(text: str) -> set[tuple[str, str, str]]:
    """Every (from, signal, to); a cell may hold several words for the same row."""
    return {
        (status, signal, following)
        for statuses, signals, following in STEP.findall(text.partition(HEADER)[2])
        for status, signal in product(statuses.split(", "), signals.split(", "))
    }


def glossary() -> str:
    return (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")


def test_the_glossary_shows_exactly_the_legal_steps():
    assert steps_in(glossary()) == legal_steps()


def test_every_status_is_explained():
    text = glossary()
    assert [status for status in Status if f"| **{status}** |" not in text] == []
    assert {status for status in Status if f"| **{status}** | final" in text} == FINAL


def test_a_wrong_step_in_the_glossary_is_found():
    planted = glossary() + "\n| succeeded | retry | ready | nobody |\n"
    assert ("succeeded", "retry", "ready") in steps_in(planted) - legal_steps()
