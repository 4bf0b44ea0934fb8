"""How the page looks, measured: type, widths, room, contrast, shapes, points, actions."""

import re
import signal
import zlib

import pytest
from playwright.sync_api import expect

from docs.smaller_png import chunks, unfiltered
from tests.browser.measures import CHOICES, CUT, TEXTS
from tests.browser.places import address
from tests.support.browser import Site
from tests.support.command_line import CommandLine

SIZES = {11, 12, 14, 17, 22}  # pixels: --size-note to --size-title of base.css
PHONE = {"width": 390, "height": 844}
TABLET = {"width": 768, "height": 1024}
DESKTOP = {"width": 1440, "height": 900}
SCREENS = (
    PHONE,
    TABLET,
    {"width": 1024, "height": 768},
    {"width": 1280, "height": 800},
    DESKTOP,
)
WIDE = {"width": 1920, "height": 1000}
LATE = "20261116T0200Z"
STALLS = """
[scheduling]
    initial cycle point = 20261116T0000Z
    final cycle point = 20261116T0200Z
    runahead limit = P3
    [[graph]]
        PT1H = '''
            fetch => MEMBERS
            MEMBERS:succeed-all => merge
            merge[-PT1H] => merge
        '''
[runtime]
    [[root]]
        script = true
    [[MEMBERS]]
    [[member_01, member_02, member_03]]
        inherit = MEMBERS
    [[member_03]]
        script = '''
            echo "CFL violated at step 3" >&2
            test $CYLC_TASK_CYCLE_POINT != 20261116T0200Z
        '''
    [[fetch, merge]]
"""
PAGES = ("runs", "workflows", "requests", "tasks", "workers", "statistics", "tokens")
VIEWS = ("graph", "tree", "grid", "table", "timeline", "analysis", "logs", "history")
# What somebody came for, on each page: the first of it.
CONTENT = {
    "runs": ".grid-row",
    "runs?as=list": ".run-line",
    "workflows": ".workflow-line",
    "tasks": ".queue-list tbody tr",
    "workers": ".worker-card",
    "notifications": ".empty h2, .workflow-line",  # a site may have rules
}
VIEW_CONTENT = {
    "graph": ".react-flow",
    "tree": ".tree-line",
    "grid": ".matrix-line",
    "table": ".rows-space .row",
    "timeline": ".time-row",
    "analysis": ".analysis-names tbody tr",
    "logs": ".log-line",
    "history": ".past-line",
}


@pytest.fixture(scope="module")
def stalled(site, tmp_path_factory):
    """A run that stalls at its last point, with a workflow and a task of a queue beside it."""
    run = site.begin("surge", STALLS)
    folder = tmp_path_factory.mktemp("registered") / "tides"
    folder.mkdir()
    (folder / "flow.cylc").write_text(STALLS)
    for command in (("register", str(folder)), ("submit", "--queue", "imaging", "--", "true")):
        answer = site.tidewheel(*command[:1], *("--server", site.url), *command[1:])
        assert answer.status == 0, answer
    return run


def opened(page, site, place, seen):
    """A page whose content has come."""
    page.goto(f"{site.url}/{place}")
    expect(page.locator(seen).first).to_be_visible()
    expect(page.get_by_text(re.compile("^Loading"))).to_have_count(0)


def opened_view(page, site, run, view, more=""):
    selected = f"&select={LATE}/member_03&logs.file=err" if view == "logs" else ""
    page.goto(address(site, run, f"?views={view}{selected}{more}"))
    expect(page.locator(".run-header")).to_contain_text("stalled")
    expect(page.locator(VIEW_CONTENT[view]).first).to_be_visible()
    expect(page.get_by_text(re.compile("^Loading"))).to_have_count(0)


def everywhere(page, site, run):
    """Each page and view, one after the other; where it is."""
    for place in PAGES:
        opened(page, site, place, "h1")
        yield place
    for view in VIEWS:
        opened_view(page, site, run, view)
        yield view


