"""Listens to jobs for their worker: a unix socket and one line of JSON per message.

    {"secret": …, "key": …, "text": …, "output": …, "values": …, "progress": …}  →  {"ok": true}
    {"secret": …, "key": …, "call": {…}}                            →  {"answer": {…}}
                                                          either may be {"refused": "why"}

A secret speaks for one attempt and dies with it. Each message goes into the attempt's spool
first and from there to the worker, so that an adopter of the job meets the same messages.
A call asks something of the run that the job belongs to, and waits; the function that was given
as ``calls`` knows what that means.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import stat
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from pathlib import Path

from tidewheel.core.queue.submission import (
    MESSAGE_BYTES_MAX,
    MESSAGES_BYTES_MAX,
    MESSAGES_MAX,
    name_finding,
    utf8_length,
)
from tidewheel.core.queue.task import TaskId
from tidewheel.core.queue.values import VALUES_BYTES_MAX, values_text
from tidewheel.errors import PayloadTooLarge, Refused, Unavailable
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import JobReports
from tidewheel.runners.job_directory import StrPath, link_whole, make_private_directory
from tidewheel.runners.messages import client
from tidewheel.runners.sanitize import storable

Answer = dict[str, object]
Calls = Callable[[TaskId, Answer], Awaitable[Answer]]

CONNECTIONS_MAX = 128
WAITING_MAX = 1024  # before they are heard or turned away: no job of one user fills that
CONNECTIONS_OF_OTHERS_MAX = 32  # of one user, where jobs are not of the worker's own
SILENCE_SECONDS_MAX = 10.0  # between two lines of one connection
KEY_LENGTH_MAX = 64
JSON_BYTES_PER_BYTE = 6  # of text, where it is escaped
ENVELOPE_BYTES_MAX = 4096  # of a line, around the text
DIGESTS_KNOWN_MAX = 64
SPOOL_BYTES_MAX = 64 * 1024 * 1024  # that are read; what a job says beyond that is dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """Holds a request of a job that has the right form: a message, progress, or a call."""

    secret: str
    message: client.SpooledMessage | None = None
    progress: float | None = None
    call: dict[str, object] | None = None


@dataclass(slots=True, kw_only=True)
class Speaker:
    """Holds an attempt that may send messages, and how much of its spool was passed on."""

    directory: StrPath
    reports: JobReports
    message_bytes_max: int
    caller: TaskId | None = None  # in whose name it may call; None: it may not
    hidden: tuple[str, ...] = ()  # secrets of the job, which nobody is to read
    offset: int = 0
    heard: set[str] = field(default_factory=set)  # the keys of its messages
    heard_bytes: int = 0

    def hear(self, message: client.SpooledMessage) -> None:
        """Writes a message to the spool, then passes it on; one that was heard is dropped.

        It is passed on even if the disk is too full for the spool.
        """
        if message.key in self.heard:
            return
        if self.hidden:
            message = message.masked(self.hidden)
        size = utf8_length(message.text)
        if size > self.message_bytes_max:
            raise PayloadTooLarge("the message", size, self.message_bytes_max)
        if len(self.heard) >= MESSAGES_MAX:
            raise Refused(
                f"this attempt has sent {MESSAGES_MAX} messages; no more are accepted"
            )
        if self.heard_bytes + size > MESSAGES_BYTES_MAX:
            most = MESSAGES_BYTES_MAX // 1024**2
            raise Refused(f"the messages of one attempt may total at most {most} MiB")
        try:
            client.append(self.directory, message)
        except OSError:
            self._pass_on(message)
        self.hear_spool()

    def hear_spool(self) -> None:
        """Passes on the messages in the spool that the worker has not heard.

        They end with the last complete line.
        """
        spool = f"{self.directory}/{client.SPOOL_NAME}"
        if not os.access(spool, os.F_OK):  # most jobs say nothing; to raise costs more
            return
        try:
            # Jobs can put anything there; to open a pipe would wait for its writer.
            descriptor = os.open(spool, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return
        try:
            facts = os.fstat(descriptor)
            unheard = min(facts.st_size, SPOOL_BYTES_MAX) - self.offset
            if not stat.S_ISREG(facts.st_mode) or unheard <= 0:
                return
            written = os.pread(descriptor, unheard, self.offset)
        except OSError:
            return
        finally:
            os.close(descriptor)
        complete = written[: written.rfind(b"\n") + 1]
        self.offset += len(complete)
        for message in map(_parse_spooled, complete.splitlines()):
            if message is None or message.key in self.heard:
                continue
            if len(self.heard) < MESSAGES_MAX and self.heard_bytes < MESSAGES_BYTES_MAX:
                self._pass_on(message)

    def _pass_on(self, message: client.SpooledMessage) -> None:
        self.heard.add(message.key)
        if self.hidden:  # the job may have written into its spool by itself
            message = message.masked(self.hidden)
        output = None if message.output is None else storable(message.output)
        # In the spool a job may have written anything, and nobody can be told that it is long.
        kept = message.text.encode(errors="replace")[: self.message_bytes_max]
        self.heard_bytes += len(kept) + len(message.values or "")
        text = storable(kept.decode(errors="ignore"))
        self.reports.message(text, output, message.values and storable(message.values))


def _parse_spooled(line: bytes) -> client.SpooledMessage | None:
    """Returns the message in a line of a spool; None if it is none. A job can write anything
    into its spool."""
    try:
        key, text, output, *rest = json.loads(line)
        [values] = rest or [None]  # none from a job of an earlier version
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(key, str) or not isinstance(text, str):
        return None
    if not isinstance(output, str | None) or not isinstance(values, str | None):
        return None
    return client.SpooledMessage(key=key, text=text, output=output, values=values)


class MessageServer:
    """Listens on the one socket that a worker has for all of its jobs."""

    def __init__(
        self,
        home: Path,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        calls: Calls | None = None,
    ) -> None:
        # Unique also where one process has two workers, and among hosts that share a home.
        name = f"{os.getpid()}-{os.urandom(4).hex()}.sock"
        self.path = home.absolute() / "sock" / name
        self.message_bytes_max = message_bytes_max
        said_bytes_max = message_bytes_max + VALUES_BYTES_MAX
        self._line_bytes_max = JSON_BYTES_PER_BYTE * said_bytes_max + ENVELOPE_BYTES_MAX
        self._calls = calls
        self._speakers: dict[bytes, Speaker] = {}
        self._connections: Counter[int] = Counter()  # by the user at the other end
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begins to listen, in a directory that is closed to other users."""
        make_private_directory(self.path.parent)
        listening = _bind(self.path)
        self._server = await asyncio.start_unix_server(
            self._converse, sock=listening, limit=self._line_bytes_max, backlog=WAITING_MAX
        )

    async def stop(self) -> None:
        """Stops listening, and removes the socket."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.path.unlink(missing_ok=True)

    def expect(
        self,
        secret: str,
        directory: StrPath,
        reports: JobReports,
        caller: TaskId | None = None,
        hidden: tuple[str, ...] = (),
    ) -> None:
        """Lets an attempt send messages from now on: to where a link in its directory leads.

        ``caller`` is the task in whose name it may ask something of its run; None: it may not.
        What is ``hidden`` is masked. What its spool holds is passed on.
        """
        self.expect_new(secret, directory, reports, caller, hidden)
        link_whole(f"{directory}/{client.SOCKET_LINK}", self.path)
        self.hear_spool(secret)

    def expect_new(
        self,
        secret: str,
        directory: StrPath,
        reports: JobReports,
        caller: TaskId | None = None,
        hidden: tuple[str, ...] = (),
    ) -> None:
        """Lets an attempt that is about to start send messages, as ``expect`` does; its
        environment tells it where to (``client.SOCKET``)."""
        self._speakers[_digest(secret)] = Speaker(
            directory=directory,
            reports=reports,
            message_bytes_max=self.message_bytes_max,
            caller=caller,
            hidden=hidden,
        )

    def hear_spool(self, secret: str) -> None:
        """Passes on what the attempt spooled because it did not reach this socket."""
        speaker = self._speakers.get(_digest(secret))
        if speaker is not None:
            speaker.hear_spool()

    def forget(self, secret: str) -> None:
        """Passes on what an ended attempt spooled last, and hears nothing more of it."""
        speaker = self._speakers.pop(_digest(secret), None)
        if speaker is not None:
            speaker.hear_spool()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        user = _peer(writer)
        is_others = user != os.geteuid()  # then one of several, none of whom may take all
        most = CONNECTIONS_OF_OTHERS_MAX if is_others else CONNECTIONS_MAX
        is_heard = (
            self._connections[user] < most and self._connections.total() < CONNECTIONS_MAX
        )
        self._connections[user] += is_heard
        try:
            if is_heard:
                await self._answer_lines(reader, writer)
            else:
                await _answer(writer, refusal("too many connections; try again", client.BUSY))
        except (OSError, TimeoutError):
            pass  # the job went away, or holds a connection that it does not use
        finally:
            self._connections[user] -= is_heard
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer_lines(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            async with asyncio.timeout(SILENCE_SECONDS_MAX):
                try:
                    line = await reader.readline()
                except ValueError:
                    # What follows is the rest of a line that was never read: hang up.
                    most = self.message_bytes_max
                    await _answer(writer, refusal(f"the message has more than {most} bytes"))
                    return
            if not line:
                return
            # A call takes as long as it takes: the function that answers it has its own limit.
            answer = await self._take_in(line)
            async with asyncio.timeout(SILENCE_SECONDS_MAX):
                await _answer(writer, answer)

    async def _take_in(self, line: bytes) -> Answer:
        """Does what one line asks, and answers; the answer says if and why it was refused."""
        try:
            spoken = parse_request(line)
            # Found by its digest: how long the search takes says nothing about any secret.
            speaker = self._speakers.get(_digest(spoken.secret))
            if speaker is None:
                raise Refused(
                    "the job that this command belongs to has ended, so its messages are not "
                    "accepted any more; outside a job, name the task: tidewheel message RUN "
                    "POINT/NAME TEXT"
                )
            if spoken.call is not None:
                return {"answer": await self._call(speaker, spoken.call)}
            if spoken.progress is not None:
                speaker.reports.progress(spoken.progress)
            if spoken.message is not None:
                speaker.hear(spoken.message)
        except (Refused, Unavailable) as refused:
            return refusal(str(refused), refused.code)
        return {"ok": True}

    async def _call(self, speaker: Speaker, call: dict[str, object]) -> dict[str, object]:
        if self._calls is None or speaker.caller is None:
            raise Refused(
                "this job belongs to no run, and only jobs of a run may send calls; this job "
                "may only send messages"
            )
        with suppress(TimeoutError):  # without the store there is no answer either
            async with asyncio.timeout(SILENCE_SECONDS_MAX):
                await speaker.reports.told()  # a job that asks finds that it has started
        return await self._calls(speaker.caller, call)


def parse_request(line: bytes) -> JobRequest:
    """Returns the request in one line of the protocol.

    Raises Refused, with what would be accepted, if the line has another form.
    """
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise Refused("a message is one line of JSON") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("secret"), str):
        raise Refused('a message is a JSON object with a "secret"')
    if "call" in fields:
        if not isinstance(fields["call"], dict):
            raise Refused('"call" must be a JSON object')
        return JobRequest(secret=fields["secret"], call=fields["call"])
    text = fields.get("text") or ""
    output, progress = fields.get("output"), fields.get("progress")
    _check(text, output, progress, fields.get("values"))
    key = fields.get("key")
    if not isinstance(key, str) or not 0 < len(key) <= KEY_LENGTH_MAX:
        raise Refused(
            f'"key" must be a string of 1 to {KEY_LENGTH_MAX} characters, new each time'
        )
    values = fields.get("values")
    said_something = bool(text) or output is not None or values is not None
    return JobRequest(
        secret=fields["secret"],
        message=client.SpooledMessage(key=key, text=text, output=output, values=values)
        if said_something
        else None,
        progress=None if progress is None else float(progress),
    )


def _check(text: object, output: object, progress: object, values: object) -> None:
    if values is not None:
        if not isinstance(values, str):
            raise Refused('"values" must be a string that holds a JSON object')
        values_text(values)
    if not isinstance(text, str):
        raise Refused('"text" must be a string')
    if output is not None:
        finding = name_finding("output", output) if isinstance(output, str) else "not a string"
        if finding is not None:
            raise Refused(f'"output" must be a name: {finding}')
    if progress is not None:
        number = isinstance(progress, int | float) and not isinstance(progress, bool)
        if not number or not 0 <= progress <= 1:  # type: ignore[operator]
            raise Refused('"progress" must be a number from 0 to 1')
    if not text and output is None and progress is None and values is None:
        raise Refused('the message is empty: give "text", "output", "values" or "progress"')


def refusal(why: str, code: str = "refused") -> Answer:
    return {"refused": why, "code": code}


def _peer(writer: asyncio.StreamWriter) -> int:
    """Returns the user at the other end of a connection."""
    connection = writer.get_extra_info("socket")
    size = struct.calcsize("3i")
    facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, user, _ = struct.unpack("3i", facts)
    return int(user)


async def _answer(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(json.dumps(answer).encode() + b"\n")
    await writer.drain()


# Asked when a job begins and again when it has ended. Python's own: to have OpenSSL begin a
# digest costs more than all else here.
@lru_cache(maxsize=DIGESTS_KNOWN_MAX)
def _digest(secret: str) -> bytes:
    return hashlib.blake2b(secret.encode(errors="surrogatepass")).digest()


def _bind(path: Path) -> socket.socket:
    """Returns a socket that is bound to a path. The path may be longer than the 107 bytes that
    fit into an address."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        listening.close()
        raise
    finally:
        os.close(folder)
    return listening
