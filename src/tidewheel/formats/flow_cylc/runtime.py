"""Reads `[runtime]`: its headings become namespaces, which inherit and become node values.

What is the same for many is made once: the settings that a task inherits are merged once for
all tasks with the same ancestors, and a group of settings (scripts, events, …) that a task does
not touch is its ancestors' very value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, cast

from tidewheel.core.graph.definition import NodeDef, Pairs, RunMode
from tidewheel.core.graph.findings import Position, meant
from tidewheel.formats.flow_cylc.checker import Checker, Values
from tidewheel.formats.flow_cylc.families import ROOT, Families, arrange
from tidewheel.formats.flow_cylc.items import NAMESPACE, TASK_EVENTS, node_fields
from tidewheel.formats.flow_cylc.names import (
    BadParameter,
    Chosen,
    Parameters,
    Value,
    fill_template,
    task_name_problem,
)
from tidewheel.formats.flow_cylc.node_checks import SectionChecks
from tidewheel.formats.flow_cylc.sections import PlacedFindings, Section
from tidewheel.formats.growth import grow
from tidewheel.lazy_dataclasses import dataclass

# Groups of a node's settings (scripts, events, …), each made of the items that name its fields.

_NODE = NodeDef(name="")
# In the order of the fields of a node, between its parameters and its position.
_GROUPS = NodeDef.__slots__[3:-1]
_PAIRED = ("environment", "inputs", "meta", "outputs")
_VALUES = ("completion", "time_limit_seconds", "workflow")
GROUP_OF: dict[str, str] = {}
_ITEMS: dict[str, list[tuple[str, str, str]]] = {}  # by group: section, item, field of each
for _section, _item, _group, _field in node_fields():
    GROUP_OF[_section or _item] = _group
    _ITEMS.setdefault(_group, []).append((_section, _item, _field))
# Groups whose items stand in no section: the field of each item.
_PLAIN = {
    group: {item: name for _, item, name in items}
    for group, items in _ITEMS.items()
    if not any(section for section, _, _ in items)
}


@dataclass(frozen=True, slots=True)
class Inherited:
    """Holds the settings that namespaces with the same list of ancestors inherit."""

    values: Values
    groups: dict[str, Any]

    def extended(self, owns: Iterable[Values]) -> Inherited:
        """Returns these settings with an heir's own ones over them, item by item."""
        touched: dict[str, None] = {}
        values: Values = {}
        for own in owns:
            for name, value in own.items():
                group = GROUP_OF.get(name)
                if group is None:
                    continue
                if not touched:
                    values = self.values.copy()
                touched[group] = None
                before = values.get(name)
                if type(value) is dict and type(before) is dict:
                    value = {**before, **value}  # noqa: PLW2901 - the merged section
                values[name] = value
        if not touched:
            return self
        groups = self.groups.copy()
        for group in touched:
            groups[group] = _made(group, values)
        return Inherited(values, groups)


class Inheritance:
    """Merges the settings that namespaces inherit; those with the same ancestors share them."""

    def __init__(self, owns: Mapping[str, Iterable[Values]]) -> None:
        self._owns = owns
        groups = {group: getattr(_NODE, group) for group in _GROUPS}
        self._known: dict[tuple[str, ...], Inherited] = {(): Inherited({}, groups)}

    def of(self, lineage: tuple[str, ...]) -> Inherited:
        known = self._known.get(lineage)
        if known is None:
            inherited = self.of(lineage[1:])
            known = self._known[lineage] = inherited.extended(self._owns[lineage[0]])
        return known


def _made(group: str, values: Values) -> object:
    """Returns one field of a node, made of its items; those not given keep the default."""
    if group in _PAIRED:
        chosen: Any = values.get(group) or {}
        if "environment filter" in values and group == "environment":
            chosen = _filtered(values)
        return tuple(chosen.items())
    said: dict[str, Any] = {}
    if (plain := _PLAIN.get(group)) is not None:
        for item, value in values.items():
            if item in plain and value is not None:
                said[plain[item]] = value
    else:
        said = _said_in_sections(group, values)
    default: Any = getattr(_NODE, group)
    if group == "run_mode":
        return RunMode(said.get("") or default)
    return type(default)(**said) if group not in _VALUES else said.get("", default)


def _said_in_sections(group: str, values: Values) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for section, item, name in _ITEMS[group]:
        own: Any = values.get(section) if section else values
        if not own:
            continue
        value = own.get(item) if item else tuple(own.items())
        if value is not None and name != "handlers":
            said[name] = value
    if group == "events":
        said["handlers"] = handlers_of(cast("Values", values["events"]), TASK_EVENTS)
    return said


