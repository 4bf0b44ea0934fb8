"""Declares tasks, families and xtriggers, and gives them the names that statements use."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, cast, overload

from tidewheel.core.graph import outputs
from tidewheel.core.graph.definition import DEFAULT_GROUP, LIMIT_DEFAULT, XtriggerDef
from tidewheel.core.graph.findings import NOWHERE, Findings, Position
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.graph_text import GraphTokenKind
from tidewheel.formats.flow_cylc.names import task_name_problem, xtrigger_name_problem
from tidewheel.formats.flow_cylc.xtriggers import XtriggerCall, check_call, xtrigger_of
from tidewheel.formats.python_api.functions import TaskValue, bind, bind_map, check_function
from tidewheel.formats.python_api.settings import Values, merged, read_settings
from tidewheel.formats.python_api.terms import (
    BadStatement,
    Mention,
    Named,
    StatementLog,
    TermLeaf,
    written_at,
)
from tidewheel.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    Several = Collection[object]
    # What a task can be mapped over: a list that a function returns, …
    Listed: TypeAlias = (
        "FunctionTask[..., Several | Awaitable[Several]] | MappedTask[object] | TaskValue"
    )

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# Tasks, families and xtriggers as a person names them: `model[-1].failed.optional`.


class Output(TermLeaf):
    """Names one output of a task, or of the members of a family."""

    __slots__ = ()

    @property
    def optional(self) -> Output:
        """Returns this output as optional: the task is complete without it (flow.cylc: `?`)."""
        if self.mention.output == outputs.FINISHED:
            raise BadStatement(
                f"{self}.optional already means success or failure", "leave out .optional"
            )
        return Output(self.ledger, replace(self.mention, optional=True))


class _Standard:
    """Is an attribute of terms that name a task: an output that every task has."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, term: Outputs, kind: type[Outputs]) -> Output:
        return Output(term.ledger, replace(term.mention, output=self._name))


class Outputs(Output):
    """Names a task at some point, or members of a family; by itself it means success."""

    __slots__ = ()

    succeeded = _Standard(outputs.SUCCEEDED)
    failed = _Standard(outputs.FAILED)
    finished = _Standard(outputs.FINISHED)  # succeeded or failed
    started = _Standard(outputs.STARTED)
    submitted = _Standard(outputs.SUBMITTED)
    submit_failed = _Standard(outputs.SUBMIT_FAILED)
    expired = _Standard(outputs.EXPIRED)

    def output(self, name: str) -> Output:
        """Returns the output with this name.

        Declare custom outputs with the task: flow.task("model", outputs={"ready": "message"}).
        """
        if self.mention.is_family:
            joined = f"{self.mention.reach}_of(*(one.output({name!r}) for one in members))"
            seen = f"{self}.output({name!r}): a family has no such output"
            raise BadStatement(seen, f"use the outputs of its members: {joined}")
        if self.mention.reach:
            seen = f"{self}.output({name!r}): output() does not follow .all or .any"
            base = Mention(self.mention.name, offset=self.mention.offset)
            raise BadStatement(seen, f"write {base}.output({name!r}), which means all elements")
        mention = replace(self.mention, output=outputs.standard_name(name))
        return Output(self.ledger, mention)

    def value(self, name: str) -> TaskValue:
        """Returns one of the values of a task by its name, as an argument for another task.

        `plot(model().value("path"))` gets "x.nc" if model returns {"path": "x.nc"}.
        """
        return TaskValue(self.ledger, self.mention, name)


class Task(Outputs, Named):
    """Names a node of the workflow; in a statement, its success at the statement's point."""

    __slots__ = ()

    def __init__(self, ledger: StatementLog, name: str) -> None:
        super().__init__(ledger, Mention(name))

    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTask[P, R]: ...

    @overload
    def __call__(self, *arguments: object, **keywords: object) -> Task: ...

    def __call__(self, *arguments: object, **keywords: object) -> Task:
        """Says with which arguments the task's function is called: `b(a())`.

        An argument is a constant, or a task: the function gets the value of that task, and runs
        after it. As a decorator, this gives a function to a task that has none.
        """
        first = arguments[0] if arguments else None
        if self.has_function or not callable(first) or isinstance(first, TermLeaf):
            bind(self, arguments, keywords)
            return self
        check_function(first)
        self.ledger.functions[self.name] = first
        return FunctionTask[..., object](self.ledger, self.name)

    def map(
        self,
        over: Listed | None = None,
        /,
        *,
        max: int | None = None,
        **named: object,
    ) -> MappedTask[Any]:
        """Runs the task once for each element of a list that another task returns.

        `plot.map(file=find.value("files"))` gives each job its element as the variable
        `$CYLC_TASK_PARAM_file`; `plot.map(process.map(find()))` runs it for each element that
        another task is run for. `max` is the largest number of elements that is allowed; 1,000
        if it is not given.
        """
        bind_map(self, () if over is None else (over,), named, max)
        return MappedTask(self.ledger, self.mention)

    @property
    def has_function(self) -> bool:
        return self.name in self.ledger.functions

    def __getitem__(self, offset: int | str) -> Outputs:
        """Returns the outputs at another point: [-1], ["-P1D"], ["^"], ["20300101"]."""
        return Outputs(self.ledger, _at(self, offset))


