"""``tidewheel log``: what a run or one of its jobs wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.cli.runs.access import Document, Target

EPILOG = """\b
Examples:
  tidewheel log forecast
  tidewheel log forecast 3/model
  tidewheel log forecast 3/model --file err -f
  tidewheel log forecast 3/model/01 --file job
"""


@session_command("log", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN] [ID[/SUBMIT]]")
@click.option(
    "--file",
    "file",
    metavar="NAME",
    default="out",
    show_default=True,
    help="out, err, job (the script), status, activity or xtrace.",
)
@click.option("--err", "file", flag_value="err", help="The same as --file err.")
@click.option(
    "-s", "--submit", type=click.IntRange(1), help="Of this submission, not the latest."
)
@click.option("--attempt", type=click.IntRange(1), help="Of this attempt, not the latest.")
@click.option(
    "-f", "--follow", is_flag=True, help="Go on until the job, or the run, has ended."
)
@click.option("--path", "path_only", is_flag=True, help="Print only where the file is.")
def command(
    session: Session, words: tuple[str, ...], *, follow: bool, path_only: bool, **wish: object
) -> int:
    """Print the log of a run, or with an ID what the job of a task wrote.

    Logs are files on the host that ran the job; workers send them to their server.
    """
    from tidewheel.cli.output import note, safe, safe_lines, say, say_json
    from tidewheel.cli.runs.access import look, this_job

    if follow and not session.as_json and this_job(session) is None:
        from tidewheel.cli.pages.log import follow_log

        follow_log(session, words, lambda target: _arguments(target, wish))
        return 0
    page = look(session, "log", words, lambda target: _arguments(target, wish))
    if session.as_json:
        say_json(page)
    elif path_only:
        say(safe(page["path"]))
    else:
        click.echo(safe_lines(str(page["text"])), nl=False)
        if not page["text"]:
            note(f"{safe(page['path'])} is empty")
    return 0


def _arguments(target: Target, wish: Document) -> Document:
    if len(target.rest) > 1:
        raise click.UsageError(f"one task at a time: {target.rest[0]} or {target.rest[1]}?")
    return wish | {"id": target.rest[0] if target.rest else ""}
