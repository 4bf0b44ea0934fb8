"""What is to be done about a project, judged from what is seen of it; pure.

The normal way: parts are created, started when what they need is there, and end well. Any
part that ends badly is the end of the whole; what the engine did to a part while it was away
is nobody's failure.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidewheel.core.queue.steps import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.runners.engine.project import Condition, Part, Phase, Plan
from tidewheel.runners.shell_ends import DESCRIPTION_LENGTH_MAX, SHELL_SIGNAL_BASE
from tidewheel.runners.texts import printable, storable

_SIGNALS = {number.value: number.name for number in signal.Signals}
KILLED = SHELL_SIGNAL_BASE + signal.SIGKILL
ENDED_BY_ENGINE = frozenset({KILLED, SHELL_SIGNAL_BASE + signal.SIGTERM, 255, None})
GIVEN_BACK = End(ending=Ending.YIELDED)

LastLine = Callable[[str], str]  # of a service's log


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing to do; the engine may say why."""

    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Startable:
    """These parts have what they need."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """It has ended, or must end."""

    end: End


Verdict = Waiting | Startable | Over


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that a judgement is made from."""

    parts: Sequence[Part]
    plan: Plan
    stop_grace_seconds: float | None = None  # None: nobody has asked it to end
    engine_was_away: bool = False  # since a part that has ended was last seen running
    started: frozenset[str] = frozenset()  # the ids of parts that the engine was told to start


def judge(seen: Seen, last_line: LastLine) -> Verdict:
    """What follows from what is seen."""
    ended = sorted(
        (part for part in seen.parts if part.phase is Phase.ENDED),
        key=lambda part: part.ended_at,
    )
    bad = [part for part in ended if not part.ended_well]
    if seen.stop_grace_seconds is not None:
        return _judge_stopping(seen, bad, last_line)
    if bad:
        by_engine = seen.engine_was_away and all(map(_may_be_the_engines_doing, bad))
        return Over(GIVEN_BACK if by_engine else failed(bad[0], last_line))
    if missing := _missing(seen):
        return Over(GIVEN_BACK if seen.engine_was_away else _vanished(missing))
    if len(ended) == len(seen.parts):
        return Over(End(ending=Ending.SUCCEEDED, exit_status=0))
    return _judge_going(seen)


def _judge_going(seen: Seen) -> Verdict:
    startable = tuple(part for part in seen.parts if _can_start(part, seen))
    if any(part.id in seen.started for part in startable):
        # The engine died before it wrote down that it runs; a second start would be one.
        return Over(GIVEN_BACK)
    if startable:
        return Startable(startable)
    reasons = {part.error: part.service for part in seen.parts if part.error}
    return Waiting(tuple(f"service {name}: {error}" for error, name in reasons.items()))


def _judge_stopping(seen: Seen, bad: list[Part], last_line: LastLine) -> Verdict:
    if any(part.phase is Phase.RUNNING for part in seen.parts):
        return Waiting()
    killed = [part for part in bad if part.exit_status in (KILLED, None)]
    if killed:
        grace = seen.stop_grace_seconds or 0.0
        words = (
            f"service {killed[0].service}: killed: it did not end within {grace:g} s of SIGTERM"
        )
        return Over(failure("killed", words, service=killed[0].service))
    if bad:
        return Over(failed(bad[0], last_line))
    if _missing(seen) or any(part.phase is not Phase.ENDED for part in seen.parts):
        return Over(failure("stopped", "it was stopped before all of its services had run"))
    return Over(End(ending=Ending.SUCCEEDED, exit_status=0))


def _may_be_the_engines_doing(part: Part) -> bool:
    """An engine that starts again ends what it finds running."""
    return part.exit_status in ENDED_BY_ENGINE and not part.out_of_memory


def _missing(seen: Seen) -> str | None:
    """A service of which less is there than was made."""
    there = Counter(part.service for part in seen.parts)
    expected = seen.plan.parts
    return next((name for name, count in expected.items() if there[name] < count), None)


def _can_start(part: Part, seen: Seen) -> bool:
    if part.phase is not Phase.CREATED:
        return False
    for other, condition in seen.plan.needs.get(part.service, {}).items():
        others = [one for one in seen.parts if one.service == other]
        if not all(_fulfils(one, condition) for one in others):
            return False
    return True


def _fulfils(part: Part, condition: Condition) -> bool:
    match condition:
        case Condition.STARTED:
            return part.phase in (Phase.RUNNING, Phase.ENDED)
        case Condition.HEALTHY:
            return part.is_healthy
        case Condition.DONE:
            return part.ended_well


def failed(part: Part, last_line: LastLine) -> End:
    """The end of a job of which this part ended badly."""
    status, name = part.exit_status, part.service
    said = last_line(name)
    tail = f"; last line of its log: {said}" if said else ""
    if part.out_of_memory:
        words = f"service {name}: killed, since it used more memory than it may have"
        return failure("out_of_memory", f"{words}{tail}", service=name, exit_status=status)
    if status is None or (status == 0 and part.error):
        words = (
            f"service {name}: the engine could not run it: {part.error or 'no reason given'}"
        )
        return failure("engine", f"{words}{tail}", service=name)
    number = status - SHELL_SIGNAL_BASE
    if number in _SIGNALS:
        words = f"service {name}: ended by {_SIGNALS[number]} (exit status {status})"
        if number == signal.SIGKILL:
            words += ", as by a lack of memory or by hand"
        return failure("signal", f"{words}{tail}", service=name, exit_status=status)
    return failure(
        "exit", f"service {name}: exit status {status}{tail}", service=name, exit_status=status
    )


def _vanished(service: str) -> End:
    words = f"service {service}: its container is gone: somebody else has removed it"
    return failure("vanished", words, service=service)


def failure(
    code: str, description: str, *, service: str | None = None, exit_status: int | None = None
) -> End:
    """A failed end, with what a program may want to know of it."""
    facts = {"service": service, "exit_status": exit_status}
    args = {name: value for name, value in facts.items() if value is not None}
    return End(
        ending=Ending.FAILED,
        error=TaskError(
            code=code,
            description=printable(storable(description, DESCRIPTION_LENGTH_MAX)),
            args=json.dumps(args),
        ),
        exit_status=exit_status,
    )
