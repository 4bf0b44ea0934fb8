"""Calls people's xtrigger functions, each in a fork of this process; `functions.py` starts it.

Theory of operation
-------------------
This process imports nothing of a workflow. A request is a line of JSON on stdin; for each there
is a fork, which loads the function, calls it and writes what it answered into a pipe. So a call
is as fresh as one in a process of its own (a module that looks at the clock when it is loaded
does so again), costs a fork instead of an interpreter, and one that hangs or breaks everything
harms no other. What a fork leaves running is killed with its process group. When stdin ends, so
does everything here, and when this process dies, the kernel kills the forks.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import random
import resource
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import field
from importlib import import_module, util
from pathlib import Path

from tidewheel.lazy_dataclasses import dataclass

READ_BYTES = 65_536
SAID_CHARACTERS_MAX = 2_000  # of what a function printed
TRACEBACK_LINES_MAX = 12
RESULTS_MAX = 1_000
ENTRY_POINTS = ("tidewheel.xtriggers", "cylc.xtriggers")
_PR_SET_PDEATHSIG = 1
_COLOURS = ("red", "orange", "yellow", "green", "blue", "indigo", "violet")
_SIZES = ("tiny", "small", "medium", "large", "huge", "humongous")

Function = Callable[..., object]


@dataclass(slots=True)
class _Call:
    number: int
    pid: int
    reader: int
    give_up_at: float
    answer: bytearray = field(default_factory=bytearray)


class FunctionServer:
    """Reads requests, forks for each, and answers, in one thread and one loop."""

    def __init__(self, ask: int, answer: int, settings: Mapping[str, object]) -> None:
        self._ask = ask
        self._answer = answer
        self._library = Path(str(settings["library"]))
        self._memory_bytes = int(str(settings["memory_bytes"]))
        self._answer_bytes = int(str(settings["answer_bytes"]))
        self._selector = selectors.DefaultSelector()
        self._calls: dict[int, _Call] = {}  # by the descriptor of the pipe
        self._heard = bytearray()

    def serve(self) -> None:
        self._selector.register(self._ask, selectors.EVENT_READ)
        while True:
            earliest = min((call.give_up_at for call in self._calls.values()), default=None)
            patience = None if earliest is None else max(0.0, earliest - time.monotonic())
            for key, _ in self._selector.select(patience):
                if key.fd != self._ask:
                    self._read_answer(self._calls[key.fd])
                elif not self._read_requests():
                    for call in list(self._calls.values()):
                        self._end(call)
                    return
            now = time.monotonic()
            for call in [one for one in self._calls.values() if one.give_up_at <= now]:
                self._end(call)
                self._tell(call.number, {"failed": "it took too long"})

    def _read_requests(self) -> bool:
        """Begins the calls that are asked for; returns False when nobody asks any more."""
        read = os.read(self._ask, READ_BYTES)
        if not read:
            return False
        self._heard += read
        *lines, rest = self._heard.split(b"\n")
        self._heard = rest
        for line in lines:
            self._begin(json.loads(line))
        return True

    def _begin(self, request: dict[str, object]) -> None:
        reader, writer = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(reader)
            os.close(writer)
            failed = f"no process could be started for it: {error}"
            self._tell(int(str(request["call"])), {"failed": failed})
            return
        if pid == 0:
            os.close(self._ask)
            os.close(self._answer)
            self._call_and_exit(request, writer)
        os.close(writer)
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)  # here, too: the group may be killed soon
        give_up_at = time.monotonic() + float(str(request["seconds"]))
        self._calls[reader] = _Call(int(str(request["call"])), pid, reader, give_up_at)
        self._selector.register(reader, selectors.EVENT_READ)

    def _call_and_exit(self, request: dict[str, object], writer: int) -> None:
        """Calls the function in the fork, writes the answer, and ends the fork in any case."""
        try:
            # A process group and a memory limit of its own; it dies with the server.
            os.setpgid(0, 0)
            die_with_parent()
            most = self._memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            text = json.dumps(answer_of(request, self._library)).encode()
            if len(text) > self._answer_bytes:
                text = json.dumps({"failed": f"it answered {len(text)} bytes"}).encode()
            while text:
                text = text[os.write(writer, text) :]
        finally:
            os._exit(0)

    def _read_answer(self, call: _Call) -> None:
        read = os.read(call.reader, READ_BYTES)
        call.answer += read
        if read and len(call.answer) <= self._answer_bytes:
            return
        status = self._end(call)
        try:
            answer = json.loads(call.answer)
        except ValueError:
            answer = {"failed": f"it ended without an answer ({_ending(status)})"}
        self._tell(call.number, answer)

    def _end(self, call: _Call) -> int:
        """Kills what is left of a call, and returns how its process ended."""
        self._selector.unregister(call.reader)
        os.close(call.reader)
        del self._calls[call.reader]
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(call.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(call.pid, 0)[1])

    def _tell(self, number: int, answer: dict[str, object]) -> None:
        text = json.dumps({**answer, "call": number}).encode() + b"\n"
        while text:
            text = text[os.write(self._answer, text) :]


def _ending(status: int) -> str:
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class _Said(io.StringIO):
    """Keeps the beginning of what a function prints."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, SAID_CHARACTERS_MAX - self.tell())])
        return len(text)


