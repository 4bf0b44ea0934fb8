"""The run log and the trigger log (SEMANTICS §13, "Logs")."""

import pytest

from tests.kit.scenario import compile_flow, compile_graph
from tidewheel.core.operator import verbs
from tidewheel.core.operator.run_log import RunLog, command_line, command_name, trigger_line
from tidewheel.core.sched import events
from tidewheel.core.sched.events import FlowChoice, JobEnd, Submit
from tidewheel.core.sched.step import new_pool, step


class LoggedRun:
    """A run of which every line is kept."""

    def __init__(self, graph, *texts, **options):
        text = isinstance(graph, str)
        self.graph = compile_graph(graph, *texts, **options) if text else graph
        self.pool = new_pool(self.graph)
        self.log = RunLog(self.pool)
        self.triggers = []
        self.lines = []
        self.all_lines = []  # with those that are for existing jobs only
        self.happens(events.RunStarted(0.0))

    def happens(self, event, **more):
        if isinstance(event, events.RunReloaded):
            self.graph, old = event.graph, self.graph
            outcome = step(old, self.pool, event)
        else:
            outcome = step(self.graph, self.pool, event)
        entries = self.log.lines(event, outcome, **more)
        found = [line for one in entries for line in str(one).splitlines()]
        self.all_lines += found
        self.last = [line for line in found if not line.startswith("DEBUG")]
        self.lines += self.last
        submits = [one for one in outcome.effects if isinstance(one, Submit)]
        self.triggers += [trigger_line(self.pool, one) for one in submits]
        return self

    def starts(self, name, point=1):
        return self.happens(
            events.OutputMade((point, name), self.submit(name, point), "started", 0.0)
        )

    def ends(self, name, how=JobEnd.SUCCEEDED, point=1, **more):
        return self.happens(
            events.JobEnded((point, name), self.submit(name, point), how, 0.0), **more
        )

    def triggered(self, *keys, **more):
        return self.happens(events.TasksTriggered(tasks=keys, at=0.0, **more))

    def submit(self, name, point):
        return self.pool.tasks[(point, name)].submit


def test_the_life_of_a_task_is_one_line_for_each_state():
    run = LoggedRun("a => b")
    assert run.lines == [
        "INFO - spawned 1/a",
        "INFO - [1/a:waiting] => preparing",
        "INFO - 1/a -triggered off [] in flow 1",
    ]
    run.happens(events.JobSubmitted((1, "a"), 1, 0.0))
    assert run.last == ["INFO - [1/a/01:preparing] => submitted"]
    assert run.starts("a").last == ["INFO - [1/a/01:submitted] => running"]
    assert run.ends("a").last == [
        "INFO - [1/a/01:running] (received)succeeded",
        "INFO - [1/a/01:running] => succeeded",
        "INFO - spawned 1/b",
        "INFO - [1/b:waiting] => preparing",
        "INFO - 1/b -triggered off ['1/a'] in flow 1",
    ]


def test_a_job_whose_start_nobody_told_is_shown_to_have_run_if_it_stays_in_the_pool():
    run = LoggedRun("a:x => b", "[[a]]\n[[[outputs]]]\nx = x\n[[b]]").ends("a")
    assert [line for line in run.last if " => " in line] == [
        "INFO - [1/a/01:preparing] => submitted",
        "INFO - [1/a/01:submitted] => running",
        "INFO - [1/a/01:running] => succeeded",
    ]


def test_states_that_were_passed_through_are_shown_too():
    run = LoggedRun("a => b").starts("a")
    assert run.last == [
        "INFO - [1/a/01:preparing] => submitted",
        "INFO - [1/a/01:submitted] => running",
    ]
    assert run.ends("a").ends("b").last == [
        "INFO - [1/b/01:preparing] (received)succeeded",
        "INFO - [1/b/01:preparing] => submitted",
        "INFO - [1/b/01:submitted] => running",
        "INFO - [1/b/01:running] => succeeded",
        "INFO - completed",
    ]


def test_a_report_that_is_heard_twice_changes_nothing():
    run = LoggedRun("a => b").starts("a")
    assert run.starts("a").last == []
    run.happens(events.JobSubmitted((1, "a"), 1, 0.0))
    assert run.last == []


def test_a_failure_says_how_and_what_it_led_to():
    run = LoggedRun("a => b").starts("a").ends("a", JobEnd.FAILED)
    assert run.last == [
        "ERROR - [1/a/01:running] failed/ERR",
        "INFO - [1/a/01:running] => failed",
        "WARNING - 1/a failed, which nothing handles",
        "CRITICAL - Workflow stalled",
        "WARNING - stalled: 1/a failed, incomplete",
    ]
    run = LoggedRun("a => b\na:fail => c").starts("a").ends("a", JobEnd.FAILED, failure="XCPU")
    assert run.last[:2] == [
        "ERROR - [1/a/01:running] failed/XCPU",
        "INFO - [1/a/01:running] => failed",
    ]


