"""`[runtime]`: its headings become namespaces, and these inherit and become node values.

What is the same for many is made once: the settings that a task inherits are merged once for
all tasks with the same ancestors, and a group of settings (scripts, events, …) that a task does
not touch is its ancestors' very value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.graph.node import (
    Events,
    Mail,
    NodeDef,
    NodePlace,
    Pairs,
    Retries,
    RunMode,
    Scripts,
    Simulation,
    Skip,
    StatePolling,
)
from tidewheel.core.graph.suggestions import nearest
from tidewheel.formats.flow_cylc.checker import Checker, Values, position_of
from tidewheel.formats.flow_cylc.families import ROOT, Families, arrange
from tidewheel.formats.flow_cylc.items import NAMESPACE, TASK_EVENTS
from tidewheel.formats.flow_cylc.names import (
    BadParameter,
    Chosen,
    Parameters,
    Value,
    fill_template,
    task_name_problem,
)
from tidewheel.formats.flow_cylc.node_checks import SectionChecks
from tidewheel.formats.flow_cylc.sections import Section
from tidewheel.formats.flow_cylc.source_text import SourceText

# Groups of a node's settings, each made from the values of the items that belong to it.

SCRIPT_ITEMS = {
    "init-script": "init",
    "env-script": "env",
    "pre-script": "pre",
    "script": "main",
    "post-script": "post",
    "exit-script": "on_exit",
    "err-script": "on_error",
}
_NOTHING: Values = {}


def _section(values: Values, name: str) -> Values:
    return cast("Values", values.get(name, _NOTHING))


def _text(values: Values, name: str) -> str:
    return cast("str", values.get(name) or "")


def _texts(values: Values, name: str) -> tuple[str, ...]:
    return cast("tuple[str, ...]", values.get(name) or ())


def _seconds(values: Values, name: str) -> float | None:
    return cast("float | None", values.get(name))


def _delays(values: Values, name: str) -> tuple[float, ...]:
    return cast("tuple[float, ...]", values.get(name) or ())


def _is_on(values: Values, name: str) -> bool:
    """Unless it was switched off."""
    value = values.get(name)
    return True if value is None else bool(value)


def pairs(values: Values) -> Pairs:
    return cast("Pairs", tuple(values.items()))


def scripts(values: Values) -> Scripts:
    return Scripts(
        **{
            field: cast("str", values[item])
            for item, field in SCRIPT_ITEMS.items()
            if item in values
        }
    )


def environment(values: Values) -> Pairs:
    """Returns the variables that `[[[environment filter]]]` leaves.

    An empty `include` lets everything in.
    """
    variables = _section(values, "environment")
    chosen = _section(values, "environment filter")
    if chosen:
        include, exclude = _texts(chosen, "include"), _texts(chosen, "exclude")
        variables = {
            name: value
            for name, value in variables.items()
            if (not include or name in include) and name not in exclude
        }
    return pairs(variables)


def events(values: Values) -> Events:
    own = _section(values, "events")
    handlers = [("", _texts(own, "handlers"))]
    handlers += [(event, _texts(own, f"{event} handlers")) for event in TASK_EVENTS]
    return Events(
        handlers=tuple((event, commands) for event, commands in handlers if commands),
        handled_events=_texts(own, "handler events"),
        handler_retry_delays=_delays(own, "handler retry delays"),
        mail_events=_texts(own, "mail events"),
        execution_timeout_seconds=_seconds(own, "execution timeout"),
        submission_timeout_seconds=_seconds(own, "submission timeout"),
        late_offset_seconds=_seconds(own, "late offset"),
    )


def mail(values: Values) -> Mail:
    own = _section(values, "mail")
    return Mail(sender=_text(own, "from"), to=_text(own, "to"))


def simulation(values: Values) -> Simulation:
    own = _section(values, "simulation")
    length = _seconds(own, "default run length")
    buffer = _seconds(own, "time limit buffer")
    return Simulation(
        run_seconds=10.0 if length is None else length,
        speedup_factor=_seconds(own, "speedup factor"),
        time_limit_buffer_seconds=30.0 if buffer is None else buffer,
        fail_points=_texts(own, "fail cycle points"),
        fail_first_try_only=_is_on(own, "fail try 1 only"),
        handlers_disabled=_is_on(own, "disable task event handlers"),
    )


def skip(values: Values) -> Skip:
    own = _section(values, "skip")
    return Skip(
        outputs=_texts(own, "outputs"),
        handlers_disabled=_is_on(own, "disable task event handlers"),
    )


def polling(values: Values) -> StatePolling:
    own = _section(values, "workflow state polling")
    return StatePolling(
        interval_seconds=_seconds(own, "interval"),
        polls_max=cast("int | None", own.get("max-polls")),
        message=_text(own, "message"),
        run_directory=_text(own, "alt-cylc-run-dir"),
    )


def retries(values: Values) -> Retries:
    return Retries(
        execution=_delays(values, "execution retry delays"),
        submission=_delays(values, "submission retry delays"),
    )


def place(values: Values) -> NodePlace:
    job, remote = _section(values, "job"), _section(values, "remote")
    return NodePlace(
        platform=_text(values, "platform"),
        directives=pairs(_section(values, "directives")),
        work_subdirectory=_text(values, "work sub-directory"),
        batch_system=_text(job, "batch system"),
        batch_submit_command=_text(job, "batch submit command template"),
        remote_host=_text(remote, "host"),
        remote_owner=_text(remote, "owner"),
    )


# The field of a node, how it is made, and the items that it is made from.
GROUPS: Mapping[str, tuple[Callable[[Values], object], tuple[str, ...]]] = {
    "scripts": (scripts, tuple(SCRIPT_ITEMS)),
    "environment": (environment, ("environment", "environment filter")),
    "outputs": (lambda values: pairs(_section(values, "outputs")), ("outputs",)),
    "completion": (lambda values: _text(values, "completion"), ("completion",)),
    "run_mode": (lambda values: RunMode(_text(values, "run mode") or "live"), ("run mode",)),
    "retries": (retries, ("execution retry delays", "submission retry delays")),
    "time_limit_seconds": (
        lambda values: _seconds(values, "execution time limit"),
        ("execution time limit",),
    ),
    "place": (place, ("platform", "directives", "work sub-directory", "job", "remote")),
    "meta": (lambda values: pairs(_section(values, "meta")), ("meta",)),
    "events": (events, ("events",)),
    "mail": (mail, ("mail",)),
    "simulation": (simulation, ("simulation",)),
    "skip": (skip, ("skip",)),
    "polling": (polling, ("workflow state polling",)),
}
GROUP_OF = {item: group for group, (_, items) in GROUPS.items() for item in items}


# `[runtime]`: headings become namespaces, each with what its own sections say.

NAMESPACES_MAX = 100_000  # after parameters were expanded
NOBODY = "None"


@dataclass(slots=True)
class Namespace:
    """A task or family: the values of each section that names it, in order."""

    name: str
    section: Section
    owns: list[Values] = field(default_factory=list)
    parameters: dict[str, Value] = field(default_factory=dict)
    inherit: tuple[str, ...] = ()


@dataclass(slots=True)
class Namespaces:
    """All namespaces and their hierarchy."""

    source: SourceText
    findings: Findings
    parameters: Parameters
    by_name: dict[str, Namespace] = field(default_factory=dict)

    def read(self, runtime: Section | None, checker: Checker) -> None:
        sections = list(runtime.sections()) if runtime is not None else []
        checks = SectionChecks(self.source, self.findings)
        if not self._are_too_many(sections):
            for section in sections:
                values = checker.check(section, NAMESPACE, ("runtime", section.name))
                checks.check(section, values)
                self._read(section, values)
        if ROOT not in self.by_name:
            self.by_name[ROOT] = Namespace(ROOT, Section(ROOT, -1))

    def _are_too_many(self, sections: list[Section]) -> bool:
        """Counts the names before any is made: to make too many would be the harm."""
        count = 0
        for section in sections:
            with contextlib.suppress(BadParameter):  # reported where it is expanded
                count += self.parameters.count_names(section.name)
            if count > NAMESPACES_MAX:
                self._error(
                    "too-many-namespaces",
                    f"with this heading there are {count} tasks and families; at most "
                    f"{NAMESPACES_MAX} are accepted",
                    "use fewer values of parameters",
                    section,
                )
                return True
        return False

    def _read(self, section: Section, values: Values) -> None:
        try:
            expanded = list(self.parameters.expand_heading(section.name))
        except BadParameter as error:
            self._error("bad-parameter", str(error), error.hint, section)
            return
        if not expanded:
            self._error("bad-name", "this heading names nothing", "", section)
        for name, chosen in expanded:
            self._add(name, chosen, values, section)

    def _add(self, name: str, chosen: Chosen, values: Values, section: Section) -> None:
        namespace = self.by_name.get(name)
        if namespace is None:
            problem = task_name_problem(name)
            if problem:
                self._error("bad-name", f"{name!r} cannot be a name", problem, section)
                return
            namespace = self.by_name[name] = Namespace(name, section)
        namespace.owns.append(values)
        if chosen:
            namespace.parameters.update(chosen)
        inherit = values.get("inherit")
        if isinstance(inherit, tuple):
            namespace.inherit = self._expanded_parents(inherit, chosen, namespace, section)

    def _expanded_parents(
        self, inherit: tuple[str, ...], chosen: Chosen, namespace: Namespace, section: Section
    ) -> tuple[str, ...]:
        if not any("<" in parent for parent in inherit):
            return inherit
        parents = []
        for parent in inherit:
            try:
                name, used = self.parameters.expand_parent(parent, chosen)
            except BadParameter as error:
                self._error("bad-parameter", str(error), error.hint, section, "inherit")
                continue
            namespace.parameters.update(used)
            parents.append(name)
        return tuple(parents)

    def arrange(self) -> Families:
        """Returns the hierarchy; a namespace without a place in it inherits from root alone."""
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
            self._error(
                "bad-inheritance",
                f"[runtime][{problem.name}]inherit: {problem.message}",
                problem.hint,
                section,
                "inherit",
            )
        return families

    def _known_parents(self, namespace: Namespace) -> tuple[str, ...]:
        known = []
        for index, parent in enumerate(namespace.inherit):
            if parent in known:
                self._error(
                    "bad-inheritance",
                    f"{namespace.name!r} inherits twice from {parent!r}",
                    "name it once",
                    namespace.section,
                    "inherit",
                )
                continue
            if parent in self.by_name or (parent == NOBODY and index == 0):
                known.append(parent)
                continue
            near = nearest(parent, self.by_name)
            self._error(
                "unknown-parent",
                f"{namespace.name!r} inherits from {parent!r}, which is not defined",
                f"did you mean {near!r}?" if near else self._missing_advice(parent),
                namespace.section,
                "inherit",
            )
        if known == [NOBODY]:
            self._error(
                "unknown-parent",
                f"{namespace.name!r} inherits from None and from nothing else",
                "remove the item, or name a second parent",
                namespace.section,
                "inherit",
            )
        return tuple(known)

    @staticmethod
    def _missing_advice(parent: str) -> str:
        if parent == NOBODY:
            return "None has a meaning only as the first parent"
        return f"add [[{parent}]] under [runtime]"

    def _error(
        self, code: str, message: str, hint: str, section: Section, item_name: str = ""
    ) -> None:
        self.findings.error(code, message, hint, self.place(section, item_name))

    def place(self, section: Section, item_name: str = "") -> Position:
        """Returns the position of an item of the section, or of its heading."""
        entry = section.entries.get(item_name) if item_name else None
        if entry is None and section.line < 0:
            return Position(self.source.files[0])
        return position_of(entry or section, self.source)


# The resolved runtime of every namespace: inherited, filtered and made into node values.

_DEFAULTS = {group: getattr(NodeDef(name=""), group) for group in GROUPS}


@dataclass(frozen=True, slots=True)
class Inherited:
    """Holds the values that every namespace with the same list of ancestors inherits."""

    values: Values
    groups: dict[str, Any]


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
        """Returns the ancestors' settings with the namespace's own over them."""
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
