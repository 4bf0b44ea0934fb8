"""Tokens as chains: expressions joined by arrows, each chain on its own logical line.

A line goes on where it ends with an operator or the next one begins with one; blank lines and
comments in between do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.graph_strings import GraphLine
from tidewheel.formats.flow_cylc.graph_text.tokens import (
    AND,
    ARROW,
    CLOSE,
    OPEN,
    OPERATORS,
    OR,
    Kind,
    Token,
    tokens_of,
)

DEPTH_MAX = 50  # of parentheses: beyond it nobody can read the line


@dataclass(frozen=True, slots=True)
class Both:
    """Terms joined by `&`."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Terms joined by `|`."""

    terms: tuple[Expression, ...]


Expression = Token | Both | Either


@dataclass(frozen=True, slots=True)
class Chain:
    """`side => side => side`; one side alone places its nodes."""

    sides: tuple[Expression, ...]
    position: Position


class _Wrong(Exception):
    """A chain that cannot be read: where, why, and what would be right."""

    def __init__(self, position: Position, message: str, hint: str = "") -> None:
        self.position, self.message, self.hint = position, message, hint
        super().__init__(message)


def nodes_of(side: Expression) -> Iterator[Token]:
    """Its nodes and xtriggers from left to right."""
    if isinstance(side, Token):
        yield side
        return
    for term in side.terms:
        yield from nodes_of(term)


def read_chains(lines: Iterable[GraphLine], findings: Findings) -> list[Chain]:
    """Every chain that can be read; what cannot becomes a finding."""
    chains = []
    for tokens in _logical_lines(lines, findings):
        try:
            chains.append(_Reader(tokens).chain())
        except _Wrong as wrong:
            findings.error("graph-syntax", wrong.message, wrong.hint, wrong.position)
    return chains


def _logical_lines(lines: Iterable[GraphLine], findings: Findings) -> Iterator[list[Token]]:
    joined: list[Token] = []
    broken = False  # the line in hand has an error: what is joined to it is passed over too
    for line in lines:
        tokens = tokens_of(line, findings)
        if tokens is None:
            if joined and not _is_operator(joined[-1]):
                yield joined
            broken, joined = True, []
            continue
        if not tokens:
            continue
        goes_on = _is_operator(tokens[0]) or (bool(joined) and _is_operator(joined[-1]))
        if goes_on and broken:
            continue
        if joined and not goes_on:
            yield joined
            joined = []
        broken = False
        joined = joined + tokens
    if joined:
        yield joined


def _is_operator(token: Token) -> bool:
    return token.kind is Kind.SIGN and token.text in OPERATORS


class _Reader:
    """Recursive descent over the tokens of one logical line."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def chain(self) -> Chain:
        sides = [self._side()]
        while (token := self._next()) is not None:
            if token.text == CLOSE:
                raise _Wrong(token.position, "')' closes nothing", "remove it or add '('")
            if token.text != ARROW:
                raise _missing_operator(token)
            sides.append(self._side())
        return Chain(tuple(sides), self._tokens[0].position)

    def _side(self, depth: int = 0) -> Expression:
        terms = [self._conjunction(depth)]
        while self._take(OR):
            terms.append(self._conjunction(depth))
        return terms[0] if len(terms) == 1 else Either(tuple(terms))

    def _conjunction(self, depth: int) -> Expression:
        terms = [self._term(depth)]
        while self._take(AND):
            terms.append(self._term(depth))
        return terms[0] if len(terms) == 1 else Both(tuple(terms))

    def _term(self, depth: int) -> Expression:
        token = self._next()
        if token is None:
            last = self._tokens[-1]
            raise _Wrong(last.position, f"nothing follows {last.text!r}", "name a task there")
        if token.kind is not Kind.SIGN:
            return token
        if token.text != OPEN:
            raise _Wrong(
                token.position,
                f"a task is missing before {token.text!r}",
                "between two operators, and at both ends of a chain, stands a task",
            )
        if depth >= DEPTH_MAX:
            raise _Wrong(token.position, f"more than {DEPTH_MAX} parentheses inside each other")
        inner = self._side(depth + 1)
        if not self._take(CLOSE):
            raise self._unclosed(token)
        return inner

    def _unclosed(self, opened: Token) -> _Wrong:
        if self._at < len(self._tokens) and not _is_operator(self._tokens[self._at]):
            return _missing_operator(self._tokens[self._at])
        return _Wrong(opened.position, "'(' is not closed", "add ')' before the arrow")

    def _next(self) -> Token | None:
        if self._at == len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, sign: str) -> bool:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind is Kind.SIGN and token.text == sign:
                self._at += 1
                return True
        return False


def _missing_operator(token: Token) -> _Wrong:
    return _Wrong(
        token.position,
        f"an operator is missing before {token.text!r}",
        "join tasks with '=>', '&' or '|'; a name has no spaces",
    )
