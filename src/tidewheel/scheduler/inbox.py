"""Turns what happened to a run into events of the core: reports of jobs, and commands.

Jobs report in the words of the queue (SEMANTICS §6). Commands about the pool become events, the
others are obeyed here.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidewheel.core.graph.checks.names import some
from tidewheel.core.graph.definition import NodeDef, RunMode, assumed_sizes
from tidewheel.core.graph.findings import meant, nearly_said
from tidewheel.core.graph.outputs import (
    STANDARD,
    STARTED,
    SUBMITTED,
    SUCCEEDED,
    unknown_output_text,
)
from tidewheel.core.operator import requests, run_log, verbs
from tidewheel.core.operator.command_events import answer_of, events_of, nothing_changed
from tidewheel.core.operator.definition import (
    PYTHON,
    SIP,
    StoredDefinition,
    is_same_content,
    sealed,
)
from tidewheel.core.operator.selection import job_of
from tidewheel.core.operator.task_inputs import lists_in, sizes_given, sizes_told
from tidewheel.core.operator.verbs import Command, read_command
from tidewheel.core.queue.requests import PAGE_COUNT_MAX, Report
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant
from tidewheel.core.queue.values import read_value, values_text
from tidewheel.core.sched import events
from tidewheel.core.sched.elements import (
    refuse_absent_element,
    refuse_other_lists,
    refuse_renamed_elements,
    size_at,
)
from tidewheel.core.sched.interventions import completing
from tidewheel.core.sched.lifecycle import DROPPED, MISSED, TASKS_GONE
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Flows, Key
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.quantities import parse_duration, show_instant
from tidewheel.scheduler.broadcasts import check_inputs, idle_texts, rows_of, unmatched_texts
from tidewheel.scheduler.run_files import RunFolderUnusable
from tidewheel.scheduler.simulated_jobs import may_assume
from tidewheel.scheduler.timers import STOP_AT_TIME, timer_key
from tidewheel.services.definitions.snapshot import check_same_workflow, reread, restore
from tidewheel.worker.jobs import START_FAILED

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine


SEVERITIES = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "CUSTOM", "NORMAL")
SEVERITY_DEFAULT = "INFO"
SETTINGS_TOLD_MAX = 5  # in one sentence
UNSTORED = 0  # the seq of a happening of which the store does not know yet
MISTAKEN = "mistaken"  # the notice that a job probably meant an output with what it said


def told_by(now: Instant, one: Report) -> requests.Happening:
    """Returns what a run would be told of a job that started or ended well, if it were told by
    the store; without a seq, as it is not there."""
    if one.end is None:
        return requests.JobStarted(UNSTORED, now, one.holder.task_id, one.holder.attempt)
    told = (Status.SUCCEEDED.value, None, None, one.end.exit_status, one.end.values)
    return requests.JobOver(UNSTORED, now, one.holder.task_id, one.holder.attempt, *told)


def job_started(engine: RunEngine, one: requests.JobStarted) -> None:
    """Tells the core that a job's process started.

    If the task has an init-script, the job itself says later when it has started, so until then
    it counts as submitted.
    """
    found = engine.jobs.get(one.task_id)
    if found is None:
        return
    key, submit = found
    if engine.settings.node(key).scripts.init:
        engine.step(events.JobSubmitted(key, submit, one.at))
    else:
        engine.step(events.OutputMade(key, submit, STARTED, one.at))


def job_said(engine: RunEngine, one: requests.JobSaid) -> None:
    """Applies a message that a job sent through its worker; unknown jobs are ignored."""
    found = engine.jobs.get(one.task_id)
    if found is not None:
        if one.told is not None:  # before the step that may submit those that read it
            hear_values(engine, found, one.told)
        job_message(engine, found, one.text, one.output, one.at)
        engine.nested.hear(found[0], one.text)


def hear_values(engine: RunEngine, job: tuple[Key, int], body: str) -> None:
    """Keeps the values of a job, for the tasks after it, unless it was superseded."""
    key, submit = job
    task = engine.pool.tasks.get(key)
    if task is not None and task.submit == submit:
        engine.batch.values.append(engine.values.heard(key, submit, task.flows, body))


def job_message(
    engine: RunEngine,
    job: tuple[Key, int],
    text: str,
    output: str | None,
    at: Instant,
    how: str = "received",
) -> None:
    """Applies a message of a job: makes an output if it is one, and tells people in any case.

    `WARNING:disk is full` is a warning; a text without such a word is information.
    """
    key, submit = job
    word, colon, rest = text.partition(":")
    severity, said = SEVERITY_DEFAULT, text
    if colon and word.strip().upper() in SEVERITIES:
        severity, said = word.strip().upper(), rest.strip()
    node = engine.settings.node(key)
    log = engine.batch.log
    name = output or next((name for name, words in node.outputs if words == said), None)
    if name == SUBMITTED:  # by a runner that does not start jobs at once
        log.append(engine.task_events.log.said(key, said, severity, how))
        engine.step(events.JobSubmitted(key, submit, at))
        return
    known = name == STARTED or any(name == one for one, _ in node.outputs)
    if name != STARTED:
        log.append(engine.task_events.log.said(key, said or str(name), severity, how))
    if name is not None and known:
        engine.step(events.OutputMade(key, submit, name, at))
    elif wrong := _mistaken(node, name, said):
        text = f"{engine.pool.plan.name_of(key)} {wrong}"
        log.append(run_log.RunLogLine(run_log.WARNING, text))
        engine.batch.notices.append(events.Notice(MISTAKEN, key, text))
    engine.batch.notices.append(events.Notice(f"message/{severity}", key, said or str(name)))


def job_failed(engine: RunEngine, job: tuple[Key, int], one: requests.JobOver) -> None:
    """Tells the core, and the run's log, of the end of a job that did not succeed."""
    key, submit = job
    if one.status == Status.CANCELLED:
        how = events.JobEnd.KILLED
    elif one.error_code == START_FAILED:
        how = events.JobEnd.NOT_STARTED
    else:
        how = events.JobEnd.FAILED
    task = engine.pool.tasks.get(key)
    if one.error and not (task is not None and task.let_go):  # that was ended as it should be
        tell_failure(engine, key, submit, one.error)
    retries = None
    if key[1] in engine.graph.nodes:
        retries = engine.settings.node(key).retries  # with what was broadcast
    ended = events.JobEnded(key, submit, how, one.at, retries)
    engine.step(ended, _signal_name(one.exit_status))


