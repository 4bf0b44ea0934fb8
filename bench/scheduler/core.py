"""P6: completions per second of the scheduling core in memory."""

from __future__ import annotations

from bench.scheduler import shapes
from bench.scheduler.measuring import Bench
from bench.scheduler.report import Section, count

CHAIN_MAX = 1_000  # nodes; more would measure the reading of the definition


def core(bench: Bench) -> Section:
    section = Section(
        title="P6: the core alone, in memory",
        header=("work", "completions", "per CPU second", "µs each"),
    )
    size = bench.sizes.core
    works = {
        "core chain": shapes.chain(min(size, CHAIN_MAX)),
        "core cycles": shapes.cycles(size // shapes.CYCLE),
        "core parentless": shapes.parentless(size // shapes.CYCLE, shapes.CYCLE, runahead=5),
    }
    for goal, shape in works.items():
        completions, seconds = bench.child("core_rate", bench.tidewheel.write_flow(shape))
        rate = completions / seconds
        section.rows.append([shape.name, f"{completions:,}", count(rate), f"{1e6 / rate:.1f}"])
        section.judge(goal, rate)
    return section
