"""Makes rows of the tree of a run: what is open, what is looked for, where the cursor is.

A tree is a value; each key that is pressed makes another. The cursor is kept as the name of a
row (`Row.key`), not as its number, so that it stays on that row while the run moves on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime
from functools import cache
from typing import Any, cast

from tidewheel.cli.output import safe
from tidewheel.cli.pages.format import Document, counts_text, documents, flows_text, texts, took
from tidewheel.core.queue.filters import Filter, read_filter
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.quantities import show_duration
from tidewheel.views.error_groups import BAD_ENDS
from tidewheel.views.status_text import REMARKS, STATES

OPEN_TASKS_MAX = 1_000  # a point with more of them is closed until it is opened
POINT, FAMILY, TASK = "point", "family", "task"
SUBMISSION, ATTEMPT = "submission", "attempt"
INCOMPLETE = "incomplete"
BAR_WIDTH = 8


class Row(NamedTuple):
    """Holds one line of the tree."""

    key: str  # unique, the same while the run goes on
    kind: str
    depth: int
    name: str
    ids: str  # what commands call it
    state: str = ""
    beside: str = ""
    parent: str = ""
    is_open: bool | None = None  # None: there is nothing below
    submit: int | None = None
    attempt: int | None = None
    # The tasks below that the filter lets through, if there is one, each with its state.
    shown: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    total: int = 1  # tasks that its id means, whether a filter shows them or not

    @property
    def task(self) -> str | None:
        """Returns the id of the task, if the row is a task, a submission or an attempt, else
        None."""
        return self.ids if self.kind in (TASK, SUBMISSION, ATTEMPT) else None


NOTHING: Document = {"run": "", "status": "", "left_out": 0, "points": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Holds a page of the view `tree`, with what the user has opened, marked and filtered."""

    page: Document = field(default_factory=lambda: NOTHING)
    now: float = 0.0  # when the page was read, by the clock of the store
    turned: frozenset[str] = frozenset()  # rows that are not open or closed as usual
    folded: frozenset[str] = (
        frozenset()
    )  # closed while this text is looked for, which opens all
    query: str = ""
    pool_only: bool = False
    cursor: str = ""
    top: int = 0
    marked: frozenset[str] = frozenset()
    # Rows and their places by key; None: to be made. Moving about makes none anew.
    made: tuple[tuple[Row, ...], dict[str, int]] | None = None

    def __post_init__(self) -> None:
        if self.made is None:
            rows = tuple(_rows(self))
            made = rows, {row.key: number for number, row in enumerate(rows)}
            object.__setattr__(self, "made", made)
            if rows and self.cursor not in made[1]:
                object.__setattr__(self, "cursor", self._nearest(rows))

    @property
    def rows(self) -> tuple[Row, ...]:
        assert self.made is not None
        return self.made[0]

    def changed(self, **fields: Any) -> Tree:  # noqa: ANN401 - those of this class
        """Returns the tree after a change of what is shown, so that its rows are made anew."""
        if fields.get("query", self.query) != self.query:
            fields["folded"] = frozenset()
        return replace(self, made=None, **fields)

    def _nearest(self, found: tuple[Row, ...]) -> str:
        """Returns the key for a cursor whose row is gone: of the nearest row around it, else
        the first."""
        keys = {row.key for row in found}
        wanted = self.cursor
        while "|" in wanted:
            wanted = wanted.rpartition("|")[0]
            if wanted in keys:
                return wanted
        return found[0].key

    @property
    def at(self) -> int:
        """Returns the number of the row under the cursor."""
        assert self.made is not None
        return self.made[1].get(self.cursor, 0)

    @property
    def row(self) -> Row | None:
        return self.rows[self.at] if self.rows else None

    @property
    def chosen(self) -> tuple[str, ...]:
        """Returns the ids for a command: what is marked, else what is under the cursor.

        With a filter, the tasks of these rows that it shows, one by one: the id of a point or a
        family would mean all of its tasks.
        """
        if not self.is_narrowed:
            return tuple(sorted(self.marked)) or (() if self.row is None else (self.row.ids,))
        found = [one for row in self._chosen_rows for one in row.shown or (row.ids,)]
        # Those in a branch that is closed have no row, and are marked all the same.
        found += [one for row in self.rows for one in row.shown if one in self.marked]
        return tuple(dict.fromkeys(found))

    @property
    def _chosen_rows(self) -> list[Row]:
        if self.marked:
            return [row for row in self.rows if row.ids in self.marked]
        return [] if self.row is None else [self.row]

    @property
    def chosen_of(self) -> int:
        """Returns how many tasks the rows for a command have, with those the filter hides."""
        rows = self._chosen_rows
        known = {row.key for row in rows}
        outer = [row for row in rows if not known.intersection(_around(row.key))]
        return max(sum(row.total for row in outer), len(self.chosen))

    @property
    def is_narrowed(self) -> bool:
        """Says whether a filter hides some tasks."""
        return bool(self.query or self.pool_only)

    @property
    def hidden(self) -> int:
        """Returns the number of marked rows that the filter does not show."""
        if not self.is_narrowed:
            return 0
        return len(self.marked - {one for row in self.rows for one in (row.ids, *row.shown)})

    def moved(self, by: int) -> Tree:
        if not self.rows:
            return self
        at = min(max(self.at + by, 0), len(self.rows) - 1)
        return replace(self, cursor=self.rows[at].key)

    def turned_at(self, row: Row) -> Tree:
        """Returns the tree with this row opened if it was closed, or closed if it was open."""
        if self.query and row.kind in (POINT, FAMILY):
            return self.changed(folded=self.folded ^ {row.key})
        return self.changed(turned=self.turned ^ {row.key})

    def is_open(self, key: str, *, usually: bool = True) -> bool:
        """Says whether a point or a family is open; what is looked for is, until it is
        closed."""
        return key not in self.folded if self.query else (key in self.turned) is not usually

    def opened(self) -> Tree:
        row = self.row
        if row is None or row.is_open is None:
            return self
        return self.moved(1) if row.is_open else self.turned_at(row)

    def closed(self) -> Tree:
        """Returns the tree with the row under the cursor closed, or if it is not open, with
        the cursor on its parent."""
        row = self.row
        if row is None:
            return self
        if row.is_open:
            return self.turned_at(row)
        return replace(self, cursor=row.parent) if row.parent else self

    def at_failure(self, step: int) -> Tree | None:
        """Returns the tree with the cursor on the next task that failed (1), or the one before
        (-1), as the filter shows them; after the last comes the first. None if there is none.

        The branches that it is in are opened.
        """
        keys = [*_known_keys(self)]
        failed = [number for number, (_, is_bad) in enumerate(keys) if is_bad]
        if not failed:
            return None
        places = {key: number for number, (key, _) in enumerate(keys)}
        around = (places[key] for key in (*_around(self.cursor), self.cursor) if key in places)
        here = max(around, default=-1)
        later = [number for number in failed if number > here]
        sooner = [number for number in failed if number < here]
        target = (later or failed)[0] if step > 0 else (sooner or failed)[-1]
        key, tree = keys[target][0], self
        for one in _around(key):
            row = next((row for row in tree.rows if row.key == one), None)
            if row is not None and not row.is_open:
                tree = tree.turned_at(row)
        return replace(tree, cursor=key)

    def marks(self) -> Tree:
        """Returns the tree with the mark of the row under the cursor set, or taken away.

        The cursor goes on to the next row.
        """
        row = self.row
        return self if row is None else replace(self, marked=self.marked ^ {row.ids}).moved(1)

    def scrolled(self, height: int) -> Tree:
        """Returns the tree scrolled so that the row under the cursor is among this many
        rows."""
        most = max(0, len(self.rows) - height)
        top = min(max(self.top, self.at - height + 1), self.at, most)
        return replace(self, top=max(0, top))


