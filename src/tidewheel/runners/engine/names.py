"""What the containers of an attempt are called, and by which labels they are found again.

A project's name begins with what people know, the run and the stage, and ends with a digest
of what makes the attempt unique: two stages whose names are cut or cleaned to the same text
never share anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from tidewheel.core.queue.task import TaskId

NAME_LENGTH_MAX = 63  # of a service of a Swarm, and of a name that other containers look up
DIGEST_LENGTH = 10
READABLE_LENGTH_MAX = 36

RUNNER = "tidewheel.runner"
PROJECT = "tidewheel.project"
STORE = "tidewheel.store"
TASK = "tidewheel.task"
ATTEMPT = "tidewheel.attempt"
LABELS = (PROJECT, STORE, TASK, ATTEMPT)  # of one runner, whose name is RUNNER


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """Whose a container, service, network or volume is."""

    runner: str
    project: str
    store: str
    task_id: TaskId
    attempt: int

    @classmethod
    def read(cls, runner: str, labels: Mapping[str, str]) -> Tags:
        """As an engine shows them; anybody can have written them."""
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


def project_name(store: str, task_id: TaskId, attempt: int, longest_service: int) -> str:
    """A name for everything of one attempt; short enough for its longest service behind it."""
    unique = f"{store}\0{task_id}\0{attempt}".encode(errors="replace")
    digest = sha256(unique).hexdigest()[:DIGEST_LENGTH]
    readable = re.sub(r"[^a-z0-9]+", "-", task_id.lower()).strip("-")
    # "tw-READABLE-DIGEST_SERVICE_1"
    room = NAME_LENGTH_MAX - len("tw---") - DIGEST_LENGTH - longest_service - len("_1")
    kept = _shortened(readable, min(room, READABLE_LENGTH_MAX))
    return f"tw-{kept}-{digest}" if kept else f"tw-{digest}"


def _shortened(text: str, length_max: int) -> str:
    """The run's beginning and the stage's end: what lies between tells the least."""
    if length_max <= 0:
        return ""
    if len(text) <= length_max:
        return text
    head = length_max // 2
    return f"{text[:head]}{text[len(text) - (length_max - head) :]}".strip("-")
