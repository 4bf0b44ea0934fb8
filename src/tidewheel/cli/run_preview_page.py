"""What a command would do, as people read it: a list, and a drawing of what follows what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from tidewheel.cli.printing import plural, safe, say
from tidewheel.cli.run_reason_lines import say_reasons
from tidewheel.cli.run_tree_page import BAR, CORNER, GAP, TEE
from tidewheel.cli.run_words import Document, documents, flows_text, section, texts

SHOWN_MAX = 50


def say_preview(page: Document) -> None:
    """What would change at once, what would then run, in order, and what would wait."""
    runs = documents(page, "runs")
    say(f"{safe(page['run'])}: nothing was done; if every job succeeded,")
    _say_changes(page)
    if not runs:
        say("  nothing would run")
    else:
        section(f"{plural(len(runs), 'job')} would run{', and more' if page['cut'] else ''}")
        for line in _drawing(page):
            say(f"  {line}")
    if back := texts(page, "comes_back"):
        section("would come back")
        say(f"  {safe(', '.join(back[:SHOWN_MAX]))}")
    waits = documents(page, "waits")
    if waits:
        section("would wait")
        for one in waits[:SHOWN_MAX]:
            say(f"  {safe(one['id'])}")
            say_reasons(documents(one, "reasons"))


def _say_changes(page: Document) -> None:
    status = cast("dict[str, str]", page["status"])
    changes = documents(page, "changes")
    if status["before"] != status["after"]:
        say(f"  the run would be {safe(status['after'])}, not {safe(status['before'])}")
    if changes:
        section("would change at once")
        for one in changes[:SHOWN_MAX]:
            say(f"  {safe(one['id'])}: {safe(_change_text(one))}")
        if len(changes) > SHOWN_MAX:
            say(f"  and {len(changes) - SHOWN_MAX} more: --json shows all")
    for word in ("killed", "polled"):
        if ids := texts(page, word):
            say(f"  jobs {word}: {safe(', '.join(ids[:SHOWN_MAX]))}")


def _change_text(one: Document) -> str:
    before, after, made = str(one["before"]), str(one["after"]), texts(one, "made")
    parts = [f"{before} -> {after}"] if before != after else []
    parts += [f"would make {', '.join(made)}"] if made else []
    return "; ".join(parts) or f"{after}, in flow {flows_text(one)}"


def _drawing(page: Document) -> Iterator[str]:
    """Each job under the last of those that it follows."""
    runs = documents(page, "runs")[:SHOWN_MAX]
    children: dict[str, list[Document]] = {}
    seen: set[str] = set()
    for one in runs:
        after = [before for before in texts(one, "after") if before in seen]
        children.setdefault(after[-1] if after else "", []).append(one)
        seen.add(str(one["id"]))
    yield from _branch(children, "", "", top=True)
    if len(documents(page, "runs")) > SHOWN_MAX:
        yield f"and {len(documents(page, 'runs')) - SHOWN_MAX} more: --json shows all"


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
