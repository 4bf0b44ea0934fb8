"""Random little cycling workflows, with how each of their jobs ends, from one seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from tests.sim.sched_oracle import (
    FAILED,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
    Arrow,
    Condition,
    Every,
    Graph,
    Key,
    Leaf,
    Some,
    Try,
    leaves,
)

RECURRENCES = ("P1", "P1", "P1", "P1", "P2", "P2", "R1", "+P1/P2", "R1/$", "R2/^/P1")
SHORT = {
    SUBMITTED: "submit",
    STARTED: "start",
    SUCCEEDED: "succeed",
    FAILED: "fail",
    SUBMIT_FAILED: "submit-fail",
}
FINISH = (SUCCEEDED, FAILED)


@dataclass(frozen=True)
class Case:
    """A workflow and the ends of all its jobs."""

    graph: Graph
    outcomes: Mapping[Key, tuple[Try, ...]]


def points_of(recurrence: str, final: int) -> frozenset[int]:
    """The points of the recurrences that are drawn here."""
    found = {
        "P1": range(1, final + 1),
        "P2": range(1, final + 1, 2),
        "R1": (1,),
        "+P1/P2": range(2, final + 1, 2),
        "R1/$": (final,),
        "R2/^/P1": (point for point in (1, 2) if point <= final),
    }
    return frozenset(found[recurrence])


class Drawer:
    """Draws one case."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.final = rng.choice((2, 3, 3, 4, 4, 5, 6))
        self.names = list("abcdef"[: rng.randint(2, 5)])
        self.families: dict[str, tuple[str, ...]] = {}
        if rng.random() < 0.35:
            self.families["FAM"] = ("m1", "m2", "m3")[: rng.randint(2, 3)]
        self.customs: dict[str, tuple[str, ...]] = {}
        self.rank = {name: rng.random() for name in (*self.names, "FAM")}
        self.future = rng.random() < 0.2
        self.absolute = rng.random() < 0.25
        # The ends of these tasks are written with `?`, and one of their custom outputs.
        self.marked = {one for one in self.names if rng.random() < 0.15}

    def case(self) -> Case:
        arrows = [self._arrow() for _ in range(self.rng.randint(2, 7))]
        arrows += list(self._homes(arrows))
        if self.rng.random() < 0.4:
            arrows += list(self._suicides(arrows))
        rng = self.rng
        removes = any(arrow.suicide for arrow in arrows)
        everyone = [*self.names, *(m for members in self.families.values() for m in members)]
        graph = Graph(
            final=self.final,
            arrows=tuple(arrows),
            families=self.families,
            start=2 if rng.random() < 0.1 else 1,
            runahead=rng.choice((None, 0, 0, 1) if removes else (None, None, 0, 1, 2)),
            limit=rng.choice((None, None, None, 1, 2)),
            retries={
                n: (rng.randint(0, 2), rng.randint(0, 1))
                for n in everyone
                if rng.random() < 0.2
            },
            customs=self.customs,
        )
        return Case(graph, draw_outcomes(graph, rng))

    def _arrow(self) -> Arrow:
        rng = self.rng
        recurrence = rng.choice(RECURRENCES)
        target = rng.choice([*self.names, *self.families])
        targets = self.families.get(target, (target,))
        size = rng.choice((1, 1, 1, 2, 2, 3))
        found = [leaf for _ in range(size) if (leaf := self._leaf(target)) is not None]
        condition = _combined(rng, found)
        points = points_of(recurrence, self.final)
        return Arrow(recurrence, points, condition, targets, target)

    def _leaf(self, target: str) -> Leaf | None:
        """A parent that cannot close a circle: not before the child only if of lower rank."""
        rng = self.rng
        source = rng.choice([*self.names, *self.families])
        offset, absolute = self._where(self.rank[source] < self.rank[target])
        if offset is None and absolute is None:
            return None
        place = "" if not offset else f"[{offset:+d}]".replace("+", "+P").replace("-", "-P")
        if absolute is not None:
            place = "[^]" if absolute == 1 else f"[{absolute}]"
        if source in self.families:
            return self._family_leaf(source, place, offset or 0, absolute)
        outputs, qualifier = self._output(source)
        return Leaf(
            (source,),
            outputs,
            offset or 0,
            absolute,
            optional=qualifier.endswith("?"),
            text=f"{source}{place}{qualifier}",
        )

    def _where(self, lower: bool) -> tuple[int | None, int | None]:
        rng = self.rng
        if self.absolute and lower and rng.random() < 0.4:
            return None, rng.choice((1, 1, 2))
        offsets = [-1, -1, -2]
        if lower:
            offsets += [0] * 6
            if self.future:
                offsets += [1, 1]
        elif rng.random() < 0.4:
            return None, None
        return rng.choice(offsets), None

    def _output(self, name: str) -> tuple[tuple[str, ...], str]:
        rng = self.rng
        drawn = rng.choices(
            (SUCCEEDED, FAILED, "finish", "custom", STARTED, SUBMITTED, SUBMIT_FAILED),
            (60, 15, 6, 12, 4, 2, 3),
        )[0]
        marked = name in self.marked
        if drawn == "finish" and not marked:
            return FINISH, ":finish"
        if drawn == "custom":
            custom = f"{name}_{rng.choice('xy')}"
            self.customs[name] = tuple(sorted({*self.customs.get(name, ()), custom}))
            mark = "?" if marked and custom.endswith("x") else ""
            return (custom,), f":{custom}{mark}"
        if drawn not in (SUCCEEDED, FAILED) and marked:
            drawn = SUCCEEDED
        if drawn == "finish":
            drawn = SUCCEEDED
        plain = drawn == SUCCEEDED and rng.random() < 0.8
        return (drawn,), ("" if plain else f":{SHORT[drawn]}") + ("?" if marked else "")

    def _family_leaf(self, family: str, place: str, offset: int, absolute: int | None) -> Leaf:
        rng = self.rng
        word, outputs = rng.choice(
            (
                ("succeed", (SUCCEEDED,)),
                ("succeed", (SUCCEEDED,)),
                ("fail", (FAILED,)),
                ("finish", FINISH),
            )
        )
        every = rng.random() < 0.5
        qualifier = f"{place}:{word}-{'all' if every else 'any'}"
        return Leaf(
            self.families[family], outputs, offset, absolute, every, text=family + qualifier
        )

    def _homes(self, arrows: list[Arrow]) -> Iterator[Arrow]:
        """A place for every task that is only ever asked for at other points."""
        placed = Graph(self.final, tuple(arrows)).placed()
        for name in [*self.names, *self.families]:
            members = self.families.get(name, (name,))
            if any(not placed.get(member) for member in members):
                recurrence = self.rng.choice(RECURRENCES)
                points = points_of(recurrence, self.final)
                yield Arrow(recurrence, points, None, members, name)

    def _suicides(self, arrows: list[Arrow]) -> Iterator[Arrow]:
        """Arrows that remove a task; they place nobody where nobody was."""
        rng = self.rng
        placed = Graph(self.final, tuple(arrows)).placed()
        for _ in range(rng.randint(1, 4)):
            model = rng.choice(arrows)
            if model.target_text in self.families:
                continue
            drawn = [self._leaf(model.target_text) for _ in range(rng.choice((1, 1, 2)))]
            condition = _combined(rng, [leaf for leaf in drawn if leaf is not None])
            # One condition must not both run and remove a task.
            runs = {_meaning(one.condition) for one in arrows if one.targets == model.targets}
            if condition is None or not _fits(condition, model, placed):
                continue
            if _meaning(condition) in runs:
                continue
            text = f"!{model.target_text}"
            yield replace(model, condition=condition, target_text=text, suicide=True)


