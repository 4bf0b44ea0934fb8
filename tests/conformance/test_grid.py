"""What the grid of runs and points is made of is counted by the store, the same by each."""

import pytest

from tests.conformance.run_steps import (
    OTHER_PROCESS,
    Driver,
    claim_run,
    make_run,
    memory,
    task_row,
)
from tidewheel.core.cycling.calendar import Calendar, Point
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.operator.requests import NEVER, RunTimer
from tidewheel.core.operator.views import TasksDue
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.persistence import DropTask, ForgetMemory, PutMemory, PutRun, PutTask
from tidewheel.core.sched.pool import RunState
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
    AtomValue,
    JobPhase,
    Verdict,
    VerdictKind,
)
from tidewheel.views.status_text import row_words

STYLE = PointStyle(calendar=Calendar.GREGORIAN)


def ended(name, point, how="succeeded", submits=1):
    """What is remembered of a task that has finished so."""
    verdict = Verdict(VerdictKind.FINISHED, AtomValue.NOT_TAKEN, how)
    return PutMemory(
        (Point(point), name), FIRST_FLOW, ((how, FIRST_FLOW),), ((1, verdict),), submits
    )


def lost(name, point):
    cause = (Point(point), "a", "succeeded")
    verdict = Verdict(VerdictKind.PRUNED, AtomValue.LOST, "", cause)
    return PutMemory((Point(point), name), FIRST_FLOW, (), ((1, verdict),), 0)


def names(store):
    return [one.name for one in store.grid_runs()]


def cells(store, *drivers, **asked):
    """How many tasks are in which state, by run and point."""
    found = {}
    for one in store.grid_tasks([driver.run.number for driver in drivers], **asked):
        state = row_words(one.pooled, one.memory).state
        there = found.setdefault((one.run, one.point), {})
        there[state] = there.get(state, 0) + one.tasks
    return found


def test_a_grid_has_the_newest_run_of_each_workflow_and_all_that_are_open(store):
    old, stalled, newest = (Driver.of(store, "tide") for _ in range(3))
    other = Driver.of(store, "wave")
    old.write(status="completed", ends=True)
    stalled.write(status="stalled")
    newest.write(status="completed", ends=True)
    other.write(status="running")
    made = make_run(store, "calm")
    assert names(store) == ["tide/run2", "wave/run1", made.name, "tide/run3"]
    stalled.write(status="stopped", ends=True)
    assert names(store) == ["wave/run1", made.name, "tide/run3"]


def test_a_run_that_is_deleted_or_a_task_of_another_is_in_no_grid(store):
    parent, gone = Driver.of(store, "tide"), make_run(store, "gone")
    parent.write(status="running")
    make_run(store, "child", name=f"{parent.run.name}/1/a/1", parent=parent.run.number)
    store.delete_run(gone.number)
    assert names(store) == [parent.run.name]
    assert store.grid_facts([gone.number]) == []


def test_tasks_that_stand_alike_are_counted_by_run_and_point(store):
    driver, other = Driver.of(store), Driver.of(store)
    waiting = [PutTask(task_row(name, 2)) for name in ("x", "y", "z")]
    ready = task_row("r", 2, missing=False, released=True)
    failed = [
        PutTask(task_row(name, 1, stage=JobPhase.INCOMPLETE, submit=1, ended="failed"))
        for name in ("f2", "f1")
    ]
    driver.write(
        changes=[
            *waiting,
            PutTask(ready),
            *failed,
            *(ended(name, 1) for name in ("s1", "s2", "s3")),
            ended("e", 1, "expired", 0),
            lost("l", 1),
            memory("asked for", 1),  # only because a child asked for it
        ]
    )
    driver.submit("a")  # is remembered and in the pool: counted once
    other.write(changes=[PutTask(task_row("a", 7))])
    number = driver.run.number
    assert cells(store, driver, other) == {
        (number, 1): {"preparing": 1, "future": 1}
        | {"failed": 2, "succeeded": 3, "expired": 1, "lost": 1},
        (number, 2): {"waiting": 3, "ready": 1},
        (other.run.number, 7): {"waiting": 1},
    }
    found = store.grid_tasks([number])
    assert {one.first for one in found if one.pooled and one.pooled.ended} == {"f1"}


