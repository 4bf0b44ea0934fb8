"""The cycling of a workflow in Python, read as that of a flow.cylc is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tidewheel.core.graph.definition import TIDEWHEEL, CyclingDef, Policy
from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.formats.flow_cylc.points import PointTexts, read_cycling
from tidewheel.formats.flow_cylc.settings import (
    FlowSettings,
    Placed,
    SchedulerSection,
    SchedulingSettings,
)

RUN_ONCE = "R1"
INTEGER = "integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What is said beside the definition; `now` is for points that follow the clock."""

    now: float
    points: PointTexts = field(default_factory=PointTexts)
    policy: Policy = TIDEWHEEL


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclingTexts:
    """Points and how they are written; an empty text was not given."""

    position: Position
    mode: str = INTEGER
    initial: str = ""
    final: str = ""
    stop: str = ""
    hold_after: str = ""
    runahead: str = ""
    time_zone: str = ""
    point_format: str = ""
    expanded_year_digits: int = 0


def read_points(
    texts: CyclingTexts, recurrences: Collection[str], options: ReadOptions, findings: Findings
) -> tuple[CyclingReader, CyclingDef] | None:
    """How to read cycling texts of this workflow, and its own points; None after an error."""
    if texts.mode != INTEGER and not (texts.initial or options.points.initial):
        findings.error(
            "no-initial-point",
            "the workflow has dates for points and no first one",
            'write Workflow(…, initial="20300101T00Z"), or leave out cycling= for numbers',
            texts.position,
        )
        return None
    return read_cycling(_settings(texts, recurrences), options.points, options.now, findings)


def _settings(texts: CyclingTexts, recurrences: Collection[str]) -> FlowSettings:
    def placed(text: str) -> Placed:
        return Placed(text, texts.position) if text else Placed()

    # A workflow that says nothing of points and runs once ends at its only point.
    runs_once = not (texts.initial or texts.final) and set(recurrences) <= {RUN_ONCE}
    return FlowSettings(
        scheduler=SchedulerSection(
            point_format=placed(texts.point_format),
            expanded_year_digits=texts.expanded_year_digits,
            time_zone=placed(texts.time_zone),
        ),
        scheduling=SchedulingSettings(
            initial_point=placed(texts.initial),
            final_point=placed(texts.final),
            hold_after=placed(texts.hold_after),
            stop_after=placed(texts.stop),
            cycling_mode=Placed() if runs_once else placed(texts.mode),
            runahead_limit=placed(texts.runahead),
        ),
    )
