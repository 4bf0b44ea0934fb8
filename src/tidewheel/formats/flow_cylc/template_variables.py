"""Reads template variables: `-s NAME=VALUE`, `-z NAME=a,b`, and files of such lines.

Values are Python literals, so a text needs quotes; the most common slip is to leave them out.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path

from tidewheel.core.graph.checks.names import some
from tidewheel.core.graph.findings import NOWHERE, Findings, Position, nearest
from tidewheel.lazy_dataclasses import dataclass

ALL_VARIABLES = "CYLC_TEMPLATE_VARS"  # what a template calls all of them together
VARIABLES_MAX = 1_000
SET_FILE_BYTES_MAX = 1_000_000
_SHOWN_LENGTH_MAX = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableTexts:
    """Holds template variables as they were given, before they are read."""

    settings: tuple[str, ...] = ()  # -s NAME=VALUE
    lists: tuple[str, ...] = ()  # -z NAME=a,b,c
    file: Path | None = None  # --set-file
    values: Mapping[str, object] = field(default_factory=dict)  # from Python; win over all


def read_variables(texts: VariableTexts, findings: Findings) -> dict[str, object]:
    """Returns the values by name; the command line counts more than the file.

    Values from Python count most.
    """
    variables = _from_file(texts.file, findings) if texts.file is not None else {}
    variables |= _from_pairs(texts.settings, findings)
    for name, text in _pairs(texts.lists, findings):
        variables[name] = _split(text)
    variables |= texts.values
    if len(variables) > VARIABLES_MAX:
        seen = f"{len(variables)} template variables; at most {VARIABLES_MAX} are accepted"
        findings.error("too-many-variables", seen)
        return {}
    return variables


def warn_of_unused(given: Iterable[str], used: Collection[str], findings: Findings) -> None:
    """Warns of variables that no template looks up: they are probably misspelt."""
    if ALL_VARIABLES in used:
        return  # it may look at any of them
    free = sorted({*used} - {*given})
    unlike = []
    for name in [one for one in given if one not in used]:
        if near := nearest(name, free):
            hint = f"did you mean {near}?"
            findings.warning("unused-variable", f"no template uses {name}", hint)
        else:
            unlike.append(name)
    if unlike:
        hint = f"templates use {some(sorted(used))}" if used else "templates use no variables"
        findings.warning("unused-variable", f"no template uses {some(unlike)}", hint)


def _from_pairs(
    settings: Iterable[str], findings: Findings, position: Position = NOWHERE
) -> dict[str, object]:
    return {
        name: value
        for name, text in _pairs(settings, findings, position)
        for value in _literal(name, text, findings, position)
    }


def _from_file(path: Path, findings: Findings) -> dict[str, object]:
    variables: dict[str, object] = {}
    try:
        with path.open("rb") as file:
            content = file.read(SET_FILE_BYTES_MAX + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        findings.error("bad-variable-file", f"{path} cannot be read: {reason.lower()}")
        return variables
    if len(content) > SET_FILE_BYTES_MAX:
        findings.error("bad-variable-file", f"{path} is larger than {SET_FILE_BYTES_MAX} bytes")
        return variables
    for number, line in enumerate(text.splitlines(), 1):
        if setting := line.strip().split("#", 1)[0]:
            variables |= _from_pairs([setting], findings, Position(str(path), number))
    return variables


def _pairs(
    settings: Iterable[str], findings: Findings, position: Position = NOWHERE
) -> list[tuple[str, str]]:
    pairs = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        if equals and name.strip().isidentifier():
            pairs.append((name.strip(), text.strip()))
        else:
            seen = f"template variable {_shown(setting)} is not NAME=VALUE"
            hint = "write for example: MEMBERS=10 or SITE='north'"
            findings.error("bad-variable", seen, hint, position)
    return pairs


def _literal(name: str, text: str, findings: Findings, position: Position) -> list[object]:
    """Returns a list with the value, or an empty one after a finding."""
    try:
        return [ast.literal_eval(text)]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        seen = f"template variable {name} is {_shown(text)}, which is not a Python literal"
        hint = (
            f"a string needs quotes inside the shell's quotes: -s \"{name}='{text}'\""
            if text.replace("_", "").replace("-", "").isalnum()
            else "expected numbers, 'strings', True, False, None, lists, tuples and dicts"
        )
        findings.error("bad-variable", seen, hint, position)
        return []


def _split(text: str) -> list[str]:
    """Returns the parts of a string between commas; quotes protect commas and are dropped."""
    parts, part, quoted = [], "", False
    for character in text:
        if character in "\"'":
            quoted = not quoted
        elif character == "," and not quoted:
            parts.append(part)
            part = ""
        else:
            part += character
    return [*parts, part]


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_LENGTH_MAX else text[:_SHOWN_LENGTH_MAX] + "…")
