"""A person signs in in a real browser, at a provider of another site."""

from playwright.sync_api import expect

from tests.server.test_access_file import RULES, written
from tests.support.http_server import running_server
from tests.support.oidc_provider import CLIENT, running_provider


def test_a_browser_goes_to_the_provider_and_comes_back_with_a_session(window, tmp_path):
    """Cookies that are strict are not sent where another site leads, so the page to which the
    provider leads is only a step; a script of ours takes the next."""
    with running_provider("localhost") as provider:  # to a browser another site than 127.0.0.1
        head = f'[oidc]\nissuer = "{provider.url}"\nclient_id = "{CLIENT}"\n'
        access = written(tmp_path / "access.toml", head + RULES)
        url = f"sqlite:///{tmp_path}/t.db"
        with running_server(url, access_file=access) as server:
            page = window.page
            page.goto(f"http://{server.address}/login")
            page.get_by_role("link", name="Sign in").click()
            page.wait_for_url("**/runs")
            told = page.evaluate("fetch('/api/v1/session').then(answer => answer.json())")
            assert told["name"] == "ada@example.org"
            assert any(one.startswith(f"{provider.url}/authorize?") for one in window.asked)
            assert page.evaluate("document.cookie") == ""
            names = {one["name"] for one in page.context.cookies()}
            assert names == {"tidewheel_session"}
            page.goto(f"http://{server.address}/login/oidc/callback?error=access_denied")
            expect(page.get_by_text("access_denied")).to_be_visible()


def test_a_page_for_those_who_are_not_known_leads_to_the_sign_in(window, tmp_path):
    with running_provider("localhost") as provider:
        head = f'[oidc]\nissuer = "{provider.url}"\nclient_id = "{CLIENT}"\n'
        access = written(tmp_path / "access.toml", head + RULES)
        with running_server(f"sqlite:///{tmp_path}/t.db", access_file=access) as server:
            page = window.page
            page.goto(f"http://{server.address}/")
            page.get_by_role("link", name="Sign in by name").click()
            page.get_by_role("link", name="Sign in").click()
            page.wait_for_url("**/runs")
