"""Runs the terminal interface: makes of keys, events and answers the state that is shown.

Theory of operation. There is one state; whatever happens makes another of it and paints it.
What a key asks of the store or the server is done in the background, so that the screen never
waits; its answer makes another state, too. A command is given to a run only after the user has
seen what it would do and said yes.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import shlex
import signal
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never, cast

from tidewheel.cli.error_output import what_and_advice
from tidewheel.cli.output import plural, safe, safe_lines
from tidewheel.cli.pages.format import Document, documents
from tidewheel.cli.pages.run import answer_lines
from tidewheel.cli.runs.access import Given
from tidewheel.cli.tui import keymap, panes
from tidewheel.cli.tui.panes import Choice, Pane, Question, State
from tidewheel.cli.tui.render import painted
from tidewheel.cli.tui.spans import BOLD, DIM, Line, line
from tidewheel.cli.tui.terminal import Keys, Terminal
from tidewheel.cli.verbs import TABLE
from tidewheel.core.operator.verbs import VERBS, Command
from tidewheel.errors import NotFound, Refused, TidewheelError

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.client.runs import Runs
    from tidewheel.core.queue.task import Instant

ESCAPE_SECONDS = 0.05  # for the rest of a key to come over a slow line
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class App:
    """Runs the interface for one person at one terminal: reads keys, keeps the state, paints
    it."""

    def __init__(self, client: AsyncClient, terminal: Terminal, run: str) -> None:
        self._terminal = terminal
        self._keys = Keys()
        self.over = asyncio.Event()
        self._failure: BaseException | None = None
        self._background = BackgroundTasks(client, self)
        self.state = State(run=run, size=terminal.size)

    async def run(self) -> None:
        """Serves the terminal until its user leaves."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._terminal.input, self._read)
        loop.add_signal_handler(signal.SIGWINCH, self.repaint)
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        for number in ENDS:
            loop.add_signal_handler(number, self.over.set)
        loop.set_exception_handler(lambda _, what: self.fail(what.get("exception")))
        self._background.go(
            keymap.WatchRun(self.state.run) if self.state.run else keymap.ListRuns()
        )
        try:
            await self.over.wait()
        finally:
            loop.remove_reader(self._terminal.input)
            self._background.end()
        if self._failure is not None:
            raise self._failure

    def _read(self) -> None:
        content = self._terminal.read()
        if not content:  # the terminal is gone
            self.over.set()
            return
        self._press(self._keys.feed(content))
        if self._keys.is_waiting:
            loop = asyncio.get_running_loop()
            loop.call_later(ESCAPE_SECONDS, lambda: self._press(self._keys.flush()))

    def _press(self, keys: list[str]) -> None:
        for key in keys:
            state, wish = keymap.pressed(self.state, key)
            self.show(state)
            if wish is not None:
                self._background.go(wish)

    def fail(self, error: BaseException | None) -> None:
        """Ends the interface after a bug, whose error is raised when the shell has its
        terminal back."""
        self._failure = self._failure or error
        self.over.set()

    def repaint(self) -> None:
        """Paints the whole screen anew, whatever stands there."""
        self._terminal.forget()
        self.show(replace(self.state, size=self._terminal.size))

    def show_page(self, page: Document, now: Instant, *, cause: str, left: str) -> None:
        tree = self.state.tree.changed(page=page, now=now)
        self.show(replace(self.state, tree=tree, cause=cause, left=left, trouble=""))
        if self.state.task is not None:
            self._background.go(keymap.ShowTask(self.state.task, again=True))

    def _suspend(self) -> None:
        """Suspends the program (Ctrl-Z): the shell gets its terminal back as it was."""
        self._terminal.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.take()
        self.repaint()

    def show(self, state: State) -> None:
        """Paints a state, and keeps it as the current one."""
        self.state, lines = painted(state)
        self._terminal.paint(lines)


# ---- what takes time, beside the screen: views, logs, commands ----

SUMMARIES_MAX = 50  # for one list of runs: each reads a whole run
END_OF_LOG = line("(the end)", DIM)


