"""What is done beside the screen: looking, following logs, commands; each ends in a state."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from tidewheel.cli.output import safe
from tidewheel.cli.tui import queries
from tidewheel.cli.tui.keymap import (
    Do,
    Leave,
    ListRuns,
    LookAgain,
    Preview,
    ShowLog,
    ShowTask,
    Watch,
    Wish,
)
from tidewheel.cli.tui.panes import ANSWER, LOG, Pane
from tidewheel.cli.tui.spans import DIM, Line, line
from tidewheel.cli.tui.state import Question, State
from tidewheel.cli.tui.watching import Screen, Watching
from tidewheel.errors import TidewheelError

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient

END_OF_LOG = line("(the end)", DIM)


class Stage(Screen, Protocol):
    """Whoever shows what comes of it."""

    state: State

    def show(self, state: State) -> None: ...
    def repaint(self) -> None: ...
    def leave(self) -> None: ...
    def fail(self, error: BaseException | None) -> None: ...


class Errands:
    """Of one person at one screen; the newest look and the newest log count."""

    def __init__(self, client: AsyncClient, stage: Stage) -> None:
        self._client, self._runs, self._stage = client, client.runs, stage
        self._beside: set[asyncio.Task[None]] = set()
        self._watching: Watching | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._log_task: asyncio.Task[None] | None = None

    def end(self) -> None:
        for task in self._beside:
            task.cancel()

    def go(self, wish: Wish) -> None:
        """Begin it; returns at once."""
        match wish:
            case Leave():
                self._stage.leave()
            case LookAgain():
                self._stage.repaint()
                self._look_again()
            case ShowTask():
                self._begin(self._show_task(wish))
            case ShowLog():
                self._stop_log()
                self._log_task = self._begun(self._show_log(wish))
            case ListRuns():
                self._begin(self._list_runs())
            case Watch(run=run):
                self._watch(run)
            case Preview(question=question):
                self._begin(self._ask(question))
            case Do(question=question, mode=mode):
                self._begin(self._do(question, mode))
            case _:
                assert_never(wish)

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        self._beside.add(self._begun(work))

    def _begun(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._caught(work))
        self._beside.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._stage.fail(task.exception())

    async def _caught(self, work: Coroutine[object, object, None]) -> None:
        """What is refused or does not answer is said, and nothing else happens."""
        try:
            await work
        except (TidewheelError, OSError) as error:
            self._put(said=queries.trouble_text(error))

    def _watch(self, run: str) -> None:
        if self._watch_task is not None:
            self._watch_task.cancel()
        self._stage.show(State(run=run, size=self._stage.state.size))
        self._watching = Watching(self._client, self._runs, run, self._stage)
        self._watch_task = self._begun(self._watching.run())

    def _look_again(self) -> None:
        if self._watching is not None:
            self._watching.wake()

    def _stop_log(self) -> None:
        if self._log_task is not None:
            self._log_task.cancel()
            self._log_task = None

    async def _list_runs(self) -> None:
        choice = await queries.choice_of_runs(self._runs, self._stage.state.run)
        self._put(choice=choice)

    async def _show_task(self, wish: ShowTask) -> None:
        pane = await queries.task_pane(self._runs, self._stage.state.run, wish.id)
        seen = self._stage.state.pane
        if not wish.again and self._stage.state.question is None:
            self._put(pane=pane)
        elif seen is not None and seen.is_about(pane):
            self._put(pane=replace(pane, top=seen.top))

    async def _show_log(self, wish: ShowLog) -> None:
        run = self._stage.state.run
        subject = (
            f"{wish.file} of {safe(wish.id)}" if wish.id is not None else f"log of {safe(run)}"
        )
        pane = Pane(kind=LOG, subject=subject, follows=True)
        self._put(pane=pane)
        async for lines in queries.log_lines(self._runs, run, wish):
            if not self._goes_on(pane, lines):
                return
        self._goes_on(pane, [END_OF_LOG])

    def _goes_on(self, log: Pane, lines: list[Line]) -> bool:
        """Unless somebody looks at something else by now."""
        seen = self._stage.state.pane
        if seen is None or not seen.is_about(log):
            return False
        self._put(pane=seen.longer(lines))
        return True

    async def _ask(self, question: Question) -> None:
        self._stop_log()
        pane = await queries.question_pane(self._runs, self._stage.state.run, question)
        self._put(pane=pane, question=question)

    async def _do(self, question: Question, mode: str) -> None:
        first, *more = await queries.give(self._runs, self._stage.state.run, question, mode)
        tree = replace(self._stage.state.tree, marked=frozenset())
        self._put(tree=tree, said=first)
        if more:
            lines = tuple(map(line, (first, *more)))
            self._put(pane=Pane(kind=ANSWER, subject=question.verb, lines=lines))
        self._look_again()

    def _put(self, **fields: Any) -> None:  # noqa: ANN401 - those of the state
        self._stage.show(replace(self._stage.state, is_busy=False, **fields))
