"""Findings: where they are placed, as programs see them, and how many are kept."""

import pytest

from tidewheel.core.graph.findings import (
    FINDINGS_MAX,
    Finding,
    Findings,
    Position,
    Severity,
    finding_document,
    finding_of,
)

PLACED = Finding(
    severity=Severity.ERROR,
    code="circle",
    message="tasks wait for each other",
    hint="remove an arrow",
    position=Position("flow.cylc", 7, 3),
)
UNPLACED = Finding(severity=Severity.NOTE, code="x", message="remarkable")


@pytest.mark.parametrize("folder", ["", "."])
def test_a_finding_of_the_folder_itself_stays_where_it_is(folder):
    assert PLACED.inside(folder) is PLACED


def test_a_finding_of_another_folder_names_it():
    assert str(PLACED.inside("stages/cal")).startswith("stages/cal/flow.cylc:7:3: error: tasks")
    assert str(UNPLACED.inside("stages/cal")) == "stages/cal: note: remarkable"


def test_what_is_not_known_of_a_finding_is_null_for_programs():
    assert finding_document(PLACED) == {
        "severity": "error",
        "code": "circle",
        "message": "tasks wait for each other",
        "hint": "remove an arrow",
        "file": "flow.cylc",
        "line": 7,
        "column": 3,
    }
    assert finding_document(UNPLACED) == {
        "severity": "note",
        "code": "x",
        "message": "remarkable",
        "hint": "",
        "file": None,
        "line": None,
        "column": None,
    }


@pytest.mark.parametrize("finding", [PLACED, UNPLACED])
def test_a_finding_that_a_server_told_is_the_same_here(finding):
    assert finding_of(finding_document(finding)) == finding


def test_a_server_may_leave_out_what_is_not_known():
    said = {"severity": "note", "code": "x", "message": "remarkable"}
    assert finding_of(said) == UNPLACED


def test_findings_beyond_a_thousand_are_only_counted():
    findings = Findings()
    for number in range(FINDINGS_MAX + 3):
        findings.warning("x", f"number {number}")
    assert [one.message for one in findings] == [f"number {n}" for n in range(1000)]
    assert findings.left_out == 3
