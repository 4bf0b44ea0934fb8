"""The definition of a run as it is stored: by its content, so that it is there for ever.

A restart reads nothing else: the rendered text, the files that lay beside it, and the options
that were given. Points that depend on the clock were resolved before they came here. Of a SIP
definition all files are kept as they were written: its digest says which definition it is,
whatever a request makes of it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

FLOW_CYLC = "flow.cylc"
PYTHON = "python"
SIP = "sip"
PYTHON_SUFFIX = ".py"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the definition's folder; `path` is relative and has no `..`."""

    path: str
    content: bytes
    executable: bool = False


def stored_files(
    contents: Mapping[str, bytes], executable: Container[str]
) -> tuple[StoredFile, ...]:
    """Files by their path, in the order in which they are kept: a digest depends on it."""
    return tuple(
        StoredFile(path, content, path in executable)
        for path, content in sorted(contents.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDefinition:
    """`digest` is the SHA-256 of everything else, in hexadecimal digits."""

    digest: str
    workflow: str  # its name
    kind: str = FLOW_CYLC
    text: str = ""  # as rendered; for Python and SIP the name of the file
    variables: str = "[]"  # JSON: template variables as texts, NAME=LITERAL
    files: tuple[StoredFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What was said about one run beside its definition; points are texts, "" is not given."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be made. `name` "": the next `WORKFLOW/runN`."""

    workflow: str
    definition: str  # its digest
    name: str = ""
    options: RunOptions = field(default_factory=RunOptions)
    folder: str = ""  # where the definition lay, for people
    queue: str = ""  # "": the run's own, `run:NAME`
    lease_seconds: float = 60.0  # of its tasks
    # Any scheduler may begin it; None: whoever makes it will drive it.
    given: RunOptions | None = None
    request: str = ""  # whoever asks again in the same words gets the same run
