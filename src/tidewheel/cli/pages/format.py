"""Formats words and times of runs as pages show them, with shapes and colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import click

from tidewheel.cli.output import (
    ColumnsOf,
    Item,
    StyledWord,
    on_terminal,
    safe,
    say,
    say_columns,
)
from tidewheel.cli.palette import RUN_STATUSES, TASK_STATES
from tidewheel.quantities import show_duration

if TYPE_CHECKING:
    from tidewheel.core.sched.pool import TaskPool

Document = Mapping[str, object]

Columns = ColumnsOf[Document]

SHOWN_MAX = 20  # of a list on a page for people
LABEL_WIDTH = 14
BAR_WIDTH = 20


def documents(page: Document, name: str) -> Sequence[Document]:
    """Returns the list of documents that a document has under this name."""
    return cast("Sequence[Document]", page[name])


def texts(page: Document, name: str) -> Sequence[str]:
    return cast("Sequence[str]", page[name])


def status_cell(status: object) -> StyledWord:
    """Returns the status of a run or a block with the look that the palette has for it."""
    return StyledWord(str(status), RUN_STATUSES.get(str(status)))


def run_cell(run: Document) -> StyledWord:
    """Returns the status of a run, with what was not done of it: `completed, 2 lost`."""
    status, counts = str(run["status"]), cast("Mapping[str, int]", run.get("undone", {}))
    undone = [f"{count} {kind}" for kind, count in counts.items() if count]
    return status_cell(status)._replace(word=", ".join([status, *undone]))


def state_cell(page: Document) -> StyledWord:
    """Returns the state of a task, with the remarks on it in parentheses."""
    state, remarks = str(page["state"]), texts(page, "remarks")
    word = f"{state} ({', '.join(remarks)})" if remarks else state
    return StyledWord(word, TASK_STATES.get(state))


def flows_text(page: Document) -> str:
    """Returns the numbers of the flows that a task belongs to, or `none`; "" for a stage."""
    if "flows" not in page:
        return ""
    flows = cast("Sequence[int]", page["flows"])
    return ",".join(map(str, flows)) or "none"


# Where documents have ids of tasks, alone or in a list.
_IDS = frozenset(
    {"id", "held", "children", "after", "comes_back", "killed", "polled", "submitted"}
    | {"forgotten", "waits_for", "stop_after", "ids"}
)


def shown_page(page: Document) -> Document:
    """Returns a view of a run as people read it.

    In a run of stages these are known by their names: nobody has written a point, nor asked for
    flows.
    """
    return cast("Document", _shown(page, "")) if page.get("stages") else page


def stage_id(text: str) -> str:
    """Returns the id of a task of a run of stages as people read it: without the point."""
    return text.partition("/")[2] or text


def _shown(value: object, key: str) -> object:
    if isinstance(value, Mapping):
        found = {one: _shown(inner, one) for one, inner in value.items() if one != "flows"}
        if "shown" in value:
            found |= {"name": value["shown"], "id": value["shown"]}
        return found
    if isinstance(value, list | tuple):
        return [_shown(one, key) for one in value]
    return stage_id(value) if key in _IDS and isinstance(value, str) else value


def moment(page: Document, name: str) -> str:
    """Returns a time as date and time of day, in UTC to the second; empty if there is none."""
    text = page[name]
    return "" if text is None else str(text).partition(".")[0].rstrip("Z").replace("T", " ")


def at(name: str) -> Callable[[Document], str]:
    """Returns a function for a column of a table, which shows the time of this name."""
    return lambda page: moment(page, name)


def took(page: Document) -> str:
    """Returns how long a job ran; "" if it has not ended."""
    began, ended = page["started_at"], page["ended_at"]
    if began is None or ended is None:
        return ""
    length = datetime.fromisoformat(str(ended)) - datetime.fromisoformat(str(began))
    return show_duration(length.total_seconds())


def bar(done: int, total: int) -> str:
    filled = 0 if not total else round(BAR_WIDTH * done / total)
    if not on_terminal():
        return "#" * filled + "." * (BAR_WIDTH - filled)
    return "█" * filled + "░" * (BAR_WIDTH - filled)


def counts_text(page: Document) -> str:
    """Returns how many tasks are in each state, such as `2 running, 3 succeeded`."""
    found = cast("Mapping[str, int]", page["counts"])
    return ", ".join(f"{number} {state}" for state, number in found.items())


def say_some(title: str, found: Sequence[Item], columns: ColumnsOf[Item]) -> None:
    """Prints a section with a table of what was found; nothing if that is empty."""
    if found:
        section(title)
        say_columns(found, columns, indent=2)


def section(title: str) -> None:
    say()
    say(click.style(title, bold=True) if on_terminal() else title)


def say_lines(title: str, lines: Iterable[str]) -> None:
    """Prints a section, or nothing at all if it has no lines."""
    for number, line in enumerate(lines):
        if not number:
            section(title)
        say(line)


def more_text(count: int, shown_max: int = SHOWN_MAX) -> str:
    """Returns how many more a list has than are shown, as a line; "" if all are shown."""
    return f"and {count - shown_max} more: --json shows all" if count > shown_max else ""


def say_more(count: int) -> None:
    """Prints how many more a list has than are shown; nothing if all are shown."""
    if text := more_text(count):
        say(f"  {text}")


def fact(label: str, text: object) -> None:
    """Prints a fact with its label on one line, or nothing if there is no such fact."""
    if text not in (None, "", []):
        say(f"  {label:{LABEL_WIDTH}}{safe(text)}")


LEFT_NAMED_MAX = 20


def left_running(run: str, pool: TaskPool | None, status: str) -> Iterator[str]:
    """Yields which jobs of a run that is driven here no more still run, and how to end them."""
    if pool is None or status not in ("stopped", "left"):
        return
    names = [pool.plan.name_of(key) for key, task in pool.tasks.items() if task.has_job]
    if not names:
        return
    rest = len(names) - LEFT_NAMED_MAX
    which = ", ".join(names[:LEFT_NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
    runs, what = ("runs and is", "it") if len(names) == 1 else ("run and are", "them")
    yield f"{which} still {runs} found again when the run is resumed"
    if status == "stopped":
        yield f"to end {what} instead: tidewheel stop {run} --kill --run"


# ---- what two definitions differ in ----

_SIGNS = {"same": " ", "added": "+", "removed": "-"}
RENDERED = "(as the run reads it)"  # what has no path: the text after its templates


def diff_lines(files: Iterable[Mapping[str, Any]], old: str, new: str) -> Iterator[str]:
    """Yields in which lines the files of two versions differ, as `diff -u` has them."""
    for file in files:
        path = safe(file["path"] or RENDERED)
        yield f"--- {safe(old)}/{path}"
        yield f"+++ {safe(new)}/{path}"
        if file["hunks"] is None:
            yield f"{path} is {file['change']}; it is not text, or too long to be compared"
        for hunk in file["hunks"] or ():
            first = {
                side: next((line[side] for line in hunk if line[side] is not None), 0)
                for side in ("old", "new")
            }
            yield f"@@ -{first['old']} +{first['new']} @@"
            for line in hunk:
                yield f"{_SIGNS[line['kind']]}{safe(line['text'])}"
