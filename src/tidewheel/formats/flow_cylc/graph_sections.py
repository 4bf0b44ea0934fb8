"""Recurrences and graph texts become the sections of a definition.

`<m-1>` before the first value of m names no task: that task is left out of its side, and where
a side has no task left, the chain ends before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph.definition import CyclingDef, GraphSection, OutputMark
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader, split_recurrences
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.graph_arrows import Lowered, Lowering
from tidewheel.formats.flow_cylc.graph_text import (
    Both,
    Chain,
    Either,
    Expression,
    GraphString,
    Token,
    nodes_of,
    read_chains,
)
from tidewheel.formats.flow_cylc.settings import FlowSettings

# A chain with parameters stands for one chain for each combination of their values.

Value = int | str
VARIANTS_MAX = 100_000  # chains that one line may stand for

_GROUP = re.compile(r"<([^<>]*)>")
_ITEM = re.compile(r"^\s*(\w+)\s*(?:([-+])\s*(\d{1,9})|=\s*([\w\-+]+))?\s*$")


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """The values of each parameter, and how a value is written within a name."""

    values: Mapping[str, tuple[Value, ...]]
    templates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Use:
    """One parameter within `<…>`: as it runs, a number of values away, or fixed."""

    name: str
    shift: int = 0
    fixed: Value | None = None


def variants(chain: Chain, table: ParameterTable, findings: Findings) -> Iterator[Chain]:
    """Yields the chains that a chain stands for; itself where it has no parameter."""
    tokens = [token for side in chain.sides for token in nodes_of(side) if "<" in token.text]
    if not tokens:
        yield chain
        return
    uses = _uses_of(tokens, table, findings)
    if uses is None:
        return
    # A fixed value takes part in the loop too, as in Cylc: the duplicates fall together later.
    names = list(dict.fromkeys(use.name for use in uses.values()))
    count = prod(len(table.values[name]) for name in names)
    if count > VARIANTS_MAX:
        findings.error(
            "too-many-tasks",
            f"the parameters {', '.join(names)} make {count} chains of this line",
            f"at most {VARIANTS_MAX} are accepted: use fewer values, or families",
            chain.position,
        )
        return
    for values in product(*(table.values[name] for name in names)):
        bound = dict(zip(names, values, strict=True))
        if variant := _bind(chain, bound, uses, table):
            yield variant


def _uses_of(
    tokens: list[Token], table: ParameterTable, findings: Findings
) -> dict[str, _Use] | None:
    uses: dict[str, _Use] = {}
    for token in tokens:
        for group in _GROUP.findall(token.text):
            for item in group.split(","):
                use = _read_use(item, token, table, findings)
                if use is None:
                    return None
                uses[item] = use
    return uses


def _read_use(
    item: str, token: Token, table: ParameterTable, findings: Findings
) -> _Use | None:
    match = _ITEM.match(item)
    if match is None:
        findings.error(
            "parameter-syntax",
            f"<{item}> in {token.text} is not understood",
            "write <p>, <p-1>, <p+1> or <p=VALUE>",
            token.position,
        )
        return None
    name, sign, distance, fixed = match.groups()
    if not table.values.get(name):
        defined = ", ".join(sorted(table.values)) or "none"
        findings.error(
            "unknown-parameter",
            f"parameter {name!r} in {token.text} is not defined",
            f"define it under [task parameters]; defined are: {defined}",
            token.position,
        )
        return None
    if fixed is None:
        return _Use(name, shift=int(f"{sign}{distance}") if sign else 0)
    value = _value_like(fixed, table.values[name])
    if value is None:
        findings.error(
            "parameter-value",
            f"{name}={fixed} in {token.text} is not a value of that parameter",
            "values are: " + ", ".join(map(str, table.values[name][:20])),
            token.position,
        )
        return None
    return _Use(name, fixed=value)


def _value_like(text: str, values: tuple[Value, ...]) -> Value | None:
    """Returns the value that is written so; `01` names the number 1."""
    for value in values:
        if text == str(value) or (isinstance(value, int) and _as_int(text) == value):
            return value
    return None


def _as_int(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _bind(
    chain: Chain, bound: dict[str, Value], uses: dict[str, _Use], table: ParameterTable
) -> Chain | None:
    sides = []
    for side in chain.sides:
        kept = _bind_side(side, bound, uses, table)
        if kept is None:
            break
        sides.append(kept)
    return replace(chain, sides=tuple(sides)) if sides else None


def _bind_side(
    side: Expression, bound: dict[str, Value], uses: dict[str, _Use], table: ParameterTable
) -> Expression | None:
    if isinstance(side, Token):
        if "<" not in side.text:
            return side
        name = _bind_name(side.text, bound, uses, table)
        return None if name is None else side._replace(text=name)
    kept = tuple(
        term
        for inner in side.terms
        if (term := _bind_side(inner, bound, uses, table)) is not None
    )
    if len(kept) <= 1:
        return kept[0] if kept else None
    return Both(kept) if isinstance(side, Both) else Either(kept)


def _bind_name(
    text: str, bound: dict[str, Value], uses: dict[str, _Use], table: ParameterTable
) -> str | None:
    parts = []
    at = 0
    for match in _GROUP.finditer(text):
        values = {}
        for item in match[1].split(","):
            use = uses[item]
            value = _value_of(use, bound, table)
            if value is None:
                return None
            values[use.name] = value
        template = "".join(table.templates[name] for name in values)
        parts += [text[at : match.start()], template % values]
        at = match.end()
    return "".join([*parts, text[at:]])


def _value_of(use: _Use, bound: dict[str, Value], table: ParameterTable) -> Value | None:
    if use.fixed is not None:
        return use.fixed
    value = bound[use.name]
    if not use.shift:
        return value
    values = table.values[use.name]
    index = values.index(value) + use.shift
    return values[index] if 0 <= index < len(values) else None


# The sections.

RUN_ONCE = "R1"


@dataclass(slots=True)
class GraphRead:
    """Holds what all graph texts say together."""

    sections: list[GraphSection] = field(default_factory=list)
    marks: list[OutputMark] = field(default_factory=list)
    polled: dict[str, str] = field(default_factory=dict)
    is_whole: bool = True  # all of it was understood


def read_graph_sections(
    settings: FlowSettings, reader: CyclingReader, cycling: CyclingDef, findings: Findings
) -> GraphRead:
    families = {
        name: members for name, members in settings.families.members.items() if name != ROOT
    }
    lowering = Lowering(families, reader.offset, findings)
    table = ParameterTable(settings.parameters.values, settings.parameters.templates)
    found = GraphRead()
    errors_before = findings.error_count
    marks: dict[OutputMark, None] = {}
    for string in settings.graph:
        lowered = lowering.lower(
            variant
            for chain in read_chains(string.lines, findings)
            for variant in variants(chain, table, findings)
        )
        for recurrence, sequence in _sequences(string, reader, cycling, findings):
            found.sections.append(_section(string, recurrence, sequence, lowered))
        marks.update(dict.fromkeys(lowered.marks.values()))
        found.polled.update(lowered.polled)
    found.marks = list(marks)
    found.is_whole = findings.error_count == errors_before
    return found


def _section(
    string: GraphString, recurrence: str, sequence: Sequence, lowered: Lowered
) -> GraphSection:
    return GraphSection(
        recurrence=recurrence,
        sequence=sequence,
        arrows=tuple(lowered.arrows.values()),
        placements=tuple(lowered.placements.values()),
        position=string.position,
    )


def _sequences(
    string: GraphString, reader: CyclingReader, cycling: CyclingDef, findings: Findings
) -> Iterator[tuple[str, Sequence]]:
    try:
        texts = (
            [RUN_ONCE] if string.recurrence == "graph" else split_recurrences(string.recurrence)
        )
    except BadCycling as bad:
        findings.error("recurrence", bad.message, bad.hint, string.position)
        return
    for text in texts:
        try:
            yield text, reader.recurrence(text, cycling.initial, cycling.final)
        except BadCycling as bad:
            findings.error(
                "recurrence",
                f"the recurrence {text!r} is not understood: {bad.message}",
                bad.hint,
                string.position,
            )
