"""What a run must do, from the graph and the ends of its jobs alone: a least fixpoint.

Theory of operation. The judge of `core/sched`, which shares no code with it and has no notion
of time, pool or order. Every task at every point has a fate, at first `OPEN`. SEMANTICS §2 to
§5 say what an atom is worth given the fate of its parent, and what becomes of a task given what
its atoms are worth; these two rules are applied to all tasks until nothing changes. Atoms only
ever go from open to true, or from open over lost to not taken, so the end does not depend on
the order, and a run in any order must come to it.

Only a suicide is a race (has the task been submitted when the condition comes true?). Which
tasks were removed that way is therefore taken from the run and checked for being lawful.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

Key = tuple[int, str]

SUBMITTED, STARTED, SUCCEEDED = "submitted", "started", "succeeded"
FAILED, SUBMIT_FAILED, EXPIRED = "failed", "submit-failed", "expired"
BAD_ENDS = frozenset({FAILED, SUBMIT_FAILED, EXPIRED})
STANDARD = BAD_ENDS | {SUBMITTED, STARTED, SUCCEEDED}


class Worth(IntEnum):
    """Of atoms and conditions: AND is the minimum, OR the maximum."""

    NOT_TAKEN = 0
    LOST = 1
    OPEN = 2
    TRUE = 3


@dataclass(frozen=True)
class Leaf:
    """Outputs, any of which will do, of a task or of every or any member of a family."""

    names: tuple[str, ...]
    outputs: tuple[str, ...] = (SUCCEEDED,)
    offset: int = 0
    absolute: int | None = None
    every: bool = True
    optional: bool = False  # written with `?`
    text: str = field(default="", compare=False)
    source: str = ""  # of the list, if the names are elements: those that are there count

    def parent_point(self, point: int) -> int:
        return point + self.offset if self.absolute is None else self.absolute

    @property
    def is_here(self) -> bool:
        return self.absolute is None and self.offset == 0


@dataclass(frozen=True)
class Every:
    terms: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    terms: tuple[Condition, ...]


Condition = Leaf | Every | Some


@dataclass(frozen=True)
class Arrow:
    """One trigger at all points of a recurrence; without a condition it only places tasks."""

    recurrence: str
    points: frozenset[int]
    condition: Condition | None
    targets: tuple[str, ...]
    target_text: str = ""
    suicide: bool = False
    hidden: bool = False  # of an element: written once for all of them


@dataclass(frozen=True)
class List:
    """How many elements the list `l` of a task has at each point, and who is mapped over it."""

    source: str
    sizes: Mapping[int, int]
    lines: tuple[str, ...]  # of the graph, with `<f>`
    most: int = 5  # elements that are accepted

    def has(self, key: Key) -> bool:
        """Whether there is such an element at that point, once the list is there."""
        point, name = key
        return int(name.partition("_f")[2]) < self.sizes.get(point, 0)


def is_element(name: str) -> bool:
    return "_f" in name


@dataclass(frozen=True)
class Graph:
    final: int
    arrows: tuple[Arrow, ...]
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    start: int = 1
    runahead: int | None = None
    limit: int | None = None  # how many tasks may be active at once
    retries: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    customs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    list: List | None = None

    def placed(self) -> dict[str, frozenset[int]]:
        """On which points each task stands."""
        found: dict[str, frozenset[int]] = {}
        for arrow in self.arrows:
            here = [
                name
                for leaf in leaves(arrow.condition)
                if leaf.is_here and not leaf.source
                for name in leaf.names
            ]
            for name in here if arrow.suicide else (*here, *arrow.targets):
                found[name] = found.get(name, frozenset()) | arrow.points
        return found

    def optional(self) -> dict[str, set[str]]:
        """The outputs written with `?` of tasks of the marked style; opposite ones together."""
        found: dict[str, set[str]] = {}
        for arrow in self.arrows:
            for leaf in leaves(arrow.condition):
                for name in leaf.names if leaf.optional else ():
                    ends = {SUCCEEDED, FAILED}
                    both = ends if ends & set(leaf.outputs) else set(leaf.outputs)
                    found.setdefault(name, set()).update(both)
        return found

    def uses(self) -> dict[str, set[str]]:
        """The outputs of each task that the graph waits for."""
        found: dict[str, set[str]] = {}
        for arrow in self.arrows:
            for leaf in leaves(arrow.condition):
                for name in leaf.names:
                    found.setdefault(name, set()).update(leaf.outputs)
        return found


@dataclass(frozen=True)
class Try:
    """One job: how it ends and which custom outputs it makes first."""

    end: str
    customs: tuple[str, ...] = ()

    @property
    def outputs(self) -> frozenset[str]:
        if self.end == SUBMIT_FAILED:
            return frozenset()
        return frozenset({SUBMITTED, STARTED, *self.customs})


Outcomes = Mapping[Key, tuple[Try, ...]]


def leaves(condition: Condition | None) -> Iterator[Leaf]:
    if isinstance(condition, Leaf):
        yield condition
    elif condition is not None:
        for term in condition.terms:
            yield from leaves(term)


@dataclass(frozen=True)
class Fate:
    """What became of a task. `death` is what its unmade outputs are worth; None: still open."""

    word: str  # open, ran, set, pruned, blocked, suicide, removed
    death: Worth | None = None
    made: frozenset[str] = frozenset()
    ended: str = ""

    @property
    def is_incomplete(self) -> bool:
        return self.word == "ran" and self.death is None


OPEN = Fate("open")
BLOCKED = Fate("blocked")


@dataclass(frozen=True)
class ByHand:
    """What operators have done to tasks that had not run, each once (SEMANTICS §8)."""

    triggered: frozenset[Key] = frozenset()  # run, whatever they need
    succeeded: frozenset[Key] = frozenset()  # set: count as run
    removed: frozenset[Key] = frozenset()  # out of the pool


NOTHING_BY_HAND = ByHand()


class Oracle:
    """The fates of all tasks of a graph, given how jobs end and who was removed by suicide."""

    def __init__(
        self,
        graph: Graph,
        outcomes: Outcomes,
        suicides: frozenset[Key] = frozenset(),
        submitted: Mapping[Key, int] | None = None,
        by_hand: ByHand = NOTHING_BY_HAND,
    ) -> None:
        self.graph = graph
        self._by_hand = by_hand
        self.outcomes = outcomes
        self.placed = graph.placed()
        self._uses = graph.uses()
        self._optional = graph.optional()
        self._suicides = suicides
        self._submitted = submitted or {}
        self._arrows: dict[Key, list[Condition]] = {}
        self._killers: dict[Key, list[Condition]] = {}
        self._sort_arrows()
        self.fates: dict[Key, Fate] = {
            (point, name): OPEN
            for name, points in self.placed.items()
            for point in points
            if graph.start <= point <= graph.final
        }
        while self._advance():
            pass

    def _sort_arrows(self) -> None:
        for arrow in self.graph.arrows:
            into = self._killers if arrow.suicide else self._arrows
            for point in arrow.points if arrow.condition else ():
                for name in arrow.targets:
                    assert arrow.condition is not None
                    into.setdefault((point, name), []).append(arrow.condition)

    def _advance(self) -> bool:
        changed = False
        for key, old in self.fates.items():
            settled = old.word in ("ran", "set", "suicide", "removed")
            if settled or old.death is Worth.NOT_TAKEN or not self.is_there(key):
                continue
            new = self._judge(key)
            if new != old:
                self.fates[key] = new
                changed = True
        return changed

    def _judge(self, key: Key) -> Fate:
        """SEMANTICS §5, with the race of a suicide decided."""
        if key in self._suicides and key not in self._submitted:
            return Fate("suicide", Worth.NOT_TAKEN)
        if key in self._by_hand.removed | self._by_hand.succeeded:
            return self._decided(key)
        overall, own = self.worth_of(key)
        if overall is Worth.TRUE or key in self._by_hand.triggered:
            return self._run(key)
        if overall is Worth.NOT_TAKEN:
            return Fate("pruned", Worth.NOT_TAKEN)
        if own is Worth.LOST:
            return Fate("pruned", Worth.LOST)
        return BLOCKED if overall is Worth.LOST else OPEN

    def _decided(self, key: Key) -> Fate:
        """By an operator."""
        if key in self._by_hand.removed:
            return Fate("removed", Worth.LOST)
        made = frozenset({SUBMITTED, STARTED, SUCCEEDED})
        return Fate("set", Worth.NOT_TAKEN, made, SUCCEEDED)

    def _run(self, key: Key) -> Fate:
        """SEMANTICS §4.4, 4.7: failures that are tried again are no outputs."""
        if key not in self.outcomes:
            return Fate("ran")  # and is still running
        tries = self.tries_of(key)
        end = tries[-1].end
        made = frozenset[str]().union(*(one.outputs for one in tries))
        if len(tries) == len(self.outcomes[key]):
            made |= {end}
        if key in self._suicides:  # submitted, so it waited for a retry or ended incomplete
            return Fate("ran", Worth.NOT_TAKEN, made, end)
        if not self.is_complete(key[1], made, end):
            return Fate("ran", None, made, end)
        return Fate("ran", Worth.NOT_TAKEN if end == SUCCEEDED else Worth.LOST, made, end)

    def is_complete(self, name: str, made: frozenset[str], end: str) -> bool:
        """SEMANTICS §3."""
        used = self._uses.get(name, set())
        optional = self._optional.get(name)
        if optional is None:
            customs = used - STANDARD
            made_one = not customs or not customs.isdisjoint(made)
            return made_one if end == SUCCEEDED else end in used
        if end == SUBMIT_FAILED:
            return SUBMIT_FAILED in optional
        if end == FAILED:
            return FAILED in optional
        return used - optional - BAD_ENDS <= made

    # What things are worth (SEMANTICS §1, §2, §5).

    def worth_of(self, key: Key) -> tuple[Worth, Worth]:
        """Counting atoms of all points, and taking the lost ones of other points as open."""
        conditions = self._arrows.get(key, [])
        overall = [self._worth(one, key[0], own=False) for one in conditions]
        own = [self._worth(one, key[0], own=True) for one in conditions]
        return min(overall, default=Worth.TRUE), min(own, default=Worth.TRUE)

    def conditions(self, key: Key) -> list[Condition]:
        """What a task waits for: all of these."""
        return self._arrows.get(key, [])

    def worth_of_leaf(self, leaf: Leaf, point: int) -> Worth:
        """Counting atoms of all points."""
        return self._leaf(leaf, point, own=False)

    def _worth(self, condition: Condition, point: int, *, own: bool) -> Worth:
        if isinstance(condition, Leaf):
            return self._leaf(condition, point, own=own)
        worths = [self._worth(term, point, own=own) for term in condition.terms]
        return min(worths) if isinstance(condition, Every) else max(worths)

    def is_there(self, key: Key) -> bool:
        """Whether an element has come: with the list. Of other tasks it is True."""
        if not is_element(key[1]) or self.graph.list is None:
            return True
        return self.is_listed(key[0]) is Worth.TRUE and self.graph.list.has(key)

    def is_listed(self, point: int) -> Worth:
        """What it is worth that the list of a point is there."""
        assert self.graph.list is not None
        return self.atom(point, self.graph.list.source, SUCCEEDED)

    def _elements(self, leaf: Leaf, parent: int) -> Worth:
        """All or any elements: as many as there are; before that, what the list is worth."""
        listed = self.is_listed(parent)
        inside = self.graph.start <= parent <= self.graph.final
        if listed is not Worth.TRUE or not inside:
            bad = Worth.NOT_TAKEN if listed < Worth.OPEN else listed
            if not inside:
                return max(self.atom(parent, leaf.source, one) for one in leaf.outputs)
            return max(bad if one in BAD_ENDS else listed for one in leaf.outputs)
        assert self.graph.list is not None
        worths = [
            max(self.atom(parent, name, one) for one in leaf.outputs)
            for name in leaf.names
            if self.graph.list.has((parent, name))
        ]
        if not worths:
            return Worth.TRUE if leaf.every else Worth.NOT_TAKEN
        return min(worths) if leaf.every else max(worths)

    def _leaf(self, leaf: Leaf, point: int, *, own: bool) -> Worth:
        parent = leaf.parent_point(point)
        if leaf.source:
            worth = self._elements(leaf, parent)
            return Worth.OPEN if own and worth is Worth.LOST and parent != point else worth
        worths = [
            max(self.atom(parent, name, one) for one in leaf.outputs) for name in leaf.names
        ]
        worth = min(worths) if leaf.every else max(worths)
        return Worth.OPEN if own and worth is Worth.LOST and parent != point else worth

    def atom(self, point: int, name: str, output: str) -> Worth:
        if point < self.graph.start:
            return Worth.NOT_TAKEN if output in BAD_ENDS else Worth.TRUE
        if point > self.graph.final:
            return Worth.NOT_TAKEN
        fate = self.fates.get((point, name))
        if fate is None:
            return Worth.LOST  # off its sequence
        if output in fate.made:
            return Worth.TRUE
        if fate.death is None:
            return Worth.OPEN
        return Worth.NOT_TAKEN if output in BAD_ENDS else fate.death

    # What else is asked of a solution.

    def suicide_holds(self, key: Key) -> bool:
        """All suicide arrows into a task are one condition; before the start it is open."""
        conditions = self._killers.get(key)
        return bool(conditions) and all(self._kills(one, key[0]) for one in conditions or ())

    def suicide_is_absolute(self, key: Key) -> bool:
        return any(
            leaf.absolute is not None
            for condition in self._killers.get(key, [])
            for leaf in leaves(condition)
        )

    def _kills(self, condition: Condition, point: int) -> bool:
        if isinstance(condition, Leaf):
            inside = self.graph.start <= condition.parent_point(point) <= self.graph.final
            return inside and self._leaf(condition, point, own=False) is Worth.TRUE
        kills = [self._kills(term, point) for term in condition.terms]
        return all(kills) if isinstance(condition, Every) else any(kills)

    def is_spawned(self, key: Key) -> bool:
        """Whether an open task is in the pool: a parent at a relative point made an output."""
        if not self.is_there(key):
            return False
        if any(
            leaf.source and self._counts(leaf, key[0])
            for condition in self._arrows.get(key, [])
            for leaf in leaves(condition)
        ):
            return True
        return any(
            self.atom(leaf.parent_point(key[0]), name, output) is Worth.TRUE
            for condition in self._arrows.get(key, [])
            for leaf in leaves(condition)
            if leaf.absolute is None and self._counts(leaf, key[0])
            for name in leaf.names
            for output in leaf.outputs
        )

    def _counts(self, leaf: Leaf, point: int) -> bool:
        inside = self.graph.start <= leaf.parent_point(point) <= self.graph.final
        return inside and self._leaf(leaf, point, own=False) is Worth.TRUE

    def with_word(self, word: str) -> set[Key]:
        return {key for key, fate in self.fates.items() if fate.word == word}

    @property
    def submissions(self) -> dict[Key, int]:
        """Who runs, and how often with its retries."""
        return {key: len(self.tries_of(key)) for key in self.with_word("ran")}

    def tries_of(self, key: Key) -> tuple[Try, ...]:
        """Its jobs; of a task removed between two of them, those that there were."""
        tries = self.outcomes[key]
        return tries[: self._submitted.get(key)] if key in self._suicides else tries

    @property
    def incomplete(self) -> set[Key]:
        return {key for key, fate in self.fates.items() if fate.is_incomplete}

    @property
    def waiting(self) -> set[Key]:
        return {key for key in self.with_word("open") if self.is_spawned(key)}

    @property
    def stalls(self) -> bool:
        return bool(self.incomplete or self.blocked_for_sure() or self.waiting)

    def blocked_for_sure(self) -> set[Key]:
        """Those whose blocking must show.

        By a lost absolute atom, without which it would be open, only the first of a task
        (§4.6).
        """
        found: set[Key] = set()
        names: set[str] = set()
        for key in sorted(self.with_word("blocked")):
            lost = list(self._lost_leaves(key))
            dead = [
                leaf for leaf in lost if leaf.absolute is None or self._has_parent(leaf, key[0])
            ]
            relative = self._is_lost_without_fixed(key) and any(
                leaf.absolute is None for leaf in dead
            )
            if relative or self.is_spawned(key) or (dead and key[1] not in names):
                found.add(key)
            names.update([key[1]] if dead else [])
        return found

    def _is_lost_without_fixed(self, key: Key) -> bool:
        def worth(condition: Condition) -> Worth:
            if isinstance(condition, Leaf):
                found = self._leaf(condition, key[0], own=False)
                fixed = found is Worth.LOST and condition.absolute is not None
                return Worth.OPEN if fixed else found
            worths = [worth(term) for term in condition.terms]
            return min(worths) if isinstance(condition, Every) else max(worths)

        return min(map(worth, self._arrows[key])) is Worth.LOST

    def _lost_leaves(self, key: Key) -> Iterator[Leaf]:
        for condition in self._arrows[key]:
            for leaf in leaves(condition):
                if self._leaf(leaf, key[0], own=False) is Worth.LOST:
                    yield leaf

    def _has_parent(self, leaf: Leaf, point: int) -> bool:
        """Whether somebody of it that counts is on its sequence there, and lost."""
        parent = leaf.parent_point(point)
        return any(
            (parent, name) in self.fates
            and max(self.atom(parent, name, one) for one in leaf.outputs) is Worth.LOST
            for name in leaf.names
        )
