"""What it means that a new task is for a runner other than bash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidewheel.config import CONTAINER_RUNNERS, RUNNERS, SHELL
from tidewheel.core.queue.resources import NO_RESOURCES, Resources, runner_label
from tidewheel.exact_json import decode
from tidewheel.runners.containers.stage_spec import stage_fields
from tidewheel.runners.slurm.directives import (
    Directives,
    directive_lines,
    head_lines,
    names_of,
    refusal,
    resource_directives,
    with_directives,
)


def for_runner(fields: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of the task as its runner wants them; ValueError says what is wrong.

    What the task asks for becomes directives: Slurm has it, not the worker that submits it. So
    does its time limit, which Slurm counts from when the job begins.
    """
    runner, directives = fields.get("runner"), _directives(fields.get("directives"))
    if runner in (None, SHELL):
        if directives:
            raise ValueError("it has directives and no runner; give runner slurm")
        return given
    if runner not in RUNNERS:
        raise ValueError(f"runner is {runner!r}; accepted is {SHELL} or {' or '.join(RUNNERS)}")
    if runner in CONTAINER_RUNNERS:
        return _for_containers(str(runner), fields, given)
    command = given.get("command")
    if command is None:
        raise ValueError(f"runner {runner} runs commands, and it has none")
    if finding := refusal(directive_lines(directives)) or refusal(head_lines(command)):
        raise ValueError(finding)
    asked: Resources = given.get("resources", NO_RESOURCES)
    lines = [*directive_lines(directives), *head_lines(command)]
    limit = given.get("timeout_seconds")
    needed = resource_directives(asked, limit, names_of(lines))
    placed = {name: value for name, value in given.items() if name != "timeout_seconds"}
    return placed | {
        "command": with_directives(command, (*needed, *directives)),
        "resources": replace(NO_RESOURCES, labels=asked.labels | {runner_label(runner)}),
    }


def _for_containers(
    runner: str, fields: Mapping[str, Any], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """A stage: its spec names the runner and holds the compose file."""
    spec = decode(given["spec"]) if given.get("spec") is not None else {}
    if not isinstance(spec, dict):
        raise ValueError(f"the spec of a task for runner {runner} is an object")
    compose = fields.get("compose") or spec.get("compose")
    if not compose or not isinstance(compose, str):
        raise ValueError(f"runner {runner} needs compose, the text of a compose file")
    asked: Resources = given.get("resources", NO_RESOURCES)
    return dict(given) | {
        **stage_fields(runner, compose, spec),
        "resources": replace(asked, labels=asked.labels | {runner_label(runner)}),
    }


def _directives(given: object) -> Directives:
    match given:
        case None:
            return ()
        case Mapping():
            return tuple((str(name), _said(value)) for name, value in given.items())
        case str():
            raise ValueError(f"directives is {given!r}; accepted is a list or an object")
        case Sequence():
            return tuple(_pair(one) for one in given)
        case _:
            raise ValueError(f"directives is {given!r}; accepted is a list or an object")


def _pair(given: object) -> tuple[str, str]:
    if not isinstance(given, str):
        raise ValueError(f"directives has {given!r}; accepted is a text NAME=VALUE")
    name, _, value = given.strip().partition("=")
    return name.strip(), value.strip()


def _said(value: object) -> str:
    return "" if value is None or value is True else str(value)
