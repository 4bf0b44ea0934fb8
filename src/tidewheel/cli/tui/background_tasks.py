"""Runs what takes time beside the screen: views, logs, commands; each ends in a new state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from tidewheel.cli.output import safe
from tidewheel.cli.tui import queries
from tidewheel.cli.tui.keymap import (
    AskFirst,
    Do,
    Leave,
    ListRuns,
    LookAgain,
    ShowLog,
    ShowTask,
    WatchRun,
    Wish,
)
from tidewheel.cli.tui.panes import ANSWER, LOG, Pane
from tidewheel.cli.tui.queries import trouble_text
from tidewheel.cli.tui.spans import DIM, Line, line
from tidewheel.cli.tui.state import Question, State
from tidewheel.errors import NotFound, Refused, TidewheelError

if TYPE_CHECKING:
    from tidewheel.cli.tui.app import App
    from tidewheel.client import AsyncClient
    from tidewheel.client.runs import Runs

END_OF_LOG = line("(the end)", DIM)


class BackgroundTasks:
    """Runs what one screen asks for; the newest look and the newest log count."""

    def __init__(self, client: AsyncClient, screen: App) -> None:
        self._client, self._runs, self._screen = client, client.runs, screen
        self._beside: set[asyncio.Task[None]] = set()
        self._updates: LiveUpdates | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._log_task: asyncio.Task[None] | None = None

    def end(self) -> None:
        for task in self._beside:
            task.cancel()

    def go(self, wish: Wish) -> None:
        """Begins what was asked for, and returns at once."""
        match wish:
            case Leave():
                self._screen.leave()
            case LookAgain():
                self._screen.repaint()
                self._look_again()
            case ShowTask():
                self._beside.add(self._begun(self._show_task(wish)))
            case ShowLog():
                self._stop_log()
                self._log_task = self._begun(self._show_log(wish))
            case ListRuns():
                self._beside.add(self._begun(self._list_runs()))
            case WatchRun(run=run):
                self._watch(run)
            case AskFirst(question=question):
                self._beside.add(self._begun(self._ask(question)))
            case Do(question=question, mode=mode):
                self._beside.add(self._begun(self._do(question, mode)))
            case _:
                assert_never(wish)

    def _begun(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._caught(work))
        self._beside.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._screen.fail(task.exception())

    async def _caught(self, work: Coroutine[object, object, None]) -> None:
        """Awaits the work; a refusal, or a server that does not answer, is shown."""
        try:
            await work
        except (TidewheelError, OSError) as error:
            self._put(said=trouble_text(error))

    def _watch(self, run: str) -> None:
        if self._watch_task is not None:
            self._watch_task.cancel()
        self._screen.show(State(run=run, size=self._screen.state.size))
        self._updates = LiveUpdates(self._client, self._runs, run, self._screen)
        self._watch_task = self._begun(self._updates.run())

    def _look_again(self) -> None:
        if self._updates is not None:
            self._updates.news.set()

    def _stop_log(self) -> None:
        if self._log_task is not None:
            self._log_task.cancel()
            self._log_task = None

    async def _list_runs(self) -> None:
        self._put(choice=await queries.choice_of_runs(self._runs, self._screen.state.run))

    async def _show_task(self, wish: ShowTask) -> None:
        pane = await queries.task_pane(self._runs, self._screen.state.run, wish.id)
        seen = self._screen.state.pane
        if not wish.again and self._screen.state.question is None:
            self._put(pane=pane)
        elif seen is not None and seen.is_about(pane):
            self._put(pane=replace(pane, top=seen.top))

    async def _show_log(self, wish: ShowLog) -> None:
        run = self._screen.state.run
        what = ("log", run) if wish.id is None else (wish.file, wish.id)
        pane = Pane(kind=LOG, subject=f"{what[0]} of {safe(what[1])}", follows=True)
        self._put(pane=pane)
        async for lines in queries.log_lines(self._runs, run, wish):
            if not self._goes_on(pane, lines):
                return
        self._goes_on(pane, [END_OF_LOG])

    def _goes_on(self, log: Pane, lines: list[Line]) -> bool:
        """Adds lines to the log on the screen; says False if another pane is open by now."""
        seen = self._screen.state.pane
        if seen is None or not seen.is_about(log):
            return False
        self._put(pane=seen.longer(lines))
        return True

    async def _ask(self, question: Question) -> None:
        self._stop_log()
        pane = await queries.question_pane(self._runs, self._screen.state.run, question)
        self._put(pane=pane, question=question)

    async def _do(self, question: Question, mode: str) -> None:
        first, *more = await queries.give(self._runs, self._screen.state.run, question, mode)
        tree = replace(self._screen.state.tree, marked=frozenset())
        self._put(tree=tree, said=first)
        if more:
            lines = tuple(map(line, (first, *more)))
            self._put(pane=Pane(kind=ANSWER, subject=question.verb, lines=lines))
        self._look_again()

    def _put(self, **fields: Any) -> None:  # noqa: ANN401 - those of the state
        self._screen.show(replace(self._screen.state, is_busy=False, **fields))


LOOK_SECONDS = 5.0  # though nothing was heard
REST_SECONDS_MIN = 0.2
TROUBLE_SECONDS = 2.0
GONE = "the run is gone; b shows others"


class LiveUpdates:
    """Keeps the tree of one run up to date: looks again when something has happened to it.

    Events only say when to look; what is shown is always a whole view, so nothing can be missed
    or shown twice. However much happens, looking takes no more than a third of the time.
    """

    def __init__(self, client: AsyncClient, runs: Runs, run: str, screen: App) -> None:
        self._client, self._runs, self._run, self._screen = client, runs, run, screen
        self.news = asyncio.Event()  # when it is set, the run is looked at soon

    async def run(self) -> None:
        """Keeps the tree up to date until it is cancelled or the run is gone."""
        following = asyncio.create_task(self._follow())
        try:
            await self._look()
        finally:
            following.cancel()

    async def _look(self) -> None:
        while True:
            self.news.clear()
            began = time.monotonic()
            try:
                everything = self._screen.state.everything
                page = await self._runs.tree(self._run, everything=everything)
            except NotFound:
                self._screen.show(replace(self._screen.state, trouble=GONE))
                return
            except (TidewheelError, OSError) as error:
                text = f"trying again: {trouble_text(error)}"
                self._screen.show(replace(self._screen.state, trouble=text))
                await asyncio.sleep(TROUBLE_SECONDS)
                continue
            self._screen.show_page(page)
            took = time.monotonic() - began
            await asyncio.sleep(max(REST_SECONDS_MIN, 2 * took))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.news.wait()

    async def _follow(self) -> None:
        while True:
            try:
                events = self._client.events(run=self._run, kind="run")
                async with aclosing(events):
                    async for _ in events:
                        self.news.set()
            except Refused:  # not allowed to follow: looking from time to time has to do
                return
            except (TidewheelError, OSError):
                await asyncio.sleep(TROUBLE_SECONDS)
