"""Shows a run as it was: rebuilds its pool from the changes of every batch until then."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, takewhile
from types import MappingProxyType
from typing import cast

from tidewheel.api import run_details as api
from tidewheel.api.workflows import FileDiff, FindingFacts
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.findings import finding_document
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import FLOW_CYLC
from tidewheel.core.operator.requests import StoredRun
from tidewheel.core.operator.views import ChangesView, CommandView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import (
    Change,
    DropTask,
    ForgetMemory,
    ForgetStored,
    PoolLedger,
    PutMemory,
    PutRun,
    PutTask,
    rebuild,
)
from tidewheel.core.sched.task_state import Key, TaskHistory
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.services.definitions.diff import RENDERED, run_definitions_diff
from tidewheel.services.paths import run_directory
from tidewheel.store.change_rows import read_changes
from tidewheel.views.events import last_rows
from tidewheel.views.graph import drawn
from tidewheel.views.rows import task_rows_document
from tidewheel.views.run_facts import described, job_facts
from tidewheel.views.snapshot import AskedView, RunSnapshot, pool_of, recall_all
from tidewheel.views.status_text import row_words

PLANS_MAX = 8  # of the runs that were looked at last
PAGE = 1_000  # batches, read at once
RECENT = 8  # batches whose numbers are known
AROUND = RECENT  # batches until then, and as many behind it
COMMANDS_MAX = 1_000
ROWS_SHOWN = 2_000  # unless more are asked for
FORGOTTEN_MAX = 10_000  # are remembered again, as in views of the present


class PastMoment(NamedTuple):
    """Names a moment of a run: after this batch, or at this time; without either, now."""

    batch: int | None
    at: Instant | None = None

    def has(self, one: ChangesView) -> bool:
        return (self.batch is None or one.batch <= self.batch) and (
            self.at is None or one.at <= self.at
        )


class Then(NamedTuple):
    """Holds the state of a run at an earlier moment, as far as it is known."""

    snapshot: RunSnapshot
    at: Instant
    replay: Replay


class Pasts:
    """Rebuilds runs as they were, and keeps checkpoints and indexes from which the next is
    rebuilt faster."""

    def __init__(self) -> None:
        self._checkpoints = Checkpoints()
        self._plans: dict[int, DependencyIndex] = {}

    async def then(
        self, asked: AskedView, moment: PastMoment, forgotten_max: int = FORGOTTEN_MAX
    ) -> Then:
        """Returns the run at that moment; its pool also recalls the newest of what it had
        forgotten, `forgotten_max` rows and what belongs to their points."""
        store, view = asked.store, asked.run
        restored = await asked.context.definition_of(view)
        replay = await self._replayed(store, view.number, moment)
        now = await store.now()
        found = replay.ledger.rows.get("run")
        status = str(found.run.status) if isinstance(found, PutRun) else "created"
        was = replace(view, batch=replay.batch, status=status, reason="")
        stored = StoredRun(changes=tuple(replay.ledger.rows.values()))
        plan = self._plan(view.number, restored.graph)
        pool = pool_of(restored.graph, stored, replay.forgotten, was, plan)
        recall_all(pool, replay.forgotten.newest(forgotten_max))
        snapshot = RunSnapshot(restored.graph, pool, was, stored, now)
        return Then(snapshot, replay.at if replay.batch else view.created_at, replay)

    async def _replayed(self, store: Store, run: int, moment: PastMoment) -> Replay:
        """Returns the rows of a run at that moment, played from the nearest checkpoint on."""
        replay = Replay(self._checkpoints.nearest(run, moment.batch, moment.at))
        after = replay.batch
        while page := await store.run_changes(run, after, PAGE):
            until = list(takewhile(moment.has, page))
            # A thousand batches take a moment, for which others need not wait.
            self._checkpoints.keep(run, await asyncio.to_thread(replay.play, until))
            after = page[-1].batch
            if len(until) < len(page):
                break
        return replay

    def _plan(self, run: int, graph: Graph) -> DependencyIndex:
        """Returns a copy of the run's index, to which a pool of the past may add nodes."""
        plan = self._plans.pop(run, None)
        if plan is None or plan.graph is not graph:
            plan = build_index(graph)
        self._plans[run] = plan
        while len(self._plans) > PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        return replace(plan, nodes=plan.nodes.copy())


