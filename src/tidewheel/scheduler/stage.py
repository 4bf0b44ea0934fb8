"""A run with everything that it is driven with: definition, nodes, jobs, timers, files.

Made when a scheduler takes a run, and again from the store if a step failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidewheel.core.graph.findings import Findings, InvalidDefinition
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import RunMode
from tidewheel.core.operator.definition import SIP, RunOptions, StoredDefinition
from tidewheel.core.operator.end_reasons import aborted_for, stopped_at
from tidewheel.core.operator.requests import RunLease, StoredBroadcast, StoredRun, Undelivered
from tidewheel.core.operator.run_log import RunLog, RunLogLine
from tidewheel.core.operator.selection import read_point, select
from tidewheel.core.operator.views import CARRY_ON_STATUSES, RunView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.effects import Submit
from tidewheel.core.sched.events import (
    AllHeldAfter,
    Event,
    RunContinued,
    RunPaused,
    RunReloaded,
    RunStarted,
    StopPointSet,
)
from tidewheel.core.sched.explain import trigger_line
from tidewheel.core.sched.persistence import reads_otherwise
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.spawn import TIMERS
from tidewheel.core.sched.step import Outcome
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.platforms import Platform
from tidewheel.scheduler.broadcasts import Nodes, says_where
from tidewheel.scheduler.command_handler import Commands
from tidewheel.scheduler.deferred_stages import LateMeans, LateStages
from tidewheel.scheduler.event_outbox import Telling
from tidewheel.scheduler.job_events import JobReports
from tidewheel.scheduler.pending_batch import Work
from tidewheel.scheduler.placement import check_places, check_places_of
from tidewheel.scheduler.restart_options import stop_point
from tidewheel.scheduler.run_engine import Drive, Surroundings, timer_key
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.scheduler.simulated_jobs import PlayedJobs
from tidewheel.scheduler.submissions import Submissions
from tidewheel.scheduler.task_events import FAILURES, news_of, retry_lines
from tidewheel.scheduler.timers import RunTimers, TaskTimers
from tidewheel.scheduler.xtriggers import Xtriggers
from tidewheel.services.definitions.snapshot import RestoredDefinition

READS_OTHERWISE = (
    "this version reads prerequisites otherwise than the one that stored them: "
    "they are looked up in what is known of the run"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnew:
    """Options that were given when a run was carried on, and the run as it is with them."""

    given: RunOptions
    options: RunOptions
    restored: RestoredDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a scheduler read of a run that it took."""

    run: RunView
    lease: RunLease
    definition: StoredDefinition
    restored: RestoredDefinition
    pool: TaskPool
    stored: StoredRun
    undelivered: Sequence[Undelivered] = ()  # events of which somebody is still to be told
    anew: GivenAnew | None = None
    platforms: Mapping[str, Platform] = field(default_factory=dict)


