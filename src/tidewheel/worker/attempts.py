"""Holds the attempts of a worker: what is known of each, what they take, and their leases.

To its job an attempt is the port ``JobReports``: what the job says goes into the worker's
queue of job events in the order in which it was said, from whichever thread.

Workers of one process may share a machine. Each claims what is free at that moment, so only one
of them claims at a time, and each is told what any of them gives back.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from tidewheel.api.tasks import InputView
from tidewheel.core.operator.definition import RUN_DIRECTORY, read_job_name
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Claimed, End, Ending, UsageSample
from tidewheel.core.queue.resources import NO_RESOURCES, FlavouredNodes, Resources, nodes_of
from tidewheel.core.queue.steps import TIMED_OUT
from tidewheel.core.queue.task import TaskError, TaskId, WorkerId
from tidewheel.core.queue.values import inputs_text, may_have_files
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.clock import Clock
from tidewheel.ports.runners import Assignment, Job
from tidewheel.ports.store import StandingClaim
from tidewheel.services.paths import attempt_directory, run_directory, submission_folder
from tidewheel.services.service import Surroundings, Wakeup


class Machine:
    """Counts the free resources of a machine; adopted jobs may take more than there are."""

    def __init__(self, capacity: Resources) -> None:
        self.claiming = asyncio.Lock()  # from the look at what is free until it is taken
        self.standing: StandingClaim | None = None  # counts on what is free: withdrawn first
        # The claimers of all its workers, which ask for more tasks when something becomes free.
        self.on_freed: list[Callable[[Sequence[Resources]], None]] = []
        self._capacity, self._labels = capacity, capacity.labels
        self._cpu = capacity.cpu
        self._memory_bytes = capacity.memory_bytes
        self._gpu = capacity.gpu
        self.nodes = capacity.nodes  # less those that somebody has alone
        self._shared: Counter[int] = Counter()  # how many tasks share so many nodes
        self._flavours = {one.flavour: _Flavour(one.nodes) for one in capacity.flavours}
        self._buffer_bytes = capacity.buffer_bytes
        self._all_of_it = (
            *(capacity.cpu, capacity.memory_bytes, capacity.gpu),
            *(capacity.nodes, capacity.buffer_bytes),
        )

    @property
    def resources(self) -> Resources:
        return Resources(
            cpu=self._cpu,
            memory_bytes=self._memory_bytes,
            gpu=self._gpu,
            labels=self._labels,
            nodes=max(0, self.nodes),
            idle_nodes=self.idle_nodes,
            buffer_bytes=self._buffer_bytes,
            flavours=(
                tuple(one.free(name) for name, one in self._flavours.items())
                if self._flavours
                else ()
            ),
        )

    def withdraw_for_ends(self) -> None:
        """Withdraws a standing claim for ends, whose slots are needed by something else."""
        if self.standing is not None and self.standing.for_ends and self.standing.withdraw():
            self.standing = None

    @property
    def idle_nodes(self) -> int:
        """Returns how many nodes have nothing running on them."""
        return max(0, self.nodes - max(self._shared, default=0))

    @property
    def tasks(self) -> int:
        """Returns how many tasks run here that share their nodes."""
        return self._shared.total()

    @property
    def is_untouched(self) -> bool:
        """Says whether nothing that runs here has asked for any resources."""
        free = (self._cpu, self._memory_bytes, self._gpu, self.nodes, self._buffer_bytes)
        if free != self._all_of_it:
            return False
        return not self._flavours or self.resources.flavours == self._capacity.flavours

    def may_follow(self, asked: Resources) -> bool:
        """Says whether tasks that fit may be left after a claim that ended with this task.

        A claim ends with a task that wants its nodes alone, and before such a task.
        """
        return (self.nodes if asked.exclusive else self.idle_nodes) > 0

    def change_all(self, asked: Iterable[Resources], sign: int) -> None:
        """Takes what attempts asked for (-1), or gives it back (1). Most ask for nothing, and
        are counted together."""
        count = 0
        for one in asked:
            if one is NO_RESOURCES:
                count += 1
            else:
                self.change(one, sign)
        if count:
            self.change(NO_RESOURCES, sign * count)

    def change(self, asked: Resources, sign: int) -> None:
        """Takes what an attempt asked for (-1), or gives it back (1); so many times."""
        if asked.cpu:
            # Rounded as in the core, or 0.1 + 0.2 - 0.3 would leave less than there is.
            self._cpu = round(self._cpu + sign * asked.cpu, 6)
        self._memory_bytes += sign * asked.memory_bytes
        self._gpu += sign * asked.gpu
        self._buffer_bytes += sign * asked.buffer_bytes
        if asked.flavours:
            self._change_flavours(asked.flavours, sign)
        elif asked.exclusive:
            self.nodes += sign * asked.nodes
        else:
            self._shared[asked.nodes] -= sign
            if not self._shared[asked.nodes]:
                del self._shared[asked.nodes]

    def _change_flavours(self, asked: Sequence[FlavouredNodes], sign: int) -> None:
        for one in asked:
            shared = one.nodes - one.idle
            if not one.flavour:
                self.nodes += sign * one.idle
                _count(self._shared, shared, sign)
            elif (found := self._flavours.get(one.flavour)) is not None:
                found.nodes += sign * one.idle
                _count(found.shared, shared, sign)


def _count(counter: Counter[int], shared: int, sign: int) -> None:
    """Counts a task that shares so many nodes, or takes it out again."""
    if shared:
        counter[shared] -= sign
        if not counter[shared]:
            del counter[shared]


class _Flavour:
    """Counts the nodes of one flavour, as those of the machine are counted."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.shared: Counter[int] = Counter()

    def free(self, name: str) -> FlavouredNodes:
        idle = max(0, self.nodes - max(self.shared, default=0))
        return nodes_of(name, max(0, self.nodes), idle)


