"""The web page in a real browser, before a real server with real runs (S8, S10)."""

import re
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.support.http_server import Caller

HARBOUR = """
[scheduling]
    [[graph]]
        R1 = pilot => dock => unload => customs => leave
[runtime]
    [[pilot, dock, unload, leave]]
        script = true
    [[customs]]
        script = test -e {papers}
"""
HOSTILE = "<img src=x onerror=window.hit=1>"
TIDE = f"""
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    runahead limit = P3
    [[graph]]
        P1 = '''
            gauge & wind => MODELS
            MODELS:succeed-all => merge
            merge[-P1] => merge
        '''
[runtime]
    [[root]]
        script = true
    [[MODELS]]
    [[tide, wave]]
        inherit = MODELS
    [[gauge, wind]]
    [[merge]]
        script = echo '{HOSTILE}'; exit 1
        [[[meta]]]
            title = {HOSTILE}
"""


@pytest.fixture(scope="module")
def tide(site):
    """A cycling run that stalls, with a name for a title that is none."""
    return site.begin("tide", TIDE)


def address(site, run, query=""):
    return f"{site.url}/runs/{quote(run, safe='')}{query}"


def test_a_newcomer_comes_from_the_link_to_a_mended_stall(site, window, tmp_path):
    papers = tmp_path / "papers"
    run = site.begin("harbour", HARBOUR.format(papers=papers))
    page = window.log_in(site.link())
    line = page.locator(".grid-row", has_text=run)
    expect(line).to_contain_text("stalled")
    expect(line).to_contain_text("1/customs failed")
    line.get_by_role("link", name="1/customs").click()
    panel = page.get_by_role("complementary", name="Task 1/customs")
    expect(panel).to_contain_text("It needs action")
    papers.touch()
    panel.get_by_role("button", name="Trigger", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("now stalled, would be running")
    expect(dialog).to_contain_text("1/leave after 1/customs")
    dialog.get_by_role("button", name="Trigger 1/customs").click()
    expect(page.locator(".run-header")).to_contain_text("completed")
    expect(page.locator(".run-causes")).to_have_count(0)
    assert window.complaints == []


def test_nothing_comes_from_elsewhere_and_hostile_texts_stay_texts(site, tide, window):
    """S10: a title, a log and a name with markup are shown as they are."""
    page = window.log_in(site.link())
    page.goto(address(site, tide, "?views=graph,table&select=1/merge"))
    expect(page.get_by_role("complementary", name="Task 1/merge")).to_contain_text(HOSTILE)
    expect(page.locator(".task-box").first).to_be_visible()
    assert page.evaluate("window.hit") is None
    assert {urlsplit(url).netloc for url in window.asked} == {urlsplit(site.url).netloc}
    assert window.complaints == [], "the policy refused something of ours"


@pytest.mark.req("R001-50")
def test_the_graph_shows_states_edges_and_as_much_as_is_wanted(site, tide, page):
    page.goto(address(site, tide))
    merge = page.get_by_label("1/merge, failed")
    expect(merge).to_be_visible()
    expect(page.locator(".dependency.lost, .dependency.open").first).to_be_attached()
    expect(page.get_by_label("1/gauge", exact=False)).to_have_count(0)
    page.get_by_label("Edges around the tasks in the pool").fill("2")
    expect(page.get_by_label("1/gauge, succeeded")).to_be_visible()
    expect(page).to_have_url(re.compile("graph\\.n=2"))
    merge.click()
    expect(page.get_by_role("complementary", name="Task 1/merge")).to_contain_text("1/MODELS")
    page.get_by_label("group by").select_option("both")
    expect(page.locator(".frame-box", has_text="MODELS").first).to_be_visible()


def test_the_table_filters_by_what_the_address_says_and_acts_on_many(site, tide, page):
    page.goto(address(site, tide, "?views=table&state=failed"))
    rows = page.locator(".rows-space [role=row]")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    expect(rows).not_to_have_count(1)
    page.get_by_label("Name or family").fill("MOD*")
    page.get_by_label("Point, with").fill("2")
    expect(rows).to_have_count(2)
    page.get_by_label("Tick all that are shown").check()
    page.get_by_role("group", name="Actions on ticked tasks").get_by_role(
        "button", name="Trigger"
    ).click()
    dialog = page.get_by_role("dialog", name="Trigger 2 tasks")
    expect(dialog.get_by_role("button", name="Trigger 2 tasks")).to_be_enabled()
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_reader_sees_everything_and_no_button_that_would_be_refused(site, tide, window):
    token = (
        site.caller()
        .post("/tokens", {"name": "reader", "scopes": ["read"], "names": ["*"]})
        .json["token"]
    )
    page = window.log_in(site.link(Caller(urlsplit(site.url).netloc, token)))
    expect(page.locator(".grid-row", has_text=tide)).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Pause|Stop|Continue"))).to_have_count(0)
    page.goto(address(site, tide, "?views=table&select=1/merge"))
    expect(page.get_by_label("Why it does not run")).to_be_visible()
    expect(
        page.get_by_role("button", name=re.compile("Trigger|Hold|Remove|Reload"))
    ).to_have_count(0)
    expect(page.get_by_role("checkbox")).to_have_count(0)


def test_a_session_that_ended_says_so_what_to_do_and_goes_on_with_another(site, tide, page):
    page.get_by_role("link", name=tide).click()
    expect(page.get_by_role("heading", name=tide)).to_be_visible()
    numbers = [
        one["number"]
        for one in site.caller().get("/tokens").json["tokens"]
        if one["kind"] == "session"
    ]
    for number in numbers:
        site.caller().post(f"/tokens/{number}/revoke")
    expect(page.get_by_role("heading", name="Your session has ended")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("tidewheel token link")
    another = page.context.new_page()
    another.goto(site.link())
    another.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name=tide)).to_be_visible()
    # With the word for changes of the session that is there now.
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".run-title")).to_contain_text("paused")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator(".run-title")).not_to_contain_text("paused")


