"""Adds mapped tasks to random workflows: over a list that one of their tasks returns.

How long the list is at each point is a part of the case. So the oracle sees elements as plain
tasks at the points where there are so many, each with arrows of its own, and judges a group of
elements by one rule of its own (`Leaf.source`). The product reads the lines with `<f>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from tests.sim.sched_oracle import (
    FAILED,
    SUCCEEDED,
    Arrow,
    Condition,
    Every,
    Graph,
    Leaf,
    List,
    Some,
)
from tests.sim.sched_oracle_flow import text_of
from tests.sim.sched_oracle_graphs import (
    Case,
    draw,
    draw_outcomes,
    has_cycle,
    never_there,
    sometimes_missing,
    waits_for_its_future,
)

SIZE_MAX = 3
WHEREVER = "P1"


def draw_with_lists(seed: int) -> Case:
    """The case of a seed, every third time with mapped tasks."""
    case, rng = draw(seed), Random(f"lists {seed}")
    for _ in range(20 if rng.random() < 0.35 else 0):
        graph = with_list(case.graph, rng)
        circles = has_cycle(graph) or waits_for_its_future(graph)
        if not circles and not never_there(graph) and not sometimes_missing(graph):
            return Case(graph, {**draw_outcomes(graph, rng), **case.outcomes})
    return case


def everywhere(graph: Graph) -> Graph:
    """With as many elements at each point as there ever are: which of them are there is then a
    matter of sizes alone, which may differ from flow to flow."""
    if graph.list is None:
        return graph
    points = frozenset(graph.list.sizes)
    arrows = tuple(replace(one, points=points) if one.hidden else one for one in graph.arrows)
    return replace(graph, arrows=arrows)


def with_sizes(graph: Graph, sizes: Mapping[int, int]) -> Graph:
    """With lists of these sizes, by point; where none is given there are no elements."""
    if graph.list is None:
        return graph
    return replace(graph, list=replace(graph.list, sizes=sizes))


def size_text(size: int, submit: int | None = None) -> str:
    """The output by which a list of so many elements, of a submission, is told."""
    return f"l[{size}]" if submit is None else f"l[{size}@{submit}]"


def with_list(graph: Graph, rng: Random) -> Graph:
    points = frozenset(range(1, graph.final + 1))
    marked = _members(graph) | graph.optional().keys()
    names = sorted(name for name in graph.placed() if name not in marked) or ["s"]
    source = rng.choice(names)
    sizes = {point: rng.choice((0, 1, 1, 2, 2, 3)) for point in sorted(points)}
    maker = _Maker(graph, rng, source, sizes, points)
    return maker.graph()


def _members(graph: Graph) -> set[str]:
    return {name for members in graph.families.values() for name in members}


class _Maker:
    def __init__(
        self,
        graph: Graph,
        rng: Random,
        source: str,
        sizes: dict[int, int],
        points: frozenset[int],
    ) -> None:
        self._graph, self._rng, self._source = graph, rng, source
        self._sizes, self._points = sizes, points
        self._arrows: list[Arrow] = []
        self._lines: list[str] = []

    def graph(self) -> Graph:
        rng, listed = self._rng, Leaf((self._source,), text=self._source)
        self._arrows.append(Arrow(WHEREVER, self._points, None, (self._source,), self._source))
        others = [leaf for _ in range(2) if (leaf := self._other()) is not None]
        first: Condition = listed
        if others and rng.random() < 0.6:
            first = Every((listed, others[0]))
            self._line(text_of(first), "p<f>")
        elif others and rng.random() < 0.6:  # the source is implied
            self._line(text_of(others[0]), "p<f>")
            self._elements("p", others[0])
        else:
            self._line(listed.text, "p<f>")
        self._elements("p", first)
        if rng.random() < 0.6:
            self._next(others[1:])
        ends = ["p"] + ["q"] * any(arrow.targets[0][0] == "q" for arrow in self._arrows)
        for _ in range(rng.randint(0, 2)):
            self._join(rng.choice(ends))
        part = List(self._source, self._sizes, tuple(self._lines))
        return replace(self._graph, arrows=(*self._graph.arrows, *self._arrows), list=part)

    def _next(self, others: list[Leaf]) -> None:
        """From element to element."""
        rng = self._rng
        output, word = rng.choice(((SUCCEEDED, ""), (SUCCEEDED, ""), (FAILED, ":fail")))
        both = bool(others) and rng.random() < 0.5
        either = both and rng.random() < 0.3
        sign = " | " if either else " & "
        self._line(f"p<f>{word}" + (sign + others[0].text if both else ""), "q<f>")
        for index in range(SIZE_MAX):
            leaf = Leaf((f"p_f{index}",), (output,))
            terms = (leaf, *others[:1]) if both else (leaf,)
            condition = leaf if not both else (Some if either else Every)(terms)
            self._element("q", index, condition)
            if either:
                self._element("q", index, Leaf((self._source,)))

    def _join(self, mapped: str) -> None:
        rng = self._rng
        word, outputs = rng.choice(
            (
                ("succeed", (SUCCEEDED,)),
                ("succeed", (SUCCEEDED,)),
                ("fail", (FAILED,)),
                ("finish", (SUCCEEDED, FAILED)),
            )
        )
        every, offset = rng.random() < 0.6, rng.choice((0, 0, 0, -1))
        place = "[-P1]" if offset else ""
        text = f"{mapped}<f>{place}:{word}-{'all' if every else 'any'}"
        names = tuple(f"{mapped}_f{index}" for index in range(SIZE_MAX))
        leaf = Leaf(names, outputs, offset, None, every, text=text, source=self._source)
        condition: Condition = leaf
        if rng.random() < 0.4 and (other := self._other()) is not None:
            condition = (Every if rng.random() < 0.6 else Some)((leaf, other))
        target = rng.choice(["j", "j", "k"])
        self._arrows.append(Arrow(WHEREVER, self._points, condition, (target,), target))

    def _other(self) -> Leaf | None:
        """A parent that is no element."""
        rng = self._rng
        placed = self._graph.placed()
        names = [name for name in sorted(placed) if placed[name] == self._points]
        if not names:
            return None
        name = rng.choice(names)
        output, word = rng.choice(((SUCCEEDED, ""), (SUCCEEDED, ""), (FAILED, ":fail")))
        if name in self._graph.optional():
            return None
        offset = rng.choice((0, 0, 0, -1))
        text = f"{name}{'[-P1]' if offset else ''}{word}"
        return Leaf((name,), (output,), offset, text=text)

    def _line(self, left: str, right: str) -> None:
        self._lines.append(f"{WHEREVER} = {left} => {right}")

    def _elements(self, mapped: str, condition: Condition) -> None:
        for index in range(SIZE_MAX):
            self._element(mapped, index, condition)

    def _element(self, mapped: str, index: int, condition: Condition) -> None:
        there = frozenset(point for point, size in self._sizes.items() if size > index)
        name = f"{mapped}_f{index}"
        self._arrows.append(Arrow(WHEREVER, there, condition, (name,), name, hidden=True))
