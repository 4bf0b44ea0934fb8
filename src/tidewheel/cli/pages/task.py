"""Prints everything about one task: of the queue (`tidewheel task`), of a run (`show`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tidewheel.api.tasks import AttemptView, EdgeView, HistoryEntry, OutputView, Task, UsageView
from tidewheel.api.wire import document
from tidewheel.cli.output import (
    Cell,
    coloured,
    plural,
    safe,
    safe_lines,
    say,
    say_columns,
    say_json,
    say_table,
)
from tidewheel.cli.pages.format import (
    SHOWN_MAX,
    Columns,
    Document,
    at,
    error_text,
    fact,
    flows_text,
    last_frames,
    moment,
    say_lines,
    say_some,
    section,
    shown_page,
    state_cell,
    texts,
    took,
)
from tidewheel.cli.pages.format import documents as entries
from tidewheel.cli.pages.log import log_path
from tidewheel.cli.pages.run import say_reasons
from tidewheel.client import AsyncClient
from tidewheel.client.fields import TaskFields, explained
from tidewheel.client.log_places import STREAMS
from tidewheel.core.queue.retry import FixedDelays
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import TaskError
from tidewheel.exact_json import encode
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.quantities import show_duration, show_instant, show_moment, show_size
from tidewheel.services.explain import nodes_text

LABEL_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails:
    """Holds everything that the page of a task shows."""

    task: Task
    now: float
    why: Sequence[str]
    edges: Sequence[EdgeView]
    statuses: dict[str, Status]  # of the tasks at the other end of edges
    attempts: Sequence[AttemptView]
    history: Sequence[HistoryEntry]
    outputs: Sequence[OutputView]
    values: Mapping[str, object] | None  # for those after it
    usage: Sequence[UsageView]
    logs: Sequence[Path]  # on this host


async def gather(client: AsyncClient, task: Task) -> TaskDetails:
    """Reads everything that the page of a task shows."""
    edges = await client.edges(task.id)
    ends = {end for edge in edges for end in (edge.parent, edge.child)}
    statuses: dict[str, Status] = {end: (await client.get(end)).status for end in sorted(ends)}
    logs = [
        await log_path(client, task, stream, number)
        for number in range(1, task.attempt + 1)
        for stream in STREAMS
    ]
    told: dict[str, Any] = {
        name: await getattr(client, name)(task.id)
        for name in ("why", "attempts", "history", "outputs", "values", "usage")
    }
    now, found = await client.store.now(), [path for path in logs if path.exists()]
    return TaskDetails(task=task, now=now, edges=edges, statuses=statuses, logs=found, **told)


def say_page_json(page: TaskDetails) -> None:
    """Prints the page of a task as JSON, for programs."""
    task_id, statuses = page.task.id, page.statuses
    edges = [
        {
            **document(edge),
            "parent_status": statuses[edge.parent].value,
            "child_status": statuses[edge.child].value,
        }
        for edge in page.edges
    ]
    say_json(
        {
            "task": document(page.task),
            "why": list(page.why),
            "needs": [edge for edge in edges if edge["child"] == task_id],
            "needed_by": [edge for edge in edges if edge["parent"] == task_id],
            "attempts": [document(one) for one in page.attempts],
            "outputs": [document(one) for one in page.outputs],
            "values": page.values,
            "usage": used_in(page.usage),
            "history": [document(one) for one in page.history],
            "logs": [str(path) for path in page.logs],
        }
    )


def used_in(usage: Sequence[UsageView]) -> dict[str, float | None]:
    """Returns the number of samples, and peaks and means; None where nothing was measured."""
    memory, cpu, gpu = (
        [value for one in usage if (value := getattr(one.sample, name)) is not None]
        for name in ("memory_bytes", "cpu_percent", "gpu_percent")
    )
    return {
        "samples": len(usage),
        "memory_bytes_peak": max(memory, default=None),
        "cpu_percent_mean": round(sum(cpu) / len(cpu), 1) if cpu else None,
        "cpu_percent_peak": max(cpu, default=None),
        "gpu_percent_mean": round(sum(gpu) / len(gpu), 1) if gpu else None,
    }


def say_page(page: TaskDetails) -> None:
    """Prints the page of a task for people."""
    task = page.task
    say(f"task {safe(task.id)}  {coloured(task.status)}")
    for label, text in _facts(task, page.now):
        for number, line in enumerate(safe_lines(text).split("\n")):
            say(f"  {'' if number else label:{LABEL_WIDTH}}{line}")
    for error in task.errors:
        say(f"  {'error':{LABEL_WIDTH}}{safe(error.code)}: {safe(error.description)}")
    _say_frames(task.errors[-1:])
    say_lines("why it does not run", [f"  {safe(reason)}" for reason in page.why])
    _say_edges(page)
    say_some("attempts", page.attempts[-SHOWN_MAX:], ATTEMPT_COLUMNS)
    say_some("messages and outputs", page.outputs[-SHOWN_MAX:], OUTPUT_COLUMNS)
    _say_values(page.values)
    _say_usage(page.usage)
    section("history")
    say_columns(page.history[-SHOWN_MAX:], HISTORY_COLUMNS, indent=2)
    if (more := len(page.history) - SHOWN_MAX) > 0:
        say(f"  {plural(more, 'earlier step')}: --json shows all")
    logs = page.logs[-SHOWN_MAX:]
    say_lines("logs", [f"  {safe(one)}  {show_size(one.stat().st_size)}" for one in logs])


def _say_frames(errors: Sequence[TaskError]) -> None:
    for frame in (frame for error in errors for frame in last_frames(error)):
        say(f"  {'':{LABEL_WIDTH}}{safe(frame.place)} in {safe(frame.function)}")
        if frame.code:
            say(f"  {'':{LABEL_WIDTH}}  {safe(frame.code)}")


def _facts(task: Task, now: float) -> list[tuple[str, str]]:
    """Returns labels and texts for the page of a task; what the task does not have is left
    out."""
    facts = {
        "name": task.name,
        "queue": task.queue,
        "priority": str(task.priority),
        "command": task.command,
        "variables": " ".join(f"{one}={text}" for one, text in task.environment.items()),
        "handler": task.handler,
        "spec": task.spec_text,
        "resources": _resources_text(task),
        "retries": _retries_text(task),
        "timeout": task.timeout_seconds and show_duration(task.timeout_seconds),
        "key": task.unique_key,
        **{name.replace("_", " "): getattr(task, name) for name in explained(TaskFields)},
        "created": _when(task.created_at, now),
        "updated": _when(task.updated_at, now),
        "progress": f"{task.progress:.0%}" if task.attempt else None,
        "worker": task.owner,
        "lease until": task.deadline_at and show_instant(int(task.deadline_at)),
    }
    return [(label, str(text)) for label, text in facts.items() if text]


def _when(instant: float, now: float) -> str:
    return f"{show_instant(int(instant))}, {show_duration(now - instant)} ago"


def _resources_text(task: Task) -> str:
    asked = task.resources
    words = ["1 core" if asked.cpu == 1 else f"{asked.cpu:g} cores"] if asked.cpu else []
    words += [f"{show_size(asked.memory_bytes)} memory"] if asked.memory_bytes else []
    words += [plural(asked.gpu, "GPU")] if asked.gpu else []
    if asked.flavours:
        words.append(nodes_text(asked))
    elif asked.exclusive:
        words.append(f"{plural(asked.nodes, 'node')}, exclusive")
    elif asked.nodes > 1:
        words.append(f"{asked.nodes} nodes")
    words += [f"{show_size(asked.buffer_bytes)} buffer"] if asked.buffer_bytes else []
    words += [f"label {label}" for label in sorted(asked.labels)]
    return ", ".join(words)


def _retries_text(task: Task) -> str:
    if not task.max_retries:
        return ""
    policy = task.retry
    if isinstance(policy, FixedDelays):
        delays = ", ".join(show_duration(seconds) for seconds in policy.seconds)
    else:
        first, most = show_duration(policy.first_seconds), show_duration(policy.seconds_max)
        delays = f"{first}, growing {policy.factor:g}-fold up to {most}"
    used = min(task.failures, task.max_retries)
    return f"{used} of {task.max_retries} used; delays: {delays}"


def _say_edges(page: TaskDetails) -> None:
    task_id, statuses = page.task.id, page.statuses
    needs = [edge for edge in page.edges if edge.child == task_id]
    needed_by = [edge for edge in page.edges if edge.parent == task_id]
    columns: dict[str, Callable[[EdgeView], Cell]] = {
        "TASK": lambda edge: edge.parent,
        "STATUS": lambda edge: statuses[edge.parent],
        "OUTPUT": lambda edge: edge.output,
    }
    state: dict[str, Callable[[EdgeView], Cell]] = {"STATE": lambda edge: edge.state.value}
    say_some("needs", needs[:SHOWN_MAX], columns | state)
    columns["TASK"] = lambda edge: edge.child
    columns["STATUS"] = lambda edge: statuses[edge.child]
    say_some("needed by", needed_by[:SHOWN_MAX], columns)


ATTEMPT_COLUMNS: dict[str, Callable[[AttemptView], str]] = {
    "NUMBER": lambda one: str(one.attempt),
    "WORKER": lambda one: one.worker,
    "CLAIMED": lambda one: show_moment(one.claimed_at),
    "TOOK": lambda one: (
        "" if one.ended_at is None else show_duration(one.ended_at - one.claimed_at)
    ),
    "ENDED BY": lambda one: one.ended_by.value if one.ended_by else "running",
    "EXIT": lambda one: "" if one.exit_status is None else str(one.exit_status),
    "REMARK": lambda one: error_text(one.error) if one.error else _metrics_text(one.metrics),
}


def _metrics_text(metrics: str | None) -> str:
    """Returns what was measured of an attempt, or what its handler returned, for people."""
    measured = json.loads(metrics) if metrics else {}
    if not isinstance(measured, dict) or set(measured) - {"cpu_seconds"}:
        return metrics or ""
    return "".join(f"used {show_duration(one)} of CPU time" for one in measured.values())


OUTPUT_COLUMNS: dict[str, Callable[[OutputView], str]] = {
    "TIME": lambda one: show_moment(one.at),
    "ATTEMPT": lambda one: str(one.attempt),
    "OUTPUT": lambda one: one.output or "",
    "TEXT": lambda one: one.text,
}
HISTORY_COLUMNS: dict[str, Callable[[HistoryEntry], Cell]] = {
    "TIME": lambda one: show_moment(one.at),
    "SIGNAL": lambda one: one.signal.value if one.signal else "create",
    "STATUS": lambda one: one.to_status,
    "WORKER": lambda one: one.worker or "",
}


def _say_values(values: Mapping[str, object] | None) -> None:
    if values is None:
        return
    section("returned values")
    rows = [(name, encode(value)) for name, value in values.items()]
    say_table(("NAME", "VALUE"), rows[:SHOWN_MAX], indent=2)


def _say_usage(usage: Sequence[UsageView]) -> None:
    if not usage:
        return
    used = used_in(usage)
    section("usage")
    words = []
    if isinstance(peak := used["memory_bytes_peak"], int | float):
        words.append(f"at most {show_size(peak)} of memory")
    if used["cpu_percent_mean"] is not None:
        words.append(f"{used['cpu_percent_mean']} % of a core on average")
    if used["gpu_percent_mean"] is not None:
        words.append(f"{used['gpu_percent_mean']} % of a GPU on average")
    say(f"  {', '.join(words)} ({plural(len(usage), 'sample')})")


# ---- a task of a run: what it waits for, what it made, how often it ran ----

ENDED = ("succeeded", "failed", "submit-failed", "expired", "ended", "not taken")

PREREQUISITES = "prerequisites (+ satisfied, - not yet, x never)"
XTRIGGERS = "xtriggers and timers"
SIGNS = {"true": "+", "open": "-", "lost": "x", "not taken": "x"}


def reasons_shown(page: Document) -> Sequence[Document]:
    """Returns why a task does not run: nothing of one that has ended, or that runs well."""
    reasons = entries(page, "why")
    has_ended = not page["in_pool"] and page["state"] in ENDED
    runs_well = page["state"] == "running" and all(one["passes"] for one in reasons)
    return () if has_ended or runs_well else reasons


def say_tasks(page: Document) -> None:
    """Prints the tasks of the view `show`, each with everything that is known."""
    what = "stage" if page.get("stages") else "task"
    for number, task in enumerate(entries(shown_page(page), "tasks")):
        if number:
            say()
        _say_task(what, task)


def _say_task(what: str, page: Document) -> None:
    is_stage = what == "stage"
    say(f"{what} {safe(page['id'])}  {coloured(state_cell(page))}")
    fact("run", page["run"])
    fact("title", page["title"])
    if not is_stage:
        fact("families", ", ".join(one for one in texts(page, "families") if one != "root"))
        fact("flows", flows_text(page) if page["state"] != "future" else "")
        fact("in the pool", "yes" if page["in_pool"] else "no")
    fact("try", page["try"] if cast("int", page["try"]) > 1 else "")
    fact("complete if", page["completion"])
    fact("children", ", ".join(texts(page, "children")[:SHOWN_MAX]))
    for run in entries(page, "nested") if page.get("nested") else ():
        fact(f"run {run['submit']:02d}", f"{run['run']}  {run['status']}")
    if reasons := reasons_shown(page):
        section("why it does not run")
        say_reasons(reasons)
    say_lines(PREREQUISITES, prerequisite_lines(page))
    say_lines(XTRIGGERS, xtrigger_lines(page))
    section("outputs (+ made, - not made)")
    say_columns(entries(page, "outputs"), STAGE_OUTPUTS if is_stage else OUTPUTS_MADE, indent=2)
    verdicts = (
        ("  " if is_stage else f"  flow {one['flow']}: ")
        + f"{safe(one['verdict'])}; {safe(one['text'])}"
        for one in entries(page, "verdicts")
    )
    say_lines("verdicts", verdicts)
    values = page.get("values")
    _say_values(values if isinstance(values, dict) else None)
    if submissions := entries(page, "submissions"):
        say_some("submissions", submissions[-SHOWN_MAX:], SUBMISSIONS)
        _say_last(submissions[-1])


def prerequisite_lines(page: Document) -> Iterator[str]:
    """Yields what a task waits for in the graph, with the state of each parent."""
    found = [*entries(page, "prerequisites"), *entries(page, "suicide")]
    for number, one in enumerate(found):
        suicide = number >= len(entries(page, "prerequisites"))
        sign = "+" if one["satisfied"] else "-"
        hand = "  by hand" if one["by_hand"] else ""
        yield f"  {sign} {safe(one['text'])}{hand}{'  (removes the task)' if suicide else ''}"
        for atom in entries(one, "atoms"):
            sign = SIGNS[str(atom["state"])]
            remarks = [str(atom["parent"])]
            remarks += ["before the start"] if atom["before_start"] else []
            remarks += ["by hand"] if atom["by_hand"] else []
            remarks += [str(atom["state"])] if sign == "x" else []
            yield f"      {sign} {safe(atom['text'])}  {safe(', '.join(remarks))}"
            missing = [one for one in entries(atom, "members") if not one["made"]]
            for member in missing[:SHOWN_MAX]:
                yield f"        - {safe(member['id'])}  {safe(member['state'])}"


def xtrigger_lines(page: Document) -> Iterator[str]:
    """Yields the xtriggers that a task waits for, and until when."""
    for one in entries(page, "xtriggers"):
        at = moment(one, "at")
        until = f"  at {at}" if at else ""
        sign = "+" if one["satisfied"] else "-"
        by_hand = ", by hand" if one["by_hand"] else ""
        yield f"  {sign} {safe(one['label'])}  {safe(one['call'])}{by_hand}{until}"


def _remark(output: Document) -> str:
    words = ["required"] if output["required"] else []
    words += ["by hand"] if output["by_hand"] else []
    words += [f"message {output['message']!r}"] if output["message"] != output["output"] else []
    return ", ".join(words)


# Outputs that were completed by hand are marked (R001-52).
OUTPUTS_MADE: Columns = {
    "OUTPUT": lambda one: f"{'+' if one['made'] else '-'} {one['output']}",
    "MADE BY": lambda one: str(one["by"]),
    "AT": at("at"),
    "FLOWS": lambda one: ",".join(map(str, cast("list[int]", one["flows"]))),
    "REMARK": _remark,
}
STAGE_OUTPUTS: Columns = {name: one for name, one in OUTPUTS_MADE.items() if name != "FLOWS"}
SUBMISSIONS: Columns = {
    "NUMBER": lambda one: f"{one['submit']:02d}",
    "STATUS": "status",
    "SUBMITTED": at("submitted_at"),
    "TOOK": took,
    "EXIT": "exit_status",
    "ATTEMPTS": lambda one: str(len(entries(one, "attempts")) or ""),
    "WORKER": "worker",
    "REMARK": "error",
}


def _say_last(submission: Document) -> None:
    """Prints the messages and logs of the last submission."""
    said = (
        f"  {moment(one, 'at')}  {safe(one['output'] or '')}  {safe(one['text'])}"
        for one in entries(submission, "messages")[-SHOWN_MAX:]
    )
    say_lines("messages of the last submission", said)
    attempts = entries(submission, "attempts")
    logs = (log for attempt in attempts for log in texts(attempt, "logs"))
    say_lines("logs of the last submission", (f"  {safe(log)}" for log in logs))
