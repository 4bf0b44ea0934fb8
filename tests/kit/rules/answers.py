"""What a call must do and answer, worked out from the facts before the store executes it.

T4 reports and heartbeats of the owner alone · T9 a monitor's pass leaves nothing lapsed ·
T11 cancelling · T12 ids and unique keys · messages in order and without gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from tests.kit.rules.claims import expected_claims
from tests.kit.rules.facts import Call, Facts, TaskFacts, demand
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.requests import (
    Beat,
    Cancelled,
    Claimed,
    ClaimRequest,
    JobMessage,
    Report,
    Reported,
    Submitted,
)
from tidewheel.core.queue.task import NewTask, TaskId

StoredMessage = tuple[int, int, int, str, str | None]  # seq, attempt, number, text, output


@dataclass(slots=True)
class Plan:
    """What a call must change, if it commits, and what it must answer."""

    claims: list[int] = field(default_factory=list)
    renewals: list[tuple[TaskFacts, Beat]] = field(default_factory=list)
    messages: list[StoredMessage] = field(default_factory=list)
    starts: dict[int, float] = field(default_factory=dict)  # of jobs, by seq
    check: Callable[[Any], None] | None = None  # of the answer, after the commit
    refused: bool | None = False  # None: cannot be told


Texts = dict[tuple[int, int], list[str]]  # what is stored of each (seq, attempt)


def plan_of(call: Call, everything: Facts, texts: Texts, now: float) -> Plan:
    """The second opinion about one call."""
    plan = Plan(refused=None)
    match call.operation:
        case "claim":
            plan = _plan_claim(cast("ClaimRequest", call.args[0]), everything, now)
        case "heartbeat":
            worker, beats = cast("tuple[str, Sequence[Beat]]", call.args)
            plan = _plan_heartbeat(worker, beats, everything)
        case "report":
            plan = _plan_report(cast("Sequence[Report]", call.args[0]), everything, texts, now)
        case "take_back_lapsed_leases":
            plan = _plan_take_back(call.kwargs, everything, now)
        case "cancel":
            plan = _plan_cancel(cast("Sequence[str]", call.args[0]), everything)
        case "submit":
            plan = _plan_submit(cast("Sequence[NewTask]", call.args[0]), everything)
        case _:
            pass
    return plan


def _plan_claim(request: ClaimRequest, everything: Facts, now: float) -> Plan:
    seqs = expected_claims(request, everything, now)

    def check(answer: list[Claimed]) -> None:
        seen = [claimed.seq for claimed in answer]
        demand(
            seen == seqs,
            "T14 the oldest of the highest priority",
            f"{request.worker} got {seen} of queue {request.queue}, expected {seqs}",
        )
        for claimed in answer:
            facts = everything.tasks[claimed.seq]
            granted = (claimed.attempt, claimed.deadline_at) == (
                facts.attempt,
                facts.granted_until,
            )
            demand(granted, "T5 the lease is as granted", f"{claimed}")

    # A worker that was stopped is told so.
    return Plan(claims=seqs, check=check, refused=None)


def _plan_heartbeat(worker: str, beats: Sequence[Beat], everything: Facts) -> Plan:
    wanted, renewals = [], []
    for beat in beats:
        facts = everything.find(beat.task_id)
        if facts is None or not facts.held_by(worker, beat.attempt):
            wanted.append(LeaseAnswer.LOST)
            continue
        renewals.append((facts, beat))
        wanted.append(LeaseAnswer.CANCEL if facts.status == "cancelling" else LeaseAnswer.GO_ON)

    def check(answers: list[LeaseAnswer]) -> None:
        demand(
            answers == wanted,
            "T4 a heartbeat of the owner alone counts",
            f"{worker} beat for {[(b.task_id, b.attempt) for b in beats]}: "
            f"{[a.value for a in answers]}, expected {[a.value for a in wanted]}",
        )

    return Plan(renewals=renewals, check=check)


def _plan_report(
    reports: Sequence[Report], everything: Facts, texts: Texts, now: float
) -> Plan:
    starts: dict[int, float] = {}
    accepted: list[bool] = []
    messages: list[StoredMessage] = []
    counts: dict[int, int] = {}
    over: set[int] = set()
    for report in reports:
        holder = report.holder
        facts = everything.find(holder.task_id)
        good = (
            facts is not None
            and facts.seq not in over
            and facts.held_by(holder.worker, holder.attempt)
        )
        if good:
            assert facts is not None
            known = counts.get(facts.seq, facts.messages)
            fresh = [message for message in report.messages if message.number > known]
            good = [message.number for message in fresh] == list(
                range(known + 1, known + 1 + len(fresh))
            )
            if good:
                _check_repeated(
                    facts, report.messages, texts.get((facts.seq, facts.attempt), [])
                )
                counts[facts.seq] = known + len(fresh)
                messages += [
                    (facts.seq, facts.attempt, m.number, m.text, m.output) for m in fresh
                ]
                if report.started and facts.started_at is None:
                    begun_at = max(facts.claimed_at, now - report.started_seconds_ago)
                    starts.setdefault(facts.seq, begun_at)
                if report.end is not None:
                    over.add(facts.seq)
        accepted.append(good)

    def check(answers: list[Reported]) -> None:
        for report, good, answer in zip(reports, accepted, answers, strict=True):
            demand(
                good == (answer.refused is None),
                "T4 the owner of the attempt alone is heard",
                f"{report}: {answer}",
            )
            facts = everything.find(report.holder.task_id)
            if good and facts is not None and len(reports) == len(counts):
                same = answer.status is not None and answer.status.value == facts.status
                demand(same, "T3 the answer is the status", f"{answer}, {facts.status}")

    return Plan(messages=messages, starts=starts, check=check)


def _check_repeated(facts: TaskFacts, sent: Sequence[JobMessage], stored: list[str]) -> None:
    """A message that is taken for known must be the one that is known."""
    for message in sent:
        if message.number <= len(stored) and stored[message.number - 1] != message.text:
            demand(
                False,
                "P11 no message is taken for another",
                f"{facts.id} attempt {facts.attempt}: message {message.number} is "
                f"{stored[message.number - 1]!r}, now {message.text!r} was sent",
            )


def _plan_take_back(kwargs: dict[str, object], everything: Facts, now: float) -> Plan:
    watched, most = cast("float", kwargs["watched_seconds"]), cast("int", kwargs["count_max"])
    over = [facts.id for facts in everything.leased.values() if _is_over(facts, watched, now)]
    count = min(most, len(over))

    def check(answer: list[tuple[TaskId, Any]]) -> None:
        demand(
            len(answer) == count,
            "T9 every lapsed lease is taken back",
            f"{len(answer)} of {over} were, at most {most}",
        )

    return Plan(check=check)


def _is_over(facts: TaskFacts, watched: float, now: float) -> bool:
    lapsed = now > facts.granted_until and facts.lease_seconds <= watched
    return lapsed or facts.ran_too_long(now)


def _plan_cancel(task_ids: Sequence[str], everything: Facts) -> Plan:
    found = {task_id: everything.find(task_id) for task_id in task_ids}
    changes = {
        task_id: not facts.final and facts.status != "cancelling"
        for task_id, facts in found.items()
        if facts is not None
    }

    def check(answers: list[Cancelled]) -> None:
        for answer in answers:
            facts = everything.find(answer.id)
            assert facts is not None
            ended = facts.final or facts.status == "cancelling"
            demand(
                ended and answer.status.value == facts.status,
                "T11 what was cancelled ends",
                f"{answer}, but {facts.status}",
            )
            demand(
                answer.changed == changes[answer.id],
                "T11 an end is never undone",
                f"{answer}, before it could be cancelled: {changes[answer.id]}",
            )

    return Plan(check=check, refused=None in found.values())


def _plan_submit(tasks: Sequence[NewTask], everything: Facts) -> Plan:
    """Batches are atomic here: the first refusal refuses all."""
    wanted: list[tuple[str, bool]] = []
    new: dict[str, NewTask] = {}
    keys: dict[tuple[str, str], str] = {}
    for task in tasks:
        answer = _submitted(task, everything, new, keys)
        if answer is None:
            return Plan(refused=True)
        if answer[1]:
            new[task.id] = task
        wanted.append(answer)
    refused = any(not _neighbours_known(task, everything, new) for task in new.values())

    def check(answers: list[Submitted]) -> None:
        seen = [(str(answer.id), answer.created) for answer in answers]
        demand(seen == wanted, "T12 one task for one request", f"{seen}, expected {wanted}")

    return Plan(check=check, refused=refused)


def _submitted(
    task: NewTask,
    everything: Facts,
    new: dict[str, NewTask],
    keys: dict[tuple[str, str], str],
) -> tuple[str, bool] | None:
    """The id and whether it is created; None: refused."""
    stored = everything.find(task.id)
    known = new.get(task.id) if stored is None else stored.asked
    if known is not None:
        return (task.id, False) if known == task else None
    if task.unique_key is None:
        return task.id, True
    key = (task.queue, task.unique_key)
    seq = everything.keys.get(key)
    holder = everything.tasks[seq].asked if seq is not None else new.get(keys.get(key, ""))
    if holder is None:
        keys[key] = task.id
        return task.id, True
    return (holder.id, False) if replace(holder, id=task.id) == task else None


def _neighbours_known(task: NewTask, everything: Facts, new: dict[str, NewTask]) -> bool:
    for need in task.needs:
        if need.task_id not in new and everything.find(need.task_id) is None:
            return False
    for child in task.continuations:
        facts = everything.find(child)
        if child not in new and (facts is None or facts.status != "waiting"):
            return False
    return True
