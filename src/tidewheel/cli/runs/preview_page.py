"""What a command would do, as people read it: a list, and a drawing of what follows what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from tidewheel.cli.output import plural, safe, say
from tidewheel.cli.pages.format import (
    Document,
    documents,
    flows_text,
    more_text,
    section,
    texts,
)
from tidewheel.cli.runs.reason_lines import reason_lines
from tidewheel.cli.runs.tree_page import BAR, CORNER, GAP, TEE

SHOWN_MAX = 50


def say_preview(page: Document) -> None:
    """What would change at once, what would then run, in order, and what would wait."""
    for line in preview_lines(page):
        if isinstance(line, Title):
            section(line.text)
        else:
            say(line)


class Title(NamedTuple):
    """A line above others."""

    text: str


def preview_lines(page: Document) -> Iterator[str | Title]:
    """The same, for whoever shows lines in another way."""
    runs = documents(page, "runs")
    yield f"{safe(page['run'])}: nothing was done; if every job succeeded,"
    yield from _change_lines(page)
    if not runs:
        yield "  nothing would run"
    else:
        yield Title(
            f"{plural(len(runs), 'job')} would run{', and more' if page['cut'] else ''}"
        )
        yield from (f"  {line}" for line in _drawing(page))
    if back := texts(page, "comes_back"):
        yield Title("would come back")
        yield f"  {safe(', '.join(back[:SHOWN_MAX]))}"
    waits = documents(page, "waits")
    if waits:
        yield Title("would wait")
        for one in waits[:SHOWN_MAX]:
            yield f"  {safe(one['id'])}"
            yield from reason_lines(documents(one, "reasons"))


def _change_lines(page: Document) -> Iterator[str | Title]:
    status = cast("dict[str, str]", page["status"])
    changes = documents(page, "changes")
    if status["before"] != status["after"]:
        yield f"  the run would be {safe(status['after'])}, not {safe(status['before'])}"
    if changes:
        yield Title("would change at once")
        for one in changes[:SHOWN_MAX]:
            yield f"  {safe(one['id'])}: {safe(_change_text(one))}"
        if more := more_text(len(changes), SHOWN_MAX):
            yield f"  {more}"
    for word in ("killed", "polled"):
        if ids := texts(page, word):
            yield f"  jobs {word}: {safe(', '.join(ids[:SHOWN_MAX]))}"


def _change_text(one: Document) -> str:
    before, after, made = str(one["before"]), str(one["after"]), texts(one, "made")
    parts = [f"{before} -> {after}"] if before != after else []
    parts += [f"would make {', '.join(made)}"] if made else []
    return "; ".join(parts) or f"{after}, in flow {flows_text(one)}"


def _drawing(page: Document) -> Iterator[str]:
    """Each job under the last of those that it follows."""
    runs = documents(page, "runs")
    children: dict[str, list[Document]] = {}
    seen: set[str] = set()
    for one in runs[:SHOWN_MAX]:
        after = [before for before in texts(one, "after") if before in seen]
        children.setdefault(after[-1] if after else "", []).append(one)
        seen.add(str(one["id"]))
    yield from _branch(children, "", "", top=True)
    if more := more_text(len(runs), SHOWN_MAX):
        yield more


def _branch(
    children: dict[str, list[Document]], name: str, before: str, *, top: bool = False
) -> Iterator[str]:
    found = children.pop(name, [])
    for number, one in enumerate(found):
        last = number == len(found) - 1
        head = "" if top else CORNER if last else TEE
        yield f"{before}{head}{_job_text(one)}"
        deeper = before if top else before + (GAP if last else BAR)
        yield from _branch(children, str(one["id"]), deeper)


def _job_text(one: Document) -> str:
    flows = flows_text(one)
    where = "alone" if flows == "none" else f"flow {flows}"
    others = cast("list[str]", one["after"])[:-1]
    also = f", also after {', '.join(others)}" if others else ""
    return f"{safe(one['id'])}  {where}{safe(also)}"