def answer_of(request: Mapping[str, object], library: Path) -> dict[str, object]:
    """Calls a function and returns what to answer; where it fails, the answer says so."""
    name, arguments, keywords = (request[one] for one in ("function", "arguments", "keywords"))
    assert isinstance(arguments, list)
    assert isinstance(keywords, dict)
    said = _Said()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            answer = _checked(find_function(str(name), library)(*arguments, **keywords))
        except MemoryError:
            answer = {"failed": "it needed more memory than it may have"}
        except (Exception, SystemExit) as error:
            lines = traceback.format_exc().splitlines()[-TRACEBACK_LINES_MAX:]
            kind = type(error).__name__
            answer = {"failed": f"it raised {kind}: {error}", "trace": "\n".join(lines)}
    return {**answer, "said": said.getvalue()}


def _checked(answered: object) -> dict[str, object]:
    """Returns the answer for (satisfied, results); for anything else one that says `failed`."""
    wanted = "it must return (True or False, a dictionary of results)"
    if not isinstance(answered, tuple | list) or len(answered) != 2:  # noqa: PLR2004 - a pair
        return {"failed": f"it returned {_short(answered)}; {wanted}"}
    satisfied, results = answered
    if not isinstance(results, dict | None):
        return {"failed": f"its results are {_short(results)}; {wanted}"}
    if results is not None and len(results) > RESULTS_MAX:
        seen = f"it returned {len(results)} results"
        return {"failed": f"{seen}; at most {RESULTS_MAX} are accepted"}
    texts = {str(key): str(value) for key, value in (results or {}).items()}
    return {"satisfied": bool(satisfied), "results": texts}


def _short(value: object) -> str:
    return f"{value!r:.100}"


def find_function(name: str, library: Path) -> Function:
    """Returns a function: the workflow's own, else a built-in one, else an installed one.

    Raises LookupError if there is none.
    """
    sys.path.insert(0, str(library))
    for file in (library / f"{name}.py", library / name / "__init__.py"):
        if file.is_file():
            return _load(name, file)
    if name in BUILT_IN:
        return BUILT_IN[name]
    from importlib import metadata

    for group in ENTRY_POINTS:
        for point in metadata.entry_points(group=group, name=name):
            found = point.load()
            function: Function = found if callable(found) else getattr(found, name)
            return function
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        raise LookupError(
            f"there is no function {name}: neither {library / name}.py, nor built in "
            f"({', '.join(BUILT_IN)}), nor installed beside tidewheel"
        ) from error
    found_there: Function = getattr(module, name)
    return found_there


def _load(name: str, file: Path) -> Function:
    spec = util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise LookupError(f"{file} has no function {name}")
    found: Function = function
    return found


def echo(*arguments: object, **keywords: object) -> tuple[object, dict[str, object]]:
    """Returns whether it is satisfied, which is `succeed`, and the keywords as its results."""
    print("echo:", arguments, keywords)  # noqa: T201 - that is what it is for
    return keywords.get("succeed"), keywords


def xrandom(percent: float, secs: float = 0, _: object = None) -> tuple[bool, dict[str, str]]:
    """Returns after `secs` seconds that it is satisfied, in `percent` of a hundred calls."""
    time.sleep(float(secs))
    if random.random() * 100 >= float(percent):
        return False, {}
    return True, {"COLOR": random.choice(_COLOURS), "SIZE": random.choice(_SIZES)}


BUILT_IN: dict[str, Function] = {"echo": echo, "xrandom": xrandom}


def call_once() -> None:
    """Makes the call that the spec of this task names; its answer is the task's values.

    A server in a fork makes it, as for a scheduler.
    """
    request = json.loads(Path(os.environ["TIDEWHEEL_SPEC_FILE"]).read_bytes())
    library = Path(os.environ["TIDEWHEEL_RUN_DIR"], "lib", "python")
    settings = {name: request[name] for name in ("memory_bytes", "answer_bytes")}
    (ask, asking), (answering, answer) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(asking)
        os.close(answering)
        try:
            FunctionServer(ask, answer, settings | {"library": str(library)}).serve()
        finally:
            os._exit(0)
    os.close(ask)
    os.close(answer)
    with open(asking, "wb") as questions, open(answering, "rb") as answers:
        questions.write(json.dumps(request | {"call": 1}).encode() + b"\n")
        questions.flush()
        Path(os.environ["TIDEWHEEL_OUTPUTS"]).write_bytes(answers.readline())


def main() -> None:
    """Serves over what were stdin and stdout, which a function that prints must not reach.

    Without arguments it makes the one call that this process was started for.
    """
    if len(sys.argv) == 1:
        call_once()
        return
    die_with_parent()
    ask, answer = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    FunctionServer(ask, answer, json.loads(sys.argv[1])).serve()


if __name__ == "__main__":
    main()
