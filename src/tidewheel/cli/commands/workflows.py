"""``tidewheel workflows``: what is registered; show, check, render or remove one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.runs import Document

EPILOG = """\b
Examples:
  tidewheel workflows
  tidewheel workflows show vis-ingest
  tidewheel workflows check vis-ingest/1.0.0 -p nodes=4
  tidewheel workflows render vis-ingest -p nodes=4 --stage ingest
  tidewheel workflows remove vis-ingest/1.0.0
"""
ACTIONS = ("list", "show", "check", "render", "remove")


@session_command("workflows", epilog=EPILOG)
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("workflow", metavar="[NAME[/VERSION]]", default="")
@click.option(
    "-p",
    "--parameter",
    "texts",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of a request: JSON, else a string.",
)
@click.option(
    "-P",
    "--parameters",
    "file",
    type=click.Path(path_type=Path),
    help="A JSON or YAML file of parameters.",
)
@click.option("--stage", metavar="ID", help="Render only this stage.")
def command(
    session: Session,
    action: str,
    workflow: str,
    *,
    texts: tuple[str, ...],
    file: Path | None,
    stage: str | None,
) -> int:
    """List registered workflows, or do something with one of them.

    Without a version the highest is meant; to remove one of several, name its version. `check`
    says whether a run could begin, with these parameters if any; `render` prints what it would
    execute. Removing a workflow does not harm its runs. Exit 2 if `check` finds that it cannot
    run.
    """
    from tidewheel.cli.pages.workflows import tell_refusal
    from tidewheel.core.graph.findings import InvalidDefinition

    if action != "list" and not workflow:
        raise click.UsageError(f"say which: tidewheel workflows {action} NAME[/VERSION]")
    try:
        given = _given(texts, file)
        told = session.ask(lambda client: _ask(client, action, workflow, given))
        return _say(session, action, told, stage, is_request=given is not None)
    except InvalidDefinition as error:
        return tell_refusal(error, as_json=session.as_json)


def _given(texts: tuple[str, ...], file: Path | None) -> dict[str, object] | None:
    """Returns the parameters given; None: no request, which lacks nothing."""
    if not texts and file is None:
        return None
    from tidewheel.formats.sip.parameters import read_parameters

    return read_parameters(texts, file)


async def _ask(
    client: AsyncClient, action: str, workflow: str, given: dict[str, object] | None
) -> Document:
    registry = client.workflows
    match action:
        case "list":
            return await registry.list(workflow)
        case "show":
            return await registry.show(workflow)
        case "check":
            return await registry.check(workflow, given)
        case "render":
            return await registry.render(workflow, given)
        case _:
            return await registry.remove(workflow)


def _say(
    session: Session, action: str, told: Document, stage: str | None, *, is_request: bool
) -> int:
    from tidewheel.cli.output import safe, say, say_json
    from tidewheel.cli.pages import workflows

    if action == "render" and stage is not None:
        workflows.check_stage(told, stage)
    if session.as_json:
        say_json(told)
    elif action == "list":
        workflows.say_list(told)
    elif action == "show":
        workflows.say_workflow(told)
    elif action == "check":
        workflows.say_checked(told, is_request=is_request)
    elif action == "render":
        workflows.say_rendered(told, stage)
    else:
        say(f"removed {safe(told['name'])}/{safe(told['version'])}")
    return ExitCode.REFUSED if action == "check" and not told["runnable"] else 0
