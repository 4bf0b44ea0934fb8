"""What the tasks of a Swarm service say about the service; pure.

A Swarm's task goes through New, Pending, Assigned, Accepted, Preparing, Ready, Starting,
Running to Complete, Failed, Rejected, Shutdown, Orphaned or Remove. "No suitable node" is said
of a task that is Pending: it waits, and starts when a node comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tidewheel.runners.engine.names import Tags
from tidewheel.runners.engine.project import Part, Phase
from tidewheel.runners.engine.words import create_words, is_about_an_image

# A Swarm compares values and cannot ask whether a label is there at all.
LABEL_ADVICE = (
    "; the label NAME of a stage means nodes with NAME=true, NAME=VALUE those with that value: "
    "docker node update --label-add NAME=true NODE"
)
_EXIT = re.compile(r"non-zero exit \((\d+)\)")
BAD = frozenset({"Failed", "Rejected", "Orphaned"})
OVER = BAD | {"Complete", "Shutdown", "Remove"}
WAITING = frozenset({"New", "Pending", "Allocated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """What a service is, from its start to its end."""

    name: str  # PROJECT_SERVICE
    service: str
    tags: Tags
    wanted: int | None  # how many tasks are to complete; None: one on each node


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A line of `docker service ps`."""

    id: str
    service: str  # its full name
    state: str
    wanted_state: str
    error: str
    node: str

    @classmethod
    def read(cls, row: Mapping[str, str]) -> TaskRow:
        return cls(
            id=row["ID"],
            service=row["Name"].rpartition(".")[0],
            state=row["CurrentState"].partition(" ")[0],
            wanted_state=row["DesiredState"],
            error=row["Error"].strip('"'),
            node=row["Node"],
        )


def part_of(facts: ServiceFacts, tasks: Sequence[TaskRow]) -> Part:
    """A service as a part of its project."""
    bad = [task for task in tasks if task.state in BAD]
    done = sum(task.state == "Complete" for task in tasks)
    wanted = facts.wanted if facts.wanted is not None else max(1, len(tasks))
    part = Part(
        id=facts.name,
        service=facts.service,
        phase=Phase.RUNNING,
        tasks=tuple(task.id for task in tasks),
    )
    if bad:
        return _bad_part(part, bad[-1])
    if done >= wanted:
        return replace(part, phase=Phase.ENDED, exit_status=0)
    open_tasks = [task for task in tasks if task.state not in OVER]
    if tasks and not open_tasks and len(tasks) >= wanted:
        words = "it was shut down by its node or by somebody else"
        return replace(part, phase=Phase.ENDED, error=words)
    if all(task.state in WAITING for task in open_tasks):
        error = next((task.error for task in open_tasks if task.error), "")
        if "constraints" in error:
            error += LABEL_ADVICE
        return replace(part, phase=Phase.PENDING, error=error)
    lost = next((task.node for task in open_tasks if task.wanted_state == "Shutdown"), "")
    return replace(part, error=f"its node {lost} does not answer" if lost else "")


def _bad_part(part: Part, task: TaskRow) -> Part:
    """Ended by its first failure: the list begins with the newest."""
    found = _EXIT.search(task.error)
    error = "" if found else task.error or f"its task is {task.state.lower()}"
    if error and is_about_an_image(error):
        error = create_words(error)
    if error and task.node:
        error = f"{error} (node {task.node})"
    exit_status = int(found[1]) if found else None
    return replace(part, phase=Phase.ENDED, exit_status=exit_status, error=error)
