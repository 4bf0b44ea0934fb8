"""Writes the lines of a run's log, in the shapes that people and jobs grep for (SEMANTICS §13).

Theory of operation. `RunLog` remembers how each pooled task was last shown and looks only at
those that a step touched, so a line costs what it says. A step may take a task through several
states at once; each of them is shown, as if the task had stopped there:

    [1/foo:waiting] => preparing
    [1/foo/01:preparing] => submitted
    [1/foo/01:submitted] => running
    [1/foo/01(flows=2):running] => succeeded        flows are shown unless they are 1

Lines at DEBUG level add nothing for people: they are what jobs of existing workflows wait for.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import EXPIRED, FAILED, STANDARD, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.operator.command_events import flow_text
from tidewheel.core.operator.verbs import ROWS, Command, Hold, Release
from tidewheel.core.sched import events
from tidewheel.core.sched.dependency_index import IndexedFamily, PreviousInstance
from tidewheel.core.sched.evaluation import is_true, member_value
from tidewheel.core.sched.events import Event, JobEnd, Notice, Submit
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.spawn import EXPIRY
from tidewheel.core.sched.step import Outcome
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    VerdictKind,
)

DEBUG, INFO, WARNING = "DEBUG", "INFO", "WARNING"
ERROR, CRITICAL = "ERROR", "CRITICAL"

_STAGES = {
    JobPhase.PREPARING: "preparing",
    JobPhase.SUBMITTED: "submitted",
    JobPhase.RUNNING: "running",
}
_JOB_WORDS = tuple(_STAGES.values())
_HEARD = {"submitted": "(internal)submitted", "running": "(received)started"}
_WITHOUT_JOB = ("waiting", EXPIRED)  # these words are shown without a submit number
_LEVELS = {
    "incomplete": WARNING,
    "late": WARNING,
    "retry": WARNING,
    "blocked": WARNING,
    "lost": WARNING,
    "stalled": CRITICAL,
    "stall timeout": CRITICAL,
}
# What is told by a line of its own, in the shape that is known elsewhere.
_TOLD = ("trigger", "expired")


class RunLogLine(NamedTuple):
    """Is one line of a run's log; `str(line)` is what follows the time."""

    level: str
    text: str

    def __str__(self) -> str:
        return f"{self.level} - {self.text}"


class Glance(NamedTuple):
    """Holds the state of a task as a log line shows it."""

    word: str
    marks: str  # (held), (queued), (runahead)
    submit: int
    flows: Flows


