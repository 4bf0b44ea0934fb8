"""Home: workflows by cycles, what needs action first; filtered, kept, on a wall, told of."""

import re
from datetime import timedelta
from email.utils import parsedate_to_datetime

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Window
from tests.browser.measures import TOUCHING
from tests.browser.test_manners import AXE, barriers
from tests.browser.test_run_page import picture
from tests.support.browser import Site
from tests.support.command_line import CommandLine
from tests.support.http_server import in_path
from tests.support.patience import eventually_told
from tests.support.ports import free_port

SURGE = """
[scheduling]
    initial cycle point = 20261116T1200Z
    final cycle point = 20261117T0600Z
    runahead limit = P5
    [[graph]]
        PT6H = get => plot
[runtime]
    [[get]]
        script = true
    [[plot]]
        script = test $CYLC_TASK_CYCLE_POINT != 20261117T0000Z
"""
COUNTED = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 12
    runahead limit = P12
    [[graph]]
        P1 = count
[runtime]
    [[count]]
        script = true
"""
BROKEN = """
[scheduling]
    [[graph]]
        R1 = break
[runtime]
    [[break]]
        script = false
"""

BLOCKED = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = '''
            model[-P1] => model
            model:fail => mail
        '''
[runtime]
    [[model]]
        script = false
    [[mail]]
        script = true
"""


SHORT = """
[scheduling]
    [[graph]]
        R1 = a
[runtime]
    [[a]]
        script = true
"""


@pytest.mark.parametrize("mode", ["skip", "simulation", "dummy"])
def test_a_run_whose_jobs_are_not_real_says_so_wherever_it_is_named(site, page, mode):
    """In the grid, in the list, and on its own page: its green is not that of work done."""
    run = site.begin(f"played-{mode}", SHORT, "--mode", mode)
    status_of(site, run, "completed")
    chip = f"{mode} mode"
    for query in ("", "?as=list"):
        page.goto(f"{site.url}/runs{query}")
        line = page.locator(".grid-row, .run-line").filter(has_text=run)
        expect(line.get_by_text(chip, exact=True)).to_be_visible()
    page.goto(f"{site.url}/runs/{run.replace('/', '%2F')}")
    said = page.get_by_text(chip, exact=True)
    expect(said).to_be_visible()
    expect(said).to_have_attribute("title", "The jobs of this run do no real work")


def row(page, run):
    return page.locator(".grid-row", has_text=run)


def cells(page, run):
    return row(page, run).get_by_role("gridcell")


def status_of(site, run, status):
    def look():
        facts = site.caller().get(f"/runs/{in_path(run)}/facts")
        return facts.json["run"]["status"] == status

    eventually_told(look, f"{run} is {status}")


@pytest.fixture(scope="module")
def surge(site):
    """A run of four cycles, of which one needs action."""
    run = site.begin("surge", SURGE)
    status_of(site, run, "stalled")
    return run


@pytest.fixture(scope="module")
def counted(site):
    run = site.begin("counted", COUNTED)
    status_of(site, run, "completed")
    return run


LATE = """
[scheduler]
    UTC mode = True
[scheduling]
    initial cycle point = {first}
    final cycle point = +PT6H
    [[graph]]
        PT6H = product
[runtime]
    [[product]]
        script = while ! test -e {gate}; do sleep 0.1; done
        [[[events]]]
            late offset = PT4H
"""


@pytest.fixture
def late(site, tmp_path):
    """A run whose first cycle is an hour behind its deadline, and its second has time."""
    told = site.caller().get("/grid").headers["date"]
    first = parsedate_to_datetime(told) - timedelta(hours=5)
    gate = tmp_path / "open"
    yield site.begin("late", LATE.format(first=f"{first:%Y%m%dT%H%MZ}", gate=gate)), first, gate
    gate.touch()  # jobs outlive their worker


# ---- the grid ----


def test_a_run_is_a_row_with_a_cell_for_each_cycle(surge, page):
    shown = cells(page, surge)
    expect(shown).to_have_count(4)
    names = shown.locator(".visually-hidden").all_inner_texts()
    assert names == [
        f"{surge} 20261116T1200Z: 2 succeeded",
        f"{surge} 20261116T1800Z: 2 succeeded",
        f"{surge} 20261117T0000Z: 1 failed, 1 succeeded, 1 needs action",
        f"{surge} 20261117T0600Z: 2 succeeded",
    ]
    # Points are read below their day; each state has a shape of its own beside its colour.
    expect(shown.locator(".cell-point")).to_have_text(["12Z", "18Z", "00Z", "06Z"])
    days = [re.compile("^16 Nov"), "", re.compile("^17 Nov"), ""]
    expect(shown.locator(".cell-day")).to_have_text(days)
    drawn = {one.locator("svg").inner_html() for one in shown.all()}
    assert len(drawn) == 2


