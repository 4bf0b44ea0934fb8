"""What was asked of a run, as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tidewheel.cli.output import Row, note, say_table
from tidewheel.cli.pages.format import Document, documents, moment


def say_history(page: Document) -> None:
    """Newest first."""
    commands = documents(page, "commands")
    if not commands:
        note("nobody has asked anything of this run yet")
        return
    rows: list[Row] = [
        (
            str(one["number"]),
            moment(one, "at"),
            str(one["who"]),
            command_text(one),
            _became(one),
        )
        for one in commands
    ]
    say_table(("NUMBER", "TIME", "WHO", "COMMAND", "OUTCOME"), rows)


def command_text(one: Document) -> str:
    """`trigger 1/foo flow=new`."""
    arguments = dict(cast("Mapping[str, object]", one["arguments"]))
    words = [str(one["verb"]), *cast("list[str]", arguments.pop("ids", []))]
    for name, value in arguments.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words.append(name if value is True else f"{name}={text}")
    return " ".join(words)


def _became(one: Document) -> str:
    if one["refused"] is not None:
        return f"refused: {one['refused']}"
    return "waits" if one["answered_at"] is None else "done"
