"""Remembers runs whose result is owed: the exit status was not returned to the caller yet.

Theory of operation
-------------------
`tidewheel run DIR` returns how the work went. A process that is killed when the work is done,
before it could return the exit status, is started again in the same words by a supervisor or a
person. It must then give that result, and not do the work a second time. So a file says for
which words the result of a run is owed, from before the first task until the last step of the
process. A start that finds it tells the result of a run that has ended meanwhile, instead of
beginning the next one. The file is removed when everything is printed and closed, just before
the exit: a process that is killed before that tells the result twice, and does no work twice.

The file also says which process is to tell the result. As long as that one lives nobody else
tells it, nor calls the event handlers that are left: it waits for them after the last batch,
when the run looks as if it was over. Whether a process of another host or container lives
cannot be seen from here; it is given the time that it may take for the handlers.

Ctrl-C settles the debt: somebody is there and knows. SIGTERM and a lost lease do not: the run
goes on, or is carried on, and nobody has heard of its end.
"""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.cli.exit_codes import SIGNALLED, ExitCode, FinalStatus
from tidewheel.cli.output import note
from tidewheel.cli.pages.run_progress import JsonPage, RunPage, ended
from tidewheel.client.local_run import LEFT, LOST, RunEnd
from tidewheel.core.operator.definition import RunOptions, is_same_content
from tidewheel.core.operator.views import RunView, UndoneKind, is_at_own_stop_point
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.pool import RunStatus
from tidewheel.errors import RunUnderWay
from tidewheel.quantities import show_instant
from tidewheel.runners.job_directory import write_whole
from tidewheel.scheduler.run_driver import ERROR
from tidewheel.scheduler.service import QUIET_SECONDS
from tidewheel.services.paths import run_directory
from tidewheel.wiring.machine import is_process_alive, this_process
from tidewheel.wiring.stores import this_failpoint

if TYPE_CHECKING:
    from tidewheel.ports.runs import RunDoor

IN_RUN = Path("log", "config", "owed")  # goes with the run when it is deleted
OF_SERVERS = "owed"  # below the state directory: files of runs that other machines keep
WORDS_LENGTH = 32


def words_of(folder: str, options: RunOptions, variables: str = "") -> str:
    """Returns a digest of what was asked for: the same for the same command on another day."""
    said = [folder, variables, asdict(replace(options, now=0.0))]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:WORDS_LENGTH]


class Owed:
    """Reads and writes the file that says for which words the result of one run is owed."""

    def __init__(self, path: Path, run: RunView) -> None:
        self._path = path
        self._run = f"{run.number} {run.created_at!r}"
        self._ended_at = run.updated_at if run.ended_at is None else run.ended_at

    @classmethod
    def here(cls, home: Path, run: RunView) -> Owed:
        """Returns the file of a run that is driven in this process."""
        return cls(run_directory(home, run.name) / IN_RUN, run)

    @classmethod
    def from_server(cls, home: Path, server: str, run: RunView) -> Owed:
        """Returns the file of a run that is followed through a server."""
        name = hashlib.sha256(f"{server} {run.name}".encode()).hexdigest()[:WORDS_LENGTH]
        return cls(home / OF_SERVERS / name, run)

    def to(self, words: str) -> bool:
        """Says whether the result is owed to a command of these words."""
        return self._written()[0] == f"{self._run} {words}"

    def teller(self, now: Instant | None = None) -> HostProcess | None:
        """Returns the process that is about to tell the result; None if it is dead, or unknown.

        A process of another host or container counts as alive while it may still wait for event
        handlers, and as dead if no time is given.
        """
        process, own = self._written()[1], this_process()
        if process is None:
            return None
        if (process.host, process.boot_id) == (own.host, own.boot_id):
            return process if is_process_alive(process) else None
        return None if now is None or self._is_quiet(now) else process

    def has_left_handlers(self, now: Instant) -> bool:
        """Says whether nobody else will call the event handlers that an ended run has left.

        The process that is to call them is known only of a run that `tidewheel run` has driven.
        For any other run, enough time must have passed.
        """
        is_unknown = self._written()[1] is None
        return self._is_quiet(now) if is_unknown else self.teller(now) is None

    def note(self, words: str) -> None:
        """Writes down that this process owes the result to a command of these words.

        A file that cannot be written is no error: the run itself meets worse trouble then.
        """
        text = f"{self._run} {words}\n{json.dumps(asdict(this_process()))}\n"
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(self._path, text.encode(), mode=0o600)

    def settle(self) -> None:
        """Removes the file, as the very last step: everything is told."""
        this_failpoint()("result_told")
        with suppress(OSError):
            self._path.unlink()

    def _is_quiet(self, now: Instant) -> bool:
        """Says whether the run ended longer ago than any process waits for its event
        handlers."""
        return now - self._ended_at >= QUIET_SECONDS

    def _written(self) -> tuple[str, HostProcess | None]:
        """Returns the run with the words, and the process, as the file has them.

        They are "" and None if the file does not say so, or is about an earlier run of this
        name.
        """
        try:
            debt, _, process = self._path.read_text(encoding="utf-8").partition("\n")
        except (OSError, ValueError):
            return "", None
        if not debt.startswith(f"{self._run} "):  # of a run that had its name before
            return "", None
        with suppress(ValueError, TypeError):
            return debt, HostProcess(**json.loads(process))
        return debt, None


