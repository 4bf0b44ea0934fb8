"""The tasks, families and xtriggers of a workflow, as they are declared one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidewheel.core.graph.definition import DEFAULT_GROUP, LIMIT_DEFAULT, XtriggerDef
from tidewheel.core.graph.findings import NOWHERE, Findings, Position
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.names import task_name_problem, xtrigger_name_problem
from tidewheel.formats.flow_cylc.xtriggers import XtriggerCall, check_call, is_sequential
from tidewheel.formats.python_api.declarations import Family, Task
from tidewheel.formats.python_api.refusals import BadStatement, written_at
from tidewheel.formats.python_api.settings import Values, merged, read_settings


@dataclass(slots=True)
class Declared:
    """A task or family: its own settings and whom it inherits from."""

    name: str
    is_family: bool
    position: Position
    parents: tuple[str, ...] = (ROOT,)
    values: Values = field(default_factory=dict)


@dataclass(slots=True)
class LimitDeclared:
    """How many of these may be active at once."""

    limit: int
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class Declarations:
    """Everything that has a name."""

    findings: Findings
    by_name: dict[str, Declared] = field(default_factory=dict)
    xtriggers: dict[str, XtriggerDef] = field(default_factory=dict)
    limits: dict[str, LimitDeclared] = field(
        default_factory=lambda: {DEFAULT_GROUP: LimitDeclared(LIMIT_DEFAULT)}
    )

    def __post_init__(self) -> None:
        self.by_name[ROOT] = Declared(ROOT, is_family=True, position=NOWHERE, parents=())

    def add(
        self,
        node: Task | Family,
        parents: tuple[object, ...],
        settings: Mapping[str, object],
    ) -> None:
        name, position = node.name, written_at()
        if problem := task_name_problem(name):
            self.findings.error("bad-name", f"{name!r} cannot be a name", problem, position)
        values = read_settings(name, settings, self.findings, position)
        known = self.by_name.get(name)
        if known is not None:
            where = "the family of all tasks" if name == ROOT else f"taken at {known.position}"
            self.findings.error(
                "duplicate-name",
                f"the name {name!r} is {where}",
                "use flow.defaults(…) for all tasks" if name == ROOT else "choose another",
                position,
            )
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
                raise BadStatement(
                    f"{parent} is no family of this workflow",
                    f"make one: flow.family({str(parent)!r})",
                )
        return tuple(dict.fromkeys(one.name for one in parents if isinstance(one, Family)))

    def add_defaults(self, settings: Mapping[str, object]) -> None:
        root = self.by_name[ROOT]
        root.position = written_at()
        own = read_settings(ROOT, settings, self.findings, root.position)
        root.values = merged(root.values, own)

    def add_xtrigger(self, label: str, call: XtriggerCall, position: Position) -> None:
        if problem := xtrigger_name_problem(label):
            self.findings.error(
                "bad-name",
                f"{label!r} cannot be the name of an xtrigger",
                problem,
                position,
            )
        check_call(label, call, Path(position.file).parent, self.findings, position)
        made = XtriggerDef(
            label,
            call.function,
            call.arguments,
            call.keywords,
            call.interval_seconds,
            is_sequential(call, by_default=False),
            position,
        )
        known = self.xtriggers.setdefault(label, made)
        if known is not made:
            self.findings.error(
                "duplicate-name",
                f"the xtrigger {label!r} is already made at {known.position}",
                "keep what flow.xtrigger(…) returned and use it again, or choose another name",
                position,
            )

    def add_limit(self, name: str, limit: int, members: Iterable[Task | Family]) -> None:
        if limit < 0:
            self.findings.error(
                "bad-value",
                f"the limit {name!r} is {limit}",
                "write how many tasks may be active at once; 0 is no limit",
                written_at(),
            )
        names = tuple(one.name for one in members if _is_node(one))
        self.limits[name] = LimitDeclared(limit, names)


def _is_node(member: object) -> bool:
    if not isinstance(member, Task | Family):
        raise BadStatement(f"{member!r} cannot be in a limit", "name tasks and families")
    return True
