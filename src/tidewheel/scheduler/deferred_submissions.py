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
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from tidewheel.core.graph.findings import NOWHERE, Findings, Severity
from tidewheel.core.operator.requests import TimerKey
from tidewheel.core.operator.task_inputs import parents_of, sizes_given, sizes_in
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.elements import has_told
from tidewheel.core.sched.events import JobEnd, JobEnded, OutputMade, Submit
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
    from tidewheel.scheduler.stage_inputs import DueStage
    from tidewheel.services.definitions.sip import StageSource

RENDERING = "late-rendering"  # the timer of a stage that is rendered in a later pass
ERRORS_TOLD_MAX = 3
PASS_SECONDS_MAX = 1.0  # without a look at what has happened meanwhile
FIRST_MADE = 8  # each further round has twice as many: one process makes all of a round
MADE_MAX = 256

# By task: what it executes, or why it cannot be rendered.
Made = dict[Key, "RenderedStage | str"]


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
        if self.source is not None:
            await self._submit_stages(engine, self.source, now)

    async def _submit_stages(
        self, engine: RunEngine, source: StageSource, now: Instant
    ) -> None:
        # This import brings along all that reads SIP definitions: most runs have no stages.
        from tidewheel.scheduler.stage_inputs import StageInputs  # noqa: PLC0415

        end_at, count = self.clock.monotonic() + PASS_SECONDS_MAX, FIRST_MADE
        while engine.due:
            if count > FIRST_MADE and self.clock.monotonic() > end_at:
                for key in engine.due:
                    engine.timers.set(timer_key(key, RENDERING), now)
                engine.due = {}
                return
            due = dict(islice(engine.due.items(), count))
            engine.due = {key: one for key, one in engine.due.items() if key not in due}
            count = min(2 * count, MADE_MAX)
            wanted = await StageInputs(engine, source).of(due.values())
            made = await asyncio.to_thread(_made, source, wanted)
            for one in due.values():
                found = made[one.task]
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
        await self.values.fetch_for(pool, wanted)
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
            _cannot(engine, one, f"stage {timer.name} is no longer in the definition", now)


def _cannot(engine: RunEngine, one: Submit, why: str, now: Instant) -> None:
    tell_failure(engine, one.task, one.submit, why)
    told = f"{JobEnd.NOT_STARTED}: {why}"
    engine.step(JobEnded(one.task, one.submit, JobEnd.NOT_STARTED, now, why=told))


def _made(source: StageSource, wanted: Sequence[DueStage]) -> Made:
    """Renders stages; those that are given the same values are rendered together. The reason is
    that a process costs more than the rendering does."""
    groups: list[tuple[Mapping[str, Values], list[DueStage]]] = []
    made: Made = {}
    for one in wanted:
        if isinstance(one.part, str):
            made[one.task] = one.part
            continue
        same = next((some for other, some in groups if other == one.known), None)
        if same is None:
            groups.append((one.known, [one]))
        else:
            same.append(one)
    for known, some in groups:
        made |= _rendered(source, some, known)
    return made


def _rendered(
    source: StageSource, wanted: Sequence[DueStage], known: Mapping[str, Values]
) -> Made:
    from tidewheel.formats.sip.validation import render_stages  # noqa: PLC0415 - reads YAML

    findings = Findings()
    parts = {one.task: one.part for one in wanted if not isinstance(one.part, str)}
    found = render_stages(source.parameters, parts.values(), source.request, known, findings)
    if found is not None:
        return {task: found[part.name] for task, part in parts.items()}
    if len(wanted) == 1:
        return {wanted[0].task: _words(findings)}
    # One of them is wrong; the others need not suffer for it.
    half = len(wanted) // 2
    return _rendered(source, wanted[:half], known) | _rendered(source, wanted[half:], known)


def _words(findings: Findings) -> str:
    errors = [one for one in findings.sorted() if one.severity is Severity.ERROR]
    told = [
        ("" if one.position == NOWHERE else f"{one.position}: ")
        + (f"{one.message} ({one.hint})" if one.hint else one.message)
        for one in errors[:ERRORS_TOLD_MAX]
    ]
    return "; ".join(told)
