"""Makes the task of a stage that runs as containers; apart, since only SIP runs load all this.

Either engine will do, unless a stage is for several nodes or for nodes with a label: those only
a Swarm has; or its file says what no Swarm does. A label is one of its nodes; where a stage
names several, no node has all of them, and the compose file says which service goes where.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidewheel.config import SWARM, runner_labels
from tidewheel.core.graph.definition import NodeDef
from tidewheel.core.queue.resources import Resources, runner_label
from tidewheel.formats.sip.model import SipDefinition, Stage
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.containers.needs import asked_of_host, need_labels, runner_for
from tidewheel.runners.containers.stage_spec import NETWORK_KEY, stage_fields

if TYPE_CHECKING:
    from tidewheel.formats.sip.stage_renderer import RenderedStage
    from tidewheel.services.definitions.sip import StageSource


def runner_of(stage: Stage, rendered: RenderedStage | None) -> str:
    """Returns the name by which a stage with a compose file asks for its runner."""
    document = None if rendered is None else rendered.document
    return runner_for(document, is_for_swarm=stage.is_for_swarm)


def stages_denied(
    source: StageSource, allowed: Collection[str]
) -> dict[tuple[str, ...], list[str]]:
    """Returns the stages whose compose files ask for what a worker with these allowances does
    not allow, by what that is."""
    found: dict[tuple[str, ...], list[str]] = {}
    for stage, rendered in source.rendered.items():
        told = source.parameters.definition.stage(stage)
        is_for_swarm = told is not None and runner_of(told, rendered) == SWARM
        asked = asked_of_host(rendered.document, stage, is_for_swarm=is_for_swarm)
        if lacking := tuple(one for one in asked if one not in allowed):
            found.setdefault(lacking, []).append(stage)
    return found


def stages_without(source: StageSource, runners: Sequence[str]) -> dict[str, list[str]]:
    """Returns the stages that a worker with these runners cannot run, by missing runner."""
    offered = runner_labels(runners)
    found: dict[str, list[str]] = {}
    for folder in source.parameters.folders.values():
        stage = source.parameters.definition.stage(folder.stage)
        if folder.compose is not None and stage is not None and stage.is_on:
            runner = runner_of(stage, source.rendered.get(stage.id))
            if runner_label(runner) not in offered:
                found.setdefault(runner, []).append(stage.id)
    return found


def asked_of_workers(source: StageSource, stage: Stage) -> Resources:
    """Returns what a worker must offer to take a stage, beside its runner."""
    asked, folder = stage.asked(), source.parameters.folders.get(stage.id)
    if folder is None or folder.compose is None:
        return asked
    return replace(asked, labels=asked.labels - set(stage.node_labels))  # of nodes, not workers


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStage:
    """Holds the part of a task that a stage of containers has instead of a script."""

    spec: str
    command: str  # for a worker that should not have got it
    resources: Resources


def container_stage(
    definition: SipDefinition, stage: Stage, rendered: RenderedStage, node: NodeDef
) -> ContainerStage:
    """Returns the containers of a stage; ``node`` is as broadcasts have left it."""
    assert rendered.compose is not None, stage.id
    labels, runner = stage.node_labels, runner_of(stage, rendered)
    told: dict[str, object] = {
        "stage": stage.id,
        "version": stage.version,
        "parameters": dict(rendered.parameters),
        "args": rendered.args,
    }
    if node.environment:
        told["environment"] = dict(node.environment)
    if len(labels) == 1:
        told["node"] = {"labels": labels}
    if definition.shares_network:
        told[NETWORK_KEY] = list(dict.fromkeys((stage.id, node.name)))
    others = node.resources.labels - set(labels)
    needs = need_labels(
        rendered.document, rendered.newer, node.name, is_for_swarm=runner == SWARM
    )
    return ContainerStage(
        **stage_fields(runner, rendered.compose, told),
        resources=replace(node.resources, labels=others | needs | {runner_label(runner)}),
    )
