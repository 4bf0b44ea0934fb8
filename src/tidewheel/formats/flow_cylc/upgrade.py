"""Brings a tree of sections up to date: old names become new ones, with a warning each.

What a current Cylc still upgrades is upgraded here too, with a warning; what it no longer knows
is refused, with the same advice. Paths are those of the section that holds the old name; `*` is
any namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import assert_never

from tidewheel.formats.flow_cylc.items import TASK_EVENTS
from tidewheel.formats.flow_cylc.sections import Item, Path, PlacedFindings, Section, where
from tidewheel.lazy_dataclasses import dataclass

# The table of old names, and what to write now.


@dataclass(frozen=True, slots=True)
class Moved:
    """Marks an item that has another name or place now; `to` is the whole new path."""

    to: Path
    convert: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """Marks an item that has no meaning any more and is ignored."""

    advice: str = "remove it"


@dataclass(frozen=True, slots=True)
class Gone:
    """Marks an item that no Cylc of today accepts."""

    advice: str


Change = Moved | Dropped | Gone

_NAMESPACE = ("runtime", "*")
_EVENTS, _MAIL = ("scheduler", "events"), ("scheduler", "mail")
_OF_TASK = (*_NAMESPACE, "events")
_MAILS_ARE_GLOBAL = "remove it: how mail is sent is a setting of the machine, not of a workflow"


def _runahead(text: str) -> str:
    """Returns Cylc 7's limit, which counts all active points, as Cylc 8 writes it. Cylc 8
    counts those beyond the first."""
    return f"P{int(text) - 1}" if re.fullmatch(r"\s*0*[1-9]\d{0,8}\s*", text) else text


_OLD_WORKFLOW_EVENTS = {
    "timeout": "stall timeout",
    "abort on timeout": "abort on stall timeout",
    "inactivity": "inactivity timeout",
    "abort on inactivity": "abort on inactivity timeout",
    "startup handler": "startup handlers",
    "shutdown handler": "shutdown handlers",
    "timeout handler": "stall timeout handlers",
    "stalled handler": "stall handlers",
    "aborted handler": "abort handlers",
    "inactivity handler": "inactivity timeout handlers",
}
_DROPPED_WORKFLOW_EVENTS = (
    "reset timer",
    "reset inactivity timer",
    "abort on stalled",
    *(
        f"abort if {event} handler fails"
        for event in ("startup", "shutdown", "timeout", "inactivity", "stalled")
    ),
)
_DROPPED_OF_CYLC = (
    *("force run mode", "authentication", "include at start-up", "exclude at start-up"),
    *("log resolved dependencies", "required run mode", "health check interval"),
    *("abort if any task fails", "disable automatic shutdown", "environment"),
    *("reference test", "simulation"),
)
_MOVED_FROM_JOB = (
    *("execution polling intervals", "execution retry delays", "execution time limit"),
    *("submission polling intervals", "submission retry delays"),
)

# Sections that were renamed come first: what is inside of them is then found at its new place.
CHANGES: dict[Path, dict[str, Change]] = {
    (): {
        "cylc": Moved(("scheduler",)),
        "visualization": Dropped(),
        **dict.fromkeys(
            ("title", "description", "group", "URL"), Gone("write it under [meta]")
        ),
        "dependencies": Gone("write [scheduling] [[graph]]"),
        "special tasks": Gone("write [scheduling] [[special tasks]]"),
        "parameters": Gone("write [task parameters]"),
        "graph": Gone("write [scheduling] [[graph]]"),
    },
    ("scheduler",): {
        "parameters": Moved(("task parameters",)),
        "parameter templates": Moved(("task parameters", "templates")),
        "task event mail interval": Moved((*_MAIL, "task event batch interval")),
        **dict.fromkeys(_DROPPED_OF_CYLC, Dropped()),
    },
    _EVENTS: {
        **{old: Moved((*_EVENTS, new)) for old, new in _OLD_WORKFLOW_EVENTS.items()},
        **{f"mail {name}": Moved((*_MAIL, name)) for name in ("to", "from", "footer")},
        "mail smtp": Dropped(_MAILS_ARE_GLOBAL),
        **dict.fromkeys(_DROPPED_WORKFLOW_EVENTS, Dropped()),
    },
    ("scheduling",): {
        "max active cycle points": Moved(("scheduling", "runahead limit"), _runahead),
        "hold after point": Moved(("scheduling", "hold after cycle point")),
        "spawn to max active cycle points": Dropped(),
        "initial cycle time": Gone("write: initial cycle point"),
        "final cycle time": Gone("write: final cycle point"),
        "runahead factor": Gone("write: runahead limit = P4"),
    },
    _NAMESPACE: {
        "suite state polling": Moved((*_NAMESPACE, "workflow state polling")),
        "extra log files": Dropped("remove it: files in the job's log directory are shown"),
        **dict.fromkeys(("title", "description", "URL"), Gone("write it under [[[meta]]]")),
        "command scripting": Gone("write: script"),
        "pre-command scripting": Gone("write: pre-script"),
        "post-command scripting": Gone("write: post-script"),
        "environment scripting": Gone("write: env-script"),
        "initial scripting": Gone("write: init-script"),
        "retry delays": Gone("write: execution retry delays"),
        "event hooks": Gone("write [[[events]]]"),
        "job submission": Gone("write: platform"),
        "dummy mode": Gone("write [[[simulation]]]: dummy mode uses these settings, too"),
        "simulation mode": Gone("write [[[simulation]]]"),
    },
    _OF_TASK: {
        **{f"{one} handler": Moved((*_OF_TASK, f"{one} handlers")) for one in TASK_EVENTS},
        "mail to": Moved((*_NAMESPACE, "mail", "to")),
        "mail from": Moved((*_NAMESPACE, "mail", "from")),
        "mail smtp": Dropped(_MAILS_ARE_GLOBAL),
        "reset timer": Dropped(),
        "mail retry delays": Dropped(),
    },
    (*_NAMESPACE, "job"): {
        **{name: Moved((*_NAMESPACE, name)) for name in _MOVED_FROM_JOB},
        "shell": Dropped("remove it: jobs run in bash"),
    },
    (*_NAMESPACE, "remote"): {"suite definition directory": Dropped()},
    (*_NAMESPACE, "workflow state polling"): {
        "run-dir": Moved((*_NAMESPACE, "workflow state polling", "alt-cylc-run-dir")),
        **dict.fromkeys(("template", "host", "user"), Dropped()),
    },
}

_NAMESPACE_SECTIONS = frozenset({"events", "job", "remote", "workflow state polling"})
# The same old name in a thousand tasks is one thing to learn.
WARNINGS_PER_NAME_MAX = 5


def upgrade(root: Section, findings: PlacedFindings) -> None:
    """Replaces old names in the tree by new ones, in place; each becomes a finding."""
    _Upgrader(root, findings).upgrade()


class _Upgrader:
    def __init__(self, root: Section, findings: PlacedFindings) -> None:
        self._root = root
        self._findings = findings
        self._warned: dict[Path, int] = {}

    def upgrade(self) -> None:
        for path in ((), ("scheduler",), ("scheduler", "events"), ("scheduling",)):
            section: Section | None = self._root
            for name in path:
                section = section.section(name) if section is not None else None
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
            if _NAMESPACE_SECTIONS.isdisjoint(entries):  # as nearly all
                continue
            for name in sorted(_NAMESPACE_SECTIONS):
                inner = entries.get(name)
                if isinstance(inner, Section):
                    self._upgrade(inner, (*_NAMESPACE, name), namespace, namespace.name)

    def _upgrade(self, section: Section, path: Path, base: Section, namespace: str) -> None:
        changes = CHANGES[path]
        for name in [name for name in section.entries if name in changes]:
            old = section.entries[name]
            shown = tuple(namespace if part == "*" else part for part in (*path, name))
            del section.entries[name]
            match changes[name]:
                case Gone(advice):
                    seen = f"{where(shown, old)} is no longer accepted"
                    self._findings.error("obsolete", seen, advice, old)
                case Dropped(advice):
                    self._warn(shown, "is obsolete and has no effect", advice, old)
                case Moved() as change:
                    self._move(change, old, shown, base)
                case _ as never:
                    assert_never(never)

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
        new = where(target, old)
        present = holder.entries.get(steps[-1])
        if isinstance(old, Section):
            self._warn(shown, "is an old name", f"write {new}", old)
            if present is None:
                old.name = steps[-1]
                holder.entries[steps[-1]] = old
            elif isinstance(present, Section):
                present.entries = {**old.entries, **present.entries}
        elif present is not None:
            self._warn(shown, f"has no effect, since {new} is set, too", "remove it", old)
        else:
            text = change.convert(old.text) if change.convert is not None else old.text
            shown_value = f" = {text}" if change.convert is not None else ""
            self._warn(shown, "is an old name", f"write {new}{shown_value}", old)
            holder.entries[steps[-1]] = Item(steps[-1], text, old.line)

    def _warn(self, shown: Path, what: str, advice: str, old: Item | Section) -> None:
        kind = (*shown[:1], *shown[2:]) if shown[0] == "runtime" else shown
        self._warned[kind] = self._warned.get(kind, 0) + 1
        if self._warned[kind] <= WARNINGS_PER_NAME_MAX:
            self._findings.warning("obsolete", f"{where(shown, old)} {what}", advice, old)

    def _upgrade_dependencies(self) -> None:
        """Turns `[[dependencies]] [[[R]]] graph = …` into `[[graph]] R = …`."""
        scheduling = self._root.section("scheduling")
        old = scheduling.section("dependencies") if scheduling is not None else None
        if scheduling is None or old is None:
            return
        del scheduling.entries["dependencies"]
        if "graph" in scheduling.entries:
            seen = "[scheduling][dependencies] cannot be used together with [scheduling][graph]"
            hint = "move its graphs to [scheduling] [[graph]]"
            self._findings.error("obsolete", seen, hint, old)
            return
        hint = 'write [scheduling] [[graph]] with items such as P1D = "foo => bar"'
        self._warn(("scheduling", "dependencies"), "is an old name", hint, old)
        graph = Section("graph", old.line)
        for entry in old.entries.values():
            item = entry.entries.get("graph") if isinstance(entry, Section) else entry
            name = "R1" if entry.name == "graph" else entry.name
            if isinstance(item, Item):
                graph.entries[name] = Item(name, item.text, item.line, item.earlier)
        scheduling.entries["graph"] = graph
