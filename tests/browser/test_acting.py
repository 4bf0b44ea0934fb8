"""Acting in the graph: what would happen is drawn first, and bounded by a click."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.places import address
from tests.support.http_server import in_path


def reflow(page, task):
    """The card that stands beside the graph, asked for a new flow from this task."""
    panel = page.get_by_role("complementary", name=f"Task {task}")
    panel.get_by_role("button", name="Trigger", exact=True).click()
    card = page.get_by_role("dialog")
    card.get_by_label("everything after it runs again").check()
    return card


@pytest.mark.req("R001-40", "R001-53")
def test_a_reflow_is_drawn_first_bounded_in_the_graph_and_told_apart(site, noisy, page):
    page.goto(address(site, noisy, "?views=graph&select=1/gauge"))
    card = reflow(page, "1/gauge")
    expect(page.get_by_label("1/gauge, succeeded, would run, number 1")).to_be_visible()
    merge = page.get_by_label(re.compile("^1/merge, "))
    expect(merge).to_have_accessible_name(re.compile("would run, number 3"))
    page.get_by_label(re.compile("^1/tide, ")).click()
    expect(card).to_contain_text("until 1/tide")
    expect(merge).not_to_have_accessible_name(re.compile("would run"))
    expect(page.get_by_label(re.compile("1/tide, .*the flow would end here"))).to_be_visible()
    card.get_by_role("button", name="Trigger 1/gauge in a new flow until 1/tide").click()
    expect(card).to_have_count(0)
    page.goto(address(site, noisy, "?views=table&flow=2&point=1"))
    rows = page.locator(".rows-space [role=row]")
    expect(rows).to_have_count(2)
    expect(rows.first.get_by_role("img", name="flow 2")).to_be_visible()
    flows = site.caller().get(f"/runs/{in_path(noisy)}").json["flows"]
    assert [one["until_tasks"] for one in flows if one["flow"] == 2] == [["1/tide"]]
    for row in rows.all():  # the next test finds a run that rests again
        expect(row).to_contain_text("succeeded")


@pytest.mark.req("R001-53")
def test_bounds_can_be_set_by_keys_and_leaving_changes_nothing(site, noisy, page):
    page.goto(address(site, noisy, "?views=graph&select=1/tide"))
    card = reflow(page, "1/tide")
    node = page.get_by_label(re.compile("^1/merge, .*would run"))
    expect(node).to_be_visible()
    node.focus()
    page.keyboard.press("Enter")
    expect(card).to_contain_text("until 1/merge")
    card.get_by_label("until point").fill("1")
    expect(card).to_contain_text("until 1/merge, point 1")
    expect(page.get_by_text("the flow ends after this point")).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(page.get_by_role("complementary", name="Task 1/tide")).to_be_visible()


@pytest.mark.req("R001-51")
def test_a_task_outside_of_the_window_is_found_by_name_and_by_point(site, noisy, page):
    page.goto(address(site, noisy, "?views=graph&graph.n=0"))
    expect(page.locator(".task-box").first).to_be_visible()
    expect(page.get_by_label(re.compile("^1/lonely"))).to_have_count(0)
    page.get_by_label("Name or family").fill("lonely")
    page.get_by_role("button", name="outside of this window").click()
    expect(page.get_by_label("1/lonely, succeeded")).to_be_visible()
    page.get_by_label("Point, with").fill("1")
    expect(page.locator(".task-box")).to_have_count(1)
    page.get_by_label("Name or family").fill("")
    expect(page.get_by_label(re.compile("^1/tide"))).to_be_visible()


@pytest.mark.req("R001-31")
def test_a_stop_point_is_seen_when_it_comes_near(site, noisy, page):
    page.goto(address(site, noisy, "?views=graph&graph.n=2"))
    expect(page.locator(".run-header")).to_contain_text(re.compile("stop point 2"))
    expect(page.locator(".stop-word")).to_have_text("stop point")


@pytest.mark.req("R001-52")
def test_an_output_that_was_made_by_hand_is_marked_with_who_made_it(site, noisy, page):
    given = site.tidewheel("set", noisy, "2/merge", "--output", "half", "--server", site.url)
    assert given.status == 0, given
    page.goto(address(site, noisy, "?views=history&select=2/merge"))
    output = page.locator(".outputs li", has_text="half")
    expect(output.get_by_role("img", name="made by hand")).to_be_visible()
    expect(output).to_contain_text("by hand (")
    expect(page.get_by_label("What happened around this batch")).to_contain_text("set 2/merge")


def test_the_run_is_seen_as_it_was_and_the_slider_comes_back_to_now(site, noisy, page):
    page.goto(address(site, noisy, "?views=history"))
    tasks = page.get_by_label("Tasks as they were")
    expect(tasks).to_contain_text("succeeded")
    page.get_by_label("Batch", exact=True).fill("1")
    expect(page.get_by_label("Tasks as they were")).not_to_contain_text("succeeded")
    expect(page.locator(".story [aria-current]")).to_contain_text("batch 1")
    expect(page).to_have_url(re.compile(r"history\.batch=1$"))  # once the hand rests
    page.keyboard.press("]")
    expect(page.locator(".story [aria-current]")).to_contain_text("batch 2")
    page.get_by_role("button", name="To the beginning").click()
    expect(page.get_by_text("The run had not begun")).to_be_visible()
    page.get_by_role("button", name="Now", exact=True).click()
    expect(tasks).to_contain_text("succeeded")
    expect(page).not_to_have_url(re.compile(r"history\.batch"))


@pytest.mark.req("R001-50")
def test_the_graph_of_a_moment_shows_what_changed_and_why_and_plays_on(site, noisy, page):
    page.goto(address(site, noisy, "?views=history"))
    expect(page.get_by_label("Tasks as they were")).to_contain_text("plot")  # many batches on
    page.goto(address(site, noisy, "?views=history&history.as=graph&history.batch=1"))
    graph = page.get_by_label("Graph as it was")
    boxes = graph.locator(".task-box")
    expect(boxes.first).to_be_visible()
    expect(graph.locator(".touched").first).to_be_visible()
    expect(graph.locator(".s-succeeded")).to_have_count(0)
    page.get_by_role("slider", name="Batch", exact=True).focus()
    page.keyboard.press("ArrowRight")
    here = page.locator(".story [aria-current]")
    expect(here).to_contain_text("batch 2")
    expect(here).to_contain_text("Because")
    expect(page).to_have_url(re.compile(r"history\.batch=2$"))
    link = page.get_by_role("link", name="Link", exact=True)
    expect(link).to_have_attribute("href", re.compile(r"history\.batch=2"))
    page.get_by_label("Batches per second").select_option("500")
    page.get_by_role("button", name="Play").click()
    expect(graph.locator(".s-succeeded").first).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it has come to the end


@pytest.mark.req("R001-45")
def test_a_command_about_a_glob_is_shown_first_and_a_double_click_gives_it_once(
    site, noisy, page, window
):
    page.goto(address(site, noisy, "?views=tree"))
    opener = page.get_by_role("button", name="Command …")
    opener.focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("dialog", name="Command")
    expect(form.get_by_label("What")).to_be_focused()
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    page.keyboard.press("Enter")
    form.get_by_label("What").select_option("Hold")
    form.get_by_label("Tasks").fill("2/mer*")
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog", name="Hold 2/mer*")
    expect(shown).to_contain_text("2/merge")
    shown.get_by_role("button", name="Hold 2/mer*").dblclick()
    expect(shown).to_have_count(0)
    expect(
        page.get_by_role("status").get_by_text("Hold 2/mer*: accepted by the scheduler")
    ).to_have_count(1)
    assert len([url for url in window.asked if url.endswith("/hold")]) == 1
    release = f"/runs/{in_path(noisy)}/release?wait_s=10"
    assert site.caller().post(release, {"ids": ["2/merge"]}).status < 300


HANDLED = """
[scheduling]
    [[graph]]
        R1 = '''
            sail? => land
            sail:fail? => tow
        '''
