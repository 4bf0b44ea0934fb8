"""The page of a run: what failed and why stands first; one button helps all that are alike."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.places import address
from tests.support.http_server import in_path
from tests.support.patience import eventually

MEMBERS = 24
# A cycle that goes well, then one in which every member fails for the same reason.
WIDE = f"""
[task parameters]
    m = 1..{MEMBERS}
[scheduling]
    initial cycle point = 20261116T0000Z
    final cycle point = 20261116T1200Z
    runahead limit = P0
    [[graph]]
        PT6H = '''
            prep => member<m> => join
            prep => waves?
            join[-PT6H] => prep
        '''
[runtime]
    [[prep, join]]
        script = true
    [[waves]]
        script = false  # at every point, and nothing waits for it
    [[MEMBERS]]
    [[member<m>]]
        inherit = MEMBERS
        script = \"\"\"
            test $CYLC_TASK_CYCLE_POINT = 20261116T0000Z && exit 0
            echo "CFL violated at step $CYLC_TASK_PARAM_m" >&2
            exit 3
        \"\"\"
"""
ALIKE = (
    f"{MEMBERS} tasks failed in the same way (member_m*): exit 3, CFL violated at step …; 1 "
    "task waits for them"
)
DONE = """
[scheduling]
    [[graph]]
        R1 = a => waves? & b
[runtime]
    [[a, b]]
        script = true
    [[waves]]
        script = test -e $CYLC_WORKFLOW_SHARE_DIR/mended || { echo no data >&2; exit 4; }
"""


def status_of(site, run):
    return site.caller().get(f"/runs/{in_path(run)}/facts").json["run"]["status"]


@pytest.fixture(scope="module")
def wide(site):
    run = site.begin("ensemble", WIDE)
    eventually(lambda: status_of(site, run) == "stalled", "the second cycle stalls", 120)
    return run


@pytest.fixture(scope="module")
def done(site):
    run = site.begin("optional", DONE)
    eventually(lambda: status_of(site, run) == "completed", "it completes", 60)
    return run


def picture(page, name):
    """For eyes, where somebody asks for it."""
    if folder := os.environ.get("TIDEWHEEL_PICTURES"):
        page.screenshot(path=str(Path(folder, f"{name}.png")))


def rows(page):
    return page.locator(".rows-space [role=row]")


def test_many_failures_of_one_cause_are_one_line_with_one_log_and_one_button(site, wide, page):
    page.goto(address(site, wide, "?views=graph"))
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text(ALIKE)
    expect(banner.get_by_role("listitem")).to_have_count(1)
    expect(banner.get_by_role("button", name=re.compile("^Trigger"))).to_have_count(1)
    said = banner.inner_text()
    assert said.index("CFL violated") < said.index("Trigger all")
    picture(page, "banner-graph")
    banner.get_by_role("button", name="Log of 20261116T0600Z/member_m01").click()
    expect(page.get_by_role("log")).to_contain_text("CFL violated at step 1")


def test_show_them_lists_exactly_those_that_failed_alike(site, wide, page):
    page.goto(address(site, wide, "?views=graph"))
    page.get_by_role("alert").get_by_role("button", name="show them").click()
    expect(page).to_have_url(re.compile("views=table"))
    expect(page.locator(".table-view .view-bar")).to_contain_text(f"{MEMBERS} of ")
    expect(rows(page).first).to_contain_text("failed")
    picture(page, "show-them")


def test_a_stall_says_since_when_and_when_it_times_out(site, wide, page):
    page.goto(address(site, wide, "?views=table"))
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text(
        re.compile(r"Stalled since .* \((just now|.* ago)\); stall timeout in \d+ (min|h)")
    )


def test_progress_counts_the_cycles_that_are_to_come(site, wide, page):
    page.goto(address(site, wide, "?views=table"))
    each = MEMBERS + 3
    bar = page.locator(".run-bar")
    expect(bar).to_contain_text(f"{each} of {3 * each} tasks done · 33 %")
    expect(bar.locator(".counts-bar .striped")).to_have_count(1)
    expect(bar.locator(".counts-signs")).to_contain_text(str(MEMBERS + 2))


@pytest.mark.parametrize("size", [(1280, 620), (390, 844)], ids=["desktop", "phone"])
@pytest.mark.parametrize("view", ["tree", "table", "timeline"])
def test_a_view_opens_where_something_needs_action(site, wide, page, view, size):
    """Not where something failed that nothing waits for."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(address(site, wide, f"?views={view}"))
    lines = {"tree": ".tree-line.task", "table": ".rows-space .row", "timeline": ".time-row"}
    failed = page.locator(lines[view]).filter(has_text=re.compile("member_.*failed", re.DOTALL))
    expect(failed.first).to_be_in_viewport()
    picture(page, f"opens-{view}-{size[0]}")


