"""Brings a tree of sections up to date: old names become new ones, with a warning each."""

from __future__ import annotations

from typing import assert_never

from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.checking import position_of
from tidewheel.formats.flow_cylc.obsolete import CHANGES, Change, Dropped, Gone, Moved, Path
from tidewheel.formats.flow_cylc.sections import Item, Section
from tidewheel.formats.flow_cylc.source_text import SourceText

_NAMESPACE_SECTIONS = ("events", "job", "remote", "workflow state polling")
_NAMESPACE = ("runtime", "*")
# The same old name in a thousand tasks is one thing to learn.
WARNINGS_PER_NAME_MAX = 5


def upgrade(root: Section, source: SourceText, findings: Findings) -> None:
    """Changes the tree in place."""
    _Upgrader(root, source, findings).upgrade()


def _shown(path: Path, entry: Item | Section) -> str:
    """`[runtime][foo]script`, or `[runtime][foo][events]` for a section."""
    *sections, last = path
    named = "".join(f"[{name}]" for name in sections)
    return f"{named}[{last}]" if isinstance(entry, Section) else f"{named}{last}"


class _Upgrader:
    def __init__(self, root: Section, source: SourceText, findings: Findings) -> None:
        self._root = root
        self._source = source
        self._findings = findings
        self._warned: dict[Path, int] = {}

    def upgrade(self) -> None:
        for path in ((), ("scheduler",), ("scheduler", "events"), ("scheduling",)):
            section = _section_at(self._root, path)
            if section is not None:
                self._upgrade(section, path, self._root, "")
        self._upgrade_dependencies()
        runtime = self._root.section("runtime")
        if runtime is None:
            return
        old_names = CHANGES[_NAMESPACE].keys()
        for namespace in runtime.sections():
            entries = namespace.entries
            if not old_names.isdisjoint(entries):
                self._upgrade(namespace, _NAMESPACE, namespace, namespace.name)
            for name in _NAMESPACE_SECTIONS:
                inner = entries.get(name)
                if isinstance(inner, Section):
                    self._upgrade(inner, (*_NAMESPACE, name), namespace, namespace.name)

    def _upgrade(self, section: Section, path: Path, base: Section, namespace: str) -> None:
        changes = CHANGES[path]
        for name in [name for name in section.entries if name in changes]:
            old = section.entries[name]
            shown = tuple(namespace if part == "*" else part for part in (*path, name))
            self._apply(changes[name], old, shown, section, base)

    def _apply(
        self, change: Change, old: Item | Section, shown: Path, section: Section, base: Section
    ) -> None:
        position = position_of(old, self._source)
        match change:
            case Gone(advice):
                self._findings.error(
                    "obsolete", f"{_shown(shown, old)} is no longer accepted", advice, position
                )
                del section.entries[old.name]
            case Dropped(advice):
                self._warn(shown, "is obsolete and has no effect", advice, old)
                del section.entries[old.name]
            case Moved():
                del section.entries[old.name]
                self._move(change, old, shown, base)
            case _:
                assert_never(change)

    def _move(self, change: Moved, old: Item | Section, shown: Path, base: Section) -> None:
        target = tuple(shown[1] if part == "*" else part for part in change.to)
        holder = base
        # A namespace is its own base: its path begins after [runtime][name].
        steps = target if base is self._root else target[2:]
        for step in steps[:-1]:
            entry = holder.entries.setdefault(step, Section(step, old.line))
            if not isinstance(entry, Section):
                return
            holder = entry
        new = _shown(target, old)
        present = holder.entries.get(steps[-1])
        if isinstance(old, Section):
            self._warn(shown, "is an old name", f"write {new}", old)
            if present is None:
                old.name = steps[-1]
                holder.entries[steps[-1]] = old
            elif isinstance(present, Section):
                present.entries = {**old.entries, **present.entries}
        elif present is not None:
            self._warn(shown, f"has no effect beside {new}", "remove it", old)
        else:
            text = change.convert(old.text) if change.convert is not None else old.text
            shown_value = f" = {text}" if change.convert is not None else ""
            self._warn(shown, "is an old name", f"write {new}{shown_value}", old)
            holder.entries[steps[-1]] = Item(steps[-1], text, old.line)

    def _warn(self, shown: Path, what: str, advice: str, old: Item | Section) -> None:
        kind = (*shown[:1], *shown[2:]) if shown[0] == "runtime" else shown
        self._warned[kind] = self._warned.get(kind, 0) + 1
        if self._warned[kind] <= WARNINGS_PER_NAME_MAX:
            self._findings.warning(
                "obsolete",
                f"{_shown(shown, old)} {what}",
                advice,
                position_of(old, self._source),
            )

    def _upgrade_dependencies(self) -> None:
        """`[[dependencies]] [[[R]]] graph = …` is `[[graph]] R = …` now."""
        scheduling = self._root.section("scheduling")
        old = scheduling.section("dependencies") if scheduling is not None else None
        if scheduling is None or old is None:
            return
        del scheduling.entries["dependencies"]
        if "graph" in scheduling.entries:
            self._findings.error(
                "obsolete",
                "[scheduling][dependencies] cannot stand beside [scheduling][graph]",
                "move its graphs to [scheduling] [[graph]]",
                position_of(old, self._source),
            )
            return
        self._warn(
            ("scheduling", "dependencies"),
            "is an old name",
            'write [scheduling] [[graph]] with items such as P1D = "foo => bar"',
            old,
        )
        graph = Section("graph", old.line)
        for entry in old.entries.values():
            item = entry.item("graph") if isinstance(entry, Section) else entry
            name = "R1" if entry.name == "graph" else entry.name
            if item is not None:
                graph.entries[name] = Item(name, item.text, item.line, item.earlier)
        scheduling.entries["graph"] = graph


def _section_at(root: Section, path: Path) -> Section | None:
    section: Section | None = root
    for name in path:
        section = section.section(name) if section is not None else None
    return section