def test_a_job_that_never_started_failed_to_submit():
    run = LoggedRun("a => b").ends("a", JobEnd.FAILED)
    assert run.last[:2] == [
        "ERROR - [1/a/01:preparing] submit-failed",
        "INFO - [1/a/01:preparing] => submit-failed",
    ]


def test_a_retry_goes_back_to_waiting():
    run = LoggedRun("a", "[[a]]\nexecution retry delays = PT1S").starts("a")
    assert run.ends("a", JobEnd.FAILED).last == [
        "ERROR - [1/a/01:running] failed/ERR",
        "INFO - [1/a/01:running] => waiting",
        "WARNING - 1/a failed: retry 1 of 1",
    ]
    run.happens(events.TimerFired((1, "a"), "retry-delay", 1.0))
    assert run.last == [
        "INFO - [1/a:waiting] => preparing",
        "INFO - 1/a -triggered off [] in flow 1",
    ]
    assert run.starts("a").last[-1] == "INFO - [1/a/02:submitted] => running"


def test_flows_are_shown_unless_they_are_the_first():
    run = LoggedRun("a => b").ends("a").starts("b")
    run.triggered((1, "a"), flow=FlowChoice.NEW).starts("a")
    assert run.last[-1] == "INFO - [1/a/02(flows=2):submitted] => running"
    assert run.ends("a").last == [
        "INFO - [1/a/02(flows=2):running] (received)succeeded",
        "INFO - [1/a/02(flows=2):running] => succeeded",
        "INFO - [1/b/01(flows=1,2):running] merged in flow(s) 2",
    ]


@pytest.mark.parametrize(
    ("how", "word"), [(JobEnd.SUCCEEDED, "succeeded"), (JobEnd.FAILED, "failed")]
)
def test_a_task_that_runs_alone_is_shown_in_no_flow(how, word):
    run = LoggedRun("a => b").ends("a")
    run.triggered((1, "a"), flow=FlowChoice.NONE).starts("a").ends("a", how)
    assert f"INFO - [1/a/02(flows=none):running] => {word}" in run.last
    run.triggered((1, "a"), flow=FlowChoice.NONE).ends("a", JobEnd.NOT_STARTED)
    assert "INFO - [1/a/03(flows=none):preparing] => submit-failed" in run.last
    assert "1/a -triggered off [] in flow none" in run.triggers


def test_what_keeps_a_waiting_task_is_shown():
    queue = "[[queues]]\n[[[q]]]\nlimit = 1\nmembers = a"
    run = LoggedRun("a", scheduling=queue, final=9)
    assert "INFO - [2/a:waiting] => waiting(queued)" in run.lines
    assert "INFO - [6/a:waiting] => waiting(runahead)" in run.lines
    run.happens(events.TasksHeld(((2, "a"),), 0.0))
    assert run.last == ["INFO - [2/a:waiting(queued)] => waiting(held)"]


EXPIRING = """
    [scheduling]
        initial cycle point = 2000
        final cycle point = 2000
        [[special tasks]]
            clock-expire = a(PT1M)
        [[graph]]
            R1 = \"\"\"
                x & y => a?
                a:expire? => late
            \"\"\"
    [runtime]
        [[a, x, y, late]]
"""


def test_an_expired_task_and_a_removed_one_are_told_apart():
    run = LoggedRun("a & b => c").ends("a")
    run.happens(events.TasksRemoved(tasks=((1, "c"),), at=0.0))
    assert run.last[0] == "INFO - [1/c:waiting] removed from the pool"
    graph = compile_flow(EXPIRING)
    point = graph.cycling.initial
    run = LoggedRun(graph).ends("x", point=point)
    run.happens(events.TimerFired((point, "a"), "clock-expire", 0.0))
    assert "INFO - [20000101T0000Z/a:waiting] => expired" in run.last


def test_a_task_that_expires_alone_is_told_too():
    graph = compile_flow(EXPIRING)
    point = graph.cycling.initial
    run = LoggedRun(graph).ends("x", point=point).ends("y", point=point)
    run.ends("a", point=point)
    alone = FlowChoice.NONE
    run.happens(events.PrerequisitesSet(task=(point, "a"), at=0.0, flow=alone))
    run.happens(events.TimerFired((point, "a"), "clock-expire", 0.0))
    assert run.last[0] == "INFO - [20000101T0000Z/a(flows=none):waiting] => expired"


def test_messages_are_shown_with_their_task():
    run = LoggedRun("a => b").starts("a")
    said = run.log.said((1, "a"), "the disk is full", "WARNING")
    assert str(said) == "WARNING - [1/a/01:running] (received)the disk is full"
    assert str(run.log.said((9, "a"), "hello")) == "INFO - [9/a] (received)hello"


def test_commands_leave_a_line():
    assert str(command_line("stop")) == 'INFO - Command "stop" actioned.'
    assert str(command_line("kill", "why")) == 'WARNING - Command "kill" refused: why'