AttemptKey = tuple[TaskId, int]


class Started(NamedTuple):
    """Says that the job runs, since a time of the local clock."""

    at: float


class Spoken(NamedTuple):
    """Holds a message of a job that has no number yet."""

    text: str
    output: str | None
    values: str | None = None


class Confirm(NamedTuple):
    """Asks for a sign once the store knows what was said before."""

    sign: asyncio.Future[None]


Said = Started | Spoken | UsageSample | Confirm | End


class JobEvents:
    """Queues the events of attempts until the reporter takes them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.wakeup = Wakeup(clock)  # the reporter's
        self.said: deque[tuple[Attempt, Said]] = deque()  # append and popleft are atomic
        self.is_over = False  # nobody takes them any more

    def put(self, attempt: Attempt, said: Said) -> None:
        """Adds an event and wakes the reporter; from any thread."""
        self.said.append((attempt, said))
        if not self.wakeup.is_rung:  # of many that end at once only the first has to ring
            self.wakeup.ring()


class StopReason(Enum):
    """Says why a job was stopped from outside."""

    CANCEL = "cancel"  # a client wants it to end
    TIME_LIMIT = "time_limit"  # it ran longer than it may
    YIELD = "yield"  # its worker goes, another shall take the task
    FENCE = "fence"  # the store is out of reach and the lease about to end
    LOST = "lost"  # the lease is not ours any more


@dataclass(slots=True, eq=False, repr=False)
class Attempt:
    """Holds what a worker knows of an attempt.

    Only the worker's loop changes it, except where a field says otherwise.
    """

    task: Claimed
    key: AttemptKey
    holder: Holder
    # When the store last granted the lease, by the local clock; kept by the lease book.
    confirmed_at: float
    _events: JobEvents
    _hear_progress: Callable[[Attempt], None]
    job: Job | None = None
    reason: StopReason | None = None
    grace_seconds: float = math.inf  # what a job was given to leave when it was stopped
    ended: bool = False  # the job is over, or never was
    is_recorded: bool = False  # the files that it returns are known, or being read
    spoke_last: bool = False  # its end is on the way to the store; what comes later is late
    messages_numbered: int = 0
    messages_stored: int = 0  # by an earlier owner; a runner that adopts says them again
    unacceptable: End | None = None  # the store refused what the job said
    latest_progress: float | None = None  # written by any thread, read by heartbeats
    begun_at: float = -math.inf  # by the local clock, if its job was started here
    # Has the log of a handler sent to a server, from any thread; None: there is no server.
    follow_log: Callable[[Attempt], None] | None = None

    # JobReports
    def started(self) -> None:
        self._events.put(self, Started(self._events.clock.monotonic()))

    def progress(self, value: float) -> None:
        # One bad number must not cost all leases their heartbeat.
        if 0.0 <= value <= 1.0 and value != self.latest_progress:
            self.latest_progress = value
            self._hear_progress(self)

    def message(self, text: str, output: str | None = None, values: str | None = None) -> None:
        self._events.put(self, Spoken(text, output, values))

    def usage(self, sample: UsageSample) -> None:
        self._events.put(self, sample)

    def log_begun(self) -> None:
        if self.follow_log is not None:
            self.follow_log(self)

    async def told(self) -> None:
        if self._events.is_over:
            return
        sign = asyncio.get_running_loop().create_future()
        self._events.put(self, Confirm(sign))
        await sign


def end_to_report(end: End, reason: StopReason, task: Claimed) -> End | None:
    """Returns the end to report of a job that was stopped; None if the lease is lost."""
    match reason:
        case StopReason.CANCEL:  # the store turns any end of a cancelled task into one
            return end
        case StopReason.TIME_LIMIT:
            words = f"it ran longer than its limit of {task.timeout_seconds:g} s"
            error = TaskError(code=TIMED_OUT, description=words)
            return replace(end, ending=Ending.ABORTED, error=error, values=None)
        case StopReason.YIELD | StopReason.FENCE:
            # Even if the job says that it succeeded: a script that leaves on SIGTERM with
            # status 0 has not done its work. Done twice is promised, not done is not.
            return End(ending=Ending.YIELDED, exit_status=end.exit_status, metrics=end.metrics)
        case StopReason.LOST:
            return None


def failure(code: str, description: str) -> End:
    """Returns a failure that the worker itself has found."""
    return End(ending=Ending.FAILED, error=TaskError(code=code, description=description))


BEATS_PER_LEASE = 3
NEWS_SECONDS = 1.0  # from one beat to the next that is sent for the sake of progress alone
FENCE_MARGIN = 0.25  # of the lease; half of it is the job's to leave, half to be killed


class LeaseBook:
    """Holds the leases of a worker, for its loop and its heartbeats."""

    def __init__(self, clock: Clock) -> None:
        self.beat_wakeup, self.fence_wakeup = Wakeup(clock), Wakeup(clock)  # of the heartbeats
        self._lock = threading.Lock()
        self._held: dict[AttemptKey, Attempt] = {}
        self._untold: set[AttemptKey] = set()  # their progress is news to the store
        self._told_at = -math.inf
        self._next_due_at = 0.0

    def hold(self, attempts: Iterable[Attempt]) -> None:
        """Adds leases, and wakes the heartbeats only if one is due before their wait ends."""
        earlier = False
        with self._lock:
            for attempt in attempts:
                self._held[attempt.key] = attempt
                task = attempt.task
                due_at = attempt.confirmed_at + task.lease_seconds / BEATS_PER_LEASE
                earlier = earlier or task.fence_kill or due_at < self._next_due_at
        if earlier:
            self._wake_heartbeats()

    def strike_out(self, attempts: Iterable[Attempt]) -> None:
        with self._lock:
            for attempt in attempts:
                self._held.pop(attempt.key, None)
                self._untold.discard(attempt.key)

    def hear_progress(self, attempt: Attempt) -> None:
        """Notes progress; the first since a beat wakes the heartbeats. From any thread."""
        with self._lock:
            if attempt.key not in self._held:
                return
            earlier = not self._untold
            self._untold.add(attempt.key)
        if earlier:
            self._wake_heartbeats()

    def _wake_heartbeats(self) -> None:
        self.beat_wakeup.ring()
        self.fence_wakeup.ring()

    def due(self, now: float) -> list[Attempt]:
        """Returns the attempts to send a heartbeat for: it is due or half due (to save a call),
        or there is progress to tell."""
        with self._lock:
            news = self._untold if self._told_at + NEWS_SECONDS <= now else frozenset()
            return [
                a for a in self._held.values() if _due_at(a, beats=0.5) <= now or a.key in news
            ]

    def next_due_at(self, idle_until: float) -> float:
        """Returns when the next beat is due; with no lease, when the idle time is over."""
        with self._lock:
            dues = map(_due_at, self._held.values())
            self._next_due_at = min(dues, default=idle_until)
            if self._untold:
                self._next_due_at = min(self._next_due_at, self._told_at + NEWS_SECONDS)
            return self._next_due_at

    def confirm(self, attempt: Attempt, sent_at: float, progress: float | None) -> None:
        """Notes that the store extended the lease, and knows this progress."""
        with self._lock:
            attempt.confirmed_at = max(attempt.confirmed_at, sent_at)
            self._told_at = max(self._told_at, sent_at)
            if attempt.latest_progress == progress:  # else the job has gone on meanwhile
                self._untold.discard(attempt.key)

    def fenced(self) -> list[Attempt]:
        """Returns the attempts whose jobs must end before their leases do, nearest first."""
        with self._lock:
            fenced = [attempt for attempt in self._held.values() if attempt.task.fence_kill]
        return sorted(fenced, key=fence_at)


def _due_at(attempt: Attempt, beats: float = 1.0) -> float:
    return attempt.confirmed_at + beats * attempt.task.lease_seconds / BEATS_PER_LEASE


def fence_at(attempt: Attempt) -> float:
    return attempt.confirmed_at + attempt.task.lease_seconds * (1.0 - FENCE_MARGIN)


def is_poll(task: Claimed) -> bool:
    """Says whether a task calls an xtrigger's function once; its answer is all that counts."""
    return task.run is not None and read_job_name(task.id).is_poll


