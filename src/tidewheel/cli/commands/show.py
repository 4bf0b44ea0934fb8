"""``tidewheel show``: a run, or some of its tasks, with everything that is known."""

from __future__ import annotations

import click

from tidewheel.cli.session import Session, session_command

EPILOG = """\b
Examples:
  tidewheel show forecast
  tidewheel show forecast 3/model
  tidewheel show forecast '*/model:failed'
  tidewheel show forecast --history
"""


@session_command("show", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN] [ID]...")
@click.option(
    "--history", is_flag=True, help="List what was asked of the run, by whom and when."
)
def command(session: Session, words: tuple[str, ...], *, history: bool) -> int:
    """Show a run: its status and why, progress per point, active tasks, what holds it up.

    With ids: tasks with their prerequisites, outputs, flows and submissions. Nothing of it
    needs a running scheduler.
    """
    from tidewheel.cli.output import say, say_json
    from tidewheel.cli.pages.format import documents
    from tidewheel.cli.pages.run import say_history, say_run
    from tidewheel.cli.pages.task import say_task
    from tidewheel.cli.runs.access import look

    name = "history" if history else "show"
    page = look(session, name, words, lambda target: {"ids": list(target.rest)})
    if session.as_json:
        say_json(page)
    elif history:
        say_history(page)
    elif "tasks" in page:
        for number, task in enumerate(documents(page, "tasks")):
            if number:
                say()
            say_task(task)
    else:
        say_run(page)
    return 0