class FunctionTask(Task, Generic[P, R_co]):
    """Names a task that calls a function. Call the task to say which arguments it gets:
    `b(a())`."""

    __slots__ = ()

    @property
    def function(self) -> Callable[P, R_co]:
        """Returns the function itself, which you can call without a workflow."""
        return cast("Callable[P, R_co]", self.ledger.functions[self.name])

    # It has its function: another one is an argument.
    def __call__(self, *arguments: object, **keywords: object) -> FunctionTask[P, R_co]:  # type: ignore[override]
        """Says with which arguments the function is called: `b(a())`."""
        super().__call__(*arguments, **keywords)
        return self

    def map(
        self,
        over: Listed | None = None,
        /,
        *arguments: object,
        max: int | None = None,
        **keywords: object,
    ) -> MappedTask[R_co]:
        """Calls the function once for each element of a list that another task returns.

        In `process.map(find(), 3)` the first argument is the list. The other arguments are the
        same for each element: constants, or tasks whose values are passed. In
        `plot.map(process.map(…))`, plot gets for each element what process returned for this
        element; `summary(process.map(…))` gets all returned values as a list. `max` is the
        largest number of elements that is allowed; 1,000 if it is not given.
        """
        bind_map(self, () if over is None else (over, *arguments), keywords, max)
        return MappedTask(self.ledger, self.mention)


class Members(TermLeaf):
    """Names several tasks at some point: a family, or the elements of a mapped task.

    On the right of an arrow it is each of them.
    """

    __slots__ = ()

    @property
    def all(self) -> Outputs:
        """Stands for all members on the left of an arrow: `a.all.failed` needs each of them."""
        return Outputs(self.ledger, replace(self.mention, reach="all"))

    @property
    def any(self) -> Outputs:
        """Stands for any member on the left of an arrow: `a.any.failed` needs one of them."""
        return Outputs(self.ledger, replace(self.mention, reach="any"))


class Family(Members, Named):
    """Names a family: nodes that share settings, and are named together in statements."""

    __slots__ = ()

    def __init__(self, ledger: StatementLog, name: str) -> None:
        super().__init__(ledger, Mention(name, is_family=True))

    def __getitem__(self, offset: int | str) -> Members:
        return Members(self.ledger, _at(self, offset))


class Elements(Members, Outputs):
    """Names the elements of a mapped task at some point; by itself, the success of all.

    Before a task that is mapped over the same list, it is the element of the same number.
    """

    __slots__ = ()


class MappedTask(Elements, Named, Generic[R_co]):
    """Names a task that runs once for each element of a list; `map` returns it."""

    __slots__ = ()

    @property
    def optional(self) -> MappedTask[R_co]:
        """Returns the task; its elements need not all succeed: `summary(results.optional)`."""
        return MappedTask(self.ledger, replace(self.mention, optional=True))

    def __getitem__(self, offset: int | str) -> Elements:
        """Returns the elements at another point: `results[-1].all >> model`."""
        return Elements(self.ledger, _at(self, offset))


class Xtrigger(TermLeaf):
    """Names something outside of the workflow that is waited for."""

    __slots__ = ()

    def __init__(self, ledger: StatementLog, label: str) -> None:
        super().__init__(ledger, Mention(label, kind=GraphTokenKind.XTRIGGER))


_WORD = re.compile("[a-z_][a-z0-9_]*")


