"""Writes the lines of a run's log, in the shapes that people and jobs grep for (SEMANTICS §13).

Theory of operation. `RunLog` remembers how each pooled task was last shown and looks only at
those that a step touched, so a line costs what it says. A step may take a task through several
states at once; each of them is shown, as if the task had stopped there:

    [1/foo:waiting] => preparing
    [1/foo/01:preparing] => submitted
    [1/foo/01:submitted] => running
    [1/foo/01(flows=2):running] => succeeded        flows are shown unless they are 1

Lines at DEBUG level add nothing for people: they are what jobs of existing workflows wait for.

A run has many tasks, and they go few different ways. What is told of a `Way` is made once, as
lines without the name, and kept; a task's `WayLines` are its name and its way.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import EXPIRED, FAILED, STANDARD, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.operator.command_events import flow_text
from tidewheel.core.operator.verbs import ROWS, Command, Hold, Release
from tidewheel.core.sched import events
from tidewheel.core.sched.dependency_index import IndexedFamily, PreviousInstance
from tidewheel.core.sched.evaluation import is_true, member_value
from tidewheel.core.sched.events import Event, JobEnd, JobEnded, Notice, Submit
from tidewheel.core.sched.lifecycle import DROPPED, MISSED
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.reachability import NO_STOP
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
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

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
    DROPPED: WARNING,
    MISSED: WARNING,
    NO_STOP: WARNING,
    "stalled": CRITICAL,
    "stall timeout": CRITICAL,
}
# What is told by a line of its own, in the shape that is known elsewhere.
_TOLD = ("trigger", "expired")
BY_REQUEST, BY_SUICIDE = "request", "suicide trigger"  # why a task left without an end
_tuple = tuple.__new__  # as tuples, the entries of the log cost a third
# Members of enums that are asked for at each step: to look one up costs more than a tuple.
_SUCCEEDED, _FINISHED = JobEnd.SUCCEEDED, VerdictKind.FINISHED
_STAGE_WAITING, _READY = JobPhase.WAITING, PoolState.READY
WAYS_KNOWN_MAX = 4_096  # each from one state to another


class RunLogLine(NamedTuple):
    """Is one line of a run's log; `str(line)` is what follows the time."""

    level: str
    text: str

    def __str__(self) -> str:
        return f"{self.level} - {self.text}"


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """Holds what is told of all tasks that go one way, each line without the task's name.

    A way is made once and known by its identity, so that a text made of it can be kept, too.
    """

    lines: tuple[tuple[str, str], ...]  # each what stands before and after the name

    def around_names(self, start: str) -> list[str]:
        """Returns what the text of these lines has around the names, `start` before each line.

        `name.join(…)` of that is the text.
        """
        found = [""]
        for before, after in self.lines:
            found[-1] += start + before
            found.append(f"{after}\n")
        return found


class WayLines(NamedTuple):
    """Is all that a run's log says of one way of a task, as `str(lines)` shows."""

    name: str  # POINT/NAME
    way: Way

    def __str__(self) -> str:
        return "\n".join(f"{before}{self.name}{after}" for before, after in self.way.lines)


