"""People sign in at a provider of OpenID Connect: what is believed, and what is not."""

import base64
import hashlib
import hmac
import html
import json
import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from tests.server.test_access_file import ADMINS, RULES, written
from tests.server.test_sessions import FORM
from tests.support.http_server import Caller, running_server
from tests.support.oidc_provider import (
    ADA,
    CLIENT,
    After,
    Key,
    own_certificate,
    running_provider,
)
from tests.support.patience import eventually
from tidewheel.core.queue.tokens import challenge_of


@pytest.fixture
def provider():
    with running_provider() as running:
        yield running


@pytest.fixture
def access(tmp_path, provider):
    head = f'[oidc]\nissuer = "{provider.url}"\nclient_id = "{CLIENT}"\n'
    return written(tmp_path / "access.toml", head + RULES + ADMINS)


@pytest.fixture
def site(tmp_path, access):
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, access_file=access, failures_max=1_000) as server:
        yield server


class Browser:
    """Follows where it is led, and keeps cookies."""

    def __init__(self, server):
        self.server, self.cookies = server, {}

    def _caller(self):
        cookie = "; ".join(f"{name}={text}" for name, text in self.cookies.items())
        known = {"Cookie": cookie} if cookie else {}
        return Caller(self.server.address, headers=known | {"Accept": "text/html"})

    def _kept(self, reply):
        for line in reply.headers.get("set-cookie", "").splitlines():
            name, _, rest = line.partition("=")
            self.cookies[name] = rest.partition(";")[0].strip('"')
            if not self.cookies[name]:
                del self.cookies[name]
        return reply

    def begin(self):
        """The address at the provider."""
        reply = self._kept(self._caller().get("//login/oidc"))
        assert reply.status == 303, reply.body
        return reply.headers["location"]

    def come_back(self, code, state):
        """What the page to which the provider leads does, with its button."""
        query = urlencode({"code": code, "state": state, "session_state": "of the provider"})
        page = self._caller().get(f"//login/oidc/callback?{query}")
        assert page.status == 200 and "set-cookie" not in page.headers
        found = re.findall(r'name="(\w+)" value="([^"]*)"', page.body.decode())
        form = urlencode({name: html.unescape(text) for name, text in found})
        own = f"http://{self.server.address}"
        reply = self._caller().post(
            "//login/oidc", form.encode(), Content_Type=FORM, Origin=own
        )
        return self._kept(reply)

    def person(self):
        """A caller with the session."""
        found = self._caller()
        del found.headers["Accept"]
        found.csrf = found.get("/session").json["csrf"]
        return found


def state_of(address):
    return parse_qs(urlsplit(address).query)["state"][0]


def signed_in(server, provider, claims=ADA, **more):
    browser = Browser(server)
    address = browser.begin()
    code = provider.signs_in(address, claims, **more)
    return browser, browser.come_back(code, state_of(address))


def assert_refused(site, reply, words):
    assert reply.status == 403 and words in html.unescape(reply.body.decode()), reply.body
    assert "tidewheel_session" not in reply.headers.get("set-cookie", "")
    assert site.caller("admin").get("/sessions").json["sessions"] == []


def test_a_person_signs_in_with_the_rights_of_the_groups_and_is_named(site, provider):
    browser, reply = signed_in(site, provider)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    ada = browser.person()
    assert list(browser.cookies) == ["tidewheel_session"]  # that of the sign-in is gone
    assert ada.get("/session").json["name"] == "ada@example.org"
    submitted = ada.post("/tasks", {"queue": "team-a/x"}, X_CSRF_Token=ada.csrf)
    assert submitted.status == 201
    assert ada.post("/tasks", {"queue": "other"}, X_CSRF_Token=ada.csrf).status == 403
    admin = site.caller("admin")
    entries = admin.get("/audit?limit=3").json["entries"]
    assert {one["who"] for one in entries} == {"ada@example.org"}
    assert entries[-1]["words"] == "signed in"
    [session] = admin.get("/sessions").json["sessions"]
    assert session["identity"] == {
        "person": "ada@example.org",
        "source": provider.url,
        "groups": ["team-a", "everybody"],
    }


