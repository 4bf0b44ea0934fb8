"""Explains why a task is not running: every reason, whether it passes, and what would help.

Answers come from the same data by which the scheduler decides, so they cannot disagree with it.

A preview says what an intervention would do, without doing it (SEMANTICS §8, `--dry-run`). The
events are applied to a copy of the pool by `step` itself. Then every job that follows is
taken to succeed, one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from shlex import quote

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import assumed_sizes
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.graph.shown_names import end_text, joined_output, stage_name
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import dependency_index, events
from tidewheel.core.sched.completion import NAMED_MAX, lacking, lacking_text
from tidewheel.core.sched.elements import flows_there, size_at
from tidewheel.core.sched.evaluation import (
    holds,
    leaf_value,
    member_value,
    members_at,
    output_value,
    untrue_leaves,
)
from tidewheel.core.sched.flows import active_flows, may_spawn
from tidewheel.core.sched.index_builder import BAD_ENDS
from tidewheel.core.sched.missed import comes_by_chain, missed_text
from tidewheel.core.sched.persistence import everything, rebuild
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.reachability import chain_text, failed_cause
from tidewheel.core.sched.services import before_text, until_text
from tidewheel.core.sched.spawn import CLOCK, MESSAGE, RETRY
from tidewheel.core.sched.step import step
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    VerdictKind,
)
from tidewheel.lazy_dataclasses import NamedTuple

ELEMENTS_LOOKED_AT_MAX = 1_000  # for the first that needs help
PARENTS_LOOKED_AT_MAX = 100  # of parents, for one that will not run without help
LINKS_SHOWN_MAX = 6  # of the chain back to that one
DueAt = Callable[[Key, str], Instant | None]  # when a task need not wait for a thing any more


_TIMES = {RETRY: "its retry delay", CLOCK: "the clock"}
_STOPS = (RunStatus.STOPPING, RunStatus.STOPPED)


class Reason(NamedTuple):
    """Holds one reason why a task does not run.

    `passes` says whether it ends without anybody's help; `command` is what would help.
    """

    text: str
    passes: bool
    command: str = ""
    until: Instant | None = None  # when it passes by itself, where that is known


def why(pool: TaskPool, key: Key, due_at: DueAt = lambda _key, _wait: None) -> list[Reason]:
    """Returns the reasons why a task does not run, in the order in which they are checked.

    Times are not kept in the pool: `due_at` returns when a clock or a retry delay is over.
    """
    node = pool.plan.nodes.get(key[1])
    if node is None:
        return [Reason(f"there is no task {key[1]} in this workflow", passes=False)]
    task = pool.tasks.get(key)
    if task is None:
        found = _why_absent(pool, node, key)
    else:
        found = list(_why_pooled(pool, task, due_at))
    if pool.run.status not in (RunStatus.STALLED, RunStatus.COMPLETED):
        return found
    return [one._replace(passes=False) for one in found]  # nothing goes on by itself any more


def is_withdrawn(pool: TaskPool, task: PooledTask) -> bool:
    """Says whether the run stopped before a worker took the submission of an active task."""
    return pool.run.status in _STOPS and task.is_active and not task.has_job


def _why_pooled(pool: TaskPool, task: PooledTask, due_at: DueAt) -> Iterator[Reason]:
    name, word = pool.plan.name_of(task.key), pool.plan.word_of(task.key)
    if task.standing is PoolState.ACTIVE:
        if is_withdrawn(pool, task):
            why_not = "no worker may take it until the run resumes"
            yield Reason(f"{name} is preparing: {why_not}", passes=False)
        else:
            state = f"{name} is {task.stage.name.lower()}"
            yield Reason(f"{state}{until_text(task)}", passes=True)
        return
    if task.standing is PoolState.INCOMPLETE:
        yield _why_incomplete(pool, task)
        return
    if task.held:
        yield Reason(f"{name} is held", passes=False, command=f"release {word}")
    if task.missing:
        missing = [
            arrow.leaves[number]
            for arrow, base in task.plan.arrows_at(task.point)
            for number in untrue_leaves(arrow.expression, task.true >> base)
        ]
        yield from _why_open(pool, missing, task.key, task.flows)
    is_awaited = pool.plan.is_of_stages and task.plan.definition.is_gate
    for wait in task.waits:
        if is_awaited:
            yield Reason(f"{name} is not there yet", passes=True)
            continue
        what, command = _of_wait(wait, word)
        until = due_at(task.key, wait)
        yield Reason(f"{name} waits for {what}", passes=True, command=command, until=until)
    if not task.admitted:
        yield _why_not_admitted(pool, task)
    if task.standing is PoolState.READY:
        yield _why_not_submitted(pool, task)


def _of_wait(wait: str, word: str) -> tuple[str, str]:
    """Returns what a task waits for besides other tasks, and the command that ends this."""
    if wait in _TIMES:
        return _TIMES[wait], f"trigger {word}"
    if wait.startswith(MESSAGE):
        message = wait.removeprefix(MESSAGE)
        return f"the message {message!r}", f"ext-trigger {quote(message)}"
    return f"the xtrigger {wait}", f"set {word} --pre xtrigger/{wait}"


def _why_incomplete(pool: TaskPool, task: PooledTask) -> Reason:
    name, word = pool.plan.name_of(task.key), pool.plan.word_of(task.key)
    choices = lacking(task)
    if not choices:
        rule = str(task.plan.completion)
        needed = rule if " " in rule else f"the output {rule}"
        before = before_text(task)
        text = f"{name} {task.ended} {before or 'and is incomplete'}: it needs {needed}"
        if pool.plan.is_of_stages:
            ended = f"{end_text(task.ended)} {before}".rstrip()
            text = f"{name} {ended}, and has to succeed"
        return Reason(text, passes=False, command=f"trigger {word}, or set {word}")
    sets = [f"set {word} --out {','.join(sorted(one))}" for one in choices[:NAMED_MAX]]
    text = f"{name} {lacking_text(pool, task)}"
    return Reason(text, passes=False, command=", or ".join([f"trigger {word}", *sets]))


def _why_not_admitted(pool: TaskPool, task: PooledTask) -> Reason:
    stop = pool.run.stop
    name = pool.plan.name_of(task.key)
    if stop is not None and task.point > stop:
        text = f"{name} is beyond the stop point {pool.plan.text(stop)}"
        return Reason(text, passes=False, command=f"trigger {pool.plan.word_of(task.key)}")
    base = pool.counted.earliest()
    oldest = [
        pool.plan.name_of(one.key)
        for one in pool.tasks.values()
        if one.point == base and one.standing is not PoolState.WAITING
    ]
    limit = "none" if pool.limit is None else pool.plan.text(pool.limit)
    text = (
        f"{name} is beyond the runahead limit {limit}, which is counted from "
        f"{', '.join(sorted(oldest)[:3])}"
    )
    stuck = any(
        one.standing in (PoolState.INCOMPLETE, PoolState.BLOCKED, PoolState.HELD)
        for one in pool.tasks.values()
        if one.point == base
    )
    return Reason(text, passes=not stuck, command=f"trigger {pool.plan.word_of(task.key)}")


def _why_not_submitted(pool: TaskPool, task: PooledTask) -> Reason:
    name = pool.plan.name_of(task.key)
    if pool.run.paused:
        return Reason("the run is paused", passes=False, command="resume")
    if pool.run.stopping:
        return Reason("the run is being stopped", passes=False)
    queue = pool.queues[task.plan.limit]
    full = f"{queue.active} of {queue.limit} tasks are active"
    if queue.limit == 1:
        full = "only 1 task can be active at a time"
    text = f"{name} waits because its limit group is full: {full}"
    return Reason(text, passes=True, command=f"trigger {pool.plan.word_of(task.key)}")


def _why_open(
    pool: TaskPool, leaves: list[dependency_index.IndexedAtom], child: Key, flows: Flows
) -> Iterator[Reason]:
    """Yields why each of these atoms is not true yet; ways that were not taken come last. Of
    `a:fail | b => c` nobody wants to hear first that `a` should have failed."""
    not_taken = [
        leaf_value(pool, leaf, child[0], flows) is AtomValue.NOT_TAKEN for leaf in leaves
    ]
    wanted: dict[str, set[str]] = {}  # of each stage: its ends may be waited for together
    told: set[str] = set()  # stages of which that is said already
    for leaf in leaves if pool.plan.is_of_stages else ():
        wanted.setdefault(leaf.node, set()).add(leaf.output)
    waiting = _Waiting(child, flows, {child: None})
    for leaf, _ in sorted(zip(leaves, not_taken, strict=True), key=lambda pair: pair[1]):
        if leaf.group is None:
            if leaf.node in told:
                continue
            told |= {leaf.node} & wanted.keys()
        said = joined_output(wanted.get(leaf.node, {leaf.output}))
        yield _why_leaf(pool, leaf, waiting, said)


class _Waiting(NamedTuple):
    """Describes a task that waits for others in these flows."""

    key: Key
    flows: Flows
    # Of tasks that were looked at: why they will not run without help; None: they may.
    stuck: dict[Key, Reason | None]


class _Atom(NamedTuple):
    """Holds an output of one task that another one waits for."""

    child: _Waiting
    parent: Key
    output: str
    said: str = ""  # how the output is called, if otherwise


def _why_leaf(
    pool: TaskPool, leaf: dependency_index.IndexedAtom, child: _Waiting, said: str = ""
) -> Reason:
    point = child.key[0]
    parent = leaf.parent_point(point, pool.plan.initial)
    if leaf.group is not None:
        return _why_family(pool, leaf, parent, child)
    atom = _Atom(child, (parent, leaf.node), leaf.output, said)
    return _why_atom(pool, atom, leaf_value(pool, leaf, point, child.flows))


def _why_family(
    pool: TaskPool, leaf: dependency_index.IndexedAtom, point: Point, child: _Waiting
) -> Reason:
    """Returns why a family has not made its output, by the first member that needs help."""
    group = leaf.group
    assert group is not None
    whose = "all members" if group.every else "any member"
    wanted = f"the output {leaf.wanted} of {whose} of {group.family}"
    text = f"{pool.plan.name_of(child.key)} needs {wanted}"
    if group.elements is not None:
        return _why_elements(pool, group, (point, leaf.output), child)
    members = [one for one in group.members if pool.node(one).is_at(point)]
    if not members:
        text = f"{text}: none of them runs at {pool.plan.text(point)}"
        return Reason(text, passes=False, command=f"trigger {pool.plan.word_of(child.key)}")
    return _why_members(pool, group, _Atom(child, (point, ""), leaf.output, text), members)


def _why_members(
    pool: TaskPool,
    group: dependency_index.IndexedFamily,
    wanted: _Atom,
    members: Iterable[str],
) -> Reason:
    """Returns why not all, or not any, of these members have made an output; where any is
    enough, it takes help only if none of them makes it without."""
    point, stuck = wanted.parent[0], None
    for name in members:
        value = member_value(pool.recall(point, name), group, wanted.child.flows)
        if value is AtomValue.TRUE:
            continue
        reason = _why_atom(pool, _Atom(wanted.child, (point, name), wanted.output), value)
        if reason.passes and not group.every:
            return Reason(wanted.said, passes=True)
        stuck = stuck or (None if reason.passes else reason)
        if stuck is not None and group.every:
            break
    if stuck is None:
        return Reason(wanted.said, passes=True)
    return stuck._replace(text=f"{wanted.said}; {stuck.text}")


def _why_elements(
    pool: TaskPool,
    group: dependency_index.IndexedFamily,
    wanted: tuple[Point, str],
    child: _Waiting,
) -> Reason:
    """Returns how many elements of a mapped task are missing, and the first that needs help."""
    assert group.elements is not None
    (point, output), source = wanted, (wanted[0], group.elements.over.source)
    family = stage_name(group.family) if pool.plan.is_of_stages else group.family
    size = size_at(pool, group.elements, point, child.flows)
    if size is None:
        known = f"the number of elements of {family} is known when"
        atom, name = _Atom(child, source, SUCCEEDED), pool.plan.name_of(source)
        value = output_value(pool.recall(*source), SUCCEEDED, child.flows)
        reason = _why_atom(pool, atom, value)
        # That a list is there can be set of no task: it has to be returned.
        by_hand = reason.command.startswith("set ")
        command = f"trigger {pool.plan.word_of(source)}" if by_hand else reason.command
        return reason._replace(text=f"{known} {name} succeeds; {reason.text}", command=command)
    missing = [
        name
        for name in members_at(pool, group, point, child.flows)
        if member_value(pool.recall(point, name), group, child.flows) is not AtomValue.TRUE
    ]
    which = f"{len(missing):,} more" if group.every else "any"
    elements = f"{which} of the {size:,} elements"
    what = f"{'the only element' if size == 1 else elements} of {family}"
    text = f"{pool.plan.name_of(child.key)} waits for {what}"
    atom = _Atom(child, (point, ""), output, text)
    return _why_members(pool, group, atom, missing[:ELEMENTS_LOOKED_AT_MAX])


def _why_atom(pool: TaskPool, atom: _Atom, value: AtomValue) -> Reason:
    plan, child = pool.plan, atom.child
    needed = f"{plan.name_of(child.key)} needs "
    needed += plan.output_of(atom.parent, atom.said or atom.output)
    command = f"set {plan.word_of(child.key)} --pre {plan.word_of(atom.parent)}:{atom.output}"
    if plan.is_of_stages and pool.node(atom.parent[1]).definition.is_gate:
        command = ""  # nobody has named it so
    if value > AtomValue.LOST:
        return _why_parent(pool, atom, Reason(needed, passes=True, command=command))
    flow = min(child.flows, default=1)
    text = f"{needed}: {chain_text(pool, atom.parent, flow)}"
    # To run it again makes no failure of a success, and no task where the graph has none.
    if atom.output not in BAD_ENDS and pool.node(atom.parent[1]).is_at(atom.parent[0]):
        command = _mending(pool, atom.parent, flow)
    return Reason(text, passes=False, command=command)


def _state_text(pool: TaskPool, task: PooledTask) -> str:
    """Returns how a task is that another one waits for: `1/a is active`, `1/a failed`."""
    name = pool.plan.name_of(task.key)
    if task.ended:
        return f"{name} {end_text(task.ended) if pool.plan.is_of_stages else task.ended}"
    if task.standing is PoolState.PENDING:
        return f"{name} waits for {_of_wait(next(iter(task.waits)), '')[0]}"
    if task.standing is PoolState.UNRELEASED:
        return _why_not_admitted(pool, task).text
    is_job = pool.plan.is_of_stages and task.is_active
    return f"{name} is {(task.stage if is_job else task.standing).name.lower()}"


def _why_parent(pool: TaskPool, atom: _Atom, reason: Reason) -> Reason:
    child, parent, output, _ = atom
    task = pool.tasks.get(parent)
    if task is not None:
        return _why_waits(pool, task, child, reason)
    memory = pool.recall(*parent)
    made = None if memory is None else memory.made.get(output)
    if made:
        # Of a task that ended incomplete and was met by a new flow, that one's count.
        lacking = child.flows - made or child.flows
        theirs = ", ".join(map(str, sorted(made)))
        ours = ", ".join(map(str, sorted(lacking)))
        text = f"{reason.text}, which was made in flow {theirs}, not in flow {ours}"
        command = f"set {pool.plan.word_of(parent)} --flow {min(lacking, default=1)}"
        return Reason(text, passes=False, command=command)
    if parent in pool.run.missed:
        text = f"{reason.text}; {missed_text(pool, parent)}"
        return Reason(text, passes=False, command=f"trigger {pool.plan.word_of(parent)}")
    if (cause := _why_stuck(pool, parent, child)) is not None:
        return _because_of(reason, cause)
    return reason._replace(text=f"{reason.text}; {pool.plan.name_of(parent)} has not run")


def _why_waits(pool: TaskPool, parent: PooledTask, child: _Waiting, reason: Reason) -> Reason:
    stuck = parent.standing in (PoolState.INCOMPLETE, PoolState.BLOCKED, PoolState.HELD)
    if not stuck and (cause := _why_stuck(pool, parent.key, child)) is not None:
        return _because_of(reason, cause)
    if pool.plan.is_of_stages and parent.plan.definition.is_gate and parent.waits:
        return reason._replace(text=f"{reason.text}, which is not there yet")
    command = f"trigger {pool.plan.word_of(parent.key)}" if stuck else reason.command
    return Reason(f"{reason.text}; {_state_text(pool, parent)}", not stuck, command)


def _because_of(reason: Reason, cause: Reason) -> Reason:
    """Returns the reason of a task whose parent will not run without help, with the cause."""
    links = f"{reason.text}; {cause.text}".split("; ")
    if len(links) > LINKS_SHOWN_MAX:
        links = [*links[:2], "…", *links[3 - LINKS_SHOWN_MAX :]]
    return Reason("; ".join(links), passes=False, command=cause.command)


def _why_stuck(pool: TaskPool, key: Key, child: _Waiting) -> Reason | None:
    """Returns why a task that another one waits for will not run without help; None if it may,
    or if too many were looked at."""
    if key not in child.stuck and len(child.stuck) < PARENTS_LOOKED_AT_MAX:
        child.stuck[key] = None
        child.stuck[key] = _first_stuck(pool, key, child)
    return child.stuck.get(key)


def _first_stuck(pool: TaskPool, key: Key, child: _Waiting) -> Reason | None:
    task = pool.tasks.get(key)
    if task is not None and task.is_active:
        return None
    node = pool.node(key[1]) if task is None else task.plan
    flows = (child.flows or active_flows(pool)) if task is None else task.flows
    here, is_missing = child._replace(key=key, flows=flows), False
    for arrow, base in node.arrows_at(key[0]):
        true = task.true >> base if task is not None else _true_leaves(pool, arrow, here)
        found = {
            number: _why_leaf(pool, arrow.leaves[number], here)
            for number in untrue_leaves(arrow.expression, true)
        }
        passing = sum(1 << number for number, one in found.items() if one.passes)
        if not holds(arrow.expression, true | passing):
            return next(one for one in found.values() if not one.passes)
        is_missing = is_missing or bool(found)
    if task is None:
        return None if is_missing else _why_never(pool, node, key, flows)
    if task.admitted:
        return None
    limit = _why_not_admitted(pool, task)
    return None if limit.passes else limit


def _true_leaves(pool: TaskPool, arrow: dependency_index.IndexedArrow, child: _Waiting) -> int:
    """Returns the bits of the leaves of an arrow that are true for a task outside the pool."""
    values = ((one, leaf_value(pool, one, child.key[0], child.flows)) for one in arrow.leaves)
    return sum(1 << leaf.number for leaf, value in values if value is AtomValue.TRUE)


def _why_absent(pool: TaskPool, node: dependency_index.IndexedNode, key: Key) -> list[Reason]:
    name, word = pool.plan.name_of(key), pool.plan.word_of(key)
    if not node.is_at(key[0]):
        return [
            Reason(f"there is no {name}: the graph does not run it at this point", passes=False)
        ]
    if node.element is not None and not flows_there(pool, node, key[0], frozenset(pool.flows)):
        return [_why_no_element(pool, node.element, key)]
    memory = pool.recall(*key)
    found = []
    for flow, verdict in sorted(memory.verdicts.items()) if memory is not None else ():
        if verdict.kind is VerdictKind.FINISHED:
            text = f"{name} {verdict.ended}" + pool.plan.in_flow(flow)
            again = verdict.ended == SUCCEEDED and not pool.plan.is_of_stages
            command = f"trigger {word}" + (" --reflow" if again else "")
        elif verdict.kind is VerdictKind.PRUNED:
            text, command = chain_text(pool, key, flow), _mending(pool, key, flow)
        else:
            text, command = f"{name} was {verdict.kind}", f"trigger {word}"
        found.append(Reason(text, passes=False, command=command))
    return found or _why_unspawned(pool, node, key)


def _why_no_element(
    pool: TaskPool, element: tuple[dependency_index.MappedTasks, int], key: Key
) -> Reason:
    tasks, _ = element
    name, source = pool.plan.name_of(key), pool.plan.name_of((key[0], tasks.over.source))
    size = size_at(pool, tasks, key[0], frozenset(pool.flows))
    if size is None:
        why_not = f"the number of elements is known when {source} succeeds"
        return Reason(f"there is no {name} yet: {why_not}", passes=True)
    return Reason(
        f"there is no {name}: {source} returned a list of length {size}", passes=False
    )


def _mending(pool: TaskPool, key: Key, flow: int) -> str:
    """Returns the commands that mend a task: to trigger the failed cause, or the task itself.
    The cause comes first: once it succeeds, all that was lost because of it is back."""
    cause = failed_cause(pool, key, flow)
    first = "" if cause is None or cause == key else f"trigger {pool.plan.word_of(cause)}, or "
    return f"{first}trigger {pool.plan.word_of(key)}"


def _why_unspawned(
    pool: TaskPool, node: dependency_index.IndexedNode, key: Key
) -> list[Reason]:
    flows = active_flows(pool)
    missing = []
    for arrow, _ in node.arrows_at(key[0]):
        true = _true_leaves(pool, arrow, _Waiting(key, flows, {}))
        missing += [arrow.leaves[number] for number in untrue_leaves(arrow.expression, true)]
    if found := list(_why_open(pool, missing, key, flows)):
        if key not in pool.run.missed:
            return found
        late = Reason(missed_text(pool, key), False, f"trigger {pool.plan.word_of(key)}")
        return [late, *(one for one in found if one.passes)]  # another flow may still bring it
    if (never := _why_never(pool, node, key, flows)) is not None:
        return [never]
    name, command = pool.plan.name_of(key), f"trigger {pool.plan.word_of(key)}"
    text = (
        f"{name} enters the pool when the task at the previous point no longer waits for the "
        "runahead limit or a sequential xtrigger"
    )
    if pool.plan.is_of_stages:
        text = f"{name} enters the pool when the run begins"
    return [Reason(text, passes=True, command=command)]


def _why_never(
    pool: TaskPool, node: dependency_index.IndexedNode, key: Key, flows: Flows
) -> Reason | None:
    """Returns why nothing runs a task that needs nothing more; None if it still comes."""
    has_begun = pool.memory or pool.tasks
    if not has_begun or any(comes_by_chain(pool, node, key[0], flow) for flow in flows):
        return None
    name, text = pool.plan.name_of(key), missed_text(pool, key)
    if (memory := pool.recall(*key)) is not None:
        met = "its prerequisites were already met"
        text = f"{name} was removed, and nothing runs it again: {met}"
        if memory.held_back:
            text = f"{name} was run or set with --wait: what follows it waits for another flow"
            return Reason(text, False, f"set {pool.plan.word_of(key)}")
    if not any(may_spawn(pool, flow, key[0]) for flow in flows):
        is_before = key[0] < pool.run.start
        why = ": it is before the start point of the run" if is_before else ""
        text = f"no active flow reaches {name}{why}"
    return Reason(text, passes=False, command=f"trigger {pool.plan.word_of(key)}")


SUBMISSIONS_MAX = 1_000  # that are looked ahead


class Tried(NamedTuple):
    """Holds a copy of the pool after some events, what they touched and what they want done."""

    graph: Graph
    pool: TaskPool
    touched: tuple[Key, ...]
    effects: tuple[events.Effect, ...]


class InterventionPreview(NamedTuple):
    """Holds what would run, in order, and what would then wait and for what.

    `cut` says that the list ends at the limit of submissions and more would run.
    """

    runs: tuple[events.Submit, ...]
    waits: dict[Key, list[Reason]]
    cut: bool


def tried(pool: TaskPool, happened: Iterable[events.Event]) -> Tried:
    """Steps a copy of the pool through these events; returns it, before any job reports."""
    copy = rebuild(pool.plan, everything(pool), pool.past)
    graph = pool.plan.graph
    touched: dict[Key, None] = {}
    effects: list[events.Effect] = []
    for event in happened:
        outcome = step(graph, copy, event)
        touched |= dict.fromkeys((*outcome.touched.tasks, *outcome.touched.memory))
        effects += outcome.effects
        graph = event.graph if isinstance(event, events.RunReloaded) else graph
    return Tried(graph, copy, tuple(sorted(touched)), tuple(effects))


def look_ahead(pool: TaskPool, start: Tried, at: Instant) -> InterventionPreview:
    """Returns what follows from events that were tried, if every job succeeds.

    Changes `start.pool`. `pool` is the pool without those events: what waits there already is
    left out.
    """
    copy = start.pool
    runs: list[events.Submit] = []
    todo: deque[events.Submit] = deque()

    def take(effects: Iterable[events.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, events.Submit):
                todo.append(effect)
                runs.append(effect)

    take(start.effects)
    while todo and len(runs) < SUBMISSIONS_MAX:
        one = todo.popleft()
        lists = (tasks.over for tasks in copy.plan.nodes[one.task[1]].lists)
        for size in assumed_sizes(lists):  # a few, as in a rehearsal
            step(start.graph, copy, events.OutputMade(one.task, one.submit, size, at))
        end = events.JobEnded(one.task, one.submit, events.JobEnd.SUCCEEDED, at)
        take(step(start.graph, copy, end).effects)
    waits = {
        key: why(copy, key)
        for key, task in copy.tasks.items()
        if task.stage is JobPhase.WAITING and key not in pool.tasks
    }
    return InterventionPreview(tuple(runs), waits, cut=bool(todo))


def preview(pool: TaskPool, event: events.Event) -> InterventionPreview:
    """Returns what would follow from one event if every job succeeds; changes nothing."""
    return look_ahead(pool, tried(pool, (event,)), event.at)
