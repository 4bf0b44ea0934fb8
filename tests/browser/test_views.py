"""A run as tree, timeline and analysis, in a real browser."""

import re

from playwright.sync_api import expect

from tests.browser.places import address


def test_the_tree_opens_down_to_attempts_and_is_walked_by_keys(site, noisy, page):
    page.goto(address(site, noisy, "?views=tree"))
    tree = page.get_by_role("tree", name="Tasks by point and family")
    page.get_by_role("button", name="Open all").click()
    gauge = tree.get_by_role("treeitem", name=re.compile("gauge")).first
    expect(gauge).to_contain_text("succeeded")
    tree.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(tree.get_by_role("treeitem", name=re.compile("#1")).first).to_contain_text("exit 0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(tree.get_by_role("treeitem", name=re.compile("#1"))).to_have_count(0)
    page.get_by_role("button", name="Close all").click()
    expect(tree.get_by_role("treeitem", name=re.compile("gauge"))).to_have_count(0)
    expect(tree.get_by_role("treeitem").first).to_contain_text("succeeded")


def test_the_timeline_marks_what_made_the_run_take_so_long(site, noisy, page):
    page.goto(address(site, noisy, "?views=timeline"))
    rows = page.get_by_role("list", name="Jobs").get_by_role("listitem")
    expect(rows.filter(has_text="lonely · 1")).to_be_visible()
    expect(page.locator(".time-bar.ran.critical").first).to_be_visible()
    page.get_by_role("button", name=re.compile("^critical path")).click()
    expect(rows.first).to_be_visible()
    expect(rows.filter(has_text="lonely · 1")).to_have_count(0)
    before = page.locator(".time-axis").inner_text()
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator(".time-axis")).not_to_have_text(before)
    page.get_by_role("button", name=re.compile("^critical path")).click()
    page.get_by_role("combobox", name="rows").select_option("name")
    expect(rows.filter(has_text="gauge")).to_have_count(1)
    rows.filter(has_text="lonely").get_by_role("button").click()
    expect(page.get_by_role("complementary")).to_contain_text("lonely")


def test_the_analysis_compares_names_and_shows_one_over_cycles(site, noisy, page):
    page.goto(address(site, noisy, "?views=analysis"))
    page.get_by_role("button", name="tide").click()
    plot = page.get_by_role("slider", name="Run time of tide over", exact=False)
    plot.press("ArrowRight")  # the values are read by pointer and by keyboard
    expect(plot).to_have_attribute("aria-valuetext", re.compile(r"^1: run time \d"))
    expect(page.locator(".plot-values").first).to_contain_text("run time")
    page.get_by_role("button", name="Queue time").click()
    expect(
        page.get_by_role("slider", name="Queue time of tide over", exact=False)
    ).to_be_visible()
    expect(page).to_have_url(re.compile(r"(?=.*analysis\.name=tide).*analysis\.of=queue"))
    page.get_by_role("button", name="GPU", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="No figures for GPU yet")).to_be_visible()


MATRIX = """
[task parameters]
    i = 1..12
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    runahead limit = P3
    [[graph]]
        P1 = start => part<i>
[runtime]
    [[PARTS]]
        script = true
    [[part<i>]]
        inherit = PARTS
    [[start]]
        script = test $CYLC_TASK_CYCLE_POINT != 2
"""


def test_tasks_stand_by_points_and_are_walked_opened_and_ticked_by_keys(site, page):
    run = site.begin("matrix", MATRIX)
    page.goto(address(site, run, "?views=grid"))
    grid = page.get_by_role("grid", name="Tasks by cycle point")
    expect(grid.get_by_role("columnheader")).to_have_text(["Task", "1", "2", "3"])
    expect(grid.get_by_role("gridcell", name="2/start: failed")).to_be_visible()
    expect(grid.get_by_role("gridcell", name="1/PARTS: 12 succeeded")).to_be_visible()
    grid.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("select=2.start|select=2%2Fstart"))
    page.keyboard.press("Space")
    expect(grid.locator(".ticked")).to_have_count(1)
    grid.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(grid.get_by_role("gridcell", name="1/part_i07: succeeded")).to_be_visible()
    expect(page).to_have_url(re.compile("grid.toggled="))
    page.reload()
    expect(grid.get_by_role("row")).to_have_count(1 + 1 + 1 + 12)
    drawn = {one.inner_html() for one in grid.locator(".matrix-square .state-icon").all()[:4]}
    assert len(drawn) == 2, "a state has a shape beside its colour"
