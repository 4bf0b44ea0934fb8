"""Turns what attempts say into batches of reports that the store has accepted.

Theory of operation
-------------------
Jobs speak from any thread into one queue, in order. The reporter takes all there is, makes
one report of each attempt, and sends them in one transaction. While that is under way, news
gather for the next: an idle worker reports without delay, a busy one commits once for many.
One batch is in the air at a time, and it is sent again, unchanged, until the store answers.
The batch of a worker that is full brings the next tasks back (the claimer's standing claim).
A start of which nothing else is known is held back for 30 ms: a short job has ended by then,
and one report, with the time of the start, tells of both.
So messages keep their order and numbers, and an end goes out with or after all that was
said before it. A batch that was committed although its answer got lost changes nothing the
second time: messages are known by number, and a second end is refused.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import field

from tidewheel.core.queue.requests import End, JobMessage, Report, Reported, UsageSample
from tidewheel.core.queue.status import Status
from tidewheel.errors import LeaseLost, NotFound, Refused, WrongStatus
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.services.service import Service, ServiceReport, Surroundings
from tidewheel.worker.attempts import (
    Attempt,
    AttemptTable,
    Confirm,
    Spoken,
    Started,
    StopReason,
    failure,
)
from tidewheel.worker.jobs import Jobs

REPORTS_PER_CALL_MAX = 1_000
MESSAGES_PER_REPORT_MAX = 1_000
USAGE_PER_REPORT_MAX = 1_000
END_HELD_SECONDS = 0.02  # a commit less for each that comes meanwhile, if others wait to begin
START_HELD_SECONDS = 0.03  # two commits less for each shorter job; no person sees that

# The attempt is over for the store: it ended before, was superseded, or is gone.
_SUPERSEDED = (LeaseLost, WrongStatus, NotFound)


@dataclass(slots=True)
class _Draft:
    """Holds what an attempt said since its last report."""

    started_at: float | None = None  # by the local clock
    messages: list[Spoken] = field(default_factory=list)
    usage: list[UsageSample] = field(default_factory=list)
    end: End | None = None
    ended_at: float = -math.inf  # by the local clock
    confirms: list[Confirm] = field(default_factory=list)  # by calls of the job

    def due_at(self, *, are_ends_held: bool) -> float:
        """Returns when to report this: at once, unless it is a start that nobody awaits, or an
        end while ends are held."""
        if self.messages or self.usage or self.confirms:
            return -math.inf
        if self.end is not None:
            return self.ended_at + END_HELD_SECONDS if are_ends_held else -math.inf
        return -math.inf if self.started_at is None else self.started_at + START_HELD_SECONDS


def _numbered(attempt: Attempt, draft: _Draft) -> tuple[JobMessage, ...]:
    spoken = draft.messages[:MESSAGES_PER_REPORT_MAX]
    first = attempt.messages_numbered + 1
    attempt.messages_numbered += len(spoken)
    return tuple(
        JobMessage(number=number, text=one.text, output=one.output, values=one.values)
        for number, one in enumerate(spoken, first)
        if number > attempt.messages_stored
    )


class Reporter(Service):
    """Brings the events of jobs to the store; lets go of attempts whose end the store took."""

    def __init__(
        self,
        store: Store,
        attempts: AttemptTable,
        jobs: Jobs,
        surroundings: Surroundings,
    ) -> None:
        super().__init__("reporter", surroundings, attempts.events.wakeup)
        self._store = store
        self._events = attempts.events
        self._attempts = attempts
        self._jobs = jobs
        self._batch: list[tuple[Attempt, Report]] = []
        self._drafts: dict[Attempt, _Draft] = {}  # what the store was not told yet
        self._confirms: list[Confirm] = []  # of the batch

    @property
    def idle(self) -> bool:
        """Says whether the store has been told everything."""
        return not self._batch and not self._events.said and not self._drafts

    def rest_seconds(self) -> float | None:
        if self._events.said:
            return 0.0
        is_held = bool(self._jobs.ahead.waiting) and self._are_ends_held()
        dues = (draft.due_at(are_ends_held=is_held) for draft in self._drafts.values())
        due_at = min(dues, default=None)
        return None if due_at is None else max(0.0, due_at - self._clock.monotonic())

    async def run(self) -> None:
        try:
            await super().run()
        finally:  # no call of a job waits for what is not reported any more
            self._events.is_over = True
            said = [one for _, one in self._events.said if isinstance(one, Confirm)]
            _sign(
                [
                    *said,
                    *self._confirms,
                    *(c for d in self._drafts.values() for c in d.confirms),
                ]
            )

    def _are_ends_held(self) -> bool:
        """Says whether ends wait for others: while more tasks wait to be begun than have ended,
        no slot is idle meanwhile."""
        ended = sum(draft.end is not None for draft in self._drafts.values())
        return ended < len(self._jobs.ahead.waiting)

    async def run_once(self) -> Sequence[ServiceReport]:
        if not self._batch:
            # The attempt that spoke first may be one of many that start in this turn of the
            # loop, and those with little to do end in the next: start and end go together.
            if self._jobs:  # else nobody is left who could say anything
                await asyncio.sleep(0)
            if self._attempts.refills:
                # Behind a claim that is under way, this report takes the next tasks along.
                async with self._attempts.machine.claiming:
                    pass
            self._take_down()
            self._batch = self._next_batch()
        if not self._batch:
            return ()
        answers = await self._bring(self._batch)
        batch, self._batch = self._batch, []
        confirms, self._confirms = self._confirms, []
        _sign(confirms)
        return self._heed(batch, answers)

    async def _bring(self, batch: Sequence[tuple[Attempt, Report]]) -> Sequence[Reported]:
        """Brings reports to the store: ends by way of their run's scheduler, if that is here
        and takes them, so that one transaction writes what follows from them, too."""
        reports = [report for _, report in batch]
        is_of_run = batch[0][0].task.run is not None
        # Not if somebody wanted one of them to end: what that means is for the store to say.
        if is_of_run and all(attempt.reason is None for attempt, _ in batch):
            offered = self._store.offer_reports(reports)
            self._attempts.is_beside_scheduler = offered is not None and await offered
            if self._attempts.is_beside_scheduler:
                return [_accepted(one) for one in reports]
        return await self._store.report(reports)

    def _take_down(self) -> None:
        """Sorts all that attempts have said by now into their drafts."""
        take, drafts = self._events.said.popleft, self._drafts
        for _ in range(len(self._events.said)):
            attempt, said = take()
            draft = drafts.get(attempt)
            if isinstance(said, Confirm):
                if draft is None:  # all that was said before is stored, or will never be
                    _sign([said])
                else:
                    draft.confirms.append(said)
                continue
            if attempt.spoke_last:
                continue
            if draft is None:
                draft = drafts[attempt] = _Draft()
            match said:
                case End():
                    draft.end = said if attempt.unacceptable is None else attempt.unacceptable
                    draft.ended_at = self._clock.monotonic()
                    attempt.spoke_last = True
                case Started():
                    draft.started_at = said.at
                case Spoken():
                    draft.messages.append(said)
                case UsageSample():
                    draft.usage.append(said)

    def _next_batch(self) -> list[tuple[Attempt, Report]]:
        """Makes at most one report of each attempt, from the drafts that are due."""
        reports, now = [], self._clock.monotonic()
        due, lost = [], []
        is_held = bool(self._jobs.ahead.waiting) and self._are_ends_held()
        for attempt, draft in self._drafts.items():
            if attempt.spoke_last and draft.end is None:
                lost.append(attempt)
            elif (draft.end is not None and not is_held) or (
                draft.due_at(are_ends_held=is_held) <= now
            ):
                due.append(attempt)
        for attempt in lost:
            # Its lease is lost, so there is nobody to tell.
            _sign(self._drafts.pop(attempt).confirms)
        for attempt in due[:REPORTS_PER_CALL_MAX]:
            draft = self._drafts.pop(attempt)
            left = draft.messages[MESSAGES_PER_REPORT_MAX:]
            report = Report(
                holder=attempt.holder,
                started=draft.started_at is not None,
                started_seconds_ago=0.0 if draft.started_at is None else now - draft.started_at,
                messages=_numbered(attempt, draft) if draft.messages else (),
                usage=tuple(draft.usage[-USAGE_PER_REPORT_MAX:]) if draft.usage else (),
                end=None if left else draft.end,
                frees=attempt.task.queue if attempt.task.limited else None,
            )
            reports.append((attempt, report))
            if left:
                # Usage is let go.
                rest = _Draft(messages=left, end=draft.end, confirms=draft.confirms)
                self._drafts[attempt] = rest
            elif draft.confirms:
                self._confirms += draft.confirms
        return reports

    def _heed(
        self, batch: list[tuple[Attempt, Report]], answers: Sequence[Reported]
    ) -> list[ServiceReport]:
        assert len(answers) == len(batch), (len(answers), len(batch))
        over = []
        refusals = []
        for (attempt, report), answer in zip(batch, answers, strict=True):
            if answer.refused is not None:
                refusals.append(self._heed_refusal(attempt, report, answer.refused))
            if attempt.spoke_last and report.end is not None:
                over.append(attempt)
        self._attempts.let_go(over)
        reported = self.report("attempts.reported", count=len(batch), ended=len(over))
        return [reported, *refusals]

    def _heed_refusal(
        self, attempt: Attempt, report: Report, refused: Refused
    ) -> ServiceReport:
        """Stops or fails the attempt whose report was refused, and never this worker. A refused
        report changed nothing in the store."""
        if isinstance(refused, _SUPERSEDED):
            if report.end is None:
                self._jobs.stop(attempt, StopReason.LOST, 0.0)
        elif attempt.unacceptable is None:
            self._fail(attempt, report, refused)
        return self.report(
            "report.refused",
            task=attempt.task.id,
            attempt=attempt.task.attempt,
            code=refused.code,
            error=str(refused),
        )

    def _fail(self, attempt: Attempt, report: Report, refused: Refused) -> None:
        """Lets an attempt fail, however its job ends, since what it said cannot be stored.

        The numbers of the refused messages are free again, since one batch is in the air
        at a time and numbers are given when it is made.
        """
        attempt.messages_numbered -= len(report.messages)
        attempt.unacceptable = failure(refused.code, str(refused))
        if report.end is not None:
            attempt.spoke_last = False
            self._events.put(attempt, attempt.unacceptable)


def _sign(confirms: Iterable[Confirm]) -> None:
    """Lets calls of jobs go on that are not over."""
    for one in confirms:
        if not one.sign.done():
            one.sign.set_result(None)


def _accepted(report: Report) -> Reported:
    """Returns the answer to a report of a start or a success that a scheduler has written."""
    status = Status.RUNNING if report.end is None else Status.SUCCEEDED
    return Reported(task_id=report.holder.task_id, status=status)
