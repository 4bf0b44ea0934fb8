"""The documentation in a browser: the policy refuses nothing, search finds, light and dark."""

import runpy
from pathlib import Path

import pytest

from tests.support.http_server import running_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def documentation(tmp_path_factory):
    """A server with a site of its own; where it begins."""
    folder = tmp_path_factory.mktemp("documentation")
    build = runpy.run_path(str(ROOT / "docs/build_site.py"))["build"]
    assert build(folder / "work", folder / "site") == ""
    store = f"sqlite:///{folder}/tidewheel.db"
    with running_server(store, manual=folder / "site") as server:
        yield f"http://{server.stranger().address}/docs/"


def test_a_reader_finds_a_page_and_nothing_is_asked_of_others(window, documentation):
    page = window.page
    page.goto(documentation)
    page.get_by_role("link", name="tutorial").first.click()
    page.wait_for_url("**/tutorial.html")
    page.wait_for_load_state("networkidle")  # before that, nobody hears keys
    page.keyboard.press("Control+k")
    page.locator("input:focus").wait_for()
    page.keyboard.type("lapse")
    page.get_by_text("results").first.wait_for()
    assert window.complaints == []
    assert [url for url in window.asked if not url.startswith(documentation)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_follows_light_and_dark(window, documentation, scheme):
    page = window.page
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{documentation}concepts/leases.html")
    ink = page.locator("svg.tw text.ink").first
    colour = ink.evaluate("node => getComputedStyle(node).fill")
    assert colour == {"light": "rgb(29, 39, 51)", "dark": "rgb(228, 233, 240)"}[scheme]
    assert window.complaints == []


def test_pictures_of_the_page_follow_the_switch_of_the_site(window, documentation):
    page = window.page
    page.emulate_media(color_scheme="light")
    page.goto(f"{documentation}page.html")
    page.wait_for_load_state("networkidle")
    day, night = page.locator("img.by-day").first, page.locator("img.by-night").first
    assert (day.is_visible(), night.is_visible()) == (True, False)
    page.locator("label[for^=__palette]:visible").click()  # always light …
    page.locator("label[for^=__palette]:visible").click()  # … always dark
    night.wait_for(state="visible")
    assert not day.is_visible()
    assert night.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0
    assert window.complaints == []


def test_a_phone_can_read_it(window, documentation):
    page = window.page
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{documentation}reference/flow_items.html")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
