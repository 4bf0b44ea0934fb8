"""``tidewheel reload``: a run goes on with the definition as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client.runs import Answer, Runs

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
    help="A template variable; others stay as the run has them.",
)
def command(session: Session, words: tuple[str, ...], settings: tuple[str, ...]) -> int:
    """Give a run its definition anew: from DIR, or from the folder that it came from.

    The new definition replaces the old one whole. If there is an error in it, nothing changes.
    """
    from tidewheel.cli.run_acting import say_given
    from tidewheel.cli.run_door import Given, this_job, with_runs
    from tidewheel.cli.run_reloading import reload_run
    from tidewheel.core.runs.commands import Reload

    if this_job(session) is not None:
        return _reload_from_job(session, words)

    async def ask(runs: Runs) -> Answer | int:
        return await reload_run(runs, words, settings, as_json=session.as_json)

    made = with_runs(session, ask)
    if isinstance(made, int):
        return made
    say_given(session, Given(made.run, Reload(), made.number, made.document))
    return 0


def _reload_from_job(session: Session, words: tuple[str, ...]) -> int:
    """The scheduler reads the folder: a job cannot put a definition into the store."""
    from tidewheel.cli.run_acting import say_given
    from tidewheel.cli.run_door import give
    from tidewheel.core.runs.commands import Reload

    say_given(session, give(session, words, lambda _: Reload()))
    return 0
