"""Defines the commands about many tasks: tasks lists them, cancel, resubmit and export."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidewheel.api.tasks import JOB_OF_RUN, Task
from tidewheel.api.wire import document
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import (
    Cell,
    Row,
    coloured,
    console,
    fitting_table,
    json_line,
    note,
    on_terminal,
    plural,
    safe,
    say,
    say_json,
    say_table,
)
from tidewheel.cli.parameters import filter_options
from tidewheel.cli.session import Session, check_apart, option, session_command
from tidewheel.core.queue.access import RUN_QUEUE
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import Refused
from tidewheel.quantities import show_duration
from tidewheel.vocabulary import Vocabulary, banyan_task, scylla_task

if TYPE_CHECKING:
    from tidewheel.api.tasks import Resubmitted
    from tidewheel.client import AsyncClient
    from tidewheel.client.fields import Filters
    from tidewheel.core.queue.requests import Cancelled

WATCH_SECONDS = 0.5
WORK_LENGTH_MAX = 60
WITHDRAWN = (
    "withdrawn: the run of the task is stopped or has ended, and no worker takes the task "
    "until the run resumes; to resume it, see: tidewheel task ID"
)
DROP = ("QUEUE", "ATTEMPT", "UPDATED", "NAME", "PROGRESS")
HEADERS = ("ID", "NAME", "QUEUE", "STATUS", "PROGRESS", "ATTEMPT", "UPDATED", "WORK")


@session_command(
    "tasks",
    "tasks --matching 'img-*:failed'        also ':fail', img, =img-0007",
    "tasks --queue imaging --status ready",
    "tasks --jobs                           also jobs of runs",
)
@filter_options("Only tasks")
@option(
    "--limit", "The maximum number of tasks to list.", type=click.IntRange(1, 10_000), shown=100
)
@option(
    "--before",
    "List only tasks older than this `seq`; for the next page, give the `seq` of the last task "
    "shown (see --json).",
    type=int,
)
@option(
    "--vocabulary",
    "Answer as JSON, with the field names of the system that you name.",
    type=click.Choice([word.value for word in Vocabulary]),
    default=Vocabulary.TIDEWHEEL.value,
)
@option("--jobs", "Also list jobs of runs; the jobs of one run are in the queue `run:RUN`.")
@option("--watch", "Show changes as they happen, until Ctrl-C.")
def tasks_command(
    session: Session,
    limit: int,
    before: int | None,
    *,
    watch: bool,
    **which: Unpack[Filters],
) -> int:
    """List tasks in queues, newest first."""
    check_apart(("vocabulary", "before"), "watch")
    if (which.get("queue") or "").startswith(RUN_QUEUE):
        which["jobs"] = True
    if watch:
        with suppress(KeyboardInterrupt):  # which is how one stops watching
            session.ask_existing(lambda client: _watch(client, session, limit, which))
        return 0
    return session.ask(lambda client: _list(client, session, (limit, before), which))


async def _list(
    client: AsyncClient, session: Session, page: tuple[int, int | None], filters: Filters
) -> int:
    limit, before = page
    tasks = await client.list(limit=limit, before=before, **filters)
    following = tasks.next
    words = Vocabulary(filters["vocabulary"])
    if words is not Vocabulary.TIDEWHEEL:
        documents = [await foreign_document(client, task.id, words) for task in tasks]
        say_json({"tasks": documents, "next_before": following})
    elif session.as_json:
        documents = [document(task) for task in tasks]
        say_json({"tasks": documents, "next_before": following})
    elif not tasks:
        is_filtered = any(value for name, value in filters.items() if name != "vocabulary")
        how = "there are no tasks in queues; submit one: tidewheel submit -- echo hello"
        note("no tasks match" if is_filtered else f"{how}; list jobs of runs: --jobs")
        await _note_jobs(client, filters)
    else:
        say_table(HEADERS, table_rows(tasks, await client.store.now()), drop=DROP)
        if any(task.withdrawn for task in tasks):
            note(WITHDRAWN)
        if following is not None:
            note(f"older tasks: --before {following}")
        await _note_jobs(client, filters)
    return 0


async def _note_jobs(client: AsyncClient, filters: Filters) -> None:
    """Says how many open jobs of runs a list leaves out, if any."""
    if filters.get("jobs") is not False or filters.get("queue"):
        return
    views = [one for one in await client.queues() if one.queue.startswith(RUN_QUEUE)]
    if count := sum(sum(one.counts.values()) for one in views):
        so = "is" if count == 1 else "are"
        note(f"{plural(count, 'open job')} of runs {so} not listed; list them, too: --jobs")


async def foreign_document(
    client: AsyncClient, task_id: str, words: Vocabulary
) -> dict[str, object]:
    """Returns a task in the words of Scylla or Banyan, as JSON."""
    view = await client.store.get(TaskId(task_id))
    if words is Vocabulary.SCYLLA:
        return scylla_task(view, await client.history(task_id))
    attempts, edges = await client.attempts(task_id), await client.edges(task_id)
    return banyan_task(view, attempts, edges, await client.usage(task_id))


def table_rows(tasks: Sequence[Task], now: float) -> list[Row]:
    """Returns one row per task, with a cell for each of HEADERS."""
    return [
        (
            task.id,
            task.name or "",
            task.queue,
            status_cell(task),
            f"{task.progress:.0%}" if task.progress else "",
            str(task.attempt or ""),
            show_duration(now - task.updated_at) + " ago",
            work_text(task),
        )
        for task in tasks
    ]


def status_cell(task: Task) -> Cell:
    """Returns the status of a task; of a withdrawn one with a remark that says so."""
    return f"{task.status} (withdrawn)" if task.withdrawn else task.status


def work_text(task: Task) -> str:
    """Returns what a task does, in one line that is not too long."""
    text = (
        task.command or (f"{task.handler}()" if task.handler else task.spec_text) or "(nothing)"
    )
    line = " ".join(text.split())
    return line if len(line) <= WORK_LENGTH_MAX else line[: WORK_LENGTH_MAX - 1] + "…"


async def _watch(client: AsyncClient, session: Session, limit: int, filters: Filters) -> int:
    if on_terminal() and not session.as_json:
        await _watch_on_terminal(client, limit, filters)
    seen: dict[str, float] = {}
    while True:
        for task in reversed(await _newest(client, limit, filters)):
            if seen.get(task.id) != task.updated_at:
                seen[task.id] = task.updated_at
                if session.as_json:
                    say(json_line(document(task)))
                else:
                    work = safe(work_text(task))
                    say(f"{safe(task.id)}  {status_cell(task)}  {task.progress:.0%}  {work}")
        await asyncio.sleep(WATCH_SECONDS)


async def _newest(client: AsyncClient, count: int, filters: Filters) -> Sequence[Task]:
    """Returns a page of tasks: for a pattern, of those that a store looks at in one go."""
    from tidewheel.client.fields import task_filter
    from tidewheel.core.queue.requests import KeysetPage

    return await client.store.list_tasks(task_filter(**filters), KeysetPage(count=count))


async def _watch_on_terminal(client: AsyncClient, limit: int, filters: Filters) -> None:
    from rich.live import Live

    screen = Live(console=console(), screen=True, auto_refresh=False, redirect_stdout=False)
    with screen as live:
        while True:
            count = min(limit, live.console.height - 1)
            tasks = await _newest(client, count, filters)
            rows = table_rows(tasks, await client.store.now())
            table = fitting_table(HEADERS, rows, live.console.width, drop=DROP)
            live.update(table, refresh=True)
            await asyncio.sleep(WATCH_SECONDS)


# ---- `cancel`: tasks by id, or all that a filter finds ----

COUNT_MAX = 1000


@session_command("cancel")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@filter_options("All tasks")
def cancel_command(session: Session, ids: tuple[str, ...], **which: Unpack[Filters]) -> int:
    """Cancel tasks, and all tasks that cannot run without them.

    Running tasks are told to end; tasks that have ended are left as they are.
    """
    filtered = any(which.values())
    if bool(ids) == filtered:
        raise click.UsageError("give either task ids or a filter such as --queue NAME")

    async def cancel(client: AsyncClient) -> list[Cancelled]:
        if ids:
            return await client.cancel(*ids)
        return await client.cancel_matching(count_max=COUNT_MAX, **which)

    def show(_: object) -> None:
        for answer in answers:
            so = "" if answer.changed else " already"
            say(f"{safe(answer.id)}{so} {coloured(answer.status)}")
        if filtered:
            more = (
                "; there may be more: run the command again"
                if len(answers) == COUNT_MAX
                else ""
            )
            note(f"{plural(len(answers), 'task')} cancelled{more}")

    answers = session.ask(cancel)
    told = [{"id": a.id, "status": a.status.value, "changed": a.changed} for a in answers]
    return session.answer({"cancelled": told}, show)


# ---- `resubmit`: what has ended once more, by id, or all that a filter finds ----

LISTED_MAX = 100_000  # that a filter finds
PER_CALL_MAX = 10_000


@session_command(
    "resubmit",
    "resubmit 0190a3f2-7c11-7b3e-8d52-5f3c9a7e1b20",
    "resubmit --queue imaging --status failed --dry-run",
    "resubmit --queue imaging --with-children",
)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@filter_options("All tasks")
@option(
    "--with-children",
    "Also resubmit tasks that were cancelled because they need one of these tasks.",
)
@option("--dry-run", "Say what would be submitted, and store nothing.")
def resubmit_command(
    session: Session,
    ids: tuple[str, ...],
    *,
    with_children: bool,
    dry_run: bool,
    **which: Unpack[Filters],
) -> int:
    """Submit ended tasks again, each as a new task with the same fields and needs.

    A filter without --status finds tasks that failed or were cancelled. Each task is submitted
    again only once: repeating the command changes nothing. To run it once more, resubmit the
    new task.
    """
    filtered = any(which.values())
    if bool(ids) == filtered:
        raise click.UsageError("give either task ids or a filter such as --queue NAME")

    async def resubmit(client: AsyncClient) -> list[Resubmitted]:
        wanted = list(ids) if ids else await _ended(client, which)
        found: list[Resubmitted] = []
        for start in range(0, len(wanted), PER_CALL_MAX):
            part = wanted[start : start + PER_CALL_MAX]
            found += await client.resubmit(*part, with_children=with_children, dry_run=dry_run)
        return found if ids else _without_jobs(found)

    answers = (session.ask_existing if dry_run else session.ask)(resubmit)
    session.answer(
        {"tasks": [document(one) for one in answers], "dry_run": dry_run},
        lambda _: _say_resubmitted(answers, dry_run=dry_run),
    )
    refused = [one for one in answers if one.refused]
    if not refused:
        return ExitCode.DONE
    return ExitCode.REFUSED if len(refused) == len(answers) else ExitCode.FAILED


def _without_jobs(answers: list[Resubmitted]) -> list[Resubmitted]:
    """Leaves out jobs of runs, which a filter finds as well."""
    left = [one for one in answers if one.refused != JOB_OF_RUN]
    if (count := len(answers) - len(left)) > 0:
        note(
            f"{plural(count, 'job')} of runs left out; to run these again: tidewheel "
            "trigger RUN POINT/NAME"
        )
    return left


async def _ended(client: AsyncClient, which: Filters) -> list[str]:
    """Returns the ids of the tasks that a filter finds, oldest first: what others need comes
    before them."""
    given: Filters = {**which, "status": which.get("status") or ("failed", "cancelled")}
    found: list[Task] = []
    while len(found) < LISTED_MAX:
        before = found[-1].seq if found else None
        page = await client.list(limit=PER_CALL_MAX, before=before, **given)
        found += page
        if len(page) < PER_CALL_MAX:
            break
    else:
        note(f"only the newest {LISTED_MAX} tasks were searched; narrow the filter")
    return [task.id for task in reversed(found)]


def _say_resubmitted(answers: Sequence[Resubmitted], *, dry_run: bool) -> None:
    for one in answers:
        if one.refused is not None:
            say(f"{safe(one.again_of)} refused: {safe(one.refused)}")
        elif one.created:
            name = f" ({safe(one.name)})" if one.name else ""
            waits = f", needs {safe(', '.join(one.needs))}" if one.needs else ""
            verb = "would be submitted" if dry_run else "submitted"
            say(f"{safe(one.again_of)} {verb} again as {safe(one.id)}{name}{waits}")
        else:
            say(f"{safe(one.again_of)} was already submitted again as {safe(one.id)}")
    made = sum(one.created for one in answers)
    so = "would be submitted" if dry_run else "submitted"
    note(f"{plural(made, 'task')} {so} again")
    if children := sum(len(one.children) for one in answers if one.refused is None):
        so, them = ("was cancelled because it needs", "it")
        if children > 1:
            so, them = ("were cancelled because they need", "them")
        note(
            f"{plural(children, 'task')} {so} one of these; add --with-children to submit "
            f"{them} and all tasks that need {them}, too"
        )


# ---- `export`: tasks into a file, one line of JSON each ----

PAGE = 500
STANDARD_OUTPUT = "-"


@session_command("export")
@click.argument("file", metavar="FILE|-")
@filter_options("Only tasks")
@option("--append", "Add the tasks to the end of an existing file.")
def export_command(
    session: Session, file: str, *, append: bool, **which: Unpack[Filters]
) -> int:
    """Write tasks to FILE with their history, attempts, outputs and usage, newest first."""
    if file == STANDARD_OUTPUT:
        session.ask_existing(lambda client: _export(client, None, which))
        return 0
    path = Path(file)
    if path.exists() and path.stat().st_size and not append:
        raise Refused(f"{file} exists already; choose a new file, or add to it: --append")
    if not path.absolute().parent.is_dir():
        raise Refused(
            f"there is no folder {path.absolute().parent}; create it, or choose another"
        )
    count = session.ask_existing(lambda client: _export(client, path, which))
    told = f"{plural(count, 'task')} written to {safe(path)}"
    return session.answer({"exported": count, "file": str(path)}, lambda _: say(told))


async def _export(client: AsyncClient, path: Path | None, which: Filters) -> int:
    from tidewheel.client.fields import task_filter
    from tidewheel.core.queue.requests import KeysetPage
    from tidewheel.services.monitor import append_lines, task_line

    count, before = 0, None
    while True:
        page = KeysetPage(count=PAGE, before=before)
        views = await client.store.list_tasks(task_filter(**which), page)
        lines = [await task_line(client.store, view) for view in views]
        if path is not None:
            append_lines(path, lines)
        else:
            sys.stdout.buffer.write(b"".join(lines))
        count += len(lines)
        if views.next is None:
            return count
        before = views.next