def _filtered(values: Values) -> Values:
    """Returns the variables that `[[[environment filter]]]` leaves; without `include` all."""
    variables = cast("Values", values.get("environment", {}))
    chosen = cast("dict[str, tuple[str, ...]]", values["environment filter"])
    include, exclude = chosen.get("include"), chosen.get("exclude") or ()
    return {
        name: value
        for name, value in variables.items()
        if (not include or name in include) and name not in exclude
    }


def handlers_of(
    values: Values, events: Iterable[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns the commands of each event that has some; "" stands for all handled events."""
    found = [("", values.get("handlers"))]
    found += [(event, values.get(f"{event} handlers")) for event in events]
    return tuple((event, cast("tuple[str, ...]", one)) for event, one in found if one)


# `[runtime]`: headings become namespaces, each with what its own sections say.

NAMESPACES_MAX = 100_000  # after parameters were expanded
NOBODY = "None"


@dataclass(slots=True)
class Namespace:
    """Holds a task or family: the values of each section that names it, in order."""

    name: str
    section: Section
    owns: list[Values] = field(default_factory=list)
    parameters: dict[str, Value] = field(default_factory=dict)
    inherit: tuple[str, ...] = ()


@dataclass(slots=True)
class Namespaces:
    """Holds the namespaces of `[runtime]` by name: tasks and families."""

    findings: PlacedFindings
    parameters: Parameters
    by_name: dict[str, Namespace] = field(default_factory=dict)

    def read(self, runtime: Section | None, checker: Checker) -> None:
        sections = list(runtime.sections()) if runtime is not None else []
        checks = SectionChecks(self.findings)
        if not self._are_too_many(sections):
            for section in sections:
                values = checker.check(section, NAMESPACE, ("runtime", section.name))
                checks.check(section, values)
                self._read(section, values)
        if ROOT not in self.by_name:
            self.by_name[ROOT] = Namespace(ROOT, Section(ROOT, -1))

    def _are_too_many(self, sections: list[Section]) -> bool:
        """Says whether the headings stand for too many names, and reports it. The names are
        counted before any is made, because making too many would be the harm."""
        count = 0
        for section in sections:
            try:
                count += self.parameters.count_names(section.name)
            except BadParameter:
                continue  # reported where it is expanded
            if count > NAMESPACES_MAX:
                seen = f"with this heading there are {count} tasks and families"
                most = f"{seen}; at most {NAMESPACES_MAX} are accepted"
                hint = "use fewer parameter values"
                self.findings.error("too-many-namespaces", most, hint, section)
                return True
        grow(count)
        return False

    def _read(self, section: Section, values: Values) -> None:
        if section.name.isidentifier():  # one name, without parameters
            self._add(section.name, {}, values, section)
            return
        try:
            expanded = list(self.parameters.expand_heading(section.name))
        except BadParameter as error:
            self.findings.error("bad-parameter", str(error), error.hint, section)
            return
        if not expanded:
            seen = "this heading names no task or family"
            self.findings.error("bad-name", seen, "write [[NAME]]", section)
        for name, chosen in expanded:
            self._add(name, chosen, values, section)

    def _add(self, name: str, chosen: Chosen, values: Values, section: Section) -> None:
        namespace = self.by_name.get(name)
        if namespace is None:
            if problem := task_name_problem(name):
                self.findings.error("bad-name", f"{name!r} cannot be a name", problem, section)
                return
            namespace = self.by_name[name] = Namespace(name, section)
        namespace.owns.append(values)
        if chosen:
            namespace.parameters.update(self.parameters.without_lists(chosen))
        inherit = values.get("inherit")
        if isinstance(inherit, tuple):
            namespace.inherit = self._expanded_parents(inherit, chosen, namespace, section)

    def _expanded_parents(
        self, inherit: tuple[str, ...], chosen: Chosen, namespace: Namespace, section: Section
    ) -> tuple[str, ...]:
        if "<" not in " ".join(inherit):
            return inherit
        parents = []
        for parent in inherit:
            try:
                name, used = self.parameters.expand_parent(parent, chosen)
            except BadParameter as error:
                message, hint = str(error), error.hint
                self.findings.error("bad-parameter", message, hint, section, "inherit")
                continue
            namespace.parameters.update(self.parameters.without_lists(used))
            parents.append(name)
        return tuple(parents)

    def arrange(self) -> Families:
        """Returns the hierarchy; a name with wrong parents inherits from root alone."""
        parents: dict[str, tuple[str, ...]] = {}
        first_parents: dict[str, str] = {}
        for name, namespace in self.by_name.items():
            if name == ROOT:
                parents[name] = ()
                continue
            named = self._known_parents(namespace)
            if named[:1] == (NOBODY,):
                first_parents[name] = ROOT
                named = named[1:]
            else:
                first_parents[name] = named[0] if named else ROOT
            parents[name] = named or (ROOT,)
        families, problems = arrange(parents, first_parents)
        for problem in problems:
            section = self.by_name[problem.name].section
            seen = f"[runtime][{problem.name}]inherit: {problem.message}"
            self.findings.error("bad-inheritance", seen, problem.hint, section, "inherit")
        return families

    def _known_parents(self, namespace: Namespace) -> tuple[str, ...]:
        known: list[str] = []
        where = (namespace.section, "inherit")
        for index, parent in enumerate(namespace.inherit):
            if parent in known:
                seen = f"{namespace.name!r} inherits twice from {parent!r}"
                self.findings.error("bad-inheritance", seen, "name it once", *where)
            elif parent in self.by_name or (parent == NOBODY and index == 0):
                known.append(parent)
            else:
                advice = f"add [[{parent}]] under [runtime]"
                if parent == NOBODY:
                    advice = "None has a meaning only as the first parent"
                seen = f"{namespace.name!r} inherits from {parent!r}, which is not defined"
                hint = meant(parent, self.by_name, advice)
                self.findings.error("unknown-parent", seen, hint, *where)
        if known == [NOBODY]:
            seen = f"{namespace.name!r} inherits from None and from nothing else"
            hint = "remove the item, or name a second parent"
            self.findings.error("unknown-parent", seen, hint, *where)
        return tuple(known)


# The resolved runtime of every namespace: inherited, filtered and made into node values.


def resolve(namespaces: Namespaces, families: Families) -> dict[str, NodeDef]:
    """Returns a node for each namespace, families included."""
    resolver = _Resolver(namespaces, families)
    return {name: resolver.node(one) for name, one in namespaces.by_name.items()}


def implicit_node(name: str, root: NodeDef, position: Position) -> NodeDef:
    """Returns a task that the graph names and no section defines: it has root's settings."""
    return replace(root, name=name, lineage=(name, ROOT), position=position)


class _Resolver:
    def __init__(self, namespaces: Namespaces, families: Families) -> None:
        self._namespaces = namespaces
        self._families = families
        owns = {name: one.owns for name, one in namespaces.by_name.items()}
        self._inheritance = Inheritance(owns)

    def node(self, namespace: Namespace) -> NodeDef:
        name = namespace.name
        lineage = self._families.lineages[name]
        if name in self._families.members:
            groups = self._inheritance.of(lineage).groups
        else:
            groups = self._inheritance.of(lineage[1:]).extended(namespace.owns).groups
        if namespace.parameters or name.endswith(">"):
            filled = self._filled(groups["environment"], namespace)
            if filled is not groups["environment"]:
                groups = {**groups, "environment": filled}
        inputs: Pairs = groups["inputs"]
        if inputs and any("<" in text for _, text in inputs):
            groups = {**groups, "inputs": self._expanded(inputs, namespace)}
        position = self._namespaces.findings.position_of_line(namespace.section.line)
        parameters = tuple(namespace.parameters.items())
        # The groups have the order of `_GROUPS`.
        fields: tuple[Any, ...] = (name, lineage, parameters, *groups.values(), position)
        return NodeDef(*fields)

    def _expanded(self, inputs: Pairs, namespace: Namespace) -> Pairs:
        """Returns the inputs with `process<m>` replaced by the process of the task's own m; a
        parameter whose values are known at run time stays."""
        expanded = []
        parameters, findings = self._namespaces.parameters, self._namespaces.findings
        lists = {name: parameters.values[name][0] for name in parameters.lists}
        for name, text in inputs:
            item = f"[runtime][{namespace.name}][inputs]{name}"
            end = text.rfind(">") + 1 or len(text)
            try:
                found, _ = parameters.expand_parent(
                    text[:end], {**lists, **namespace.parameters}, item
                )
            except BadParameter as error:
                seen, hint = str(error), error.hint
                findings.error("bad-parameter", seen, hint, namespace.section)
                continue
            expanded.append((name, f"{found}{text[end:]}"))
        return tuple(expanded)

    def _filled(self, environment: Pairs, namespace: Namespace) -> Pairs:
        """Returns the environment with `%(m)s` replaced by the task's value of parameter m."""
        if not any("%(" in value for _, value in environment):
            return environment
        filled = []
        for name, value in environment:
            try:
                text = fill_template(value, namespace.parameters) if "%(" in value else value
            except BadParameter as error:
                text = value
                seen = f"[runtime][{namespace.name}][environment]{name}: {error}"
                findings = self._namespaces.findings
                findings.warning("bad-parameter", seen, error.hint, namespace.section)
            filled.append((name, text))
        return cast("Pairs", tuple(filled))
