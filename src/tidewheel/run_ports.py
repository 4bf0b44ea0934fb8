"""What people, programs and jobs need of runs, as a Protocol: one door, near or far.

``RunDoor`` stands before a store (``services.run_door``) or before a server that is asked over
HTTP (``store.remote``). Clients, the command line, jobs and the server know nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tidewheel.core.runs.commands import Command
    from tidewheel.core.runs.definition import NewRun, RunOptions, StoredDefinition
    from tidewheel.core.runs.stream import EventFilter, FollowedEvent
    from tidewheel.core.runs.views import RunView
    from tidewheel.core.tasks.task import TaskId

ANSWER_SECONDS_MAX = 30.0  # for a scheduler to obey, unless said otherwise
LOG_BYTES_MAX = 1_000_000  # of one part

Document = dict[str, object]
Arguments = Mapping[str, object]


class Answer(NamedTuple):
    """What became of a command that was obeyed."""

    run: str
    number: int  # of the command, as in history
    verb: str
    document: Document


class LogPlace(NamedTuple):
    """Which file of a run; id, submit and attempt are None for the log of the run itself."""

    id: str | None
    submit: int | None
    attempt: int | None
    path: str  # where it is; of a server, below its folder of runs


class LogPart(NamedTuple):
    """Some bytes of a log; `over`: nothing more will come behind them."""

    place: LogPlace
    content: bytes
    offset: int
    size: int
    found: bool  # whether there is such a file by now
    over: bool

    @property
    def next_offset(self) -> int:
        return self.offset + len(self.content)


class RunDoor(Protocol):
    """A run is named as people do: by name, by number, or by the beginning of its name."""

    async def find(self, text: str = "") -> RunView:
        """Without a text, the only run there is."""
        ...

    async def look(self, name: str, arguments: Arguments) -> Document:
        """A view of ``services.run_views``; `run` among the arguments says of which run."""
        ...

    async def log_part(
        self,
        run: str,
        wish: Arguments,
        *,
        offset: int | None = None,
        bytes_max: int = LOG_BYTES_MAX,
        wait_seconds: float = 0.0,
    ) -> LogPart:
        """From an offset on, else the end. `wish` has `id`, `file`, `submit`, `attempt`.

        If there is nothing behind the offset yet, it is waited for so long, unless it is over.
        """
        ...

    async def give(
        self, run: str, command: Command, *, who: str, seconds_max: float = ANSWER_SECONDS_MAX
    ) -> Answer:
        """Ask something of a run and wait for its answer: Declined, NotRunning, NoAnswer."""
        ...

    async def post(self, run: str, command: Command, *, who: str) -> int:
        """The same without waiting; the number of the command."""
        ...

    async def begin(self, new: NewRun, definition: StoredDefinition) -> RunView:
        """A run that the next scheduler takes up; InvalidDefinition with every finding."""
        ...

    async def carry_on(self, run: str, given: RunOptions) -> RunView:
        """Ask any scheduler to go on with a run that nobody drives, with these options."""
        ...

    async def definition(self, run: str) -> StoredDefinition:
        """What the run runs now."""
        ...

    async def save_definition(self, run: str, definition: StoredDefinition) -> None:
        """Keep a definition, so that the run can be told to go on with it (reload)."""
        ...

    async def delete(self, run: str) -> RunView:
        """Everything of a run that nobody drives, its files at this end included."""
        ...


@runtime_checkable
class BringsEvents(Protocol):
    """A store behind a server, which tells what happens there."""

    def follow_events(
        self, since: str | None, which: EventFilter
    ) -> AsyncIterator[FollowedEvent]: ...


@runtime_checkable
class BringsLogs(Protocol):
    """A store behind a server, which has the logs of attempts."""

    async def task_log(
        self, task_id: TaskId, stream: str, attempt: int, offset: int
    ) -> bytes | None:
        """What an attempt wrote from an offset on, at most a part of it; None without a log."""
        ...


@runtime_checkable
class BringsNotifications(Protocol):
    """Who is told of what in a store: rules, messages, and tests of them."""

    async def notifications(self) -> Document: ...
    async def try_notifications(self, rule: str | None = None) -> Document: ...


@runtime_checkable
class BringsRunDoor(Protocol):
    """A store that is not here but behind a server, and so is the door to its runs."""

    def run_door(self) -> RunDoor: ...
