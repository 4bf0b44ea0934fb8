"""Home before 5,000 runs, and a run with 10,000 tasks at one point: what a browser pays for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from bench.page.window import BenchWindow
from tests.support.browser import Site
from tests.support.http_server import in_path
from tidewheel.core.operator.definition import NewRun
from tidewheel.wiring.stores import open_store

RUNS, TEAMS = 5_000, 20
TASKS = 10_000
SCROLL_SECONDS = 4.0
LONG_MS = 50  # what is shorter is not noticed
FLOW = f"""
[task parameters]
    i = 1..{TASKS}
[scheduling]
    [[graph]]
        R1 = part<i>
[runtime]
    [[part<i>]]
        script = true
"""
SMALL = """
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a, b]]
        script = true
"""
HEADER = (
    *("view", "first content, ms", "long tasks", "longest, ms", "blocked, ms"),
    *("frame p95, ms", "frames > 50 ms", "shift", "heap, MB", "sent, KB", "elements"),
)


@dataclass(frozen=True)
class LargeView:
    """A page, what is waited for, and what is scrolled."""

    name: str
    path: str
    drawn: str
    scrolled: str


VIEWS = (
    LargeView("home, grid", "/runs", ".grid-row", "main"),
    LargeView("home, list", "/runs?as=list", ".run-line", "main"),
    LargeView("run, graph", "{run}?views=graph", ".react-flow, .empty", ""),
    LargeView("run, tree", "{run}?views=tree", ".tree-line", ".tree-lines"),
    LargeView("run, grid", "{run}?views=grid", ".matrix-line", ".matrix"),
    LargeView("run, table", "{run}?views=table&name=part", ".rows-space .row", ".rows"),
    LargeView("run, timeline", "{run}?views=timeline", ".timeline-chart, .empty", ""),
)


def prepared(site: Site) -> str:
    """Stores the runs; returns the name of the large one, which is paused."""
    seed = site.begin_paused("seed", SMALL)
    digest = site.caller().get(f"/runs/{in_path(seed)}/definition").json["digest"]
    asyncio.run(_store_runs(site.tidewheel.store, digest))
    return site.begin_paused("large", FLOW)


async def _store_runs(url: str, digest: str) -> None:
    store = open_store(url)
    try:
        for number in range(RUNS):
            team = f"team-{number % TEAMS:02}"
            await store.create_run(
                NewRun(workflow=f"{team}/flow-{number:04}", definition=digest)
            )
    finally:
        await store.close()


def measured(window: BenchWindow, address: str, view: LargeView) -> tuple[str, ...]:
    """Opens a page without the browser's cache and scrolls through it."""
    window.watch()
    _, first = window.first_ms(address, view.drawn, cold=True)
    window.page.wait_for_timeout(1_500)  # what comes after the first view counts, too
    frames = window.frames_while_scrolling(view.scrolled, SCROLL_SECONDS)
    told: Any = window.watched()
    longest = max(told["long"], default=0)
    late = sorted(frames)[int(len(frames) * 0.95)] if frames else 0.0
    return (
        view.name,
        *(f"{first:.0f}", str(len(told["long"])), f"{longest:.0f}"),
        f"{sum(one - LONG_MS for one in told['long']):.0f}",
        f"{late:.0f}" if frames else "-",
        str(sum(1 for one in frames if one > LONG_MS)) if frames else "-",
        f"{told['shift']:.3f}",
        f"{window.heap_mb():.1f}",
        f"{told['bytes'] / 1024:.0f}",
        str(told["elements"]),
    )
