"""Graph text as tokens: arrows, operators, parentheses and nodes.

A node is written `!NAME<PARAMETERS>[OFFSET]:QUALIFIER?`, and `@NAME` is an xtrigger. Spaces are
free between all of these parts, but not within a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.graph_strings import GraphLine

ARROW, AND, OR, OPEN, CLOSE = "=>", "&", "|", "(", ")"
OPERATORS = frozenset({ARROW, AND, OR})

_TOKEN = re.compile(
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

_POLLED = re.compile(r"(\w[\w\-+%@]*)<([\w.\-/]+::[\w\-+%@]+(?::[\w\-]+)?)>")

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
    ("[", "an offset stands right behind a name and is closed: 'name[-P1]:output'"),
    (":", "one output stands behind a name or its offset: 'name[-P1]:output'"),
    ("<", "parameters are closed: 'name<p>'"),
    ("?", "'?' stands behind a name or its output: 'name:output?'"),
    ("!", "a suicide arrow is written '=> !name'"),
    (".", "a name has letters, digits and '_-+%@' only; an output is written 'name:output'"),
    ("@", "an xtrigger is written '@name'"),
    (",", "join nodes with '&' or '|'"),
    (";", "write one chain on each line"),
)


class Kind(StrEnum):
    """What a token is; signs are their own text."""

    SIGN = "sign"
    NODE = "node"
    XTRIGGER = "xtrigger"


class Token(NamedTuple):
    """One sign, node or xtrigger, and where it stands."""

    kind: Kind
    text: str  # the sign, or the name with its parameters
    position: Position
    offset: str | None = None
    qualifier: str | None = None
    optional: bool = False
    suicide: bool = False
    # `name<workflow::task:status>`: the task waits for one of another workflow.
    polled: str | None = None


def tokens_of(line: GraphLine, findings: Findings) -> list[Token] | None:
    """The tokens of one line; None after a finding, so that the line is passed over."""
    found: list[Token] = []
    if "#" not in line.text and line.text.isspace():
        return found
    for match in _matches(line.text):
        kind = match.lastgroup
        if kind == "comment":
            break
        if match["wrong"] is not None:
            _report(line, match.start("wrong"), findings)
            return None
        found.append(_token(line, match))
    return found


def _matches(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while match := _TOKEN.match(text, at):
        yield match
        at = match.end()


def _token(line: GraphLine, match: re.Match[str]) -> Token:
    if (sign := match["sign"]) is not None:
        return Token(Kind.SIGN, sign, _place(line, match.start("sign")))
    if (label := match["xtrigger"]) is not None:
        return Token(Kind.XTRIGGER, label, _place(line, match.start("xtrigger") - 1))
    offset = match["offset"]
    name, polled = "".join(match["name"].split()), None
    if "::" in name and (found := _POLLED.fullmatch(name)):
        name, polled = found.groups()
    return Token(
        Kind.NODE,
        name,
        _place(line, match.start("name")),
        offset=None if offset is None else "".join(offset.split()),
        qualifier=match["qualifier"],
        optional=match["optional"] is not None,
        suicide=match["suicide"] is not None,
        polled=polled,
    )


def _place(line: GraphLine, at: int) -> Position:
    start = line.position
    return Position(start.file, start.line, start.column + at if start.column else 0)


def _report(line: GraphLine, at: int, findings: Findings) -> None:
    rest = line.text[at:]
    for mistake, advice in _MISTAKEN:
        if rest.startswith(mistake):
            seen, hint = mistake, advice
            break
    else:
        seen, hint = rest[0], "a node is written NAME<PARAMETERS>[OFFSET]:OUTPUT?"
    findings.error(
        "graph-syntax",
        f"{seen!r} is not understood in: {line.text.strip()}",
        hint,
        _place(line, at),
    )
