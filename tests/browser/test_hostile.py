"""Hostile texts and names, as far as names may be so: nothing runs, nothing leaves (S10)."""

import re
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.flows import BIDI, HOSTILE, MARKUP, ODD, ODD_RUN, ODD_TASKS
from tests.browser.places import address
from tests.support.workflow_folders import put, sip_files

pytestmark = pytest.mark.req("S10")

LEADS = "[href^='javascript:' i], [src^='javascript:' i], [onerror], [srcdoc], iframe, object"


@pytest.fixture(scope="module")
def odd(site):
    """A run whose names are as odd as names may be."""
    return site.begin(ODD_RUN, ODD)


def expect_nothing_ran(site, window):
    """No script of theirs, no place to go to, no request to others, no word of the policy."""
    assert window.page.evaluate("window.hit") is None
    assert window.page.locator(LEADS).count() == 0
    assert window.page.evaluate("({}).state") is None, "what every object has was changed"
    assert {urlsplit(url).netloc for url in window.asked} == {urlsplit(site.url).netloc}
    assert window.complaints == []


def test_hostile_texts_of_a_definition_never_run_in_any_view(site, noisy, window):
    """S10: titles, outputs, variables, messages, with tags, links and bidi controls."""
    page = window.log_in(site.link())
    for views in ("graph,table", "tree,timeline", "analysis,history", "logs"):
        page.goto(address(site, noisy, f"?views={views}&select=1/tide"))
        panel = page.get_by_role("complementary", name="Task 1/tide")
        expect(panel).to_contain_text(MARKUP)
        expect(panel).to_contain_text("⟦U+202E⟧")
        assert BIDI not in panel.inner_text()
        expect_nothing_ran(site, window)
    page.goto(address(site, noisy, "?views=table&name=" + MARKUP.replace("=", "%3D")))
    expect(page.get_by_text("No task matches the filters")).to_be_visible()
    expect_nothing_ran(site, window)


def test_names_that_mean_something_elsewhere_are_names(site, odd, window):
    """S10: percent signs that would be markup or another path, and what every object has."""
    page = window.log_in(site.link())
    expect(page.get_by_role("link", name=odd)).to_be_visible()
    first, *others = ODD_TASKS
    views = ("graph,table", "tree,timeline", "analysis,history", "logs")
    for task, shown in [(first, one) for one in views] + [(one, "table") for one in others]:
        query = f"?views={shown}&select={quote(f'1/{task}', safe='')}"
        page.goto(address(site, odd, query))
        panel = page.get_by_role("complementary", name=f"Task 1/{task}")
        expect(panel).to_contain_text("Outputs")
        expect(panel).to_contain_text("succeeded")
        expect(page.locator(".run-header")).to_contain_text(odd)
        expect_nothing_ran(site, window)


def test_names_that_mean_something_elsewhere_are_found_and_acted_on(site, odd, window):
    page = window.log_in(site.link())
    page.goto(address(site, odd, "?views=table"))
    expect(page.locator(".rows-space [role=row]")).to_have_count(len(ODD_TASKS))
    page.keyboard.press("Control+k")
    page.keyboard.type(ODD_TASKS[0])
    found = page.get_by_role("listbox", name="Found").get_by_role("option").first
    expect(found).to_have_text(re.compile(ODD_TASKS[0]))
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name=f"Task 1/{ODD_TASKS[0]}")
    panel.get_by_role("button", name="Trigger", exact=True).click()
    card = page.get_by_role("dialog")
    expect(card).to_contain_text(ODD_TASKS[0])
    expect(card).to_contain_text("Would run")
    page.keyboard.press("Escape")
    expect_nothing_ran(site, window)


def test_hostile_queues_tasks_and_tokens_are_texts(site, window):
    task = {"queue": MARKUP, "name": MARKUP, "command": "true", "spec": {MARKUP: HOSTILE}}
    caller = site.caller()
    assert caller.post("/tasks", [task]).status == 201
    assert (
        caller.post("/tokens", {"name": MARKUP, "scopes": ["read"], "names": ["*"]}).status
        == 201
    )
    assert (
        caller.post("/tokens", {"name": BIDI, "scopes": ["read"], "names": ["*"]}).status == 422
    )
    page = window.log_in(site.link())
    page.goto(f"{site.url}/tasks?queue={quote(MARKUP, safe='')}")
    row = page.get_by_role("table", name="Tasks").get_by_role("row").filter(has_text="<img")
    expect(row).to_have_count(1)
    row.click()
    expect(page.get_by_role("complementary")).to_contain_text(MARKUP)
    expect_nothing_ran(site, window)
    page.goto(f"{site.url}/tokens")
    expect(page.get_by_role("row").filter(has_text=MARKUP)).to_have_count(1)
    expect_nothing_ran(site, window)
    page.goto(f"{site.url}/statistics")
    expect(page.get_by_role("heading", name="Statistics")).to_be_visible()
    expect_nothing_ran(site, window)


def test_a_hostile_parameter_is_passed_on_and_shown_as_it_is(site, window):
    folder = put(site.tidewheel.folder / "asked", sip_files("asked-1.0.0.yaml"))
    given = site.tidewheel(
        *("run", str(folder / "asked-1.0.0.yaml"), "--detach", "--server", site.url),
        *("-p", f"site={MARKUP}"),
    )
    assert given.status == 0, given
    page = window.log_in(site.link())
    page.goto(address(site, "asked/run1", "?views=logs&select=1/a"))
    expect(page.get_by_role("log")).to_contain_text(f"at {MARKUP} with 4")
    expect(page.locator(".run-header")).to_contain_text(re.compile("completed"))
    expect_nothing_ran(site, window)
