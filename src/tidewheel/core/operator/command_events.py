"""Turns a command of an operator into the events that it means in a run (SEMANTICS §8).

`events_of` looks and changes nothing; whatever can be refused is refused here, before the first
event is applied, so a command is obeyed whole or not at all: but for tasks that it names beside
others and cannot act on, which are told. `answer_of` is what the asker is told afterwards.

Flows are written as nothing, `new`, `all`, `none`, or numbers as in `1,3`; `set` names outputs
of a task, or prerequisites that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import cast

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import (
    ENDS,
    STANDARD,
    SUCCEEDED,
    standard_name,
    unknown_output_text,
)
from tidewheel.core.operator import verbs
from tidewheel.core.operator.selection import (
    find_prerequisite,
    read_point,
    select,
    split_texts,
    unique_key,
    unmeaning,
    unrefused,
)
from tidewheel.core.operator.verbs import Command
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import events
from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.elements import refuse_absent_element, refuse_to_forget_list
from tidewheel.core.sched.events import Effect, Event, FlowChoice
from tidewheel.core.sched.flows import (
    active_flows,
    brings_back,
    existing_flows,
    flows_it_ran_in,
)
from tidewheel.core.sched.interventions import completing
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.task_state import NO_FLOW, Flows, JobPhase, Key
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass

BACK_MAX = 1_000  # tasks that come back, in one answer
NAMED_MAX = 5  # tasks in one sentence
WAITED_FOR_MAX = 100  # tasks whose end is awaited, in one answer
NO_STOP_POINT = "none"
NOT_HELD = "it is not held"
IS_ACTIVE = "it is active already"
HAS_ENDED = "it has ended, and runs again only if it is triggered"
NO_JOB = "it is not active and has no job"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedCommand:
    """Holds what a command means: events to be stepped through, in this order.

    `by_scheduler`: the command concerns more than the pool, and the scheduler obeys it itself.
    """

    events: tuple[Event, ...] = ()
    tasks: tuple[Key, ...] = ()  # that it names
    back: tuple[Key, ...] = ()  # lost or blocked ones that come back
    forgotten: tuple[Key, ...] = ()  # to be removed, and not in the pool
    unchanged: Mapping[Key, str] = field(default_factory=dict)  # those as asked for already
    refused: Mapping[Key, str] = field(default_factory=dict)  # those it cannot act on, and why
    left_out: Mapping[str, str] = field(default_factory=dict)  # what means nothing, and why
    sets_outputs: bool = False
    notices: tuple[str, ...] = ()
    idle_because: str = ""  # why nothing of the run changes
    by_scheduler: bool = False


def events_of(pool: TaskPool, command: Command, at: Instant) -> AppliedCommand:
    """Returns the events of a command; raises Refused if it cannot be obeyed as it is."""
    if verbs.ROWS[command.verb].by_scheduler:
        return AppliedCommand(by_scheduler=True)
    applied = _RULES[type(command)](pool, command, at)
    ids = getattr(command, "ids", ())
    left_out = unmeaning(pool, ids, partial(_selected, pool, command))
    return replace(applied, left_out={**left_out, **applied.left_out}) if left_out else applied


def _selected(pool: TaskPool, command: Command, *ids: str) -> tuple[Key, ...]:
    """Returns the tasks that the ids of a command mean, or some of its ids."""
    return select(
        pool,
        ids or getattr(command, "ids", ()),
        all_at_point=getattr(command, "all_at_point", None),
        pooled_only=isinstance(command, verbs.Kill | verbs.Poll),
        also=pool.run.held_tasks if isinstance(command, verbs.Release) else (),
    )


def _refuse_all(pool: TaskPool, done: str, tasks: Sized, refused: Mapping[Key, str]) -> None:
    """Refuses a command that could act on none of the tasks that it names."""
    if tasks and len(refused) == len(tasks):
        few = list(refused.items())[:NAMED_MAX]
        told = "; ".join(f"{pool.plan.name_of(key)}: {why}" for key, why in few)
        raise Refused(f"nothing was {done}: {told}")


def _joins(pool: TaskPool, key: Key, flow: FlowChoice | Flows) -> bool:
    """Says whether a pooled task gets into a flow that it is not in."""
    return flow is FlowChoice.NEW or not (
        (existing_flows(pool, flow) or NO_FLOW) <= pool.tasks[key].flows
    )


def _trigger(pool: TaskPool, command: verbs.Trigger, at: Instant) -> AppliedCommand:
    keys = _selected(pool, command)
    flow = read_flows(pool, command.flow)
    bounds = (command.until, command.until_tasks, command.from_point, command.ignore_before)
    if any(bounds) and flow is not FlowChoice.NEW:
        raise Refused(
            "--until, --until-task, --from and --ignore-before are only for a new flow; "
            "add --reflow (or --flow new)"
        )
    event = events.TasksTriggered(
        tasks=keys,
        at=at,
        flow=flow,
        until=_point(pool, command.until),
        until_tasks=frozenset(_one_that_is_there(pool, one) for one in command.until_tasks),
        wait=command.wait,
        ignore_before=command.ignore_before,
        chains_from=_point(pool, command.from_point),
        on_resume=command.on_resume,
    )
    active = (key for key in keys if key in pool.tasks and pool.tasks[key].is_active)
    return AppliedCommand(
        events=(event,),
        tasks=keys,
        back=_coming_back(pool, keys) if flow is FlowChoice.DEFAULT else (),
        unchanged={key: IS_ACTIVE for key in active if not _joins(pool, key, flow)},
    )


def _coming_back(pool: TaskPool, keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """Returns the lost or blocked tasks that come back if these run again, however far down."""
    found: dict[Key, None] = {}
    todo = [key for key in keys if key not in pool.tasks]
    active = active_flows(pool)
    flows = {flow for key in todo for flow in flows_it_ran_in(pool, key) & active}
    while todo and len(found) < BACK_MAX:
        point, name = todo.pop()
        for flow in sorted(flows):
            back = brings_back(pool, pool.node(name), point, flow)
            todo += [key for key in back if key not in found]
            found |= dict.fromkeys(back)
    return tuple(sorted(found))


def _set(pool: TaskPool, command: verbs.Set, at: Instant) -> AppliedCommand:
    keys = _selected(pool, command)
    flow = read_flows(pool, command.flow)
    if command.outputs and command.prerequisites:
        raise Refused(
            "outputs (--out) and prerequisites (--pre) cannot be set in one command; use two"
        )
    if command.values and not (command.outputs or command.prerequisites):
        return AppliedCommand(tasks=keys)  # the scheduler has the values
    _refuse_absent_elements(pool, keys)
    if command.prerequisites:
        return _set_prerequisites(pool, command, keys, flow, at)
    made, refused = unrefused(pool, keys, lambda key: _outputs(pool, command, key, at))
    return AppliedCommand(
        events=_in_flow(pool, made, flow), tasks=keys, refused=refused, sets_outputs=True
    )


def _in_flow(
    pool: TaskPool,
    made: Iterable[events.OutputsSet | events.PrerequisitesSet],
    flow: FlowChoice | Flows,
) -> tuple[Event, ...]:
    """Returns events of a command in its flow: if it is new, the first event makes it, and the
    others name it."""
    found: list[Event] = []
    for event in made:
        found.append(replace(event, flow=flow))
        if flow is FlowChoice.NEW:
            flow = frozenset({pool.run.flows_made + 1})
    return tuple(found)


def _set_prerequisites(
    pool: TaskPool,
    command: verbs.Set,
    keys: tuple[Key, ...],
    flow: FlowChoice | Flows,
    at: Instant,
) -> AppliedCommand:
    texts = tuple(split_texts(command.prerequisites))
    past = {
        key: pool.tasks[key]
        for key in keys
        if key in pool.tasks
        and pool.tasks[key].stage is not JobPhase.WAITING
        and not _joins(pool, key, flow)
    }
    made, refused = unrefused(pool, keys, lambda key: _prerequisites(pool, command, key, at))
    refused |= {key: HAS_ENDED for key, task in past.items() if not task.is_active}
    _refuse_all(pool, "set", keys, refused)
    left_out = {
        text: why
        for key in keys
        for text, why in unmeaning(pool, texts, partial(find_prerequisite, pool, key)).items()
        if key not in refused
    }
    return AppliedCommand(
        events=_in_flow(pool, (one for one in made if one.task not in past), flow),
        tasks=keys,
        unchanged={key: IS_ACTIVE for key in past if key not in refused},
        refused=refused,
        left_out=left_out,
    )


def _outputs(pool: TaskPool, command: verbs.Set, key: Key, at: Instant) -> events.OutputsSet:
    node, texts = pool.node(key[1]), split_texts(command.outputs)
    # Each once; none means what completes the task.
    outputs = dict.fromkeys(one for text in texts for one in _meant(node, text))
    ends = [one for one in outputs if one in ENDS]
    if len(ends) > 1:
        name = pool.plan.name_of(key)
        raise Refused(f"{name} ends in one way; give one of {', '.join(ends)}")
    return events.OutputsSet(task=key, at=at, outputs=tuple(outputs), wait=command.wait)


def _prerequisites(
    pool: TaskPool, command: verbs.Set, key: Key, at: Instant
) -> events.PrerequisitesSet:
    if command.wait:
        raise Refused("--wait goes with outputs (--out), not with prerequisites (--pre)")
    texts = split_texts(command.prerequisites)
    found, _ = unrefused(pool, texts, partial(find_prerequisite, pool, key))
    return events.PrerequisitesSet(
        task=key,
        at=at,
        atoms=tuple(one for one in found if isinstance(one, tuple)),
        xtriggers=tuple(label for one in found if isinstance(one, list) for label in one),
        everything=None in found,
    )


def _remove(pool: TaskPool, command: verbs.Remove, at: Instant) -> AppliedCommand:
    keys = _selected(pool, command)
    flow = read_flows(pool, command.flow)
    if flow in (FlowChoice.NEW, FlowChoice.NONE):
        raise Refused(
            f"--flow {command.flow} has no tasks to be removed; give flow numbers, or all"
        )
    flows: Flows = flow if isinstance(flow, frozenset) else NO_FLOW
    _refuse_absent_elements(pool, keys)
    refused = {key: why for key in keys if (why := _why_never_removed(pool, key, flows))}
    _refuse_all(pool, "removed", keys, refused)
    keys_to_go = tuple(key for key in keys if key not in refused)
    for key in keys_to_go:
        if key not in pool.tasks:  # it is to be forgotten
            refuse_to_forget_list(
                pool, pool.node(key[1]), key[0], flows or frozenset(pool.flows)
            )
    event = events.TasksRemoved(
        tasks=keys_to_go, at=at, flows=flows, forget=command.forget, kill=command.kill
    )
    forgotten = tuple(key for key in keys_to_go if key not in pool.tasks)
    return AppliedCommand(
        events=(event,) if keys_to_go else (),
        tasks=keys,
        forgotten=forgotten,
        refused=refused,
    )


def _why_never_removed(pool: TaskPool, key: Key, flows: Flows) -> str:
    """Returns why there is nothing to remove of a task, in the flows if any are named; "" if
    there is."""
    task, memory = pool.tasks.get(key), pool.recall(*key)
    if task is None and memory is None:
        return "it has not run, and will run when its needs are met"
    there = task.flows if task is not None else NO_FLOW
    if memory is not None and task is None:
        there = memory.spawned.union(memory.verdicts, *memory.made.values())
    if not flows or there & flows:
        return ""
    named = ", ".join(map(str, sorted(flows)))
    return (
        f"it is not in flow {named}" if task is not None else f"it did not run in flow {named}"
    )


def _hold(pool: TaskPool, command: verbs.Hold, at: Instant) -> AppliedCommand:
    if not command.ids and not command.after:
        raise Refused("hold what? Name tasks, or a point with --after")
    found: list[Event] = []
    keys = _selected(pool, command) if command.ids else ()
    ended = {key: why for key in keys if (why := _why_never_held(pool, key))}
    if not command.after:
        _refuse_all(pool, "held", keys, ended)
    unchanged = {key: "it is held already" for key in keys if _is_held(pool, key)}
    to_hold = tuple(key for key in keys if key not in unchanged | ended)
    if to_hold:
        found.append(events.TasksHeld(to_hold, at))
    after = _point(pool, command.after)
    if after is not None:
        found.append(events.AllHeldAfter(after, at))
    notices = _beyond_the_end(pool, after)
    return AppliedCommand(
        events=tuple(found), tasks=keys, unchanged=unchanged, refused=ended, notices=notices
    )


def _beyond_the_end(pool: TaskPool, point: Point | None) -> tuple[str, ...]:
    """Returns what is told of a bound that nothing lies beyond."""
    final = pool.plan.final
    if point is None or final is None or point < final:
        return ()
    return (f"no task comes after the final point {pool.plan.text(final)}",)


def _is_held(pool: TaskPool, key: Key) -> bool:
    task = pool.tasks.get(key)
    return key in pool.run.held_tasks or (task is not None and task.held)


def _why_never_held(pool: TaskPool, key: Key) -> str:
    """Returns why there is nothing to hold of a task that has ended and will not run again by
    itself; "" for any other."""
    ran = frozenset() if key in pool.tasks else flows_it_ran_in(pool, key)
    if not ran or not active_flows(pool) <= ran:
        return ""
    return "it has ended and does not run again by itself"


def _release(pool: TaskPool, command: verbs.Release, at: Instant) -> AppliedCommand:
    if command.everything and command.ids:
        raise Refused("release what? Name tasks, or use --all, not both")
    run = pool.run
    if command.everything:
        is_any = run.held_tasks or any(task.held for task in pool.tasks.values())
        idle = "" if is_any or run.hold_after is not None else "nothing was held"
        return AppliedCommand(events=(events.AllReleased(at),), idle_because=idle)
    if not command.ids:
        raise Refused("release what? Name tasks, or --all")
    keys = _selected(pool, command)
    held = tuple(key for key in keys if _is_held(pool, key))
    others = {key: _why_not_released(pool, key) for key in keys if key not in held}
    refused = {key: why for key, why in others.items() if why != NOT_HELD}
    _refuse_all(pool, "released", keys, refused)
    released = (events.TasksReleased(held, at),) if held else ()
    unchanged = {key: why for key, why in others.items() if why == NOT_HELD}
    return AppliedCommand(events=released, tasks=keys, unchanged=unchanged, refused=refused)


def _why_not_released(pool: TaskPool, key: Key) -> str:
    after = pool.run.hold_after
    if after is not None and key[0] > after and key not in pool.tasks:
        return (
            f"every task after {pool.plan.text(after)} is held until the command release --all"
        )
    return NOT_HELD


def _of_jobs(pool: TaskPool, command: verbs.Kill | verbs.Poll, at: Instant) -> AppliedCommand:
    keys = _selected(pool, command)
    active = tuple(key for key in keys if pool.tasks[key].is_active)
    if not active:
        names = ", ".join(command.ids)
        raise Refused(f"no active task matches {names}; only active tasks have jobs")
    idle: dict[Key, str] = {}
    for text in command.ids if len(active) < len(keys) else ():
        with suppress(Refused):  # it is told as left out
            meant = _selected(pool, command, text)
            if not any(pool.tasks[key].is_active for key in meant):  # a pattern means these
                idle |= dict.fromkeys(meant, NO_JOB)
    made = events.JobsKilled if isinstance(command, verbs.Kill) else events.JobsPolled
    tasks = tuple(sorted((*active, *idle)))
    return AppliedCommand(events=(made(active, at),), tasks=tasks, refused=idle)


def _resume(pool: TaskPool, _: verbs.Resume, at: Instant) -> AppliedCommand:
    idle = "" if pool.run.paused else "it is not paused"
    return AppliedCommand(events=(events.RunResumed(at),), idle_because=idle)


def _stop(pool: TaskPool, command: verbs.Stop, at: Instant) -> AppliedCommand:
    bounds = (command.at_point, command.after_task, command.at_time, command.flow is not None)
    if sum(map(bool, bounds)) + (command.mode != events.StopMode.CLEAN) > 1:
        raise Refused(
            "stop accepts only one of: --now, --kill, --at, --after, --at-time, --flow"
        )
    if command.at_time:
        return AppliedCommand(by_scheduler=True)
    if command.at_point == NO_STOP_POINT:
        idle = "it has no stop point" if pool.run.stop is None else ""
        return AppliedCommand(events=(events.StopPointSet(None, at),), idle_because=idle)
    point = _point(pool, command.at_point)
    if point is not None:
        return AppliedCommand(
            events=(events.StopPointSet(point, at),), notices=_beyond_the_end(pool, point)
        )
    if command.after_task:
        key = _one_that_is_there(pool, command.after_task)
        _refuse_what_is_past(pool, key)
        return AppliedCommand(events=(events.StopTaskSet(key, at),), tasks=(key,))
    if command.flow is not None:
        return AppliedCommand(events=(events.FlowStopped(known_flow(pool, command.flow), at),))
    if command.mode not in tuple(events.StopMode):
        modes = ", ".join(events.StopMode)
        raise Refused(f"{command.mode!r} is not a mode of stop; expected one of {modes}")
    return AppliedCommand(events=(events.RunStopped(events.StopMode(command.mode), at),))


def _one_that_is_there(pool: TaskPool, text: str) -> Key:
    """Returns the one task that an id names; raises Refused for an element that is not there,
    after which nothing would ever stop."""
    key = unique_key(pool, text)
    refuse_absent_element(pool, pool.node(key[1]), key[0])
    return key


def _refuse_absent_elements(pool: TaskPool, keys: Iterable[Key]) -> None:
    """Refuses a command for elements that are not there, before anything is done for others."""
    for key in keys:
        if key not in pool.tasks:
            refuse_absent_element(pool, pool.node(key[1]), key[0])


def _refuse_what_is_past(pool: TaskPool, key: Key) -> None:
    """Refuses a task whose end will not come: the run would go on while somebody relies on its
    stop."""
    task, memory = pool.tasks.get(key), pool.recall(*key)
    if task is not None:
        has_run = is_past = task.stage is JobPhase.INCOMPLETE
    else:
        gone = memory.spawned.union(memory.verdicts) if memory else frozenset()
        has_run, is_past = bool(flows_it_ran_in(pool, key)), active_flows(pool) <= gone
    if is_past:
        name = pool.plan.name_of(key)
        raise Refused(
            f"{name} {'has ended' if has_run else 'will not run'}, so the run would not stop "
            f"after it; stop it now, or trigger {name} first"
        )


def _point(pool: TaskPool, text: str) -> Point | None:
    return read_point(pool.plan.graph.cycling, text) if text else None


_Rule = Callable[[TaskPool, Command, Instant], AppliedCommand]
_RULES: Mapping[type, _Rule] = cast(
    "Mapping[type, _Rule]",
    {
        verbs.Trigger: _trigger,
        verbs.Set: _set,
        verbs.Remove: _remove,
        verbs.Hold: _hold,
        verbs.Release: _release,
        verbs.Kill: _of_jobs,
        verbs.Poll: _of_jobs,
        verbs.Pause: lambda _pool, _, at: AppliedCommand(events=(events.RunPaused(at),)),
        verbs.Resume: _resume,
        verbs.Stop: _stop,
    },
)


def answer_of(
    pool: TaskPool, applied: AppliedCommand, effects: Sequence[Effect]
) -> dict[str, object]:
    """Returns what the asker is told, from the pool after the last event and all effects."""
    submits = [one for one in effects if isinstance(one, events.Submit)]
    notices = [one.text for one in effects if isinstance(one, events.Notice)]
    notices += (*applied.notices, *applied.left_out.values())
    answer: dict[str, object] = {
        "tasks": {pool.plan.id_of(key): _flows_of(pool, key, submits) for key in applied.tasks},
        "submitted": [pool.plan.id_of(one.task) for one in submits],
        "killed": [
            pool.plan.id_of(one.task) for one in effects if isinstance(one, events.KillJob)
        ],
        "polled": [
            pool.plan.id_of(one.task) for one in effects if isinstance(one, events.PollJob)
        ],
        "comes_back": [pool.plan.id_of(key) for key in applied.back],
        "forgotten": [pool.plan.id_of(key) for key in applied.forgotten],
        "notices": notices,
        "status": str(pool.run.status),
        "waits_for": _waited_for(pool),
        "stages": pool.plan.is_of_stages,
    }
    unchanged = sorted({**applied.unchanged, **applied.refused}.items())
    answer["unchanged"] = {pool.plan.id_of(key): why for key, why in unchanged}
    answer["refused"] = [*map(pool.plan.id_of, sorted(applied.refused)), *applied.left_out]
    still = applied.tasks if applied.sets_outputs else ()
    answer["still_to_run"] = [pool.plan.id_of(key) for key in still if _is_to_come(pool, key)]
    told = {name: value for name, value in answer.items() if value or name == "tasks"}
    return told | (nothing_changed(applied.idle_because) if applied.idle_because else {})


def _is_to_come(pool: TaskPool, key: Key) -> bool:
    """Says whether a task outside the pool will run when its needs are met."""
    memory = pool.recall(*key)
    return key not in pool.tasks and (memory is None or not (memory.spawned or memory.verdicts))


def nothing_changed(why: str) -> dict[str, object]:
    """Returns what is answered to a command that changes nothing of a run."""
    return {"changed": False, "notices": [why]}


def _waited_for(pool: TaskPool) -> list[str]:
    """Returns the tasks whose end a stopping run awaits, the oldest first; not all of many.

    It is empty for a run that does not stop. What no worker has taken is withdrawn, and not
    waited for.
    """
    if pool.run.status is not RunStatus.STOPPING:
        return []
    begun = sorted(task.key for task in pool.tasks.values() if task.has_job)
    return [pool.plan.id_of(key) for key in begun[:WAITED_FOR_MAX]]


def _flows_of(pool: TaskPool, key: Key, submits: list[events.Submit]) -> str | None:
    """Returns the flows that a task is in, or was submitted in just now; None if in none."""
    task = pool.tasks.get(key)
    if task is not None:
        return flow_text(task.flows)
    found = [one.flows for one in submits if one.task == key]
    return flow_text(found[-1]) if found else None


FLOW_MAX = 1_000_000

_CHOICES = {
    "": FlowChoice.DEFAULT,
    "new": FlowChoice.NEW,
    "all": FlowChoice.ALL,
    "none": FlowChoice.NONE,
}


def read_flows(pool: TaskPool, text: str) -> FlowChoice | Flows:
    """Returns the flows that a text names; raises Refused for a number that is not allowed."""
    choice = _CHOICES.get(text.strip().lower())
    if choice is not None:
        return choice
    return frozenset(_read_number(pool, part) for part in text.split(","))


def known_flow(pool: TaskPool, number: int) -> int:
    if number not in pool.flows:
        known = ", ".join(map(str, sorted(pool.flows)))
        raise Refused(f"there is no flow {number}; known flows: {known}")
    return number


def flow_text(flows: Flows) -> str:
    """Returns flow numbers as they are shown and logged."""
    return ",".join(map(str, sorted(flows))) or "none"


def _read_number(pool: TaskPool, part: str) -> int:
    part = part.strip()
    if not part.isdecimal() or not 1 <= int(part) <= FLOW_MAX:
        raise Refused(
            f"{part!r} is not a flow; write a number such as 2 or 1,3, or new, all or none"
        )
    if pool.plan.policy.naming_a_flow_starts_it:
        return int(part)
    return known_flow(pool, int(part))


REQUIRED = "required"  # what completes the task
SKIP = "skip"  # what a skipped job would make


def _meant(node: IndexedNode, text: str) -> tuple[str, ...]:
    if text == REQUIRED:
        return completing(node)
    if text == SKIP:
        return (*(node.definition.skip.outputs or completing(node)), SUCCEEDED)
    name = standard_name(text)
    custom = [own for own, _ in node.definition.outputs]
    if name not in STANDARD and name not in custom:
        raise Refused(unknown_output_text(node.name, text, [*STANDARD, *custom]))
    return (name,)