class RunLog:
    """Makes the lines of steps, and holds how each pooled task was last shown.

    It has to be given every step, in order.
    """

    __slots__ = ("_pool", "_seen")

    def __init__(self, pool: TaskPool) -> None:
        self._pool = pool
        self._seen = {key: glance(task) for key, task in pool.tasks.items()}

    def lines(self, event: Event, outcome: Outcome, failure: str = "ERR") -> list[RunLogLine]:
        """Returns the log lines of a step; `failure` is the signal that ended a failed job."""
        found: list[RunLogLine] = []
        if isinstance(event, events.JobEnded):
            self._end_of_job(event, failure, found)
        elif isinstance(event, events.OutputMade) and event.output not in STANDARD:
            name = self._shown(event.task)
            found.append(RunLogLine(DEBUG, f"[{name}] completed output {event.output}"))
        for key in outcome.touched.tasks:
            self._changed(key, event, found)
        pool = self._pool
        for effect in outcome.effects:
            if isinstance(effect, Submit):
                found.append(RunLogLine(INFO, trigger_line(pool, effect)))
            elif isinstance(effect, Notice) and effect.event not in _TOLD:
                found += self._news(effect)
        if isinstance(event, events.RunReloaded):
            found += [
                RunLogLine(INFO, f"[{self._shown(key)}] reloaded task definition")
                for key in self._seen
            ]
            found.append(RunLogLine(INFO, "Reload completed."))
        return found

    def said(self, key: Key, text: str, level: str = INFO, how: str = "received") -> RunLogLine:
        """Returns the line for a message of a job."""
        return RunLogLine(level, f"[{self._shown(key)}] ({how}){text}")

    def _shown(self, key: Key) -> str:
        seen, name = self._seen.get(key), self._pool.plan.name_of(key)
        return name if seen is None else shown(name, seen)

    def _end_of_job(
        self, event: events.JobEnded, failure: str, found: list[RunLogLine]
    ) -> None:
        """Adds the lines of a job's end and of its task, before what follows from them."""
        before = self._seen.get(event.task)
        if before is not None and before.word in _JOB_WORDS and before.submit == event.submit:
            name = shown(self._pool.plan.name_of(event.task), before)
            if event.how is JobEnd.SUCCEEDED:
                found.append(RunLogLine(INFO, f"[{name}] (received){SUCCEEDED}"))
            elif before.word == "running" and event.how is not JobEnd.NOT_STARTED:
                found.append(RunLogLine(DEBUG, f"[{name}] (received){FAILED}/{failure}"))
                found.append(RunLogLine(ERROR, f"[{name}] {FAILED}/{failure}"))
            else:
                found.append(RunLogLine(ERROR, f"[{name}] {SUBMIT_FAILED}"))
        # Else it is too late: a notice says so.
        self._changed(event.task, event, found)
        if event.how is JobEnd.KILLED:
            found.append(RunLogLine(WARNING, f"[{self._shown(event.task)}] job killed"))

    def _changed(self, key: Key, event: Event, found: list[RunLogLine]) -> None:
        pool = self._pool
        task = pool.tasks.get(key)
        before = self._seen.get(key)
        if task is None:
            if before is not None:
                del self._seen[key]
                found += self._left(key, before, event)
            return
        now = glance(task)
        if before == now:
            return
        self._seen[key] = now
        name = pool.plan.name_of(key)
        if before is None:
            before = Glance("waiting", "", now.submit, now.flows)
            found += self._spawned(name, task, now)
        way = [before, now]
        ended = now.word not in (*_JOB_WORDS, "waiting", SUBMIT_FAILED)
        if ended and before.word in ("preparing", "submitted"):
            way.insert(1, before._replace(word="running"))
        if (before.word, before.marks) != (now.word, now.marks):
            found += _steps(name, way)

    def _spawned(self, name: str, task: PooledTask, now: Glance) -> list[RunLogLine]:
        runahead = "" if task.admitted else "(runahead)"
        first = shown(name, Glance("waiting", runahead, now.submit, now.flows))
        found = [
            RunLogLine(INFO, f"spawned {first.removesuffix(f':waiting{runahead}')}"),
            RunLogLine(DEBUG, f"[{first}] added to the n=0 window"),
        ]
        if "(held)" in now.marks:
            after, why = self._pool.run.hold_after, "as requested earlier"
            if after is not None and task.point > after:
                why = f"beyond workflow hold point: {self._pool.plan.text(after)}"
            found.append(RunLogLine(INFO, f"[{first}] holding ({why})"))
        return found

    def _left(self, key: Key, before: Glance, event: Event) -> list[RunLogLine]:
        """Returns the lines of a task that is no longer in the pool."""
        name = self._pool.plan.name_of(key)
        word = _end_word(self._pool, key, before, event)
        if word:
            last, why = before._replace(word=word, marks=""), "completed"
            way, ran = [before, last], before._replace(word="running", marks="")
            if word in (SUCCEEDED, FAILED) and before.word in _JOB_WORDS and before != ran:
                way.insert(1, ran)
            found = _steps(name, way)
        else:
            asked = isinstance(event, (events.TasksRemoved, events.TasksTriggered))
            last, why = before, "request" if asked else "suicide trigger"
            found = [RunLogLine(INFO, f"[{shown(name, before)}] removed from the pool")]
        gone = f"[{shown(name, last)}] removed from the n=0 window: {why}"
        return [*found, RunLogLine(DEBUG, gone)]

    def _news(self, notice: Notice) -> list[RunLogLine]:
        level = _LEVELS.get(notice.event, INFO)
        if notice.event == "stalled":
            return [RunLogLine(level, "Workflow stalled"), RunLogLine(WARNING, notice.text)]
        if notice.event == "merged" and notice.task is not None:
            name = self._pool.plan.name_of(notice.task)
            text = f"[{self._shown(notice.task)}] {notice.text.removeprefix(name).strip()}"
            return [RunLogLine(level, text)]
        return [RunLogLine(level, notice.text)]


def command_line(verb: str, refused: str = "") -> RunLogLine:
    """Returns the line for a command: that it was obeyed, or why it was refused."""
    if refused:
        return RunLogLine(WARNING, f'Command "{verb}" refused: {refused}')
    return RunLogLine(INFO, f'Command "{verb}" actioned.')


def command_name(command: Command) -> str:
    """Returns what a command is called in the log: as existing jobs look for it."""
    if isinstance(command, Hold) and command.after:
        return "set_hold_point"
    if isinstance(command, Release) and command.everything:
        return "release_hold_point"
    return ROWS[command.verb].log_name or command.verb


