"""Parses graph text into lines with positions, tokens, and chains of expressions and arrows.

A node is written `!NAME<PARAMETERS>[OFFSET]:QUALIFIER?`, and `@NAME` is an xtrigger. Spaces are
free between all of these parts, but not within a name.

A line goes on where it ends with an operator or the next one begins with one; blank lines and
comments in between do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.sections import Item, PlacedFindings, Section
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.values import BadValue, unquoted
from tidewheel.lazy_dataclasses import NamedTuple, dataclass, pattern

# The texts under `[scheduling] [[graph]]`, line by line, each with its place in the source.


class GraphLine(NamedTuple):
    """Holds one line as written; its column is the first character's, 0 if it is not known."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class GraphString:
    """Holds the lines under one recurrence, in order, also if it has several texts."""

    recurrence: str
    lines: tuple[GraphLine, ...]
    position: Position  # of the recurrence

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


def read_graph(graph: Section, findings: PlacedFindings) -> tuple[GraphString, ...]:
    strings = []
    for item in graph.items():
        parts = [item]
        while (part := parts[0].earlier) is not None:
            parts.insert(0, part)
        lines: list[GraphLine] = []
        for one in parts:
            try:
                lines += _lines(one, findings.source)
            except BadValue as error:
                seen = f"[scheduling][graph]{item.name}: {error}"
                findings.error("bad-value", seen, error.hint, one)
        strings.append(GraphString(item.name, tuple(lines), findings.position(parts[0])))
    return tuple(strings)


def _lines(item: Item, source: SourceText) -> list[GraphLine]:
    raw = item.text
    quoted = raw[:1] in "\"'" and bool(raw)
    text = unquoted(raw) if quoted else raw.split("#", 1)[0].rstrip()
    first_line = source.lines[item.line]
    start = first_line.find(raw.split("\n", 1)[0], first_line.find("="))
    if quoted:
        start += 3 if raw[:3] in ('"""', "'''") else 1
    position, at = source.position, item.line
    return [
        _tuple(GraphLine, (line, position(at + number, 1 if number else start + 1)))
        for number, line in enumerate(text.split("\n"))
    ]


# Graph text as tokens: arrows, operators, parentheses and nodes.

ARROW, AND, OR, OPEN, CLOSE = "=>", "&", "|", "(", ")"
OPERATORS = (ARROW, AND, OR)

_TOKEN = pattern(
    r"""
    \s*(?:
      (?P<comment>\#.*)
    | (?P<sign>=>|&(?!&)|\|(?!\|)|[()])
    | @(?P<xtrigger>[\w\-+%]+)
    | (?P<suicide>!\s*)?
      (?P<name>(?:\w[\w\-+%@]*|<[^<>]*>)(?:[\w\-+%@]+|\s*<[^<>]*>)*)
      (?:\s*\[(?P<offset>[^\[\]]*)\])?
      (?:\s*:\s*(?P<qualifier>[\w\-]+))?
      (?:\s*(?P<optional>\?))?
    | (?P<wrong>\S)
    )""",
    re.VERBOSE,
)

# A node without parameters, and the arrow or the end behind it: nearly all lines are of these.
_SIDE = pattern(
    r"""
    \s*(\w[\w\-+%@]*+)
    (?:\s*\[([^\[\]]*)\])?
    (?:\s*:\s*([\w\-]+))?
    (?:\s*(\?))?
    \s*(?:=>|\Z)""",
    re.VERBOSE,
)

_POLLED = pattern(r"(\w[\w\-+%@]*)<([\w.\-/]+::[\w\-+%@]+(?::[\w\-]+)?)>")

# What people write who come from other languages, longest first, with what to write here.
_MISTAKEN = (
    ("&&", "AND is a single '&'"),
    ("||", "OR is a single '|'"),
    ("==>", "an arrow is '=>'"),
    ("-->", "an arrow is '=>'"),
    ("->", "an arrow is '=>'"),
    ("<=", "write it the other way round: 'first => second'"),
    (">", "an arrow is '=>'"),
    ("=", "an arrow is '=>'"),
    ("[", "write an offset directly after a name, and close it: 'name[-P1]:output'"),
    (":", "write one output after a name or its offset: 'name[-P1]:output'"),
    ("<", "close the parameters: 'name<p>'"),
    ("?", "write '?' after a name or its output: 'name:output?'"),
    ("!", "a suicide trigger is written '=> !name'"),
    (".", "a name has letters, digits and '_-+%@' only; an output is written 'name:output'"),
    ("@", "an xtrigger is written '@name'"),
    (",", "join nodes with '&' or '|'"),
    (";", "write one chain on each line"),
)


