"""Holds the Protocols of services: for runs, for the registry, for blocks and objects.

Each is implemented twice: on a store (``services``), and by requests to a server
(``store.remote``). Clients, the command line, jobs and the server know only the Protocols.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tidewheel.core.queue.task import TaskId
from tidewheel.lazy_dataclasses import NamedTuple

if TYPE_CHECKING:
    # Only workflows and servers need them, and loading them takes as long as all of the queue.
    from tidewheel.api.log_lines import FileHits
    from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
    from tidewheel.core.operator.registry import Bundle, RunRequest
    from tidewheel.core.operator.stream import EventFilter, FollowedEvent
    from tidewheel.core.operator.verbs import Command
    from tidewheel.core.operator.views import RunView

ANSWER_SECONDS_MAX = 30.0  # for a scheduler to obey a command, unless said otherwise
LOG_BYTES_MAX = 1_000_000  # of one part
Document = dict[str, object]
Arguments = Mapping[str, object]
Parameters = Mapping[str, object]


class Answer(NamedTuple):
    """Holds the answer to a command: what the scheduler says, or that the command is kept for
    one."""

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
    """Holds some bytes of a log; `over` says that nothing more will be written behind them."""

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
    """Answers questions about runs and changes runs, on a store or through a server.

    A run is named as people do: by name, by number, or by the beginning of its name.
    """

    async def find(self, text: str = "") -> RunView:
        """Returns the run that a text names. Without a text, returns the only run, or the only
        one that is driven; raises Refused if there is neither."""

    async def look(self, name: str, arguments: Arguments) -> Document:
        """Returns the view of this name (a row of ``api.views``); the argument `run` says of
        which run."""

    async def log_part(
        self,
        run: str,
        wish: Arguments,
        *,
        offset: int | None = None,
        bytes_max: int = LOG_BYTES_MAX,
        wait_seconds: float = 0.0,
    ) -> LogPart:
        """Returns a part of a log, from an offset on; without an offset, the end of the log.

        `wish` names the log by `id`, `file`, `submit` and `attempt`; without an id it is that
        of the run itself. If nothing stands behind the offset yet, waits for it, `wait_seconds`
        at most, unless the log is over.
        """

    async def give(
        self, run: str, command: Command, *, who: str, seconds_max: float = ANSWER_SECONDS_MAX
    ) -> Answer:
        """Gives a command to a run and waits for its answer.

        Raises Declined, NotRunning or NoAnswer.
        """

    async def post(self, run: str, command: Command, *, who: str) -> int:
        """Gives a command without waiting for the answer; returns the command's number."""

    async def begin(
        self, new: NewRun, definition: StoredDefinition, *, is_checked: bool = False
    ) -> RunView:
        """Creates a run that any scheduler may take; raises InvalidDefinition with every
        finding. One that was read with these options just now, and whose jobs have places, need
        not be read again (``is_checked``)."""

    async def carry_on(self, run: str, given: RunOptions) -> RunView:
        """Asks any scheduler to go on with a run that nobody drives, with these options."""

    async def definition(self, run: str) -> StoredDefinition:
        """Returns the definition that the run has now."""

    async def save_definition(self, run: str, definition: StoredDefinition) -> str:
        """Stores a definition, so that the run can be told to go on with it (reload).

        Returns the digest under which it is kept. That may differ from the digest of what was
        sent, because a server marks nothing as trusted.
        """

    async def delete(self, run: str) -> RunView:
        """Deletes everything of a run that nobody drives, with its files beside the store or
        server; returns the run as it was."""


