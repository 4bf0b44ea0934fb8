"""By keys alone: the palette that acts, focus that stays, keys for tasks, a stall repaired."""

import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.places import address
from tests.browser.test_manners import AXE, barriers
from tests.support.browser import Site
from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, in_path
from tests.support.patience import eventually_told
from tests.support.prepared_run import PreparedRun

KEYS_MAX = 15  # to repair a stall from the home page
FAN = """
[scheduling]
    [[graph]]
        R1 = prep => MEMBERS:succeed-all => join => archive
[runtime]
    [[root]]
        script = true
    [[prep, archive]]
    [[MEMBERS]]
    [[m1, m2, m3]]
        inherit = MEMBERS
    [[join]]
        script = echo 'CFL violated' >&2; test -e {gate}
"""


# The failure is handled, so another task than the one that failed keeps the run.
HANDLED = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = '''
            report[-P1] => report
            report:fail => mail
        '''
[runtime]
    [[report]]
        script = test -e {gate}
    [[mail]]
        script = true
"""


def status_of(site, run):
    return site.caller().get(f"/runs/{in_path(run)}/facts").json["run"]["status"]


def begin_stalled(site, name, gate):
    run = site.begin(name, FAN.format(gate=gate))
    eventually_told(lambda: status_of(site, run) == "stalled", f"{run} stalls")
    return run


@pytest.fixture(scope="module")
def fan(site, tmp_path_factory):
    """A stalled run that no test repairs."""
    return begin_stalled(site, "fan", tmp_path_factory.mktemp("closed") / "gate")


@pytest.fixture
def reader(site, window):
    """The page of a user who may look at everything, and do nothing."""
    asked = {"name": "onlooker", "scopes": ["read"], "names": ["*"]}
    token = site.caller().post("/tokens", asked).json["token"]
    return window.log_in(site.link(Caller(urlsplit(site.url).netloc, token)))


class Hands:
    """A keyboard that counts."""

    def __init__(self, page):
        self.page, self.pressed = page, 0

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
            self.pressed += 1


def ask(page, text):
    """Types into the palette, without choosing."""
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.type(text)
    return page.get_by_role("listbox", name="Found").get_by_role("option")


def focus_is_somewhere(page):
    assert page.evaluate("document.activeElement !== document.body")


def test_a_stall_is_repaired_from_the_home_page_with_few_keys_and_no_mouse(
    site, page, tmp_path
):
    gate = tmp_path / "gate"
    run = begin_stalled(site, "repair", gate)
    expect(page.locator(".grid-row.alarm", has_text=run)).to_be_visible()
    page.get_by_label("Filter runs").fill("repair")  # other tests have runs that stalled, too
    expect(page.locator(".grid-row")).to_have_count(1)
    page.get_by_role("link", name="tidewheel: all runs").focus()
    hands = Hands(page)
    hands.press("n")
    expect(page.locator(".grid-why").get_by_role("link", name="1/join")).to_be_focused()
    hands.press("Enter")
    why = page.get_by_role("complementary", name="Task 1/join").get_by_label("Why it does not")
    expect(why).to_contain_text("CFL violated")
    hands.press("l")
    expect(page.get_by_role("log")).to_contain_text("CFL violated")
    gate.touch()  # which the operator does elsewhere
    hands.press("t")
    dialog = page.get_by_role("dialog", name="Trigger 1/join")
    expect(dialog).to_contain_text("1/archive after 1/join")
    hands.press("Control+Enter")
    expect(dialog).to_have_count(0)
    focus_is_somewhere(page)
    expect(page.locator(".run-title")).to_contain_text("completed")
    assert hands.pressed <= KEYS_MAX, hands.pressed


def test_the_task_that_failed_is_triggered_by_keys_from_the_task_that_it_keeps(
    site, page, tmp_path
):
    gate = tmp_path / "gate"
    run = site.begin("handled", HANDLED.format(gate=gate))
    eventually_told(lambda: status_of(site, run) == "stalled", f"{run} stalls")
    page.get_by_label("Filter runs").fill("handled")
    expect(page.locator(".grid-row")).to_have_count(1)
    page.get_by_role("link", name="tidewheel: all runs").focus()
    hands = Hands(page)
    hands.press("n")
    expect(page.locator(".grid-why").get_by_role("link", name="2/report")).to_be_focused()
    hands.press("Enter")
    panel = page.get_by_role("complementary", name="Task 2/report")
    helps = panel.get_by_role("button", name="Trigger 1/report")
    expect(helps).to_be_visible()
    gate.touch()  # which the operator does elsewhere
    hands.press("w")
    while not helps.evaluate("button => button === document.activeElement"):
        assert hands.pressed <= KEYS_MAX, hands.pressed
        hands.press("Tab")
    hands.press("Enter")
    dialog = page.get_by_role("dialog", name="Trigger 1/report")
    expect(dialog).to_contain_text("2/report after 1/report")
    hands.press("Control+Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator(".run-title")).to_contain_text("completed")
    assert hands.pressed <= KEYS_MAX, hands.pressed


def test_the_palette_triggers_what_failed_after_the_dry_run_was_seen(site, page, tmp_path):
    gate = tmp_path / "gate"
    run = begin_stalled(site, "acted", gate)
    gate.touch()
    found = ask(page, "trigger failed in acted")
    expect(found.first).to_contain_text(re.compile(rf"Trigger 1/join.*in {run}"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Trigger 1/join")
    expect(dialog).to_contain_text("1/archive after 1/join")
    assert status_of(site, run) == "stalled"  # nothing was done yet
    page.keyboard.press("Control+Enter")
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(re.compile("/runs$"))  # who was at home stays there
    eventually_told(lambda: status_of(site, run) == "completed", "it was repaired")


def test_words_of_a_command_are_completed_with_how_many_tasks_they_take(site, fan, page):
    page.goto(address(site, fan, "?views=tree"))
    expect(page.get_by_role("tree")).to_be_visible()
    found = ask(page, "tri")
    expect(found.last).to_contain_text("Run now, whatever it waits for")
    page.keyboard.press("Tab")
    typed = page.get_by_role("combobox", name="Search")
    expect(typed).to_have_value("trigger ")
    expect(found.filter(has_text=f"trigger MEMBERS in {fan}")).to_contain_text("3 tasks")
    page.keyboard.type("fai")
    page.keyboard.press("Tab")
    expect(typed).to_have_value(f"trigger failed in {fan}")
    expect(found.first).to_contain_text("Trigger 1/join")
    page.keyboard.press("Escape")
    said = "Kill applies to no task of fan/run1 that matches “failed”"
    expect(ask(page, "kill failed").first).to_contain_text(said)


def test_the_palette_holds_a_task_to_come_and_releases_everything(site, page):
    run = site.begin_paused("halt", FAN.format(gate="/nowhere"))
    page.goto(address(site, run, "?views=tree"))
    expect(page.get_by_role("tree")).to_be_visible()
    expect(ask(page, "hold join").first).to_contain_text("Hold 1/join")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Hold 1/join")
    give = dialog.get_by_role("button", name="Hold 1/join")
    expect(give).to_be_focused()
    expect(give).to_have_attribute("aria-disabled", "false")  # what would happen was shown
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    focus_is_somewhere(page)
    expect(ask(page, f"release all in {run}").first).to_contain_text("Release everything")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Release everything")
    expect(dialog).to_contain_text(run)
    page.keyboard.press("Escape")
    expect(ask(page, "resume halt").first).to_contain_text(f"Resume {run}")
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Resume").get_by_role("button", name="Resume").wait_for()
    page.keyboard.press("Escape")
    expect(ask(page, "pause halt").first).to_contain_text(
        "Pause does not apply to any run with halt in its name"
    )


def test_a_command_for_another_run_opens_that_run_first(site, fan, noisy, page):
    page.goto(address(site, noisy, "?views=table"))
    expect(page.get_by_role("grid", name="Tasks")).to_be_visible()
    expect(ask(page, "trigger failed in fan").first).to_contain_text(f"in {fan}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{quote(fan, safe='')}")
    expect(page.get_by_role("dialog", name="Trigger 1/join")).to_contain_text("1/archive")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_palette_finds_runs_by_status_tasks_elsewhere_queues_and_their_tasks(
    site, fan, page
):
    tasks = [{"queue": "frames", "name": "img-0007", "command": "true"}]
    assert site.caller().post("/tasks", tasks).status == 201
    expect(ask(page, "stalled").filter(has_text=fan)).to_be_visible()
    page.keyboard.press("Escape")
    expect(ask(page, "frames").first).to_contain_text("queue")
    page.keyboard.press("Escape")
    expect(ask(page, "join in fan").first).to_contain_text(f"task of {fan}")
    page.keyboard.press("Escape")
    expect(ask(page, "img-0007").first).to_contain_text("task in queue frames, ready")
    page.keyboard.press("Enter")
    expect(page.locator("[role=row][aria-selected=true]")).to_contain_text("img-0007")
    expect(ask(page, f"{fan}//1/join").first).to_contain_text(f"task of {fan}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Task 1/join")).to_be_visible()


def test_the_palette_finds_an_old_run_that_has_two_hundred_newer_ones(window, tmp_path):
    """Of its workflow there is a newer one, and it is not open."""
    tidewheel = CommandLine(tmp_path)
    with ThreadPoolExecutor(1) as aside:  # this thread has the event loop of the browser
        for workflow in ("needle", "needle", *("hay",) * 201):
            aside.submit(PreparedRun, tidewheel, workflow=workflow).result()
    with Site(tidewheel).running() as old:
        page = window.log_in(old.link())
        expect(ask(page, "eedle/run1").first).to_contain_text("needle/run1")
        page.keyboard.press("Enter")
        page.wait_for_url("**/runs/needle%2Frun1")
        expect(ask(page, "created").filter(has_text="hay/run201")).to_be_visible()


def test_a_reader_is_offered_no_command_by_palette_or_keys(site, fan, reader):
    page = reader
    page.goto(address(site, fan, "?views=graph&select=1/join"))
    expect(page.get_by_role("complementary", name="Task 1/join")).to_be_visible()
    expect(ask(page, "trigger failed").first).to_contain_text(
        "Nothing with this name was found"
    )
    page.keyboard.press("Escape")
    for key in ("t", "h", "k", "o", "c"):
        page.keyboard.press(key)
    page.keyboard.press("?")  # what the keys before it had opened would be there by now
    keys = page.get_by_role("dialog")
    expect(keys).to_have_count(1)
    expect(keys).to_contain_text("Show its log")
    expect(keys).not_to_contain_text("Trigger")


def test_the_graph_is_one_press_of_tab_and_arrows_follow_its_edges(site, fan, page):
    page.goto(address(site, fan, "?views=graph&graph.n=3"))
    join = page.locator(".react-flow__node[data-task='1/join']")
    expect(join).to_be_visible()
    page.get_by_role("checkbox", name="fold families").focus()
    page.keyboard.press("Tab")
    expect(join).to_be_focused()  # which failed
    for key, task in (("ArrowRight", "archive"), ("ArrowLeft", "join"), ("ArrowLeft", "m2")):
        page.keyboard.press(key)
        expect(page.locator(f".react-flow__node[data-task='1/{task}']")).to_be_focused()
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Task 1/m2")
    expect(panel).to_contain_text("Outputs")
    middle = page.locator(".react-flow__node[data-task='1/m2']")
    expect(middle).to_be_focused()
    page.keyboard.press("w")
    expect(panel).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(middle).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_role("group", name="Actions on ticked tasks")).to_contain_text("1 tick")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.closest('.graph-canvas') === null")


def test_table_tree_and_list_are_one_press_of_tab_each_and_keys_act_on_their_line(
    site, fan, page
):
    page.goto(address(site, fan, "?views=table"))
    table = page.get_by_role("grid", name="Tasks")
    table.get_by_role("button", name="Point").focus()
    page.keyboard.press("ArrowRight")
    expect(table.get_by_role("button", name="Task", exact=True)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(table).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("h")
    page.get_by_role("dialog", name="Hold 1/join").wait_for()
    page.keyboard.press("Escape")
    expect(table).to_be_focused()
    page.keyboard.press("v")
    page.keyboard.press("e")
    tree = page.get_by_role("tree")
    expect(tree).to_be_visible()
    page.keyboard.press("n")
    expect(tree).to_be_focused()
    expect(page.get_by_role("complementary", name="Task 1/join")).to_be_visible()
    page.keyboard.press("k")
    expect(page.get_by_text("Kill does not apply to 1/join, which is failed")).to_be_visible()
    page.goto(f"{site.url}/runs?as=list&name=fan")
    name = page.get_by_role("list").get_by_role("link", name=fan)
    name.focus()
    page.keyboard.press("End")
    expect(page.get_by_role("list").get_by_role("link", name="1/join")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_focused()
    assert page.locator(".run-list [data-stop][tabindex='0']").count() == 1


def test_links_skip_to_the_content_and_to_the_task(site, fan, page):
    page.goto(address(site, fan, "?views=table&select=1/join"))
    expect(page.get_by_role("complementary", name="Task 1/join")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Task 1/join")).to_be_focused()
    expect(page).to_have_url(re.compile("select=1/join$"))  # which stays a link to the task
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)
    focus_is_somewhere(page)


def test_a_written_command_begins_with_the_task_that_is_open(site, fan, page):
    page.goto(address(site, fan, "?views=table&select=1/join"))
    expect(page.get_by_role("complementary", name="Task 1/join")).to_be_visible()
    page.keyboard.press("c")
    form = page.get_by_role("dialog", name="Command")
    expect(form.get_by_label("Tasks", exact=True)).to_have_value("1/join")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("thk")  # letters of a name, not keys
    expect(page.get_by_label("Name or family")).to_have_value("thk")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in web/")
def test_nobody_is_kept_out_of_palette_keys_and_table(site, fan, page):
    page.goto(address(site, fan, "?views=table,graph&select=1/join"))
    expect(page.locator(".react-flow__node[data-task='1/join']")).to_be_visible()
    page.get_by_role("grid", name="Tasks").focus()
    page.keyboard.press("Home")
    found = {"run": barriers(page)}
    expect(ask(page, "trigger failed").first).to_contain_text("Trigger 1/join")
    found["palette"] = barriers(page)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Trigger")
    found["keys"] = barriers(page)
    page.goto(f"{site.url}/runs?as=list")
    expect(page.get_by_role("link", name=fan)).to_be_visible()
    found["list"] = barriers(page)
    assert not any(found.values()), found