def test_type_has_five_sizes_on_every_page_and_in_every_view(site, stalled, page):
    found = {
        (where, text["size"])
        for where in everywhere(page, site, stalled)
        for text in page.evaluate(TEXTS)
        if not text["drawn"]  # a drawing is zoomed, and its letters grow against that
    }
    assert {size for _, size in found} <= SIZES, {one for one in found if one[1] not in SIZES}


def test_names_of_rows_are_plain_and_what_failed_is_bold(site, stalled, page):
    opened_view(page, site, stalled, "table")
    weight = "name => Number(getComputedStyle(name).fontWeight)"
    rows = page.locator(".rows-space .row")
    failed = rows.filter(has_text="failed").locator(".task-name")
    fine = rows.filter(has_text="succeeded").locator(".task-name").first
    assert failed.first.evaluate(weight) == 600
    assert fine.evaluate(weight) == 400


@pytest.mark.usefixtures("stalled")
@pytest.mark.parametrize("place", CONTENT)
def test_a_phone_shows_the_content_of_a_page_in_its_first_half(site, page, place):
    page.set_viewport_size(PHONE)
    opened(page, site, place, CONTENT[place])
    top = page.locator(CONTENT[place]).first.bounding_box()["y"]
    assert top < PHONE["height"] / 2, (place, top)


def test_a_phone_shows_every_view_of_a_stalled_run_in_its_first_half(site, stalled, page):
    page.set_viewport_size(PHONE)
    tops = {}
    for view in VIEWS:
        opened_view(page, site, stalled, view, "&panel.fold=yes")
        page.evaluate("document.querySelector('main').scrollTo(0, 0)")
        place = f".view {VIEW_CONTENT[view]}"
        tops[view] = page.locator(place).first.bounding_box()["y"]
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], view
    assert max(tops.values()) < PHONE["height"] / 2, tops


def test_a_phone_reaches_every_page_the_documentation_and_the_colours(site, page):
    page.set_viewport_size(PHONE)
    opened(page, site, "runs", "h1")
    places = page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(places.first).not_to_be_visible()
    page.get_by_role("button", name="Menu").click()
    expect(places).to_have_count(8)
    for place in places.all():
        box = place.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        expect(place).to_be_in_viewport(ratio=1)
    places.filter(has_text="Notifications").click()
    expect(page.get_by_role("heading", name="Notifications", level=1)).to_be_visible()
    expect(places.first).not_to_be_visible()
    page.locator(".who summary").click()
    menu = page.locator(".who-menu")
    expect(menu).to_be_in_viewport(ratio=1)
    expect(menu.get_by_role("link", name="Documentation")).to_be_visible()
    before = page.evaluate("document.documentElement.dataset.theme")
    menu.get_by_role("button", name="Dark or light").click()
    assert page.evaluate("document.documentElement.dataset.theme") != before


