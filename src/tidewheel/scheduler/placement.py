"""Decides where a job goes: to any worker with bash, or only where a platform says.

`platform = NAME` means what the state directory's platforms.toml says; `platform = slurm`, and
Cylc 7's word `batch system = slurm`, mean Slurm without any file. Names of this machine are
where the run's workers are. A place that nobody has described is a mistake of the definition;
should a job be asked for there all the same, it waits for a worker that offers that place.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidewheel.core.graph.checks.names import some
from tidewheel.core.graph.definition import NodeDef, RunMode
from tidewheel.core.graph.findings import Findings, nearest
from tidewheel.core.graph.graph import Graph
from tidewheel.core.queue.resources import (
    LABEL_LENGTH_MAX,
    NO_RESOURCES,
    Resources,
    runner_label,
)
from tidewheel.core.queue.secret_references import (
    NO_SECRETS,
    is_reference,
    reference_findings,
)
from tidewheel.lazy_dataclasses import dataclass, pattern
from tidewheel.platforms import PLATFORMS_FILE, Platform
from tidewheel.runners.slurm import directives as slurm

LOCALHOST = "localhost"
UNKNOWN_PLATFORM = "unknown-platform"
SLURM = Platform(name=slurm.RUNNER, runner=slurm.RUNNER)  # unless a file says more of it
# The batch systems by which Cylc means its own host.
_OURS = ("", "background", "at")
_HOST_VARIABLE = pattern(r"\$\{?HOST(NAME)?\}?|\$\(hostname[^)]*\)|`hostname[^`]*`")
_SHELL = pattern(r"[$`]")  # what a shell would put something in place of
_BARE_KEY = pattern(r"[A-Za-z0-9_-]+")  # TOML


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlace:
    """Holds everything that a task asks for so that the right runner takes it."""

    head: str = ""  # lines of the job, after the first
    resources: Resources = NO_RESOURCES
    # Counted from the claim; a job of Slurm may wait for days before it begins: Slurm counts.
    timeout_seconds: float | None = None


ANY_WORKER = JobPlace()


def job_place(node: NodeDef, platforms: Mapping[str, Platform]) -> JobPlace:
    """Returns the place of a node, as broadcasts have left it."""
    limit = node.time_limit_seconds or None
    platform = _platform_of(node, platforms)
    if platform is None:
        if limit is None and node.resources is NO_RESOURCES:
            return ANY_WORKER
        return JobPlace(resources=node.resources, timeout_seconds=limit)
    labels = node.resources.labels | frozenset(platform.labels)
    if platform.runner != slurm.RUNNER:
        return JobPlace(resources=replace(node.resources, labels=labels), timeout_seconds=limit)
    flavours = {one.flavour for one in node.resources.flavours if one.flavour}
    # The task's own directives count more than the platform's.
    said = dict(platform.directives) | dict(node.place.directives)
    lines = slurm.directive_lines(said.items())
    needed = slurm.resource_directives(node.resources, limit, slurm.names_of(lines))
    return JobPlace(
        head="".join(f"{line}\n" for line in (*lines, *slurm.directive_lines(needed))),
        # The other needs of the job stand in its directives, for Slurm to meet. Which of its
        # nodes are of a flavour Slurm does not know: a worker says so by a label.
        resources=Resources(labels=labels | flavours | {runner_label(slurm.RUNNER)}),
    )


def check_places(graph: Graph, platforms: Mapping[str, Platform], findings: Findings) -> None:
    """Reports names of places that nobody has described, as findings."""
    check_places_of([node.definition for node in graph.nodes.values()], platforms, findings)


def check_places_of(
    definitions: Iterable[NodeDef], platforms: Mapping[str, Platform], findings: Findings
) -> None:
    """Reports undescribed places of these nodes, which are as broadcasts would leave them, and
    secrets that could not be given to their jobs there."""
    unknown: dict[tuple[str, str], list[NodeDef]] = {}
    for definition in definitions:
        if definition.environment:
            _check_secrets(definition, platforms, findings)
        if definition.run_mode is RunMode.LIVE and (asked := _unknown(definition, platforms)):
            unknown.setdefault(asked, []).append(definition)
    known = [LOCALHOST, SLURM.name, *(name for name in platforms if name != SLURM.name)]
    for (item, name), nodes in unknown.items():
        near = nearest(name, known)
        key = name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        guess = f"; did you mean {near}?" if near else "."
        advice = (
            f"Describe it in {PLATFORMS_FILE} of the state directory: [{key}] and "
            'below it runner = "slurm", or labels = ["…"] that its workers offer'
            if _SHELL.search(name) is None
            else f"Commands and variables in {item} are not supported: write the name itself"
        )
        findings.error(
            UNKNOWN_PLATFORM,
            f"{item} = {name} of {some(node.name for node in nodes)} is not known: no "
            "job could run there",
            f"known platforms: {', '.join(known)}{guess} {advice}",
            nodes[0].position,
        )


def _check_secrets(
    node: NodeDef, platforms: Mapping[str, Platform], findings: Findings
) -> None:
    secrets = {name: value for name, value in node.environment if is_reference(value)}
    here = f"[runtime][{node.name}][environment]"
    for wrong in reference_findings(secrets):
        seen, _, hint = wrong.partition("; ")
        findings.error("bad-secret", f"{here}{seen}", hint, node.position)
    platform = _platform_of(node, platforms) if secrets else None
    if platform is not None and platform.runner == slurm.RUNNER:
        seen, _, hint = NO_SECRETS.format(runner="Slurm").partition(": ")
        findings.error(
            "secret-on-slurm", f"{here}{next(iter(secrets))}: {seen}", hint, node.position
        )


def _unknown(node: NodeDef, platforms: Mapping[str, Platform]) -> tuple[str, str] | None:
    """Returns item and name of a place that a node asks for and nobody described, or None."""
    place = node.place
    known = {SLURM.name, *platforms}
    for item, name in (("platform", place.platform), ("host", place.remote_host)):
        if name not in known and not _is_here(name):
            return item, name
    if place.batch_system not in (*_OURS, *known):
        return "batch system", place.batch_system
    return None


def _is_here(name: str) -> bool:
    """Says whether a host is this machine, by its name or by a variable of the shell for it."""
    if name in ("", LOCALHOST) or _HOST_VARIABLE.fullmatch(name):
        return True
    own = socket.gethostname()
    return name in (own, own.partition(".")[0])


def _platform_of(node: NodeDef, platforms: Mapping[str, Platform]) -> Platform | None:
    place = node.place
    asked = (place.platform, place.remote_host, place.batch_system)
    described = next((platforms[name] for name in asked if name in platforms), None)
    if described is not None:
        return described
    if slurm.RUNNER in asked:
        return SLURM
    unknown = _unknown(node, platforms)
    return None if unknown is None else Platform(name=unknown[1], labels=(_label(*unknown),))


def _label(item: str, name: str) -> str:
    """Returns the label that a worker would have to offer to take such a job. A name that no
    label can have becomes one that no worker offers."""
    label = f"{item}:{name}"
    return label if label.isprintable() and len(label) <= LABEL_LENGTH_MAX else f"{item}:?"
