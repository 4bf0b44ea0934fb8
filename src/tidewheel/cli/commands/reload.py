"""``tidewheel reload``: a run goes on with the definition as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs
    from tidewheel.ports.runs import Answer, Document

EPILOG = """\b
Examples:
  tidewheel reload forecast
  tidewheel reload forecast ~/flows/forecast -s MEMBERS=8
"""


@session_command("reload", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN] [DIR]")
@click.option(
    "-s",
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A template variable; all others stay as they are.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would change.")
def command(
    session: Session, words: tuple[str, ...], settings: tuple[str, ...], *, dry_run: bool
) -> int:
    """Give a run its definition anew: from DIR, or from the folder that it came from.

    The new definition replaces the old one whole. If there is an error in it, nothing changes.
    """
    from tidewheel.cli.runs.access import Given, this_job, with_runs
    from tidewheel.cli.runs.reloading import save_new
    from tidewheel.cli.verb_command import say_given, say_tried
    from tidewheel.core.operator.commands import Reload

    if this_job(session) is not None:
        return _reload_from_job(session, words, dry_run=dry_run)

    async def ask(runs: Runs) -> Answer | Document | int:
        saved = await save_new(runs, words, settings, as_json=session.as_json)
        if isinstance(saved, int):
            return saved
        run, reload = saved
        return await (runs.dry_run(run, reload) if dry_run else runs.give(run, reload))

    made = with_runs(session, ask)
    if isinstance(made, int):
        return made
    if isinstance(made, dict):
        say_tried(session, made)
        return 0
    say_given(session, Given(made.run, Reload(), made.number, made.document))
    return 0


def _reload_from_job(session: Session, words: tuple[str, ...], *, dry_run: bool) -> int:
    """The scheduler reads the folder: a job cannot put a definition into the store."""
    from tidewheel.cli.runs.access import give
    from tidewheel.cli.verb_command import say_given, try_verb
    from tidewheel.core.operator.commands import Reload

    if dry_run:
        return try_verb(session, words, lambda _: Reload())
    say_given(session, give(session, words, lambda _: Reload()))
    return 0
