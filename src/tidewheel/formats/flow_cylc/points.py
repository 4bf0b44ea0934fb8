"""The cycling of a workflow: its mode, and the points at which it begins and ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tidewheel.core.cycling.calendar import Calendar, Point
from tidewheel.core.cycling.interval import Interval
from tidewheel.core.graph.definition import RUNAHEAD_POINTS_DEFAULT, CyclingDef
from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader
from tidewheel.formats.flow_cylc.settings import FlowSettings, Placed

_POINTS_AHEAD = re.compile(r"P(\d+)")
COMMAND_LINE = Position("command line")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTexts:
    """Points given beside the definition; each replaces what is written there."""

    initial: str = ""
    final: str = ""
    start: str = ""
    stop: str = ""


def read_cycling(
    settings: FlowSettings, given: PointTexts, now: float, findings: Findings
) -> tuple[CyclingReader, CyclingDef] | None:
    """Returns a reader of the workflow's cycling texts, and its points; None after an error."""
    try:
        reader = _reader(settings, given)
    except BadCycling as bad:
        place = _first_place(
            settings.scheduling.cycling_mode,
            settings.scheduler.point_format,
            settings.scheduler.time_zone,
        )
        findings.error("cycling", bad.message, bad.hint, place)
        return None
    return _Points(settings, given, now, reader, findings).read()


def _reader(settings: FlowSettings, given: PointTexts) -> CyclingReader:
    mode = settings.scheduling.cycling_mode.text
    if not mode:
        plain = settings.is_acyclic(given.initial)
        mode = Calendar.INTEGER.value if plain else Calendar.GREGORIAN.value
    return CyclingReader(
        mode,
        utc_mode=bool(settings.scheduler.utc_mode),
        time_zone=settings.scheduler.time_zone.text or None,
        point_format=settings.scheduler.point_format.text or None,
        expanded_year_digits=settings.scheduler.expanded_year_digits,
    )


def _first_place(*texts: Placed) -> Position:
    return next((text.position for text in texts if text), Position(""))


class _Points:
    """Reads each point after the one it may be relative to."""

    def __init__(
        self,
        settings: FlowSettings,
        given: PointTexts,
        now: float,
        reader: CyclingReader,
        findings: Findings,
    ) -> None:
        self._settings = settings.scheduling
        self._is_acyclic = settings.is_acyclic(given.initial)
        self._given = given
        self._now = now
        self._reader = reader
        self._findings = findings

    def read(self) -> tuple[CyclingReader, CyclingDef] | None:
        initial = self._initial()
        if initial is None:
            return None
        cycling = CyclingDef(style=self._reader.style, initial=initial)
        final = self._final(initial)
        return self._reader, replace(
            cycling,
            final=final,
            start=self._start(initial, final),
            stop=self._relative(
                self._chosen(self._given.stop, self._settings.stop_after), initial, final
            ),
            hold_after=self._relative(self._settings.hold_after, initial, final),
            runahead=self._runahead(),
        )

    def _initial(self) -> Point | None:
        text = self._chosen(self._given.initial, self._settings.initial_point)
        if not text and self._reader.calendar is Calendar.INTEGER:
            return Point(1)
        if not text:
            self._findings.error(
                "no-initial-point",
                "[scheduling] has no initial cycle point",
                "write for example: initial cycle point = 20300101T00Z, or set cycling mode = "
                "integer for plain numbers",
            )
            return None
        point = self._read(text, lambda: self._reader.initial_point(text.text, self._now))
        if point is not None:
            self._check_constraints(point, self._settings.initial_constraints, text, "initial")
        return point

    def _final(self, initial: Point) -> Point | None:
        text = self._chosen(self._given.final, self._settings.final_point)
        if not text or text.text.lower() == "none":
            return initial if self._is_acyclic else None
        point = self._read(text, lambda: self._reader.final_point(text.text, initial))
        if point is not None:
            self._check_constraints(point, self._settings.final_constraints, text, "final")
        return point

    def _start(self, initial: Point, final: Point | None) -> Point | None:
        text = Placed(self._given.start, COMMAND_LINE)
        if not text or text.text.lower() == "none":
            return None
        return self._read(
            text, lambda: self._reader.start_point(text.text, initial, final, self._now)
        )

    @staticmethod
    def _chosen(given: str, written: Placed) -> Placed:
        return Placed(given, COMMAND_LINE) if given else written

    def _relative(self, text: Placed, initial: Point, final: Point | None) -> Point | None:
        if not text or text.text.lower() == "none":
            return None
        if text.text == "reload":
            return None  # a word of the command line: the stop point of the definition
        return self._read(text, lambda: self._reader.relative_point(text.text, initial, final))

    def _runahead(self) -> int | Interval:
        text = self._settings.runahead_limit
        if not text:
            return RUNAHEAD_POINTS_DEFAULT
        if found := _POINTS_AHEAD.fullmatch(text.text.strip()):
            return min(int(found[1]), 10**9)
        found_interval = self._read_interval(text)
        return RUNAHEAD_POINTS_DEFAULT if found_interval is None else found_interval

    def _read_interval(self, text: Placed) -> Interval | None:
        try:
            return self._reader.interval(text.text)
        except BadCycling as bad:
            self._findings.error(
                "runahead",
                f"runahead limit: {bad.message}",
                "write a number of points such as P4, or a duration such as PT12H",
                text.position,
            )
            return None

    def _check_constraints(
        self, point: Point, constraints: tuple[str, ...], text: Placed, which: str
    ) -> None:
        """`initial cycle point constraints = T00, T12`: one of them must hold."""
        try:
            held = not constraints or any(
                self._reader.relative_point(one, Point(point)) == point for one in constraints
            )
        except BadCycling as bad:
            self._findings.error(
                "constraints", f"{which} cycle point constraints: {bad.message}", bad.hint
            )
            return
        if not held:
            self._findings.error(
                "constraints",
                f"the {which} cycle point {self._reader.style.text(point)} meets none of its "
                f"constraints: {', '.join(constraints)}",
                "choose a point that does, or change the constraints",
                text.position,
            )

    def _read(self, text: Placed, read: Callable[[], Point]) -> Point | None:
        try:
            return read()
        except BadCycling as bad:
            self._findings.error("cycle-point", bad.message, bad.hint, text.position)
            return None
