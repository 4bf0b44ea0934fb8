"""Holds one run in memory while a scheduler has it: its pool, its timers, its pending batch.

Theory of operation. Everything here is synchronous and waits for nothing: an event is handed to
`step`, the core decides, and its effects become rows of the next batch. The pool is ahead of
the store by that batch and no more; the driver (`run_driver`) writes the batch before anything
else happens. If that cannot be done because another scheduler took over, the engine is dropped.

The engine is made when a scheduler takes a run, and again from the store if a step failed. It
calls its collaborators and hands itself to those that step or set timers; none of them is given
a function to call back. Those that keep something of the definition are listed in
`_redefined`: a reload calls them in that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from tidewheel.core.graph.definition import RunMode
from tidewheel.core.graph.findings import Findings, InvalidDefinition
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator import requests
from tidewheel.core.operator.definition import StoredDefinition
from tidewheel.core.operator.run_log import RunLogLine, trigger_line
from tidewheel.core.operator.selection import read_point, select
from tidewheel.core.operator.views import (
    CARRY_ON_STATUSES,
    RunView,
    aborted_for,
    stopped_at,
    was_aborted,
)
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.core.sched import events
from tidewheel.core.sched.lifecycle import stop_point
from tidewheel.core.sched.persistence import changes, outdated, reads_otherwise
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.services import end_of_service
from tidewheel.core.sched.spawn import TIMERS
from tidewheel.core.sched.step import step
from tidewheel.core.sched.task_state import JobPhase as TaskStage
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.platforms import Platform
from tidewheel.ports.clock import Clock
from tidewheel.ports.store import Store
from tidewheel.scheduler.broadcasts import is_placing
from tidewheel.scheduler.deferred_submissions import RENDERING, DeferredSubmissions
from tidewheel.scheduler.event_handlers import EventDelivery
from tidewheel.scheduler.inbox import job_message
from tidewheel.scheduler.nested_runs import NESTED, NestedRuns, is_nested
from tidewheel.scheduler.pending_batch import FAILURES, HistoryCache, PendingBatch, TaskEvents
from tidewheel.scheduler.placement import UNKNOWN_PLATFORM, check_places, check_places_of
from tidewheel.scheduler.restart_options import RestartOptions
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.scheduler.run_values import RunValues
from tidewheel.scheduler.simulated_jobs import (
    PLAYED,
    SIMULATED_MODES,
    SimulatedJobs,
    may_assume,
)
from tidewheel.scheduler.submissions import (
    DefinitionInForce,
    EffectiveSettings,
    Submissions,
)
from tidewheel.scheduler.timers import RunTimers, StoredTimers, TaskTimers, timer_key
from tidewheel.scheduler.xtriggers import Xtriggers
from tidewheel.services.definitions.snapshot import RestoredDefinition
from tidewheel.services.service import ReadsDefinitions, read_in_thread

_LIVE = RunMode.LIVE  # looked up once, not for each task
OVER = (RunStatus.COMPLETED, RunStatus.STOPPED)
# What is written of a batch as it was decided.
_AS_DECIDED = (
    *("consumed", "job_reports", "answers", "xtriggers", "broadcasts", "values"),
    *("definition", "options", "goes_on"),
)
READS_OTHERWISE = (
    "another version of tidewheel stored the prerequisites of this run, and this version reads "
    "them differently: they are computed again from the stored history of the run"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun:
    """Holds everything that a scheduler read of a run that it took."""

    run: RunView
    lease: requests.RunLease
    definition: StoredDefinition
    restored: RestoredDefinition
    pool: TaskPool
    past: HistoryCache  # of the pool
    stored: requests.StoredRun
    undelivered: Sequence[
        requests.Undelivered
    ] = ()  # events that a scheduler before did not deliver
    restart: RestartOptions | None = None
    platforms: Mapping[str, Platform] = field(default_factory=dict)
    code_trusted: bool = False  # code of definitions that came from a folder runs here
    read_new: ReadsDefinitions = read_in_thread  # definitions of runs that its tasks are


class RunEngine:
    """Holds one run in memory, applies events to it and collects what follows in a batch."""

    def __init__(
        self,
        opened: OpenedRun,
        files: RunFiles,
        xtriggers: Xtriggers,
        delivery: EventDelivery,
        home: tuple[Store, Clock],  # with which deferred stages are rendered
    ) -> None:
        restart, graph, pool = opened.restart, opened.restored.graph, opened.pool
        options = opened.run.options if restart is None else restart.options
        self.run = replace(opened.run, options=options)
        self.lease = opened.lease
        self.definition = opened.definition
        self.restored = opened.restored
        self.graph = graph
        self.pool = pool
        self.past = opened.past
        self.files = files
        self.xtriggers = xtriggers
        self._restart = restart
        self.delivery = delivery
        self._platforms = opened.platforms
        self._undelivered = opened.undelivered
        self._reads_otherwise = reads_otherwise(pool, opened.stored.changes)
        self._reason = opened.run.reason
        self._own_stops = {graph.cycling.stop}  # as its definition and its options say
        if restart is not None:
            self._own_stops.add(restart.restored.graph.cycling.stop)

        self._has_nested = _has_nested(graph)
        self.begun = False
        self.has_written = False  # a batch, since this scheduler has the run
        self.batch = PendingBatch()
        # What is stored in an old format is written anew with the first batch.
        self.batch.touched.add(outdated(pool.plan, opened.stored.changes))
        self.timers = StoredTimers(opened.stored.timers)
        self.jobs: dict[TaskId, tuple[Key, int]] = {}
        self.todo: deque[events.Event] = deque()
        self.due: dict[Key, events.Submit] = {}  # submitted, and without their values yet
        self.gave_up = ""  # why the run ends although it is neither completed nor stopped
        # Why it was aborted, if it was: also by somebody whom a scheduler before has heard.
        is_aborting = self.run.status == RunStatus.STOPPING and was_aborted(self.run.reason)
        self.aborted = self.run.reason if is_aborting else ""
        for task in pool.tasks.values():
            if task.is_active:
                self.jobs[self.task_id(task.key, task.submit)] = (task.key, task.submit)
        self._make_collaborators(opened, *home)

    def _make_collaborators(self, opened: OpenedRun, store: Store, clock: Clock) -> None:
        graph, options = self.graph, self.run.options
        in_force = DefinitionInForce(self.definition, self.restored)
        self.settings = EffectiveSettings(graph, options.mode, opened.stored.broadcasts)
        self.delivery.is_used = self.delivery.is_used or self.settings.has_broadcasts
        self.task_events = TaskEvents(self.pool)
        self.simulated = SimulatedJobs(in_force)
        self.run_timers = RunTimers(
            self.restored.settings.scheduler.events, options.stall_timeout_seconds
        )
        self.task_timers = TaskTimers(graph, self.settings, self.pool)
        self._submissions = Submissions(
            self.run, in_force, self.settings, self.xtriggers, self._platforms
        )
        self.values = RunValues(store, self.run.number, is_used=opened.stored.has_values)
        self.nested = NestedRuns(store, self._platforms, opened.code_trusted, opened.read_new)
        self.nested.restore(opened.stored.timers, self.pool)
        self.deferred = DeferredSubmissions(
            *(store, clock, self.restored.stages, self._submissions, self.values, self.nested)
        )
        # All that keep something of the definition take another one in this order, before the
        # core does, which may submit new tasks at once; see `_take_definition`.
        self._redefined = (
            self.settings,
            self.simulated,
            self.task_timers,
            self._submissions,
            self.deferred,
        )

    # ---- names ----

    def task_id(self, key: Key, submit: int) -> TaskId:
        """Returns the id that one submission of a task has in the queue."""
        return TaskId(f"{self.run.name}/{self.pool.plan.id_of(key)}/{submit}")

    @property
    def is_slow(self) -> bool:
        """Says whether a submission may take long, as templates or other definitions have to be
        read for it."""
        return self.deferred.source is not None or self._has_nested

    # ---- beginning ----

    def begin(self, now: Instant, *, only_ends: bool = False) -> None:
        """Starts the run, carries it on, or takes it over from a scheduler that died. With
        `only_ends` it stays stopped: nothing of it is begun, and its jobs are to be ended."""
        self.begun = True
        status = self.run.status
        self._watch_xtriggers(now)
        if self.lease.batch == 0:
            if self._restart is not None:
                self.batch.options = self._restart.options
            self._start(now)
            self.run_timers.begin(self, now)
        else:
            is_over = status in CARRY_ON_STATUSES or status == RunStatus.COMPLETED
            self._go_on(now, is_over=is_over and not only_ends)
        self.drain()

    def drop_passing_notices(self) -> None:
        """Drops notices of statuses that the run only had before its inbox was applied."""
        batch = self.batch
        passed = set(RunStatus) - {self.pool.run.status}
        gone = {one.text for one in batch.notices if one.task is None and one.event in passed}
        batch.notices = [one for one in batch.notices if one.task or one.event not in passed]
        batch.log = [
            one for one in batch.log if not isinstance(one, RunLogLine) or one.text not in gone
        ]

    def _start(self, now: Instant) -> None:
        options = self.run.options
        if options.paused:
            self.pool.run.paused = True
        if options.hold_after:
            self.pool.run.hold_after = read_point(self.graph.cycling, options.hold_after)
        tasks = select(self.pool, options.start_tasks) if options.start_tasks else ()
        self.step(events.RunStarted(now, tasks))

    def _go_on(self, now: Instant, *, is_over: bool) -> None:
        """Carries the run on with the options given anew; none, if it was only taken over."""
        restart = self._restart
        self.batch.steps += 1  # let everybody see who has it now
        if self._reads_otherwise:
            self.batch.log.append(RunLogLine("WARNING", READS_OTHERWISE))
            self.step(events.RunReloaded(self.graph, now))
        given = None
        if restart is not None:
            self.batch.options = restart.options
            if restart.given.final:
                self._take_definition(restart.restored, now)
            if restart.given.stop:
                given = restart.restored.graph.cycling.stop
        if is_over:
            self.batch.goes_on = True
            self.step(events.RunContinued(now, stop_point(self.pool, given)))
            self.run_timers.begin(self, now)
        elif given is not None:
            self.step(events.StopPointSet(given, now))
        if restart is not None and restart.given.paused:
            self.step(events.RunPaused(now))
        if restart is not None and restart.given.hold_after:
            point = read_point(self.graph.cycling, restart.given.hold_after)
            self.step(events.AllHeldAfter(point, now))

    def _watch_xtriggers(self, now: Instant) -> None:
        """Watches the xtriggers that pooled tasks wait for; timers were read from the store."""
        for task in self.pool.tasks.values():
            if task.waits and task.admitted:
                for name in task.waits:
                    if name not in TIMERS:
                        self.xtriggers.watch(task.key, name, now)

    # ---- events, and what the core wants done because of them ----

    def step(self, event: events.Event, failure: str = "ERR") -> list[events.Effect]:
        """Hands one event to the core and adds what follows to the batch.

        `failure` is the signal with which a job ended that failed.
        """
        before, event = self._before(event)
        outcome = step(self.graph, self.pool, event)
        _, touched, effects = outcome
        batch = self.batch
        batch.steps += 1
        batch.touched.add(touched)
        if touched.forgotten:
            self.past.evicted |= touched.forgotten
        # Timers, log and news come before the effects are done: those may step again.
        if self.task_timers.concerned or self.settings.has_broadcasts:
            self.task_timers.after_step(self, event, outcome)
        log, news = self.task_events.told(event, outcome, before, failure)
        batch.log += log
        batch.news += news
        if news and self.run.options.abort_if_any_task_fails:
            for one in news:
                if one.event in FAILURES:
                    self.abort(aborted_for(f"{self.pool.plan.name_of(one.key)} {one.event}"))
        for effect in effects:
            kind = type(effect)
            if kind is events.Submit:
                self._submit(effect, event.at)  # type: ignore[arg-type]
            elif kind is events.Notice:
                batch.notices.append(effect)  # type: ignore[arg-type]
            else:
                self._do(effect, event.at)
        return effects

    def _before(self, event: events.Event) -> tuple[TaskStage | None, events.Event]:
        """Returns the stage of the task of which a job reports, and what its report means: log
        and news tell how a service ended, not how its job did."""
        if type(event) is events.JobEnded or type(event) is events.OutputMade:
            task = self.pool.tasks.get(event.task)
            if task is not None:
                is_of_service = task.let_go or task.plan.definition.until
                if is_of_service and type(event) is events.JobEnded:
                    event = end_of_service(task, event)
                return task.stage, event
        return None, event

    def drain(self) -> None:
        """Steps through the events that earlier steps have queued, until none is left."""
        todo = self.todo
        while todo:
            self.step(todo.popleft())

    def abort(self, why: str) -> None:
        """Aborts the run: nothing more happens in it; jobs that are running are left to run."""
        self.aborted = self.aborted or why
        self.gave_up = self.gave_up or RunStatus.STOPPED

    def _do(self, effect: events.Effect, now: Instant) -> None:
        """Carries out an effect other than a submission or a notice."""
        match effect:
            case events.SetTimer(task, name, at):
                self.timers.set(timer_key(task, name), at)
            case events.CancelTimer(task, name):
                self.timers.cancel(timer_key(task, name))
            case events.CheckXtrigger(task, label):
                self.xtriggers.watch(task, label, now)
            case events.DropXtrigger(task, label):
                self.xtriggers.drop(task, label)
            case events.KillJob():
                self._kill(effect, now)
            case events.PollJob(task, submit):
                # The store knows how every job is. What a job wrote down is known to its files.
                for said in self.files.written_messages(
                    f"{self.pool.plan.id_of(task)}/{submit:02d}"
                ):
                    job_message(self, (task, submit), said, None, now, how="polled")
            case _:
                raise AssertionError(effect)

    def _submit(self, one: events.Submit, now: Instant) -> None:
        if self.files.trigger_log is not None:
            self.batch.triggers.append(trigger_line(self.pool, one))
        node = self.settings.node(one.task)
        # It is run as the run says; in a live run, as the node says.
        mode = self.settings.mode
        if mode is _LIVE:
            mode = node.run_mode
        is_given = mode in SIMULATED_MODES and self._is_given_lists(one.task)
        if one.submit > 1 and self.values.is_used and not is_given:
            # What an earlier run told is hidden by a later one, from its beginning.
            self.batch.values.append(self.values.heard(one.task, one.submit, one.flows, ""))
        if is_given:
            self.due[one.task] = one
        elif mode in SIMULATED_MODES:
            self.simulated.begin(self, one, mode, now)
        elif mode is _LIVE and is_nested(node):
            self.due[one.task] = one
        elif (
            mode is _LIVE
            and (
                self.values.is_used
                or self.pool.plan.graph.inputs
                or self.pool.plan.mapped
                or self.deferred.source
            )
            and self._needs_values(one.task[1])
        ):
            self.timers.cancel(timer_key(one.task, RENDERING))  # of an earlier one
            self.due[one.task] = one
        else:
            self.enqueue(self._submissions.new_task(one, node, mode), one)

    def _is_given_lists(self, key: Key) -> bool:
        """Says whether real jobs work on lists of a task that is played: then somebody has to
        give them."""
        lists = self.pool.plan.nodes[key[1]].lists
        if not lists or self.deferred.source is not None:
            return False
        return not all(may_assume(self.settings, key[0], tasks) for tasks in lists)

    def _needs_values(self, name: str) -> bool:
        """Says whether a task is to be given values of earlier ones, as far as is known."""
        graph = self.pool.plan.graph  # while a reload steps, the new one already
        stages, node = self.deferred.source, graph.nodes.get(name)
        if stages is not None:
            return stages.is_late(name)
        if graph.inputs_of(name):
            return True
        return self.values.is_used and node is not None and bool(node.arrows)

    def enqueue(self, task: NewTask, one: events.Submit) -> None:
        """Puts a task into the queue, with this batch."""
        self.batch.submissions[task.id] = task
        self.jobs[task.id] = (one.task, one.submit)

    def _kill(self, one: events.KillJob, now: Instant) -> None:
        # Whether it would be played now is another question: the mode may have changed since.
        rendering = timer_key(one.task, RENDERING)
        if timer_key(one.task, PLAYED) in self.timers:
            self.simulated.kill(self, one, now)
        elif timer_key(one.task, NESTED) in self.timers:
            self.nested.kill(self, one)
        elif self.due.pop(one.task, None) is not None or rendering in self.timers:
            self.timers.cancel(rendering)
            self.todo.append(events.JobEnded(one.task, one.submit, events.JobEnd.KILLED, now))
        else:
            self.batch.cancellations[self.task_id(one.task, one.submit)] = None

    def due_at(self, key: Key, wait: str) -> Instant | None:
        """Returns when a task's wait for a clock or its retry ends; None if that is unknown."""
        at = self.timers.at(timer_key(key, wait))
        return self.xtriggers.due_at(key, wait) if at is None else at

    # ---- settings and definitions that change ----

    def broadcast(self, rows: Sequence[requests.StoredBroadcast]) -> None:
        """Changes settings of tasks to come.

        Raises Refused if jobs would go to a platform or host that nobody has described, or
        could not be given a secret there.
        """
        placing = [one for one in rows if one.value is not None and is_placing(one)]
        if placing and self.run.options.mode == RunMode.LIVE:
            findings = Findings()
            check_places_of(self.settings.nodes_with(placing), self._platforms, findings)
            for one in findings.sorted():
                reads = "Then restart the scheduler: it reads the file when it starts"
                advice = f". {reads}" if one.code == UNKNOWN_PLATFORM else ""
                raise Refused(f"not broadcast: {one.message}; {one.hint}{advice}")
        for row in rows:
            self.settings.put(row)
            self.delivery.is_used = True
        self.batch.broadcasts += rows

    def check_places(self, graph: Graph) -> None:
        """Raises InvalidDefinition if jobs would go to a platform or host nobody described."""
        findings = Findings()
        if self.run.options.mode == RunMode.LIVE:
            check_places(graph, self._platforms, findings)
        if findings.has_errors:
            raise InvalidDefinition(self.run.workflow, findings.sorted())

    def reload(
        self, definition: StoredDefinition, restored: RestoredDefinition, now: Instant
    ) -> None:
        """Replaces the definition, and its files in the run's folder, by a reloaded one."""
        self.files.prepare(definition, anew=True)
        self.definition = definition
        self._take_definition(restored, now)

    def _take_definition(self, restored: RestoredDefinition, now: Instant) -> None:
        graph, new = restored.graph, DefinitionInForce(self.definition, restored)
        for one in self._redefined:
            one.reload(new)
        self.step(events.RunReloaded(graph, now))
        self.restored = restored
        self._own_stops.add(graph.cycling.stop)
        self.graph, self._has_nested = graph, _has_nested(graph)
        self.delivery.reload(new)
        self.xtriggers.redefine(graph, now)

    # ---- the batch ----

    def close_batch(self, now: Instant) -> requests.RunBatch:
        """Returns the batch of all that was decided since the last one, ready to be written."""
        batch, status = self.batch, self.gave_up or self.pool.run.status
        is_explained = batch.notices or status != RunStatus.RUNNING
        timers, gone = self.timers.take_changes()
        return requests.RunBatch(
            number=self.lease.batch + 1,
            at=now,
            status=str(status),
            reason=self._reason_of(status) if is_explained else "",
            changes=changes(self.pool, batch.touched),
            submissions=list(batch.submissions.values()),
            cancellations=list(batch.cancellations),
            nested=batch.nested,
            nested_commands=self.nested.pass_down(self),
            timers=timers,
            timers_gone=gone,
            outbox=self.delivery.decide(self, now) if self.delivery.is_used else (),
            ends=bool(self.gave_up) or status in OVER,
            **{name: getattr(batch, name) for name in _AS_DECIDED},
        )

    def _reason_of(self, status: str) -> str:
        """Returns why the run has this status; "" if it is running."""
        for notice in self.batch.notices:
            if notice.task is None and notice.event == status:
                troubles = self.deferred.trouble_text
                self._reason = f"{notice.text} ({troubles})" if troubles else notice.text
        run, at_stop = self.pool.run, ""
        if run.status is RunStatus.STOPPED and not run.stopping and run.stop is not None:
            text = self.graph.cycling.style.text(run.stop)
            at_stop = stopped_at(text, is_own=run.stop in self._own_stops)
        reason = self.aborted or at_stop or self._reason
        return reason if status != RunStatus.RUNNING else ""

    def written(self, now: Instant) -> None:
        """Writes logs and delivers events of a batch that was stored; begins the next one."""
        lease = self.lease  # each by name: `replace` would take four times as long
        self.lease = requests.RunLease(
            run=lease.run,
            epoch=lease.epoch,
            batch=lease.batch + 1,
            lease_seconds=lease.lease_seconds,
        )
        self.has_written = True
        if self.pool.run.horizon is not None:
            self.past.written()
        batch, self.batch = self.batch, PendingBatch()
        if self.values.is_used:
            self.values.written()
        self.files.write_log(batch.log, now)
        if batch.triggers:
            self.files.write_triggers(batch.triggers)
        if self._undelivered:  # not before the store has accepted us
            self.delivery.deliver_again(self._undelivered, self.graph, self.settings)
            self._undelivered = ()
        if self.delivery.is_used:
            self.delivery.deliver(self.lease.batch)

    async def close(self, *, is_hurried: bool = False) -> None:
        """Ends all that the run was driven with, such as xtriggers and handlers."""
        await self.xtriggers.close()
        await self.delivery.close(is_hurried=is_hurried)


def _has_nested(graph: Graph) -> bool:
    return any(is_nested(node.definition) for node in graph.nodes.values())
