"""Two runs that must come to the same, one of them with a command: checked by the oracle.

- A reload to G is G from there on: a reload to the same definition changes nothing, and a run
  that began with lower limits, or without arrows of which nothing was known yet, ends as one
  that had all of G from the start.
- A task that is removed and run again is one that ran once, later, as long as no child of it
  was submitted.

- Tasks that are triggered, set, removed or held before they ran end as the text says, whenever
  that is done.

- Flows that are started anywhere, at any time, do what the oracle says of each, and what they
  know together where they meet.

- Tasks that are triggered together earn what they need of each other, whatever ran before.

A failure prints the command that shows it again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import cast

import pytest

from tests.kit.sched_invariants import fingerprint
from tests.sim.campaigns import campaigns_of
from tests.sim.sched_oracle import SUCCEEDED, Arrow, Graph, Key, Oracle, Try, leaves
from tests.sim.sched_oracle_comparing import disagreements
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_graphs import (
    Case,
    draw_outcomes,
    has_cycle,
    never_there,
    sometimes_missing,
)
from tests.sim.sched_oracle_groups import GroupRun
from tests.sim.sched_oracle_lists import SIZE_MAX, draw_with_lists, everywhere
from tests.sim.sched_oracle_reflow import ReflowRun
from tests.sim.sched_oracle_runs import Broken, Driven
from tests.sim.seeds import CAMPAIGNS

PLAYED = CAMPAIGNS["properties"]
RUNAHEAD_MAX = 9
DEEDS_MAX = 4


def the_same_definition(seed: int) -> bool:
    """Loaded again, whenever, nothing changes."""
    rng, case = Random(seed), draw_with_lists(seed)
    run = Driven(case, rng.randrange)
    again = rng.choice((0.1, 0.5, 1.0))
    while run.happens_next():
        if rng.random() < again:
            before, submitted = _state(run), len(run.run.submitted)
            run.reloads(case)
            assert _state(run) == before, "a reload changed something"
            assert len(run.run.submitted) == submitted, "a reload submitted something"
    _ends_as_said(run)
    return True


def higher_limits(seed: int) -> bool:
    """What waits for room, or for the limit, goes on at once."""
    rng, case = Random(seed), draw_with_lists(seed)
    graph = case.graph
    tight = replace(
        graph,
        limit=rng.randint(1, graph.limit or 3),
        runahead=rng.randint(0, RUNAHEAD_MAX if graph.runahead is None else graph.runahead),
    )
    run = _reloaded(Case(tight, case.outcomes), case, rng, lambda _: True)
    assert run is not None
    _ends_as_said(run)
    return True


def later_arrows(seed: int) -> bool:
    """What is added before anything of it could have happened counts as if always there."""
    rng, case = Random(seed), draw_with_lists(seed)
    graph = case.graph
    arrows = [one for one in graph.arrows if one.condition and not one.hidden]
    dropped = tuple(one for one in arrows if rng.random() < 0.3)
    fewer = replace(graph, arrows=tuple(one for one in graph.arrows if one not in dropped))
    # A parent that is off its sequence is seen as soon as its child is near.
    if sometimes_missing(graph) or fewer.placed() != graph.placed():
        return False
    if not dropped or never_there(fewer) or has_cycle(fewer):
        return False
    start = Case(fewer, case.outcomes)
    run = _reloaded(start, case, rng, lambda run: _is_untouched(run, dropped))
    if run is None:
        return False
    _ends_as_said(run)
    return True


def run_again(seed: int) -> bool:
    """Removed and run again, a task is one that ran once, later."""
    rng, case = Random(seed), draw_with_lists(seed)
    if any(arrow.suicide for arrow in case.graph.arrows):
        return False
    # A task that is triggered asks for no room, and holds the limit back.
    graph = everywhere(replace(case.graph, limit=None, runahead=None))
    case = Case(graph, {**draw_outcomes(graph, Random(seed)), **case.outcomes})
    run = Driven(case, rng.randrange)
    for _ in range(rng.randint(1, 30)):
        if not run.happens_next():
            break
    keys = sorted(filter(lambda key: _may_run_again(run, key), run.submitted))
    if not keys:
        return False
    key = rng.choice(keys)
    customs = tuple(one for one in case.graph.customs.get(key[1], ()) if rng.random() < 0.7)
    job = rng.choice((Try(SUCCEEDED, customs), case.outcomes[key][-1]))
    run.runs_again(key, job, rng.randint(0, SIZE_MAX))
    run.to_the_end()
    if key in run.pool:
        return False  # incomplete: children that were there before wait for it in the pool
    run.ran_once(key)
    # Who was there because of the first time stays in the pool, and waits.
    found = [one for one in disagreements(run) if not _is_only_waiting(one)]
    assert not found, "; ".join(found)
    return True


def mended(seed: int) -> bool:
    """What failed and others are lost by, tried again or set: all run that it kept from it."""
    rng, case = Random(seed), draw_with_lists(seed)
    if any(arrow.suicide for arrow in case.graph.arrows):
        return False
    graph = replace(case.graph, limit=None, runahead=None)
    run = Driven(Case(graph, case.outcomes), rng.randrange)
    for _ in range(rng.randint(3, 40)):
        if not run.happens_next():
            break
    keys = sorted(filter(lambda key: _is_why_others_are_lost(run, key), run.submitted))
    if not keys:
        return False
    key = rng.choice(keys)
    job = Try(SUCCEEDED, graph.customs.get(key[1], ()))
    if rng.random() < 0.5 and not job.customs and key[1] not in graph.optional():
        run.sets(key)
    else:
        run.mends(key, job)
    run.to_the_end()
    well = Oracle(graph, {**case.outcomes, key: (job,)})
    missing = well.submissions.keys() - run.submitted.keys()
    assert not missing, f"did not run: {sorted(missing)}"
    return True


def _is_why_others_are_lost(run: Driven, key: Key) -> bool:
    graph = run.case.graph
    last = run.case.outcomes[key][-1]
    ended = key not in run.pool and key[1] not in graph.retries and last.end != SUCCEEDED
    lost = {one for one, word in run.verdicts.items() if word == "lost"}
    lost |= {one for one, word in run.pool.items() if word == "blocked"}
    made = last.outputs | {last.end}
    return (
        ended
        and _is_remembered(run, key)
        and any(
            (point, name) in lost
            for arrow in graph.arrows
            for leaf in leaves(arrow.condition)
            if (key[1] in leaf.names and made.isdisjoint(leaf.outputs)) or key[1] == leaf.source
            if leaf.every or len(leaf.names) == 1
            for point in arrow.points
            if leaf.parent_point(point) == key[0]
            for name in arrow.targets
        )
    )


def operated(seed: int) -> bool:
    """Who triggers, sets, removes and holds tasks that have not run gets what the text says.

    The oracle is told of it and of nothing else: what is triggered needs nothing, what is set
    has succeeded, what is removed is lost, whenever that was.
    """
    rng, case = Random(seed), draw_with_lists(seed)
    if any(arrow.suicide for arrow in case.graph.arrows):
        return False
    case = Case(replace(case.graph, limit=None, runahead=None), case.outcomes)
    run = Driven(case, rng.randrange, restart=lambda: rng.random() < 0.1)
    left = sorted(case.outcomes)
    rng.shuffle(left)
    done = 0
    while run.happens_next() or done < DEEDS_MAX:
        if rng.random() < 0.3 and left and done < DEEDS_MAX:
            done += _does_something(run, left.pop(), rng)
        elif not left or rng.random() < 0.1:
            run.releases_all()
            done += not left
    run.releases_all()
    run.to_the_end()
    found = [one for one in disagreements(run) if not _has_come_back(run, one)]
    assert not found, "; ".join(found)
    return done > 0


def _does_something(run: Driven, key: Key, rng: Random) -> bool:
    if key in run.submitted or not _is_remembered(run, key) or key[0] < run.case.graph.start:
        return False
    if not run.has_come(key):
        assert run.is_refused(key), f"{key[0]}/{key[1]} is not there, and somebody may say so"
        return False
    graph = run.case.graph
    may_be_set = key[1] not in graph.customs and key[1] not in graph.optional()
    deeds = [run.triggers, run.removes, run.holds, *[run.sets] * may_be_set]
    rng.choice(deeds)(key)
    return True


def _is_remembered(run: Driven, key: Key) -> bool:
    """Whether all is known by which its children are judged."""
    core = run.run.core
    horizon = core.run.horizon
    known = -1 if horizon is None else horizon + core.plan.reach_back
    return all(point >= known for point, _ in (key, *_children(run.case.graph, key)))


def _state(run: Driven) -> dict[str, object]:
    """All that a run is, but for what is known ahead of tasks that will not come."""
    core = run.run.core
    ahead = {
        (point, name)
        for point, there in core.memory.items()
        for name, memory in there.items()
        if not memory.spawned and not memory.made and not memory.submits
    }
    found = fingerprint(core)
    rows = cast("list[str]", found["rows"])
    groups = cast("dict[tuple[int, int, int, str], object]", found["groups"])
    shown = tuple(f"PutMemory(key={one}" for one in ahead)
    return {
        **found,
        "rows": [row for row in rows if not row.startswith(shown)],
        "groups": {
            (index, point, flow, member): value
            for (index, point, flow, member), value in groups.items()
            if (point, member) not in ahead
        },
    }


def _reloaded(
    start: Case, then: Case, rng: Random, is_time: Callable[[Driven], bool]
) -> Driven | None:
    run = Driven(start, rng.randrange)
    for _ in range(rng.choice((0, 0, 1, 3, 6, 12, 20))):
        if not run.happens_next():
            break
    if not is_time(run):
        return None
    run.reloads(then)
    return run.to_the_end()


def _ends_as_said(run: Driven) -> None:
    found = disagreements(run)
    assert not found, "; ".join(found)


def _has_come_back(run: Driven, disagreement: str) -> bool:
    """Whether tasks only wait because they were blocked, or judged, and are no longer (§5).

    Who is blocked is spawned, and stays. Of those whose verdict is withdrawn who has a true
    atom then is spawned, be it one at a fixed point, by which nobody comes.
    """
    if not _is_only_waiting(disagreement):
        return False
    listed = disagreement.removeprefix("waiting: unexpected ").removesuffix(", missing []")
    back = {text.removesuffix(" is back in the pool") for text in run.run.notices("back")}
    back |= {text.partition(" is blocked")[0] for text in run.run.notices("blocked")}
    return {f"{point}/{name}" for point, name in ast.literal_eval(listed)} <= back


def _is_only_waiting(disagreement: str) -> bool:
    return disagreement.startswith("waiting: ") and disagreement.endswith(", missing []")


def _is_untouched(run: Driven, arrows: tuple[Arrow, ...]) -> bool:
    """Whether nothing is known of the targets of arrows, nor of their parents.

    Nor of any task, at any point, to which an arrow gives another output that it has to make.
    """
    core, graph = run.run.core, run.case.graph
    start, known = graph.start, {name for there in core.memory.values() for name in there}
    for arrow in arrows:
        for leaf in leaves(arrow.condition):
            for name in known.intersection(leaf.names):
                if not set(leaf.outputs).isdisjoint(graph.customs.get(name, ())):
                    return False
        for point in arrow.points:
            wanted = {(point, name) for name in arrow.targets}
            for leaf in leaves(arrow.condition):
                parent = leaf.parent_point(point)
                names = (*leaf.names, *[leaf.source] * bool(leaf.source))
                wanted |= {(parent, name) for name in names if parent >= start}
            if any(core.recall(*key) is not None for key in wanted):  # type: ignore[arg-type]
                return False
    return True


def _may_run_again(run: Driven, key: Key) -> bool:
    """Whether a task has ended and left, and none of its children was submitted."""
    graph = run.case.graph
    if key in run.pool or key[1] in graph.retries:
        return False
    submitted = any(one in run.submitted for one in _children(graph, key))
    return _is_remembered(run, key) and not submitted


def _children(graph: Graph, key: Key) -> Iterator[Key]:
    for arrow in graph.arrows:
        for leaf in leaves(arrow.condition):
            if key[1] in (*leaf.names, leaf.source):
                for point in arrow.points:
                    if leaf.parent_point(point) == key[0]:
                        yield from ((point, name) for name in arrow.targets)


def reflowed(seed: int) -> bool:
    """New flows, anywhere and at any time: each does what the graph says of it."""
    run = ReflowRun(seed)
    run.plays(flows=run.rng.choice((1, 1, 2)))
    found = run.disagreements()
    assert not found, "; ".join([*found, flow_text(run.graph), *run.history])
    return True


def grouped(seed: int) -> bool:
    """Several tasks at once, whatever they did before: each waits for what it needs of them."""
    run = GroupRun(seed)
    try:
        return run.plays()
    except Broken as broken:
        shown = "\n".join((str(broken), flow_text(run.graph), *run.history))
        raise AssertionError(shown) from broken


PROPERTIES = (
    the_same_definition,
    higher_limits,
    later_arrows,
    run_again,
    operated,
    mended,
    reflowed,
    grouped,
)


def play(seed: int) -> None:
    """Check every property that can be checked in this world."""
    for holds in PROPERTIES:
        try:
            holds(seed)
        except (AssertionError, Broken) as error:
            raise AssertionError(f"{holds.__name__}: {error}") from error


@pytest.mark.parametrize("holds", PROPERTIES)
def test_some_worlds_are_fit_for_each_property(holds):
    assert any(holds(seed) for seed in range(1, 60))


@pytest.mark.parametrize("seed", PLAYED.begins())
def test_two_runs_come_to_the_same(seed):
    with campaigns_of(PLAYED) as campaigns:
        campaigns.hold(seed, PLAYED.each)
