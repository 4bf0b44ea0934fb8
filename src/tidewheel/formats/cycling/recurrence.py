"""Makes a sequence of a recurrence's text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

from tidewheel.core.cycling.calendar import BadCycling, Calendar, Point
from tidewheel.core.cycling.interval import Interval, add
from tidewheel.core.cycling.progression import WALKED_STEPS_MAX, steps_back
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.formats.cycling.expression import Expressions, Found
from tidewheel.formats.cycling.iso8601 import (
    Form,
    RecurrenceKind,
    read_form,
    read_interval,
    split_exclusions,
)

_POINTS_CHECKED = 3


@dataclass(frozen=True, slots=True)
class _Span:
    """A recurrence worked out: its first point, its step (None: one point), its last bound."""

    start: Found
    step: Interval | None
    end: Point | None


def read_recurrence(text: str, expressions: Expressions) -> Sequence:
    """Returns the points of a recurrence between the initial and the final point."""
    body, excluded = split_exclusions("".join(text.split()))
    span = _span(read_form(body), expressions, expressions.initial, expressions.final)
    style = expressions.style
    sequence = replace(
        _sequence(span, style.calendar),
        lower=max(expressions.initial, style.first_point),
        upper=_earliest(span.end, expressions.final, style.last_point),
        endless=span.end is None and expressions.final is None,
        text=text.strip(),
    )
    if not sequence.endless and sequence.is_cut_short:
        raise _too_many(body)
    if excluded:
        sequence = _excluding(sequence, excluded, expressions, span)
    _check_written(sequence, expressions)
    return sequence


def _excluding(
    sequence: Sequence, excluded: Iterable[str], expressions: Expressions, span: _Span
) -> Sequence:
    """Exclusions are read in the context of their recurrence: its start and its end."""
    expressions = replace(expressions, days_at_time_of_context=True)
    start = span.start.point
    end = expressions.final if span.end is None else span.end
    points: set[Point] = set()
    sequences: list[Sequence] = []
    for text in excluded:
        if "/" not in text and not text.startswith(("P", "R")):
            found = expressions.find(text, start)
            if found.period is None:
                points.add(found.point)
                continue
        inner = _span(read_form(text), expressions, start, end)
        sequences.append(_sequence(inner, sequence.calendar))
    return replace(sequence, excluded_points=frozenset(points), exclusions=tuple(sequences))


def _sequence(span: _Span, calendar: Calendar) -> Sequence:
    return Sequence(
        calendar=calendar,
        start=span.start.point,
        step=span.step,
        upper=span.end,
        utc_offset_minutes=span.start.utc_offset_minutes,
        reckoning=span.start.reckoning,
    )


def _span(
    form: Form, expressions: Expressions, context_start: Point, context_end: Point | None
) -> _Span:
    match form.kind:
        case RecurrenceKind.FROM_START:
            start = expressions.find(form.start, context_start)
            return _from_start(form, start, _step(form, start, expressions), expressions)
        case RecurrenceKind.TO_END:
            end = expressions.find(form.end, context_end)
            step = _step(form, end, expressions)
            return _to_end(form, end, step, expressions, context_start)
        case _:
            start = expressions.find(form.start, context_start)
            if form.repetitions == 1:
                return _from_start(form, start, None, expressions)
            end = expressions.find(form.end, context_end)
            return _between(form, start, end, expressions)


def _step(form: Form, anchor: Found, expressions: Expressions) -> Interval | None:
    """Returns the interval between two points; None if there is but one."""
    interval = anchor.period
    if form.interval is not None:
        interval = read_interval(expressions.style.calendar, form.interval)
    if form.repetitions == 1:
        return None
    if interval is None:
        # R/5 is accepted for R1/5 in integer cycling, as Cylc does.
        if form.repeats and form.repetitions is None and _is_integer(expressions):
            return None
        raise BadCycling(
            f"{form.text!r} does not say how often",
            f"write R1/{form.start or form.end}, or "
            f"an interval: {form.start or '^'}/P1{'' if _is_integer(expressions) else 'D'}",
        )
    # Repeating without moving on is one point.
    return interval if interval else None


def _is_integer(expressions: Expressions) -> bool:
    return expressions.style.calendar is Calendar.INTEGER


def _times(expressions: Expressions, anchor: Found, step: Interval, count: int) -> Point:
    """Returns some steps at once, as metomi finds the other end of a bounded recurrence."""
    return add(
        expressions.style.calendar, anchor.point, step * count, anchor.utc_offset_minutes
    )


def _from_start(
    form: Form, start: Found, step: Interval | None, expressions: Expressions
) -> _Span:
    if step is None:
        return _Span(start, None, start.point)
    if form.repetitions is None:
        return _Span(start, step, None)
    return _Span(start, step, _times(expressions, start, step, form.repetitions - 1))


def _to_end(
    form: Form, end: Found, step: Interval | None, expressions: Expressions, until: Point
) -> _Span:
    if step is None:
        return _Span(end, None, end.point)
    if form.repetitions is not None:
        first = _times(expressions, end, step, 1 - form.repetitions)
        return _Span(replace(end, point=first), step, end.point)
    found = steps_back(
        expressions.style.calendar,
        end.point,
        step,
        until,
        utc_offset_minutes=end.utc_offset_minutes,
        reckoning=end.reckoning,
    )
    if found is None:
        raise _too_many(form.text)
    start = replace(end, point=found[0])
    return _Span(start, step, _times(expressions, start, step, found[1]))


def _between(form: Form, start: Found, end: Found, expressions: Expressions) -> _Span:
    """Returns the span between two points.

    Of date-times the end is the second point; of integers it is the last of n (Cylc).
    """
    distance = end.point - start.point
    if not distance:
        return _Span(start, None, start.point)
    if distance < 0:
        raise BadCycling(f"{form.text!r} has its end before its start")
    if not _is_integer(expressions):
        step = Interval(units=distance)
        return _from_start(form, start, step, expressions)
    if form.repetitions is None or distance % (form.repetitions - 1):
        raise BadCycling(
            f"{form.text!r} cannot be divided into equal whole steps",
            "write Rn/start/interval, or a number n that fits",
        )
    return _Span(start, Interval(units=distance // (form.repetitions - 1)), end.point)


def _too_many(text: str) -> BadCycling:
    return BadCycling(
        f"{text!r} has more than {WALKED_STEPS_MAX} points",
        "bring its start and its end together, or write an interval that has not both months "
        "or years and smaller units",
    )


def _earliest(*points: Point | None) -> Point:
    return min(point for point in points if point is not None)


def _check_written(sequence: Sequence, expressions: Expressions) -> None:
    """Two points that are written the same could not be told apart."""
    style = expressions.style
    for point in islice(sequence.points(), _POINTS_CHECKED):
        if style.rounded(point) != point:
            raise BadCycling(
                f"{sequence.text!r} has points that {style.format} cannot tell apart",
                "set a 'cycle point format' with smaller units",
            )
