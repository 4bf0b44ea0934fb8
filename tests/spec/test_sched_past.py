"""Interventions behind the oldest pooled point see the past as it was (SEMANTICS §5).

The pool forgets points that nothing in it can reach; the store keeps the last that was known of
every task. A repair there does what it would have done while the point was still remembered.
"""

from __future__ import annotations

import random

import pytest

from tests.kit.driven_run import DrivenRun
from tests.kit.scenario import Scenario, compile_graph
from tests.unit.test_sched_fixpoint import generate
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator import verbs
from tidewheel.core.sched.dependents import near_the_horizon, neighbourhood
from tidewheel.core.sched.events import FlowChoice, JobEnd, JobEnded
from tidewheel.core.sched.task_state import VerdictKind
from tidewheel.errors import StoreUnreachable

CLOSE = "runahead limit = P0"
X_OF_A = "[[a]]\n[[[outputs]]]\nx = x\n"
FAMILY = "[[FAM]]\n[[m1, m2]]\ninherit = FAM\n"


def forgets(run: Scenario, point: int) -> bool:
    return run.core.run.horizon is not None and point < run.core.run.horizon


def cycles(run: Scenario, *points: int) -> Scenario:
    """All of these points succeed."""
    for point in points:
        while active := [one for one in run.pool if one.startswith(f"{point}/")]:
            run.succeeds(active[0])
    return run


def run_with_a_handled_failure() -> Scenario:
    graph = "P1 = model & obs => post\nP1 = model:fail => mail"
    run = cycles(Scenario(graph, scheduling=CLOSE, final=13), 1)
    run.fails("2/model").succeeds("2/obs", "2/mail")
    cycles(run, *range(3, 13))
    assert forgets(run, 2)
    return run


def test_what_failed_long_ago_is_mended_by_what_why_advises():
    run = run_with_a_handled_failure()
    (reason,) = run.why("2/post")
    assert "2/model failed, handled by 2/mail" in reason.text
    assert reason.command.startswith("trigger 2/model")
    run.triggers("2/model").succeeds("2/model")
    assert run.pool["2/post"] == "running"
    run.succeeds("2/post")
    assert "2/post" not in run.verdicts
    assert cycles(run, 13).completed


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("how", ["default", "flow 1", "set"])
def test_a_child_that_was_never_pooled_finds_its_other_parents(how, restarts):
    graph = "P1 = a & b => c\nP1 = a:fail => mail"
    run = Scenario(graph, scheduling=CLOSE, final=5)
    run.fails("1/a").succeeds("1/b", "1/mail")
    cycles(run, 2, 3, 4)
    assert forgets(run, 1)
    if restarts:
        run.restarts()
    if how == "set":
        run.sets("1/a")
    else:
        flow = 1 if how == "flow 1" else FlowChoice.DEFAULT
        run.triggers("1/a", flow=flow)
        run.restarts() if restarts else None
        run.succeeds("1/a")
    assert run.pool["1/c"] == "running"
    assert cycles(run.succeeds("1/c"), 5).completed


def test_what_was_not_taken_long_ago_is_still_not_taken():
    graph = "P1 = t1[-P1]:finish | t0[-P1] => t0\nP1 = t0 & t0[-P1]:fail => t1"
    run = cycles(Scenario(graph, scheduling=CLOSE, final=9), 1, 2, 3)
    assert forgets(run, 1) and forgets(run, 2)
    run.removes("2/t0").sets("2/t0")
    assert run.verdicts["2/t1"] == "not taken"
    assert not [one for one in run.pool if one.startswith("2/")]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_family_is_counted_again_from_all_of_its_members(restarts):
    graph = "P1 = FAM:succeed-all => c\nP1 = FAM:fail-any => mail"
    run = Scenario(graph, FAMILY, scheduling=CLOSE, final=5)
    run.succeeds("1/m1").fails("1/m2").succeeds("1/mail")
    cycles(run, 2, 3, 4)
    assert forgets(run, 1) and run.verdicts["1/c"] == "lost"
    run.triggers("1/m2", flow=1)
    if restarts:
        run.restarts()
    run.succeeds("1/m2")
    assert run.pool["1/c"] == "running"
    assert "1/mail" not in run.pool, "it ran, and what failed then is known"


