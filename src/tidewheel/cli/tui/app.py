"""Runs the terminal interface: keys, news and answers come in, and the screen follows.

Theory of operation. There is one state; whatever happens makes another of it and paints it.
What a key asks of the store or the server is done in the background, so that the screen
never waits; each such task ends in a state, too. Nothing is done to a run before it was shown
what would happen and somebody said yes.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from tidewheel.cli.pages.format import Document
from tidewheel.cli.tui.background_tasks import BackgroundTasks
from tidewheel.cli.tui.keymap import ListRuns, ShowTask, WatchRun, pressed
from tidewheel.cli.tui.render import painted
from tidewheel.cli.tui.state import State
from tidewheel.cli.tui.terminal import Keys, Terminal

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient

ESCAPE_SECONDS = 0.05  # for the rest of a key to come over a slow line
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class App:
    """Is the interface for one person at one terminal."""

    def __init__(self, client: AsyncClient, terminal: Terminal, run: str) -> None:
        self._terminal = terminal
        self._keys = Keys()
        self._over = asyncio.Event()
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
            loop.add_signal_handler(number, self._over.set)
        loop.set_exception_handler(lambda _, what: self.fail(what.get("exception")))
        self._background.go(WatchRun(self.state.run) if self.state.run else ListRuns())
        try:
            await self._over.wait()
        finally:
            loop.remove_reader(self._terminal.input)
            self._background.end()
        if self._failure is not None:
            raise self._failure

    def _read(self) -> None:
        content = self._terminal.read()
        if not content:  # the terminal is gone
            self._over.set()
            return
        self._press(self._keys.feed(content))
        if self._keys.is_waiting:
            loop = asyncio.get_running_loop()
            loop.call_later(ESCAPE_SECONDS, lambda: self._press(self._keys.flush()))

    def _press(self, keys: list[str]) -> None:
        for key in keys:
            state, wish = pressed(self.state, key)
            self.show(state)
            if wish is not None:
                self._background.go(wish)

    def leave(self) -> None:
        self._over.set()

    def fail(self, error: BaseException | None) -> None:
        """Keeps a bug of ours, to be raised when the shell has its terminal back, and ends."""
        self._failure = self._failure or error
        self._over.set()

    def repaint(self) -> None:
        """Paints the whole screen anew, whatever stands there."""
        self._terminal.forget()
        self.show(replace(self.state, size=self._terminal.size))

    def show_page(self, page: Document) -> None:
        self.show(replace(self.state, tree=self.state.tree.changed(page=page), trouble=""))
        if self.state.task is not None:
            self._background.go(ShowTask(self.state.task, again=True))

    def _suspend(self) -> None:
        """Suspends the program (Ctrl-Z): the shell gets its terminal back as it was."""
        self._terminal.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.take()
        self.repaint()

    def show(self, state: State) -> None:
        """Paints a state, and keeps it as the one that is seen."""
        self.state, lines = painted(state)
        self._terminal.paint(lines)
