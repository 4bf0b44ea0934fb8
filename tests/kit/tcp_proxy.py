"""A network between two programs that can be made to fail: delays, cuts, silence, repetition.

Theory of operation
-------------------
The proxy passes bytes on between its clients and one server, in a thread with its own loop.
Bytes from the client up to the server's next ones are taken for one request, which is how HTTP
without pipelining behaves. A fault is meant for the next requests in which a text occurs; each
is used up by one request. What a network does to everybody, silence in one direction or a
refused connection, lasts until it is healed. ``happened`` counts what was done to requests, so
that a test can wait for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Self

READ_BYTES_MAX = 65_536
START_SECONDS_MAX = 10.0
AGAIN_SECONDS_MAX = 10.0
TURN_SECONDS = 0.01
# A connection that was accepted is ours to close only some turns of the loop later.
ARRIVAL_TURNS = 10


class Harm(Enum):
    """What happens to one request."""

    CUT_REQUEST = "cut request"  # the connection breaks within it
    CUT_ANSWER = "cut answer"  # it arrives, its answer does not
    REPEAT = "repeat"  # it arrives again when it was answered
    HOLD = "hold"  # it arrives when it is released, others overtake it
    HOLD_ANSWER = "hold answer"  # the same for its answer


@dataclass(frozen=True, slots=True)
class Fault:
    """Meant for the next request in which the text occurs; any, if it is empty."""

    harm: Harm
    only: bytes = b""
    after_bytes: int = 0  # of the request, for one that is cut


@dataclass(slots=True, eq=False)
class _Link:
    """A client's connection, and ours to the server for it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    request: bytes = b""
    is_answered: bool = True
    fault: Fault | None = None
    is_repeated: bool = False

    def cut(self) -> None:
        for writer in (self.client, self.server):
            with suppress(Exception):
                writer.transport.abort()


@dataclass(slots=True)
class _Weather:
    """What happens to everybody."""

    requests_flow: asyncio.Event = field(default_factory=asyncio.Event)
    answers_flow: asyncio.Event = field(default_factory=asyncio.Event)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    delay_seconds: float = 0.0
    refuses: bool = False


