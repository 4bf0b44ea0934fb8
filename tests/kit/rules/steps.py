"""Each row of history: legal, next in its task's life, and caused by somebody entitled to it.

T1 legal steps · T2 one end · T3 attempts without gap · T4 only the owner reports ·
T7 a lease ends by its owner or after its deadline · T8 bounded retries and lapses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

from tests.kit.rules.facts import (
    LEASED,
    LEGAL_STEPS,
    Call,
    Disturbances,
    Facts,
    TaskFacts,
    demand,
)
from tidewheel.core.operator.requests import RunBatch
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import ClaimRequest, Report, TaskFilter
from tidewheel.core.queue.retry import Exponential, FixedDelays, RetryPolicy
from tidewheel.core.queue.task import WorkerId

ENDINGS = {
    "succeed": "succeeded",
    "retry": "failed",
    "fail": "failed",
    "abort": "aborted",
    "yield": "yielded",
}
FAILURES = frozenset({"retry", "fail", "abort"})
SLOW_CLOCK = 0.99  # monitors measure by their own clocks
TAKE_BACK = "take_back_lapsed_leases"


class Step(NamedTuple):
    """A row of history as the memory store keeps it."""

    seq: int
    number: int
    at: float
    signal: str | None
    from_status: str | None
    to_status: str
    attempt: int
    worker: str | None
    progress: float

    def __str__(self) -> str:
        return (
            f"#{self.seq} {self.from_status} -{self.signal}-> {self.to_status} "
            f"attempt {self.attempt} by {self.worker}"
        )


class Surroundings(NamedTuple):
    """What else bears on whether a step is right."""

    everything: Facts
    gone: Callable[[str], bool]  # whether a worker's process is dead
    disturbed_until: Callable[[str], float]  # by worker
    disturbances: Disturbances


def check_step(facts: TaskFacts, step: Step, call: Call, around: Surroundings) -> None:
    """Whether this step may follow what is known."""
    demand(
        step.from_status == facts.status,
        "T1 history without a jump",
        f"{step} after {facts.status}",
    )
    demand(not facts.final, "T2 nothing follows an end", f"{step} after {facts.status}")
    edge = (step.from_status, step.signal, step.to_status)
    demand(edge in LEGAL_STEPS, "T1 legal steps", str(step))
    expected = facts.attempt + (step.signal == "claim")
    demand(step.attempt == expected, "T3 attempts without gap", f"{step}, {expected} expected")
    demand(0.0 <= step.progress <= 1.0, "T15 progress", f"{step} at {step.progress}")
    assert step.signal is not None
    _CAUSES[step.signal](facts, step, call, around)


def apply_step(facts: TaskFacts, step: Step, due_at: float | None) -> None:
    """Note what the step means; ``due_at`` is the row's, checked by ``check_delay``."""
    assert step.signal is not None
    facts.signals.append(step.signal)
    if facts.leased and step.to_status not in LEASED:
        facts.ended_by[facts.attempt] = step.signal
        facts.granted_last[facts.attempt] = facts.granted_until - facts.lease_seconds
    facts.status, facts.attempt = step.to_status, step.attempt
    facts.failures += step.signal in FAILURES
    facts.lapses += step.signal in ("lapse", "lapse_out")
    match step.to_status:
        case "ready":
            facts.owner, facts.ready_at = None, step.at
            if step.signal == "retry":
                check_delay(facts, step, due_at)
                facts.due_at = due_at
        case "running" | "cancelling":
            facts.owner = step.worker
        case _:
            facts.ended_at = step.at


def check_delay(facts: TaskFacts, step: Step, due_at: float | None) -> None:
    """A retry waits as long as its policy says."""
    shortest, longest = delay_bounds(facts.asked.retry, facts.failures)
    waits = 0.0 if due_at is None else due_at - step.at
    close = shortest - 1e-5 <= waits <= longest + 1e-5
    demand(close, "T6 not before its time", f"{step} waits {waits}, policy {facts.asked.retry}")


def delay_bounds(policy: RetryPolicy, failures: int) -> tuple[float, float]:
    """Between which delays chance may choose after so many failures."""
    match policy:
        case FixedDelays(seconds=seconds):
            delay = seconds[-1] if failures > len(seconds) else seconds[failures - 1]
            return delay, delay
        case Exponential():
            delay = policy.first_seconds
            for _ in range(failures - 1):
                delay = min(delay * policy.factor, policy.seconds_max)
            delay = min(delay, policy.seconds_max)
            return delay * (1.0 - policy.jitter), delay


Cause = Callable[[TaskFacts, Step, Call, Surroundings], None]


def _claimed(facts: TaskFacts, step: Step, call: Call, around: Surroundings) -> None:
    if call.operation == "claim":
        request = cast("ClaimRequest", call.args[0])
        worker, lease_seconds = request.worker, request.lease_seconds
    else:
        demand(call.operation == "claim_by_id", "T6 only a claim starts", f"{step} by {call}")
        worker = cast("WorkerId", call.args[1])
        lease_seconds = cast("float | None", call.kwargs.get("lease_seconds"))
    demand(step.worker == worker, "T4 the claimer owns", f"{step}, asked by {worker}")
    facts.due_at = None
    facts.claimed_at, facts.messages, facts.progress = step.at, 0, 0.0
    facts.started_at = None
    facts.lease_seconds = (
        lease_seconds or around.everything.queue(facts.asked.queue).lease_seconds
    )
    facts.granted_until = step.at + facts.lease_seconds


