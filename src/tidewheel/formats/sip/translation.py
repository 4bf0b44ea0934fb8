"""Translates a SIP definition into the one model that is compiled and run: a `WorkflowDef`.

A stage is a node at the only point, 1. All dependencies of a stage are one arrow with a
conjunction. A buffer object is a node of its own, which does nothing and waits for a message
from outside with the object's name: so any number of stages can wait for one object and one
stage for many, and `ext-trigger` or a posted object lets them go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from shlex import join, quote
from typing import TypedDict

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph import definition as graph
from tidewheel.core.graph.findings import Position
from tidewheel.core.graph.outputs import FAILED, STARTED, SUBMIT_FAILED, SUCCEEDED
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.formats.sip.model import (
    ObjectDependency,
    SipDefinition,
    Stage,
    StageCondition,
    StageDependency,
    object_node,
)
from tidewheel.formats.sip.placeholders import text_of_value
from tidewheel.formats.sip.stage_renderer import RenderedStage, can_be_variable

ONCE = "R1"
FIRST = Point(1)
ROOT = "root"
PARAMETER = "PARAMETER_"  # and its name: the variable of a parameter
# A stage whose files cannot be rendered when it is due has failed, too, to a person.
OUTPUTS: Mapping[StageCondition, tuple[str, ...]] = {
    StageCondition.COMPLETE: (SUCCEEDED,),
    StageCondition.STARTED: (STARTED,),
    StageCondition.FAILED: (FAILED, SUBMIT_FAILED),
    StageCondition.ABORTED: (FAILED, SUBMIT_FAILED),
    StageCondition.ENDED: (SUCCEEDED, FAILED, SUBMIT_FAILED),
}


def workflow_of(
    definition: SipDefinition, rendered: Mapping[str, RenderedStage]
) -> tuple[graph.WorkflowDef, CyclingReader]:
    """Returns the workflow that a SIP definition describes, and its cycling reader.

    Stages that are rendered have their scripts; the others have one that fails.
    """
    reader = CyclingReader()
    objects = {name: object_node(name) for one in definition.stages for name in one.objects}
    required = _required(definition)
    nodes = {
        one.id: replace(
            stage_node(one, rendered.get(one.id)),
            completion=SUCCEEDED if one.id in required else "",
        )
        for one in definition.stages
    }
    nodes |= {
        node: graph.NodeDef(
            name=node,
            lineage=(node, ROOT),
            run_mode=graph.RunMode.SKIP,
            meta=(("title", f"buffer object {name}"),),
        )
        for name, node in objects.items()
    }
    known = {one.id for one in definition.stages}
    section = graph.GraphSection(
        recurrence=ONCE,
        sequence=reader.recurrence(ONCE, FIRST, FIRST),
        arrows=tuple(_arrows(definition, known)),
        placements=tuple(graph.Placement(name, node.position) for name, node in nodes.items()),
    )
    workflow = graph.WorkflowDef(
        name=definition.id,
        cycling=graph.CyclingDef(style=reader.style, initial=FIRST, final=FIRST),
        sections=(section,),
        nodes=nodes,
        special=graph.SpecialNodes(
            wait_for_message={node: name for name, node in objects.items()}
        ),
    )
    return workflow, reader


def _required(definition: SipDefinition) -> set[str]:
    """Returns the stages that must succeed although others wait only for their end.

    A stage that waits for a failure deals with it; one that waits for the end, to clean up,
    does not.
    """
    waited: dict[str, set[StageCondition]] = {}
    for stage in definition.stages:
        for one in stage.dependencies:
            if isinstance(one, StageDependency):
                waited.setdefault(one.stage, set()).add(one.condition)
    dealt_with = {StageCondition.FAILED, StageCondition.ABORTED}
    return {
        name
        for name, conditions in waited.items()
        if StageCondition.ENDED in conditions and conditions.isdisjoint(dealt_with)
    }


def stage_node(stage: Stage, rendered: RenderedStage | None) -> graph.NodeDef:
    """Returns a stage as a node.

    What a compose file asks for is not in it: the runner reads that.
    """
    return graph.NodeDef(
        name=stage.id,
        lineage=(stage.id, ROOT),
        **stage_parts(stage.id, rendered),
        time_limit_seconds=stage.timeout_seconds,
        resources=stage.asked(),
        meta=(("title", f"{stage.type.value} {stage.version}"),),
        position=stage.position,
    )


class StageParts(TypedDict):
    """Holds the fields of a node that follow from what its stage was rendered to."""

    scripts: graph.Scripts
    environment: graph.Pairs  # only the secrets: all else is in the scripts


def stage_parts(stage: str, rendered: RenderedStage | None) -> StageParts:
    """Returns what a stage brings into its node."""
    secrets = {} if rendered is None else rendered.secrets
    environment = tuple((f"{PARAMETER}{name}", value) for name, value in secrets.items())
    return {"scripts": stage_scripts(stage, rendered), "environment": environment}


def stage_scripts(stage: str, rendered: RenderedStage | None) -> graph.Scripts:
    """Returns the scripts of a stage with a command or script; values in them are quoted.

    A stage of containers, or one that lacks values, gets a script that fails, so that it cannot
    seem to succeed in a shell.
    """
    if rendered is None or not rendered.is_whole:
        return _refusal(f"stage {stage} was not given its values before it was run")
    if rendered.command is not None:
        # A program, never a word of the shell; in a shell of its own, so that others go on.
        main = f"(exec -- {join(rendered.command)})"
    elif rendered.script is not None:
        main = rendered.script
    else:
        return _refusal(f"stage {stage} runs as containers, and this runner has none")
    lines = [f"export {name}={quote(value)}" for name, value in stage_environment(rendered)]
    lines.append(
        f'export TIDEWHEEL_STAGE_DIR="${{TIDEWHEEL_RUN_DIR-}}"/{quote(rendered.folder)}'
    )
    return graph.Scripts(env="\n".join(lines), main=main)


def _refusal(message: str) -> graph.Scripts:
    return graph.Scripts(main=f"echo {quote(message)} >&2\nexit 1")


def stage_environment(rendered: RenderedStage) -> graph.Pairs:
    """Returns the variables of a stage's jobs: parameters and arguments as JSON.

    Each parameter that is no list or mapping has a variable of its own, too; of one that is a
    secret the worker makes it.
    """
    plain = (
        (f"{PARAMETER}{name}", text_of_value(value))
        for name, value in rendered.parameters.items()
        if can_be_variable(name)
        and name not in rendered.secrets
        and not isinstance(value, dict | list)
    )
    return (
        ("TIDEWHEEL_PARAMETERS", text_of_value(dict(rendered.parameters))),
        ("TIDEWHEEL_ARGS", text_of_value(rendered.args)),
        *plain,
    )


def _arrows(definition: SipDefinition, known: set[str]) -> Iterator[graph.Arrow]:
    for stage in definition.stages:
        there: list[tuple[graph.Condition, Position]] = []
        for one in stage.dependencies:
            if isinstance(one, ObjectDependency):
                there.append((graph.Atom(object_node(one.name), SUCCEEDED), one.position))
            elif one.stage in known:
                ends = (graph.Atom(one.stage, output) for output in OUTPUTS[one.condition])
                there.append((graph.any_of(tuple(ends)), one.position))
        if there:
            condition = graph.all_of(tuple(one for one, _ in there))
            yield graph.Arrow(condition, (stage.id,), position=there[0][1])
