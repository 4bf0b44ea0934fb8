"""Checks a submitted task against the rules and tells every finding at once, in words."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import get_type_hints

from tidewheel.core.queue.dependency import output_finding
from tidewheel.core.queue.limits import EACH_KEY
from tidewheel.core.queue.requests import Report
from tidewheel.core.queue.resources import resource_findings
from tidewheel.core.queue.retry import DELAY_SECONDS_MAX, retry_findings
from tidewheel.core.queue.secret_references import reference_findings
from tidewheel.core.queue.task import PRIORITY_MAX, AlikeTasks, NewTask, TaskId
from tidewheel.errors import InvalidTask, PayloadTooLarge, Refused
from tidewheel.lazy_dataclasses import dataclass, pattern

NAME_LENGTH_MAX = 256
DEPENDENCIES_MAX = 10_000  # needs of one task; continuations are as many
MESSAGES_MAX = 10_000  # of one attempt
MESSAGES_BYTES_MAX = 16 * 1024 * 1024  # of all messages of one attempt together
MESSAGE_BYTES_MAX = 64 * 1024
COUNT_MAX = 1_000_000  # retries and lapses: a bound on everything
OWN_VARIABLES = "TIDEWHEEL_"  # how those begin that tell a job what it is
_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*")
ALIKE_MIN = 2  # of tasks that are worth being recognised as alike
DIGITS_MAX = 4_300  # of a number in JSON; Python itself reads no more


class LongNumber(ValueError):
    """A number with more digits than anybody wants to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitLimits:
    """Holds how much a client, or a job, may store at once."""

    payload_bytes_max: int = 256 * 1024  # of each payload of a task, as JSON
    tasks_per_call_max: int = 100_000  # in one submission
    message_bytes_max: int = MESSAGE_BYTES_MAX  # of one message of an attempt


def refusal(task: NewTask, limits: SubmitLimits) -> Refused | None:
    """Returns why a task is not accepted; None if it is."""
    texts = [
        (what, text)
        for what, text in zip(_PAYLOAD, _payload(task), strict=True)
        if text is not None
    ]
    for what, text in texts:
        size = utf8_length(text)
        if size > limits.payload_bytes_max:
            return PayloadTooLarge(
                f"{what} of task {task.id!r}", size, limits.payload_bytes_max
            )
    findings = [
        *(finding for what, text in texts if (finding := _text_finding(what, text))),
        *_spec_findings(task.spec),
        *_environment_findings(task),
        *_name_findings(task),
        *number_findings(task),
        *_edge_findings(task),
        *resource_findings(task.resources),
        *retry_findings(task.retry),
    ]
    if task.command is not None and task.handler is not None:
        findings.append("it has both a command and a handler; give one of them")
    return InvalidTask(task.id, findings) if findings else None


def acceptable_alike(tasks: Sequence[NewTask], limits: SubmitLimits) -> AlikeTasks | None:
    """Returns tasks that say the same but for their ids and specs as such; None if they do not,
    or if one of them does not keep the rules: ``refusal`` says which."""
    alike = tasks if isinstance(tasks, AlikeTasks) else _recognised(tasks)
    return alike if alike is not None and _keep_the_rules(alike, limits) else None


def _keep_the_rules(tasks: AlikeTasks, limits: SubmitLimits) -> bool:
    """Says whether each of these tasks keeps the rules by itself, with an id of its own."""
    if refusal(tasks.said, limits) is not None:
        return False
    if not tasks.ids_are_new and (
        len(set(tasks.ids)) < len(tasks) or any(name_finding("id", one) for one in tasks.ids)
    ):
        return False
    specs, most = tasks.specs or (), limits.payload_bytes_max
    # No character has more than four bytes: only those that come near it are counted.
    if any(utf8_length(one) > most for one in specs if 4 * len(one) > most):
        return False
    return tasks.specs_are_json or not any(
        _text_finding("spec", one) or _spec_findings(one) for one in specs
    )


def run_refusal(task: NewTask) -> InvalidTask | None:
    """Returns why a client may not submit this task: it names a run; None if it does not.

    A run knows only of submissions that its scheduler made in a batch.
    """
    if task.run is None:
        return None
    return InvalidTask(task.id, [f"run is {task.run}; only the scheduler of a run sets it"])