def _meaning(condition: Condition | None) -> object:
    """The same for all ways in which a condition may be written."""
    if condition is None or (isinstance(condition, Leaf) and len(condition.outputs) == 1):
        return condition
    if isinstance(condition, Leaf):
        terms: tuple[Condition, ...] = tuple(
            replace(condition, outputs=(one,)) for one in condition.outputs
        )
    else:
        terms = condition.terms
    found = {_meaning(term) for term in terms}
    if isinstance(condition, Every):
        return ("every", frozenset(found))
    inner = [one[1] for one in found if isinstance(one, tuple) and one[0] == "some"]
    rest = {one for one in found if not (isinstance(one, tuple) and one[0] == "some")}
    return ("some", frozenset(rest).union(*inner))


def _fits(condition: Condition, model: Arrow, placed: Mapping[str, frozenset[int]]) -> bool:
    return all(
        name not in model.targets and (not leaf.is_here or model.points <= placed[name])
        for leaf in leaves(condition)
        for name in leaf.names
    )


def _combined(rng: Random, found: list[Leaf]) -> Condition | None:
    found = list(dict.fromkeys(found))
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    every = rng.random() < 0.6
    if len(found) == 3 and rng.random() < 0.6:
        inner = (Some if every else Every)((found[1], found[2]))
        return (Every if every else Some)((found[0], inner))
    return (Every if every else Some)(tuple(found))


