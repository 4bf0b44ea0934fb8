"""A run whose result is owed: whoever asked for it has not got its exit status yet.

Theory of operation
-------------------
`tidewheel run DIR` returns how the work went. A process that is killed when the work is done,
before it could return the exit status, is started again in the same words by a supervisor or a
person. It must then give that result, and not do the work a second time. So a file says for
which words the result of a run is owed, from before the first task until the last step of the
process. A start that finds it tells the result of a run that has ended meanwhile, instead of
beginning the next one. The file is removed when everything is printed and closed, just before
the exit: a process that is killed before that tells the result twice, and does no work twice.

Ctrl-C settles the debt: somebody is there and knows. SIGTERM and a lost lease do not: the run
goes on, or is carried on, and nobody has heard of its end.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.cli.runs.page import JsonPage, RunPage, ended
from tidewheel.core.tasks.task import Instant
from tidewheel.errors import RunUnderWay
from tidewheel.quantities import show_instant
from tidewheel.runners.job_directory import write_whole
from tidewheel.services.home_folders import run_directory
from tidewheel.wiring.stores import this_failpoint

if TYPE_CHECKING:
    from tidewheel.client.run_here import RunEnd
    from tidewheel.core.runs.definition import RunOptions
    from tidewheel.core.runs.views import RunView
    from tidewheel.ports.runs import RunDoor

IN_RUN = Path("log", "config", "owed")  # goes with the run when it is deleted
OF_SERVERS = "owed"  # below the state directory: files of runs that other machines keep
WORDS_LENGTH = 32


def words_of(folder: str, options: RunOptions, variables: str = "") -> str:
    """What was asked for, in brief: the same command has the same words on another day."""
    said = [folder, variables, asdict(replace(options, now=0.0))]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:WORDS_LENGTH]


class Owed:
    """The file of one run."""

    def __init__(self, path: Path, run: RunView) -> None:
        self._path = path
        self._run = f"{run.number} {run.created_at!r}"

    @classmethod
    def here(cls, home: Path, run: RunView) -> Owed:
        """Of a run that is driven in this process."""
        return cls(run_directory(home, run.name) / IN_RUN, run)

    @classmethod
    def from_server(cls, home: Path, server: str, run: RunView) -> Owed:
        """Of a run that is followed through a server."""
        name = hashlib.sha256(f"{server} {run.name}".encode()).hexdigest()[:WORDS_LENGTH]
        return cls(home / OF_SERVERS / name, run)

    def to(self, words: str) -> bool:
        """Whether the result is owed to whoever says these words."""
        with suppress(OSError):
            return self._path.read_text(encoding="utf-8") == self._text(words)
        return False

    def note(self, words: str) -> None:
        """From now on it is. Where the file cannot be written the run meets worse by itself."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(self._path, self._text(words).encode(), mode=0o600)

    def settle(self) -> None:
        """The last step: everything is told."""
        this_failpoint()("result_told")
        with suppress(OSError):
            self._path.unlink()

    def _text(self, words: str) -> str:
        return f"{self._run} {words}\n"


async def tell_again(door: RunDoor, run: RunView, *, as_json: bool, option: str = "") -> RunEnd:
    """The result of a run that has ended while nobody heard it."""
    page = (JsonPage if as_json else RunPage)(run, is_new=False)
    page.option = option
    end = await ended(door, run, page)
    ended_at = run.updated_at if run.ended_at is None else run.ended_at
    page.line(
        f"{run.name} ended at {_moment(ended_at)}, and its result was not told yet; it "
        "follows. The same command again begins the next run"
    )
    page.show_end(end, ended_at - run.created_at)
    return end


def under_way(run: RunView, look: str) -> RunUnderWay:
    """Somebody runs what is to be run."""
    owner = "" if run.owner is None else f"process {run.owner.pid} on {run.owner.host}, "
    return RunUnderWay(run.name, run.status, f"{owner}since {_moment(run.created_at)}", look)


def _moment(at: Instant) -> str:
    """To the second, which is enough for people."""
    return show_instant(Instant(int(at)))