def test_the_provider_is_asked_with_pkce_state_and_nonce_and_this_servers_own_address(
    site, provider
):
    browser = Browser(site)
    address = browser.begin()
    asked = {name: text for name, [text] in parse_qs(urlsplit(address).query).items()}
    assert address.startswith(f"{provider.url}/authorize?")
    assert asked["redirect_uri"] == f"http://{site.address}/login/oidc/callback"
    assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
    state, nonce, verifier = browser.cookies["tidewheel_sign_in"].split(".")
    assert (asked["state"], asked["nonce"]) == (state, nonce)
    assert asked["code_challenge"] == challenge_of(verifier)
    again = Browser(site)
    again.begin()
    assert not {state, nonce, verifier} & set(again.cookies["tidewheel_sign_in"].split("."))


def test_the_cookie_of_a_sign_in_is_strict_and_no_script_reads_it(site):
    cookie = site.stranger().get("//login/oidc").headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "max-age=600" in cookie


def test_with_tls_before_it_no_other_host_can_set_the_cookie(tmp_path, access):
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, access_file=access, proxies=("127.0.0.1",)) as server:
        reply = server.stranger().get("//login/oidc", X_Forwarded_Proto="https")
        assert reply.headers["set-cookie"].startswith("__Host-tidewheel_sign_in=")
        assert "; Secure" in reply.headers["set-cookie"]
        asked = parse_qs(urlsplit(reply.headers["location"]).query)
        assert asked["redirect_uri"] == [f"https://{server.address}/login/oidc/callback"]


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"aud": "another-client"}, "Audience"),
        ({"aud": [CLIENT, "another-client"]}, "another client"),
        ({"aud": [CLIENT, "other"], "azp": "other"}, "another client"),
        ({"azp": "another-client"}, "another client"),
        ({"aud": None}, "aud"),
        ({"exp": After(-120)}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": After(3600)}, "not yet valid"),
        ({"iat": None}, "iat"),
        ({"nbf": After(3600)}, "not yet valid"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"nonce": "another"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"nonce": 7}, "another sign-in"),
        ({"sub": None}, "sub"),
        ({"email_verified": False}, "not verified"),
        ({"email_verified": None}, "not verified"),
        ({"email_verified": "true"}, "not verified"),
        ({"email": None}, "names no person"),
        ({"email": "a\nb"}, "names no person"),
        ({"email": ["ada@example.org"]}, "names no person"),
        ({"groups": ["team-x"]}, "may do nothing here"),
        ({"groups": None}, "may do nothing here"),
        ({"groups": {"team-a": True}}, "may do nothing here"),
    ],
)
def test_an_id_token_that_says_something_wrong_lets_nobody_in(site, provider, claims, words):
    _, reply = signed_in(site, provider, **claims)
    assert_refused(site, reply, words)


def parts(**texts):
    return [
        base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=")
        for one in texts.values()
    ]


def unsigned(claims):
    return (
        ".".join(parts(head={"alg": "none", "typ": "JWT", "kid": "first"}, claims=claims)) + "."
    )


def by_public_key(provider):
    """HS256 with what everybody can read as the secret."""

    def sign(claims):
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        pem = provider.key.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        signed = ".".join(parts(head={"alg": "HS256", "kid": "first"}, claims=claims))
        code = hmac.new(pem, signed.encode(), hashlib.sha256).digest()
        return signed + "." + base64.urlsafe_b64encode(code).decode().rstrip("=")

    return sign


def changed(provider):
    """Signed, and another person put in afterwards."""

    def sign(claims):
        head, _, signature = provider.key.sign(claims).split(".")
        [middle] = parts(claims={**claims, "email": "root@example.org"})
        return f"{head}.{middle}.{signature}"

    return sign


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (lambda _: unsigned, "'none'"),
        (by_public_key, "'HS256'"),
        (changed, "Signature verification failed"),
        (lambda _: Key("first").sign, "Signature verification failed"),
        (lambda _: Key("unknown").sign, "no key of the provider matches"),
        (lambda _: Key("first", "ES256").sign, "no key of the provider matches"),
        (lambda _: Key("first", "PS256").sign, "no key of the provider matches"),
        (lambda provider: lambda claims: provider.key.sign(claims)[:-4], "was refused"),
        (lambda _: lambda _: "no token", "cannot be read"),
        (lambda _: lambda _: None, "no ID token"),
        (lambda _: lambda _: "x" * 40_000, "no ID token"),
    ],
)
def test_an_id_token_that_the_provider_has_not_signed_lets_nobody_in(
    site, provider, forge, words
):
    provider.forged = forge(provider)
    _, reply = signed_in(site, provider)
    assert_refused(site, reply, words)


