"""Which requirements of docs/requirements.md the last `make test` did not prove.

A requirement is proven when at least one test that carries its number passed and none failed.
The numbers travel from `@pytest.mark.req("R002-13")` through the junit reports in build/junit.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "docs" / "requirements.md"
RESULTS = ROOT / "build" / "junit"

# | R002-87 | title | server issue |     the last column is empty for what is due now
ROW = re.compile(r"^\| (R\d{3}-\d+) \| ([^|]+?) \| ([^|]*?) *\|$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One row of docs/requirements.md."""

    number: str
    title: str
    later: str  # what it waits for; empty when it is due now


def main() -> int:
    """Print the gaps; exit 1 if one of them is due, or a test carries an unknown number."""
    requirements = read_requirements(REQUIREMENTS.read_text(encoding="utf-8"))
    reports = sorted(RESULTS.glob("*.xml"))
    if not reports:
        print("There are no test results: run `make test` first.", file=sys.stderr)
        return 1
    passed, failed = read_results(path.read_text(encoding="utf-8") for path in reports)

    known = {requirement.number for requirement in requirements}
    gaps = [row for row in requirements if row.number not in passed - failed]
    due = [row for row in gaps if not row.later]
    unknown = sorted((passed | failed) - known)
    for row in gaps:
        state = "failed" if row.number in failed else (row.later or "no passing test")
        print(f"{row.number:<8} {row.title} ({state})")
    for number in unknown:
        print(f"{number:<8} is carried by a test and stands in no row of {REQUIREMENTS.name}")
    print(
        f"{len(requirements) - len(gaps)} of {len(requirements)} requirements proven, "
        f"{len(due)} missing, {len(gaps) - len(due)} for later"
    )
    return 1 if due or unknown else 0


def read_requirements(text: str) -> list[Requirement]:
    """Every row, in the order of the document."""
    return [
        Requirement(number=number, title=title, later=later)
        for number, title, later in ROW.findall(text)
    ]


def read_results(reports: Iterable[str]) -> tuple[set[str], set[str]]:
    """The numbers that passing tests carry, and those that failing tests carry."""
    passed: set[str] = set()
    failed: set[str] = set()
    for report in reports:
        for case in ET.fromstring(report).iter("testcase"):
            numbers = {
                element.attrib["value"]
                for element in case.iterfind("properties/property[@name='req']")
            }
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                failed |= numbers
            elif "skipped" not in kinds:
                passed |= numbers
    return passed, failed


if __name__ == "__main__":
    sys.exit(main())