class BackgroundTasks:
    """Runs what keys ask for, beside the screen.

    Only one run is watched and one log is followed at a time: the one asked for last.
    """

    def __init__(self, client: AsyncClient, screen: App) -> None:
        self._client, self._runs, self._screen = client, client.runs, screen
        self._beside: set[asyncio.Task[None]] = set()
        self._updates: LiveUpdates | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._log_task: asyncio.Task[None] | None = None

    def end(self) -> None:
        for task in self._beside:
            task.cancel()

    def go(self, wish: keymap.Wish) -> None:
        """Begins what was asked for, and returns at once."""
        match wish:
            case keymap.Leave():
                self._screen.over.set()
            case keymap.LookAgain():
                self._screen.repaint()
                self._look_again()
            case keymap.ShowTask():
                self._beside.add(self._begun(self._show_task(wish)))
            case keymap.ShowLog():
                self._stop_log()
                self._log_task = self._begun(self._show_log(wish))
            case keymap.ShowCauses():
                self._beside.add(self._begun(self._show_causes()))
            case keymap.ListRuns():
                self._beside.add(self._begun(self._list_runs()))
            case keymap.WatchRun(run=run):
                self._watch(run)
            case keymap.AskFirst(question=question):
                self._beside.add(self._begun(self._ask(question)))
            case keymap.Do(question=question, mode=mode):
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
        """Awaits the work; shows a refusal, or that a server does not answer, on the screen."""
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

    async def _list_runs(self) -> None:
        page = await self._runs.list(count=panes.RUNS_MAX)
        runs, now = panes.by_need(page), await self._client.store.now()
        names = tuple(str(one["name"]) for one in runs)
        current = self._screen.state.run
        at = names.index(current) if current in names else 0
        self._put(choice=Choice(names, panes.run_lines(runs, {}, now), at))
        summaries: dict[str, Document] = {}
        for name in panes.to_look_into(runs, SUMMARIES_MAX):
            with suppress(Refused):  # it was deleted, or cannot be looked into
                summaries[name] = await self._runs.look("summary", run=name)
            choice = self._screen.state.choice
            if choice is None or choice.names != names:
                return
            lines = panes.run_lines(runs, summaries, now)
            self._screen.show(replace(self._screen.state, choice=choice._replace(lines=lines)))

    async def _show_task(self, wish: keymap.ShowTask) -> None:
        [page] = documents(await self._runs.show(self._screen.state.run, wish.id), "tasks")
        lines = tuple(panes.task_lines(page))
        pane = Pane(kind=panes.TASK, subject=safe(wish.id), lines=lines)
        seen = self._screen.state.pane
        if not wish.again and self._screen.state.question is None:
            self._put(pane=pane)
        elif seen is not None and seen.is_about(pane):
            self._put(pane=replace(pane, top=seen.top))

    async def _show_causes(self) -> None:
        self._stop_log()
        run = self._screen.state.run
        lines = panes.all_causes(await self._runs.show(run))
        subject = f"why {safe(run)} does not continue"
        self._put(pane=Pane(kind=panes.ANSWER, subject=subject, lines=lines))

    async def _show_log(self, wish: keymap.ShowLog) -> None:
        run = self._screen.state.run
        what = ("log", run) if wish.id is None else (wish.file, wish.id)
        pane = Pane(kind=panes.LOG, subject=f"{what[0]} of {safe(what[1])}", follows=True)
        self._put(pane=pane)
        async for lines in log_lines(self._runs, run, wish):
            if not self._goes_on(pane, lines):
                return
        self._goes_on(pane, [END_OF_LOG])

    def _goes_on(self, log: Pane, lines: list[Line]) -> bool:
        """Adds lines to the log on the screen; returns False if another pane is open by now."""
        seen = self._screen.state.pane
        if seen is None or not seen.is_about(log):
            return False
        self._put(pane=seen.longer(lines))
        return True

    async def _ask(self, question: Question) -> None:
        self._stop_log()
        pane = await question_pane(self._runs, self._screen.state.run, question)
        self._put(pane=pane, question=question)

    async def _do(self, question: Question, mode: str) -> None:
        command = command_of(question, mode)
        answer = await self._runs.give(self._screen.state.run, command)
        given = Given(answer.run, command, answer.number, answer.document)
        first, *more = answer_lines(given)
        tree = replace(self._screen.state.tree, marked=frozenset())
        self._put(tree=tree, said=first)
        if more:
            lines = tuple(map(line, (first, *more)))
            self._put(pane=Pane(kind=panes.ANSWER, subject=question.verb, lines=lines))
        self._look_again()

    def _put(self, **fields: Any) -> None:  # noqa: ANN401 - those of the state
        self._screen.show(replace(self._screen.state, is_busy=False, **fields))


LOOK_SECONDS = 5.0  # though nothing was heard
REST_SECONDS_MIN = 0.2
TROUBLE_SECONDS = 2.0
GONE = "the run is deleted; press b for other runs"