def glance(task: PooledTask) -> Glance:
    if task.stage is JobPhase.WAITING:
        word = "waiting"
        queued = "(queued)" if task.standing is PoolState.READY else ""
        marks = queued if task.admitted else f"{queued}(runahead)"
    else:
        word, marks = _STAGES.get(task.stage) or task.ended, ""
    if task.held:
        marks = f"(held){marks}"
    return Glance(word, marks, task.submit, task.flows)


def shown(name: str, at: Glance) -> str:
    """Returns a task, given as POINT/NAME, as the log shows it: `1/foo/01(flows=2):running`."""
    job = "" if at.word in _WITHOUT_JOB else f"/{at.submit:02d}"
    flows = "" if at.flows == FIRST_FLOW else f"(flows={flow_text(at.flows)})"
    return f"{name}{job}{flows}:{at.word}{at.marks}"


def _steps(name: str, way: Iterable[Glance]) -> list[RunLogLine]:
    """Returns one line for each state on a task's way, also those of its job in between."""
    found: list[RunLogLine] = []
    for before, now in pairwise(way):
        words = [now.word]
        if now.word in _JOB_WORDS:
            is_same_job = before.word in _JOB_WORDS and before.submit == now.submit
            first = _JOB_WORDS.index(before.word) + 1 if is_same_job else 0
            words = [*_JOB_WORDS[first : _JOB_WORDS.index(now.word)], now.word]
            if before.word == "waiting" and "(queued)" not in before.marks:
                line = RunLogLine(DEBUG, f"[{shown(name, before)}] => waiting(queued)")
                found.append(line)
        at = before
        for word in words:
            marks = now.marks if word == now.word else ""
            text = shown(name, at)
            if word in _HEARD and word != at.word:  # else it is only held
                found.append(RunLogLine(DEBUG, f"[{text}] {_HEARD[word]}"))
            found.append(RunLogLine(INFO, f"[{text}] => {word}{marks}"))
            at = Glance(word, marks, now.submit, now.flows)
    return found


def _end_word(pool: TaskPool, key: Key, before: Glance, event: Event) -> str:
    """Returns how a task that left the pool ended; "" if it was removed without an end."""
    memory = pool.recall(*key)
    for flow in sorted(before.flows):
        verdict = None if memory is None else memory.verdicts.get(flow)
        if verdict is not None and verdict.kind is VerdictKind.FINISHED:
            return verdict.ended
    if isinstance(event, events.JobEnded) and event.task == key:
        if event.how is JobEnd.SUCCEEDED:
            return SUCCEEDED
        return FAILED if before.word == "running" else SUBMIT_FAILED
    if isinstance(event, events.TimerFired) and event[:2] == (key, EXPIRY):
        return EXPIRED
    return ""


def trigger_line(pool: TaskPool, submit: events.Submit) -> str:
    """Returns `POINT/NAME -triggered off ['P/N', …] in flow N[,M]`; ask right after a step."""
    name_of = pool.plan.name_of
    parents = [name_of(key) for key in triggered_off(pool, pool.tasks[submit.task])]
    flows = ",".join(map(str, sorted(submit.flows))) or "none"
    return f"{name_of(submit.task)} -triggered off {parents} in flow {flows}"


def triggered_off(pool: TaskPool, task: PooledTask) -> tuple[Key, ...]:
    """Returns the parents of every atom that is true, sorted, each once.

    If an arrow is not true although the task was submitted, an operator made it true: then all
    of its atoms count.
    """
    arrows = task.plan.arrows
    if not arrows:
        return ()
    point, true = task.point, task.true
    initial = pool.plan.initial
    all_true = true and true == task.plan.suffices
    found: set[Key] = set()
    for arrow, base in arrows:
        if not arrow.sequence.has(point):
            continue
        mask = true >> base if all_true or is_true(arrow, base, true) else arrow.full
        for leaf in arrow.leaves:
            if not mask >> leaf.number & 1:
                continue
            parent = leaf.parent_point(point, initial)
            if parent < initial and isinstance(leaf.offset, PreviousInstance):
                continue  # the first instance has none before it
            if leaf.group is None:
                found.add((parent, leaf.node))
            else:
                by_hand = not true >> (base + leaf.number) & 1
                found |= _members(pool, leaf.group, parent, task.flows, by_hand)
    return tuple(sorted(found))


def _members(
    pool: TaskPool,
    group: IndexedFamily,
    point: Point,
    flows: Flows,
    by_hand: bool,
) -> set[Key]:
    """Returns the members that made a family's atom true: all, or of `-any` those that did."""
    every = {(point, member) for member in group.members}
    if group.every or by_hand or point < pool.run.start:
        return every
    made = {
        key for key in every if member_value(pool.recall(*key), group, flows) is AtomValue.TRUE
    }
    return made or every
