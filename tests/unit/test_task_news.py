"""How the end of a job is told to whoever watches the run."""

import pytest

from tests.kit.scenario import compile_graph
from tidewheel.core.sched import events
from tidewheel.core.sched.events import JobEnd
from tidewheel.core.sched.step import new_pool, step
from tidewheel.scheduler.pending_batch import TaskEvents

KEY = (1, "a")


def told_of(how, *, starts):
    """The event and the words of a job that ends like that."""
    graph = compile_graph("a => b")
    pool = new_pool(graph)
    step(graph, pool, events.RunStarted(0.0))
    submit = pool.tasks[KEY].submit
    if starts:
        step(graph, pool, events.OutputMade(KEY, submit, "started", 0.0))
    before, end = pool.tasks[KEY].stage, events.JobEnded(KEY, submit, how, 0.0)
    _, news = TaskEvents(pool).told(end, step(graph, pool, end), before, "ERR")
    told = next(one for one in news if one.key == KEY)
    return told.event, told.text


@pytest.mark.parametrize("how", [JobEnd.FAILED, JobEnd.NOT_STARTED])
def test_what_failed_before_it_ran_is_told_as_not_started(how):
    assert told_of(how, starts=False) == ("submission failed", "not started")


def test_what_ran_and_failed_is_told_as_failed():
    assert told_of(JobEnd.FAILED, starts=True) == ("failed", "failed")


def test_what_an_operator_killed_is_told_as_killed():
    assert told_of(JobEnd.KILLED, starts=False) == ("submission failed", "killed")
