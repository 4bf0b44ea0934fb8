"""Shows a run while it is driven in this terminal: one line per event, and its end.

On a terminal that can be redrawn, `LivePage` shows the same as a picture.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from shlex import quote
from typing import TYPE_CHECKING, Any, TextIO

import click

from tidewheel.cli.output import json_line, note, plural, safe
from tidewheel.cli.pages.format import (
    STATES_OF_ENDS,
    counted_ends,
    documents,
    ends_of,
    left_running,
    mode_note,
    reached,
    stall_text,
)
from tidewheel.cli.service_log import Outage
from tidewheel.cli.session import stop_writing
from tidewheel.client.local_run import RunEnd
from tidewheel.core.operator.views import FAILED_AGAIN, RunView
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.lifecycle import DROPPED, MISSED
from tidewheel.core.sched.missed import missed_texts
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.reachability import NO_STOP
from tidewheel.core.sched.services import ending_jobs
from tidewheel.core.sched.spawn import CLOCK, RETRY
from tidewheel.core.sched.task_state import JobPhase, Key, PoolState
from tidewheel.quantities import show_duration, show_instant
from tidewheel.runners.sanitize import printable
from tidewheel.scheduler.inbox import MISTAKEN
from tidewheel.scheduler.pending_batch import News, PendingBatch
from tidewheel.scheduler.run_engine import RunEngine
from tidewheel.services.service import ServiceReport

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from tidewheel.ports.runs import RunDoor

JOB_FAILED = "job failed"  # the notice that says why
RETRIES = ("retry", "submission retry")
FAILURES = ("failed", "submission failed", *RETRIES)
ERRORS_KEPT_MAX = 1_000
LOST_MAX = 20
WAIT_TOLD_SECONDS_MIN = 5.0  # what comes sooner need not be announced
WAIT_WORDS = {RETRY: "its retry delay", CLOCK: "the clock"}
ENDS = tuple(STATES_OF_ENDS.values())
# What is said of a task at the moment it happens; the rest is in the log.
TOLD = frozenset(("started", *RETRIES, "blocked", "lost", *ENDS))
# What jobs did not do although they succeeded, what will not happen, or what jobs said amiss.
NOTICED = ("incomplete", DROPPED, MISSED, NO_STOP, MISTAKEN)
SAID_BY_ITS_END = "which nothing handles"  # a failure is told as such
TROUBLE = {
    "log.unwritten": "{error}; the run continues without it",
    "log.written": "the log can be written again",
    "step.failed": "{summary}; the run is read again from the store",
    "run.lost": "{reason}; jobs that were started here are followed to their end",
    "xtrigger.failed": "xtrigger {label}: {error}",
    "worker.unable": "no job can be started: {error}",
    "worker.able": "jobs can be started again",
    "notification.failed": "notification {rule} ({kind}) was not sent: {error}; trying again",
    "notification.given_up": "notification {rule} ({kind}) was not sent: {error}",
    "notifier.failed": "notifications are no longer sent: {error}",
    "lease.adopted": "{task} was found running and is followed again",
}


def page_for(run: RunView, *, is_new: bool, as_json: bool, stream: TextIO) -> RunPage:
    """Returns the page that shows a run here: JSON lines, a picture, or plain lines."""
    if as_json:
        return JsonPage(run, is_new=is_new)
    if stream.isatty():
        return LivePage(run, is_new=is_new)
    return RunPage(run, is_new=is_new)


class RunPage:
    """Shows a run that is driven here as plain lines."""

    def __init__(self, run: RunView, *, is_new: bool) -> None:
        self._run, self._is_new = run, is_new
        self._is_to_be_told = False  # that it begins
        self._begun_at = time.monotonic()
        self._ends: Counter[str] = Counter()
        self._earlier: Counter[str] | None = None  # of the whole run, if that is more
        self._mode = mode_note(run.options.mode)
        self._lost: dict[str, str] = {}
        self._causes: list[str] = []
        self._known_causes: list[str] = []  # of a stall that this page has not seen begin
        self._warnings: list[str] = []  # of what failed when it ran again
        self._reasons: dict[Key | None, str] = {}
        self._errors: dict[Key, str] = {}  # of the last job of each task that failed here
        self._failed: dict[Key, str] = {}  # as what each of them is counted among the ends
        self._stall_option = ""  # without which it would not wait to be mended
        self._status = ""
        self._outage = Outage()
        self._stops = 0
        self._has_obeyed = False
        self._waited_for = ""  # what was said last of a run that waits for a time
        self._pool: TaskPool | None = None  # as of the last batch
        self._jobs: Mapping[TaskId, tuple[Key, int]] = {}
        self._is_of_stages = False
        self._gathered: list[str] | None = None  # the lines of a batch that is being shown
        self.option = ""  # with which commands about the run reach it
        self.submitted = asyncio.Event()  # is set whenever tasks entered the queue
        if not is_new:
            self.submitted.set()  # some may be there already

    def __enter__(self) -> RunPage:
        return self

    def __exit__(self, *_error: object) -> None: ...

    # ---- while it runs ----

    def claimed(self) -> None:
        """Notes that this process holds the run, and tells its beginning.

        Of a run that was complete it is seen only later whether it goes on at all.
        """
        self._is_to_be_told = True
        if self._run.status != RunStatus.COMPLETED:
            self._tell_beginning()

    def _tell_beginning(self) -> None:
        if self._is_to_be_told:
            self._is_to_be_told = False
            verb = "starts" if self._is_new else "resumes"
            self.line(f"{self._run.name} {verb}{self._mode}; Ctrl-C stops it")

    def on_batch(self, engine: RunEngine, batch: PendingBatch) -> None:
        """Shows a batch that is now in the store; all its lines are printed at once."""
        lines = self._gathered = []
        try:
            self._show_batch(engine, batch)
        finally:
            self._gathered = None
            if lines:
                print_line("\n".join(lines))

    def _show_batch(self, engine: RunEngine, batch: PendingBatch) -> None:
        pool, self._jobs = engine.pool, engine.jobs
        self._pool = pool
        self._is_of_stages = pool.plan.is_of_stages
        status = str(engine.gave_up or pool.run.status)
        is_going = batch.news or batch.answers or status != RunStatus.COMPLETED
        if self._is_to_be_told and is_going:
            self._tell_beginning()
        self._lost |= missed_texts(pool) if status == RunStatus.COMPLETED else {}
        self._has_obeyed = self._has_obeyed or bool(batch.answers)
        if batch.submissions:
            self.submitted.set()
        self._reasons = {one.task: one.text for one in batch.notices if one.event == JOB_FAILED}
        self._keep_errors()
        self._known_causes = [] if batch.news else self._known_causes
        for one in batch.news:
            event, key, _, text = one  # a tuple is taken apart at the cost of one of its names
            if event in ENDS and not is_awaited(engine, one):
                self._count_end(one, remark_of(engine, one) or event)
            elif event == "lost":
                self._lost[engine.pool.plan.id_of(key)] = text
            self.on_news(engine, one)
        for notice in batch.notices:
            if notice.event in NOTICED and not notice.text.endswith(SAID_BY_ITS_END):
                self.line(notice.text)
        if status != self._status:
            self._heed_status(engine, status)
        # While nothing happens: what the run waits for, and until when.
        is_idle = not (pool.standings[PoolState.ACTIVE] or pool.standings[PoolState.READY])
        waited_for = waited_for_text(engine) if is_idle and status == "running" else ""
        if waited_for and waited_for != self._waited_for:
            self.line(waited_for)
        self._waited_for = waited_for

    def untaken(self) -> list[tuple[Key, int]] | None:
        """Returns what no worker has taken, in the order of submission; None: not known yet."""
        if self._pool is None:
            return None
        tasks, queued = self._pool.tasks, (JobPhase.PREPARING, JobPhase.SUBMITTED)
        return [
            one
            for one in self._jobs.values()
            if one[0] in tasks and tasks[one[0]].stage in queued
        ]

    def on_news(self, engine: RunEngine, one: News) -> None:
        event, key, _, text = one
        if event not in TOLD:
            return
        remark = remark_of(engine, one)
        if is_awaited(engine, one):
            if words := arrival(engine, one):
                self.line(words)
        elif not (remark and event == "started"):
            name = engine.pool.plan.name_of(key)
            words = text.removeprefix(name).strip() if text else ""
            because = self._because(one) if event in FAILURES else ""
            self.line(f"{name} {remark or words or event}{because}")

    def _keep_errors(self) -> None:
        """Remembers why jobs failed, for the case that the run stalls later."""
        self._errors |= {key: text for key, text in self._reasons.items() if key is not None}
        while len(self._errors) > ERRORS_KEPT_MAX:
            del self._errors[next(iter(self._errors))]

    def _count_end(self, end: News, word: str) -> None:
        """Counts how a task ended; one that failed before and was run again counts once."""
        if before := self._failed.pop(end.key, ""):
            self._ends -= Counter((before,))
        self._ends[word] += 1
        if end.event in FAILURES and len(self._failed) < ERRORS_KEPT_MAX:
            self._failed[end.key] = word

    def _because(self, failure: News) -> str:
        """Returns why a task failed, after a colon; "" if that is unknown or told already."""
        reason = self._reasons.get(failure.key)
        told = reason is None or reason in failure.text
        return "" if told else f": {' '.join(str(reason).split())}"

    def _heed_status(self, engine: RunEngine, status: str) -> None:
        self._status = status
        self._causes = []
        if status in ("stalled", "waiting for release"):  # most runs go on by themselves
            from tidewheel.cli.pages.format import causes

            self._causes = self._known_causes or list(causes(engine, self._errors))
            waits = engine.run_timers.stall_seconds != 0.0
            self._stall_option = "" if waits else " --stall-timeout 1h"
            self.on_stall(engine, status)
        elif status == "paused":
            self.line(f"paused; resume it: tidewheel resume {quote(self._run.name)}")

    def on_stall(self, engine: RunEngine, status: str) -> None:
        self.tell_stall(status, stall_text(engine) if status == "stalled" else "")

    def tell_stall(self, status: str, waits: str) -> None:
        """Prints why the run does not go on, and how long it waits until it stops."""
        self.line(f"{status}:")
        for cause in self._causes:
            self.line(f"  {cause}")
        if waits:
            reload = f"tidewheel reload {quote(self._run.name)}"
            self.line(f"  it waits {waits}; if you change the definition: {reload}")

    def on_report(self, report: ServiceReport) -> None:
        """Shows what a service reports, if it is trouble that people should know of."""
        if report.event == "run.lost":
            self._status = "lost"
        if words := TROUBLE.get(report.event):
            self.line(words.format(**{k: safe(v) for k, v in report.facts.items()}))
        elif told := report.facts.get("told") or self._outage.told(report, time.monotonic()):
            self.line(safe(told))

    def stopping(self) -> None:
        self._stops += 1
        jobs = 0 if self._pool is None else ending_jobs(self._pool)
        awaited = ["the store"] if self._outage.lasts(time.monotonic()) else []
        awaited += [plural(jobs, "job")] if jobs else []
        waits = f"waiting for {', then for '.join(awaited)}" if awaited else "no job is active"
        left = " and leaves jobs running" if jobs else ""
        if self._stops == 1:
            self.line(f"stopping: {waits}; Ctrl-C again exits now{left}")
        else:
            self.leaving()

    def leaving(self) -> None:
        kept = "keep running, and the next start finds them"
        fate = "may be started again by another scheduler" if self._status == "lost" else kept
        self.line(f"exiting; active jobs {fate}")

    # ---- the end ----

    def show_end(self, end: RunEnd, seconds: float | None = None) -> None:
        """Shows how the run ended and after how long: the time it took here, or `seconds`."""
        took = show_duration(time.monotonic() - self._begun_at if seconds is None else seconds)
        counts = counted_ends(self._ends if self._earlier is None else self._earlier)
        counts += [end.undone.text] if end.undone.text else []
        ends = f"{self._mode}: {', '.join(counts)}" if counts else self._mode
        if self._earlier is not None and self._ends:
            ends += f" ({', '.join(counted_ends(self._ends))} since it was resumed)"
        was_complete = self._was_complete(end)
        how = "was already complete" if was_complete else f"{end.status} after {took}"
        print_line(f"{self._run.name} {how}{ends}")
        for text in self._warnings:
            self._note(f"warning: {text}")
        for lost, chain in list(self._lost.items())[:LOST_MAX]:
            self._note(f"warning: {chain or lost}")
        if (more := len(self._lost) - LOST_MAX) > 0:
            self._note(f"warning: {plural(more, 'more task')} will not run")
        for line in left_running(self._run.name, self._pool, end.status):
            self._note(line)
        self._show_advice(end)

    def _was_complete(self, end: RunEnd) -> bool:
        """Says whether there was nothing left to do in a run that was resumed."""
        did_nothing = not (self._is_new or self._ends or self._has_obeyed)
        return end.status == "completed" and end.has_run_anything and did_nothing

    def _show_advice(self, end: RunEnd) -> None:
        name = self._run.name
        if end.status == "completed" and not end.has_run_anything:
            what = "stage could begin" if self._is_of_stages else "task was ready at any point"
            self._note(f"no {what}; tidewheel graph shows what waits for what")
        elif self._was_complete(end):
            how = f"a task again: tidewheel trigger {quote(name)} POINT/NAME --run; "
            how += f"run more cycles: tidewheel run {quote(name)} --fcp POINT"
            if self._is_of_stages:
                how = f"a stage again: tidewheel trigger {quote(name)} STAGE --run"
            self._note(f"run {how}; start the next run: tidewheel run DIR --new")
        elif end.status == "stalled":
            for cause in self._causes:
                self._note(f"  {cause}")
            how = f"tidewheel run {quote(name)}{self._stall_option}"
            self._note(f"resume the run ({how}), then fix the causes from another terminal")
        elif end.status in ("error", "lost") or end.was_aborted:
            self._note(end.reason)
        if end.status in ("stopped", "left"):
            self._note(f"resume it: tidewheel run {quote(name)}")
        elif end.status == "error":
            self._note(f"when that is fixed, resume it: tidewheel run {quote(name)}")

    def recalls(self, shown: Mapping[str, object]) -> None:
        """Takes from a view of a run why it does not go on: its jobs ended before it was
        resumed, so this page has not seen how."""
        from tidewheel.cli.pages.format import cause_lines

        self._known_causes = list(cause_lines(shown))

    def remembers(self, shown: Mapping[str, object]) -> None:
        """Takes the ends and the lost tasks of the whole run from a view of it: this page has
        seen only those since the run was carried on."""
        self._earlier = ends_of(shown)
        groups = documents(shown, "groups")
        again = [one for one in groups if one["state"] == FAILED_AGAIN]
        self._warnings = [str(one["text"]) for one in again]
        self._lost = {str(one["id"]): str(one["chain"]) for one in documents(shown, "lost")}

    def takes(self, shown: Mapping[str, object]) -> None:
        """Takes ends, lost tasks and causes from a view of the run, to show its end."""
        self._ends.update(ends_of(shown))
        self._is_of_stages = bool(shown.get("stages"))
        self._lost = {str(one["id"]): str(one["chain"]) for one in documents(shown, "lost")}
        from tidewheel.cli.pages.format import cause_lines

        self._causes = list(cause_lines(shown))

    def _note(self, text: str) -> None:
        note(self._reached(text))

    def _reached(self, text: str) -> str:
        return reached(text, self._run.name, self.option)

    def line(self, text: str) -> None:
        """Prints a line with the time of day."""
        text = self._reached(text) if self.option else text
        if "\n" not in text:
            text = f"{_time_of_day(time.time_ns() // 1_000_000_000)} {printable(text)}"
        self._print(text)

    def _print(self, text: str) -> None:
        if self._gathered is None:
            print_line(text)
        else:
            self._gathered.append(text)


@lru_cache(maxsize=1)
def _time_of_day(second: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(second))


def print_line(text: str) -> None:
    """Prints a line, or several, at once.

    A reader that is gone, or a full disk under it, is no reason to stop a run.
    """
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        stop_writing()
    except OSError:
        pass  # there may be room for the next line


class JsonPage(RunPage):
    """Shows a run that is driven here as one JSON object per line."""

    def on_news(self, engine: RunEngine, one: News) -> None:
        told: dict[str, object] = {
            "event": one.event,
            "task": engine.pool.plan.id_of(one.key),
        }
        self._tell(told | {"submit": one.submit, "text": one.text})

    def show_end(self, end: RunEnd, seconds: float | None = None) -> None:
        del seconds
        document: dict[str, object] = {
            "event": "end",
            "run": self._run.name,
            "status": end.status,
            "reason": end.reason,
            "ends": dict(self._ends if self._earlier is None else self._earlier),
            "lost": self._lost,
            "undone": asdict(end.undone),
            "causes": [self._reached(one) for one in self._causes],
        }
        self._tell(document)

    def line(self, text: str) -> None:
        self._tell({"event": "note", "text": self._reached(text)})

    def _tell(self, document: dict[str, object]) -> None:
        self._print(json_line({"at": show_instant(time.time_ns() / 1e9), **document}))


def is_awaited(engine: RunEngine, one: News) -> bool:
    """Says whether it is no stage, but what stages wait for."""
    plan = engine.pool.plan
    return plan.is_of_stages and plan.nodes[one.key[1]].definition.is_gate


def arrival(engine: RunEngine, one: News) -> str:
    """Returns that a buffer object is there; "" for all else that stages wait for."""
    told = one.event == "succeeded" and one.key[1] in engine.graph.special.wait_for_message
    return f"{engine.pool.plan.name_of(one.key)} is there" if told else ""


def remark_of(engine: RunEngine, one: News) -> str:
    """Returns what is said of a task that nothing runs, such as a stage that is switched off,
    so that nobody takes it for work that was done; "" for others."""
    node = engine.graph.nodes.get(one.key[1])
    return "" if node is None else node.definition.skip.remark


async def ended(door: RunDoor, run: RunView, page: RunPage) -> RunEnd:
    """Returns how a run that nobody drives any more has ended; its page gets the view of it."""
    shown = await door.look("show", {"run": run.name})
    facts: Any = shown["run"]
    page.takes(shown)
    return RunEnd(facts["status"], facts["reason"])


def waited_for_text(engine: RunEngine) -> str:
    """Returns what an idle run waits for, and until when if that is known.

    It is "" if the run waits for nothing, or not long enough to be worth saying.
    """
    pool, now = engine.pool, time.time_ns() / 1e9
    never = Instant(math.inf)
    waits = [
        (never if (due := engine.due_at(task.key, wait)) is None else due, task.key, wait)
        for task in pool.tasks.values()
        if task.standing is PoolState.PENDING
        for wait in task.waits
    ]
    if not waits:
        return ""
    at, key, wait = min(waits)
    more = f", and {plural(len(waits) - 1, 'task')} more" if len(waits) > 1 else ""
    awaited = WAIT_WORDS.get(wait, f"the xtrigger {wait}")
    what = f"{pool.plan.name_of(key)} waits for {awaited}"
    if pool.plan.is_of_stages and pool.tasks[key].plan.definition.is_gate:
        what = f"it waits for {pool.plan.name_of(key)}"
    if at == never:
        return f"{what}{more}"
    if at - now < WAIT_TOLD_SECONDS_MIN:
        return ""
    when = f"until {show_instant(math.ceil(at))} (in {show_duration(at - now)})"
    return f"{what} {when}{more}"


# ---- a picture that is drawn again as the run changes: cycles, active tasks, recent ends ----

DRAWN_PER_SECOND_MAX = 10
POINTS_MAX = 8
ACTIVE_MAX = 10
RECENT_MAX = 6
BAR_WIDTH = 24
COLOURS = {"succeeded": "green", "failed": "red", "submission failed": "red"}


class LivePage(RunPage):
    """Shows a run that is driven here as a picture, redrawn a few times a second."""

    def __init__(self, run: RunView, *, is_new: bool) -> None:
        super().__init__(run, is_new=is_new)
        self._engine: RunEngine | None = None
        self._recent: deque[tuple[str, str]] = deque(maxlen=RECENT_MAX)
        self._started: dict[str, float] = {}
        self._over: dict[Any, dict[Key, str]] = {}  # how tasks ended, or that they are lost
        self._notes: deque[str] = deque(maxlen=RECENT_MAX)
        self._live: Live | None = None

    def __enter__(self) -> LivePage:
        from rich.live import Live

        self._live = Live(
            get_renderable=self._draw, refresh_per_second=DRAWN_PER_SECOND_MAX, transient=True
        )
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._live is not None
        self._live.stop()

    def on_news(self, engine: RunEngine, one: News) -> None:
        self._engine = engine
        name = engine.pool.plan.name_of(one.key)
        if is_awaited(engine, one):
            if words := arrival(engine, one):
                self._recent.append((one.event, words))
        elif one.event == "started":
            self._started.setdefault(name, time.monotonic())
        elif one.event in (*ENDS, *RETRIES):
            began = self._started.pop(name, None)
            took = "" if began is None else f" in {show_duration(time.monotonic() - began)}"
            words = one.text.removeprefix(name).strip() or one.event
            words = remark_of(engine, one) or words
            because = self._because(one) if one.event in FAILURES else ""
            self._recent.append((one.event, f"{name} {words}{took}{because}"))
        if one.event in (*ENDS, "lost") and not is_awaited(engine, one):
            self._over.setdefault(one.key[0], {})[one.key] = one.event
            while len(self._over) > POINTS_MAX:
                del self._over[min(self._over)]

    def on_stall(self, engine: RunEngine, status: str) -> None:
        """Notes only how long the run waits, because the picture shows the causes."""
        waits = stall_text(engine) if status == "stalled" else ""
        if waits:
            self.line(f"it waits {waits}")

    def _tell_beginning(self) -> None:
        """Prints nothing, because the picture shows that the run has begun."""

    def line(self, text: str) -> None:
        self._notes.append(text)

    # ---- drawing ----

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        now, status = time.monotonic(), self._status or "running"
        counts = ", ".join(counted_ends(self._ends))
        head = Text(f"{self._run.name}  ", style="bold")
        head.append(status, style="red" if status == "stalled" else "cyan")
        head.append(f"  {show_duration(now - self._begun_at)}  {counts}", style="default")
        parts = [head]
        if self._engine is not None:
            parts += self._cycles(self._engine)
        for name, since in list(self._started.items())[:ACTIVE_MAX]:
            parts.append(Text(f"  ▶ {safe(name)}  {show_duration(now - since)}", style="blue"))
        if (more := len(self._started) - ACTIVE_MAX) > 0:
            parts.append(Text(f"    and {more} more", style="bright_black"))
        for event, text in self._recent:
            parts.append(Text(f"  {safe(text)}", style=COLOURS.get(event, "yellow")))
        for text in (*self._notes, *self._causes):
            parts.append(Text(safe(text), style="bold yellow"))
        return Group(*parts)

    def _cycles(self, engine: RunEngine) -> list[Text]:
        """Returns a bar per point: how much is done, what else is over, what the pool holds."""
        from rich.text import Text

        pooled, tasks, lines = engine.pool.population.counts, engine.pool.tasks, []
        is_of_stages, text = engine.pool.plan.is_of_stages, engine.graph.cycling.style.text
        for point in sorted({*pooled, *self._over})[-POINTS_MAX:]:
            over = self._over.get(point, {})
            ends = Counter(over[key] for key in over if key not in tasks)
            there, total = pooled.get(point, 0), max(1, ends.total() + pooled.get(point, 0))
            width = BAR_WIDTH * (done := ends.pop("succeeded", 0)) // total  # full if all are
            line = Text("  " if is_of_stages else f"  {text(point):>18} ")
            line.append("━" * width, style="green")
            line.append("─" * (BAR_WIDTH - width), style="bright_black")
            ended = ", ".join([f"{done} done", *counted_ends(ends)])
            line.append(f" {ended}, {there} {'to do' if is_of_stages else 'in the pool'}")
            lines.append(line)
        return lines
