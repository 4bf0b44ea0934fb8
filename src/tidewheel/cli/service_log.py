"""Prints what a service in the foreground does, one line per event."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Mapping, Sequence

from tidewheel.cli.output import json_line, plural, safe, say
from tidewheel.cli.pages.format import error_text
from tidewheel.core.queue.requests import Claimed, End
from tidewheel.quantities import show_duration
from tidewheel.runners.containers.stage_spec import STAGE_TITLE
from tidewheel.services.service import ServiceReport

WORK_LENGTH_MAX = 60

# What services report and a person at the terminal wants to know, in words; --json tells all.
SENTENCES = {
    "worker.registered": "as {worker}",
    "worker.stopped": "{outcome}",
    "worker.skips": "{left}{unknown}",
    "worker.leaves": "{manner}.{left}{unknown}",
    "worker.leaves_unseen": "{manner}. Nobody knows whether tasks are left ({error}); when the "
    "store answers again: tidewheel queues",
    "leases.taken_back": "lapsed leases: {facts}",
    "tasks.deleted": "{counted}, after the retention",
    "definitions.forgotten": "{counted}, used by no run and no registered workflow",
    "workers.forgotten": "{counted}, not seen for a long time",
    "tasks.not_exported": "{counted} not deleted, because the export failed: {error}",
    "store.awaited": "{error}; waiting {limit}",
    "store.unavailable": "{told}",
    "store.back": "{told}",
    "report.refused": "{task}  {error}",
    "job.stopping": "{task}  attempt {attempt} ({reason})",
    "worker.unable": "takes no tasks: {error}; next try in {delay_seconds:.1f} s",
    "worker.able": "takes tasks again",
    "job.not_started": "{task}  {error}",
    "lease.adopted": "{task}  from a worker that is gone",
    "leftover.removed": "{task}  attempt {attempt} had no lease any more",
    "leftover.kept": "{error}",
    "run.taken": "{run}  was {status}, without a scheduler",
    "run.left": "{run}  {status}  {why}",
    "run.not_taken": "{run}  {reason}",
    "run.failed": "{run}  {error}",
    "run.lost": "{run}  {reason}",
    "step.failed": "{run}  {summary}",
    "handler.failed": "{run}  {told}",
    "handler.dropped": "{run}  {told}",
    "mail.failed": "{run}  {told}",
    "mail.dropped": "{run}  {told}",
    "xtrigger.failed": "{run}  {call}: {error}",
    "xtrigger.works": "{run}  {call}",
    "rules.read": "{counted}{remark}",
    "events.lost": "events were deleted before they were read; notifications are missing",
    "event.untold": "{kind}  {run}: {error}",
    "notification.sent": "{rule}  {kind}  {run}",
    "notification.failed": "{rule}  {kind}  {run}: {error}",
    "notification.given_up": "{rule}  {kind}  {run}: {error}",
    "notification.dropped": "{rule}  {run}: too many notifications are waiting",
    "channel.refused": "{error}",
    "log.refused": "{task}  its log was refused: {error}",
    "log.left": "{task}  its log stays on this host: the server accepted no logs for too long",
    "log.unwritten": "{error}",
    "log.written": "the log can be written again",
    "program.error": "{text}",
    "audit.head": "{number}:{sha256}",
    "job.started": "{task}  attempt {attempt}: {work}",
    "job.ended": "{task}  attempt {attempt} {ending}{lasted}{remark}",
}

OF_OUTAGE = ("store.unavailable", "store.back")  # said once for all services of a process

# What the number of an event counts, for the words above.
_COUNTED: Mapping[str, tuple[str, ...]] = {
    "tasks.deleted": ("count", "task"),
    "definitions.forgotten": ("count", "definition"),
    "workers.forgotten": ("count", "worker"),
    "tasks.not_exported": ("count", "task"),
    "rules.read": ("count", "rule"),
}


OUTAGE_BEGINS = ("store.unavailable", "store.awaited")
AGAIN_SECONDS = 60.0  # until people are told again; a service tries more often than that
LATE_SECONDS = 15.0  # for the tries of other services that were under way when it came back
OUTAGE_ENDINGS = ("; try again", "; trying again")


class Outage:
    """Tells once that the store does not answer, and once that it answers again.

    Each service of a process tries by itself, and all meet the same cause; the first that is
    answered ends it.
    """

    def __init__(self) -> None:
        self._waiting: set[str] = set()  # services that have not been answered since
        self._since: float | None = None
        self._told_at = self._failed_at = self._back_at = -math.inf

    def lasts(self, now: float) -> bool:
        """Says whether it still lasts, as far as is known: a service that was ended meanwhile
        says nothing more."""
        return self._since is not None and now < self._failed_at + AGAIN_SECONDS

    def told(self, report: ServiceReport, now: float) -> str:
        """Returns what is new for people in a report; "" if there is nothing."""
        if report.event == "store.back":
            since, self._since, self._back_at = self._since, None, now
            self._waiting.discard(report.service)
            took = "" if since is None else show_duration(now - since)
            return f"the store can be used again, after {took}" if took else ""
        is_late = report.service in self._waiting and now < self._back_at + LATE_SECONDS
        if report.event not in OUTAGE_BEGINS or is_late:
            return ""
        self._waiting.add(report.service)
        lasted, self._failed_at = self.lasts(now), now
        error = str(report.facts["error"])
        for ending in OUTAGE_ENDINGS:
            error = error.removesuffix(ending)
        if not lasted or self._since is None:
            self._since = self._told_at = now
            return f"{error}; trying again until it works; running jobs continue"
        if now < self._told_at + AGAIN_SECONDS:
            return ""
        self._told_at = now
        return f"still trying after {show_duration(now - self._since)}: {error}"


class ServiceLog:
    """Prints the log of a service: one line per event, for people or as JSON."""

    def __init__(self, *, as_json: bool, sums_up: bool = False) -> None:
        """Makes a log; with ``sums_up``, only ``leaves`` says that a worker ended well."""
        self._as_json, self._sums_up = as_json, sums_up
        self._begun: dict[tuple[str, int], float] = {}
        self._stopped: dict[tuple[str, int], str] = {}  # why
        self._adopted: set[str] = set()  # tasks whose jobs began before this process
        self._outage = Outage()

    def report(self, report: ServiceReport) -> None:
        """Logs what a service reports; for people, only events that SENTENCES has words for."""
        facts = report.facts
        if report.event == "lease.adopted":
            self._adopted.add(str(facts["task"]))
        if report.event == "job.stopping":
            self._stopped[str(facts["task"]), int(str(facts["attempt"]))] = str(facts["reason"])
        if self._as_json:
            self._say(report.event, **facts)
            return
        told = self._outage.told(report, time.monotonic())
        if report.event in OF_OUTAGE:
            facts = {**facts, "told": told}
        is_said_later = (
            self._sums_up and report.event == "worker.stopped" and bool(facts["settled"])
        )
        is_known = report.event in OF_OUTAGE and not told
        if report.event in SENTENCES and not (is_said_later or is_known):
            self._say(report.event, **facts)

    def job(self, task: Claimed, end: End | None) -> None:
        """Logs that a job began, or how it ended; ``end`` is None at its beginning."""
        key = (task.id, task.attempt)
        if end is None:
            self._begun[key] = time.monotonic()
            self._say("job.started", task=task.id, attempt=task.attempt, work=_work(task))
            return
        took = time.monotonic() - self._begun.pop(key, time.monotonic())
        self._say(
            "job.ended",
            task=task.id,
            attempt=task.attempt,
            ending=end.ending.value,
            seconds=round(took, 3),
            adopted=task.id in self._adopted,
            error=error_text(end.error) if end.error else None,
            stopped=self._stopped.pop(key, None),
        )
        self._adopted.discard(task.id)

    def leaves(self, left: Mapping[str, int], unknown: Sequence[str], *, idle: bool) -> None:
        """Logs that a worker exits: how many tasks it leaves, by reason, and those of its
        queues that the store does not know."""
        facts = {"idle": idle, "skipped": sum(left.values()), "reasons": dict(left)}
        self._say("worker.leaves", **facts, unknown=list(unknown))

    def leaves_unseen(self, error: str, *, idle: bool) -> None:
        """Logs that a worker exits and could not see which tasks it leaves."""
        self._say("worker.leaves_unseen", idle=idle, error=error)

    def skips(self, left: Mapping[str, int], unknown: Sequence[str]) -> None:
        """Logs that a worker that has started leaves ready tasks alone, by reason, or serves
        queues that the store does not know; nothing if there are none."""
        if left or unknown:
            facts = {"skipped": sum(left.values()), "reasons": dict(left)}
            self._say("worker.skips", **facts, unknown=list(unknown))

    def hear_logs(self) -> None:
        """Makes each error that a library of this program logs one line of this log as well
        (S12)."""
        handler = logging.Handler(logging.ERROR)
        handler.emit = lambda record: self._say(  # type: ignore[method-assign]
            "program.error", part=record.name, text=handler.format(record)
        )
        logging.basicConfig(level=logging.ERROR, handlers=[handler])

    def _say(self, event: str, /, **facts: object) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self._as_json:
            say(json_line({"at": at, **facts, "event": event}))
        else:
            say(f"{at}  {event:18} {_sentence(event, facts)}")
        sys.stdout.flush()


def _outcome(facts: dict[str, object]) -> str:
    if facts["settled"]:
        return "all jobs have ended and are reported"
    if facts["leaves"] and facts["jobs"]:
        again = "the worker takes them over when it starts again"
        return f"jobs left running: {facts['jobs']}; {again}"
    return "not everything could be reported; the remaining leases will lapse"


def _sentence(event: str, facts: dict[str, object]) -> str:
    """Returns an event as a sentence for people; numbers stay numbers, for the format to
    round."""
    shown = {
        name: value if isinstance(value, int | float) else safe(value)
        for name, value in facts.items()
    }
    if event in _COUNTED:
        fact, *nouns = _COUNTED[event]
        shown["counted"] = plural(int(str(facts[fact])), *nouns)
    if event == "job.ended":
        took = show_duration(float(str(facts["seconds"])))
        shown["lasted"] = (
            "; it began under another worker" if facts["adopted"] else f" in {took}"
        )
        shown["remark"] = f": {shown['error']}" if facts["error"] else ""
        if facts["stopped"]:
            shown["ending"] = f"stopped ({facts['stopped']})"
    if event == "rules.read":
        wrong = facts["findings"]
        assert isinstance(wrong, list)
        shown["remark"] = "; wrong: " + safe("; ".join(wrong)) if wrong else ""
    if event == "store.awaited":
        seconds_max = float(str(facts["seconds_max"]))
        forever = math.isinf(seconds_max)
        shown["limit"] = "until it does" if forever else f"up to {show_duration(seconds_max)}"
    if event == "worker.stopped":
        shown["outcome"] = _outcome(facts)
    if event in ("worker.leaves", "worker.leaves_unseen"):
        shown["manner"] = "Idle, exiting" if facts["idle"] else "Exiting"
    if event in ("worker.leaves", "worker.skips"):
        reasons, queues = facts["reasons"], facts["unknown"]
        assert isinstance(reasons, Mapping) and isinstance(queues, list)
        state = "ready" if event == "worker.skips" else "left"
        shown["left"] = "".join(
            f" {plural(count, 'task')} {state}: {safe(why)}." for why, count in reasons.items()
        )
        shown["unknown"] = "".join(
            f" There is no queue {safe(one)!r} yet: no task was ever submitted to it."
            for one in queues
        )
    if event == "run.left" and facts["why"] == facts["status"]:
        shown["why"] = ""
    told = ", ".join(f"{value} {name}" for name, value in shown.items())
    return SENTENCES[event].format(**shown, facts=told).strip()


def _work(task: Claimed) -> str:
    """Returns in a few words what a task executes.

    Of a job in a run this leaves out the script, which is long: the id of the task names it
    well enough.
    """
    if task.run is not None:
        return "a job of a run"
    text = task.command or f"{task.handler}()"
    title = text.partition("\n")[0].removeprefix("# ")
    if title.startswith(STAGE_TITLE):  # what follows is for workers that have no such runner
        return title
    return " ".join(text.split())[:WORK_LENGTH_MAX]