def test_a_phone_reaches_every_view_every_filter_and_every_action_of_a_run(site, stalled, page):
    page.set_viewport_size(PHONE)
    opened_view(page, site, stalled, "table")
    views = page.get_by_role("combobox", name="View", exact=True)
    expect(views).to_be_in_viewport(ratio=1)
    assert len(views.locator("option").all()) == len(VIEWS)
    views.select_option("tree")
    expect(page.locator(VIEW_CONTENT["tree"]).first).to_be_visible()
    name = page.get_by_role("searchbox", name=re.compile("name or family"))
    expect(name).not_to_be_visible()
    page.get_by_role("button", name="Filters").click()
    name.fill("fetch")
    views.select_option("table")
    expect(page.locator(VIEW_CONTENT["table"])).to_have_count(3)
    expect(page.get_by_role("button", name="Stop")).not_to_be_visible()
    page.get_by_role("button", name="Actions", exact=True).click()
    for action in ("Pause", "Stop", "Reload definition", "Command …"):
        expect(page.get_by_role("button", name=action)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", SCREENS)
def test_nothing_is_cut_on_any_screen(site, stalled, page, size):
    page.set_viewport_size(size)
    cut = {}
    for place in (*PAGES, "notifications"):
        opened(page, site, place, "h1")
        cut[place] = page.evaluate(CUT)
    opened_view(page, site, stalled, "table")
    cut["run"] = page.evaluate(CUT)
    assert not any(cut.values()), cut


def test_a_phone_shows_the_whole_button_that_repairs_a_stall(site, stalled, page):
    page.set_viewport_size(PHONE)
    opened_view(page, site, stalled, "table")
    button = page.get_by_role("alert").get_by_role("button", name="Trigger member_03 · 02Z")
    expect(button).to_be_in_viewport(ratio=1)


@pytest.mark.usefixtures("stalled")
def test_figures_stay_in_their_cards(site, page):
    page.set_viewport_size(DESKTOP)
    size = 89.4 * 1024**2
    figures = dict.fromkeys(("mean", "p50", "p90", "p99", "max"), size) | {"count": 9}

    def told(route):
        answer = route.fetch().json()
        answer["all"]["memory_used_bytes"] = figures
        route.fulfill(json=answer)

    page.route("**/api/v1/statistics?*", told)
    opened(page, site, "statistics", ".figure-card")
    expect(page.get_by_text("89.4 MiB").first).to_be_visible()
    wide = page.locator(".figure-card").evaluate_all(
        "all => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    )
    assert wide == 0


def test_nothing_is_cut_while_the_page_reconnects(tmp_path, window):
    with (site := Site(CommandLine(tmp_path))).running():
        run = site.begin("surge", STALLS)
        page = window.log_in(site.login)
        opened_view(page, site, run, "table")
        site.up.send(signal.SIGKILL)
        expect(page.locator(".connection")).to_have_text("reconnecting")
        cut = {}
        for size in SCREENS:
            page.set_viewport_size(size)
            cut[size["width"]] = page.evaluate(CUT)
        assert not any(cut.values()), cut


@pytest.mark.usefixtures("stalled")
def test_pages_that_are_read_are_equally_wide(site, page):
    page.set_viewport_size(WIDE)
    found = {}
    for place in (*PAGES, "notifications"):
        opened(page, site, place, "h1")
        found[place] = page.evaluate(
            "(() => { const one = document.querySelector('main > *').getBoundingClientRect();"
            " const title = document.querySelector('h1').getBoundingClientRect();"
            " return [one.left, one.width, title.left]; })()"
        )
    assert len({tuple(one) for one in found.values()}) == 1, found


def test_a_desktop_spends_at_most_200_pixels_before_the_tasks_of_a_stalled_run(
    site, stalled, page
):
    page.set_viewport_size(DESKTOP)
    opened_view(page, site, stalled, "table")
    expect(page.get_by_role("alert")).to_contain_text("CFL violated")
    assert page.locator(".rows").bounding_box()["y"] <= 200


def test_points_are_as_short_as_the_run_allows_and_whole_where_they_are_copied(
    site, stalled, page
):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened_view(page, site, stalled, "table", f"&select={LATE}/member_03")
    point = page.get_by_role("row", name="member_03").last.get_by_title(LATE)
    expect(point).to_have_text("02Z")
    panel = page.get_by_role("complementary", name=f"Task {LATE}/member_03")
    expect(panel.get_by_role("heading", level=2)).to_have_text("member_03 02Z")
    parent = panel.get_by_title(f"{LATE}/fetch")
    expect(parent).to_have_text("fetch · 02Z")
    panel.get_by_role("button", name=f"Copy {LATE}/member_03").click()
    expect(page.get_by_text(f"Copied: {LATE}/member_03")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{LATE}/member_03"
    opened_view(page, site, stalled, "timeline")
    expect(page.locator(".time-label").filter(has_text="member_03 · 02Z")).to_be_visible()
    trigger = page.get_by_role("alert").get_by_role("button", name="Trigger")
    expect(trigger).to_have_text("Trigger member_03 · 02Z")
    expect(trigger).to_have_attribute("title", f"Trigger {LATE}/member_03")


def test_an_action_has_one_place_below_the_reason_for_it(site, stalled, page):
    opened_view(page, site, stalled, "table", f"&select={LATE}/member_03")
    panel = page.get_by_role("complementary")
    why = panel.get_by_role("region", name="Why it does not run")
    expect(why).to_contain_text("CFL violated")
    trigger = page.get_by_role("button", name=re.compile("^Trigger"))
    expect(trigger).to_have_count(1)
    reason, button = why.bounding_box(), trigger.bounding_box()
    assert reason["y"] + reason["height"] <= button["y"]


def test_what_cannot_be_undone_looks_alike(site, stalled, page):
    opened_view(page, site, stalled, "table", f"&select={LATE}/member_03")
    page.get_by_role("checkbox", name=f"Tick {LATE}/member_03").check()
    look = (
        "(one) => { const { color, borderColor } = getComputedStyle(one);"
        " return color + borderColor; }"
    )
    looks = {
        button.evaluate(look)
        for name in ("Stop", "Remove", "Kill")
        for button in page.get_by_role("button", name=name, exact=True).all()
        if button.is_enabled()
    }
    others = {
        button.evaluate(look)
        for name in ("Pause", "Hold")
        for button in page.get_by_role("button", name=name, exact=True).all()
    }
    assert len(looks) == 1
    assert not looks & others


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(site, stalled, page, theme):
    opened(page, site, "runs", "h1")
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    poor, seen = set(), 0
    for where in everywhere(page, site, stalled):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        texts = page.evaluate(TEXTS)
        seen += len(texts)
        poor |= {
            (where, text["text"], text["where"], round(text["contrast"], 2))
            for text in texts
            if text["contrast"] < 4.5 and not text["faded"]
        }
    assert seen > 300
    assert not poor, poor


def rows_of(picture):
    """The pixels of a screenshot, row by row."""
    parts = list(chunks(picture))
    width, height = (int.from_bytes(parts[0][1][at : at + 4]) for at in (0, 4))
    data = zlib.decompress(b"".join(body for name, body in parts if name == b"IDAT"))
    return [
        [tuple(row[at : at + 3]) for at in range(0, len(row), 3)]
        for row in unfiltered(data, width * 3, height)
    ]


@pytest.mark.parametrize("eyes", ["deuteranopia", "achromatopsia"])
def test_failures_are_seen_without_colours(site, stalled, page, eyes):
    opened_view(page, site, stalled, "table")
    page.context.new_cdp_session(page).send(
        "Emulation.setEmulatedVisionDeficiency", {"type": eyes}
    )
    bar = page.locator(".run-bar .counts-bar")
    pixels, around, kinds = rows_of(bar.screenshot()), bar.bounding_box(), {}
    for state, part in (("failed", ".striped"), ("succeeded", ".plain")):
        box = bar.locator(part).first.bounding_box()
        left = round(box["x"] - around["x"])
        middle = pixels[len(pixels) // 2][left + 2 : left + round(box["width"]) - 1]
        kinds[state] = len(set(middle))
    assert kinds["succeeded"] == 1, kinds  # one colour, and stripes
    assert kinds["failed"] > 1, kinds
    # Beside the bar and in the rows: a shape, a word and a number.
    shape = "row => row.querySelector('.state-icon').innerHTML"
    rows = page.locator(".rows-space .row")
    shapes = {
        state: rows.filter(has_text=state).first.evaluate(shape)
        for state in ("failed", "succeeded", "waiting")
    }
    assert len(set(shapes.values())) == 3, shapes


def test_nothing_moves_for_those_who_asked_for_that(site, noisy, page):
    page.emulate_media(reduced_motion="reduce")
    page.goto(address(site, noisy, "?views=graph"))
    expect(page.get_by_label(re.compile("^2/gauge, running"))).to_be_visible()
    moving = "document.getAnimations().filter((one) => one.playState === 'running').length"
    assert page.evaluate(moving) == 0
    slow = (
        "[...document.querySelectorAll('*')].filter((one) => getComputedStyle(one)"
        ".transitionDuration.split(',').some((time) => parseFloat(time) > 0)).length"
    )
    assert page.evaluate(slow) == 0


def test_lists_and_sliders_look_alike_everywhere(site, stalled, page):
    looks = {"SELECT": set(), "RANGE": set()}
    for _ in everywhere(page, site, stalled):
        for kind, look in page.evaluate(CHOICES):
            looks[kind].add(look)
    assert {kind: len(found) for kind, found in looks.items()} == {"SELECT": 1, "RANGE": 1}
    assert all(one.startswith("none") for found in looks.values() for one in found), looks
