"""Calls functions that came with a workflow, never in this process (RELIABILITY S22).

One child per run (`function_server.py`) forks for each call; the first call starts it, and the
next after its death. Calls are numbered, so that any number of them may be under way.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tidewheel.lazy_dataclasses import dataclass

# It needs nothing but the standard library, so it starts quickly, and wherever we do.
CHILD_FILE = Path(__file__).with_name("function_server.py")
GRACE_SECONDS = 5.0  # after which the child itself is the one that hangs
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLimits:
    """Holds what one call may use, and how many calls there may be at once."""

    wall_seconds: float = 10.0
    memory_bytes: int = 4096 * _MIB
    answer_bytes: int = 256 * 1024
    calls_at_once_max: int = 8

    def __post_init__(self) -> None:
        assert min(self.wall_seconds, self.memory_bytes, self.answer_bytes) > 0
        assert self.calls_at_once_max > 0


LIMITS_DEFAULT = FunctionLimits()


@dataclass(frozen=True, slots=True)
class FunctionAnswer:
    """Holds what a function returned; `said` is the beginning of what it printed."""

    satisfied: bool
    results: Mapping[str, str]
    said: str = ""


@dataclass(frozen=True, slots=True)
class FunctionFailure:
    """Says why a function gave no answer; `said` is what it printed, then its traceback."""

    reason: str
    said: str = ""


class Functions:
    """Calls functions for one run: its own from `lib/python`, built-in and installed ones."""

    def __init__(
        self,
        run_directory: Path,
        environment: Mapping[str, str],
        limits: FunctionLimits = LIMITS_DEFAULT,
        *,
        library: Path | None = None,  # None: that of the run
    ) -> None:
        self._directory = run_directory
        self._library = library or run_directory / "lib" / "python"
        self._environment = dict(environment)
        self._limits = limits
        self._room = asyncio.Semaphore(limits.calls_at_once_max)
        self._starting = asyncio.Lock()
        self._child: _Child | None = None

    def is_own(self, function: str) -> bool:
        """Says whether the workflow brings a function of this name."""
        return any(
            (self._library / file).is_file()
            for file in (f"{function}.py", f"{function}/__init__.py")
        )

    async def call(
        self, function: str, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> FunctionAnswer | FunctionFailure:
        """Calls a function and returns its answer, or why there is none, within the limits."""
        asked = {
            "function": function,
            "arguments": list(arguments),
            "keywords": dict(keywords),
            "seconds": self._limits.wall_seconds,
        }
        async with self._room:
            try:
                child = await self._living_child()
            except OSError as error:
                return FunctionFailure(f"no process could be started for it: {error}")
            try:
                async with asyncio.timeout(self._limits.wall_seconds + GRACE_SECONDS):
                    answer = await child.ask(asked)
            except TimeoutError:
                child.kill()
                answer = {"failed": "it took too long"}
        return read_answer(answer, self._limits)

    async def close(self) -> None:
        """Ends the child and every call; a later call starts a new child."""
        child, self._child = self._child, None
        if child is not None:
            await child.close()

    async def _living_child(self) -> _Child:
        async with self._starting:
            if self._child is None or self._child.is_over:
                if self._child is not None:
                    await self._child.close()
                self._child = await _Child.start(
                    {
                        "library": str(self._library),
                        "memory_bytes": self._limits.memory_bytes,
                        "answer_bytes": self._limits.answer_bytes,
                    },
                    self._directory,
                    self._environment,
                    line_bytes_max=2 * self._limits.answer_bytes,
                )
            return self._child


def read_answer(
    answer: Mapping[str, object], limits: FunctionLimits
) -> FunctionAnswer | FunctionFailure:
    """Returns the answer in a message, which is not trusted: the function shares the process
    that wrote it."""
    said = str(answer.get("said", ""))
    results = answer.get("results")
    if "failed" in answer or not isinstance(results, dict):
        reason = str(answer.get("failed", "it gave no answer"))
        if reason == "it took too long":
            reason = f"it took more than {limits.wall_seconds:g} seconds"
        return FunctionFailure(
            reason, "\n".join(filter(None, (said, str(answer.get("trace", "")))))
        )
    texts = {str(key): str(value) for key, value in results.items()}
    return FunctionAnswer(answer.get("satisfied") is True, texts, said)


class _Child:
    """Holds the process that forks for calls, and who waits for which of its answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Mapping[str, object]]] = {}
        self._numbers = itertools.count(1)
        self._ear = asyncio.create_task(self._listen(), name="answers of functions")

    @classmethod
    async def start(
        cls,
        settings: Mapping[str, object],
        directory: Path,
        environment: Mapping[str, str],
        *,
        line_bytes_max: int,
    ) -> _Child:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the current folder is the workflow's, and its files are no modules of ours
            str(CHILD_FILE),
            json.dumps(settings),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=directory,
            env=dict(environment),
            # Not a session: it would be reaped as an orphan, by its session (processes.py).
            process_group=0,
            limit=line_bytes_max,
        )
        return cls(process)

    @property
    def is_over(self) -> bool:
        return self._ear.done()

    async def ask(self, asked: Mapping[str, object]) -> Mapping[str, object]:
        if self.is_over:
            return _DIED
        number = next(self._numbers)
        answer: asyncio.Future[Mapping[str, object]] = (
            asyncio.get_running_loop().create_future()
        )
        self._waiting[number] = answer
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({**asked, "call": number}).encode() + b"\n")
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                answer = json.loads(line)
                waiting = self._waiting.get(answer.pop("call"))
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except ValueError:
            pass  # a line that is too long or no JSON: whatever speaks there is of no use
        finally:
            self.kill()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_result(_DIED)

    def kill(self) -> None:
        """Kills the process; its forks die with it."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self._ear
        except TimeoutError:
            self.kill()
        await self._process.wait()


_DIED: Mapping[str, object] = {"failed": "the process that calls functions died"}
