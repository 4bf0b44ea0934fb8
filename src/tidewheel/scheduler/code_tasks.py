"""Has code of a definition's author run as tasks of the queue: event handlers, functions.

Theory of operation. Whoever writes a definition may not have the scheduler's keys, so what the
definition brings must not run as the scheduler's user. A handler or the call of an xtrigger's
function becomes a task of the run, in a queue below the run's own (`run:NAME/code`): a worker
takes it as it takes jobs, with the run's files and the run's identity. Only where the scheduler
was told to trust definitions, and this one came from a folder of its owner, its code runs in
the scheduler's process (`CodeTasks.runs_here`).

The id of a handler's task is made of its event's place in the outbox: the same event that is
delivered again, by whichever scheduler, makes no second task. The event's row is deleted once
the tasks are stored; from then on the queue sees to them, also after the end of the run.

A function is called by one short task for each call. Its answer is the task's values; it is
read and the task deleted in one transaction, so polling leaves nothing in the store. Calls that
a dead scheduler left are deleted by the next one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from tidewheel.core.graph.definition import NodeDef
from tidewheel.core.operator.definition import (
    FUNCTION,
    HANDLER,
    code_queue,
    read_job_name,
)
from tidewheel.core.operator.requests import CodeEnd, Undelivered
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.access import CODE
from tidewheel.core.queue.requests import KeysetPage, TaskFilter, Wake
from tidewheel.core.queue.retry import DELAYS_COUNT_MAX, FixedDelays
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import Refused, Unavailable
from tidewheel.ports.clock import Clock
from tidewheel.ports.store import Store
from tidewheel.runners.python.function_server import BUILT_IN
from tidewheel.runners.python.functions import (
    LIMITS_DEFAULT,
    FunctionAnswer,
    FunctionFailure,
    Functions,
    read_answer,
)
from tidewheel.scheduler.handler_templates import FilledCommand
from tidewheel.scheduler.placement import ANY_WORKER
from tidewheel.scheduler.submissions import DefinitionInForce, JobFacts, JobWriter, run_facts
from tidewheel.services.service import Wakeup

HANDLER_SECONDS_MAX = 600.0
STORE_RETRY_SECONDS = 1.0
# The rest of a call's time is for its worker: to take the task, and to fetch the run's files.
CALL_SECONDS_MAX = 120.0
LOOK_SECONDS = 5.0  # a wake-up may be lost
ANSWER_BYTES_MAX = 60_000  # what a task's values may have, less what stands around it
CALLS_PER_EPOCH = 10**9
LEFT_MAX = 1_000  # calls that are deleted at once; a scheduler leaves fewer
FUNCTION_PROGRAM = "tidewheel-function"
# What a handler is not: a task of the graph, with a point and a place to work in.
_HEAD = """TIDEWHEEL_TASK_NAMESPACE_HIERARCHY=root
. "$TIDEWHEEL_JOB_LIBRARY"
unset "${!CYLC_TASK_@}" ISODATETIMEREF
cd -- "$TIDEWHEEL_RUN_DIR" || exit 1
"""


class CodeTasks:
    """Makes and submits the tasks in which code of one run's definition runs."""

    def __init__(
        self, store: Store, run: RunView, definition: DefinitionInForce, *, is_trusting: bool
    ) -> None:
        self._store, self._run, self._is_trusting = store, run, is_trusting
        self.queue = code_queue(run.name, run.queue)
        self.reload(definition)

    def reload(self, new: DefinitionInForce) -> None:
        """Replaces the definition by one that was reloaded."""
        self._writer = JobWriter(run_facts(self._run, new))
        self.runs_here = self._is_trusting and new.stored.is_trusted

    async def submit(self, task: NewTask) -> None:
        """Stores a task, unless it is there already; waits for the store if it must.

        Raises Refused if the run was deleted.
        """
        await self._store.submit_code(self._run.number, [task])

    async def ends_of(self, ids: Sequence[TaskId]) -> list[CodeEnd]:
        """Returns the ends of those tasks that have ended, which are deleted by that."""
        return await self._store.take_code(self._run.number, ids)

    async def forget(self, ids: Sequence[TaskId]) -> None:
        """Deletes tasks, whatever they are doing."""
        await self._store.take_code(self._run.number, ids, unended=True)

    async def forget_calls_before(self, number: int) -> None:
        """Deletes the calls that earlier schedulers left: they have smaller numbers."""
        asked = TaskFilter(queue=self.queue, tag=FUNCTION)
        found = await self._store.list_tasks(asked, KeysetPage(count=LEFT_MAX))
        named = [(one.id, read_job_name(one.id)) for one in found]
        own = [(task_id, job) for task_id, job in named if job.run == self._run.name]
        if left := [task_id for task_id, job in own if job.submit < number]:
            await self.forget(left)

    def handler(
        self, place: Undelivered, number: int, command: FilledCommand, delays: Sequence[float]
    ) -> NewTask:
        """Returns the task of a handler; `number` is its place among those of its event.

        As in Cylc, the first of the delays is one before the first try.
        """
        told = command.environment.items()
        lines = [_HEAD, *(f"export {name}={quote(value)}\n" for name, value in told)]
        text = "".join([*lines, f"exec bash -c {quote(command.command)}"])
        task = self._task(f"{HANDLER}-{place.batch}-{place.place}-{number}", 1, text)
        return replace(
            task,
            tag=HANDLER,
            timeout_seconds=HANDLER_SECONDS_MAX,
            delay_seconds=delays[0],
            max_retries=len(delays) - 1,
            retry=FixedDelays(seconds=tuple(delays[1 : DELAYS_COUNT_MAX + 1]) or (0.0,)),
        )

    def call(self, number: int, function: str, request: Mapping[str, object]) -> NewTask:
        """Returns the task of one call of a function, which no other call of it is."""
        name = re.sub(r"[^\w.-]", "_", function)[:100]
        text = f'{_HEAD}exec "$TIDEWHEEL_BIN/{FUNCTION_PROGRAM}"'
        return replace(
            self._task(f"{FUNCTION}-{name}", number, text),
            tag=FUNCTION,
            spec=json.dumps(request),
            timeout_seconds=CALL_SECONDS_MAX,
        )

    def _task(self, name: str, number: int, text: str) -> NewTask:
        facts = JobFacts(point=CODE, submit=number, try_number=1, flows=frozenset())
        task = self._writer.task(NodeDef(name=name), facts, text, ANY_WORKER)
        # Handlers and functions are short, and others wait for them.
        return replace(task, queue=self.queue, priority=task.priority + 1)


