"""Holds the Protocols of runs: of the store that has them, and of the services that show them.

``RunDoor`` stands before a store (``services.run_service``) or before a server that is asked
over HTTP (``store.remote``). Clients, the command line, jobs and the server know nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from tidewheel.core.queue.task import Instant, TaskId

if TYPE_CHECKING:
    # Only workflows and servers need them, and loading them takes as long as all of the queue.
    from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
    from tidewheel.core.operator.requests import (
        Inbox,
        NewCommand,
        RunBatch,
        RunClaim,
        RunLease,
        StoredRun,
        Undelivered,
    )
    from tidewheel.core.operator.stream import EventFilter, FollowedEvent
    from tidewheel.core.operator.verbs import Command
    from tidewheel.core.operator.views import (
        ChangesView,
        CommandView,
        RunAttempt,
        RunView,
        SubmissionView,
    )
    from tidewheel.core.sched.persistence import PutMemory
    from tidewheel.core.sched.pool import Past
    from tidewheel.core.sched.task_state import Key, TaskHistory

ANSWER_SECONDS_MAX = 30.0  # for a scheduler to obey, unless said otherwise
LOG_BYTES_MAX = 1_000_000  # of one part
Document = dict[str, object]
Arguments = Mapping[str, object]


class RunStore(Protocol):
    """Runs, their definitions and what operators want of them; beside the tasks, in one store.

    Every operation is one transaction. Where a run is named by number it exists, else NotFound.
    """

    # definitions
    async def save_definition(self, definition: StoredDefinition) -> None:
        """Keeps a definition under its digest; one that is there stays as it is."""
        ...

    async def definition(self, digest: str) -> StoredDefinition: ...

    # runs
    async def create_run(self, new: NewRun) -> RunView:
        """Makes a run with status "created"; its queue exists afterwards, with the lease that
        was asked for."""
        ...

    async def run(self, number: int) -> RunView: ...
    async def status_since(self, number: int) -> Instant:
        """Returns since when the run has its status, however many schedulers drove it since."""
        ...

    async def find_run(self, text: str) -> RunView:
        """Finds a run by name, by number, or by a prefix of its name that no other run has (the
        newest run of a workflow for the workflow's own name). NotFound, or AmbiguousRun with
        the names."""
        ...

    async def runs(
        self, *, workflow: str | None = None, count: int = 100, before: int | None = None
    ) -> list[RunView]:
        """Returns runs, newest first; only those made before the one with this number."""
        ...

    async def delete_run(self, number: int) -> None:
        """Deletes a run with everything of it; refused while a scheduler holds it."""
        ...

    async def expired_runs(self, retention_seconds: float, count_max: int) -> list[int]:
        """Returns runs that were let go longer ago and that nobody holds, oldest first; also
        those whose deletion was interrupted."""
        ...

    async def delete_run_part(self, number: int) -> bool:
        """Deletes a part that is quickly done, and says whether the run is gone by now."""
        ...

    async def delete_definitions(self, retention_seconds: float, count_max: int) -> int:
        """Deletes definitions, and says how many: those saved last longer ago, which neither a
        run nor the registry names."""
        ...

    # schedulers
    async def claim_run(self, claim: RunClaim) -> RunLease:
        """Leases the run under its epoch + 1. RunHeld while another's lease runs, unless that
        one is dead for sure."""
        ...

    async def claimable_runs(self, count_max: int) -> list[RunView]:
        """Returns runs with an open status whose lease ran out: their scheduler died; and those
        that any scheduler is asked to drive."""
        ...

    async def undelivered_runs(self, quiet_seconds: float, count_max: int) -> list[RunView]:
        """Returns runs that have been over for so long, and of whose events somebody is still
        to be told: their scheduler died before it could."""
        ...

    async def offer_run(self, number: int, given: RunOptions) -> RunView:
        """Asks any scheduler to drive a run that nobody holds; RunHeld while somebody does."""
        ...

    async def renew_run(self, lease: RunLease) -> None:
        """Renews the lease; RunLost if the epoch is not the current one."""
        ...

    async def read_run(self, number: int) -> StoredRun: ...
    async def read_inbox(self, number: int, count_max: int) -> Inbox: ...
    async def write_batch(self, lease: RunLease, batch: RunBatch) -> None:
        """Writes a batch; RunLost if the epoch is not the current one. One that was written
        already is left alone; the lease is renewed, or given back if the batch says so."""
        ...

    async def withdrawn(self, number: int) -> set[TaskId]:
        """Returns ready tasks of a run that no worker may claim before it goes on."""
        ...

    async def undelivered(self, number: int) -> list[Undelivered]:
        """Returns events of a run that were decided, and of which somebody is still to be
        told."""
        ...

    async def delivered(self, number: int, events: Sequence[Undelivered]) -> None:
        """Notes that everybody was told of these events."""
        ...

    async def histories(
        self, number: int, keys: Collection[Key]
    ) -> dict[Key, TaskHistory | None]:
        """Returns what the store knows of tasks that the pool has forgotten; None: nothing."""
        ...

    def past(self, number: int) -> Past:
        """Returns the same, for views: asked one by one, without waiting."""
        ...

    # operators
    async def post_command(self, command: NewCommand) -> int:
        """Posts a command and returns its number. NotRunning if no scheduler holds the run."""
        ...

    async def command(self, number: int) -> CommandView: ...
    async def commands(self, run: int, count: int = 100) -> list[CommandView]:
        """Returns the commands of a run, newest first."""
        ...

    # looking
    async def submissions(
        self, run: int, *, point: str | None = None, name: str | None = None, count: int = 1000
    ) -> list[SubmissionView]: ...  # newest first
    async def run_attempts(self, run: int, count: int) -> list[RunAttempt]: ...  # newest first
    async def run_changes(
        self, run: int, after: int = 0, count: int = 100
    ) -> list[ChangesView]: ...

    async def forgotten(
        self, run: int, count: int = 10_000, *, only_undone: bool = False
    ) -> list[PutMemory]:
        """Returns the last rows of tasks that the pool's memory has let go, newest points
        first.

        With `only_undone` only those that may be lost, expired or removed by hand.
        """
        ...


class Answer(NamedTuple):
    """The answer to a command that was obeyed."""

    run: str
    number: int  # of the command, as in history
    verb: str
    document: Document


class LogPlace(NamedTuple):
    """The place of a file of a run; for the run's own log, id, submit and attempt are None."""

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
        """Returns a run; without a text, the only run there is."""
        ...

    async def look(self, name: str, arguments: Arguments) -> Document:
        """A view of ``views``; `run` among the arguments says of which run."""
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
        """Returns a part of a log, from an offset on, else its end.

        `wish` has `id`, `file`, `submit`, `attempt`.

        If there is nothing behind the offset yet, it is waited for so long, unless it is over.
        """
        ...

    async def give(
        self, run: str, command: Command, *, who: str, seconds_max: float = ANSWER_SECONDS_MAX
    ) -> Answer:
        """Ask something of a run and wait for its answer: Declined, NotRunning, NoAnswer."""
        ...

    async def post(self, run: str, command: Command, *, who: str) -> int:
        """Gives a command without waiting for the answer; returns the command's number."""
        ...

    async def begin(self, new: NewRun, definition: StoredDefinition) -> RunView:
        """A run that the next scheduler takes up; InvalidDefinition with every finding."""
        ...

    async def carry_on(self, run: str, given: RunOptions) -> RunView:
        """Ask any scheduler to go on with a run that nobody drives, with these options."""
        ...

    async def definition(self, run: str) -> StoredDefinition:
        """Returns the definition that the run has now."""
        ...

    async def save_definition(self, run: str, definition: StoredDefinition) -> str:
        """Keep a definition, so that the run can be told to go on with it (reload).

        The answer is the digest that it is kept under: a server marks nothing as trusted.
        """
        ...

    async def delete(self, run: str) -> RunView:
        """Everything of a run that nobody drives, its files at this end included."""
        ...


@runtime_checkable
class FindsRuns(Protocol):
    """A store that has runs, and not only tasks."""

    async def find_run(self, text: str) -> RunView: ...


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
        """Returns a part of what an attempt wrote, from an offset on; None without a log."""
        ...


@runtime_checkable
class BringsNotifications(Protocol):
    """A store whose server knows the rules and messages of notifications, and can try them."""

    async def notifications(self) -> Document: ...
    async def try_notifications(self, rule: str | None = None) -> Document: ...


@runtime_checkable
class BringsRunDoor(Protocol):
    """A store behind a server, which brings the service for its runs."""

    def run_door(self) -> RunDoor: ...
