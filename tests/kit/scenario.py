"""The door to the scheduling core for tests: graph text in, a run driven by readable verbs.

    run = Scenario("A | B => C").succeeds("1/A").succeeds("1/C")
    assert run.pool == {"1/B": "running"}

After every step the invariants are checked, and the pool is rebuilt from the rows written so
far and compared: what a step did not say it changed, it did not change. Jobs start by
themselves unless `start_jobs=False`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent, indent

from tests.kit.sched_invariants import check_invariants, fingerprint
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import POLICIES
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.core.graph.graph import Graph
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import events
from tidewheel.core.sched.events import (
    CheckXtrigger,
    Effect,
    Event,
    FlowChoice,
    JobEnd,
    KillJob,
    Notice,
    SetTimer,
    Submit,
)
from tidewheel.core.sched.explain import Reason, why
from tidewheel.core.sched.index_builder import Order, build_index
from tidewheel.core.sched.lifecycle import root_causes
from tidewheel.core.sched.persistence import (
    Change,
    ForgetMemory,
    PoolLedger,
    PutMemory,
    reads_otherwise,
    rebuild,
)
from tidewheel.core.sched.pool import Past, RunStatus
from tidewheel.core.sched.step import new_pool, step
from tidewheel.core.sched.task_state import (
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    TaskHistory,
    VerdictKind,
)
from tidewheel.formats.flow_cylc.source_text import SourceText, origin
from tidewheel.formats.flow_cylc.workflow import LoadOptions, PointTexts, load_source

NOW = 1_900_000_000.0
_SECTION = re.compile(r"^\s*[^\s=#]+\s*=(?!>)", re.MULTILINE)


def compile_graph(
    graph: str,
    runtime: str = "",
    *,
    scheduling: str = "",
    final: int | None = None,
    policy: str = "tidewheel",
    parameters: str = "",
) -> Graph:
    """A graph from `recurrence = text` lines, or from arrows alone: once, or at each point."""
    graph = dedent(graph)
    if not _SECTION.search(graph):
        recurrence = "R1" if final is None else "P1"
        graph = f'{recurrence} = """\n{graph}\n"""'
    text = (
        "[scheduler]\n    allow implicit tasks = True\n"
        "[scheduling]\n    cycling mode = integer\n    initial cycle point = 1\n"
        f"    final cycle point = {final or 1}\n{indent(dedent(scheduling), '    ')}\n"
        f"    [[graph]]\n{indent(graph, '        ')}\n"
        f"[task parameters]\n    {parameters}\n"
        f"[runtime]\n    [[root]]\n{indent(dedent(runtime), '    ')}\n"
    )
    return compile_flow(text, policy)


def compile_flow(text: str, policy: str = "tidewheel") -> Graph:
    """A graph from a whole flow.cylc."""
    lines = dedent(text).splitlines()
    origins = [origin(0, number) for number in range(1, len(lines) + 1)]
    source = SourceText(Path("flow"), ("flow.cylc",), lines, origins)
    findings = Findings()
    options = LoadOptions(now=NOW, policy=POLICIES[policy], points=PointTexts())
    loaded = load_source(source, options, findings)
    errors = [str(one) for one in findings.sorted() if one.severity is Severity.ERROR]
    assert not errors, "\n".join(errors)
    assert loaded.graph is not None
    return loaded.graph


class _Past:
    """What the store would still know of tasks that the pool has forgotten."""

    def __init__(self) -> None:
        self.rows: dict[Key, PutMemory] = {}

    def keep(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, ForgetMemory):
                self.rows[change.row.key] = change.row
            elif isinstance(change, PutMemory):
                self.rows[change.key] = change

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        row = self.rows.get((point, name))
        return None if row is None else row.memory()


class Scenario:
    """A run without jobs: its events are said, its effects are collected."""

    def __init__(  # noqa: PLR0913
        self,
        graph: str | Graph,
        runtime: str = "",
        *,
        scheduling: str = "",
        final: int | None = None,
        start: int | None = None,
        policy: str = "tidewheel",
        start_jobs: bool = True,
        prune_across_points: bool = False,
        parameters: str = "",
    ) -> None:
        if isinstance(graph, str):
            graph = compile_graph(
                graph,
                runtime,
                scheduling=scheduling,
                final=final,
                policy=policy,
                parameters=parameters,
            )
        self.graph = graph
        self.effects: list[Effect] = []
        self.now = Instant(NOW)
        self._start_jobs = start_jobs
        self._past = _Past()
        self._ledger = PoolLedger()
        self._alone: set[Key] = set()
        self.core = new_pool(
            graph,
            start=None if start is None else Point(start),
            past=self._past,
            prune_across_points=prune_across_points,
        )
        self.happens(events.RunStarted(self.now))

    # What happens.

    def happens(self, event: Event) -> Scenario:
        """Apply any event, check everything that must hold after it."""
        if isinstance(event, events.RunReloaded):
            self.graph = event.graph
        outcome = step(self.core.plan.graph, self.core, event)
        changes = outcome.changes
        self._past.keep(changes)
        self._ledger.write(changes)
        self._alone |= self._without_flow(event)
        check_invariants(self.core, self._alone)
        rebuilt = rebuild(self.core.plan, self._ledger.rows.values(), self._past)
        told, known = fingerprint(rebuilt), fingerprint(self.core)
        differing = {key: (told[key], known[key]) for key in told if told[key] != known[key]}
        assert not differing, f"not all told after {event}: {differing}"
        self.effects += outcome.effects
        if self._start_jobs:
            for effect in outcome.effects:
                if isinstance(effect, Submit):
                    self.starts(self.id_of(effect.task))
        return self

    def _without_flow(self, event: Event) -> set[Key]:
        """Tasks of which outputs may be true that no flow has made."""
        found = {key for key, task in self.core.tasks.items() if not task.flows}
        if isinstance(event, events.OutputsSet) and event.flow is FlowChoice.NONE:
            found.add(event.task)
        return found

    def restarts(self, order: Order | None = None, past: Past | None = None) -> Scenario:
        """Go on with a pool rebuilt from what was written; by a version with another numbering
        of prerequisites if an `order` is given. `past` answers for the store."""
        plan = self.core.plan if order is None else build_index(self.graph, order)
        rows = self._ledger.rows.values()
        self.core = rebuild(plan, rows, past or self._past)
        assert not reads_otherwise(self.core, rows), "the same graph, and other prerequisites"
        return self

    def takes_over(self, rows: Iterable[Change]) -> Scenario:
        """Go on with a run of this graph that another version has stored in these rows."""
        self._ledger, self._past = PoolLedger(), _Past()
        self._ledger.write(rows)
        self.effects.clear()
        return self.restarts()

    def starts(self, *ids: str) -> Scenario:
        for one in ids:
            task = self._task(one)
            self.happens(events.OutputMade(task.key, task.submit, "started", self.now))
        return self

    def succeeds(self, *ids: str) -> Scenario:
        return self._end(ids, JobEnd.SUCCEEDED)

    def returns(self, one: str, *sizes: str) -> Scenario:
        """A task succeeds with lists of these sizes, such as `files[3]`."""
        return self.makes(one, *sizes).succeeds(one)

    def fails(self, *ids: str) -> Scenario:
        return self._end(ids, JobEnd.FAILED)

    def submit_fails(self, *ids: str) -> Scenario:
        return self._end(ids, JobEnd.NOT_STARTED)

    def is_killed(self, *ids: str) -> Scenario:
        return self._end(ids, JobEnd.KILLED)

    def makes(self, one: str, *outputs: str) -> Scenario:
        for output in outputs:
            task = self._task(one)
            self.happens(events.OutputMade(task.key, task.submit, output, self.now))
        return self

    def timer(self, one: str | None, name: str) -> Scenario:
        """A timer that was asked for fires."""
        key = None if one is None else self.key(one)
        at = [e.at for e in self.effects if isinstance(e, SetTimer) and e[:2] == (key, name)]
        if at:
            self.now = max(self.now, at[-1])
        return self.happens(events.TimerFired(key, name, self.now))

    def xtrigger(self, label: str, *ids: str) -> Scenario:
        keys = tuple(map(self.key, ids))
        return self.happens(events.XtriggerSatisfied(label, keys, self.now))

    def runs_to_the_end(self, *, fails: tuple[str, ...] = (), steps: int = 500) -> Scenario:
        """Every active task succeeds, the oldest first, but for those that fail."""
        for _ in range(steps):
            active = [task for task in self.core.tasks.values() if task.is_active]
            if not active:
                return self
            task = min(active, key=lambda one: (one.point, one.plan.rank))
            one = self.id_of(task.key)
            self.fails(one) if one in fails else self.succeeds(one)
        raise AssertionError(f"still running after {steps} steps: {self.pool}")

    # What operators do.

    def triggers(
        self,
        *ids: str,
        flow: FlowChoice | int = FlowChoice.DEFAULT,
        until: int | None = None,
        until_tasks: tuple[str, ...] = (),
        wait: bool = False,
        ignore_before: bool = False,
        chains_from: int | None = None,
    ) -> Scenario:
        return self.happens(
            events.TasksTriggered(
                tasks=tuple(map(self.key, ids)),
                at=self.now,
                flow=frozenset({flow}) if isinstance(flow, int) else flow,
                until=None if until is None else Point(until),
                until_tasks=frozenset(map(self.key, until_tasks)),
                wait=wait,
                ignore_before=ignore_before,
                chains_from=None if chains_from is None else Point(chains_from),
            )
        )

    def reflows(self, *ids: str, until: int | None = None) -> Scenario:
        return self.triggers(*ids, flow=FlowChoice.NEW, until=until)

    def sets(
        self,
        one: str,
        *outputs: str,
        flow: FlowChoice | int = FlowChoice.DEFAULT,
        wait: bool = False,
    ) -> Scenario:
        flows = frozenset({flow}) if isinstance(flow, int) else flow
        return self.happens(
            events.OutputsSet(
                task=self.key(one), at=self.now, outputs=outputs, flow=flows, wait=wait
            )
        )

    def sets_prerequisites(self, one: str, *atoms: str, everything: bool = False) -> Scenario:
        """Atoms as `1/a:succeeded`, or `xtrigger/label`."""
        found = []
        for atom in atoms:
            if not atom.startswith("xtrigger/"):
                task, _, output = atom.partition(":")
                found.append((*self.key(task), output or "succeeded"))
        labels = [one.partition("/")[2] for one in atoms if one.startswith("xtrigger/")]
        return self.happens(
            events.PrerequisitesSet(
                task=self.key(one),
                at=self.now,
                atoms=tuple(found),
                xtriggers=tuple(labels),
                everything=everything,
            )
        )

    def removes(
        self, *ids: str, forget: bool = False, kill: bool = False, flow: int | None = None
    ) -> Scenario:
        flows: Flows = frozenset() if flow is None else frozenset({flow})
        keys = tuple(map(self.key, ids))
        return self.happens(
            events.TasksRemoved(tasks=keys, at=self.now, flows=flows, forget=forget, kill=kill)
        )

    def holds(self, *ids: str) -> Scenario:
        return self.happens(events.TasksHeld(tuple(map(self.key, ids)), self.now))

    def releases(self, *ids: str) -> Scenario:
        return self.happens(events.TasksReleased(tuple(map(self.key, ids)), self.now))

    def reloads(
        self, graph: str, runtime: str = "", *, final: int | None = None, parameters: str = ""
    ) -> Scenario:
        compiled = compile_graph(graph, runtime, final=final, parameters=parameters)
        return self.happens(events.RunReloaded(compiled, self.now))

    # What can be seen.

    @property
    def pool(self) -> dict[str, str]:
        """Every pooled task with a word for why it is there, in order of points."""
        tasks = sorted(self.core.tasks.values(), key=lambda one: (one.point, one.plan.rank))
        return {self.id_of(task.key): word_of(task) for task in tasks}

    @property
    def flows(self) -> dict[str, list[int]]:
        return {self.id_of(task.key): sorted(task.flows) for task in self.core.tasks.values()}

    @property
    def submissions(self) -> list[Submit]:
        return [effect for effect in self.effects if isinstance(effect, Submit)]

    @property
    def submitted(self) -> list[str]:
        """The ids of all submissions, in order."""
        return [self.id_of(one.task) for one in self.submissions]

    @property
    def killed(self) -> list[str]:
        return [self.id_of(one.task) for one in self.effects if isinstance(one, KillJob)]

    @property
    def checked(self) -> list[tuple[str, str]]:
        """The xtriggers that were asked for."""
        found = [one for one in self.effects if isinstance(one, CheckXtrigger)]
        return [(self.id_of(one.task), one.label) for one in found]

    @property
    def verdicts(self) -> dict[str, str]:
        """Every task that will not run in a flow, with the kind of verdict."""
        found: dict[str, str] = {}
        rows = {
            row.key: row for row in self._ledger.rows.values() if isinstance(row, PutMemory)
        }
        for _, row in sorted((self._past.rows | rows).items()):
            for _, verdict in row.verdicts:
                if verdict.kind is VerdictKind.PRUNED:
                    found[self.id_of(row.key)] = verdict.death.name.lower().replace("_", " ")
                elif verdict.kind is not VerdictKind.FINISHED:
                    found[self.id_of(row.key)] = str(verdict.kind)
        return found

    @property
    def verdicts_by_flow(self) -> dict[tuple[Key, int], str]:
        """Every task that was pruned in a flow, with the kind of its death."""
        rows = {
            row.key: row for row in self._ledger.rows.values() if isinstance(row, PutMemory)
        }
        return {
            (row.key, flow): verdict.death.name.lower().replace("_", " ")
            for row in (self._past.rows | rows).values()
            for flow, verdict in row.verdicts
            if verdict.kind is VerdictKind.PRUNED
        }

    def notices(self, event: str) -> list[str]:
        return [
            one.text for one in self.effects if isinstance(one, Notice) and one.event == event
        ]

    @property
    def status(self) -> str:
        return str(self.core.run.status)

    @property
    def stalled(self) -> bool:
        return self.core.run.status == RunStatus.STALLED

    @property
    def completed(self) -> bool:
        return self.core.run.status == RunStatus.COMPLETED

    @property
    def causes(self) -> list[str]:
        return sorted(self.id_of(task.key) for task in root_causes(self.core))

    def why(self, one: str) -> list[Reason]:
        return why(self.core, self.key(one))

    # Ids.

    def key(self, one: str) -> Key:
        """`2/foo`, the seeds' `foo.2`, or `foo` at point 1."""
        if "/" in one:
            point, name = one.split("/")
        else:
            name, _, point = one.partition(".")
        return (self.graph.cycling.style.read(point or "1"), name)

    def id_of(self, key: Key) -> str:
        return f"{self.graph.cycling.style.text(key[0])}/{key[1]}"

    def _task(self, one: str) -> PooledTask:
        task = self.core.tasks.get(self.key(one))
        assert task is not None, f"{one} is not in the pool: {self.pool}"
        return task

    def _end(self, ids: tuple[str, ...], how: JobEnd) -> Scenario:
        for one in ids:
            task = self._task(one)
            assert task.is_active, f"{one} is not active: {self.pool}"
            self.happens(events.JobEnded(task.key, task.submit, how, self.now))
        return self


_WORDS = {
    PoolState.WAITING: "waiting",
    PoolState.UNRELEASED: "runahead",
    PoolState.PENDING: "pending",
    PoolState.HELD: "held",
    PoolState.READY: "ready",
    PoolState.BLOCKED: "blocked",
}
_STAGES = {
    JobPhase.PREPARING: "preparing",
    JobPhase.SUBMITTED: "submitted",
    JobPhase.RUNNING: "running",
}


def word_of(task: PooledTask) -> str:
    if task.standing is PoolState.ACTIVE:
        return _STAGES[task.stage]
    return task.ended if task.standing is PoolState.INCOMPLETE else _WORDS[task.standing]