def tell_sizes(engine: RunEngine, job: tuple[Key, int], one: requests.JobOver) -> bool:
    """Tells the core how many elements the lists have that a job returned with its success.

    Without a list that can be used the job has failed, since nobody could say what is to run.
    """
    key, submit = job
    node, task = engine.settings.node(key), engine.pool.tasks[key]
    lists, values = task.plan.lists, json.loads(one.text) if one.text else {}
    try:
        if RunMode.DUMMY in (engine.settings.mode, node.run_mode) and (
            all(may_assume(engine.settings, key[0], tasks) for tasks in lists)
        ):
            told = assumed_sizes(tasks.over for tasks in lists)
        else:
            told = sizes_told(lists, values, submit)
    except Refused as refused:
        why = f"{engine.pool.plan.name_of(key)} {refused}"
        tell_failure(engine, key, submit, why)
        if STARTED not in task.outputs:
            engine.step(events.OutputMade(key, submit, STARTED, one.at))
        failed = events.JobEnd.FAILED
        engine.step(events.JobEnded(key, submit, failed, one.at, node.retries, why), "ERR")
        return False
    for output in told:
        engine.step(events.OutputMade(key, submit, output, one.at))
    return True


async def _with_sizes(engine: RunEngine, event: events.Event) -> events.Event:
    """Returns a success set by hand with the sizes of the lists that were returned or set."""
    if not isinstance(event, events.OutputsSet):
        return event
    node = engine.pool.plan.nodes.get(event.task[1])
    if node is None or not node.lists:
        return event
    memory = engine.pool.recall(*event.task)
    outputs = event.outputs or completing(node, () if memory is None else memory.made)
    if SUCCEEDED not in outputs:
        return event
    await engine.values.fetch([event.task], one_flow=False)
    row = engine.values.of(event.task, frozenset(engine.pool.flows))
    sizes = sizes_given(engine.pool.plan.name_of(event.task), node.lists, row)
    return replace(event, outputs=(*sizes, *outputs))


