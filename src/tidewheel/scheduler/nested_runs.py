"""Begins runs that are tasks of a run, tells them what is done to the task, reports their ends.

Theory of operation. A task with `workflow = …` has no job: each of its submissions is a run
(core/operator/nested.py). The batch that would put a job into the queue makes that run instead,
and any scheduler takes it. The nested run reports to its parent as a worker reports a job: that
it has begun, in the transaction of its first batch, and how it ended, in that of its last. So
the parent hears of it exactly as it hears of jobs, whoever dies in between, and the pool of the
parent need not know what it is.

A timer of the parent marks each such task: at its time the limit of the task is over, which is
never if it has none. The mark survives restarts and reloads that make something else of the
task.

What goes down goes with the batch that decided it, as a command to the nested run: killing the
task aborts the run, and while the parent is paused or the task is held the run is paused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from tidewheel.core.graph.checks.names import is_folder
from tidewheel.core.graph.definition import NodeDef
from tidewheel.core.graph.findings import Findings, InvalidDefinition, Severity
from tidewheel.core.graph.graph import PARAMETER_VARIABLES
from tidewheel.core.operator import nested, verbs
from tidewheel.core.operator.definition import (
    JobName,
    NewRun,
    RunOptions,
    StoredDefinition,
    is_run_name,
    with_effect,
)
from tidewheel.core.operator.requests import (
    NEVER,
    NestedCommand,
    ParentReport,
    RunBatch,
    RunTimer,
    StoredValues,
    TimerKey,
)
from tidewheel.core.operator.run_log import RunLogLine
from tidewheel.core.operator.task_inputs import RunInputs, files_text
from tidewheel.core.operator.views import ABORTED_BY, RunView, Undone, undone_in
from tidewheel.core.queue.access import covers, workflow_name
from tidewheel.core.queue.requests import PAGE_COUNT_MAX
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant
from tidewheel.core.queue.values import VALUES_BYTES_MAX
from tidewheel.core.sched.events import KillJob, Submit
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.platforms import Platform
from tidewheel.ports.store import Store
from tidewheel.quantities import show_duration
from tidewheel.scheduler.placement import check_places
from tidewheel.scheduler.timers import timer_key
from tidewheel.services.service import ReadsDefinitions

if TYPE_CHECKING:
    from tidewheel.core.graph.graph import Graph
    from tidewheel.core.operator.registry import RunRequest
    from tidewheel.scheduler.pending_batch import PendingBatch
    from tidewheel.scheduler.run_driver import OnBatch
    from tidewheel.scheduler.run_engine import RunEngine

NESTED = "nested run"  # the timer of a task that is a run
FINDINGS_TOLD_MAX = 3
NOTHING_GIVEN = RunOptions(mode="")


@dataclass(slots=True)
class NestedRuns:
    """Holds which tasks of one run are runs now, and whether those were told to pause."""

    store: Store
    platforms: Mapping[str, Platform]
    code_trusted: bool  # code of definitions runs in this process, if their owner gave them
    read: ReadsDefinitions
    _paused: dict[Key, bool] = field(default_factory=dict)
    _heard: str = ""  # what a run said with this batch that is a task

    def restore(self, timers: Iterable[RunTimer], pool: TaskPool) -> None:
        """Takes up the nested runs that the store knows, as they were told last."""
        for one in timers:
            if one.timer == NESTED and one.point is not None:
                key = (one.point, one.name)
                self._paused[key] = _is_to_pause(pool, key)

    # ---- beginning ----

    async def new_run(
        self, engine: RunEngine, one: Submit, given: RunInputs, now: Instant
    ) -> NewRun:
        """Returns the run that is this submission; its definition is stored by then.

        Raises Refused if there can be none: no such workflow, one with mistakes, or too deep.
        """
        # Most runs have no such tasks.
        from tidewheel.core.operator.registry import (  # noqa: PLC0415 - seldom used
            RunRequest,
            split_reference,
        )

        run = await self.store.run(engine.run.number)  # what it sees may be less by now
        text = engine.graph.cycling.style.text
        job = JobName(run.name, text(one.task[0]), one.task[1], one.submit)
        name = nested.nested_run_name(job)
        if not is_run_name(name):
            raise Refused(f"its run would be called {name}, which is too long for a name")
        await self._check_bounds(run, len(engine.batch.nested))
        workflow, version = split_reference(engine.settings.node(one.task).workflow)
        asked = RunRequest(
            workflow=workflow,
            version=version,
            parameters=dict(given.parameters),
            name=name,
            options=RunOptions(
                now=float(now),
                compat=run.options.compat,
                job_commands=run.options.job_commands,
                priority=run.options.priority,
                files=files_text(run.name, given.files),
            ),
            queue=run.queue,  # whoever works for the parent works for it
            sees=run.sees,
            code_trusted=self.code_trusted and engine.definition.is_trusted,
        )
        try:
            new, definition = await self._requested(engine, asked, job)
        except InvalidDefinition as invalid:
            raise Refused(_words(invalid)) from None
        await self.store.save_definition(definition)
        return replace(new, parent=run.number, given=NOTHING_GIVEN)

    async def _check_bounds(self, run: RunView, begun: int) -> None:
        """Raises Refused if no more runs may be begun in this one, or in those around it; so
        many are begun with this batch."""
        depth, outermost = 0, run
        while outermost.parent is not None:
            depth, outermost = depth + 1, await self.store.run(outermost.parent)
        if depth >= nested.DEPTH_MAX:
            raise Refused(
                f"runs would be nested {nested.DEPTH_MAX + 1} levels deep; at most "
                f"{nested.DEPTH_MAX} levels are accepted. Does a workflow run itself?"
            )
        if await self.store.nested_count(outermost.name) + begun >= nested.OPEN_MAX:
            raise Refused(
                f"{nested.OPEN_MAX} runs are open in {outermost.name} already; limit how many "
                "of its tasks are active at once ([[queues]]), then trigger this task"
            )

    async def _requested(
        self, engine: RunEngine, asked: RunRequest, job: JobName
    ) -> tuple[NewRun, StoredDefinition]:
        from tidewheel.services.registry.service import (  # noqa: PLC0415 - reads YAML
            found_workflow,
            request_run,
            request_run_of,
        )

        check, findings = partial(_check, self.platforms), Findings()
        if is_folder(asked.workflow):
            kept = nested.folder_definition(engine.definition, asked.workflow, FLOW_FILE)
            asked = _with_point(kept, replace(asked, workflow=kept.workflow), job)
            new, definition = await request_run_of(kept, asked, findings, self.read, check)
            below = kept.workflow.removeprefix(f"{engine.definition.workflow}/")
            above = engine.run.folder  # "" if nobody knows where the definition came from
            return replace(new, folder=f"{above}/{below}" if above else ""), definition
        if asked.sees is not None and not covers(asked.sees, workflow_name(asked.workflow)):
            # As if it were not there: nobody is told what others have.
            raise Refused(
                f"there is no registered workflow {asked.workflow!r} that this run may use; "
                f"it may use names that match {', '.join(asked.sees) or 'nothing'}"
            )
        view = await found_workflow(self.store, asked.workflow, asked.version, sees=asked.sees)
        kept = await self.store.definition(view.definition)
        asked = replace(asked, options=with_effect(kept.kind, asked.options))
        asked = _with_point(kept, asked, job)
        return await request_run(self.store, asked, findings, self.read, check)

    def begin(self, engine: RunEngine, one: Submit, new: NewRun, now: Instant) -> None:
        """Makes the run of a submission, with this batch."""
        engine.batch.nested.append(new)
        engine.jobs[engine.task_id(one.task, one.submit)] = (one.task, one.submit)
        limit = engine.settings.node(one.task).time_limit_seconds
        at = Instant(now + limit) if limit else NEVER
        engine.timers.set(timer_key(one.task, NESTED), at)
        self._paused[one.task] = False

    # ---- what goes down ----

    def kill(self, engine: RunEngine, one: KillJob) -> None:
        """Aborts the run of a task that is killed; its end is reported when it has ended."""
        task = engine.pool.plan.name_of(one.task)
        self._paused.pop(one.task, None)
        why = f"{ABORTED_BY}{engine.run.name}, which killed {task}"
        self._stop(engine, one.task, one.submit, why)

    def time_is_over(self, engine: RunEngine, timer: TimerKey) -> None:
        """Stops the run of a task that has taken longer than its limit."""
        assert timer.point is not None
        key = (timer.point, timer.name)
        task = engine.pool.tasks.get(key)
        if task is None or not task.is_active:
            return
        engine.timers.set(timer_key(key, NESTED), NEVER)  # it is still one
        limit = engine.settings.node(key).time_limit_seconds or 0.0
        name = engine.pool.plan.name_of(key)
        why = f"stopped: it ran longer than the limit of {name}, {show_duration(limit)}"
        self._stop(engine, key, task.submit, why)
        engine.batch.steps += 1

    def _stop(self, engine: RunEngine, key: Key, submit: int, why: str) -> None:
        self._tell(engine, key, submit, verbs.Stop(mode="kill", reason=why))

    def _tell(self, engine: RunEngine, key: Key, submit: int, command: verbs.Command) -> None:
        text = engine.pool.plan.name_of(key)
        name = f"{engine.run.name}/{text}/{submit:02d}"
        engine.batch.nested_commands.append(NestedCommand(name, verbs.command_text(command)))

    def pass_down(self, engine: RunEngine) -> Sequence[NestedCommand]:
        """Returns all that nested runs are told with this batch, who are to pause or to go on
        among them."""
        for key, was in self._paused.items():
            task = engine.pool.tasks.get(key)
            paused = _is_to_pause(engine.pool, key)
            if paused != was and task is not None:
                self._paused[key] = paused
                command = verbs.Pause() if paused else verbs.Resume()
                self._tell(engine, key, task.submit, command)
        return engine.batch.nested_commands

    def over(self, engine: RunEngine, key: Key) -> None:
        """Forgets a run that has ended."""
        if engine.timers.cancel(timer_key(key, NESTED)):
            self._paused.pop(key, None)

    # ---- what goes up ----

    def hear(self, key: Key, text: str) -> None:
        """Keeps what a run says that is a task: that it is stalled, which somebody who looks at
        the outermost run wants to know, too."""
        if key in self._paused:
            self._heard = text

    async def report(self, engine: RunEngine, batch: RunBatch, was: str) -> ParentReport | None:
        """Returns what this batch tells the run of which this one is a task, if it is one. Its
        status ``was`` this before."""
        run, status = engine.run, batch.status
        is_stuck = status == RunStatus.STALLED and status != was
        heard, self._heard = self._heard, ""
        if run.parent is None or not (batch.ends or batch.number == 1 or is_stuck or heard):
            return None
        report = ended_report(run, status, batch.reason)
        if not batch.ends:
            said = f"WARNING:{report.error}" if is_stuck and batch.number > 1 else heard
            return report._replace(status=None, error=None, said=said)
        if report.status is not Status.SUCCEEDED:
            return report
        try:
            return report._replace(values=await self._values(engine))
        except Refused as refused:
            engine.batch.log.append(RunLogLine("WARNING", str(refused)))
            return report._replace(error=str(refused))

    async def undone(self, engine: RunEngine) -> Undone:
        """Returns how many tasks were not done in the runs that tasks of a run were last."""
        last: dict[tuple[str, str], Undone] = {}
        before: int | None = None
        nodes = engine.pool.plan.nodes.values()
        while any(is_nested(node.definition) for node in nodes):
            number = engine.run.number
            page = await self.store.runs(parent=number, before=before, count=PAGE_COUNT_MAX)
            for run in page:  # the newest first
                job = nested.submission_of(run.name)
                last.setdefault((job.point, job.node), undone_in(run.reason))
            if len(page) < PAGE_COUNT_MAX:
                break
            before = page[-1].number
        return sum(last.values(), Undone())

    async def _values(self, engine: RunEngine) -> str | None:
        """Returns the values of the run's tasks by name, those of this batch included."""
        if not engine.values.is_used:
            return None
        number = engine.run.number
        sizes = await self.store.last_values(number)
        if sum(size for *_, size in sizes) > VALUES_BYTES_MAX:
            raise nested.too_many_values()
        rows: list[StoredValues] = []
        if sizes:
            keys = [(point, name) for point, name, _ in sizes]
            rows += await self.store.run_values(number, keys)
        return nested.values_text(nested.newest_values([*rows, *engine.batch.values]))


