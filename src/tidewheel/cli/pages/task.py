"""Everything about one task on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from tidewheel.cli import documents
from tidewheel.cli.output import (
    Row,
    coloured,
    on_terminal,
    plural,
    safe,
    safe_lines,
    say,
    say_json,
    say_table,
)
from tidewheel.cli.pages.log import log_path
from tidewheel.client import AsyncClient
from tidewheel.client.log_places import STREAMS
from tidewheel.client.results import Task
from tidewheel.core.queue.retry import FixedDelays, RetryPolicy
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.views import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    UsageView,
)
from tidewheel.exact_json import encode
from tidewheel.quantities import show_duration, show_instant, show_moment, show_size

SHOWN_MAX = 20  # of each list, on the page for people
LABEL_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPage:
    """What is known about a task, read in one go."""

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


async def gather(client: AsyncClient, task: Task) -> TaskPage:
    """Read everything about a task."""
    edges = await client.edges(task.id)
    ends = {end for edge in edges for end in (edge.parent, edge.child)}
    statuses: dict[str, Status] = {end: (await client.get(end)).status for end in sorted(ends)}
    logs = [
        await log_path(client, task, stream, number)
        for number in range(1, task.attempt + 1)
        for stream in STREAMS
    ]
    return TaskPage(
        task=task,
        now=await client.store.now(),
        why=await client.why(task.id),
        edges=edges,
        statuses=statuses,
        attempts=await client.attempts(task.id),
        history=await client.history(task.id),
        outputs=await client.outputs(task.id),
        values=await client.values(task.id),
        usage=await client.usage(task.id),
        logs=[path for path in logs if path.exists()],
    )


def say_page_json(page: TaskPage) -> None:
    """For programs."""
    task_id = page.task.id
    edges = [documents.edge_document(edge, page.statuses) for edge in page.edges]
    say_json(
        {
            "task": documents.task_document(page.task),
            "why": list(page.why),
            "needs": [edge for edge in edges if edge["child"] == task_id],
            "needed_by": [edge for edge in edges if edge["parent"] == task_id],
            "attempts": [documents.attempt_document(one) for one in page.attempts],
            "outputs": [documents.output_document(one) for one in page.outputs],
            "values": page.values,
            "usage": documents.usage_document(page.usage),
            "history": [documents.history_document(one) for one in page.history],
            "logs": [str(path) for path in page.logs],
        }
    )


def say_page(page: TaskPage) -> None:
    """For people."""
    _say_head(page)
    if page.why:
        _section("why it does not run")
        for reason in page.why:
            say(f"  {safe(reason)}")
    _say_edges(page)
    _say_attempts(page.attempts)
    _say_outputs(page.outputs)
    _say_values(page.values)
    _say_usage(page.usage)
    _say_history(page.history)
    if page.logs:
        _section("logs")
        for path in page.logs[-SHOWN_MAX:]:
            say(f"  {safe(path)}  {show_size(path.stat().st_size)}")


def _section(title: str) -> None:
    say()
    say(click.style(title, bold=True) if on_terminal() else title)


def _say_head(page: TaskPage) -> None:
    task = page.task
    say(f"task {safe(task.id)}  {coloured(task.status)}")
    for label, text in _facts(task, page.now):
        lines = safe_lines(text).split("\n")
        say(f"  {label:{LABEL_WIDTH}}{lines[0]}")
        for line in lines[1:]:
            say(f"  {'':{LABEL_WIDTH}}{line}")
    for error in task.errors:
        say(f"  {'error':{LABEL_WIDTH}}{safe(error.code)}: {safe(error.description)}")


def _facts(task: Task, now: float) -> list[tuple[str, str]]:
    """What is said about it, leaving out what was not asked for."""
    facts = {
        "name": task.name,
        "tag": task.tag,
        "queue": task.queue,
        "priority": str(task.priority),
        "command": task.command,
        "handler": task.handler,
        "spec": task.spec_text,
        "resources": _resources_text(task),
        "retries": _retries_text(task),
        "timeout": task.timeout_seconds and show_duration(task.timeout_seconds),
        "key": task.unique_key,
        "limit key": task.limit_key,
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
    words = [f"{asked.cpu:g} cores"] if asked.cpu else []
    words += [f"{show_size(asked.memory_bytes)} memory"] if asked.memory_bytes else []
    words += [f"{asked.gpu} GPUs"] if asked.gpu else []
    if asked.exclusive:
        words.append(f"{plural(asked.nodes, 'node')} alone")
    elif asked.nodes > 1:
        words.append(f"{asked.nodes} nodes")
    words += [f"{show_size(asked.buffer_bytes)} buffer"] if asked.buffer_bytes else []
    words += [f"label {label}" for label in sorted(asked.labels)]
    return ", ".join(words)


def _retries_text(task: Task) -> str:
    if not task.max_retries:
        return ""
    used = min(task.failures, task.max_retries)
    return f"{used} of {task.max_retries} used, after {_delays_text(task.retry)}"


def _delays_text(policy: RetryPolicy) -> str:
    if isinstance(policy, FixedDelays):
        return ", ".join(show_duration(seconds) for seconds in policy.seconds)
    first, most = show_duration(policy.first_seconds), show_duration(policy.seconds_max)
    return f"{first}, growing {policy.factor:g}-fold up to {most}"


def _say_edges(page: TaskPage) -> None:
    task_id = page.task.id
    needs = [edge for edge in page.edges if edge.child == task_id]
    if needs:
        _section("needs")
        rows: list[Row] = [
            (edge.parent, page.statuses[edge.parent], edge.output, edge.state.value)
            for edge in needs[:SHOWN_MAX]
        ]
        say_table(("TASK", "STATUS", "OUTPUT", "STATE"), rows, indent=2)
    needed_by = [edge for edge in page.edges if edge.parent == task_id]
    if needed_by:
        _section("needed by")
        rows = [
            (edge.child, page.statuses[edge.child], edge.output)
            for edge in needed_by[:SHOWN_MAX]
        ]
        say_table(("TASK", "STATUS", "OUTPUT"), rows, indent=2)


def _say_attempts(attempts: Sequence[AttemptView]) -> None:
    if not attempts:
        return
    _section("attempts")
    rows: list[Row] = [
        (
            str(attempt.attempt),
            attempt.worker,
            show_moment(attempt.claimed_at),
            _took(attempt),
            attempt.ended_by.value if attempt.ended_by else "running",
            "" if attempt.exit_status is None else str(attempt.exit_status),
            attempt.error.description if attempt.error else attempt.metrics or "",
        )
        for attempt in attempts[-SHOWN_MAX:]
    ]
    headers = ("NUMBER", "WORKER", "CLAIMED", "TOOK", "ENDED BY", "EXIT", "REMARK")
    say_table(headers, rows, indent=2)


def _took(attempt: AttemptView) -> str:
    if attempt.ended_at is None:
        return ""
    return show_duration(attempt.ended_at - attempt.claimed_at)


def _say_outputs(outputs: Sequence[OutputView]) -> None:
    if not outputs:
        return
    _section("messages and outputs")
    rows: list[Row] = [
        (show_moment(one.at), str(one.attempt), one.output or "", one.text)
        for one in outputs[-SHOWN_MAX:]
    ]
    say_table(("TIME", "ATTEMPT", "OUTPUT", "TEXT"), rows, indent=2)


def _say_values(values: Mapping[str, object] | None) -> None:
    if values is None:
        return
    _section("values for those after it")
    rows: list[Row] = [(name, encode(value)) for name, value in values.items()]
    say_table(("NAME", "VALUE"), rows[:SHOWN_MAX], indent=2)


def _say_usage(usage: Sequence[UsageView]) -> None:
    if not usage:
        return
    used = documents.usage_document(usage)
    _section("usage")
    words = []
    if isinstance(peak := used["memory_bytes_peak"], int | float):
        words.append(f"at most {show_size(peak)} of memory")
    if used["cpu_percent_mean"] is not None:
        words.append(f"{used['cpu_percent_mean']} % of a core on average")
    if used["gpu_percent_mean"] is not None:
        words.append(f"{used['gpu_percent_mean']} % of a GPU on average")
    say(f"  {', '.join(words)} ({len(usage)} samples)")


def _say_history(history: Sequence[HistoryEntry]) -> None:
    _section("history")
    rows: list[Row] = [
        (
            show_moment(entry.at),
            entry.signal.value if entry.signal else "create",
            entry.to_status,
            entry.worker or "",
        )
        for entry in history[-SHOWN_MAX:]
    ]
    say_table(("TIME", "SIGNAL", "STATUS", "WORKER"), rows, indent=2)
    if more := len(history) - len(rows):
        say(f"  {more} earlier steps: --json shows all")
