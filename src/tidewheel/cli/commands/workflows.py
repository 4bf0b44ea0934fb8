"""Has the commands of the registry: ``register``; and ``workflows`` to list, show, check …."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note
from tidewheel.cli.session import Session, option, session_command

if TYPE_CHECKING:
    from tidewheel.cli.session import Question
    from tidewheel.ports.runs import Document

REGISTER_EPILOG = """\b
Examples:
  tidewheel register workflows                 every definition in a folder, or none
  tidewheel register vis-ingest-1.0.0.yaml.j2  one, with the folders of its stages
  tidewheel register my-workflow --version 2.1.0      a folder with a flow.cylc
  tidewheel register workflows --server https://tide.example.org
Then: tidewheel workflows, tidewheel run NAME
"""


@session_command("register", epilog=REGISTER_EPILOG)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@option("--strict", "Treat warnings as errors.")
@option(
    "--name TEXT", "The name of a flow.cylc or Python workflow. [default: its own]", default=""
)
@option("--version TEXT", "Its version. [default: `version` of [meta], else 0.0.0]", default="")
def register_command(
    session: Session, paths: tuple[Path, ...], *, strict: bool, name: str, version: str
) -> int:
    """Register workflows: SIP definitions with their stages, flow.cylc folders, Python files.

    PATH is a file, or a folder with several definitions. All are registered or none. They are
    kept whole, so a run no longer needs these files. Registering the same again changes
    nothing; other content under the same name and version is refused. A definition that cannot
    run as it is can still be registered; you are told what would have to change.
    """
    from tidewheel.cli.pages.workflows import say_registered, tell_refusal
    from tidewheel.core.graph.findings import InvalidDefinition

    try:
        told = session.ask_or_make(
            lambda client: client.workflows.register(
                *paths, name=name, version=version, strict=strict
            )
        )
    except InvalidDefinition as error:
        status = tell_refusal(error, as_json=session.as_json)
        if not session.as_json:
            note("nothing was registered")
        return status
    return session.answer(told, say_registered)


ACTIONS = ("list", "show", "check", "render", "remove")


@session_command(
    "workflows",
    "workflows",
    "workflows show vis-ingest",
    "workflows check vis-ingest/1.0.0 -p nodes=4",
    "workflows render vis-ingest -p nodes=4 --stage ingest",
    "workflows remove vis-ingest/1.0.0",
)
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("workflow", metavar="[NAME[/VERSION]]", default="")
@option("-p --parameter texts NAME=VALUE...", "A parameter of a request: JSON, else a string.")
@option(
    "-P --parameters file",
    "A JSON or YAML file of parameters.",
    type=click.Path(path_type=Path),
)
@option("--stage ID", "Render only this stage.")
def workflows_command(
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
    from tidewheel.cli.pages import workflows as page

    if action != "list" and not workflow:
        raise click.UsageError(f"say which: tidewheel workflows {action} NAME[/VERSION]")
    given: dict[str, object] | None = None  # no request, which lacks nothing
    if texts or file is not None:
        from tidewheel.formats.sip.parameters import read_parameters

        given = read_parameters(texts, file)
    actions: dict[str, tuple[Question[Document], Callable[[Document], None]]] = {
        "list": (lambda client: client.workflows.list(workflow), page.say_list),
        "show": (lambda client: client.workflows.show(workflow), page.say_workflow),
        "check": (
            lambda client: client.workflows.check(workflow, given),
            lambda told: page.say_checked(told, is_request=given is not None),
        ),
        "render": (
            lambda client: client.workflows.render(workflow, given),
            lambda told: page.say_rendered(told, stage),
        ),
        "remove": (lambda client: client.workflows.remove(workflow), page.say_removed),
    }
    ask, show = actions[action]
    told = session.ask(ask)
    if action == "render" and stage is not None:
        page.check_stage(told, stage)
    session.answer(told, show)
    return ExitCode.REFUSED if action == "check" and not told["runnable"] else ExitCode.DONE