async def past(asked: AskedView) -> api.RunPast:
    """Shows the tasks of a run as they were at a moment.

    `around` are the batches before and after it, `commands` those that were given during these.
    """
    moment = PastMoment(asked.number("batch"), read_moment(asked.text("at")))
    rows_max, store = asked.number("count") or ROWS_SHOWN, asked.store
    snapshot, at, replay = await asked.context.pasts.then(asked, moment, rows_max)
    view = await store.run(asked.run.number)
    first = replay.recent[0] - 1 if replay.recent else 0
    count = len(replay.recent) + AROUND
    around = await store.run_changes(view.number, first, count)
    until = around[-1].at if len(around) == count else snapshot.now
    older = len(replay.forgotten.points() - snapshot.pool.memory.keys())
    given = await store.commands(view.number, COMMANDS_MAX) if around else []
    meanwhile = [one for one in given if around[0].at <= one.at <= until]
    facts = {
        "at": show_instant(at),
        "status": snapshot.view.status,
        "last_batch": view.batch,
        "changed": _changed(snapshot, replay.before),
        "around": [_batch(snapshot, one) for one in around],
        "commands": [_command(one) for one in reversed(meanwhile)],
    }
    rows = task_rows_document(snapshot, {}, "", rows_max, older)
    return described(api.RunPast, None, **rows, **facts)


async def past_graph(asked: AskedView) -> api.RunGraph:
    """Shows the graph around the tasks that were live after a batch."""
    moment = PastMoment(asked.number("batch"))
    return drawn(asked, (await asked.context.pasts.then(asked, moment)).snapshot)


