"""Describes the containers of one attempt: names, labels, the plan, and what is seen of them.

A **project** is everything that an engine holds of one attempt; a **part** is one container
of it, or one service on a Swarm. A project's name begins with what people know, the run and
the stage, and ends with a digest of what makes the attempt unique: two stages whose names are
cut or cleaned to the same text never share anything.

Networks and volumes outlive the containers for which they were made when a worker is killed
while it removes them, and an engine has room for some thirty networks: they are found again by
their labels.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from tidewheel.core.queue.task import TaskId
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Assignment
from tidewheel.runners.containers.docker_cli import Cli, EngineAway, json_format, json_rows
from tidewheel.runners.containers.stage_spec import StageSpec

NAME_LENGTH_MAX = 63  # of a service of a Swarm, and of a name that other containers look up
DIGEST_LENGTH = 10
READABLE_LENGTH_MAX = 36

RUNNER = "tidewheel.runner"
PROJECT = "tidewheel.project"
STORE = "tidewheel.store"
TASK = "tidewheel.task"
ATTEMPT = "tidewheel.attempt"
LABELS = (PROJECT, STORE, TASK, ATTEMPT)  # of one runner, whose name is RUNNER
LABEL_FIELDS = [f'(.Label "{label}")' for label in LABELS]  # of docker's lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """Says to which attempt a container, service, network or volume belongs."""

    runner: str
    project: str
    store: str
    task_id: TaskId
    attempt: int

    @classmethod
    def read(cls, runner: str, labels: Mapping[str, str]) -> Tags:
        """Returns the tags in the labels that an engine shows; a bad number becomes 0.

        Anybody can have written them.
        """
        attempt = labels.get(ATTEMPT, "")
        return cls(
            runner=runner,
            project=labels[PROJECT],
            store=labels.get(STORE, ""),
            task_id=TaskId(labels.get(TASK, "")),
            attempt=int(attempt) if attempt.isdecimal() else 0,
        )

    def labels(self) -> dict[str, str]:
        return {
            RUNNER: self.runner,
            PROJECT: self.project,
            STORE: self.store,
            TASK: self.task_id,
            ATTEMPT: str(self.attempt),
        }


def project_name(store: str, task_id: TaskId, attempt: int, longest_name: int) -> str:
    """Returns a name for everything of one attempt, short enough for the longest name in its
    file, of a service or of a network."""
    unique = f"{store}\0{task_id}\0{attempt}".encode(errors="replace")
    digest = sha256(unique).hexdigest()[:DIGEST_LENGTH]
    readable = re.sub(r"[^a-z0-9]+", "-", task_id.lower()).strip("-")
    # "tw-READABLE-DIGEST_SERVICE_1"
    room = NAME_LENGTH_MAX - len("tw---") - DIGEST_LENGTH - longest_name - len("_1")
    kept = _shortened(readable, min(room, READABLE_LENGTH_MAX))
    return f"tw-{kept}-{digest}" if kept else f"tw-{digest}"


def _shortened(text: str, length_max: int) -> str:
    """Returns a text with its middle cut out, down to a length; "" if the length is 0 or less.
    The run's beginning and the stage's end stay, as what lies between tells the least."""
    if length_max <= 0:
        return ""
    if len(text) <= length_max:
        return text
    head = length_max // 2
    return f"{text[:head]}{text[len(text) - (length_max - head) :]}".strip("-")


class Phase(Enum):
    """Says how far a part is."""

    CREATED = "created"  # made, never started
    PENDING = "pending"  # wanted, and no node has it yet
    PREPARING = "preparing"  # a node fetches its image, or makes its container
    RUNNING = "running"
    ENDED = "ended"


class Condition(Enum):
    """Says what a service waits for in another one; the words are those of compose files."""

    STARTED = "service_started"
    HEALTHY = "service_healthy"
    DONE = "service_completed_successfully"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPart:
    """Describes a container, or a service of a Swarm, as the engine shows it."""

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
    def has_begun(self) -> bool:
        """Says whether it runs, or has run."""
        return self.phase is Phase.RUNNING or (
            self.phase is Phase.ENDED and self.exit_status is not None
        )

    @property
    def ended_well(self) -> bool:
        return self.phase is Phase.ENDED and self.exit_status == 0 and not self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPlan:
    """Lists what belongs to a project; it is kept in the job's folder for an adopter."""

    tags: Tags
    parts: Mapping[str, int]  # service -> how many parts it has
    needs: Mapping[str, Mapping[str, Condition]]  # service -> service -> condition
    prefix: str  # of lines by which the job speaks
    network: str = ""  # of its run; "": it is not in it
    notes: tuple[str, ...] = ()  # what was decided about it, for people

    @property
    def project(self) -> str:
        return self.tags.project


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Describes a project that an engine holds, of this worker or of another."""

    tags: Tags
    parts: tuple[ProjectPart, ...]


Sightings = dict[str, Sighting]  # by project


def sighted(parts: Iterable[tuple[Tags, ProjectPart]]) -> Sightings:
    """Returns the projects to which the parts belong that an engine lists."""
    found: dict[str, tuple[Tags, list[ProjectPart]]] = {}
    for tags, part in parts:
        found.setdefault(tags.project, (tags, []))[1].append(part)
    return {
        project: Sighting(tags=tags, parts=tuple(there))
        for project, (tags, there) in found.items()
    }


class CannotCreate(Exception):
    """The engine does not want to make the project, and says why."""


REMOVE_TRIES = 40
NEVER = "1971"  # of times that docker prints; what has never been is of the year 1
# Options with which docker lists and removes some kinds of things.
_LISTED = {"container": ("--all",)}
_FORCED = {"container": ("--force", "--volumes"), "volume": ("--force",)}


class Engine(ABC):
    """Creates, lists, stops and removes projects; has what all kinds of engines need alike."""

    name: str
    look_seconds: float  # how often to look without being told that something happened
    logs_end: bool  # whether the log of a part ends when the part does, and outlives it
    replicas_are_parts: bool  # whether each replica of a service is a part of its own
    parts_are_here: (
        bool  # whether a part is a container of this engine, which says what it uses
    )
    network_driver: str  # of the network that the stages of a run share
    log_command: tuple[str, ...]  # of docker, less what says from when and for how long
    events_command: tuple[str, ...] | None  # to be told what happens; None: it cannot tell
    # The kinds of things that a project has, in the order of removal, each with the label that
    # holds the project's name.
    kinds: ClassVar[Mapping[str, str]]
    remove_rest_seconds = 0.0

    def __init__(self, cli: Cli) -> None:
        self.cli = cli

    async def place(self, document: dict[str, Any], spec: StageSpec) -> list[str]:
        """Says in a resolved file on which nodes it runs, where there are several; returns what
        it decided, in words. Raises BadStage if no node could run it."""
        del document, spec
        return []

    @abstractmethod
    def fit(self, document: dict[str, Any], plan: ProjectPlan, assignment: Assignment) -> None:
        """Changes a resolved file so that this engine executes it to its end."""

    @abstractmethod
    async def create(
        self, plan: ProjectPlan, file: Path, files: Path, seconds_max: float
    ) -> None:
        """Creates a project's parts; raises CannotCreate if the engine does not want to.

        Some parts may be there all the same. Raises CallTooSlow if it takes longer than it may.
        """

    @abstractmethod
    async def look(self) -> Sightings:
        """Returns the projects of all workers that the engine holds, with their parts.

        It takes a call or two of docker, and raises EngineAway if the engine does not answer.
        """

    @abstractmethod
    async def begins(self, parts: Sequence[ProjectPart]) -> list[str]:
        """Returns when these parts began to run, as far as the engine says so."""

    async def run_seconds(self, parts: Sequence[ProjectPart]) -> float:
        """Returns for how long the first of these parts has run, by the engine's own clock; 0
        if the engine does not say."""
        times = [text for text in await self.begins(parts) if text > NEVER]
        if not times:
            return 0.0
        [(now,)] = json_rows(
            await self.cli.ask("info", "--format", json_format([".SystemTime"]))
        )
        begun = min(map(datetime.fromisoformat, times))
        return (datetime.fromisoformat(now) - begun).total_seconds()

    @abstractmethod
    async def start(self, parts: Sequence[ProjectPart]) -> None: ...

    @abstractmethod
    async def stop(self, project: str, grace_seconds: float) -> None: ...

    async def remains(self) -> list[Tags]:
        """Returns the tags of all networks and volumes, also where no part is left."""
        mark = ("--filter", f"label={RUNNER}={self.name}")
        form = ("--format", json_format(LABEL_FIELDS))
        return [
            Tags.read(self.name, dict(zip(LABELS, values, strict=True)))
            for kind in ("network", "volume")
            for values in json_rows(await self.cli.ask(kind, "ls", *mark, *form))
        ]

    async def remove(self, project: str) -> None:
        """Removes all that the engine holds of a project; there may be nothing.

        Raises EngineAway if something is still in use after many tries.
        """
        for _ in range(REMOVE_TRIES):
            found = False
            for kind, label in self.kinds.items():
                mark = (*_LISTED.get(kind, ()), "--filter", f"label={label}={project}")
                ids = (await self.cli.ask(kind, "ls", "--quiet", *mark)).split()
                if ids:
                    found = True
                    forced = _FORCED.get(kind, ())
                    await self.cli.call(self.cli.docker, kind, "rm", *forced, *ids)
            if not found:
                return
            await asyncio.sleep(self.remove_rest_seconds)
        raise EngineAway(f"{project} cannot be removed: one of its parts is still in use")