class Stage:
    """Everything about one run while a scheduler has it."""

    def __init__(
        self,
        taken: Taken,
        files: RunFiles,
        xtriggers: Xtriggers,
        commands: Commands,
        telling: Telling,
        means: LateMeans,
    ) -> None:
        anew, graph = taken.anew, taken.restored.graph
        options = taken.run.options if anew is None else anew.options
        run = replace(taken.run, options=options)
        self._anew = anew
        self.definition = taken.definition
        self.restored = taken.restored
        self.files = files
        self.xtriggers = xtriggers
        self.commands = commands
        self._telling = telling
        self.nodes = Nodes(graph, options.mode, taken.stored.broadcasts)
        self._run_log = RunLog(taken.pool)
        self.reports = JobReports(self.nodes.node, self._run_log.said)
        self.players = PlayedJobs(graph, self.nodes.mode)
        self.timers = RunTimers(
            taken.restored.settings.scheduler.events, options.stall_timeout_seconds
        )
        self.task_timers = TaskTimers(graph, self.nodes, taken.pool)
        self._submissions = Submissions(
            run,
            taken.definition.digest,
            taken.restored,
            self.nodes,
            xtriggers.results_for,
            taken.platforms,
        )
        self._platforms = taken.platforms
        self._reads_otherwise = reads_otherwise(taken.pool, taken.stored.changes)
        self._reason = taken.run.reason
        self._own_stops = {graph.cycling.stop}  # as its definition and its options say
        if anew is not None:
            self._own_stops.add(anew.restored.graph.cycling.stop)
        self.begun = False
        self._undelivered = taken.undelivered
        self.late_stages = LateStages(
            means, taken.restored.stages, self._submissions.new_stage_task
        )
        self.drive = Drive(
            run,
            taken.lease,
            graph,
            taken.pool,
            taken.stored,
            Surroundings(
                xtriggers=xtriggers,
                players=self.players,
                new_task=self._submissions.new_task,
                log_step=self._after_step,
                poll=self._poll,
                log_trigger=self._log_trigger if files.has_trigger_log else None,
                is_late=self._is_late if taken.restored.stages is not None else None,
            ),
        )

    # ---- beginning ----

    def begin(self, now: Instant) -> None:
        """Start the run, carry it on, or take it over from a scheduler that died."""
        self.begun = True
        drive, status = self.drive, self.drive.run.status
        self._wait_again(now)
        if drive.lease.batch == 0:
            if self._anew is not None:
                drive.work.options = self._anew.options
            self._start(now)
            self.timers.begin(drive, now)
        else:
            self._go_on(
                now, is_over=status in CARRY_ON_STATUSES or status == RunStatus.COMPLETED
            )
        drive.drain()

    def forget_what_passed(self) -> None:
        """What the run was for a moment, before it heard what it goes on with, is no news."""
        work = self.drive.work
        passed = set(RunStatus) - {self.drive.pool.run.status}
        gone = {one.text for one in work.notices if one.task is None and one.event in passed}
        work.notices = [one for one in work.notices if one.task or one.event not in passed]
        work.log = [one for one in work.log if one.text not in gone]

    def _start(self, now: Instant) -> None:
        drive, options = self.drive, self.drive.run.options
        if options.paused:
            drive.pool.run.paused = True
        if options.hold_after:
            drive.pool.run.hold_after = read_point(drive.graph.cycling, options.hold_after)
        tasks = select(drive.pool, options.start_tasks) if options.start_tasks else ()
        drive.step(RunStarted(now, tasks))

    def _go_on(self, now: Instant, *, is_over: bool) -> None:
        """With what was given anew; a run that was only taken over knows nothing of it."""
        drive, anew = self.drive, self._anew
        drive.work.steps += 1  # let everybody see who has it now
        if self._reads_otherwise:
            drive.work.log.append(RunLogLine("WARNING", READS_OTHERWISE))
            drive.step(RunReloaded(drive.graph, now))
        given = None
        if anew is not None:
            drive.work.options = anew.options
            if anew.given.final:
                self._take_graph(anew.restored, now)
            if anew.given.stop:
                given = anew.restored.graph.cycling.stop
        if is_over:
            drive.work.goes_on = True
            drive.step(RunContinued(now, stop_point(drive.pool, given)))
            self.timers.begin(drive, now)
        elif given is not None:
            drive.step(StopPointSet(given, now))
        if anew is not None and anew.given.paused:
            drive.step(RunPaused(now))
        if anew is not None and anew.given.hold_after:
            point = read_point(drive.graph.cycling, anew.given.hold_after)
            drive.step(AllHeldAfter(point, now))

    def _wait_again(self, now: Instant) -> None:
        """Xtriggers that pooled tasks wait for; timers were read from the store."""
        for task in self.drive.pool.tasks.values():
            if task.waits and task.admitted:
                for name in task.waits:
                    if name not in TIMERS:
                        self.xtriggers.watch(task.key, name, now)

    # ---- while it runs ----

    def due_at(self, key: Key, wait: str) -> Instant | None:
        """When a task need not wait for a clock or for its retry any more, if that is known."""
        at = self.drive.agenda.at(timer_key(key, wait))
        return self.xtriggers.due_at(key, wait) if at is None else at

    def broadcast(self, rows: Sequence[StoredBroadcast]) -> None:
        """Refused if jobs would then go where nobody has described a place."""
        placing = [one for one in rows if one.value is not None and says_where(one.setting)]
        if placing and self.drive.run.options.mode == RunMode.LIVE:
            findings = Findings()
            check_places_of(self.nodes.nodes_with(placing), self._platforms, findings)
            for one in findings.sorted():
                raise Refused(
                    f"not broadcast: {one.message}; {one.hint}. "
                    "A scheduler reads that file when it starts"
                )
        for row in rows:
            self.nodes.put(row)
        self.drive.work.broadcasts += rows

    def awaited_objects(self) -> Sequence[str]:
        """Of a SIP definition, whatever comes from outside is an object that is posted."""
        return self.xtriggers.awaited_messages() if self.definition.kind == SIP else ()

    def check_places(self, graph: Graph) -> None:
        """Refuse a definition whose jobs would go where nobody has described a place."""
        findings = Findings()
        if self.drive.run.options.mode == RunMode.LIVE:
            check_places(graph, self._platforms, findings)
        if findings.has_errors:
            raise InvalidDefinition(self.drive.run.workflow, findings.sorted())

    def reload(
        self, definition: StoredDefinition, restored: RestoredDefinition, now: Instant
    ) -> None:
        """Another definition; its files replace those that are there."""
        self.files.prepare(definition, anew=True)
        self.definition = definition
        self._take_graph(restored, now)

    def _take_graph(self, restored: RestoredDefinition, now: Instant) -> None:
        """Everybody takes the new graph, the core in between: it may submit new tasks."""
        graph = restored.graph
        self.nodes.reload(graph)
        self.players.reload(graph)
        self.task_timers.reload(graph)
        self._submissions.reload(self.definition.digest, restored)
        self.late_stages.reload(restored.stages)
        self.drive.step(RunReloaded(graph, now))
        self.restored = restored
        self._own_stops.add(graph.cycling.stop)
        self.drive.graph = graph
        self._telling.reload(restored)
        self.xtriggers.redefine(graph, now)

    def _after_step(self, drive: Drive, event: Event, outcome: Outcome) -> None:
        self.task_timers.after_step(drive, event, outcome)
        drive.work.log += self._run_log.lines(event, outcome, drive.failure)
        drive.work.log += retry_lines(drive, event, outcome)
        news = list(news_of(event, outcome, drive.stage_before))
        drive.work.news += news
        if drive.run.options.abort_if_any_task_fails:
            for one in news:
                if one.event in FAILURES:
                    drive.abort(aborted_for(f"{drive.text(one.key)} {one.event}"))

    def _is_late(self, key: Key) -> bool:
        """A dummy needs no values."""
        return self.nodes.mode(key) is RunMode.LIVE and self.late_stages.is_late(key)

    def _poll(self, drive: Drive, job: tuple[Key, int], now: Instant) -> None:
        key, submit = job
        texts = self.files.written_messages(f"{drive.text(key)}/{submit:02d}")
        self.reports.polled(drive, job, texts, now)

    @staticmethod
    def _log_trigger(drive: Drive, one: Submit) -> None:
        drive.work.triggers.append(trigger_line(drive.pool, one))

    def decide_whom_to_tell(self, now: Instant) -> None:
        """The rows for that are part of the batch, which is written next."""
        work = self.drive.work
        work.outbox = self._telling.decide(self.drive, self.nodes, work, now)

    # ---- after it was written ----

    def reason(self) -> str:
        """Why the run has the status that it has."""
        status = self.drive.gave_up or self.drive.pool.run.status
        for notice in self.drive.work.notices:
            if notice.task is None and notice.event == status:
                troubles = self.late_stages.trouble_text
                self._reason = f"{notice.text} ({troubles})" if troubles else notice.text
        reason = self.drive.aborted or self._stop_point_text() or self._reason
        return reason if status != RunStatus.RUNNING else ""

    def _stop_point_text(self) -> str:
        """Why a run has stopped that nobody told to stop at once; empty if it has not."""
        run, graph = self.drive.pool.run, self.drive.graph
        if run.status is not RunStatus.STOPPED or run.stopping or run.stop is None:
            return ""
        return stopped_at(
            graph.cycling.style.text(run.stop), is_own=run.stop in self._own_stops
        )

    def tell(self, work: Work, now: Instant) -> None:
        self.files.write_log(work.log, now)
        self.files.write_triggers(work.triggers)
        if self._undelivered:  # not before the store has accepted us
            self._telling.tell_again(self._undelivered, self.drive.graph, self.nodes)
            self._undelivered = ()
        self._telling.tell(self.drive.lease.batch)

    async def close(self, *, is_hurried: bool = False) -> None:
        await self.xtriggers.close()
        await self._telling.close(is_hurried=is_hurried)