def test_the_table_is_sorted_by_its_heads_and_then_shows_what_is_first(site, wide, page):
    """Also where it was opened somewhere else: at the first task that needs action."""
    page.set_viewport_size({"width": 1280, "height": 620})
    page.goto(address(site, wide, "?views=table"))
    head = page.get_by_role("grid", name="Tasks").get_by_role("columnheader", name="Task")
    expect(rows(page).filter(has_text="failed").first).to_be_in_viewport()
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(page).to_have_url(re.compile("table.sort=name"))
    join = rows(page).filter(has_text="join").first
    expect(join).to_be_in_viewport()
    expect(join).to_have_attribute("aria-rowindex", "1")
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(rows(page).first).to_contain_text("waves")
    expect(rows(page).first).to_be_in_viewport()
    page.reload()
    expect(head).to_have_attribute("aria-sort", "descending")


def test_the_table_shows_point_name_and_state_beside_each_other_on_a_phone(site, wide, page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address(site, wide, "?views=table"))
    good = rows(page).filter(has_text="prep").filter(has_text="succeeded").first
    for text in ("06Z", "prep", "succeeded"):
        said = good.get_by_text(text, exact=True)
        expect(said).to_be_in_viewport(ratio=1)
        assert said.evaluate(
            "one => one.scrollWidth <= one.clientWidth + 1 || !one.clientWidth"
        )


def test_the_timeline_names_tasks_first_and_zooms_to_where_bars_are(site, wide, page):
    page.goto(address(site, wide, "?views=timeline"))
    label = page.get_by_role("button", name=re.compile("^member_m01 · 06Z"))
    expect(label).to_be_visible()
    expect(label).to_have_attribute("title", "20261116T0600Z/member_m01")
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    row = page.locator(".time-row").filter(has=label)
    expect(row.locator(".time-bar.ran")).to_be_in_viewport()
    picture(page, "timeline-zoomed")
    page.get_by_role("button", name="Fit").click()
    expect(page.get_by_role("button", name="Zoom out")).to_be_disabled()


def test_the_panel_says_why_above_the_buttons_and_each_action_once(site, wide, page):
    task = "20261116T0600Z/member_m07"
    page.goto(address(site, wide, f"?views=table&select={task}"))
    panel = page.get_by_role("complementary", name=f"Task {task}")
    expect(panel).to_contain_text("CFL violated at step 7")
    trigger = panel.get_by_role("button", name=re.compile("^Trigger"))
    expect(trigger).to_have_count(1)
    why = panel.get_by_label("Why it does not run")
    assert why.bounding_box()["y"] < trigger.bounding_box()["y"]
    picture(page, "panel")


def test_the_panel_says_why_the_job_of_a_submitted_task_does_not_begin(site, page):
    queue = in_path("run:unserved/run1")
    assert site.caller().post(f"/queues/{queue}/pause", {}).status == 200
    run = site.begin(
        "unserved", "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true\n"
    )
    page.goto(address(site, run, "?views=table&select=1/a"))
    why = page.get_by_label("Why it does not run")
    expect(why).to_contain_text("Queue 'run:unserved/run1' is paused")
    site.caller().post(f"/queues/{queue}/resume", {})
    expect(why).to_have_count(0)


def test_a_task_that_waits_for_many_names_them_once(site, wide, page):
    task = "20261116T0600Z/join"
    page.goto(address(site, wide, f"?views=table&select={task}"))
    why = page.get_by_label("Why it does not run")
    expect(why.get_by_role("listitem")).to_have_count(1)
    expect(why).to_contain_text(f"{task} waits: {ALIKE}")
    expect(why.get_by_role("button", name=f"Trigger {MEMBERS} tasks")).to_be_visible()


def test_analysis_has_what_always_fails_with_the_time_to_failure(site, wide, page):
    page.goto(address(site, wide, "?views=analysis&point=20261116T06*"))
    row = page.get_by_role("row", name=re.compile("member_m07"))
    expect(row).to_contain_text(re.compile(r"always.*(s|ms)$"))
    picture(page, "analysis")


