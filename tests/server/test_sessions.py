"""Browsers: one-time links, strict cookies, changes only from our own pages (S8)."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.event_reader import EventReader
from tests.support.http_server import Caller
from tests.support.patience import eventually

FORM = "application/x-www-form-urlencoded"


def code_of(caller):
    reply = caller.post("/login-links")
    assert reply.status == 201
    return parse_qs(urlsplit(reply.json["path"]).query)["code"][0]


def log_in(server, code, **headers):
    body = f"code={code}".encode()
    return server.stranger().post("//login", body, Content_Type=FORM, **headers)


def browser(server, caller):
    reply = log_in(server, code_of(caller))
    assert reply.status == 303
    cookie = reply.headers["set-cookie"].partition(";")[0]
    made = Caller(server.address, headers={"Cookie": cookie})
    made.csrf = made.get("/session").json["csrf"]
    return made


def test_a_link_shows_a_page_and_its_button_makes_a_session(server, client):
    code = code_of(client)
    for _ in range(2):  # to look at the page uses nothing up
        page = server.stranger().get(f"//login?code={code}")
        assert page.status == 200 and code.encode() in page.body
    reply = log_in(server, code)
    assert reply.status == 303
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert log_in(server, code).status == 401


def test_a_link_shows_nothing_but_text(server):
    page = server.stranger().get("//login?code=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert b"<script" not in page.body


def test_a_page_of_ours_follows_events_and_one_of_another_site_does_not(server, client):
    """S8: the stream of a browser, which sends its cookie and says whose page it is."""
    person = browser(server, client)
    own = Caller(
        server.address, headers=person.headers | {"Origin": f"http://{server.address}"}
    )
    stream = EventReader(own).ready()
    client.post("/tasks", {"id": "seen by a page", "queue": "q"})
    assert stream.next().data["id"] == "seen by a page"
    stream.close()
    foreign = person.headers | {"Origin": "http://evil.example"}
    refused = EventReader(Caller(server.address, headers=foreign))
    assert refused.answer.status == 403
    assert refused.answer.getheader("access-control-allow-origin") is None
    refused.close()


def test_a_session_looks_freely_but_changes_only_with_its_header(server, client):
    """The header is what a page of another site cannot send."""
    person = browser(server, client)
    assert person.get("/tasks").status == 200
    assert person.post("/tasks", {"queue": "q"}).status == 403
    assert person.post("/tasks", {"queue": "q"}, X_CSRF_Token="x").status == 403
    assert person.post("/tasks", {"queue": "q"}, X_CSRF_Token=person.csrf).status == 201
    other = browser(server, client)
    assert person.post("/tasks", {"queue": "q"}, X_CSRF_Token=other.csrf).status == 403


def test_a_session_may_do_what_its_token_may(server):
    person = browser(server, server.caller("read", queues=["a"]))
    assert person.get("/tasks?queue=b").status == 403
    reply = person.post("/tasks", {"queue": "a"}, X_CSRF_Token=person.csrf)
    assert reply.status == 403 and "scope submit" in reply.json["message"]


def test_each_kind_counts_only_in_its_place(server, client):
    code = code_of(client)
    assert Caller(server.address, code).get("/tasks").status == 401
    as_cookie = {"Cookie": f"tidewheel_session={client.token}"}
    assert Caller(server.address, headers=as_cookie).get("/tasks").status == 401
    session = browser(server, client).headers["Cookie"].partition("=")[2]
    assert Caller(server.address, session).get("/tasks").status == 401
    assert log_in(server, session).status == 401
    assert log_in(server, client.token).status == 401


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil",
        "file://",
        "http://127.0.0.1:9",
        "http://127.0.0.1",
        "https://SERVER",
        "http://SERVER@evil.example",
    ],
)
def test_a_page_of_another_site_changes_nothing(server, client, origin):
    origin = origin.replace("SERVER", server.address)
    person = browser(server, client)
    reply = person.post("/tasks", {"queue": "q"}, X_CSRF_Token=person.csrf, Origin=origin)
    assert reply.status == 403
    assert log_in(server, code_of(client), Origin=origin).status == 403


def test_our_own_pages_may(server, client):
    person = browser(server, client)
    own = f"http://{server.address}"
    reply = person.post("/tasks", {"queue": "q"}, X_CSRF_Token=person.csrf, Origin=own)
    assert reply.status == 201


def test_a_session_ends_by_logging_out_or_with_its_token(server, admin):
    caller = server.caller("read")
    person, other = browser(server, caller), browser(server, caller)
    assert person.post("/logout", X_CSRF_Token=person.csrf).status == 204
    eventually(lambda: person.get("/tasks").status == 401, "logged out")
    assert other.get("/tasks").status == 200
    admin.post(f"/tokens/{caller.token.split('_')[1]}/revoke")
    eventually(lambda: other.get("/tasks").status == 401, "revoked")
    assert caller.post("/logout").status in (401, 403)
