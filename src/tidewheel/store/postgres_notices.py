"""Telling other processes by NOTIFY, and hearing them by LISTEN.

NOTIFY inside a writing transaction takes a database-wide lock at its commit; so it follows the
COMMIT as a statement of its own, in the same round trip. Behind a transaction pooler LISTEN
hears nothing: then workers find tasks by polling.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import msgspec
import psycopg

from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.task import WorkerId
from tidewheel.store.transaction import Row

NOTICE_BYTES_MAX = 7_900  # NOTIFY takes 8000; beyond it "something" is all that is said
RECONNECT_SECONDS = 1.0
TELL_OTHERS = b"SELECT pg_notify('tidewheel', %s)"


def notice(wake: Wake) -> str:
    """What to tell other processes."""
    text = msgspec.json.encode(
        {
            "queues": sorted(wake.queues),
            "workers": sorted(wake.workers),
            "runs": sorted(wake.runs),
        }
    )
    return text.decode() if len(text) < NOTICE_BYTES_MAX else "{}"


class Listener:
    """A thread with a connection of its own that hears what other processes say."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Row]], tell: Callable[[Wake], None]
    ) -> None:
        self._connect, self._tell = connect, tell
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidewheel-postgres-listener")
        self._thread.daemon = True
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(psycopg.Error):
                self._listen()
            self._stopping.wait(RECONNECT_SECONDS)

    def _listen(self) -> None:
        with self._connect() as connection:
            connection.execute(b"LISTEN tidewheel")
            # Whatever was said before this moment was not heard.
            self._tell(Wake(everything=True))
            while not self._stopping.is_set():
                for notice in connection.notifies(timeout=0.2):
                    self._tell(_heard(notice.payload))


class _News(msgspec.Struct):
    queues: frozenset[str]
    workers: frozenset[WorkerId]
    runs: frozenset[int] = frozenset()


def _heard(payload: str) -> Wake:
    try:
        news = msgspec.json.decode(payload, type=_News)
    except msgspec.DecodeError:  # too much to say, or somebody else's words
        return Wake(everything=True)
    return Wake(queues=news.queues, workers=news.workers, runs=news.runs)
