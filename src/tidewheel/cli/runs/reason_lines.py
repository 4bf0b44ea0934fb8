"""Reasons as people read them: what it is, whether it passes, and the command that helps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime

from tidewheel.cli.output import looking_word, safe, say
from tidewheel.cli.pages.format import Document, documents, flows_text, state_cell, texts
from tidewheel.quantities import show_duration


def say_why(page: Document) -> None:
    """Of each task that was asked for."""
    for number, task in enumerate(documents(page, "tasks")):
        if number:
            say()
        flows = flows_text(task)
        of_flows = f"  flow {flows}" if flows != "none" else ""
        say(f"{safe(task['id'])}  {looking_word(state_cell(task))}{of_flows}")
        reasons = documents(task, "reasons")
        say_reasons(reasons)
        if not reasons:
            say("  nothing keeps it from running")


def say_reasons(reasons: Sequence[Document]) -> None:
    for line in reason_lines(reasons):
        say(line)


def reason_lines(reasons: Sequence[Document]) -> Iterator[str]:
    for one in reasons:
        commands = texts(one, "commands")
        # Nobody is needed where nobody could do anything.
        stays = " (needs somebody)" if commands else ""
        passes = f" (passes by itself{_in_how_long(one)})" if one["passes"] else stays
        yield f"  {safe(one['text'])}{passes}"
        if commands:
            yield f"    {safe('   or   '.join(commands))}"


def _in_how_long(reason: Document) -> str:
    until = reason.get("until")
    left = seconds_until(str(until)) if until else 0.0
    return f", in {show_duration(left)}" if left > 0 else ""


def seconds_until(time_text: str) -> float:
    """From now, by the clock of this machine, to a time as documents have it."""
    return datetime.fromisoformat(time_text).timestamp() - time.time_ns() / 1e9
