"""Compares two definitions line by line, in bounded time.

The lines of a file are compared by the algorithm of Myers: the shortest way of deletions and
insertions from one text to the other. Its cost grows with the square of that way, so it is
given up beyond ``STEPS_MAX``: then what lies between the lines that both texts begin and end
with is told as removed and added. No file can make this slow, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidewheel.core.operator.definition import FLOW_CYLC, SIP, StoredDefinition, StoredFile
from tidewheel.ports.runs import Document

FILE_BYTES_MAX = 1024 * 1024  # of a file that is compared by its lines
STEPS_MAX = 600  # deletions and insertions that are looked for
CONTEXT = 3  # lines around a change
LINES_MAX = 20_000  # that one answer has, of all files

SAME, ADDED, REMOVED, CHANGED = "same", "added", "removed", "changed"
Line = tuple[str, int, int]  # what it is, and its place in the old and in the new text


def definitions_diff(old: StoredDefinition, new: StoredDefinition) -> Document:
    """Returns the files in which two definitions differ, each with its lines."""
    return {"files": _files(old, new)}


def _files(old: StoredDefinition, new: StoredDefinition) -> list[dict[str, Any]]:
    before = {file.path: file for file in old.files}
    after = {file.path: file for file in new.files}
    told: list[dict[str, Any]] = []
    left = LINES_MAX
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path), after.get(path)
        if was == now:
            continue
        hunks = _hunks(was, now)
        count = sum(map(len, hunks or ()))
        if count > left:
            hunks, count = None, 0
        left -= count
        change = ADDED if was is None else REMOVED if now is None else CHANGED
        # A name need not be Unicode, JSON is.
        shown = path.encode(errors="replace").decode()
        one: dict[str, Any] = {"path": shown, "change": change, "hunks": hunks}
        if was is not None and now is not None and was.executable != now.executable:
            one["executable"] = now.executable
        told.append(one)
    return told


RENDERED = ""  # the path of the text that a run reads, after its templates


def run_definitions_diff(old: StoredDefinition, new: StoredDefinition) -> Document:
    """Returns how the definition of a run differs from another: its files, and first of all,
    where templates made other changes than files show, the text that the run reads."""
    told = _files(old, new)
    if old.kind == SIP or old.text == new.text:  # that of stages is the name of a file
        return {"files": told}
    hunks = _hunks(*(StoredFile(RENDERED, one.text.encode()) for one in (old, new)))
    main = next((one for one in told if one["path"] == FLOW_CYLC), None)
    if main is None or _changed(main["hunks"]) != _changed(hunks):
        told = [{"path": RENDERED, "change": CHANGED, "hunks": hunks}, *told]
    return {"files": told}


def _changed(hunks: list[list[Document]] | None) -> list[tuple[object, object]] | None:
    """Returns the lines that were removed and added, in order."""
    if hunks is None:
        return None
    lines = [line for hunk in hunks for line in hunk if line["kind"] != SAME]
    return [(line["kind"], line["text"]) for line in lines]


def _hunks(was: StoredFile | None, now: StoredFile | None) -> list[list[Document]] | None:
    """Returns the changed lines of a file with those around them; None if one of the two is no
    text, or too long."""
    old, new = _lines(was), _lines(now)
    if old is None or new is None:
        return None
    lines = list(compared(old, new))
    near = [place for place, (kind, _, _) in enumerate(lines) if kind != SAME]
    hunks: list[list[Document]] = []
    end = 0
    for place in near:
        start = max(place - CONTEXT, end)
        if not hunks or start > end:
            hunks.append([])
        end_now = min(place + CONTEXT + 1, len(lines))
        hunks[-1] += [_told(one, old, new) for one in lines[start:end_now]]
        end = max(end, end_now)
    return hunks


def _told(line: Line, old: Sequence[str], new: Sequence[str]) -> Document:
    kind, before, after = line
    return {
        "kind": kind,
        "old": None if kind == ADDED else before + 1,
        "new": None if kind == REMOVED else after + 1,
        "text": new[after] if kind == ADDED else old[before],
    }


def _lines(file: StoredFile | None) -> list[str] | None:
    if file is None:
        return []
    if len(file.content) > FILE_BYTES_MAX or b"\0" in file.content:
        return None
    try:
        return file.content.decode().split("\n")
    except UnicodeDecodeError:
        return None


def compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    """Yields every line of both texts in order: same, removed or added."""
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    for place in range(begin):
        yield SAME, place, place
    middle = old[begin : len(old) - end], new[begin : len(new) - end]
    for kind, before, after in _shortest(*middle) or _replaced(*middle):
        yield kind, begin + before, begin + after
    for place in range(end, 0, -1):
        yield SAME, len(old) - place, len(new) - place


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    gone = [(REMOVED, place, 0) for place in range(len(old))]
    return gone + [(ADDED, len(old), place) for place in range(len(new))]


def _shortest(old: Sequence[str], new: Sequence[str]) -> list[Line] | None:
    """Returns the shortest way from one text to the other; None if it has too many steps.

    ``furthest[k]`` is how far into the old text the best way of so many steps comes on the
    diagonal k, that is where k more lines of the old text than of the new one are behind.
    """
    furthest, ways = {1: 0}, []
    for steps in range(min(STEPS_MAX, len(old) + len(new)) + 1):
        ways.append(dict(furthest))
        for k in range(-steps, steps + 1, 2):
            goes_down = k == -steps or (
                k != steps and furthest.get(k - 1, -1) < furthest.get(k + 1, -1)
            )
            x = furthest[k + 1] if goes_down else furthest[k - 1] + 1
            while x < len(old) and x - k < len(new) and old[x] == new[x - k]:
                x += 1
            furthest[k] = x
            if x >= len(old) and x - k >= len(new):
                return _walked_back(ways, len(old), len(new))
    return None


def _walked_back(ways: Sequence[dict[int, int]], x: int, y: int) -> list[Line]:
    lines: list[Line] = []
    for steps in range(len(ways) - 1, -1, -1):
        furthest, k = ways[steps], x - y
        goes_down = k == -steps or (
            k != steps and furthest.get(k - 1, -1) < furthest.get(k + 1, -1)
        )
        before_k = k + 1 if goes_down else k - 1
        before_x = furthest[before_k] if steps else 0
        before_y = before_x - before_k if steps else 0
        while x > before_x and y > before_y:
            x, y = x - 1, y - 1
            lines.append((SAME, x, y))
        if steps:
            x, y = before_x, before_y
            lines.append((ADDED, x, y) if goes_down else (REMOVED, x, y))
    return lines[::-1]
