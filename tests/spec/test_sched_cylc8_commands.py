"""Workflows whose jobs command their own run, as Cylc 8 runs them (SEMANTICS §8, §14)."""

from tests.kit.scenario import Scenario
from tidewheel.core.sched.events import FlowChoice, FlowStopped


def a_run(graph, names, **options):
    return Scenario(graph, f"[[{names}]]", policy="cylc8", **options)


def with_flows(run):
    return [f"{run.id_of(one.task)} in {sorted(one.flows)}" for one in run.submissions]


def test_what_ran_with_wait_is_passed_over_by_its_own_flow_and_run_by_others():
    run = a_run("a => b => c => d => e => f => g", "a, b, c, d, e, f, g")
    run.triggers("1/f", flow=2, wait=True)
    run.succeeds("1/f", "1/a", "1/b", "1/c", "1/d", "1/e", "1/f", "1/g")
    assert run.completed
    run.triggers("1/b", flow=2).runs_to_the_end()
    assert with_flows(run)[-5:] == [
        "1/b in [2]",
        "1/c in [2]",
        "1/d in [2]",
        "1/e in [2]",
        "1/g in [2]",
    ]
    assert run.submitted.count("1/f") == 2


def test_a_task_set_with_wait_directs_the_flow_when_it_arrives():
    outputs = "[[foo]]\n[[[outputs]]]\na = a\nb = b\n[[s, a, b]]"
    for policy in ("cylc8", "tidewheel"):
        run = Scenario("s => foo\nfoo:a? => a\nfoo:b? => b", outputs, policy=policy)
        run.sets("1/foo", "a", "succeeded", wait=True)
        assert run.pool == {"1/s": "running"}
        assert run.runs_to_the_end().submitted == ["1/s", "1/a"]
        assert run.completed


def test_a_removed_task_of_which_a_prerequisite_is_set_waits_for_the_others_again():
    run = a_run("a & x => b", "a, x, b").succeeds("1/a").removes("1/b")
    assert run.verdicts == {"1/b": "removed"}
    run.sets_prerequisites("1/b", "1/a")
    assert run.pool == {"1/x": "running", "1/b": "waiting"}
    assert run.verdicts == {}
    assert run.succeeds("1/x").pool == {"1/b": "running"}
    assert run.succeeds("1/b").completed


def test_a_stopped_flow_takes_what_waits_for_the_world():
    xtriggers = "[[xtriggers]]\nx = xrandom(0, 10)"
    run = a_run("@x => never\nc => never_again", "never, never_again, c", scheduling=xtriggers)
    run.happens(FlowStopped(1, 0.0)).succeeds("1/c")
    assert run.submitted == ["1/c"]
    assert run.completed


def test_a_stopped_flow_goes_on_in_the_one_that_meets_it():
    run = a_run("foo => bar => baz => qux", "foo, bar, baz, qux")
    run.succeeds("1/foo", "1/bar").triggers("1/foo", flow=FlowChoice.NEW)
    run.succeeds("1/foo").happens(FlowStopped(1, 0.0)).succeeds("1/bar")
    assert run.succeeds("1/baz").pool == {"1/qux": "running"}
    assert run.runs_to_the_end().completed


def test_a_new_flow_catches_up_and_merges():
    run = a_run("foo[-P1] => foo => bar", "foo, bar", final=3)
    run.succeeds("1/foo", "2/foo", "1/bar", "2/bar").triggers("1/foo", flow=FlowChoice.NEW)
    run.succeeds("1/foo", "2/foo")
    assert run.flows["3/foo"] == [1, 2]
    assert run.runs_to_the_end().submitted.count("3/bar") == 1


def test_a_task_triggered_without_options_joins_every_active_flow():
    run = a_run("a[-P1] => a", "a", final=7).triggers("3/a", flow=FlowChoice.NEW)
    run.triggers("5/a").succeeds("3/a", "4/a", "5/a").runs_to_the_end()
    assert sorted(with_flows(run)) == [
        "1/a in [1]",
        "2/a in [1]",
        "3/a in [1]",
        "3/a in [2]",
        "4/a in [1]",
        "4/a in [2]",
        "5/a in [1, 2]",
        "6/a in [1, 2]",
        "7/a in [1, 2]",
    ]


def test_a_switch_beyond_the_runahead_limit_can_be_set():
    runtime = "[[a]]\n[[[outputs]]]\nx = x\ny = y\n[[x, y, z]]"
    run = Scenario(
        "a:x? => x\na:y? => y\nx | y => z",
        runtime,
        final=4,
        policy="cylc8",
        scheduling="runahead limit = P0",
    )
    run.makes("1/a", "x").succeeds("1/a", "1/x").sets("2/a", "y", "succeeded").succeeds("1/z")
    assert run.pool["2/y"] == "running"
    run.succeeds("2/y").sets("3/a", "y").succeeds("2/z")
    run.makes("3/a", "x").succeeds("3/a")
    run.succeeds("3/x", "3/y", "3/z").makes("4/a", "x").runs_to_the_end()
    assert sorted(set(run.submitted)) == sorted(run.submitted)
    assert not {"2/a", "2/x"} & set(run.submitted)
    assert {"3/x", "3/y", "3/z", "4/z"} <= set(run.submitted)
    assert run.completed


def test_a_killed_job_was_one_try_and_the_next_comes_when_it_is_released():
    retries = "[[a, b]]\nexecution retry delays = PT0S"
    run = Scenario("a => b", retries, policy="cylc8").starts("1/a").is_killed("1/a")
    assert run.pool == {"1/a": "held"}
    run.timer("1/a", "retry-delay").releases("1/a")
    assert run.submitted == ["1/a", "1/a"]
    ours = Scenario("a => b", retries).starts("1/a").is_killed("1/a")
    assert "1/a" in ours.causes


def test_a_group_that_ran_before_runs_again_in_its_order():
    run = a_run("a => b => c => d\nx => b", "a, b, c, d, x")
    run.succeeds("1/a", "1/x", "1/b", "1/c").triggers("1/a", "1/b", "1/c")
    assert run.submitted[-2:] == ["1/d", "1/a"]
    run.succeeds("1/a")
    assert run.submitted[-1] == "1/b"
    run.succeeds("1/b").succeeds("1/c", "1/d")
    assert run.completed
    assert {run.submitted.count(one) for one in ("1/a", "1/b", "1/c")} == {2}
    assert run.submitted.count("1/d") == 1
    assert with_flows(run)[-1] == "1/c in [1]"