def test_a_parent_at_a_fixed_point_brings_back_children_of_points_long_gone():
    graph = "R1 = cold:fail => mail\nP1 = cold[^] & obs => model\nP1 = obs => out"
    wide = "runahead limit = P1"
    run = Scenario(graph, scheduling=wide, final=6, prune_across_points=True)
    cycles(run.fails("1/cold").succeeds("1/mail"), 1, 2, 3)
    assert forgets(run, 3) and run.verdicts["3/model"] == "lost"
    run.sets("1/cold")
    assert [run.pool[f"{point}/model"] for point in (1, 2)] == ["running", "running"]
    assert cycles(run, 1, 2).pool["3/model"] == "running"


def test_what_runs_in_no_flow_behind_the_horizon_keeps_its_history():
    run = Scenario("P1 = a[-P1] => a\nP1 = a:x? => b", X_OF_A, scheduling=CLOSE, final=9)
    cycles(run, *range(1, 8))
    assert forgets(run, 2)
    run.triggers("1/b", flow=FlowChoice.NONE).restarts()
    assert run.pool["1/b"] == "running"


class _NobodyToAsk:
    def recall(self, point: int, name: str) -> None:
        raise AssertionError(f"the past is asked for {point}/{name}")


def test_tasks_that_were_put_behind_the_horizon_come_back_without_a_look_at_the_past():
    """To look would take a fetch, and another start, for each of them."""
    graph = "P1 = a[-P1] => a\nP1 = a:x? => c & d"
    run = Scenario(graph, X_OF_A, scheduling=CLOSE, start=5, final=13)
    cycles(run, *range(5, 12))
    assert forgets(run, 2)
    run.triggers("1/c", "2/c", "2/d")
    run.restarts(past=_NobodyToAsk())
    assert [run.pool[one] for one in ("1/c", "2/c", "2/d")] == ["running"] * 3


def test_a_run_in_a_store_is_mended_where_its_scheduler_has_forgotten_it(tmp_path):
    run = DrivenRun(
        tmp_path,
        """
        [scheduling]
            cycling mode = integer
            initial cycle point = 1
            final cycle point = 4
            runahead limit = P0
            [[graph]]
                P1 = \"\"\"
                    a & b & FAM:succeed-all => c
                    a:fail => mail
                    FAM:fail-any => letter
                \"\"\"
        [runtime]
            [[root]]
                script = true
            [[a, b, c, mail, letter]]
            [[FAM]]
            [[m1, m2]]
                inherit = FAM
        """,
    )
    try:
        run.fails("1/a", "1/m2").ends("1/b", "1/m1").ends("1/mail", "1/letter")
        run.ends("2/a", "2/b", "2/m1", "2/m2").ends("2/c")
        run.ends("3/a", "3/b", "3/m1", "3/m2").ends("3/c").crash()
        run.gives(verbs.Trigger(ids=("1/a",), flow="1"))
        run.ends("1/a").crash()
        run.gives(verbs.Set(ids=("1/m2",), flow="1"))
        assert "1/c/1" in run.running
        run.crash().ends("1/c").ends("4/a", "4/b", "4/m1", "4/m2").ends("4/c")
        assert run.status == "completed"
        calls = run.way_to_store.calls
        assert calls["read_run"] == 1 + 3, "it was never read again for want of the past"
        assert calls["histories"] > 0
    finally:
        run.close()


def test_a_step_that_needs_more_of_the_past_than_was_fetched_is_made_again_with_it(tmp_path):
    run = DrivenRun(
        tmp_path,
        """
        [scheduling]
            cycling mode = integer
            initial cycle point = 1
            final cycle point = 6
            runahead limit = P0
            [[graph]]
                P1 = \"\"\"
                    a[-P1]:fail => x
                    x[-P2] | a => b
                \"\"\"
        [runtime]
            [[root]]
                script = true
            [[a, b, x]]
        """,
    )
    try:
        for point in range(1, 6):
            run.ends(f"{point}/a").ends(f"{point}/b")
        before = run.way_to_store.calls["read_run"]
        run.way_to_store.loses_requests("histories")
        with pytest.raises(StoreUnreachable):
            run.gives(verbs.Trigger(ids=("5/a",), flow="new"))
        run.goes_on()
        assert run.running == ["5/a/2", "6/a/1"]
        assert run.way_to_store.calls["read_run"] > before
        run.ends("5/a").ends("5/b").ends("6/a").ends("6/b")
        assert run.status == "completed"
    finally:
        run.close()