def test_a_key_that_is_a_shared_secret_is_not_used(site, provider):
    provider.keys = [{"kty": "oct", "kid": "first", "k": "c2VjcmV0"}]
    _, reply = signed_in(site, provider)
    assert_refused(site, reply, "no key of the provider matches")


def test_a_short_key_is_not_believed(site, provider):
    provider.key = Key("short", bits=1024)
    provider.keys = [provider.key.jwk]
    _, reply = signed_in(site, provider)
    assert_refused(site, reply, "2048")


@pytest.mark.parametrize("method", ["RS256", "PS256", "ES256"])
def test_these_signatures_are_believed_and_new_keys_are_found(site, provider, method):
    assert signed_in(site, provider)[1].status == 303
    provider.key = Key("second", method)
    provider.keys = [provider.key.jwk, Key("third", method).jwk]
    assert signed_in(site, provider)[1].status == 303


def test_a_code_is_good_once(site, provider):
    browser = Browser(site)
    address = browser.begin()
    code = provider.signs_in(address)
    assert browser.come_back(code, state_of(address)).status == 303
    other = Browser(site)
    reply = other.come_back(code, state_of(other.begin()))
    assert reply.status == 403 and b"does not accept the code" in reply.body


def test_a_state_is_good_once_even_with_a_new_code(site, provider):
    browser = Browser(site)
    address = browser.begin()
    stolen = dict(browser.cookies)
    assert browser.come_back(provider.signs_in(address), state_of(address)).status == 303
    thief = Browser(site)
    thief.cookies = stolen
    reply = thief.come_back(provider.signs_in(address), state_of(address))
    assert reply.status == 403 and b"was already used" in reply.body


def test_nobody_is_signed_in_as_somebody_else_by_a_link(site, provider):
    """Login CSRF: eve sends ada the address with which eve's own sign-in would have ended."""
    eve, ada = Browser(site), Browser(site)
    address = eve.begin()
    code = provider.signs_in(address, {**ADA, "email": "eve@example.org"})
    assert b"not started in this browser" in ada.come_back(code, state_of(address)).body
    ada.begin()
    reply = ada.come_back(code, state_of(address))
    assert reply.status == 403 and b"not started in this browser" in reply.body
    assert code in provider.codes  # the provider was not even asked
    own = f"http://{site.address}"
    form = urlencode({"code": code, "state": state_of(address)}).encode()
    sent = {"Cookie": f"tidewheel_sign_in={eve.cookies['tidewheel_sign_in']}"}
    for origin in ("https://evil.example", "null", own + "0"):
        caller = Caller(site.address, headers=sent)
        assert caller.post("//login/oidc", form, Content_Type=FORM, Origin=origin).status == 403


def test_a_code_of_another_sign_in_is_not_taken(site, provider):
    """PKCE: who has a code of ada's has not the verifier that goes with it."""
    ada, eve = Browser(site), Browser(site)
    code = provider.signs_in(ada.begin())
    reply = eve.come_back(code, state_of(eve.begin()))
    assert reply.status == 403 and b"does not accept the code" in reply.body


def test_nothing_leads_elsewhere(site):
    for path in ("//login/oidc?next=https://evil.example", "//login/oidc?redirect_uri=x"):
        assert site.stranger().get(path).status == 422
    caller = site.stranger()
    query = "code=x&state=y&iss=" + quote("https://evil.example")
    assert caller.get(f"//login/oidc/callback?{query}").status == 403
    hostile = "//login/oidc/callback?error=%3Cscript%3Ealert(1)%3C/script%3E"
    told = caller.get(hostile, Accept="text/html")
    assert told.status == 403 and b"<script>alert" not in told.body
    page = caller.get(
        '//login/oidc/callback?state=y&code="><script>alert(1)</script>'.replace(
            '"><script>alert(1)</script>', quote('"><script>alert(1)</script>')
        )
    )
    assert b"<script>alert" not in page.body


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://login.example.org/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"device_authorization_endpoint": "http://10.0.0.1/"},
    ],
)
def test_a_provider_that_points_elsewhere_is_not_asked(site, provider, document):
    provider.document = document
    reply = site.stranger().get("//login/oidc")
    assert reply.status == 503 and "location" not in reply.headers