class GraphTokenKind(StrEnum):
    """Names the kinds of tokens; the text of a token says which sign it is."""

    SIGN = "sign"
    NODE = "node"
    XTRIGGER = "xtrigger"


_SIGN, _NODE, _XTRIGGER = GraphTokenKind  # to look one up costs more than to make a tuple
_tuple = tuple.__new__  # tokens and places are made as the tuples that they are: there are many


class Token(NamedTuple):
    """Holds one sign, node or xtrigger, and where it stands."""

    kind: GraphTokenKind
    text: str  # the sign, or the name with its parameters
    position: Position
    offset: str | None = None
    qualifier: str | None = None
    optional: bool = False
    suicide: bool = False
    # `name<workflow::task:status>`: the task waits for one of another workflow.
    polled: str | None = None


_PLAIN = (None, None, False, False, None)  # of a token: what nodes have besides their names


def tokens_of(line: GraphLine, findings: Findings) -> list[Token] | None:
    """Returns the tokens of one line; None after a finding, so that the line is passed over."""
    found: list[Token] = []
    file, number, column = line.position
    # Blanks at the end are cut off: from each of them the next token would be sought.
    for match in _TOKEN.finditer(line.text.rstrip()):
        last = match.lastgroup
        if last == "sign":
            place = _tuple(Position, (file, number, column + match.start(2) if column else 0))
            found.append(_tuple(Token, (_SIGN, match[2], place, *_PLAIN)))
        elif last == "comment":
            break
        elif last == "wrong":
            _report(line, match.start("wrong"), findings)
            return None
        elif last == "xtrigger":
            place = _place(line, match.start("xtrigger") - 1)
            found.append(Token(_XTRIGGER, match["xtrigger"], place))
        else:
            place = _tuple(Position, (file, number, column + match.start(5) if column else 0))
            found.append(_node(match, place))
    return found


def _node(match: re.Match[str], place: Position) -> Token:
    _, _, _, suicide, name, offset, qualifier, optional, _ = match.groups()
    polled = None
    if "<" in name:
        name = "".join(name.split())
        if "::" in name and (found := _POLLED.fullmatch(name)):
            name, polled = found.groups()
    if offset is not None:
        offset = "".join(offset.split())
    is_optional, is_suicide = optional is not None, suicide is not None
    what = (_NODE, name, place, offset, qualifier, is_optional, is_suicide, polled)
    return _tuple(Token, what)


def _place(line: GraphLine, at: int) -> Position:
    file, number, column = line.position
    return Position(file, number, column + at if column else 0)


def _report(line: GraphLine, at: int, findings: Findings) -> None:
    rest = line.text[at:]
    other = (rest[0], "a node is written NAME<PARAMETERS>[OFFSET]:OUTPUT?")
    seen, hint = next((one for one in _MISTAKEN if rest.startswith(one[0])), other)
    message = f"{seen!r} is not understood in: {line.text.strip()}"
    findings.error("graph-syntax", message, hint, _place(line, at))


# Tokens as chains: expressions joined by arrows, each chain on its own logical line.

DEPTH_MAX = 50  # of parentheses: beyond it nobody can read the line


@dataclass(frozen=True, slots=True)
class Both:
    """Joins terms by `&`."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Joins terms by `|`."""

    terms: tuple[Expression, ...]


Expression = Token | Both | Either


@dataclass(frozen=True, slots=True)
class Chain:
    """Holds `side => side => side`; one side alone places its nodes."""

    sides: tuple[Expression, ...]
    position: Position


class _Wrong(Exception):
    """A chain that cannot be read: where, why, and what would be right."""

    def __init__(self, position: Position, message: str, hint: str = "") -> None:
        self.position, self.message, self.hint = position, message, hint
        super().__init__(message)


