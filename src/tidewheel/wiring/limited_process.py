"""Runs functions in other processes that have limits of CPU time and memory.

Theory of operation
-------------------
To read a giant definition takes many seconds of computing, during which a process of Python
does little else; and it may need more memory than there is. So it is done in a child: the
kernel ends it at its limits, it has the least claim to the processors, and nobody else waits
for it.
A child answers one call after the other, each a pickled function with its arguments, and ends
when its parent does, when it has been idle for a while, or when it has grown large.

Whose turn it is follows the first part of a name: of each team one call is under way at a time,
and so the giants of one team wait for each other and for nobody else.
"""

from __future__ import annotations

import asyncio
import io
import os
import pickle
import queue
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from tidewheel.config import ProcessLimits
from tidewheel.errors import Refused, TidewheelError, Unavailable
from tidewheel.wiring.machine import hide_memory

Result = TypeVar("Result")
Report = Callable[[Any], None]

PROCESSES_MAX = 4
IDLE_SECONDS = 60.0
TURN_SECONDS_MAX = 60.0  # that a call waits until the team's call before it has ended
RETIRED_BYTES = 256 * 1024 * 1024  # a child that has grown so large is not used again
NICENESS = 5
_LENGTH = struct.Struct("!Q")
_HARMLESS_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "HOME", "PYTHONPATH")
_REPORT, _DONE, _REFUSED, _BROKEN, _MEMORY, _LAST = range(6)


class LimitHit(Refused):
    """A call needed more of something than its process may have."""

    code = "too_large"
    http_status = 422

    def __init__(self, what: str, name: str) -> None:
        self.what, self.name = what, name
        super().__init__(
            f"{name!r} needs more than {what} to be read; make the definition smaller (fewer "
            "values of parameters, fewer tasks), or split it into several"
        )


class NotOurTurn(Unavailable):
    """Others are served first."""

    code = "overloaded"

    def __init__(self, team: str) -> None:
        super().__init__(
            f"other large definitions of {team!r} are being read, one at a time; try again soon"
        )


class ProcessDied(RuntimeError):
    """A child ended without an answer."""


class LimitedProcess:
    """Is one child; ``call`` blocks, and is to be called in a thread."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.is_usable = True  # for another call
        self._process = subprocess.Popen(
            # -P: files of the current folder are no modules of ours.
            [sys.executable, "-P", "-m", "tidewheel.wiring.limited_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,  # signals of a terminal are for the parent
        )

    def call(
        self,
        work: Callable[[], Result],
        limits: ProcessLimits,
        name: str = "",
        on_report: Report | None = None,
    ) -> Result:
        """Has the child call a function, and returns its result or raises what it raised;
        LimitHit if it needed too much, ProcessDied if it ended otherwise."""
        inlet, outlet = self._process.stdin, self._process.stdout
        assert inlet is not None and outlet is not None
        try:
            _send(cast("BinaryIO", inlet), (limits, work))
            while True:
                kind, told = _receive(cast("BinaryIO", outlet))
                if kind == _LAST:
                    self.is_usable = False
                elif kind != _REPORT:
                    break
                elif on_report is not None:
                    on_report(told)
        except (EOFError, BrokenPipeError):
            self.is_usable = False
            status = self._process.wait()
            if status == -signal.SIGXCPU and limits.cpu_seconds is not None:
                raise LimitHit(f"{limits.cpu_seconds:g} s of CPU time", name) from None
            raise ProcessDied(f"the process for {name!r} ended with status {status}") from None
        if kind == _REFUSED:
            raise _remade(*told)
        if kind == _MEMORY:
            self.is_usable = False
            most = (limits.memory_bytes or 0) // 1024**2
            raise LimitHit(f"{most} MiB of memory", name)
        if kind == _BROKEN:
            raise RuntimeError(f"in the process for {name!r}: {told}")
        return cast("Result", told)

    def ask_stop(self) -> None:
        """Asks the child to stop in order; what it does then is up to the function."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the child at once, with whatever it started."""
        self.is_usable = False
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class LimitedProcesses:
    """Holds the children of one event loop: a few at once, one for each team."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._idle: list[LimitedProcess] = []
        self._places = asyncio.Semaphore(PROCESSES_MAX)
        self._threads: ThreadPoolExecutor | None = None
        self._turns: dict[str, asyncio.Lock] = {}
        self._users: Counter[str] = Counter()

    async def run(self, name: str, work: Callable[[], Result]) -> Result:
        """Runs a function, which can be pickled, in a child, once it is the turn of the team to
        which the name belongs."""
        async with self._turn(name.partition("/")[0]), self._places:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(PROCESSES_MAX + 1, "limited-process")
            process = self._idle.pop() if self._idle else LimitedProcess(_harmless())
            loop, is_answered = asyncio.get_running_loop(), False
            try:
                call = partial(process.call, work, self._limits, name)
                result = await loop.run_in_executor(self._threads, call)
                is_answered = True
                return result
            except TidewheelError:
                is_answered = True
                raise
            finally:
                if is_answered and process.is_usable:
                    self._idle.append(process)
                    loop.call_later(IDLE_SECONDS, self._dismiss, process)
                else:
                    process.kill()

    def close(self) -> None:
        """Ends all children."""
        while self._idle:
            self._idle.pop().kill()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _dismiss(self, process: LimitedProcess) -> None:
        if process in self._idle:  # it may have worked since; then its last call ends it later
            self._idle.remove(process)
            process.kill()

    @asynccontextmanager
    async def _turn(self, team: str) -> AsyncIterator[None]:
        lock = self._turns.setdefault(team, asyncio.Lock())
        self._users[team] += 1
        try:
            try:
                async with asyncio.timeout(TURN_SECONDS_MAX):
                    await lock.acquire()
            except TimeoutError:
                raise NotOurTurn(team) from None
            try:
                yield
            finally:
                lock.release()
        finally:
            self._users[team] -= 1
            if not self._users[team]:
                del self._users[team], self._turns[team]


def _harmless() -> dict[str, str]:
    """Returns an environment without addresses and passwords: definitions are strangers'."""
    return {name: os.environ[name] for name in _HARMLESS_ENVIRONMENT if name in os.environ}


