"""Debian's Chromium, driven by Playwright, before a real `tidewheel up`."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, in_path
from tests.support.patience import eventually
from tidewheel.server.static_page import BUILT

CHROMIUM = shutil.which("chromium")
# What Playwright turns off, whose list ours replaces; and pages of the browser's own, for what
# one types into its address bar: it loads two for each window, which costs more than our page.
LEFT_OUT = (
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
    "PreloadTopChromeWebUI",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
)
ARGUMENTS = (
    f"--disable-features={','.join(LEFT_OUT)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = (
    "chromium is not installed"
    if CHROMIUM is None
    else ""
    if (BUILT / "index.html").exists()
    else "the web page is not built: make web"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - a second to load

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Site:
    """Everything on one machine, as somebody has started it who now opens a browser."""

    def __init__(self, tidewheel: CommandLine) -> None:
        self.tidewheel = tidewheel
        self.up: Any = None
        self.login = ""
        self._begun: Counter[str] = Counter()

    @contextmanager
    def running(self, port: int = 0) -> Iterator[Site]:
        """Until the end of the block, and in the next one again; at this port, or at any."""
        # A scheduler that was killed is followed soon.
        soon = {"TIDEWHEEL_SCHEDULER_LEASE_SECONDS": "2"}
        with self.tidewheel.started("up", "--port", str(port), "--json", **soon) as self.up:
            said = json.loads(self.up.read_until('"url"'))
            self.up.read_on()
            self.url = said["url"]
            self.login = self.link()
            yield self

    def caller(self) -> Caller:
        token = (self.tidewheel.state / "token").read_text().strip()
        return Caller(urlsplit(self.url).netloc, token)

    def link(self, caller: Caller | None = None) -> str:
        """Another link, good once."""
        return self.url + (caller or self.caller()).post("/login-links").json["path"]

    def begin(self, name: str, flow: str, *options: str) -> str:
        """A run of this workflow; what it is called."""
        folder = Path(self.tidewheel.folder, name)
        folder.mkdir(exist_ok=True)  # a module may be set up again
        (folder / "flow.cylc").write_text(flow)
        answer = self.tidewheel(
            "run", str(folder), "--server", self.url, "--detach", "--new", *options
        )
        assert answer.status == 0, answer
        self._begun[name] += 1
        return f"{name}/run{self._begun[name]}"

    def begin_paused(self, name: str, flow: str) -> str:
        """The same, of one that goes nowhere; a scheduler has it when this returns."""
        run = self.begin(name, flow, "--pause")
        facts = f"/runs/{in_path(run)}/facts"
        eventually(
            lambda: self.caller().get(facts).json["run"]["status"] == "paused", "it began"
        )
        return run