class Supply(Protocol):
    """Brings what a job of a run needs into the folder of the run."""

    async def __call__(self, task: Claimed, directory: Path, /) -> None: ...
    def is_there(self, task: Claimed, directory: Path, /) -> bool: ...


TellJob = Callable[[Claimed], dict[str, str]]  # what a job finds in its environment
FetchInputs = Callable[[TaskId], Awaitable[Sequence[InputView]]]  # of a task, from the store


@dataclass(frozen=True, slots=True)
class JobFolders:
    """Knows where files of attempts are, what must be brought there, and what jobs are told."""

    home: Path
    tasks: Path  # below it, of the worker's store
    new_secret: Callable[[], str]
    supply: Supply | None = None
    tell_job: TellJob | None = None
    fetch_inputs: FetchInputs | None = None

    def directory(self, task: Claimed) -> Path:
        """Returns the folder of this attempt alone."""
        return Path(self._folder(task))

    def _folder(self, task: Claimed) -> str:
        if task.run is None:
            return str(attempt_directory(self.tasks, task.seq, task.attempt))
        return submission_folder(self.home, read_job_name(task.id), task.attempt)

    def assignment(
        self, task: Claimed, worker: WorkerId, inputs: str | None = None
    ) -> Assignment:
        """Returns the attempt as a runner sees it, with what its job is told."""
        told = {} if self.tell_job is None else self.tell_job(task)
        if task.run is not None:
            told[RUN_DIRECTORY] = str(self._run_directory(task))
        return Assignment(
            task=task,
            worker=worker,
            folder=self._folder(task),
            secret=self.new_secret(),
            store=self.tasks.name,
            environment=told,
            inputs=inputs,
        )

    def is_prepared(self, task: Claimed) -> bool:
        """Says whether the files of the task's run are known to be here."""
        return (
            self.supply is None
            or task.run is None
            or self.supply.is_there(task, self._run_directory(task))
        )

    async def prepare(self, task: Claimed) -> None:
        """Brings the files of the task's run here before the job starts."""
        if self.supply is not None and not self.is_prepared(task):
            await self.supply(task, self._run_directory(task))

    async def inputs(self, task: Claimed) -> str | None:
        """Returns the values of the tasks that a task needs, as JSON; None if there are none.
        Raises Refused if they are too many, Unavailable if the store does not answer."""
        if not task.has_inputs or self.fetch_inputs is None:
            return None
        found = await self.fetch_inputs(task.id)
        text = inputs_text({one.id: one.values_text for one in found})
        if may_have_files(text):
            from tidewheel.runners.file_values import check_files  # noqa: PLC0415 - few do

            await asyncio.to_thread(check_files, text)
        return text or None

    def file_folders(self, task: Claimed) -> tuple[Path, tuple[Path, ...]]:
        """Returns below which folder relative paths of a job are, and in which folders files
        may lie that it returns."""
        if task.run is None:
            folder = self.directory(task)
            return folder, (folder,)
        run = self._run_directory(task)
        base = run / read_job_name(task.id).work_folder
        return base, (run / "share", run / "work")

    def clear(self, task: Claimed) -> None:
        """Removes the folder of a call of a function, of which there is one in each poll."""
        if is_poll(task):
            shutil.rmtree(self.directory(task), ignore_errors=True)

    def _run_directory(self, task: Claimed) -> Path:
        return run_directory(self.home, read_job_name(task.id).run)