@pytest.mark.parametrize(
    "answer",
    [
        (302, {"Location": "http://127.0.0.1:1/"}, b"{}"),
        (200, {}, b"[]"),
        (200, {}, b"<html>"),
        (200, {}, b"[" * 200_000),
        (200, {}, b" " * 300_000 + b"{}"),
        (500, {}, b"{}"),
    ],
)
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks"])
def test_a_provider_that_answers_nonsense_is_said_to_be_unreachable(
    site, provider, path, answer
):
    provider.answers[path] = answer
    assert site.stranger().get("//login/oidc").status == 503


def test_a_provider_is_believed_over_tls_by_its_certificate(tmp_path):
    good, other = own_certificate(tmp_path, "localhost"), own_certificate(tmp_path, "other")
    with running_provider("localhost", certificate=good) as provider:
        head = f'[oidc]\nissuer = "{provider.url}"\nclient_id = "{CLIENT}"\n'
        seen = {}
        for ca in ("", f'ca = "{other}"\n', f'ca = "{good}"\n'):
            access = written(tmp_path / "access.toml", head + ca + RULES)
            url = f"sqlite:///{tmp_path}/t.db"
            with running_server(url, access_file=access) as server:
                seen[ca] = server.stranger().get("//login/oidc").status
                if ca.count(str(good)):
                    assert signed_in(server, provider)[1].status == 303
        assert list(seen.values()) == [503, 503, 303]
        provider.document = {"token_endpoint": provider.url.replace("https", "http") + "/token"}
        with running_server(url, access_file=access) as server:
            assert server.stranger().get("//login/oidc").status == 503  # no way back to http


def test_a_provider_that_says_nothing_keeps_nobody_else_waiting(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        head = f'[oidc]\nissuer = "{address}"\nclient_id = "{CLIENT}"\n'
        access = written(tmp_path / "access.toml", head + RULES)
        with (
            running_server(f"sqlite:///{tmp_path}/t.db", access_file=access) as server,
            ThreadPoolExecutor() as pool,
        ):
            waiting = [pool.submit(server.stranger().get, "//login/oidc") for _ in range(8)]
            admin = server.caller("admin")
            while not all(one.done() for one in waiting):
                assert server.stranger().get("//healthz").status == 200
                assert admin.get("/tasks").status == 200
            assert {one.result().status for one in waiting} <= {503}


def test_a_provider_that_is_down_is_not_asked_by_everybody(site, provider):
    provider.answers["/jwks"] = (500, {}, b"{}")
    assert site.stranger().get("//login/oidc").status == 503
    del provider.answers["/jwks"]
    assert site.stranger().get("//login/oidc").status == 503


def test_wrong_sign_ins_lock_an_address_out_like_wrong_tokens(tmp_path, access, provider):
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, access_file=access, failures_max=3) as server:
        found = [signed_in(server, provider, aud="x")[1].status for _ in range(5)]
        assert found == [403, 403, 403, 429, 429]


def test_nobody_is_locked_out_by_links_of_others(tmp_path, access, provider):
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, access_file=access, failures_max=3) as server:
        found = [Browser(server).come_back("code", "state").status for _ in range(5)]
        assert found == [403] * 5
        assert signed_in(server, provider)[1].status == 303


def test_a_secret_of_the_client_goes_to_the_provider_alone(tmp_path, access, provider):
    (tmp_path / "secret").write_text("s3cret&=%\n")
    (tmp_path / "secret").chmod(0o600)
    text = access.read_text().replace("[oidc]", '[oidc]\nclient_secret_file = "secret"')
    written(access, text)
    with running_server(f"sqlite:///{tmp_path}/t.db", access_file=access) as server:
        assert "s3cret" not in Browser(server).begin()
        assert signed_in(server, provider)[1].status == 303
        pair = base64.b64encode(b"tidewheel:s3cret%26%3D%25").decode()
        assert provider.headers[-1]["Authorization"] == f"Basic {pair}"
        assert "client_secret" not in provider.asked[-1]