def read_moment(text: str) -> Instant | None:
    """Returns the time that a text in ISO 8601 names, in UTC unless it says otherwise; None for
    an empty text. Raises Refused for any other text."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(
            f"`at` is {text!r}; expected a time such as 2030-01-01T06:00:00Z"
        ) from None
    return Instant((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


# The views below show what happened in a run, by batches and by submissions, for timelines.


BATCHES_MAX = 1_000
SUBMISSIONS_MAX = 10_000


async def submissions(asked: AskedView) -> api.RunSubmissions:
    """Shows the submissions of a run, newest first."""
    found = await asked.store.submissions(
        asked.run.number,
        point=asked.text("point") or None,
        name=asked.text("name") or None,
        count=min(asked.number("count") or 1_000, SUBMISSIONS_MAX),
    )
    rows = [described(api.SubmissionOfRun, one, **job_facts(one)) for one in found]
    return {"run": asked.run.name, "submissions": rows}


async def changes(asked: AskedView) -> api.RunChanges:
    """Shows how each batch left the tasks that it touched, oldest first.

    `next` is the `after` of the next page.
    """
    snapshot = await asked.snapshot(recall=False)
    after = asked.number("after") or 0
    count = min(asked.number("count") or 100, BATCHES_MAX)
    found = await asked.store.run_changes(snapshot.view.number, after, count)
    return {
        "run": snapshot.view.name,
        "batches": [_batch(snapshot, one) for one in found],
        "next": found[-1].batch if len(found) == count else None,
    }


def _batch(snapshot: RunSnapshot, one: ChangesView) -> api.BatchFacts:
    """Returns how one batch left the tasks that it touched."""
    changes = read_changes(one.changes)
    ledger = PoolLedger()
    ledger.write([PutRun(snapshot.pool.run), *changes])
    last = list(ledger.rows.values())  # of each row
    # The words for a task follow from a pool, so the rows are made into one.
    pool = rebuild(snapshot.pool.plan, last, snapshot.pool.past)
    then = snapshot._replace(pool=pool)
    shown = []
    for key in sorted({_key(row) for row in last if isinstance(row, PutTask | PutMemory)}):
        task = then.shown(key)
        submit = task.submit if task.in_pool else None
        shown.append(described(api.TaskInBatch, task, submit=submit))
    gone = sorted({row.key for row in changes if isinstance(row, DropTask)} - set(pool.tasks))
    run = next((row.run for row in reversed(changes) if isinstance(row, PutRun)), None)
    return {
        "batch": one.batch,
        "at": show_instant(one.at),
        "status": None if run is None else str(run.status),
        "tasks": shown,
        "left_pool": [snapshot.id_of(key) for key in gone],
    }


def _changed(snapshot: RunSnapshot, before: Before) -> list[api.TaskChange]:
    """Returns what a batch did to each task: states before and after, and outputs it made."""
    rows, memories = last_rows(before.changes)
    found: list[api.TaskChange] = []
    for key, row in rows.items():
        task, memory = before.task(key), before.memory(key)
        known = {output for output, _ in memory.made} if memory else set()
        known |= set(task.row.outputs) if task else set()
        after = memories.get(key)
        made = dict.fromkeys(row.outputs if row else ())
        made |= dict.fromkeys(output for output, _ in after.made) if after else {}
        found.append(
            described(
                api.TaskChange,
                row_words(row, after),
                id=snapshot.id_of(key),
                before=row_words(None if task is None else task.row, memory).state,
                made=[output for output in made if output not in known],
            )
        )
    return found


def _key(row: PutTask | PutMemory) -> Key:
    if isinstance(row, PutMemory):
        return row.key
    return (row.row.point, row.row.name)


# The view below shows what operators asked of a run: who, when, and what became of it.


HISTORY_MAX = 10_000


async def history(asked: AskedView) -> api.RunHistory:
    """Shows the commands that were given to a run, newest first."""
    count = min(asked.number("count") or 100, HISTORY_MAX)
    found = await asked.store.commands(asked.run.number, count)
    return {"run": asked.run.name, "commands": [_command(one) for one in found]}


def _command(one: CommandView) -> api.CommandRecord:
    said = json.loads(one.body)
    verb, answer = said.pop("verb", ""), json.loads(one.answer) if one.answer else None
    return described(api.CommandRecord, one, verb=verb, arguments=said, answer=answer)


async def versions(asked: AskedView) -> api.RunVersions:
    """Shows the definitions that a run had, and what was found in the one that it has."""
    run = asked.run
    had = await asked.store.run_versions(run.number)
    kept = await asked.store.definition(run.definition)
    restored = await asked.context.definition_of(run)
    found = [cast("FindingFacts", finding_document(one)) for one in restored.findings]
    for one in found:
        if kept.kind == FLOW_CYLC:
            one["file"] = RENDERED  # what was read has no file of its own
        elif one["file"] is not None:
            directory = run_directory(asked.context.home, run.name)
            one["file"] = one["file"].removeprefix(f"{directory}/")
    told = [described(api.RunVersion, one) for one in had]
    return {"run": run.name, "kind": kept.kind, "versions": told, "findings": found}


async def diff(asked: AskedView) -> api.RunDiff:
    """Shows in which lines two definitions of a run differ: the last two, unless others are
    asked for."""
    had = {one.version: one for one in await asked.store.run_versions(asked.run.number)}
    known = ", ".join(map(str, sorted(had)))
    against = asked.number("against") or max(had)
    version = asked.number("version") or against - 1
    if version not in had or against not in had:
        if len(had) == 1:
            raise Refused(f"{asked.run.name} was never reloaded: it has one version, {known}")
        unknown = version if version not in had else against
        raise Refused(f"{asked.run.name} has no version {unknown}; its versions: {known}")
    kept = [await asked.store.definition(had[one].definition) for one in (version, against)]
    told = await asyncio.to_thread(run_definitions_diff, *kept)
    files = cast("list[FileDiff]", told["files"])
    return {"run": asked.run.name, "version": version, "against": against, "files": files}


# Checkpoints keep the rows of a run at some of its batches, so that a replay begins near
# its end.
#
# Theory of operation. The store logs what each batch changed, and nothing leads back from a
# later batch to an earlier one: a pool of the past is made by playing the log from its
# beginning. While it is played, what there is every few thousand changes is kept as a
# checkpoint; the next replay begins with the nearest. The log is append-only, so a checkpoint
# is true for ever, and two replays of the same part at the same time keep the same. Rows are
# frozen and shared between checkpoints; what the pool has forgotten is a chain of layers, each
# on top of the one before. What is kept costs at most as many rows as the log has changes, and
# never more than `rows_max`.


CHANGES_BETWEEN = 2_000  # are played in a few hundredths of a second
ROWS_HELD_MAX = 150_000  # of all runs together; 60 to 150 MB


class Forgotten:
    """Holds the rows that a pool had forgotten by a moment, and none that it forgot later."""

    def __init__(self, before: Forgotten | None = None) -> None:
        self.rows: dict[Key, PutMemory] = {}
        older: tuple[dict[Key, PutMemory], ...] = () if before is None else before._layers
        self._layers: tuple[dict[Key, PutMemory], ...] = (self.rows, *older)

    def __len__(self) -> int:
        return sum(map(len, self._layers))

    def points(self) -> set[Point]:
        return {point for rows in self._layers for point, _ in rows}

    def newest(self, count: int) -> list[PutMemory]:
        """Returns the `count` rows that were forgotten last, and all others of their points."""
        found = (row for rows in self._layers for row in reversed(rows.values()))
        points = {row.key[0] for row in islice(found, count)}
        last: dict[Key, PutMemory] = {}
        for rows in self._layers:
            last = {key: row for key, row in rows.items() if key[0] in points} | last
        return list(last.values())

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        found = (rows[point, name] for rows in self._layers if (point, name) in rows)
        return next((row.memory() for row in found), None)


class Before(NamedTuple):
    """Holds the changes of the last batch, and the rows of the same tasks before it."""

    changes: Sequence[Change] = ()
    rows: Mapping[object, Change] = MappingProxyType({})

    def task(self, key: Key) -> PutTask | None:
        found = self.rows.get(("task", *key))
        return found if isinstance(found, PutTask) else None

    def memory(self, key: Key) -> PutMemory | None:
        found = self.rows.get(("memory", *key))
        return found if isinstance(found, PutMemory) else None


class Checkpoint(NamedTuple):
    """Holds all rows of a run as they were after a batch; nobody changes them."""

    batch: int
    at: Instant
    rows: dict[object, Change]
    forgotten: Forgotten
    recent: tuple[int, ...]
    before: Before


class Replay:
    """Plays batches, and holds the rows as the store held them after the last batch played."""

    def __init__(self, since: Checkpoint | None = None) -> None:
        since = since or Checkpoint(0, Instant(0.0), {}, Forgotten(), (), Before())
        self.ledger = PoolLedger()
        self.ledger.rows = dict(since.rows)
        # `recent` are the newest batches that were played.
        self.batch, self.at, _, forgotten, self.recent, self.before = since
        self.forgotten = Forgotten(forgotten)
        self._played = 0  # changes since the last checkpoint

    def play(self, batches: list[ChangesView]) -> list[Checkpoint]:
        """Applies batches, and returns the checkpoints that were made on the way."""
        passed: list[Checkpoint] = []
        for one in batches:
            changes = read_changes(one.changes)
            self.before = Before(changes, self._rows_before(changes))
            for change in changes:
                for row in self._forgotten_by(change):
                    # Taken out first, so that the rows are in the order in which they were
                    # forgotten.
                    self.forgotten.rows.pop(row.key, None)
                    self.forgotten.rows[row.key] = row
                self.ledger.write((change,))
            self.batch, self.at = one.batch, one.at
            self.recent = (*self.recent, one.batch)[-RECENT:]
            self._played += len(changes)
            # At least as many changes as rows lie between two checkpoints, or these would
            # outgrow the log.
            if self._played >= max(CHANGES_BETWEEN, len(self.ledger.rows)):
                passed.append(self._checkpoint())
        return passed

    def _forgotten_by(self, change: Change) -> list[PutMemory]:
        """Returns the last rows of tasks that a change, not applied yet, says are forgotten."""
        if isinstance(change, ForgetMemory):
            return [change.row]
        if not isinstance(change, ForgetStored):
            return []
        rows = [self.ledger.rows.get(("memory", change.point, name)) for name in change.names]
        return [row for row in rows if isinstance(row, PutMemory)]

    def _rows_before(self, changes: Sequence[Change]) -> dict[object, Change]:
        keys = {change.key for change in changes if isinstance(change, DropTask)}
        keys |= {change.row[:2] for change in changes if isinstance(change, PutTask)}
        places = [(kind, *key) for key in keys for kind in ("task", "memory")]
        rows = self.ledger.rows
        return {place: rows[place] for place in places if place in rows}

    def _checkpoint(self) -> Checkpoint:
        rows, forgotten = dict(self.ledger.rows), self.forgotten
        self.forgotten, self._played = Forgotten(forgotten), 0
        return Checkpoint(self.batch, self.at, rows, forgotten, self.recent, self.before)


class Checkpoints:
    """Keeps the checkpoints of the runs that were looked at last."""

    def __init__(self, rows_max: int = ROWS_HELD_MAX) -> None:
        self._rows_max = rows_max
        self._runs: dict[int, list[Checkpoint]] = {}  # the one that was used last is the last

    @property
    def rows_held(self) -> int:
        """Returns the number of rows that all checkpoints together hold."""
        checkpoints = sum(len(one.rows) for kept in self._runs.values() for one in kept)
        return checkpoints + sum(len(kept[-1].forgotten) for kept in self._runs.values())

    def nearest(self, run: int, batch: int | None, at: Instant | None) -> Checkpoint | None:
        """Returns the last checkpoint that is not later than this batch and this time; None
        without one."""
        kept = self._runs.pop(run, [])
        if kept:
            self._runs[run] = kept
        place = len(kept)
        if batch is not None:
            place = bisect_right(kept, batch, key=lambda one: one.batch)
        while place and at is not None and kept[place - 1].at > at:
            place -= 1
        return kept[place - 1] if place else None

    def keep(self, run: int, passed: list[Checkpoint]) -> None:
        """Keeps checkpoints, and drops some while all together hold too many rows.

        Those of other runs go first, then every second one of this run.
        """
        if not passed:
            return
        by_batch = {one.batch: one for one in self._runs.pop(run, [])}
        for one in passed:
            by_batch.setdefault(one.batch, one)
        self._runs[run] = sorted(by_batch.values(), key=lambda one: one.batch)
        while self.rows_held > self._rows_max:
            longest_unused = next(iter(self._runs))
            kept = self._runs.pop(longest_unused)
            if longest_unused == run and len(kept) > 1:
                self._runs[run] = kept[1::2]