def message_refusal(report: Report, limits: SubmitLimits) -> PayloadTooLarge | None:
    """Returns the error for the first message of a report that is too long; None if none is."""
    for message in report.messages:
        size = utf8_length(message.text)
        if size > limits.message_bytes_max:
            what = f"message {message.number} of task {report.holder.task_id!r}"
            return PayloadTooLarge(what, size, limits.message_bytes_max)
    return None


def name_finding(what: str, text: str) -> str | None:
    """Returns what is wrong with a name that somebody chose, in words; None if nothing is.

    One rule holds for every such name: printable, not empty, not too long.
    """
    if not text.strip():
        return f"{what} is empty; give 1 to {NAME_LENGTH_MAX} printable characters"
    if len(text) > NAME_LENGTH_MAX:
        return f"{what} has {len(text)} characters; expected up to {NAME_LENGTH_MAX}"
    if not text.isprintable():
        return f"{what} {text!r} has characters that cannot be printed; leave them out"
    return None


def is_glob(text: str) -> bool:
    """Says whether a text stands for all names that fit it, rather than for itself."""
    return any(mark in text for mark in "*?[")


def utf8_length(text: str) -> int:
    """Returns how many bytes a text has in UTF-8, as which it is stored."""
    return len(text.encode(errors="replace"))


def _text_finding(what: str, text: str) -> str | None:
    if "\0" in text:
        return f"{what} has a NUL character, which neither bash nor PostgreSQL can hold"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"{what} has half of a surrogate pair at position {error.start}; send valid Unicode"
        )
    return None


def _spec_findings(spec: str | None) -> list[str]:
    """Returns what is wrong with a spec as JSON; nothing else is asked of it here."""
    if spec is None:
        return []
    decoder = _JSON if len(spec) > DIGITS_MAX else _SHORT_JSON
    try:
        if decoder.raw_decode(spec)[1] == len(spec):  # as of nearly all
            return []
    except (ValueError, RecursionError):
        pass  # what is wrong, if anything is, is told below
    try:
        if spec.startswith(_BYTE_ORDER_MARK):
            json.loads(spec)  # which says so
        decoder.decode(spec)
    except RecursionError:
        return ["spec is nested too deeply"]
    except LongNumber as error:
        return [f"spec: {error}"]
    except ValueError as error:
        return [f"spec is not valid JSON: {error}"]
    return []


def _environment_findings(task: NewTask) -> list[str]:
    if task.environment is None:
        return []
    try:
        given = json.loads(task.environment)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not all(isinstance(one, str) for one in given.values()):
        return ['environment is not an object of strings; expected {"NAME": "VALUE"}']
    findings = (
        []
        if task.command is not None
        else ["environment needs a command, and this task has none"]
    )
    for name, value in given.items():
        if not _VARIABLE.fullmatch(name) or name.startswith(OWN_VARIABLES):
            findings.append(
                f"environment has {name!r}; expected letters, digits and _, no digit "
                f"first, and nothing that begins with {OWN_VARIABLES}"
            )
        if finding := _text_finding(f"{name} of the environment", value):
            findings.append(finding)
    return findings + reference_findings(given)


def checked_digits(digits: str) -> str:
    """Returns the digits of an integer; raises LongNumber if there are too many."""
    if len(digits.lstrip("-")) > DIGITS_MAX:
        raise LongNumber(
            f"a number has more than {DIGITS_MAX} digits, which is too long to be read; "
            "send it as a string"
        )
    return digits


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


_BYTE_ORDER_MARK = "\ufeff"
# Made once: to make it takes longer than to read a spec.
_JSON = json.JSONDecoder(
    parse_int=checked_digits, parse_float=str, parse_constant=_refuse_constant
)
_SHORT_JSON = json.JSONDecoder(parse_constant=_refuse_constant)  # where no number is too long


