"""The answer of a scheduler to a command, as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidewheel.cli.printing import safe, say

if TYPE_CHECKING:
    from tidewheel.cli.run_door import Given

SHOWN_MAX = 20
# What a verb without tasks has done, in words.
DONE = {
    "pause": "paused: nothing is submitted until it is resumed",
    "resume": "goes on",
    "stop": "will stop",
    "hold": "held",
    "release": "released",
    "poll": "polled",
    "kill": "killed",
    "remove": "removed",
    "reload": "goes on with the new definition",
    "message": "heard",
    "ext-trigger": "triggered",
    "broadcast": "will be told to tasks to come",
}
_KNOWN = {"tasks", "submitted", "killed", "polled", "comes_back", "notices", "status"}


def say_answer(given: Given) -> None:
    """Task by task where there are any, else one sentence."""
    for line in answer_lines(given):
        say(line)


def answer_lines(given: Given) -> Iterator[str]:
    answer = given.answer
    named = answer.get("tasks")
    tasks = named if isinstance(named, Mapping) else {}
    if tasks:
        yield from _task_lines(given, tasks)
    else:
        yield f"{safe(given.run)}: {DONE.get(given.verb, 'done')}"
    others = [one for one in _list(answer, "submitted") if one not in tasks]
    if others:
        yield f"  now runs: {_some(others)}"
    back = _list(answer, "comes_back")
    if back:
        yield f"  comes back: {_some(back)}"
    for notice in _list(answer, "notices")[:SHOWN_MAX]:
        yield f"  {safe(notice)}"
    for name, value in answer.items():
        if name not in _KNOWN and value not in (None, "", [], {}):
            yield f"  {safe(name.replace('_', ' '))}: {safe(_text(value))}"


def _task_lines(given: Given, tasks: Mapping[str, object]) -> Iterator[str]:
    submitted = set(_list(given.answer, "submitted"))
    for task_id in list(tasks)[:SHOWN_MAX]:
        yield f"{safe(task_id)} {_became(given.verb, tasks[task_id], task_id in submitted)}"
    if len(tasks) > SHOWN_MAX:
        yield f"and {len(tasks) - SHOWN_MAX} more: --json shows all"


def _became(verb: str, flows: object, runs: bool) -> str:
    flow = "" if flows is None else f" in flow {flows}"
    alone = " alone (flow none)" if flows == "none" else flow
    if runs:
        return f"runs now{alone}"
    match verb:
        case "trigger":
            return f"will run{alone}"
        case "set":
            return "is complete" if flows is None else f"was set{flow}"
        case _:
            return DONE.get(verb, "done")


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