def tell_failure(engine: RunEngine, key: Key, submit: int, why: str) -> None:
    """Tells why a job failed, in the log and to those who follow the run."""
    engine.batch.log.append(
        run_log.RunLogLine(
            run_log.ERROR, f"[{engine.pool.plan.name_of(key)}/{submit:02d}] {why}"
        )
    )
    engine.batch.notices.append(events.Notice("job failed", key, why))


def _mistaken(node: NodeDef, name: str | None, said: str) -> str:
    """Returns a warning if a job's message was probably meant to make an output; else empty."""
    if name is not None:
        if name in STANDARD:
            return ""
        declared = (own for own, _ in node.outputs)
        return f"announced an unknown output: {unknown_output_text(node.name, name, declared)}"
    meant = {text: own for own, message in node.outputs for text in (own, message)}
    near = nearly_said(said, meant) if meant else None
    if near is None:
        return ""
    own = meant[near]
    message = dict(node.outputs)[own]
    return (
        f"sent the message {said!r}, which differs from {message!r}: "
        f"its output {own} is still missing"
    )


def _signal_name(exit_status: int | None) -> str:
    """Returns the signal that ended a job which failed, or ERR for any other failure."""
    if exit_status is None or exit_status >= 0:
        return "ERR"
    try:
        return signal.Signals(-exit_status).name.removeprefix("SIG")
    except ValueError:
        return "ERR"


async def answer_command(
    engine: RunEngine, given: requests.CommandGiven, store: Store
) -> requests.CommandAnswer:
    """Obeys a command and returns its answer, or why it is refused and nothing was changed."""
    ended_at, name, log = engine.run.ended_at, "", engine.batch.log
    try:
        command = read_command(given.body)
        is_kept = isinstance(command, verbs.REOPENING)
        if ended_at is not None and given.at <= ended_at and not is_kept:
            raise Refused(
                f"{engine.run.name} ended before this command took effect; repeat the "
                "command if needed"
            )
        name = run_log.command_name(command)
        answer = await _obey(engine, command, given.at, store)
    except Refused as refused:
        if name:
            log.append(run_log.command_line(name, str(refused)))
        return requests.CommandAnswer(given.number, refused=str(refused))
    log.append(run_log.command_line(name))
    engine.batch.steps += 1
    return requests.CommandAnswer(given.number, json.dumps(answer))


async def _obey(
    engine: RunEngine, command: Command, at: Instant, store: Store
) -> dict[str, object]:
    applied = events_of(engine.pool, command, at)
    if applied.by_scheduler:
        return await _obey_itself(engine, command, at, store)
    if isinstance(command, verbs.Set) and command.values:
        _refuse_other_lists(engine.pool, applied.tasks, command.values)
        await _set_values(engine, applied.tasks, command.values)
    happening: Sequence[events.Event] = applied.events
    if engine.pool.plan.mapped:  # all of them, before anything is done for the first
        happening = [await _with_sizes(engine, event) for event in happening]
    effects: list[events.Effect] = []
    for event in happening:
        effects += engine.step(event)
    if isinstance(command, verbs.Stop) and command.reason:
        engine.aborted = command.reason
    return answer_of(engine.pool, applied, effects)


async def _set_values(engine: RunEngine, tasks: Sequence[Key], given: Sequence[str]) -> None:
    """Sets values of tasks over those that they have, in the flows in which they are or were;
    all of it is checked before anything is set."""
    new = dict(read_value(text) for text in given)
    await engine.values.fetch(tasks, one_flow=False)
    rows = []
    for key in tasks:
        task, memory = engine.pool.tasks.get(key), engine.pool.recall(*key)
        flows = task.flows if task else frozenset() if memory is None else memory.spawned
        flows = flows or frozenset(engine.pool.flows)
        submit = 0 if memory is None else memory.submits
        # Each flow keeps the rest of its own values.
        found = [engine.values.of(key, frozenset({flow})) for flow in sorted(flows)]
        for known in dict.fromkeys(found):
            values = new if known is None else json.loads(known.body) | new
            body = values_text(json.dumps(values, ensure_ascii=False))
            where = (
                (submit, flows)
                if known is None
                else (known.submit, frozenset(json.loads(known.flows)))
            )
            rows.append((key, *where, body))
        rows += _rows_of_lists(engine, key, flows, new, submit)
    engine.batch.values += [engine.values.heard(*row) for row in rows]


