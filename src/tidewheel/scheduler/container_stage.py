"""Makes the task of a stage that runs as containers; apart, since only SIP runs load all this.

Either engine will do, unless a stage is for several nodes or for nodes with a label: those only
a Swarm has. A label is one of its nodes; where a stage names several, no node has all of them,
and the compose file says which service goes where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidewheel.config import CONTAINERS, runner_labels
from tidewheel.core.graph.definition import NodeDef
from tidewheel.core.queue.resources import Resources, runner_label
from tidewheel.formats.sip.model import NodesNeeded, Stage
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.containers.stage_spec import stage_fields

if TYPE_CHECKING:
    from tidewheel.formats.sip.stage_renderer import RenderedStage
    from tidewheel.services.definitions.sip import StageSource

SWARM = "swarm"


def runner_of(stage: Stage) -> str:
    """Returns the name by which a stage with a compose file asks for its runner."""
    nodes = (one.number for one in stage.resources if isinstance(one, NodesNeeded))
    return SWARM if _labels(stage) or sum(nodes) > 1 else CONTAINERS


def stages_without(source: StageSource, runners: Sequence[str]) -> dict[str, list[str]]:
    """Returns the stages that a worker with these runners cannot run, by missing runner."""
    offered = runner_labels(runners)
    found: dict[str, list[str]] = {}
    for folder in source.parameters.folders.values():
        stage = source.parameters.definition.stage(folder.stage)
        if folder.compose is not None and stage is not None and stage.is_on:
            runner = runner_of(stage)
            if runner_label(runner) not in offered:
                found.setdefault(runner, []).append(stage.id)
    return found


def _labels(stage: Stage) -> list[str]:
    nodes = (one for one in stage.resources if isinstance(one, NodesNeeded))
    return sorted({one.label for one in nodes if one.label})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStage:
    """Holds the part of a task that a stage of containers has instead of a script."""

    spec: str
    command: str  # for a worker that should not have got it
    resources: Resources


def container_stage(stage: Stage, rendered: RenderedStage, node: NodeDef) -> ContainerStage:
    """Returns the containers of a stage; ``node`` is as broadcasts have left it."""
    assert rendered.compose is not None, stage.id
    labels, runner = _labels(stage), runner_of(stage)
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
    flavours = node.resources.labels - set(labels)
    return ContainerStage(
        **stage_fields(runner, rendered.compose, told),
        resources=replace(node.resources, labels=flavours | {runner_label(runner)}),
    )
