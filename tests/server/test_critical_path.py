"""What made a run take as long as it took: retries count, what was wanted anew does not."""

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import PreparedRun
from tidewheel.core.sched.events import FlowChoice, TasksTriggered, TimerFired
from tidewheel.core.sched.spawn import RETRY

FLOW = """
[scheduling]
    [[graph]]
        R1 = quick & slow => join
[runtime]
    [[quick, join]]
    [[slow]]
        execution retry delays = PT5S
"""

AHEAD = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    runahead limit = P0
    [[graph]]
        P1 = quick & slow
[runtime]
    [[quick, slow]]
"""


@pytest.fixture
def path(tmp_path):
    """The steps of a run, as a reader of the server sees them."""
    tidewheel = CommandLine(tmp_path)
    run = PreparedRun(tidewheel, FLOW, "joined").starts()
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        reader = running.caller("read")

        def steps():
            seen = reader.get(f"/runs/{in_path(run.name)}/critical-path").json
            return [(step["id"], step["submit"]) for step in seen["steps"]]

        steps.run = run
        yield steps


def test_it_leads_through_the_parent_that_was_last_with_every_try(path):
    run = path.run.succeeds("1/quick").fails("1/slow")
    run.happens(TimerFired(run.key("1/slow"), RETRY, run.now))
    run.succeeds("1/slow", "1/join")
    assert path() == [("1/slow", 1), ("1/slow", 2), ("1/join", 1)]


def test_a_new_flow_begins_a_path_of_its_own(path):
    run = path.run.succeeds("1/slow", "1/quick", "1/join")
    assert path() == [("1/quick", 1), ("1/join", 1)]
    run.happens(TasksTriggered(tasks=(run.key("1/slow"),), at=run.now, flow=FlowChoice.NEW))
    run.succeeds("1/slow")
    assert path() == [("1/slow", 2)]


def test_a_task_that_waits_for_nothing_follows_what_let_the_next_point_begin(tmp_path):
    """With one point at a time, the run took as long as all of them together."""
    tidewheel = CommandLine(tmp_path)
    run = PreparedRun(tidewheel, AHEAD, "ahead").starts()
    for point in (1, 2, 3):
        run.succeeds(f"{point}/quick", f"{point}/slow")
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        seen = running.caller("read").get(f"/runs/{in_path(run.name)}/critical-path").json
    assert [step["id"] for step in seen["steps"]] == ["1/slow", "2/slow", "3/slow"]
