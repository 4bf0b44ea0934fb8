"""``tidewheel runs``: the runs that are there; delete one that has ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

EPILOG = """\b
Examples:
  tidewheel runs
  tidewheel runs --workflow forecast
  tidewheel runs --delete forecast/run1            shows what goes, and asks
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
    help="Delete this run with all its logs and files, unless a scheduler drives it; its whole "
    "name is needed.",
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
def command(
    session: Session, workflow: str | None, limit: int, unwanted: tuple[str, ...], *, yes: bool
) -> int:
    """List runs, newest first, with their status and whether a scheduler drives them.

    A completed run says how many of its tasks were lost (something they need failed) or skipped
    (expired, or removed by hand).
    """
    from tidewheel.cli.output import note, safe, say_json
    from tidewheel.cli.pages.run import say_runs
    from tidewheel.cli.runs.access import with_runs

    if unwanted:
        return _delete(session, unwanted, yes=yes)
    page = with_runs(session, lambda runs: runs.list(workflow=workflow, count=limit))
    if session.as_json:
        say_json(page)
    elif page["runs"]:
        say_runs(page)
    else:
        of = f" of {safe(workflow)}" if workflow else ""
        note(f"there are no runs{of} yet; start one: tidewheel run DIR")
    return ExitCode.DONE


# ---- deleting ----


class _Goes(NamedTuple):
    """The files and rows that are deleted with a run."""

    run: str
    tasks: int
    folder: str  # empty: on another machine
    size_bytes: int

    def __str__(self) -> str:
        from tidewheel.cli.output import plural, safe
        from tidewheel.quantities import show_size

        what = f"{safe(self.run)}: {plural(self.tasks, 'task')}"
        if not self.folder:
            return f"{what}, and its files on the server"
        return f"{what}, {safe(self.folder)} ({show_size(self.size_bytes)})"


def _delete(session: Session, unwanted: tuple[str, ...], *, yes: bool) -> int:
    from tidewheel.cli.output import note, safe, say, say_json
    from tidewheel.cli.runs.access import with_runs
    from tidewheel.errors import Refused

    going = with_runs(session, lambda runs: _what_goes(session, runs, unwanted))
    if not yes:
        for one in going:
            note(f"{one}")
        if not sys.stdin.isatty():
            raise Refused("nothing was deleted, as there is no terminal to ask; say --yes")
        if not click.confirm("Delete this for ever?", err=True):
            note("nothing was deleted")
            return ExitCode.REFUSED

    async def delete(runs: Runs) -> list[str]:
        return [(await runs.delete(one.run)).name for one in going]

    deleted = with_runs(session, delete)
    if session.as_json:
        say_json({"deleted": deleted})
    else:
        for name in deleted:
            say(f"{safe(name)} is deleted")
    return ExitCode.DONE


async def _what_goes(session: Session, runs: Runs, unwanted: tuple[str, ...]) -> list[_Goes]:
    """Refused if one is named only in part, or is driven."""
    from tidewheel.errors import Refused

    going = []
    for name in unwanted:
        view = await runs.find(name)
        if view.name != name:
            raise Refused(
                f"{name!r} is not the whole name of a run; if you mean {view.name}: "
                f"tidewheel runs --delete {view.name}"
            )
        shown = await runs.show(name)
        run, counts = shown["run"], shown["counts"]
        assert isinstance(run, dict) and isinstance(counts, dict)
        if run["driven"]:
            raise Refused(f"{name} is driven; stop it first: tidewheel stop {name}")
        going.append(_Goes(name, sum(counts.values()), *_files(session, name)))
    return going


def _files(session: Session, run: str) -> tuple[str, int]:
    """The folder of a run on this machine, and its size."""
    from tidewheel.config import home_directory
    from tidewheel.services.paths import run_directory
    from tidewheel.wiring.stores import is_remote

    if is_remote(session.store):
        return "", 0
    folder = run_directory(home_directory(), run)
    sizes = (one.lstat().st_size for one in folder.rglob("*") if one.is_file())
    return str(folder), sum(sizes)