def _rows(tree: Tree) -> Iterator[Row]:
    if tree.page.get("stages"):  # they have no point to stand below
        for point in documents(tree.page, "points"):
            yield from _children(
                tree, documents(point, "children"), safe(point["point"]), 0, ""
            )
        return
    for point in documents(tree.page, "points"):
        text = safe(point["point"])
        counts = cast("Mapping[str, int]", point["counts"])
        is_open = tree.is_open(text, usually=sum(counts.values()) <= OPEN_TASKS_MAX)
        below: list[Row] = []
        if is_open or tree.is_narrowed:
            below = list(_children(tree, documents(point, "children"), text, 1, text))
        if below or not tree.is_narrowed:
            beside = f"{progress_bar(point)}{counts_text(point)}"
            row = Row(text, POINT, 0, text, f"{text}/*", beside=beside)
            yield _branch(tree, row, point, below)._replace(is_open=is_open)
        if is_open:
            yield from below


def progress_bar(facts: Document, of: str = "tasks") -> str:
    """Returns a bar of how many tasks are done, and a space; "" if an older server does not
    say, or nobody knows how many there will be."""
    total, done = cast("int | None", facts.get(of)), cast("int", facts.get("done", 0))
    if not total:
        return ""
    filled = BAR_WIDTH * min(done, total) // total  # full only if all are
    return f"{'█' * filled}{'░' * (BAR_WIDTH - filled)} {done}/{total} done  "


