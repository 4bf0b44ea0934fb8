"""Recurrences and graph texts become the sections of a definition.

`<m-1>` before the first value of m names no task: that task is left out of its side, and where
a side has no task left, the chain ends before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from tidewheel.core.graph.definition import CyclingDef, GraphSection, OutputMark
from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader, split_recurrences
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.graph_arrows import Lowered, Lowering
from tidewheel.formats.flow_cylc.graph_text import (
    Chain,
    Expression,
    Token,
    nodes_of,
    read_chains,
)
from tidewheel.formats.flow_cylc.names import BadParameter, Parameters, Pieces, references
from tidewheel.formats.flow_cylc.settings import FlowSettings

# A chain with parameters stands for one chain for each combination of their values.

VARIANTS_MAX = 100_000  # chains that one line may stand for


def variants(chain: Chain, parameters: Parameters, findings: Findings) -> Iterator[Chain]:
    """Yields the chains that a chain stands for; itself where it has no parameter."""
    tokens = [token for side in chain.sides for token in nodes_of(side) if "<" in token.text]
    if not tokens:
        yield chain
        return
    named: dict[str, Pieces] = {}
    for token in tokens:
        try:
            named[token.text] = parameters.pieces(token.text)
        except BadParameter as bad:
            findings.error(bad.finding_code, str(bad), bad.hint, token.position)
            return
    # A fixed value takes part in the loop too, as in Cylc: the duplicates fall together later.
    names = list(dict.fromkeys(one.name for some in named.values() for one in references(some)))
    count = prod(len(parameters.values[name]) for name in names)
    if count > VARIANTS_MAX:
        seen = f"the parameters {', '.join(names)} make {count} chains of this line"
        hint = f"at most {VARIANTS_MAX} are accepted: use fewer values, or families"
        findings.error("too-many-tasks", seen, hint, chain.position)
        return
    for values in product(*(parameters.values[name] for name in names)):
        bound = dict(zip(names, values, strict=True))
        written = {text: parameters.written_at(some, bound) for text, some in named.items()}
        sides: list[Expression] = []
        for side in chain.sides:
            if (kept := _bound(side, written)) is None:
                break
            sides.append(kept)
        if sides:
            yield replace(chain, sides=tuple(sides))


def _bound(side: Expression, written: Mapping[str, str | None]) -> Expression | None:
    """Returns a side with names instead of parameters; None if no task of it is left."""
    if isinstance(side, Token):
        name = written.get(side.text, side.text)
        return None if name is None else side._replace(text=name)
    terms = (_bound(inner, written) for inner in side.terms)
    kept = tuple(term for term in terms if term is not None)
    if len(kept) <= 1:
        return kept[0] if kept else None
    return type(side)(kept)


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
    found = GraphRead()
    errors_before = findings.error_count
    marks: dict[OutputMark, None] = {}
    for string in settings.graph:
        lowered = lowering.lower(
            variant
            for chain in read_chains(string.lines, findings)
            for variant in variants(chain, settings.parameters, findings)
        )
        recurrences = RUN_ONCE if string.recurrence == "graph" else string.recurrence
        found.sections += sections_of(
            recurrences, lowered, string.position, reader, cycling, findings
        )
        marks.update(dict.fromkeys(lowered.marks.values()))
        found.polled.update(lowered.polled)
    found.marks = list(marks)
    found.is_whole = findings.error_count == errors_before
    return found


def sections_of(
    recurrences: str,
    lowered: Lowered,
    position: Position,
    reader: CyclingReader,
    cycling: CyclingDef,
    findings: Findings,
) -> Iterator[GraphSection]:
    """Yields a section for each recurrence of a list."""
    try:
        texts = split_recurrences(recurrences)
    except BadCycling as bad:
        findings.error("recurrence", bad.message, bad.hint, position)
        return
    for text in texts:
        try:
            sequence = reader.recurrence(text, cycling.initial, cycling.final)
        except BadCycling as bad:
            seen = f"the recurrence {text!r} is not understood: {bad.message}"
            findings.error("recurrence", seen, bad.hint, position)
            continue
        yield GraphSection(
            recurrence=text,
            sequence=sequence,
            arrows=tuple(lowered.arrows.values()),
            placements=tuple(lowered.placements.values()),
            position=position,
        )
