"""`tidewheel login`: people sign in at a server, and their commands are theirs."""

import stat
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.server.test_access_file import RULES, written
from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, running_server
from tests.support.oidc_provider import ADA, CLIENT, running_provider


@pytest.fixture
def provider():
    with running_provider() as running:
        yield running


def access_by(provider, tmp_path):
    head = f'[oidc]\nissuer = "{provider.url}"\nclient_id = "{CLIENT}"\n'
    return written(tmp_path / "access.toml", head + RULES)


@pytest.fixture
def server(there, provider, tmp_path):
    access = access_by(provider, tmp_path)
    with running_server(there.store, home=there.state, access_file=access) as running:
        yield running


@pytest.fixture
def url(server):
    return f"http://{server.address}"


@pytest.fixture
def here(tmp_path):
    """Somebody at another machine, without a token."""
    (tmp_path / "here").mkdir()
    return CommandLine(tmp_path / "here")


def kept_logins(here):
    return sorted(here.state.glob("login-*"))


def test_somebody_signs_in_by_a_code_typed_elsewhere(here, url, provider):
    provider.patience = ["authorization_pending", "authorization_pending", ADA]
    said = here("login", url)
    assert said.status == 0
    assert f"open {provider.url}/device and type WDJB-MJHT" in said.err
    assert f"signed in at {url} as ada@example.org" in said.err
    [path] = kept_logins(here)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().split()[0] not in said.err + said.out
    assert here("submit", "--server", url, "--queue", "team-a/x", "--", "true").status == 0
    refused = here("submit", "--server", url, "--queue", "other", "--", "true")
    assert refused.status == 2 and "team-a" in refused.err
    shown = here("session", "list", "--server", url, "--json").json["sessions"]
    assert [one["name"] for one in shown] == ["ada@example.org"]
    assert here("logout", url).status == 0
    assert kept_logins(here) == []
    assert here("tasks", "--server", url).status != 0


def test_logout_fails_if_the_server_did_not_end_the_session(here, there, provider, tmp_path):
    provider.patience = [ADA]
    with running_server(
        there.store, home=there.state, access_file=access_by(provider, tmp_path)
    ) as running:
        url = f"http://{running.address}"
        assert here("login", url).status == 0
    said = here("logout", url)
    assert said.status == 3
    told = f"the token is removed from this machine, but {url} did not end the session"
    assert told in said.err
    assert "not signed in" not in said.err and kept_logins(here) == []


def test_the_token_is_shown_to_that_server_alone(here, url, server, provider):
    provider.patience = [ADA]
    assert here("login", url).status == 0
    other = url.replace("127.0.0.1", "localhost")
    said = here("tasks", "--server", other)
    assert said.status != 0 and "tidewheel login" in said.err
    assert here("tasks", "--server", url).status == 0
    [path] = kept_logins(here)
    token, _ = path.read_text().split()
    path.write_text(f"{token}\n1\n")  # it has run out, as this machine knows
    assert "needs a token and none was given" in here("tasks", "--server", url).err
    assert Caller(server.address, token).get("/tasks").status == 200


def test_somebody_signs_in_in_a_browser_of_this_machine(here, url, provider):
    """Where the provider gives no codes for devices."""
    provider.document = {"device_authorization_endpoint": None}
    with here.started("login", url) as login:
        told = login.read_until("nonce=")
        address = next(word for word in told.split() if word.startswith(provider.url))
        asked = {name: one for name, [one] in parse_qs(urlsplit(address).query).items()}
        port = urlsplit(asked["redirect_uri"]).netloc
        code = provider.signs_in(address)
        browser = Caller(port)
        assert browser.get(f"//callback?code={code}&state=another").status == 404
        assert browser.get(f"//elsewhere?code={code}&state={asked['state']}").status == 404
        reply = browser.get(f"//callback?code={code}&state={asked['state']}")
        assert reply.status == 200 and b"close this page" in reply.body
        assert login.wait().status == 0
    assert here("tasks", "--server", url).status == 0


def test_whoever_is_turned_away_gets_no_token(here, url, provider):
    provider.patience = ["access_denied"]
    said = here("login", url)
    assert said.status == 2 and "access_denied" in said.err
    provider.patience = [{**ADA, "groups": []}]
    said = here("login", url)
    assert said.status == 2 and "may do nothing here" in said.err
    assert kept_logins(here) == []


def test_a_server_says_what_is_wrong_with_its_access_file(there, tmp_path):
    access = written(tmp_path / "access.toml", "[[grant]]\ngroup = 'a'\nscopes = ['read']\n")
    said = there("server", "--port", "0", "--access-file", str(access))
    assert said.status == 2 and "grant 1 (line 1): names is missing" in said.err


def test_nobody_signs_in_in_the_clear_or_where_there_is_no_provider(here, there):
    said = here("login", "http://tidewheel.example.org")
    assert said.status == 2 and "https" in said.err
    with running_server(there.store, home=there.state) as plain:
        said = here("login", f"http://{plain.address}")
    assert said.status == 2 and "no sign-in for command lines" in said.err
