"""Says what an operator looks for first: which run needs action, how far each is, and why one
is stalled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import cast

from tidewheel.cli.output import plural, safe
from tidewheel.cli.pages.format import Document, documents
from tidewheel.cli.pages.run import GOES_ON
from tidewheel.cli.palette import RUN_STATUSES
from tidewheel.cli.tui.spans import DIM, Line, StyledText, line, shaped
from tidewheel.quantities import show_duration

Summaries = Mapping[str, Document]  # by the name of the run

RUNS_MAX = 1_000  # in a list
NEED_ACTION = ("stalled", "error")
NAME_WIDTH_MAX = 40


def cause_text(summary: Document, now: float) -> str:
    """Returns for how long a run has been stalled, when its stall timer stops it, and the
    first cause, from the view `summary`; "" if the run is not stalled."""
    stall = cast("Document | None", summary["stall"])
    if stall is None:
        return ""
    left = 0.0 if stall["until"] is None else -_seconds_since(stall["until"], now)
    stops = f", stops in {show_duration(left)}" if left > 0 else ""
    head = f"stalled for {_age(stall['since'], now)}{stops}"
    first, *others = _causes(summary) or [""]
    more = f"; and {plural(len(others), 'more cause')} (w)" if others else ""
    return f"{head}: {first}{more}" if first else head


def _causes(summary: Document) -> list[str]:
    from tidewheel.cli.pages.stall_causes import other_causes

    found = [safe(one["text"]) for one in documents(summary, "groups")]
    for cause in other_causes(summary):
        found += [safe(one["text"]) for one in documents(cause, "reasons")[:1]]
    return found


def all_causes(page: Document) -> tuple[Line, ...]:
    """Returns the lines on what keeps a run back, with the commands that help, from the view
    `show`."""
    from tidewheel.cli.pages.stall_causes import cause_lines

    found = [safe(one) for one in cause_lines(page)]
    return tuple(map(line, found or ["no task needs action"]))


def by_need(page: Document) -> list[Document]:
    """Returns the runs of the view `runs`: first those that need action, then those that go
    on, then the others; the newest first among these."""
    return sorted(documents(page, "runs"), key=_need)


def _need(run: Document) -> int:
    if run["status"] in NEED_ACTION:
        return 0
    if run["status"] not in GOES_ON:
        return 3
    return 2 if run["driven"] else 1


def to_look_into(runs: list[Document], runs_max: int) -> Iterator[str]:
    """Yields the names of the first runs that are not over, whose progress is of interest."""
    found = (one for one in runs if one["status"] in (*NEED_ACTION, *GOES_ON))
    for _, one in zip(range(runs_max), found, strict=False):
        yield cast("str", one["name"])


def run_lines(runs: list[Document], summaries: Summaries, now: float) -> tuple[Line, ...]:
    """Returns a line for each run: its status, how far it is, and for how long so."""
    known = [summaries.get(str(one["name"])) for one in runs]
    names, done = [safe(one["name"]) for one in runs], [*map(_progress, known)]
    name_width = min(_widest(names), NAME_WIDTH_MAX)
    status_width = _widest([str(one["status"]) for one in runs])
    done_width = _widest(done)
    found: list[Line] = []
    for run, summary, name, progress in zip(runs, known, names, done, strict=True):
        status = str(run["status"])
        spans = (
            StyledText(f"{name:{name_width}}  "),
            shaped(f"{status:{status_width}}", RUN_STATUSES.get(status)),
            StyledText(f"  {progress:{done_width}}"),
            StyledText(f"  {_remark(run, summary, now)}", DIM),
        )
        found.append(spans)
    return tuple(found)


def _widest(texts: list[str]) -> int:
    return max(map(len, texts), default=0)


def _remark(run: Document, summary: Document | None, now: float) -> str:
    driven = "" if run["driven"] or run["status"] == "completed" else "no scheduler, "
    stall = None if summary is None else cast("Document | None", summary["stall"])
    if stall is None:
        return f"{driven}changed {_age(run['updated_at'], now)} ago"
    return f"{driven}stalled for {_age(stall['since'], now)}"


def _progress(summary: Document | None) -> str:
    """Returns how many tasks are done, and of how many; `+`: the run has no end."""
    if summary is None:
        return ""
    if summary["total"] is None:
        return f"{summary['done']}/{summary['tasks']}+ done"
    return f"{summary['done']}/{summary['total']} done"


def _age(text: object, now: float) -> str:
    return show_duration(max(0, round(_seconds_since(text, now))) or 1)


def _seconds_since(text: object, now: float) -> float:
    return now - datetime.fromisoformat(str(text)).timestamp()
