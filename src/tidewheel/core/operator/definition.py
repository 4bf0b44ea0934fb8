"""Holds the definition of a run as it is stored: by its content, so that it is there for ever.

A restart reads nothing else: the rendered text, the files that lay beside it, and the options
that were given. Points that depend on the clock were resolved before they came here. Of a SIP
definition all files are kept as they were written: its digest says which definition it is,
whatever a request makes of it.

How a definition came in is kept in its digest: one that its owner gave from a folder of this
machine is marked, one that came over the network is not. When files of a run are read again,
their code runs only where the mark is. It is in the digest because the same content may
come both ways: a stranger who sends a copy of an owner's definition must not get its mark.

Names of runs stand here, too: how a submission of a run is called in the store, and where its
files lie. The id is `RUN/POINT/NAME/SUBMIT`; a run's name may have slashes, the other parts
have none. A run's name is a folder, too, below the state directory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache

from tidewheel.core.queue.access import CODE, RUN_QUEUE
from tidewheel.core.queue.submission import NAME_LENGTH_MAX
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

FLOW_CYLC = "flow.cylc"
PYTHON = "python"
SIP = "sip"
PYTHON_SUFFIX = ".py"
TRUSTED_MARK = "-local"  # behind the digest of a definition whose code may run here


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Holds a file of the definition's folder; `path` is relative and has no `..`."""

    path: str
    content: bytes
    executable: bool = False


