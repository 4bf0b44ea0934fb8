"""``tidewheel register``: keep definitions under a name and a version."""

from __future__ import annotations

from pathlib import Path

import click

from tidewheel.cli.session import Session, session_command

EPILOG = """\b
Examples:
  tidewheel register workflows                 every definition in a folder, or none
  tidewheel register vis-ingest-1.0.0.yaml.j2  one, with the folders of its stages
  tidewheel register my-workflow --version 2.1.0      a folder with a flow.cylc
  tidewheel register workflows --server https://tide.example.org
Then: tidewheel workflows, tidewheel run NAME
"""


@session_command("register", epilog=EPILOG)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--name", default="", help="The name of a flow.cylc or Python workflow. [default: its own]"
)
@click.option(
    "--version",
    default="",
    help="Its version. [default: `version` of [meta], else 0.0.0]",
)
def command(
    session: Session, paths: tuple[Path, ...], *, strict: bool, name: str, version: str
) -> int:
    """Register workflows: SIP definitions with their stages, flow.cylc folders, Python files.

    PATH is a file, or a folder with several definitions. All are registered or none. They are
    kept whole, so a run no longer needs these files. Registering the same again changes
    nothing; other content under the same name and version is refused. A definition that cannot
    run as it is can still be registered; you are told what would have to change.
    """
    from tidewheel.cli.output import note, say_json
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
    if session.as_json:
        say_json(told)
    else:
        say_registered(told)
    return 0
