"""The figures as tables: absolute ones, and our ratios to each peer on the same store."""

from __future__ import annotations

from collections.abc import Mapping

from bench import markdown
from bench.goals import judged
from bench.machine import facts_text
from bench.queue.figures import DRAIN_1, DRAIN_2, ENQUEUE, Figures
from bench.queue.goals import verdicts
from bench.queue.roster import Entry

NOTHING = "–"
HEADER = (
    "system",
    "store",
    "tasks",
    "enqueue/s",
    "drain/s, 1 worker",
    "2 workers",
    "wake-up p50 / p99 ms",
)
RATIO_HEADER = (
    "tidewheel ÷",
    "store",
    "enqueue",
    "drain, 1 worker",
    "2 workers",
    "wake-up p50",
)
Results = Mapping[Entry, Figures]


def render(results: Results, versions: Mapping[Entry, str], facts: Mapping[str, str]) -> str:
    """The whole report as Markdown."""
    parts = [
        facts_text(facts),
        markdown.table(HEADER, [_absolute(entry, one) for entry, one in results.items()]),
        _ratio_part(results),
        judged(verdicts({entry.name: one for entry, one in results.items()})),
        _list("How each is used", [_usage(entry, versions) for entry in results]),
        _list("Not measured", _failures(results)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _absolute(entry: Entry, one: Figures) -> list[str]:
    return [
        entry.name,
        entry.store,
        f"{one.tasks:,}" if one.tasks else NOTHING,
        *(_count(one.rate(phase)) for phase in (ENQUEUE, DRAIN_1, DRAIN_2)),
        f"{_ms(one.wakeup_ms(50))} / {_ms(one.wakeup_ms(99))}",
    ]


def _ratio_part(results: Results) -> str:
    ours = {entry.store: one for entry, one in results.items() if entry.role == "ours"}
    rows = [
        _ratios(entry, ours[entry.store], one)
        for entry, one in results.items()
        if entry.role != "ours" and entry.store in ours and ours[entry.store].rates
    ]
    if not rows:
        return ""
    note = "Rates: above 1 we are faster. Wake-up: below 1 we are sooner."
    return f"{markdown.table(RATIO_HEADER, rows)}\n\n{note}"


def _ratios(entry: Entry, ours: Figures, theirs: Figures) -> list[str]:
    rates = ((ours.rate(phase), theirs.rate(phase)) for phase in (ENQUEUE, DRAIN_1, DRAIN_2))
    wakeup = _ratio(ours.wakeup_ms(50), theirs.wakeup_ms(50))
    return [entry.name, entry.store, *(_ratio(a, b) for a, b in rates), wakeup]


def _usage(entry: Entry, versions: Mapping[Entry, str]) -> str:
    return f"{entry.name} ({entry.distribution} {versions[entry]}): {entry.setup}"


def _failures(results: Results) -> list[str]:
    lines = []
    for entry, one in results.items():
        for reason in dict.fromkeys(one.failures.values()):
            phases = [phase for phase, why in one.failures.items() if why == reason]
            lines.append(f"{entry.name} ({', '.join(phases)}): {reason}")
    return lines


def _list(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", "", *(f"- {line}" for line in lines)]) if lines else ""


def _count(rate: float | None) -> str:
    return NOTHING if rate is None else f"{rate:,.0f}"


def _ms(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _ratio(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if ours and theirs else NOTHING
