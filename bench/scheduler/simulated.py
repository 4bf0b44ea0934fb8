"""P1 to P3: runs whose jobs are timers, durable, beside Cylc's simulation mode."""

from __future__ import annotations

from bench.scheduler import cylc_side, shapes
from bench.scheduler.cylc_side import CylcFigures
from bench.scheduler.measuring import Bench, measured_or_listed
from bench.scheduler.report import Section, count, pair, times
from bench.scheduler.shapes import Shape
from bench.scheduler.tidewheel_side import SIMULATED, Figures

HEADER = ("system", "work", "tasks/s", "seconds", "CPU ms per task", "peak memory MB", "ratio")


def cycles(bench: Bench) -> Section:
    section = Section(title="P1: many cycles, simulated, durable", header=HEADER)
    shape = shapes.cycles(bench.sizes.cycles)
    ours = bench.tidewheel.best_of(bench.sizes.rounds, shape, *SIMULATED)
    section.rows.append(_row(shape, ours))
    section.judge("cycles rate", ours.rate)
    section.judge("cycles cpu", ours.cpu_ms_in_all)
    section.judge("cycles memory", ours.peak_megabytes)
    with measured_or_listed(section, "cylc-flow"):
        theirs = _beside_cylc(bench, section, shapes.cycles(bench.sizes.cylc_cycles), ours)
        beside = pair(ours.rate, theirs.rate, "tasks/s")
        section.judge("cycles cylc", ours.rate / theirs.rate, beside)
    return section


def chain(bench: Bench) -> Section:
    section = Section(title="P2: a chain, durable", header=HEADER)
    shape = shapes.chain(bench.sizes.chain)
    ours = bench.tidewheel.best_of(bench.sizes.rounds, shape, *SIMULATED)
    section.rows.append(_row(shape, ours))
    with measured_or_listed(section, "through queue and worker with a no-op handler"):
        through = _through_the_queue(bench, shape)
        ratio = times(ours.rate / through.rate)
        section.rows.append(_row(shape, through, "tidewheel, queue and no-op handler", ratio))
        section.judge("chain handlers", through.rate)
    with measured_or_listed(section, "cylc-flow"):
        _beside_cylc(bench, section, shapes.chain(bench.sizes.cylc_chain), ours)
    return section


def fan(bench: Bench) -> Section:
    section = Section(title="P3: a fan, simulated, durable", header=HEADER)
    shape = shapes.fan(bench.sizes.fan)
    ours = bench.tidewheel.best_of(bench.sizes.rounds, shape, *SIMULATED)
    section.rows.append(_row(shape, ours))
    section.judge("fan seconds", ours.seconds)
    with measured_or_listed(section, "cylc-flow"):
        _beside_cylc(bench, section, shapes.fan(bench.sizes.cylc_fan), ours)
    return section


def _through_the_queue(bench: Bench, shape: Shape) -> Figures:
    flow, home = bench.tidewheel.write_flow(shape), bench.folder / "handler-home"
    found = bench.child("handler_chain", flow, home)
    return Figures(tasks=shape.size, **found)


def _row(shape: Shape, ours: Figures, name: str = "tidewheel", ratio: str = "1") -> list[str]:
    return [
        name,
        shape.name,
        count(ours.rate),
        f"{ours.seconds:.2f}",
        f"{ours.cpu_ms:.3f}",
        f"{ours.peak_megabytes:.0f}",
        ratio,
    ]


def _beside_cylc(bench: Bench, section: Section, shape: Shape, ours: Figures) -> CylcFigures:
    theirs = bench.cylc.run(
        shape, *cylc_side.SIMULATED, seconds_max=bench.sizes.cylc_seconds_max
    )
    work = shape.name if theirs.is_complete else f"{theirs.tasks} tasks of {shape.name}"
    section.rows.append(
        [
            "cylc-flow",
            work,
            count(theirs.rate),
            f"{theirs.seconds:.0f}",
            f"{theirs.cpu_ms:.0f}",
            f"{theirs.peak_megabytes:.0f}",
            times(ours.rate / theirs.rate),
        ]
    )
    return theirs
