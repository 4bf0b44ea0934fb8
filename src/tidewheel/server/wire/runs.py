"""Runs and their definitions as they travel."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import msgspec

from tidewheel.core.operator.definition import RunOptions, StoredDefinition, StoredFile
from tidewheel.server.wire.validation import Duration, In, Out

TEXT_BYTES_MAX = 5_000_000
FILES_MAX = 10_000
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_BYTES_MAX)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Point = Annotated[str, msgspec.Meta(max_length=100)]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(max_length=1_000)]


class FileIn(In):
    """A file that lies beside the definition, and is there for its jobs."""

    path: Path  # relative
    content: str = ""  # in base64
    executable: bool = False


class DefinitionIn(In):
    """A definition as a client captured it."""

    workflow: Name
    text: Text  # as rendered; of a SIP definition the name of its file
    kind: Literal["flow.cylc", "python", "sip"] = "flow.cylc"
    variables: Texts = ()  # template variables, as NAME=LITERAL
    files: Annotated[tuple[FileIn, ...], msgspec.Meta(max_length=FILES_MAX)] = ()


class OptionsIn(In):
    """The options of a run beside its definition; points are texts."""

    compat: Literal["", "cylc8"] = ""
    mode: Literal["", "live", "simulation", "dummy", "skip"] = ""
    initial: Point = ""
    final: Point = ""
    start: Point = ""
    start_tasks: Annotated[tuple[Name, ...], msgspec.Meta(max_length=1_000)] = ()
    stop: Point = ""
    hold_after: Point = ""
    paused: bool = False
    now: Annotated[float, msgspec.Meta(ge=0, le=1e12)] = 0.0  # 0: as the server's clock says
    abort_if_any_task_fails: bool = False
    prune_across_points: bool = False
    job_commands: bool | None = None  # null: for a captured definition, not for a text
    stall_timeout: Duration | None = None
    parameters: Annotated[str, msgspec.Meta(max_length=200_000)] = ""  # JSON, for kind sip
    priority: Annotated[int, msgspec.Meta(ge=-1, le=100)] | None = None


class RunIn(In):
    """A run to begin: of a registered workflow, of a flow.cylc as it is written, or of a
    definition that was captured."""

    flow: Text | None = None  # with its templates
    # How a flow shall be called; without one, a workflow of the registry.
    workflow: Annotated[str, msgspec.Meta(max_length=255)] = ""
    version: Annotated[str, msgspec.Meta(max_length=200)] = ""  # else the highest
    # Of what is registered, or of a SIP definition.
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    variables: dict[str, Any] = msgspec.field(default_factory=dict)  # of its templates
    definition: DefinitionIn | None = None
    options: OptionsIn = msgspec.field(default_factory=OptionsIn)
    name: Annotated[str, msgspec.Meta(max_length=255)] = ""  # else the next WORKFLOW/runN
    queue: Annotated[str, msgspec.Meta(max_length=255)] = ""  # of its jobs; else run:NAME
    folder: Annotated[str, msgspec.Meta(max_length=4_096)] = ""  # for people


class CarryOnIn(In):
    """The new options of a run that goes on; an option that is not given stays as it was."""

    options: OptionsIn = msgspec.field(default_factory=OptionsIn)


class SavedOut(Out):
    """A definition that is kept."""

    digest: str


class FileOut(Out):
    """A file of a definition, in base64."""

    path: str
    content: str
    executable: bool


class DefinitionOut(Out):
    """The definition of a run."""

    digest: str
    workflow: str
    kind: str
    text: str
    variables: msgspec.Raw  # a list of texts
    files: tuple[FileOut, ...]


def run_options(given: OptionsIn, stall_timeout_seconds: float | None) -> RunOptions:
    """Returns the options as runs have them."""
    said = msgspec.structs.asdict(given)
    del said["stall_timeout"]
    if given.job_commands is None:
        del said["job_commands"]
    return RunOptions(**said, stall_timeout_seconds=stall_timeout_seconds)


def definition_out(found: StoredDefinition) -> DefinitionOut:
    """Returns a definition with all of its files."""
    return DefinitionOut(
        digest=found.digest,
        workflow=found.workflow,
        kind=found.kind,
        text=found.text,
        variables=msgspec.Raw(found.variables.encode()),
        files=tuple(map(_file_out, found.files)),
    )


def _file_out(one: StoredFile) -> FileOut:
    return FileOut(
        path=one.path.encode(errors="replace").decode(),  # JSON is Unicode, a name need not be
        content=base64.b64encode(one.content).decode(),
        executable=one.executable,
    )
