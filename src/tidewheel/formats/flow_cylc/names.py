"""Says which names are accepted, and expands those with parameters, which stand for several.

`[[run<m>]]` is one section for each value of m. A name's parameters are replaced by their
templates (`_m%(m)02d` and so on), in order, the first one turning slowest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from math import prod

from tidewheel.core.graph.findings import meant
from tidewheel.core.graph.outputs import FINISHED, SHORT_FORMS, STANDARD
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.values import ListSource
from tidewheel.lazy_dataclasses import dataclass, pattern

# Names that are accepted.

RESERVED_PREFIX = "_cylc"

_TASK = pattern(r"\w[\w\-+%@]*")
_MAPPED = pattern(r"(?<=.)<\w+>\Z")  # the parameter of a mapped task
_OUTPUT = pattern(r"[\w\-]+")
_VARIABLE = pattern(r"[a-zA-Z_]\w*")
_XTRIGGER = pattern(r"[a-zA-Z0-9_]+")
_BASES = ("succeed", "fail", "finish", "start", "submit", "submit-fail", "expire")
QUALIFIERS = frozenset(
    {*STANDARD, FINISHED, *SHORT_FORMS}
    | {f"{base}-{kind}" for base in _BASES for kind in ("all", "any")}
)
# Words with a meaning of their own where outputs are named.
RESERVED_OUTPUTS = frozenset(
    {*QUALIFIERS, "required", "optional", "all", "and", "or", "skip"}
    | {"waiting", "preparing", "running"}
)


def task_name_problem(name: str) -> str:
    """Says why this cannot be the name of a task or family; empty if it can."""
    if name.isascii() and name.isidentifier() and name[0] != RESERVED_PREFIX[0]:
        return ""  # as nearly all
    name = _MAPPED.sub("", name) if name.endswith(">") else name
    accepted = "have letters, digits and _ - + % @, and begin with a letter, digit or _"
    return _problem(name, _TASK, "names", accepted)


def output_name_problem(name: str) -> str:
    if name in RESERVED_OUTPUTS:
        return "this word is reserved; choose another"
    return _problem(name, _OUTPUT, "outputs", "have letters, digits, _ and -")


def message_problem(message: str) -> str:
    """Returns why a message is refused; empty if it is accepted.

    A colon is only for a severity in front: `WARNING: text`.
    """
    if not message:
        return "write the message that the job sends for this output"
    first, colon, _ = message.partition(":")
    if colon and not re.fullmatch(r"\w+", first):
        return "a colon may only follow the first word, which is then a severity"
    if message in QUALIFIERS:
        return "this is the message of a built-in output such as succeeded; choose another"
    if message.startswith(RESERVED_PREFIX):
        return f"messages that begin with {RESERVED_PREFIX} are reserved"
    return ""


def variable_name_problem(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        return "variables have letters, digits and _, and do not begin with a digit"
    return ""


def xtrigger_name_problem(name: str) -> str:
    return _problem(name, _XTRIGGER, "xtriggers", "have letters, digits and _")


def _problem(name: str, pattern: re.Pattern[str], those: str, accepted: str) -> str:
    if not pattern.fullmatch(name):
        return f"{those} {accepted}"
    if name.startswith(RESERVED_PREFIX):
        return f"{those} that begin with {RESERVED_PREFIX} are reserved"
    return ""


# Names with parameters in them.

COMBINATIONS_MAX = 100_000  # of parameters in one heading or graph line
Value = str | int
Chosen = dict[str, Value]

_NAMES = pattern(r"(?:[^,<]|<[^>]*>?)+")
_GROUP = pattern(r"<([^<>]*)>")
_REFERENCE = pattern(r"\s*(\w+)\s*(?:([-+])\s*(\d{1,9})|=\s*([\w\-+%@]+))?\s*")
_TEMPLATE_FIELD = pattern(r"%\((\w+)\)[-+ 0#]*\d{0,2}(?:\.\d{1,2})?[sdiouxXeEfFgG]")
_WHOLE = pattern(r"[+-]?\d{1,18}")


class BadParameter(Refused):
    """A parameter is used in a way that has no meaning."""

    code = "bad_parameter"

    def __init__(self, message: str, hint: str = "", finding_code: str = "") -> None:
        self.hint, self.finding_code = hint, finding_code or "parameter-syntax"
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Reference:
    """Holds one parameter between `<` and `>`: plain, with an offset, or with its value."""

    name: str
    offset: int = 0
    value: Value | None = None


Pieces = list[str | list[Reference]]  # of a name: plain text and groups of parameters in turn


@dataclass(frozen=True, slots=True)
class Parameters:
    """Holds the values of each parameter, and the template by which it is written in names."""

    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    # Those whose values a task returns at run time; in names they stay as they are written:
    # `run<m,file>` becomes `run_m1<file>`. So each has one value here, and a template.
    lists: Mapping[str, ListSource] = field(default_factory=dict)

    def expand_heading(self, heading: str) -> Iterator[tuple[str, Chosen]]:
        """Yields each name of a comma list, for each value of its parameters, with those."""
        for name in _NAMES.findall(heading) if "<" in heading else heading.split(","):
            if stripped := name.strip():
                yield from self.expand_name(stripped)

    def count_names(self, heading: str) -> int:
        """Counts the names that `expand_heading` gives, without making them."""
        if "<" not in heading:
            return heading.count(",") + 1
        count = 0
        for name in _NAMES.findall(heading):
            free = {one.name for one in references(self.pieces(name)) if one.value is None}
            count += prod(len(self.values[parameter]) for parameter in free)
        return count

    def expand_name(self, name: str) -> list[tuple[str, Chosen]]:
        """Returns the names that `foo<m,n>` stands for, each with the values that made it."""
        if "<" not in name and ">" not in name:
            return [(name, {})]
        pieces = self.pieces(name)
        for reference in references(pieces):
            if reference.offset:
                seen = f"{name}: an offset of {reference.name!r} has no meaning here"
                raise BadParameter(seen, "offsets such as <m-1> are for graphs")
        fixed = {one.name: one.value for one in references(pieces) if one.value is not None}
        return [
            (self._write(pieces, chosen), chosen)
            for chosen in self._choices(pieces, name, fixed)
        ]

    def expand_parent(
        self, parent: str, chosen: Chosen, item: str = "inherit"
    ) -> tuple[str, Chosen]:
        """Returns the parent that `inherit = FAM<m>` under `[[foo<m>]]` means for one foo.

        ``chosen`` are the values of that foo; those that the parent's name uses are returned,
        too. ``item`` is where it was written.
        """
        if "<" not in parent:
            return parent, {}
        pieces = self.pieces(parent)
        used: Chosen = {}
        for reference in references(pieces):
            if reference.offset:
                raise BadParameter(f"{item} = {parent}: an offset has no meaning here")
            if reference.value is not None:
                used[reference.name] = reference.value
            elif reference.name in chosen:
                used[reference.name] = chosen[reference.name]
            else:
                unused = f"the heading does not use parameter {reference.name!r}"
                seen = f"{item} = {parent}: {unused}, so its value is unknown"
                hint = f"give a value as in <{reference.name}=1>, or use it in the heading too"
                raise BadParameter(seen, hint)
        return self._write(pieces, used), used

    def pieces(self, text: str) -> Pieces:
        """Returns the parts of a name: plain text and groups of parameters in turn."""
        pieces: Pieces = []
        at = 0
        for match in _GROUP.finditer(text):
            pieces.append(text[at : match.start()])
            pieces.append([self._reference(item, text) for item in match[1].split(",")])
            at = match.end()
        rest = text[at:]
        if "<" in rest or ">" in rest:
            raise BadParameter(
                f"{_shown(text)}: the brackets < > do not match", "write for example foo<m>"
            )
        pieces.append(rest)
        if self.lists:
            self._check_lists(pieces, text)
        return pieces

    def _check_lists(self, pieces: Pieces, text: str) -> None:
        """Refuses what a parameter whose values are not known yet cannot be used for."""
        used = list(references(pieces))
        dynamic = [one for one in used if one.name in self.lists]
        if len(dynamic) > 1:
            seen = f"{_shown(text)} uses two lists"
            raise BadParameter(seen, "a task can use only one list", "mapped-task")
        rest = str(pieces[-1]).partition("(")[0]  # in [[special tasks]]: foo<m>(PT1H)
        if dynamic and (used[-1] is not dynamic[0] or rest):
            seen = f"{_shown(text)}: <{dynamic[0].name}> is not at the end of the name"
            hint = f"write it last, as in run<m,{dynamic[0].name}>"
            raise BadParameter(seen, hint, "mapped-task")

    def without_lists(self, chosen: Mapping[str, Value]) -> Chosen:
        """Returns the chosen values of parameters without those known at run time only."""
        return {name: value for name, value in chosen.items() if name not in self.lists}

    def _reference(self, item: str, text: str) -> Reference:
        match = _REFERENCE.fullmatch(item)
        if match is None:
            seen = f"<{_shown(item)}> in {_shown(text)} is not understood"
            raise BadParameter(seen, "write for example <m>, <m,n>, <m=1> or <m-1>")
        name, sign, number, value = match.groups()
        known = self.values.get(name)
        if not known:
            others = [one for one in self.values if one != name]
            lacks = "is not defined" if known is None else "has no values"
            hint = f"correct its values, as in [task parameters] {name} = 1..3"
            if known is None:
                hint = meant(name, others, f"define it: [task parameters] {name} = 1..3")
            seen = f"parameter {name!r} in {_shown(text)} {lacks}"
            raise BadParameter(seen, hint, "unknown-parameter")
        if name in self.lists and (sign or value is not None):
            seen = f"{_shown(text)}: the values of {name!r} are known at run time only"
            raise BadParameter(seen, f"write <{name}>", "mapped-task")
        if value is None:
            return Reference(name, int(f"{sign}{number}") if sign else 0)
        same = [one for one in known if str(one) == value]
        if not same and _WHOLE.fullmatch(value):
            whole = (one for one in known if _WHOLE.fullmatch(str(one)))
            same = [one for one in whole if int(one) == int(value)]
        if same:
            return Reference(name, 0, same[0])
        seen = f"{name}={value} in {_shown(text)} is not a value of that parameter"
        hint = "its values are " + ", ".join(str(value) for value in known[:20])
        raise BadParameter(seen, hint, "parameter-value")

    def _choices(
        self, pieces: Pieces, text: str, fixed: Mapping[str, Value]
    ) -> Iterator[Chosen]:
        """Yields every combination of the values of the parameters that are used."""
        names = list(
            dict.fromkeys(one.name for one in references(pieces) if one.name not in fixed)
        )
        count = prod(len(self.values[name]) for name in names)
        if count > COMBINATIONS_MAX:
            raise BadParameter(
                f"{_shown(text)} makes {count} combinations of parameters; at most "
                f"{COMBINATIONS_MAX} are accepted"
            )
        for combination in itertools.product(*(self.values[name] for name in names)):
            yield {**fixed, **dict(zip(names, combination, strict=True))}

    def written_at(self, pieces: Pieces, bound: Mapping[str, Value]) -> str | None:
        """Returns the name that stands in a graph for these values of the parameters.

        Returns None where an offset such as `<m-1>` leads to no value.
        """
        chosen = dict(bound)
        name = []
        for piece in pieces:
            if isinstance(piece, str):
                name.append(piece)
                continue
            for one in piece:
                chosen[one.name] = bound[one.name] if one.value is None else one.value
                if one.offset:
                    values = self.values[one.name]
                    at = values.index(bound[one.name]) + one.offset
                    if not 0 <= at < len(values):
                        return None
                    chosen[one.name] = values[at]
            name.append(self._suffix(piece, chosen))
        return "".join(name)

    def _write(self, pieces: Pieces, chosen: Mapping[str, Value]) -> str:
        return "".join(
            piece if isinstance(piece, str) else self._suffix(piece, chosen) for piece in pieces
        )

    def _suffix(self, group: list[Reference], chosen: Mapping[str, Value]) -> str:
        # A template may show other parameters of the name too.
        return "".join(fill_template(self.templates[one.name], chosen) for one in group)


def fill_template(template: str, values: Mapping[str, Value]) -> str:
    """Returns a template such as `_m%(m)02d` with values; BadParameter for any other `%`."""
    for name in _TEMPLATE_FIELD.findall(template):
        if name not in values:
            raise BadParameter(f"template {template!r} uses {name!r}, which has no value here")
    if _TEMPLATE_FIELD.sub("", template).replace("%%", "").count("%"):
        hint = "write fields as %(name)s or %(name)03d, and a percent sign as %%"
        raise BadParameter(f"template {template!r} contains a % that is not a field", hint)
    try:
        return template % dict(values)
    except (TypeError, ValueError, KeyError):
        raise BadParameter(
            f"template {template!r} does not fit the values of its parameters",
            "%(name)d is for whole numbers; write %(name)s for strings",
        ) from None


def default_template(name: str, values: tuple[Value, ...]) -> str:
    """Returns a template that makes `_text`, `_m07`, or `_m+07` where a number is negative."""
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers or len(numbers) < len(values):
        return f"_%({name})s"
    if min(numbers) < 0:
        return f"_{name}%({name})+0{max(len(str(number)) for number in numbers)}d"
    return f"_{name}%({name})0{len(str(max(numbers)))}d"


def references(pieces: Pieces) -> Iterator[Reference]:
    return (one for piece in pieces if not isinstance(piece, str) for one in piece)


def _shown(text: str) -> str:
    return text.strip()[:80]