LogEntry = RunLogLine | WayLines


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

    def lines(self, event: Event, outcome: Outcome, failure: str = "ERR") -> list[LogEntry]:
        """Returns what the log says of a step; `failure` is the signal that ended its job."""
        found: list[LogEntry] = []
        if type(event) is JobEnded:
            self._end_of_job(event, failure, found)
        elif type(event) is events.OutputMade and event.output not in STANDARD:
            name = self._shown(event.task)
            found.append(RunLogLine(DEBUG, f"[{name}] completed output {event.output}"))
        pool, seen = self._pool, self._seen
        tasks = pool.tasks
        for key in outcome.touched.tasks:
            if key in tasks or key in seen:  # else it is told by now
                self._changed(key, event, found)
        for effect in outcome.effects:
            if type(effect) is Submit:
                found.append(_tuple(RunLogLine, (INFO, trigger_line(pool, effect))))
            elif type(effect) is Notice and effect.event not in _TOLD:
                found += self._news(effect)
        if type(event) is events.RunReloaded:
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

    def _end_of_job(self, event: events.JobEnded, failure: str, found: list[LogEntry]) -> None:
        """Adds the lines of a job's end and of its task, before what follows from them."""
        key, submit, how, *_ = event
        before = self._seen.get(key)
        if before is not None and before.word in _JOB_WORDS and before.submit == submit:
            name = self._pool.plan.name_of(key)
            if how is _SUCCEEDED:
                if key not in self._pool.tasks:  # as nearly always
                    del self._seen[key]
                    way = _success_and_out(before, _end_word(self._pool, key, before, event))
                    found.append(_tuple(WayLines, (name, way)))
                    return
                found.append(_tuple(WayLines, (name, _success(before))))
            elif before.word == "running" and how is not JobEnd.NOT_STARTED:
                name = shown(name, before)
                found.append(RunLogLine(DEBUG, f"[{name}] (received){FAILED}/{failure}"))
                found.append(RunLogLine(ERROR, f"[{name}] {FAILED}/{failure}"))
            else:
                found.append(RunLogLine(ERROR, f"[{shown(name, before)}] {SUBMIT_FAILED}"))
        # Else it is too late: a notice says so.
        self._changed(key, event, found)
        if how is JobEnd.KILLED:
            found.append(RunLogLine(WARNING, f"[{self._shown(key)}] job killed"))

    def _changed(self, key: Key, event: Event, found: list[LogEntry]) -> None:
        pool = self._pool
        task = pool.tasks.get(key)
        before = self._seen.get(key)
        if task is None:
            if before is not None:
                del self._seen[key]
                way = _way_out(before, _end_word(pool, key, before, event))
                found.append(_tuple(WayLines, (pool.plan.name_of(key), way)))
            return
        now = glance(task)
        if before == now:
            return
        self._seen[key] = now
        name = pool.plan.name_of(key)
        if before is not None:
            way = _way(before, now)
        elif task.held:
            found.append(WayLines(name, _way_in(now, task.admitted)))
            self._holding(name, task, found)
            way = _way(_waiting(now), now)
        else:
            way = _way_in_and_on(now, task.admitted)
        if way.lines:
            found.append(_tuple(WayLines, (name, way)))

    def _holding(self, name: str, task: PooledTask, found: list[LogEntry]) -> None:
        after, why = self._pool.run.hold_after, "as requested earlier"
        if after is not None and task.point > after:
            why = f"beyond workflow hold point: {self._pool.plan.text(after)}"
        first = shown(name, _first_glance(glance(task), task.admitted))
        found.append(RunLogLine(INFO, f"[{first}] holding ({why})"))

    def _news(self, notice: Notice) -> list[LogEntry]:
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
    if task.stage is _STAGE_WAITING:
        word = "waiting"
        queued = "(queued)" if task.standing is _READY else ""
        marks = queued if task.admitted else f"{queued}(runahead)"
    else:
        word, marks = _STAGES.get(task.stage) or task.ended, ""
    if task.held:
        marks = f"(held){marks}"
    return _tuple(Glance, (word, marks, task.submit, task.flows))


def shown(name: str, at: Glance) -> str:
    """Returns a task, given as POINT/NAME, as the log shows it: `1/foo/01(flows=2):running`."""
    return name + _state(at)


@lru_cache(maxsize=WAYS_KNOWN_MAX)
def _state(at: Glance) -> str:
    job = "" if at.word in _WITHOUT_JOB else f"/{at.submit:02d}"
    flows = "" if at.flows == FIRST_FLOW else f"(flows={flow_text(at.flows)})"
    return f"{job}{flows}:{at.word}{at.marks}"


def _said(level: str, text: str) -> tuple[str, str]:
    """Returns a line of which only the task's name is missing, after the first bracket."""
    return f"{level} - [", text


@lru_cache(maxsize=WAYS_KNOWN_MAX)
def _way_in(now: Glance, is_admitted: bool) -> Way:
    """Returns what is told of a task that came into the pool."""
    first = _first_glance(now, is_admitted)
    spawned = _state(first).removesuffix(f":{first.word}{first.marks}")
    added = _said(DEBUG, f"{_state(first)}] added to the n=0 window")
    return Way(((f"{INFO} - spawned ", spawned), added))


@lru_cache(maxsize=WAYS_KNOWN_MAX)
def _way_in_and_on(now: Glance, is_admitted: bool) -> Way:
    """Returns what is told of a task that came into the pool and went on in the same step."""
    return Way(_way_in(now, is_admitted).lines + _way(_waiting(now), now).lines)


def _waiting(now: Glance) -> Glance:
    return now._replace(word="waiting", marks="")


def _first_glance(now: Glance, is_admitted: bool) -> Glance:
    return now._replace(word="waiting", marks="" if is_admitted else "(runahead)")


@lru_cache(maxsize=WAYS_KNOWN_MAX)
def _success(before: Glance) -> Way:
    return Way((_said(INFO, f"{_state(before)}] (received){SUCCEEDED}"),))


@lru_cache(maxsize=WAYS_KNOWN_MAX)
def _success_and_out(before: Glance, end: str) -> Way:
    """Returns what is told of a task that left the pool when its job succeeded."""
    return Way(_success(before).lines + _way_out(before, end).lines)


