"""``python -m bench.page``: the web page in Chromium before a real `tidewheel up` and a run."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.folders import data_folder
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table
from bench.page import large
from bench.page.load import CHANGED, FLOW, NODES, Load
from bench.page.window import BenchWindow
from tests.support.browser import MISSING, Site, chromium
from tests.support.command_line import CommandLine
from tests.support.http_server import in_path

HEADER = ("what", "how", "p50", "p95", "worst", "of")
DRAWN = ".task-box"
ROW = ".rows-space [role=row]"
GRAPH = "{run}?views=graph&graph.n=6"
VIEWS = {
    "home, runs by cycles": ("/runs", ".grid-row"),
    "all runs as a list": ("/runs?as=list", ".run-line"),
    f"a run, {NODES} tasks as a table": ("{run}?views=table", ROW),
    f"a run, {NODES} tasks as a graph": (GRAPH, DRAWN),
}
SETTLE_SECONDS = 1.0
MILLI, MINUTE = 1_000, 60.0


class Bench:
    """A site with one large run, and a browser."""

    def __init__(self, site: Site, browser: Any, wish: argparse.Namespace) -> None:
        self._site, self._browser, self._wish = site, browser, wish
        self._run = site.begin_paused("wide", FLOW)

    def rows(self) -> list[tuple[str, ...]]:
        found = []
        for one in self._wish.only:
            found += {
                "first": self.first_view,
                "latency": self.latency,
                "frames": self.frames,
                "memory": self.memory,
            }[one]()
        return found

    def first_view(self) -> list[tuple[str, ...]]:
        window = self._window()
        found = []
        for name, (path, selector) in VIEWS.items():
            times: dict[str, list[tuple[float, float]]] = {"cold": [], "warm": []}
            for _ in range(self._wish.rounds):
                for how, shown in times.items():
                    is_cold = how == "cold"
                    shown.append(window.first_ms(self._at(path), selector, cold=is_cold))
            for how, shown in times.items():
                paints, views = zip(*shown, strict=True)
                found.append(_spread(f"{name}: first paint, ms", how, paints))
                found.append(_spread(f"{name}: first view, ms", how, views))
        return found

    def latency(self) -> list[tuple[str, ...]]:
        """From the commit of a change to the frame that shows it."""
        window = self._window(self._at("{run}?views=table&name=a_i0*"), ROW)
        window.watch_rows()
        with Load(self._site, self._run).going_on(self._wish.rate) as load:
            time.sleep(self._wish.seconds)
        time.sleep(SETTLE_SECONDS)
        late = seen_after(load.stored, window.changes())
        stored = sum(len(load.stored[task]) for task in CHANGED)
        how = f"{load.per_second:.0f} events/s, {len(late)} of {stored} seen"
        return [_spread("commit to frame, table, ms", how, late)]

    def frames(self) -> list[tuple[str, ...]]:
        window = self._window(self._at(GRAPH), DRAWN)
        time.sleep(SETTLE_SECONDS)
        drawn = window.page.locator(DRAWN).count()
        measured = {f"{drawn} in sight": window.frames_while_panning(self._wish.panning)}
        with Load(self._site, self._run).going_on(self._wish.rate) as load:
            time.sleep(SETTLE_SECONDS)
            busy = window.frames_while_panning(self._wish.panning)
        measured[f"{drawn} in sight, {load.per_second:.0f} events/s"] = busy
        drawn = window.zoom_out(DRAWN, NODES)
        measured[f"{drawn} in sight"] = window.frames_while_panning(self._wish.panning)
        return [
            _spread(
                f"frame while panning {NODES} nodes, ms",
                f"{how}: {len(frames) * MILLI / sum(frames):.0f} frames/s",
                frames,
            )
            for how, frames in measured.items()
        ]

    def memory(self) -> list[tuple[str, ...]]:
        """Graph and table side by side, while the run changes."""
        window = self._window(self._at("{run}?views=graph,table&graph.n=2"), DRAWN)
        minutes, heaps = [], []
        with Load(self._site, self._run).going_on(self._wish.rate) as load:
            begun = time.monotonic()
            while (now := time.monotonic() - begun) < self._wish.minutes * MINUTE:
                minutes.append(now / MINUTE)
                heaps.append(window.heap_mb())
                time.sleep(self._wish.minutes * MINUTE / 12)
        settled = len(heaps) // 4  # code is compiled and caches fill in the beginning
        slope = statistics.linear_regression(minutes[settled:], heaps[settled:]).slope
        print("heap, MB: " + ", ".join(f"{heap:.1f}" for heap in heaps))
        how = f"{load.per_second:.0f} events/s, {minutes[-1]:.1f} min: {slope:+.2f} MB/min"
        return [_spread("heap after collection, MB", how, heaps, digits=1)]

    def _at(self, path: str) -> str:
        place = path.format(run=f"/runs/{in_path(self._run)}")
        return self._site.url + place

    def _window(self, address: str = "", selector: str = "") -> BenchWindow:
        """The only one: what others draw would be measured, too."""
        for context in self._browser.contexts:
            context.close()
        window = BenchWindow(self._browser, self._site.link())
        if address:
            window.page.goto(address)
            window.page.locator(selector).first.wait_for()
        return window


def seen_after(
    stored: dict[str, list[tuple[float, bool]]], changes: list[tuple[str, float, bool]]
) -> list[float]:
    """How long after it was stored each change was seen, in ms.

    What is seen is the newest that was stored so; what was undone before it could be drawn is
    left out. A task is the same again after 2 × CHANGED / rate seconds, 1.3 unless told
    otherwise: a delay above that would be taken for a shorter one.
    """
    found = []
    for name, seen_at, is_held in changes:
        before = [at for at, was in stored[f"1/{name}"] if was is is_held and at <= seen_at]
        found += [(seen_at - max(before)) * MILLI] if before else []
    return found


def _spread(
    what: str, how: str, values: Sequence[float], *, digits: int = 0
) -> tuple[str, ...]:
    ordered = sorted(values)
    at = (ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.95, 1.0))
    return (what, how, *(f"{value:.{digits}f}" for value in at), str(len(ordered)))


def main() -> None:
    wish = _arguments()
    if MISSING:
        sys.exit(MISSING)
    with data_folder() as folder:
        facts = machine_facts(folder)
        if wish.large:
            _publish_large(wish, folder, facts)
            return
        with Site(CommandLine(folder)).running() as site, chromium() as browser:
            facts["browser"] = f"Chromium {browser.version}, without a GPU"
            rows = Bench(site, browser, wish).rows()
    publish(wish.write, "page", facts_text(facts), table(HEADER, rows))


def _publish_large(wish: argparse.Namespace, folder: Path, facts: dict[str, str]) -> None:
    rows = []
    with Site(CommandLine(folder)).running() as site:
        run = large.prepared(site)  # before there is a browser, which has a loop of its own
        with chromium() as browser:
            facts["browser"] = f"Chromium {browser.version}, without a GPU"
            for view in large.VIEWS:
                for context in browser.contexts:
                    context.close()
                place = view.path.format(run=f"/runs/{in_path(run)}")
                window = BenchWindow(browser, site.link())
                rows.append(large.measured(window, site.url + place, view))
                print(*rows[-1], sep=" | ", flush=True)
    publish(wish.write, "page-large", facts_text(facts), table(large.HEADER, rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parts = ("first", "latency", "frames", "memory")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rounds", type=int, default=7, help="first views of each kind")
    parser.add_argument("--rate", type=float, default=50.0, help="events per second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of updates")
    parser.add_argument("--panning", type=float, default=6.0, help="seconds")
    parser.add_argument("--minutes", type=float, default=3.0, help="of updates, for memory")
    parser.add_argument(
        "--large", action="store_true", help="5,000 runs and 10,000 tasks instead"
    )
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