def test_what_needs_action_stands_first_with_its_reason_and_its_age(surge, counted, page):
    expect(row(page, counted)).to_be_visible()
    names = page.locator(".grid-name a").all_inner_texts()
    assert names.index(surge) < names.index(counted)
    head = row(page, surge).get_by_role("rowheader")
    expect(head).to_contain_text(re.compile(r"stalled .*(ago|just now), at \d\d:\d\dZ"))
    expect(head).to_contain_text("20261117T0000Z/plot failed")
    head.get_by_role("link", name="20261117T0000Z/plot").click()
    expect(page.get_by_role("complementary", name=re.compile("plot"))).to_be_visible()


def test_a_run_with_a_cycle_behind_its_deadline_says_so_and_stands_before_those_that_are_not(
    site, surge, counted, late, page
):
    run, first, gate = late
    tail = re.compile(r": 1 running, 1 late$")
    expect(cells(page, run).first.locator(".visually-hidden")).to_have_text(tail)
    due = f"{first + timedelta(hours=10):%H:%MZ}"
    expect(cells(page, run).last).to_have_attribute("title", re.compile(f"due .*{due}$"))
    # Ten hours on is another day in the evening: then the day is said as well.
    said = re.compile(rf"1 late, next due (\d{{4}}-\d\d-\d\d )?{due}")
    expect(row(page, run).get_by_role("rowheader")).to_contain_text(said)
    names = page.locator(".grid-name a").all_inner_texts()
    assert names.index(surge) < names.index(run) < names.index(counted)
    # The line is drawn below the box: no cell is higher than those without one.
    boxes = [cells(page, one).last.bounding_box()["height"] for one in (run, surge)]
    assert boxes[0] == boxes[1]
    gate.touch()
    status_of(site, run, "completed")
    expect(row(page, run).get_by_role("rowheader")).not_to_contain_text("late,")


CFL = """
[scheduling]
    [[graph]]
        R1 = model => archive
[runtime]
    [[model]]
        script = echo 'CFL violated at step 7' >&2; exit 3
    [[archive]]
        script = true
"""


def test_a_stalled_run_says_what_its_job_wrote_in_grid_and_list_and_teams_are_filtered(
    site, surge, page
):
    folder = site.tidewheel.folder / "cfl"
    folder.mkdir()
    (folder / "flow.cylc").write_text(CFL)
    made = site.caller().post("/runs", {"flow": CFL, "workflow": "ocean/cfl"})
    assert made.status == 201, made.body
    status_of(site, "ocean/cfl/run1", "stalled")
    said = "1/model failed (exit 3): CFL violated at step 7; 1 task waits for it"
    page.goto(f"{site.url}/runs")
    why = row(page, "ocean/cfl/run1").locator(".grid-why")
    expect(why).to_have_text(said)
    # All of it is read, also from across the room: a wall has no mouse to hover with.
    for size, place in ((1440, "runs"), (1440, "runs?wall=1"), (390, "runs")):
        page.set_viewport_size({"width": size, "height": 900})
        page.goto(f"{site.url}/{place}")
        expect(why).to_have_text(said)
        assert why.evaluate("one => one.scrollHeight <= one.clientHeight + 1"), place
        assert why.evaluate("one => one.scrollWidth <= one.clientWidth + 1"), place
    page.goto(f"{site.url}/runs?as=list")
    line = page.get_by_role("article").filter(has_text="ocean/cfl/run1")
    expect(line.locator(".run-trouble")).to_have_text(said)
    page.goto(f"{site.url}/runs")
    page.get_by_label("Team").select_option("ocean")
    expect(page).to_have_url(re.compile(r"name=ocean"))
    expect(page.locator(".grid-row")).to_have_count(1)
    page.get_by_label("Team").select_option("all teams")
    expect(row(page, surge)).to_be_visible()


