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

from typing import NamedTuple

from tidewheel.core.graph.outputs import EXPIRED, FAILED, STANDARD, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.operator.command_events import flow_text
from tidewheel.core.operator.verbs import ROWS, Command, Hold, Release
from tidewheel.core.sched import events
from tidewheel.core.sched.events import Event, JobEnd, Notice, Submit
from tidewheel.core.sched.explain import trigger_line
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.spawn import EXPIRY
from tidewheel.core.sched.step import Outcome
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
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
    """Holds a task as a line shows it."""

    word: str
    marks: str  # (held), (queued), (runahead)
    submit: int
    flows: Flows


class RunLog:
    """Holds what the log last said of each pooled task. Ask after every step, in order."""

    __slots__ = ("_pool", "_seen")

    def __init__(self, pool: TaskPool) -> None:
        self._pool = pool
        self._seen = {key: glance(task) for key, task in pool.tasks.items()}

    def lines(self, event: Event, outcome: Outcome, failure: str = "ERR") -> list[RunLogLine]:
        """Returns what a step is worth saying; `failure` is the signal that ended a job."""
        found: list[RunLogLine] = []
        if isinstance(event, events.JobEnded):
            self._end_of_job(event, failure, found)
            self._changed(event.task, event, found)  # before what follows from it
            if event.how is JobEnd.KILLED:
                found.append(RunLogLine(WARNING, f"[{self._shown(event.task)}] job killed"))
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
                RunLogLine(INFO, f"[{shown(pool, key, now)}] reloaded task definition")
                for key, now in self._seen.items()
            ]
            found.append(RunLogLine(INFO, "Reload completed."))
        return found

    def said(self, key: Key, text: str, level: str = INFO, how: str = "received") -> RunLogLine:
        """Returns the line for a message of a job."""
        return RunLogLine(level, f"[{self._shown(key)}] ({how}){text}")

    def _shown(self, key: Key) -> str:
        seen = self._seen.get(key)
        return _id(self._pool, key) if seen is None else shown(self._pool, key, seen)

    def _end_of_job(
        self, event: events.JobEnded, failure: str, found: list[RunLogLine]
    ) -> None:
        before = self._seen.get(event.task)
        if before is None or before.word not in _JOB_WORDS or before.submit != event.submit:
            return  # too late: a notice says so
        name = shown(self._pool, event.task, before)
        if event.how is JobEnd.SUCCEEDED:
            found.append(RunLogLine(INFO, f"[{name}] (received){SUCCEEDED}"))
        elif before.word == "running" and event.how is not JobEnd.NOT_STARTED:
            found.append(RunLogLine(DEBUG, f"[{name}] (received){FAILED}/{failure}"))
            found.append(RunLogLine(ERROR, f"[{name}] {FAILED}/{failure}"))
        else:
            found.append(RunLogLine(ERROR, f"[{name}] {SUBMIT_FAILED}"))

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
        if before is None:
            found.append(RunLogLine(INFO, f"spawned {_id(pool, key)}{_flows(now.flows)}"))
            before = Glance("waiting", "", now.submit, now.flows)
            runahead = "" if task.admitted else "(runahead)"
            name = shown(pool, key, before._replace(marks=runahead))
            found.append(RunLogLine(DEBUG, f"[{name}] added to the n=0 window"))
            if "(held)" in now.marks:
                after, why = pool.run.hold_after, "as requested earlier"
                if after is not None and task.point > after:
                    why = f"beyond workflow hold point: {pool.plan.text(after)}"
                found.append(RunLogLine(INFO, f"[{name}] holding ({why})"))
        found += _steps(pool, key, before, now)

    def _left(self, key: Key, before: Glance, event: Event) -> list[RunLogLine]:
        pool = self._pool
        word = _end_word(pool, key, before, event)
        if not word:
            asked = isinstance(event, (events.TasksRemoved, events.TasksTriggered))
            return [
                RunLogLine(INFO, f"[{shown(pool, key, before)}] removed from the pool"),
                _gone(pool, key, before, "request" if asked else "suicide trigger"),
            ]
        gone = _gone(pool, key, before._replace(word=word, marks=""), "completed")
        if word in (SUCCEEDED, FAILED) and before.word in _JOB_WORDS:
            ran = before._replace(word="running", marks="")
            return [*_steps(pool, key, before, ran), *_end(pool, key, ran, word), gone]
        return [*_end(pool, key, before, word), gone]

    def _news(self, notice: Notice) -> list[RunLogLine]:
        level = _LEVELS.get(notice.event, INFO)
        if notice.event == "stalled":
            return [RunLogLine(level, "Workflow stalled"), RunLogLine(WARNING, notice.text)]
        if notice.event == "merged" and notice.task is not None:
            name = _id(self._pool, notice.task)
            text = f"[{self._shown(notice.task)}] {notice.text.removeprefix(name).strip()}"
            return [RunLogLine(level, text)]
        return [RunLogLine(level, notice.text)]


def _gone(pool: TaskPool, key: Key, at: Glance, why: str) -> RunLogLine:
    return RunLogLine(DEBUG, f"[{shown(pool, key, at)}] removed from the n=0 window: {why}")


def command_line(verb: str, refused: str = "") -> RunLogLine:
    """Returns what became of an operator's command."""
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


def shown(pool: TaskPool, key: Key, at: Glance) -> str:
    """Returns a task as the log shows it: `1/foo/01(flows=2):running`."""
    job = "" if at.word in _WITHOUT_JOB else f"/{at.submit:02d}"
    return f"{_id(pool, key)}{job}{_flows(at.flows)}:{at.word}{at.marks}"


def _steps(pool: TaskPool, key: Key, before: Glance, now: Glance) -> list[RunLogLine]:
    """Returns one line for each state between two glances."""
    if before.word in _JOB_WORDS and now.word not in _JOB_WORDS and now.word != "waiting":
        ran = before if now.word == SUBMIT_FAILED else before._replace(word="running")
        return [*_steps(pool, key, before, ran), *_end(pool, key, ran, now.word, now.marks)]
    found: list[RunLogLine] = []
    if now.word in _JOB_WORDS:
        first = 0
        if before.word in _JOB_WORDS and before.submit == now.submit:
            first = _JOB_WORDS.index(before.word) + 1
        if before.word == "waiting" and "(queued)" not in before.marks:
            found.append(RunLogLine(DEBUG, f"[{shown(pool, key, before)}] => waiting(queued)"))
        for word in _JOB_WORDS[first : _JOB_WORDS.index(now.word)]:
            between = Glance(word, "", now.submit, now.flows)
            found += _end(pool, key, before, word)
            before = between
    if (before.word, before.marks) != (now.word, now.marks):
        found += _end(pool, key, before, now.word, now.marks)
    return found


def _end(
    pool: TaskPool, key: Key, before: Glance, word: str, marks: str = ""
) -> list[RunLogLine]:
    name = shown(pool, key, before)
    found = [RunLogLine(INFO, f"[{name}] => {word}{marks}")]
    heard = _HEARD.get(word) if word != before.word else None  # else it is only held
    return found if heard is None else [RunLogLine(DEBUG, f"[{name}] {heard}"), *found]


def _end_word(pool: TaskPool, key: Key, before: Glance, event: Event) -> str:
    """Returns how a task that left the pool ended; "" if it did not."""
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


def _flows(flows: Flows) -> str:
    return "" if flows == FIRST_FLOW else f"(flows={flow_text(flows)})"


def _id(pool: TaskPool, key: Key) -> str:
    return f"{pool.plan.text(key[0])}/{key[1]}"
