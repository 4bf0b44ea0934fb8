"""Holds the errors that users and programs can act on, as one tree.

TidewheelError
  Refused             asked for something not allowed     -> exit 2, 4xx; never logged as error
    InvalidTask         a submitted task breaks a rule; carries every finding
    PayloadTooLarge     more bytes than the limit allows
    NotFound            no such task, queue or worker
    Duplicate           the id, name or unique key is taken by something else
    WrongStatus         the status does not allow this signal; carries the allowed ones
    NotDue              the task is delayed and its time has not come
    LeaseLost           the reporter does not hold the lease (wrong owner or superseded attempt)
    UnknownDependency   an edge names a task that does not exist
    DependencyCycle     an edge would close a circle; carries the path
    MessagesMissing     an end report arrived before messages that the job sent earlier
    BadSetting          a setting is out of its bounds
    BadValues           what an attempt hands on is no JSON object, or too large
    AmbiguousRun        several runs have names that begin so; carries them
    RunHeld             another scheduler drives the run
    RunWaits            the run may not begin before others; carries them
    RunNeeded           the run may not be deleted before those that wait for it; carries them
    SbiTaken            another scheduling block instance has this id
    RunLost             the scheduler's lease of a run was taken over: a newer epoch writes
    Aborted             the block was aborted, which is final
    NotRunning          no scheduler drives the run, so nobody could obey
    RunStopping         its scheduler stops the run; nothing of it is begun (a NotRunning)
    AlreadyRegistered   a workflow of this name and version has other content
    UnknownWorkflow     no workflow of this name and version is registered (a NotFound)
    Declined            the run heard a command and does not do it
    (of definitions, where they are read: BadCycling, BadParameter, BadStatement,
    InvalidDefinition; each carries what to write instead. Of a server: server/errors.py)
  Unavailable         the world did not answer; try again -> exit 3, 503; retried with back-off
    StoreBusy           a lock or a connection was not to be had in time
    StoreUnreachable    the database does not answer
    StoreFull           the disk under the database is full
    RunnerUnable        this host can start no job just now; its task is for another
    LauncherLost        the same for good: the worker ends (a RunnerUnable)
    NoAnswer            a run has not answered a command yet, which waits for it
  StoreUnusable       the database must not be used as is  -> exit 3; a person decides
    NewerSchema, OlderSchema, CorruptStore, UnsafeStore

A bug is an AssertionError: it stops the service, which restarts from the store.
Messages say what was seen, what would have been accepted and, where known, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote


class TidewheelError(Exception):
    """Something that a person or a program can act on."""

    code = "error"
    http_status = 500  # with which a server tells it

    def __init_subclass__(cls, code: str = "", http_status: int = 0) -> None:
        cls.code, cls.http_status = code or cls.code, http_status or cls.http_status


class Refused(TidewheelError):
    """The request is not allowed; nothing was changed."""

    code = "refused"
    http_status = 409  # unless the case has its own: it conflicts with what is stored


class InvalidTask(Refused, code="invalid", http_status=422):
    """A task breaks one or more rules."""

    def __init__(self, task_id: str, findings: Iterable[str]) -> None:
        self.task_id = task_id
        self.findings = tuple(findings)
        super().__init__(f"task {task_id!r}: " + "; ".join(self.findings))


class PayloadTooLarge(Refused, code="too_large", http_status=413):
    """More bytes than the limit allows."""

    def __init__(self, what: str, size: int, size_max: int) -> None:
        self.what, self.size, self.size_max = what, size, size_max
        super().__init__(
            f"{what} has {size} bytes; at most {size_max} are accepted. "
            "Store the data elsewhere and submit a reference to it"
        )


class NotFound(Refused, code="not_found", http_status=404):
    """No such thing in the store."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"there is no {kind} {name!r} in this store")


