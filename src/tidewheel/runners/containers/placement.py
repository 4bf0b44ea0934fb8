"""Decides on which nodes of a Swarm a stage runs: by what its file says and its labels mean.

Limits are put where a Swarm knows them; what it does not know is left out (`swarm_keys`).

A Swarm compares values of labels and cannot ask whether a label is there at all. So a label
without a value means the nodes that have it, with whichever value; where there are several
values, the other nodes are left out one by one. Where the file itself says something of a
label, it knows the values, and nothing is added to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.containers.stage_spec import BadStage, NodeLabel, StageSpec

NODE_LABELS = "node.labels."
TRUE = "true"
NODES_SHOWN_MAX = 5
_OF_NODES = frozenset(
    {"node.id", "node.hostname", "node.ip", "node.role"}
    | {"node.platform.os", "node.platform.arch"}
)
_LABELS = (NODE_LABELS, "engine.labels.")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]+", re.ASCII)
_VALUE = re.compile(r"[A-Za-z0-9:_.*()?+\[\]\\^$|/\s-]+", re.ASCII)
_CONSTRAINT = re.compile(r"\s*(?P<key>[^\s=!]+)\s*(?P<sign>==|!=)\s*(?P<value>.*?)\s*")


class SwarmNode(NamedTuple):
    """Holds what is known of a node of a Swarm."""

    id: str
    name: str
    labels: dict[str, str]


class NodeConstraint(NamedTuple):
    """Holds one constraint on nodes, as a Swarm reads it."""

    key: str
    wants: bool  # else this value is not wanted
    value: str


def read_constraint(text: str) -> NodeConstraint | None:
    """Returns what a constraint says; None if it is none, which the Swarm will tell."""
    found = _CONSTRAINT.fullmatch(text)
    if found is None:
        return None
    return NodeConstraint(found["key"], found["sign"] == "==", found["value"])


def constraint_is_readable(text: str) -> bool:
    """Says whether a Swarm can read a constraint, and some node may be what it says."""
    found = _CONSTRAINT.fullmatch(text)
    if (
        found is None
        or not _KEY.fullmatch(found["key"])
        or not _VALUE.fullmatch(found["value"])
    ):
        return False
    key = found["key"].lower()  # as a Swarm compares it
    return key in _OF_NODES or any(
        key.startswith(lead) and len(key) > len(lead) for lead in _LABELS
    )


def names_label(constraints: Iterable[str], name: str) -> bool:
    """Says whether one of these constraints is on the label of this name."""
    read = filter(None, map(read_constraint, constraints))
    return any(one.key == NODE_LABELS + name for one in read)


def contradiction(constraints: Sequence[str]) -> tuple[str, str] | None:
    """Returns two constraints that no node can meet together; None if there are none."""
    wanted: dict[str, tuple[str, str]] = {}
    read = [(text, one) for text in constraints if (one := read_constraint(text)) is not None]
    for text, one in read:
        if one.wants:
            # A Swarm compares values without regard to capital letters.
            value, before = wanted.setdefault(one.key, (one.value.lower(), text))
            if value != one.value.lower():
                return before, text
    for text, one in read:
        value, before = wanted.get(one.key, ("", ""))
        if not one.wants and before and value == one.value.lower():
            return before, text
    return None


class LabelMeaning(NamedTuple):
    """Holds the constraints that a label means, and the words for people."""

    constraints: tuple[str, ...]
    note: str


def constraints_of(label: NodeLabel, nodes: Sequence[SwarmNode]) -> LabelMeaning:
    """Returns what a label means on a Swarm of these nodes."""
    key, name = NODE_LABELS + label.name, label.name
    if label.value is not None:
        return LabelMeaning((f"{key} == {label.value}",), "")
    there = [one for one in nodes if one.labels.get(name)]
    values = sorted({one.labels[name] for one in there})
    if not values:
        how = f"docker node update --label-add {name}={TRUE} NODE"
        words = (
            f"no node of the Swarm has the label {name}; the stage waits for {name}={TRUE}: "
            f"{how}"
        )
        return LabelMeaning((f"{key} == {TRUE}",), words)
    if len({one.lower() for one in values}) == 1:
        words = f"label {name}: the stage runs on nodes with {name}={values[0]}"
        return LabelMeaning((f"{key} == {values[0]}",), words)
    shown = [f"{one.name} ({name}={one.labels[name]})" for one in there[:NODES_SHOWN_MAX]]
    more = len(there) - len(shown)
    shown += [f"{more} more"] if more else []
    others = tuple(f"node.id != {one.id}" for one in nodes if not one.labels.get(name))
    return LabelMeaning(
        others, f"label {name}: the stage runs on nodes with this label: {', '.join(shown)}"
    )


def constraints_in(service: Mapping[str, Any]) -> list[str]:
    """Returns the constraints of a service."""
    placement = (service.get("deploy") or {}).get("placement") or {}
    return [str(one) for one in placement.get("constraints") or []]


def asked_labels(document: dict[str, Any], spec: StageSpec) -> list[NodeLabel]:
    """Returns those labels of a stage of which its file itself says nothing."""
    said = [one for service in document["services"].values() for one in constraints_in(service)]
    return [
        label
        for label in spec.labels
        if label.value is not None or not names_label(said, label.name)
    ]


def said_constraints(labels: Iterable[NodeLabel]) -> list[str]:
    """Returns what labels mean on every Swarm: those that are given with their value."""
    return [f"{NODE_LABELS}{one.name} == {one.value}" for one in labels if one.value]


def place(document: dict[str, Any], constraints: Sequence[str]) -> None:
    """Adds constraints to each service of a file; raises BadStage if one can run nowhere."""
    for name, service in document["services"].items():
        every = list(dict.fromkeys([*constraints_in(service), *constraints]))
        if (two := contradiction(every)) is not None:
            raise BadStage(
                f"service {name}: no node can meet both {two[0]!r} and {two[1]!r}; remove one "
                "of the constraints, or the label of the stage"
            )
        if every:
            deploy = service["deploy"] = dict(service.get("deploy") or {})
            deploy["placement"] = dict(deploy.get("placement") or {}) | {"constraints": every}


# Where a Swarm wants what a service of docker-compose may say itself.
_LIMITS = {
    "cpus": ("limits", "cpus"),
    "mem_limit": ("limits", "memory"),
    "mem_reservation": ("reservations", "memory"),
}


def move_limits(service: dict[str, Any], deploy: dict[str, Any]) -> None:
    """Moves limits of a service to where a Swarm knows them."""
    for key, (share, name) in _LIMITS.items():
        if key in service:
            resources = deploy["resources"] = dict(deploy.get("resources") or {})
            shares = resources[share] = dict(resources.get(share) or {})
            shares.setdefault(name, str(service.pop(key)))