def _children(tree: Tree, found: object, point: str, depth: int, parent: str) -> Iterator[Row]:
    for one in cast("list[Document]", found):
        name = safe(one["name"])
        key = _key(one, parent)
        if one["family"]:
            below = list(_children(tree, one["children"], point, depth + 1, key))
            if below:
                is_open = tree.is_open(key)
                ids = name if tree.page.get("stages") else f"{point}/{name}"
                row = Row(key, FAMILY, depth, name, ids, parent=parent)
                yield _branch(tree, row, one, below)._replace(is_open=is_open)
                if is_open:
                    yield from below
        elif _is_wanted(tree, one, parent):
            yield from _task(tree, one, key, depth, parent)


def _branch(tree: Tree, row: Row, one: Document, below: list[Row]) -> Row:
    """Returns the row of a point or a family; with a filter it has the tasks that this shows,
    and says how many of all they are. A closed family has its own tasks in its row."""
    if not tree.is_narrowed:
        return row
    tasks: dict[str, str] = {}
    for below_it in below:
        own = ((below_it.ids, below_it.state),) if below_it.kind == TASK else ()
        tasks.update(own or zip(below_it.shown, below_it.states, strict=True))
    total, states = task_count(one), tuple(tasks.values())
    beside = row.beside if len(tasks) == total else shown_text(states, total)
    return row._replace(shown=tuple(tasks), states=states, total=total, beside=beside)


def shown_text(states: Iterable[str], total: int) -> str:
    """Returns how many tasks a filter shows of how many, and in which states those are."""
    counts = Counter(states)
    told = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    return f"{counts.total()} of {total} shown: {told}" if told else f"0 of {total} shown"


def task_count(one: Document) -> int:
    """Returns the number of tasks in a branch of the page."""
    return sum(
        task_count(child) if child["family"] else 1 for child in documents(one, "children")
    )


def _around(key: str) -> Iterator[str]:
    """Yields the keys of the rows around a row, from the outermost."""
    for at, letter in enumerate(key):
        if letter == "|":
            yield key[:at]


def _known_keys(tree: Tree) -> Iterator[tuple[str, bool]]:
    """Yields the keys of all points, families and tasks that the filter lets through, open or
    not, in their order, each with whether it is a task that failed."""
    for point in documents(tree.page, "points"):
        parent = "" if tree.page.get("stages") else safe(point["point"])
        if parent:
            yield parent, False
        yield from _known_below(tree, point, parent)


def _known_below(tree: Tree, branch: Document, parent: str) -> Iterator[tuple[str, bool]]:
    for one in documents(branch, "children"):
        key = _key(one, parent)
        if one["family"]:
            yield key, False
            yield from _known_below(tree, one, key)
        elif _is_wanted(tree, one, parent):
            is_bad = one["state"] in BAD_ENDS or INCOMPLETE in texts(one, "remarks")
            yield key, is_bad


