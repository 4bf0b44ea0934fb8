"""Findings say what is wrong or remarkable in a definition: collected, placed and sorted.

A reader of a definition goes on after a mistake and reports the next one too, so that a person
mends a file once and not line by line.

Many of them suggest the name that was probably meant. There are two measures: `nearest` finds
something to offer for a word that is wrong anyway; `Lookalikes` and `nearly_said` judge whether
it is so like another that it must be a slip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from difflib import get_close_matches
from enum import IntEnum
from itertools import islice

from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass, pattern

SHOWN_MAX = 20  # findings in the message of an exception
FINDINGS_MAX = 1000  # of one definition; what follows is counted only
WORKER_NEEDS = "worker-needs"  # the code of findings about what a stage needs of its worker


class Severity(IntEnum):
    """Says how bad a finding is; in a report the worst come first."""

    ERROR = 0
    WARNING = 1
    NOTE = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Position(NamedTuple):
    """Holds a place in a source file: lines and columns count from 1, 0 is unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


NOWHERE = Position("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Tells one mistake or remark: what was seen, where, and what to do."""

    severity: Severity
    code: str
    message: str
    hint: str = ""
    position: Position = NOWHERE

    def inside(self, folder: str) -> Finding:
        """Returns the finding with its file placed in a folder; "" and "." change nothing."""
        if not folder or folder == ".":
            return self
        file = f"{folder}/{self.position.file}" if self.position.file else folder
        return replace(self, position=self.position._replace(file=file))

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position != NOWHERE else ""
        advice = f"\n    {self.hint}" if self.hint else ""
        return f"{place}{self.severity.word}: {self.message}{advice}"


def finding_document(finding: Finding) -> dict[str, str | int | None]:
    """Returns a finding as JSON has it, for programs; what is not known is null."""
    position = finding.position
    return {
        "severity": finding.severity.word,
        "code": finding.code,
        "message": finding.message,
        "hint": finding.hint,
        "file": position.file or None,
        "line": position.line or None,
        "column": position.column or None,
    }


def finding_of(said: Mapping[str, object]) -> Finding:
    """Returns the finding that a document made by `finding_document` describes."""
    line, column = (one if isinstance(one, int) else 0 for one in map(said.get, _PLACE))
    return Finding(
        severity=Severity[str(said["severity"]).upper()],
        code=str(said["code"]),
        message=str(said["message"]),
        hint=str(said.get("hint") or ""),
        position=Position(str(said.get("file") or ""), line, column),
    )


_PLACE = ("line", "column")


@dataclass(slots=True)
class Findings:
    """Collects findings while a definition is read; the same one is kept once."""

    left_out: int = 0
    _seen: dict[Finding, None] = field(default_factory=dict)

    def error(
        self, code: str, message: str, hint: str = "", position: Position = NOWHERE
    ) -> None:
        self._add(Severity.ERROR, code, message, hint, position)

    def warning(
        self, code: str, message: str, hint: str = "", position: Position = NOWHERE
    ) -> None:
        self._add(Severity.WARNING, code, message, hint, position)

    def note(
        self, code: str, message: str, hint: str = "", position: Position = NOWHERE
    ) -> None:
        self._add(Severity.NOTE, code, message, hint, position)

    def add(self, finding: Finding) -> None:
        if self.is_full:
            self.left_out += 1
        else:
            self._seen.setdefault(finding)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._seen)

    @property
    def has_errors(self) -> bool:
        return self.error_count > 0

    @property
    def error_count(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self._seen)

    @property
    def is_full(self) -> bool:
        """Says whether no more findings are kept: further ones would only be counted."""
        return len(self._seen) >= FINDINGS_MAX

    def sorted(self) -> list[Finding]:
        """Returns the findings, errors first, each kind in the order of the source."""
        return sorted(self._seen, key=lambda one: (one.severity, one.position, one.message))

    def _add(
        self, severity: Severity, code: str, message: str, hint: str, position: Position
    ) -> None:
        self.add(
            Finding(severity=severity, code=code, message=message, hint=hint, position=position)
        )


class InvalidDefinition(Refused):
    """A definition has mistakes; it carries all of them, each with file and line."""

    code = "invalid_definition"
    http_status = 422
    subject = "workflow"

    def __init__(self, workflow: str, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        errors = [str(one) for one in self.findings if one.severity is Severity.ERROR]
        more = [f"… and {len(errors) - SHOWN_MAX} more"] if len(errors) > SHOWN_MAX else []
        listed = "\n".join([*errors[:SHOWN_MAX], *more])
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__(f"{self.subject} {workflow!r} has {count}:\n{listed}")


CANDIDATES_MAX = 2_000  # compared with one word: a hint must not cost more than the work
LENGTH_DIFFERENCE_MAX = 3
LIKENESS_MIN = 0.6
LOOKALIKE_LENGTH_MIN = 4  # among shorter words everything is like everything

# What numbers things that belong together: `model_1`, `model_2`; `member_a`, `member_b`.
_NUMBERING = pattern(r"\d+|(?<![^\W_])[^\W_](?![^\W_])")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Returns the known name most like this word, or None if none is like it."""
    length = len(word)
    candidates = islice(
        (name for name in known if abs(len(name) - length) <= LENGTH_DIFFERENCE_MAX),
        CANDIDATES_MAX,
    )
    found = get_close_matches(word, list(candidates), n=1, cutoff=LIKENESS_MIN)
    return found[0] if found else None


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Returns `did you mean …?` with the nearest known name; ``otherwise`` if there is none."""
    near = nearest(word, known)
    return otherwise if near is None else f"did you mean {near!r}?"


def nearly_said(text: str, known: Iterable[str]) -> str | None:
    """Returns the known text that is a letter, capitals or spaces off this one, or None."""
    by_words = {" ".join(one.split()).casefold(): one for one in known}
    words = " ".join(text.split()).casefold()
    near = words if words in by_words else Lookalikes(by_words).of(words)
    return None if near is None else by_words[near]


class Lookalikes:
    """Finds the known word from which another word is one letter off.

    One letter too many, too few, another or in its neighbour's place: all of these are alike
    once a letter is left out of either. Words that differ only in their numbering differ on
    purpose.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._by_part: dict[str, list[str]] = {}
        for word in known:
            for part in _parts(word):
                self._by_part.setdefault(part, []).append(word)

    def of(self, word: str) -> str | None:
        """Returns the known word that this one must be a slip of, or None."""
        unnumbered = _NUMBERING.sub("", word)
        for part in _parts(word):
            for found in self._by_part.get(part, ()):
                if found != word and _NUMBERING.sub("", found) != unnumbered:
                    return found
        return None


def _parts(word: str) -> Iterator[str]:
    """Yields the word, and unless it is short, the word without each of its letters."""
    if len(word) < LOOKALIKE_LENGTH_MIN:
        return
    yield word
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
