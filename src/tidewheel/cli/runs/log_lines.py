"""What a person who follows a run from afar is told of its log: begins, ends, and trouble.

The log tells every step of every task (core/operator/run_log.py). Of a run driven in this
terminal a person sees when a task began and how it ended, and why; of one that is driven
elsewhere the same, in the same words (cli/pages/run_progress.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidewheel.quantities import parse_duration, show_duration

# `2030-01-01T00:00:00Z INFO - [1/foo/01:submitted] => running`
_LINE = re.compile(r"\S+T(?P<time>[\d:]+)Z (?P<level>[A-Z]+) - (?P<text>.*)")
_STEP = re.compile(
    r"\[(?P<id>[^/]+/[^/(:]+)[^\]]*?:(?P<before>[a-z-]+)[^\]]*\] => (?P<state>\S.*)"
)
_REASON = re.compile(r"\[(?P<id>[^/]+/[^/(:]+)/\d+\] (?P<why>.*)")
_RETRY = re.compile(r"(?P<id>[^\s\[/]+/\S+) (submit-)?failed: retry \d+ of \d+")
_OF_TASK = re.compile(r"[^\s\[/]+/\S+ ")  # a sentence that begins with a task
_KILLED = re.compile(r".* - \[(?P<id>[^/]+/[^/(:\]]+)[^\]]*\] job killed")
_KILLED_WITHIN = 2  # lines after it failed
# What another line says as well, or what is asked for when the run has stalled.
_SAID_ELSEWHERE = re.compile(
    r"\[[^\]]*\] (failed/\S+|submit-failed|job killed|- retrying in .*)"
    r"|.*, which nothing handles|stalled: .*|stalled for too long"
)
_STALLED = "Workflow stalled"
_STALL_TIMER = re.compile(r"(?P<time>P\S+) stall timer starts NOW")
_SAID = {
    "running": "started",
    "succeeded": "succeeded",
    "failed": "failed",
    "submit-failed": "not started",
    "expired": "expired",
}
_FAILURES = ("failed", "submit-failed")
_TROUBLE = ("WARNING", "ERROR", "CRITICAL")


class LogTelling:
    """Remembers why a job failed until the log says that it did."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self.has_stalled = False  # since somebody last looked
        self.stall_waits = ""  # how long it waits for somebody then

    def lines(self, text: str) -> Iterator[str]:
        """A line for people out of each that matters; what is none of ours stays as it is."""
        found = text.splitlines()
        for number, line in enumerate(found):
            of_log = _LINE.fullmatch(line)
            if of_log is None:
                yield line
                continue
            following = found[number + 1 : number + 1 + _KILLED_WITHIN]
            told = self._told(of_log["level"], of_log["text"], following)
            if told:
                yield f"{of_log['time']} {told}"

    def _told(self, level: str, text: str, following: list[str]) -> str:
        step = _STEP.fullmatch(text)
        if step is None:
            return self._trouble(level, text) if level in _TROUBLE else ""
        task, state = step["id"], step["state"].partition("(")[0]
        word = _SAID.get(state)
        if word is None or state == step["before"]:  # between two, or only held or released
            return ""
        because = self._because(task) if state in _FAILURES else ""
        if state == "failed" and any(_is_killed(task, one) for one in following):
            word = "killed"
        return f"{task} {word}{because}"

    def _because(self, task: str) -> str:
        reason = self._reasons.pop(task, "")
        return f": {reason}" if reason else ""

    def _trouble(self, level: str, text: str) -> str:
        if reason := _REASON.fullmatch(text):
            self._reasons[reason["id"]] = reason["why"]
        elif retry := _RETRY.fullmatch(text):
            return f"{text}{self._because(retry['id'])}"
        elif text == _STALLED:
            self.has_stalled = True
        elif timer := _STALL_TIMER.fullmatch(text):
            self.stall_waits = show_duration(parse_duration(timer["time"]))
        elif not _SAID_ELSEWHERE.fullmatch(text):
            return text if _OF_TASK.match(text) else f"{level.lower()}: {text}"
        return ""


def _is_killed(task: str, line: str) -> bool:
    found = _KILLED.fullmatch(line)
    return found is not None and found["id"] == task
