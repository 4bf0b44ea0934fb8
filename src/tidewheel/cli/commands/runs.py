"""``tidewheel runs``: the runs that are there; delete one that has ended."""

from __future__ import annotations

import click

from tidewheel.cli.session import Session, session_command

EPILOG = """\b
Examples:
  tidewheel runs
  tidewheel runs --workflow forecast
  tidewheel runs --delete forecast/run1
"""


@session_command("runs", epilog=EPILOG)
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="How many to list at most.",
)
@click.option(
    "--delete",
    "unwanted",
    multiple=True,
    metavar="RUN",
    help="Delete this run with all its logs and files, unless a scheduler drives it.",
)
def command(
    session: Session, workflow: str | None, limit: int, unwanted: tuple[str, ...]
) -> int:
    """List runs, newest first, with their status and whether a scheduler drives them."""
    from tidewheel.cli.printing import note, safe, say, say_json
    from tidewheel.cli.runs.door import with_runs
    from tidewheel.cli.runs.show_page import say_runs
    from tidewheel.client.runs import Runs

    async def delete(runs: Runs) -> list[str]:
        return [(await runs.delete(one)).name for one in unwanted]

    if unwanted:
        deleted = with_runs(session, delete)
        if session.as_json:
            say_json({"deleted": deleted})
        else:
            for name in deleted:
                say(f"{safe(name)} is deleted")
        return 0
    page = with_runs(session, lambda runs: runs.list(workflow=workflow, count=limit))
    if session.as_json:
        say_json(page)
    elif page["runs"]:
        say_runs(page)
    else:
        of = f" of {safe(workflow)}" if workflow else ""
        note(f"there are no runs{of}; start one: tidewheel run DIR")
    return 0