def _at(node: Named, offset: object) -> Mention:
    """Returns the mention of a node at an offset. The offset's text is read when all of the
    workflow is known."""
    if isinstance(offset, str):
        if _WORD.fullmatch(offset) and isinstance(node, Task):
            seen = (
                f"{node}[{offset!r}] would be {node} at another point, and {offset!r} is not "
                "an offset"
            )
            hint = f'for a value that {node} returns write .value("{offset}") after its call'
            raise BadStatement(seen, hint)
        return replace(node.mention, offset="".join(offset.split()))
    if not isinstance(offset, int) or isinstance(offset, bool):
        hint = f'write {node}[-1], {node}["-P1D"], {node}["^"] or {node}["2"]'
        raise BadStatement(f"{node}[{offset!r}] is not a valid offset", hint)
    if offset == 0:
        return node.mention
    if not node.ledger.is_integer:
        seen = f"{node}[{offset}] is a number, but the cycle points of this workflow are dates"
        raise BadStatement(seen, f'write an interval: {node}["-P1D"], {node}["-PT6H"]')
    if offset > 0:
        later = "1 point" if offset == 1 else f"{offset} points"
        seen = f"{node}[{offset}] could mean {later} later or the point {offset}"
        raise BadStatement(seen, f'write {node}["+P{offset}"] or {node}["{offset}"]')
    return replace(node.mention, offset=f"-P{-offset}")


# The tasks, families and xtriggers of a workflow, as they are declared one after the other.


@dataclass(slots=True)
class Declared:
    """Holds a task or family: its own settings and the families it inherits from."""

    name: str
    is_family: bool
    position: Position
    parents: tuple[str, ...] = (ROOT,)
    values: Values = field(default_factory=dict)


@dataclass(slots=True)
class LimitDeclared:
    """Says how many of the members may be active at once."""

    limit: int
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class Declarations:
    """Holds the declared tasks, families, xtriggers and limits of a workflow by name."""

    findings: Findings
    by_name: dict[str, Declared] = field(default_factory=dict)
    xtriggers: dict[str, XtriggerDef] = field(default_factory=dict)
    limits: dict[str, LimitDeclared] = field(
        default_factory=lambda: {DEFAULT_GROUP: LimitDeclared(LIMIT_DEFAULT)}
    )

    def __post_init__(self) -> None:
        self.by_name[ROOT] = Declared(ROOT, is_family=True, position=NOWHERE, parents=())

    def add(
        self, node: Task | Family, parents: tuple[object, ...], settings: Mapping[str, object]
    ) -> None:
        name, position = node.name, written_at()
        if problem := task_name_problem(name):
            self.findings.error("bad-name", f"{name!r} cannot be a name", problem, position)
        values = read_settings(name, settings, self.findings, position)
        known = self.by_name.get(name)
        if known is not None:
            where = "the family of all tasks" if name == ROOT else f"taken at {known.position}"
            seen = f"the name {name!r} is {where}"
            hint = "use flow.defaults(…) for all tasks" if name == ROOT else "choose another"
            self.findings.error("duplicate-name", seen, hint, position)
            return
        self.by_name[name] = Declared(
            name,
            isinstance(node, Family),
            position,
            self._parents(node, parents) or (ROOT,),
            values,
        )

    def _parents(self, node: Task | Family, parents: tuple[object, ...]) -> tuple[str, ...]:
        for parent in parents:
            if not isinstance(parent, Family) or parent.ledger is not node.ledger:
                seen = f"{parent} is not a family of this workflow"
                raise BadStatement(seen, f"make one: flow.family({str(parent)!r})")
        return tuple(dict.fromkeys(one.name for one in parents if isinstance(one, Family)))

    def add_defaults(self, settings: Mapping[str, object]) -> None:
        root = self.by_name[ROOT]
        root.position = written_at()
        own = read_settings(ROOT, settings, self.findings, root.position)
        root.values = merged(root.values, own)

    def add_xtrigger(self, label: str, call: XtriggerCall, position: Position) -> None:
        if problem := xtrigger_name_problem(label):
            seen = f"{label!r} cannot be the name of an xtrigger"
            self.findings.error("bad-name", seen, problem, position)
        check_call(label, call, Path(position.file).parent, self.findings, position)
        made = xtrigger_of(label, call, position)
        known = self.xtriggers.setdefault(label, made)
        if known is not made:
            message = f"the xtrigger {label!r} is already defined at {known.position}"
            again = "keep what flow.xtrigger(…) returned and use it again"
            hint = f"{again}, or choose another name"
            self.findings.error("duplicate-name", message, hint, position)

    def add_limit(
        self, name: str, limit: int, members: Iterable[Task | Family | MappedTask[Any]]
    ) -> None:
        if limit < 0:
            seen = f"the limit {name!r} is {limit}"
            hint = "write how many tasks may be active at once; 0 means no limit"
            self.findings.error("bad-value", seen, hint, written_at())
        names = []
        for member in members:
            if not isinstance(member, Task | Family | MappedTask):
                raise BadStatement(
                    f"{member!r} cannot be in a limit", "name tasks and families"
                )
            names.append(member.name)
        self.limits[name] = LimitDeclared(limit, tuple(names))
