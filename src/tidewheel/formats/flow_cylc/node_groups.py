"""Groups of a node's settings, each made from the values of the items that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tidewheel.core.graph.node import (
    Events,
    Mail,
    NodePlace,
    Pairs,
    Retries,
    RunMode,
    Scripts,
    Simulation,
    Skip,
    StatePolling,
)
from tidewheel.formats.flow_cylc.checker import Values
from tidewheel.formats.flow_cylc.items import TASK_EVENTS

SCRIPT_ITEMS = {
    "init-script": "init",
    "env-script": "env",
    "pre-script": "pre",
    "script": "main",
    "post-script": "post",
    "exit-script": "on_exit",
    "err-script": "on_error",
}
_NOTHING: Values = {}


def _section(values: Values, name: str) -> Values:
    return cast("Values", values.get(name, _NOTHING))


def _text(values: Values, name: str) -> str:
    return cast("str", values.get(name) or "")


def _texts(values: Values, name: str) -> tuple[str, ...]:
    return cast("tuple[str, ...]", values.get(name) or ())


def _seconds(values: Values, name: str) -> float | None:
    return cast("float | None", values.get(name))


def _delays(values: Values, name: str) -> tuple[float, ...]:
    return cast("tuple[float, ...]", values.get(name) or ())


def _is_on(values: Values, name: str) -> bool:
    """Unless it was switched off."""
    value = values.get(name)
    return True if value is None else bool(value)


def pairs(values: Values) -> Pairs:
    return cast("Pairs", tuple(values.items()))


def scripts(values: Values) -> Scripts:
    return Scripts(
        **{
            field: cast("str", values[item])
            for item, field in SCRIPT_ITEMS.items()
            if item in values
        }
    )


def environment(values: Values) -> Pairs:
    """Returns the variables that `[[[environment filter]]]` leaves.

    An empty `include` lets everything in.
    """
    variables = _section(values, "environment")
    chosen = _section(values, "environment filter")
    if chosen:
        include, exclude = _texts(chosen, "include"), _texts(chosen, "exclude")
        variables = {
            name: value
            for name, value in variables.items()
            if (not include or name in include) and name not in exclude
        }
    return pairs(variables)


def events(values: Values) -> Events:
    own = _section(values, "events")
    handlers = [("", _texts(own, "handlers"))]
    handlers += [(event, _texts(own, f"{event} handlers")) for event in TASK_EVENTS]
    return Events(
        handlers=tuple((event, commands) for event, commands in handlers if commands),
        handled_events=_texts(own, "handler events"),
        handler_retry_delays=_delays(own, "handler retry delays"),
        mail_events=_texts(own, "mail events"),
        execution_timeout_seconds=_seconds(own, "execution timeout"),
        submission_timeout_seconds=_seconds(own, "submission timeout"),
        late_offset_seconds=_seconds(own, "late offset"),
    )


def mail(values: Values) -> Mail:
    own = _section(values, "mail")
    return Mail(sender=_text(own, "from"), to=_text(own, "to"))


def simulation(values: Values) -> Simulation:
    own = _section(values, "simulation")
    length = _seconds(own, "default run length")
    buffer = _seconds(own, "time limit buffer")
    return Simulation(
        run_seconds=10.0 if length is None else length,
        speedup_factor=_seconds(own, "speedup factor"),
        time_limit_buffer_seconds=30.0 if buffer is None else buffer,
        fail_points=_texts(own, "fail cycle points"),
        fail_first_try_only=_is_on(own, "fail try 1 only"),
        handlers_disabled=_is_on(own, "disable task event handlers"),
    )


def skip(values: Values) -> Skip:
    own = _section(values, "skip")
    return Skip(
        outputs=_texts(own, "outputs"),
        handlers_disabled=_is_on(own, "disable task event handlers"),
    )


def polling(values: Values) -> StatePolling:
    own = _section(values, "workflow state polling")
    return StatePolling(
        interval_seconds=_seconds(own, "interval"),
        polls_max=cast("int | None", own.get("max-polls")),
        message=_text(own, "message"),
        run_directory=_text(own, "alt-cylc-run-dir"),
    )


def retries(values: Values) -> Retries:
    return Retries(
        execution=_delays(values, "execution retry delays"),
        submission=_delays(values, "submission retry delays"),
    )


def place(values: Values) -> NodePlace:
    job, remote = _section(values, "job"), _section(values, "remote")
    return NodePlace(
        platform=_text(values, "platform"),
        directives=pairs(_section(values, "directives")),
        work_subdirectory=_text(values, "work sub-directory"),
        batch_system=_text(job, "batch system"),
        batch_submit_command=_text(job, "batch submit command template"),
        remote_host=_text(remote, "host"),
        remote_owner=_text(remote, "owner"),
    )


# The field of a node, how it is made, and the items that it is made from.
GROUPS: Mapping[str, tuple[Callable[[Values], object], tuple[str, ...]]] = {
    "scripts": (scripts, tuple(SCRIPT_ITEMS)),
    "environment": (environment, ("environment", "environment filter")),
    "outputs": (lambda values: pairs(_section(values, "outputs")), ("outputs",)),
    "completion": (lambda values: _text(values, "completion"), ("completion",)),
    "run_mode": (lambda values: RunMode(_text(values, "run mode") or "live"), ("run mode",)),
    "retries": (retries, ("execution retry delays", "submission retry delays")),
    "time_limit_seconds": (
        lambda values: _seconds(values, "execution time limit"),
        ("execution time limit",),
    ),
    "place": (place, ("platform", "directives", "work sub-directory", "job", "remote")),
    "meta": (lambda values: pairs(_section(values, "meta")), ("meta",)),
    "events": (events, ("events",)),
    "mail": (mail, ("mail",)),
    "simulation": (simulation, ("simulation",)),
    "skip": (skip, ("skip",)),
    "polling": (polling, ("workflow state polling",)),
}
GROUP_OF = {item: group for group, (_, items) in GROUPS.items() for item in items}