class RegistryDoor(Protocol):
    """Keeps workflows in the registry of a store (``services.registry.service``) or of a server
    (``store.remote``).

    A method that is given no version takes the highest one, unless it says otherwise. It raises
    UnknownWorkflow if there is none.
    """

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        """Registers all definitions of all bundles or none.

        Raises InvalidDefinition with every finding.
        """

    async def list(self, name: str = "") -> Document:
        """Returns the workflows by name, the highest version first; with a name, those of this
        name."""

    async def show(self, name: str, version: str = "") -> Document: ...
    async def check(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns whether a registered workflow can run, with the findings; with parameters,
        whether a run with these could begin."""

    async def render(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns what a run with these parameters would execute."""

    async def stages(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns what each stage of a SIP definition is, with its files; with parameters, as a
        run with these would have it. Raises InvalidDefinition if there are none."""

    async def definition(self, name: str, version: str = "") -> StoredDefinition:
        """Returns what is kept of a registered workflow: its text and its files."""

    async def diff(self, name: str, version: str, against: str) -> Document:
        """Returns the files in which another version differs from this one, line by line."""

    async def remove(self, name: str, version: str = "") -> Document:
        """Removes a version; without one, the only version, and raises Refused if there are
        several. Runs of it are not harmed."""

    async def begin(self, asked: RunRequest) -> RunView:
        """Creates a run that any scheduler may take; raises InvalidDefinition with every
        finding."""


class BlockDoor(Protocol):
    """Answers for scheduling block instances, processing blocks and buffer objects, on a store
    or through a server."""

    async def submit_sbi(
        self, file: str, content: bytes, *, who: str, dry_run: bool = False
    ) -> Document:
        """Submits a scheduling block instance, which is JSON or YAML as the file's name says.

        Raises InvalidSbi with every finding, and then stores nothing; nor does a dry run.
        """

    async def sbis(
        self, count: int = 100, *, status: str | None = None, subarray: str | None = None
    ) -> Document:
        """Returns the scheduling block instances, newest first; of one status or subarray."""

    async def sbi(self, sbi_id: str) -> Document:
        """Returns a scheduling block instance as it was asked for, and its blocks."""

    async def abort_sbi(self, sbi_id: str, *, who: str, reason: str = "") -> Document:
        """Aborts every block of an instance that is not over; the answer has each."""

    async def blocks(
        self,
        *,
        sbi: str | None = None,
        status: str | None = None,
        workflow: str | None = None,
        count: int = 100,
    ) -> Document:
        """Returns processing blocks, newest first; of one instance, status or workflow."""

    async def block(self, block_id: str) -> Document:
        """Returns a block with each stage: its state, times, end, values, and why it waits."""

    async def block_history(self, block_id: str) -> Document:
        """Returns what happened to a block and its stages, oldest first."""

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        """Ends the running stages of a block and starts no more; `changed` is false if the
        block was over."""

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        """Stores that objects are present; `objects` has their names, each with what is known
        of it."""

    async def objects(self, *, after: str = "", count: int = 1_000) -> Document:
        """Returns up to ``count`` buffer objects that are present, sorted by name, of those
        behind the name ``after``."""

    async def remove_object(self, name: str) -> Document:
        """Stores that an object is there no more; stages that have seen it go on."""


@runtime_checkable
class BringsReasons(Protocol):
    """Describes a store behind a server that is asked why a task does not run."""

    async def why(self, task_id: TaskId) -> list[str]: ...


@runtime_checkable
class BringsEvents(Protocol):
    """Describes a store behind a server whose events are followed over HTTP."""

    def follow_events(
        self, since: str | None, which: EventFilter
    ) -> AsyncIterator[FollowedEvent]: ...


@runtime_checkable
class BringsLogs(Protocol):
    """Describes a store behind a server that has the logs of attempts."""

    async def task_log(
        self, task_id: TaskId, stream: str, attempt: int, offset: int
    ) -> bytes | None:
        """Returns a part of what an attempt wrote, from an offset on; None if there is no such
        log."""

    async def search_task_log(
        self, task_id: TaskId, stream: str, asked: Mapping[str, object]
    ) -> FileHits | None:
        """Returns what one step of a search in a log finds; None if there is no such log."""


@runtime_checkable
class BringsNotifications(Protocol):
    """Shows the rules and messages of notifications, and sends tests of rules; a store behind a
    server does this, and a service beside a database."""

    async def notifications(self) -> Document: ...
    async def try_notifications(self, rule: str | None = None) -> Document: ...


@runtime_checkable
class BringsDoors(Protocol):
    """Describes a store behind a server, which has services for runs, the registry and
    blocks."""

    def run_door(self) -> RunDoor: ...
    def registry_door(self) -> RegistryDoor: ...
    def block_door(self) -> BlockDoor: ...
