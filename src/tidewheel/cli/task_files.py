"""Tasks and specs that come from files or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tidewheel.client.write_api import new_id
from tidewheel.errors import BadSetting
from tidewheel.exact_json import decode

LINE = "line of the file"
LINE_ACCEPTED = 'a JSON object, such as {"command": "echo hello"}'


def read_tasks(lines: Iterable[str], queue: str) -> list[dict[str, Any]]:
    """One task per line; empty lines are skipped, a bad one is named by its number."""
    tasks = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fields = decode(line)
        except ValueError as error:
            raise BadSetting(
                f"line {number}", line.strip()[:80], f"{LINE_ACCEPTED} ({error})"
            ) from None
        if not isinstance(fields, dict):
            raise BadSetting(f"line {number}", line.strip()[:80], LINE_ACCEPTED)
        # Named here, so that a refusal can be traced to its line.
        tasks.append({"queue": queue, "id": new_id(), **fields, LINE: number})
    return tasks


def lines_of(tasks: Iterable[dict[str, Any]]) -> dict[str, int]:
    """The line of each id, taken off the tasks; of an id that comes twice the last counts."""
    return {str(task["id"]): task.pop(LINE) for task in tasks}


def read_spec(given: str) -> str:
    """The JSON text of a spec: itself, a file's (@FILE), or standard input's (-)."""
    if given == "-":
        return sys.stdin.read()
    if given.startswith("@"):
        return Path(given[1:]).read_text(encoding="utf-8")
    return given