class LiveUpdates:
    """Keeps the tree of one run up to date: looks again when something has happened to it.

    Events only say when to look; what is shown is always a whole view, so nothing can be missed
    or shown twice. However much happens, looking takes no more than a third of the time.
    """

    def __init__(self, client: AsyncClient, runs: Runs, run: str, screen: App) -> None:
        self._client, self._runs, self._run, self._screen = client, runs, run, screen
        self.news = asyncio.Event()  # when it is set, the run is looked at soon
        self._facts: Document = {}
        self._usual: dict[str, float] | None = None  # how long runs take; None: not asked yet

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
                now = await self._client.store.now()
                cause = await self._cause(now) if page.get("stall") else ""
                left = await self._left(now) if page["status"] == "running" else ""
            except NotFound:
                self._screen.show(replace(self._screen.state, trouble=GONE))
                return
            except (TidewheelError, OSError) as error:
                text = f"trying again: {trouble_text(error)}"
                self._screen.show(replace(self._screen.state, trouble=text))
                await asyncio.sleep(TROUBLE_SECONDS)
                continue
            self._screen.show_page(page, now, cause=cause, left=left)
            took = time.monotonic() - began
            await asyncio.sleep(max(REST_SECONDS_MIN, 2 * took))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.news.wait()

    async def _cause(self, now: Instant) -> str:
        summary = await self._runs.look("summary", run=self._run)
        return panes.cause_text(summary, now)

    async def _left(self, now: Instant) -> str:
        """Returns how long the run may still take, as the runs of its workflow before it."""
        if self._usual is None:
            facts = await self._runs.look("facts", run=self._run)
            self._facts = cast("Document", facts["run"])
            before = await self._runs.list(workflow=str(self._facts["workflow"]))
            self._usual = panes.usual_seconds(documents(before, "runs"))
        going = {**self._facts, "status": "running", "driven": True}
        return panes.left_text(going, self._usual, now)

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


# ---- what the screen wants of a run: views as lines, commands with what they would do ----

TAIL_BYTES = 64_000
WAIT_SECONDS = 5.0
IDS_SHOWN_MAX = 10  # in one line
IDS_NAMED_MAX = 50


def command_of(question: Question, mode: str) -> Command:
    """Returns the command that a question is about, the same that the command line would
    make."""
    kind: Any = VERBS[question.verb]
    given = {"ids": question.ids} if panes.takes_ids(TABLE[question.verb]) else {}
    return kind(**given, **({"mode": mode} if mode else {}))  # type: ignore[no-any-return]


def typed_line(run: str, question: Question) -> str:
    """Returns the line that would give the same command in a shell, to be copied."""
    ids = map(shlex.quote, question.ids[:IDS_SHOWN_MAX])
    more = ["…"] if len(question.ids) > IDS_SHOWN_MAX else []
    return " ".join(("tidewheel", question.verb, shlex.quote(run), *ids, *more))


def which_lines(question: Question) -> Iterator[str]:
    """Yields how many tasks a question is about, and the ids that ``typed_line`` left out."""
    if question.filter:
        many = f"{len(question.ids)} of {plural(question.of, 'task')}"
        which = f"the filter {safe(question.filter)} shows {many}"
        yield f"{which}: the command applies only to these"
    if question.hidden:
        yield f"not included: {plural(question.hidden, 'marked task')}, hidden by the filter"
    for one in question.ids[IDS_SHOWN_MAX:IDS_NAMED_MAX]:
        yield f"  {safe(one)}"
    if (more := len(question.ids) - IDS_NAMED_MAX) > 0:
        yield f"  and {more} more"


async def question_pane(runs: Runs, run: str, question: Question) -> Pane:
    """Returns a pane with what the command would do, or why it would be refused."""
    verb = TABLE[question.verb]
    sentence = verb.help.split("\n\n")[0].strip()
    lines: list[Line] = [line(sentence), line(typed_line(run, question), DIM)]
    lines += [*map(line, which_lines(question)), ()]
    if verb.dry_run:
        try:
            page = await runs.dry_run(run, command_of(question, ""))
            lines += panes.would_do_lines(page)
        except Refused as refused:
            what, advice = what_and_advice(refused)
            lines += [line("the command would be refused:", BOLD), line(safe(what))]
            lines += [line(safe(advice), DIM)] if advice else []
    return Pane(
        kind=panes.QUESTION, subject=f"{question.verb} in {safe(run)}", lines=tuple(lines)
    )


def trouble_text(error: Exception) -> str:
    if isinstance(error, TidewheelError):
        return "; ".join(filter(None, what_and_advice(error)))
    return str(error) or repr(error)


async def log_lines(runs: Runs, run: str, wish: keymap.ShowLog) -> AsyncIterator[list[Line]]:
    """Yields the end of a log and then what is added to it, as whole lines, until it is
    over."""
    asked: Document = {"id": wish.id or "", "file": wish.file, "submit": wish.submit}
    if wish.attempt is not None:
        asked = {**asked, "attempt": wish.attempt}
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    part = await runs.log_part(run, asked, bytes_max=TAIL_BYTES)
    rest = ""
    while True:
        text = rest + decoder.decode(part.content, final=part.over)
        whole, end, rest = text.rpartition("\n")
        found = safe_lines(whole).expandtabs().split("\n") if end else []
        if part.over and rest:
            found.append(safe_lines(rest).expandtabs())
            rest = ""
        yield [line(one) for one in found]
        if part.over:
            return
        place = part.place
        asked = {**asked, "submit": place.submit, "attempt": place.attempt}
        part = await runs.log_part(
            run, asked, offset=part.next_offset, wait_seconds=WAIT_SECONDS
        )
