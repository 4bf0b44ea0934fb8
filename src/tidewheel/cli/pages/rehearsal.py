"""Shows a rehearsal to people and programs: a summary, a chart of which task ran when, JSON."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape

import click

from tidewheel.cli.output import plural, safe, say, say_columns, say_table
from tidewheel.cli.palette import PALETTE
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.queue.status import Status
from tidewheel.core.sched.pool import RunStatus
from tidewheel.quantities import show_duration
from tidewheel.services.rehearsal.record import (
    Hop,
    NameSummary,
    PlayedSubmission,
    Rehearsal,
    critical_path,
    lanes,
    marks,
    reason_text,
    span,
)

HOPS_SHOWN_MAX = 24  # of a critical path: its first and its last ones
CAUSES_SHOWN_MAX = 20
LOST_SHOWN_MAX = 20
ROWS_MAX = 100  # of a chart made of letters
BARS_MAX = 20_000  # of a picture

_WORDS = {RunStatus.STOPPED: "stopped at the last point", RunStatus.RUNNING: "cut short"}


def say_summary(rehearsal: Rehearsal, real_seconds: float) -> None:
    """Prints what happened in a rehearsal, the most important first."""
    say(_headline(rehearsal, real_seconds))
    mark = click.style(PALETTE[Status.FAILED].shape, fg=PALETTE[Status.FAILED].colour)
    for cause in rehearsal.causes[:CAUSES_SHOWN_MAX]:
        task = rehearsal.name_of(cause.key)
        for reason in cause.reasons:
            name = "" if reason.startswith(task) else f"{task} "
            say(f"  {mark} {safe(name + reason)}")
    if (more := len(rehearsal.causes) - CAUSES_SHOWN_MAX) > 0:
        say(f"  … and {plural(more, 'more cause')}; see --json")
    _say_warnings(rehearsal)
    names = rehearsal.by_name()
    if not names:
        return
    say()
    columns: dict[str, Callable[[NameSummary], str]] = {
        "NAME": lambda one: one.name,
        "RUNS": lambda one: str(one.runs),
        "FAILED": lambda one: str(one.failures or ""),
        "MEAN WAIT": lambda one: span(one.mean_wait_seconds),
        "MEAN LENGTH": lambda one: span(one.mean_length_seconds),
    }
    say_columns(names, columns)
    _say_path(rehearsal)


def _headline(rehearsal: Rehearsal, real_seconds: float) -> str:
    status = rehearsal.status
    look = PALETTE[Status.FAILED if rehearsal.is_stalled else Status.SUCCEEDED]
    word = click.style(_WORDS.get(status, str(status)), fg=look.colour, bold=True)
    ran = plural(rehearsal.task_count, "task")
    more = len(rehearsal.submissions) - rehearsal.task_count
    again = f" and {plural(more, 'retry').replace('retrys', 'retries')}" if more else ""
    failed = f", {rehearsal.failure_count} failed" if rehearsal.failure_count else ""
    clock = rehearsal.clock_text(rehearsal.begins_at)
    until = rehearsal.clock_text(rehearsal.ends_at)
    period = f", {clock} to {until}" if clock else ""
    return (
        f"{safe(rehearsal.graph.name)} {word}: {ran}{again}{failed} in "
        f"{span(rehearsal.makespan_seconds)} of virtual time{period} "
        f"(rehearsed in {show_duration(real_seconds)})"
    )


def _say_warnings(rehearsal: Rehearsal) -> None:
    warning = click.style("warning", fg=PALETTE[Status.CANCELLING].colour, bold=True)
    for text in rehearsal.lost[:LOST_SHOWN_MAX]:
        say(f"{warning}: {safe(text)}")
    if (more := len(rehearsal.lost) - LOST_SHOWN_MAX) > 0:
        say(f"{warning}: … and {plural(more, 'more task')} that will not run; see --json")
    if not rehearsal.submissions:
        say(f"{warning}: nothing ran: no task was ready at any point")
    if rehearsal.is_cut:
        say(f"{warning}: there were too many tasks to continue; give an earlier --until")
    for failure in rehearsal.unused_ends:
        say(f"{warning}: --fail {safe(failure)} matches no task that ran")
    if rehearsal.expired:
        ids = ", ".join(map(rehearsal.id_of, rehearsal.expired[:3]))
        rest = len(rehearsal.expired) - 3
        more_text = f" and {rest} more" if rest > 0 else ""
        say(f"{plural(len(rehearsal.expired), 'task')} expired: {ids}{more_text}")
    for text in rehearsal.assumed:
        say(f"assumed: {safe(text)}")


def _say_path(rehearsal: Rehearsal) -> None:
    path = critical_path(rehearsal)
    if not path:
        return
    idle = sum(hop.idle_seconds for hop in path)
    counts = Counter(hop.submission.waited_for for hop in path)
    kinds = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
    lengths: Counter[str] = Counter()
    for hop in path:
        lengths[hop.submission.key[1]] += round(hop.submission.length_seconds)
    longest = ", ".join(f"{name} {span(length)}" for name, length in lengths.most_common(3))
    say()
    say(f"critical path: {plural(len(path), 'task')} ({kinds})")
    say(f"  longest on it: {safe(longest)}; {span(idle)} idle")
    shown = path
    if len(path) > HOPS_SHOWN_MAX:
        shown = [*path[: HOPS_SHOWN_MAX // 3], *path[-(HOPS_SHOWN_MAX * 2 // 3) :]]
    rows = [_hop_row(rehearsal, hop) for hop in shown]
    if len(shown) < len(path):
        gap = f"… {len(path) - len(shown)} more"
        rows.insert(HOPS_SHOWN_MAX // 3, ("", gap, "", ""))
    say_table(("START", "TASK", "LENGTH", "WAITED FOR"), rows, indent=2)


def _hop_row(rehearsal: Rehearsal, hop: Hop) -> tuple[str, str, str, str]:
    one = hop.submission
    assert one.start_at is not None
    # To the second, as much may happen within a minute: +1d 06:00:10.
    minutes, second = divmod(round(one.start_at - rehearsal.begins_at), 60)
    days, minutes = divmod(minutes, 24 * 60)
    start = f"+{f'{days}d ' if days else ''}{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    again = f" (try {one.try_number})" if one.try_number > 1 else ""
    failed = "" if one.ended == SUCCEEDED else f" {one.ended}"
    task = f"{rehearsal.name_of(one.key)}{again}{failed}"
    return start, task, span(one.length_seconds), reason_text(hop, rehearsal)


# For programs.


def document(rehearsal: Rehearsal, real_seconds: float) -> dict[str, object]:
    """Returns all of a rehearsal for JSON; times are seconds since the rehearsal began."""
    begin = rehearsal.begins_at
    return {
        "workflow": rehearsal.graph.name,
        "status": str(rehearsal.status),
        "begins_at": rehearsal.clock_text(rehearsal.begins_at),
        "makespan_seconds": rehearsal.makespan_seconds,
        "real_seconds": round(real_seconds, 6),
        "counts": {
            "tasks": rehearsal.task_count,
            "submissions": len(rehearsal.submissions),
            "failed": rehearsal.failure_count,
            "events": rehearsal.steps,
        },
        "names": [
            {
                "name": one.name,
                "runs": one.runs,
                "failed": one.failures,
                "mean_wait_seconds": one.mean_wait_seconds,
                "mean_length_seconds": one.mean_length_seconds,
            }
            for one in rehearsal.by_name()
        ],
        "critical_path": [
            {
                "id": rehearsal.id_of(hop.submission.key),
                "submit": hop.submission.submit,
                "waited_for": str(hop.submission.waited_for),
                "reason": reason_text(hop, rehearsal),
                "idle_seconds": hop.idle_seconds,
            }
            for hop in critical_path(rehearsal)
        ],
        "causes": [
            {
                "id": rehearsal.id_of(cause.key),
                "reasons": list(cause.reasons),
                "commands": list(cause.commands),
            }
            for cause in rehearsal.causes
        ],
        "lost": rehearsal.lost,
        "expired": [rehearsal.id_of(key) for key in rehearsal.expired],
        "assumed": rehearsal.assumed,
        "unused_failures": rehearsal.unused_ends,
        "cut": rehearsal.is_cut,
        "submissions": [
            {
                "id": rehearsal.id_of(one.key),
                "submit": one.submit,
                "try": one.try_number,
                "ready_seconds": one.ready_at - begin,
                "start_seconds": None if one.start_at is None else one.start_at - begin,
                "end_seconds": None if one.end_at is None else one.end_at - begin,
                "ended": one.ended or None,
                "waited_for": str(one.waited_for),
                "triggered_off": [rehearsal.id_of(key) for key in one.parents],
                "flows": sorted(one.flows),
            }
            for one in rehearsal.submissions
        ],
    }


# A chart made of letters.


def timeline(rehearsal: Rehearsal) -> Iterator[str]:
    """Yields the chart as text: an axis, then a line per submission, ordered by start."""
    started = [one for one in rehearsal.submissions if one.start_at is not None]
    rows = sorted(started, key=lambda one: (one.start_at or 0.0, one.key, one.submit))
    more = len(rows) - ROWS_MAX
    rows = rows[:ROWS_MAX]
    if not rows:
        return
    labels = [_label(rehearsal, one) for one in rows]
    label_width = max(map(len, labels))
    width = max(20, shutil.get_terminal_size((100, 24)).columns - label_width - 3)
    last = max(one.end_at or rehearsal.ends_at for one in rows)
    seconds = max(last - rehearsal.begins_at, 1e-9)
    yield " " * (label_width + 2) + _axis(seconds, width)
    scale = width / seconds
    for label, one in zip(labels, rows, strict=True):
        yield f"{label:<{label_width}}  {_bar(rehearsal, one, scale, width)}"
    if more > 0:
        yield f"… and {more} more; give an earlier --until, or --svg FILE"


def _label(rehearsal: Rehearsal, one: PlayedSubmission) -> str:
    again = f" #{one.submit}" if one.submit > 1 else ""
    return safe(f"{rehearsal.name_of(one.key)}{again}")


def _axis(seconds: float, width: int) -> str:
    line = ""
    for mark in marks(seconds, max(2, width // 12)):
        column = round(mark / seconds * width)
        if column + 8 <= width or not line:
            line = f"{line:<{column}}|{span(mark)}"
    return line


def _bar(rehearsal: Rehearsal, one: PlayedSubmission, scale: float, width: int) -> str:
    ready, start, stop = (min(width - 1, int(time * scale)) for time in _times(rehearsal, one))
    is_rich = (sys.stdout.encoding or "").lower().startswith("utf")
    waits, runs, cross = ("·", "█", "✖") if is_rich else (".", "#", "x")
    bar = runs * max(1, stop - start)
    look = PALETTE[_status(one)]
    if _status(one) is Status.FAILED:
        bar = bar[:-1] + cross
    waiting = click.style(waits * (start - ready), fg=PALETTE[Status.WAITING].colour)
    return " " * ready + waiting + click.style(bar, fg=look.colour)


def _times(rehearsal: Rehearsal, one: PlayedSubmission) -> tuple[float, float, float]:
    """Returns when a submission was ready, began and ended, in seconds of the rehearsal."""
    assert one.start_at is not None
    begin = rehearsal.begins_at
    end = rehearsal.ends_at if one.end_at is None else one.end_at
    return one.ready_at - begin, one.start_at - begin, end - begin


def _status(one: PlayedSubmission) -> Status:
    if not one.ended:
        return Status.RUNNING
    return Status.SUCCEEDED if one.ended == SUCCEEDED else Status.FAILED


# The same as a picture.

LANE_HEIGHT, BAR_HEIGHT, AXIS_HEIGHT, MARGIN = 18.0, 13.0, 30.0, 12.0
CHART_WIDTH, LETTER_WIDTH = 1100.0, 6.7
LEGEND = (
    "outlined: the critical path; dotted: ready, waiting for a limit or a slot; red: failed"
)
INK, FONT = "#1d2430", "DejaVu Sans Mono, Menlo, Consolas, monospace"


def svg_lines(rehearsal: Rehearsal) -> Iterator[str]:
    """Yields the chart as SVG: a lane per name, a bar per submission.

    The bars of the critical path are outlined.
    """
    rows, left_out = lanes(rehearsal, BARS_MAX)
    left = MARGIN * 2 + LETTER_WIDTH * max((len(lane.title) for lane in rows), default=0)
    seconds = max(rehearsal.makespan_seconds, 1e-9)
    scale = CHART_WIDTH / seconds
    width = left + CHART_WIDTH + MARGIN * 2
    bottom = AXIS_HEIGHT + LANE_HEIGHT * len(rows)
    height = bottom + LANE_HEIGHT + MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONT}" '
        f'font-size="11" fill="{INK}">'
    )
    yield f"<title>{_text(rehearsal.graph.name)}</title>"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    for mark in marks(seconds):
        x = left + mark * scale
        yield (
            f'<path d="M{x:.1f} {AXIS_HEIGHT - 8:.1f}V{bottom:.1f}" '
            f'stroke="{PALETTE[Status.WAITING].web_colour}" stroke-opacity=".35"/>'
        )
        yield _svg_text(x + 3, AXIS_HEIGHT - 12, f"+{span(mark)}")
    critical = {id(hop.submission) for hop in critical_path(rehearsal)}
    for number, lane in enumerate(rows):
        top = AXIS_HEIGHT + LANE_HEIGHT * number
        if lane.title:
            yield (
                f'<path d="M{MARGIN:.0f} {top:.1f}H{width - MARGIN:.0f}" '
                f'stroke="{PALETTE[Status.WAITING].web_colour}" stroke-opacity=".2"/>'
            )
            yield _svg_text(MARGIN, top + BAR_HEIGHT, lane.title)
        for one in lane.bars:
            at, outlined = (left, scale, top), id(one) in critical
            yield from _svg_bar(rehearsal, one, at, outlined=outlined)
    more = f"; {left_out} later ones are not shown" if left_out else ""
    yield _svg_text(left, height - MARGIN, LEGEND + more)
    yield "</svg>"


def _svg_bar(
    rehearsal: Rehearsal,
    one: PlayedSubmission,
    at: tuple[float, float, float],
    *,
    outlined: bool,
) -> Iterator[str]:
    left, scale, top = at
    times = _times(rehearsal, one)
    ready, start, stop = (left + time * scale for time in times)
    y = top + (LANE_HEIGHT - BAR_HEIGHT) / 2
    if start - ready > 1:
        colour = PALETTE[Status.READY].web_colour
        middle = y + BAR_HEIGHT / 2
        yield (
            f'<path d="M{ready:.1f} {middle:.1f}H{start:.1f}" stroke="{colour}" '
            'stroke-width="2" stroke-dasharray="2 2"/>'
        )
    width = max(stop - start, 0.5)
    line = f'stroke="{INK}" stroke-width="1.6"' if outlined else 'stroke="none"'
    said = (
        f"{_label(rehearsal, one)}: +{span(times[1])}, {span(one.length_seconds)}, "
        f"{one.ended or 'running'}, waited for {one.waited_for}"
    )
    yield (
        f'<rect x="{start:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR_HEIGHT:.0f}" '
        f'rx="2" fill="{PALETTE[_status(one)].web_colour}" fill-opacity=".85" {line}>'
        f"<title>{_text(said)}</title></rect>"
    )
    style = rehearsal.graph.cycling.style
    label = "" if style.is_unwritten else style.text(one.key[0])
    label += f" #{one.submit}" if one.submit > 1 else ""
    if len(label) * LETTER_WIDTH + 6 < width:
        yield _svg_text(start + 3, y + BAR_HEIGHT - 3, label, "#fff")


def _svg_text(x: float, y: float, text: str, colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{_text(text)}</text>'


def _text(text: str) -> str:
    return escape(safe(text), quote=False)
