"""Rewrites templates of version 1: what they call `stage.NAME` has other names in 2.0.

There a template knew one name, `stage`: what the definition says of the stage, over it the
parameters that the request gives it and, in the compose file, its arguments as a text. In 2.0
these are `stage`, `parameters` and `args`. Only what stands within `{{ }}` and `{% %}` is
touched, and everything else stays as it was written. No template is rendered here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.placeholders import Json
from tidewheel.lazy_dataclasses import dataclass

LOST = "not-carried-over"
_SAME = frozenset({"id", "version", "type", "timeout"})
# What version 1 knew of a stage, and 2.0 does not tell its templates.
_UNTOLD = frozenset(
    {"dependencies", "resources_required", "resources_assigned", "ee_config", "app_config"}
)
_OPENING = re.compile(r"\{[{%#]")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}")
_RAW_END = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_TOKEN = re.compile(
    r"""\s+|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.]*|.""", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORDS: Mapping[str, Json] = {"true": True, "false": False, "True": True, "False": False}


@dataclass(slots=True)
class Rewriter:
    """Rewrites the templates of one stage, and gathers the parameters that they use."""

    stage: str
    findings: Findings
    # By name, with the default that a template gives it; None, if it gives none.
    parameters: dict[str, Json] = field(default_factory=dict)
    _path: str = ""
    _is_compose: bool = False

    def rewritten(self, path: str, text: str, *, is_compose: bool) -> str:
        """Returns a template as 2.0 has it."""
        self._path, self._is_compose = path, is_compose
        return "".join(self._parts(text))

    def _parts(self, text: str) -> Iterator[str]:
        at, line = 0, 1
        while (opening := _OPENING.search(text, at)) is not None:
            begin = at
            yield text[at : opening.start()]
            if opening[0] == "{#":
                end = text.find("#}", opening.end())
                at = len(text) if end < 0 else end + 2
                yield text[opening.start() : at]
            elif (raw := _RAW.match(text, opening.start())) is not None:
                closing = _RAW_END.search(text, raw.end())
                at = len(text) if closing is None else closing.end()
                yield text[opening.start() : at]
            else:
                tokens, at = _expression(text, opening)
                here = line + text.count("\n", begin, opening.start())
                yield opening[0] + "".join(self._rewritten(tokens, here))
            line += text.count("\n", begin, at)
        yield text[at:]

    def _rewritten(self, tokens: list[str], line: int) -> Iterator[str]:
        """Yields the tokens of an expression, those that name something as 2.0 names it."""
        told = [number for number, one in enumerate(tokens) if not one.isspace()]
        where = {number: place for place, number in enumerate(told)}
        number = 0
        while number < len(tokens):
            token, place = tokens[number], where.get(number)
            is_known = token in ("stage", self.stage) and place is not None
            if not is_known or (place and tokens[told[place - 1]] == "."):
                line += token.count("\n")
                yield token
                number += 1
                continue
            assert place is not None
            after = [tokens[one] for one in told[place + 1 :]]
            name, length = _attribute(after)
            if length == 0 and token == "stage":
                self._report(line, "stage as a whole, which has other parts in 2.0")
            last = told[place + length]
            written = "".join(tokens[number : last + 1])
            yield self._named(written, name, after[length:], line) if length else written
            line += written.count("\n")
            number = last + 1

    def _named(self, written: str, name: str, after: list[str], line: int) -> str:
        """Returns how 2.0 writes `stage.NAME`; ``after`` are the tokens that follow it."""
        if name == "args" and self._is_compose:
            if after not in (["}", "}"], ["-", "}", "}"]):
                what = "stage.args, which is a string in version 1; in 2.0 write args.NAME"
                self._report(line, what)
            return "args"
        if name in _UNTOLD:
            self._report(line, f"{written}, which templates of 2.0 do not know")
            return written
        if name in _SAME:
            return written
        if self._is_compose:
            what = f"{written}, which was empty in version 1 and is a parameter in 2.0"
            self._report(line, what)
        default = _default(after)
        if self.parameters.get(name) is None:
            self.parameters[name] = default
        is_plain = _NAME.fullmatch(name) is not None and not hasattr(dict, name)
        return f"parameters.{name}" if is_plain else f"parameters[{json.dumps(name)}]"

    def _report(self, line: int, what: str) -> None:
        seen = f"stage {self.stage}: a template uses {what}"
        hint = "check this expression in the converted file"
        self.findings.warning(LOST, seen, hint, Position(self._path, line))


def _expression(text: str, opening: re.Match[str]) -> tuple[list[str], int]:
    """Returns the tokens from an opening to its end, with that, and the place behind it."""
    end = "}}" if opening[0] == "{{" else "%}"
    tokens: list[str] = []
    at, depth = opening.end(), 0
    while at < len(text):
        if depth == 0 and text.startswith(end, at):
            return [*tokens, *end], at + len(end)
        found = _TOKEN.match(text, at)
        assert found is not None
        depth += (found[0] == "{") - (found[0] == "}")
        tokens.append(found[0])
        at = found.end()
    return tokens, at


def _attribute(after: list[str]) -> tuple[str, int]:
    """Returns the name behind `stage`, and of how many tokens it is: `.name` or `['name']`."""
    if len(after) > 1 and after[0] == "." and _NAME.fullmatch(after[1]):
        return after[1], 2
    if len(after) > 2 and after[0] == "[" and after[2] == "]" and after[1][0] in "\"'":  # noqa: PLR2004
        return after[1][1:-1], 3
    return "", 0


def _default(after: list[str]) -> Json:
    """Returns the value in `| default(VALUE)`, if that follows and is a plain one."""
    match after:
        case ["|", "default" | "d", "(", value, ")", *_]:
            if value[0] in "\"'" and "\\" not in value:
                return value[1:-1]
            if value[0].isdigit():
                try:
                    return float(value) if "." in value else int(value)
                except ValueError:
                    return None
            return _WORDS.get(value)
        case _:
            return None