class Duplicate(Refused, code="duplicate"):
    """The id, name or unique key is taken."""

    def __init__(self, kind: str, name: str, holder: str) -> None:
        self.kind, self.name, self.holder = kind, name, holder
        if not holder:  # one that is not told
            super().__init__(f"{kind} {name!r} is taken; choose another")
            return
        if holder.startswith("run "):
            super().__init__(f"{kind} {name!r} is taken by {holder}; choose another")
            return
        super().__init__(
            f"{kind} {name!r} is taken by task {holder!r}, which differs from the "
            f"submitted task; submit exactly the same task again, or choose another {kind}"
        )


class WrongStatus(Refused, code="wrong_status"):
    """The task's status does not allow this."""

    def __init__(
        self, task_id: str, operation: str, status: str, allowed: Iterable[str]
    ) -> None:
        self.task_id, self.operation, self.status = task_id, operation, status
        self.allowed = tuple(allowed)
        seen = f"is not possible; the status is {status}"
        if self.allowed:
            seen = f"needs status {' or '.join(self.allowed)}; the status is {status}"
        super().__init__(f"task {task_id!r}: {operation} {seen}")


class NotDue(Refused, code="not_due"):
    """The task is delayed and its time has not come."""

    def __init__(self, task_id: str, seconds: float) -> None:
        self.task_id, self.seconds = task_id, seconds
        super().__init__(
            f"task {task_id!r} is delayed for another {seconds:.3g} s; claim it then, "
            "or submit it without a delay"
        )


class LeaseLost(Refused, code="lease_lost"):
    """Only owner can extend the heartbeat."""

    def __init__(
        self, task_id: str, *, asked: tuple[str, int], held: tuple[str | None, int]
    ) -> None:
        self.task_id, self.asked, self.held = task_id, asked, held
        worker, attempt = asked
        owner, current = held
        holder = f"{owner} holds the task for attempt {current}"
        if owner is None:
            holder = f"no worker holds the task (attempt {current} was the last)"
        super().__init__(
            f"task {task_id!r}: Only owner can extend the heartbeat. {worker} reported for "
            f"attempt {attempt}, but {holder}; stop this job: its result is discarded"
        )


class UnknownDependency(Refused, code="unknown_dependency", http_status=422):
    """An edge names a task that does not exist."""

    def __init__(self, task_id: str, missing: Iterable[str]) -> None:
        self.task_id, self.missing = task_id, tuple(missing)
        names = ", ".join(repr(name) for name in self.missing)
        are, them = ("is", "it") if len(self.missing) == 1 else ("are", "them")
        super().__init__(
            f"task {task_id!r} needs {names}, which {are} neither in this store nor earlier in "
            f"this submission; submit {them} first, or in the same call"
        )


class DependencyCycle(Refused, code="cycle"):
    """An edge would close a circle."""

    def __init__(self, path: Iterable[str]) -> None:
        self.path = tuple(path)
        circle = " => ".join(self.path)
        super().__init__(
            f"tasks would wait for each other: {circle}; remove one of these edges"
        )


class MessagesMissing(Refused, code="messages_missing"):
    """Messages of an attempt are numbered without gaps."""

    def __init__(self, task_id: str, seen: int, got: int) -> None:
        self.task_id, self.seen, self.got = task_id, seen, got
        super().__init__(
            f"task {task_id!r}: message {got} arrived after message {seen}; "
            f"send message {seen + 1} first"
        )


class BadSetting(Refused, code="bad_setting", http_status=422):
    """A setting is out of its bounds, or cannot be combined with another one.

    ``fault`` is the whole message where no other value of this setting alone would be accepted.
    """

    def __init__(
        self, name: str, value: object, accepted: str = "", *, fault: str = ""
    ) -> None:
        self.name, self.value, self.accepted = name, value, accepted
        super().__init__(fault or f"{name} is {value!r}; expected {accepted}")


class BadValues(Refused, code="bad_values", http_status=422):
    """The values that an attempt passes on are not a JSON object, or are too large."""

    def __init__(self, seen: str) -> None:
        self.seen = seen
        super().__init__(f"the values cannot be passed on: {seen}")


