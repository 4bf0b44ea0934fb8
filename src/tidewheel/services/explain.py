"""Explains in plain words why a task does not run, from the same facts that decide it.

Each reason is one sentence that ends with what would change it, where somebody can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from functools import reduce
from operator import sub
from shlex import quote

from tidewheel.api.tasks import Task, WorkerView
from tidewheel.config import CONTAINER_RUNNERS, CONTAINERS
from tidewheel.core.operator.definition import run_named_by
from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.core.queue.access import Served, covers, queue_name
from tidewheel.core.queue.dependency import ALWAYS_KNOWN, EdgeState, edge_state
from tidewheel.core.queue.lease import SILENT_SECONDS
from tidewheel.core.queue.limits import EACH_KEY, WHOLE_QUEUE, Limit
from tidewheel.core.queue.requests import Abilities, KeysetPage, QueueSettings, TaskFilter
from tidewheel.core.queue.resources import (
    ALLOW_LABEL_PREFIX,
    COMPOSE_2_LABEL,
    RUNNER_LABEL_PREFIX,
    Resources,
    allow_label,
    fits,
    needs_runner,
    offered_in,
)
from tidewheel.core.queue.status import LEASED, Status
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import NotFound
from tidewheel.ports.store import Store
from tidewheel.quantities import exact_size, show_duration, show_instant, show_size

PARENTS_SHOWN_MAX = 10
LEASES_COUNTED_MAX = 10_000


async def reasons(
    store: Store, task_id: TaskId, names: tuple[str, ...] | None = None
) -> list[str]:
    """Returns why a task waits, or was cancelled without having run; nothing if it runs, has
    ended otherwise, or is about to be claimed.

    Whoever asks is told of no task in a queue that these patterns do not cover; None: of all.
    """
    task = await store.get(task_id)
    if task.status is Status.WAITING:
        return await _waiting_reasons(store, task, names)
    if task.status is Status.CANCELLED:
        return await _cancelled_reasons(store, task, names)
    if task.status is not Status.READY:
        return []
    if withdrawn := await _withdrawn_reasons(store, task):
        return withdrawn
    now = await store.now()
    queues = {view.queue: view.settings for view in await store.queues()}
    settings = queues.get(task.queue, QueueSettings())
    found = []
    if task.due_at is not None and task.due_at > now:  # its own delay, or before a retry
        left, until = show_duration(task.due_at - now), show_instant(int(task.due_at))
        what = f"retry {task.failures} of {task.max_retries} is" if task.failures else "it is"
        found.append(f"It is delayed: {what} due in {left}, at {until}.")
    if settings.paused:
        how = f"tidewheel queues {quote(task.queue)} --resume"
        found.append(f"Queue {task.queue!r} is paused; resume it: {how}")
    if settings.limits:
        leased = await _leased(store, task.queue)
        running = Counter(one.limit_key or "" for one in leased)
        found += limit_reasons(task, settings.limits, running)
    workers = await store.workers()
    alive = [one for one in workers if now - one.seen_at < SILENT_SECONDS]
    serving = [one for one in alive if task.queue in Served(one.queues)]
    able = [one for one in serving if _can_execute(task, one.abilities)]
    suitable = [
        one for one in able if fits(task.resources, offered_in(task.queue, one.capacity))
    ]
    found += _worker_reasons(task, serving, able, suitable)
    if not found:
        found += await _room_reasons(store, task, suitable, workers, names)
    if not found:
        ahead = await store.peek(task.queue, 100)
        found += place_reasons(task, [view.id for view in ahead])
    return found


async def _withdrawn_reasons(store: Store, task: Task) -> list[str]:
    """Returns why nothing is claimed of a run that nobody drives; empty for other tasks."""
    name = run_named_by(task.id)
    if name is None:
        return []
    try:
        run = await store.find_run(name)
    except NotFound:
        return []
    if run.name != name or run.queue != task.queue or run.status not in WITHDRAWN_STATUSES:
        return []
    how = f"tidewheel run {quote(run.name)}"
    until = f"until the run resumes: {how}"
    if run.is_aborted:
        until = "again, because its block was aborted"
    elif run.status == "stopping":
        until = f"until the run has stopped and resumes: {how}"
    return [f"Its run is {run.status}, and no worker takes this task {until}"]


def _is_told(other: Task, task: Task, names: tuple[str, ...] | None) -> bool:
    """Says whether whoever asks about a task may be told of another."""
    is_near = other.queue == task.queue
    return names is None or is_near or covers(names, queue_name(other.queue))


async def _waiting_reasons(
    store: Store, task: Task, names: tuple[str, ...] | None
) -> list[str]:
    into = [edge for edge in await store.edges(task.id) if edge.child == task.id]
    still_open = [edge for edge in into if edge.state is EdgeState.OPEN]
    if not still_open:
        return ["It was created unarmed and has not been armed yet."]
    shown = []
    for edge in still_open[:PARENTS_SHOWN_MAX]:
        parent = await store.get(edge.parent)
        if not _is_told(parent, task, names):
            shown.append("It waits for a task in a queue that you may not see.")
            continue
        label = f"task {parent.id}" + (f" ({parent.name})" if parent.name else "")
        what = f"output {edge.output!r} of {label}"
        if edge.output == Status.SUCCEEDED:
            what = f"{label} to succeed"
        shown.append(f"It waits for {what}; that task is {parent.status}.")
    if more := len(still_open) - len(shown):
        shown.append(f"And for {more} more {'task' if more == 1 else 'tasks'}.")
    return shown


async def _cancelled_reasons(
    store: Store, task: Task, names: tuple[str, ...] | None
) -> list[str]:
    """Returns which needs had died when a task was cancelled, each with what came instead;
    empty if somebody has cancelled it."""
    found: list[str] = []
    for edge in [one for one in await store.edges(task.id) if one.child == task.id]:
        if len(found) == PARENTS_SHOWN_MAX:
            break
        parent = await store.get(edge.parent)
        made = [one.output for one in await store.outputs(parent.id) if one.output]
        state = edge_state(edge.output, parent.status, made)
        if state is not EdgeState.DEAD or parent.updated_at > task.updated_at:
            continue
        if not _is_told(parent, task, names):
            found.append(
                "It was cancelled because a task that it needed did not end as required; that "
                "task is in a queue that you may not see."
            )
            continue
        others = [one for one in dict.fromkeys(made) if one not in ALWAYS_KNOWN]
        end = f"that task is {parent.status}" + (
            f", and its job made {', '.join(others)}" if others else ""
        )
        what = f"the output {edge.output!r} of task {parent.id}"
        found.append(f"It was cancelled because it needed {what}, which did not come: {end}.")
    return found


def limit_reasons(task: Task, limits: Sequence[Limit], running: Counter[str]) -> list[str]:
    """Returns a sentence for each limit on tasks at once that is reached, or on their rate.

    Limits on the rate of starts are always named: whether one is reached is not known here.
    """
    rules = {limit.key: limit for limit in limits}
    concerned = [(WHOLE_QUEUE, rules.get(WHOLE_QUEUE))]
    if task.limit_key is not None:
        concerned.append((task.limit_key, rules.get(task.limit_key) or rules.get(EACH_KEY)))
    found = []
    for key, limit in concerned:
        if limit is None:
            continue
        of = f"queue {task.queue!r}" + (f", key {key!r}" if key else "")
        count = running.total() if key == WHOLE_QUEUE else running[key]
        if limit.concurrency_max is not None and count >= limit.concurrency_max:
            most = limit.concurrency_max
            found.append(
                f"A limit of {of} is reached: at most {most} may run, {count} running now."
            )
        if limit.rate_max is not None:
            per = show_duration(limit.rate_seconds)
            found.append(
                f"A rate limit of {of} lets at most {limit.rate_max} of its tasks start every "
                f"{per}."
            )
    return found


async def _leased(store: Store, queue: str | None = None) -> list[Task]:
    which = TaskFilter(statuses=tuple(LEASED), queue=queue)
    return await store.list_tasks(which, KeysetPage(count=LEASES_COUNTED_MAX))


def _worker_reasons(
    task: Task,
    serving: Sequence[WorkerView],
    able: Sequence[WorkerView],
    suitable: Sequence[WorkerView],
) -> list[str]:
    """Returns why no worker takes a task: none there, able, big enough, or free. ``suitable``
    are those that would run it if they ran nothing else."""
    if not serving:
        return [f"No worker serves queue {task.queue!r}; {_start_one(task)}"]
    if all(worker.trouble is not None for worker in serving):
        why = "; ".join(f"{one.id} ({one.trouble})" for one in serving)
        return [f"The workers of queue {task.queue!r} take no tasks now: {why}."]
    if not able:
        return [_unknown(task)]
    if not suitable:
        return [_missing(task, [offered_in(task.queue, one.capacity) for one in able])]
    if all(worker.leases >= worker.slots for worker in able):
        return [f"The workers of queue {task.queue!r} have no free slot."]
    return []


async def _room_reasons(
    store: Store,
    task: Task,
    suitable: Sequence[WorkerView],
    workers: Sequence[WorkerView],
    names: tuple[str, ...] | None,
) -> list[str]:
    """Returns why no worker that could run the task has room for it; empty if one has. Workers
    of one process that offer the same, as those of ``tidewheel up``, share a machine."""
    leased: list[Task] | None = None
    held: list[Task] = []
    for worker in suitable:
        offer = (worker.process, worker.capacity)
        mates = [one for one in workers if (one.process, one.capacity) == offer]
        if leased is None and any(one.leases for one in mates):
            leased = await _leased(store)
        owners = {one.id for one in mates}
        running = [one for one in leased or () if one.owner in owners]
        taken = (one.resources for one in running)
        if fits(task.resources, reduce(sub, taken, offered_in(task.queue, worker.capacity))):
            return []
        held += running
    alone = [one for one in held if one.resources.exclusive]
    for one in alone:
        if _is_told(one, task, names):
            return [
                f"Task {one.id} uses nodes of {one.owner} exclusively; this task waits until "
                "that one ends."
            ]
    if alone:
        return [
            "A task in a queue that you may not see uses nodes exclusively; this task waits "
            "until that one ends."
        ]
    if task.resources.flavours:
        return [f"It needs {nodes_text(task.resources)}; too few of them are free."]
    if task.resources.exclusive:
        nodes = "a node" if task.resources.nodes == 1 else f"{task.resources.nodes} nodes"
        return [f"It needs {nodes} without other tasks; the nodes of every worker are in use."]
    return [
        "Workers that could run this task have too few free resources; it waits until other "
        "tasks end."
    ]


def _can_execute(task: Task, abilities: Abilities) -> bool:
    if task.handler is not None:
        return abilities.handlers is None or task.handler in abilities.handlers
    if task.command is None:
        return abilities.bare
    return abilities.commands or needs_runner(task.resources)


def _unknown(task: Task) -> str:
    """Returns what every living worker of the queue lacks to execute the task."""
    of = f"of queue {task.queue!r}"
    if task.handler is not None:
        return f"No live worker {of} knows handler {task.handler!r}; {_start_one(task)}"
    if task.command is not None:
        return f"No live worker {of} runs commands; {_start_one(task)}"
    return (
        f"It has only a spec, which no live worker {of} can execute; lease it from an "
        "application, or submit it with a command or a handler"
    )


# What is measured, each an option of `tidewheel worker` but for its unit.
AMOUNTS = {
    "cpu": "{} cores",
    "memory_bytes": "{} of memory",
    "gpu": "{} GPUs",
    "nodes": "{} nodes",
    "buffer_bytes": "{} of buffer",
}
_SHORT_OF = {
    "cpu": "too few cores",
    "memory_bytes": "too little memory",
    "gpu": "too few GPUs",
    "nodes": "too few nodes",
    "buffer_bytes": "too little buffer space",
}
# A worker offers so much without being told; cores and memory as its machine has them.
OFFERED_BY_DEFAULT = {"gpu": 0, "nodes": 1, "buffer_bytes": 0}


def _start_one(task: Task, short: Container[str] = ()) -> str:
    """Says how to start a worker that would take the task, with all that it needs; ``short``
    are amounts of which the present workers have too little."""
    asked, options = task.resources, [f"--queue {quote(task.queue)}"]
    if task.handler is not None:
        options.append("--handlers MODULE:OBJECT")
    for name in AMOUNTS:
        wanted = getattr(asked, name)
        if name == "nodes" and (asked.flavours or wanted > 1):
            options += node_options(asked)
        elif name in short or wanted > OFFERED_BY_DEFAULT.get(name, wanted):
            options.append(f"--{name.removesuffix('_bytes')} {exact_amount(name, wanted)}")
    options += map(label_option, sorted(asked.labels - {COMPOSE_2_LABEL}))
    which = "" if task.handler is None else f" where handler {task.handler!r} is registered"
    installed = "; install docker compose 2 there" if COMPOSE_2_LABEL in asked.labels else ""
    started = f"start a worker{which}: tidewheel worker {' '.join(options)}{installed}"
    made = _externals(task) if allow_label("external") in asked.labels else []
    return "; ".join([started, *made])


def _externals(task: Task) -> list[str]:
    """Says what must exist on the engine of a worker before it can run a stage."""
    from tidewheel.runners.containers.compose_build import read_compose_text
    from tidewheel.runners.containers.needs import externals
    from tidewheel.runners.containers.stage_spec import BadStage, read_stage_spec, runner_named

    runner = runner_named(task.spec_text)
    if task.spec_text is None or runner not in (CONTAINERS, *CONTAINER_RUNNERS):
        return []
    try:
        document = read_compose_text(read_stage_spec(task.spec_text).compose)
    except BadStage:  # its worker will say so
        return []
    return [one.sentence(runner) for one in externals(document)]


def short_of(asked: Resources, offered: Resources) -> str:
    """Returns what a worker has too little of for a task, in words."""
    words = (
        text for one, text in _SHORT_OF.items() if getattr(asked, one) > getattr(offered, one)
    )
    nodes = nodes_text(asked)
    few = f"too few nodes ({nodes})" if nodes else "too little of what it asks for"
    return ", ".join(words) or few


def nodes_text(asked: Resources) -> str:
    """Returns the nodes of each flavour that a task asks for, in words."""
    words = []
    for one in asked.flavours:
        if one.flavour:
            some = f"{one.idle} of them " if 0 < one.idle < one.nodes else ""
            alone = f" ({some}exclusively)" if one.idle else ""
            words.append(f"{_nodes(one.nodes)} of {one.flavour}{alone}")
    return " and ".join(words)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def node_options(asked: Resources) -> list[str]:
    """Returns the options of a worker that offers the nodes which a task asks for."""
    named = [one for one in asked.flavours if one.flavour]
    others = asked.nodes - sum(one.nodes for one in named)
    options = [f"--nodes {quote(f'{one.flavour}={one.nodes}')}" for one in named]
    return [*options, f"--nodes {others}"] if others > 0 else options


def _amount(name: str, number: float) -> str:
    return show_size(number) if name.endswith("_bytes") else f"{number:g}"


def exact_amount(name: str, number: float) -> str:
    """Returns an amount as the option of a worker takes it."""
    return exact_size(int(number)) if name.endswith("_bytes") else f"{number:g}"


def _missing(task: Task, offered: Sequence[Resources]) -> str:
    """Says what no worker has enough of, and how to start one that has."""
    asked = task.resources
    seen: list[str] = []
    short: list[str] = []
    for name, words in AMOUNTS.items():
        most, wanted = max(getattr(one, name) for one in offered), getattr(asked, name)
        if wanted > most:
            shown = _amount(name, wanted), _amount(name, most)
            if shown[0] == shown[1]:  # rounded
                shown = exact_amount(name, wanted), exact_amount(name, most)
            what = words.format(shown[0])
            offer = f"the largest worker offers {shown[1]}"
            seen.append(f"{'it' if seen else 'It'} asks for {what}; {offer}")
            short.append(name)
    for one in asked.flavours:
        most = max(other.offered_of(one.flavour).nodes for other in offered)
        if one.flavour and one.nodes > most:
            has = f"the largest worker offers {most}" if most else "no worker has one"
            what = f"{_nodes(one.nodes)} of {one.flavour}"
            seen.append(f"{'it' if seen else 'It'} asks for {what}; {has}")
    lacking = sorted(asked.labels - frozenset().union(*(one.labels for one in offered)))
    allowances = [one for one in lacking if one.startswith(ALLOW_LABEL_PREFIX)]
    if allowances:
        what = ", ".join(one.removeprefix(ALLOW_LABEL_PREFIX) for one in allowances)
        asks = f"{what} in compose files, which this task needs"
        seen.append(f"{'no' if seen else 'No'} worker allows {asks}")
    absent = [one for one in lacking if one not in allowances]
    if absent:
        names = f"label{'s' if len(absent) > 1 else ''} {', '.join(map(repr, absent))}"
        seen.append(f"{'no' if seen else 'No'} worker offers the {names}")
    if not seen:
        return (
            "No single worker offers all that this task asks for: cores, memory, GPUs, nodes, "
            "buffer and labels together."
        )
    return f"{'; '.join(seen)}; {_start_one(task, short)}"


def label_option(label: str) -> str:
    """Returns the option of a worker that offers a label."""
    if label.startswith(ALLOW_LABEL_PREFIX):
        return f"--allow-compose {quote(label.removeprefix(ALLOW_LABEL_PREFIX))}"
    runner = label.removeprefix(RUNNER_LABEL_PREFIX)
    if runner == label:
        return f"--label {quote(label)}"
    return f"--runner {quote(CONTAINER_RUNNERS[0] if runner == CONTAINERS else runner)}"


def place_reasons(task: Task, order: Sequence[TaskId]) -> list[str]:
    """Says how many tasks go first; ``order`` is the beginning of the queue."""
    place = order.index(task.id) if task.id in order else len(order)
    if place <= 1:
        return [f"1 task of queue {task.queue!r} is ahead of it."] if place else []
    least = "" if task.id in order else "At least "
    return [f"{least}{place} tasks of queue {task.queue!r} are ahead of it."]
