"""How people name tasks: `2/foo`, the seeds' `foo.2`, globs, `*/foo:failed` (SEMANTICS §8).

Here a text is taken apart; what it means in a run is decided in `selecting`.
"""

from __future__ import annotations

from typing import NamedTuple

from tidewheel.core.sched.task_state import Stage, Standing, Task
from tidewheel.errors import Refused

_SUBMIT_PARTS = 3  # POINT/NAME/SUBMIT

# Every word by which tasks can be chosen, and what is accepted in its place.
STATUS_WORDS = (
    "waiting",
    "held",
    "runahead",
    "ready",
    "pending",
    "blocked",
    "active",
    "preparing",
    "submitted",
    "running",
    "incomplete",
    "succeeded",
    "failed",
    "submit-failed",
    "expired",
)
_OTHER_WORDS = {"queued": "ready", "unreleased": "runahead"}

_OF_STANDING = {
    Standing.UNRELEASED: "runahead",
    Standing.PENDING: "pending",
    Standing.READY: "ready",
    Standing.BLOCKED: "blocked",
}


class WrittenId(NamedTuple):
    """An id as it was written: `name` "" is every task of the point; `status` "" is any."""

    text: str
    point: str
    name: str
    status: str = ""
    submit: int | None = None

    @property
    def has_plain_point(self) -> bool:
        return not is_glob(self.point)

    @property
    def has_plain_name(self) -> bool:
        return bool(self.name) and not is_glob(self.name)


def is_glob(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def read_id(text: str) -> WrittenId:
    """`POINT/NAME[:STATUS]`, `POINT/NAME/SUBMIT`, `NAME.POINT` or `POINT`."""
    written = text.strip().removeprefix("//").rstrip("/")
    if not written:
        raise Refused(f"{text!r} is no task id; write POINT/NAME, such as 2/foo")
    parts = written.split("/")
    if len(parts) > _SUBMIT_PARTS or not all(parts):
        raise Refused(f"{text!r} is no task id; write POINT/NAME, such as 2/foo or */foo")
    if len(parts) == 1:
        return _without_slash(text, written)
    point, of_point = _selector(parts[0])
    name, of_name = _selector(parts[1])
    submit = _submit(text, parts[2]) if len(parts) == _SUBMIT_PARTS else None
    return WrittenId(text, point, name, of_name or of_point, submit)


def _without_slash(text: str, written: str) -> WrittenId:
    bare, status = _selector(written)
    name, dot, point = bare.rpartition(".")
    if dot and name and point:
        return WrittenId(text, point, name, status)
    return WrittenId(text, bare, "", status)


def _selector(part: str) -> tuple[str, str]:
    """A point may have colons of its own, so only a word for a status is one."""
    head, colon, word = part.rpartition(":")
    if not colon or not head or word.isdigit() or word[:1].isdigit():
        return part, ""
    word = _OTHER_WORDS.get(word, word)
    if word not in STATUS_WORDS and not is_glob(word):
        words = ", ".join(STATUS_WORDS)
        raise Refused(f"{part!r}: tasks can be chosen by {words}, not by {word!r}")
    return head, word


def _submit(text: str, part: str) -> int:
    if not part.isdigit():
        raise Refused(f"{text!r}: the third part of an id is a submit number, not {part!r}")
    return int(part)


def status_words(task: Task) -> tuple[str, ...]:
    """Every word that fits a pooled task."""
    words = []
    if task.stage is Stage.WAITING:
        words.append("waiting")
    elif task.stage is Stage.INCOMPLETE:
        words += [task.ended, "incomplete"]
    else:
        words += [task.stage.name.lower(), "active"]
    if task.held:
        words.append("held")
    word = _OF_STANDING.get(task.standing)
    if word is not None:
        words.append(word)
    return tuple(words)