# Which rule a field is checked by follows from its type.
_KINDS = get_type_hints(NewTask)
_PAYLOAD = ("spec", "command", "environment")  # texts that are no names
_NAMES = tuple(
    name
    for name, kind in _KINDS.items()
    if kind in (str, TaskId, str | None) and name not in _PAYLOAD
)
_COUNTS = tuple(name for name, kind in _KINDS.items() if kind is int)
_LIMITS = tuple(name for name, kind in _KINDS.items() if kind == float | None)
_DELAYS = tuple(name for name, kind in _KINDS.items() if kind is float)
_names, _counts, _limits, _delays, _payload = (
    attrgetter(*names) for names in (_NAMES, _COUNTS, _LIMITS, _DELAYS, _PAYLOAD)
)


_OF_ALL = tuple(name for name in _KINDS if name not in ("id", "spec", "retry", "resources"))
_COUNTED = tuple(name for name in _OF_ALL if _KINDS[name] not in (str, str | None))
_of_all, _counted = attrgetter(*_OF_ALL), attrgetter(*_COUNTED)


def _recognised(tasks: Sequence[NewTask]) -> AlikeTasks | None:
    """Returns tasks that say the same but for their ids and specs as such; None if they do
    not, or if one needs a look of its own."""
    if len(tasks) < ALIKE_MIN or type(first := tasks[0]) is not NewTask:
        return None
    ties = (first.run, first.name, first.unique_key, *first.needs, *first.continuations)
    if any(one is not None for one in ties) or first.armed is not True:
        return None
    said, retry, resources = _of_all(first), first.retry, first.resources
    kinds = [*map(type, _counted(first))]  # True is equal to 1, and nothing else is alike
    for task in tasks:
        if (
            type(task) is not NewTask
            or task.retry is not retry
            or task.resources is not resources
            or _of_all(task) != said
            or [*map(type, _counted(task))] != kinds
        ):
            return None
    specs = [task.spec for task in tasks if task.spec is not None]
    if len(specs) not in (0, len(tasks)) or not first.executes:
        return None
    bare = replace(first, spec=None)
    return AlikeTasks(bare, [task.id for task in tasks], specs or None)


def _name_findings(task: NewTask) -> list[str]:
    named = zip(_NAMES, _names(task), strict=True)
    found = [name_finding(what, text) for what, text in named if text is not None]
    found += [name_finding("output of a need", need.output) for need in task.needs]
    if task.limit_key == EACH_KEY:
        found.append(f"limit_key is {EACH_KEY!r}, which stands for every key; choose another")
    return [finding for finding in found if finding is not None]


def number_findings(task: NewTask) -> list[str]:
    """Returns what is wrong with the numbers of a task; each finding begins with the field."""
    findings = []
    for what, count in zip(_COUNTS, _counts(task), strict=True):
        most = PRIORITY_MAX if what == "priority" else COUNT_MAX
        if not _is_whole(count, most):
            findings.append(f"{what} is {count!r}; expected a whole number, 0 to {most}")
    for what, seconds in zip(_LIMITS, _limits(task), strict=True):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            findings.append(
                f"{what} is {seconds!r}; expected more than 0; for no limit, leave it out"
            )
    for what, seconds in zip(_DELAYS, _delays(task), strict=True):
        if not 0 <= seconds <= DELAY_SECONDS_MAX:
            findings.append(f"{what} is {seconds!r}; expected 0 to {DELAY_SECONDS_MAX:.0f}")
    return findings


def _is_whole(number: object, most: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= most


def _edge_findings(task: NewTask) -> list[str]:
    findings: list[str] = []
    if not task.needs and not task.continuations:
        return findings
    for what, count in (("needs", len(task.needs)), ("continuations", len(task.continuations))):
        if count > DEPENDENCIES_MAX:
            findings.append(f"it has {count} {what}; expected up to {DEPENDENCIES_MAX}")
    if any(need.task_id == task.id for need in task.needs) or task.id in task.continuations:
        findings.append("it depends on itself; remove this dependency")
    wrong = (output_finding(need.task_id, need.output) for need in task.needs)
    findings += [finding for finding in wrong if finding is not None]
    doubled = [name for name, times in Counter(task.continuations).items() if times > 1]
    if doubled:
        findings.append(f"continuations name {', '.join(doubled)} more than once")
    doubled = [need.task_id for need, times in Counter(task.needs).items() if times > 1]
    if doubled:
        findings.append(f"needs name {', '.join(doubled)} more than once")
    return findings
