"""Keeps the directory of a run: its folders, and the logs that its scheduler writes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from tidewheel.core.operator.definition import StoredDefinition
from tidewheel.core.operator.run_log import LogEntry, RunLogLine, Way, WayLines
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.errors import Unavailable
from tidewheel.ports.clock import Clock
from tidewheel.runners.job_directory import read_plain
from tidewheel.runners.sanitize import printable
from tidewheel.services.definition_sync import note_definition, remove_old_files
from tidewheel.services.definitions.snapshot import unpack
from tidewheel.services.paths import log_generation, log_generations
from tidewheel.services.service import OnReport, ServiceReport

FOLDERS = ("log/scheduler", "log/job", "log/config", "share/cycle", "work", "bin")
MESSAGE = "CYLC_MESSAGE="
STATUS_BYTES_MAX = 1024 * 1024  # of job.status, when a job is polled
LOG_BYTES_MAX = 16 * 1024 * 1024  # then the log begins anew
LOGS_KEPT = 4  # of those before it
_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class RunFolderUnusable(Unavailable):
    """The directory of a run cannot be written."""

    code = "run_folder_unusable"

    def __init__(self, directory: Path, error: OSError) -> None:
        super().__init__(
            f"the run's folder {directory} cannot be written ({error.strerror}); "
            "free some disk space, or let this user write there"
        )


class RunFiles:
    """Writes and reads the files of one run; a full disk costs log lines, never the run."""

    def __init__(
        self,
        directory: Path,
        trigger_log: Path | None = None,
        log_bytes_max: int = LOG_BYTES_MAX,
    ) -> None:
        self.directory = directory
        self._log_bytes_max = log_bytes_max
        self.log_path = directory / "log" / "scheduler" / "log"
        self.trigger_log = trigger_log  # None: there is none
        self._troubles: dict[Path, str] = {}

    @property
    def trouble(self) -> str:
        """Returns which of the logs cannot be written, and why; "" if all can."""
        return "; ".join(self._troubles.values())

    def prepare(self, definition: StoredDefinition, *, anew: bool = False) -> None:
        """Makes the run's folders and puts the definition's files there; `anew` replaces those.

        Raises RunFolderUnusable if that cannot be done.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            for folder in FOLDERS:
                (self.directory / folder).mkdir(parents=True, exist_ok=True)
            if anew:
                remove_old_files(self.directory, definition)
            unpack(definition, self.directory, anew=anew)
            note_definition(self.directory, definition)
            processed = self.directory / "log" / "config" / "flow-processed.cylc"
            processed.write_text(definition.text, encoding="utf-8")
        except OSError as error:
            raise RunFolderUnusable(self.directory, error) from error

    def written_messages(self, job: str) -> list[str]:
        """Returns what a job, POINT/NAME/NN, wrote into job.status instead of sending it."""
        path = self.directory / "log" / "job" / job / "job.status"
        # A job may have put anything there: no link is followed, no pipe is waited for.
        lines = read_plain(path, STATUS_BYTES_MAX).decode(errors="replace").splitlines()
        found = (line.removeprefix(MESSAGE) for line in lines if line.startswith(MESSAGE))
        parts = (line.partition("|")[2].partition("|") for line in found)  # TIME|SEVERITY|TEXT
        return [f"{severity}:{text}" for severity, bar, text in parts if bar]

    def write_log(self, entries: Sequence[LogEntry], at: Instant) -> None:
        """Appends to the run log, which people and jobs read while it grows."""
        when = _shown(math.floor(at))
        lines: list[str] = []
        around: dict[Way, list[str]] = {}  # names, in the lines of each way at this time
        for one in entries:
            if isinstance(one, WayLines):
                name, way = one
                pieces = around.get(way)
                if pieces is None:
                    pieces = around[way] = way.around_names(f"{when} ")
                lines.append((name if name.isprintable() else printable(name)).join(pieces))
            else:
                level, text = one
                shown = text if text.isprintable() else _spelled(text)
                lines.append(f"{when} {level} - {shown}\n")
        if lines:
            self._append(self.log_path, "".join(lines))

    def write_triggers(self, lines: Sequence[str]) -> None:
        """Appends to the log of triggers, if there is one."""
        if self.trigger_log is not None:
            self._append(self.trigger_log, "".join(f"{line}\n" for line in lines))

    def _append(self, path: Path, text: str) -> None:
        try:
            content = text.encode(errors="backslashreplace")
            log = os.open(path, _APPENDING, 0o666)  # a file object would ask the kernel more
            try:
                while content:  # at once, unless the disk is full
                    content = content[os.write(log, content) :]
                size = os.lseek(log, 0, os.SEEK_CUR)
            finally:
                os.close(log)
            if size > self._log_bytes_max and path is self.log_path:
                self._begin_anew(path)
        except OSError as error:
            self._troubles[path] = f"{path} cannot be written: {error.strerror}"
        else:
            self._troubles.pop(path, None)

    @staticmethod
    def _begin_anew(path: Path) -> None:
        """Renames a full log, so that a new one begins, and deletes the oldest ones. A part
        says in its name where it begins, so readers go on reading."""
        before = log_generations(path)
        start = before[-1][0] + before[-1][1].stat().st_size if before else 0
        os.replace(path, log_generation(path, start))
        unwanted = [one for _, one in before[: max(0, len(before) + 1 - LOGS_KEPT)]]
        if unwanted:  # an earlier version kept one under this name
            unwanted.append(path.with_suffix(".old"))
        for one in unwanted:
            one.unlink(missing_ok=True)


