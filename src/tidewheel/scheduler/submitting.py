"""From the core's wish to run a task to a task of the queue, with its job script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tidewheel.core.graph.node import RunMode
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import PRIORITY_DEFAULT, NewTask
from tidewheel.core.sched.effects import Submit
from tidewheel.core.sched.task_state import Key
from tidewheel.platforms import Platform
from tidewheel.scheduler.broadcasts import Nodes
from tidewheel.scheduler.submissions import JobFacts, JobWriter, RunFacts, XtriggerResults
from tidewheel.services.definitions.snapshot import RestoredDefinition

if TYPE_CHECKING:
    from tidewheel.formats.sip.stage_renderer import RenderedStage


class Submissions:
    """Makes the tasks of one run."""

    def __init__(
        self,
        run: RunView,
        definition: str,
        restored: RestoredDefinition,
        nodes: Nodes,
        results_for: Callable[[Key], XtriggerResults],
        platforms: Mapping[str, Platform],
    ) -> None:
        self._platforms = platforms
        self._run = run
        self._nodes = nodes
        self._results_for = results_for
        self.reload(definition, restored)

    def reload(self, definition: str, restored: RestoredDefinition) -> None:
        """`definition` is its digest."""
        cycling = restored.graph.cycling
        self._text = cycling.style.text
        self._writer = JobWriter(
            RunFacts(
                number=self._run.number,
                name=self._run.name,
                workflow=self._run.workflow,
                queue=self._run.queue,
                initial=self._text(cycling.initial),
                final="" if cycling.final is None else self._text(cycling.final),
                start="" if cycling.start is None else self._text(cycling.start),
                cycling_mode=cycling.style.calendar.value,
                utc=bool(restored.settings.scheduler.utc_mode),
                dummy=self._run.options.mode == RunMode.DUMMY,
                definition=definition,
                priority=_priority(self._run.options.priority),
            ),
            self._platforms,
        )
        self._stages = restored.stages

    def new_task(self, one: Submit) -> NewTask:
        """A task of any kind, as it is known before anything has run."""
        name = one.task[1]
        stage = None if self._stages is None else self._stages.whole(name)
        if stage is not None and stage.compose is not None and self._is_live(one):
            return self.new_stage_task(one, stage)
        return self._writer.new_task(self._nodes.node(one.task), self._facts(one))

    def new_stage_task(self, one: Submit, rendered: RenderedStage) -> NewTask:
        """A stage with all its values."""
        # They bring along all that reads SIP definitions: most runs have no stages.
        from tidewheel.formats.sip.translation import stage_scripts  # noqa: PLC0415
        from tidewheel.scheduler.container_stage import (  # noqa: PLC0415
            container_stage,
        )

        facts = self._facts(one)
        if rendered.compose is None:
            scripts = stage_scripts(one.task[1], rendered)
            return self._writer.new_task(self._nodes.node(one.task, scripts), facts)
        node = self._nodes.node(one.task)
        assert self._stages is not None
        stage = self._stages.parameters.definition.stage(node.name)
        assert stage is not None, node.name
        containers = container_stage(stage, rendered, node)
        return self._writer.new_container_task(node, facts, containers)

    def _is_live(self, one: Submit) -> bool:
        return self._nodes.mode(one.task) is RunMode.LIVE

    def _facts(self, one: Submit) -> JobFacts:
        return JobFacts(
            point=self._text(one.task[0]),
            submit=one.submit,
            try_number=one.try_number,
            flows=one.flows,
            xtriggers=self._results_for(one.task),
        )


def _priority(given: int | None) -> int:
    """Around that of all other tasks, from one below it: nothing said is 0."""
    return PRIORITY_DEFAULT + (given or 0)
