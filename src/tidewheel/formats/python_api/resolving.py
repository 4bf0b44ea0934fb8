"""Declared tasks and families become nodes, which inherit what their families say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tidewheel.core.cycling.interval import Interval
from tidewheel.core.graph.definition import FamilyDef, SpecialNodes
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.node import NodeDef
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader
from tidewheel.formats.flow_cylc.families import ROOT, Families, arrange
from tidewheel.formats.flow_cylc.node_checks import check_tasks
from tidewheel.formats.flow_cylc.node_groups import GROUP_OF, GROUPS
from tidewheel.formats.python_api.declarations import (
    Declarations,
    Declared,
)
from tidewheel.formats.python_api.functions import TaskFunction, script_of
from tidewheel.formats.python_api.settings import SPECIAL, Values, merged

Read = TypeVar("Read")

_DEFAULTS: dict[str, Any] = {group: getattr(NodeDef(name=""), group) for group in GROUPS}


@dataclass(frozen=True, slots=True)
class _Inherited:
    """What one list of ancestors gives to whoever has it."""

    values: Values
    groups: dict[str, Any]


class Resolver:
    """Looks settings up along the families; tasks with the same ancestors share the answer."""

    def __init__(
        self,
        declared: Declarations,
        functions: Mapping[str, TaskFunction],
        findings: Findings,
    ) -> None:
        self._declared = declared.by_name
        self._functions = functions
        self._findings = findings
        self._families = self._arrange()
        self._known: dict[tuple[str, ...], _Inherited] = {(): _Inherited({}, _DEFAULTS)}
        self.members: dict[str, tuple[str, ...]] = {
            name: tuple(
                one
                for one in self._families.members.get(name, ())
                if not self._declared[one].is_family
            )
            for name, node in self._declared.items()
            if node.is_family and name != ROOT
        }

    def _arrange(self) -> Families:
        parents = {name: one.parents for name, one in self._declared.items()}
        first = {name: named[0] for name, named in parents.items() if named}
        families, problems = arrange(parents, first)
        for problem in problems:
            self._findings.error(
                "bad-inheritance",
                f"the families of {problem.name}: {problem.message}",
                problem.hint,
                self._declared[problem.name].position,
            )
        return families

    def tasks(self) -> dict[str, NodeDef]:
        nodes = {
            name: self.node(name) for name, one in self._declared.items() if not one.is_family
        }
        check_tasks(nodes.values(), {}, self._findings)
        return nodes

    def node(self, name: str) -> NodeDef:
        declared, lineage = self._declared[name], self._families.lineages[name]
        function = self._functions.get(name)
        if function is not None:
            if "script" in declared.values:
                self._findings.error(
                    "two-scripts",
                    f"{name} has a function, and a script or a command beside it",
                    "keep one of them",
                    declared.position,
                )
            script: Values = {"script": script_of(function, name)}
            declared = replace(declared, values=declared.values | script)
        groups = self._extended(self._from(lineage[1:]), declared).groups
        return NodeDef(name=name, lineage=lineage, position=declared.position, **groups)

    def families(self) -> dict[str, FamilyDef]:
        return {
            name: FamilyDef(name, members, self._drawn_in(name))
            for name, members in self.members.items()
        }

    def special_nodes(self, reader: CyclingReader) -> SpecialNodes:
        return SpecialNodes(
            sequential=frozenset(name for name, on in self._special("sequential", bool) if on),
            wait_for_clock=dict(self._special("wait_for_clock", _interval(reader))),
            expire_after=dict(self._special("expire_after", _interval(reader))),
            wait_for_message=dict(self._special("wait_for_message", str)),
        )

    def _special(self, word: str, read: Callable[[object], Read]) -> Iterator[tuple[str, Read]]:
        assert word in SPECIAL
        said = {
            name: one.values[word] for name, one in self._declared.items() if word in one.values
        }
        for name, one in self._declared.items():
            if one.is_family or not said:
                continue
            nearest = next((who for who in self._families.lineages[name] if who in said), None)
            if nearest is None:
                continue
            try:
                yield name, read(said[nearest])
            except BadCycling as bad:
                self._findings.error(
                    "bad-value", f"{name}: {word}: {bad.message}", bad.hint, one.position
                )

    def _drawn_in(self, name: str) -> str | None:
        parent = self._families.first_parents.get(name, ROOT)
        return None if parent == ROOT else parent

    def _from(self, lineage: tuple[str, ...]) -> _Inherited:
        known = self._known.get(lineage)
        if known is None:
            own = self._declared[lineage[0]]
            known = self._known[lineage] = self._extended(self._from(lineage[1:]), own)
        return known

    @staticmethod
    def _extended(given: _Inherited, own: Declared) -> _Inherited:
        """The ancestors' settings with its own over them; sections are merged."""
        if not own.values:
            return given
        values = merged(given.values, own.values)
        touched = {GROUP_OF[name] for name in own.values if name in GROUP_OF}
        made = {group: GROUPS[group][0](values) for group in touched}
        return _Inherited(values, {**given.groups, **made})


def _interval(reader: CyclingReader) -> Callable[[object], Interval]:
    return lambda text: reader.interval(str(text))
