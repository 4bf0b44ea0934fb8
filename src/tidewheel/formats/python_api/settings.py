"""Turns what Python code says of a task or family into the values that flow.cylc gives.

Each setting is an item or section of `[runtime]`. Their table, kinds and groups are those of
the flow.cylc reader, so that both front ends make the same node.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from textwrap import dedent
from typing import TypedDict

from tidewheel.core.graph.findings import Findings, Position, meant
from tidewheel.errors import BadSetting
from tidewheel.formats.flow_cylc.items import NAMESPACE, ItemSpec, SectionSpec
from tidewheel.formats.flow_cylc.names import (
    message_problem,
    output_name_problem,
    variable_name_problem,
)
from tidewheel.formats.flow_cylc.values import BadValue, ValueKind, duration_seconds
from tidewheel.formats.python_api.terms import BadStatement
from tidewheel.quantities import REPEATED_MAX, parse_duration, parse_retries

# As Airflow, Celery and Prefect say it.
_RETRY_WORDS = ("retry_delay", "retry_delays", "retry_delay_seconds", "default_retry_delay")

Duration = str | float | timedelta  # "PT10M", "10m", 600 or timedelta(minutes=10)
Retries = int | str | timedelta | Iterable[Duration]  # how often, or the delay before each
Values = dict[str, object]


class Settings(TypedDict, total=False):
    """Every setting of a task, a family or of all tasks."""

    script: str  # the commands of the job, for bash
    run: Iterable[str]  # a command and its arguments, instead of a script
    init_script: str  # commands before all others, also before the task counts as started
    env_script: str  # commands before the environment is set
    pre_script: str  # commands before `script`
    post_script: str  # commands after `script`
    exit_script: str  # commands after a success
    err_script: str  # commands after a failure
    environment: Mapping[str, object]  # variables of the job
    inputs: Mapping[str, str]  # variables with values of earlier tasks: {"FILE": "model.path"}
    outputs: Mapping[str, str]  # custom outputs: the name and the message of each
    # The task is a run of a registered workflow, "imaging/1.2", or of a folder, "./post/".
    workflow: str
    completion: str  # when the task is complete: "succeeded or (failed and saved)"
    retries: Retries  # how many retries after a failure, or their delays
    submission_retries: Retries  # how many retries if a job could not be submitted, or delays
    time_limit: Duration  # how long a job may run before it is ended
    timeout: Duration  # another name for `time_limit`, as in `Client.submit`
    platform: str  # where jobs run: a name in `platforms.toml`
    directives: Mapping[str, object]  # options for a batch system
    work_subdirectory: str  # the folder below `work` in which the job runs
    run_mode: str  # with "skip" the outputs are made without a job
    meta: Mapping[str, str]  # title, description, URL and other information
    # The section of this name in flow.cylc; `_` is a space: events={"mail_events": ["failed"]}.
    events: Mapping[str, object]
    mail: Mapping[str, object]  # the section of this name in flow.cylc
    simulation: Mapping[str, object]  # the section of this name in flow.cylc
    skip: Mapping[str, object]  # the section of this name in flow.cylc
    sequential: bool  # whether the task also waits for the same task at the point before
    wait_for_clock: str  # the task waits until its point's time plus this interval: "PT1H"
    wait_for_message: str  # the task waits until this message is sent to the run from outside
    expire_after: str  # the task expires at its point's time plus this interval: "P1D"


# The item that Python's word stands for: mostly its own, with `_` for blanks and hyphens.
_ITEMS = {name.replace(" ", "_").replace("-", "_"): name for name in NAMESPACE.entries} | {
    "retries": "execution retry delays",
    "submission_retries": "submission retry delays",
    "time_limit": "execution time limit",
    "timeout": "execution time limit",
    "work_subdirectory": "work sub-directory",
    "run": "script",
}
SPECIAL: dict[str, ValueKind] = {
    "sequential": ValueKind.BOOLEAN,
    "wait_for_clock": ValueKind.TEXT,
    "wait_for_message": ValueKind.TEXT,
    "expire_after": ValueKind.TEXT,
}
_NAME_PROBLEMS: dict[str, tuple[str, Callable[[str], str]]] = {
    "environment": ("an environment variable", variable_name_problem),
    "outputs": ("an output", output_name_problem),
}


def read_settings(
    who: str, settings: Mapping[str, object], findings: Findings, position: Position
) -> Values:
    """Returns settings by the names of items; one that cannot be read has a finding instead."""
    for one, other in (("script", "run"), ("time_limit", "timeout")):
        if one in settings and other in settings:
            raise BadStatement(f"{who} has both {one}= and {other}=", "keep one of them")
    values: Values = {}
    for word, value in settings.items():
        if word not in Settings.__annotations__:
            near = get_close_matches(word, Settings.__annotations__, n=1)
            guess = f"did you mean {near[0]}=? " if near else ""
            if word in _RETRY_WORDS:
                guess = 'write the delays into retries=, as in retries=["10s", "1m"]; '
            known = ", ".join(Settings.__annotations__)
            seen = f"{who} has the unknown setting {word}="
            raise BadStatement(seen, f"{guess}expected one of {known}")
        try:
            values[_ITEMS.get(word, word)] = _read(word, value)
        except BadValue as bad:
            findings.error("bad-value", f"{who}: {word}: {bad}", bad.hint, position)
            continue
        _check_names(who, word, value, findings, position)
    return values


def merged(given: Values, own: Values) -> Values:
    """Returns the given settings with own ones in their place; sections are merged by item."""
    values = dict(given)
    for name, value in own.items():
        before = values.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            values[name] = before | value
        else:
            values[name] = value
    return values


def _read(word: str, value: object) -> object:
    if word == "run":
        return shlex.join(_texts(value))
    if word in SPECIAL:
        return _KINDS[SPECIAL[word]](value)
    spec = NAMESPACE.entries[_ITEMS.get(word, word)]
    if isinstance(spec, ItemSpec):
        return _read_item(spec, value)
    return _read_section(spec, value)


def _read_item(spec: ItemSpec, value: object) -> object:
    read = _KINDS[spec.kind](value)
    if spec.choices and read not in spec.choices:
        raise BadValue(f"{read!r} is unknown", f"expected one of {', '.join(spec.choices)}")
    return read


def _read_section(spec: SectionSpec, value: object) -> Values:
    if not isinstance(value, Mapping):
        raise BadValue(f"{value!r} is not a mapping", "write {'name': value}")
    values: Values = {}
    for key, inner in value.items():
        name = key if key in spec.entries else str(key).replace("_", " ")
        entry = spec.entries.get(name)
        if entry is None:
            name, entry = str(key), spec.other
        if not isinstance(entry, ItemSpec):
            hint = meant(name, spec.entries, f"expected one of {', '.join(spec.entries)}")
            raise BadValue(f"there is no {name!r}", hint)
        values[name] = _read_item(entry, inner)
    return values


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        if not hasattr(value, "__fspath__"):
            raise BadValue(f"{value!r} is not a string", "write it in quotes")
        value = str(value)
    return dedent(value).strip() if isinstance(value, str) else str(value)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise BadValue(f"{value!r} is not a list", f"write [{value!r}]")
    return tuple(_text(item) for item in value)


def read_duration(value: object) -> float:
    """Returns a duration in seconds: as flow.cylc or the queue writes it, or a timedelta."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    text = _text(value)
    try:
        return duration_seconds(text)
    except BadValue as bad:
        try:
            return parse_duration(text)
        except BadSetting:
            raise bad from None


