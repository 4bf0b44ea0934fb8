"""Where a job of a run goes: any worker with bash, or only those that a platform means.

`platform = NAME` means what the state directory's platforms.toml says; `platform = slurm`, and
Cylc 7's word `batch system = slurm`, mean Slurm without any file. A platform that nobody has
described means nothing: its jobs run where the run's workers are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.node import NodeDef
from tidewheel.core.tasks.resources import NO_RESOURCES, Resources, runner_label
from tidewheel.platforms import PLATFORMS_FILE, Platform
from tidewheel.runners.slurm import directives as slurm

LOCALHOST = "localhost"
SLURM = Platform(name=slurm.RUNNER, runner=slurm.RUNNER)  # unless a file says more of it
# What Cylc calls jobs that its own host runs.
_OURS = ("", "background", "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlace:
    """What a task asks for so that the right runner takes it."""

    head: str = ""  # lines of the job, after the first
    resources: Resources = NO_RESOURCES
    # Counted from the claim; a job of Slurm may wait for days before it begins: Slurm counts.
    timeout_seconds: float | None = None


ANY_WORKER = JobPlace()


def job_place(node: NodeDef, platforms: Mapping[str, Platform]) -> JobPlace:
    """The place of a node, as broadcasts have left it."""
    limit = node.time_limit_seconds or None
    platform = _platform_of(node, platforms)
    if platform is None:
        if limit is None and node.resources is NO_RESOURCES:
            return ANY_WORKER
        return JobPlace(resources=node.resources, timeout_seconds=limit)
    labels = node.resources.labels | frozenset(platform.labels)
    if platform.runner != slurm.RUNNER:
        return JobPlace(resources=replace(node.resources, labels=labels), timeout_seconds=limit)
    lines = _slurm_lines(node, platform, limit)
    return JobPlace(
        head="".join(f"{line}\n" for line in lines),
        # What the job needs besides is Slurm's to find: its lines say so.
        resources=Resources(labels=labels | {runner_label(slurm.RUNNER)}),
    )


def place_notes(
    nodes: Iterable[NodeDef], platforms: Mapping[str, Platform], findings: Findings
) -> None:
    """Names of places that mean nothing here."""
    for node in nodes:
        place = node.place
        if place.platform and place.platform not in {LOCALHOST, SLURM.name, *platforms}:
            findings.note(
                "unknown-platform",
                f"platform {place.platform} is not described; its jobs run where the run's "
                "workers are",
                f"describe it in {PLATFORMS_FILE} of the state directory: [{place.platform}], "
                'runner = "slurm"',
                node.position,
            )
        elif place.batch_system not in (*_OURS, slurm.RUNNER):
            findings.note(
                "unknown-platform",
                f"there is no runner for batch system {place.batch_system}; its jobs run where "
                "the run's workers are",
                "slurm is the one that is known",
                node.position,
            )


def _platform_of(node: NodeDef, platforms: Mapping[str, Platform]) -> Platform | None:
    place = node.place
    if place.platform in platforms:
        return platforms[place.platform]
    return SLURM if slurm.RUNNER in (place.platform, place.batch_system) else None


def _slurm_lines(node: NodeDef, platform: Platform, limit: float | None) -> list[str]:
    """The task's own directives count more than the platform's."""
    said = dict(platform.directives) | dict(node.place.directives)
    lines = slurm.directive_lines(said.items())
    needed = slurm.resource_directives(node.resources, limit, slurm.names_of(lines))
    return [*lines, *slurm.directive_lines(needed)]
