"""A backslash at the end of a line joins the next one to it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.source_text import SourceText

# A backslash, then blanks, then the end: it looks like a continuation and is none.
_BLANKS_AFTER = re.compile(r"[^#]*\\\s+\Z")


def join_continued(source: SourceText, findings: Findings) -> SourceText:
    """Joined, without trailing white space; a joined line is where its first part is."""
    text = "\n".join(source.lines)
    if "\\" not in text:
        stripped = [line.rstrip() for line in source.lines]
        return _with(source, stripped, source.origins)
    lines: list[str] = []
    origins: list[int] = []
    pending: list[str] = []
    for index, line in enumerate(source.lines):
        if not pending:
            origins.append(source.origins[index])
        if line.endswith("\\"):
            _check_comment(source, index, bool(pending), findings)
            pending.append(line[:-1])
            continue
        if "\\" in line and _BLANKS_AFTER.match(line):
            findings.error(
                "blanks-after-continuation",
                "there is white space after the backslash at the end of this line",
                "remove it: a backslash continues a line only as its last character",
                source.position(index, len(line.rstrip()) + 1),
            )
            pending.append(line.rstrip()[:-1])
            continue
        lines.append("".join([*pending, line]).rstrip() if pending else line.rstrip())
        pending.clear()
    if pending:
        lines.append("".join(pending).rstrip())
    return _with(source, lines, origins)


def _check_comment(source: SourceText, index: int, continued: bool, findings: Findings) -> None:
    """A comment may end in a backslash too, and then it swallows the next line."""
    if continued or not source.lines[index].lstrip().startswith("#"):
        return
    if index + 1 < len(source.lines) and source.lines[index + 1].lstrip()[:1] not in ("", "#"):
        findings.warning(
            "continued-comment",
            "this comment ends in a backslash, so the next line is part of the comment",
            "remove the backslash",
            source.position(index),
        )


def _with(source: SourceText, lines: list[str], origins: Sequence[int]) -> SourceText:
    return SourceText(source.folder, source.files, lines, origins, source.templated)