def draw_outcomes(graph: Graph, rng: Random) -> dict[Key, tuple[Try, ...]]:
    failing = rng.choice((0.0, 0.1, 0.3, 0.5))
    found: dict[Key, tuple[Try, ...]] = {}
    for name, points in sorted(graph.placed().items()):
        for point in sorted(points):
            found[(point, name)] = tuple(_tries(graph, name, failing, rng))
    return found


def _tries(graph: Graph, name: str, failing: float, rng: Random) -> Iterator[Try]:
    def job(end: str) -> Try:
        customs = [one for one in graph.customs.get(name, ()) if rng.random() < 0.7]
        rng.shuffle(customs)
        return Try(end, () if end == SUBMIT_FAILED else tuple(customs))

    execution, submission = graph.retries.get(name, (0, 0))
    for _ in range(submission):
        if rng.random() >= failing:
            break
        yield job(SUBMIT_FAILED)
    else:
        if rng.random() < failing * 0.2:
            yield job(SUBMIT_FAILED)
            return
    for _ in range(execution):
        if rng.random() >= failing:
            break
        yield job(FAILED)
    else:
        if rng.random() < failing:
            yield job(FAILED)
            return
    yield job(SUCCEEDED)


def off_sequence(graph: Graph, leaf: Leaf, points: frozenset[int]) -> list[bool]:
    """For each parent asked for within the run, whether it is not there."""
    placed = graph.placed()
    return [
        point not in placed.get(name, ())
        for name in (leaf.names if not leaf.source else ())  # elements come as there are
        for child in points
        if 1 <= (point := leaf.parent_point(child)) <= graph.final
    ]


def never_there(graph: Graph) -> bool:
    """Whether some parent is off its sequence wherever it is asked for, which is refused."""
    return any(
        all(off)
        for arrow in graph.arrows
        for leaf in leaves(arrow.condition)
        if (off := off_sequence(graph, leaf, arrow.points))
    )


def sometimes_missing(graph: Graph) -> bool:
    """Whether some parent is off its sequence somewhere, which is warned of."""
    return any(
        any(off_sequence(graph, leaf, arrow.points))
        for arrow in graph.arrows
        for leaf in leaves(arrow.condition)
    )


def parents_of_all(graph: Graph) -> dict[Key, set[Key]]:
    """The tasks that each task waits for, whichever of its arrows says so."""
    parents: dict[Key, set[Key]] = {}
    for arrow in graph.arrows:
        for point in () if arrow.suicide else arrow.points:
            found = {
                (leaf.parent_point(point), name)
                for leaf in leaves(arrow.condition)
                for name in leaf.names
            }
            for target in arrow.targets:
                parents.setdefault((point, target), set()).update(found)
    return parents


def has_cycle(graph: Graph) -> bool:
    """Whether a task waits, through others, for itself."""
    parents = parents_of_all(graph)
    while parents:
        free = [key for key, found in parents.items() if found.isdisjoint(parents)]
        if not free:
            return True
        for key in free:
            del parents[key]
    return False


def waits_for_its_future(graph: Graph) -> bool:
    """Whether tasks could wait, through others, for later ones of themselves, which is refused.

    By offsets alone: a few graphs whose recurrences would save them are passed over, too. Of
    fixed points offsets say nothing: there, task by task.
    """
    parents = parents_of_all(graph)
    for point, name in parents:
        if any(there > point and one == name for there, one in before((point, name), parents)):
            return True
    steps = {
        (target, name, leaf.offset)
        for arrow in graph.arrows
        for leaf in (() if arrow.suicide else leaves(arrow.condition))
        if leaf.absolute is None
        for target in arrow.targets
        for name in leaf.names
    }
    names = {name for target, parent, _ in steps for name in (target, parent)}
    furthest = dict.fromkeys(names, 0)
    for _ in range(len(names) + 1):
        longer = {
            child: furthest[parent] + offset
            for child, parent, offset in sorted(steps)
            if furthest[parent] + offset > furthest[child]
        }
        if not longer:
            return False
        furthest |= longer
    return True


def before(key: Key, parents: Mapping[Key, set[Key]]) -> set[Key]:
    """Everything that a task waits for, through others, too."""
    seen: set[Key] = set()
    waiting = [key]
    while waiting:
        new = parents.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def draw(seed: int) -> Case:
    """The case of a seed: drawn again until it is one that can be run."""
    rng = Random(seed)
    missing = rng.random() < 0.1
    while True:
        case = Drawer(rng).case()
        graph = case.graph
        if never_there(graph) or has_cycle(graph) or waits_for_its_future(graph):
            continue
        if missing or not sometimes_missing(graph):
            return case