class NoStore(Refused, code="no_store"):
    """There is no store to look at."""

    def __init__(self, url: str, path: str) -> None:
        self.url, self.path = url, path
        super().__init__(
            f"there is no store {url}: there is no file {path}. Check the name; tidewheel "
            "run, submit and up create a store"
        )


class Unavailable(TidewheelError, code="unavailable", http_status=503):
    """Something outside the program did not answer; the same request may succeed later."""


class StoreBusy(Unavailable, code="store_busy"):
    """The store is busy: no lock or connection was free in time; try again."""


class StoreUnreachable(Unavailable, code="store_unreachable"):
    """The database does not answer."""


class ForkedProcess(RuntimeError):
    """A process uses threads and connections of the process of which it is a fork."""

    def __init__(self, process: int) -> None:
        super().__init__(
            f"this client was made by process {process}, of which this process is a fork; make "
            "a client in each process"
        )


class StoreFull(Unavailable, code="store_full"):
    """The disk under the database is full; nothing was changed. Free space and try again."""


class RunnerUnable(Unavailable, code="runner_unable"):
    """This host can start no job just now, whichever it is; its task is for another."""


class LauncherLost(RunnerUnable, code="launcher_lost"):
    """The launcher of --run-as does not answer, so the worker ends."""

    WORDS = (
        "the launcher of --run-as does not answer: this worker can neither start nor end "
        "jobs, and stops. Its jobs continue; restart the worker, and it takes them over"
    )

    def __init__(self, words: str = WORDS) -> None:
        super().__init__(words)


class NoAnswer(Unavailable, code="no_answer"):
    """The scheduler did not answer in time; the command waits for it."""


class StoreUnusable(TidewheelError, code="store_unusable", http_status=503):
    """The database must not be used as it is."""


class NewerSchema(StoreUnusable, code="newer_schema"):
    """The database was written by a newer tidewheel."""

    def __init__(self, found: int, known: int) -> None:
        self.found, self.known = found, known
        super().__init__(
            f"the store has schema version {found}; this tidewheel supports versions up to "
            f"{known}. "
            "Upgrade tidewheel: a store cannot be downgraded"
        )


class OlderSchema(StoreUnusable, code="older_schema"):
    """The database needs to be migrated."""

    def __init__(self, found: int, known: int) -> None:
        self.found, self.known = found, known
        super().__init__(
            f"the store has schema version {found}; this tidewheel needs version {known}. "
            "Back up the store, stop every process that uses it (servers, schedulers, monitors "
            "and workers), then run: tidewheel migrate"
        )


class CorruptStore(StoreUnusable, code="corrupt_store"):
    """The database file is damaged."""

    def __init__(self, path: str, seen: str) -> None:
        self.path, self.seen = path, seen
        super().__init__(
            f"the store {path} is damaged ({seen}) and was left as it is. "
            "Restore a backup (tidewheel migrate puts backups beside the file: *.backup-*)"
        )


class UnsafeStore(StoreUnusable, code="unsafe_store"):
    """The database library or its settings could lose data that was acknowledged."""