def test_a_group_that_is_taken_away_counts_at_the_next_sign_in(site, provider, access):
    """A session keeps the groups of its beginning; the access file counts at once, and a
    session that was ended is over within a second."""
    browser, _ = signed_in(site, provider)
    ada = browser.person()
    later, _ = signed_in(site, provider, {**ADA, "groups": ["everybody"]})
    again = later.person()
    body, path = {"queue": "team-a/x"}, "/tasks"
    assert again.post(path, body, X_CSRF_Token=again.csrf).status == 403
    assert ada.post(path, body, X_CSRF_Token=ada.csrf).status == 201
    written(access, access.read_text().replace('group = "team-a"', 'group = "team-z"'))
    assert ada.post(path, body, X_CSRF_Token=ada.csrf).status == 403
    for session in again.get("/sessions").json["sessions"]:
        number = session["number"]
        assert again.post(f"/sessions/{number}/end", X_CSRF_Token=again.csrf).status == 200
    eventually(lambda: ada.get("/tasks").status == 401, "ended")


def test_whom_another_provider_knows_is_not_known_any_more(site, provider, access):
    """The same name may be somebody else's there."""
    browser, _ = signed_in(site, provider)
    ada = browser.person()
    assert ada.get("/tasks").status == 200
    written(access, access.read_text().replace(provider.url, "https://login.example.org"))
    assert ada.get("/tasks").status == 401


def test_a_session_lasts_as_long_as_the_access_file_says(site, provider, access):
    written(access, access.read_text().replace("[oidc]", '[oidc]\nlasts = "2h"'))
    _, reply = signed_in(site, provider)
    assert "Max-Age=7200" in reply.headers["set-cookie"]
    [session] = site.caller("admin").get("/sessions").json["sessions"]
    assert session["expires_at"] > session["created_at"]


def test_sessions_of_a_person_are_seen_by_that_person_alone(site, provider):
    ada, bob = signed_in(site, provider)[0], signed_in(site, provider)[0]
    eve, _ = signed_in(site, provider, {**ADA, "email": "eve@example.org"})
    assert len(ada.person().get("/sessions").json["sessions"]) == 2
    [own] = eve.person().get("/sessions").json["sessions"]
    assert own["name"] == "eve@example.org"
    caller, number = eve.person(), ada.person().get("/sessions").json["sessions"][0]["number"]
    assert caller.post(f"/sessions/{number}/end", X_CSRF_Token=caller.csrf).status == 404
    assert bob.person().get("/tasks").status == 200


# At a command line.


def test_a_device_is_signed_in_when_its_person_has_agreed(site, provider):
    caller = site.stranger()
    assert caller.get("/sign-in").json["device"] is True
    begun = caller.post("/sign-in/device", {}).json
    assert begun["user_code"] == "WDJB-MJHT"
    body = {"device_code": begun["device_code"]}
    waiting = caller.post("/sign-in/token", body).json
    assert waiting == {"token": None, "stored": None, "waits": "authorization_pending"}
    provider.approve()
    told = caller.post("/sign-in/token", body).json
    ada = Caller(site.address, told["token"])
    assert ada.get("/session").json["name"] == "ada@example.org"
    assert ada.post("/tasks", {"queue": "team-a/x"}).status == 201
    assert ada.post("/tasks", {"queue": "other"}).status == 403
    reply = caller.post("/sign-in/token", body)
    assert reply.status == 403 and "expired_token" in reply.json["message"]


def test_a_token_that_is_shown_once_is_kept_for_no_repeated_request(site, provider):
    provider.patience = [ADA]
    caller = site.stranger()
    begun = caller.post("/sign-in/device", {}).json
    body = {"device_code": begun["device_code"]}
    told = caller.post("/sign-in/token", body, Idempotency_Key="again").json
    assert told["token"] is not None
    assert site.do(site.store.kept_answer(told["stored"]["number"], "again")) is None


def test_what_is_stored_with_a_persons_token_is_no_more_than_reading(site, provider):
    """What a person may do follows from the access file, at each request."""
    provider.patience = [{**ADA, "email": "root@example.org"}]
    caller = site.stranger()
    begun = caller.post("/sign-in/device", {}).json
    told = caller.post("/sign-in/token", {"device_code": begun["device_code"]}).json
    root = Caller(site.address, told["token"])
    root.post("/login-links")
    listed = root.get("/tokens").json["tokens"]
    assert {tuple(one["scopes"]) for one in listed if one["identity"]} == {("read",)}
    assert len([one for one in listed if one["identity"]]) == 2


