"""Takes the text of recurrences apart: lists, exclusions, and the forms of ISO 8601.

A recurrence has up to three parts between slashes, in one of these forms (n, and often R with
it, may be left out; so may a start, which is then the initial point, and an end, which is then
the final point):

    Rn/start/interval     start/interval     interval     Rn//interval     R1     R1/start
    Rn/interval/end       interval/end       Rn/interval  Rn//end
    Rn/start/end

A start or end never begins with P, an interval always does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tidewheel.core.cycling.calendar import BadCycling

RECURRENCE_LENGTH_MAX = 10_000
RECURRENCES_MAX = 1000  # in one list, of recurrences or of exclusions
RECURRENCES_ACCEPTED = (
    "write R1, an interval (P1D), a repeating time (T00), or [R[n]/]start/interval, "
    "R[n]/interval/end or R[n]/start/end, where a start or end may be ^ or $"
)

_REPETITIONS = re.compile(r"R(\d{0,15})", re.ASCII)


class Kind(Enum):
    """Which way the points are counted."""

    FROM_START = "start and steps"
    TO_END = "steps back from the end"
    BETWEEN = "start and end"


# The parts in a row: R if it is written, P an interval, T a point, - nothing.
_FORMS: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "T": (Kind.FROM_START, ("start",)),
    "TP": (Kind.FROM_START, ("start", "interval")),
    "P": (Kind.FROM_START, ("interval",)),
    "PT": (Kind.TO_END, ("interval", "end")),
    "R": (Kind.FROM_START, ()),
    "R-": (Kind.FROM_START, ()),
    "RT": (Kind.FROM_START, ("start",)),
    "RTP": (Kind.FROM_START, ("start", "interval")),
    "R-P": (Kind.FROM_START, ("interval",)),
    "RP": (Kind.TO_END, ("interval",)),
    "RPT": (Kind.TO_END, ("interval", "end")),
    "R-T": (Kind.TO_END, ("end",)),
    "RTT": (Kind.BETWEEN, ("start", "end")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A recurrence in parts; an empty start or end stands for the context's."""

    text: str
    kind: Kind
    repetitions: int | None = None
    repeats: bool = True  # whether R was written
    start: str = ""
    interval: str | None = None
    end: str = ""


def split_recurrences(text: str) -> list[str]:
    """The recurrences of a heading: a list with commas, those in parentheses not counted."""
    if len(text) > RECURRENCE_LENGTH_MAX:
        raise BadCycling(
            f"{text[:50]!r}… is a recurrence of {len(text)} characters",
            f"write at most {RECURRENCE_LENGTH_MAX}",
        )
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "," and not depth:
            parts.append(text[start:index].strip())
            start = index + 1
    if depth:
        raise BadCycling(f"{text!r} has parentheses that do not match")
    parts.append(text[start:].strip())
    if "" in parts:
        raise BadCycling(f"{text!r} has an empty recurrence", RECURRENCES_ACCEPTED)
    if len(parts) > RECURRENCES_MAX:
        raise BadCycling(
            f"{len(parts)} recurrences in a list", f"write at most {RECURRENCES_MAX}"
        )
    return parts


def split_exclusions(text: str) -> tuple[str, list[str]]:
    """The recurrence itself, and what is excluded from it."""
    body, mark, rest = text.partition("!")
    if not mark:
        return body, []
    if "!" in rest:
        raise BadCycling(
            f"{text!r} has more than one '!'", "exclude several at once: !(T00,T06)"
        )
    if rest.startswith("(") and rest.endswith(")"):
        return body, split_recurrences(rest[1:-1])
    exclusions = split_recurrences(rest)
    if len(exclusions) > 1:
        raise BadCycling(
            f"{text!r} excludes a list without parentheses", "write it as !(T00,T06)"
        )
    return body, exclusions


def read_form(text: str) -> Form:
    """The parts of one recurrence without exclusions and blanks."""
    parts = text.split("/")
    repetitions, repeats = None, False
    if found := _REPETITIONS.fullmatch(parts[0]):
        repeats = True
        repetitions = int(found[1]) if found[1] else None
        parts = parts[1:]
    if len(parts) > 1 and parts[-1] == "":
        parts.pop()
    kinds = "".join("P" if part[:1] == "P" else "T" if part else "-" for part in parts)
    form = _FORMS.get(("R" if repeats else "") + kinds)
    if form is None or any(part.startswith("R") for part in parts):
        raise BadCycling(f"{text!r} is no recurrence", RECURRENCES_ACCEPTED)
    if repetitions == 0:
        raise BadCycling(f"{text!r} asks for no point at all", "write R1 for one")
    kind, names = form
    if not names and repetitions != 1:
        raise BadCycling(f"{text!r} says neither where nor how often", RECURRENCES_ACCEPTED)
    named = dict(zip(names, parts[-len(names) :], strict=True)) if names else {}
    return Form(
        text=text,
        kind=kind,
        repetitions=repetitions,
        repeats=repeats,
        start=named.get("start", ""),
        interval=named.get("interval"),
        end=named.get("end", ""),
    )
