"""Prints what a command did, as the scheduler answered it, or what it would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from tidewheel.cli.output import plural, safe, say
from tidewheel.cli.pages.format import (
    SHOWN_MAX,
    Document,
    documents,
    flows_text,
    more_text,
    section,
    texts,
)
from tidewheel.cli.pages.run import BAR, CORNER, GAP, TEE, reason_lines
from tidewheel.cli.verbs import TABLE
from tidewheel.core.operator.verbs import Hold, Reload, Stop

if TYPE_CHECKING:
    from tidewheel.cli.runs.access import Given

FORGOTTEN = "is not in the pool: it is forgotten, and will still run when its parents say so"
# Keys of an answer that lines below are about; any other is shown as it is.
_KNOWN = frozenset(
    {"tasks", "submitted", "killed", "polled", "comes_back", "forgotten", "notices", "status"}
    | {"definition", "changed", "broadcasts", "message", "task", "submit", "stops_at"}
)


def say_answer(given: Given) -> None:
    """Prints the answer task by task where there are any, else in one sentence."""
    for line in answer_lines(given):
        say(line)


def answer_lines(given: Given) -> Iterator[str]:
    answer = given.answer
    if answer.get("kept"):
        yield (
            f"{safe(given.run)} is {safe(answer['status'])}, and no scheduler serves it: "
            f"{given.verb} is kept: it is done when the run goes on"
        )
        yield f"  carry it on: {safe(answer['next'])}"
        return
    named = answer.get("tasks")
    tasks = named if isinstance(named, Mapping) else {}
    yield from _task_lines(given, tasks)
    if not tasks:
        yield f"{safe(given.run)} {_became_of_run(given)}"
    if others := [one for one in _list(answer, "submitted") if one not in tasks]:
        yield f"  now runs: {_some(others)}"
    if back := _list(answer, "comes_back"):
        yield f"  comes back if it succeeds: {_some(back)}"
    for row in cast("list[Document]", answer.get("broadcasts") or [])[:SHOWN_MAX]:
        became = "taken back" if row["value"] is None else f"= {row['value']}"
        where = f"{row['point']}/{row['namespace']}"
        yield "  " + safe(f"{where}  {row['setting']} {became}")
    for notice in _news(answer, tasks)[:SHOWN_MAX]:
        yield f"  {safe(notice)}"
    for name, value in answer.items():
        if name not in _KNOWN and value not in (None, "", [], {}):
            yield f"  {safe(name.replace('_', ' '))}: {safe(_text(value))}"


def _task_lines(given: Given, tasks: Mapping[str, object]) -> Iterator[str]:
    submitted, forgotten = _list(given.answer, "submitted"), _list(given.answer, "forgotten")
    for task_id in list(tasks)[:SHOWN_MAX]:
        became = _became(given.verb, tasks[task_id], task_id in submitted)
        yield f"{safe(task_id)} {FORGOTTEN if task_id in forgotten else became}"
    if more := more_text(len(tasks)):
        yield more


def _became(verb: str, flows: object, runs: bool) -> str:
    where = "" if flows is None else f" in flow {flows}"
    where = " alone (flow none)" if flows == "none" else where
    if runs:
        return f"runs now{where}"
    if verb == "set" and flows is None:
        return "is complete"
    return TABLE[verb].of_task.format(flow=where)


def _became_of_run(given: Given) -> str:
    """Returns what became of the run, with the bound that was asked for, if there was one."""
    did = TABLE[given.verb].of_run.format(run=given.run)
    command = given.command
    if isinstance(command, Stop):
        bounds = {
            "at point": command.at_point,
            "after": command.after_task,
            "at": command.at_time,
        }
        if command.flow is not None:
            return f"stops flow {command.flow}"
        if command.at_point == "none":
            return "has no stop point any more"
        said = [f" {word} {bound}" for word, bound in bounds.items() if bound]
        return did + "".join(said) + (f" ({command.mode})" if command.mode != "clean" else "")
    if isinstance(command, Hold) and command.after:
        return f"{did} every task after {command.after}"
    if isinstance(command, Reload) and given.answer.get("changed") is False:
        return "goes on: the definition is the same as before"
    return did


def _news(answer: Mapping[str, object], tasks: Mapping[str, object]) -> list[str]:
    """Returns those notices that the lines above do not say."""
    known = {f"{one} was triggered" for one in tasks} | {str(answer.get("status"))}
    return [
        one
        for one in _list(answer, "notices")
        if not any(one == said or one.startswith(f"{said} ") for said in known)
    ]


def _list(answer: Mapping[str, object], name: str) -> list[str]:
    found = answer.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return safe(", ".join(names[:SHOWN_MAX])) + more


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return str(value)


# ---- what a command would do: a list, and a drawing of what follows what ----

PREVIEWED_MAX = 50


def say_preview(page: Document) -> None:
    """Prints what would change at once, what would then run, in order, and what would wait."""
    for line in preview_lines(page):
        if isinstance(line, Title):
            section(line.text)
        else:
            say(line)


class Title(NamedTuple):
    """Is the heading of the lines that follow it."""

    text: str


def preview_lines(page: Document) -> Iterator[str | Title]:
    """Yields the lines of a preview, for callers that show them in another way."""
    runs = documents(page, "runs")
    yield f"{safe(page['run'])}: nothing was done; if every job succeeded,"
    yield from _change_lines(page)
    if not runs:
        yield "  nothing would run"
    else:
        more = ", and more" if page["cut"] else ""
        yield Title(f"{plural(len(runs), 'job')} would run{more}")
        yield from (f"  {line}" for line in _drawing(page))
    if back := texts(page, "comes_back"):
        yield Title("would come back")
        yield f"  {safe(', '.join(back[:PREVIEWED_MAX]))}"
    if waits := documents(page, "waits"):
        yield Title("would wait")
        for one in waits[:PREVIEWED_MAX]:
            yield f"  {safe(one['id'])}"
            yield from reason_lines(documents(one, "reasons"))


def _change_lines(page: Document) -> Iterator[str | Title]:
    status = cast("dict[str, str]", page["status"])
    changes = documents(page, "changes")
    if status["before"] != status["after"]:
        yield f"  the run would be {safe(status['after'])}, not {safe(status['before'])}"
    if changes:
        yield Title("would change at once")
        for one in changes[:PREVIEWED_MAX]:
            yield f"  {safe(one['id'])}: {safe(_change_text(one))}"
        if more := more_text(len(changes), PREVIEWED_MAX):
            yield f"  {more}"
    for word in ("killed", "polled"):
        if ids := texts(page, word):
            yield f"  jobs {word}: {safe(', '.join(ids[:PREVIEWED_MAX]))}"


def _change_text(one: Document) -> str:
    before, after, made = str(one["before"]), str(one["after"]), texts(one, "made")
    parts = [f"{before} -> {after}"] if before != after else []
    parts += [f"would make {', '.join(made)}"] if made else []
    return "; ".join(parts) or f"{after}, in flow {flows_text(one)}"


def _drawing(page: Document) -> Iterator[str]:
    """Yields the lines of a tree that has each job below the last of the jobs it runs after."""
    runs = documents(page, "runs")
    children: dict[str, list[Document]] = {}
    seen: set[str] = set()
    for one in runs[:PREVIEWED_MAX]:
        after = [before for before in texts(one, "after") if before in seen]
        children.setdefault(after[-1] if after else "", []).append(one)
        seen.add(str(one["id"]))
    yield from _branch(children, "", "", top=True)
    if more := more_text(len(runs), PREVIEWED_MAX):
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
