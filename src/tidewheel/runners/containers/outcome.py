"""Decides what is to be done about a project from what is seen of it.

The normal way: parts are created, started when what they need is there, and end well. Any
part that ends badly is the end of the whole. If the engine may have ended a part while it was
away, the task does not fail but goes back. All of it is pure but the search for containers that
ran out of memory.

An engine hears of those from its shims. Their word can come after that of the end, and it never
comes for a container that runs out of memory within milliseconds of its start: its shim does
not listen yet (2 of 40, containerd 1.6, cgroup 1). The kernel's log, where this user may read
it, names the container in any case.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tidewheel.core.queue.requests import End, Ending
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.containers.docker_cli import Cli
from tidewheel.runners.containers.project import Condition, Phase, ProjectPart, ProjectPlan
from tidewheel.runners.outcome import SHELL_SIGNAL_BASE
from tidewheel.runners.outcome import failed as ended_badly
from tidewheel.runners.sanitize import LAST_LINE_OF_LOG, printable

_SIGNALS = {number.value: number.name for number in signal.Signals}
KILLED = SHELL_SIGNAL_BASE + signal.SIGKILL
ENDED_BY_ENGINE = frozenset({KILLED, SHELL_SIGNAL_BASE + signal.SIGTERM, 255, None})
GIVEN_BACK = End(ending=Ending.YIELDED)

LastLine = Callable[[str], str]  # of a service's log


@dataclass(frozen=True, slots=True)
class KeepWaiting:
    """Says that there is nothing to do, and why, where the engine gives a reason."""

    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Startable:
    """Holds the parts that have what they need to start."""

    parts: tuple[ProjectPart, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """Holds the end of a project that has ended, or must end."""

    end: End


Verdict = KeepWaiting | Startable | Over


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSeen:
    """Holds all from which ``judge`` decides what to do about a project."""

    parts: Sequence[ProjectPart]
    plan: ProjectPlan
    stop_grace_seconds: float | None = None  # None: nobody has asked it to end
    engine_was_away: bool = False  # since a part that has ended was last seen running
    started: frozenset[str] = frozenset()  # the ids of parts that the engine was told to start


def judge(seen: ProjectSeen, last_line: LastLine) -> Verdict:
    """Decides from what is seen whether to wait, to start parts, or to end the project."""
    ended = sorted(
        (part for part in seen.parts if part.phase is Phase.ENDED),
        key=lambda part: part.ended_at,
    )
    bad = [part for part in ended if not part.ended_well]
    if seen.stop_grace_seconds is not None:
        return _judge_stopping(seen, bad, last_line)
    if bad:
        # An engine that starts again may have ended them.
        by_engine = seen.engine_was_away and all(
            part.exit_status in ENDED_BY_ENGINE and not part.out_of_memory for part in bad
        )
        return Over(GIVEN_BACK if by_engine else failed(bad[0], last_line))
    if missing := _missing(seen):
        words = f"service {missing}: its container is gone: something else removed it"
        gone = failure("vanished", words, service=missing)
        return Over(GIVEN_BACK if seen.engine_was_away else gone)
    if len(ended) == len(seen.parts):
        return Over(End(ending=Ending.SUCCEEDED, exit_status=0))
    return _judge_going(seen)


def _judge_going(seen: ProjectSeen) -> Verdict:
    startable = tuple(part for part in seen.parts if _can_start(part, seen))
    if any(part.id in seen.started for part in startable):
        # The engine died before it wrote down that it runs; a second start would be one.
        return Over(GIVEN_BACK)
    if startable:
        return Startable(startable)
    if end := _never_starting(seen):
        return Over(end)
    reasons = {part.error: part.service for part in seen.parts if part.error}
    return KeepWaiting(tuple(f"service {name}: {error}" for error, name in reasons.items()))


_MOVING = frozenset({Phase.RUNNING, Phase.PENDING, Phase.PREPARING})


def _never_starting(seen: ProjectSeen) -> End | None:
    """Returns the end of a project of which a part can never start any more; None if each may.

    No part can start at this moment. One that has ended becomes healthy no more; and if none
    is left that does anything, nothing changes any more.
    """
    waiting = [part for part in seen.parts if part.phase is Phase.CREATED]
    stuck = {part: lost for part in waiting if (lost := _ended_unhealthy(part, seen))}
    if not stuck and (not waiting or any(part.phase in _MOVING for part in seen.parts)):
        return None
    # Of one that was to be started nobody knows whether it was. While the engine was away, what
    # has ended may have been healthy.
    if seen.engine_was_away or any(part.id in seen.started for part in stuck or waiting):
        return GIVEN_BACK
    part = next(iter(stuck or waiting))
    if part in stuck:
        why = f"service {stuck[part]}, which it waits for, has ended and was not seen healthy"
    else:
        why = "what it waits for does not start"
    return failure("start", f"service {part.service} never starts: {why}", service=part.service)


def _ended_unhealthy(part: ProjectPart, seen: ProjectSeen) -> str | None:
    """Returns the service that a part waits to be healthy, and that has ended; None if none."""
    needs = seen.plan.needs.get(part.service, {})
    return next(
        (
            one.service
            for one in seen.parts
            if one.phase is Phase.ENDED and needs.get(one.service) is Condition.HEALTHY
        ),
        None,
    )


def _judge_stopping(seen: ProjectSeen, bad: list[ProjectPart], last_line: LastLine) -> Verdict:
    if any(part.phase in (Phase.RUNNING, Phase.PREPARING) for part in seen.parts):
        return KeepWaiting()
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


def _missing(seen: ProjectSeen) -> str | None:
    """Returns a service of which fewer parts are there than were made; None if all are."""
    there = Counter(part.service for part in seen.parts)
    expected = seen.plan.parts
    return next((name for name, count in expected.items() if there[name] < count), None)


def _can_start(part: ProjectPart, seen: ProjectSeen) -> bool:
    needs = seen.plan.needs.get(part.service, {})
    return part.phase is Phase.CREATED and all(
        _fulfils(one, needs[one.service]) for one in seen.parts if one.service in needs
    )


def _fulfils(part: ProjectPart, condition: Condition) -> bool:
    match condition:
        case Condition.STARTED:
            return part.phase in (Phase.RUNNING, Phase.ENDED)
        case Condition.HEALTHY:
            return part.is_healthy
        case Condition.DONE:
            return part.ended_well


def failed(part: ProjectPart, last_line: LastLine) -> End:
    """Returns the end of a job of which this part ended badly."""
    status, name = part.exit_status, part.service
    said = last_line(name)
    tail = f"{LAST_LINE_OF_LOG}{said}" if said else ""
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
            words += ", for example because memory ran out or a user killed it"
        return failure("signal", f"{words}{tail}", service=name, exit_status=status)
    return failure(
        "exit", f"service {name}: exit status {status}{tail}", service=name, exit_status=status
    )


def failure(
    code: str, description: str, *, service: str | None = None, exit_status: int | None = None
) -> End:
    """Returns a failed end, with the facts that a program may want to know of it."""
    facts = {"service": service, "exit_status": exit_status}
    known = {name: value for name, value in facts.items() if value is not None}
    return ended_badly(code, printable(description), known, exit_status=exit_status)


LOOKS_MAX = 4
AGAIN_SECONDS = 0.2
KERNEL_LOG = Path("/dev/kmsg")
RECORD_BYTES_MAX = 8192
RECORDS_MAX = 100_000
_MARK = b"oom_memcg="  # whose limit was reached; what follows it names the victim as well


async def out_of_memory(cli: Cli, killed: Sequence[str]) -> set[str]:
    """Returns those containers, all ended by SIGKILL, that are known to have lacked memory."""
    found: set[str] = set()
    unsure = list(killed)
    for look in range(LOOKS_MAX):
        if not unsure:
            break
        if look:
            await asyncio.sleep(AGAIN_SECONDS)
        rows = await _limited(cli, unsure)
        found |= {id_ for id_, lacked_memory in rows if lacked_memory}
        found |= await asyncio.to_thread(_named_by_kernel, [id_ for id_, _ in rows])
        unsure = [id_ for id_, _ in rows if id_ not in found]
    return found


async def _limited(cli: Cli, ids: Sequence[str]) -> list[tuple[str, bool]]:
    """Returns those of the containers that this engine has and whose memory is limited. Each is
    (id, whether the engine says that it lacked memory)."""
    fields = (".Id", ".State.OOMKilled", ".HostConfig.Memory")
    rows = await cli.inspect(("inspect", "--type", "container"), fields, ids)
    return [(id_, lacked_memory) for id_, lacked_memory, limit in rows if limit]


def _named_by_kernel(ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for record in _kernel_records():
        _, _, after = record.partition(_MARK)
        path = after.partition(b",")[0]
        found |= {id_ for id_ in ids if id_.encode() in path}
    return found


def _kernel_records() -> Iterator[bytes]:
    """Yields the latest records of the kernel's log; none, if this user may not read it."""
    try:
        log = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for _ in range(RECORDS_MAX):
            # Overwritten while it was read: the next one is there.
            with suppress(BrokenPipeError):
                yield os.read(log, RECORD_BYTES_MAX)
    except OSError:  # BlockingIOError: that was the last one
        return
    finally:
        os.close(log)
