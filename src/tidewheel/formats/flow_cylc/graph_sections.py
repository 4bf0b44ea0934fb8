"""Recurrences and graph texts as the sections of a definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph.definition import CyclingDef, GraphSection, OutputMark
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader, split_recurrences
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.graph_strings import GraphString
from tidewheel.formats.flow_cylc.graph_text.chains import read_chains
from tidewheel.formats.flow_cylc.graph_text.lowering import Lowered, Lowering
from tidewheel.formats.flow_cylc.graph_text.variants import ParameterTable, variants
from tidewheel.formats.flow_cylc.settings import FlowSettings

RUN_ONCE = "R1"


@dataclass(slots=True)
class GraphRead:
    """What all graph texts say together."""

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
