"""Takes docs/pictures/page/: the web page before real runs, by day and by night.

    make web && .venv/bin/python -m docs.take_pictures

A `tidewheel up` of its own, in a folder that is gone afterwards, and Debian's Chromium. Times
differ from one day to the next, so nothing compares the pictures: take them again when the page
has changed. Names of pictures as arguments take only these.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from docs.smaller_png import smaller
from tests.support.browser import MISSING, Site, chromium
from tests.support.command_line import CommandLine

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures" / "page"
SIZE = (1280, 800)
PHONE = (390, 844)
SECONDS_MAX = 300
HELD_AT = "20261115T1200Z"

# Goes on as far as it can: one job is under way as long as the gate is there, one was tried
# again, one failed and nobody has looked at it, and one failed as the graph expects.
COAST = """
[meta]
    title = Storm surges along the coast, every six hours
[scheduling]
    initial cycle point = 20261115T0000Z
    final cycle point = 20261116T1200Z
    runahead limit = P2
    [[graph]]
        PT6H = '''
            gauges & buoys => analysis => SURGE
            analysis[-PT6H] => analysis
            SURGE:succeed-all => merge => charts
            merge[-PT6H] => merge
            merge => check?
            check:fail? => mend
            check? | mend => bulletin
        '''
[runtime]
    [[root]]
        script = sleep 0.2
    [[OBSERVATIONS, SURGE, PRODUCTS]]
    [[gauges]]
        inherit = OBSERVATIONS
    [[buoys]]
        inherit = OBSERVATIONS
        execution retry delays = 2*PT1S
        script = '''
            echo "asking 24 buoys for $CYLC_TASK_CYCLE_POINT"
            sleep 0.4
            if test $CYLC_TASK_CYCLE_POINT = 20261115T0600Z -a $CYLC_TASK_TRY_NUMBER = 1; then
                echo "buoy 17 does not answer" >&2
                exit 1
            fi
        '''
    [[analysis]]
        execution time limit = PT10M
        script = '''
            ok=$(printf '\\033[32mok\\033[0m')
            far=$(printf '\\033[33mfar off, left out\\033[0m')
            echo "analysis of $CYLC_TASK_CYCLE_POINT, first guess from the cycle before"
            for i in $(seq 1 24); do
                level=$((RANDOM % 90 + 310))
                test $i = 17 && said=$far || said=$ok
                printf 'station %02d  level %d cm  innovation %+3d mm  %s\\n' \\
                    $i $level $((RANDOM % 80 - 40)) "$said"
            done
            echo "23 of 24 stations used"
            sleep 0.6
        '''
    [[north, west, south]]
        inherit = SURGE
        script = "sleep 0.$((RANDOM % 9))"
    [[west]]
        script = '''
            echo "domain west: 1440 steps"
            sleep 0.9
            while test $CYLC_TASK_CYCLE_POINT = @POINT@ -a -e @GATE@; do sleep 0.5; done
        '''
    [[merge]]
        script = sleep 0.5
    [[check, mend]]
    [[check]]
        script = test $CYLC_TASK_CYCLE_POINT != 20261115T0600Z
    [[charts, bulletin]]
        inherit = PRODUCTS
    [[charts]]
        script = '''
            echo "drawing 3 charts"
            if test $CYLC_TASK_CYCLE_POINT = 20261115T0600Z; then
                echo "no space left for chart 2" >&2
                exit 1
            fi
        '''
"""
# Stalls: that of docs/howto/stalls.md.
NIGHTLY = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = '''
            load & report[-P1] => report
            report:fail => mail
        '''
[runtime]
    [[load, mail]]
        script = true
    [[report]]
        script = test -e "$HOME/disk-is-back"
"""


@dataclass(frozen=True)
class View:
    """A picture: where it is, what must be seen there, and what is done before it is taken."""

    name: str
    path: str
    seen: str
    prepare: Callable[[Page], None] = lambda _: None
    size: tuple[int, int] = SIZE


def of_run(
    name: str,
    run: str,
    query: str,
    seen: str,
    prepare: Callable[[Page], None] = lambda _: None,
    size: tuple[int, int] = SIZE,
) -> View:
    return View(name, f"/runs/{quote(run, safe='')}?{query}", seen, prepare, size)


def begin(site: Site, gate: Path) -> None:
    """Runs that completed, stalled and go on; a registered workflow, and blocks of it."""
    tidewheel, server = site.tidewheel, ("--server", site.url)
    site.begin("coast", COAST.replace("@GATE@", str(gate)).replace("@POINT@", HELD_AT))
    site.begin("nightly", NIGHTLY)
    for command in (
        ("init", "forecast"),
        ("init", "imaging", "--kind", "stages"),
        ("run", "forecast/", "--detach", *server),
        ("register", "forecast/", *server),
        ("register", "imaging/", *server),
        ("sbi", "submit", "imaging/requests/night.yaml", *server),
        ("objects", "post", "visibilities-0815", "--fact", "size=2TB", *server),
    ):
        answer = tidewheel(*command)
        if answer.status:
            raise SystemExit(f"{' '.join(command)}: {answer.err}")


