"""Restart is no restart (SEMANTICS §10), and what a batch of steps writes."""

import pytest

from tests.kit.scenario import Scenario, compile_graph
from tests.kit.sched_invariants import fingerprint
from tidewheel.core.sched.events import JobEnd, JobEnded, RunStarted
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import PoolLedger, changes, everything, rebuild
from tidewheel.core.sched.pool import NoPast, Touched
from tidewheel.core.sched.step import new_pool, step
from tidewheel.core.sched.task_state import VerdictKind

GRAPH = """
    a[-P1] & b => a
    a:fail => mail
    a => c & d
    c & d[-P1] => e
    e | mail => last
"""


@pytest.mark.req("R001-47", "R001-48")
def test_a_restart_after_every_step_changes_nothing():
    calm = Scenario(GRAPH, final=4).runs_to_the_end(fails=("3/a",))
    often = Scenario(GRAPH, final=4)
    while active := [one for one, word in often.pool.items() if word == "running"]:
        one = min(active, key=lambda one: (often.key(one)[0], often.graph.nodes[one[2:]].name))
        often.restarts()
        often.fails(one) if one == "3/a" else often.succeeds(one)
    assert sorted(often.submitted) == sorted(calm.submitted)
    assert often.pool == calm.pool
    assert often.verdicts == calm.verdicts


@pytest.mark.req("R001-47")
def test_satisfied_prerequisites_and_finished_parents_survive_a_restart():
    run = Scenario("A:fail => X\nA & B => C\nA & B | X => D").fails("1/A").restarts()
    run.succeeds("1/B", "1/X").restarts()
    assert run.pool == {"1/D": "running"}
    assert run.succeeds("1/D").completed


@pytest.mark.req("R001-47")
def test_parentless_tasks_go_on_after_a_restart():
    run = Scenario("foo", final=9).restarts().succeeds("1/foo")
    assert run.submitted[-1] == "6/foo"


def test_family_counts_follow_from_what_is_remembered():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("F:succeed-all => x", runtime).succeeds("1/m1").restarts().succeeds("1/m2")
    assert run.pool == {"1/x": "running"}


def test_a_batch_of_steps_writes_the_last_of_each_thing_once():
    graph = compile_graph("a => b => c")
    pool = new_pool(graph, past=NoPast())
    touched, ledger = Touched(), PoolLedger()
    todo = step(graph, pool, RunStarted(0.0))
    while True:
        touched.add(todo.touched)
        submits = [one for one in todo.effects if type(one).__name__ == "Submit"]
        if not submits:
            break
        job = submits[0]
        todo = step(graph, pool, JobEnded(job.task, job.submit, JobEnd.SUCCEEDED, 0.0))
    written = changes(pool, touched)
    ledger.write(written)
    assert len(written) == len({repr(one) for one in written})
    rebuilt = rebuild(pool.plan, ledger.rows.values())
    assert fingerprint(rebuilt) == fingerprint(pool)
    assert not [one for one in everything(pool) if type(one).__name__ == "PutTask"]


def test_what_is_forgotten_is_told_a_last_time():
    run = Scenario("a[-P1] => a => b", final=4).runs_to_the_end()
    assert 1 not in run.core.memory
    past = run.core.past.recall(1, "b")
    assert (past.submits, past.spawned) == (1, {1})
    assert past.verdicts[1].kind is VerdictKind.FINISHED
    assert run.core.past.recall(1, "a").made == {"succeeded": {1}}
    assert NoPast().recall(1, "b") is None


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_spawned_while_the_base_steps_back_is_not_released_with_or_without_a_restart(
    restarts: bool,
):
    graph = """
        P1 = c => e
        R1 = c[+P1] => a
        P2 = a[-P2]:a_y => c
        P1 = a[-P1]? => d
    """
    outputs = "[[a]]\n[[[outputs]]]\na_y = a_y"
    run = Scenario(graph, outputs, final=2, scheduling="runahead limit = P0")
    run.succeeds("1/c", "1/d", "1/e")
    if restarts:
        run.restarts()
    run.succeeds("2/c")
    assert run.pool == {"1/a": "running", "2/e": "runahead"}


def test_of_tasks_that_the_graph_no_longer_has_those_that_run_are_there_and_no_others():
    """The past of a run is shown by the graph of today."""
    run = Scenario("a & b => c\na => d").succeeds("1/a")
    assert run.pool == {"1/b": "running", "1/c": "waiting", "1/d": "running"}
    now = rebuild(build_index(compile_graph("a\nb")), everything(run.core))
    assert set(now.tasks) == {(1, "b"), (1, "d")}


def test_a_restart_does_not_forget_who_asks_for_a_parent_that_is_never_there():
    """A stall stays one: in a later flow, too, whoever is blocked is shown."""
    graph = 'P1 = """\nx => d\nx:fail => h\nx[-P1] | a[-P1] => b\nz\n"""\nP2 = a'

    def ends(*, restarted: bool) -> Scenario:
        run = Scenario(graph, final=3)
        while active := [
            one for one in run.pool if run.pool[one] == "running" and "z" not in one
        ]:
            run.succeeds(active[0])
        run.reflows("2/x")
        if restarted:
            run.restarts()
        return run.fails("2/x").runs_to_the_end()

    without, with_one = ends(restarted=False), ends(restarted=True)
    assert without.stalled and with_one.stalled
    assert without.pool == with_one.pool == {"3/b": "blocked"}
