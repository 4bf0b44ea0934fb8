"""Tasks that are late: handlers and the run log hear of it, once (`late offset`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.driven_run import START, DrivenRun
from tidewheel.core.operator import verbs
from tidewheel.core.operator.requests import NEVER

POINT = "20300317T1800Z"  # a run begins 800 seconds before
FLOW = f"""
[scheduler]
    UTC mode = True
[scheduling]
    initial cycle point = {POINT}
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        [[[events]]]
            late offset = PT10M
            late handlers = echo %(event)s %(id)s
        [[[outputs]]]
            x = half way
    [[b]]
"""
SAID = "late: unfinished PT10M after its point"


@pytest.fixture
def flow(tmp_path: Path):
    made = []

    def make(text: str = FLOW) -> DrivenRun:
        made.append(DrivenRun(tmp_path, text))
        return made[-1]

    yield make
    for run in made:
        run.close()


def test_a_task_that_is_unfinished_at_its_time_is_late_once(flow):
    run = flow().starts(f"{POINT}/a").waits(1399)
    assert SAID not in run.log
    run.waits(1).waits(5000).says(f"{POINT}/a", "half way", output="x").waits(10)
    run.ends(f"{POINT}/a")
    assert run.log.count(f"[{POINT}/a/01:running] {SAID}") == 1
    log = run.home / "runs/flow/run1/log/scheduler/handlers/activity.log"
    run.until(lambda: log.exists() and "ret_code" in log.read_text())
    assert log.read_text().count(f"cmd] echo late {POINT}/a") == 1


def test_a_task_that_finished_in_time_is_not(flow):
    run = flow().ends(f"{POINT}/a").waits(5000)
    assert "late" not in run.log


def test_a_task_that_failed_in_time_is_not(flow):
    run = flow().fails(f"{POINT}/a").waits(3000)
    assert run.status == "stalled"
    assert SAID not in run.log


def test_a_task_whose_time_was_over_when_it_came_is_late_at_once(flow):
    run = flow(FLOW.replace(POINT, "20300317T1200Z"))
    assert run.waits(1).log.count(SAID) == 1


@pytest.mark.parametrize("waits_before", [100, 2000])
def test_a_scheduler_that_takes_over_says_it_if_nobody_did(flow, waits_before):
    run = flow().starts(f"{POINT}/a").waits(waits_before).crash()
    run.waits(2000).says(f"{POINT}/a", "half way", output="x").waits(10)
    assert run.log.count(SAID) == 1


def test_an_offset_that_comes_with_a_reload_counts_for_tasks_that_are_there(flow):
    run = flow(FLOW.replace("late offset = PT10M", "")).starts(f"{POINT}/a").waits(100)
    run.gives(verbs.Reload(definition=run.reads(FLOW)))
    run.says(f"{POINT}/a", "half way").waits(2000)
    assert run.log.count(SAID) == 1


def test_points_that_are_no_times_are_never_late(flow):
    text = FLOW.replace(f"initial cycle point = {POINT}", "cycling mode = integer")
    assert SAID not in flow(text).starts("1/a").waits(5000).log


def due(run):
    """By when how many tasks of a run are to finish, as the grid of all runs is told."""
    found = run.look(lambda store, number: store.grid_due([number]))
    return [(one.tasks, one.at) for one in found]


def test_a_grid_is_told_when_a_task_is_late_that_it_is_and_no_more_once_it_has_ended(flow):
    run = flow().starts(f"{POINT}/a")
    assert due(run) == [(1, START + 1400)]
    assert due(run.waits(1400).crash().waits(1)) == [(1, NEVER)]
    assert due(run.ends(f"{POINT}/a")) == []
