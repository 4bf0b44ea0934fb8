"""The types of a SIP workflow definition (seed 004).

Values only; nothing here knows how it was written. Durations are seconds, sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidewheel.core.graph.findings import NOWHERE, Position
from tidewheel.core.queue.resources import Resources


class StageType(StrEnum):
    """The purposes of a stage; they change nothing in how it runs."""

    SETUP = "setup"
    PROCESSING = "processing"
    CLEANUP = "cleanup"
    SIMULATOR = "simulator"
    EMULATOR = "emulator"


class StageCondition(StrEnum):
    """The states of a stage that another one can wait for."""

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
    """The dependency on another stage, and what must have become of it."""

    stage: str
    condition: StageCondition
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectDependency:
    """A buffer object that must be present."""

    name: str
    position: Position = field(default=NOWHERE, compare=False)


Dependency = StageDependency | ObjectDependency


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesNeeded:
    """Whole machines of one flavour."""

    number: int
    flavour: str = ""
    exclusive: bool
    label: str = ""


@dataclass(frozen=True, slots=True)
class CpuNeeded:
    """Processor cores."""

    cores: float


@dataclass(frozen=True, slots=True)
class MemoryNeeded:
    """Bytes of memory."""

    size: int


@dataclass(frozen=True, slots=True)
class BufferNeeded:
    """Bytes of a buffer."""

    size: int
    label: str = ""


Resource = NodesNeeded | CpuNeeded | MemoryNeeded | BufferNeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of the workflow; how it is executed is in its folder."""

    id: str
    version: str
    type: StageType
    timeout_seconds: float | None = None
    resources: tuple[Resource, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    position: Position = field(default=NOWHERE, compare=False)

    @property
    def parents(self) -> tuple[str, ...]:
        """Returns the stages that it names, each once."""
        named = (one.stage for one in self.dependencies if isinstance(one, StageDependency))
        return tuple(dict.fromkeys(named))

    @property
    def objects(self) -> tuple[str, ...]:
        named = (one.name for one in self.dependencies if isinstance(one, ObjectDependency))
        return tuple(dict.fromkeys(named))

    def asked(self) -> Resources:
        """Returns what one worker must offer: sums by type, flavours and labels as labels.

        If some of its nodes are exclusive all are: a worker gives nodes, not kinds of them.
        """
        nodes = [one for one in self.resources if isinstance(one, NodesNeeded)]
        buffers = [one for one in self.resources if isinstance(one, BufferNeeded)]
        words = [word for one in nodes for word in (one.flavour, one.label)]
        return Resources(
            cpu=sum(one.cores for one in self.resources if isinstance(one, CpuNeeded)),
            memory_bytes=sum(
                one.size for one in self.resources if isinstance(one, MemoryNeeded)
            ),
            labels=frozenset(filter(None, [*words, *(one.label for one in buffers)])),
            nodes=max(1, sum(one.number for one in nodes)),
            exclusive=any(one.exclusive for one in nodes),
            buffer_bytes=sum(one.size for one in buffers),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SipDefinition:
    """A whole workflow."""

    id: str
    version: str
    stages: tuple[Stage, ...]
    _by_id: Mapping[str, Stage] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {one.id: one for one in self.stages})

    def stage(self, name: str) -> Stage | None:
        return self._by_id.get(name)

    def upstream(self, name: str) -> Iterator[str]:
        """Returns the stages before one, the nearest first; names of nothing are left out."""
        seen = {name}
        waiting = [name]
        for one in waiting:
            stage = self._by_id.get(one)
            for parent in stage.parents if stage is not None else ():
                if parent not in seen and parent in self._by_id:
                    seen.add(parent)
                    waiting.append(parent)
                    yield parent
