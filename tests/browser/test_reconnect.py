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
        site.up.send(signal.SIGKILL)
        expect(sign).to_have_text("reconnecting")
        expect(page.locator(".logs-tools")).to_contain_text("reconnecting")
    with site.running(own_port):
        expect(sign).to_have_text("live")
        expect(page.locator(".logs-tools")).not_to_contain_text("reconnecting")
        given = site.tidewheel("set", run, "1/second", "--server", site.url)
        assert given.status == 0, given
        expect(page.locator(".run-header")).to_contain_text("completed")
