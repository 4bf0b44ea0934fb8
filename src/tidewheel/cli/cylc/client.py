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

    run, body = run_named(workflow), json.loads(command_text(command))
    if _speaks_through_worker():
        if run != own_run():
            raise Refused(
                f"a job of {own_run()} can look at {run}, and command its own run alone"
            )
        return _call({"command": body, "wait": wait})

    async def ask(client: AsyncClient) -> Document:
        return (await client.runs.give(run, command)).document

    return _outside(ask)


def look(workflow: str, name: str, **arguments: object) -> Document:
    """Returns a view of a run."""
    run = run_named(workflow) if name != "runs" else ""
    if _speaks_through_worker():
        return _call({"look": name, "arguments": {"run": run, **arguments}})

    async def ask(client: AsyncClient) -> Document:
        return await client.runs.look(name, run=run, **arguments)

    return _outside(ask)


def _speaks_through_worker() -> bool:
    return bool(os.environ.get("TIDEWHEEL_JOB_DIR") and os.environ.get("TIDEWHEEL_SECRET"))


def _call(call: Document) -> Document:
    from tidewheel.runners.messages.client import call_run

    directory = Path(os.environ["TIDEWHEEL_JOB_DIR"])
    return call_run(directory, os.environ["TIDEWHEEL_SECRET"], call)


def _outside(ask: Callable[[AsyncClient], Awaitable[Document]]) -> Document:
    from tidewheel.cli.session import ask_client
    from tidewheel.wiring.stores import store_to_read

    with store_to_read() as where:
        return ask_client(where, ask)
