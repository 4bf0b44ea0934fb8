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


def end(caller, number):
    return caller.post(f"/sessions/{number}/end", X_CSRF_Token=getattr(caller, "csrf", ""))


def numbers_of(caller):
    return [one["number"] for one in caller.get("/sessions").json["sessions"]]


def number_of(person):
    return int(person.headers["Cookie"].partition("=")[2].split("_")[1])


def test_low_a_session_makes_no_further_sessions(server, client):
    """LOW of the audit: a link that a session made led to another one that outlived it."""
    person = browser(server, client)
    reply = person.post("/login-links", X_CSRF_Token=person.csrf)
    assert reply.status == 403 and "token link" in reply.json["message"]


def test_everybody_lists_and_ends_sessions_of_their_own_and_no_others(server, admin):
    ada, bob = server.caller("read"), server.caller("read")
    of_ada, second, of_bob = browser(server, ada), browser(server, ada), browser(server, bob)
    assert numbers_of(ada) == numbers_of(of_ada) == [number_of(second), number_of(of_ada)]
    for stranger in (bob, of_bob):
        reply = end(stranger, number_of(of_ada))
        assert reply.status == 404
    assert end(of_ada, number_of(second)).status == 200
    eventually(lambda: second.get("/tasks").status == 401, "ended")
    assert of_ada.get("/tasks").status == of_bob.get("/tasks").status == 200
    assert end(ada, number_of(of_ada)).status == 200
    assert numbers_of(ada) == [] and number_of(of_bob) in numbers_of(admin)
    assert end(admin, number_of(of_bob)).status == 200
    eventually(lambda: of_bob.get("/tasks").status == 401, "ended by an admin")
    told = admin.get("/audit?limit=1").json["entries"][0]["words"]
    assert told == f"ended session {number_of(of_bob)}"


def test_a_token_is_not_ended_as_a_session(admin, client):
    number = client.token.split("_")[1]
    assert end(client, number).status == end(admin, number).status == 404
    assert client.get("/tasks").status == 200


def test_of_one_owner_the_oldest_session_ends_where_there_are_too_many(server):
    owner = server.caller("read")
    first = browser(server, owner)
    others = [browser(server, owner) for _ in range(20)]
    assert numbers_of(owner) == [number_of(one) for one in others[::-1]]
    eventually(lambda: first.get("/tasks").status == 401, "the oldest is over")
