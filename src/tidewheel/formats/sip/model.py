"""Defines the types of a SIP workflow definition (seed 004), its names and its limits.

Values only; nothing here knows how it was written. Durations are seconds, sizes are bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from tidewheel.core.graph.definition import ELEMENTS_DEFAULT, element_name, template_name
from tidewheel.core.graph.findings import NOWHERE, Position
from tidewheel.core.queue.resources import Resources, flavoured, nodes_of
from tidewheel.formats.flow_cylc.names import task_name_problem
from tidewheel.formats.sip.placeholders import Json
from tidewheel.lazy_dataclasses import dataclass

# Limits of a definition's size; beyond a limit there is a finding, never a hang.

YAML_BYTES_MAX = 256 * 1024  # a YAML parser takes seconds for a megabyte
JSON_BYTES_MAX = 5 * 1000 * 1000
DEPTH_MAX = 32  # of nested lists and mappings
NODES_MAX = 100_000  # texts, lists and mappings of one file
NUMBER_LENGTH_MAX = 100  # digits
# What a stage asks for is added up, and the sums are kept as numbers of 64 bits.
NUMBER_MAX = 1_000_000  # of nodes or cores, in one entry
SIZE_BYTES_MAX = 90 * 1000**5
TIMEOUT_SECONDS_MAX = 100 * 365 * 86_400
STAGES_MAX = 10_000
DEPENDENCIES_MAX = 1_000  # of one stage
RESOURCES_MAX = 100  # of one stage
NAME_LENGTH_MAX = 200
STAGE_FILE_BYTES_MAX = 1024 * 1024
STAGE_FILES_MAX = 1_000  # of all stages of one definition
SOURCE_BYTES_MAX = 32 * 1024 * 1024  # of all files of one definition
FOLDER_DEPTH_MAX = 8
WORD_BYTES_MAX = 100_000  # of a command, and of arguments as JSON: Linux takes 128 KiB
PARAMETERS_BYTES_MAX = 64_000  # of a request, as JSON; jobs get them in their environment


# Names of workflows, stages, versions, objects and files.

# A node of the graph that stands for a buffer object; no stage may be called so.
OBJECT_PREFIX = "object@"
# A node of the graph that lets the elements of a stage begin whose list is known before.
LIST_PREFIX = "list@"
BLOCK_NETWORK = "block"  # the network that all stages of a run share
ITEM = "item"  # the parameter that is, in a stage with for_each, one element of its list

_VERSION = re.compile(r"\w[\w.+-]*", re.ASCII)
_VERSION_AT_END = re.compile(r"(?P<name>.+?)[-_]v?(?P<version>\d+\.\d[\w.+-]*)", re.ASCII)
JINJA_NAMES = frozenset(
    {"range", "dict", "lipsum", "cycler", "joiner", "namespace", "loop", "caller", "varargs"}
)
# What every template knows, whatever parameters are called.
FIXED_NAMES = frozenset({"stage", "stages", "parameters", "args"})


@dataclass(frozen=True, slots=True)
class NameAndVersion:
    """Holds the name and version that the name of a file tells; the version may be ""."""

    stem: str
    name: str
    version: str = ""


def name_and_version(stem: str) -> NameAndVersion:
    """Returns the two parts of a file's name: `vis-ingest-1.0.0` is vis-ingest, 1.0.0.

    What has no dot is no version.
    """
    found = _VERSION_AT_END.fullmatch(stem)
    if found is None:
        return NameAndVersion(stem, stem)
    return NameAndVersion(stem, found["name"], found["version"])


def stage_id_problem(name: str) -> str:
    if name in FIXED_NAMES:
        return f"{name!r} means something else in templates; choose another"
    if name.startswith(OBJECT_PREFIX):
        return f"names that begin with {OBJECT_PREFIX} are reserved for buffer objects"
    if name.startswith(LIST_PREFIX):
        return f"names that begin with {LIST_PREFIX} are reserved for lists of for_each"
    if not name.isascii():
        return "use ASCII characters only: names of stages become names of folders and services"
    return task_name_problem(name) or _length_problem(name)


def version_problem(version: str) -> str:
    if not _VERSION.fullmatch(version) or ".." in version:
        return (
            "versions have letters, digits and any of ._+-, begin with a letter, digit or _, "
            "and do not contain '..'; an example is 1.0.0"
        )
    return _length_problem(version)


def object_name_problem(name: str) -> str:
    if not name.strip() or not name.isprintable():
        return "the name of an object has one or more characters, all of them printable"
    return _length_problem(name)


def object_node(name: str) -> str:
    """Returns the name of a buffer object's node: all but ASCII letters, digits and ``_ + -``
    is written as %XX."""
    safe = re.sub(
        r"[^A-Za-z0-9_.+-]|\.",
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()),
        name,
    )
    return OBJECT_PREFIX + safe


def _length_problem(name: str) -> str:
    return f"at most {NAME_LENGTH_MAX} characters" if len(name) > NAME_LENGTH_MAX else ""


# The types.


class StageType(StrEnum):
    """Names the purposes of a stage; they change nothing in how it runs."""

    SETUP = "setup"
    PROCESSING = "processing"
    CLEANUP = "cleanup"
    SIMULATOR = "simulator"
    EMULATOR = "emulator"


class StageCondition(StrEnum):
    """Names the states of a stage that another one can wait for."""

    COMPLETE = "complete"  # it succeeded
    STARTED = "started"
    FAILED = "failed"
    ABORTED = "aborted"  # it failed or was ended by somebody
    ENDED = "ended"  # one way or the other


# Words that mean the same.
CONDITION_WORDS: dict[str, StageCondition] = {
    **{one.value: one for one in StageCondition},
    "completed": StageCondition.COMPLETE,
    "running": StageCondition.STARTED,
    "finished": StageCondition.ENDED,
}
PRESENT = "present"  # the only condition on a buffer object


@dataclass(frozen=True, slots=True)
class StageDependency:
    """Names another stage, and what must have become of it."""

    stage: str
    condition: StageCondition
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectDependency:
    """Names a buffer object that must be present."""

    name: str
    position: Position = field(default=NOWHERE, compare=False)


Dependency = StageDependency | ObjectDependency


@dataclass(frozen=True, slots=True)
class ServedStage:
    """Names a stage until whose end a service runs."""

    stage: str
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListGiven:
    """Holds the elements of a list that is known before the run."""

    items: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ListToCome:
    """Names the parameter that is to be the list: of a request, or of a stage before."""

    parameter: str


@dataclass(frozen=True, slots=True)
class ListReturned:
    """Names the stage that returns the list, and the output that is the list."""

    stage: str
    output: str


@dataclass(frozen=True, slots=True)
class SameElements:
    """Names the stage over whose elements another one runs, each after its own."""

    stage: str


ForEach = ListGiven | ListToCome | ListReturned | SameElements


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesNeeded:
    """Asks for whole machines of one flavour."""

    number: int = 1
    flavour: str = ""
    exclusive: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class CpuNeeded:
    """Asks for processor cores."""

    cores: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryNeeded:
    """Asks for bytes of memory."""

    size: int = 0


@dataclass(frozen=True, slots=True)
class BufferNeeded:
    """Asks for bytes of a buffer."""

    size: int = 0
    label: str = ""


Resource = NodesNeeded | CpuNeeded | MemoryNeeded | BufferNeeded
NEEDS: Mapping[str, type[Resource]] = {
    "nodes": NodesNeeded,
    "cpu": CpuNeeded,
    "memory": MemoryNeeded,
    "buffer": BufferNeeded,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Holds one step of the workflow; how it is executed is in its folder."""

    id: str
    version: str
    type: StageType
    timeout_seconds: float | None = None
    resources: tuple[Resource, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    is_on: bool = True  # else it is switched off: it is skipped, and others go on
    for_each: ForEach | None = None
    elements_max: int = ELEMENTS_DEFAULT
    until: tuple[ServedStage, ...] = ()  # a service: it is ended when these have ended
    position: Position = field(default=NOWHERE, compare=False)
    elements_position: Position = field(default=NOWHERE, compare=False)  # of `for_each`

    @property
    def is_mapped(self) -> bool:
        """Says whether it runs once for each element of a list."""
        return self.is_on and self.for_each is not None

    @property
    def is_service(self) -> bool:
        """Says whether it runs until others have ended."""
        return self.is_on and bool(self.until)

    @property
    def node(self) -> str:
        """Returns the name of its node in the graph."""
        return template_name(self.id, ITEM) if self.is_mapped else self.id

    def part_name(self, index: int | None) -> str:
        """Returns the name of the task that is the stage, or one of its elements."""
        return self.id if index is None else element_name(self.node, index)

    @property
    def parents(self) -> tuple[str, ...]:
        """Returns the stages that this one waits for, each once."""
        named = (one.stage for one in self.dependencies if isinstance(one, StageDependency))
        return tuple(dict.fromkeys(named))

    @property
    def objects(self) -> tuple[str, ...]:
        named = (one.name for one in self.dependencies if isinstance(one, ObjectDependency))
        return tuple(dict.fromkeys(named))

    @property
    def node_labels(self) -> list[str]:
        """Returns the labels of nodes that it asks for, each once."""
        nodes = (one for one in self.resources if isinstance(one, NodesNeeded))
        return sorted({one.label for one in nodes if one.label})

    @property
    def is_for_swarm(self) -> bool:
        """Says whether its containers need a Swarm: several nodes, or nodes with a label."""
        nodes = (one.number for one in self.resources if isinstance(one, NodesNeeded))
        return bool(self.node_labels) or sum(nodes) > 1

    def asked(self) -> Resources:
        """Returns the resources that one worker must offer: sums by type, and labels.

        Nodes are added up by flavour, and by whether they are exclusive. Of nodes that are all
        of no flavour, all are exclusive if some are.
        """
        nodes = [one for one in self.resources if isinstance(one, NodesNeeded)]
        labelled = [
            one for one in self.resources if isinstance(one, NodesNeeded | BufferNeeded)
        ]
        buffers = [one for one in self.resources if isinstance(one, BufferNeeded)]
        return Resources(
            cpu=sum(one.cores for one in self.resources if isinstance(one, CpuNeeded)),
            memory_bytes=sum(
                one.size for one in self.resources if isinstance(one, MemoryNeeded)
            ),
            labels=frozenset(one.label for one in labelled if one.label),
            nodes=max(1, sum(one.number for one in nodes)),
            exclusive=any(one.exclusive for one in nodes),
            buffer_bytes=sum(one.size for one in buffers),
            flavours=flavoured(
                nodes_of(one.flavour, one.number, one.number if one.exclusive else 0)
                for one in nodes
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SipDefinition:
    """Holds a whole workflow as its SIP definition describes it."""

    id: str
    version: str
    stages: tuple[Stage, ...]
    network: str = ""  # BLOCK_NETWORK: its containers share one, with or without a service
    # Names of stages that are there and could not be read; "" for one without a name.
    unread: tuple[str, ...] = field(default=(), compare=False)
    # Whether all stages are known, what they wait for, and which of them run.
    is_whole: bool = field(default=True, compare=False)
    _by_id: Mapping[str, Stage] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {one.id: one for one in self.stages})

    def stage(self, name: str) -> Stage | None:
        return self._by_id.get(name)

    @property
    def shares_network(self) -> bool:
        """Says whether the containers of all stages are in one network."""
        return self.network == BLOCK_NETWORK or any(one.is_service for one in self.stages)

    def part(self, name: str) -> tuple[Stage, int | None] | None:
        """Returns the stage that a task is, and the index of an element; None for others."""
        found = self._by_id.get(name)
        if found is not None and not found.is_mapped:
            return found, None
        head = name.rstrip("0123456789")
        stage = self._by_id.get(head.removesuffix(f"_{ITEM}"))
        if stage is None or not stage.is_mapped or head == name:
            return None
        index = int(name[len(head) :])
        return (stage, index) if stage.part_name(index) == name else None

    def list_of(self, stage: Stage) -> tuple[Stage, ListGiven | ListToCome | ListReturned]:
        """Returns the list of a stage with for_each, and the stage that says so itself.

        Where no stage has the name of its source, the list is taken to come from outside. There
        must be no circles.
        """
        found = stage.for_each
        while isinstance(found, SameElements) and found.stage in self._by_id:
            stage = self._by_id[found.stage]
            found = stage.for_each
        is_known = not isinstance(found, ListReturned) or found.stage in self._by_id
        if found is None or isinstance(found, SameElements) or not is_known:
            return stage, ListToCome("")
        return stage, found

    def are_alongside(self, one: Stage, other: Stage) -> bool:
        """Says whether two stages run over the same elements: each follows its own."""
        if not (one.is_mapped and other.is_mapped):
            return False
        return self.list_of(one)[0] is self.list_of(other)[0]

    def upstream(self, name: str) -> Iterator[str]:
        """Yields the stages before one, the nearest first, without names that no stage has."""
        seen = {name}
        waiting = [name]
        for one in waiting:
            stage = self._by_id.get(one)
            for parent in stage.parents if stage is not None else ():
                if parent not in seen and parent in self._by_id:
                    seen.add(parent)
                    waiting.append(parent)
                    yield parent
