"""A run goes on under a version that numbers its prerequisites otherwise (SEMANTICS §10).

What is stored of a task are its prerequisites by what they mean. Here runs are restarted under
plans of the same graph whose arrows and terms were read in another order.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.kit.scenario import Scenario, compile_flow
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_graphs import draw
from tests.support.other_numberings import Shuffled, backwards
from tidewheel.core.sched.events import JobEnd, JobEnded
from tidewheel.core.sched.persistence import PutTask, everything, reads_otherwise, rebuild

Restart = Callable[[Scenario, int], None]

FAMILY = "[[FAM]]\n[[m1, m2, m3]]\ninherit = FAM"
XTRIGGER = "[[xtriggers]]\nx = echo(succeed=True)\n"
GRAPHS = {
    "one arrow": ("a & b & d => c", {}),
    "several arrows and alternatives": ("a & (b | d:fail) => c\nd | a:fail => c\nb => e", {}),
    "families": (
        "FAM:succeed-all & a => c\na & FAM:start-any => d\nFAM:finish-all | d => e",
        {"runtime": FAMILY},
    ),
    "fixed points": (
        "R1 = i & FAM\nP1 = x & i[^] => c\nP1 = FAM[^]:succeed-all & x[-P1] & i[2]:start => e\n"
        "P1 = FAM[^]:fail-any | x => f\nR1/2 = i",
        {"runtime": FAMILY, "final": 3},
    ),
    "offsets": ("a[-P1] & b[+P1]:start & b => a\nb[-P2] & a & c[-P1] => c", {"final": 4}),
    "one after the other": (
        "a & b => s",
        {"final": 3, "scheduling": "[[special tasks]]\nsequential = s, b"},
    ),
    "xtriggers": ("@x => c\na & b & d => c\nc & a => e", {"scheduling": XTRIGGER}),
    "suicide": ("a & b & d:start => c\na:fail & b:fail => !c\nb:fail & a:start => e", {}),
}


def play(run: Scenario, seed: int, restart: Restart) -> Scenario:
    """To the end, in an order drawn by the seed; a restart before every end."""
    chance = random.Random(seed)
    for step in range(80):
        active = sorted(key for key, task in run.core.tasks.items() if task.is_active)
        if not active:
            return run
        if step in (3, 6):
            run.reflows(run.id_of(active[0])) if step == 3 else run.triggers(
                run.id_of(active[0])
            )
        key = chance.choice(active)
        how = chance.choice(
            (JobEnd.SUCCEEDED, JobEnd.SUCCEEDED, JobEnd.SUCCEEDED, JobEnd.FAILED)
        )
        restart(run, step)
        run.happens(JobEnded(key, run.core.tasks[key].submit, how, run.now))
    return run


def what_became_of(run: Scenario) -> tuple[object, ...]:
    """What must not depend on numbers: submissions, verdicts, what is left, and for what."""
    left = {
        (run.id_of(row.row[:2]), row.row.flows, frozenset(row.row.true), row.row.missing)
        for row in everything(run.core)
        if isinstance(row, PutTask)
    }
    submitted = sorted((run.id_of(one.task), sorted(one.flows)) for one in run.submissions)
    return submitted, run.verdicts, run.pool, left, run.status


def never(run: Scenario, step: int) -> None:
    del run, step


@pytest.mark.parametrize("order", [backwards, Shuffled(1), Shuffled(2)])
def test_what_waits_for_three_parents_runs_after_the_last_of_them(order):
    """The example of an audit: killed after one of them, `c` never ran."""
    run = Scenario("a & b & d => c").succeeds("1/a").restarts(order).succeeds("1/b", "1/d")
    assert run.pool == {"1/c": "running"}
    assert run.succeeds("1/c").completed


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", range(4))
def test_another_numbering_at_every_crash_changes_nothing(name, seed):
    graph, options = GRAPHS[name]

    def made() -> Scenario:
        run = Scenario(graph, **options)
        return run.xtrigger("x", "1/c") if name == "xtriggers" and seed % 2 else run

    calm = play(made(), seed, never)
    restarts = (
        lambda run, step: run.restarts(backwards if step % 2 else None),
        lambda run, step: run.restarts(Shuffled(step)),
        *(
            lambda run, step, at=at: run.restarts(Shuffled(seed)) if step == at else None
            for at in range(10)
        ),
    )
    for restart in restarts:
        assert what_became_of(play(made(), seed, restart)) == what_became_of(calm)


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_go_on_under_another_numbering(seed):
    case = draw(seed)
    graph = compile_flow(flow_text(case.graph))
    calm = play(Scenario(graph, start=case.graph.start), seed, never)
    numbered = play(
        Scenario(graph, start=case.graph.start),
        seed,
        lambda run, step: run.restarts(Shuffled(step)),
    )
    assert what_became_of(numbered) == what_became_of(calm)


def test_a_version_that_asks_for_other_atoms_is_noticed():
    run = Scenario("a & b => c").succeeds("1/a")
    rows = everything(run.core)
    assert not reads_otherwise(rebuild(run.core.plan, rows), rows)
    (waiting,) = (row for row in rows if isinstance(row, PutTask) and row.row.missing)
    others = [row for row in rows if row is not waiting]
    strange = PutTask(waiting.row._replace(true=((1, "a", "succeeded"), (1, "z", "done"))))
    assert reads_otherwise(rebuild(run.core.plan, [*others, strange]), [*others, strange])
    forgetful = PutTask(waiting.row._replace(true=()))
    assert reads_otherwise(rebuild(run.core.plan, [*others, forgetful]), [*others, forgetful])
