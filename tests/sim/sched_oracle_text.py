"""Reads the graph text of hand-written cases into the oracle's own model.

Lines `recurrence = left => right`, with `&`, `|`, parentheses, `a`, `a[-P1]:fail`, `a[^]`,
`FAM:succeed-all`, `!b`; several right sides are joined by `&`. A line without an arrow places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    Leaf,
    Some,
)
from tests.sim.sched_oracle_graphs import points_of

OUTPUTS = {
    "": (SUCCEEDED,),
    "succeed": (SUCCEEDED,),
    "fail": (FAILED,),
    "finish": (SUCCEEDED, FAILED),
    "start": (STARTED,),
    "submit": (SUBMITTED,),
    "submit-fail": (SUBMIT_FAILED,),
}
_TOKEN = re.compile(r"\s*([&|()]|[^\s&|()]+)")
_NODE = re.compile(r"(\w+)(?:\[([^\]]+)\])?(?::([\w-]+))?(\?)?$")


def read_graph(
    text: str,
    *,
    final: int = 2,
    families: Mapping[str, tuple[str, ...]] | None = None,
    runahead: int | None = None,
    limit: int | None = None,
) -> Graph:
    reader = _Reader(families or {})
    lines = [line for line in (line.strip() for line in text.splitlines()) if line]
    arrows = [arrow for line in lines for arrow in reader.arrows(line, final)]
    return Graph(
        final=final,
        arrows=tuple(arrows),
        families=families or {},
        runahead=runahead,
        limit=limit,
        customs={name: tuple(sorted(found)) for name, found in reader.customs.items()},
    )


class _Reader:
    def __init__(self, families: Mapping[str, tuple[str, ...]]) -> None:
        self._families = families
        self.customs: dict[str, set[str]] = {}
        self._tokens: list[str] = []

    def arrows(self, line: str, final: int) -> list[Arrow]:
        recurrence, _, rest = (part.strip() for part in line.partition(" = "))
        *left, right = (part.strip() for part in rest.split("=>"))
        points = points_of(recurrence, final)
        found = []
        condition: Condition | None = None
        for number, part in enumerate(left):
            if number:
                found.append(self._arrow(recurrence, points, condition, part))
            self._tokens = _TOKEN.findall(part)
            condition = self._some()
        found += [
            self._arrow(recurrence, points, condition, one.strip()) for one in right.split("&")
        ]
        return found

    def _arrow(
        self, recurrence: str, points: frozenset[int], condition: Condition | None, right: str
    ) -> Arrow:
        name = right.removeprefix("!")
        targets = self._families.get(name, (name,))
        return Arrow(recurrence, points, condition, targets, right, right.startswith("!"))

    def _some(self) -> Condition:
        terms = [self._every()]
        while self._tokens and self._tokens[0] == "|":
            self._tokens.pop(0)
            terms.append(self._every())
        return terms[0] if len(terms) == 1 else Some(tuple(terms))

    def _every(self) -> Condition:
        terms = [self._one()]
        while self._tokens and self._tokens[0] == "&":
            self._tokens.pop(0)
            terms.append(self._one())
        return terms[0] if len(terms) == 1 else Every(tuple(terms))

    def _one(self) -> Condition:
        token = self._tokens.pop(0)
        if token == "(":
            found = self._some()
            assert self._tokens.pop(0) == ")"
            return found
        return self._leaf(token)

    def _leaf(self, text: str) -> Leaf:
        match = _NODE.match(text)
        assert match, text
        name, place, output, mark = match.groups(default="")
        offset, absolute = 0, None
        if place == "^":
            absolute = 1
        elif place.isdigit():
            absolute = int(place)
        elif place:
            offset = int(place.replace("P", ""))
        every = not output.endswith("-any")
        output = output.removesuffix("-all").removesuffix("-any")
        if output not in OUTPUTS:
            self.customs.setdefault(name, set()).add(output)
        names = self._families.get(name, (name,))
        outputs = OUTPUTS.get(output, (output,))
        return Leaf(names, outputs, offset, absolute, every, bool(mark), text)
