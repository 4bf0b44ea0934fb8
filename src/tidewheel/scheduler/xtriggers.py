"""Finds out whether the xtriggers that tasks wait for are satisfied (SEMANTICS §11).

Theory of operation
-------------------
Tasks wait for labels; labels stand for calls. `call_for` puts the words of a task into an
xtrigger; tasks whose calls read the same wait together for one watch (`Watches`), which calls,
rests for an interval, and calls again. A call that was satisfied is remembered, so that a later
task is satisfied at once, after a restart, too: what must outlive this process comes out of
`take_rows` and goes back in through `restore`.

Clocks are never polled: `due_at` says when, for the scheduler's own timers. A push trigger is
a message that somebody sends; it satisfies one task and is kept until that task comes.

A sequential xtrigger is called for one point of a task after the other, as in Cylc, where the
next instance of a task without parents comes to be only then.

Nothing here changes a run: what was found lies in `take_satisfied` and `wake` has been called.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from tidewheel.core.graph.definition import XtriggerDef
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.requests import StoredBroadcast, XtriggerResult
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.spawn import MESSAGE
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused, TidewheelError
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.clock import Clock
from tidewheel.runners.python.functions import FunctionAnswer, FunctionFailure
from tidewheel.services import workflow_state
from tidewheel.services.clock_triggers import WALL_CLOCK, ClockTriggers
from tidewheel.services.service import OnReport, ServiceReport, tell_nobody

TRIGGER_ID = "CYLC_EXT_TRIGGER_ID"
IN_LINE = ""  # in the place of a signature: its turn has not come yet


class Satisfied(NamedTuple):
    """Names the tasks that need not wait for a label any more, with the results of its call."""

    label: str
    keys: tuple[Key, ...]
    signature: str
    results: Mapping[str, str]


class _Wait(NamedTuple):
    key: Key
    label: str


class Xtriggers:
    """Watches the xtriggers that tasks of a run wait for; it is used in the run's loop only."""

    def __init__(self, graph: Graph, around: XtriggerSurroundings) -> None:
        self._around = around
        self._graph = graph
        self._clocks = ClockTriggers(graph.xtriggers, graph.cycling)
        self._watches = Watches(around, self._found)
        self._pushed = PushTriggers(around.settings.heard_max)
        self._waits: dict[_Wait, str] = {}  # signature, or IN_LINE
        self._waiting: dict[str, dict[_Wait, None]] = {}  # by signature
        self._lines: dict[tuple[str, str], set[_Wait]] = {}  # by label and node
        self._results = XtriggerResults(around.settings.remembered_max)
        self._satisfied: list[Satisfied] = []
        self.is_used = False  # whether a task has waited or anything was heard, ever

    # ---- who waits ----

    def due_at(self, key: Key, label: str) -> Instant | None:
        """Returns when a clock that a task waits for is due; None if the label is no clock."""
        return self._clocks.due_at(label, key[0])

    def watch(self, key: Key, label: str, now: Instant) -> None:
        """Begins to watch what a task waits for; a second call for the same changes nothing."""
        self.is_used = True
        wait = _Wait(key, label)
        if wait in self._waits:
            return
        if label.startswith(MESSAGE):
            self._listen(wait)
        elif (due_at := self.due_at(key, label)) is not None:
            signature = f"{WALL_CLOCK}(trigger_time={due_at:.0f})"
            if due_at <= now:
                self._let_go([wait], signature, {})
            elif self._join(wait, signature):
                self._watches.sleep(signature, due_at - now)
        elif self._is_sequential(wait):
            self._waits[wait] = IN_LINE
            self._lines.setdefault((label, key[1]), set()).add(wait)
            self._advance(label, key[1])
        else:
            self._begin(wait)

    def drop(self, key: Key, label: str) -> None:
        """Ends the wait of a task."""
        wait = _Wait(key, label)
        if label.startswith(MESSAGE):
            self._pushed.drop(label.removeprefix(MESSAGE), key)
        signature = self._waits.pop(wait, IN_LINE)
        waiting = self._waiting.get(signature)
        if waiting is not None:
            waiting.pop(wait, None)
            if not waiting:
                del self._waiting[signature]
                self._watches.end(signature)
        self._leave_line(wait)

    def hear(self, message: str, trigger_id: str = "") -> Key | None:
        """Takes a push trigger: it satisfies one task that waits for this message, which is
        returned, or the next that will."""
        self.is_used = True
        label = MESSAGE + message
        key = self._pushed.hear(message, trigger_id)
        if key is None:
            self._results.note(self._pushed.row(message))
        else:
            self._let_go([_Wait(key, label)], label, _named(trigger_id))
        return key

    def awaited_messages(self) -> list[str]:
        """Returns the push triggers that tasks wait for now."""
        return self._pushed.awaited()

    # ---- what was found ----

    def take_satisfied(self) -> list[Satisfied]:
        """Returns what was satisfied since the last call; raises the bug that broke a watch."""
        if self._watches.bug is not None:
            raise self._watches.bug
        found, self._satisfied = self._satisfied, []
        self._results.close_pass()
        return found

    def take_rows(self) -> list[XtriggerResult]:
        """Returns the rows for the batch that tells the core what `take_satisfied` gave."""
        return self._results.take_rows()

    def results_for(self, key: Key) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """Returns the results for a task, by label; its job sees each as LABEL_NAME."""
        point, name = key
        node = self._graph.nodes.get(name)
        if node is None or not node.xtriggers:
            return ()
        text = self._graph.cycling.style.text(point)
        words = self._around.context.words(text, name)
        found = []
        for label in dict.fromkeys(
            label for one, label in node.xtriggers if one.contains(point)
        ):
            xtrigger = self._graph.xtriggers.get(label)
            if xtrigger is not None and xtrigger.function != WALL_CLOCK:
                results = self._results.find(call_for(xtrigger, words).signature)
                found += [(label, results)] if results else []
        return tuple(found)

    def broadcasts(self, one: Satisfied) -> list[StoredBroadcast]:
        """Returns the broadcasts by which tasks of the point find the id of a pushed message.

        That is as in Cylc. The results of functions go to jobs as they are, see `results_for`:
        a shell that expands broadcasts must not meet what somebody outside has written.
        """
        if not one.label.startswith(MESSAGE):
            return []
        text = self._graph.cycling.style.text
        return [
            StoredBroadcast(text(point), "root", f"[environment]{variable}", _literal(value))
            for point, _ in one.keys
            for variable, value in one.results.items()
        ]

    def restore(self, rows: Iterable[XtriggerResult]) -> None:
        """Restores results and messages that were stored, before anything is watched."""
        for row in rows:
            self.is_used = True
            if row.signature.startswith(MESSAGE):
                self._pushed.restore(row)
            else:
                self._results.restore(row)

    def redefine(self, graph: Graph, now: Instant) -> None:
        """Takes a new definition: tasks wait for what it says from now on."""
        waits = list(self._waits)
        for wait in waits:
            self.drop(*wait)
        self._graph = graph
        self._clocks = ClockTriggers(graph.xtriggers, graph.cycling)
        for key, label in waits:
            if label.startswith(MESSAGE) or self._clocks.find(label) is not None:
                self.watch(key, label, now)

    async def close(self) -> None:
        """Ends all calls, and the process in which they are made."""
        await self._watches.close()
        await self._around.functions.close()

    # ---- what is called ----

    def _listen(self, wait: _Wait) -> None:
        message = wait.label.removeprefix(MESSAGE)
        trigger_id = self._pushed.watch(message, wait.key)
        if trigger_id is None:
            self._waits[wait] = wait.label
        else:
            self._results.note(self._pushed.row(message))
            self._let_go([wait], wait.label, _named(trigger_id))

    def _begin(self, wait: _Wait) -> None:
        (point, name), label = wait
        xtrigger = self._graph.xtriggers.get(label)
        if xtrigger is None:  # of a definition that was reloaded: `redefine` will know it
            self._waits[wait] = IN_LINE
            return
        words = self._around.context.words(self._graph.cycling.style.text(point), name)
        call = call_for(xtrigger, words)
        known = self._results.find(call.signature)
        if known is not None:
            self._let_go([wait], call.signature, known)
        elif self._join(wait, call.signature):
            self._watches.call(label, call, xtrigger.interval_seconds)

    def _join(self, wait: _Wait, signature: str) -> bool:
        """Lets a task wait together with others; returns True for the first."""
        self._waits[wait] = signature
        waiting = self._waiting.setdefault(signature, {})
        waiting[wait] = None
        return len(waiting) == 1

    def _is_sequential(self, wait: _Wait) -> bool:
        """Says whether an xtrigger is called for one point after the other. That is so only for
        tasks without parents."""
        xtrigger = self._graph.xtriggers.get(wait.label)
        point, name = wait.key
        if xtrigger is None or not xtrigger.sequential or name not in self._graph.nodes:
            return False
        return next(self._graph.prerequisites(name, point), None) is None

    def _advance(self, label: str, name: str) -> None:
        """Calls for the earliest instance of a task that waits for a sequential xtrigger."""
        first = min(self._lines.get((label, name), ()), default=None)
        if first is not None and self._waits[first] == IN_LINE:
            self._begin(first)

    def _leave_line(self, wait: _Wait) -> None:
        (_, name), label = wait
        line = self._lines.get((label, name))
        if line is None or wait not in line:
            return
        line.remove(wait)
        if not line:
            del self._lines[label, name]
        self._advance(label, name)

    # ---- finding ----

    def _found(self, signature: str, results: Mapping[str, str]) -> None:
        """Remembers the results of a watch that was satisfied, and lets its tasks go."""
        if not signature.startswith(f"{WALL_CLOCK}("):
            self._results.remember(signature, results)
        self._let_go(self._waiting.pop(signature), signature, results)

    def _let_go(
        self, waits: Iterable[_Wait], signature: str, results: Mapping[str, str]
    ) -> None:
        keys: dict[str, list[Key]] = {}
        gone = list(waits)
        for wait in gone:
            self._waits.pop(wait, None)
            keys.setdefault(wait.label, []).append(wait.key)
        self._satisfied += [
            Satisfied(label, tuple(found), signature, results) for label, found in keys.items()
        ]
        self._around.wake()
        for wait in gone:
            self._leave_line(wait)


