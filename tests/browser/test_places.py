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


WROTE = r"""
printf '\033[31mERROR: CFL violated\033[0m at step 1\n'
seq -f 'INFO: step %%06g, <b>calm</b>' 1 4000
echo 'WARNING: attempt %s'
exit %s
"""


def test_what_a_task_of_a_queue_wrote_is_read_and_searched_from_its_first_byte(site, page):
    task = {"name": "wrote", "command": WROTE % ("one", 3)}
    made = site.caller().post("/tasks", task)
    assert made.status == 201, made.body
    page.goto(f"{site.url}/tasks?task={made.json['id']}")
    shown = page.get_by_role("complementary").get_by_role("region", name="Log")
    log = shown.get_by_role("log")
    expect(log).to_contain_text("WARNING: attempt one")
    expect(log).to_contain_text("INFO: step 004000, <b>calm</b>")
    expect(log).not_to_contain_text("CFL violated")  # the end of it alone is shown
    shown.get_by_label("Search in the log").fill("cfl VIOLATED")
    expect(shown.get_by_role("status")).to_have_text("1 line")
    hit = shown.get_by_role("list", name="Lines that were found").get_by_role("button")
    expect(hit).to_contain_text("ERROR: CFL violated at step 1")
    hit.click()
    expect(log).to_contain_text("ERROR: CFL violated at step 1")
    expect(log.locator("mark").first).to_have_text("CFL violated")
    shown.get_by_role("button", name="Match case").click()
    expect(shown.get_by_role("status")).to_have_text("not found in this log")
    shown.get_by_label("Search in the log").fill("")
    shown.get_by_label("Level").select_option("warning")
    expect(shown.get_by_role("status")).to_have_text("2 lines")
    shown.get_by_role("button", name="Show the end").click()
    expect(log).to_contain_text("WARNING: attempt one")
    shown.get_by_role("button", name="err", exact=True).click()
    expect(shown).to_contain_text("Nothing has been written to err")


def test_a_queue_is_paused_and_tasks_are_cancelled_and_submitted_again(site, page):
    tasks = [{"queue": QUEUE, "name": f"load-{n}", "command": "true"} for n in (1, 2)]
    assert site.caller().post("/tasks", tasks).status == 201
    page.goto(f"{site.url}/tasks?queue={QUEUE}")
    queue = page.get_by_role("row", name=re.compile(f"^{QUEUE} "))
    expect(queue).to_contain_text("no worker serves it")
    queue.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 tasks will wait")
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
    expect(page.get_by_role("dialog")).to_contain_text("1 to submit")
    confirm(page, "Submit again")
    expect(panel).to_contain_text("Resubmission number 2 of")
    expect(rows.filter(has_text="load-1.2")).to_contain_text("ready")
    expect(panel.get_by_label("Why it does not run")).to_contain_text("paused")
    queue.get_by_role("button", name="Empty").click()
    confirm(page, "Cancel 2 waiting")
    expect(rows.filter(has_text="load-2")).to_contain_text("cancelled")


def fail(caller, queue, *ids):
    """Fail tasks as a worker of ours would."""
    worker = caller.post("/workers", {"name": "w", "queues": [queue]}).json["id"]
    for one in caller.post(f"/queues/{queue}/claim", {"worker": worker, "n": len(ids)}).json[
        "tasks"
    ]:
        assert one["id"] in ids
        said = {"worker": worker, "attempt": one["attempt"]}
        error = {"code": "exit", "description": "it ended with exit status 3"}
        told = caller.post(
            f"/tasks/{one['id']}/finish", {**said, "ending": "failed", "error": error}
        )
        assert told.status == 200, told.body
    caller.post(f"/workers/{worker}/stop")


def test_tasks_that_failed_are_submitted_again_in_bulk_with_what_was_cancelled(site, page):
    caller, queue = site.caller(), "bulk"
    ids = [f"bulk-{n}" for n in range(3)]
    tasks = [{"queue": queue, "id": one, "command": "exit 3"} for one in ids]
    child = {"queue": queue, "id": "bulk-join", "command": "true", "needs": ["bulk-0"]}
    assert caller.post("/tasks", [*tasks, child]).status == 201
    fail(caller, queue, *ids)
    page.goto(f"{site.url}/tasks?queue={queue}&status=failed")
    rows = page.get_by_role("table", name="Tasks").get_by_role("row")
    expect(rows.filter(has_text="failed")).to_have_count(3)
    page.get_by_role("checkbox", name="Select all 3 that are shown").check()
    bar = page.get_by_role("group", name="Actions on ticked tasks")
    expect(bar).to_contain_text("3 selected")
    bar.get_by_role("button", name="Submit again").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_have_text("3 to submit")
    dialog.get_by_role(
        "checkbox", name=re.compile("Also submit tasks that were cancelled")
    ).check()
    expect(dialog.get_by_role("status")).to_have_text("4 to submit")
    expect(dialog.get_by_role("row").filter(has_text="bulk-join")).to_contain_text("bulk-0~2-")
    confirm(page, "Submit 4 again")
    expect(bar).to_have_count(0)
    made = caller.get(f"/tasks?queue={queue}&status=ready").json["tasks"]
    assert sorted(one["id"].partition("~")[0] for one in made) == ids
    # What is there already is told, and nothing is made twice.
    page.get_by_role("checkbox", name="Select bulk-1").check()
    bar.get_by_role("button", name="Submit again").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 already submitted again")
    expect(dialog.get_by_role("button", name="Submit 0 again")).to_be_disabled()
    dialog.get_by_role("button", name="Cancel").click()


