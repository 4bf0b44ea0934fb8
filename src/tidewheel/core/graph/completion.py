"""Decides when an ended task is complete (SEMANTICS §3).

An unmarked task is judged by its end: it is complete when it succeeded and made at least one of
the custom outputs that the graph uses, if it uses any, or when it ended otherwise and the graph
uses that end. One `?` on any of its outputs, a `completion` setting or the policy puts it under
Cylc 8's rule: every output that is asked for without `?` is required. Either way the answer is
a list of alternatives, each a set of outputs that suffices.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product

from tidewheel.core.graph.definition import OutputMark
from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.graph.outputs import (
    ENDS,
    EXPIRED,
    FAILED,
    OPPOSITE,
    SHORT_FORMS,
    STANDARD,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
)
from tidewheel.lazy_dataclasses import dataclass, pattern

ALTERNATIVES_MAX = 256  # of one `completion`: more cannot be read by a person either
MARKED_KNOWN_MAX = 1_024  # ways in which the outputs of a task are marked
ALIKE_MAX = 20  # outputs and marks of a task; with more it is hardly like others

_WORD = pattern(r"\s*(?:(?P<sign>[()])|(?P<word>\w+)|(?P<wrong>\S))")


@dataclass(frozen=True, slots=True)
class Completion:
    """Says when a task is complete: as soon as it has made all outputs of one alternative."""

    alternatives: tuple[frozenset[str], ...]
    marked: bool

    def is_complete(self, made: Collection[str]) -> bool:
        outputs = frozenset(made)
        return any(alternative <= outputs for alternative in self.alternatives)

    @property
    def required(self) -> frozenset[str]:
        """Returns the outputs that every alternative needs."""
        return frozenset.intersection(*self.alternatives)

    def __str__(self) -> str:
        parts = [" and ".join(sorted(one)) for one in self.alternatives]
        if len(parts) > 1:
            parts = [f"({part})" if " and " in part else part for part in parts]
        return " or ".join(parts)


class BadCompletion(ValueError):
    """A `completion` that cannot be read; says what is accepted."""


@dataclass(slots=True)
class _Standing:
    """Holds what the graph says of one output: required, optional or both, and where."""

    required_at: Position | None = None
    optional_at: Position | None = None

    @property
    def optional(self) -> bool:
        return self.optional_at is not None


def completion_of(
    node: str,
    marks: Sequence[OutputMark],
    used: Collection[str],
    *,
    marked_by_policy: bool,
    findings: Findings,
) -> Completion:
    """Returns the completion that the graph asks of a task; `used` are outputs waited for."""
    reason = None
    for one in marks:
        if one.explicit and one.optional:
            reason = one
            break
    if reason is None and not marked_by_policy:
        make = _unmarked if len(used) <= ALIKE_MAX else _unmarked.__wrapped__
        return make(tuple(used))
    known = _sound(tuple([mark[1:4] for mark in marks])) if len(marks) <= ALIKE_MAX else None
    return known or _judged(node, marks, reason, findings)


@lru_cache(maxsize=MARKED_KNOWN_MAX)
def _unmarked(used: tuple[str, ...]) -> Completion:
    """Returns success with any of the custom outputs that are used, or another end that is."""
    customs = [frozenset({SUCCEEDED, one}) for one in used if one not in STANDARD]
    others = [frozenset({end}) for end in ENDS if end != SUCCEEDED and end in used]
    return Completion((*(customs or [frozenset({SUCCEEDED})]), *others), marked=False)


@lru_cache(maxsize=MARKED_KNOWN_MAX)
def _sound(marks: tuple[tuple[str, bool, bool], ...]) -> Completion | None:
    """Returns the completion of tasks that are marked so, each mark without its task and its
    place; None if there is something to be said of them. Many tasks are marked alike."""
    findings = Findings()
    judged = _judged("", [OutputMark("", *mark) for mark in marks], None, findings)
    return None if any(findings) else judged


def _judged(
    node: str, marks: Iterable[OutputMark], reason: OutputMark | None, findings: Findings
) -> Completion:
    standings = _standings(node, marks, findings)
    _check_opposites(node, standings, reason, findings)
    optional = frozenset(output for output, one in standings.items() if one.optional)
    return _marked(frozenset(standings) - optional, optional)


def _standings(
    node: str, marks: Iterable[OutputMark], findings: Findings
) -> Mapping[str, _Standing]:
    own: dict[str, _Standing] = {}
    inherited: dict[str, _Standing] = {}
    for mark in marks:
        standing = (inherited if mark.by_family else own).setdefault(mark.output, _Standing())
        if mark.optional:
            standing.optional_at = standing.optional_at or mark.position
        else:
            standing.required_at = standing.required_at or mark.position
    standings = {**inherited, **own}
    for output, standing in standings.items():
        if standing.required_at is not None and standing.optional_at is not None:
            findings.error(
                "required-and-optional",
                f"{node}:{output} is required here and optional at {standing.optional_at}",
                f"write '?' (Python: .optional) after every {node}:{output}, or after none",
                standing.required_at,
            )
        elif standing.required_at is not None and output in (EXPIRED, SUBMIT_FAILED):
            findings.error(
                "must-be-optional",
                f"{node}:{output} cannot be required: it does not happen when all goes well",
                f"write {node}:{output}?",
                standing.required_at,
            )
    return standings


def _check_opposites(
    node: str,
    standings: Mapping[str, _Standing],
    reason: OutputMark | None,
    findings: Findings,
) -> None:
    for output in (SUCCEEDED, SUBMITTED):
        here, there = standings.get(output), standings.get(OPPOSITE[output])
        if here is None or there is None:
            continue
        required = here if not here.optional else there
        if required.required_at is not None and not required.optional:
            name = output if required is here else OPPOSITE[output]
            because = (
                f"; because of the '?' at {reason.position}, each output of {node} without "
                "'?' is required"
                if reason
                else ""
            )
            findings.error(
                "opposite-outputs",
                f"{node}:{output} and {node}:{OPPOSITE[output]} cannot both be made, so "
                f"neither can be required, but {node}:{name} has no '?'{because}",
                f"write {node}:{name}? everywhere in the graph (Python: .optional)",
                required.required_at,
            )


@lru_cache(maxsize=MARKED_KNOWN_MAX)
def _marked(required: frozenset[str], optional: frozenset[str]) -> Completion:
    """Returns the completion of tasks whose outputs are marked so; many are marked alike."""
    if not {SUCCEEDED, FAILED} & (required | optional):
        required |= {SUCCEEDED}
    failure_is_fine = not optional.isdisjoint((SUCCEEDED, FAILED))
    assert required or failure_is_fine, "a task that needs nothing would be complete at once"
    alternatives = [required]
    if failure_is_fine:
        alternatives = [required | {SUCCEEDED}, frozenset({FAILED})]
    for ends, tolerated in (((SUBMITTED, SUBMIT_FAILED), SUBMIT_FAILED), ((EXPIRED,), EXPIRED)):
        if not optional.isdisjoint(ends):
            alternatives.append(frozenset({tolerated}))
    return Completion(tuple(alternatives), marked=True)


def read_completion(text: str, outputs: Collection[str]) -> Completion:
    """Returns what a `completion` setting says: outputs joined by `and`, `or` and parentheses.

    Hyphens in names of outputs are written as underscores, as in Cylc. Raises BadCompletion for
    a text that is not understood.
    """
    names = {output.replace("-", "_"): output for output in (*STANDARD, *outputs)}
    words = [match for match in _WORD.finditer(text) if match.group().strip()]
    reader = _Reader(words, names)
    alternatives = reader.disjunction()
    reader.expect_end()
    smallest = [one for one in alternatives if not any(other < one for other in alternatives)]
    return Completion(tuple(dict.fromkeys(smallest)), marked=True)


class _Reader:
    """Reads a `completion` by recursive descent; methods return the alternatives they read."""

    def __init__(self, words: list[re.Match[str]], names: Mapping[str, str]) -> None:
        self._words = [match.group().strip() for match in words]
        self._names = names
        self._at = 0

    def disjunction(self) -> list[frozenset[str]]:
        found = self._conjunction()
        while self._take("or"):
            found = found + self._conjunction()
        return found

    def expect_end(self) -> None:
        if self._at < len(self._words):
            raise BadCompletion(
                f"{self._words[self._at]!r} is not understood; "
                "join outputs with 'and', 'or' and parentheses"
            )

    def _conjunction(self) -> list[frozenset[str]]:
        found = self._term()
        while self._take("and"):
            found = [left | right for left, right in product(found, self._term())]
            if len(found) > ALTERNATIVES_MAX:
                raise BadCompletion(f"it has more than {ALTERNATIVES_MAX} alternatives")
        return found

    def _term(self) -> list[frozenset[str]]:
        if self._take("("):
            found = self.disjunction()
            if not self._take(")"):
                raise BadCompletion("'(' is not closed")
            return found
        if self._at == len(self._words):
            raise BadCompletion("it ends where the name of an output is expected")
        word = self._words[self._at]
        self._at += 1
        if word not in self._names:
            raise BadCompletion(_unknown(word, self._names))
        return [frozenset({self._names[word]})]

    def _take(self, word: str) -> bool:
        if self._at < len(self._words) and self._words[self._at] == word:
            self._at += 1
            return True
        return False


def _unknown(word: str, names: Mapping[str, str]) -> str:
    full = SHORT_FORMS.get(word.replace("_", "-"))
    if word in ("finished", "finish"):
        return "'finished' is not an output: write 'succeeded or failed'"
    if full:
        return f"{word!r} is written {full.replace('-', '_')!r} here"
    if word == "-":
        return "write '_' for '-' in names of outputs"
    return f"{word!r} is not an output of this task; its outputs: {', '.join(sorted(names))}"
