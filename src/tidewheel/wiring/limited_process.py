"""Runs functions in other processes that have limits of CPU time and memory.

Theory of operation
-------------------
To read a giant definition takes many seconds of computing, during which a process of Python
does little else; and it may need more memory than there is. So it is done in a child: the
kernel ends it at its limits, it has the least claim to the processors, and nobody else waits
for it.
A child answers one call after the other, each a pickled function with its arguments, and ends
when its parent does, when it has been idle for a while, or when it has grown large.

Of each token and of each team (the first part of a name) one call is under way at a time, so
the giants of one wait for each other and for nobody else: ``Turns``. A call that nobody
waits for any more is ended with its child; its turn ends when the child is gone. Children are
begun and ended in threads, because the end of a large one takes a while.
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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from itertools import count
from typing import Any, BinaryIO, Generic, TypeVar, cast

import msgspec

from tidewheel.config import ProcessLimits
from tidewheel.errors import Refused, TidewheelError, Unavailable
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.wiring.machine import hide_memory

Result = TypeVar("Result")
Report = Callable[[Any], None]

PROCESSES_MAX = 4
IDLE_SECONDS = 60.0
TURN_SECONDS_MAX = 60.0  # that a call waits until the team's call before it has ended
RETIRED_BYTES = 256 * 1024 * 1024  # a child that has grown so large is not used again
NICENESS = 10
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
            f"other large definitions of this token or of {team!r} are being read, one at a "
            "time; try again soon"
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

    def end(self) -> None:
        """Tells the child to end at once, with whatever it started, and does not wait."""
        self.is_usable = False
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Ends the child at once, with whatever it started."""
        self.end()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class _Call(Generic[Result]):
    """Is one call in a child: that of the call before it, or a new one."""

    def __init__(self, process: LimitedProcess | None, work: Callable[[], Result]) -> None:
        self.process, self._work = process, work
        self._is_given_up = False

    def run(self, limits: ProcessLimits, name: str) -> Result:
        """Calls the function and returns what it does; a child that is of no more use has
        ended then. It is called in a thread."""
        if self.process is None:
            self.process = LimitedProcess(_harmless())
        is_answered = False
        try:
            if self._is_given_up:  # looked at after the child is known, and set before it
                raise ProcessDied(f"the caller of {name!r} stopped waiting")
            result = self.process.call(self._work, limits, name)
            is_answered = True
            return result
        except TidewheelError:
            is_answered = True
            raise
        finally:
            if not (is_answered and self.process.is_usable):
                self.process.kill()

    def give_up(self) -> None:
        """Ends the child, since nobody waits for it, and does not wait; from any thread."""
        self._is_given_up = True
        if self.process is not None:
            self.process.end()