[runtime]
    [[sail]]
        script = test -e {wind}
    [[land, tow]]
        script = true
"""


def test_a_completed_run_is_reopened_from_the_panel_of_what_failed(site, page, tmp_path):
    wind = tmp_path / "wind"
    run = site.begin("regatta", HANDLED.format(wind=wind))
    page.goto(address(site, run, "?views=table&select=1/sail"))
    header = page.locator(".run-header")
    expect(header).to_contain_text("completed")
    panel = page.get_by_role("complementary", name="Task 1/sail")
    why = panel.get_by_label("Why it does not run")
    expect(why).to_contain_text("trigger, set and release reopen it")
    actions = panel.get_by_role("group", name="Actions")
    expect(actions.get_by_role("button", name="Trigger", exact=True)).to_be_visible()
    expect(actions.get_by_role("button", name="Hold")).to_have_count(0)
    wind.touch()
    actions.get_by_role("button", name="Trigger", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Reopens the run")
    expect(dialog).to_contain_text("1/land after 1/sail")
    dialog.get_by_role("button", name="Trigger 1/sail").click()
    expect(dialog).to_have_count(0)
    rows = page.locator(".rows-space [role=row]")
    expect(rows.filter(has_text="land")).to_contain_text("succeeded")
    expect(header).to_contain_text("completed")