def _named(trigger_id: str) -> dict[str, str]:
    return {TRIGGER_ID: trigger_id} if trigger_id else {}


def _literal(value: str) -> str:
    """Returns a text with escapes for double quotes in a shell."""
    return "".join(f"\\{letter}" if letter in '"$`\\' else letter for letter in value)


class PushTriggers:
    """Keeps which tasks wait for which message, and messages that no task has used yet."""

    def __init__(self, heard_max: int) -> None:
        self._heard_max = heard_max
        self._heard: dict[str, dict[str, int]] = {}  # message -> id -> how often
        self._waiting: dict[str, set[Key]] = {}  # message -> tasks

    def watch(self, message: str, key: Key) -> str | None:
        """Returns the id of a kept message for this task; None if the task has to wait."""
        ids = self._heard.get(message)
        if not ids:
            self._waiting.setdefault(message, set()).add(key)
            return None
        trigger_id = next(iter(ids))
        ids[trigger_id] -= 1
        if not ids[trigger_id]:
            del ids[trigger_id]
        if not ids:
            del self._heard[message]
        return trigger_id

    def drop(self, message: str, key: Key) -> None:
        waiting = self._waiting.get(message, set())
        waiting.discard(key)
        if not waiting:
            self._waiting.pop(message, None)

    def awaited(self) -> list[str]:
        """Returns the messages that tasks wait for."""
        return list(self._waiting)

    def hear(self, message: str, trigger_id: str) -> Key | None:
        """Lets the earliest waiting task go and returns it; None if the message is kept."""
        waiting = self._waiting.get(message)
        if waiting:
            key = min(waiting)
            self.drop(message, key)
            return key
        ids = self._heard.get(message, {})
        if sum(ids.values()) >= self._heard_max or len(self._heard) >= self._heard_max:
            raise Refused(
                f"{self._heard_max} messages such as {message[:60]!r} are kept already and no "
                "task waits for them; is the message spelt as in the definition?"
            )
        self._heard.setdefault(message, ids)[trigger_id] = ids.get(trigger_id, 0) + 1
        return None

    def row(self, message: str) -> XtriggerResult:
        """Returns the row of a message's kept ids, which must outlive this process."""
        ids = self._heard.get(message)
        return XtriggerResult(MESSAGE + message, json.dumps(ids) if ids else "")

    def restore(self, row: XtriggerResult) -> None:
        self._heard[row.signature.removeprefix(MESSAGE)] = json.loads(row.result)