def _refuse_other_lists(pool: TaskPool, keys: Sequence[Key], given: Sequence[str]) -> None:
    """Raises Refused if values are set of an element that is not there, or a list of which
    there are elements already, and not as many: what is beyond them would never run."""
    new = dict(read_value(text) for text in given)
    for point, name in keys:
        if (point, name) not in pool.tasks:
            refuse_absent_element(pool, pool.plan.nodes[name], point)
        for tasks in pool.plan.nodes[name].lists:
            over, value = tasks.over, new.get(tasks.over.value)
            if over.size is not None:
                id_ = pool.plan.name_of((point, name))
                raise Refused(
                    f"{id_} comes from the definition or its parameters and cannot be set: "
                    "start a run with other parameters"
                )
            size = size_at(pool, tasks, point, frozenset(pool.flows))
            if over.value not in new or size is None:
                continue
            if not isinstance(value, list) or len(value) != size:
                id_, word = pool.plan.name_of((point, name)), pool.plan.word_of((point, name))
                mapped = ", ".join(tasks.templates)
                elements = "1 element" if size == 1 else f"{size} elements"
                raise Refused(
                    f"{id_} has returned {elements} of {over.value} for {mapped}: set a "
                    f"list of this length, or run {id_} in a new flow (trigger {word} --reflow)"
                )


def _rows_of_lists(
    engine: RunEngine, key: Key, flows: Flows, new: Mapping[str, object], submit: int
) -> Iterator[tuple[Key, int, Flows, str]]:
    """Yields rows for lists that are set by hand, of submissions before the newest, since those
    are what elements read."""
    for value, first in lists_in(engine.pool, key, flows).items():
        rows = engine.values.rows_of(key)
        row = next((one for one in reversed(rows) if one.submit == first and one.body), None)
        if value in new and first != submit and row is not None:
            body = values_text(json.dumps(json.loads(row.body) | {value: new[value]}))
            yield key, first, frozenset(json.loads(row.flows)), body


async def _obey_itself(
    engine: RunEngine, command: Command, at: Instant, store: Store
) -> dict[str, object]:
    match command:
        case verbs.Reload(definition=digest):
            return await _reload(engine, digest, at, store)
        case verbs.Broadcast():
            return _broadcast(engine, command)
        case verbs.Message():
            return await _message(engine, command, at)
        case verbs.ExtTrigger(message=message, trigger_id=trigger_id):
            _check_awaited(engine, message)
            heard_by = engine.xtriggers.hear(message, trigger_id)
            kept = "no task waits for this message now: it is kept for the next one that does"
            told = (
                kept if heard_by is None else f"{engine.pool.plan.name_of(heard_by)} takes it"
            )
            return {"message": message, "notices": [told]}
        case verbs.Stop(at_time=text):
            when = _time(text, at)
            engine.timers.set(timer_key(None, STOP_AT_TIME), when)
            return {"stops_at": show_instant(when)}
        case _:
            raise AssertionError(command)


async def _reload(
    engine: RunEngine, digest: str, at: Instant, store: Store
) -> dict[str, object]:
    """Reloads the definition: takes all of the new one, or nothing of it."""
    old = engine.definition
    options, directory = engine.run.options, engine.files.directory
    if digest:
        new = await store.definition(digest)
        check_same_workflow(new, old)
        await _narrow_to_registrant(engine.run.number, new, store)
    else:
        new = reread(old, options, directory)
        await store.save_definition(new)
    if old.kind != new.kind and SIP in (old.kind, new.kind):
        # The request and the values of a run fit only one of the two kinds.
        raise Refused(
            f"not reloaded: this run has a definition of kind {old.kind}, the new one is of "
            f"kind {new.kind}; start another run"
        )
    if new.is_trusted and not old.is_trusted:
        new = await _distrusted(new, store)
    changed = not is_same_content(new.digest, old.digest)
    restored = restore(new, options, directory, is_new=changed)
    engine.check_places(restored.graph)
    refuse_other_lists(engine.pool, restored.graph)
    refuse_renamed_elements(engine.pool, restored.graph)
    told = len(engine.batch.notices)
    try:
        engine.reload(new, restored, at)
    except RunFolderUnusable as error:  # the run goes on as it is, instead of waiting
        raise Refused(f"not reloaded: {error}") from error
    engine.batch.definition = new.digest
    told_of = (TASKS_GONE, DROPPED, MISSED)
    notices = [one.text for one in engine.batch.notices[told:] if one.event in told_of]
    return {"definition": new.digest, "changed": changed, "notices": notices}


