"""How a drain and a wake-up are timed; the same code for every system."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial

from bench.queue.crew import Crew, WorkerCommand
from bench.queue.peer import PeerFailed

DRAIN_LOOK_SECONDS = 0.005
DURABLE_LOOK_SECONDS = 0.001
WAKEUP_LOOK_SECONDS = 0.0002
WARM_UP_SUBMISSIONS = 5
# Between two samples the worker falls idle; the length varies so that no polling loop of a
# system can stay in step with us.
IDLE_SECONDS = (0.03, 0.08)

Unfinished = Callable[[], bool]  # whether the store still holds a task that is not done
Submit = Callable[[], float]  # submit one task; the answer is when the call began


def time_drain(
    command: WorkerCommand, workers: int, expected: int, unfinished: Unfinished
) -> float:
    """Seconds from the first handler's start until the store has nothing unfinished.

    The store is asked only after the last handler was called, so asking disturbs nobody.
    """
    with Crew(command, workers) as crew:
        crew.go()
        crew.wait_until(partial(_has_reached, crew, expected), DRAIN_LOOK_SECONDS)
        crew.wait_until(lambda: not unfinished(), DURABLE_LOOK_SECONDS)
        ended_at = time.monotonic()
        calls, began_at = crew.board.calls(), crew.board.first_start()
    if calls != expected:
        raise PeerFailed(f"{calls} handler calls for {expected} tasks")
    return ended_at - began_at


def time_wakeups(command: WorkerCommand, submit: Submit, samples: int) -> list[float]:
    """Seconds from the submit call to the handler's start, one idle worker, one task a time."""
    idle = random.Random(samples)
    seconds = []
    with Crew(command, 1) as crew:
        crew.go()
        for _ in range(WARM_UP_SUBMISSIONS + samples):
            time.sleep(idle.uniform(*IDLE_SECONDS))
            expected = crew.board.calls() + 1
            asked_at = submit()
            crew.wait_until(partial(_has_reached, crew, expected), WAKEUP_LOOK_SECONDS)
            seconds.append(crew.board.last_start() - asked_at)
    return seconds[WARM_UP_SUBMISSIONS:]


async def time_wakeups_in_loop(
    submit: Callable[[], Awaitable[float]], start: Callable[[], Awaitable[float]], samples: int
) -> list[float]:
    """The same in one process: ``start`` waits for the handler and answers when it began."""
    idle = random.Random(samples)
    seconds = []
    for _ in range(WARM_UP_SUBMISSIONS + samples):
        await asyncio.sleep(idle.uniform(*IDLE_SECONDS))
        asked_at = await submit()
        seconds.append(await start() - asked_at)
    return seconds[WARM_UP_SUBMISSIONS:]


class Stopwatch:
    """Seconds spent inside ``with``."""

    seconds = 0.0

    def __enter__(self) -> Stopwatch:
        self._began_at = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._began_at


def _has_reached(crew: Crew, calls: int) -> bool:
    return crew.board.calls() >= calls