def nodes_of(side: Expression) -> Iterator[Token]:
    """Yields the nodes and xtriggers of a side from left to right."""
    if isinstance(side, Token):
        yield side
        return
    for term in side.terms:
        yield from nodes_of(term)


def read_chains(lines: Iterable[GraphLine], findings: Findings) -> list[Chain]:
    """Returns every chain that can be read; what cannot becomes a finding."""
    lines = tuple(lines)
    chains: list[Chain] = []
    others: list[GraphLine] = []  # that are read token by token
    for line, is_apart in zip(lines, _are_apart(lines), strict=True):
        chain = _plain_chain(line) if is_apart else None
        if chain is None:
            if line.text and not line.text.isspace():
                others.append(line)
            continue
        if others:
            chains += _read_tokens(others, findings)
            others = []
        chains.append(chain)
    return chains + _read_tokens(others, findings)


def _are_apart(lines: Sequence[GraphLine]) -> list[bool]:
    """Says of each line whether it neither goes on with the next one nor follows another."""
    apart = [True] * len(lines)
    last, before = 0, ""
    for at, line in enumerate(lines):
        text = line.text.partition("#")[0].strip()
        if text:
            if text.startswith(OPERATORS) or before.endswith(OPERATORS):
                apart[last] = apart[at] = False
            last, before = at, text
    return apart


def _read_tokens(lines: Iterable[GraphLine], findings: Findings) -> list[Chain]:
    chains = []
    for tokens in _logical_lines(lines, findings):
        sides = _plain_sides(tokens)
        if sides is not None:
            chains.append(Chain(sides, tokens[0].position))
            continue
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


def _plain_chain(line: GraphLine) -> Chain | None:
    """Returns the chain of a line such as `a => b => c`; None for any other."""
    text = line.text.rstrip()
    file, number, column = line.position
    sides: list[Token] = []
    at, end = 0, len(text)
    while at < end:
        match = _SIDE.match(text, at)
        if match is None:
            return None
        name, offset, qualifier, optional = match.groups()
        if offset is not None:
            offset = "".join(offset.split())
        place = _tuple(Position, (file, number, column + match.start(1) if column else 0))
        is_optional = optional is not None
        node = (_NODE, name, place, offset, qualifier, is_optional, False, None)
        sides.append(_tuple(Token, node))
        at = match.end()
    if not sides or text[-1] == ">":  # it goes on
        return None
    return Chain(tuple(sides), sides[0].position)


def _is_operator(token: Token) -> bool:
    return token.kind is _SIGN and token.text in OPERATORS


def _plain_sides(tokens: list[Token]) -> tuple[Token, ...] | None:
    """Returns the sides of a chain such as `a => b => c`, each of which is one node; None for
    any other chain."""
    is_side = True
    for token in tokens:
        if (token.kind is _SIGN) is is_side or not (is_side or token.text == ARROW):
            return None
        is_side = not is_side
    return None if is_side else tuple(tokens[::2])


class _Reader:
    """Reads the tokens of one logical line by recursive descent."""

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
        if token.kind is not _SIGN:
            return token
        if token.text != OPEN:
            hint = "write a task between two operators and at both ends of a chain"
            raise _Wrong(token.position, f"a task is missing before {token.text!r}", hint)
        if depth >= DEPTH_MAX:
            raise _Wrong(token.position, f"parentheses are nested more than {DEPTH_MAX} deep")
        inner = self._side(depth + 1)
        if not self._take(CLOSE):
            if self._at < len(self._tokens) and not _is_operator(self._tokens[self._at]):
                raise _missing_operator(self._tokens[self._at])
            raise _Wrong(token.position, "'(' is not closed", "add ')' before the arrow")
        return inner

    def _next(self) -> Token | None:
        if self._at == len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, sign: str) -> bool:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind is _SIGN and token.text == sign:
                self._at += 1
                return True
        return False


def _missing_operator(token: Token) -> _Wrong:
    hint = "join tasks with '=>', '&' or '|'; a name has no spaces"
    return _Wrong(token.position, f"an operator is missing before {token.text!r}", hint)
