"""The statements of a workflow become the sections of a definition, as graph text does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph.definition import CyclingDef, GraphSection, OutputMark
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.node import NodeDef
from tidewheel.core.graph.outputs import FINISHED, STANDARD
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader, split_recurrences
from tidewheel.formats.flow_cylc.graph_text.chains import Chain, Expression
from tidewheel.formats.flow_cylc.graph_text.lowering import Lowering
from tidewheel.formats.flow_cylc.graph_text.tokens import Kind, Token
from tidewheel.formats.python_api.ledger import Section


@dataclass(frozen=True, slots=True)
class StatementReader:
    """Reads the statements of every section against one set of nodes and families."""

    nodes: Mapping[str, NodeDef]
    members: Mapping[str, tuple[str, ...]]
    reader: CyclingReader
    cycling: CyclingDef
    findings: Findings

    def read(
        self, sections: Mapping[str, Section]
    ) -> tuple[tuple[GraphSection, ...], tuple[OutputMark, ...]]:
        found: list[GraphSection] = []
        marks: dict[OutputMark, None] = {}
        lowering = Lowering(self.members, self.reader.offset, self.findings)
        for section in sections.values():
            lowered = lowering.lower(self._mended(chain) for chain in section.chains)
            marks.update(dict.fromkeys(lowered.marks.values()))
            found += (
                GraphSection(
                    recurrence=text,
                    sequence=sequence,
                    arrows=tuple(lowered.arrows.values()),
                    placements=tuple(lowered.placements.values()),
                    position=section.position,
                )
                for text, sequence in self._sequences(section)
            )
        return tuple(found), tuple(marks)

    def _sequences(self, section: Section) -> Iterator[tuple[str, Sequence]]:
        try:
            for text in split_recurrences(section.recurrence):
                yield (
                    text,
                    self.reader.recurrence(text, self.cycling.initial, self.cycling.final),
                )
        except BadCycling as bad:
            self.findings.error(
                "recurrence",
                f"the recurrence {section.recurrence!r} is not understood: {bad.message}",
                bad.hint,
                section.position,
            )

    def _mended(self, chain: Chain) -> Chain:
        """What names nothing is reported here, in Python's words, and taken for success."""
        return Chain(tuple(self._mended_side(side) for side in chain.sides), chain.position)

    def _mended_side(self, side: Expression) -> Expression:
        if not isinstance(side, Token):
            return type(side)(tuple(self._mended_side(term) for term in side.terms))
        if side.kind is not Kind.NODE:
            return side
        if side.text in self.members:
            self._check_members(side)
            return side
        if side.qualifier is None or side.text not in self.nodes:
            return side
        known = (*STANDARD, FINISHED, *dict(self.nodes[side.text].outputs))
        if side.qualifier in known:
            return side
        near = get_close_matches(side.qualifier, known, n=1)
        guess = f"did you mean {near[0]!r}? Or declare it" if near else "declare it"
        self.findings.error(
            "unknown-output",
            f"{side.text} has no output {side.qualifier!r}",
            f"{guess}: flow.task({side.text!r}, outputs={{{side.qualifier!r}: 'message'}})",
            side.position,
        )
        return side._replace(qualifier=None)

    def _check_members(self, family: Token) -> None:
        if not self.members[family.text]:
            self.findings.error(
                "empty-family",
                f"the family {family.text} has no members",
                f"make some: flow.task('name', family={family.text})",
                family.position,
            )
