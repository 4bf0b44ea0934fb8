"""``tidewheel ext-trigger``: tell a run that something outside has happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.cli.runs.access import Target
    from tidewheel.core.operator.verbs import ExtTrigger

WORDS_MAX = 2  # behind the run

EPILOG = """\b
Examples:
  tidewheel ext-trigger forecast "new data" file-0815
"""


@session_command("ext-trigger", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN] MESSAGE [TRIGGER_ID]")
@click.option("--task", "ids", multiple=True, metavar="ID", help="Only for these tasks.")
def command(session: Session, words: tuple[str, ...], ids: tuple[str, ...]) -> int:
    """Tell a run that the MESSAGE for which tasks wait has come from outside.

    One task takes it: the oldest that waits. TRIGGER_ID tells one message from the next and is
    given to the job.
    """
    from tidewheel.cli.runs.access import give
    from tidewheel.cli.verb_command import say_given

    def asked(target: Target) -> ExtTrigger:
        from tidewheel.core.operator.verbs import ExtTrigger

        if not 0 < len(target.rest) <= WORDS_MAX:
            raise click.UsageError(f'write: ext-trigger {target.run} "MESSAGE" TRIGGER_ID')
        message, *number = target.rest
        return ExtTrigger(message=message, trigger_id="".join(number), ids=ids)

    say_given(session, give(session, words, asked, any_word=True))
    return 0
