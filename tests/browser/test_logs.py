"""What jobs wrote: shown as it comes, searched, and obeyed in nothing (S10)."""

import os
import re

import pytest
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
    page.keyboard.press("s")
    page.keyboard.type("STEP 39")
    expect(page.get_by_text("11 lines")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".log-line.current")).to_have_text("step 39 done")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".log-line.current")).to_have_text("step 399 done")
    page.get_by_label("only lines found").check()
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
    expect(page.get_by_text(re.compile("the log is complete"))).to_be_visible()


def test_what_has_not_run_has_no_log_and_says_so(site, noisy, page):
    page.goto(address(site, noisy, "?views=logs&select=4/plot"))
    expect(page.get_by_role("status").filter(has_text="has written nothing")).to_be_visible()
    page.get_by_label("Whose log").select_option("run")
    expect(page.get_by_role("log")).to_contain_text("1/tide")


LARGE = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = model
[runtime]
    [[model]]
        script = \"\"\"
            echo "ERROR: CFL violated at step $CYLC_TASK_CYCLE_POINT"
            if test $CYLC_TASK_CYCLE_POINT = 1; then
                cat {filler}
                echo "WARNING: that was all"
            fi
        \"\"\"
"""


@pytest.fixture(scope="module")
def large(site, tmp_path_factory):
    """A run with a job that wrote 51 MB."""
    filler = tmp_path_factory.mktemp("large") / "filler"
    line = b"INFO: step %07d, and all is as it has been for a while\n"
    filler.write_bytes(b"".join(line % number for number in range(1, 950_000)))
    assert os.path.getsize(filler) > 51_000_000
    return site.begin("large", LARGE.format(filler=filler))


def test_a_line_at_the_beginning_of_51_megabytes_is_found(site, large, page):
    """The page holds the end; the server searches all of it."""
    page.goto(address(site, large, "?views=logs&select=1/model"))
    log, current = page.get_by_role("log"), page.locator(".log-line.current")
    expect(log).to_contain_text("WARNING: that was all")
    expect(page.get_by_text("the log is complete")).to_be_visible()
    # Nobody waits for the server before Enter: it goes there as soon as the line is found.
    page.get_by_label("Search in the log").fill("cfl violated")
    page.get_by_label("Search in the log").press("Enter")
    expect(page.get_by_text("1 of 1 line", exact=True)).to_be_visible()
    expect(current).to_have_text("ERROR: CFL violated at step 1")
    # Its number leads to it, and so does the address.
    number = current.get_by_role("button")
    begin = int(number.get_attribute("data-number"))
    number.click()
    expect(page).to_have_url(re.compile(rf"logs\.lines=[^&]*{begin}(&|$)"))
    link = page.get_by_role("link", name="Copy link").get_attribute("href")
    page.get_by_role("button", name="End of file").click()
    expect(log).to_contain_text("WARNING: that was all")
    last = page.locator(".log-line", has_text="that was all").get_by_role("button")
    expect(last).to_have_attribute("data-number", str(begin + 950_000))
    page.get_by_role("button", name="Start of file").click()
    expect(page.locator("[data-number='1']")).to_be_visible()
    page.get_by_label("Go to line").fill(str(begin + 500_000))
    page.get_by_label("Go to line").press("Enter")
    expect(page.locator(".log-line.picked")).to_contain_text("step 0500000,")
    page.goto(link)
    expect(page.locator(".log-line.picked")).to_have_text("ERROR: CFL violated at step 1")


def test_a_line_is_looked_for_in_the_logs_of_other_tasks(site, large, page):
    page.goto(address(site, large, "?views=logs&select=1/model"))
    expect(page.get_by_text("the log is complete")).to_be_visible()
    page.get_by_label("Search in the log").fill("cfl violated")
    expect(page.get_by_text("1 line", exact=True)).to_be_visible()
    page.get_by_label("Search in the log").press("Enter")
    page.locator(".log-line.current").get_by_role("button").click()
    page.get_by_role("button", name="Find in other tasks").click()
    expect(page.get_by_label("Text to search for")).to_have_value("CFL violated at step *")
    found = page.get_by_role("list", name="Lines that were found")
    expect(found.get_by_role("listitem")).to_have_count(2)
    found.get_by_role("button", name="2/model out").click()
    expect(page.locator(".log-line.picked")).to_have_text("ERROR: CFL violated at step 2")
    page.go_back()
    expect(found.get_by_role("listitem")).to_have_count(2)
    page.get_by_label("Only in tasks").fill("1/*")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(found.get_by_role("listitem")).to_have_count(1)


def test_lines_are_chosen_by_level_and_the_schedulers_debug_lines_are_hidden(site, noisy, page):
    page.goto(address(site, noisy, "?views=logs&logs.of=run"))
    log = page.get_by_role("log")
    expect(log).to_contain_text("INFO")
    expect(log).not_to_contain_text("DEBUG")
    page.get_by_label("Level").select_option("all levels")
    expect(log).to_contain_text("DEBUG")
    page.get_by_label("Level").select_option("warnings and errors")
    expect(page.get_by_text("not found in this log")).to_be_visible()
    expect(page).to_have_url(re.compile(r"logs\.run-level=warning"))


def test_a_whole_log_is_saved_as_a_file(site, noisy, page):
    page.goto(address(site, noisy, "?views=logs&select=1/tide"))
    expect(page.get_by_role("log")).to_contain_text("step 400 done")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    # Another test may have run it again.
    name = rf"{noisy.replace('/', '_')}-1_tide-0\d-job\.out\.txt"
    assert re.fullmatch(name, saved.value.suggested_filename)
    with open(saved.value.path(), "rb") as file:
        content = file.read()
    assert b"step 1\x1b[0m done" in content
    assert MARKUP.encode() in content
