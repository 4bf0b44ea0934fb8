"""Of the graph of a run only what has changed since it was told before.

A graph of a thousand tasks is hundreds of kilobytes, and between two looks at it a few of its
tasks and edges differ. A version is made of what a document says, not of when it was asked for:
whoever names one that is remembered is told the differences, and everything else the whole
graph. So nothing depends on what is remembered here, by which server, or for how long.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from tidewheel.views.run_facts import Document

GRAPHS_MAX = 64
PARTS_MAX = 200_000  # tasks, groups and edges of all graphs that are remembered
# What tells the items of a part from each other; of two that are alike the last one counts.
IDENTITY = {
    "tasks": ("id",),
    "groups": ("id",),
    "edges": ("from", "to", "output", "suicide"),
}
FAMILIES = "families"  # of each name; what is no longer drawn keeps them

_Identity = tuple[str | bool, ...]  # the part, then the item in it
_Marks = dict[_Identity, int]  # what each item says, in short


class ToldGraphs:
    """The newest graphs that were told, in short."""

    def __init__(self, graphs_max: int = GRAPHS_MAX, parts_max: int = PARTS_MAX) -> None:
        assert graphs_max > 0 and parts_max > 0
        self._graphs_max, self._parts_max = graphs_max, parts_max
        self._known: dict[Hashable, _Marks] = {}

    def told(self, window: Hashable, document: Document, since: str) -> Document:
        """This graph, or its differences to the version `since` of the same window."""
        items = dict(_items(document))
        marks = {one: hash(msgspec.json.encode(item)) for one, item in items.items()}
        version = _version(document)
        before = self._known.get((window, since))
        self._remember((window, version), marks)
        if before is None:
            gone: Document = {part: [] for part in IDENTITY}
            return document | {"version": version, "since": None, "gone": gone}
        changed = {one: item for one, item in items.items() if before.get(one) != marks[one]}
        lost = [one for one in before if one not in marks]
        facts = {"version": version, "since": since, "gone": _gone(lost)}
        return document | _changed(changed) | facts

    def _remember(self, key: Hashable, marks: _Marks) -> None:
        self._known.pop(key, None)
        self._known[key] = marks
        count = sum(map(len, self._known.values()))
        while len(self._known) > self._graphs_max or (
            count > self._parts_max and len(self._known) > 1
        ):
            count -= len(self._known.pop(next(iter(self._known))))


def _version(document: Document) -> str:
    said = {name: what for name, what in document.items() if name not in ("batch", "status")}
    return blake2b(msgspec.json.encode(said), digest_size=12).hexdigest()


def _items(document: Document) -> Iterator[tuple[_Identity, Any]]:
    for part, names in IDENTITY.items():
        items: Any = document[part]
        for item in items:
            yield (part, *(item[name] for name in names)), item
    families: Any = document[FAMILIES]
    for name, lineage in families.items():
        yield (FAMILIES, name), lineage


def _changed(items: Mapping[_Identity, Any]) -> Document:
    found: dict[str, Any] = {part: [] for part in IDENTITY} | {FAMILIES: {}}
    for (part, *identity), item in items.items():
        if part == FAMILIES:
            found[FAMILIES][identity[0]] = item
        else:
            found[str(part)].append(item)
    return found


def _gone(lost: Iterable[_Identity]) -> Document:
    """Ids of tasks and groups; of an edge, what tells it from others."""
    found: dict[str, list[Any]] = {part: [] for part in IDENTITY}
    for part, *values in lost:
        if part == FAMILIES:
            continue
        names = IDENTITY[str(part)]
        found[str(part)].append(
            values[0] if len(names) == 1 else dict(zip(names, values, strict=True))
        )
    return dict(found)
