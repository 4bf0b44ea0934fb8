"""Asks something of a run: inside a job through its worker, elsewhere through the store."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tidewheel.client import AsyncClient
    from tidewheel.core.operator.verbs import Command

Document = dict[str, object]


def own_run() -> str:
    """Returns the run that this job or handler belongs to; "" where there is none."""
    return os.environ.get("CYLC_WORKFLOW_ID", "")


def run_named(workflow: str) -> str:
    """Returns the run that is meant; the name of this job's workflow means this job's run."""
    mine = own_run()
    if not workflow or workflow == os.environ.get("CYLC_WORKFLOW_NAME", ""):
        workflow = mine or workflow
    if not workflow:
        raise Refused("which workflow? Name it: cylc VERB WORKFLOW//POINT/NAME")
    return workflow


def give(workflow: str, command: Command, *, wait: bool = True) -> Document:
    """Gives a run a command; returns its answer, or raises a refusal.

    Inside a job it need not `wait`.
    """
    from tidewheel.core.operator.verbs import command_text
    from tidewheel.runners.messages.client import call_run

    run, body = run_named(workflow), json.loads(command_text(command))
    if job := own_job():
        if run != own_run():
            raise Refused(
                f"a job of {own_run()} can look at {run}, and command its own run alone"
            )
        return call_run(*job, {"command": body, "wait": wait})

    async def ask(client: AsyncClient) -> Document:
        return (await client.runs.give(run, command)).document

    return _outside(ask)


def look(workflow: str, name: str, **arguments: object) -> Document:
    """Returns a view of a run."""
    from tidewheel.runners.messages.client import call_run

    arguments = {"run": run_named(workflow) if name != "runs" else "", **arguments}
    if job := own_job():
        return call_run(*job, {"look": name, "arguments": arguments})
    return _outside(lambda client: client.runs.look(name, **arguments))


def own_job() -> tuple[Path, str] | None:
    """Returns the folder of this job and its secret, by which its worker knows it."""
    directory, secret = os.environ.get("TIDEWHEEL_JOB_DIR"), os.environ.get("TIDEWHEEL_SECRET")
    return (Path(directory), secret) if directory and secret else None


def _outside(ask: Callable[[AsyncClient], Awaitable[Document]]) -> Document:
    from tidewheel.cli.session import ask_client
    from tidewheel.wiring.stores import store_to_read

    with store_to_read() as where:
        return ask_client(where, ask)
