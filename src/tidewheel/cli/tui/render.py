"""Renders the state as lines: a head, the tree and what is beside it, a foot."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import cast

from tidewheel.cli.output import plural, safe
from tidewheel.cli.pages.format import documents, run_cell
from tidewheel.cli.palette import PALETTE, TASK_STATES
from tidewheel.cli.tui.panes import BETWEEN, Pane, Question, State
from tidewheel.cli.tui.spans import (
    BOLD,
    DIM,
    REVERSE,
    Line,
    StyledText,
    cut,
    line,
    restyled,
    shaped,
)
from tidewheel.cli.tui.tree import POINT, SUBMISSION, Row, Tree, shown_text, sought, task_count
from tidewheel.core.queue.status import Status

HINTS = "enter task  o log  / find  n next failure  t trigger  H hold  ? help  q quit"
READING = "up down  f follow  esc back  ? help  q quit"
CHOOSING = "enter choose  esc back  ? help  q quit"
CHOICE_READING = "up down  esc back  q quit"


def painted(state: State) -> tuple[State, list[Line]]:
    """Returns the state with its tree scrolled to the cursor, and all lines of the screen."""
    width, height = state.size[0], state.height
    state = replace(state, tree=state.tree.scrolled(height))
    lines = [cut(one, width) for one in (_head(state), *state.cause_lines)]
    lines.append(cut(line("─" * width, DIM), width))
    lines += _middle(state, width, height)
    lines.append(cut(_foot(state), width))
    return state, lines


def _head(state: State) -> Line:
    status = run_cell(state.tree.page)
    counts: Counter[str] = Counter()
    for point in documents(state.tree.page, "points"):
        counts.update(cast("dict[str, int]", point["counts"]))
    told = ", ".join(f"{number} {word}" for word, number in counts.items())
    tree = state.tree
    if tree.is_narrowed:
        outer = [row for row in tree.rows if row.depth == 0]
        states = [one for row in outer for one in (row.states or (row.state,))]
        total = sum(map(task_count, documents(tree.page, "points")))
        told = shown_text(filter(None, states), total)
    remarks = [
        "pool" if tree.pool_only else "",
        f"/{safe(tree.query)}" if tree.query else "",
        f"{len(tree.marked)} marked" if tree.marked else "",
        "…" if state.is_busy else "",
    ]
    beside = "  ".join(f"[{one}]" for one in remarks if one)
    return (
        StyledText(f"{safe(state.run) or 'tidewheel'}  ", BOLD),
        shaped(status.word, status.look),
        StyledText(f"  {beside}" if beside else ""),
        StyledText(f"  {state.left}" if state.left else "", DIM),
        StyledText(f"  {told}", DIM),
    )


def _middle(state: State, width: int, height: int) -> list[Line]:
    if state.choice is not None:
        return _choice(state, width, height)
    if state.pane is None:
        return _tree(state.tree, width, height)
    beside = _pane(state.pane, state.pane_size)
    if not state.is_wide:
        return beside
    left = width - state.pane_size[0] - len(BETWEEN)
    both = zip(_tree(state.tree, left, height), beside, strict=True)
    return [(*one, StyledText(BETWEEN, DIM), *other) for one, other in both]


def _tree(tree: Tree, width: int, height: int) -> list[Line]:
    lines = []
    for row in tree.rows[tree.top : tree.top + height]:
        one = cut(_row(row, is_marked=row.ids in tree.marked), width)
        lines.append(restyled(one, REVERSE) if row.key == tree.cursor else one)
    if not tree.rows:
        text = "there is nothing to show yet"
        if tree.query and isinstance(wrong := sought(tree.query), str):
            text = f"{safe(wrong)}; esc clears the filter"
        elif tree.query:
            text = f"no task matches {safe(tree.query)!r}; esc clears the filter"
        lines.append(cut(line(f"  {text}", DIM), width))
    return _filled(lines, width, height)


def _row(row: Row, *, is_marked: bool) -> Line:
    sign = {True: "▾", False: "▸", None: " "}[row.is_open]
    head = f"{'*' if is_marked else ' '}{'  ' * row.depth}{sign} "
    look = TASK_STATES.get(row.state)
    if row.kind == SUBMISSION:
        look = PALETTE.get(Status(row.state)) if row.state in list(Status) else None
    state = (shaped(row.state, look), StyledText("  ")) if row.state else ()
    name = StyledText(f"{row.name}  ", BOLD if row.kind == POINT else "")
    return (StyledText(head), name, *state, StyledText(row.beside, DIM))


def _pane(pane: Pane, size: tuple[int, int]) -> list[Line]:
    width, height = size
    lines = pane.folded(width)
    first = pane.shown_from(size)
    shown = lines[first : first + height]
    where = f"{first + len(shown)}/{len(lines)}" if len(lines) > height else ""
    follows = "  follows" if pane.follows else ""
    title = cut(
        (StyledText(f"{pane.title}  ", BOLD), StyledText(f"{where}{follows}", DIM)), width
    )
    return _filled([title, *(cut(one, width) for one in shown)], width, height + 1)


def _choice(state: State, width: int, height: int) -> list[Line]:
    assert state.choice is not None
    choice = state.choice
    if choice.help is not None:
        return _pane(choice.help, (width, height - 1))
    first = max(0, choice.at - height + 1)
    lines = [
        restyled(cut(one, width), REVERSE) if number == choice.at else cut(one, width)
        for number, one in enumerate(choice.lines[first : first + height], start=first)
    ]
    if not choice.lines:
        text = "  there are no runs; start one: tidewheel run DIR"
        lines.append(cut(line(text, DIM), width))
    return _filled(lines, width, height)


def _filled(lines: list[Line], width: int, height: int) -> list[Line]:
    return [*lines, *[cut((), width)] * (height - len(lines))][:height]


def _foot(state: State) -> Line:
    if state.typed is not None:
        typed = StyledText(f"/{safe(state.typed)}"), StyledText(" ", REVERSE)
        return (*typed, StyledText("  enter: keep the filter, esc: clear it", DIM))
    if state.question is not None:
        return line(_asked(state.question, state.size[0]), BOLD)
    if state.trouble:
        return line(safe(state.trouble), "yellow")
    if state.said:
        return line(safe(state.said), BOLD)
    if state.choice is not None:
        return line(CHOOSING if state.choice.help is None else CHOICE_READING, DIM)
    covered = state.pane is not None and not state.is_wide
    return line(READING if covered else HINTS, DIM)


IDS_ASKED_MAX = 3
WAYS = {
    "": "do it",
    "clean": "tasks finish first",
    "now": "leave jobs running",
    "kill": "kill jobs",
}


def _asked(question: Question, width: int) -> str:
    """Returns the question, with as many ids as leave room for its answers."""
    ids = question.ids
    keys = ", ".join(f"{key}: {WAYS[mode]}" for key, mode in question.answers)
    text = ""
    for count in range(min(len(ids), IDS_ASKED_MAX), -1, -1):
        more = ["…"] if 0 < count < len(ids) else []
        if len(ids) > count or question.of > len(ids):
            more.append(f"({_of(question)})")
        what = " ".join((question.verb, *ids[:count], *more))
        text = f"{safe(what)}?  {keys}; any other key: cancel"
        if len(text) <= width:
            break
    return text


def _of(question: Question) -> str:
    shown = len(question.ids)
    is_part = question.of > shown
    return f"only {shown} of {question.of} tasks" if is_part else plural(shown, "task")