class AttemptTable:
    """Holds the attempts of a worker; each takes capacity until the store accepted its end."""

    def __init__(
        self,
        worker: WorkerId,
        folders: JobFolders,
        slots: int,
        machine: Machine,
        surroundings: Surroundings,
        over: Wakeup,
    ) -> None:
        self.worker = worker
        self.folders = folders
        self.slots = slots  # that are free
        # Reports of ends bring the next tasks along: then a report waits for a claim under way.
        self.refills = False
        # A scheduler of this process took the last reports into its batch.
        self.is_beside_scheduler = False
        self.machine = machine
        self.clock = surroundings.clock
        self.failpoint = surroundings.failpoint
        self.book = LeaseBook(self.clock)
        self.events = JobEvents(self.clock)
        self._over = over  # rung whenever attempts are over
        self._attempts: dict[AttemptKey, Attempt] = {}

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._attempts

    def attempt(self, task: Claimed, asked_at: float) -> Attempt:
        """Returns a new attempt whose lease was asked for at that time of the local clock."""
        holder = Holder(task_id=task.id, attempt=task.attempt, worker=self.worker)
        key, hear_progress = (task.id, task.attempt), self.book.hear_progress
        return Attempt(task, key, holder, asked_at, self.events, hear_progress)

    def take(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._attempts[attempt.key] = attempt
        self.machine.change_all([attempt.task.resources for attempt in attempts], -1)
        self.slots -= len(attempts)
        self.book.hold(attempts)

    def let_go(self, attempts: Sequence[Attempt]) -> None:
        """Frees what these attempts had, tells the machine's claimers, and wakes the worker."""
        for attempt in attempts:
            if attempt.task.run is not None:
                self.folders.clear(attempt.task)
            del self._attempts[attempt.key]
        freed = [attempt.task.resources for attempt in attempts]
        self.machine.change_all(freed, 1)
        self.slots += len(attempts)
        self.book.strike_out(attempts)
        for hear_freed in self.machine.on_freed:
            hear_freed(freed)
        self._over.ring()
