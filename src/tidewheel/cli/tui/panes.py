"""Writes panes, causes and the list of runs as lines; holds the state of the screen."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from datetime import datetime
from statistics import median_low
from typing import cast

from tidewheel.cli.output import plural, safe
from tidewheel.cli.pages.format import (
    SHOWN_MAX,
    Document,
    documents,
    flows_text,
    moment,
    run_cell,
    texts,
    took,
)
from tidewheel.cli.pages.run import GOES_ON, Title, preview_lines, reason_lines
from tidewheel.cli.pages.task import (
    PREREQUISITES,
    XTRIGGERS,
    prerequisite_lines,
    reasons_shown,
    xtrigger_lines,
)
from tidewheel.cli.palette import RUN_STATUSES, TASK_STATES
from tidewheel.cli.tui.spans import BOLD, DIM, Line, StyledText, fold, line, shaped
from tidewheel.cli.tui.tree import Tree, progress_bar
from tidewheel.cli.verbs import ROWS, Verb
from tidewheel.core.operator.verbs import VERBS
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.quantities import show_duration

TASK, LOG, QUESTION, ANSWER, KEYS = "task", "log", "question", "answer", "keys"
LOG_LINES_MAX = 5_000


def takes_ids(verb: Verb) -> bool:
    """Says whether a verb is about tasks, which are named, not about the whole run."""
    return any(field.name == "ids" for field in fields(VERBS[verb.name]))


def _verb_lines() -> Iterator[tuple[str, str]]:
    """Yields help for the verbs that have a key: three about tasks per line, then those of
    the run."""
    rows = [verb for verb in ROWS if verb.key]
    of_tasks, of_run = filter(takes_ids, rows), itertools.filterfalse(takes_ids, rows)
    while some := list(itertools.islice(of_tasks, 3)):
        names = ", ".join(verb.key_word or verb.name for verb in some)
        yield "  ".join(verb.key for verb in some), names
    *others, last = of_run
    names = ", ".join(verb.name for verb in others)
    yield "  ".join(verb.key for verb in (*others, last)), f"{names} and {last.name} the run"


KEYS_WIDTH = 20  # so that every line of it fits 80 columns
HELP = (
    ("Move", ""),
    ("j k  PgUp PgDn  g G", "move; or up, down, Home and End"),
    ("right left, l h", "open and close; left again goes to the parent"),
    ("enter", "the task: why, prerequisites, outputs, submissions"),
    ("esc", "back"),
    ("n  N", "the next failed task, the previous one"),
    ("Look", ""),
    ("/", "filter: model, 3/mod*, :fail, model:held, =a"),
    ("tab", "the pool alone, or also past tasks"),
    ("a", "all points, or the newest ten"),
    ("o  e  J", "what the job writes: out, err, its script; f follows"),
    ("w", "why the run does not continue, with the commands that help"),
    ("L", "the log of the run"),
    ("b", "other runs"),
    ("Act on the marked tasks, or on the task under the cursor", ""),
    ("space", "mark or unmark"),
    *_verb_lines(),
    ("", "each asks first; all but P and U show what they would do"),
    ("q", "quit; the run continues"),
)


CHOICE_HELP = (
    ("In the list of runs", ""),
    ("j k  PgUp PgDn  g G", "move; or up, down, Home and End"),
    ("enter", "the run under the cursor"),
    ("esc  b", "back to the run that was open"),
    ("q", "quit; runs continue"),
    ("In a run", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """Holds the lines about one subject; with `follows` it shows their end as they grow."""

    kind: str
    subject: str
    lines: tuple[Line, ...] = ()
    top: int = 0
    follows: bool = False

    @property
    def title(self) -> str:
        return f"{self.kind} {self.subject}" if self.kind == TASK else self.subject

    def is_about(self, other: Pane) -> bool:
        return (self.kind, self.subject) == (other.kind, other.subject)

    def moved(self, by: int, size: tuple[int, int]) -> Pane:
        """Returns the pane scrolled up or down, if it is shown with this width and height."""
        most = max(0, len(self.folded(size[0])) - size[1])
        top = min(max(self.shown_from(size) + by, 0), most)
        return replace(self, top=top, follows=self.follows and top == most)

    def shown_from(self, size: tuple[int, int]) -> int:
        most = max(0, len(self.folded(size[0])) - size[1])
        return most if self.follows else min(self.top, most)

    def folded(self, width: int) -> list[Line]:
        """Returns the lines for this width; one that is too long becomes several."""
        return [part for one in self.lines for part in fold(one, width)]

    def longer(self, more: Iterable[Line]) -> Pane:
        """Returns the pane of a log with more lines; a very long log loses its first ones."""
        return replace(self, lines=(*self.lines, *more)[-LOG_LINES_MAX:])


def help_pane(first: tuple[tuple[str, str], ...] = ()) -> Pane:
    """Returns all keys and states, after those keys that are only for what is shown."""
    lines = [
        line(left, BOLD)
        if not right
        else (StyledText(f"  {left:{KEYS_WIDTH}}"), StyledText(right))
        for left, right in (*first, *HELP)
    ]
    lines += [(), line("States", BOLD)]
    lines += [
        (StyledText("  "), StyledText(f"{look.shape} {state}", look.colour))
        for state, look in TASK_STATES.items()
    ]
    return Pane(kind=KEYS, subject="help", lines=tuple(lines))


def task_lines(page: Document) -> Iterator[Line]:
    """Yields the lines of one task of the view `show`."""
    state = str(page["state"])
    remarks = texts(page, "remarks")
    yield (
        StyledText(f"{safe(page['id'])}  ", BOLD),
        shaped(state, TASK_STATES.get(state)),
        StyledText(f" ({', '.join(remarks)})" if remarks else ""),
    )
    if page["title"]:
        yield line(safe(page["title"]))
    flows = flows_text(page)
    in_flow = f"flow {flows}; " if flows else ""
    yield line(f"{in_flow}complete if {safe(page['completion'])}", DIM)
    yield from _section("why it does not run", reason_lines(reasons_shown(page)))
    yield from _section(PREREQUISITES, prerequisite_lines(page))
    yield from _section(XTRIGGERS, xtrigger_lines(page))
    yield from _section("outputs (+ made, - not made)", _output_lines(page))
    yield from _section("submissions and attempts", _submission_lines(page))
    children = texts(page, "children")[:SHOWN_MAX]
    yield from _section("children", [f"  {safe(one)}" for one in children])


def _section(title: str, lines: Iterable[str]) -> Iterator[Line]:
    found = list(lines)
    if found:
        yield ()
        yield line(title, BOLD)
        yield from map(line, found)


def _output_lines(page: Document) -> Iterator[str]:
    for one in documents(page, "outputs"):
        at, by = moment(one, "at"), str(one["by"] or "")
        when = f"  {at}" if at else ""
        who = f"  by {safe(by)}" if by and one["made"] else ""
        needed = "  required" if one["required"] and not one["made"] else ""
        yield f"  {'+' if one['made'] else '-'} {safe(one['output'])}{when}{who}{needed}"


def _submission_lines(page: Document) -> Iterator[str]:
    for one in documents(page, "submissions")[-SHOWN_MAX:]:
        words = [f"{one['submit']:02d}", str(one["status"]), moment(one, "submitted_at")]
        yield "  " + safe("  ".join(filter(None, words)))
        for attempt in documents(one, "attempts"):
            status = attempt["exit_status"]
            words = [f"attempt {attempt['attempt']}", str(attempt["ended_by"] or "running")]
            words += [took(attempt), "" if status is None else f"exit {status}"]
            words += [str(attempt["worker"] or ""), str(attempt["error"] or "")]
            yield f"      {safe('  '.join(filter(None, words)))}"


def would_do_lines(page: Document) -> Iterator[Line]:
    """Yields the lines of the view `dry-run`: what a command would do."""
    for one in preview_lines(page):
        if isinstance(one, Title):
            yield ()
            yield line(one.text, BOLD)
        else:
            yield line(one)


# ---- what an operator looks for first: which run needs action, how far it is, and why ----

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
    more = f"; and {plural(len(others), 'more cause')} (press w)" if others else ""
    return f"{head}: {first}{more}" if first else head


def _causes(summary: Document) -> list[str]:
    from tidewheel.cli.pages.format import other_causes

    found = [safe(one["text"]) for one in documents(summary, "groups")]
    for cause in other_causes(summary):
        found += [safe(one["text"]) for one in documents(cause, "reasons")[:1]]
    return found


def all_causes(page: Document) -> tuple[Line, ...]:
    """Returns the lines on what keeps a run back, with the commands that help, from the view
    `show`."""
    from tidewheel.cli.pages.format import cause_lines

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
    done_width, usual = _widest(done), usual_seconds(runs)
    found: list[Line] = []
    for run, summary, name, progress in zip(runs, known, names, done, strict=True):
        status = str(run["status"])
        spans = (
            StyledText(f"{name:{name_width}}  "),
            shaped(f"{status:{status_width}}", RUN_STATUSES.get(status)),
            StyledText(f"  {progress:{done_width}}"),
            StyledText(f"  {left_text(run, usual, now, ', ')}", DIM),
            StyledText(_remark(run, summary, now), DIM),
        )
        found.append(spans)
    return tuple(found)


def _widest(texts: list[str]) -> int:
    return max(map(len, texts), default=0)


def _remark(run: Document, summary: Document | None, now: float) -> str:
    driven = "" if run["driven"] or run["status"] == "completed" else "no scheduler, "
    if more := run_cell(run).word.removeprefix(str(run["status"])).removeprefix(",").strip():
        driven = f"{more}, {driven}"
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
    return progress_bar(summary, "total").rstrip() or f"{summary['done']}/0 done"


PAST_MAX = 20


def usual_seconds(runs: Iterable[Document]) -> dict[str, float]:
    """Returns how long the latest complete runs of each workflow took, the median, as the page
    has it (`runOrder.ts`)."""
    past: dict[str, list[float]] = {}
    for run in sorted(runs, key=lambda one: cast("int", one["number"]), reverse=True):
        if run["status"] == "completed" and run["ended_at"] is not None:
            known = past.setdefault(str(run["workflow"]), [])
            known.append(_moment(run["ended_at"]) - _moment(run["created_at"]))
    return {name: median_low(known[:PAST_MAX]) for name, known in past.items()}


def left_text(run: Document, usual: Mapping[str, float], now: float, end: str = "") -> str:
    """Returns how much of that is left, and the end; "" where it took longer already, or where
    nothing goes on."""
    seconds = usual.get(str(run["workflow"]))
    if seconds is None or run["status"] != "running" or not run["driven"]:
        return ""
    left = seconds - (now - _moment(run["created_at"]))
    return f"about {show_duration(max(1, round(left)))} left{end}" if left > 0 else ""


def _age(text: object, now: float) -> str:
    return show_duration(max(0, round(_seconds_since(text, now))) or 1)


def _seconds_since(text: object, now: float) -> float:
    return now - _moment(text)


def _moment(text: object) -> float:
    return datetime.fromisoformat(str(text)).timestamp()


# ---- the state of the screen as one value; keys and news make another of it ----

TREE_SHARE = 0.45  # of the width, where a pane is beside it
BETWEEN = " │ "
BESIDE_WIDTH_MIN = 110  # of a terminal in which a pane is beside the tree
BAD = RUN_STATUSES["stalled"].colour
CAUSE_LINES_MAX = 2
CAUSE_HEIGHT_MIN = 12  # of a terminal that has room for a cause


class Question(NamedTuple):
    """Holds a command to be confirmed: the verb, the ids it is for, and the keys that
    confirm it."""

    verb: str
    ids: tuple[str, ...]
    answers: tuple[tuple[str, str], ...]  # (key, mode), as (("y", ""),)
    filter: str = ""  # that chose the ids among others, as it is shown
    of: int = 0  # tasks that there would be without the filter
    hidden: int = 0  # marked tasks that are left alone, because the filter hides them


class Choice(NamedTuple):
    """Holds the runs to choose from; `at` is the number of the one under the cursor, and
    `help` covers the list."""

    names: tuple[str, ...]
    lines: tuple[Line, ...]
    at: int = 0
    help: Pane | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Holds everything that the screen shows, and what the next key acts on."""

    run: str = ""
    tree: Tree = field(default_factory=Tree)
    everything: bool = False  # all points, not only the newest
    pane: Pane | None = None
    question: Question | None = None
    choice: Choice | None = None
    typed: str | None = None  # of what is looked for, while it is typed
    cause: str = ""  # why the run is stalled
    left: str = ""  # how long it may still take
    said: str = ""  # what became of the last command
    trouble: str = ""  # why what is seen may be old
    is_busy: bool = False
    size: tuple[int, int] = (80, 24)

    @property
    def height(self) -> int:
        """Returns the number of lines between head and foot."""
        return self.size[1] - 3 - len(self.cause_lines)

    @property
    def cause_lines(self) -> list[Line]:
        """Returns why the run is stalled, for the head; nothing where a run is chosen."""
        if not self.cause or self.choice is not None or self.size[1] < CAUSE_HEIGHT_MIN:
            return []
        lines = fold(line(self.cause, BAD), self.size[0])
        if len(lines) > CAUSE_LINES_MAX:
            lines[CAUSE_LINES_MAX - 1] += line(" …", BAD)
        return lines[:CAUSE_LINES_MAX]

    @property
    def pane_size(self) -> tuple[int, int]:
        """Returns the width and height of a pane, below its title."""
        width = self.size[0]
        beside = width - int(width * TREE_SHARE) - len(BETWEEN)
        return (beside if self.is_wide else width), self.height - 1

    @property
    def task(self) -> str | None:
        """Returns the id of the task whose pane is open; None if none is."""
        pane = self.pane
        return pane.subject if pane is not None and pane.kind == TASK else None

    @property
    def is_wide(self) -> bool:
        return self.size[0] >= BESIDE_WIDTH_MIN
