"""Charts of docs/performance.md: every figure is read from its tables, none is written here."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from drawing import Picture

PAGE = Path(__file__).with_name("performance.md")
BAR = 16


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: a name, its figure, the figure as the page writes it."""

    name: str
    value: float
    shown: str
    ours: bool


def figure(text: str) -> float:
    """The first number of a cell, without its thousands' commas."""
    found = re.search(r"\d[\d,]*\.?\d*", text)
    assert found, f"{text!r} has no figure"
    return float(found[0].replace(",", ""))


class GoalRow(NamedTuple):
    """One row of the page's table, as `python -m bench` writes it."""

    goal: str
    what: str
    wanted: str
    measured: str
    again: str
    verdict: str


def rows_of_goals() -> dict[str, GoalRow]:
    """The rows of the table, by what was measured."""
    table = PAGE.read_text(encoding="utf-8").partition("<!-- bench:goals begin -->")[2]
    rows = [
        GoalRow(*(cell.strip() for cell in line.strip("|").split("|")))
        for line in table.splitlines()
        if line.startswith("| P")
    ]
    return {row.what: row for row in rows}


Groups = Sequence[tuple[str, Sequence[Bar]]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a figure lies between 0 and 1, and the figures at which lines are drawn."""

    marks: tuple[float, ...]
    powers: bool

    def place(self, value: float) -> float:
        if self.powers:
            low, high = math.log10(self.marks[0]), math.log10(self.marks[-1])
            return (math.log10(value) - low) / (high - low)
        return value / self.marks[-1]


def powers_of_ten(groups: Groups) -> Scale:
    values = [bar.value for _, group in groups for bar in group]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(tuple(10.0**power for power in range(low, high + 1)), powers=True)


def from_zero(groups: Groups) -> Scale:
    largest = max(bar.value for _, group in groups for bar in group)
    step = 10.0 ** math.floor(math.log10(largest))
    return Scale(tuple(step * n for n in range(math.ceil(largest / step) + 1)), powers=False)


def bars(title: str, groups: Groups, note: str, scale: Scale, left: int = 190) -> Picture:
    """Groups of bars, one below the other."""
    right, top = left + 430, 50
    height = top + sum(26 + len(group) * (BAR + 6) + 8 for _, group in groups) + 44
    picture = Picture(left + 550, height)
    picture.text(10, 24, title, size=15, anchor="start", bold=True)
    bottom = height - 40
    for mark in scale.marks:
        x = left + (right - left) * scale.place(mark)
        picture.line(x, top - 6, x, bottom, arrow=False, look="edge")
        picture.text(x, bottom + 14, f"{mark:,.10g}", size=11, look="soft")
    y = top + 6.0
    for name, group in groups:
        picture.text(10, y + 12, name, anchor="start", bold=True)
        y += 22
        for bar in group:
            length = (right - left) * scale.place(bar.value)
            picture.text(left - 8, y + 12, bar.name, size=12, look="soft", anchor="end")
            picture.box(
                left, y, max(length, 2), BAR, "ours" if bar.ours else "theirs", radius=2
            )
            picture.text(left + length + 6, y + 12, bar.shown, size=12, anchor="start")
            y += BAR + 6
        y += 12
    picture.text(10, height - 8, note, size=11, look="soft", anchor="start")
    return picture


def beside_cylc() -> Picture:
    """What the README shows."""
    groups = []
    for name, what in (
        ("cycling, simulated", "1,000 cycles × 10, relative to Cylc"),
        ("independent jobs", "live jobs, independent, relative to Cylc"),
        ("a chain of jobs", "live jobs, chain, relative to Cylc"),
    ):
        measured = rows_of_goals()[what].measured
        found = re.fullmatch(r"([\d,.]+)× \(([\d,.]+) to ([\d,.]+) tasks/s\)", measured)
        assert found, measured
        ratio, ours, theirs = found.groups()
        groups.append(
            (
                name,
                [
                    Bar("tidewheel", figure(ours), f"{ours}  ({ratio}×)", True),
                    Bar("Cylc 8", figure(theirs), theirs, False),
                ],
            )
        )
    note = "2 cores, both in one run; mind the scale: powers of ten"
    return bars("Tasks per second", groups, note, powers_of_ten(groups))


def goals() -> Picture:
    """How far each goal is: 1 is met, and twice as good is 2."""
    groups: dict[str, list[Bar]] = {}
    for what, row in rows_of_goals().items():
        value, bound = figure(row.measured), figure(row.wanted)
        factor = value / bound if row.wanted.startswith("≥") else bound / max(value, 1e-9)
        factor = min(max(factor, LEAST), MOST)
        shown = f"{row.measured.split(' (')[0]} (wanted {row.wanted})"
        bar = Bar(what.replace("`", ""), factor, shown, ours=row.verdict.startswith("met"))
        if bound:  # none of a thing is no ratio
            groups.setdefault(row.goal, []).append(bar)
    note = "measured ÷ wanted, or the other way round where less is better; 1 is met"
    listed = list(groups.items())
    return bars("How far the goals are", listed, note, powers_of_ten(listed), left=450)


LEAST, MOST = 0.1, 10.0  # beyond that a bar says no more


CHARTS = {"cylc": beside_cylc, "goals": goals}
