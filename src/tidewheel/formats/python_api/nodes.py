"""Tasks, families and xtriggers as a person names them: `model[-1].failed.optional`."""

from __future__ import annotations

from dataclasses import replace

from tidewheel.core.graph.outputs import (
    EXPIRED,
    FAILED,
    FINISHED,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
    standard_name,
)
from tidewheel.formats.flow_cylc.graph_text.tokens import Kind
from tidewheel.formats.python_api.functions import TaskFunction, check_function
from tidewheel.formats.python_api.ledger import Ledger
from tidewheel.formats.python_api.refusals import BadStatement
from tidewheel.formats.python_api.terms import Leaf, Mention


class Output(Leaf):
    """One output of a task, or of the members of a family."""

    __slots__ = ()

    @property
    def optional(self) -> Output:
        """The same, but the task is complete without it: `?` in flow.cylc."""
        if self.mention.output == FINISHED:
            raise BadStatement(
                f"{self}.optional asks for either end already", "leave out .optional"
            )
        return Output(self.ledger, replace(self.mention, optional=True))


class Outputs(Output):
    """A task at some point, or members of a family: as it is, its success."""

    __slots__ = ()

    @property
    def succeeded(self) -> Output:
        return self._with(SUCCEEDED)

    @property
    def failed(self) -> Output:
        return self._with(FAILED)

    @property
    def finished(self) -> Output:
        """Succeeded or failed."""
        return self._with(FINISHED)

    @property
    def started(self) -> Output:
        return self._with(STARTED)

    @property
    def submitted(self) -> Output:
        return self._with(SUBMITTED)

    @property
    def submit_failed(self) -> Output:
        return self._with(SUBMIT_FAILED)

    @property
    def expired(self) -> Output:
        return self._with(EXPIRED)

    def output(self, name: str) -> Output:
        """One that the task declares: flow.task("model", outputs={"ready": "message"})."""
        if self.mention.is_family:
            raise BadStatement(
                f"{self}.output({name!r}) asks for a family's own output",
                f"join the members: {self.mention.reach}_of(*(one.output({name!r}) for one in "
                "members))",
            )
        return self._with(standard_name(name))

    def _with(self, output: str) -> Output:
        return Output(self.ledger, replace(self.mention, output=output))


class Task(Outputs):
    """A node of the workflow; in a statement, its success at the statement's own point."""

    __slots__ = ()

    def __init__(self, ledger: Ledger, name: str) -> None:
        super().__init__(ledger, Mention(name))

    def __call__(self, function: TaskFunction) -> Task:
        """Above a function: what the task does. `function` gives it back."""
        check_function(function)
        self.ledger.functions[self.name] = function
        return self

    @property
    def function(self) -> TaskFunction | None:
        return self.ledger.functions.get(self.name)

    @property
    def name(self) -> str:
        return self.mention.name

    def __getitem__(self, offset: int | str) -> Outputs:
        """At another point: [-1], ["-P1D"], ["^"], ["20300101"]."""
        return Outputs(self.ledger, _at(self, offset))

    def __invert__(self) -> Leaf:
        """On the right of an arrow: remove the task instead of running it."""
        return Leaf(self.ledger, replace(self.mention, suicide=True))


class Members(Leaf):
    """A family at some point; on the right of an arrow, each of its members."""

    __slots__ = ()

    @property
    def all(self) -> Outputs:
        """Each member, on the left of an arrow."""
        return Outputs(self.ledger, replace(self.mention, reach="all"))

    @property
    def any(self) -> Outputs:
        """At least one member, on the left of an arrow."""
        return Outputs(self.ledger, replace(self.mention, reach="any"))


class Family(Members):
    """Nodes with the same settings, which can be named together."""

    __slots__ = ()

    def __init__(self, ledger: Ledger, name: str) -> None:
        super().__init__(ledger, Mention(name, is_family=True))

    @property
    def name(self) -> str:
        return self.mention.name

    def __getitem__(self, offset: int | str) -> Members:
        return Members(self.ledger, _at(self, offset))

    def __invert__(self) -> Leaf:
        return Leaf(self.ledger, replace(self.mention, suicide=True))


class Xtrigger(Leaf):
    """Something outside of the workflow that is waited for."""

    __slots__ = ()

    def __init__(self, ledger: Ledger, label: str) -> None:
        super().__init__(ledger, Mention(label, kind=Kind.XTRIGGER))


def _at(node: Task | Family, offset: object) -> Mention:
    """The text of the offset is read when all of the workflow is known."""
    if isinstance(offset, str):
        return replace(node.mention, offset="".join(offset.split()))
    if not isinstance(offset, int) or isinstance(offset, bool):
        raise BadStatement(
            f"{node}[{offset!r}] is no offset",
            f'write {node}[-1], {node}["-P1D"], {node}["^"] or {node}["2"]',
        )
    if offset == 0:
        return node.mention
    if not node.ledger.is_integer:
        raise BadStatement(
            f"{node}[{offset}] counts points, and those of this workflow are dates",
            f'write an interval: {node}["-P1D"], {node}["-PT6H"]',
        )
    if offset > 0:
        raise BadStatement(
            f"{node}[{offset}] may be {offset} later or the point {offset}",
            f'write {node}["+P{offset}"] or {node}["{offset}"]',
        )
    return replace(node.mention, offset=f"-P{-offset}")
