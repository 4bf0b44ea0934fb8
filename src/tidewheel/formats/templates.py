"""Renders Jinja2 in a process of its own, which may use little time and memory.

Theory of operation: a template can loop for ever, fill the memory and, through custom filters,
run any code. So it never runs here: a child process gets the job as JSON, limits itself before
it loads anything that the template can reach, and answers in JSON. If it does not answer, it is
killed with everything it started. Nothing of Jinja2 is imported on this side.

Files: both directions are anonymous memory files, so a large text can neither block nor flood a
pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from tidewheel.formats.growth import go_on
from tidewheel.lazy_dataclasses import dataclass

Answer = TypeVar("Answer")

CHILD_MODULE = "tidewheel.formats.flow_cylc.template_environment"
# A stranger's template must not learn what is in our environment.
_HARMLESS_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderLimits:
    """Limits what one rendering may use.

    ``cpu_seconds`` is processor time, so that no template fails because the machine is busy. A
    template that sleeps is ended after ``idle_seconds`` all the same.
    """

    cpu_seconds: float = 1.0
    idle_seconds: float = 1.8
    wall_seconds: float = 60.0
    memory_bytes: int = 256 * 1024 * 1024
    output_bytes: int = 8_000_000


# Jinja2 needs some five millionths of a second to compile a character, up to three times.
_CPU_SECONDS_PER_CHARACTER = 15e-6
_CPU_SECONDS_MAX = 20.0
_LOOK_AGAIN_SECONDS = 0.1


def limits_for(text: str, more_seconds: float = 0.0) -> RenderLimits:
    """Returns the limits for a template: the longer its text, the more time it may take.

    The rest does not grow, because an endless template can be short.
    """
    cpu = min(_CPU_SECONDS_MAX, 1.0 + _CPU_SECONDS_PER_CHARACTER * len(text))
    return RenderLimits(
        cpu_seconds=cpu + more_seconds,
        idle_seconds=max(1.8, cpu + 0.3) + more_seconds,
        wall_seconds=40 * (cpu + more_seconds),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateJob:
    """Holds a text to render.

    ``variables`` are Python literals that the text itself knows; ``names`` are known in the
    files that it imports, too.
    """

    text: str
    folder: Path
    variables: Mapping[str, object] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    code_trusted: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """Holds lines and, for each, file and line of the template that made it (0: unknown)."""

    lines: tuple[str, ...]
    origins: tuple[tuple[int, int], ...]
    files: tuple[str, ...]  # the first one is the job's own text
    names: frozenset[str] = frozenset()  # that these files look up


@dataclass(frozen=True, slots=True)
class RenderFailure:
    """Says why there is no text, and where; ``file`` is empty for the job's own text."""

    code: str
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0


def render(job: TemplateJob) -> Rendered | RenderFailure:
    """Returns the rendered text, or why there is none, within the limits."""
    request = {
        "text": job.text,
        "folder": str(job.folder),
        "variables": {name: repr(value) for name, value in job.variables.items()},
        "names": dict(job.names),
        "code_trusted": job.code_trusted,
    }
    child = RenderChild(CHILD_MODULE, job.folder, code_trusted=job.code_trusted)
    return ask_child(child, request, limits_for(job.text), _parse_answer)


@dataclass(frozen=True, slots=True)
class RenderChild:
    """Says which module renders, in which folder, and whether it may see our environment."""

    module: str
    folder: Path
    code_trusted: bool = False


def ask_child(
    child: RenderChild,
    request: Mapping[str, object],
    limits: RenderLimits,
    parse: Callable[[dict[str, Any]], Answer],
) -> Answer | RenderFailure:
    """Returns what a child answers, as ``parse`` reads it, or why there is no answer."""
    answer, status = _hear(child, request, limits)
    if not _is_too_slow(status):
        with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
            return parse(json.loads(answer))
    return _failure(status, limits)


def ask_child_for_lines(
    child: RenderChild, request: Mapping[str, object], limits: RenderLimits, count: int
) -> tuple[list[dict[str, Any]], RenderFailure | None]:
    """Returns the answers of a child, one for each line; and why they are fewer than ``count``.

    The second is None if all of them came.
    """
    answer, status = _hear(child, request, limits)
    answers: list[dict[str, Any]] = []
    with contextlib.suppress(ValueError):  # the last line may be half of one
        answers.extend(json.loads(line) for line in answer.splitlines()[:count])
    return answers, None if len(answers) == count else _failure(status, limits)


