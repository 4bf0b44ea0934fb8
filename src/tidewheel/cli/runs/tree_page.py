"""A run as a tree, as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from tidewheel.cli.output import looking_word, note, plural, safe, say
from tidewheel.cli.pages.format import (
    Document,
    counts_text,
    documents,
    flows_text,
    run_cell,
    state_cell,
    took,
)

TEE, CORNER, BAR, GAP = "├─ ", "└─ ", "│  ", "   "


def say_tree(page: Document) -> None:
    """Point, family, task, submissions."""
    points = documents(page, "points")
    say(f"{safe(page['run'])}  {safe(run_cell(page).word)}")
    left_out = cast("int", page["left_out"])
    if left_out:
        note(f"{plural(left_out, 'earlier point')} left out: --all shows them")
    if not points:
        note("there is nothing to be seen yet")
    for point in points:
        say(f"{safe(point['point'])}  {counts_text(point['counts'])}")
        for line in _lines(documents(point, "children"), ""):
            say(line)


def _lines(children: object, before: str) -> Iterator[str]:
    found = list(cast("list[Document]", children))
    for number, one in enumerate(found):
        last = number == len(found) - 1
        head = f"{before}{CORNER if last else TEE}"
        if one["family"]:
            yield f"{head}{safe(one['name'])}"
            yield from _lines(one["children"], before + (GAP if last else BAR))
        else:
            yield f"{head}{_task_text(one)}"


def _task_text(task: Document) -> str:
    words = [safe(task["name"]), looking_word(state_cell(task))]
    flows = flows_text(task)
    if flows not in ("1", "none"):
        words.append(f"flow {flows}")
    submissions = documents(task, "submissions")
    if submissions:
        words.append(" ".join(_submission_text(one) for one in submissions))
    return "  ".join(words)


def _submission_text(one: Document) -> str:
    time = took(one)
    return f"[{one['submit']:02d} {one['status']}{f' {time}' if time else ''}]"
