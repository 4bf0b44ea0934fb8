"""``tidewheel tree``: a run as a tree of points, families, tasks and submissions."""

from __future__ import annotations

import click

from tidewheel.cli.session import Session, session_command

EPILOG = """\b
Examples:
  tidewheel tree forecast
  tidewheel tree forecast 3
  tidewheel tree forecast '*/model*'
  tidewheel tree forecast --window 2
"""


@session_command("tree", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN] [POINT|ID]...")
@click.option(
    "--window",
    type=click.IntRange(0, 10),
    metavar="N",
    help="Show the pool and everything within N edges of it, past and future.",
)
@click.option("--all", "everything", is_flag=True, help="Show all points, not only the newest.")
def command(
    session: Session, words: tuple[str, ...], window: int | None, *, everything: bool
) -> int:
    """Draw a run: every task that was spawned, with its state, flows and submissions.

    POINT shows all of its tasks, even those that are yet to come. A name or glob finds tasks at
    any point.
    """
    from tidewheel.cli.output import say_json
    from tidewheel.cli.pages.run import say_tree
    from tidewheel.cli.runs.access import Document, Target, look

    def arguments(target: Target) -> Document:
        if target.rest and window is not None:
            raise click.UsageError("--window is around the whole pool; leave out the ids")
        return {"ids": list(target.rest), "window": window, "all": everything}

    page = look(session, "tree", words, arguments)
    if session.as_json:
        say_json(page)
    else:
        say_tree(page)
    return 0