def test_a_queue_says_how_many_tasks_failed_and_leads_to_exactly_these(site, page):
    caller, queue = site.caller(), "berth"
    ids = [f"berth-{n}" for n in range(3)]
    tasks = [{"queue": queue, "id": one, "command": "exit 3"} for one in ids]
    good = {"queue": queue, "id": "berth-good", "command": "true", "delay": 3600.0}
    assert caller.post("/tasks", [*tasks, good]).status == 201
    fail(caller, queue, *ids)
    page.goto(f"{site.url}/tasks?matching=berth-good&queues=all")
    row = page.get_by_role("row", name=re.compile(f"^{queue} "))
    row.get_by_role("link", name=f"3 failed in {queue}").click()
    expect(page).to_have_url(re.compile(f"queue={queue}&status=failed"))
    rows = page.locator(".task-space [role=row]")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="failed")).to_have_count(3)


def test_the_tasks_of_queues_are_sorted_by_each_column_with_mouse_and_keys(site, page):
    caller, queue = site.caller(), "shelf"
    # The newest are shown first, and what is first by name is not among the first hundred.
    tasks = [
        {"queue": queue, "id": f"shelf-{n:03}", "command": "true", "delay": 3600.0}
        for n in range(230)
    ]
    assert caller.post("/tasks", tasks).status == 201
    page.goto(f"{site.url}/tasks?queue={queue}")
    first = page.locator(".task-space [role=row]").first
    head = page.get_by_role("table", name="Tasks").get_by_role("columnheader", name="Task")
    expect(first).to_contain_text("shelf-229")
    expect(head).to_have_attribute("aria-sort", "none")
    head.get_by_role("button").click()
    expect(first).to_contain_text("shelf-000")
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(page).to_have_url(re.compile("sort=task"))
    page.reload()
    expect(first).to_contain_text("shelf-000")
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(first).to_contain_text("shelf-229")
    expect(head).to_have_attribute("aria-sort", "descending")
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "none")
    expect(page).not_to_have_url(re.compile("sort="))


def test_all_tasks_that_match_are_selected_also_those_that_are_not_loaded_yet(site, page):
    caller, queue = site.caller(), "deep"
    tasks = [{"queue": queue, "command": "true", "delay": 3600.0} for _ in range(230)]
    assert caller.post("/tasks", tasks).status == 201
    page.goto(f"{site.url}/tasks?queue={queue}")
    page.get_by_role("checkbox", name="Select all 100 that are shown").check()
    bar = page.get_by_role("group", name="Actions on ticked tasks")
    expect(bar).to_contain_text("100 selected")
    expect(bar).to_contain_text("Older tasks may match, too")
    bar.get_by_role("button", name="Select all that match").click()
    expect(bar).to_contain_text("230 selected")
    expect(bar).not_to_contain_text("Older tasks")
    bar.get_by_role("button", name="Cancel").click()
    confirm(page, "Cancel 230 tasks")
    expect(bar).to_have_count(0)
    assert caller.get(f"/tasks?queue={queue}&status=waiting,ready").json["tasks"] == []


def test_limits_and_rates_of_a_queue_are_set_with_words_for_each(site, page):
    caller = site.caller()
    page.goto(f"{site.url}/tasks")
    page.get_by_role("button", name="Configure a queue").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Queue", exact=True).fill("dock")
    whole = dialog.get_by_role("group", name="The whole queue")
    whole.get_by_label("Maximum at once").fill("many")
    expect(whole).to_contain_text("Give a whole number")
    expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    whole.get_by_label("Maximum at once").fill("4")
    whole.get_by_label("Maximum starts").fill("10")
    whole.get_by_label("in how many seconds").fill("60")
    dialog.get_by_role("checkbox", name=re.compile("Paused")).check()
    dialog.get_by_role("button", name="Add a key").click()
    keyed = dialog.get_by_role("group", name="By limit key")
    keyed.get_by_role("textbox", name="Key").fill("crane")
    keyed.get_by_label("Maximum at once").fill("1")
    confirm(page, "Save")
    row = page.get_by_role("row", name=re.compile("^dock "))
    expect(row).to_contain_text("at most 4 at once, 10 per 1 min, crane: at most 1 at once")
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Settings").click()
    dialog.get_by_label("Remove the limit of crane").click()
    dialog.get_by_role("checkbox", name=re.compile("Aging")).check()
    confirm(page, "Save")
    expect(row).to_contain_text("aging")
    stored = caller.get("/queues/dock").json
    assert (stored["paused"], stored["aging"], len(stored["limits"])) == (True, True, 1)