def _hear(
    child: RenderChild, request: Mapping[str, object], limits: RenderLimits
) -> tuple[bytes, int | None]:
    """Returns what the child wrote, and its exit status; None if it had to be killed."""
    bounded = {
        **request,
        "cpu_seconds": limits.cpu_seconds,
        "memory_bytes": limits.memory_bytes,
        "output_bytes": limits.output_bytes,
    }
    with _memory_file() as asked, _memory_file() as answered:
        with open(asked, "wb", closefd=False) as file:
            file.write(json.dumps(bounded).encode())
        os.lseek(asked, 0, os.SEEK_SET)
        status = _run_child(asked, answered, child, limits)
        os.lseek(answered, 0, os.SEEK_SET)
        with open(answered, "rb", closefd=False) as file:
            return file.read(), status


@contextlib.contextmanager
def _memory_file() -> Iterator[int]:
    descriptor = os.memfd_create("tidewheel-template", os.MFD_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _run_child(
    asked: int, answered: int, child: RenderChild, limits: RenderLimits
) -> int | None:
    """Runs the child and returns its exit status; None if it had to be killed."""
    seen = os.environ if child.code_trusted else _HARMLESS_ENVIRONMENT
    process = subprocess.Popen(
        # -P: the current folder is the workflow's, and its files are no modules of ours.
        [sys.executable, "-P", "-m", "tidewheel.formats.template_child", child.module],
        stdin=asked,
        stdout=answered,
        stderr=subprocess.DEVNULL,
        cwd=child.folder,
        env={name: os.environ[name] for name in seen if name in os.environ},
        start_new_session=True,
    )
    watched = os.pidfd_open(process.pid)
    try:
        _wait(watched, process.pid, limits)
    finally:
        os.close(watched)
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        # Not reaped yet, so its process group cannot be anybody else's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
    return status if ended is not None else None


def _wait(watched: int, pid: int, limits: RenderLimits) -> None:
    """Waits until the child ends, sleeps too long, or has used up ``wall_seconds``; raises
    GivenUp if nobody waits for it any more."""
    begun_at, seen_asleep = time.monotonic(), 0
    while time.monotonic() < begun_at + limits.wall_seconds and seen_asleep < 2:  # noqa: PLR2004 - twice in a row
        if select.select([watched], [], [], _LOOK_AGAIN_SECONDS)[0]:
            return
        go_on()
        if time.monotonic() < begun_at + limits.idle_seconds:
            continue
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
        # It sleeps, rather than waits for the processor or for a disk.
        seen_asleep = seen_asleep + 1 if state == "S" else 0


def _is_too_slow(status: int | None) -> bool:
    return status is None or status in (-signal.SIGPROF, -signal.SIGXCPU)


def _failure(status: int | None, limits: RenderLimits) -> RenderFailure:
    if _is_too_slow(status):
        seen = f"rendering took more than {limits.cpu_seconds:.1f} seconds of processor time"
        if status is None:
            seen = "rendering was ended, because it waited or took too long"
        hint = "look for a loop that is too large or does not end, and for code that waits"
        return RenderFailure("template-too-slow", seen, hint)
    seen = f"rendering ended without a result (status {status})"
    memory = f"{limits.memory_bytes // 1024**2} MiB are allowed"
    return RenderFailure(
        "template-failed", seen, f"it may have needed too much memory: {memory}"
    )


def parse_failure(answered: dict[str, Any]) -> RenderFailure:
    code, message, hint, file = (
        str(answered.get(name, "")) for name in ("code", "message", "hint", "file")
    )
    return RenderFailure(code, message, hint, file, int(answered.get("line", 0)))


def _parse_answer(answered: dict[str, Any]) -> Rendered | RenderFailure:
    """Parses an answer without trust, because filters share the process of the child."""
    if "code" in answered:
        return parse_failure(answered)
    files = tuple(str(name) for name in answered["files"])
    origins = tuple((int(number), int(line)) for number, line in answered["origins"])
    lines = tuple(str(line) for line in answered["lines"])
    if len(lines) != len(origins) or any(not 0 <= one < len(files) for one, _ in origins):
        raise ValueError("lines and origins do not fit")
    return Rendered(lines, origins, files, frozenset(map(str, answered["names"])))