class LimitedProcesses:
    """Holds the children of one event loop: a few at once, one for each token and team."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._idle: list[LimitedProcess] = []
        self._calls: set[_Call[Any]] = set()
        self._turns = Turns(PROCESSES_MAX, 1)
        self._threads: ThreadPoolExecutor | None = None

    async def run(
        self, name: str, work: Callable[[], Result], keys: Sequence[str] = ()
    ) -> Result:
        """Runs a function, which can be pickled, in a child, once it is the turn of who has
        these keys; without any, of the team to which the name belongs."""
        team = name.partition("/")[0]
        try:
            async with asyncio.timeout(TURN_SECONDS_MAX):
                turn = await self._turns.begin(keys or (team,))
        except TimeoutError:
            raise NotOurTurn(team) from None
        if self._threads is None:
            # One more: a child that is idle no longer is ended by a thread, too.
            self._threads = ThreadPoolExecutor(PROCESSES_MAX + 1, "limited-process")
        call = _Call(self._idle.pop() if self._idle else None, work)
        self._calls.add(call)
        loop = asyncio.get_running_loop()
        future = self._threads.submit(call.run, self._limits, name)
        future.add_done_callback(lambda _: call_in(loop, self._is_over, call, turn))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            call.give_up()
            raise

    def close(self) -> None:
        """Ends all children."""
        for call in self._calls:
            call.give_up()
        while self._idle:
            self._idle.pop().kill()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_over(self, call: _Call[Any], turn: Turn) -> None:
        self._calls.discard(call)
        process = call.process
        if process is not None and process.is_usable:
            self._idle.append(process)
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._dismiss, process)
        elif process is not None:  # given up before it began, perhaps
            self._kill(process)
        turn.end()

    def _dismiss(self, process: LimitedProcess) -> None:
        if process in self._idle:  # it may have worked since; then its last call ends it later
            self._idle.remove(process)
            self._kill(process)

    def _kill(self, process: LimitedProcess) -> None:
        assert self._threads is not None
        with suppress(RuntimeError):  # closed meanwhile
            self._threads.submit(process.kill)


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
        raise pickle.UnpicklingError(f"{module}.{name} is not a value")


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


# Turns: work that takes long begins in a fair order, a few pieces at a time.
#
# Each piece of work is asked for by somebody, who is known by keys, from the widest on: a team
# and its token, or a token and the names that it asks for. Of each key only so many pieces are
# at work at once. Whenever a place is free, the piece goes on whose first key was served
# longest ago; between pieces of the same first key the next key decides, then who came first.
# So nobody gets more turns by asking more often, nor by inventing names: a new name of a token
# comes behind the token.

KEYS_MAX = 10_000  # whose last turns are remembered


class Turn:
    """Is a place to work; ``end`` gives it back, once."""

    def __init__(self, turns: Turns, keys: tuple[str, ...]) -> None:
        self._turns, self._keys = turns, keys
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._turns.give_back(self._keys)


@dataclass(slots=True, eq=False)
class _Waiting:
    keys: tuple[str, ...]
    number: int
    granted: asyncio.Future[Turn]


class Turns:
    """Has so many places, of which each key may have some; all calls are of one event loop."""

    def __init__(self, places: int, each_max: int) -> None:
        self._free, self._each_max = places, each_max
        self._held: Counter[str] = Counter()
        self._last: dict[str, int] = {}  # when each key was served last, the oldest first
        self._waiting: dict[_Waiting, None] = {}
        self._numbers = count(1)

    @property
    def held(self) -> int:
        """Returns how many pieces of work are under way, counted by key."""
        return sum(self._held.values())

    async def begin(self, keys: Sequence[str]) -> Turn:
        """Waits until it is the turn of who has these keys; whoever gets a turn has to end
        it."""
        one = _Waiting(
            tuple(dict.fromkeys(keys)),
            next(self._numbers),
            asyncio.get_running_loop().create_future(),
        )
        self._waiting[one] = None
        self._go_on()
        try:
            return await one.granted
        except asyncio.CancelledError:
            if one.granted.done() and not one.granted.cancelled():
                one.granted.result().end()
            raise
        finally:
            self._waiting.pop(one, None)

    def give_back(self, keys: tuple[str, ...]) -> None:
        """Frees the place of a turn that is over."""
        self._free += 1
        self._held.subtract(keys)
        for key in keys:
            if not self._held[key]:
                del self._held[key]
        self._go_on()

    def _go_on(self) -> None:
        while self._free and (found := self._next()) is not None:
            del self._waiting[found]
            self._free -= 1
            self._held.update(found.keys)
            for key in found.keys:
                self._last.pop(key, None)
                self._last[key] = next(self._numbers)
            while len(self._last) > KEYS_MAX:
                del self._last[next(iter(self._last))]
            found.granted.set_result(Turn(self, found.keys))

    def _next(self) -> _Waiting | None:
        able = [
            one
            for one in self._waiting
            if not one.granted.done()
            and all(self._held[key] < self._each_max for key in one.keys)
        ]
        return min(able, key=self._rank, default=None)

    def _rank(self, one: _Waiting) -> tuple[list[int], int]:
        return [self._last.get(key, 0) for key in one.keys], one.number


def call_in(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *facts: object) -> None:
    """Calls a function in an event loop, from any thread; not if the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what, *facts)


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


def _resident_bytes() -> int:
    """Returns how much memory this process has; the kernel's maximum counts its parent, too."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main() -> None:
    """Answers calls until there are no more, or this process has grown large."""
    hide_memory()  # before a call is read, which may have the password of a database
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    os.nice(NICENESS)
    _outlet.file = answers
    calls: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(calls,), daemon=True).start()
    with suppress(BrokenPipeError):  # the parent has gone
        _answer_calls(calls, answers)
    os._exit(0)  # the thread that reads would be in the way of an orderly end


def _answer_calls(calls: queue.SimpleQueue[bytes | None], answers: BinaryIO) -> None:
    """Answers calls until there are none, or this process has grown large."""
    while (call := calls.get()) is not None:
        answer = _called(call)
        is_large = _resident_bytes() > RETIRED_BYTES
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
