"""Runs that are too large for eyes: each has a defined behaviour (`make campaign`)."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.places import address

pytestmark = pytest.mark.nightly

PARENTS = """
[task parameters]
    i = 1..1000
[scheduling]
    [[graph]]
        R1 = part<i> => all_of_them
[runtime]
    [[part<i>, all_of_them]]
        script = true
"""
WIDE = """
[task parameters]
    i = 1..10000
[scheduling]
    [[graph]]
        R1 = start => part<i>
[runtime]
    [[start, part<i>]]
        script = true
"""

LONG = """
[scheduling]
    [[graph]]
        R1 = talk
[runtime]
    [[talk]]
        script = head -c 60000000 /dev/zero | tr '\\0' x | fold -w 60; echo; echo the end
"""


def test_a_log_of_sixty_megabytes_is_read_from_its_end_in_bounded_memory(site, page):
    run = site.begin("long", LONG)
    page.goto(address(site, run, "?views=logs&select=1/talk"))
    expect(page.get_by_text(re.compile("6[0-9.]+ MB · the log is complete"))).to_be_visible(
        timeout=60_000
    )
    expect(page.get_by_role("log")).to_contain_text("the end")
    page.get_by_role("log").evaluate("log => { log.scrollTop = 0 }")
    page.get_by_role("button", name=re.compile("Show earlier lines")).click()
    expect(page.get_by_text("End of file")).to_be_visible()
    assert page.locator(".log-line").count() < 200, "only what is seen is drawn"
    assert page.evaluate("performance.memory.usedJSHeapSize") < 150e6


def test_of_a_thousand_parents_those_that_are_open_come_first(site, page):
    run = site.begin("parents", PARENTS, "--pause")
    page.goto(address(site, run, "?views=table&select=1/all_of_them"))
    panel = page.get_by_role("complementary", name="Task 1/all_of_them")
    expect(panel).to_contain_text("0 of 1000 are met", timeout=30_000)
    expect(panel.locator(".atom")).to_have_count(20)
    panel.get_by_role("button", name="980 more").click()
    expect(panel.locator(".atom")).to_have_count(220)


def test_ten_thousand_tasks_are_listed_and_drawn_only_when_narrowed(site, page):
    run = site.begin_paused("wide", WIDE)
    given = site.tidewheel("set", run, "1/start", "--server", site.url)
    assert given.status == 0, given
    page.goto(address(site, run, "?views=graph,table"))
    expect(page.get_by_text(re.compile("tasks are too many to draw"))).to_be_visible(
        timeout=60_000
    )
    expect(page.get_by_text(re.compile(r"^1000\d tasks"))).to_be_visible()
    assert page.locator(".rows-space [role=row]").count() < 100, "only what is seen is drawn"
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address(site, run, "?views=table"))
    expect(page.get_by_text(re.compile(r"^1000\d tasks"))).to_be_visible(timeout=60_000)
    assert page.locator(".rows-space [role=row]").count() < 100, "nor on a phone"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(address(site, run, "?views=graph,table"))
    page.get_by_label("Name or family").fill("i0042")
    expect(page.locator(".rows-space [role=row]")).to_have_count(10, timeout=30_000)
    page.get_by_role("button", name=re.compile("found outside")).or_(
        page.locator(".task-box").first
    ).first.click()
    expect(page.locator(".task-box").first).to_be_visible(timeout=30_000)
