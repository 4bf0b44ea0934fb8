"""One `tidewheel up` and one browser for all; a window and a session for each test."""

import pytest

from tests.browser.flows import NOISY
from tests.support.browser import MISSING, Site, chromium
from tests.support.command_line import CommandLine
from tests.support.patience import SECONDS_MAX, allowed, eventually_told

PATIENCE_MS = 1_000 * allowed(SECONDS_MAX)


def pytest_collection_modifyitems(items):
    for item in items:
        if MISSING and "/tests/browser/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import expect  # noqa: PLC0415 - a second to load

    # Five seconds, which is what it would wait, are little for a run on two busy cores.
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    with Site(CommandLine(tmp_path_factory.mktemp("site"))).running() as found:
        yield found


@pytest.fixture(scope="session")
def noisy(site, tmp_path_factory):
    """A cycling run with a stop point, hostile texts, and a job that waits for a gate.

    No test opens it: they come in any order, and each finds the run as it is, with all done
    that can be done before the gate. At the end it is opened, since jobs outlive their worker.
    """
    gate = tmp_path_factory.mktemp("gate") / "open"
    run = site.begin("noisy", NOISY.format(gate=gate))

    rests = {"1/plot": "succeeded", "2/lonely": "succeeded", "2/gauge": "running"}

    def states():
        shown = site.tidewheel("show", run, *rests, "--json", "--server", site.url)
        return {one["id"]: one["state"] for one in shown.json["tasks"]}

    eventually_told(lambda: states() == rests, "the run waits for its gate")
    yield run
    gate.touch()


class Window:
    """A page, with everything it asked for and complained about."""

    def __init__(self, context):
        self.page = context.new_page()
        self.complaints, self.asked = [], []
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _hear(self, kind, text):
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def log_in(self, link):
        self.page.goto(link)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url("**/runs")
        return self.page


@pytest.fixture
def window(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    yield Window(context)
    context.close()


@pytest.fixture
def page(window, site):
    """Somebody who may do everything, at the list of runs."""
    return window.log_in(site.link())
