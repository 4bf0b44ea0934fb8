"""`name(argument, key=value):PT10S`: the call of an xtrigger's function, read into a value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidewheel.formats.flow_cylc.value_text import BadValue, span_seconds

INTERVAL_SECONDS_DEFAULT = 10.0
CALL_ACCEPTED = "write for example wall_clock(offset=PT1H) or poll(a, key=1):PT30S"

_CALL = re.compile(r"(\w+)\((.*)\)\s*(?::\s*(\S+))?", re.DOTALL)
_TEMPLATE = re.compile(r"(?<!%)%\((\w*)\)s")
TEMPLATE_NAMES = frozenset(
    {"point", "debug", "workflow_run_dir", "workflow_share_dir", "id", "name", "user_name"}
    | {"workflow", "workflow_name", "suite_name", "suite_run_dir", "suite_share_dir"}
)
_WORDS: dict[str, bool | None] = {"True": True, "False": False, "None": None}

Argument = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class XtriggerCall:
    """A function, what it is called with, and how often."""

    function: str
    arguments: tuple[Argument, ...] = ()
    keywords: tuple[tuple[str, Argument], ...] = ()
    interval_seconds: float = INTERVAL_SECONDS_DEFAULT

    def keyword(self, name: str) -> Argument:
        return dict(self.keywords).get(name)


def read_xtrigger(text: str) -> XtriggerCall:
    match = _CALL.fullmatch(text)
    if match is None:
        raise BadValue(_what_is_wrong(text), CALL_ACCEPTED)
    function, inside, interval = match.groups()
    arguments: list[Argument] = []
    keywords: dict[str, Argument] = {}
    for name, value in _split(inside):
        _check_templates(value)
        if name is not None:
            if not name.isidentifier():
                raise BadValue(f"{name!r} cannot be the name of an argument", CALL_ACCEPTED)
            if name in keywords:
                raise BadValue(f"argument {name!r} is given twice", "remove one of the two")
            keywords[name] = _typed(value)
        elif keywords:
            raise BadValue(
                f"argument {value!r} follows arguments with names", "put it before them"
            )
        else:
            arguments.append(_typed(value))
    seconds = span_seconds(interval) if interval else INTERVAL_SECONDS_DEFAULT
    return XtriggerCall(function, tuple(arguments), tuple(keywords.items()), seconds)


def _what_is_wrong(text: str) -> str:
    if not text:
        return "there is no function"
    if "(" not in text:
        return f"{text[:60]!r} is no function call: it has no parentheses"
    if ")" not in text:
        return f"{text[:60]!r} is no function call: its parentheses are not closed"
    return f"{text[:60]!r} is no function call"


def _split(inside: str) -> list[tuple[str | None, str]]:
    """(name or none, value) of each argument; quotes protect commas and equals signs."""
    parts: list[tuple[str | None, str]] = []
    name: str | None = None
    piece = ""
    quote = ""
    for character in inside:
        if quote:
            quote = "" if character == quote else quote
            piece += character
        elif character in "\"'":
            quote = character
            piece += character
        elif character == ",":
            parts.append((name, piece.strip()))
            name, piece = None, ""
        elif character == "=" and name is None:
            name, piece = piece.strip(), ""
        else:
            piece += character
    if quote:
        raise BadValue(f"a {quote} in the arguments is not closed", CALL_ACCEPTED)
    if piece.strip() or name is not None:
        parts.append((name, piece.strip()))
    return parts


def _check_templates(value: str) -> None:
    for name in _TEMPLATE.findall(value):
        if name not in TEMPLATE_NAMES:
            raise BadValue(
                f"%({name})s is not known in an xtrigger",
                "known are " + ", ".join(f"%({known})s" for known in sorted(TEMPLATE_NAMES)),
            )


def _typed(value: str) -> Argument:
    """Numbers, True, False and None are what they look like; the rest is text."""
    if value in _WORDS:
        return _WORDS[value]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