@lru_cache(maxsize=4)
def _shown(second: int) -> str:
    """Returns the time that stands before each line of the log: that of its batch."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _spelled(text: str) -> str:
    """Returns a job's text with further lines indented: none must look like a log line."""
    return "\n    ".join(map(printable, text.splitlines()))


class DeliveryTroubles:
    """Passes on what handlers and mail of a run report, and writes troubles into its log."""

    def __init__(
        self, run: RunView, files: RunFiles, clock: Clock, on_report: OnReport
    ) -> None:
        self._run, self._files = run, files
        self._clock, self._on_report = clock, on_report
        self.heed(run.updated_at)

    def heed(self, now: Instant) -> None:
        """Takes the time of the store, from which those of the lines are counted."""
        self._now, self._heard_at = now, self._clock.monotonic()

    def tell(self, report: ServiceReport) -> None:
        """Passes a report on, with the name of the run and, as `told`, what people are told."""
        facts = {"run": self._run.name, **report.facts}
        if told := _undelivered(report):
            at = Instant(self._now + self._clock.monotonic() - self._heard_at)
            self._files.write_log([RunLogLine("ERROR", told)], at)
            facts["told"] = told
        self._on_report(ServiceReport(service=report.service, event=report.event, facts=facts))


def _undelivered(report: ServiceReport) -> str:
    """Returns what a report says of an alert that reached nobody; "" for other reports."""
    facts = report.facts
    match report.event:
        case "handler.failed":
            return _handler_failed(facts)
        case "handler.dropped":
            return _handler_dropped(facts)
        case "mail.failed":
            server = facts.get("server")
            advice = (
                f" (mail server {server}; set TIDEWHEEL_SMTP to use another one)"
                if server
                else ""
            )
            return f"no mail to {facts['to']} was sent: {facts['error']}{advice}"
        case "mail.dropped":
            return (
                f'no mail was sent about the event "{facts["handled"]}" of {facts["id"]}: too '
                "many mails wait to be sent; the next scheduler of this run sends it"
            )
        case _:
            return ""


def _handler_dropped(facts: Mapping[str, object]) -> str:
    if handled := facts.get("handled"):
        return (
            f'the event handler for the event "{handled}" was not started, because too many '
            "are running; the next scheduler of this run starts it"
        )
    one = facts["count"] == 1
    many = "an event handler was" if one else f"{facts['count']} event handlers were"
    return (
        f"{many} still running when the scheduler ended, and stopped; the next scheduler of "
        f"this run starts {'it' if one else 'them'} again"
    )


def _handler_failed(facts: Mapping[str, object]) -> str:
    handled, of = facts.get("handled"), facts["id"]
    what = f'event handler of {of} for the event "{handled}"' if handled else f"{of}"
    written = str(facts.get("output", "")).strip().splitlines()
    last = f"; its last line: {written[-1]}" if written else ""
    return f"{what} failed: {facts['error']}{last}"