def test_a_run_that_stalls_without_a_failure_to_repair_says_what_keeps_it(site, page):
    status_of(site, site.begin("blocked", BLOCKED), "stalled")
    page.goto(site.url)
    expect(row(page, "blocked/run1").locator(".grid-why")).to_contain_text("2/model")


def test_a_click_on_a_cell_opens_that_cycle_and_no_other(counted, page):
    cells(page, counted).first.click()
    page.wait_for_url(re.compile(r"/runs/counted%2Frun\d+\?point="))
    expect(page.get_by_label("Point, with * and ?")).to_have_value("=1")
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".rows-space [role=row]")).to_have_count(1)


def test_arrows_go_from_cell_to_cell_and_enter_opens_one(surge, page):
    link = row(page, surge).get_by_role("link", name=surge)
    link.focus()
    page.keyboard.press("End")
    last = cells(page, surge).last
    expect(last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    failed = cells(page, surge).nth(2)
    expect(failed).to_be_focused()
    # One place of the whole grid is reached by Tab: where one was.
    expect(page.locator('[role=grid] [tabindex="0"]')).to_have_count(1)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(failed).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("point=20261117T0000Z"))


def test_arrows_go_from_row_to_row(surge, counted, page):
    expect(row(page, counted)).to_be_visible()
    first = page.locator(".grid-row").first.get_by_role("gridcell").last
    first.focus()
    page.keyboard.press("ArrowDown")
    second = page.locator(".grid-row").nth(1).get_by_role("gridcell").last
    expect(second).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()
    del surge


def test_the_grid_follows_what_happens(site, page):
    expect(page.get_by_role("grid")).to_be_visible()
    run = site.begin("sudden", BROKEN)
    expect(row(page, run)).to_contain_text("stalled")
    expect(cells(page, run)).to_have_attribute("data-state", "failed")


# ---- filters, links, views with names ----


def test_what_is_chosen_stands_in_the_address(site, surge, counted, page):
    page.get_by_label("Filter runs").fill("count")
    expect(row(page, surge)).to_have_count(0)
    expect(row(page, counted)).to_be_visible()
    page.wait_for_url("**/runs?name=count")
    page.get_by_role("button", name=re.compile("^stalled")).click()
    expect(page.get_by_text("No run matches")).to_be_visible()
    page.goto(f"{site.url}/runs?name=surge&status=stalled")
    expect(row(page, surge)).to_be_visible()
    expect(row(page, counted)).to_have_count(0)
    expect(page.get_by_label("Filter runs")).to_have_value("surge")


def test_runs_are_filtered_by_patterns_and_states_in_the_grid_and_in_the_list(
    surge, counted, page
):
    field = page.get_by_label("Filter runs")
    field.fill("*:stal")
    expect(row(page, counted)).to_have_count(0)
    expect(row(page, surge)).to_be_visible()
    field.fill("*:nowhere")
    expect(page.get_by_text("No state begins with “nowhere”")).to_be_visible()
    field.fill("SUR*:stalled")
    page.get_by_role("button", name="List", exact=True).click()
    expect(page.locator(".run-line", has_text=surge)).to_have_count(1)
    expect(page.locator(".run-line", has_text=counted)).to_have_count(0)


def test_a_link_is_copied_and_a_view_is_kept_with_its_name(site, surge, counted, page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site.url}/runs?name=surge")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied: the link to this view")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{site.url}/runs?name=surge"
    page.get_by_text("Saved views").click()
    page.get_by_label("Name of the view").fill("Storms")
    page.keyboard.press("Enter")
    page.goto(f"{site.url}/runs")
    expect(row(page, counted)).to_be_visible()
    page.get_by_text("Saved views").click()
    page.get_by_role("button", name="Storms", exact=True).click()
    page.wait_for_url("**/runs?name=surge")
    expect(row(page, counted)).to_have_count(0)
    page.get_by_text("Saved views").click()
    page.get_by_role("button", name="Delete the view Storms").click()
    expect(page.get_by_role("button", name="Storms", exact=True)).to_have_count(0)
    del surge


def test_the_list_of_all_runs_is_one_click_away_and_has_the_age_of_a_stall(surge, page):
    page.get_by_role("button", name="List").click()
    page.wait_for_url("**/runs?as=list")
    line = page.locator(".run-line", has_text=surge)
    expect(line).to_contain_text(re.compile(r"stalled .*, at \d\d:\d\dZ"))
    page.reload()
    expect(line).to_be_visible()
    page.get_by_role("button", name="Grid").click()
    expect(row(page, surge)).to_be_visible()


