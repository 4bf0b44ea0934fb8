"""Submits tasks that are given values of earlier ones, when they are due.

Theory of operation. A task whose parents may have returned values, or a stage of a SIP run
whose parameters are outputs of earlier stages, is put aside when the core submits it. In the
same pass, before the batch is written, the values are read from the store, and the script is
written with them; the files of a stage are rendered, in a thread. What comes out is a
submission of that batch; if it cannot be done, so is the failure to submit. Nothing is decided
outside of the batch: a scheduler that takes the run over in the middle does the same again,
with the same values.

Many slow templates would keep the run from hearing commands, so after a moment the rest is put
off to the next pass by timers of that batch: they are in the store as everything else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from tidewheel.core.graph.findings import NOWHERE, Findings, Severity
from tidewheel.core.operator.requests import TimerKey
from tidewheel.core.operator.task_inputs import parents_of, sizes_given, sizes_in
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.elements import has_told
from tidewheel.core.sched.events import JobEnd, JobEnded, OutputMade, Submit
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import JobPhase, Key
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.clock import Clock
from tidewheel.ports.store import Store
from tidewheel.scheduler.inbox import tell_failure
from tidewheel.scheduler.nested_runs import NestedRuns, is_nested
from tidewheel.scheduler.run_values import RunValues
from tidewheel.scheduler.simulated_jobs import SIMULATED_MODES
from tidewheel.scheduler.submissions import DefinitionInForce, Submissions
from tidewheel.scheduler.timers import timer_key

if TYPE_CHECKING:
    from tidewheel.formats.sip.parameters import Values
    from tidewheel.formats.sip.stage_renderer import RenderedStage
    from tidewheel.scheduler.run_engine import RunEngine
    from tidewheel.services.definitions.sip import StageSource

RENDERING = "late-rendering"  # the timer of a stage that is rendered in a later pass
SUBMISSIONS_MAX = 100  # of one stage, the last ones: among them is the one whose values count
ERRORS_TOLD_MAX = 3
PASS_SECONDS_MAX = 1.0  # without a look at what has happened meanwhile
FIRST_MADE = 8  # each further round has twice as many: one process makes all of a round

# By stage: what it executes, or why it cannot be rendered.
Made = dict[str, "RenderedStage | str"]


@dataclass(slots=True)
class DeferredSubmissions:
    """Submits what one run has put aside; without a source, as in all but SIP definitions,
    there are no stages among it."""

    store: Store
    clock: Clock
    source: StageSource | None
    submissions: Submissions
    values: RunValues
    nested: NestedRuns
    troubles: dict[Key, str] = field(default_factory=dict)  # why a last submission failed

    def reload(self, new: DefinitionInForce) -> None:
        """Replaces the definition by one that was reloaded."""
        self.source = new.restored.stages

    @property
    def trouble_text(self) -> str:
        """Returns why stages could not be rendered, of the first few; "" if all could."""
        told = list(self.troubles.values())
        more = len(told) - ERRORS_TOLD_MAX
        last = [f"and {more} more"] if more > 0 else []
        return "; ".join(told[:ERRORS_TOLD_MAX] + last)

    async def submit(self, engine: RunEngine, now: Instant) -> None:
        """Submits what is due, and what comes due when one of it fails.

        If rendering stages takes long, the rest is put off to the next pass.
        """
        while engine.due and self.source is None:
            due, engine.due = engine.due, {}
            await self._submit_tasks(engine, due, now)
            engine.drain()
        end_at, count = self.clock.monotonic() + PASS_SECONDS_MAX, FIRST_MADE
        while engine.due:
            if count > FIRST_MADE and self.clock.monotonic() > end_at:
                for key in engine.due:
                    engine.timers.set(timer_key(key, RENDERING), now)
                engine.due = {}
                return
            due = dict(islice(engine.due.items(), count))
            engine.due = {key: one for key, one in engine.due.items() if key not in due}
            count *= 2
            assert self.source is not None, due
            stages = sorted({key[1] for key in due})
            values = await self._values(engine, stages)
            made = await asyncio.to_thread(_made, self.source, values)
            for one in due.values():
                found = made[one.task[1]]
                if isinstance(found, str):
                    self.troubles[one.task] = found
                    _cannot(engine, one, found, now)
                else:
                    self.troubles.pop(one.task, None)
                    engine.enqueue(self.submissions.new_stage_task(one, found), one)
            engine.drain()

    async def _submit_tasks(
        self, engine: RunEngine, due: Mapping[Key, Submit], now: Instant
    ) -> None:
        """Submits tasks with the values of their parents."""
        pool, graph = engine.pool, engine.graph
        sizes = {one.flows: sizes_in(pool, one.flows) for one in due.values()}
        wanted = {
            parent
            for key, one in due.items()
            for parent in parents_of(graph, key, sizes[one.flows])
        }
        await self.values.fetch(wanted, one_flow=pool.run.flows_made <= 1)
        if pool.plan.mapped:  # of a list that was returned again the first counts, too
            again = [one for one in wanted if _was_listed_again(pool, one)]
            await self.values.fetch(again, one_flow=False)
        for key, one in due.items():
            if engine.settings.node(key).run_mode in SIMULATED_MODES:
                await self._play(engine, one, now)
                continue
            try:
                if is_nested(engine.settings.node(key)):
                    given = self.values.run_inputs(pool, key, one.flows, sizes[one.flows])
                    new = await self.nested.new_run(engine, one, given, now)
                    self.nested.begin(engine, one, new, now)
                    self.troubles.pop(key, None)
                    continue
                inputs = self.values.inputs(pool, key, one.flows, sizes[one.flows])
            except Refused as refused:
                self.troubles[key] = f"{pool.plan.name_of(key)}: {refused}"
                _cannot(engine, one, str(refused), now)
                continue
            self.troubles.pop(key, None)
            node = engine.settings.node(key)
            task = self.submissions.new_task(one, node, node.run_mode, inputs)
            engine.enqueue(task, one)

    async def _play(self, engine: RunEngine, one: Submit, now: Instant) -> None:
        """Plays a task on whose lists real jobs work, with the lists that it returned earlier
        or that somebody has set; without them it cannot be done."""
        key, pool = one.task, engine.pool
        await self.values.fetch([key], one_flow=False)
        row, name = self.values.of(key, one.flows), pool.plan.name_of(key)
        mode, task = engine.settings.node(key).run_mode, pool.tasks[key]
        lists = [tasks for tasks in task.plan.lists if not has_told(tasks, task)]
        try:
            sizes = sizes_given(name, lists, row)
        except Refused as refused:
            self.troubles[key] = f"{name} is not run (run mode {mode}): {refused}"
            _cannot(engine, one, self.troubles[key], now)
            return
        self.troubles.pop(key, None)
        for output in sizes:
            engine.todo.append(OutputMade(key, one.submit, output, now))
        engine.simulated.begin(engine, one, mode, now)

    def take_up(self, engine: RunEngine, timer: TimerKey, now: Instant) -> None:
        """Makes a stage due that was put off until now, unless it was killed or removed."""
        assert timer.point is not None
        key = (timer.point, timer.name)
        task = engine.pool.tasks.get(key)
        if task is None or task.stage is not JobPhase.PREPARING:
            return
        one = Submit(key, task.submit, task.try_number, task.flows)
        if timer.name in engine.graph.nodes:
            engine.due[key] = one
        else:
            _cannot(engine, one, f"stage {timer.name} is not in the definition any more", now)

    async def _values(
        self, engine: RunEngine, stages: Sequence[str]
    ) -> dict[str, Mapping[str, Values]]:
        """Returns, for each of these stages, the values that the stages before it have left."""
        assert self.source is not None
        definition = self.source.parameters.definition
        before = {stage: tuple(definition.upstream(stage)) for stage in stages}
        earlier = dict.fromkeys(name for names in before.values() for name in names)
        ids = {name: _task_ids(engine, name) for name in earlier}
        wanted = [task_id for some in ids.values() for task_id in some]
        texts = await self.store.values_of(wanted) if wanted else {}
        newest: dict[str, Values] = {}
        for name, some in ids.items():
            left = next((texts[one] for one in some if one in texts), None)
            if left is not None:
                newest[name] = json.loads(left)
        return {
            stage: {name: newest[name] for name in names if name in newest}
            for stage, names in before.items()
        }


def _task_ids(engine: RunEngine, stage: str) -> list[TaskId]:
    """Returns the task ids of a stage's submissions, the newest first."""
    point = engine.graph.cycling.initial
    memory = engine.pool.recall(point, stage)
    last = 0 if memory is None else memory.submits
    first = max(1, last - SUBMISSIONS_MAX + 1)
    return [engine.task_id((point, stage), number) for number in range(last, first - 1, -1)]