def test_a_queue_that_is_idle_stays_listed_and_can_be_paused_beforehand(site, page):
    caller, queue = site.caller(), "lull"
    assert caller.post("/tasks", {"queue": queue, "id": "lull-1", "command": "x"}).status == 201
    assert caller.post("/tasks/lull-1/cancel").status == 200
    page.goto(f"{site.url}/tasks")
    row = page.get_by_role("row", name=re.compile(f"^{queue} "))
    row.get_by_role("button", name="Pause").click()
    confirm(page, "Pause")
    expect(row).to_contain_text("paused")


def test_tasks_are_filtered_by_patterns_and_states_and_a_wrong_state_is_told(site, page):
    caller = site.caller()
    for name in ("sieve-1", "sieve-2", "strain-1"):
        given = {"queue": "sieves", "id": name, "command": "x"}
        assert caller.post("/tasks", given).status == 201
    assert caller.post("/tasks/sieve-2/cancel").status == 200
    page.goto(f"{site.url}/tasks?queue=sieves")
    shown = page.locator(".task-space [role=row]")
    expect(shown).to_have_count(3)
    field = page.get_by_label("Filter tasks")
    field.fill("SIEVE-?")
    expect(shown).to_have_count(2)
    page.wait_for_url(re.compile("matching=SIEVE-"))
    field.fill("s*:canc")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("sieve-2")
    field.fill(":vanished")
    expect(page.get_by_text("No state begins with “vanished”").first).to_be_visible()
    expect(page.get_by_text("The filter is not understood")).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")


def test_jobs_of_runs_are_folded_away_until_they_are_asked_for(site, page):
    run = site.begin(
        "flood", "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true"
    )
    facts = f"/runs/{in_path(run)}/facts"
    eventually(lambda: site.caller().get(facts).json["run"]["status"] == "completed", "is over")
    own = {"queue": "dry", "id": "dry-1", "command": "x"}
    assert site.caller().post("/tasks", own).status == 201
    page.goto(f"{site.url}/tasks")
    table, job = page.get_by_role("table", name="Tasks"), page.get_by_text(f"{run}/1/a/1")
    expect(table).to_contain_text("dry-1")
    expect(job).to_have_count(0)
    toggle = page.get_by_role("button", name=re.compile(r"^Jobs of runs \(\d+ open\)"))
    toggle.click()
    expect(job.first).to_be_visible()
    expect(toggle).to_have_attribute("aria-pressed", "true")
    page.goto(f"{site.url}/tasks?queue=run:{run}")
    expect(job.first).to_be_visible()
    expect(toggle).to_have_count(0)


def test_queues_of_runs_that_are_over_are_folded_away_and_filters_can_be_taken_back(site, page):
    run = site.begin("over", "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true")
    facts = f"/runs/{in_path(run)}/facts"
    eventually(lambda: site.caller().get(facts).json["run"]["status"] == "completed", "is over")
    page.goto(f"{site.url}/tasks?matching=nobody&jobs=1")
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("table", name="Tasks")).to_be_visible()
    expect(page.get_by_label("Filter tasks")).to_have_value("")
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
    card.get_by_role("link", name=re.compile("slots")).click()
    page.wait_for_url("**/tasks?*worker=*")


def test_statistics_are_compared_by_queue(noisy, page):
    page.get_by_role("link", name="Statistics").click()
    expect(page.get_by_role("heading", name="Success")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text=noisy)).to_be_visible()


def test_a_token_is_shown_once_and_is_worth_nothing_when_revoked(site, page):
    page.get_by_role("link", name="Tokens").click()
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("harbour master")
    dialog.get_by_label("Names", exact=True).fill("harbour")
    dialog.get_by_role("button", name="Create the token").click()
    secret = dialog.get_by_label("The token").inner_text()
    holder = Caller(urlsplit(site.url).netloc, secret)
    assert holder.get("/runs").status == 200
    confirm(page, "I have saved it")
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
    expect(page.get_by_role("heading", name="Only admins see tokens")).to_be_visible()