async def _narrow_to_registrant(run: int, new: StoredDefinition, store: Store) -> None:
    """Lets the jobs of a run that goes on with a registered definition see no more than who
    registered that may see."""
    found = await store.workflows(new.workflow, PAGE_COUNT_MAX)
    given_by = [one.sees for one in found if is_same_content(one.definition, new.digest)]
    if given_by and None not in given_by:
        names = dict.fromkeys(name for sees in given_by for name in sees or ())
        await store.narrow_run(run, tuple(names))


async def _distrusted(new: StoredDefinition, store: Store) -> StoredDefinition:
    """Saves the definition without its mark of trust, and returns it; one in Python is refused.

    Files that strangers brought stay in the run's folder, where a later reload would find them
    among its own.
    """
    if new.kind == PYTHON:
        raise Refused(
            "not reloaded: this run has a definition that came over the network, and a "
            "definition in Python would execute any code in its folder; start another run"
        )
    kept = sealed(new)
    await store.save_definition(kept)
    return kept


def _broadcast(engine: RunEngine, command: verbs.Broadcast) -> dict[str, object]:
    there = engine.settings.broadcasts
    stages = engine.restored.stages
    containers = frozenset() if stages is None else stages.in_containers
    rows: list[requests.StoredBroadcast] = rows_of(command, there, engine.graph, containers)
    check_inputs(rows, engine.graph)
    if not rows:
        return {"broadcasts": [], **nothing_changed(_why_no_broadcast(there))}
    before = {one[:3]: one.value for one in there}
    engine.broadcast(rows)
    idle = [*unmatched_texts(command, rows), *idle_texts(rows, engine.pool)]
    return {
        "broadcasts": [
            {
                "point": row.point,
                "namespace": row.namespace,
                "setting": row.setting,
                "value": row.value,
                "was": before.get(row[:3]),
            }
            for row in rows
        ],
        **({"notices": idle} if idle else {}),
    }


def _why_no_broadcast(there: Iterable[requests.StoredBroadcast]) -> str:
    known = [
        f"{one.point}/{one.namespace} {one.setting}" for one in there if one.value is not None
    ]
    if not known:
        return "no setting is broadcast"
    more = len(known) - SETTINGS_TOLD_MAX
    told = ", ".join(known[:SETTINGS_TOLD_MAX]) + (f" and {more} more" if more > 0 else "")
    return f"no broadcast setting matches; these are set: {told}"


async def _message(engine: RunEngine, command: verbs.Message, at: Instant) -> dict[str, object]:
    key, submit = job_of(engine.pool, command.id)
    task = engine.pool.tasks.get(key)
    if task is None or not task.is_active or submit not in (None, task.submit):
        raise Refused(f"{command.id} has no active job that could have sent this message")
    declared = [own for own, _ in engine.settings.node(key).outputs]
    if command.output and command.output not in (*declared, *STANDARD):
        raise Refused(unknown_output_text(key[1], command.output, declared))
    if command.values:
        await _set_values(engine, (key,), command.values)
    for text in command.texts or ("",):
        job_message(engine, (key, task.submit), text, command.output or None, at)
    return {"task": engine.pool.plan.id_of(key), "submit": task.submit}


def _check_awaited(engine: RunEngine, message: str) -> None:
    """Raises Refused for a message from outside that no task of the run ever waits for."""
    awaited = sorted(set(engine.graph.special.wait_for_message.values()))
    if message in awaited:
        return
    if not awaited:
        raise Refused(
            f"no task of this run waits for a message from outside, such as {message[:100]!r}"
        )
    hint = meant(message, awaited, f"the messages are {some(map(repr, awaited))}")
    raise Refused(f"tasks of this run do not wait for the message {message[:100]!r}; {hint}")


def _time(text: str, now: Instant) -> Instant:
    """Returns a time given as 2030-01-01T00:00Z, or as how long from now: 2h or PT10M."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return Instant(now + parse_duration(text))
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return Instant(aware.timestamp())
