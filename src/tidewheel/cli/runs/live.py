"""A run as a picture that is drawn again as it changes: cycles, active tasks, recent ends."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from tidewheel.cli.output import safe
from tidewheel.cli.pages.run_progress import ENDS, RETRIES, RunPage, stall_text
from tidewheel.core.operator.views import RunView
from tidewheel.quantities import show_duration
from tidewheel.scheduler.outcome import News
from tidewheel.scheduler.stage import Stage

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

DRAWN_PER_SECOND_MAX = 10
POINTS_MAX = 8
ACTIVE_MAX = 10
RECENT_MAX = 6
BAR_WIDTH = 24
COLOURS = {"succeeded": "green", "failed": "red", "submission failed": "red"}


class LivePage(RunPage):
    """Redrawn a few times a second, whatever happens."""

    def __init__(self, run: RunView, *, is_new: bool) -> None:
        super().__init__(run, is_new=is_new)
        self._stage: Stage | None = None
        self._recent: deque[tuple[str, str]] = deque(maxlen=RECENT_MAX)
        self._started: dict[str, float] = {}
        self._finished: dict[str, int] = {}  # by point
        self._notes: deque[str] = deque(maxlen=RECENT_MAX)
        self._live: Live | None = None

    def __enter__(self) -> LivePage:
        from rich.live import Live

        self._live = Live(
            get_renderable=self._draw,
            refresh_per_second=DRAWN_PER_SECOND_MAX,
            transient=True,
        )
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._live is not None
        self._live.__exit__(None, None, None)

    def on_news(self, stage: Stage, one: News) -> None:
        self._stage = stage
        name = stage.drive.text(one.key)
        if one.event == "started":
            self._started.setdefault(name, time.monotonic())
        elif one.event in (*ENDS, *RETRIES):
            began = self._started.pop(name, None)
            took = "" if began is None else f" in {show_duration(time.monotonic() - began)}"
            words = one.text.removeprefix(name).strip() or one.event
            self._recent.append((one.event, f"{name} {words}{took}{self._because(one)}"))
            if one.event in ENDS:
                point = name.partition("/")[0]
                self._finished[point] = self._finished.get(point, 0) + 1

    def on_stall(self, stage: Stage, status: str) -> None:
        """The causes are part of the picture."""
        waits = stall_text(stage) if status == "stalled" else ""
        if waits:
            self._line(f"it waits {waits}")

    def _tell_beginning(self) -> None:
        """The picture shows it."""

    def _line(self, text: str) -> None:
        self._notes.append(text)

    # ---- drawing ----

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        parts: list[Text] = [self._head()]
        if self._stage is not None:
            parts += self._cycles(self._stage)
            parts += self._active()
        for event, text in self._recent:
            parts.append(Text(f"  {safe(text)}", style=COLOURS.get(event, "yellow")))
        for text in (*self._notes, *self._causes):
            parts.append(Text(safe(text), style="bold yellow"))
        return Group(*parts)

    def _head(self) -> Text:
        from rich.text import Text

        took = show_duration(time.monotonic() - self._begun_at)
        counts = ", ".join(f"{count} {word}" for word, count in sorted(self._ends.items()))
        status = self._status or "running"
        head = Text(f"{self._run.name}  ", style="bold")
        head.append(status, style="red" if status == "stalled" else "cyan")
        head.append(f"  {took}  {counts}", style="default")
        return head

    def _cycles(self, stage: Stage) -> list[Text]:
        """One bar per point: what has finished, and what the pool still holds."""
        from rich.text import Text

        text = stage.drive.graph.cycling.style.text
        pooled: dict[str, int] = {}
        for point, count in stage.drive.pool.population.counts.items():
            pooled[text(point)] = count
        points = sorted({*pooled, *list(self._finished)[-POINTS_MAX:]})
        lines = []
        for name in points[-POINTS_MAX:]:
            done, there = self._finished.get(name, 0), pooled.get(name, 0)
            width = round(BAR_WIDTH * done / max(1, done + there))
            line = Text(f"  {name:>18} ")
            line.append("━" * width, style="green")
            line.append("─" * (BAR_WIDTH - width), style="bright_black")
            line.append(f" {done} done, {there} in the pool")
            lines.append(line)
        return lines

    def _active(self) -> list[Text]:
        from rich.text import Text

        now = time.monotonic()
        shown = list(self._started.items())[:ACTIVE_MAX]
        lines = [
            Text(f"  ▶ {safe(name)}  {show_duration(now - since)}", style="blue")
            for name, since in shown
        ]
        more = len(self._started) - len(shown)
        if more > 0:
            lines.append(Text(f"    and {more} more", style="bright_black"))
        return lines