def settled(site: Site) -> bool:
    """Whether nothing changes any more: only the gate's job is under way."""
    caller = site.caller()
    runs = {run["name"]: run["status"] for run in caller.get("/runs").json["runs"]}
    if runs.pop("nightly/run1") != "stalled" or runs.pop("coast/run1") != "running":
        return False
    rows = caller.get("/runs/coast%2Frun1/tasks").json["tasks"]
    active = [row["id"] for row in rows if row["state"] in ("ready", "submitted", "running")]
    return active == [f"{HELD_AT}/west"] and set(runs.values()) == {"completed"}


def filled_in(page: Page) -> None:
    form = page.get_by_role("form", name="Request a run")
    form.get_by_label("samples").fill("50")
    form.get_by_role("button", name="Check").click()
    form.get_by_text("It can run with these values.").wait_for()


def triggered(page: Page) -> None:
    """The card of a command that has not been given yet."""
    panel = page.get_by_role("complementary")
    panel.get_by_role("button", name="Trigger", exact=True).click()
    page.get_by_role("dialog").get_by_text("Would run").wait_for()


def opened(page: Page) -> None:
    page.get_by_role("button", name="Open all").click()


def back(page: Page) -> None:
    """The middle of the history."""
    slider = page.get_by_label("Batch", exact=True)
    slider.fill(str(int(slider.get_attribute("max")) * 2 // 3))
    slider.blur()


VIEWS = (
    of_run("timeline", "coast/run1", "views=timeline", "critical path"),  # first: it grows
    View("home", "/runs", "nightly/run1"),
    View("runs", "/runs?as=list", "2/report needs"),
    of_run("phone", "nightly/run1", "views=table", "Stalled", size=PHONE),
    of_run("graph", "coast/run1", "views=graph", "charts"),
    of_run("tree", "coast/run1", "views=tree", "OBSERVATIONS", prepare=opened),
    of_run("table", "coast/run1", "views=table", "buoys"),
    of_run("analysis", "coast/run1", "views=analysis&analysis.name=analysis", "analysis"),
    of_run("logs", "coast/run1", f"views=logs&select={HELD_AT}/analysis", "23 of 24 stations"),
    of_run("history", "coast/run1", "views=history", "What happened", prepare=back),
    of_run("task", "nightly/run1", "views=graph&select=2/report", "Why it does not run"),
    of_run(
        "command",
        "coast/run1",
        f"views=graph&select={HELD_AT}/merge",
        "Why it does not run",
        prepare=triggered,
    ),
    View("workflows", "/workflows", "imaging"),
    View("request", "/workflows/imaging/1.0.0", "Request a run", filled_in),
    View("blocks", "/requests", "PB-20261115-sip-deep"),
)


def sized(size: tuple[int, int]) -> ViewportSize:
    """A size as Playwright has it."""
    return {"width": size[0], "height": size[1]}


def take(page: Page, site: Site, view: View) -> bytes:
    page.set_viewport_size(sized(view.size))
    page.goto(site.url + view.path)
    page.get_by_text(view.seen).first.wait_for()
    view.prepare(page)
    page.get_by_text("Loading").first.wait_for(state="hidden")
    page.mouse.move(0, 0)  # over nothing that would light up
    page.wait_for_timeout(700)  # until drawings have come to rest
    return page.screenshot()


def take_all(site: Site, only: set[str]) -> dict[str, bytes]:
    """Each view by day and by night, as Chromium makes them."""
    taken = {}
    with chromium() as browser:
        pages = {}
        for scheme, suffix in (("light", ""), ("dark", "-dark")):
            context = browser.new_context(
                viewport=sized(SIZE),
                color_scheme=scheme,
                reduced_motion="reduce",
                locale="en-GB",
            )
            pages[suffix] = page = context.new_page()
            page.goto(site.link())
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url("**/runs")
        for view in VIEWS:
            for suffix, page in pages.items():
                if not only or view.name in only:
                    taken[view.name + suffix] = take(page, site, view)
    return taken


def main(only: set[str]) -> int:
    if MISSING:
        raise SystemExit(MISSING)
    folder = Path(tempfile.mkdtemp(prefix="tidewheel-pictures-"))
    gate = folder / "gate"
    gate.touch()
    try:
        with Site(CommandLine(folder)).running() as site:
            begin(site, gate)
            until = time.monotonic() + SECONDS_MAX
            while not settled(site):
                if time.monotonic() > until:
                    raise SystemExit(f"the runs are not where they should be: {site.up.lines}")
                time.sleep(0.5)
            taken = take_all(site, only)
            gate.unlink()
            # The job sees it and ends; nothing of this is left on the machine.
            while site.caller().get("/runs/coast%2Frun1").json["run"]["status"] == "running":
                time.sleep(0.5)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, picture in taken.items():
        (PICTURES / f"{name}.png").write_bytes(smaller(picture))
    return 0


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
