"""Which stage waits for which: names of nothing, circles, and what a stage comes after."""

from __future__ import annotations

from collections.abc import Hashable

from tidewheel.core.graph.checks.circles import strong_components
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.sip.definition import nearest_stage
from tidewheel.formats.sip.model import SipDefinition, Stage, StageDependency

_NAMED_MAX = 10


def check_order(definition: SipDefinition, findings: Findings, obstacles: Findings) -> None:
    """Circles are refused; a name of nothing only keeps the workflow from running."""
    known = {stage.id for stage in definition.stages}
    for stage in definition.stages:
        for one in stage.dependencies:
            if isinstance(one, StageDependency) and one.stage == stage.id:
                findings.error(
                    "self-dependency",
                    f"stage {stage.id} depends on itself",
                    "remove the dependency, or name another stage",
                    one.position,
                )
            elif isinstance(one, StageDependency) and one.stage not in known:
                _report_unknown(stage, one, definition, findings, obstacles)
    _check_circles(definition, findings)


def _report_unknown(
    stage: Stage,
    dependency: StageDependency,
    definition: SipDefinition,
    findings: Findings,
    obstacles: Findings,
) -> None:
    others = [one for one in definition.stages if one.id != stage.id]
    near = nearest_stage(dependency.stage, others)
    message = f"stage {stage.id} depends on {dependency.stage!r}, which is no stage"
    names = ", ".join(one.id for one in others[:_NAMED_MAX]) or "none"
    hint = f"did you mean {near!r}?" if near else f"the other stages are: {names}"
    findings.warning("unknown-stage", message, hint, dependency.position)
    obstacles.error("unknown-stage", message, hint, dependency.position)


def _check_circles(definition: SipDefinition, findings: Findings) -> None:
    children: dict[Hashable, list[Hashable]] = {one.id: [] for one in definition.stages}
    for stage in definition.stages:
        for parent in stage.parents:
            if parent in children and parent != stage.id:
                children[parent].append(stage.id)
    for circle in strong_components(children):
        path = _way_round(definition, circle)
        first = definition.stage(path[0])
        assert first is not None
        at = next(
            one.position
            for one in first.dependencies
            if isinstance(one, StageDependency) and one.stage in circle
        )
        shown = path if len(path) <= _NAMED_MAX else [*path[:_NAMED_MAX], "…", path[-1]]
        findings.error(
            "stage-circle",
            f"stages wait for each other: {' waits for '.join(shown)}",
            "remove one of these dependencies",
            at,
        )


def _way_round(definition: SipDefinition, circle: frozenset[Hashable]) -> list[str]:
    """From the first stage of a circle through its parents back to a stage seen before."""
    by_id = {one.id: one for one in definition.stages}
    here = next(one.id for one in definition.stages if one.id in circle)
    path = [here]
    while True:
        here = next(one for one in by_id[here].parents if one in circle and one != here)
        path.append(here)
        if here in path[:-1]:
            return path[path.index(here) :]