def ended_report(run: RunView, status: str, reason: str) -> ParentReport:
    """Returns what a run with this status, which it has when it is let go, tells its parent."""
    assert run.parent is not None
    how, why = nested.nested_end(run.name, status, reason)
    undone = undone_in(reason).text
    said = f"WARNING:its run {run.name} completed with {undone}" if undone else ""
    task = nested.submission_of(run.name).task_id
    return ParentReport(run.parent, task, how, why, said=said)


def is_nested(node: NodeDef) -> bool:
    """Says whether submissions of a node are runs of another workflow."""
    return bool(node.workflow)


def _is_to_pause(pool: TaskPool, key: Key) -> bool:
    task = pool.tasks.get(key)
    return pool.run.paused or (task is not None and task.held)


def _with_point(kept: StoredDefinition, asked: RunRequest, job: JobName) -> RunRequest:
    """Returns the request with the point of the task, and with the element that it is for, if
    the definition asks for them. Others are stored once, whatever those are."""
    given = {nested.POINT_VARIABLE: job.point, **asked.parameters}
    implied = {name for name in given if name.startswith(PARAMETER_VARIABLES)}
    implied.add(nested.POINT_VARIABLE)
    used = {name for name in implied if any(name.encode() in one.content for one in kept.files)}
    kept_ones = {name: one for name, one in given.items() if name not in implied - used}
    return replace(asked, parameters=kept_ones)


def _check(
    platforms: Mapping[str, Platform], _: RunOptions, graph: Graph, findings: Findings
) -> None:
    check_places(graph, platforms, findings)


def _words(invalid: InvalidDefinition) -> str:
    errors = [one for one in invalid.findings if one.severity is Severity.ERROR]
    told = [f"{one.message}; {one.hint}" for one in errors[:FINDINGS_TOLD_MAX]]
    return "; ".join(told)


def waking_for_nested(wake: Callable[[], None], on_batch: OnBatch | None) -> OnBatch:
    """Returns what is done with each batch of a run: ``wake`` a service that takes the runs
    which it begins, at once instead of with the next look, and tell ``on_batch``."""

    def heard(engine: RunEngine, batch: PendingBatch) -> None:
        if batch.nested:
            wake()
        if on_batch is not None:
            on_batch(engine, batch)

    return heard