def test_a_reload_is_told_for_each_task_and_at_its_end():
    run = LoggedRun("a & b => c\nb").ends("a")
    run.happens(events.RunReloaded(compile_graph("a & b => c\nb"), 0.0))
    assert run.last == [
        "INFO - [1/b/01:preparing] reloaded task definition",
        "INFO - [1/c:waiting] reloaded task definition",
        "INFO - Reload completed.",
    ]


def test_a_log_goes_on_after_a_restart():
    run = LoggedRun("a => b").starts("a")
    run.log = RunLog(run.pool)
    assert run.ends("a").last[1] == "INFO - [1/a/01:running] => succeeded"


def test_a_late_report_is_only_news():
    run = LoggedRun("a => b").ends("a")
    run.happens(events.JobEnded((1, "a"), 1, JobEnd.FAILED, 0.0))
    assert run.last == ["WARNING - a late report of 1/a/1 was ignored"]


FAMILY = "[[FAM]]\n[[m1, m2]]\ninherit = FAM\n[[z, a]]"


def test_the_trigger_log_names_the_parents_before_the_start():
    run = LoggedRun("a[-P1] & b => a", final=1).ends("b")
    assert run.triggers[-1] == "1/a -triggered off ['0/a', '1/b'] in flow 1"


def test_of_a_family_those_are_named_that_did_it():
    run = LoggedRun("FAM:succeed-any => z", FAMILY).ends("m2")
    assert run.triggers[-1] == "1/z -triggered off ['1/m2'] in flow 1"
    run = LoggedRun("FAM:succeed-all => z", FAMILY).ends("m2").ends("m1")
    assert run.triggers[-1] == "1/z -triggered off ['1/m1', '1/m2'] in flow 1"
    run = LoggedRun("FAM[-P1]:succeed-any & a => z\nFAM", FAMILY, final=1).ends("a")
    assert run.triggers[-1] == "1/z -triggered off ['0/m1', '0/m2', '1/a'] in flow 1"


def test_a_task_triggered_by_hand_names_all_that_was_made_true_for_it():
    run = LoggedRun("a & b => c => d").triggered((1, "c"))
    assert run.triggers[-1] == "1/c -triggered off ['1/a', '1/b'] in flow 1"
    run = LoggedRun("FAM:succeed-any & a => z", FAMILY).triggered((1, "z"))
    assert run.triggers[-1] == "1/z -triggered off ['1/a', '1/m1', '1/m2'] in flow 1"


def test_of_alternatives_only_those_are_named_that_are_true():
    run = LoggedRun("a | b => c").ends("b")
    assert run.triggers[-1] == "1/c -triggered off ['1/b'] in flow 1"


def test_an_arrow_that_does_not_hold_at_the_point_names_nobody():
    run = LoggedRun("R1 = a => c\nP1 = b => c", final=2).ends("b", point=2)
    assert run.triggers[-1] == "2/c -triggered off ['2/b'] in flow 1"


def test_jobs_of_existing_workflows_find_what_they_wait_for():
    run = LoggedRun("a => b", "[[a, b]]\n[[[outputs]]]\nx = ready").starts("a")
    run.happens(events.OutputMade((1, "a"), 1, "x", 0.0)).ends("a").starts("b")
    run.ends("b", JobEnd.FAILED)
    for line in (
        "[1/a:waiting] added to the n=0 window",
        "[1/a:waiting] => waiting(queued)",
        "[1/a/01:preparing] (internal)submitted",
        "[1/a/01:submitted] (received)started",
        "[1/a/01:running] completed output x",
        "[1/a/01:succeeded] removed from the n=0 window: completed",
        "[1/b/01:running] (received)failed/ERR",
    ):
        assert f"DEBUG - {line}" in run.all_lines


def test_a_task_that_comes_held_says_why():
    run = LoggedRun("a => b & c").happens(events.TasksHeld(((1, "b"),), 0.0)).ends("a")
    assert "INFO - [1/b:waiting] holding (as requested earlier)" in run.last
    run = LoggedRun("a[-P1] => a", final=3).happens(events.AllHeldAfter(1, 0.0)).ends("a")
    assert "INFO - [2/a:waiting] holding (beyond workflow hold point: 1)" in run.last


def test_a_kill_and_a_removal_say_so():
    run = LoggedRun("a => b").starts("a").happens(events.JobsKilled(((1, "a"),), 0.0))
    run.ends("a", JobEnd.KILLED)
    assert "WARNING - [1/a/01:failed(held)] job killed" in run.last
    run.happens(events.TasksRemoved(tasks=((1, "a"),), at=0.0))
    gone = "DEBUG - [1/a/01:failed(held)] removed from the n=0 window: request"
    assert gone in run.all_lines


def test_commands_have_the_names_that_existing_jobs_look_for():
    names = map(
        command_name,
        [
            verbs.Trigger(ids=("1/a",)),
            verbs.Hold(after="3"),
            verbs.Hold(ids=("1/a",)),
            verbs.Release(everything=True),
            verbs.Pause(),
        ],
    )
    assert list(names) == [
        "force_trigger_tasks",
        "set_hold_point",
        "hold",
        "release_hold_point",
        "pause",
    ]
