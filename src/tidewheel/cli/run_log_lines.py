"""What a person who follows a run from afar is told of its log: begins, ends, and trouble.

The log tells every step of every task (core/runs/run_log.py). Of a run that is driven in this
terminal a person sees when a task began and how it ended; of one that is driven elsewhere, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# `2030-01-01T00:00:00Z INFO - [1/foo/01:submitted] => running`
_LINE = re.compile(r"\S+T(?P<time>[\d:]+)Z (?P<level>[A-Z]+) - (?P<text>.*)")
_STEP = re.compile(r"\[(?P<id>[^/]+/[^/(:]+)[^\]]*\] => (?P<state>\S.*)")
_SAID = {
    "running": "started",
    "succeeded": "succeeded",
    "failed": "failed",
    "submit-failed": "submission failed",
    "expired": "expired",
}
_TROUBLE = ("WARNING", "ERROR", "CRITICAL")


def told_lines(text: str) -> Iterator[str]:
    """A line for people out of each that matters; what is no line of ours is left as it is."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            yield line
        elif found["level"] in _TROUBLE:
            yield f"{found['time']} {found['level'].lower()}: {found['text']}"
        elif step := _STEP.fullmatch(found["text"]):
            word = _SAID.get(step["state"].partition("(")[0])
            if word is not None:
                yield f"{found['time']} {step['id']} {word}"
