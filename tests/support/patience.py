"""Waiting for what other processes do: by looking, with a deadline, and never without one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Nobody promised a time; this one tells what will never come from what is slow, on a quiet
# machine. Where others use the cores, too, everything takes as many times longer.
SECONDS_MAX = 60.0
BUSY_MAX = 10.0  # times; whoever is busier than that cannot tell
# For who decides at the beginning how long to wait: others may come meanwhile.
BUSY_MIN = 2.0
LOOK_SECONDS = 0.02
ASK_SECONDS = 0.25
SCALE = "TIDEWHEEL_TEST_SCALE"


def eventually(
    look: Callable[[], T],
    what: str | Callable[[], str],
    seconds_max: float = SECONDS_MAX,
    interval_seconds: float = LOOK_SECONDS,
) -> T:
    """The first answer that is true; the test fails if none came in time.

    ``what`` may be asked for when it is too late, and can then tell what was there instead.
    """
    begun_at, seconds = time.monotonic(), seconds_max
    while True:
        answer = look()
        if answer:
            return answer
        waited = time.monotonic() - begun_at
        if waited > seconds:
            seconds = max(seconds, seconds_max * busy())
        if waited > seconds:
            late = what() if callable(what) else what
            raise AssertionError(f"{late}: not within {waited:.0f} s; last seen was {answer!r}")
        time.sleep(interval_seconds)


def eventually_told(
    look: Callable[[], T], what: str | Callable[[], str], seconds_max: float = SECONDS_MAX
) -> T:
    """The same where each look starts a program: many of them would starve what is awaited."""
    return eventually(look, what, seconds_max, ASK_SECONDS)


def busy() -> float:
    """How many times longer everything takes now than on a quiet machine: load per core."""
    load, _, _ = os.getloadavg()
    return min(max(1.0, load / len(os.sched_getaffinity(0))), BUSY_MAX)


def allowed(seconds: float) -> float:
    """How long to wait for what takes less than that on a quiet machine."""
    return seconds * max(busy(), BUSY_MIN)


def pace(seconds: float) -> None:
    """Let a fault last, or the next one wait; nothing is expected to happen meanwhile."""
    time.sleep(seconds)


def scaled(count: int) -> int:
    """How many of something to try; `make campaign` asks for many times more."""
    return max(1, round(count * float(os.environ.get(SCALE, "1"))))