def stored_files(
    contents: Mapping[str, bytes], executable: Container[str]
) -> tuple[StoredFile, ...]:
    """Returns files by path, in the order in which they are kept: a digest depends on it."""
    return tuple(
        StoredFile(path, content, path in executable)
        for path, content in sorted(contents.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDefinition:
    """Holds the content of a definition.

    `digest` is the SHA-256 of everything else in hexadecimal digits, and the mark of those that
    may be trusted.
    """

    digest: str
    workflow: str  # its name
    kind: str = FLOW_CYLC
    text: str = ""  # as rendered; for Python and SIP the name of the file
    variables: str = "[]"  # JSON: template variables as texts, NAME=LITERAL
    files: tuple[StoredFile, ...] = ()

    @property
    def is_trusted(self) -> bool:
        """Says whether the definition's own code may run in the process that reads it.

        Earlier versions marked nothing. What they kept is trusted only if it is Python: no
        server has ever taken that, so it came from a folder.
        """
        return self.digest.endswith(TRUSTED_MARK) or self.kind == PYTHON


def sealed(definition: StoredDefinition, *, trusted: bool = False) -> StoredDefinition:
    """Returns a definition with the digest of its content, and the mark if it is trusted."""
    fields = {
        name: getattr(definition, name) for name in ("workflow", "kind", "text", "variables")
    }
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
    for one in definition.files:
        digest.update(f"\0{one.path}\0{int(one.executable)}\0{len(one.content)}\0".encode())
        digest.update(one.content)
    mark = TRUSTED_MARK if trusted else ""
    return replace(definition, digest=digest.hexdigest() + mark)


def is_same_content(one: str, other: str) -> bool:
    """Says whether two digests are of the same definition, however it came in."""
    return one.removesuffix(TRUSTED_MARK) == other.removesuffix(TRUSTED_MARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Holds the options of one run, which its definition does not have; points are texts."""

    compat: str = ""  # "cylc8" or ours
    mode: str = "live"  # live, simulation, dummy, skip
    initial: str = ""
    final: str = ""
    start: str = ""
    start_tasks: tuple[str, ...] = ()
    stop: str = ""
    hold_after: str = ""
    paused: bool = False  # from the start
    now: float = 0.0  # what the clock showed when the run was made
    abort_if_any_task_fails: bool = False
    prune_across_points: bool = False
    job_commands: bool = True  # whether jobs may do more than speak
    stall_timeout_seconds: float | None = None  # None: as the definition says
    parameters: str = ""  # JSON: what a request gives to a SIP definition; "": nothing
    priority: int | None = None  # of all its tasks, -1 to 100; None: as tasks have it
    files: str = ""  # JSON: files that a task's run was given, to be compared by who reads them


# How the command line spells the options of a run.
SPELLED = {
    "compat": "--compat",
    "mode": "--mode",
    "initial": "--icp",
    "final": "--fcp",
    "start": "--startcp",
    "start_tasks": "--start-task",
    "stop": "--stopcp",
    "hold_after": "--hold-after",
    "parameters": "-p",
    "priority": "--priority",
}
KIND_WORDS = {
    FLOW_CYLC: "a flow.cylc",
    PYTHON: "a workflow in Python",
    SIP: "a SIP definition",
}
# Options that would have no effect on a run, by the kind of its definition: stages have no
# cycle points, and other definitions no request.
IDLE_OPTIONS = {
    FLOW_CYLC: ("parameters",),
    PYTHON: ("parameters",),
    SIP: ("compat", "initial", "final", "start", "stop", "hold_after"),
}


def kinds_with(option: str) -> list[str]:
    """Returns the kinds of definition whose runs follow an option."""
    return [kind for kind, idle in IDLE_OPTIONS.items() if option not in idle]


def not_for(kind: str, kinds: Sequence[str]) -> str:
    """Says that something is for these kinds of definition, and not for the one there is."""
    works_with = " or ".join(KIND_WORDS[one] for one in kinds)
    return f"is for {works_with}, not for {KIND_WORDS[kind]}; leave it out"


def check_options(kind: str, options: RunOptions) -> None:
    """Raises Refused for an option that would have no effect on a run of this kind."""
    for name in IDLE_OPTIONS[kind]:
        if getattr(options, name):
            spelled = f"{SPELLED[name]} ({name})"
            raise Refused(f"{spelled} {not_for(kind, kinds_with(name))}")


def with_effect(kind: str, options: RunOptions) -> RunOptions:
    """Returns the options that have an effect on a run of this kind, for options that nobody
    has chosen for it."""
    nothing = RunOptions()
    return replace(options, **{name: getattr(nothing, name) for name in IDLE_OPTIONS[kind]})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """Holds a run to be made; without a name it becomes the next `WORKFLOW/runN`."""

    workflow: str
    definition: str  # its digest
    name: str = ""
    options: RunOptions = field(default_factory=RunOptions)
    folder: str = ""  # where the definition lay, for people
    queue: str = ""  # "": the run's own, `run:NAME`
    lease_seconds: float = 60.0  # of its tasks
    # Any scheduler may begin it; None: the process that makes the run will drive it.
    given: RunOptions | None = None
    request: str = ""  # asking again in the same words gives the same run
    sees: tuple[str, ...] | None = None  # see RunView
    parent: int | None = None  # see RunView


LATEST = "NN"  # the link to the submission that was made last
LATER_ATTEMPT = "attempt-"  # the folders of a submission's attempts after the first begin so
RUN_DIRECTORY = "TIDEWHEEL_RUN_DIR"  # in a job's environment: the folder of its run
JOB_OUTPUTS = "TIDEWHEEL_TASK_OUTPUTS"  # there: the outputs of its own that its task declares
DEFINITION = "WORKFLOW_DEFINITION"  # in a job's script: the digest of what it was written from
_PARTS_AFTER_RUN = 3
NAMES_REMEMBERED_MAX = 1_024
# Code of a definition that is no job of its graph, such as an event handler, is a task, too. In
# the ids of these tasks `CODE` stands in the place of a point, and no point is called so.
HANDLER, FUNCTION = "handler", "function"  # the kinds of code; a task's name begins with one


class JobName(NamedTuple):
    """Names one submission of one task of a run."""

    run: str
    point: str
    node: str
    submit: int

    @property
    def task_id(self) -> TaskId:
        return TaskId(f"{self.run}/{self.point}/{self.node}/{self.submit}")

    @property
    def text(self) -> str:
        """Returns the name as people and existing scripts write it: `1/foo/01`."""
        return f"{self.point}/{self.node}/{self.submit:02d}"

    def log_folder(self, attempt: int) -> str:
        """Returns the folder of an attempt's logs, below that of its run.

        Attempts after the first have a folder within the first one's.
        """
        folder = f"log/job/{self.point}/{self.node}/{self.submit:02d}"
        return folder if attempt <= 1 else f"{folder}/{LATER_ATTEMPT}{attempt}"

    @property
    def work_folder(self) -> str:
        return f"work/{self.point}/{self.node}"

    @property
    def share_folder(self) -> str:
        """Returns the folder that all tasks of one point share."""
        return f"share/cycle/{self.point}"

    @property
    def is_code(self) -> bool:
        """Says whether it is a handler or a function, and no job of the run's graph."""
        return self.point == CODE

    @property
    def is_poll(self) -> bool:
        """Says whether it is one call of an xtrigger's function, of which nothing is kept."""
        return self.is_code and self.node.startswith(f"{FUNCTION}-")


def run_named_by(task_id: TaskId) -> str | None:
    """Returns the run that a job's id names, whether or not it exists; None for other ids."""
    run, *rest = task_id.rsplit("/", _PARTS_AFTER_RUN)
    return run if len(rest) == _PARTS_AFTER_RUN and rest[-1].isdecimal() else None


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)  # of each job it is asked several times
def read_job_name(task_id: TaskId) -> JobName:
    """Returns the parts of the id of a task that is known to belong to a run.

    Ids of other tasks may look the same.
    """
    run, point, node, submit = task_id.rsplit("/", _PARTS_AFTER_RUN)
    return JobName(run, point, node, int(submit))


def code_queue(run: str, queue: str) -> str:
    """Returns the queue for the code of a run: one below the run's own, `run:NAME/code`.

    A run that was given another queue has its code there, as its maker chose its workers.
    """
    return f"{queue}/{CODE}" if queue == f"{RUN_QUEUE}{run}" else queue


PART_BYTES_MAX = 200  # a folder's name; what is put beside it needs some room
ACCEPTED = (
    f"a name of up to {NAME_LENGTH_MAX} printable characters; its parts between / may not be "
    f"empty, '.' or '..', begin with '-' or have more than {PART_BYTES_MAX} bytes, and the "
    f"last part after a / may not be {CODE!r}"
)


def is_run_name(name: str) -> bool:
    """Says whether a run may have this name, which is also a folder's (RELIABILITY S3).

    Its folder must lie below that of all runs, and nowhere else. Its queue must not be called
    as that for the code of another run.
    """
    return (
        bool(name.strip())
        and not name.endswith(f"/{CODE}")
        and len(name) <= NAME_LENGTH_MAX
        and name.isprintable()
        and all(
            0 < len(part.encode(errors="replace")) <= PART_BYTES_MAX
            and part not in (".", "..")
            and not part.startswith("-")
            for part in name.split("/")
        )
    )


def names_above(name: str) -> Iterator[str]:
    """Returns the names of the folders in which the folder of this run would lie."""
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))
