"""Decides whether what a task asks of a machine fits into what a worker offers.

Theory of operation
-------------------
A worker stands for one machine, or for the several of an engine: its nodes. Tasks share them,
as many as there is room for otherwise; which of them a task uses is its runner's or engine's
business. So it is counted as if all that share used the same nodes: a task on k nodes leaves
the others idle. A task that is ``exclusive`` takes idle nodes and has them alone: until it
ends, no other task begins on them. A task that says nothing shares one node.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.lazy_dataclasses import dataclass

CPU_MAX = 100_000.0
MEMORY_BYTES_MAX = 2**50
GPU_MAX = 10_000
NODES_MAX = 100_000
BUFFER_BYTES_MAX = 2**60
LABELS_MAX = 32
LABEL_LENGTH_MAX = 256
RUNNER_LABEL_PREFIX = "runner:"  # such a label names the runner that a task needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Holds what one attempt asks for, or what a worker has free. Zero asks for nothing."""

    cpu: float = 0.0  # cores; 0.5 is half a core
    memory_bytes: int = 0
    gpu: int = 0
    labels: frozenset[str] = frozenset()  # asked: all must be on the worker
    nodes: int = 1  # offered: those that nobody has alone
    exclusive: bool = False  # asked: nothing else runs on its nodes meanwhile
    buffer_bytes: int = 0
    idle_nodes: int | None = None  # offered: of the nodes, those without any task; None: all

    def __sub__(self, other: Resources) -> Resources:
        """Returns what is left after ``other`` was taken; labels are never used up."""
        return Resources(
            # Rounded, or 0.1 + 0.2 - 0.3 would leave a worker with less than it has.
            cpu=round(self.cpu - other.cpu, 6),
            memory_bytes=self.memory_bytes - other.memory_bytes,
            gpu=self.gpu - other.gpu,
            labels=self.labels,
            nodes=self.nodes - (other.nodes if other.exclusive else 0),
            buffer_bytes=self.buffer_bytes - other.buffer_bytes,
            idle_nodes=(
                self.idle - other.nodes
                if other.exclusive
                else min(self.idle, self.nodes - other.nodes)
            ),
        )

    @property
    def idle(self) -> int:
        """Returns how many offered nodes have no task: an exclusive task can take these."""
        return self.nodes if self.idle_nodes is None else self.idle_nodes


NO_RESOURCES = Resources()  # what most tasks ask for: they share one value


def runner_label(runner: str) -> str:
    """Returns the label by which tasks ask for a runner, and which its workers offer."""
    return f"{RUNNER_LABEL_PREFIX}{runner}"


def needs_runner(asked: Resources) -> bool:
    """Says whether a task names its runner by a label; without one bash runs its command."""
    return any(label.startswith(RUNNER_LABEL_PREFIX) for label in asked.labels)


def fits(asked: Resources, offered: Resources) -> bool:
    """Says whether one task fits into what a worker has free."""
    return (
        asked.cpu <= offered.cpu
        and asked.memory_bytes <= offered.memory_bytes
        and asked.gpu <= offered.gpu
        and asked.nodes <= (offered.idle if asked.exclusive else offered.nodes)
        and asked.buffer_bytes <= offered.buffer_bytes
        and asked.labels <= offered.labels
    )


def prefix_that_fits(asked: Iterable[Resources], offered: Resources) -> int:
    """Returns how many tasks, counted from the first, fit together into what is free.

    The first that does not fit ends the count: taking a smaller one behind it would let a big
    task of high priority starve. An exclusive task is taken alone: which nodes are idle beside
    others is looked at by the next claim.
    """
    count = 0
    for one in asked:
        if not fits(one, offered) or (one.exclusive and count):
            break
        offered = offered - one
        count += 1
        if one.exclusive:
            break
    return count


_LEAST = {"nodes": 1}


def resource_findings(asked: Resources) -> list[str]:
    """Returns what is wrong with a request for resources, in words."""
    if asked is NO_RESOURCES:
        return []
    bounds = (
        ("cpu", asked.cpu, CPU_MAX),
        ("memory_bytes", asked.memory_bytes, MEMORY_BYTES_MAX),
        ("gpu", asked.gpu, GPU_MAX),
        ("nodes", asked.nodes, NODES_MAX),
        ("buffer_bytes", asked.buffer_bytes, BUFFER_BYTES_MAX),
    )
    findings = [
        f"resources {name} is {value!r}; accepted is {_LEAST.get(name, 0)} to {high:g}"
        + (", a whole number" if name != "cpu" else "")
        for name, value, high in bounds
        if not _LEAST.get(name, 0) <= value <= high
        or (name != "cpu" and not isinstance(value, int))
    ]
    if asked.idle_nodes is not None:
        findings.append("idle_nodes is what workers offer; a task asks for nodes")
    if len(asked.labels) > LABELS_MAX:
        findings.append(f"resources has {len(asked.labels)} labels; accepted are {LABELS_MAX}")
    findings += [
        f"label {label!r} is not accepted; give 1 to {LABEL_LENGTH_MAX} printable characters"
        for label in sorted(asked.labels)
        if not (label.strip() and label.isprintable() and len(label) <= LABEL_LENGTH_MAX)
    ]
    return findings