def test_a_choice_made_before_the_runs_are_known_is_made_when_they_are(tide, page):
    expect(page.get_by_role("link", name=tide)).to_be_visible()
    held = []
    page.route(re.compile(r"/runs\?limit=200"), lambda one: held.append(one) or None)
    page.keyboard.press("Control+k")
    page.keyboard.type(tide)
    expect(page.get_by_role("listbox", name="Found")).to_contain_text("Loading runs")
    page.keyboard.press("Enter")
    for one in held:
        one.continue_()
    page.wait_for_url(f"**/runs/{quote(tide, safe='')}")


def test_everything_can_be_reached_by_keys(tide, page):
    expect(page.get_by_role("link", name=tide)).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type(tide)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{quote(tide, safe='')}")
    expect(page.locator(".task-box").first).to_be_visible()
    page.keyboard.press("v")
    page.keyboard.press("t")
    expect(page.get_by_role("grid", name="Tasks")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("wind")
    expect(page.locator(".rows-space [role=row]")).to_have_count(3)
    page.get_by_role("grid", name="Tasks").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Workers")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_every_page_is_there_after_a_reload(page):
    for name in ("Runs", "Workflows", "Tasks & queues", "Workers", "Statistics", "Tokens"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
        page.reload()
        expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_a_run_that_nobody_knows_is_said_to_be_unknown(site, page):
    page.goto(address(site, "nobody/run9"))
    expect(page.get_by_role("heading", name="There is no run nobody/run9")).to_be_visible()
    expect(page.get_by_role("link", name="Go to all runs")).to_be_visible()


def test_dark_is_remembered(page):
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()  # which hears keys
    before = page.evaluate("document.documentElement.dataset.theme ?? null")
    page.keyboard.press("d")
    page.wait_for_function(
        "before => document.documentElement.dataset.theme !== before", arg=before
    )
    theme = page.evaluate("document.documentElement.dataset.theme")
    assert theme in ("dark", "light")
    page.reload()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    assert page.evaluate("document.documentElement.dataset.theme") == theme


def test_an_address_that_is_no_page_says_so_and_programs_are_told_in_json(site, page):
    answer = page.goto(f"{site.url}/nowhere")
    assert answer.status == 404
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    told = page.evaluate("fetch('/nowhere').then(answer => answer.json())")
    assert told["code"] == "not_found"
