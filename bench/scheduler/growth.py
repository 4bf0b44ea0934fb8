"""P7: what a task costs when there are many, and how long a large pool takes to come back."""

from __future__ import annotations

import shutil

from bench.scheduler import shapes
from bench.scheduler.bounded import Failed
from bench.scheduler.measuring import Bench, measured_or_listed, say
from bench.scheduler.report import Section
from bench.scheduler.shapes import Shape
from bench.scheduler.tidewheel_side import SIMULATED, Figures

POOL_POINTS = 100  # no more are released, whatever the runahead limit


def growth(bench: Bench) -> Section:
    section = Section(
        title="P7: growth, simulated, durable",
        header=(
            "work",
            "runahead",
            "tasks",
            "CPU ms per task",
            "to the first",
            "peak memory MB",
        ),
    )
    sizes = bench.sizes
    wide = [
        shapes.cycles(max(1, sizes.growth_tasks // width), width=width)
        for width in sizes.widths
    ]
    far = [shapes.cycles(sizes.cycles, runahead=limit) for limit in sizes.runaheads]
    _compare(bench, section, wide, "growth width")
    _compare(bench, section, far, "growth runahead")
    return section


def _compare(bench: Bench, section: Section, works: list[Shape], goal: str) -> None:
    costs: list[float] = []
    for shape in works:
        with measured_or_listed(section, f"{shape.name}, runahead P{shape.runahead}"):
            # Processor time: the lowest is what the work costs, the rest is the machine's.
            rounds = range(bench.sizes.rounds)
            found = [bench.tidewheel.run(shape, *SIMULATED) for _ in rounds]
            best = min(found, key=lambda one: one.cpu_seconds)
            costs.append(best.cpu_ms)
            section.rows.append(_row(shape, best, best.cpu_ms / costs[0]))
    if len(costs) == len(works):
        section.judge(goal, max(costs) / costs[0])


def _row(shape: Shape, found: Figures, ratio: float) -> list[str]:
    return [
        shape.name,
        f"P{shape.runahead}",
        f"{shape.size:,}",
        f"{found.cpu_ms:.3f}",
        f"{ratio:.2f}",
        f"{found.peak_megabytes:.0f}",
    ]


def restart(bench: Bench) -> Section:
    section = Section(
        title="P7: a large pool comes back",
        header=("what", "tasks in the pool", "seconds", "CPU seconds"),
    )
    width = bench.sizes.pool // POOL_POINTS
    shape = shapes.parentless(POOL_POINTS, width, runahead=POOL_POINTS, queue_limit=0)
    flow = bench.tidewheel.write_flow(shape, length="PT10H")
    home = bench.folder / "restart-home"
    shutil.rmtree(home, ignore_errors=True)
    seconds = 0.0
    for what, words in (("fill", "begun and written"), ("resume", "taken over and rebuilt")):
        say(f"{words} …")
        tasks, seconds, used = bench.child("restart", what, flow, home)
        if tasks != shape.size:
            raise Failed(f"the pool has {tasks} tasks instead of {shape.size}")
        section.rows.append([words, f"{tasks:,}", f"{seconds:.2f}", f"{used:.2f}"])
    shutil.rmtree(home, ignore_errors=True)
    section.judge("restart", seconds)
    return section