class TcpProxy:
    """``with TcpProxy("127.0.0.1", 8450) as proxy``: reach the server by ``proxy.address``."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._faults: list[Fault] = []
        self._links: set[_Link] = set()
        self._thread = threading.Thread(target=self._run, name="tcp proxy", daemon=True)
        self._started = threading.Event()
        self._stop: Callable[[], None] = lambda: None
        self.happened: Counter[Harm] = Counter()
        self.connections = 0
        self._arriving = 0
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(START_SECONDS_MAX), "the proxy does not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._thread.join(START_SECONDS_MAX)

    # ---- what a test says; from any thread ----

    def harm(self, *faults: Fault) -> None:
        """Each for one request, in this order where several fit."""
        self._do(lambda: self._faults.extend(faults))

    def silence(self, *, requests: bool = False, answers: bool = False) -> None:
        """Let nothing through in these directions; no connection is closed, old or new."""

        def fall_silent() -> None:
            if requests:
                self._weather.requests_flow.clear()
            if answers:
                self._weather.answers_flow.clear()

        self._do(fall_silent)

    def delay(self, seconds: float) -> None:
        """Every piece takes so much longer, in both directions."""
        self._do(lambda: setattr(self._weather, "delay_seconds", seconds))

    def refuse(self) -> None:
        """Break all connections, and every new one at once."""

        def turn_away() -> None:
            self._weather.refuses = True
            self._cut_all()

        self._do(turn_away)

    def cut_all(self) -> None:
        """Break all connections; new ones are welcome."""
        self._do(self._cut_all)

    def release(self) -> None:
        """Let go of everything that is held, now."""
        self._do(self._let_go)

    def heal(self) -> None:
        """Everything flows again; faults that nobody met are forgotten."""

        def mend() -> None:
            self._faults.clear()
            self._weather.refuses, self._weather.delay_seconds = False, 0.0
            self._weather.requests_flow.set()
            self._weather.answers_flow.set()
            self._let_go()

        self._do(mend)

    # ---- in the proxy's own loop ----

    def _do(self, work: Callable[[], object]) -> None:
        done = threading.Event()

        def call() -> None:
            work()
            done.set()

        self._loop.call_soon_threadsafe(call)
        assert done.wait(START_SECONDS_MAX), "the proxy does not answer"

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._weather = asyncio.get_running_loop(), _Weather()
        self._weather.requests_flow.set()
        self._weather.answers_flow.set()
        self._tasks: set[asyncio.Task[None]] = set()
        stopping = asyncio.Event()
        self._stop = lambda: self._do(stopping.set)
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await stopping.wait()
        self._weather.refuses = True
        # Whom the loop has accepted it hands to us some turns later; to nobody, if the server
        # is closed by then, and leaves the socket open (CPython's gh-109564).
        self._loop.remove_reader(server.sockets[0])
        for _ in range(ARRIVAL_TURNS):
            await asyncio.sleep(0)
        server.close()
        self._cut_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._arriving:  # a socket is closed by the loop, some turns after it was aborted
            await asyncio.sleep(TURN_SECONDS)
        await asyncio.sleep(TURN_SECONDS)

    def _begin(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._arriving += 1
        try:
            await self._join(reader, writer)
        except OSError:
            pass  # there is nobody behind us
        finally:
            writer.transport.abort()
            self._arriving -= 1

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._turns_away():
            return
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        if self._turns_away():  # by now
            far_writer.transport.abort()
            return
        link = _Link(writer, far_writer)
        self._links.add(link)
        ways = (
            self._begin(self._pass(reader, link, self._request)),
            self._begin(self._pass(far_reader, link, self._answer)),
        )
        await asyncio.wait(ways)
        link.cut()
        self._links.discard(link)

    def _turns_away(self) -> bool:
        return self._weather.refuses

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        link: _Link,
        deal: Callable[[_Link, bytes], Awaitable[bool]],
    ) -> None:
        """Until one end hangs up, which the other hears, or a fault cuts both off."""
        goes_on = True
        while goes_on:
            try:
                data = await reader.read(READ_BYTES_MAX)
            except OSError:
                data = b""
            await asyncio.sleep(self._weather.delay_seconds)
            with suppress(OSError):
                goes_on = await deal(link, data) and bool(data)
        link.cut()

    async def _request(self, link: _Link, data: bytes) -> bool:
        await self._weather.requests_flow.wait()
        if link.is_answered:
            link.request, link.is_answered = b"", False
            link.fault, link.is_repeated = None, False
        before = len(link.request)
        link.request += data
        if link.fault is None and data:
            link.fault = self._next_fault(link.request)
        match link.fault:
            case Fault(Harm.CUT_REQUEST, after_bytes=most) if before + len(data) > most:
                link.server.write(data[: max(0, most - before)])
                await link.server.drain()
                return self._cut(link, Harm.CUT_REQUEST)
            case Fault(Harm.HOLD):
                self.happened[Harm.HOLD] += 1
                await self._held()
            case _:
                pass
        link.server.write(data)
        await link.server.drain()
        return True

    async def _answer(self, link: _Link, data: bytes) -> bool:
        await self._weather.answers_flow.wait()
        match link.fault:
            case Fault(Harm.CUT_ANSWER) if data:
                return self._cut(link, Harm.CUT_ANSWER)
            case Fault(Harm.HOLD_ANSWER) if not link.is_answered:
                self.happened[Harm.HOLD_ANSWER] += 1
                await self._held()
            case Fault(Harm.REPEAT) if not link.is_repeated and data:
                link.is_repeated = True
                _ = self._begin(self._send_again(link.request))
            case _:
                pass
        link.is_answered = True
        link.client.write(data)
        await link.client.drain()
        return True

    def _next_fault(self, request: bytes) -> Fault | None:
        for fault in self._faults:
            if fault.only in request:
                self._faults.remove(fault)
                return fault
        return None

    def _cut(self, link: _Link, harm: Harm) -> bool:
        link.cut()
        self.happened[harm] += 1
        return False

    async def _held(self) -> None:
        held = self._weather.held
        await held.wait()

    def _let_go(self) -> None:
        self._weather.held.set()
        self._weather.held = asyncio.Event()

    async def _send_again(self, request: bytes) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(AGAIN_SECONDS_MAX):
                reader, writer = await asyncio.open_connection(*self._target)
                try:
                    writer.write(request)
                    await writer.drain()
                    await reader.read(READ_BYTES_MAX)
                finally:
                    writer.transport.abort()
        self.happened[Harm.REPEAT] += 1

    def _cut_all(self) -> None:
        for link in list(self._links):
            link.cut()
