"""Prints findings for people: the place, what is wrong, the line itself, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import json_line, note, plural, safe
from tidewheel.cli.palette import PALETTE
from tidewheel.core.graph.findings import (
    NOWHERE,
    Finding,
    Findings,
    Position,
    Severity,
    finding_document,
)
from tidewheel.core.queue.status import Status

if TYPE_CHECKING:
    from tidewheel.core.graph.graph import Graph
    from tidewheel.formats.flow_cylc.source_text import SourceText

SHOWN_BYTES_MAX = 4_000_000  # of a file whose lines are shown
SHOWN_LENGTH_MAX = 160  # of a line
UNPACKED = "tidewheel-definition-"  # a folder for a registered definition while it is read

COLOURS = {
    Severity.ERROR: PALETTE[Status.FAILED].colour,
    Severity.WARNING: PALETTE[Status.CANCELLING].colour,
    Severity.NOTE: PALETTE[Status.READY].colour,
}


def check_places_here(graph: Graph, findings: Findings) -> None:
    """Adds a finding for each platform, host or batch system that is not known here.

    Those that are known are described in this state directory.
    """
    from tidewheel.config import home_directory
    from tidewheel.platforms import read_platforms
    from tidewheel.scheduler.placement import check_places

    check_places(graph, read_platforms(home_directory()), findings)


def judged(findings: Findings, *, strict: bool) -> list[Finding]:
    """Returns the findings in their order; with ``strict``, warnings have become errors."""
    if not strict:
        return findings.sorted()
    stricter = (
        replace(one, severity=Severity.ERROR) if one.severity is Severity.WARNING else one
        for one in findings.sorted()
    )
    return sorted(stricter, key=lambda one: (one.severity, one.position, one.message))


def show_findings(
    findings: Sequence[Finding], source: SourceText | None, tell: Callable[[str], None]
) -> None:
    """Calls ``tell`` with the lines of each finding, among them the source line that it is
    about, if known; its file is named as one can open it from here."""
    read = cache(_read)  # each file once, when one of its lines is first shown
    for finding in findings:
        position, path = finding.position, None
        if source is not None and position.file in source.files:
            path = source.folder / position.file
            if not source.folder.name.startswith(UNPACKED):
                position = position._replace(file=_from_here(path))
        place = f"{safe(position)}: " if position != NOWHERE else ""
        word = click.style(finding.severity.word, fg=COLOURS[finding.severity], bold=True)
        tell(f"{place}{word}: {safe(finding.message)}")
        for line in _excerpt(position, read(path)) if path is not None else ():
            tell(line)
        if finding.hint:
            tell(f"    {safe(finding.hint)}")


def note_findings(findings: Findings, source: SourceText | None) -> None:
    """Prints errors and warnings to standard error; mere notes are left to `validate`."""
    worse = [one for one in findings.sorted() if one.severity is not Severity.NOTE]
    show_findings(worse, source, note)


def counted(findings: Iterable[Finding], severities: Iterable[Severity]) -> str:
    """Returns how many findings there are of each severity, such as `2 errors, 1 warning`."""
    counts = Counter(one.severity for one in findings)
    return ", ".join(plural(counts[one], one.word) for one in severities if counts[one])


def refuse(
    findings: Findings, source: SourceText | None, *, as_json: bool, left: str = ""
) -> int:
    """Prints the errors of a definition and `left`, what was therefore not done; returns the
    exit status of a refusal."""
    errors = [one for one in findings.sorted() if one.severity is Severity.ERROR]
    if as_json:
        found = [finding_document(one) for one in errors]
        error = {
            "code": "definition",
            "message": f"the definition has {counted(errors, Severity)}",
            "advice": "Correct these errors and repeat the command",
            "findings": found,
        }
        note(json_line({"error": error}))
    else:
        show_findings(errors, source, note)
        if left:
            note(left)
    return ExitCode.REFUSED


def _excerpt(position: Position, lines: Mapping[int, str]) -> Iterable[str]:
    """Yields the line and, under its column, a `^`; nothing if the line is not known."""
    line = lines.get(position.line, "")
    before = line[: max(position.column - 1, 0)]
    if not line.strip() or len(before) > SHOWN_LENGTH_MAX:
        return
    indent = len(line) - len(line.lstrip())
    yield "  | " + safe(line.strip().replace("\t", " ")[:SHOWN_LENGTH_MAX])
    if position.column and position.column <= len(line):
        # What is spelled out before the column moves it.
        width = len(safe(before[indent:].replace("\t", " ")))
        yield "  | " + " " * width + click.style("^", fg=COLOURS[Severity.ERROR])


def _from_here(path: Path) -> str:
    """Returns a path from the current directory, or the whole of it if it is not below that."""
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def _read(path: Path) -> Mapping[int, str]:
    try:
        with path.open("rb") as file:
            raw = file.read(SHOWN_BYTES_MAX)
    except OSError:
        return {}
    if b"\0" in raw:
        return {}  # no text: there is nothing to read in it
    text = raw.decode("utf-8-sig", "replace")
    return dict(enumerate(text.replace("\r\n", "\n").split("\n"), 1))