class AmbiguousRun(Refused, code="ambiguous"):
    """More than one run has a name that begins so."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        self.text, self.names = text, tuple(names)
        super().__init__(f"{text!r} could be {', '.join(self.names)}; write more of the name")


class RunHeld(Refused, code="run_held"):
    """Another scheduler drives this run."""

    def __init__(self, name: str, owner: str, seconds_left: float) -> None:
        self.name, self.owner, self.seconds_left = name, owner, seconds_left
        super().__init__(
            f"{name} is driven by {owner}, whose lease lasts {seconds_left:.0f} s more; "
            "control the run from here (tidewheel show, trigger, stop …), or stop it first"
        )


class RunUnderWay(Refused, code="run_under_way"):
    """The workflow that is to be run is being run."""

    def __init__(self, name: str, status: str, who: str, look: str) -> None:
        self.name, self.status, self.who, self.look = name, status, who, look
        super().__init__(
            f"{name} is {status} ({who}); {look}, or start another run beside it: --new"
        )


class RunWaits(Refused, code="run_waits"):
    """The run may not begin before others."""

    def __init__(self, name: str, needs: Iterable[str]) -> None:
        self.name, self.needs = name, tuple(needs)
        super().__init__(f"{name} cannot begin yet: it waits for {', '.join(self.needs)}")


class RunNeeded(Refused, code="run_needed"):
    """Others wait for this run."""

    def __init__(self, name: str, children: Iterable[str]) -> None:
        self.name, self.children = name, tuple(children)
        super().__init__(
            f"{name} cannot be deleted: {', '.join(self.children)} wait for it; abort them "
            f"first: tidewheel blocks abort {self.children[0] if self.children else ''}"
        )


class SbiTaken(Refused, code="sbi_taken"):
    """Another scheduling block instance has this id."""

    def __init__(self, sbi_id: str) -> None:
        self.sbi_id = sbi_id
        super().__init__(
            f"{sbi_id} was submitted before with other content; nothing was stored. Use "
            f"another id, or compare with what is stored: tidewheel sbi show {sbi_id}"
        )


class RunLost(Refused, code="run_lost"):
    """A scheduler may not write: its lease of the run was taken over."""

    def __init__(self, name: str, epoch: int, current: int) -> None:
        self.name, self.epoch, self.current = name, epoch, current
        super().__init__(
            f"{name} is now driven by another scheduler (its epoch is {current}, here {epoch})"
        )


class Aborted(Refused, code="aborted"):
    """This block was aborted, and that is final."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"{name} was {reason}; an aborted block never runs again. "
            "Submit its work again under another id: tidewheel sbi submit FILE"
        )


class NotRunning(Refused, code="not_running"):
    """No scheduler drives this run, so none can carry out a command; its jobs may still run."""

    def __init__(self, name: str, status: str, jobs: Sequence[str] = ()) -> None:
        self.name, self.status = name, status
        run = quote(name)
        do = f"{'start' if status == 'created' else 'resume'} it first: tidewheel run {run}"
        if jobs:
            which = f"{', '.join(jobs)} still {'runs' if len(jobs) == 1 else 'run'}"
            do = f"{which}; to end every job of the run: tidewheel stop {run} --kill --run"
        if status == "completed":
            do = (
                "the commands trigger, set and release reopen it; "
                f"to run more cycles: tidewheel run {run} --fcp POINT"
            )
        seen = f"{name} is not running ({status})"
        if status not in ("created", "stopped", "completed", "error"):
            why = "no scheduler drives it" if status == "stalled" else "its scheduler is gone"
            seen = f"{name} is {status}, but {why}"
        super().__init__(f"{seen}; {do}")


class RunStopping(NotRunning, code="run_stopping"):
    """The scheduler of this run is stopping it, and starts no more tasks."""

    def __init__(self, name: str) -> None:
        self.name, self.status = name, "stopping"
        Refused.__init__(
            self,
            f"{name} is stopping, and starts no more tasks; "
            f"resume it first: tidewheel run {quote(name)}",
        )


class Declined(Refused, code="declined"):
    """The scheduler of the run received the command and refused it."""


class AlreadyRegistered(Refused, code="already_registered"):
    """A workflow of this name and version has other content."""

    def __init__(self, workflows: Iterable[str]) -> None:
        self.workflows = tuple(workflows)
        super().__init__(
            f"registered already with other content: {', '.join(self.workflows)}; nothing was "
            "stored. Give the new content another version, or remove the old one first: "
            f"tidewheel workflows remove {self.workflows[0] if self.workflows else ''}"
        )


class UnknownWorkflow(NotFound, code="unknown_workflow"):
    """No workflow of this name and version is registered."""

    def __init__(self, name: str, advice: str) -> None:
        super().__init__("workflow", name)
        self.advice = advice
        self.args = (f"no workflow {name!r} is registered; {advice}",)