def _was_listed_again(pool: TaskPool, key: Key) -> bool:
    """Says whether a task of whose lists others are made has been submitted more than once."""
    node, memory = pool.plan.nodes.get(key[1]), pool.recall(*key)
    if node is None or not node.lists or memory is None:
        return False
    return memory.submits > 1 or key in pool.tasks


def _cannot(engine: RunEngine, one: Submit, why: str, now: Instant) -> None:
    tell_failure(engine, one.task, one.submit, why)
    told = f"{JobEnd.NOT_STARTED}: {why}"
    engine.step(JobEnded(one.task, one.submit, JobEnd.NOT_STARTED, now, why=told))


def _made(source: StageSource, values: Mapping[str, Mapping[str, Values]]) -> Made:
    """Renders stages; those that are given the same values are rendered together. The reason is
    that a process costs more than the rendering does."""
    groups: list[tuple[Mapping[str, Values], list[str]]] = []
    for stage, known in values.items():
        same = next((names for other, names in groups if other == known), None)
        if same is None:
            groups.append((known, [stage]))
        else:
            same.append(stage)
    made: Made = {}
    for known, names in groups:
        made |= _rendered(source, names, known)
    return made


def _rendered(source: StageSource, names: Sequence[str], known: Mapping[str, Values]) -> Made:
    from tidewheel.formats.sip.validation import render_stages  # noqa: PLC0415 - reads YAML

    findings = Findings()
    found = render_stages(source.parameters, names, source.request, known, findings)
    if found is not None:
        return dict(found)
    if len(names) == 1:
        return {names[0]: _words(findings)}
    # One of them is wrong; the others need not suffer for it.
    return {name: _rendered(source, (name,), known)[name] for name in names}


def _words(findings: Findings) -> str:
    errors = [one for one in findings.sorted() if one.severity is Severity.ERROR]
    told = [
        one.message if one.position == NOWHERE else f"{one.position}: {one.message}"
        for one in errors[:ERRORS_TOLD_MAX]
    ]
    return "; ".join(told)
