"""Translates a SIP definition into the one model that is compiled and run: a `WorkflowDef`.

A stage is a node at the only point, 1. All dependencies of a stage are one arrow with a
conjunction. A buffer object is a node of its own, which does nothing and waits for a message
from outside with the object's name: so any number of stages can wait for one object and one
stage for many, and `ext-trigger` or a posted object lets them go.

A stage with for_each is a mapped task (`docs/decisions/0061`): those after it wait for all of
its elements, and those over the same elements each for its own. A list that is known before the
run has a node of its own, which waits for what the stage waits for and tells how many elements
there are. A stage that is switched off is a node that is skipped.
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
from tidewheel.formats.sip.lists import mapped_over
from tidewheel.formats.sip.model import (
    LIST_PREFIX,
    ObjectDependency,
    SipDefinition,
    Stage,
    StageCondition,
    StageDependency,
    object_node,
)
from tidewheel.formats.sip.placeholders import text_of_value
from tidewheel.formats.sip.stage_renderer import RenderedStage, can_be_variable
from tidewheel.lazy_dataclasses import dataclass

ONCE = "R1"
FIRST = Point(1)
ROOT = "root"
SWITCHED_OFF = "switched off"
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
    mapped = {
        one.id: mapped_over(definition, one) for one in definition.stages if one.is_mapped
    }
    objects = {name: object_node(name) for one in definition.stages for name in one.objects}
    required = _required(definition)
    nodes = {
        one.node: replace(
            stage_node(one, rendered.get(one.id)),
            completion=SUCCEEDED if one.id in required else "",
            until=_served(definition, one),
        )
        for one in definition.stages
    }
    nodes |= {node: _skipped(node, f"buffer object {name}") for name, node in objects.items()}
    lists = {
        LIST_PREFIX + one.id: one
        for one in definition.stages
        if LIST_PREFIX + one.id in {over.source for over in mapped.values()}
    }
    nodes |= {
        node: _skipped(node, f"the list of stage {one.id}") for node, one in lists.items()
    }
    arrows = _Arrows(definition, mapped)
    section = graph.GraphSection(
        recurrence=ONCE,
        sequence=reader.recurrence(ONCE, FIRST, FIRST),
        arrows=tuple(arrows.all(lists)),
        placements=tuple(graph.Placement(name, node.position) for name, node in nodes.items()),
    )
    workflow = graph.WorkflowDef(
        name=definition.id,
        cycling=graph.CyclingDef(
            style=replace(reader.style, is_unwritten=True), initial=FIRST, final=FIRST
        ),
        sections=(section,),
        nodes=nodes,
        special=graph.SpecialNodes(
            wait_for_message={node: name for name, node in objects.items()}
        ),
        mapped={one.node: mapped[one.id] for one in definition.stages if one.id in mapped},
    )
    return workflow, reader


def _served(definition: SipDefinition, stage: Stage) -> tuple[str, ...]:
    """Returns the nodes until whose ends a stage runs; none if it is no service."""
    named = (definition.stage(one.stage) for one in stage.until if stage.is_on)
    return tuple(dict.fromkeys(one.node for one in named if one is not None))


def _skipped(node: str, title: str) -> graph.NodeDef:
    """Returns a node that only waits."""
    return graph.NodeDef(
        name=node,
        lineage=(node, ROOT),
        run_mode=graph.RunMode.SKIP,
        meta=(("title", title),),
    )


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
    title = f"{stage.type.value} {stage.version}"
    if not stage.is_on:
        off = graph.Skip(remark=SWITCHED_OFF)
        skipped = _skipped(stage.id, f"{title}, {SWITCHED_OFF}")
        return replace(skipped, skip=off, position=stage.position)
    if stage.is_mapped:  # each element is rendered when it is due
        rendered = None
    return graph.NodeDef(
        name=stage.node,
        lineage=(stage.node, ROOT),
        **stage_parts(stage.id, rendered),
        time_limit_seconds=stage.timeout_seconds,
        resources=stage.asked(),
        meta=(("title", title),),
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
        return _refusal(f"stage {stage} was started without its values")
    if rendered.command is not None:
        # A program, never a word of the shell; in a shell of its own, so that others go on.
        main = f"(exec -- {join(rendered.command)})"
    elif rendered.script is not None:
        main = rendered.script
    else:
        return _refusal(f"stage {stage} runs in containers, which this runner cannot start")
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


@dataclass(frozen=True, slots=True)
class _Arrows:
    """Makes the arrows of a definition; ``mapped`` says of which lists stages are made."""

    definition: SipDefinition
    mapped: Mapping[str, graph.MappedOver]

    def all(self, lists: Mapping[str, Stage]) -> Iterator[graph.Arrow]:
        """Yields the arrows to all stages, and to the lists that are known before the run."""
        gates = {one.id: node for node, one in lists.items()}
        for stage in self.definition.stages:
            gate = gates.get(stage.id)
            there = list(self._dependencies(stage, {stage.id}, pairs=gate is None))
            target = stage.node if gate is None else gate
            if there:
                condition = graph.all_of(tuple(dict.fromkeys(one for one, _ in there)))
                yield graph.Arrow(condition, (target,), position=there[0][1])
            if gate is not None and stage.is_mapped:
                begun = graph.Atom(gate, SUCCEEDED)
                yield graph.Arrow(begun, (stage.node,), position=stage.position)

    def _dependencies(
        self, stage: Stage, seen: set[str], *, pairs: bool
    ) -> Iterator[tuple[graph.Condition, Position]]:
        """Yields what a stage waits for; with ``pairs``, each of its elements for its own.

        ``seen`` are the stages whose dependencies are among it already.
        """
        for one in stage.dependencies:
            if isinstance(one, ObjectDependency):
                yield graph.Atom(object_node(one.name), SUCCEEDED), one.position
            elif (parent := self.definition.stage(one.stage)) is not None:
                over = self.mapped.get(parent.id)
                if pairs and self.definition.are_alongside(stage, parent):
                    over = None
                for condition in self._on_stage(parent, over, one, seen):
                    yield condition, one.position

    def _on_stage(
        self,
        parent: Stage,
        over: graph.MappedOver | None,
        one: StageDependency,
        seen: set[str],
    ) -> Iterator[graph.Condition]:
        """Yields what a dependency asks of a stage, or of all elements ``over`` a list."""
        outputs = OUTPUTS[one.condition]
        if over is None:
            yield graph.any_of(tuple(graph.Atom(parent.node, output) for output in outputs))
            return
        every = one.condition in (StageCondition.COMPLETE, StageCondition.ENDED)
        group = graph.Group(parent.node, outputs, every)
        if one.condition is StageCondition.STARTED:  # or there is nothing to be started
            done = graph.Group(parent.node, OUTPUTS[StageCondition.COMPLETE], True)
            yield graph.any_of((group, done))
        else:
            yield group
        is_any = one.condition in (StageCondition.FAILED, StageCondition.ABORTED)
        if not is_any and over.source != LIST_PREFIX + parent.id and parent.id not in seen:
            # A stage of no elements is complete when what it waits for has happened.
            seen.add(parent.id)
            told = graph.Atom(over.source, SUCCEEDED)  # the group waits for it anyway
            behind = self._dependencies(parent, seen, pairs=False)
            yield from (condition for condition, _ in behind if condition != told)