def test_a_token_of_a_person_makes_a_session_that_ends_with_it(site, provider):
    caller = site.stranger()
    begun = caller.post("/sign-in/device", {}).json
    provider.approve()
    told = caller.post("/sign-in/token", {"device_code": begun["device_code"]}).json
    ada = Caller(site.address, told["token"])
    path = ada.post("/login-links").json["path"]
    body = urlsplit(path).query.encode()
    reply = site.stranger().post("//login", body, Content_Type=FORM)
    cookie = reply.headers["set-cookie"].partition(";")[0]
    browser = Caller(site.address, headers={"Cookie": cookie})
    assert browser.get("/session").json["name"] == "ada@example.org"
    assert ada.post(f"/sessions/{told['stored']['number']}/end").status == 200
    eventually(lambda: browser.get("/tasks").status == 401, "ended with its maker")


@pytest.mark.parametrize(
    "change",
    [
        {"redirect_uri": "http://127.0.0.1.evil.example:80/callback"},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1:80/callback?x=y"},
        {"verifier": "short"},
        {"nonce": None},
        {"device_code": "both"},
        {"code": None},
    ],
)
def test_a_code_counts_only_with_all_that_belongs_to_it(site, change):
    body = {"code": "c", "verifier": "v" * 43, "nonce": "n" * 43}
    body |= {"redirect_uri": "http://127.0.0.1:9/callback"} | change
    assert site.stranger().post("/sign-in/token", body).status == 422


def test_without_a_provider_nobody_signs_in(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        caller = server.stranger()
        assert caller.get("/sign-in").json["issuer"] is None
        assert caller.get("//login/oidc").status == 404
        assert caller.get("//login/oidc/callback?code=x&state=y").status == 404
        assert caller.post("/sign-in/device", {}).status == 404
        assert caller.post("/sign-in/token", {"device_code": "x"}).status == 404
        assert b"/login/oidc" not in caller.get("//login").body


# At a provider that others wrote.


@pytest.fixture(scope="module")
def other_provider(tmp_path_factory):
    """`oidc-provider-mock`, a process of its own; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce"]
    log = (tmp_path_factory.mktemp("provider") / "log").open("wb")
    environment = os.environ | {"AUTHLIB_INSECURE_TRANSPORT": "1"}
    with log, subprocess.Popen(words, stdout=log, stderr=log, env=environment) as process:
        address = f"127.0.0.1:{port}"

        def answers():
            with suppress(OSError):
                return Caller(address).get("//.well-known/openid-configuration").status == 200

        try:
            eventually(answers, "the provider answers")
            yield address
        finally:
            process.terminate()


def agrees(address, subject):
    """What somebody does on the provider's page: returns the query with which it sends back."""
    parts = urlsplit(address)
    form = urlencode({"sub": subject}).encode()
    reply = Caller(parts.netloc).post(f"/{parts.path}?{parts.query}", form, Content_Type=FORM)
    assert reply.status in (302, 303), reply.body
    back = urlsplit(reply.headers["location"])
    return {name: one for name, [one] in parse_qs(back.query).items()}


def test_people_sign_in_at_a_provider_that_others_wrote(tmp_path, other_provider):
    """It takes no client without a secret."""
    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / "secret").chmod(0o600)
    line = 'client_secret_file = "secret"\n'
    head = f'[oidc]\nissuer = "http://{other_provider}"\nclient_id = "{CLIENT}"\n{line}'
    access = written(tmp_path / "access.toml", head + RULES)
    provider = Caller(other_provider)
    claims = {name: one for name, one in ADA.items() if name != "sub"}
    assert provider.ask("PUT", "//users/ada", claims).status == 204
    with running_server(f"sqlite:///{tmp_path}/t.db", access_file=access) as server:
        browser = Browser(server)
        sent = agrees(browser.begin(), "ada")
        assert browser.come_back(sent["code"], sent["state"]).status == 303
        ada = browser.person()
        assert ada.get("/session").json["name"] == "ada@example.org"
        assert ada.post("/tasks", {"queue": "team-a/x"}, X_CSRF_Token=ada.csrf).status == 201
        # A code that was used, a code with another nonce, and somebody whom no rule is for.
        again = Browser(server)
        address = again.begin()
        assert again.come_back(sent["code"], state_of(address)).status == 403
        other = Browser(server)
        wrong = agrees(other.begin().replace("nonce=", "nonce=x"), "ada")
        assert b"another sign-in" in other.come_back(wrong["code"], wrong["state"]).body
        stranger = Browser(server)
        sent = agrees(stranger.begin(), "eve@example.org")
        assert stranger.come_back(sent["code"], sent["state"]).status == 403