def test_what_a_run_has_forgotten_is_counted_as_well(store):
    driver = Driver.of(store)
    driver.write(changes=[PutTask(task_row("a"))])
    driver.write(changes=[DropTask((Point(1), "a")), ended("a", 1)])
    driver.write(changes=[ForgetMemory(ended("a", 1))])
    assert cells(store, driver) == {(driver.run.number, 1): {"succeeded": 1}}


def test_only_the_newest_points_are_counted(store):
    driver = Driver.of(store)
    driver.write(changes=[ended("a", point) for point in range(1, 50)])
    driver.write(changes=[PutTask(task_row("a", 60))])
    shown = [point for _, point in sorted(cells(store, driver, points_max=4))]
    assert shown == [47, 48, 49, 60]
    assert len(cells(store, driver)) == 30


def test_a_run_says_how_its_points_are_written_and_since_when_it_stands_still(store, clock):
    driver = Driver.of(store)
    [(run, facts)] = store.grid_facts([driver.run.number])
    assert (run.name, facts.words, facts.earliest, facts.since) == ("wf/run1", None, None, None)
    state = RunState(start=Point(0), point_words=STYLE.words)
    driver.write(
        changes=[PutRun(state), PutTask(task_row("a", 3600)), PutTask(task_row("b", 7200))]
    )
    clock.advance(5)
    driver.write(status="stalled")
    stalled_at = clock.now
    clock.advance(100)
    driver.write(status="stalled")  # as a command leaves a batch
    clock.advance(100)
    # Another scheduler takes the run over, as after a restart of a server.
    dead = driver.lease.epoch
    driver.lease = claim_run(store, driver.run, process=OTHER_PROCESS, dead_epoch=dead)
    assert store.run(driver.run.number).updated_at == clock.now
    [(run, facts)] = store.grid_facts([driver.run.number])
    assert (facts.words, facts.earliest, facts.since) == (STYLE.words, 3600, stalled_at)
    driver.write(status="running")
    assert store.grid_facts([driver.run.number])[0][1].since is None


def test_unfinished_tasks_are_counted_by_the_time_at_which_they_are_late(store):
    driver, other = Driver.of(store), Driver.of(store)
    failed = task_row("f", 60, stage=JobPhase.INCOMPLETE, submit=1, ended="failed")
    there = [PutTask(task_row(name, 60)) for name in ("a", "b", "c")] + [PutTask(failed)]
    there.append(PutTask(task_row("a", 120)))
    late = [RunTimer(Point(60), name, "late", at) for name, at in (("a", 90.0), ("b", 90.0))]
    late += [RunTimer(Point(60), "f", "late", 90.0)]  # it has ended: its failure is told
    late += [RunTimer(Point(60), "gone", "late", 90.0), RunTimer(Point(60), "c", "retry", 70.0)]
    late += [RunTimer(Point(120), "a", "late", NEVER)]
    driver.write(changes=there, timers=late)
    other.write(changes=there[:1])
    number = driver.run.number
    assert store.grid_due([number, other.run.number]) == [
        TasksDue(number, Point(60), Instant(90.0), 2),
        TasksDue(number, Point(120), NEVER, 1),
    ]


@pytest.mark.parametrize("points", [1, 3])
def test_a_run_with_very_many_tasks_shows_its_newest_point_at_least(store, points):
    driver = Driver.of(store)
    for point in range(1, points + 1):
        driver.write(changes=[ended(f"t{number}", point) for number in range(200)])
    assert cells(store, driver)[driver.run.number, points] == {"succeeded": 200}
