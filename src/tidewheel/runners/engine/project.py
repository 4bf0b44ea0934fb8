"""The containers of one attempt: what they are made from, and what can be seen of them.

A **project** is everything that an engine holds of one attempt; a **part** is one container
of it, or one service on a Swarm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from tidewheel.runners.engine.names import Tags
from tidewheel.runners.engine.program import Cli


class Phase(Enum):
    """Where a part is."""

    CREATED = "created"  # made, never started
    PENDING = "pending"  # wanted, and the engine has not started it yet
    RUNNING = "running"
    ENDED = "ended"


class Condition(Enum):
    """What a service waits for in another one; the words are those of compose files."""

    STARTED = "service_started"
    HEALTHY = "service_healthy"
    DONE = "service_completed_successfully"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A container or a service, as the engine shows it."""

    id: str
    service: str
    phase: Phase
    is_healthy: bool = False
    exit_status: int | None = None  # of one that ended; None: nobody knows
    out_of_memory: bool = False
    error: str = ""  # what the engine says is wrong with it
    ended_at: str = ""  # sorts by time
    tasks: tuple[str, ...] = ()  # of a Swarm, by their ids

    @property
    def ended_well(self) -> bool:
        return self.phase is Phase.ENDED and self.exit_status == 0 and not self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What belongs to a project; kept in the job's folder, for whoever adopts it."""

    tags: Tags
    parts: Mapping[str, int]  # service -> how many parts it has
    needs: Mapping[str, Mapping[str, Condition]]  # service -> service -> condition
    prefix: str  # of lines by which the job speaks

    @property
    def project(self) -> str:
        return self.tags.project


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A project that an engine holds, whoever made it."""

    tags: Tags
    parts: tuple[Part, ...]


Sightings = dict[str, Sighting]  # by project


def sighted(parts: Iterable[tuple[Tags, Part]]) -> Sightings:
    """Parts as an engine lists them, each with its project."""
    found: dict[str, tuple[Tags, list[Part]]] = {}
    for tags, part in parts:
        found.setdefault(tags.project, (tags, []))[1].append(part)
    return {
        project: Sighting(tags=tags, parts=tuple(there))
        for project, (tags, there) in found.items()
    }


class CannotCreate(Exception):
    """The engine does not want to make the project, and says why."""


class Engine(Protocol):
    """What differs between containers beside the worker and services of a Swarm."""

    name: str
    cli: Cli
    # How often to look without being told that something happened.
    look_seconds: float
    # Whether the log of a part ends when the part does, and outlives it.
    logs_end: bool
    # Whether each replica of a service is a part of its own.
    replicas_are_parts: bool
    # Whether a part is a container of this very engine, which can say what it uses.
    parts_are_here: bool

    def fit(self, document: dict[str, Any], plan: Plan, stage: StageWishes) -> None:
        """Make a resolved file one that this engine executes to its end."""
        ...

    async def create(self, plan: Plan, file: Path, files: Path) -> None:
        """CannotCreate if it does not want to; parts may be there all the same."""
        ...

    async def look(self) -> Sightings:
        """Every part of tidewheel's, of whichever worker, in a call or two."""
        ...

    async def remains(self) -> list[Tags]:
        """Whose networks and volumes are there, also where no part is left to use them."""
        ...

    async def start(self, parts: Sequence[Part]) -> None: ...
    async def stop(self, plan: Plan, parts: Sequence[Part], grace_seconds: float) -> None: ...
    async def remove(self, project: str) -> None:
        """Every trace of it; there may be none."""
        ...

    def log_arguments(self, part: Part) -> tuple[str, ...]:
        """Of docker, less what says from when and for how long."""
        ...

    def events_arguments(self) -> tuple[str, ...] | None:
        """Of docker, to be told when something happens; None: it cannot tell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWishes:
    """What a task wants of its containers besides what its compose file says."""

    constraints: tuple[str, ...]
    grace_seconds: float
    directory: Path  # of the attempt