async def tell_again(door: RunDoor, run: RunView, *, as_json: bool, option: str = "") -> RunEnd:
    """Tells and returns the result of a run that ended before anybody was told of it."""
    page = (JsonPage if as_json else RunPage)(run, is_new=False)
    page.option = option
    end = await ended(door, run, page)
    ended_at = run.updated_at if run.ended_at is None else run.ended_at
    page.line(
        f"{run.name} ended at {show_instant(int(ended_at))}, and its result was not shown "
        "yet; here it is. Repeat the command to start the next run"
    )
    page.show_end(end, ended_at - run.created_at)
    return end


def is_still_asked(run: RunView, digest: str) -> bool:
    """Says whether a run had the definition that is asked for, so that its result is wanted.

    If it had another one, only the way in which it ended is told, since the work that is asked
    for now was never done.
    """
    if is_same_content(run.definition, digest):
        return True
    how = run.status if run.reason in ("", run.status) else f"{run.status} ({run.reason})"
    note(
        f"{run.name} ended before, and its result was not shown: {how}; the definition has "
        "changed since, so a new run starts"
    )
    return False


def under_way(run: RunView, look: str, teller: HostProcess | None = None) -> RunUnderWay:
    """Returns the error which says that a run is under way.

    With a ``teller`` it may also say that the run is over and its result is being told.
    """
    by = teller or run.owner
    status = run.status
    if teller is not None and run.owner is None:
        status += ", and its result is being shown"
    owner = "" if by is None else f"process {by.pid} on {by.host}, "
    since = f"since {show_instant(int(run.created_at))}"
    return RunUnderWay(run.name, status, f"{owner}{since}", look)


def settled(
    owed: Owed, end: RunEnd, signalled: signal.Signals | None, fail_on: Sequence[UndoneKind]
) -> int:
    """Returns the exit status for the end of a run.

    Its last step settles the debt, unless the run goes on without this process.
    """
    status = _exit_status(end, signalled, fail_on)
    goes_on = end.status in (LOST, LEFT) and signalled is not signal.SIGINT
    return status if goes_on else FinalStatus(status, owed.settle)


def _exit_status(
    end: RunEnd, signalled: signal.Signals | None, fail_on: Sequence[UndoneKind]
) -> ExitCode:
    """Returns the exit status for the end of a run (docs/exit_codes.md)."""
    if end.status == RunStatus.COMPLETED:
        is_done = end.has_run_anything and not any(map(end.undone.count, fail_on))
        return ExitCode.DONE if is_done else ExitCode.FAILED
    if end.was_aborted or end.status in (RunStatus.STALLED, ERROR):
        return ExitCode.FAILED
    if signalled is not None:
        return SIGNALLED[signalled]
    return ExitCode.DONE if is_at_own_stop_point(end.reason) else ExitCode.STOPPED
