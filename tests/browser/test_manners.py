"""Manners: for everybody's eyes and hands, and whatever happens to the run meanwhile."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Window
from tests.browser.places import address
from tests.support.http_server import Caller, in_path
from tests.support.patience import eventually

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SMALL = """
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a, b]]
        script = true
"""


def barriers(page, rules=()):
    """What axe finds that would keep somebody out; it is told by the debugger, not the page."""
    page.evaluate(AXE.read_text() + "; undefined")
    asked = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("asked => axe.run(document, asked)", asked)
    return [
        (one["id"], one["impact"], node["target"], node["failureSummary"])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in web/")
def test_nobody_is_kept_out_of_any_view(site, noisy, page):
    expect(page.get_by_role("link", name=noisy)).to_be_visible()
    found = {"runs": barriers(page)}
    for views in ("graph", "tree,table", "grid", "timeline,analysis", "logs,history"):
        page.goto(address(site, noisy, f"?views={views}&select=1/tide"))
        expect(page.get_by_role("complementary")).to_contain_text("Outputs")
        expect(page.get_by_text(re.compile("^Loading"))).to_have_count(0)
        found[views] = barriers(page)
    page.get_by_role("complementary").get_by_role("button", name="Trigger").click()
    expect(page.get_by_role("dialog")).to_contain_text("Would run")
    found["dialog"] = barriers(page)
    assert not any(found.values()), found


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in web/")
def test_dark_can_be_read_too(site, noisy, page):
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()  # which hears keys
    page.keyboard.press("d")
    if page.evaluate("document.documentElement.dataset.theme") != "dark":
        page.keyboard.press("d")
    page.goto(address(site, noisy, "?views=logs,history&select=1/tide"))
    expect(page.get_by_role("log")).to_contain_text("step 400")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert barriers(page, ("color-contrast",)) == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in web/")
def test_every_page_can_be_used_on_a_phone(site, noisy, page):
    page.set_viewport_size({"width": 390, "height": 844})
    found = {}
    for place in ("workflows", "requests", "tasks", "workers", "statistics", "tokens"):
        page.goto(f"{site.url}/{place}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        found[place] = barriers(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, place
    assert not any(found.values()), found
    # A task that no other test submits again: each submission makes its panel longer.
    page.goto(address(site, noisy, "?views=tree&select=2/gauge"))
    panel = page.get_by_role("complementary", name="Task 2/gauge")
    panel.get_by_role("button", name="log: out of submission 1").click()
    expect(page.get_by_role("log")).to_contain_text("first")
    expect(page.get_by_role("log")).to_be_in_viewport()
    outputs = panel.get_by_role("heading", name="Outputs")
    expect(outputs).not_to_be_in_viewport()
    panel.get_by_role("button", name="Unfold").click()
    expect(outputs).to_be_in_viewport()


def test_two_browsers_see_what_one_of_them_does(site, noisy, window, browser):
    page = window.log_in(site.link())
    page.goto(address(site, noisy, "?views=table&name=plot&point=2&select=2/plot"))
    other = Window(browser.new_context())
    try:
        seen = other.log_in(site.link())
        seen.goto(address(site, noisy, "?views=table&name=merge&point=2"))
        row = seen.locator(".rows-space [role=row]").first
        page.goto(address(site, noisy, "?views=table&select=2/merge"))
        page.get_by_role("complementary").get_by_role("button", name="Hold").click()
        page.get_by_role("dialog").get_by_role("button", name="Hold 2/merge").click()
        expect(row).to_contain_text("held")
        given = site.tidewheel("release", noisy, "2/merge", "--server", site.url)
        assert given.status == 0, given
        expect(row).not_to_contain_text("held")
    finally:
        other.page.context.close()


def test_a_run_that_is_deleted_under_its_viewer_says_so(site, page):
    run = site.begin("gone", SMALL)
    page.goto(address(site, run, "?views=graph,logs&select=1/b"))
    expect(page.locator(".run-header")).to_contain_text("completed")
    deleted = f"/runs/{in_path(run)}"  # once its scheduler has let it go, too
    eventually(lambda: site.caller().ask("DELETE", deleted).status in (200, 204), "it is gone")
    expect(page.get_by_text(f"{run} was deleted")).to_be_visible()
    page.get_by_role("link", name="Go to all runs").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_a_reader_sees_no_action_in_any_view_and_ticks_nothing(site, noisy, window):
    token = (
        site.caller()
        .post("/tokens", {"name": "eyes", "scopes": ["read"], "names": ["*"]})
        .json["token"]
    )
    page = window.log_in(site.link(Caller(urlsplit(site.url).netloc, token)))
    for views in ("graph", "logs,history"):
        page.goto(address(site, noisy, f"?views={views}&select=2/merge"))
        expect(page.get_by_role("complementary")).to_contain_text("Outputs")
        verbs = re.compile("^(Trigger|Set outputs|Hold|Release|Kill|Remove|Pause|Stop|Reload)")
        expect(page.get_by_role("button", name=verbs)).to_have_count(0)
    page.goto(address(site, noisy, "?views=graph"))
    page.get_by_label(re.compile("^2/merge, ")).click(modifiers=["Shift"])
    expect(page.get_by_role("complementary", name="Task 2/merge")).to_be_visible()
    expect(page.locator(".ticked")).to_have_count(0)
