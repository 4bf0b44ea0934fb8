"""``tidewheel why``: every reason why a task does not run, and what would change it."""

from __future__ import annotations

import click

from tidewheel.cli.session import Session, session_command

EPILOG = """\b
Examples:
  tidewheel why forecast 3/post
  tidewheel why forecast '3/*'
"""


@session_command("why", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN] ID...")
def command(session: Session, words: tuple[str, ...]) -> int:
    """Say why tasks do not run: each reason, whether it passes by itself, what would help."""
    from tidewheel.cli.output import say_json
    from tidewheel.cli.pages.run import say_why
    from tidewheel.cli.runs.access import Document, Target, look

    def arguments(target: Target) -> Document:
        if not target.rest:
            raise click.UsageError(f"name a task: tidewheel why {target.run} POINT/NAME")
        return {"ids": list(target.rest)}

    page = look(session, "why", words, arguments)
    if session.as_json:
        say_json(page)
    else:
        say_why(page)
    return 0
