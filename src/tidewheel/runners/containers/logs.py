"""Writes the logs of a project while it runs, and reads in them what its containers say.

``job.out``, ``job.err``   every service's standard output and error, each line behind
                           ``SERVICE | ``
``service-SERVICE.log``    both of one service

A follower is one ``docker logs --follow`` for each part, from its start to its end. When the
engine goes away followers end; they begin again after the last line that was written. An
adopter of a job writes its logs anew from the first line: the engine has them all. Nobody sees
a log that is shorter than it was: one who copies it elsewhere would begin again, too.

A container has no way to its worker's socket, and on a Swarm it may run on another machine;
its output reaches the worker from anywhere. ``$TIDEWHEEL_SAY`` is a prefix of this attempt
alone, so that what a job prints of others' texts says nothing by chance:

    echo "$TIDEWHEEL_SAY"'{"text": "half way", "output": "ready", "progress": 0.5}'
    echo "$TIDEWHEEL_SAY"'{"values": {"beams": 4}}'

Values are for later stages. A container beside the worker may also write them to
``$TIDEWHEEL_OUTPUTS``, in a folder that holds nothing else and that no compose file can mount.
Both together are ``outputs.json`` of the attempt, as for any other job.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from tidewheel.core.queue.values import values_text
from tidewheel.errors import BadValues
from tidewheel.exact_json import decode, encode
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.runners.containers.project import Engine, Phase, ProjectPart
from tidewheel.runners.job_directory import OUTPUTS_NAME, JobDirectory, write_whole
from tidewheel.runners.job_logs import LOG_BYTES_MAX, cut_log
from tidewheel.runners.outcome import read_values
from tidewheel.runners.sanitize import printable, storable

SAY = "TIDEWHEEL_SAY"
SPEC = "TIDEWHEEL_SPEC"
PREFIX_START = "::tidewheel:"


class StdoutMessage(NamedTuple):
    """Holds what one line of output tells the worker."""

    text: str
    output: str | None
    progress: float | None
    values: dict[str, object]


def prefix_of(secret: str) -> str:
    """Returns the prefix by which lines of an attempt with this secret speak to the worker."""
    return f"{PREFIX_START}{secret}: "


def read_said(line: str) -> StdoutMessage | None:
    """Returns the message in a line, given without its prefix; None if it is no valid one."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    text, output, progress = fields.get("text"), fields.get("output"), fields.get("progress")
    if not isinstance(text, str | None) or not isinstance(output, str | None):
        return None
    if not (progress is None or (isinstance(progress, int | float) and 0 <= progress <= 1)):
        return None
    values = fields.get("values")
    return StdoutMessage(
        text or "",
        output,
        None if progress is None else float(progress),
        values if isinstance(values, dict) else {},
    )


TARGET = "/tidewheel"  # of the folder, in a container
FOLDER = "outputs"
FOLDER_MODE = 0o777
SAID_BYTES_MAX = 1024 * 1024  # by one stage, corrections included


def make_outputs_folder(directory: Path) -> Path:
    """Makes and returns the folder that is mounted into every container beside the worker."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    folder.chmod(FOLDER_MODE)
    return folder


class SaidValues:
    """Holds the values that containers of a stage have said; of each name the last counts."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._bytes = 0

    def hear(self, values: Mapping[str, object], line: str) -> None:
        self._bytes += len(line) if values else 0
        if self._bytes <= SAID_BYTES_MAX:
            self._values |= values

    def gather(self, directory: Path) -> str | None:
        """Returns all values as JSON, said or written to the file; None if there are none.

        Raises BadValues if they are bad.
        """
        if self._bytes > SAID_BYTES_MAX:
            raise BadValues(f"more than {SAID_BYTES_MAX} bytes of values were sent")
        return gather_values(directory, self._values)


def gather_values(directory: Path, said: Mapping[str, object]) -> str | None:
    """Joins values that were written and said, keeps them beside the logs and returns them.

    Of a name that was both written and said, the said value counts. None: there are no values.
    """
    text = read_values(directory / FOLDER / OUTPUTS_NAME)
    if said:
        written = {} if text is None else decode(text)
        assert isinstance(written, dict), written
        try:
            text = values_text(encode(written | dict(said)))
        except ValueError as error:
            raise BadValues(str(error)) from None
    if text is not None:
        with suppress(OSError):
            write_whole(directory / OUTPUTS_NAME, text.encode(), mode=0o600)
    return text


