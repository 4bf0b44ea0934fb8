"""The graph of a run while somebody looks around in it and the run goes on."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.places import address
from tests.support.http_server import in_path
from tests.support.patience import eventually

PALETTE = Path(__file__).parents[2] / "web" / "src" / "ui" / "palette.json"
# How many dots of each colour #rrggbb a canvas has.
COLOURS = """canvas => {
    const found = {};
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] < 255) continue;
        const name = [0, 1, 2].map(part => data[at + part].toString(16).padStart(2, "0"));
        found["#" + name.join("")] = (found["#" + name.join("")] ?? 0) + 1;
    }
    return found;
}"""

FLOW = """
[task parameters]
    i = 1..40
[scheduling]
    [[graph]]
        R1 = first => next<i>
[runtime]
    [[first, next<i>]]
        script = true
"""

LEGIBLE = """
[task parameters]
    m = 1..12
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    [[graph]]
        P1 = '''
            prepare_data => member<m> => publish_everything
            MEMBERS:succeed-all => archive_of_members => publish_everything
            prepare_data => observe => check_quality => archive_of_members
        '''
[runtime]
    [[MEMBERS]]
    [[member<m>]]
        inherit = MEMBERS
    [[prepare_data, publish_everything, archive_of_members, observe, check_quality]]
        script = true
"""

CHAIN = """
[scheduling]
    [[graph]]
        R1 = {chain}
[runtime]
    [[root]]
        script = true
