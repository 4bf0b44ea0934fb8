"""Small worlds in full: each order in which each job can end in each way, with restarts.

A world is a graph of at most three tasks (and the members of a family) at two points, or three
where a rule needs them. Its states are walked through from the start; each step begins with a
pool made again from the rows that were written. Wherever nothing more can happen the oracle is
asked. Two ways to one state with the same ends behind it are walked on once.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.kit.scenario import compile_flow
from tests.kit.sched_invariants import check_invariants
from tests.sim.sched_oracle import (
    FAILED,
    STARTED,
    SUBMIT_FAILED,
    SUCCEEDED,
    Arrow,
    Every,
    Graph,
    Key,
    Leaf,
    List,
    Oracle,
    Try,
)
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_lists import size_text
from tests.sim.sched_oracle_text import read_graph
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import events
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.events import Event, JobEnd, Submit
from tidewheel.core.sched.lifecycle import root_causes
from tidewheel.core.sched.persistence import (
    ForgetMemory,
    ForgetStored,
    PoolLedger,
    PutMemory,
    rebuild,
)
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.step import new_pool, step
from tidewheel.core.sched.task_state import Flows, JobPhase, PoolState, VerdictKind

NOW = Instant(1_900_000_000.0)
STATES_MAX = 20_000

SEEDS = {
    "both parents": "P1 = a & b => c",
    "either parent": "P1 = a | b => c",
    "a chain over points": "P1 = a[-P1] => a => b",
    "a handled failure": "P1 = a:fail => b\nP1 = a => c",
    "R001-14: a failure removes": "P1 = a:fail => x\nP1 = a & b => c",
    "R001-15: only the path taken": "P1 = a:out1 => b\nP1 = a:out2 => c",
    "R001-16: alternate paths meet": "R1 = a:out1 => p\nR1 = a:out2 => q\nR1 = p | q => r",
    "R001-17: failed and another": "P1 = a:fail => b\nP1 = a => c\nP1 = x => c",
    "R001-23: an unhandled failure": "P1 = x => b\nP1 = a & b => c",
    "R001-25: the orphan": "P1 = x:fail => alert\nP1 = x => b\nP1 = a & b => c",
    "R001-28: email me": "P1 = a:fail => m\nP1 = a => b => c",
    "R001-7: an absolute parent": "R1 = s\nP1 = s[^] => a",
    "R001-8: an absolute parent later": "R1/$ = s\nP1 = s[2] => a",
    "the forecast": "P1 = obs & m[-P1] => m\nP1 = m:fail => mail",
    "recovery by either": "P1 = a:fail => b\nP1 = a | b => c",
    "recovery by either, next point": "P1 = a:fail => b\nP1 = a[-P1] | b[-P1] => c",
    "finish": "P1 = a:finish => b\nP1 = a & b => c",
    "a start": "P1 = a:start => b\nP1 = a & b => c",
    "not even submitted": "P1 = a:submit-fail => b\nP1 = a:submit => c",
    "a custom output of the past": "P1 = a[-P1]:x => b\nP1 = a & b => c",
    "a failure before the start": "P1 = a[-P1]:fail => b\nP1 = a & b => c",
    "the future": "P1 = a[+P1] => b\nP1 = a & b => c",
    "a suicide of the other branch": "P1 = a:fail => b\nP1 = a => c\nP1 = a => !b",
    "a suicide, not spawned": "P1 = a => !b\nP1 = c => b",
    "two suicides are one": "P1 = a => !c\nP1 = b => !c\nP1 = b[-P1] => c",
    "a suicide of the failed": "P1 = a => !b\nP1 = b => c",
    "a marked task": "P1 = a? => b\nP1 = a:fail? => c",
    "a marked output": "P1 = a:x? => b\nP1 = a & b => c",
    "an absolute parent that is lost": "R1 = a\nR1 = a:fail => m\nP1 = a[^] => b",
    "an absolute failure": "R1 = x\nP1 = x[^]:fail => b\nP1 = b[-P1] & c => d",
    "every second point": "P2 = a[-P2] => b\nP2 = a\nP1 = b[-P1] | a[-P1]:fail => c",
}
FAMILY = {
    "a family, all": "P1 = FAM:succeed-all => b",
    "a family, any": "P1 = FAM:succeed-any => b",
    "a family, any failed": "P1 = FAM:fail-any => b\nP1 = FAM:succeed-all => c",
    "a family, all finished": "R1 = FAM:finish-all & FAM:succeed-any => b",
    "a family before": "P1 = FAM[-P1]:succeed-any => b\nP1 = FAM",
}
# What the core once did wrong, at as many points as it takes (findings of the random test).
THREE_POINTS = {
    "a dead absolute parent, later": "R1 = x\nP1 = x[^]:fail => b\nP1 = b[-P1] & c => d",
    "an absolute suicide, later": "R1 = x\nP1 = x[^] => !b\nP1 = c[-P1] => b\nR1 = c",
    "one absolute parent, two recurrences": "R1 = c\nR2/^/P1 = c[^] => b\nR1/$ = c[^] => b",
    "an absolute parent and another": "R1/$ = b[^] => c\nP2 = a & b => c\nP1 = b[^] => c",
    "a lost absolute parent and others": "R1 = c:fail => e\nP1 = c[^] => e",
}
BOUNDED = {
    "a limit group": "P1 = a & b => c",
    "runahead": "P1 = a[-P1] => b\nP1 = a & c",
    "an absolute parent that ends late": "P1 = c[3]:finish & a:x => b\nP1 = c",
}


# Elements p_f0, p_f1 of lists with so many at the two points: (sizes, beside the list, join).
MAPPED = {
    "all elements": ({1: 2, 2: 0}, "", "succeed-all"),
    "any element": ({1: 0, 2: 2}, "", "succeed-any"),
    "a failed element": ({1: 2, 2: 1}, "", "fail-any"),
    "elements and another parent": ({1: 1, 2: 0}, "x", "succeed-all"),
    "elements of the point before": ({1: 2, 2: 0}, "", "[-P1]:succeed-all"),
}


def mapped_world(sizes: dict[int, int], beside: str, join: str) -> Graph:
    """A source s, elements p<f> and what joins them, j."""
    points = frozenset(sizes)
    place, _, word = join.rpartition(":")
    output = FAILED if word.startswith("fail") else SUCCEEDED
    names = tuple(f"p_f{index}" for index in range(max(sizes.values())))
    group = Leaf(
        names,
        (output,),
        -1 if place else 0,
        None,
        word.endswith("all"),
        text=f"p<f>{place}:{word}",
        source="s",
    )
    parents = Every((Leaf(("s",)), Leaf((beside,)))) if beside else Leaf(("s",))
    elements = [
        Arrow(
            "P1",
            frozenset(point for point, size in sizes.items() if size > index),
            parents,
            (name,),
            name,
            hidden=True,
        )
        for index, name in enumerate(names)
    ]
    homes = [Arrow("P1", points, None, (one,), one) for one in ("s", beside) if one]
    line = f"P1 = {f's & {beside}' if beside else 's'} => p<f>"
    joined = Arrow("P1", points, group, ("j",), "j")
    return Graph(2, (*homes, *elements, joined), list=List("s", sizes, (line,)))


def worlds() -> dict[str, Graph]:
    found = {name: read_graph(text) for name, text in SEEDS.items()}
    for name, text in FAMILY.items():
        found[name] = read_graph(text, families={"FAM": ("m", "n")})
    found |= {name: read_graph(text, final=3) for name, text in THREE_POINTS.items()}
    found["a limit group"] = read_graph(BOUNDED["a limit group"], limit=1)
    found["runahead"] = read_graph(BOUNDED["runahead"], runahead=0)
    late = "an absolute parent that ends late"
    found[late] = read_graph(BOUNDED[late], final=3, runahead=0)
    found |= {name: mapped_world(*parts) for name, parts in MAPPED.items()}
    return found


class History:
    """What the store still knows of tasks that the pool has forgotten."""

    def __init__(self, rows: dict[object, PutMemory]) -> None:
        self.rows = rows

    def submits(self, point: Point, name: str) -> int:
        row = self.rows.get((point, name))
        return 0 if row is None else row.submits

    def spawned(self, point: Point, name: str) -> Flows:
        row = self.rows.get((point, name))
        return frozenset() if row is None else row.spawned


class State(NamedTuple):
    """A moment of a run: what was written, and how each job has ended so far."""

    rows: dict[object, object]
    past: dict[object, PutMemory]
    ends: tuple[tuple[Key, Try], ...]

    def identity(self) -> tuple[object, ...]:
        return frozenset(self.ends), frozenset(map(repr, self.rows.values()))


class World:
    """All runs of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ended = 0
        pool = new_pool(compile_flow(flow_text(graph)))
        self._plan: DependencyIndex = pool.plan
        self._uses = graph.uses()
        self._start = self._after(pool, [events.RunStarted(NOW)], State({}, {}, ()))

    def explore(self) -> int:
        seen = {self._start.identity()}
        todo = [self._start]
        while todo:
            for following in self._following(todo.pop()):
                identity = following.identity()
                if identity not in seen:
                    seen.add(identity)
                    todo.append(following)
            assert len(seen) < STATES_MAX
        return len(seen)

    def _pool(self, state: State) -> TaskPool:
        return rebuild(self._plan, state.rows.values(), History(state.past))  # type: ignore[arg-type]

    def _following(self, state: State) -> list[State]:
        active = [
            (task.key, task.submit)
            for task in self._pool(state).tasks.values()
            if JobPhase.WAITING < task.stage < JobPhase.INCOMPLETE
        ]
        if not active:
            self._judge(state)
        found = []
        for key, submit in active:
            for job in self._jobs(key[1]):
                pool = self._pool(state)
                ends = (*state.ends, (_plain(key), job))
                reports = self._reports(key, submit, job)
                found.append(self._after(pool, reports, state._replace(ends=ends)))
        return found

    def _jobs(self, name: str) -> list[Try]:
        """The ways in which a job can end that make a difference."""
        used = self._uses.get(name, set())
        customs = self.graph.customs.get(name, ())
        found = [Try(SUCCEEDED, customs), Try(FAILED)]
        found += [Try(SUCCEEDED, (one,)) for one in customs if len(customs) > 1]
        found += [Try(SUCCEEDED)] if customs else []
        return found + ([Try(SUBMIT_FAILED)] if SUBMIT_FAILED in used else [])

    def _reports(self, key: tuple[Point, str], submit: int, job: Try) -> list[Event]:
        ends = {SUCCEEDED: JobEnd.SUCCEEDED, FAILED: JobEnd.FAILED}
        found: list[Event] = []
        if job.end == FAILED:
            found.append(events.OutputMade(key, submit, STARTED, NOW))
        found += [events.OutputMade(key, submit, one, NOW) for one in job.customs]
        part = self.graph.list
        if part is not None and key[1] == part.source and job.end == SUCCEEDED:
            size = size_text(part.sizes[int(key[0])])
            found.append(events.OutputMade(key, submit, size, NOW))
        return [
            *found,
            events.JobEnded(key, submit, ends.get(job.end, JobEnd.NOT_STARTED), NOW),
        ]

    def _after(self, pool: TaskPool, happening: list[Event], state: State) -> State:
        ledger = PoolLedger()
        ledger.rows = dict(state.rows)  # type: ignore[arg-type]
        past = dict(state.past)
        pool.past = History(past)
        for event in happening:
            outcome = step(pool.plan.graph, pool, event)
            changes = outcome.changes
            for one in changes:
                if isinstance(one, ForgetMemory):
                    past[one.row.key] = one.row
                elif isinstance(one, ForgetStored):
                    stored = [ledger.rows["memory", one.point, name] for name in one.names]
                    past.update({row.key: row for row in stored})
            ledger.write(changes)
            check_invariants(pool)
            ended = {key for key, _ in state.ends}
            again = [
                e.task for e in outcome.effects if isinstance(e, Submit) and e.task in ended
            ]
            assert not again, f"submitted again: {again} after {state.ends}"
        following = State(dict(ledger.rows), past, state.ends)
        self._check_so_far(pool, following)
        return following

    def _check_so_far(self, pool: TaskPool, state: State) -> None:
        """P3, P4: what was submitted by now is what the ends by now allow, no more, no less."""
        active = {_plain(task.key) for task in pool.tasks.values() if task.is_active}
        submitted = {key: 1 for key, _ in state.ends} | dict.fromkeys(active, 1)
        ends = {key: (job,) for key, job in state.ends}
        oracle = Oracle(self.graph, ends, _suicides(state), submitted)
        told = f"\n{flow_text(self.graph)}\n{state.ends}"
        allowed = oracle.with_word("ran")
        assert submitted.keys() <= allowed, told
        bounded = self.graph.runahead is not None or self.graph.limit is not None
        assert bounded or submitted.keys() == allowed, told

    def _judge(self, state: State) -> None:
        self.ended += 1
        pool = self._pool(state)
        outcomes = {key: (Try(SUCCEEDED),) for key in _keys(self.graph)}
        outcomes |= {key: (job,) for key, job in state.ends}
        submitted = {key: 1 for key, _ in state.ends}
        suicides = _suicides(state)
        oracle = Oracle(self.graph, outcomes, suicides, submitted)
        told = f"\n{flow_text(self.graph)}\n{state.ends}"
        limited = self.graph.runahead is not None and oracle.stalls
        assert pool.run.status == ("stalled" if oracle.stalls else "completed"), told
        assert bool(root_causes(pool)) is oracle.stalls, told
        assert limited or submitted == oracle.submissions, told
        left = {_plain(key) for key in pool.tasks}
        blocked = {k for k in left if pool.tasks[_core(k)].standing is PoolState.BLOCKED}
        assert limited or oracle.blocked_for_sure() <= blocked <= oracle.with_word("blocked"), (
            told
        )
        assert limited or left - blocked == oracle.incomplete | oracle.waiting, told
        for key, fate in oracle.fates.items():
            holds = oracle.suicide_holds(key)
            assert holds or key not in suicides, told
            lawful = fate.word not in ("open", "blocked") and not fate.is_incomplete
            lawful |= key not in left and oracle.suicide_is_absolute(key)
            assert limited or lawful or not holds, told


def _core(key: Key) -> tuple[Point, str]:
    return (Point(key[0]), key[1])


def _plain(key: tuple[Point, str]) -> Key:
    return (int(key[0]), key[1])


def _keys(graph: Graph) -> list[Key]:
    return [(point, name) for name, points in graph.placed().items() for point in points]


def _suicides(state: State) -> frozenset[Key]:
    rows = [row for row in state.rows.values() if isinstance(row, PutMemory)]
    return frozenset(
        _plain(row.key)
        for row in (*state.past.values(), *rows)
        for _, verdict in row.verdicts
        if verdict.kind is VerdictKind.SUICIDE
    )


@pytest.mark.parametrize("name", worlds())
def test_every_order_and_every_end(name, request):
    world = World(worlds()[name])
    states = world.explore()
    request.node.user_properties += [("states", states), ("ends", world.ended)]
    assert world.ended
