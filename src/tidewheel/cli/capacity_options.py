"""Defines the options of all commands that execute tasks: what this machine offers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import split
from typing import TYPE_CHECKING, Any

import click

from tidewheel.cli.parameters import DURATION, NODES, SIZE
from tidewheel.cli.session import option, options
from tidewheel.config import PREPARE_SECONDS_DEFAULT, RUNNERS, SHELL
from tidewheel.errors import BadSetting

if TYPE_CHECKING:
    from tidewheel.core.queue.resources import Resources

offering_options = options(
    option("--cpu", "Cores to offer. [default: all]", type=float),
    option("--memory", "Memory to offer. [default: all]", type=SIZE),
    option("--gpu", "GPUs to offer. [default: none]", type=int, default=0),
    option(
        "--nodes [FLAVOUR=]N...",
        "Machines to offer: N, or FLAVOUR=N for machines of one flavour; repeatable. "
        "[default: this machine]",
        type=NODES,
    ),
    option("--buffer", "Buffer space to offer. [default: none]", type=SIZE, default=0),
    option("--label labels TEXT...", "A label to offer; repeatable."),
    option(
        "--runner runners ...",
        "Also run tasks that need this runner; repeatable. A worker with compose or swarm "
        "runs shell commands only if --runner shell is given, too.",
        type=click.Choice((SHELL, *RUNNERS)),
    ),
    option(
        "--allow-compose [QUEUE:]WHAT...",
        "Let compose files use things outside their containers: privileged, "
        "host-network, bind-mounts, devices … (see the manual, Containers); repeatable.",
    ),
    option(
        "--prepare-limit prepare_seconds DURATION",
        "How long the container engine may take to fetch images and create containers; after "
        "that, the attempt fails. This time does not count towards the stage's timeout.",
        type=DURATION,
        shown=f"{PREPARE_SECONDS_DEFAULT / 60:g}m",
    ),
    option(
        "--secrets DIR",
        "A folder with one file per secret. Every job may use secret:NAME; only runs and "
        "queues named TEAM or TEAM/… may use secret:TEAM/NAME (see the manual, Secrets).",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
    ),
    option(
        "--secrets-command TEXT",
        "A command that prints a secret, such as 'pass show'; the name of the secret is added "
        "as its last argument.",
    ),
)
OPTION_NAMES = (
    "cpu", "memory", "gpu", "nodes", "buffer", "labels", "runners", "allow_compose",
    "prepare_seconds", "secrets", "secrets_command",
)  # fmt: skip


def offered(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options as fields of a worker's settings; raises BadSetting below 0."""
    from tidewheel.wiring.workers import machine_capacity

    names = {"memory": "memory_bytes", "buffer": "buffer_bytes"}
    said = {
        names.get(one, one): options[one]
        for one in ("cpu", "memory", "gpu", "buffer")
        if options[one] is not None
    }
    for one, value in said.items():
        if value < 0:
            raise BadSetting(f"--{one}", value, "0 or more")
    nodes = _nodes(options["nodes"])
    capacity = replace(machine_capacity(options["labels"]), **said, **nodes)
    as_said = {
        one: options[one] for one in ("runners", "allow_compose", "prepare_seconds", "secrets")
    }
    command = tuple(split(options["secrets_command"] or ""))
    return {"capacity": capacity, "secrets_command": command, **as_said}


def _nodes(given: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Returns the nodes that are offered, together and by flavour."""
    from tidewheel.core.queue.resources import nodes_of

    if not given:
        return {}
    counts = Counter[str]()
    for flavour, count in given:
        counts[flavour] += count
    named = sorted(flavour for flavour in counts if flavour)
    return {
        "nodes": counts.total(),
        "flavours": tuple(nodes_of(one, counts[one], counts[one]) for one in named),
    }


def lacking(asked: Resources, capacity: Resources) -> str:
    """Returns the options that this machine lacks to take such a task; "" if it takes it as
    it is."""
    from tidewheel.services.explain import AMOUNTS, exact_amount, label_option, node_options

    short = [name for name in AMOUNTS if getattr(asked, name) > getattr(capacity, name)]
    wanted = [
        f"--{name.removesuffix('_bytes')} {exact_amount(name, getattr(asked, name))}"
        for name in short
        if name != "nodes"
    ]
    offers = [capacity.offered_of(one.flavour).nodes >= one.nodes for one in asked.flavours]
    if "nodes" in short or not all(offers):
        wanted += node_options(asked)
    wanted += map(label_option, sorted(asked.labels - capacity.labels))
    return " ".join(wanted)
