"""Statistics of attempts say how they ended, how long they waited and ran, what they used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tidewheel.core.queue.status import Signal
from tidewheel.lazy_dataclasses import dataclass

ATTEMPTS_MAX = 10_000  # the newest; older ones say little about tomorrow
# A lease that was given back or lost says nothing about whether the work can be done.
_FAILURES = frozenset(
    {Signal.RETRY, Signal.FAIL, Signal.ABORT, Signal.LAPSE_OUT, Signal.TIME_OUT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAttempt:
    """An attempt that has ended, with the fields that statistics need."""

    queue: str
    name: str | None
    ended_by: Signal
    queue_seconds: float | None  # from the creation to the first claim; None for later ones
    run_seconds: float
    cpu_asked: float
    memory_asked_bytes: int
    memory_used_bytes: int | None  # the peak
    cpu_used_percent: float | None  # the mean, of one core


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Sums up a series: its length, mean, quantiles and largest value."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Figures about a group of attempts; null where nothing is known."""

    attempts: int
    ended_by: dict[str, int]
    success_rate: float | None  # of those that were brought to an end
    queue_seconds: Quantiles | None
    run_seconds: Quantiles | None
    memory_used_bytes: Quantiles | None
    memory_used_of_asked: Quantiles | None  # 1.0: all that was asked for
    cpu_used_percent: Quantiles | None


def statistics(attempts: Sequence[EndedAttempt]) -> Statistics:
    """Returns the figures of all these attempts together."""
    ends = Counter(one.ended_by for one in attempts)
    good = ends[Signal.SUCCEED]
    judged = good + sum(ends[signal] for signal in _FAILURES)
    return Statistics(
        attempts=len(attempts),
        ended_by={signal.value: ends[signal] for signal in Signal if ends[signal]},
        success_rate=good / judged if judged else None,
        queue_seconds=quantiles(one.queue_seconds for one in attempts),
        run_seconds=quantiles(one.run_seconds for one in attempts),
        memory_used_bytes=quantiles(one.memory_used_bytes for one in attempts),
        memory_used_of_asked=quantiles(
            one.memory_used_bytes / one.memory_asked_bytes
            for one in attempts
            if one.memory_used_bytes is not None and one.memory_asked_bytes
        ),
        cpu_used_percent=quantiles(one.cpu_used_percent for one in attempts),
    )


def grouped(
    attempts: Iterable[EndedAttempt], key: Callable[[EndedAttempt], str | None]
) -> dict[str, Statistics]:
    """Returns the statistics of attempts by a key, such as their queue or name.

    Attempts whose key is None are left out.
    """
    groups: dict[str, list[EndedAttempt]] = {}
    for one in attempts:
        if (of := key(one)) is not None:
            groups.setdefault(of, []).append(one)
    return {of: statistics(groups[of]) for of in sorted(groups)}


def quantiles(values: Iterable[float | None]) -> Quantiles | None:
    """Returns the quantiles of the values that are known; None if none is.

    They are found by rank, so that each is a value that was seen.
    """
    seen = sorted(value for value in values if value is not None)
    if not seen:
        return None

    def at(part: float) -> float:
        return seen[min(len(seen) - 1, int(part * len(seen)))]

    return Quantiles(
        count=len(seen),
        mean=sum(seen) / len(seen),
        p50=at(0.5),
        p90=at(0.9),
        p99=at(0.99),
        max=seen[-1],
    )
