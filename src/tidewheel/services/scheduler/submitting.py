"""From the core's wish to run a task to a task of the queue, with its job script."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidewheel.core.graph.node import RunMode
from tidewheel.core.runs.views import RunView
from tidewheel.core.sched.effects import Submit
from tidewheel.core.sched.states import Key
from tidewheel.core.tasks.task import NewTask
from tidewheel.platforms import Platform
from tidewheel.services.definitions import RestoredDefinition
from tidewheel.services.scheduler.job_task import JobFacts, JobWriter, RunFacts, XtriggerResults
from tidewheel.services.scheduler.nodes import Nodes


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
            ),
            self._platforms,
        )

    def new_task(self, one: Submit) -> NewTask:
        return self._writer.new_task(
            self._nodes.node(one.task),
            JobFacts(
                point=self._text(one.task[0]),
                submit=one.submit,
                try_number=one.try_number,
                flows=one.flows,
                xtriggers=self._results_for(one.task),
            ),
        )
