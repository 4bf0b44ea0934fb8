"""Works out who inherits from whom, in which order, and who the members of a family are.

The order of several parents is C3's, as in Python: a child comes before its parents, parents
keep the order in which they are named, and both hold for every ancestor.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.lazy_dataclasses import dataclass

ANCESTORS_MAX = 100  # of one namespace
ROOT = "root"


@dataclass(frozen=True, slots=True)
class Families:
    """Holds which namespace inherits from which, and the members of each family."""

    parents: Mapping[str, tuple[str, ...]]
    # Nearest first, itself included, root last.
    lineages: Mapping[str, tuple[str, ...]]
    # The one that it is drawn in; `inherit = None, A` draws it in root.
    first_parents: Mapping[str, str]
    # Tasks below each family, in the order of the definition. A name with members is a family.
    members: Mapping[str, tuple[str, ...]]

    def is_family(self, name: str) -> bool:
        return name in self.members

    def tasks_of(self, name: str) -> tuple[str, ...]:
        """Returns the members of a family; of a task, the task itself."""
        return self.members.get(name, (name,))

    def drawn_in(self, name: str) -> str | None:
        """Returns the family that a name is drawn in; None if it is only in root."""
        parent = self.first_parents.get(name, ROOT)
        return None if parent == ROOT else parent


@dataclass(frozen=True, slots=True)
class InheritanceProblem:
    """Says why a namespace has no order of ancestors; it then inherits from root alone."""

    name: str
    message: str
    hint: str = ""


def arrange(
    parents: Mapping[str, tuple[str, ...]], first_parents: Mapping[str, str]
) -> tuple[Families, list[InheritanceProblem]]:
    """Returns the hierarchy, and a problem for each namespace that has no place in it.

    ``parents`` has every namespace, with parents that exist; root has none.
    """
    linearizer = _Linearizer(parents)
    lineages = {name: linearizer.lineage(name) for name in parents}
    children = {parent for one in parents.values() for parent in one}
    members: dict[str, list[str]] = {name: [] for name in parents if name in children}
    members.setdefault(ROOT, [])
    for name, lineage in lineages.items():
        if name in members:
            continue
        for family in lineage[1:]:
            members[family].append(name)
    families = Families(
        parents, lineages, first_parents, {name: tuple(one) for name, one in members.items()}
    )
    return families, linearizer.problems


class _Linearizer:
    def __init__(self, parents: Mapping[str, tuple[str, ...]]) -> None:
        self._parents = parents
        self._known: dict[str, tuple[str, ...]] = {}
        # What follows the name itself: the same for all that have the same parents.
        self._tails: dict[tuple[str, ...], tuple[str, ...] | None] = {(): ()}
        self.problems: list[InheritanceProblem] = []

    def lineage(self, name: str) -> tuple[str, ...]:
        known = self._known.get(name)
        if known is None:
            known = self._find(name, ())
        return known

    def _find(self, name: str, below: tuple[str, ...]) -> tuple[str, ...]:
        parents = self._parents[name]
        tail = self._tails.get(parents)
        if tail is None:
            tail = self._tail(name, parents, below)
        self._known[name] = lineage = (name, *tail)
        return lineage

    def _tail(
        self, name: str, parents: tuple[str, ...], below: tuple[str, ...]
    ) -> tuple[str, ...]:
        alone = () if name == ROOT else (ROOT,)
        path = (*below, name)
        for parent in parents:
            if parent in path:
                circle = " -> ".join([*path[path.index(parent) :], parent])
                seen = f"it inherits from itself: {circle}"
                return self._problem(name, seen, "remove one of these parents", alone)
        if len(path) > ANCESTORS_MAX:
            return self._problem(name, f"it has more than {ANCESTORS_MAX} ancestors", "", alone)
        lineages = [self._known.get(parent) or self._find(parent, path) for parent in parents]
        tail = _merge([*lineages, parents])
        if tail is None:
            shown = ", ".join(parents)
            seen = f"the order of its parents {shown} contradicts their own inheritance"
            hint = "name a family before the families that it inherits from"
            return self._problem(name, seen, hint, alone)
        self._tails[parents] = tail
        return tail

    def _problem(
        self, name: str, message: str, hint: str, alone: tuple[str, ...]
    ) -> tuple[str, ...]:
        self.problems.append(InheritanceProblem(name, message, hint))
        return alone


def _merge(sequences: list[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Returns the C3 merge of several orders, or None if they contradict each other. It takes
    the first head that is in no tail until all is merged."""
    if len(sequences) == 2:  # noqa: PLR2004 - one parent and the list that names it
        return sequences[0]
    rests = [list(reversed(sequence)) for sequence in sequences if sequence]
    merged: list[str] = []
    while rests:
        in_tails = {name for rest in rests for name in rest[:-1]}
        head = next((rest[-1] for rest in rests if rest[-1] not in in_tails), None)
        if head is None:
            return None
        merged.append(head)
        for rest in rests:
            if rest[-1] == head:
                rest.pop()
        rests = [rest for rest in rests if rest]
    return tuple(merged)
