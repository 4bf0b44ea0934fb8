"""Judges services: stages that run until others have ended.

Two things happen to each stage, its beginning and its end, and each has others before it: a
stage begins after the ends, or the beginnings, that it waits for; a service ends after the
stages for which it runs. A circle among these can never be passed. A service for stages that
have ended before it begins would be ended as it begins; and a stage that uses a service, and
may end after the service does, will lose it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from tidewheel.core.graph.checks.circles import strong_components
from tidewheel.core.graph.findings import Findings, meant
from tidewheel.formats.sip.model import (
    ServedStage,
    SipDefinition,
    Stage,
    StageCondition,
    StageDependency,
)
from tidewheel.lazy_dataclasses import NamedTuple

SERVICES_MAX = 100  # of one definition


class _Moment(NamedTuple):
    """Is the beginning of a stage, or its end."""

    stage: str
    is_end: bool


def check_services(definition: SipDefinition, findings: Findings, obstacles: Findings) -> None:
    """Reports services that run for no stage, for ever or never, and users that lose theirs.

    As with dependencies, a name that no stage has only keeps the workflow from running.
    """
    services = [one for one in definition.stages if one.until]
    if not services:
        return
    for stage in services:
        for one in stage.until:
            if one.stage == stage.id:
                seen = f"stage {stage.id} is listed under its own 'until'"
                hint = "name the stages that use it"
                findings.error("self-dependency", seen, hint, one.position)
            elif definition.stage(one.stage) is None:
                _report_unknown(stage, one, definition, findings, obstacles)
    if len(services) > SERVICES_MAX:
        seen = f"{len(services)} stages have until; at most {SERVICES_MAX} are accepted"
        hint = "give one stage several containers, or use for_each"
        findings.error("too-many-stages", seen, hint, services[0].position)
        return
    preceding = _preceding(definition)
    circles = [
        found
        for circle in strong_components(preceding)
        if (found := _served_in(circle, services)) is not None
    ]
    for stage, one in circles:
        seen = (
            f"service {stage.id} runs until {one.stage} has ended, but {one.stage} waits for "
            f"the end of {stage.id}"
        )
        hint = f"let {one.stage} wait for {stage.id} to be running, or remove it from until"
        findings.error("service-circle", seen, hint, one.position)
    if not circles:
        for stage in services:
            _check_order(stage, definition, preceding, findings)


def _report_unknown(
    stage: Stage,
    one: ServedStage,
    definition: SipDefinition,
    findings: Findings,
    obstacles: Findings,
) -> None:
    others = [other.id for other in definition.stages if other.id != stage.id]
    seen = f"service {stage.id} runs until {one.stage!r} has ended, but there is no such stage"
    hint = meant(one.stage, others, f"the other stages are: {', '.join(others[:10]) or 'none'}")
    findings.warning("unknown-stage", seen, hint, one.position)
    obstacles.error("unknown-stage", seen, hint, one.position)


def _preceding(definition: SipDefinition) -> dict[Hashable, list[Hashable]]:
    """Returns for each beginning and end what must have happened right before."""
    known = {one.id for one in definition.stages}
    found: dict[Hashable, list[Hashable]] = {}
    for stage in definition.stages:
        begin, end = _Moment(stage.id, False), _Moment(stage.id, True)
        found[begin] = [
            _Moment(one.stage, one.condition is not StageCondition.STARTED)
            for one in _used(stage)
            if one.stage in known and one.stage != stage.id
        ]
        found[end] = [
            begin,
            *(
                _Moment(one.stage, True)
                for one in stage.until
                if one.stage in known and one.stage != stage.id
            ),
        ]
    return found


def _used(stage: Stage) -> Iterator[StageDependency]:
    return (one for one in stage.dependencies if isinstance(one, StageDependency))


def _served_in(
    circle: frozenset[Hashable], services: list[Stage]
) -> tuple[Stage, ServedStage] | None:
    """Returns a service, and a stage for which it runs, whose ends are both in a circle."""
    return next(
        (
            (stage, one)
            for stage in services
            for one in stage.until
            if {_Moment(stage.id, True), _Moment(one.stage, True)} <= circle
        ),
        None,
    )


def _check_order(
    stage: Stage,
    definition: SipDefinition,
    preceding: dict[Hashable, list[Hashable]],
    findings: Findings,
) -> None:
    before_begin = _before(_Moment(stage.id, False), preceding)
    early = [one for one in stage.until if _Moment(one.stage, True) in before_begin]
    for one in early:
        seen = (
            f"service {stage.id} runs until {one.stage} has ended, but begins only after that"
        )
        hint = (
            f"list only stages that use {stage.id} under 'until'; if {one.stage} uses it, "
            f"remove what makes {stage.id} wait for {one.stage}, and let {one.stage} wait "
            f"until {stage.id} is running"
        )
        findings.error("service-too-late", seen, hint, one.position)
    before_end = _before(_Moment(stage.id, True), preceding)
    for user in () if early else definition.stages:
        for used in _used(user):
            is_user = used.stage == stage.id and used.condition is StageCondition.STARTED
            if is_user and not _moments_of_need(user) <= before_end:
                seen = f"stage {user.id} uses service {stage.id}, which may end earlier"
                hint = f"add {user.id} to 'until' of stage {stage.id}"
                findings.warning("service-may-be-over", seen, hint, used.position)


def _moments_of_need(user: Stage) -> set[Hashable]:
    """Returns what a service must outlive for a stage that uses it: its end; of one that is a
    service itself, the ends of those for which it runs."""
    return {_Moment(one.stage, True) for one in user.until} or {_Moment(user.id, True)}


def _before(last: _Moment, preceding: dict[Hashable, list[Hashable]]) -> set[Hashable]:
    """Returns all that must have happened before a moment."""
    seen: set[Hashable] = set()
    waiting: list[Hashable] = [last]
    while waiting:
        for one in preceding.get(waiting.pop(), ()):
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return seen
