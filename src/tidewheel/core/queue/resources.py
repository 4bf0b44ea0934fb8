"""Decides whether what a task asks of a machine fits into what a worker offers.

Theory of operation
-------------------
A worker stands for one machine, or for the several of an engine: its nodes. Tasks share them,
as many as there is room for otherwise; which of them a task uses is its runner's or engine's
business. So it is counted as if all that share used the same nodes: a task on k nodes leaves
the others idle. A task that is ``exclusive`` takes idle nodes and has them alone: until it
ends, no other task begins on them. A task that says nothing shares one node.

Nodes may be of flavours, and each flavour is counted for itself in the same way, beside the
count of all nodes together: a task that asks for 10 nodes of one flavour and 2 of another needs
both, and a worker with 12 nodes. A label of a worker that is called as a flavour says that all
of its nodes are of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidewheel.lazy_dataclasses import dataclass

CPU_MAX = 100_000.0
MEMORY_BYTES_MAX = 2**50
GPU_MAX = 10_000
NODES_MAX = 100_000
BUFFER_BYTES_MAX = 2**60
LABELS_MAX = 32
FLAVOURS_MAX = 101  # with all of them together
LABEL_LENGTH_MAX = 256
RUNNER_LABEL_PREFIX = "runner:"  # such a label names the runner that a task needs
# Such a label names something that its worker must allow: `allow:WHAT`. Workers offer that, or
# `allow:QUEUE:WHAT` for tasks of one queue.
ALLOW_LABEL_PREFIX = "allow:"
COMPOSE_2_LABEL = "compose:2"  # offered by workers whose docker compose is of version 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavouredNodes:
    """Counts nodes of one flavour, as asked for or as offered; "" stands for all flavours."""

    flavour: str
    nodes: int  # asked: with those that it wants alone; offered: those that nobody has alone
    idle: int  # asked: of these, those that it wants alone; offered: those without any task

    def __sub__(self, asked: FlavouredNodes) -> FlavouredNodes:
        """Returns what is left after nodes were taken."""
        nodes, shared = self.nodes - asked.idle, asked.nodes - asked.idle
        return nodes_of(self.flavour, nodes, min(self.idle - asked.idle, nodes - shared))


def nodes_of(flavour: str, nodes: int, idle: int = 0) -> FlavouredNodes:
    """Returns a count of nodes; see the fields of FlavouredNodes."""
    return FlavouredNodes(flavour=flavour, nodes=nodes, idle=idle)


NO_NODES = nodes_of("", 0)


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
    # By flavour, where nodes are of one; asked: all of them together are there, too, as "".
    flavours: tuple[FlavouredNodes, ...] = ()

    def __sub__(self, other: Resources) -> Resources:
        """Returns what is left after ``other`` was taken; labels are never used up."""
        asked = {one.flavour: one for one in other.flavours}
        all_nodes = asked.get("")
        if all_nodes is None:
            alone = other.nodes if other.exclusive else 0
            all_nodes = nodes_of("", other.nodes, alone)
        left = nodes_of("", self.nodes, self.idle) - all_nodes
        return Resources(
            # Rounded, or 0.1 + 0.2 - 0.3 would leave a worker with less than it has.
            cpu=round(self.cpu - other.cpu, 6),
            memory_bytes=self.memory_bytes - other.memory_bytes,
            gpu=self.gpu - other.gpu,
            labels=self.labels,
            nodes=left.nodes,
            buffer_bytes=self.buffer_bytes - other.buffer_bytes,
            idle_nodes=left.idle,
            flavours=tuple(
                one - asked[one.flavour] if one.flavour in asked else one
                for one in self.flavours
            ),
        )

    @property
    def idle(self) -> int:
        """Returns how many offered nodes have no task: an exclusive task can take these."""
        return self.nodes if self.idle_nodes is None else self.idle_nodes

    def offered_of(self, flavour: str) -> FlavouredNodes:
        """Returns the offered nodes of a flavour; none, if there are none."""
        for one in self.flavours:
            if one.flavour == flavour:
                return one
        if not flavour or flavour in self.labels:
            return nodes_of(flavour, self.nodes, self.idle)
        return NO_NODES


def flavoured(asked: Iterable[FlavouredNodes]) -> tuple[FlavouredNodes, ...]:
    """Returns the nodes that a task asks for, added up by flavour, with all of them together;
    empty if they are of no flavour."""
    sums: dict[str, FlavouredNodes] = {}
    for one in asked:
        for flavour in {"", one.flavour}:
            before = sums.get(flavour, NO_NODES)
            nodes, idle = before.nodes + one.nodes, before.idle + one.idle
            sums[flavour] = nodes_of(flavour, nodes, idle)
    return tuple(sums[name] for name in sorted(sums)) if sums.keys() - {""} else ()


NO_RESOURCES = Resources()  # what most tasks ask for: they share one value


def read_flavours(
    given: Iterable[FlavouredNodes | Mapping[str, object]],
) -> tuple[FlavouredNodes, ...]:
    """Returns nodes by flavour as a client says them; raises ValueError if they are none.

    All of them together follow from the others, and may be given, too: there may be more.
    """
    found = list(map(_read_flavour, given))
    named = [one for one in found if one.flavour]
    every = next((one for one in found if not one.flavour), NO_NODES)
    nodes = every.nodes - sum(one.nodes for one in named)
    idle = every.idle - sum(one.idle for one in named)
    return flavoured([*named, nodes_of("", max(0, nodes), max(0, idle))])


def _read_flavour(given: FlavouredNodes | Mapping[str, object]) -> FlavouredNodes:
    match given:
        case FlavouredNodes():
            return given
        case {"flavour": str(flavour), "nodes": int(nodes), "idle": int(idle)}:
            return nodes_of(flavour, nodes, idle)
        case {"flavour": str(flavour), "nodes": int(nodes)} if "idle" not in given:
            return nodes_of(flavour, nodes)
        case _:
            accepted = (
                '{"flavour": "compute_a", "nodes": 10, "idle": 4}, where idle is the number of '
                "these nodes that the task shares with no other task"
            )
            raise ValueError(f"a flavour of nodes is {given!r}; expected {accepted}")


def runner_label(runner: str) -> str:
    """Returns the label by which tasks ask for a runner, and which its workers offer."""
    return f"{RUNNER_LABEL_PREFIX}{runner}"


def allow_label(what: str) -> str:
    """Returns the label of something that must be allowed; a worker may offer QUEUE:WHAT."""
    return f"{ALLOW_LABEL_PREFIX}{what}"


def is_scoped(label: str) -> bool:
    """Says whether a label offers something to tasks of one queue alone."""
    return label.startswith(ALLOW_LABEL_PREFIX) and label.count(":") > 1


def offered_in(queue: str, offered: Resources) -> Resources:
    """Returns what a worker offers to tasks of a queue, with what it allows them alone."""
    scope = allow_label(f"{queue}:")
    own = {
        allow_label(one.removeprefix(scope)) for one in offered.labels if one.startswith(scope)
    }
    if not own:
        return offered
    return replace(offered, labels=offered.labels | own)


def needs_runner(asked: Resources) -> bool:
    """Says whether a task names its runner by a label; without one bash runs its command."""
    return any(label.startswith(RUNNER_LABEL_PREFIX) for label in asked.labels)


def fits(asked: Resources, offered: Resources) -> bool:
    """Says whether one task fits into what a worker has free."""
    return (
        asked.cpu <= offered.cpu
        and asked.memory_bytes <= offered.memory_bytes
        and asked.gpu <= offered.gpu
        and (_flavours_fit(asked, offered) if asked.flavours else _nodes_fit(asked, offered))
        and asked.buffer_bytes <= offered.buffer_bytes
        and asked.labels <= offered.labels
    )


def _nodes_fit(asked: Resources, offered: Resources) -> bool:
    return asked.nodes <= (offered.idle if asked.exclusive else offered.nodes)


def _flavours_fit(asked: Resources, offered: Resources) -> bool:
    pairs = ((one, offered.offered_of(one.flavour)) for one in asked.flavours)
    return all(one.nodes <= free.nodes and one.idle <= free.idle for one, free in pairs)


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
        f"resources {name} is {value!r}; expected {_LEAST.get(name, 0)} to {high:g}"
        + (", a whole number" if name != "cpu" else "")
        for name, value, high in bounds
        if not _LEAST.get(name, 0) <= value <= high
        or (name != "cpu" and not isinstance(value, int))
    ]
    if asked.idle_nodes is not None:
        findings.append("only workers have idle_nodes; use nodes for a task")
    if len(asked.flavours) > FLAVOURS_MAX:
        findings.append(
            f"resources has {len(asked.flavours)} flavours of nodes; expected up to "
            f"{FLAVOURS_MAX}"
        )
    findings += [
        f"flavour {one.flavour!r} is not accepted; give 1 to {LABEL_LENGTH_MAX} printable "
        "characters"
        for one in asked.flavours
        if not _is_label(one.flavour or "all")
    ]
    findings += [
        f"flavour {one.flavour!r} has {one.nodes} nodes, {one.idle} of them idle; expected "
        f"0 to {NODES_MAX} nodes, and at most as many idle"
        for one in asked.flavours
        if not 0 <= one.idle <= one.nodes <= NODES_MAX
    ]
    if len(asked.labels) > LABELS_MAX:
        findings.append(
            f"resources has {len(asked.labels)} labels; expected up to {LABELS_MAX}"
        )
    findings += [
        f"label {label!r} is not accepted; give 1 to {LABEL_LENGTH_MAX} printable characters"
        for label in sorted(asked.labels)
        if not _is_label(label)
    ]
    findings += [
        f"label {label!r} is for workers; a task asks for {ALLOW_LABEL_PREFIX}WHAT, without "
        "the queue"
        for label in sorted(asked.labels)
        if is_scoped(label)
    ]
    return findings


def _is_label(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= LABEL_LENGTH_MAX