def _ended(facts: TaskFacts, step: Step, call: Call, _: Surroundings) -> None:
    assert step.signal is not None
    demand(call.operation == "report", "T4 only a report ends", f"{step} by {call.operation}")
    said = [
        report
        for report in cast("Iterable[Report]", call.args[0])
        if report.holder.task_id == facts.id
        and report.end is not None
        and facts.held_by(report.holder.worker, report.holder.attempt)
    ]
    demand(said, "T4 only the owner of the attempt reports", f"{step}; held by {facts.owner}")
    ending = said[0].end.ending.value if said[0].end else ""
    demand(ENDINGS[step.signal] == ending, "T16 ends as reported", f"{step}, said {ending}")
    if ending == "failed":
        retry = facts.failures < facts.asked.max_retries
        demand(
            retry == (step.signal == "retry"),
            "T8 retries as asked",
            f"{step} after {facts.failures} failures of {facts.asked.max_retries} retries",
        )


def _lapsed(facts: TaskFacts, step: Step, call: Call, around: Surroundings) -> None:
    demand(call.operation == TAKE_BACK, "T7 only a monitor lapses", f"{step} by {call}")
    over = step.at > facts.granted_until
    demand(over, "T7 no lapse before the deadline", f"{step} at {step.at} < {_lease(facts)}")
    watched = cast("float", call.kwargs["watched_seconds"])
    demand(
        facts.lease_seconds <= watched,
        "T7 a full lease after an outage",
        f"{step}, {watched} s",
    )
    last = facts.lapses + 1 > facts.asked.max_lapses
    demand(
        last == (step.signal == "lapse_out"),
        "T8 lapses are capped",
        f"{step} after {facts.lapses} of {facts.asked.max_lapses}",
    )
    demand(not facts.ran_too_long(step.at), "T7 the time limit comes first", str(step))
    _check_reason(facts, step, call, around)


def _check_reason(facts: TaskFacts, step: Step, call: Call, around: Surroundings) -> None:
    """A lapse needs a reason; that the store was down is none, until it is up for a lease."""
    assert facts.owner is not None
    granted_at = facts.granted_until - facts.lease_seconds
    disturbed = around.disturbed_until(facts.owner) >= granted_at
    demand(
        disturbed or around.gone(facts.owner),
        "scenario 3: a lapse has its reason",
        f"{step}; nothing happened to {facts.owner} since {granted_at}",
    )
    watched = step.at - around.disturbances.outage_until
    demand(
        watched >= facts.lease_seconds * SLOW_CLOCK
        or call.process in around.disturbances.jumped,
        "T7 a full lease after an outage",
        f"{step}, {watched:.3f} s after it, by {call.process}",
    )


def _timed_out(facts: TaskFacts, step: Step, call: Call, _: Surroundings) -> None:
    demand(call.operation == TAKE_BACK, "T7 only a monitor times out", f"{step} by {call}")
    demand(
        facts.ran_too_long(step.at),
        "T7 no end before the time limit",
        f"{step} claimed at {facts.claimed_at}, started at {facts.started_at}, "
        f"limit {facts.asked.timeout_seconds}",
    )


def _lease(facts: TaskFacts) -> str:
    return f"{facts.granted_until} (claimed {facts.claimed_at}, {facts.lease_seconds} s)"


def _adopted(facts: TaskFacts, step: Step, call: Call, around: Surroundings) -> None:
    demand(call.operation == "adopt", "T4 only adoption adopts", f"{step} by {call}")
    holder, worker = cast("Holder", call.args[0]), cast("str", call.args[1])
    held = facts.held_by(holder.worker, holder.attempt)
    demand(held, "T4 adopt what is held", f"{step} of {holder}")
    demand(step.worker == worker, "T4 the adopter owns", f"{step}, asked by {worker}")
    assert facts.owner is not None
    demand(
        around.gone(facts.owner), "T4 only the dead are inherited", f"{step} from {facts.owner}"
    )
    facts.granted_until = step.at + facts.lease_seconds


def _satisfied(facts: TaskFacts, step: Step, _: Call, __: Surroundings) -> None:
    demand(facts.asked.executes, "T10 nothing to execute is never ready", str(step))


def _skipped(facts: TaskFacts, step: Step, _: Call, __: Surroundings) -> None:
    demand(not facts.asked.executes, "T6 what can be executed is not skipped", str(step))


def _cancelled(_: TaskFacts, __: Step, ___: Call, ____: Surroundings) -> None:
    """Who may cancel depends on edges, which are judged once the commit is known whole."""


def cancels(call: Call, facts: TaskFacts) -> bool:
    """Whether a client asked for the end of this very task."""
    if call.operation == "cancel":
        return facts.id in cast("Iterable[str]", call.args[0])
    if call.operation == "write_batch":
        return facts.id in cast("RunBatch", call.args[1]).cancellations
    if call.operation == "cancel_matching":
        which = cast("TaskFilter", call.args[0])
        return which.tag in (None, facts.asked.tag) and which.queue in (None, facts.asked.queue)
    return False


_CAUSES: dict[str, Cause] = {
    "claim": _claimed,
    **dict.fromkeys(ENDINGS, _ended),
    "lapse": _lapsed,
    "lapse_out": _lapsed,
    "time_out": _timed_out,
    "adopt": _adopted,
    "satisfy": _satisfied,
    "skip": _skipped,
    "cancel": _cancelled,
}
