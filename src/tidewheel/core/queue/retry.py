"""A retry policy says how long to wait before a failed task is tried again."""

from __future__ import annotations

from typing import assert_never

from tidewheel.lazy_dataclasses import dataclass

DELAY_SECONDS_MAX = 365 * 86_400.0
DELAYS_COUNT_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelays:
    """Lets the n-th retry wait for the n-th delay, and every later one for the last."""

    seconds: tuple[float, ...] = (0.0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Lets each retry wait ``factor`` times longer, up to a bound, spread by jitter.

    Jitter is the share of the delay that is left to chance, so that a thousand tasks that
    failed together do not come back together.
    """

    first_seconds: float = 1.0
    factor: float = 2.0
    seconds_max: float = 3600.0
    jitter: float = 0.5


RetryPolicy = FixedDelays | Exponential
NO_DELAY = FixedDelays()


def delay_before_retry(policy: RetryPolicy, failures: int, chance: float) -> float:
    """Returns the seconds to wait after the ``failures``-th failure.

    `chance` is random in [0, 1), which decides the jitter.
    """
    assert failures >= 1 and 0.0 <= chance < 1.0
    match policy:
        case FixedDelays(seconds=seconds):
            return seconds[min(failures, len(seconds)) - 1]
        case Exponential():
            # The exponent is bounded so that a task with thousands of failures cannot overflow.
            grown = policy.first_seconds * policy.factor ** min(failures - 1, 64)
            delay = min(grown, policy.seconds_max)
            return delay * (1.0 - policy.jitter * chance)
        case _:
            assert_never(policy)


def retry_findings(policy: RetryPolicy) -> list[str]:
    """Returns what is wrong with a retry policy, in words."""
    match policy:
        case FixedDelays(seconds=seconds):
            if not 1 <= len(seconds) <= DELAYS_COUNT_MAX:
                return [f"retry has {len(seconds)} delays; expected 1 to {DELAYS_COUNT_MAX}"]
            return [
                f"retry delay is {delay!r}; expected 0 to {DELAY_SECONDS_MAX:.0f} seconds"
                for delay in seconds
                if not 0.0 <= delay <= DELAY_SECONDS_MAX
            ]
        case Exponential():
            return _exponential_findings(policy)
        case _:
            assert_never(policy)


def _exponential_findings(policy: Exponential) -> list[str]:
    bounds = (
        ("first_seconds", policy.first_seconds, 0.0, DELAY_SECONDS_MAX),
        ("factor", policy.factor, 1.0, 100.0),
        ("seconds_max", policy.seconds_max, 0.0, DELAY_SECONDS_MAX),
        ("jitter", policy.jitter, 0.0, 1.0),
    )
    return [
        f"retry {name} is {value!r}; expected {low:g} to {high:g}"
        for name, value, low, high in bounds
        if not low <= value <= high
    ]
