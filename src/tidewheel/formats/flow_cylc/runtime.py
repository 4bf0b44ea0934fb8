"""The resolved runtime of every namespace: inherited, filtered and made into node values.

What is the same for many is made once: the settings that a task inherits are merged once for
all tasks with the same ancestors, and a group of settings (scripts, events, …) that a task does
not touch is its ancestors' very value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from tidewheel.core.graph.findings import Position
from tidewheel.core.graph.node import NodeDef, Pairs
from tidewheel.formats.flow_cylc.checking import Values
from tidewheel.formats.flow_cylc.families import ROOT, Families
from tidewheel.formats.flow_cylc.namespaces import Namespace, Namespaces
from tidewheel.formats.flow_cylc.node_groups import GROUP_OF, GROUPS
from tidewheel.formats.flow_cylc.parameters import BadParameter, fill_template

_DEFAULTS = {group: getattr(NodeDef(name=""), group) for group in GROUPS}


@dataclass(frozen=True, slots=True)
class Inherited:
    """What one list of ancestors gives to whoever has it."""

    values: Values
    groups: dict[str, Any]


def resolve(namespaces: Namespaces, families: Families) -> dict[str, NodeDef]:
    """A node for each namespace, families included."""
    resolver = _Resolver(namespaces, families)
    return {name: resolver.node(one) for name, one in namespaces.by_name.items()}


def implicit_node(name: str, root: NodeDef, position: Position) -> NodeDef:
    """A task that the graph names and no section defines: all it has is root's."""
    return replace(root, name=name, lineage=(name, ROOT), position=position)


class _Resolver:
    def __init__(self, namespaces: Namespaces, families: Families) -> None:
        self._namespaces = namespaces
        self._families = families
        self._inherited: dict[tuple[str, ...], Inherited] = {
            (): Inherited({}, _DEFAULTS),
        }

    def node(self, namespace: Namespace) -> NodeDef:
        name = namespace.name
        lineage = self._families.lineages[name]
        if name in self._families.members:
            groups = self._from(lineage).groups
        else:
            groups = self._extended(self._from(lineage[1:]), namespace).groups
        if namespace.parameters:
            filled = self._filled(groups["environment"], namespace)
            if filled is not groups["environment"]:
                groups = {**groups, "environment": filled}
        return NodeDef(
            name=name,
            lineage=lineage,
            parameters=tuple(namespace.parameters.items()),
            position=self._namespaces.place(namespace.section),
            **groups,
        )

    def _from(self, lineage: tuple[str, ...]) -> Inherited:
        known = self._inherited.get(lineage)
        if known is None:
            namespace = self._namespaces.by_name[lineage[0]]
            known = self._extended(self._from(lineage[1:]), namespace)
            self._inherited[lineage] = known
        return known

    @staticmethod
    def _extended(base: Inherited, namespace: Namespace) -> Inherited:
        """The ancestors' settings with the namespace's own over them."""
        touched: set[str] = set()
        values: Values = dict(base.values)
        for own in namespace.owns:
            for name, value in own.items():
                group = GROUP_OF.get(name)
                if group is None:
                    continue
                touched.add(group)
                before = values.get(name)
                if type(value) is dict and type(before) is dict:
                    value = {**before, **value}  # noqa: PLW2901 - the merged section
                values[name] = value
        if not touched:
            return base
        groups = dict(base.groups)
        for group in touched:
            groups[group] = GROUPS[group][0](values)
        return Inherited(values, groups)

    def _filled(self, environment: Pairs, namespace: Namespace) -> Pairs:
        """`%(m)s` in a value is the task's value of the parameter m."""
        if not any("%(" in value for _, value in environment):
            return environment
        filled = []
        for name, value in environment:
            try:
                text = fill_template(value, namespace.parameters) if "%(" in value else value
            except BadParameter as error:
                text = value
                self._namespaces.findings.warning(
                    "bad-parameter",
                    f"[runtime][{namespace.name}][environment]{name}: {error}",
                    error.hint,
                    self._namespaces.place(namespace.section),
                )
            filled.append((name, text))
        return cast("Pairs", tuple(filled))
