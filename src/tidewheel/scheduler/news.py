"""What a step means for whoever follows single tasks: handlers, mail, a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.core.graph.outputs import STARTED, SUBMITTED, SUCCEEDED
from tidewheel.core.sched.effects import Notice
from tidewheel.core.sched.events import Event, JobEnd, JobEnded, JobSubmitted, OutputMade
from tidewheel.core.sched.step import Outcome
from tidewheel.core.sched.task_state import JobPhase
from tidewheel.scheduler.pending_batch import News

FAILED = "failed"
SUBMISSION_FAILED = "submission failed"
FAILURES = (FAILED, SUBMISSION_FAILED)
RETRY = "retry"
SUBMISSION_RETRY = "submission retry"
# The outputs of a job on its way, and the stages of a task that has not made them.
_BEFORE = (
    (SUBMITTED, (JobPhase.PREPARING,)),
    (STARTED, (JobPhase.PREPARING, JobPhase.SUBMITTED)),
)
# Notices of the core that are events of a task under the same name.
_NOTICES = ("expired", "blocked", "lost")


def news_of(event: Event, outcome: Outcome, before: JobPhase | None) -> Iterator[News]:
    """The events of tasks that this step was; a report that came too late was none.

    `before` is the stage that the task had: what its job went through unheard happened, too.
    """
    if isinstance(event, JobEnded):
        if event.task in outcome.touched.tasks:
            if event.how is JobEnd.SUCCEEDED:
                yield from _unheard(event, before, (SUBMITTED, STARTED))
            yield _end(event, outcome, was_running=before is JobPhase.RUNNING)
    elif isinstance(event, OutputMade):
        if event.task in outcome.touched.tasks:
            if event.output == STARTED:
                yield from _unheard(event, before, (SUBMITTED,))
            yield News(event.output, event.task, event.submit)
    elif isinstance(event, JobSubmitted):
        yield News(SUBMITTED, event.task, event.submit)
    for effect in outcome.effects:
        if isinstance(effect, Notice) and effect.event in _NOTICES and effect.task is not None:
            yield News(effect.event, effect.task, 0, effect.text)


def _unheard(
    event: JobEnded | OutputMade, before: JobPhase | None, implied: tuple[str, ...]
) -> Iterator[News]:
    """Those of the implied outputs that a task of this stage had not made."""
    for output, stages in _BEFORE:
        if output in implied and before in stages:
            yield News(output, event.task, event.submit)


def _end(event: JobEnded, outcome: Outcome, *, was_running: bool) -> News:
    key, submit = event.task, event.submit
    if event.how is JobEnd.SUCCEEDED:
        return News(SUCCEEDED, key, submit)
    failed = was_running and event.how is not JobEnd.NOT_STARTED
    for effect in outcome.effects:
        if isinstance(effect, Notice) and effect.event == "retry" and effect.task == key:
            return News(RETRY if failed else SUBMISSION_RETRY, key, submit, effect.text)
    # What failed before it ran, as a stage that may not be run, was never started.
    how = event.how if failed or event.how is JobEnd.KILLED else JobEnd.NOT_STARTED
    return News(FAILED if failed else SUBMISSION_FAILED, key, submit, event.why or str(how))