class XtriggerResults:
    """Keeps the results of satisfied calls, oldest first, and the rows that the store lacks."""

    def __init__(self, remembered_max: int) -> None:
        self._remembered_max = remembered_max
        self._known: dict[str, Mapping[str, str]] = {}  # by signature
        self._noted: dict[str, XtriggerResult] = {}
        self._due: dict[str, XtriggerResult] = {}  # with the batch of this pass

    def find(self, signature: str) -> Mapping[str, str] | None:
        """Returns the results of a call; None if it was not satisfied yet."""
        return self._known.get(signature)

    def remember(self, signature: str, results: Mapping[str, str]) -> None:
        """Remembers the results of a call; of too many the oldest is dropped."""
        self._known[signature] = results
        self.note(XtriggerResult(signature, json.dumps(dict(results))))
        while len(self._known) > self._remembered_max:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self.note(XtriggerResult(oldest, ""))

    def note(self, row: XtriggerResult) -> None:
        """Notes a row that the store has to know."""
        self._noted[row.signature] = row

    def restore(self, row: XtriggerResult) -> None:
        """Restores the results of a call from their row."""
        self._known[row.signature] = json.loads(row.result)

    def close_pass(self) -> None:
        """Makes the rows that were noted so far part of this pass, for `take_rows`."""
        self._due |= self._noted
        self._noted = {}

    def take_rows(self) -> list[XtriggerResult]:
        """Returns the rows of this pass."""
        rows, self._due = self._due, {}
        return list(rows.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Holds the facts about the run that arguments of xtriggers may refer to."""

    run: str
    user: str
    directory: str
    debug: bool = False

    def words(self, point: str, name: str) -> dict[str, object]:
        """Returns the facts for a task, by Cylc's names for them, old ones included."""
        share = f"{self.directory}/share"
        return {
            "point": point,
            "name": name,
            "id": f"{point}/{name}",
            "debug": self.debug,
            "user_name": self.user,
            **dict.fromkeys(("workflow", "workflow_name", "suite_name"), self.run),
            **dict.fromkeys(("workflow_run_dir", "suite_run_dir"), self.directory),
            **dict.fromkeys(("workflow_share_dir", "suite_share_dir"), share),
        }


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Is a function with its arguments; tasks that wait for the same call wait together."""

    function: str
    arguments: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()

    @property
    def signature(self) -> str:
        named = (f"{name}={value}" for name, value in sorted(self.keywords))
        return f"{self.function}({', '.join([*map(str, self.arguments), *named])})"


def call_for(xtrigger: XtriggerDef, words: Mapping[str, object]) -> FunctionCall:
    """Returns the call that an xtrigger makes for one task, with the facts of that task."""
    return FunctionCall(
        xtrigger.function,
        tuple(_filled(value, words) for value in xtrigger.arguments),
        tuple((name, _filled(value, words)) for name, value in xtrigger.keywords),
    )


def _filled(value: object, words: Mapping[str, object]) -> object:
    if not isinstance(value, str):
        return value
    try:
        return value % words
    except (KeyError, TypeError, ValueError):  # a percent sign that is meant as one
        return value


class FunctionCalls(Protocol):
    """Calls functions, as `runners.python.functions.Functions` does."""

    def is_own(self, function: str) -> bool: ...
    async def call(
        self, function: str, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> FunctionAnswer | FunctionFailure: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class XtriggerSettings:
    """Bounds how many calls are made, how often, and how many results are remembered."""

    call_limit: int = 16  # calls under way at once
    interval_seconds_min: float = 0.2
    remembered_max: int = 10_000  # satisfied calls; the oldest are forgotten
    heard_max: int = 1_000  # messages that nobody waits for yet

    def __post_init__(self) -> None:
        assert min(self.call_limit, self.remembered_max, self.heard_max) >= 1
        assert self.interval_seconds_min > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class XtriggerSurroundings:
    """Holds what xtriggers of a run are given; `wake` is called when something was found."""

    context: RunContext
    functions: FunctionCalls
    ask: Callable[[workflow_state.StateQuestion], Awaitable[workflow_state.StateAnswer]]
    clock: Clock
    wake: Callable[[], None]
    on_report: OnReport = tell_nobody
    settings: XtriggerSettings = field(default_factory=XtriggerSettings)


class Watches:
    """Watches each call that a task waits for, and tells `found` what was satisfied."""

    def __init__(
        self, around: XtriggerSurroundings, found: Callable[[str, Mapping[str, str]], None]
    ) -> None:
        self._around = around
        self._found = found
        self._room = asyncio.Semaphore(around.settings.call_limit)
        self._watches: dict[str, asyncio.Task[None]] = {}  # by signature
        self._ended: set[asyncio.Task[None]] = set()  # until they have noticed it
        self.bug: BaseException | None = None

    def call(self, label: str, call: FunctionCall, interval_seconds: float) -> None:
        """Begins to call a function, at once and after each interval, until it is satisfied."""
        self._begin(call.signature, self._call(label, call, interval_seconds))

    def sleep(self, signature: str, seconds: float) -> None:
        """Begins to wait for a clock, which is satisfied after that time."""
        self._begin(signature, self._sleep(signature, seconds))

    def end(self, signature: str) -> None:
        """Ends a watch that no task waits for any more."""
        task = self._watches.pop(signature, None)
        if task is not None:
            self._ended.add(task)
            task.cancel()

    async def close(self) -> None:
        for signature in list(self._watches):
            self.end(signature)
        await asyncio.gather(*self._ended, return_exceptions=True)

    def _begin(self, signature: str, work: Awaitable[None]) -> None:
        assert signature not in self._watches
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        task.add_done_callback(self._is_over)
        self._watches[signature] = task

    async def _sleep(self, signature: str, seconds: float) -> None:
        await self._around.clock.sleep(seconds)
        self._satisfied(signature, {})

    async def _call(self, label: str, call: FunctionCall, interval_seconds: float) -> None:
        clock, rest_min = self._around.clock, self._around.settings.interval_seconds_min
        trouble = ""
        while True:
            async with self._room:
                begun_at = clock.monotonic()
                answer = await self._answer(call)
            if isinstance(answer, FunctionAnswer) and answer.satisfied:
                self._satisfied(call.signature, answer.results)
                return
            seen = answer.reason if isinstance(answer, FunctionFailure) else ""
            if seen != trouble:  # people are told when it changes, not at each call
                self._tell(label, call, seen, answer.said)
            trouble = seen
            spent = clock.monotonic() - begun_at
            await clock.sleep(max(interval_seconds - spent, rest_min))

    async def _answer(self, call: FunctionCall) -> FunctionAnswer | FunctionFailure:
        functions = self._around.functions
        if call.function not in workflow_state.STATE_FUNCTIONS or functions.is_own(
            call.function
        ):
            return await functions.call(call.function, call.arguments, dict(call.keywords))
        try:
            question = workflow_state.question_of_call(call.arguments, dict(call.keywords))
            answer = await self._around.ask(question)
        except TidewheelError as error:
            return FunctionFailure(str(error))
        if answer.reason and not answer.satisfied:
            return FunctionFailure(answer.reason)
        return FunctionAnswer(answer.satisfied, answer.results)

    def _satisfied(self, signature: str, results: Mapping[str, str]) -> None:
        self._ended.add(self._watches.pop(signature))
        self._found(signature, results)

    def _tell(self, label: str, call: FunctionCall, error: str, said: str) -> None:
        facts = {"run": self._around.context.run, "label": label, "call": call.signature}
        facts |= {"error": error, "said": said.strip()}
        self._around.on_report(
            ServiceReport(
                service="scheduler",
                event="xtrigger.failed" if error else "xtrigger.works",
                facts={name: value for name, value in facts.items() if value},
            )
        )

    def _is_over(self, task: asyncio.Task[None]) -> None:
        self._ended.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.bug = task.exception()
            self._around.wake()
