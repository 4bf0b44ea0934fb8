"""Prints everything about one task: of the queue (`tidewheel task`), of a run (`show`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tidewheel.api.tasks import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    Task,
    UsageView,
)
from tidewheel.api.wire import document
from tidewheel.cli.output import (
    Row,
    coloured,
    looking_word,
    plural,
    safe,
    safe_lines,
    say,
    say_json,
    say_table,
)
from tidewheel.cli.pages.format import (
    SHOWN_MAX,
    Document,
    fact,
    flows_text,
    moment,
    say_lines,
    section,
    state_cell,
    texts,
    took,
)
from tidewheel.cli.pages.format import (
    documents as entries,
)
from tidewheel.cli.pages.log import log_path
from tidewheel.cli.pages.run import say_reasons
from tidewheel.client import AsyncClient
from tidewheel.client.fields import TaskFields, explained
from tidewheel.client.log_places import STREAMS
from tidewheel.core.queue.retry import FixedDelays, RetryPolicy
from tidewheel.core.queue.status import Status
from tidewheel.exact_json import encode
from tidewheel.quantities import show_duration, show_instant, show_moment, show_size

LABEL_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails:
    """Everything that is known about a task, read in one go."""

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
    """Read everything about a task."""
    edges = await client.edges(task.id)
    ends = {end for edge in edges for end in (edge.parent, edge.child)}
    statuses: dict[str, Status] = {end: (await client.get(end)).status for end in sorted(ends)}
    logs = [
        await log_path(client, task, stream, number)
        for number in range(1, task.attempt + 1)
        for stream in STREAMS
    ]
    return TaskDetails(
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


def say_page_json(page: TaskDetails) -> None:
    """Prints the page for programs."""
    task_id = page.task.id
    edges = [_edge(edge, page.statuses) for edge in page.edges]
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


def _edge(edge: EdgeView, statuses: Mapping[str, Status]) -> dict[str, object]:
    """Returns a dependency with the state of the task at each end."""
    return {
        **document(edge),
        "parent_status": statuses[edge.parent].value,
        "child_status": statuses[edge.child].value,
    }


def used_in(usage: Sequence[UsageView]) -> dict[str, float | None]:
    """Returns the peak and the mean of what was used."""
    memory = [point.sample.memory_bytes for point in usage]
    cpu = [point.sample.cpu_percent for point in usage]
    gpu = [point.sample.gpu_percent for point in usage]
    return {
        "samples": len(usage),
        "memory_bytes_peak": max(_known(memory), default=None),
        "cpu_percent_mean": _mean(_known(cpu)),
        "cpu_percent_peak": max(_known(cpu), default=None),
        "gpu_percent_mean": _mean(_known(gpu)),
    }


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None


def say_page(page: TaskDetails) -> None:
    """Prints the page for people."""
    _say_head(page)
    if page.why:
        section("why it does not run")
        for reason in page.why:
            say(f"  {safe(reason)}")
    _say_edges(page)
    _say_attempts(page.attempts)
    _say_outputs(page.outputs)
    _say_values(page.values)
    _say_usage(page.usage)
    _say_history(page.history)
    if page.logs:
        section("logs")
        for path in page.logs[-SHOWN_MAX:]:
            say(f"  {safe(path)}  {show_size(path.stat().st_size)}")


def _say_head(page: TaskDetails) -> None:
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
    """Returns the facts about it, leaving out what was not asked for."""
    facts = {
        "name": task.name,
        "queue": task.queue,
        "priority": str(task.priority),
        "command": task.command,
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


def _say_edges(page: TaskDetails) -> None:
    task_id = page.task.id
    needs = [edge for edge in page.edges if edge.child == task_id]
    if needs:
        section("needs")
        rows: list[Row] = [
            (edge.parent, page.statuses[edge.parent], edge.output, edge.state.value)
            for edge in needs[:SHOWN_MAX]
        ]
        say_table(("TASK", "STATUS", "OUTPUT", "STATE"), rows, indent=2)
    needed_by = [edge for edge in page.edges if edge.parent == task_id]
    if needed_by:
        section("needed by")
        rows = [
            (edge.child, page.statuses[edge.child], edge.output)
            for edge in needed_by[:SHOWN_MAX]
        ]
        say_table(("TASK", "STATUS", "OUTPUT"), rows, indent=2)


def _say_attempts(attempts: Sequence[AttemptView]) -> None:
    if not attempts:
        return
    section("attempts")
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
    section("messages and outputs")
    rows: list[Row] = [
        (show_moment(one.at), str(one.attempt), one.output or "", one.text)
        for one in outputs[-SHOWN_MAX:]
    ]
    say_table(("TIME", "ATTEMPT", "OUTPUT", "TEXT"), rows, indent=2)


def _say_values(values: Mapping[str, object] | None) -> None:
    if values is None:
        return
    section("values for those after it")
    rows: list[Row] = [(name, encode(value)) for name, value in values.items()]
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
    say(f"  {', '.join(words)} ({len(usage)} samples)")


def _say_history(history: Sequence[HistoryEntry]) -> None:
    section("history")
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


# ---- a task of a run: what it waits for, what it made, how often it ran ----

ENDED = ("succeeded", "failed", "submit-failed", "expired", "ended", "not taken")
PREREQUISITES = "prerequisites (+ satisfied, - not yet, x never)"
XTRIGGERS = "xtriggers and timers"
SIGNS = {"true": "+", "open": "-", "lost": "x", "not taken": "x"}


def say_task(page: Document) -> None:
    """One task."""
    say(f"task {safe(page['id'])}  {looking_word(state_cell(page))}")
    fact("run", page["run"])
    fact("title", page["title"])
    fact("families", ", ".join(one for one in texts(page, "families") if one != "root"))
    fact("flows", flows_text(page) if page["state"] != "future" else "")
    fact("in the pool", "yes" if page["in_pool"] else "no")
    fact("try", page["try"] if cast("int", page["try"]) > 1 else "")
    fact("complete if", page["completion"])
    fact("children", ", ".join(texts(page, "children")[:SHOWN_MAX]))
    if page["in_pool"] or page["state"] not in ENDED:
        section("why it does not run")
        say_reasons(entries(page, "why"))
    say_lines(PREREQUISITES, prerequisite_lines(page))
    say_lines(XTRIGGERS, xtrigger_lines(page))
    _say_outputs_made(page)
    say_lines("verdicts", _verdict_lines(page))
    _say_submissions(page)


def prerequisite_lines(page: Document) -> Iterator[str]:
    """Yields what it waits for, with the state of each parent."""
    found = [*entries(page, "prerequisites"), *entries(page, "suicide")]
    for number, one in enumerate(found):
        suicide = number >= len(entries(page, "prerequisites"))
        sign = "+" if one["satisfied"] else "-"
        hand = "  by hand" if one["by_hand"] else ""
        yield f"  {sign} {safe(one['text'])}{hand}{'  (removes it)' if suicide else ''}"
        for atom in entries(one, "atoms"):
            yield f"      {_atom_text(atom)}"
            missing = [one for one in entries(atom, "members") if not one["made"]]
            for member in missing[:SHOWN_MAX]:
                yield f"        - {safe(member['id'])}  {safe(member['state'])}"


def _atom_text(atom: Document) -> str:
    sign = SIGNS[str(atom["state"])]
    remarks = [str(atom["parent"])]
    remarks += ["before the start"] if atom["before_start"] else []
    remarks += ["by hand"] if atom["by_hand"] else []
    remarks += [str(atom["state"])] if sign == "x" else []
    return f"{sign} {safe(atom['text'])}  {safe(', '.join(remarks))}"


def xtrigger_lines(page: Document) -> Iterator[str]:
    """Yields what else it waits for, and until when."""
    for one in entries(page, "xtriggers"):
        at = moment(one, "at")
        until = f"  at {at}" if at else ""
        sign = "+" if one["satisfied"] else "-"
        by_hand = ", by hand" if one["by_hand"] else ""
        yield f"  {sign} {safe(one['label'])}  {safe(one['call'])}{by_hand}{until}"


def _say_outputs_made(page: Document) -> None:
    """Prints each output; those completed by hand are marked (R001-52)."""
    section("outputs (+ made, - not made)")
    rows: list[Row] = [
        (
            f"{'+' if one['made'] else '-'} {one['output']}",
            str(one["by"]),
            moment(one, "at"),
            ",".join(map(str, cast("list[int]", one["flows"]))),
            _remark(one),
        )
        for one in entries(page, "outputs")
    ]
    say_table(("OUTPUT", "MADE BY", "AT", "FLOWS", "REMARK"), rows, indent=2)


def _remark(output: Document) -> str:
    words = ["required"] if output["required"] else []
    words += ["by hand"] if output["by_hand"] else []
    words += [f"message {output['message']!r}"] if output["message"] != output["output"] else []
    return ", ".join(words)


def _verdict_lines(page: Document) -> Iterator[str]:
    for one in entries(page, "verdicts"):
        yield f"  flow {one['flow']}: {safe(one['verdict'])}; {safe(one['text'])}"


def _say_submissions(page: Document) -> None:
    found = entries(page, "submissions")
    if not found:
        return
    section("submissions")
    rows: list[Row] = [
        (
            f"{one['submit']:02d}",
            str(one["status"]),
            moment(one, "submitted_at"),
            took(one),
            "" if one["exit_status"] is None else str(one["exit_status"]),
            str(len(entries(one, "attempts")) or ""),
            str(one["worker"] or ""),
            str(one["error"] or ""),
        )
        for one in found[-SHOWN_MAX:]
    ]
    headers = ("NUMBER", "STATUS", "SUBMITTED", "TOOK", "EXIT", "ATTEMPTS", "WORKER", "REMARK")
    say_table(headers, rows, indent=2)
    _say_last(found[-1])


def _say_last(submission: Document) -> None:
    """Prints what the last submission said and left."""
    said = entries(submission, "messages")[-SHOWN_MAX:]
    say_lines(
        "what the last one said",
        (
            f"  {moment(one, 'at')}  {safe(one['output'] or '')}  {safe(one['text'])}"
            for one in said
        ),
    )
    values = submission.get("values")
    _say_values(values if isinstance(values, dict) else None)
    attempts = entries(submission, "attempts")
    logs = (log for attempt in attempts for log in texts(attempt, "logs"))
    say_lines("logs of the last one", (f"  {safe(log)}" for log in logs))