def _delays(value: object) -> tuple[float, ...]:
    try:
        retries = parse_retries(value, duration=lambda one, _what: read_duration(one))
    except BadSetting as bad:
        raise BadValue(
            f"{value!r} is neither a count nor a list of delays", f"expected {bad.accepted}"
        ) from None
    if not isinstance(retries, int):
        return retries
    if retries > REPEATED_MAX:
        raise BadValue(f"{retries} retries are too many", f"at most {REPEATED_MAX}")
    return (0.0,) * retries


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadValue(f"{value!r} is neither True nor False")
    return value


def _number(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
    ):
        raise BadValue(f"{value!r} is not a number")
    return float(value)


_KINDS: dict[ValueKind, Callable[[object], object]] = {
    ValueKind.TEXT: _text,
    ValueKind.TEXTS: _texts,
    ValueKind.DURATION: read_duration,
    ValueKind.DURATIONS: _delays,
    ValueKind.BOOLEAN: _boolean,
    ValueKind.NUMBER: _number,
}


def _check_names(
    who: str, word: str, value: object, findings: Findings, position: Position
) -> None:
    if word not in _NAME_PROBLEMS or not isinstance(value, Mapping):
        return
    what, problem_of = _NAME_PROBLEMS[word]
    for name, content in value.items():
        if problem := problem_of(str(name)):
            findings.error("bad-name", f"{who}: {name!r} cannot be {what}", problem, position)
        if word == "outputs" and (problem := message_problem(str(content))):
            seen = f"{who}: {content!r} cannot be the message of output {name!r}"
            findings.error("bad-value", seen, problem, position)
