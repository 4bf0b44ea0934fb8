"""Defines the commands that look at runs: runs, show, why, tree, log, tui."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, plural, safe, safe_lines, say
from tidewheel.cli.parameters import DURATION
from tidewheel.cli.runs.access import (
    Document,
    Target,
    look,
    tell_of_unread,
    this_job,
    with_runs,
)
from tidewheel.cli.session import (
    Session,
    Words,
    check_apart,
    check_beside,
    option,
    session_command,
)
from tidewheel.errors import NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidewheel.client import AsyncClient
    from tidewheel.client.runs import Runs


@session_command(
    "runs",
    "runs",
    "runs --workflow forecast",
    "runs --matching 'fore*:stalled'        also ':stalled', fore",
    "runs --delete forecast/run1            shows what will be deleted, and asks",
    "runs --delete-older P30D --dry-run     also --workflow forecast, --matching :completed",
)
@option("--workflow NAME", "List only runs of this workflow.")
@option(
    "--matching FILTER",
    "List only runs that fit a filter; `tidewheel tasks --help` explains filters.",
)
@option("--nested", "Also list nested runs, which tasks of other runs started.")
@option(
    "-n --limit", "The maximum number of runs to list.", type=click.IntRange(1, 1000), shown=100
)
@option(
    "--delete unwanted RUN...",
    "Delete this run with all its logs and files, unless a scheduler drives it; give its "
    "whole name.",
)
@option(
    "--delete-older older",
    "Delete the runs that completed, stopped, stalled or ended with an error longer ago than "
    "this. Runs that a scheduler drives, that wait for a scheduler, or that other runs wait "
    "for are kept.",
    type=DURATION,
)
@option("--dry-run", "With --delete-older: only list what would be deleted.")
@option("--yes", "Delete without asking.")
def runs_command(
    session: Session,
    unwanted: Words,
    *,
    limit: int,
    older: float | None,
    dry_run: bool,
    yes: bool,
    **which: Any,  # noqa: ANN401 - those of `Runs.list`
) -> int:
    """List runs, newest first, with their status and whether a scheduler drives them.

    The status of a completed run says how many of its tasks were lost (something they need
    failed) or skipped (expired, removed by hand, or brought too late by a reload).
    """
    from tidewheel.cli.pages.run import say_runs

    check_beside({"dry_run": "older"} if older is None else {})
    check_apart((*which, "limit", "older"), "unwanted")
    check_apart(("nested", "limit"), "older")
    which["matching"] = which["matching"] or ""
    if older is not None:
        return _delete_older(session, older, which, dry_run=dry_run, yes=yes)
    check_beside({"yes": "unwanted"})
    if unwanted:
        return _delete(session, unwanted, yes=yes)
    page = with_runs(session, lambda runs: runs.list(count=limit, **which))
    is_filtered = bool(which["matching"])
    session.answer(page, lambda page: say_runs(page, which["workflow"], matching=is_filtered))
    if is_filtered and page.get("next") is not None:
        note(
            "there may be more runs: not all were searched; narrow the search: --workflow NAME"
        )
    return ExitCode.DONE


def _delete(session: Session, unwanted: Words, *, yes: bool) -> int:
    going = with_runs(session, lambda runs: _what_goes(session, runs, unwanted))
    if not (yes or _is_confirmed(going.values())):
        return ExitCode.REFUSED

    async def delete(runs: Runs) -> list[str]:
        return [(await runs.delete(name)).name for name in going]

    deleted = with_runs(session, delete)
    told = "\n".join(f"{safe(name)} is deleted" for name in deleted)
    return session.answer({"deleted": deleted}, lambda _: say(told))


def _is_confirmed(going: Iterable[str]) -> bool:
    for text in going:
        note(text)
    if not sys.stdin.isatty():
        raise Refused("nothing was deleted: there is no terminal to confirm on; add --yes")
    if click.confirm("Delete this permanently?", err=True):
        return True
    note("nothing was deleted")
    return False


def _delete_older(
    session: Session, seconds: float, which: dict[str, Any], *, dry_run: bool, yes: bool
) -> int:
    """Deletes the runs that ended longer ago than this; a run that may not be deleted is named
    with the reason, and keeps no other from it."""
    from tidewheel.quantities import show_duration

    now = session.ask(lambda client: client.store.now())
    found = with_runs(session, lambda runs: _ended(runs, which, now - seconds))
    going = {
        name: f"{safe(name)}: {status}, ended {show_duration(now - ended)} ago, "
        f"{_files_text(session, name)}"
        for name, (status, ended) in found.items()
    }
    if dry_run or not going:
        texts = list(going.values()) or [f"no run ended more than {show_duration(seconds)} ago"]

        def show(_: object) -> None:
            for text in texts:
                note(text)
            if going:
                note(f"nothing was deleted; without --dry-run: {plural(len(going), 'run')}")

        return session.answer({"deleted": list(going), "kept": [], "dry_run": dry_run}, show)
    if not (yes or _is_confirmed(going.values())):
        return ExitCode.REFUSED
    deleted, kept = with_runs(session, lambda runs: _deleted(runs, which, going, now - seconds))
    told = "\n".join(f"{safe(name)} is deleted" for name in deleted)

    def show_done(_: object) -> None:
        if told:
            say(told)
        for one in kept:
            note(f"{safe(one['run'])} is kept: {safe(one['reason'])}")

    session.answer({"deleted": deleted, "kept": kept, "dry_run": False}, show_done)
    return ExitCode.FAILED if kept else ExitCode.DONE


async def _ended(
    runs: Runs, which: dict[str, Any], before: float
) -> dict[str, tuple[str, float]]:
    """Returns the runs that fit and that ended before this, with status and end, oldest
    first."""
    from tidewheel.api.wire import instant
    from tidewheel.core.operator.views import CARRY_ON_STATUSES
    from tidewheel.views.run_facts import RUNS_MAX

    found: dict[str, tuple[str, float]] = {}
    asked = {name: value for name, value in which.items() if value}
    while True:
        page: Any = await runs.look("runs", count=RUNS_MAX, **asked)
        for one in page["runs"]:
            is_free = not (one["driven"] or one["offered"] or one["waits"])
            if (
                is_free
                and one["ended_at"]
                and one["status"] in ("completed", *CARRY_ON_STATUSES)
            ):
                ended = instant(one["ended_at"])
                if ended < before:
                    found[one["name"]] = (one["status"], ended)
        if page["next"] is None:
            return dict(reversed(found.items()))
        asked["before"] = page["next"]


async def _deleted(
    runs: Runs, which: dict[str, Any], going: Iterable[str], before: float
) -> tuple[list[str], list[dict[str, str]]]:
    deleted, kept = [], []
    still = await _ended(runs, which, before)  # somebody may have thought about it for long
    for name in going:
        if name not in still:
            kept.append({"run": name, "reason": "it went on meanwhile"})
            continue
        try:
            deleted.append((await runs.delete(name)).name)
        except Refused as error:  # it went on meanwhile, or others wait for it
            kept.append({"run": name, "reason": str(error)})
    return deleted, kept


async def _what_goes(session: Session, runs: Runs, unwanted: Words) -> dict[str, str]:
    """Returns, for each run, a text that says what is deleted with it.

    Raises Refused for a run that is driven, or is named only in part.
    """
    going = {}
    for name in unwanted:
        view = await runs.find(name)
        if view.name != name:
            meant = f"if you mean {view.name}: tidewheel runs --delete {quote(view.name)}"
            raise Refused(f"{name!r} is not the whole name of a run; {meant}")
        shown: Any = await runs.show(name)
        if shown["run"]["driven"]:
            raise Refused(
                f"a scheduler still drives {name}; stop it first: tidewheel stop {quote(name)}"
            )
        tasks = plural(sum(shown["counts"].values()), "task")
        going[name] = f"{safe(name)}: {tasks}, {_files_text(session, name)}"
    return going


def _files_text(session: Session, run: str) -> str:
    """Returns the folder of a run on this machine, and its size; of a run at a server only
    that it has files there."""
    from tidewheel.config import home_directory
    from tidewheel.quantities import show_size
    from tidewheel.services.paths import run_directory
    from tidewheel.wiring.stores import is_remote

    if is_remote(session.store):
        return "and its files on the server"
    folder = run_directory(home_directory(), run)
    sizes = (one.lstat().st_size for one in folder.rglob("*") if one.is_file())
    return f"{safe(folder)} ({show_size(sum(sizes))})"


VERSIONS = ("version", "against")


@session_command(
    "show",
    "show forecast",
    "show forecast 3/model",
    "show forecast '*/model:failed'",
    "show forecast --history",
    "show forecast --versions",
    "show forecast --diff                   # what the last reload changed",
)
@click.argument("words", nargs=-1, metavar="[RUN] [ID]...")
@option(
    "--history part",
    "List the commands that the run was given, by whom and when.",
    flag_value="history",
)
@option(
    "--versions part",
    "List all definitions that the run has had, and the findings in the last one.",
    flag_value="versions",
)
@option(
    "--diff part",
    "Print what the last reload changed; with two version numbers (see --versions), how these "
    "differ.",
    flag_value="diff",
)
def show_command(session: Session, words: Words, *, part: str | None) -> int:
    """Show a run: its status and why, progress per point, active tasks, why it does not
    continue.

    With ids: tasks with their prerequisites, outputs, flows and submissions. This works without
    a scheduler.
    """
    asked = partial(_part_arguments, part)
    if part in ("versions", "diff"):
        from tidewheel.cli.pages import workflows

        says = workflows.say_diff if part == "diff" else workflows.say_versions
        return session.answer(look(session, part, words, asked), says)
    from tidewheel.cli.pages import run, task

    page = look(session, part or "show", words, asked)
    if "tasks" in page:
        return session.answer(page, task.say_tasks)
    status = session.answer(page, run.say_history if part else run.say_run)
    if part is None:
        _tell_if_unread(session, page)
    return status


def _tell_if_unread(session: Session, shown: Document) -> None:
    """Tells the user of changes that a run does not have if something in it needs action."""
    facts: Any = shown["run"]
    if shown["causes"]:
        tell_of_unread(session, facts["name"])


def _part_arguments(part: str | None, target: Target) -> Document:
    """Returns what the words behind the run ask for; raises a usage error where they mean
    nothing."""
    if part == "diff":
        return _two_versions(target)
    if part is None:
        return {"ids": list(target.rest)}
    if target.rest:
        raise click.UsageError(
            f"--{part} concerns the whole run; leave out {target.rest[0]!r}: tidewheel show "
            f"{target.run} --{part}"
        )
    return {}


def _two_versions(target: Target) -> Document:
    """Returns the numbers of the versions that are to be compared, if some are named."""
    if not target.rest:
        return {}
    if len(target.rest) != len(VERSIONS) or not all(map(str.isdecimal, target.rest)):
        raise click.UsageError(
            f"--diff takes two versions: tidewheel show {quote(target.run)} --diff 1 2"
        )
    return dict(zip(VERSIONS, map(int, target.rest), strict=True))


class _WholeRun(Exception):
    """Says that the words of a command line name a run alone."""


@session_command("why", "why forecast", "why forecast 3/post", "why forecast '3/*'")
@click.argument("words", nargs=-1, metavar="[RUN] [ID]...")
def why_command(session: Session, words: Words) -> int:
    """Say why tasks do not run: each reason, whether it clears on its own, what would help.

    Without an id: what keeps the whole run from continuing, or what has failed in it.
    """
    from tidewheel.cli.pages import run
    from tidewheel.cli.pages.format import documents

    def arguments(target: Target) -> Document:
        if not target.rest:
            raise _WholeRun
        return {"ids": list(target.rest)}

    try:
        tasks = look(session, "why", words, arguments)
    except NotFound as missing:
        if this_job(session) is None:
            _refuse_task_of_queue(session, words[0])
        raise missing
    except _WholeRun:
        page = look(session, "show", words, lambda _: {})
        status = session.answer(page, run.say_why_run)
        _tell_if_unread(session, page)
        return status
    status = session.answer(tasks, run.say_why)
    stuck = [
        str(task["run"])
        for task in documents(tasks, "tasks")
        if any(reason["needs_action"] for reason in documents(task, "reasons"))
    ]
    if stuck:
        tell_of_unread(session, stuck[0])
    return status


def _refuse_task_of_queue(session: Session, word: str) -> None:
    """Raises Refused if a word, which names no run, is the id of a task of the queue."""
    with suppress(NotFound):
        task = session.ask(lambda client: client.get(word))
        raise Refused(
            f"{word!r} is a task of the queue, not a run; see why it does not run: "
            f"tidewheel task {task.id}"
        )


@session_command(
    "tree",
    "tree forecast",
    "tree forecast 3",
    "tree forecast '*/model*'",
    "tree forecast --window 2",
)
@click.argument("words", nargs=-1, metavar="[RUN] [POINT|ID]...")
@option(
    "--window N",
    "Show the pool and everything within N edges of it, past and future.",
    type=click.IntRange(0, 10),
)
@option("--all everything", "Show all points, not only the newest.")
def tree_command(
    session: Session, words: Words, window: int | None, *, everything: bool
) -> int:
    """Draw a run: every task that was spawned, with its state, flows and submissions.

    POINT shows all of its tasks, even future ones. A name or glob finds tasks at
    any point.
    """
    from tidewheel.cli.pages.run import say_tree

    def arguments(target: Target) -> Document:
        if target.rest and window is not None:
            raise click.UsageError("--window applies to the whole pool; leave out the ids")
        return {"ids": list(target.rest), "window": window, "all": everything}

    return session.answer(look(session, "tree", words, arguments), say_tree)


@session_command(
    "log",
    "log forecast",
    "log forecast 3/model",
    "log forecast 3/model --file err -f",
    "log forecast 3/model/01 --file job",
    "log forecast --level warning",
    "log forecast --search 'CFL violated' --task 'model*'",
    "log TASK                                 # of the queue: by its id or its name",
)
@click.argument("words", nargs=-1, metavar="[RUN] [ID[/SUBMIT]]")
@option(
    "--file file NAME",
    "Which file: out, err, job (the script), status, activity or xtrace. [default for a job "
    "of a run: out]",
)
@option("--err file", "The same as --file err.", flag_value="err")
@option(
    "-s --submit", "The log of this submission. [default: the latest]", type=click.IntRange(1)
)
@option("--attempt", "The log of this attempt. [default: the latest]", type=click.IntRange(1))
@option("-f --follow", "Print new lines until the job, or the run, has ended.")
@option("--path path_only", "Print only the path of the file.")
@option(
    "--level LEVEL",
    "Print only lines of this level or above, with their continuation lines: debug, info, "
    "warning, error or critical. Without this option the log of a run leaves out debug lines; "
    "the log of a job is shown whole.",
)
@option(
    "--search text TEXT",
    "Print only lines with this text, with their numbers. Without an ID, the logs of the run "
    "and of all its jobs are searched.",
)
@option(
    "--task GLOB", "With --search: only in the logs of these tasks, such as 'model*' or '3/*'."
)
@option("--glob", "In TEXT, * stands for any characters.")
@option("--case", "Upper and lower case in TEXT must match.")
@option(
    "-n --limit", "The maximum number of lines to find.", type=click.IntRange(1), shown=1000
)
def log_command(
    session: Session, words: Words, *, follow: bool, path_only: bool, **given: object
) -> int:
    """Print the log of a run or, with an ID, what the job of a task wrote.

    Logs are files on the host that ran the job; workers send them to their server. For a task
    of the queue, both out and err are printed unless --file names one; if an exception ended
    its handler, the traceback comes last.
    """
    check_beside({"glob": "text", "case": "text"})
    check_apart(("follow",), "path_only")
    wish = {name: given.pop(name) for name in ("file", "submit", "attempt")}
    is_search = given["text"] is not None or given["task"] or session.as_json
    with_debug = not is_search and str(given["level"] or "").lower() == "debug"
    if given["text"] is not None or given["task"] or (given["level"] and not with_debug):
        return _search(session, words, wish, given, is_other=follow or path_only)

    def arguments(target: Target) -> Document:
        if len(target.rest) > 1:
            raise click.UsageError(f"one task at a time: {target.rest[0]} or {target.rest[1]}?")
        if not target.rest:
            from tidewheel.cli.pages.log import refuse_without_task

            refuse_without_task(target.run, *wish)
        return wish | {"id": target.rest[0] if target.rest else ""}

    try:
        if follow and not session.as_json and this_job(session) is None:
            from tidewheel.cli.pages.log import follow_log

            follow_log(session, words, arguments, with_debug=with_debug)
            return 0
        page = look(session, "log", words, arguments)
    except Refused:
        if len(words) != 1 or this_job(session) is not None:
            raise
        from tidewheel.cli.pages.log import say_queue_log

        if not say_queue_log(session, words[0], wish, follow=follow, path_only=path_only):
            raise
        return 0
    if path_only:
        return session.answer(page, lambda page: say(safe(page["path"])))
    of_errors = None if wish["file"] else partial(_errors_text, session, words, arguments)
    return session.answer(page, lambda page: _say_log(page, of_errors, with_debug=with_debug))


def _say_log(
    page: Document, errors_text: Callable[[], str] | None, *, with_debug: bool
) -> None:
    if not (page["id"] or with_debug):
        from tidewheel.cli.pages.log import WithoutDebug

        shown = WithoutDebug()
        shown.say(str(page["text"]).encode())
        shown.end()
    else:
        click.echo(safe_lines(str(page["text"])), nl=False)
    if page["text"]:
        return
    errors = errors_text() if errors_text is not None else ""
    note(f"{safe(page['path'])} is empty" + ("; job.err says:" if errors else ""))
    click.echo(safe_lines(errors), nl=False)


def _search(
    session: Session, words: Words, wish: Document, given: Document, *, is_other: bool
) -> int:
    from tidewheel.cli.pages.log import LogSearch, search_logs, search_queue_log

    if is_other:
        raise click.UsageError("--search and --level go with neither --follow nor --path")
    if given["task"] and given["text"] is None:
        raise click.UsageError("--task says where to search: add --search TEXT")
    match = "glob" if given["glob"] else "text"
    named: Any = {name: given[name] for name in ("task", "limit", "case")}
    text, level = str(given["text"] or ""), str(given["level"] or "")
    asked = LogSearch(text=text, level=level, match=match, log=wish, **named)
    try:
        search_logs(session, words, asked)
    except Refused:
        one = words[0] if len(words) == 1 and not given["task"] else None
        if one is None or this_job(session) is not None:
            raise
        if not search_queue_log(session, one, asked):
            raise
    return ExitCode.DONE


def _errors_text(
    session: Session, words: Words, arguments: Callable[[Target], Document]
) -> str:
    """Returns what a job that printed nothing wrote to job.err; "" if that cannot be read."""
    try:
        page = look(session, "log", words, lambda one: arguments(one) | {"file": "err"})
    except (Refused, Unavailable):
        return ""
    return str(page["text"])


TUI_EPILOG = """\b
Examples:
  tidewheel tui forecast
  tidewheel tui --server https://wheel.example.org
Press ? for the keys. NO_COLOR=1 leaves out colours.
"""


@session_command("tui", epilog=TUI_EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN]")
def tui_command(session: Session, words: Words) -> int:
    """Watch a run in the terminal and act on it; without RUN, choose one.

    You see the tree of points, families, tasks and submissions, live; why a task waits, its
    prerequisites and outputs; logs as they are written. Every action asks first; all but
    pause and resume also show what they would do.
    """
    if len(words) > 1:
        raise click.UsageError(f"one run at a time: {words[0]} or {words[1]}?")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "tui needs a terminal; without one, use tidewheel tree, show or log -f"
        )
    from tidewheel.cli.tui.app import App
    from tidewheel.cli.tui.terminal import Terminal

    async def attend(client: AsyncClient) -> None:
        run = (await client.runs.find(words[0])).name if words else ""
        encoding = (sys.stdout.encoding or "").lower()
        has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        with Terminal(has_colour=has_colour, has_shapes=encoding.startswith("utf")) as terminal:
            await App(client, terminal, run).run()

    session.ask(attend)
    return 0
