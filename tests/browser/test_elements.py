"""Elements of a mapped task (issue 19): one box, line and row, and each if asked for."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.places import address
from tests.support.http_server import in_path
from tests.support.patience import eventually

FLOW = r"""
[task parameters]
    beam = list.beams
[scheduling]
    [[graph]]
        R1 = list => grid<beam> => join
[runtime]
    [[list]]
        script = echo "{\"beams\": [$(seq -s , 0 199)]}" > "$TIDEWHEEL_OUTPUTS"
    [[grid<beam>]]
        script = test "$CYLC_TASK_PARAM_beam" != 137 || { echo beam 137 is dark; false; }
    [[join]]
        script = true
"""
WIDER = "?graph.n=2"  # of a stalled run only what failed is live
SUM = "200 elements: 1 failed, 199 succeeded"
ELEMENT = re.compile(r"^1/grid_beam\d+, ")
FAILED = "1/grid_beam137"


@pytest.fixture(scope="module")
def run(site):
    """One that has stalled: an element failed, all others have succeeded."""
    run = site.begin("beams", FLOW)
    facts = f"/runs/{in_path(run)}/facts"

    def status():
        return site.caller().get(facts).json["run"]["status"]

    eventually(lambda: status() == "stalled", "200 elements have ended", 120.0)
    return run


def test_two_hundred_elements_are_one_box_of_the_graph_and_what_failed_stands_beside_it(
    site, run, window
):
    page = window.log_in(site.link())
    page.goto(address(site, run, WIDER))
    fold = page.get_by_label(f"1/grid<beam>, {SUM}, folded")
    expect(fold).to_be_visible()
    expect(fold).to_contain_text(SUM)
    expect(page.get_by_label(ELEMENT)).to_have_count(1)
    assert page.locator(".task-box").count() < 6
    page.get_by_label(f"{FAILED}, failed").click()
    panel = page.get_by_role("complementary", name=f"Task {FAILED}")
    panel.get_by_role("button", name="log: out", exact=True).click()
    expect(page.get_by_role("log")).to_contain_text("beam 137 is dark")
    assert window.complaints == []


def test_a_box_of_elements_is_unfolded_and_folded_by_mouse_and_keys(site, run, page):
    page.goto(address(site, run, WIDER))
    page.get_by_label(f"1/grid<beam>, {SUM}, folded").click()
    expect(page.get_by_label("1/grid_beam12, succeeded")).to_be_attached()
    expect(page.get_by_label(ELEMENT)).to_have_count(200)
    expect(page).to_have_url(re.compile("graph.unfold="))
    page.get_by_role("button", name="Fold again").click()
    fold = page.get_by_label(f"1/grid<beam>, {SUM}, folded")
    expect(fold).to_be_visible()
    expect(page.get_by_label(ELEMENT)).to_have_count(1)
    fold.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label(ELEMENT)).to_have_count(200)


def test_an_element_that_is_looked_at_is_drawn_beside_the_others(site, run, page):
    page.goto(address(site, run, f"{WIDER}&select=1/grid_beam12"))
    expect(page.get_by_label("1/grid_beam12, succeeded")).to_be_visible()
    expect(page.get_by_label(ELEMENT)).to_have_count(2)


def test_in_the_tree_elements_are_one_line_with_counts_until_it_is_opened(site, run, page):
    page.goto(address(site, run, "?views=tree"))
    tree = page.get_by_role("tree", name="Tasks by point and family")
    line = tree.get_by_role("treeitem", name=re.compile("grid<beam>"))
    expect(line).to_have_attribute("aria-expanded", "false")
    expect(line).to_contain_text("199")
    expect(line).to_contain_text(re.compile(r"1\s*failed"))
    expect(tree.get_by_role("treeitem", name=re.compile("grid_beam"))).to_have_count(0)
    line.click()
    expect(tree.get_by_role("treeitem", name=re.compile("grid_beam0"))).to_be_visible()
    page.goto(address(site, run, "?views=tree&state=failed"))
    expect(tree.get_by_role("treeitem", name=re.compile("grid_beam137"))).to_be_visible()


def test_in_the_table_elements_are_one_row_with_counts_and_what_failed_has_its_own(
    site, run, page
):
    page.goto(address(site, run, "?views=table"))
    rows = page.locator(".rows-space [role=row]")
    expect(rows.filter(has_text="grid<beam>")).to_contain_text(SUM)
    expect(rows.filter(has_text="grid_beam")).to_have_count(1)
    expect(rows.filter(has_text="grid_beam137")).to_contain_text("failed")
    expect(page.get_by_text("201 tasks")).to_be_visible()
    rows.filter(has_text="grid<beam>").click()
    expect(rows.filter(has_text="grid_beam0")).to_be_visible()
    expect(rows.filter(has_text="grid<beam>")).to_have_count(0)
    page.get_by_role("button", name="Fold again").click()
    expect(rows.filter(has_text="grid_beam")).to_have_count(1)


@pytest.mark.parametrize("view", ["table", "graph"])
def test_all_elements_are_ticked_and_acted_on_as_one(site, run, page, view):
    page.goto(address(site, run, f"{WIDER}&views={view}"))
    if view == "table":
        page.get_by_label("Tick 1/grid<beam>").check()
    else:
        page.get_by_label(f"1/grid<beam>, {SUM}, folded").click(modifiers=["Control"])
    ticked = page.get_by_role("group", name="Actions on ticked tasks")
    expect(ticked).to_contain_text("1 ticked")
    ticked.get_by_role("button", name="Hold").click()
    dialog = page.get_by_role("dialog", name=re.compile("Hold"))
    expect(dialog).to_contain_text("1/grid<beam>")
