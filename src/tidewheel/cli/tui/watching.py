"""Keeping the tree of a run up to date: looked at again when something happened to it.

Events only say when to look; what is shown is always a whole view, so nothing can be missed or
shown twice. However much happens, looking takes no more than a third of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from tidewheel.cli.pages.format import Document
from tidewheel.cli.tui.queries import trouble_text
from tidewheel.errors import NotFound, Refused, TidewheelError

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.client.runs import Runs

LOOK_SECONDS = 5.0  # though nothing was heard
REST_SECONDS_MIN = 0.2
TROUBLE_SECONDS = 2.0
GONE = "the run is gone; b shows others"


class Screen(Protocol):
    """Whoever shows it."""

    def show_page(self, page: Document) -> None: ...
    def show_trouble(self, text: str) -> None: ...
    def wants_everything(self) -> bool: ...


class Watching:
    """One run."""

    def __init__(self, client: AsyncClient, runs: Runs, run: str, screen: Screen) -> None:
        self._client, self._runs, self._run, self._screen = client, runs, run, screen
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Look now."""
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled, or the run is gone."""
        following = asyncio.create_task(self._follow())
        try:
            await self._look_again_and_again()
        finally:
            following.cancel()

    async def _look_again_and_again(self) -> None:
        while True:
            self._news.clear()
            began = time.monotonic()
            try:
                everything = self._screen.wants_everything()
                page = await self._runs.tree(self._run, everything=everything)
            except NotFound:
                self._screen.show_trouble(GONE)
                return
            except (TidewheelError, OSError) as error:
                self._screen.show_trouble(f"trying again: {trouble_text(error)}")
                await asyncio.sleep(TROUBLE_SECONDS)
                continue
            self._screen.show_page(page)
            took = time.monotonic() - began
            await asyncio.sleep(max(REST_SECONDS_MIN, 2 * took))
            await _wait_for(self._news.wait, LOOK_SECONDS)

    async def _follow(self) -> None:
        while True:
            try:
                events = self._client.events(run=self._run, kind="run")
                async with aclosing(events):
                    async for _ in events:
                        self._news.set()
            except Refused:  # not allowed to follow: looking from time to time has to do
                return
            except (TidewheelError, OSError):
                await asyncio.sleep(TROUBLE_SECONDS)


async def _wait_for(what: Callable[[], object], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await what()  # type: ignore[misc]
    except TimeoutError:
        return
