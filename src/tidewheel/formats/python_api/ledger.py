"""Keeps the statements of a workflow, each under the recurrence that was open at that time."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.graph_text.chains import Chain
from tidewheel.formats.python_api.functions import TaskFunction
from tidewheel.formats.python_api.refusals import BadStatement, written_at


@dataclass(slots=True)
class Section:
    """Everything that was said under one recurrence; saying it in two places adds up."""

    recurrence: str
    position: Position
    # A dict for its order: the same statement twice is one.
    chains: dict[Chain, None] = field(default_factory=dict)


@dataclass(slots=True)
class Ledger:
    """What is known of a workflow while its file is being executed."""

    workflow: str
    is_integer: bool
    findings: Findings = field(default_factory=Findings)
    sections: dict[str, Section] = field(default_factory=dict)
    current: Section | None = None
    functions: dict[str, TaskFunction] = field(default_factory=dict)  # by task

    def open(self, recurrence: str) -> None:
        if self.current is not None:
            raise BadStatement(
                f"the cycle {recurrence!r} begins inside of {self.current.recurrence!r}",
                "end the one before: each 'with flow.cycle(…)' stands by itself",
            )
        new = Section(recurrence, written_at())
        self.current = self.sections.setdefault("".join(recurrence.split()), new)

    def close(self) -> None:
        self.current = None

    def expect_cycle(self, *sides: object) -> None:
        if self.current is None:
            raise BadStatement(
                f"{' >> '.join(map(str, sides))} stands outside of a cycle of the workflow "
                f"{self.workflow!r}",
                "write it under 'with flow.cycle(\"P1\"):', or whichever recurrence it has",
            )

    def record(self, chain: Chain, instead_of: Chain | None = None) -> None:
        """A chain that grew replaces what it was; if that grew in two ways, both stay."""
        assert self.current is not None
        if instead_of is not None:
            self.current.chains.pop(instead_of, None)
        self.current.chains[chain] = None


class Cycle:
    """`with flow.cycle("P1"):` puts the statements below it on that recurrence."""

    def __init__(self, ledger: Ledger, recurrence: str) -> None:
        self._ledger, self._recurrence = ledger, recurrence

    def __enter__(self) -> None:
        self._ledger.open(self._recurrence)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ledger.close()
