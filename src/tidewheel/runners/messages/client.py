"""Sends messages of a job to its worker: the code behind ``tidewheel message``.

It imports only the standard library, and little of it: a job may say something every second,
and the import is most of the cost.

The spool, the file ``job.messages``, has the messages of an attempt in their order. A worker
writes each message there before it passes it on; a job that finds no worker writes there by
itself. So nothing said is lost with a worker, and an adopter that reads from the first line
meets the same messages in the same order. A message that was written twice, because its first
writer was not heard to answer, has the same key twice and counts once.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from enum import Enum
from pathlib import Path

from tidewheel.errors import Declined, PayloadTooLarge, Refused, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.sanitize import masked, masked_texts, secrets_in

SPOOL_NAME = "job.messages"


class SpooledMessage(NamedTuple):
    """Holds one message of a job; ``key`` tells a repeated message from a second one.

    It is a tuple, as ``dataclasses`` would be a third of what a job's command has to import.
    """

    key: str
    text: str
    output: str | None = None
    values: str | None = None  # JSON text of an object

    def masked(self, hidden: Iterable[str]) -> SpooledMessage:
        """Returns the message without secrets."""
        output = None if self.output is None else masked(self.output, hidden)
        values = None if self.values is None else masked(self.values, hidden)
        return self._replace(text=masked(self.text, hidden), output=output, values=values)


def append(directory: str | Path, message: SpooledMessage) -> None:
    """Adds a message to the spool by one write, so that lines of several writers never mix."""
    # The newline before it ends a line that a full disk left torn.
    line = f"\n{json.dumps(message)}\n".encode()
    # Where a job has put a pipe, its worker must not wait for a reader.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(f"{directory}/{SPOOL_NAME}", flags, 0o600)
    try:
        if os.write(descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))
    finally:
        os.close(descriptor)


SOCKET = "TIDEWHEEL_SOCKET"  # in a job's environment: where the worker listens that started it
SOCKET_LINK = (
    "job.socket"  # to the socket of an adopter, or of whoever tells it by no environment
)
MESSAGE_LIMIT = "TIDEWHEEL_MESSAGE_BYTES_MAX"  # in a job's environment
REPLY_BYTES_MAX = 4096
REPLY_SECONDS_MAX = 10.0
CALL_REPLY_BYTES_MAX = 64 * 1024 * 1024
CALL_SECONDS_MAX = 90.0  # a worker answers sooner, if only by giving up
BUSY = "busy"  # the code of an answer: more jobs speak at once than a worker hears
BUSY_PAUSES_SECONDS = (0.1, 0.3, 1.0, 2.0)
# A worker that was killed has a successor soon, if the run is carried on at all.
PATIENCE_SECONDS = 60.0
KNOCK_SECONDS = 0.2


NOBODY_THERE = (ConnectionRefusedError, FileNotFoundError)
# The worker hung up before it had read the request to its end, so nothing was done: a job that
# is turned away may notice that before the reason reaches it. Or so many want to be heard that
# there is no place left to wait in.
NOT_HEARD = (BrokenPipeError, ConnectionResetError, BlockingIOError)
REPEATABLE = ("broadcast", "hold", "release", "pause", "resume", "poll", "reload")


class Delivery(Enum):
    """Says whether a worker has a message, the spool keeps it, or it was dropped."""

    ACCEPTED = "accepted"  # the worker has it
    SPOOLED = "spooled"  # no worker answered; the next one will find it in the spool
    DROPPED = "dropped"  # no worker answered, and it was progress alone: soon out of date


def send_message(  # noqa: PLR0913 - the parts of a message
    directory: Path,
    secret: str,
    *,
    text: str = "",
    output: str | None = None,
    values: str | None = None,
    progress: float | None = None,
    text_bytes_max: int | None = None,
) -> Delivery:
    """Sends a message for the attempt in this directory; raises Refused if the worker says no.

    If the limit on messages is given, PayloadTooLarge is raised before anything is sent or
    kept.
    """
    size = len(text.encode(errors="replace"))
    if text_bytes_max is not None and size > text_bytes_max:
        raise PayloadTooLarge("the message", size, text_bytes_max)
    said = SpooledMessage(key=os.urandom(12).hex(), text=text, output=output, values=values)
    if secrets := secrets_in(os.environ):
        said = said.masked(masked_texts(secrets))
    request: dict[str, object] = {
        "secret": secret,
        "key": said.key,
        "text": said.text,
        "output": said.output,
        "values": said.values,
        "progress": progress,
    }
    try:
        answer = _ask(directory, request)
    except (OSError, ValueError):
        return _spool(directory, said)
    if "refused" in answer:
        raise Refused(str(answer["refused"]))
    return Delivery.ACCEPTED


def call_run(
    directory: Path,
    secret: str,
    call: dict[str, object],
    *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> dict[str, object]:
    """Asks something of the run to which the job in this directory belongs; returns the answer.

    If no worker is there, one is waited for. A worker that dies before it has answered may have
    passed a command on: only what does no harm twice is sent again, else Unavailable is raised.
    """
    request: dict[str, object] = {"secret": secret, "key": os.urandom(12).hex(), "call": call}
    command = call.get("command")
    verb = command.get("verb") if isinstance(command, dict) else None
    can_be_said_twice = command is None or verb in REPEATABLE
    give_up_at = time.monotonic() + patience_seconds
    answer: dict[str, object] | None = None
    while answer is None:
        try:
            answer = _ask(directory, request, CALL_SECONDS_MAX, CALL_REPLY_BYTES_MAX)
        except (OSError, ValueError) as error:
            may_repeat = isinstance(error, NOBODY_THERE) or can_be_said_twice
            if not may_repeat or time.monotonic() >= give_up_at:
                is_read = isinstance(error, ValueError)
                seen = "gave no usable answer" if is_read else "does not answer"
                raise Unavailable(
                    f"the worker of this job {seen} ({error}); check whether the request was "
                    "carried out (tidewheel show RUN --history) before you repeat it"
                ) from error
            time.sleep(KNOCK_SECONDS)
    if "refused" in answer:
        kind = Declined if answer.get("code") == Declined.code else Refused
        raise kind(str(answer["refused"]))
    said = answer.get("answer")
    return said if isinstance(said, dict) else {}


def _spool(directory: Path, said: SpooledMessage) -> Delivery:
    if not said.text and said.output is None and said.values is None:
        return Delivery.DROPPED
    try:
        append(directory, said)
    except OSError as error:
        raise Unavailable(
            f"no worker answers, and the message cannot be kept in {directory}: {error}"
        ) from error
    return Delivery.SPOOLED


def _ask(
    directory: Path,
    request: dict[str, object],
    seconds_max: float = REPLY_SECONDS_MAX,
    bytes_max: int = REPLY_BYTES_MAX,
) -> dict[str, object]:
    for pause in (*BUSY_PAUSES_SECONDS, None):
        with (
            suppress(*NOT_HEARD),
            closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection,
        ):
            connection.settimeout(seconds_max)
            _connect(connection, directory)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as replies:
                answer = json.loads(replies.readline(bytes_max))
            if not isinstance(answer, dict):
                raise ValueError("its answer is not a JSON object")
            if answer.get("code") != BUSY:
                return answer
        if pause is not None:
            time.sleep(pause)
    raise OSError("it has too many connections from jobs")


def _connect(connection: socket.socket, directory: Path) -> None:
    """Connects to the worker's socket: that of an adopter, if there is one."""
    try:
        _connect_within(connection, str(directory), SOCKET_LINK)
    except FileNotFoundError:
        if SOCKET not in os.environ:
            raise
        _connect_within(connection, *os.path.split(os.environ[SOCKET]))


def _connect_within(connection: socket.socket, directory: str, name: str) -> None:
    """Connects to a socket in a directory. The whole path may be longer than the 107 bytes that
    fit into an address."""
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{name}")
    finally:
        os.close(folder)
