"""Waiting for what other processes do: by looking, with a deadline, and never without one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS_MAX = 60.0  # less than the time limit of a test, so that it says what was awaited
LOOK_SECONDS = 0.02
ASK_SECONDS = 0.25
SCALE = "TIDEWHEEL_TEST_SCALE"


def eventually(
    look: Callable[[], T],
    what: str,
    seconds_max: float = SECONDS_MAX,
    interval_seconds: float = LOOK_SECONDS,
) -> T:
    """The first answer that is true; the test fails if none came in time."""
    end_at = time.monotonic() + seconds_max
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > end_at:
            raise AssertionError(
                f"{what}: not within {seconds_max:g} s; last seen was {answer!r}"
            )
        time.sleep(interval_seconds)


def eventually_told(look: Callable[[], T], what: str, seconds_max: float = SECONDS_MAX) -> T:
    """The same where each look starts a program: many of them would starve what is awaited."""
    return eventually(look, what, seconds_max, ASK_SECONDS)


def pace(seconds: float) -> None:
    """Let a fault last, or the next one wait; nothing is expected to happen meanwhile."""
    time.sleep(seconds)


def scaled(count: int) -> int:
    """How many of something to try; `make campaign` asks for many times more."""
    return max(1, round(count * float(os.environ.get(SCALE, "1"))))
