"""Defines the options of all commands that execute tasks: what this machine offers them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import split
from typing import TYPE_CHECKING, Any

import click

from tidewheel.cli.parameters import SIZE
from tidewheel.cli.session import option, options
from tidewheel.config import RUNNERS, SHELL

if TYPE_CHECKING:
    from tidewheel.core.queue.resources import Resources

offering_options = options(
    option("--cpu", "Cores to offer. [default: all]", type=float),
    option("--memory", "Memory to offer. [default: all]", type=SIZE),
    option("--gpu", "GPUs to offer. [default: none]", type=int, default=0),
    option("--nodes", "Machines to offer. [default: this one]", type=int, default=1),
    option("--buffer", "Buffer space to offer. [default: none]", type=SIZE, default=0),
    option("--label labels TEXT...", "A label to offer; repeatable."),
    option(
        "--runner runners ...",
        "Also run tasks for this engine; repeatable. A worker for compose or swarm runs shell "
        "commands only if it is told so, too: --runner shell.",
        type=click.Choice((SHELL, *RUNNERS)),
    ),
    option(
        "--allow-compose [QUEUE:]WHAT...",
        "Allow compose files something that reaches out of their containers: privileged, "
        "host-network, bind-mounts, devices … (docs/containers.md); repeatable.",
    ),
    option(
        "--secrets DIR",
        "A folder with a file for each secret that jobs may ask for: secret:NAME, or "
        "secret:TEAM/NAME for what is named TEAM or under it (docs/secrets.md).",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
    ),
    option(
        "--secrets-command TEXT",
        "A command that prints the secret which its last argument names, such as 'pass show'.",
    ),
)
OPTION_NAMES = (
    "cpu", "memory", "gpu", "nodes", "buffer", "labels", "runners", "allow_compose", "secrets",
    "secrets_command",
)  # fmt: skip


def offered(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options as fields of a worker's settings."""
    from tidewheel.wiring.workers import machine_capacity

    names = {"memory": "memory_bytes", "buffer": "buffer_bytes"}
    said = {
        names.get(one, one): options[one]
        for one in ("cpu", "memory", "gpu", "nodes", "buffer")
        if options[one] is not None
    }
    capacity = replace(machine_capacity(options["labels"]), **said)
    as_said = {one: options[one] for one in ("runners", "allow_compose", "secrets")}
    command = tuple(split(options["secrets_command"] or ""))
    return {"capacity": capacity, "secrets_command": command, **as_said}


def lacking(asked: Resources, capacity: Resources) -> str:
    """Returns the options that this machine lacks to take such a task; "" if it takes it as
    it is."""
    from tidewheel.services.explain import AMOUNTS, exact_amount

    wanted = [
        f"--{name.removesuffix('_bytes')} {exact_amount(name, getattr(asked, name))}"
        for name in AMOUNTS
        if getattr(asked, name) > getattr(capacity, name)
    ]
    wanted += [f"--label {label}" for label in sorted(asked.labels - capacity.labels)]
    return " ".join(wanted)
