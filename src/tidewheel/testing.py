"""Plays workflows on a virtual clock for tests (docs/howto/testing_a_workflow.md).

    from tidewheel.testing import failed, play

    def test_a_model_is_tried_again():
        played = play("ocean/", outcomes={"model": failed(times=1)})
        assert played.status == "completed"
        assert played.ran("2/publish")

Nothing is run or stored, and nobody waits: it is what `tidewheel rehearse` does, with given
outcomes, and with the values that tasks return.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.core.graph.findings import Findings, InvalidDefinition, nearest
from tidewheel.core.queue.task import Instant
from tidewheel.core.queue.values import values_text
from tidewheel.errors import BadSetting, Refused
from tidewheel.formats.flow_cylc.source_loader import SourceOptions
from tidewheel.formats.flow_cylc.template_variables import VariableTexts
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow, LoadOptions, PointTexts
from tidewheel.formats.python_api.function_jobs import values_of
from tidewheel.formats.python_api.workflow import Workflow
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.quantities import parse_duration, show_duration
from tidewheel.services.definitions import load_definition
from tidewheel.services.definitions.python import load_python_workflow
from tidewheel.services.rehearsal.assumptions import (
    AssumedEnd,
    AssumedValues,
    Assumptions,
    named_in_python,
    names_meant,
    point_of,
    point_pattern,
)
from tidewheel.services.rehearsal.play import last_of, rehearse

if TYPE_CHECKING:
    from tidewheel.core.graph.graph import Graph
    from tidewheel.services.rehearsal.record import PlayedSubmission, Rehearsal

__all__ = ["play", "failed", "submit_failed", "succeeded", "Played", "PlayedTask", "TaskEnd"]

TIMES_MAX = 1_000  # that a task fails one after the other
LINES_MAX = 50  # of a text for people


# How tasks end.


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd:
    """Says how a played task ends; `failed`, `submit_failed` and `succeeded` return it."""

    is_success: bool  # whether the task succeeds
    is_submitted: bool = True  # whether its job can be submitted
    times: int | None = None  # how many tries fail, from the first on; None: all
    outputs: tuple[str, ...] | None = None  # the custom outputs that it makes; None: all

    def __post_init__(self) -> None:
        if self.times is not None and not 1 <= self.times <= TIMES_MAX:
            raise BadSetting("times", str(self.times), f"a number from 1 to {TIMES_MAX}")


def failed(*, times: int | None = None, outputs: Iterable[str] = ()) -> TaskEnd:
    """Makes a task fail: at every try, or only at the first `times` tries.

    `outputs` are the custom outputs that the task makes before it fails.
    """
    return TaskEnd(is_success=False, times=times, outputs=_names(outputs))


def submit_failed(*, times: int | None = None) -> TaskEnd:
    """Makes the submission of a task's job fail: at every try, or only at the first `times`
    tries."""
    return TaskEnd(is_success=False, is_submitted=False, times=times, outputs=())


def succeeded(*, outputs: Iterable[str] | None = None) -> TaskEnd:
    """Makes a task succeed. `outputs` are the custom outputs that it makes; without `outputs`
    it makes all of them."""
    return TaskEnd(is_success=True, outputs=None if outputs is None else _names(outputs))


def _names(outputs: Iterable[str]) -> tuple[str, ...]:
    return (outputs,) if isinstance(outputs, str) else tuple(outputs)


# What came of it.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTask:
    """Holds one try of a task: when its job ran, how it ended, and what it was given."""

    id: str  # point and name, such as 2/model
    name: str  # the name of the task
    point: str  # the cycle point of the task
    try_number: int  # 1 for the first try
    status: str  # succeeded, failed, submit-failed; empty if it had not ended when play ended
    start_seconds: float | None  # virtual time of its start, from 0 on; None: no job started
    end_seconds: float | None  # virtual time of its end, from 0 on; None: it did not end
    waited_for: str  # what it waited for last: parent, clock, retry, limit, runahead, …
    parents: tuple[str, ...]  # the tasks whose outputs made it ready
    inputs: Mapping[str, object] = field(default_factory=dict)  # content of $TIDEWHEEL_INPUTS
    variables: Mapping[str, str] = field(default_factory=dict)  # variables of its [[[inputs]]]
    arguments: Mapping[str, object] = field(default_factory=dict)  # those of its function


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Holds what happened when a workflow was played: `assert played.status == …`."""

    status: str  # completed, stalled, stopped, …: the same words as in `tidewheel runs`
    tasks: list[PlayedTask]  # every try, in the order in which they were submitted
    stalled: dict[str, list[str]]  # by task: all reasons why this task stalls the run
    lost: list[str]  # sentences about tasks that will not run
    expired: list[str]  # ids of the tasks that expired
    assumed: list[str]  # sentences about assumptions, such as what an xtrigger returned
    unused: list[str]  # entries of `outcomes` that applied to no task
    seconds: float  # how long the run took in virtual time
    workflow: str  # the name of the workflow
    names: Collection[str]  # names of all tasks; `in` also finds elements of mapped tasks

    def ran(self, task: str) -> bool:
        """Returns whether a job of the task started: `played.ran("2/model")`.

        Raises Refused for a name that the workflow does not have.
        """
        return any(one.start_seconds is not None for one in self.tries(task))

    def tries(self, task: str) -> list[PlayedTask]:
        """Returns every try of a task, in order; the list is empty if there was no try."""
        point, slash, name = task.rpartition("/")
        if not (point and slash):
            raise Refused(
                f"{task!r} is not a task; write its point, too: {_example(self, name)}"
            )
        if name not in self.names:
            near = nearest(name, self.names)
            known = f"did you mean {near!r}?" if near else f"its tasks: {', '.join(self.names)}"
            raise Refused(f"there is no task {name!r} in {self.workflow}; {known}")
        return [one for one in self.tasks if one.id == task]

    def __getitem__(self, task: str) -> PlayedTask:
        """Returns the last try of a task: `played["2/model"].inputs`; KeyError without one."""
        tries = self.tries(task)
        if not tries:
            raise KeyError(f"{task} did not run; {self}")
        return tries[-1]

    @property
    def order(self) -> list[str]:
        """Returns the tasks whose jobs started, each once, in the order of their start."""
        begun = [one for one in self.tasks if one.start_seconds is not None]
        begun.sort(key=lambda one: one.start_seconds or 0.0)
        return list(dict.fromkeys(one.id for one in begun))

    def __str__(self) -> str:
        """Returns what happened, for people: a failed assertion shows it."""
        head = f"{self.workflow} {self.status} after {show_duration(self.seconds)}"
        lines = [
            f"  {one.id} (try {one.try_number}): {one.status or 'runs'}"
            for one in self.tasks[:LINES_MAX]
        ]
        more = len(self.tasks) - LINES_MAX
        lines += [f"  and {more} more"] if more > 0 else []
        for task, reasons in list(self.stalled.items())[:LINES_MAX]:
            lines.append(f"  {task} stalls: {'; '.join(reasons)}")
        lines += [f"  {text}" for text in self.lost[:LINES_MAX]]
        lines += [
            f"  the outcome of {one} applied to no task" for one in self.unused[:LINES_MAX]
        ]
        return "\n".join([head, *lines])

    __repr__ = __str__


