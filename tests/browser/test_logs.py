"""What jobs wrote: shown as it comes, searched, and obeyed in nothing (S10)."""

import re

from playwright.sync_api import expect

from tests.browser.flows import LINK, MARKUP
from tests.browser.places import address

GROWING = """
[scheduling]
    [[graph]]
        R1 = gauge
[runtime]
    [[gauge]]
        script = "echo first; while test ! -e {gate}; do sleep 0.1; done; echo last"
"""


def test_colours_are_shown_and_everything_else_is_text(site, noisy, window):
    page = window.log_in(site.link())
    page.goto(address(site, noisy, "?views=logs&select=1/tide"))
    log = page.get_by_role("log")
    expect(log).to_contain_text("a link <img src=x onerror=window.hit=1>")
    expect(log).to_contain_text("⟦U+202E⟧gnp.exe⟦U+2066⟧")
    assert LINK not in log.inner_text() and "title" not in log.inner_text()
    expect(log.locator(".a-ink").first).to_be_attached()
    assert log.locator("a, img, script").count() == 0
    assert page.evaluate("window.hit") is None and page.title() != "title"
    page.get_by_role("button", name="err", exact=True).click()
    expect(log).to_contain_text(MARKUP)
    page.get_by_role("button", name="script", exact=True).click()
    expect(log).to_contain_text("#!/usr/bin/env bash")
    assert page.evaluate("window.hit") is None
    assert window.complaints == []


def test_words_are_found_and_lines_wrapped(site, noisy, page):
    page.goto(address(site, noisy, "?views=logs&select=1/tide"))
    expect(page.get_by_role("log")).to_contain_text("step 400 done")
    page.keyboard.press("l")
    page.keyboard.type("STEP 39")
    expect(page.get_by_text("11 lines")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".log-line.current")).to_have_text("step 39 done")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".log-line.current")).to_have_text("step 399 done")
    page.get_by_label("only these").check()
    expect(page.locator(".log-line")).to_have_count(11)
    page.get_by_label("wrap").check()
    expect(page).to_have_url(re.compile(r"logs\.wrap=yes"))
    expect(page.locator(".log-lines.wrapped")).to_be_visible()


def test_a_log_is_followed_while_it_grows_and_says_when_it_has_ended(site, page, tmp_path):
    gate = tmp_path / "open"
    run = site.begin("growing", GROWING.format(gate=gate))
    page.goto(address(site, run, "?views=logs&select=1/gauge"))
    log = page.get_by_role("log")
    expect(log).to_have_text("first")
    expect(page.get_by_text(re.compile("following"))).to_be_visible()
    gate.touch()
    expect(log).to_contain_text("last")
    expect(page.get_by_text(re.compile("it has ended"))).to_be_visible()


def test_what_has_not_run_has_no_log_and_says_so(site, noisy, page):
    page.goto(address(site, noisy, "?views=logs&select=4/plot"))
    expect(page.get_by_role("status").filter(has_text="has written nothing")).to_be_visible()
    page.get_by_label("Whose log").select_option("run")
    expect(page.get_by_role("log")).to_contain_text("1/tide")
