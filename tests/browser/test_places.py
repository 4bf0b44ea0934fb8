"""Tasks and queues, workers, statistics and tokens, in a real browser."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.support.http_server import Caller, in_path
from tests.support.patience import eventually

QUEUE = "quay"  # which nobody serves


def confirm(page, name):
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=name).click()
    expect(dialog).to_have_count(0)


def test_a_queue_is_paused_and_tasks_are_cancelled_and_submitted_again(site, page):
    tasks = [{"queue": QUEUE, "name": f"load-{n}", "command": "true"} for n in (1, 2)]
    assert site.caller().post("/tasks", tasks).status == 201
    page.goto(f"{site.url}/tasks?queue={QUEUE}")
    queue = page.get_by_role("row", name=re.compile(f"^{QUEUE} "))
    expect(queue).to_contain_text("no worker serves it")
    queue.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 wait")
    confirm(page, "Pause")
    expect(queue).to_contain_text("paused")
    rows = page.get_by_role("table", name="Tasks").get_by_role("row")
    first = rows.filter(has_text="load-1")
    first.get_by_role("checkbox").check()
    page.get_by_role("group", name="Actions on ticked tasks").get_by_role(
        "button", name="Cancel"
    ).click()
    confirm(page, "Cancel 1 task")
    expect(first).to_contain_text("cancelled")
    first.click()
    panel = page.get_by_role("complementary")
    panel.get_by_role("button", name="Submit again").click()
    confirm(page, "Submit again")
    expect(rows.filter(has_text="load-1.2")).to_contain_text("ready")
    expect(panel.get_by_label("Why it does not run")).to_contain_text("paused")
    queue.get_by_role("button", name="Empty").click()
    confirm(page, "Cancel 2 that wait")
    expect(rows.filter(has_text="load-2")).to_contain_text("cancelled")


def test_queues_of_runs_that_are_over_are_folded_away_and_filters_can_be_taken_back(site, page):
    run = site.begin("over", "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true")
    facts = f"/runs/{in_path(run)}/facts"
    eventually(lambda: site.caller().get(facts).json["run"]["status"] == "completed", "is over")
    page.goto(f"{site.url}/tasks?name=nobody")
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("table", name="Tasks")).to_be_visible()
    expect(page.get_by_label("Exactly this name")).to_have_value("")
    more = page.get_by_role("button", name="Show queues of ended runs")
    queue = page.get_by_role("button", name=f"run:{run}", exact=True)
    expect(more).to_be_visible()
    expect(queue).to_have_count(0)
    more.click()
    expect(queue).to_be_visible()


def test_workers_say_what_they_serve_and_lead_to_what_they_hold(page):
    page.get_by_role("link", name="Workers").click()
    card = page.get_by_role("article").filter(has_text="run:*")
    expect(card).to_contain_text(re.compile("idle|busy"))
    card.get_by_role("link", name=re.compile("places")).click()
    page.wait_for_url("**/tasks?*worker=*")


def test_statistics_are_compared_by_queue(noisy, page):
    page.get_by_role("link", name="Statistics").click()
    expect(page.get_by_role("heading", name="Success")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text=noisy)).to_be_visible()


def test_a_token_is_shown_once_and_is_worth_nothing_when_revoked(site, page):
    page.get_by_role("link", name="Tokens").click()
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("harbour master")
    dialog.get_by_label("For", exact=True).fill("harbour")
    dialog.get_by_role("button", name="Make the token").click()
    secret = dialog.get_by_label("The token").inner_text()
    holder = Caller(urlsplit(site.url).netloc, secret)
    assert holder.get("/runs").status == 200
    confirm(page, "I have kept it")
    row = page.get_by_role("row", name=re.compile("harbour master"))
    expect(row).to_contain_text("read")
    assert secret not in page.content()
    row.get_by_role("button", name="Revoke").click()
    confirm(page, "Revoke")
    expect(row).to_have_count(0)
    # A server believes for half a second what it has just seen.
    eventually(lambda: holder.get("/runs").status == 401, "it is worth nothing")
    audit = page.get_by_role("region", name="Who did what")
    page.reload()
    expect(audit.get_by_role("row").filter(has_text="made token").first).to_contain_text("up")


def test_who_is_no_admin_is_not_led_to_tokens(site, window):
    token = (
        site.caller()
        .post("/tokens", {"name": "looker", "scopes": ["read"], "names": ["*"]})
        .json["token"]
    )
    page = window.log_in(site.link(Caller(urlsplit(site.url).netloc, token)))
    places = page.get_by_role("navigation", name="Pages")
    expect(places.get_by_role("link", name="Workers")).to_be_visible()
    expect(places.get_by_role("link", name="Tokens")).to_have_count(0)
    page.keyboard.press("Control+k")
    found = page.get_by_role("listbox", name="Found")
    expect(found).to_contain_text("Workers")
    expect(found).not_to_contain_text("Tokens")
    page.keyboard.press("Escape")
    page.goto(f"{site.url}/tokens")
    expect(page.get_by_role("heading", name="Tokens are for admins")).to_be_visible()
