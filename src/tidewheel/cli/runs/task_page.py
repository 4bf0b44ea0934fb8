"""A task of a run as people read it: what it waits for, what it made, how often it ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from tidewheel.cli.output import Row, looking_word, safe, say, say_table
from tidewheel.cli.pages.format import (
    SHOWN_MAX,
    Document,
    documents,
    fact,
    flows_text,
    moment,
    say_lines,
    section,
    state_cell,
    texts,
    took,
)
from tidewheel.cli.runs.reason_lines import say_reasons
from tidewheel.exact_json import encode

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
        say_reasons(documents(page, "why"))
    say_lines(PREREQUISITES, prerequisite_lines(page))
    say_lines(XTRIGGERS, xtrigger_lines(page))
    _say_outputs(page)
    say_lines("verdicts", _verdict_lines(page))
    _say_submissions(page)


def prerequisite_lines(page: Document) -> Iterator[str]:
    """What it waits for, with the state of each parent."""
    found = [*documents(page, "prerequisites"), *documents(page, "suicide")]
    for number, one in enumerate(found):
        suicide = number >= len(documents(page, "prerequisites"))
        sign = "+" if one["satisfied"] else "-"
        hand = "  by hand" if one["by_hand"] else ""
        yield f"  {sign} {safe(one['text'])}{hand}{'  (removes it)' if suicide else ''}"
        for atom in documents(one, "atoms"):
            yield f"      {_atom_text(atom)}"
            missing = [one for one in documents(atom, "members") if not one["made"]]
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
    """What else it waits for, and until when."""
    for one in documents(page, "xtriggers"):
        at = moment(one, "at")
        until = f"  at {at}" if at else ""
        sign = "+" if one["satisfied"] else "-"
        by_hand = ", by hand" if one["by_hand"] else ""
        yield f"  {sign} {safe(one['label'])}  {safe(one['call'])}{by_hand}{until}"


def _say_outputs(page: Document) -> None:
    """Each one, hand-completed ones marked (R001-52)."""
    section("outputs (+ made, - not made)")
    rows: list[Row] = [
        (
            f"{'+' if one['made'] else '-'} {one['output']}",
            str(one["by"]),
            moment(one, "at"),
            ",".join(map(str, cast("list[int]", one["flows"]))),
            _remark(one),
        )
        for one in documents(page, "outputs")
    ]
    say_table(("OUTPUT", "MADE BY", "AT", "FLOWS", "REMARK"), rows, indent=2)


def _remark(output: Document) -> str:
    words = ["required"] if output["required"] else []
    words += ["by hand"] if output["by_hand"] else []
    words += [f"message {output['message']!r}"] if output["message"] != output["output"] else []
    return ", ".join(words)


def _verdict_lines(page: Document) -> Iterator[str]:
    for one in documents(page, "verdicts"):
        yield f"  flow {one['flow']}: {safe(one['verdict'])}; {safe(one['text'])}"


def _say_submissions(page: Document) -> None:
    found = documents(page, "submissions")
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
            str(len(documents(one, "attempts")) or ""),
            str(one["worker"] or ""),
            str(one["error"] or ""),
        )
        for one in found[-SHOWN_MAX:]
    ]
    headers = ("NUMBER", "STATUS", "SUBMITTED", "TOOK", "EXIT", "ATTEMPTS", "WORKER", "REMARK")
    say_table(headers, rows, indent=2)
    _say_last(found[-1])


def _say_last(submission: Document) -> None:
    """What the last one said and left."""
    said = documents(submission, "messages")[-SHOWN_MAX:]
    say_lines(
        "what the last one said",
        (
            f"  {moment(one, 'at')}  {safe(one['output'] or '')}  {safe(one['text'])}"
            for one in said
        ),
    )
    values = submission.get("values")
    if isinstance(values, dict):
        section("values for those after it")
        rows: list[Row] = [(str(name), encode(value)) for name, value in values.items()]
        say_table(("NAME", "VALUE"), rows[:SHOWN_MAX], indent=2)
    attempts = documents(submission, "attempts")
    logs = (log for attempt in attempts for log in texts(attempt, "logs"))
    say_lines("logs of the last one", (f"  {safe(log)}" for log in logs))
