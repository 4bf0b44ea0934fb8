"""A server that dies under the page: it says so, and comes back by itself."""

import signal
from urllib.parse import quote

from playwright.sync_api import expect

from tests.support.browser import Site
from tests.support.command_line import CommandLine

GATED = """
[scheduling]
    [[graph]]
        R1 = first => second
[runtime]
    [[first]]
        script = true
    [[second]]
        script = false
"""


def test_a_killed_server_is_waited_for_and_followed_again(tmp_path, own_port, window):
    site = Site(CommandLine(tmp_path))
    with site.running(own_port):
        run = site.begin("gate", GATED)
        page = window.log_in(site.login)
        page.goto(f"{site.url}/runs/{quote(run, safe='')}?views=table,logs&logs.of=run")
        sign = page.locator(".connection")
        expect(sign).to_have_text("live")
        expect(page.get_by_role("row", name="second")).to_contain_text("failed")
        expect(page.locator(".logs-tools")).to_be_visible()
        expect(page).to_have_title(f"✖ {run} stalled · tidewheel")
        site.up.send(signal.SIGKILL)
        expect(sign).to_have_text("reconnecting")
        expect(page).to_have_title(f"? {run} · tidewheel")
        expect(page.locator(".logs-tools")).to_contain_text("reconnecting")
    with site.running(own_port):
        expect(sign).to_have_text("live")
        expect(page.locator(".logs-tools")).not_to_contain_text("reconnecting")
        given = site.tidewheel("set", run, "1/second", "--server", site.url)
        assert given.status == 0, given
        expect(page.locator(".run-header")).to_contain_text("completed")
        expect(page).to_have_title(f"✔ {run} completed · tidewheel")


def test_states_of_a_lost_server_are_never_shown_as_those_of_now(tmp_path, own_port, window):
    """Pages that hear no events say so, too, and are shown anew once the server is back."""
    site = Site(CommandLine(tmp_path))
    with site.running(own_port):
        page = window.log_in(site.login)
        page.get_by_role("link", name="Workers").click()
        sign, card = page.locator(".connection"), page.get_by_role("article")
        expect(card.first).to_contain_text("idle")
        before = card.first.inner_text().splitlines()[0]
        expect(sign).to_have_count(0)
        site.up.send(signal.SIGKILL)
        expect(sign).to_have_text("reconnecting")
        page.get_by_role("link", name="Runs", exact=True).click()
        expect(page).to_have_title("? Runs · tidewheel")
        page.get_by_role("link", name="Workers").click()
        expect(sign).to_have_text("reconnecting")
    with site.running(own_port):
        expect(sign).to_have_count(0)
        expect(card.filter(has_not_text=before).first).to_contain_text("idle")


def test_a_view_opened_while_the_server_is_away_never_costs_the_tab(tmp_path, own_port, window):
    site = Site(CommandLine(tmp_path))
    with site.running(own_port):
        run = site.begin("gate", GATED)
        page = window.log_in(site.login)
        page.goto(f"{site.url}/runs/{quote(run, safe='')}?views=table")
        expect(page.get_by_role("row", name="second")).to_contain_text("failed")
        # Nobody has fetched this view yet, and for a while nobody can.
        page.route("**/assets/TreeView*", lambda route: route.abort())
        page.route("**/healthz", lambda route: route.abort())
        site.up.send(signal.SIGKILL)
        expect(page.locator(".connection")).to_have_text("reconnecting")
        page.keyboard.press("v")
        page.keyboard.press("e")
        expect(page.locator(".connection")).to_have_text("reconnecting")
        expect(page.locator(".run-header")).to_contain_text("gate")
    with site.running(own_port):
        page.unroute("**/assets/TreeView*")
        page.unroute("**/healthz")
        expect(page.get_by_role("treeitem").first).to_be_visible()
        expect(page.locator(".connection")).to_have_text("live")


def test_views_are_there_before_they_are_asked_for(tmp_path, own_port, window):
    site = Site(CommandLine(tmp_path))
    with site.running(own_port):
        run = site.begin("gate", GATED)
        page = window.log_in(site.login)
        with page.expect_response("**/assets/TimelineView*"):
            page.goto(f"{site.url}/runs/{quote(run, safe='')}?views=table")
        expect(page.get_by_role("row", name="second")).to_contain_text("failed")
