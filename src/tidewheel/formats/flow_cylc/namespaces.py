"""`[runtime]`: headings become namespaces, each with what its own sections say."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.graph.suggestions import nearest
from tidewheel.formats.flow_cylc.checker import Checker, Values, position_of
from tidewheel.formats.flow_cylc.families import ROOT, Families, arrange
from tidewheel.formats.flow_cylc.items import NAMESPACE
from tidewheel.formats.flow_cylc.limits import NAMESPACES_MAX
from tidewheel.formats.flow_cylc.names import task_name_problem
from tidewheel.formats.flow_cylc.node_checks import SectionChecks
from tidewheel.formats.flow_cylc.parameters import BadParameter, Chosen, Parameters, Value
from tidewheel.formats.flow_cylc.sections import Section
from tidewheel.formats.flow_cylc.source_text import SourceText

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
        """Working on them would be the harm; so they are counted first."""
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
        """The hierarchy; whoever cannot be placed in it inherits from root alone."""
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
        """Of an item of the section, or of its heading."""
        entry = section.entries.get(item_name) if item_name else None
        if entry is None and section.line < 0:
            return Position(self.source.files[0])
        return position_of(entry or section, self.source)