"""


def resting(locator):
    """Where it is, once it has been there for two frames."""
    locator.element_handle().wait_for_element_state("stable")
    return locator.bounding_box()


@pytest.fixture(scope="module")
def run(site):
    return site.begin_paused("graph", FLOW)


@pytest.mark.req("R001-51")
def test_a_graph_is_asked_for_once_and_then_for_what_has_changed(site, run, window):
    page = window.log_in(site.link())
    with page.expect_response(re.compile(r"/graph\?")) as whole:
        page.goto(address(site, run))
    expect(page.get_by_label("1/first, ready")).to_be_visible()
    asked = [url for url in window.asked if "/graph?" in url]
    assert len(asked) == 1, "nothing is asked for twice when a page opens"
    with page.expect_response(re.compile(r"/graph\?.*since=")) as changed:
        held = site.caller().post(f"/runs/{in_path(run)}/hold?wait_s=10", {"ids": ["1/first"]})
        assert held.status < 300, held
    since = parse_qs(urlsplit(changed.value.url).query)["since"]
    assert since == [whole.value.json()["version"]]
    assert [one["id"] for one in changed.value.json()["tasks"]] == ["1/first"]
    assert changed.value.json()["edges"] == []
    expect(page.locator(".task-box", has_text="held")).to_have_count(1)


def test_a_graph_that_is_dragged_or_zoomed_stays_where_it_was_put(site, run, page):
    page.goto(address(site, run))
    first = page.get_by_label(re.compile("^1/first"))
    expect(first).to_be_visible()
    pane = page.locator(".react-flow__pane").bounding_box()
    x, y = pane["x"] + 40, pane["y"] + 40
    page.mouse.move(x, y)
    page.mouse.down()  # held by a hand, it goes nowhere by itself
    before = resting(first)
    page.mouse.move(x + 60, y + 30, steps=6)
    dragged = resting(first)
    page.mouse.up()
    page.wait_for_function("() => !document.querySelector('.react-flow.panning')")
    rests = resting(first)
    for where, way in (("x", 60), ("y", 30)):
        assert dragged[where] == pytest.approx(before[where] + way, abs=2)
        assert rests[where] == pytest.approx(dragged[where], abs=2)
    for _ in range(3):
        page.mouse.wheel(0, -200)
    eventually(lambda: first.bounding_box()["width"] > 1.5 * rests["width"], "it is nearer")


def test_the_small_map_has_the_states_of_all_tasks_and_leads_to_them(site, run, page):
    page.goto(address(site, run))
    small = page.locator(".overview")
    expect(small).to_be_visible()
    looks = json.loads(PALETTE.read_text())["tasks"]

    def dots(state):
        return small.locator("canvas").evaluate(COLOURS).get(looks[state]["colour"], 0)

    eventually(lambda: dots("future") > 0, "40 tasks to come")
    assert dots("succeeded") == 0
    made = site.caller().post(f"/runs/{in_path(run)}/set?wait_s=10", {"ids": ["1/next_i01"]})
    assert made.status < 300, made
    eventually(lambda: dots("succeeded") > 0, "a state that changes is seen there")
    for _ in range(3):
        page.get_by_role("button", name="Zoom In").click()
    first = page.get_by_label(re.compile("^1/first"))
    before, box = resting(first)["y"], small.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 12)
    eventually(lambda: first.bounding_box()["y"] < before - 50, "it is looked at from below")


def test_tasks_are_ticked_in_the_graph_and_acted_on_together(site, run, page):
    page.goto(address(site, run))
    expect(page.get_by_role("group", name="Actions on ticked tasks")).to_have_count(0)
    # Forty children of one task are gathered, and near enough to be read.
    expect(page.locator(".bunch-box")).to_contain_text("40 × next_i…")
    expect(page.locator(".react-flow.far")).to_have_count(0)
    page.get_by_label("1/next_i02, future").click(modifiers=["Control"])
    page.get_by_label(re.compile("^1/first")).click(modifiers=["Control"])
    ticked = page.get_by_role("group", name="Actions on ticked tasks")
    expect(ticked).to_contain_text("2 ticked")
    ticked.get_by_role("button", name="Trigger").click()
    expect(page.get_by_role("dialog", name="Trigger 2 tasks")).to_contain_text("1/next_i02")


# How high each name is on the screen, in pixels; 0: it is not drawn.
NAMES = """() => [...document.querySelectorAll(".task-box .task-text b")].map(name => {
    const box = name.closest(".react-flow__node");
    const scale = box.getBoundingClientRect().width / box.offsetWidth;
    return name.offsetHeight ? parseFloat(getComputedStyle(name).fontSize) * scale : 0;
})"""


@pytest.mark.req("R001-51")
def test_names_are_read_at_the_size_at_which_a_graph_is_first_shown(site, page):
    run = site.begin_paused("legible", LEGIBLE)
    page.goto(address(site, run, "?graph.n=6"))
    expect(page.locator(".task-box")).to_have_count(51)
    eventually(
        lambda: min(page.evaluate(NAMES)) > 8.9,
        lambda: f"no name is smaller than 9 pixels: {page.evaluate(NAMES)}",
    )
    expect(page.locator(".bunch-box").first).to_contain_text("12 × member_m… · 12 future")
    expect(page.locator(".group-box").first).to_have_text("MEMBERS 0/12")
    expect(page.locator(".react-flow__node-group")).to_have_count(0)
    for _ in range(8):
        page.get_by_role("button", name="Zoom Out").click()
    expect(page.locator(".react-flow.far")).to_have_count(1)
    expect(page.locator(".task-text b").first).to_be_hidden()
    words = page.locator(".bunch-box span").first
    eventually(lambda: words.bounding_box()["height"] >= 9, "those of a bunch do not shrink")


def test_sixty_tasks_in_a_row_are_rows_in_which_names_are_read(site, page):
    names = [f"step_{number:02}" for number in range(60)]
    run = site.begin_paused("long", CHAIN.format(chain=" => ".join(names)))
    ids = {"ids": [f"1/{name}" for name in names]}
    made = site.caller().post(f"/runs/{in_path(run)}/set?wait_s=10", ids)
    assert made.status < 300, made
    page.goto(address(site, run))
    expect(page.locator(".task-box")).to_have_count(60)
    eventually(lambda: min(page.evaluate(NAMES)) > 8.9, "no name is smaller than 9 pixels")
    tops = {round(box.bounding_box()["y"]) for box in page.locator(".task-box").all()}
    assert 4 <= len(tops) <= 12, tops


# Notes at each frame whether a line is seen.
WATCH_LINES = """() => {
    window.seen = [];
    const look = () => {
        const layer = document.querySelector(".dependencies");
        window.seen.push(layer !== null && getComputedStyle(layer).opacity === "1"
            && layer.querySelector(".dependency") !== null);
        requestAnimationFrame(look);
    };
    look();
}"""


def test_lines_are_drawn_at_every_moment_while_tasks_come_and_go(site, page):
    chain = " => ".join(f"step_{number:02}" for number in range(8))
    run = site.begin_paused("lines", CHAIN.format(chain=chain))
    page.goto(address(site, run))
    expect(page.locator(".dependency").first).to_be_attached()
    page.evaluate(WATCH_LINES)
    for number in range(3):
        done = {"ids": [f"1/step_{number:02}"]}
        made = site.caller().post(f"/runs/{in_path(run)}/set?wait_s=10", done)
        assert made.status < 300, made
        expect(page.get_by_label(re.compile(f"^1/step_{number + 2:02}"))).to_be_visible()
    seen = page.evaluate("() => window.seen")
    assert len(seen) > 3
    assert all(seen), "no line at some moment"
