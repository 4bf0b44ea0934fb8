"""Charts of docs/performance.md: every figure is read from its tables, none is written here."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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


def row(*beginning: str) -> list[str]:
    """The cells of the one row of the page whose first cells begin like this."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    fit = [
        cells
        for cells in rows
        if all(cell.startswith(words) for cell, words in zip(cells, beginning, strict=False))
    ]
    assert fit, f"performance.md has no row {beginning}"
    return fit[0]


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


def bars(title: str, groups: Groups, note: str, scale: Scale) -> Picture:
    """Groups of bars, one below the other."""
    left, right, top = 190, 620, 50
    height = top + sum(26 + len(group) * (BAR + 6) + 8 for _, group in groups) + 44
    picture = Picture(740, height)
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
    for name, *beginning in (
        ("cycling, simulated", "P1", "1,000 cycles"),
        ("a chain, simulated", "P2", "chain, simulated"),
        ("fan 1 → 100 → 1", "P3", "fan"),
        ("real jobs, 3 × 10", "P4", "live, 3 × 10"),
        ("real jobs, a chain", "P4", "live, chain"),
    ):
        _, _, ours, theirs, *_ = row(*beginning)
        rate = re.search(r"([\d,]+)(?:–[\d,]+)? (?:tasks|hops)/s", ours)
        other = re.search(r"Cylc ([\d.,]+)", theirs)
        assert rate and other, (ours, theirs)
        ratio = float(f"{figure(rate[1]) / figure(other[1]):.2g}")
        groups.append(
            (
                name,
                [
                    Bar("tidewheel", figure(rate[1]), f"{rate[1]}  ({ratio:,.0f}×)", True),
                    Bar("Cylc 8", figure(other[1]), other[1].rstrip(".,"), False),
                ],
            )
        )
    note = (
        "2 cores, both in one run, a few cycles or tasks of Cylc; mind the scale: powers of ten"
    )
    return bars("Tasks per second", groups, note, powers_of_ten(groups))


def queues() -> Picture:
    """The drain of 50,000 tasks by two workers."""
    names = {
        "PostgreSQL": (
            "tidewheel-postgres",
            "pgqueuer",
            "graphile-worker",
            "raw-rows-postgres",
        ),
        "SQLite": ("tidewheel-sqlite", "huey-sqlite", "raw-rows-sqlite"),
    }
    groups = []
    for store, systems in names.items():
        cells = [(system, row(system)[3]) for system in systems]
        groups.append(
            (
                store,
                [
                    Bar(name, figure(cell), cell.split()[0], name.startswith("tidewheel"))
                    for name, cell in cells
                ],
            )
        )
    return bars(
        "The queue: no-op tasks per second, two workers",
        groups,
        "50,000 tasks; the raw loops write the same rows without a program around them",
        from_zero(groups),
    )


def start_up() -> Picture:
    """One task from start to exit, and a large definition read."""
    _, _, ours, theirs, *_ = row("P5", "one task")
    reading = row("tidewheel", "0.")
    cylc = row("cylc-flow")
    groups = [
        (
            "one task, start to exit",
            [
                Bar("tidewheel run", figure(ours), f"{figure(ours)} s", True),
                Bar("cylc play", figure(theirs), f"{figure(theirs)} s", False),
            ],
        ),
        (
            "5,000 lines read and checked",
            [
                Bar("tidewheel", figure(reading[1]), f"{reading[1]} s", True),
                Bar("cylc-flow, in process", figure(cylc[1]), f"{cylc[1]} s", False),
                Bar("cylc validate", figure(cylc[2]), f"{cylc[2]} s", False),
            ],
        ),
    ]
    return bars("Seconds", groups, "shorter is better", from_zero(groups))


def requests() -> Picture:
    """What one server process answers."""
    groups = []
    for kind in ("GET /healthz", "POST /tasks", "GET /tasks/{id}"):
        bare = row("bare Starlette", kind.split()[0])
        found = [
            (store, row(f"tidewheel, {store}", kind)) for store in ("SQLite", "PostgreSQL")
        ]
        groups.append(
            (
                kind,
                [
                    *(Bar(store, figure(cells[2]), cells[2], True) for store, cells in found),
                    Bar("bare Starlette", figure(bare[2]), bare[2], False),
                ],
            )
        )
    note = "16 connections; the bare routes have no authentication, no limits and no store"
    return bars("Requests per second of one server", groups, note, from_zero(groups))


CHARTS = {"requests": requests, "cylc": beside_cylc, "queues": queues, "start_up": start_up}