def test_what_a_step_may_need_is_what_lies_around_its_task():
    run = run_with_a_handled_failure()
    near = neighbourhood(run.core, [run.key("2/model")])
    around = {run.key(f"2/{name}") for name in ("model", "obs", "post", "mail")}
    assert near == around | {run.key(f"{point}/model") for point in range(3, 13)}
    assert neighbourhood(run.core, [run.key("13/model"), (1, "gone")]) == {(1, "gone")}
    assert near_the_horizon(run.core) == []
    assert near_the_horizon(run.triggers("2/model").core) == [run.key("2/model")]
    fresh = Scenario("a => b").core
    assert neighbourhood(fresh, [(1, "a")]) == set()
    assert near_the_horizon(fresh) == []


class Twins:
    """Two runs of one graph with the same events, of which one never forgets anything.

    A task of the first point that does not end keeps it from that. One of the last point keeps
    both from ending.
    """

    KEEPERS = ("keeper", "anchor")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.keeping, self.forgetting = Scenario(graph), Scenario(graph).succeeds("1/keeper")
        self.names = [name for name in graph.nodes if name not in self.KEEPERS]

    @property
    def active(self) -> list[tuple[int, str]]:
        tasks = self.forgetting.core.tasks.values()
        return sorted(t.key for t in tasks if t.is_active and t.key[1] not in self.KEEPERS)

    def do(self, deed) -> None:
        for run in (self.keeping, self.forgetting):
            deed(run)
        seen, known = self._seen(self.forgetting), self._seen(self.keeping)
        assert seen == known

    def _seen(self, run: Scenario) -> tuple[object, ...]:
        submitted = sorted((run.id_of(s.task), sorted(s.flows)) for s in run.submissions)
        pool = {one: word for one, word in run.pool.items() if one != "1/keeper"}
        flows = {one: found for one, found in run.flows.items() if one != "1/keeper"}
        return submitted, pool, run.verdicts, flows


DEEDS = {
    "trigger": lambda run, one: run.triggers(one),
    "trigger --flow 1": lambda run, one: run.triggers(one, flow=1),
    "reflow": lambda run, one: run.reflows(one),
    "set": lambda run, one: run.sets(one),
    "set --out failed": lambda run, one: run.sets(one, "failed"),
    "set --pre all": lambda run, one: run.sets_prerequisites(one, everything=True),
    "remove": lambda run, one: run.removes(one, kill=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1030))
def test_whatever_is_done_there_does_what_it_would_have_done_in_time(seed):
    chance = random.Random(seed)
    case = generate(seed)
    last = case.names[-1]
    family = (
        f"FAM:succeed-all & a => {last}z\nFAM[-P1]:fail-any | {last}z => fz\n"
        "FAM:finish-all & a[-P1] => gz\nFAM:fail-any => hz\n"
    )
    graph = f'P1 = """\n{case.graph}\n{family}"""\nR1 = keeper\nR1/$ = anchor'
    wide = "runahead limit = P99"
    try:
        compiled = compile_graph(
            graph, case.runtime + "\n" + FAMILY, final=case.final + 2, scheduling=wide
        )
    except AssertionError:
        return  # the graph that was drawn is none
    twins = Twins(compiled)
    done: list[str] = []
    for _ in range(70):
        horizon = twins.forgetting.core.run.horizon or 1
        if horizon > 1 and len(done) < 6 and chance.random() < 0.4:
            one = f"{chance.randint(1, horizon - 1)}/{chance.choice(twins.names)}"
            name = chance.choice(list(DEEDS))
            if not (name == "remove" and was_pruned(twins.keeping, one)):
                done.append(f"{name} {one}")
                twins.do(lambda run, name=name, one=one: DEEDS[name](run, one))
        elif twins.active:
            key = twins.active[0]
            handled = {*compiled.nodes[key[1]].links, *compiled.nodes[key[1]].groups}
            how = (
                JobEnd.FAILED if "failed" in handled and chance.random() < 0.4 else "succeeded"
            )
            submit = twins.forgetting.core.tasks[key].submit
            end = JobEnded(key, submit, JobEnd(how), twins.forgetting.now)
            twins.do(lambda run, end=end: run.happens(end))
        if chance.random() < 0.1:
            twins.forgetting.restarts()


def was_pruned(run: Scenario, one: str) -> bool:
    memory = run.core.recall(*run.key(one))
    return memory is not None and any(
        verdict.kind is VerdictKind.PRUNED for verdict in memory.verdicts.values()
    )