def test_a_tab_shows_one_view_and_split_another_beside_it(site, wide, page):
    page.goto(address(site, wide, "?views=table"))
    tabs = page.get_by_role("group", name="Views")
    tabs.get_by_role("button", name="Tree").click()
    expect(page.get_by_role("region", name="Tree")).to_be_visible()
    expect(page.get_by_role("region", name="Table")).to_have_count(0)
    page.get_by_label("Split: show another view beside this one").select_option("Table")
    table = page.get_by_role("region", name="Table")
    expect(table).to_be_visible()
    wide_before = table.bounding_box()["width"]
    line = page.get_by_role("separator")
    place = line.bounding_box()
    page.mouse.move(place["x"] + 3, place["y"] + 100)
    page.mouse.down()
    page.mouse.move(place["x"] - 200, place["y"] + 100, steps=4)
    page.mouse.up()
    assert table.bounding_box()["width"] > wide_before + 150
    line.focus()
    page.keyboard.press("ArrowRight")
    assert table.bounding_box()["width"] < wide_before + 190
    picture(page, "split")
    page.get_by_role("button", name="Close Tree").click()
    expect(page.get_by_role("region", name="Tree")).to_have_count(0)
    expect(table).to_be_visible()


def test_a_failure_in_a_completed_run_is_run_again_from_the_page(site, done, page):
    page.goto(address(site, done, "?views=table"))
    failed = page.get_by_role("note", name="What failed")
    expect(failed).to_contain_text("1/waves failed (exit 4): no data")
    picture(page, "completed")
    share = site.tidewheel.state / "runs" / done / "share"
    (share / "mended").touch()
    failed.get_by_role("button", name="Trigger 1/waves").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Reopens the run")
    expect(dialog).to_contain_text("1/waves")
    dialog.get_by_role("button", name="Trigger 1/waves").click()
    expect(dialog).to_have_count(0)
    expect(rows(page).filter(has_text="waves")).to_contain_text("succeeded")
    expect(page.get_by_role("note", name="What failed")).to_have_count(0)


def test_after_a_command_for_many_nothing_stays_ticked_and_the_end_is_told_when_it_is_known(
    site, page
):
    flow = WIDE.replace("20261116T1200Z", "20261116T0600Z").replace(f"1..{MEMBERS}", "1..3")
    flow = flow.replace("script = false", "script = true")
    run = site.begin("again", flow)
    eventually(lambda: status_of(site, run) == "stalled", "it stalls", 60)
    page.goto(address(site, run, "?views=table&state=failed"))
    expect(rows(page)).to_have_count(3)
    page.get_by_label("Tick all that are shown").check()
    bulk = page.get_by_role("group", name="Actions on ticked tasks")
    bulk.get_by_role("button", name="Trigger").click()
    page.get_by_role("dialog").get_by_role("button", name="Trigger 3 tasks").click()
    told = page.get_by_role("status")
    expect(told.get_by_text("3 tasks triggered", exact=True)).to_be_visible()
    expect(bulk).to_have_count(0)
    expect(told.get_by_text("3 tasks triggered: 3 failed again")).to_be_visible()
    picture(page, "toast")


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (1440, "dark"), (390, "light")])
def test_the_banner_fits_every_screen(site, wide, page, width, theme):
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(address(site, wide, "?views=table"))
    expect(page.get_by_role("alert")).to_contain_text("failed in the same way")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture(page, f"banner-{width}-{theme}")


GIVEN_UP = """
[scheduler]
    [[events]]
        stall timeout = PT0S
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        script = false
    [[b]]
"""


def test_a_run_that_its_stall_timeout_has_ended_says_so_and_can_be_continued(site, page):
    run = site.begin("givenup", GIVEN_UP)
    eventually(lambda: status_of(site, run) == "stalled", "it stalls", 60)
    page.goto(address(site, run, "?views=table"))
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("no scheduler drives this run now")
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    # What a trigger would do is what it does to a run that goes on again.
    banner.get_by_role("button", name="Trigger 1/a").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The run, now stalled, would be running")
    expect(dialog).to_contain_text("1/b after 1/a")
    page.keyboard.press("Escape")
    page.goto(f"{site.url}/runs")
    row = page.locator(".grid-row").filter(has_text=run)
    expect(row).to_contain_text("no scheduler")
