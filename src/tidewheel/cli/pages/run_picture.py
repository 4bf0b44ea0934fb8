"""Shows a run that is driven in this terminal as a picture: cycles, active tasks, recent ends.

It stands alone because only a terminal that can be redrawn needs it.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from tidewheel.cli.output import safe
from tidewheel.cli.pages.format import counted_ends
from tidewheel.cli.pages.run_progress import (
    ENDS,
    FAILURES,
    RETRIES,
    RunPage,
    arrival,
    is_awaited,
    remark_of,
    stall_text,
)
from tidewheel.core.operator.views import RunView
from tidewheel.core.sched.task_state import Key
from tidewheel.quantities import show_duration
from tidewheel.scheduler.pending_batch import News
from tidewheel.scheduler.run_engine import RunEngine

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from tidewheel.core.cycling.calendar import Point

DRAWN_PER_SECOND_MAX = 10
POINTS_MAX = 8
ACTIVE_MAX = 10
RECENT_MAX = 6
BAR_WIDTH = 24
COLOURS = {"succeeded": "green", "failed": "red", "submission failed": "red"}


class LivePage(RunPage):
    """Shows a run that is driven here as a picture, redrawn a few times a second."""

    def __init__(self, run: RunView, *, is_new: bool) -> None:
        super().__init__(run, is_new=is_new)
        self._engine: RunEngine | None = None
        self._recent: deque[tuple[str, str]] = deque(maxlen=RECENT_MAX)
        self._started: dict[str, float] = {}
        self._over: dict[Point, dict[Key, str]] = {}  # how tasks ended, or that they are lost
        self._notes: deque[str] = deque(maxlen=RECENT_MAX)
        self._live: Live | None = None

    def __enter__(self) -> LivePage:
        from rich.live import Live

        self._live = Live(
            get_renderable=self._draw, refresh_per_second=DRAWN_PER_SECOND_MAX, transient=True
        )
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._live is not None
        self._live.stop()

    def on_news(self, engine: RunEngine, one: News) -> None:
        self._engine = engine
        name = engine.pool.plan.name_of(one.key)
        if is_awaited(engine, one):
            if words := arrival(engine, one):
                self._recent.append((one.event, words))
        elif one.event == "started":
            self._started.setdefault(name, time.monotonic())
        elif one.event in (*ENDS, *RETRIES):
            began = self._started.pop(name, None)
            took = "" if began is None else f" in {show_duration(time.monotonic() - began)}"
            words = one.text.removeprefix(name).strip() or one.event
            words = remark_of(engine, one) or words
            because = self._because(one) if one.event in FAILURES else ""
            self._recent.append((one.event, f"{name} {words}{took}{because}"))
        if one.event in (*ENDS, "lost") and not is_awaited(engine, one):
            self._over.setdefault(one.key[0], {})[one.key] = one.event
            while len(self._over) > POINTS_MAX:
                del self._over[min(self._over)]

    def on_stall(self, engine: RunEngine, status: str) -> None:
        """Notes only how long the run waits, because the picture shows the causes."""
        waits = stall_text(engine) if status == "stalled" else ""
        if waits:
            self.line(f"it waits {waits}")

    def _tell_beginning(self) -> None:
        """Prints nothing, because the picture shows that the run has begun."""

    def line(self, text: str) -> None:
        self._notes.append(text)

    # ---- drawing ----

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        now, status = time.monotonic(), self._status or "running"
        counts = ", ".join(counted_ends(self._ends))
        head = Text(f"{self._run.name}  ", style="bold")
        head.append(status, style="red" if status == "stalled" else "cyan")
        head.append(f"  {show_duration(now - self._begun_at)}  {counts}", style="default")
        parts = [head]
        if self._engine is not None:
            parts += self._cycles(self._engine)
        for name, since in list(self._started.items())[:ACTIVE_MAX]:
            parts.append(Text(f"  ▶ {safe(name)}  {show_duration(now - since)}", style="blue"))
        if (more := len(self._started) - ACTIVE_MAX) > 0:
            parts.append(Text(f"    and {more} more", style="bright_black"))
        for event, text in self._recent:
            parts.append(Text(f"  {safe(text)}", style=COLOURS.get(event, "yellow")))
        for text in (*self._notes, *self._causes):
            parts.append(Text(safe(text), style="bold yellow"))
        return Group(*parts)

    def _cycles(self, engine: RunEngine) -> list[Text]:
        """Returns a bar per point: how much is done, what else is over, what the pool holds."""
        from rich.text import Text

        pooled, tasks = engine.pool.population.counts, engine.pool.tasks
        is_of_stages = engine.pool.plan.is_of_stages
        lines = []
        for point in sorted({*pooled, *self._over})[-POINTS_MAX:]:
            over = self._over.get(point, {}).items()
            ends = Counter(end for key, end in over if key not in tasks)
            there, total = pooled.get(point, 0), max(1, ends.total() + pooled.get(point, 0))
            done = ends.pop("succeeded", 0)
            width = BAR_WIDTH * done // total  # full only if all are
            name = engine.graph.cycling.style.text(point)
            line = Text("  " if is_of_stages else f"  {name:>18} ")
            line.append("━" * width, style="green")
            line.append("─" * (BAR_WIDTH - width), style="bright_black")
            left = "to do" if is_of_stages else "in the pool"
            line.append(f" {', '.join([f'{done} done', *counted_ends(ends)])}, {there} {left}")
            lines.append(line)
        return lines