LINE_BYTES_MAX = 64 * 1024  # a longer one becomes several


class LogLine(NamedTuple):
    """Holds one line of a log; ``at`` is when it was written, as text that sorts by time."""

    at: bytes
    text: bytes


class LineReader:
    """Makes lines of chunks, and leaves out lines up to ``after``, which are known already."""

    def __init__(self, after: bytes = b"") -> None:
        self._after = after
        self._rest = b""
        self.latest = after

    def take(self, chunk: bytes) -> list[LogLine]:
        """Returns the lines that are complete with this chunk."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest)
            # The rest of the line has the same time.
            self._rest = self._rest.partition(b" ")[0] + b" "
        return [line for line in map(self._read, lines) if line is not None]

    def finish(self) -> list[LogLine]:
        """Returns the last line, if it had no end."""
        line = self._read(self._rest) if self._rest.strip() else None
        self._rest = b""
        return [] if line is None else [line]

    def _read(self, line: bytes) -> LogLine | None:
        at, _, text = line.partition(b" ")
        if not at[:4].isdigit():  # no time: docker itself speaks
            return None
        if at <= self._after:
            return None
        self.latest = max(self.latest, at)
        return LogLine(at, text.rstrip(b"\r"))


FOLLOWERS_MAX = 200  # of one worker; a part beyond that has its log when it has ended
READ_BYTES = 64 * 1024
READ_TRIES = 2
REST_SECONDS = 0.5  # before a log is asked for again
END_SECONDS_MAX = 5.0  # for a follower to notice that its part has ended
LAST_LINE_LENGTH_MAX = 300

OnSaid = Callable[[str, LogLine, str], None]  # service, the line, what follows the prefix


@dataclass(slots=True)
class Source:
    """Holds how far the log of one part was read."""

    part: ProjectPart
    out: LineReader = field(default_factory=LineReader)
    err: LineReader = field(default_factory=LineReader)
    is_whole: bool = False  # read to its end
    follower: asyncio.Task[None] | None = None

    def again(self) -> None:
        """Prepares to read the log again, from after the last line that was read."""
        self.out, self.err = LineReader(self.out.latest), LineReader(self.err.latest)

    @property
    def since(self) -> bytes:
        return min(self.out.latest, self.err.latest)


class ProjectLogs:
    """Follows the parts of one project, and writes what they print into its logs."""

    def __init__(
        self,
        engine: Engine,
        files: JobDirectory,
        prefix: str,
        followers: set[asyncio.Task[None]],  # of all projects of a runner
        on_said: OnSaid,
    ) -> None:
        self._engine = engine
        self._files = files
        self._prefix = prefix.encode()
        self._followers = followers
        self._on_said = on_said
        self._sources: dict[str, Source] = {}
        self._last_lines: dict[str, str] = {}
        self._out, self._err = LogFile(files.out), LogFile(files.err)
        self._of_services: dict[str, LogFile] = {}

    def follow(self, parts: Sequence[ProjectPart]) -> None:
        """Begins to follow the log of every part that has begun and is not followed yet."""
        for part in parts:
            if part.phase in (Phase.RUNNING, Phase.ENDED) and part.id not in self._sources:
                self._begin(part)

    def last_line(self, service: str) -> str:
        """Returns the last line that a service printed and that is not blank; "" if none is."""
        return self._last_lines.get(service, "")

    async def complete(self) -> None:
        """Reads everything that was printed; raises EngineAway if the engine is away."""
        followers = [one.follower for one in self._sources.values() if one.follower]
        if followers and self._engine.logs_end:
            await asyncio.wait(followers, timeout=END_SECONDS_MAX)
        await self.close()
        for source in self._sources.values():
            source.follower = None
            if not source.is_whole:
                await self._read_rest(source)
                source.is_whole = True
        for log in (self._out, self._err, *self._of_services.values()):
            log.settle()

    async def _read_rest(self, source: Source) -> None:
        """Reads the rest of a part's log; nothing is read where the part is gone. If the engine
        went away while it was read, and came back, it is asked again."""
        for _ in range(READ_TRIES):
            source.again()
            if await self._read(source, follow=False):
                return
            await self._engine.cli.ask("version")

    async def close(self) -> None:
        """Ends all followers."""
        followers = [one.follower for one in self._sources.values() if one.follower]
        for follower in followers:
            follower.cancel()
        if followers:
            await asyncio.wait(followers)

    def _begin(self, part: ProjectPart) -> None:
        source = self._sources[part.id] = Source(part)
        if len(self._followers) < FOLLOWERS_MAX:
            source.follower = asyncio.create_task(self._follow(source))
            self._followers.add(source.follower)
            source.follower.add_done_callback(self._follower_ended)

    def _follower_ended(self, follower: asyncio.Task[None]) -> None:
        self._followers.discard(follower)
        if not follower.cancelled() and (error := follower.exception()) is not None:
            raise error  # a bug: the loop's handler tells of it

    async def _follow(self, source: Source) -> None:
        while True:
            ended = await self._read(source, follow=True)
            if ended and self._engine.logs_end:
                source.is_whole = True
                return
            await asyncio.sleep(REST_SECONDS)
            source.again()

    async def _read(self, source: Source, *, follow: bool) -> bool:
        """Copies a log from where the last read ended, with ``follow`` until docker ends it;
        returns whether docker ended well."""
        since = ("--since", source.since.decode()) if source.since else ()
        arguments = (
            *(*self._engine.log_command, "--timestamps", *since),
            *((*(("--follow",) if follow else ()), source.part.id)),
        )
        service = source.part.service
        async with self._engine.cli.following(*arguments) as process:
            assert process.stdout is not None and process.stderr is not None
            await asyncio.gather(
                self._copy(process.stdout, source.out, service, is_err=False),
                self._copy(process.stderr, source.err, service, is_err=True),
            )
            return await process.wait() == 0

    async def _copy(
        self, stream: asyncio.StreamReader, reader: LineReader, service: str, *, is_err: bool
    ) -> None:
        while chunk := await stream.read(READ_BYTES):
            self._write(reader.take(chunk), service, is_err=is_err)
        self._write(reader.finish(), service, is_err=is_err)

    def _write(self, lines: Sequence[LogLine], service: str, *, is_err: bool) -> None:
        kept = []
        for line in lines:
            if line.text.startswith(self._prefix):
                said = line.text[len(self._prefix) :].decode(errors="replace")
                self._on_said(service, line, said)
            else:
                kept.append(line.text)
        if not kept:
            return
        if words := next((text.strip() for text in reversed(kept) if text.strip()), b""):
            shown = storable(words.decode(errors="replace"), LAST_LINE_LENGTH_MAX)
            self._last_lines[service] = printable(shown)
        mark = service.encode() + b" | "
        together = self._err if is_err else self._out
        together.append(b"".join(mark + text + b"\n" for text in kept))
        if service not in self._of_services:
            # docker-compose accepts no service whose name is more than letters, digits, ._-
            path = self._files.path / f"service-{service}.log"
            self._of_services[service] = LogFile(path)
        self._of_services[service].append(b"".join(text + b"\n" for text in kept))


class LogFile:
    """Writes a log, which replaces that of an earlier worker as soon as it is no shorter."""

    def __init__(self, path: Path) -> None:
        self._path = self._written = path
        self._bytes_before = path.stat().st_size if path.exists() else 0
        if self._bytes_before:
            self._written = path.with_name(f"{path.name}.anew")
            self._written.unlink(missing_ok=True)

    def append(self, content: bytes) -> None:
        if _append(self._written, content) >= self._bytes_before:
            self.settle()

    def settle(self) -> None:
        """Gives the file its final name, because it has all that there is."""
        if self._written != self._path:
            with suppress(OSError):
                self._written.replace(self._path)
            self._written = self._path


def _append(path: Path, content: bytes) -> int:
    """Appends to a log and returns its length; ignores errors, as a full disk ends no job."""
    size = 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with suppress(OSError):
        descriptor = os.open(path, flags, 0o600)
        with open(descriptor, "wb", buffering=0) as file:
            file.write(content)
            size = os.fstat(file.fileno()).st_size
        if size > LOG_BYTES_MAX:
            cut_log(path)
    return size
