"""What a proxy says about the caller counts only if the proxy was named (S34)."""

import pytest

from tests.server.test_sessions import code_of, log_in
from tests.support.http_server import running_server


@pytest.mark.parametrize(("proxy", "believed"), [("127.0.0.1", True), ("10.0.0.1", False)])
def test_only_a_named_proxy_says_who_called_and_how(tmp_path, proxy, believed):
    said = {"X_Forwarded_For": "10.9.8.7", "X_Forwarded_Proto": "https"}
    with running_server(f"sqlite:///{tmp_path}/t.db", proxies=(proxy,)) as server:
        admin = server.caller("admin")
        admin.post("/tasks", {"queue": "q"}, **said)
        seen = admin.get("/audit?limit=1").json["entries"][0]["client"]
        assert seen == ("10.9.8.7" if believed else "127.0.0.1")
        cookie = log_in(server, code_of(admin), **said).headers["set-cookie"].lower()
        assert ("; secure" in cookie) is believed


def test_without_a_proxy_no_forwarded_header_counts(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", failures_max=2) as server:
        admin, stranger = server.caller("admin"), server.stranger()
        admin.post(
            "/tasks", {"queue": "q"}, X_Forwarded_For="10.9.8.7", Forwarded="for=1.2.3.4"
        )
        assert admin.get("/audit?limit=1").json["entries"][0]["client"] == "127.0.0.1"
        # Nobody gets more tries, or another's blame, by saying to be somebody else.
        stranger.headers["Authorization"] = "Bearer nonsense"
        replies = [
            stranger.get("/tasks", X_Forwarded_For=f"10.0.0.{n}").status for n in range(3)
        ]
        assert replies == [401, 401, 429]


def test_a_forwarded_host_is_no_host(tmp_path):
    """S8: it is the Host header that has to be ours."""
    with running_server(f"sqlite:///{tmp_path}/t.db", proxies=("127.0.0.1",)) as server:
        admin = server.caller("admin")
        reply = admin.get("/tasks", Host="evil.example", X_Forwarded_Host="localhost")
        assert reply.status == 421
        assert admin.get("/tasks", X_Forwarded_Host="evil.example").status == 200


@pytest.fixture
def by_tls(tmp_path):
    """A server behind a proxy that speaks TLS, and what the proxy says of that."""
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, proxies=("127.0.0.1",), hosts=("tide.example",)) as server:
        yield server, {"X_Forwarded_Proto": "https", "Host": "tide.example"}


def test_by_tls_a_browser_is_told_to_come_by_tls_only(by_tls):
    """Security audit, LOW: no Strict-Transport-Security."""
    server, tls = by_tls
    asked = {
        "by TLS": tls,
        "in clear": {"Host": "tide.example"},
        "this machine": tls | {"Host": "localhost"},
    }
    told = {
        how: server.stranger()
        .get("//healthz", **headers)
        .headers.get("strict-transport-security")
        for how, headers in asked.items()
    }
    assert told == {"by TLS": "max-age=31536000", "in clear": None, "this machine": None}


def test_by_tls_the_cookie_of_a_session_is_bound_to_the_host(by_tls):
    """Security audit, LOW: the cookie had no __Host- prefix."""
    server, tls = by_tls
    reply = log_in(server, code_of(server.caller("read")), **tls)
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("__Host-tidewheel_session=")
    rest = cookie.lower()
    assert "; secure" in rest and "; path=/" in rest and "domain" not in rest
    value = cookie.partition(";")[0].partition("=")[2]
    person = server.stranger()
    for name, status in (("__Host-tidewheel_session", 200), ("tidewheel_session", 401)):
        assert person.get("/session", Cookie=f"{name}={value}", **tls).status == status
    in_clear = person.get("/session", Cookie=f"__Host-tidewheel_session={value}")
    assert in_clear.status == 401