def test_the_grid_says_where_older_runs_are_once_there_are_some(site, page):
    """A run that had just ended was gone as soon as the next one began."""
    told = page.get_by_text("Older runs that have ended are in the List.")
    first = site.begin("again", COUNTED)
    status_of(site, first, "completed")
    expect(row(page, first)).to_be_visible()
    second = site.begin("again", COUNTED)
    expect(row(page, second)).to_be_visible()
    expect(told).to_be_visible()
    expect(page.get_by_text(first, exact=True)).to_have_count(0)
    page.get_by_role("button", name="List").click()
    expect(page.get_by_text(first, exact=True)).to_be_visible()


# ---- a wall, titles, notifications ----


def test_a_screen_on_a_wall_shows_nothing_but_the_grid_and_stays_awake(site, surge, window):
    window.page.add_init_script(
        """
        const ask = navigator.wakeLock.request.bind(navigator.wakeLock);
        navigator.wakeLock.request = (kind) => {
          window.askedToStayAwake = kind;
          return ask(kind);
        };
        """
    )
    page = window.log_in(site.link())
    small = cells(page, surge).first.bounding_box()["width"]
    page.goto(f"{site.url}/runs?wall=1")
    expect(row(page, surge)).to_be_visible()
    expect(page.get_by_role("navigation")).to_be_hidden()
    expect(page.get_by_label("Filter runs")).to_have_count(0)
    assert cells(page, surge).first.bounding_box()["width"] > 1.4 * small
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    eventually_told(
        lambda: page.evaluate("window.askedToStayAwake") == "screen", "it asked to stay awake"
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation")).to_be_visible()


def test_tabs_are_called_by_what_they_show(site, surge, page):
    expect(page).to_have_title(re.compile(r"^\(\d+\) Runs · tidewheel$"))
    page.goto(f"{site.url}/runs/{in_path(surge)}")
    expect(page).to_have_title(f"✖ {surge} stalled · tidewheel")
    page.goto(f"{site.url}/workers")
    expect(page).to_have_title("tidewheel")


def test_a_hidden_tab_notifies_of_a_run_that_stalls_once_somebody_asked_for_it(site, window):
    window.page.context.grant_permissions(["notifications"])
    # What the browser is asked to show, and a tab that is behind another one.
    window.page.add_init_script(
        """
        window.told = [];
        const Real = window.Notification;
        window.Notification = class extends Real {
          constructor(title, options) {
            super(title, options);
            window.told.push([title, options.body]);
          }
        };
        const seen = Object.getOwnPropertyDescriptor(Document.prototype, "hidden").get;
        const get = () => window.isBehind || seen.call(document);
        Object.defineProperty(document, "hidden", { get });
        """
    )
    page = window.log_in(site.link())
    button = page.get_by_role("button", name="Notify me")
    expect(button).to_have_attribute("aria-pressed", "false")
    first = site.begin("unheard", BROKEN)
    expect(row(page, first)).to_contain_text("stalled")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.evaluate("window.isBehind = true")
    second = site.begin("heard", BROKEN)
    told = [[f"{second} stalled", "1/break failed"]]
    eventually_told(lambda: page.evaluate("window.told") == told, "the second is told of")


# ---- a site of its own ----


@pytest.fixture
def alone(tmp_path):
    return Site(CommandLine(tmp_path))


def test_a_new_site_says_how_to_begin_and_a_restart_does_not_make_a_stall_younger(
    alone, browser
):
    port = free_port()
    context = browser.new_context()
    try:
        with alone.running(port):
            page = Window(context).log_in(alone.link())
            expect(page.get_by_text("Nothing has run yet")).to_be_visible()
            expect(page.locator("pre")).to_contain_text("tidewheel init NAME")
            expect(page.locator("pre")).to_contain_text("tidewheel run NAME")
            expect(page.get_by_role("link", name="Register a workflow")).to_be_visible()
            run = alone.begin("broken", BROKEN)
            status_of(alone, run, "stalled")
            [before] = alone.caller().get("/grid").json["runs"]
        with alone.running(port):

            def is_driven():
                [after] = alone.caller().get("/grid").json["runs"]
                return after["driven"] and after["updated_at"] > before["updated_at"]

            eventually_told(is_driven, "a scheduler has taken the run over")
            [after] = alone.caller().get("/grid").json["runs"]
            assert (after["status"], after["since"]) == ("stalled", before["since"])
            since = f"at {before['since'][11:16]}Z"
            expect(row(page, run)).to_contain_text(since)
    finally:
        context.close()


# ---- for everybody ----


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in web/")
def test_nobody_is_kept_out_of_the_grid(site, surge, counted, page):
    found = {}
    expect(row(page, counted)).to_be_visible()
    found["light"] = barriers(page)
    page.get_by_text("Saved views").click()
    found["menu"] = barriers(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    found["dark"] = barriers(page)
    page.goto(f"{site.url}/runs?wall=1")
    expect(row(page, surge)).to_be_visible()
    found["wall"] = barriers(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site.url}/runs")
    row(page, surge).scroll_into_view_if_needed()
    expect(cells(page, surge).last).to_be_in_viewport()
    found["phone"] = barriers(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert not any(found.values()), found


def test_on_a_phone_the_newest_cycles_are_seen(counted, page):
    page.set_viewport_size({"width": 390, "height": 844})
    shown = cells(page, counted)
    expect(shown).to_have_count(12)
    shown.last.scroll_into_view_if_needed()
    expect(shown.last).to_be_in_viewport(ratio=1)
    expect(shown.first).not_to_be_in_viewport()


# ---- labels of points ----


def of_points(scheduling):
    return f"""
[scheduling]
    runahead limit = P40
{scheduling}
[runtime]
    [[a]]
        run mode = skip
"""


POINTS = {
    "daily": ("20261016T00Z", "20261110T00Z", "P1D = a"),
    "noon": ("20261016T1230Z", "20261110T1230Z", "P1D = a"),
    "hourly": ("20261116T20Z", "20261118T03Z", "PT1H = a"),
    "quarters": ("20261116T2230Z", "20261117T0200Z", "PT15M = a"),
    "zoned": ("20261116T2030+0530", "20261118T0000+0530", "PT3H = a"),
    "monthly": ("20250101T00Z", "20270301T00Z", "P1M = a"),
    "yearly": ("19990101T00Z", "20300101T00Z", "P1Y = a"),
    "integers": ("99990", "100020", "P1 = a"),
    "long": ("1234567890", "1234567899", "P1 = a"),
}


@pytest.fixture(scope="module")
def labelled(site):
    """A completed run of each kind of points."""
    runs = []
    for name, (first, last, graph) in POINTS.items():
        mode = "" if "Z" in first or "+" in first else "cycling mode = integer\n"
        dates = f"{mode}initial cycle point = {first}\nfinal cycle point = {last}\n"
        runs.append(site.begin(name, of_points(f"{dates}[[graph]]\n{graph}")))
    for run in runs:
        status_of(site, run, "completed")
    return runs


@pytest.mark.parametrize("width", [1280, 1920, 390])
@pytest.mark.parametrize("wall", ["", "&wall=1"], ids=["page", "wall"])
def test_no_two_labels_of_points_overlap(site, labelled, page, width, wall):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{site.url}/runs?{wall}")
    for run in labelled:
        row(page, run).scroll_into_view_if_needed()
    picture(page, f"home-points-{width}{'-wall' if wall else ''}")
    found = page.evaluate(TOUCHING, ".cell-day, .cell-point")
    assert found == []


@pytest.mark.parametrize("mode", ["simulation", "dummy", "skip"])
def test_a_run_without_real_jobs_is_marked_in_grid_and_list_and_on_its_page(
    site, counted, page, mode
):
    played = site.begin(f"played-{mode}", BROKEN, "--mode", mode)
    status_of(site, played, "completed")
    chip = page.get_by_title("The jobs of this run do no real work", exact=True)
    page.goto(f"{site.url}/runs")
    expect(row(page, played).locator(chip)).to_have_text(f"{mode} mode")
    expect(row(page, counted)).to_be_visible()
    expect(row(page, counted).locator(chip)).to_have_count(0)
    page.goto(f"{site.url}/runs?as=list")
    line = page.get_by_role("article").filter(has_text=played)
    expect(line.locator(chip)).to_have_text(f"{mode} mode")
    line.get_by_role("link", name=played).click()
    expect(page.locator(".run-header").locator(chip)).to_have_text(f"{mode} mode")
    page.goto(f"{site.url}/runs/{in_path(counted)}")
    expect(page.get_by_role("heading", name=counted)).to_be_visible()
    expect(chip).to_have_count(0)
