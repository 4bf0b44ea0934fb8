"""Whatever operators do, and whenever, the invariants hold and every change is told."""

from __future__ import annotations

import random

import pytest

from tests.kit.scenario import Scenario, compile_graph
from tests.unit.test_sched_fixpoint import compiled, generate
from tidewheel.core.sched import events
from tidewheel.core.sched.events import FlowChoice

SEEDS = 40
STEPS = 60
LIMITS = (
    "runahead limit = P9",
    "runahead limit = P0",
    "runahead limit = P1\n[[queues]]\n[[[default]]]\nlimit = 1",
)
FLOWS = (FlowChoice.DEFAULT, FlowChoice.ALL, FlowChoice.NONE, FlowChoice.NEW)


def intervene(run: Scenario, chance: random.Random, ids: list[str]) -> None:
    one, other = chance.choice(ids), chance.choice(ids)
    flow = chance.choice(FLOWS)
    deeds = (
        lambda: run.triggers(one, flow=flow, wait=chance.random() < 0.3),
        lambda: run.triggers(one, other, flow=flow),
        lambda: run.triggers(one, flow=FlowChoice.NEW, until=2, ignore_before=True),
        lambda: run.sets(one, flow=flow if flow is not FlowChoice.NONE else FlowChoice.ALL),
        lambda: run.sets(one, chance.choice(("failed", "started", "x"))),
        lambda: run.sets_prerequisites(one, f"{other}:started", everything=flow is FLOWS[0]),
        lambda: run.removes(one, forget=chance.random() < 0.3, kill=True),
        lambda: run.removes(one, kill=True, flow=chance.randint(1, 3)),
        lambda: run.holds(one),
        lambda: run.releases(one),
        lambda: run.happens(chance.choice((events.RunPaused, events.RunResumed))(run.now)),
        lambda: run.happens(events.FlowStopped(chance.randint(1, 4), run.now)),
        lambda: run.happens(events.AllReleased(run.now)),
        lambda: run.happens(events.AllHeldAfter(run.key(one)[0], run.now)),
        lambda: run.happens(events.RunReloaded(run.graph, run.now)),
        lambda: run.why(one),
    )
    chance.choice(deeds)()


def draw(seed: int, chance: random.Random):
    case = generate(seed)
    if compiled(case) is None:
        return None, []
    graph = case.graph
    suicide = f"{case.names[0]}[-P1]:start & {case.names[0]}:x => !{case.names[-1]}"
    if chance.random() < 0.4:
        graph += f"\n{suicide}"
    graph = compile_graph(
        graph, case.runtime, final=case.final, scheduling=chance.choice(LIMITS)
    )
    return graph, [
        f"{point}/{name}" for point in range(1, case.final + 1) for name in case.names
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_that_operators_do_breaks_the_pool(seed):
    chance = random.Random(seed)
    graph, ids = draw(seed, chance)
    if graph is None:
        return
    run = Scenario(graph)
    for _ in range(STEPS):
        active = [one for one, word in run.pool.items() if word == "running"]
        if active and chance.random() < 0.7:
            verb = chance.choice((run.succeeds, run.succeeds, run.fails, run.is_killed))
            verb(chance.choice(active))
        else:
            intervene(run, chance, ids)
        if chance.random() < 0.2:
            run.restarts()
