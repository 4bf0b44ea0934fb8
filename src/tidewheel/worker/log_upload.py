"""Brings what jobs write to a server elsewhere while they run.

Theory of operation
-------------------
Each file of an attempt is one stream that only grows. Every second the part that the server
does not have yet is read and sent, in chunks that say where they belong. The server answers
where its copy ends: that, and nothing else, says where to go on. So a chunk that was lost, sent
twice or overtaken does no harm, and an adopter of a job asks first and goes on where the other
left off. When the job has ended, its streams are brought to their end, however long the server
is away; then they are forgotten. Nothing waits for a log: reports and leases have other ways.

A runner cuts the middle out of a log that has become too large. The file is then shorter than
what was sent of it: from there on it is sent as a continuation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tidewheel.core.queue.lease import Holder
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.services.service import Service, ServiceReport, Surroundings, Wakeup
from tidewheel.worker.attempts import Attempt, AttemptKey

STREAMS = ("out", "err")
RUN_STREAMS = ("job", "status", *STREAMS)  # of a job of a run
INTERVAL_SECONDS = 1.0
CHUNK_BYTES_MAX = 1_000_000
CHUNKS_PER_TURN_MAX = 8  # of one stream, then it is another's turn
AT_ONCE_MAX = 8  # attempts whose logs are on their way
ENDED_MAX = 10_000  # attempts that are over, while the server takes nothing


class Receipt(NamedTuple):
    """Says where the server's copy ends, and whether it takes no more."""

    size: int
    full: bool


class LogWay(NamedTuple):
    """Holds the functions that read a log and send it to a server."""

    # Folder, stream, offset, bytes: some bytes of a file, and how long it is.
    read: Callable[[Path, str, int, int], Awaitable[tuple[bytes, int]]]
    send: Callable[[Holder, str, int, bytes], Awaitable[Receipt]]


@dataclass(slots=True)
class Stream:
    """Knows how much of one file the server has, and where reading goes on."""

    name: str
    sent: int | None  # None: the server is to be asked
    base: int = 0  # where the file begins in the copy, once it was cut
    is_over: bool = False

    @property
    def offset(self) -> int:
        """Returns where in the file to read next."""
        return max(0, (self.sent or 0) - self.base)

    def heed_cut(self, size: int) -> bool:
        """Says whether the file is shorter than what was read of it.

        Then it was cut, and the rest is sent as a continuation.
        """
        if self.sent is None or size >= self.offset:
            return False
        self.base = self.sent
        return True

    def heed(self, receipt: Receipt) -> None:
        """Notes how much of the file the server has by now."""
        self.sent = receipt.size
        self.is_over = self.is_over or receipt.full


class _Copy:
    """Holds the streams of one attempt."""

    def __init__(self, attempt: Attempt, directory: Path, sent: int | None) -> None:
        self.attempt = attempt
        self.directory = directory
        names = STREAMS if attempt.task.run is None else RUN_STREAMS
        self.streams = [Stream(name, sent) for name in names]
        self.has_ended = False


class LogUpload(Service):
    """Sends the logs of all jobs of a worker to a server."""

    def __init__(self, way: LogWay, surroundings: Surroundings, on_idle: Wakeup) -> None:
        super().__init__("logs", surroundings)
        self._way = way
        self._on_idle = on_idle
        self._copies: dict[AttemptKey, _Copy] = {}

    @property
    def idle(self) -> bool:
        """Says whether the server has all that ended jobs have written."""
        return not any(copy.has_ended for copy in list(self._copies.values()))

    def begin(self, attempt: Attempt, directory: Path, *, adopted: bool) -> None:
        """Follows the files of a job that starts, or that this worker has adopted, or of a
        handler that prints for the first time; from any thread."""
        copy = _Copy(attempt, directory, None if adopted else 0)
        self._copies[attempt.key] = copy
        if attempt.ended:  # in another thread, which did not find the copy
            copy.has_ended = True
        self.wake()

    def end(self, attempt: Attempt) -> None:
        """Notes that the attempt writes no more."""
        copy = self._copies.get(attempt.key)
        if copy is not None:
            copy.has_ended = True
            self.wake()

    def rest_seconds(self) -> float | None:
        return INTERVAL_SECONDS if self._copies else None

    async def run_once(self) -> Sequence[ServiceReport]:
        was_idle = self.idle
        ended = [key for key, copy in list(self._copies.items()) if copy.has_ended]
        for key in ended[: max(0, len(ended) - ENDED_MAX)]:
            del self._copies[key]
            self.tell("log.left", task=key[0], attempt=key[1])
        waiting = list(self._copies.values())
        for first in range(0, len(waiting), AT_ONCE_MAX):
            some = waiting[first : first + AT_ONCE_MAX]
            work = [self._bring_up(copy) for copy in some]
            ends = await asyncio.gather(*work, return_exceptions=True)
            self._heed_ends(some, ends)
        if self.idle and not was_idle:
            self._on_idle.ring()
        return ()

    def _heed_ends(self, copies: Sequence[_Copy], ends: Sequence[BaseException | None]) -> None:
        """Forgets logs that are complete or refused; raises what kept any from being sent."""
        failure = None
        for copy, end in zip(copies, ends, strict=True):
            task_id, attempt = copy.attempt.key
            if isinstance(end, Refused):  # this attempt's log is not wanted any more
                facts = {"code": end.code, "error": str(end)}
                self.tell("log.refused", task=task_id, attempt=attempt, **facts)
            elif end is not None:
                failure = failure or end
            if isinstance(end, Refused) or all(stream.is_over for stream in copy.streams):
                del self._copies[copy.attempt.key]
        if failure is not None:
            raise failure

    async def _bring_up(self, copy: _Copy) -> None:
        holder = copy.attempt.holder
        for stream in copy.streams:
            # Looked at before the file is read: what is written later is for another turn.
            has_ended = copy.has_ended
            for _ in range(CHUNKS_PER_TURN_MAX):
                if stream.is_over or not await self._send_next(copy, stream):
                    break
            else:
                self.wake()
                continue
            if has_ended and not stream.is_over:
                if not stream.sent:  # an empty log is a log, too
                    stream.heed(await self._way.send(holder, stream.name, 0, b""))
                stream.is_over = True

    async def _send_next(self, copy: _Copy, stream: Stream) -> bool:
        """Sends the next chunk, and returns whether there may be more."""
        holder = copy.attempt.holder
        if stream.sent is None:
            stream.heed(await self._way.send(holder, stream.name, 0, b""))
        content, size = await self._way.read(
            copy.directory, stream.name, stream.offset, CHUNK_BYTES_MAX
        )
        if stream.heed_cut(size):
            return True
        if stream.is_over or not content:
            return False
        sent = stream.sent or 0
        stream.heed(await self._way.send(holder, stream.name, sent, content))
        return (stream.sent or 0) != sent
