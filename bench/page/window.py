"""A page in Chromium that says when something was on its screen."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

# Before any script of the page: when was the first paint, and when did each thing come.
FIRST = """
window.firsts = {};
new PerformanceObserver(list => {
    for (const one of list.getEntries()) window.firsts[one.name] = one.startTime;
}).observe({ type: "paint", buffered: true });
window.awaitFirst = selector => new Promise(done => {
    const look = () => {
        if (!document.querySelector(selector)) return requestAnimationFrame(look);
        // The frame with it is on the screen when the next task runs.
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done([performance.now(), window.firsts]);
        port2.postMessage(0);
    };
    look();
});
"""
# Rows of the table: when each came to say "held", and when it no longer did; after the paint.
WATCH_ROWS = """
window.changes = [];
const held = new Map();
const look = () => {
    const fresh = [];
    for (const row of document.querySelectorAll(".rows-space [role=row]")) {
        const name = row.querySelector(".task-name").textContent;
        const now = row.textContent.includes("held");
        if (held.has(name) && held.get(name) !== now) fresh.push([name, now]);
        held.set(name, now);
    }
    if (fresh.length === 0) return;
    requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
            const at = (performance.timeOrigin + performance.now()) / 1000;
            for (const [name, now] of fresh) window.changes.push([name, at, now]);
        };
        port2.postMessage(0);
    });
};
look();
const all = { subtree: true, childList: true, characterData: true };
new MutationObserver(look).observe(document.querySelector(".rows-space"), all);
"""
# What keeps a page from answering, what moves under the eyes, and what it has cost.
WATCH = """
window.paid = { long: [], shift: 0 };
new PerformanceObserver(list => {
    for (const one of list.getEntries()) window.paid.long.push(one.duration);
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver(list => {
    const moved = list.getEntries().filter(one => !one.hadRecentInput);
    for (const one of moved) window.paid.shift += one.value;
}).observe({ type: "layout-shift", buffered: true });
"""
PAID = """() => ({
    ...window.paid,
    bytes: performance.getEntries().reduce((sum, one) => sum + (one.transferSize ?? 0), 0),
    elements: document.querySelectorAll("*").length,
})"""
COUNT_FRAMES = """
window.frames_at = [];
window.counting = true;
const count = at => {
    window.frames_at.push(at);
    if (window.counting) requestAnimationFrame(count);
};
requestAnimationFrame(count);
"""
FRAMES = "(window.counting = false, window.frames_at)"
MEGA = 2**20


class BenchWindow:
    """One page of one session, with the tools of a developer."""

    def __init__(self, browser: Any, link: str) -> None:
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        context.add_init_script(FIRST)
        self.page = context.new_page()
        self.page.goto(link)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url("**/runs")
        self._tools = context.new_cdp_session(self.page)

    def first_ms(self, address: str, selector: str, *, cold: bool) -> tuple[float, float]:
        """Since the address was entered: the first paint, and what was waited for."""
        self.page.goto("about:blank")
        if cold:
            self._tools.send("Network.clearBrowserCache")
        self.page.goto(address, wait_until="commit")
        at, firsts = self.page.evaluate("selector => window.awaitFirst(selector)", selector)
        return firsts.get("first-contentful-paint", at), at

    def watch(self) -> None:
        """From now on pages note what they cost."""
        self.page.context.add_init_script(WATCH)

    def watched(self) -> dict[str, Any]:
        """Returns long tasks in ms, the layout shift, bytes and elements since the page was
        opened."""
        found: dict[str, Any] = self.page.evaluate(PAID)
        return found

    def frames_while_scrolling(self, selector: str, seconds: float) -> list[float]:
        """Milliseconds between frames while a wheel turns; none if nothing can be scrolled."""
        box = self.page.locator(selector).first.bounding_box() if selector else None
        if box is None:
            return []
        self.page.mouse.move(
            box["x"] + box["width"] / 2, box["y"] + min(box["height"], 600) / 2
        )
        self.page.evaluate(f"() => {{ {COUNT_FRAMES} }}")
        end_at = time.monotonic() + seconds
        while time.monotonic() < end_at:
            self.page.mouse.wheel(0, 400)
            self.page.wait_for_timeout(16)
        at = self.page.evaluate(FRAMES)
        return [later - earlier for earlier, later in pairwise(at)]

    def watch_rows(self) -> None:
        self.page.evaluate(f"() => {{ {WATCH_ROWS} }}")

    def changes(self) -> list[tuple[str, float, bool]]:
        """Task, when it was seen, whether it was held then."""
        return [(name, at, now) for name, at, now in self.page.evaluate("window.changes")]

    def frames_while_panning(self, seconds: float) -> list[float]:
        """Milliseconds between frames while a hand drags the graph to and fro."""
        pane = self.page.locator(".react-flow__pane").bounding_box()
        x, y = pane["x"] + pane["width"] * 0.7, pane["y"] + 20
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        self.page.evaluate(f"() => {{ {COUNT_FRAMES} }}")
        end_at, step = time.monotonic() + seconds, 0
        while time.monotonic() < end_at:
            step += 1
            away = abs(step % 80 - 40) * 10
            mouse.move(x - away, y + away / 2)
        moved = self.page.locator(".react-flow__viewport").get_attribute("style")
        mouse.move(x, y)
        assert moved != self.page.locator(".react-flow__viewport").get_attribute("style")
        mouse.up()
        at = self.page.evaluate(FRAMES)
        return [later - earlier for earlier, later in pairwise(at)]

    def zoom_out(self, selector: str, count: int) -> int:
        """Farther away, until so many are drawn or it goes no farther; how many are."""
        out = self.page.get_by_role("button", name="Zoom Out")
        while (drawn := self.page.locator(selector).count()) < count and out.is_enabled():
            out.click()
            self.page.wait_for_timeout(300)  # it glides
        return drawn

    def heap_mb(self) -> float:
        """What its scripts hold after the garbage was collected."""
        self._tools.send("HeapProfiler.collectGarbage")
        return float(self._tools.send("Runtime.getHeapUsage")["usedSize"]) / MEGA
