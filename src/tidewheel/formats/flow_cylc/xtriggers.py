"""Reads the call of an xtrigger in a flow.cylc, and lists the functions that can be called."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from tidewheel.core.graph.definition import XtriggerDef
from tidewheel.core.graph.findings import Findings, Position, meant
from tidewheel.formats.flow_cylc.values import BadValue, duration_seconds, span_seconds
from tidewheel.lazy_dataclasses import dataclass, pattern

# `name(argument, key=value):PT10S`: the call of an xtrigger's function, read into a value.

INTERVAL_SECONDS_DEFAULT = 10.0
CALL_ACCEPTED = "write for example wall_clock(offset=PT1H) or poll(a, key=1):PT30S"

_CALL = pattern(r"(\w+)\((.*)\)\s*(?::\s*(\S+))?", re.DOTALL)
_TEMPLATE = pattern(r"(?<!%)%\((\w*)\)s")
TEMPLATE_NAMES = frozenset(
    {"point", "debug", "workflow_run_dir", "workflow_share_dir", "id", "name", "user_name"}
    | {"workflow", "workflow_name", "suite_name", "suite_run_dir", "suite_share_dir"}
)
_WORDS: dict[str, bool | None] = {"True": True, "False": False, "None": None}

Argument = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class XtriggerCall:
    """Holds the function of an xtrigger, its arguments, and how often it is called."""

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
        if unknown := [one for one in _TEMPLATE.findall(value) if one not in TEMPLATE_NAMES]:
            known = ", ".join(f"%({one})s" for one in sorted(TEMPLATE_NAMES))
            raise BadValue(
                f"%({unknown[0]})s is not known in an xtrigger", f"expected one of {known}"
            )
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
        return f"{text[:60]!r} is not a function call: it has no parentheses"
    if ")" not in text:
        return f"{text[:60]!r} is not a function call: its parentheses are not closed"
    return f"{text[:60]!r} is not a function call"


def _split(inside: str) -> list[tuple[str | None, str]]:
    """Returns (name or None, value) of each argument; quotes protect commas and equal signs."""
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


def _typed(value: str) -> Argument:
    """Returns a number, True, False or None as the value that it looks like, else a text."""
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


# The functions that come with tidewheel as xtriggers, and where a person's own ones are.

WALL_CLOCK = "wall_clock"
SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class Signature:
    """Holds the names of a function's arguments, in order, and how many are needed.

    An open one accepts any arguments.
    """

    names: tuple[str, ...] = ()
    needed: int = 0
    is_open: bool = False


_STATE_WORDS = ("workflow_task_id", "offset", "flow_num", "is_trigger", "is_message")
SIGNATURES = {
    WALL_CLOCK: Signature(("offset",)),
    "echo": Signature(is_open=True),
    "xrandom": Signature(("percent", "secs", "_"), 1),
    "workflow_state": Signature((*_STATE_WORDS, "alt_cylc_run_dir"), 1),
}
# Before Cylc 8.3: workflow, task and point as arguments of their own.
OLD_WORKFLOW_STATE = Signature(
    ("workflow", "task", "point", "offset", "status", "message", "cylc_run_dir"), 3
)


def check_call(
    label: str, call: XtriggerCall, folder: Path, findings: Findings, place: Position
) -> None:
    """Reports wrong arguments of a known function, and a function that cannot be found."""
    sequential = call.keyword(SEQUENTIAL)
    if sequential is not None and not isinstance(sequential, bool):
        seen = f"xtrigger {label!r}: sequential is {sequential!r}"
        findings.error("bad-xtrigger", seen, "write sequential=True or sequential=False", place)
    signature = SIGNATURES.get(call.function)
    if signature is None:
        if call.function != "suite_state":
            _check_own_function(label, call, folder, findings, place)
        return
    problem = signature_problem(call, signature)
    is_old = call.function == "workflow_state" and not signature_problem(
        call, OLD_WORKFLOW_STATE
    )
    if problem and is_old:
        seen = f"xtrigger {label!r} calls workflow_state in the form used before Cylc 8.3"
        hint = "write workflow_state(workflow//point/task:output)"
        findings.warning("obsolete", seen, hint, place)
    elif problem:
        hint = f"{call.function} takes ({', '.join(signature.names)})"
        findings.error("bad-xtrigger", f"xtrigger {label!r}: {problem}", hint, place)
    elif call.function == WALL_CLOCK:
        _check_offset(label, call, findings, place)


def signature_problem(call: XtriggerCall, signature: Signature) -> str:
    """Says why the call does not fit the signature; empty if it does."""
    if signature.is_open:
        return ""
    if len(call.arguments) > len(signature.names):
        return f"{call.function} is given {len(call.arguments)} arguments"
    given = set(signature.names[: len(call.arguments)])
    for name, _ in call.keywords:
        if name == SEQUENTIAL:
            continue
        if name not in signature.names:
            guess = meant(name, signature.names)
            return f"{call.function} has no argument {name!r}" + (f"; {guess}" if guess else "")
        if name in given:
            return f"argument {name!r} is given twice"
        given.add(name)
    missing = [name for name in signature.names[: signature.needed] if name not in given]
    return f"argument {missing[0]!r} is missing" if missing else ""


def xtrigger_of(
    label: str, call: XtriggerCall, position: Position, *, sequential: bool = False
) -> XtriggerDef:
    """Returns the definition of an xtrigger, made of its call.

    ``sequential`` says whether it is checked point after point, as a clock is, unless the call
    says otherwise. That is for the scheduler: the function is called without it.
    """
    given = call.keyword(SEQUENTIAL)
    by_default = sequential or call.function == WALL_CLOCK
    return XtriggerDef(
        label,
        call.function,
        call.arguments,
        tuple(pair for pair in call.keywords if pair[0] != SEQUENTIAL),
        call.interval_seconds,
        given if isinstance(given, bool) else by_default,
        position,
    )


def _check_own_function(
    label: str, call: XtriggerCall, folder: Path, findings: Findings, place: Position
) -> None:
    with suppress(OSError):  # a name that no file can have
        if (folder / "lib" / "python" / f"{call.function}.py").is_file():
            return
    nowhere = f"which is neither built in nor in lib/python/{call.function}.py"
    seen = f"xtrigger {label!r} calls {call.function}, {nowhere}"
    where = "it must be installed where it is called: beside the scheduler or its workers"
    hint = meant(call.function, SIGNATURES, where)
    findings.warning("unknown-xtrigger-function", seen, hint, place)


def _check_offset(label: str, call: XtriggerCall, findings: Findings, place: Position) -> None:
    offset: Argument = call.arguments[0] if call.arguments else call.keyword("offset")
    if offset is None:
        return
    try:
        duration_seconds(str(offset))
    except BadValue as error:
        findings.error("bad-xtrigger", f"xtrigger {label!r}: offset {error}", error.hint, place)