def _key(one: Document, parent: str) -> str:
    name = safe(one["name"])
    return f"{parent}|{name}" if parent else name


def _task(tree: Tree, one: Document, key: str, depth: int, parent: str) -> Iterator[Row]:
    submissions = documents(one, "submissions")
    is_open = key in tree.turned
    flows = flows_text(one)
    remarks = [_length(submissions[-1], tree.now)] if submissions else []
    remarks += texts(one, "remarks")
    is_of_stages = tree.page.get("stages")
    remarks += [f"flow {flows}"] if flows not in ("1", "none") and not is_of_stages else []
    remarks += [f"{len(submissions)} submissions"] if len(submissions) > 1 else []
    name, ids = safe(one.get("shown") or one["name"]), safe(one["id"])
    if is_of_stages:
        ids = safe(one["name"])
    row = Row(key, TASK, depth, name, ids, str(one["state"]))
    beside = safe(", ".join(filter(None, remarks)))
    yield row._replace(beside=beside, parent=parent, is_open=is_open if submissions else None)
    if is_open:
        for submission in submissions:
            yield from _submission(tree, submission, key, depth + 1, ids)


def _submission(tree: Tree, one: Document, parent: str, depth: int, ids: str) -> Iterator[Row]:
    submit, attempts = cast("int", one["submit"]), documents(one, "attempts")
    several = f"{len(attempts)} attempts" if attempts else ""
    key = f"{parent}|#{submit}"
    is_open = key in tree.turned if attempts else None
    row = Row(key, SUBMISSION, depth, f"{submit:02d}", ids, str(one["status"]))
    beside = ", ".join(filter(None, (*_how_it_went(one), several)))
    yield row._replace(beside=beside, parent=parent, is_open=is_open, submit=submit)
    for attempt in attempts if is_open else ():
        number, ended_by = cast("int", attempt["attempt"]), attempt["ended_by"]
        words = ("running" if ended_by is None else str(ended_by), *_how_it_went(attempt))
        row = Row(f"{key}|{number}", ATTEMPT, depth + 1, f"attempt {number}", ids)
        beside = safe(", ".join(filter(None, (*words, str(attempt["worker"] or "")))))
        yield row._replace(beside=beside, parent=key, submit=submit, attempt=number)


def _length(one: Document, now: float) -> str:
    """Returns how long the job of a submission took, or for how long it has run; "" if it did
    not start."""
    if one["started_at"] is None or one["ended_at"] is not None:
        return took(one)
    began = datetime.fromisoformat(str(one["started_at"])).timestamp()
    return f"for {show_duration(max(1, round(now - began)))}"


def _how_it_went(one: Document) -> tuple[str, str]:
    status = one["exit_status"]
    return took(one), "" if status is None else f"exit {status}"


@cache
def sought(query: str) -> Filter | str:
    """Returns the filter that was typed, or what is wrong with it."""
    try:
        return read_filter(query, (*STATES, *REMARKS))
    except BadSetting as wrong:
        return f"{wrong.name} {wrong.value!r}: expected {wrong.accepted}"


def _is_wanted(tree: Tree, task: Document, parent: str) -> bool:
    """Says whether the filter lets a task through: by its name or those of its families, with
    a slash by POINT/NAME, and by its state and remarks. One that is wrong lets none through."""
    if tree.pool_only and task["distance"] != 0:
        return False
    if not tree.query:
        return True
    which = sought(tree.query)
    if isinstance(which, str):
        return False
    point, *families = parent.split("|")
    if tree.page.get("stages"):
        families = [point, *families] if parent else []
    names = [safe(task.get("shown") or task["name"]), *families]
    if "/" in tree.query:
        names = [str(task["id"]), *(f"{point}/{one}" for one in families)]
    return which.fits(names, (str(task["state"]), *texts(task, "remarks")))