def _example(played: Played, name: str) -> str:
    known = [one.id for one in played.tasks if one.name == name] or ["1/model"]
    return known[0]


# Playing.


def play(  # noqa: PLR0913 - each is named where it is given
    definition: str | os.PathLike[str] | Workflow,
    *,
    outcomes: Mapping[str, TaskEnd] | None = None,
    values: Mapping[str, object] | None = None,
    lengths: Mapping[str, str | float | timedelta] | None = None,
    variables: Mapping[str, object] | None = None,
    initial: str | int | None = None,
    final: str | int | None = None,
    until: str | int | None = None,
    at: str | None = None,
    slots: int = 100,
) -> Played:
    """Plays a workflow on a virtual clock until it ends. `definition` is a folder with a
    flow.cylc, a Python file, a `Workflow` or a SIP file.

    `outcomes` says how tasks end, `values` what they return, and `lengths` how long they take.
    Their keys name tasks: `"model"` is the task at every point, `"m*"` a pattern, and the name
    of a family means its members. In `outcomes` and `values` a key can have a point, too:
    `"2/model"`, `"*/m*"`. If several keys match a task, the last one counts. A task without an
    outcome succeeds with all its custom outputs. A task without a length takes as long as its
    `[[[simulation]]]` says, or 10 seconds.

    If `values` is given, tasks return only these values: a task that takes any other value is
    not started, as in a run. If it is not given, every value that a task takes is assumed to
    exist. Give the value of a function as the function returns it: `values={"total": 100}`.

    `variables` are those of a template, or the parameters of a SIP definition. `initial` and
    `final` replace the first and the last point of the definition. No task after the point
    `until` is released. If a workflow has no end, the first ten points are played. `at` is the
    time of the virtual clock at the start, and `slots` is how many jobs run at once.

    Raises InvalidDefinition with all findings if the definition has errors, and Refused if a
    name is not in the definition.
    """
    loaded = _load(definition, variables or {}, initial, final)
    graph = loaded.graph
    assert graph is not None
    asked = _Asked(loaded, graph)
    assumptions = Assumptions(
        lengths=asked.lengths(lengths or {}),
        ends=asked.ends(outcomes or {}),
        values=asked.values(values or {}),
        others_return=values is None,
        slots=slots,
    )
    last = last_of(graph) if until is None else point_of(str(until), loaded)
    begins_at = None
    if at is not None:
        if graph.cycling.is_integer:
            fault = (
                "`at` cannot be given: the points of this workflow are numbers and have no time"
            )
            raise BadSetting("at", at, fault=fault)
        begins_at = Instant(float(point_of(at, loaded)))
    rehearsal = rehearse(graph, assumptions, at=begins_at, until=last)
    if rehearsal.is_cut:
        raise Refused(
            f"{graph.name} would run more than {len(rehearsal.submissions) - 1} tasks; set "
            "an earlier end: until=POINT"
        )
    return _played(rehearsal, loaded)


