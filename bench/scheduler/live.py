"""P4: real jobs with the full contract, beside a bare loop, HyperQueue, Dask and Cylc."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.folders import put_aside
from bench.scheduler import live_peers, shapes
from bench.scheduler.measuring import Bench, measured_or_listed
from bench.scheduler.report import Section, count, pair, times
from bench.scheduler.shapes import Shape

AT_ONCE = 4
SLOTS = ("--slots", str(AT_ONCE))
TIED = ("--tie-jobs",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One of the shapes, and its name in the goals."""

    name: str
    shape: Shape
    at_once: int
    cylc: Shape | None = None


def live(bench: Bench) -> Section:
    section = Section(
        title=f"P4: live, `script = true`, {AT_ONCE} at once",
        header=("system", "work", "tasks/s", "CPU ms per task", "tidewheel ÷ it"),
    )
    sizes = bench.sizes
    independent = shapes.parentless(1, sizes.cylc_live, runahead=5)
    chain = shapes.chain(sizes.cylc_live_chain)
    works = (
        Work(name="cycles", shape=shapes.cycles(sizes.live_cycles), at_once=AT_ONCE),
        Work(name="fan", shape=shapes.fan(sizes.live_fan), at_once=AT_ONCE, cylc=independent),
        Work(name="chain", shape=shapes.chain(sizes.live_chain), at_once=1, cylc=chain),
    )
    for work in works:
        with measured_or_listed(section, work.shape.name):
            _measure(bench, section, work)
    return section


def _measure(bench: Bench, section: Section, work: Work) -> None:
    ours, cpu_ms, bare = 0.0, 0.0, 0.0
    for _ in range(bench.sizes.rounds):  # in turns: a slow minute of the machine hits both
        found = bench.tidewheel.run(work.shape, *SLOTS, keep=True)
        bare = max(bare, _bare_rate(bench, work))
        if found.rate > ours:
            ours, cpu_ms = found.rate, found.cpu_ms
    name = work.shape.name
    section.rows.append(["tidewheel", name, count(ours), f"{cpu_ms:.2f}", "1"])
    section.rows.append(["bare loop, same jobs", name, count(bare), "", f"{ours / bare:.2f}"])
    section.judge(f"live bare {work.name}", ours / bare, pair(ours, bare, "tasks/s"))
    if work.name == "fan":
        section.judge("live cpu", cpu_ms)
    _beside_peers(bench, section, work, ours)
    tied = bench.tidewheel.run(work.shape, *SLOTS, *TIED)
    row = ["tidewheel --tie-jobs", name, count(tied.rate), f"{tied.cpu_ms:.2f}"]
    section.rows.append([*row, f"{ours / tied.rate:.2f}"])
    if work.cylc is not None:
        with measured_or_listed(section, f"cylc-flow, {work.cylc.name}"):
            _beside_cylc(bench, section, work.cylc, ours, f"live cylc {work.name}")


def _run_folder(bench: Bench) -> Path:
    return bench.tidewheel.home / "runs" / "flow" / "run1"


def _bare_rate(bench: Bench, work: Work) -> float:
    """Of the jobs that tidewheel has just run."""
    where = bench.folder / "bare"
    seconds = bench.child("bare_loop", _run_folder(bench), where, work.at_once)
    put_aside(where)
    return work.shape.size / float(seconds)


def _beside_peers(bench: Bench, section: Section, work: Work, ours: float) -> None:
    shape, folder, at_once = work.shape, bench.folder, work.at_once
    for name in live_peers.DISTRIBUTIONS:

        def of_jobs(name: str = name) -> float:
            return live_peers.rate_of_jobs(name, shape, _run_folder(bench), folder, at_once)

        def of_true(name: str = name) -> float:
            return live_peers.rate_of_true(name, shape, folder, at_once)

        for what, measure in (("same jobs", of_jobs), ("`true` alone", of_true)):
            with measured_or_listed(section, f"{name}, {what}, {shape.name}"):
                bench.versions[name] = live_peers.peer_version(name)
                theirs = _beside(section, f"{name}, {what}", shape, ours, measure)
                if measure is of_jobs:
                    beside = pair(ours, theirs, "tasks/s")
                    section.judge(f"live {name} {work.name}", ours / theirs, beside)


def _beside(
    section: Section, name: str, shape: Shape, ours: float, measure: Callable[[], float]
) -> float:
    theirs = measure()
    section.rows.append([name, shape.name, count(theirs), "", times(ours / theirs)])
    return theirs


def _beside_cylc(bench: Bench, section: Section, shape: Shape, ours: float, goal: str) -> None:
    theirs = bench.cylc.run(shape, seconds_max=bench.sizes.cylc_seconds_max)
    ratio = ours / theirs.rate
    row = ["cylc-flow", shape.name, count(theirs.rate), f"{theirs.cpu_ms:.0f}", times(ratio)]
    section.rows.append(row)
    section.judge(goal, ratio, pair(ours, theirs.rate, "tasks/s"))