@lru_cache(maxsize=WAYS_KNOWN_MAX)
def _way(before: Glance, now: Glance) -> Way:
    """Returns what is told of a task that went from one state to another in the pool."""
    if (before.word, before.marks) == (now.word, now.marks):
        return Way(())
    way = [before, now]
    ended = now.word not in (*_JOB_WORDS, "waiting", SUBMIT_FAILED)
    if ended and before.word in ("preparing", "submitted"):
        way.insert(1, before._replace(word="running"))
    return Way(tuple(_steps(way)))


@lru_cache(maxsize=WAYS_KNOWN_MAX)
def _way_out(before: Glance, end: str) -> Way:
    """Returns what is told of a task that left the pool, by its `_end_word`."""
    if end in (BY_REQUEST, BY_SUICIDE):
        gone = _state(before)
        removed = _said(INFO, f"{gone}] removed from the pool")
        return Way((removed, _said(DEBUG, f"{gone}] removed from the n=0 window: {end}")))
    last = before._replace(word=end, marks="")
    way, ran = [before, last], before._replace(word="running", marks="")
    if end in (SUCCEEDED, FAILED) and before.word in _JOB_WORDS and before != ran:
        way.insert(1, ran)
    gone = f"{_state(last)}] removed from the n=0 window: completed"
    return Way((*_steps(way), _said(DEBUG, gone)))


def _steps(way: Iterable[Glance]) -> list[tuple[str, str]]:
    """Returns one line for each state on a task's way, also those of its job in between."""
    found: list[tuple[str, str]] = []
    for before, now in pairwise(way):
        words = [now.word]
        if now.word in _JOB_WORDS:
            is_same_job = before.word in _JOB_WORDS and before.submit == now.submit
            first = _JOB_WORDS.index(before.word) + 1 if is_same_job else 0
            words = [*_JOB_WORDS[first : _JOB_WORDS.index(now.word)], now.word]
            if before.word == "waiting" and "(queued)" not in before.marks:
                found.append(_said(DEBUG, f"{_state(before)}] => waiting(queued)"))
        at = before
        for word in words:
            marks = now.marks if word == now.word else ""
            text = _state(at)
            if word in _HEARD and word != at.word:  # else it is only held
                found.append(_said(DEBUG, f"{text}] {_HEARD[word]}"))
            found.append(_said(INFO, f"{text}] => {word}{marks}"))
            at = Glance(word, marks, now.submit, now.flows)
    return found


def _end_word(pool: TaskPool, key: Key, before: Glance, event: Event) -> str:
    """Returns how a task that left the pool ended, or why it was removed without an end."""
    memory = pool.recall(*key)
    if memory is not None:
        verdicts, flows = memory.verdicts, before.flows
        for flow in flows if len(flows) == 1 else sorted(flows):
            verdict = verdicts.get(flow)
            if verdict is not None and verdict.kind is _FINISHED:
                return verdict.ended
    if isinstance(event, events.JobEnded) and event.task == key:
        if event.how is JobEnd.SUCCEEDED:
            return SUCCEEDED
        return FAILED if before.word == "running" else SUBMIT_FAILED
    if isinstance(event, events.TimerFired) and event[:2] == (key, EXPIRY):
        return EXPIRED
    asked = isinstance(event, (events.TasksRemoved, events.TasksTriggered))
    return BY_REQUEST if asked else BY_SUICIDE


def trigger_line(pool: TaskPool, submit: events.Submit) -> str:
    """Returns `POINT/NAME -triggered off ['P/N', …] in flow N[,M]`; ask right after a step."""
    plan = pool.plan
    parents = list(map(plan.name_of, triggered_off(pool, pool.tasks[submit.task])))
    where = plan.in_flow(_numbers(submit.flows))
    return f"{plan.name_of(submit.task)} -triggered off {parents}{where}"


@lru_cache(maxsize=16)
def _numbers(flows: Flows) -> str:
    return ",".join(map(str, sorted(flows))) or "none"


def triggered_off(pool: TaskPool, task: PooledTask) -> tuple[Key, ...]:
    """Returns the parents of every atom that is true, sorted, each once.

    If an arrow is not true although the task was submitted, an operator made it true: then all
    of its atoms count.
    """
    arrows = task.plan.arrows
    if not arrows:
        return ()
    point, true = task.point, task.true
    if len(arrows) == 1 and len(leaves := arrows[0][0].leaves) == 1:
        leaf = leaves[0]
        if leaf.shift is not None and leaf.group is None:  # one parent, as most tasks have
            is_here = arrows[0][0].sequence.has(point)
            return ((Point(point + leaf.shift), leaf.node),) if is_here else ()
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
