"""Groups failures that are alike, so that one cause is one line.

Such as "63 tasks failed in the same way (member_*): exit 3, CFL violated at step …".
Alike means: the same family (without a message: the same name but for its numbers), the same
end and exit status, and the same last line but for numbers, points and paths. What jobs wrote
may be anything: it is cut, and control characters are spelled out, before it is compared.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from tidewheel.api.runs import ErrorGroup, RunAction
from tidewheel.core.graph.outputs import EXPIRED, FAILED, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.operator.selection import select
from tidewheel.core.operator.views import FAILED_AGAIN
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.completion import lacking_text
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.reachability import handlers_of
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store
from tidewheel.runners.sanitize import LAST_LINES, printable
from tidewheel.views.run_facts import PROGRAM, command_lines
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.task_lookup import COMMANDS_MAX, children, obeyed_commands, outputs_set

WORDS_LENGTH_MAX = 200  # of what a job wrote; what follows is neither compared nor told
HANDLERS_TOLD_MAX = 3
WAITING_COUNTED_MAX = 10_000  # arrows behind the tasks of one group
ROOT = "root"
BAD_ENDS = (FAILED, SUBMIT_FAILED, EXPIRED)
_ENDS = {
    FAILED: "failed",
    SUBMIT_FAILED: "failed to submit",
    EXPIRED: "expired",
    FAILED_AGAIN: "succeeded earlier, but when run again failed",
}
_HEADS = {"exit status ": "exit ", "ended by ": "killed by "}
# What a shell means by an exit status of its own.
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_SHELL_STATUS = re.compile(rf"exit status ({_NOT_FOUND}|{_NOT_EXECUTABLE})\b")
_NUMBERS = re.compile(r"\d+")


class Failure(NamedTuple):
    """Holds what is known of a task that ended badly, or without an output that it needs."""

    key: Key
    id: str
    shown: str  # how people call it
    name: str
    family: str  # the innermost; "" if it is in none
    state: str
    exit_status: int | None
    error: str  # as its last job left it


class _Likeness(NamedTuple):
    """Holds what failures of one group have in common."""

    label: str  # a family, a name, or a glob that fits the names
    state: str
    end: str  # such as `exit 3`
    words: str  # without numbers and paths


def end_and_words(failure: Failure) -> tuple[str, str]:
    """Returns how a job ended, such as `exit 3`, and what it wrote last; "" if not known."""
    error = failure.error
    head, said = error, ""
    for tail in LAST_LINES:
        head, found, said = error.partition(tail)
        if found:
            break
    for known, told in _HEADS.items():
        if head.startswith(known):
            return told + _told(head.removeprefix(known)), _told(said)
    status = failure.exit_status
    # A signal is no exit status, and the error says why it was sent.
    return "" if status is None or (status < 0 and error) else f"exit {status}", _told(error)


def exit_advice(error: str, *, is_stage: bool) -> str:
    """Returns what to look at if a shell did not find or could not execute a command, after a
    semicolon; "" if the job failed otherwise."""
    found = _SHELL_STATUS.match(error)
    if found is None:
        return ""
    if found[1] == str(_NOT_EXECUTABLE):
        return "; is the file executable (chmod +x), and is its #! line right?"
    place = "in its image" if is_stage else "in bin/ of the workflow"
    return f"; is the command on the PATH of the job, or {place}?"


def _told(text: str) -> str:
    """Returns a text of a job as one short line that controls no terminal."""
    line = " ".join(printable(" ".join(text[: 2 * WORDS_LENGTH_MAX].split())).split())
    return line if len(line) <= WORDS_LENGTH_MAX else f"{line[:WORDS_LENGTH_MAX]}…"


def without_numbers(words: str) -> str:
    """Returns words in which paths and numbers, which differ from task to task, are `…`."""
    return " ".join(
        "…" if "/" in word else _NUMBERS.sub("…", word) for word in words.split(" ")
    )


def grouped(failures: Iterable[Failure]) -> list[list[Failure]]:
    """Returns failures that are alike together: the largest group first, each in order."""
    groups: dict[_Likeness, list[Failure]] = {}
    for one in sorted(failures, key=lambda each: each.key):
        groups.setdefault(_likeness(one), []).append(one)
    return sorted(groups.values(), key=lambda those: (-len(those), those[0].key))


def _likeness(failure: Failure) -> _Likeness:
    end, words = end_and_words(failure)
    # Jobs that said nothing are alike only if they are of one kind.
    is_told = bool(words) and failure.family
    label = failure.family if is_told else _NUMBERS.sub("*", failure.name)
    return _Likeness(label, failure.state, end, without_numbers(words))


def label_of(those: Sequence[Failure]) -> str:
    """Returns what the names of a group have in common: a name, a glob, or a family."""
    names = {one.name for one in those}
    if len(names) == 1:
        return those[0].name
    globs = {_NUMBERS.sub("*", name) for name in names}
    return globs.pop() if len(globs) == 1 else those[0].family


def group_text(those: Sequence[Failure], waiting: int, task: str = "task") -> str:
    """Returns a group in one sentence: what failed, how, why, and how many wait for it."""
    first, count = those[0], len(those)
    end, words = end_and_words(first)
    if any(end_and_words(one)[1] != words for one in those):
        words = without_numbers(words)
    if first.state == SUCCEEDED:  # the words are those of the graph
        alike = f"{count} {task}s are incomplete in the same way ({label_of(those)}): "
        return f"{first.shown} {words}" if count == 1 else alike + words
    verb = _ENDS.get(first.state, first.state)
    words = words or ("no message" if end else "")
    if count == 1:
        how = f" ({end})" if end else ""
        text = f"{first.shown} {verb}{how}{f': {words}' if words else ''}"
    else:
        how = ", ".join(part for part in (end, words) if part)
        text = f"{count} {task}s {verb} in the same way ({label_of(those)})"
        text += f": {how}" if how else ""
    if not waiting:
        return text
    who = f"{waiting} {task}s wait" if waiting > 1 else f"1 {task} waits"
    return f"{text}; {who} for {'it' if count == 1 else 'them'}"


def told_group(pool: TaskPool, those: Sequence[Failure]) -> str:
    """Returns a group in one sentence, with how many tasks of the pool wait for it, or what the
    graph ran because of it."""
    word = "stage" if pool.plan.is_of_stages else "task"
    first, handlers = those[0], list[str]()
    if len(those) == 1 and first.key not in pool.tasks and first.state != FAILED_AGAIN:
        handlers = handlers_of(pool, first.key, first.state)[:HANDLERS_TOLD_MAX]
    handled = f"; handled by {', '.join(handlers)}" if handlers else ""
    advice = exit_advice(first.error, is_stage=pool.plan.is_of_stages)
    return group_text(those, waiting_for(pool, those), word) + handled + advice


class FailedJob(NamedTuple):
    """Holds how the last job of a task ended."""

    exit_status: int | None
    error: str


NO_JOB = FailedJob(None, "")


def failure_of(pool: TaskPool, key: Key, state: str, job: FailedJob = NO_JOB) -> Failure:
    """Returns what is known of a task that ended in this state."""
    plan, task = pool.plan, pool.tasks.get(key)
    lineage = plan.nodes[key[1]].definition.lineage
    family = next((one for one in lineage if one not in (key[1], ROOT)), "")
    if state == SUCCEEDED and task is not None:
        job = FailedJob(None, lacking_text(pool, task))
    id_, shown = plan.id_of(key), plan.name_of(key)
    return Failure(key, id_, shown, key[1], family, state, job.exit_status, job.error)


def waiting_for(pool: TaskPool, those: Sequence[Failure]) -> int:
    """Counts the tasks that wait for those of a group; none waits for a task that is done."""
    keys = {one.key for one in those if one.key in pool.tasks}
    below = (child for key in sorted(keys) for child in children(pool, key))
    found = {child for child in islice(below, WAITING_COUNTED_MAX) if child not in keys}
    return sum(1 for child in found if _is_to_come(pool, child))


def _is_to_come(pool: TaskPool, key: Key) -> bool:
    (point, _), final = key, pool.plan.final
    if final is not None and point > final:
        return False
    task, memory = pool.tasks.get(key), pool.recall(*key)
    if task is not None:
        return bool(task.missing)
    return memory is None or not (memory.verdicts or memory.submits)


def group_document(run: str, pool: TaskPool, those: Sequence[Failure]) -> ErrorGroup:
    """Returns a group for programs; `ids` has all of them, so that one command is for all."""
    first = those[0]
    end, words = end_and_words(first)
    return {
        "text": told_group(pool, those),
        "count": len(those),
        "name": label_of(those),
        "state": first.state,
        "end": end,
        "error": words,
        "waiting": waiting_for(pool, those),
        "log": first.id,
        "ids": [one.id for one in those],
        "commands": group_commands(run, pool, those),
        "actions": [_action(pool, those)],
    }


def _action(pool: TaskPool, those: Sequence[Failure]) -> RunAction:
    action: RunAction = {"verb": "trigger", "ids": [one.id for one in those]}
    if flow := flow_to_repair(pool, those):
        action["flow"] = str(flow)
    return action


def flow_to_repair(pool: TaskPool, those: Sequence[Failure]) -> int | None:
    """Returns the flow in which tasks that have left the pool have to run again: alone they
    would run, and still count as failed. None: they are in the pool, or in several flows."""
    found: set[int] = set()
    for one in those:
        memory = pool.recall(*one.key)
        if one.key in pool.tasks or memory is None or len(memory.verdicts) != 1:
            return None
        found |= set(memory.verdicts)
    return found.pop() if len(found) == 1 else None


def group_commands(run: str, pool: TaskPool, those: Sequence[Failure]) -> list[str]:
    """Returns the lines that help a group: for all of them, and the log of the first."""
    first = those[0]
    if len(those) == 1 and first.key in pool.tasks:
        found = command_lines(run, why(pool, first.key)[0].command)
    else:
        ids = [shlex.quote(one) for one in _meaning(pool, those)]
        flow = flow_to_repair(pool, those)
        option = [f"--flow {flow}"] if flow and not pool.plan.is_of_stages else []
        found = [" ".join([PROGRAM, "trigger", shlex.quote(run), *ids, *option])]
    if first.state in (FAILED, FAILED_AGAIN):
        word = shlex.quote(pool.plan.word_of(first.key))
        found.append(f"{PROGRAM} log {shlex.quote(run)} {word} --err")
    return found


def _meaning(pool: TaskPool, those: Sequence[Failure]) -> list[str]:
    """Returns the ids of a group: one glob, if it means these tasks and no others."""
    if len(those) > 1 and not pool.plan.is_of_stages:
        points = {one.key[0] for one in those}
        point = pool.plan.text(those[0].key[0]) if len(points) == 1 else "*"
        glob = f"{point}/{label_of(those)}:{those[0].state}"
        with suppress(Refused):  # they have left the pool
            if set(select(pool, [glob])) == {one.key for one in those}:
                return [glob]
    return [pool.plan.word_of(one.key) for one in those]


class FailureGroup(NamedTuple):
    """Holds the tasks of a group of failures, and how it is told."""

    keys: frozenset[Key]
    document: ErrorGroup


async def failure_groups(
    store: Store, snapshot: RunSnapshot, keys: Sequence[Key], again: Collection[Key] = ()
) -> list[FailureGroup]:
    """Returns tasks that ended badly, those that are alike together; how their last jobs ended
    is read at once for all of them. Those of `again` count only if their last job failed, and
    nobody has set their success since."""
    if not keys:
        return []
    pool, shown = snapshot.pool, {key: snapshot.shown(key) for key in keys}
    ids = {f"{snapshot.view.name}/{one.id}/{one.submit}": key for key, one in shown.items()}
    rows = await store.submissions(snapshot.view.number, ids=list(ids))
    jobs = {ids[row.task_id]: FailedJob(row.exit_status, row.error or "") for row in rows}
    failed_at = {ids[row.task_id]: row.ended_at for row in rows if row.status == FAILED}
    again_at = {key: failed_at[key] for key in again if key in failed_at}
    left = again_at.keys() - await _set_since(store, snapshot, again_at)
    failures = [
        failure_of(pool, key, FAILED_AGAIN if key in left else one.state, jobs.get(key, NO_JOB))
        for key, one in shown.items()
        if key in left or key not in again
    ]
    name = snapshot.view.name
    return [
        FailureGroup(
            frozenset(one.key for one in those),
            group_document(name, pool, those),
        )
        for those in grouped(failures)
    ]


async def _set_since(
    store: Store, snapshot: RunSnapshot, failed_at: Mapping[Key, Instant | None]
) -> set[Key]:
    """Returns the tasks whose success somebody has set after their last job failed."""
    nodes = snapshot.pool.plan.nodes
    commands = await store.commands(snapshot.view.number, COMMANDS_MAX) if failed_at else ()
    return {
        key
        for key, at in failed_at.items()
        for view, command in obeyed_commands(snapshot, snapshot.shown(key), commands)
        if at and view.at >= at and SUCCEEDED in outputs_set(nodes[key[1]], command)
    }