class AuthorFunctions:
    """Calls the functions of one run: those of tidewheel here, those of others by tasks."""

    def __init__(
        self,
        code: CodeTasks,
        directory: Path,
        environment: Mapping[str, str],
        queued: QueuedCalls,
    ) -> None:
        self._code = code
        self._queued = queued
        self._here = Functions(directory, environment)
        # Nothing that a definition brought can stand in the place of a function of ours.
        self._ours = Functions(directory, environment, library=Path(os.devnull))

    def is_own(self, function: str) -> bool:
        """Says whether the workflow brings a function of this name."""
        return self._here.is_own(function)

    async def call(
        self, function: str, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> FunctionAnswer | FunctionFailure:
        """Calls a function and returns its answer, or why there is none."""
        if self._code.runs_here:
            return await self._here.call(function, arguments, keywords)
        if function in BUILT_IN and not self.is_own(function):
            return await self._ours.call(function, arguments, keywords)
        return await self._queued.call(function, arguments, keywords)

    async def close(self) -> None:
        """Ends all calls; a later call starts anew what it needs."""
        for one in (self._here, self._ours, self._queued):
            await one.close()


class QueuedCalls:
    """Calls functions by tasks, and waits for their ends; used in the run's loop only."""

    def __init__(
        self, code: CodeTasks, run: int, epoch: int, store: Store, clock: Clock
    ) -> None:
        self._code = code
        self._run = run
        self._first = epoch * CALLS_PER_EPOCH
        self._numbers = itertools.count(self._first)
        self._knows_left = False  # whether what earlier schedulers left was looked for
        self._listen: Callable[[Callable[[Wake], None]], Callable[[], None]] = store.listen
        self._woken = Wakeup(clock)
        self._waiting: dict[TaskId, asyncio.Future[CodeEnd]] = {}
        self._unwanted: list[TaskId] = []
        self._looking: asyncio.Task[None] | None = None

    async def call(
        self, function: str, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> FunctionAnswer | FunctionFailure:
        request = {
            "function": function,
            "arguments": list(arguments),
            "keywords": dict(keywords),
            "seconds": LIMITS_DEFAULT.wall_seconds,
            "memory_bytes": LIMITS_DEFAULT.memory_bytes,
            "answer_bytes": ANSWER_BYTES_MAX,
        }
        task = self._code.call(next(self._numbers), function, request)
        end = self._waiting[task.id] = asyncio.get_running_loop().create_future()
        try:
            await self._code.submit(task)
            self._look()
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return _answer_in(await end)
        except TimeoutError:
            return FunctionFailure(
                f"no worker has run it within {CALL_SECONDS_MAX:g} seconds; start a worker "
                f"with --queue {self._code.queue}, or 'run:*'"
            )
        except (Refused, Unavailable) as error:
            return FunctionFailure(str(error))
        finally:
            del self._waiting[task.id]
            if not end.done() or end.cancelled():
                self._unwanted.append(task.id)

    async def close(self) -> None:
        """Ends all calls, and deletes their tasks."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        unwanted, self._unwanted = [*self._unwanted, *self._waiting], []
        if unwanted:
            with suppress(Refused, Unavailable):
                await self._code.forget(unwanted)

    def _look(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(
                self._look_for_ends(), name="calls of functions"
            )

    async def _look_for_ends(self) -> None:
        """Looks whenever the run was told of something, as long as somebody waits."""
        deafen = self._listen(self._hear)
        try:
            while self._waiting or self._unwanted:
                with suppress(Unavailable):
                    await self._take_ends()
                if self._waiting:
                    await self._woken.wait(LOOK_SECONDS)
        finally:
            deafen()

    def _hear(self, wake: Wake) -> None:
        if wake.everything or self._run in wake.runs:
            self._woken.ring()

    async def _take_ends(self) -> None:
        if not self._knows_left:
            await self._code.forget_calls_before(self._first)
            self._knows_left = True
        if self._unwanted:
            await self._code.forget(self._unwanted[:])
            self._unwanted.clear()
        for one in await self._code.ends_of(list(self._waiting)):
            waiting = self._waiting.get(one.task_id)
            if waiting is not None and not waiting.done():
                waiting.set_result(one)


def _answer_in(end: CodeEnd) -> FunctionAnswer | FunctionFailure:
    """Returns the answer that a task handed on, which is not trusted, or why there is none."""
    if end.values is None:
        return FunctionFailure(
            end.error or f"the task that should have called it has the status {end.status}"
        )
    return read_answer(json.loads(end.values), LIMITS_DEFAULT)


async def until_stored(submit: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Submits something, again and again while the store does not answer."""
    while True:
        with suppress(Unavailable):
            await submit()
            return
        await clock.sleep(STORE_RETRY_SECONDS)