def _remade(kind: type[TidewheelError], arguments: tuple[object, ...], facts: Any) -> Any:  # noqa: ANN401 - of any error
    """Returns an error as it was raised in the child."""
    error = kind.__new__(kind)
    error.args = arguments
    vars(error).update(facts)
    return error


def _send(file: BinaryIO, message: object) -> None:
    packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    file.write(_LENGTH.pack(len(packed)) + packed)
    file.flush()


_PLAIN = {
    "builtins": {"set", "frozenset", "bytearray", "complex", "range", "slice"},
    "collections": {"OrderedDict", "deque", "Counter", "defaultdict"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "pathlib": {"Path", "PosixPath", "PurePath", "PurePosixPath"},
}


class _Answer(pickle.Unpickler):
    """Reads what a child answers: values of plain types and of tidewheel's own, nothing that
    does anything when it is made. The child reads what strangers wrote, and is believed no more
    than they."""

    def find_class(self, module: str, name: str) -> type:
        # A name with a dot would lead on, through what a module has imported.
        if "." not in name and (
            module.startswith("tidewheel.") or name in _PLAIN.get(module, ())
        ):
            found = super().find_class(module, name)
            if module in _PLAIN or (_is_value(found) and found.__module__ == module):
                return cast("type", found)
        raise pickle.UnpicklingError(f"{module}.{name} is no value")


def _is_value(kind: object) -> bool:
    return isinstance(kind, type) and (
        is_dataclass(kind)
        or issubclass(kind, Enum | BaseException | tuple | dict | frozenset | msgspec.Struct)
    )


def _receive(file: BinaryIO) -> Any:  # noqa: ANN401 - whatever was sent
    return _Answer(io.BytesIO(_received(file))).load()


def _received(file: BinaryIO) -> bytes:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    size = _LENGTH.unpack(head)[0]
    packed = file.read(size)
    if len(packed) < size:
        raise EOFError
    return packed


# ---- in the child ----


@dataclass(slots=True)
class _Outlet:
    """Tells the parent what happens during a call."""

    file: BinaryIO | None = None


_outlet = _Outlet()


def report(what: object) -> None:
    """Tells the parent something while the function that it had called is at work."""
    if _outlet.file is not None:
        _send(_outlet.file, (_REPORT, what))


def _limit(limits: ProcessLimits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    if limits.cpu_seconds is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime + limits.cpu_seconds) + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def _called(call: bytes) -> tuple[int, object]:
    try:
        limits, work = pickle.loads(call)
        _limit(limits)
        return _DONE, work()
    except MemoryError:
        return _MEMORY, None
    except TidewheelError as error:
        return _REFUSED, (type(error), error.args, vars(error))
    except Exception as error:
        return _BROKEN, repr(error)


def main() -> None:
    """Answers calls until there are no more, or this process has grown large."""
    hide_memory()  # before a call is read, which may have the password of a database
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    os.nice(NICENESS)
    _outlet.file = answers
    calls: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(calls,), daemon=True).start()
    while (call := calls.get()) is not None:
        answer = _called(call)
        is_large = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > RETIRED_BYTES
        if is_large:
            _send(answers, (_LAST, None))
        try:
            _send(answers, answer)
        except MemoryError:
            _send(answers, (_MEMORY, None))
        except Exception as error:  # the result cannot be pickled
            _send(answers, (_BROKEN, repr(error)))
        if is_large:
            break
    os._exit(0)  # the thread that reads would be in the way of an orderly end


def _hear(calls: queue.SimpleQueue[bytes | None]) -> None:
    """Reads calls; when the parent has gone, asks whatever is at work to stop."""
    with suppress(EOFError):
        while True:
            calls.put(_received(cast("BinaryIO", sys.stdin.buffer)))
    calls.put(None)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    # Not as __main__: functions that are called here import this module by its name.
    import_module("tidewheel.wiring.limited_process").main()
