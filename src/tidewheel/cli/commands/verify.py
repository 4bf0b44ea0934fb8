"""``tidewheel verify``: check every promise against the store, and files against its rows."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import say, say_json, say_table
from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.services.file_removal import Orphan

EPILOG = """\b
Examples:
  tidewheel verify
  tidewheel verify --files                   also list files that belong to nothing in the store
  tidewheel verify --files --delete --yes    and remove those of this store
"""


@session_command("verify", epilog=EPILOG)
@click.option(
    "--files",
    is_flag=True,
    help="List folders of runs and tasks in this host's state directory that the store does "
    "not know, with their sizes.",
)
@click.option("--delete", "deletes", is_flag=True, help="With --files: remove them.")
@click.option(
    "--unmarked",
    is_flag=True,
    help="With --delete: also those that do not say which store they belong to.",
)
@click.option("--yes", "is_sure", is_flag=True, help="With --delete: do not ask.")
def command(
    session: Session, *, files: bool, deletes: bool, unmarked: bool, is_sure: bool
) -> int:
    """List every row of the store that breaks a promise; exit 1 if there is one."""
    if deletes and not files:
        raise click.UsageError("--delete removes what --files lists; give both")
    if unmarked and not deletes:
        raise click.UsageError("--unmarked says what else --delete removes; give both")
    found = session.ask_existing(lambda client: client.verify())
    document: dict[str, object] = {
        "violations": [
            {"invariant": one.invariant, "task": one.task_id, "seen": one.seen} for one in found
        ]
    }
    if not session.as_json:
        if found:
            rows = [(one.invariant, one.task_id, one.seen) for one in found]
            say_table(("INVARIANT", "TASK", "SEEN"), rows)
        else:
            say("the store keeps every promise")
    if files:
        document |= _check_files(session, deletes=deletes, unmarked=unmarked, is_sure=is_sure)
    if session.as_json:
        say_json(document)
    return ExitCode.FAILED if found else ExitCode.DONE


def _check_files(
    session: Session, *, deletes: bool, unmarked: bool, is_sure: bool
) -> dict[str, object]:
    from tidewheel.config import home_directory
    from tidewheel.services.file_removal import find_orphans, remove_orphan
    from tidewheel.wiring.stores import is_remote, opened_store

    if is_remote(session.store):
        raise click.UsageError(
            "--files compares the files of this host with a store; name the server's own "
            "store: --store URL"
        )
    home = home_directory()

    async def orphans() -> list[Orphan]:
        async with opened_store(session.store) as store:
            return await find_orphans(store, home)

    found = asyncio.run(orphans())
    shown = [
        {
            "path": str(home / one.path),
            "bytes": one.size,
            "unmarked": one.is_unmarked,
            "in_use": one.in_use,
        }
        for one in found
    ]
    if not session.as_json:
        _show(found, str(home))
    removed = []
    going = [one for one in found if not one.in_use and (unmarked or not one.is_unmarked)]
    if going and deletes and _agreed(len(going), is_sure=is_sure):
        removed = [str(home / one.path) for one in going if remove_orphan(home, one)]
        if not session.as_json:
            say(f"{len(removed)} of {len(going)} folders are removed")
    return {"orphans": shown, "removed": removed}


def _show(found: list[Orphan], home: str) -> None:
    if not found:
        say(f"every folder of a run or a task in {home} belongs to something in the store")
        return
    used = [one for one in found if one.in_use]
    unmarked = [one for one in found if one.is_unmarked and not one.in_use]
    marked = [one for one in found if not one.is_unmarked and not one.in_use]
    if marked:
        _list(marked)
        say(
            f"{_counted(marked)} in {home} belong to nothing in this store; remove them: "
            "tidewheel verify --files --delete"
        )
    if unmarked:
        _list(unmarked)
        say(
            f"{_counted(unmarked)} in {home} belong to no run of this store, and do not say "
            "which store they belong to; if no other store or server uses this state "
            "directory, remove them: tidewheel verify --files --delete --unmarked"
        )
    if used:
        _list(used)
        say(f"{_counted(used)} in {home} are in use: a job of them still runs; they stay")


def _list(found: list[Orphan]) -> None:
    say_table(("FOLDER", "BYTES"), [(one.path, str(one.size)) for one in found])


def _counted(found: list[Orphan]) -> str:
    return f"{len(found)} folders, {sum(one.size for one in found)} bytes,"


def _agreed(count: int, *, is_sure: bool) -> bool:
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here; to remove them, add --yes")
    return click.confirm(f"Remove these {count} folders for ever?", err=True)