def _load(
    definition: str | os.PathLike[str] | Workflow,
    variables: Mapping[str, object],
    initial: str | int | None,
    final: str | int | None,
) -> LoadedWorkflow:
    """Returns the definition with its graph; raises InvalidDefinition if it has errors."""
    given = [("initial", initial), ("final", final)]
    points = PointTexts(**{name: str(one) for name, one in given if one is not None})
    how = LoadOptions(
        # Here the clock comes in, for points that are relative to it.
        now=time.time_ns() / 1e9,
        # Who names a folder in a test may run what lies in it.
        source=SourceOptions(variables=VariableTexts(values=variables), code_trusted=True),
        points=points,
    )
    findings = Findings()
    if isinstance(definition, Workflow):
        loaded = load_python_workflow(definition, how, findings)
    else:
        loaded = load_definition(Path(definition), how, findings)
    if loaded.graph is None or findings.has_errors:
        name = definition.name if isinstance(definition, Workflow) else os.fspath(definition)
        raise InvalidDefinition(str(name), findings.sorted())
    return loaded


@dataclass(frozen=True, slots=True)
class _Asked:
    """Reads what a test says about the tasks of one definition."""

    loaded: LoadedWorkflow
    graph: Graph

    def lengths(self, given: Mapping[str, str | float | timedelta]) -> dict[str, float]:
        found: dict[str, float] = {}
        for task, length in given.items():
            point, name = self._read(task)
            if point != "*":
                raise BadSetting("lengths", task, "the name of a task, for all of its points")
            seconds = parse_duration(length, f"length of {task}")
            found |= dict.fromkeys(names_meant(self.graph, name), seconds)
        return found

    def ends(self, given: Mapping[str, TaskEnd]) -> list[AssumedEnd]:
        found: list[AssumedEnd] = []
        for task, end in given.items():
            point, name = self._read(task)
            self._check_outputs(task, name, end.outputs or ())
            tries = (None,) if end.times is None else range(1, end.times + 1)
            said = (not end.is_success, end.outputs, end.is_submitted)
            found += (AssumedEnd(point, name, one, *said) for one in tries)
        return found

    def values(self, given: Mapping[str, object]) -> list[AssumedValues]:
        return [
            AssumedValues(*self._read(task), _body(task, value))
            for task, value in given.items()
        ]

    def _read(self, task: str) -> tuple[str, str]:
        """Returns the patterns of point and name; Refused if no task has such a name."""
        point, slash, name = task.rpartition("/")
        if not name or (slash and not point):
            raise BadSetting("task", task, "NAME or POINT/NAME: model, 3/model, '*/m*'")
        name = named_in_python(self.graph, name)
        if not names_meant(self.graph, name):
            known = [*self.graph.nodes, *self.graph.families]
            near = nearest(name, known)
            meant = f"did you mean {near!r}?" if near else f"its tasks: {', '.join(known)}"
            raise Refused(f"there is no task {name!r} in {self.graph.name}; {meant}")
        return point_pattern(point, self.loaded), name

    def _check_outputs(self, task: str, name: str, outputs: Iterable[str]) -> None:
        for node in names_meant(self.graph, name):
            known = dict(self.graph.nodes[node].definition.outputs)
            for one in outputs:
                if one not in known:
                    has = f"its custom outputs: {', '.join(known)}"
                    has = has if known else "it has no custom outputs"
                    raise Refused(f"{task} has no output {one!r}; {has}")


def _body(task: str, value: object) -> str:
    try:
        return values_text(values_of(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"the value of {task} cannot be stored as JSON: {error}") from None


def _played(rehearsal: Rehearsal, loaded: LoadedWorkflow) -> Played:
    return Played(
        status=str(rehearsal.status),
        tasks=[_task(one, rehearsal, loaded) for one in rehearsal.submissions],
        stalled={rehearsal.id_of(one.key): list(one.reasons) for one in rehearsal.causes},
        lost=list(rehearsal.lost),
        expired=[rehearsal.id_of(key) for key in rehearsal.expired],
        assumed=list(rehearsal.assumed),
        unused=list(rehearsal.unused_ends),
        seconds=rehearsal.makespan_seconds,
        workflow=rehearsal.graph.name,
        names=rehearsal.graph.nodes,
    )


def _task(one: PlayedSubmission, rehearsal: Rehearsal, loaded: LoadedWorkflow) -> PlayedTask:
    task, begin = rehearsal.id_of(one.key), rehearsal.begins_at
    inputs = json.loads(one.inputs.text) if one.inputs.text else {}
    variables, arguments = dict(one.inputs.variables), {}
    if loaded.arguments is not None:
        arguments = loaded.arguments(one.key[1], variables, inputs)
    return PlayedTask(
        id=task,
        name=one.key[1],
        point=task.partition("/")[0],
        try_number=one.try_number,
        status=one.ended,
        start_seconds=None if one.start_at is None else one.start_at - begin,
        end_seconds=None if one.end_at is None else one.end_at - begin,
        waited_for=str(one.waited_for),
        parents=tuple(map(rehearsal.id_of, one.parents)),
        inputs=inputs,
        variables=variables,
        arguments=arguments,
    )
