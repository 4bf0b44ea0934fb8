"""Checks sections against the table of items: values get types, mistakes get findings."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from tidewheel.formats.flow_cylc.items import FLOW, NAMESPACE, ItemSpec, SectionSpec
from tidewheel.formats.flow_cylc.sections import Item, Path, PlacedFindings, Section, where
from tidewheel.formats.flow_cylc.values import BadValue

ADVICES_MAX = 100
# What people coming from elsewhere write.
OTHER_WORDS = {
    "command": "script",
    "cmd": "script",
    "run": "script",
    "env": "environment",
    "variables": "environment",
    "retries": "execution retry delays",
    "retry": "execution retry delays",
    "timeout": "execution time limit",
    "walltime": "execution time limit",
    "parent": "inherit",
    "parents": "inherit",
    "inherits": "inherit",
    "host": "platform",
    "start": "initial cycle point",
    "end": "final cycle point",
    "tasks": "runtime",
}
# Typed values by name; a section is a mapping in a mapping.
Values = dict[str, object]


class Checker:
    """Reads the values of sections; equal texts are read once and shared."""

    def __init__(self, findings: PlacedFindings) -> None:
        self._findings = findings
        # By reader and text: a function is a quicker key than a member of an enumeration.
        self._known: dict[tuple[Callable[[str], object], str], object] = {}
        self._noted: set[tuple[str, ...]] = set()
        self._unknown = 0

    def check(self, section: Section, spec: SectionSpec, path: Path) -> Values:
        """Returns the values of a section that could be read; the others have a finding."""
        values: Values = {}
        known, specs, other = self._known, spec.entries, spec.other
        for name, entry in section.entries.items():
            entry_spec = specs.get(name) or other
            if type(entry) is Item and type(entry_spec) is ItemSpec:
                if entry_spec.idle_because:
                    self._note(entry_spec.idle_because, (*path, name), entry)
                read, text = entry_spec.read, entry.text
                key = (read, text)
                if key in known and not entry_spec.choices:
                    values[name] = known[key]
                    continue
                try:
                    value = read(text)
                except BadValue as error:
                    seen = f"{where((*path, name), entry)}: {error}"
                    self._findings.error("bad-value", seen, error.hint, entry)
                    continue
                known[key] = value
                if text[-1:] == '"' and text[0] != '"' and text.count('"') % 2:
                    self._unpaired_quote((*path, name), entry)
                if entry_spec.choices and value and value not in entry_spec.choices:
                    self._bad_choice(entry_spec.choices, str(value), (*path, name), entry)
                    continue
                values[name] = value
            elif isinstance(entry, Section) and isinstance(entry_spec, SectionSpec):
                if entry_spec.idle_because:
                    self._note(entry_spec.idle_because, (*path, name), entry)
                values[name] = self.check(entry, entry_spec, (*path, name))
            else:
                self._misplaced(entry, spec, path)
        return values

    def _note(self, because: str, path: Path, entry: Item | Section) -> None:
        kind = ("runtime", *path[2:]) if path[0] == "runtime" else path
        if kind not in self._noted:
            self._noted.add(kind)
            seen = f"{where(path, entry)} has no effect: {because}"
            self._findings.all.note("no-effect", seen, "", self._findings.position(entry))

    def _unpaired_quote(self, path: Path, item: Item) -> None:
        seen = f"{where(path, item)} ends with a quote that is not opened"
        hint = "add the opening quote, or remove this one"
        self._findings.warning("unpaired-quote", seen, hint, item)

    def _bad_choice(self, choices: tuple[str, ...], value: str, path: Path, item: Item) -> None:
        near = difflib.get_close_matches(value.lower(), choices, 1)
        guess = f"did you mean {near[0]}? " if near else ""
        hint = f"{guess}expected one of {', '.join(choices)}"
        self._findings.error("bad-value", f"{where(path, item)} is {value[:60]!r}", hint, item)

    def _misplaced(self, entry: Item | Section, spec: SectionSpec, path: Path) -> None:
        shown = where((*path, entry.name), entry)
        if (known := spec.entries.get(entry.name)) is not None:
            depth = len(path) + 1
            expected, form = "a section", f"write {'[' * depth}{entry.name}{']' * depth}"
            if isinstance(known, ItemSpec):
                expected, form = "an item", f"write {entry.name} = …"
            self._findings.error("item-and-section", f"{shown} is {expected}", form, entry)
            return
        what = "section" if isinstance(entry, Section) else "item"
        self._unknown += 1
        # Looking for near names is slow, and nobody reads that much advice.
        advice = advice_for(entry, spec, path) if self._unknown <= ADVICES_MAX else ""
        self._findings.error(f"unknown-{what}", f"there is no {what} {shown}", advice, entry)


def advice_for(entry: Item | Section, spec: SectionSpec, path: Path) -> str:
    """Returns advice about an unknown entry: the nearest known name, or where it belongs.

    It is empty where nothing of its kind is known.
    """
    same_kind = [
        name
        for name, known in spec.entries.items()
        if isinstance(known, SectionSpec) is isinstance(entry, Section)
    ]
    lowered = {name.lower(): name for name in same_kind}
    near = difflib.get_close_matches(entry.name.lower(), lowered, 1, 0.7)
    meant = lowered[near[0]] if near else OTHER_WORDS.get(entry.name.lower())
    if meant in spec.entries:
        return f"did you mean {meant!r}?"
    if len(path) == 2 and path[0] == "runtime" and path[1] in NAMESPACE.entries:  # noqa: PLR2004
        return (
            f"[[{path[1]}]] defines a task called {path[1]}; for the settings of a task write "
            f"[[[{path[1]}]]] under the heading of the task"
        )
    if len(path) == 2 and path[0] == "runtime" and entry.name.isupper():  # noqa: PLR2004
        return "environment variables of a task go under [[[environment]]]"
    places = _places(entry.name, isinstance(entry, Section))
    if places:
        return "it belongs under " + " or ".join(places)
    if not same_kind:
        return ""
    return "expected one of " + ", ".join(same_kind)


def _places(name: str, is_section: bool) -> list[str]:
    """Returns up to three sections that have an item, or a section, of this name."""
    found: list[str] = []

    def look(spec: SectionSpec, shown: str) -> None:
        known = spec.entries.get(name)
        if known is not None and isinstance(known, SectionSpec) is is_section and shown:
            found.append(shown)
        for inner_name, inner in spec.entries.items():
            if isinstance(inner, SectionSpec):
                look(inner, f"{shown}[{inner_name}]")
        if isinstance(spec.other, SectionSpec):
            look(spec.other, f"{shown}[NAME]")

    look(FLOW, "")
    return found[:3]
