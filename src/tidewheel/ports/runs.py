"""Holds the Protocols of services: for runs, for the registry, for blocks and objects.

Each stands before a store (``services``) or before a server that is asked over HTTP
(``store.remote``). Clients, the command line, jobs and the server know nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from tidewheel.core.queue.task import TaskId

if TYPE_CHECKING:
    # Only workflows and servers need them, and loading them takes as long as all of the queue.
    from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
    from tidewheel.core.operator.registry import Bundle, RunRequest
    from tidewheel.core.operator.stream import EventFilter, FollowedEvent
    from tidewheel.core.operator.verbs import Command
    from tidewheel.core.operator.views import RunView

ANSWER_SECONDS_MAX = 30.0  # for a scheduler to obey, unless said otherwise
LOG_BYTES_MAX = 1_000_000  # of one part
Document = dict[str, object]
Arguments = Mapping[str, object]
Parameters = Mapping[str, object]


class Answer(NamedTuple):
    """Is the answer to a command that was obeyed."""

    run: str
    number: int  # of the command, as in history
    verb: str
    document: Document


class LogPlace(NamedTuple):
    """Says where a file of a run is; for the run's own log, id, submit and attempt are None."""

    id: str | None
    submit: int | None
    attempt: int | None
    path: str  # where it is; of a server, below its folder of runs


class LogPart(NamedTuple):
    """Holds some bytes of a log; `over`: nothing more will come behind them."""

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
    """Is the service for runs, on a store or a server.

    A run is named as people do: by name, by number, or by the beginning of its name.
    """

    async def find(self, text: str = "") -> RunView:
        """Returns a run; without a text, the only run there is."""

    async def look(self, name: str, arguments: Arguments) -> Document:
        """Returns a view of ``views``; `run` among the arguments says of which run."""

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

    async def give(
        self, run: str, command: Command, *, who: str, seconds_max: float = ANSWER_SECONDS_MAX
    ) -> Answer:
        """Gives a command to a run and waits for its answer.

        Raises Declined, NotRunning or NoAnswer.
        """

    async def post(self, run: str, command: Command, *, who: str) -> int:
        """Gives a command without waiting for the answer; returns the command's number."""

    async def begin(self, new: NewRun, definition: StoredDefinition) -> RunView:
        """Creates a run for the next scheduler; InvalidDefinition has every finding."""

    async def carry_on(self, run: str, given: RunOptions) -> RunView:
        """Asks any scheduler to go on with a run that nobody drives, with these options."""

    async def definition(self, run: str) -> StoredDefinition:
        """Returns the definition that the run has now."""

    async def save_definition(self, run: str, definition: StoredDefinition) -> str:
        """Stores a definition, so that the run can be told to go on with it (reload).

        The answer is the digest that it is kept under: a server marks nothing as trusted.
        """

    async def delete(self, run: str) -> RunView:
        """Deletes everything of a run that nobody drives, its files at this end included."""


class RegistryDoor(Protocol):
    """Is the registry of a store (``services.registry.service``) or server (``store.remote``).

    Without a version the highest one is meant. UnknownWorkflow is raised if there is none.
    """

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        """Registers all definitions of all bundles or none.

        InvalidDefinition has every finding.
        """

    async def list(self, name: str = "") -> Document:
        """Returns the workflows by name, the highest version first."""

    async def show(self, name: str, version: str = "") -> Document: ...
    async def check(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns whether a workflow can be registered and run; with parameters, with these."""

    async def render(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns what a run with these parameters would execute."""

    async def remove(self, name: str, version: str = "") -> Document:
        """Removes a version, by default the only one there is; runs of it are not harmed."""

    async def begin(self, asked: RunRequest) -> RunView:
        """Creates a run for the next scheduler; InvalidDefinition has every finding."""


class BlockDoor(Protocol):
    """Is the service for blocks and objects, on a store or a server; answers are documents."""

    async def submit_sbi(self, file: str, content: bytes, *, who: str) -> Document:
        """Submits a scheduling block instance, JSON or YAML as the file's name says; InvalidSbi
        with every finding, and then nothing is stored."""

    async def sbis(self, count: int = 100) -> Document:
        """Returns the scheduling block instances, newest first."""

    async def sbi(self, sbi_id: str) -> Document:
        """Returns an instance as it was asked for, and its blocks."""

    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> Document:
        """Returns processing blocks, newest first."""

    async def block(self, block_id: str) -> Document:
        """Returns a block with each stage: its state, times, end, values, and why it waits."""

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        """Ends the stages of a block that run, starts no more; `changed` false: it was over."""

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        """Says that objects are present: their names, each with what is known of the object."""

    async def objects(self, *, after: str = "", count: int = 1_000) -> Document:
        """Returns the objects that are present, by name."""

    async def remove_object(self, name: str) -> Document:
        """Stores that an object is there no more; stages that have seen it go on."""


@runtime_checkable
class BringsReasons(Protocol):
    """Is a store behind a server, which knows why a task does not run."""

    async def why(self, task_id: TaskId) -> list[str]: ...


@runtime_checkable
class BringsEvents(Protocol):
    """Is a store behind a server, which tells what happens there."""

    def follow_events(
        self, since: str | None, which: EventFilter
    ) -> AsyncIterator[FollowedEvent]: ...


@runtime_checkable
class BringsLogs(Protocol):
    """Is a store behind a server, which has the logs of attempts."""

    async def task_log(
        self, task_id: TaskId, stream: str, attempt: int, offset: int
    ) -> bytes | None:
        """Returns a part of what an attempt wrote, from an offset on; None without a log."""


@runtime_checkable
class BringsNotifications(Protocol):
    """Is a store whose server has the rules and messages of notifications, and can try them."""

    async def notifications(self) -> Document: ...
    async def try_notifications(self, rule: str | None = None) -> Document: ...


@runtime_checkable
class BringsDoors(Protocol):
    """Is a store behind a server, which brings the services for its runs, registry, blocks."""

    def run_door(self) -> RunDoor: ...
    def registry_door(self) -> RegistryDoor: ...
    def block_door(self) -> BlockDoor: ...
