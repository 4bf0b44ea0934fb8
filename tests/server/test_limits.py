"""What strangers and mistakes get: limits, headers, corpora (S3, S9, S19, S27, S29)."""

import socket
import time

import apsw
import pytest

from tests.support.http_server import in_path, running_server
from tidewheel.server import app

HOSTILE = [
    "..",
    "../../etc/passwd",
    "%2e%2e",
    "/etc/passwd",
    "a/b",
    "-rf",
    "'; DROP TABLE task; --",
    '" OR 1=1 --',
    "%_",
    "x" * 300,
    "\x00",
    "a\x00b",
    "\x1b[31m",
    "a\r\nSet-Cookie: x=1",
    "\u202e",
    "healthz",
    "<script>alert(1)</script>",
    "\udcff",
    "${jndi:x}",
    "{id}",
]


def spelled(text):
    return in_path(text.encode("utf-8", "surrogateescape").decode("latin-1"))


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_is_a_name_or_refused_and_never_more(admin, name):
    """S3, S19, S29: nothing is found, nothing breaks, nothing of our insides is told."""
    for method, path in (
        ("GET", f"/tasks/{spelled(name)}"),
        ("GET", f"/tasks/{spelled(name)}/history"),
        ("GET", f"/queues/{spelled(name)}"),
        ("GET", f"/tasks?queue={spelled(name)}"),
        ("GET", f"/tasks?tag={spelled(name)}&name={spelled(name)}&worker={spelled(name)}"),
        ("GET", f"/tasks?status={spelled(name)}"),
        ("GET", f"/tasks?fields={spelled(name)}"),
        ("GET", f"/tasks?run={spelled(name)}"),
        ("POST", f"/queues/{spelled(name)}/pause"),
        ("POST", f"/queues/{spelled(name)}/resume"),
        ("POST", f"/tokens/{spelled(name)}/revoke"),
        ("POST", f"/workers/{spelled(name)}/stop"),
        ("GET", f"/tasks/x/execution_info/{spelled(name)}"),
    ):
        reply = admin.ask(method, path, {} if method == "POST" else None)
        assert reply.status < 500, (path, reply.body)
        assert b"Traceback" not in reply.body and b"SELECT" not in reply.body
        assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_can_be_submitted_or_is_refused(admin, name):
    """S3: what is accepted is found again under the same name."""
    reply = admin.post("/tasks", {"id": name, "queue": "names", "name": f"n{name}"})
    assert reply.status in (201, 200, 409, 422, 400)
    if reply.status == 201:
        assert admin.get(f"/tasks/{in_path(name)}").json["id"] == name


def test_every_answer_carries_the_headers_that_protect_browsers(admin, server):
    """S9; no CORS (S8)."""
    for reply in (
        admin.get("/tasks"),
        admin.get("/docs"),
        server.stranger().get("/tasks"),
        admin.get("/nothing"),
        server.stranger().get("//healthz", Origin="https://evil.example"),
    ):
        headers = reply.headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert not any(name.startswith("access-control") for name in headers)
        assert "server" not in headers


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8450", "127.0.0.1.evil", ""),
        *("localhost:80@evil", "evil@localhost", "localhost:", "localhost:80:80"),
        *("localhost#evil", "localhost/evil", "localhost.", "[::1", "localhost, evil"),
    ],
)
def test_a_server_answers_only_to_its_own_names(admin, host):
    """S8: DNS rebinding."""
    assert admin.get("/tasks", Host=host).status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8450"])
def test_its_own_names_are_accepted(admin, host):
    assert admin.get("/tasks", Host=host).status == 200


@pytest.fixture(scope="module")
def small_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    with running_server(
        f"sqlite:///{folder}/tidewheel.db",
        body_bytes_max=10_000,
        header_bytes_max=4_000,
    ) as running:
        yield running


def test_a_body_that_is_too_large_is_refused_before_it_is_read(small_server):
    """S27."""
    caller = small_server.caller("submit")
    reply = caller.post("/tasks", b"[" + b" " * 20_000 + b"]")
    assert (reply.status, reply.code) == (413, "too_large")
    said = exchange(
        small_server,
        b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n"
        b"Authorization: Bearer " + caller.token.encode() + b"\r\n"
        b"Content-Type: application/json\r\n\r\n",
    )
    assert b" 413 " in said.splitlines()[0]


def test_a_body_without_a_length_is_counted(small_server):
    caller = small_server.caller("submit")
    chunk = b"fff\r\n" + b" " * 0xFFF + b"\r\n"
    said = exchange(
        small_server,
        b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        b"Authorization: Bearer " + caller.token.encode() + b"\r\n"
        b"Content-Type: application/json\r\n\r\n" + chunk * 10 + b"0\r\n\r\n",
    )
    assert b" 413 " in said.splitlines()[0]


def test_headers_and_urls_have_limits(small_server, server):
    caller = small_server.caller("read")
    assert caller.get("/tasks", X_Large="x" * 5_000).status == 431
    said = exchange(small_server, b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
    assert b" 431 " in said.splitlines()[0]
    assert server.caller("read").get("/tasks?queue=" + "x" * 20_000).status == 414


@pytest.mark.parametrize("part", ["header", "body"])
def test_whoever_dawdles_is_cut_off(tmp_path, part):
    """S27: slow loris, before the head is complete and within the body."""
    impatient = {f"{part}_seconds_max": 0.3}  # and patient with the other, on a busy machine
    with running_server(f"sqlite:///{tmp_path}/t.db", **impatient) as server:
        token = server.caller("submit").token.encode()
        slow = {
            "header": [b"GET /healthz HT", b""],
            "body": [
                b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
                b"Authorization: Bearer " + token + b"\r\n"
                b"Content-Type: application/json\r\n\r\n{"
            ],
        }
        for sent in slow[part]:
            assert b" 408 " in exchange(server, sent).splitlines()[0]


def test_a_connection_is_closed_so_long_after_its_last_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(app, "KEEP_ALIVE_SECONDS", 2)
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            for _ in range(2):
                connection.settimeout(20)
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert connection.recv(10_000).startswith(b"HTTP/1.1 200 ")
                answered_at = time.monotonic()
                connection.settimeout(1.1)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
            connection.settimeout(20)
            assert connection.recv(1) == b""
            assert time.monotonic() - answered_at > 1.9


def test_only_json_is_accepted(client):
    """S8, S27: a form of another site cannot be JSON."""
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/x-www-form", ""):
        reply = client.post("/tasks", b"{}", Content_Type=kind)
        assert (reply.status, reply.code) == (415, "wrong_media_type")


BAD_BODIES = [
    (b"", 400),
    (b"{", 400),
    (b"nonsense", 400),
    (b'{"id": NaN}', 400),
    (b'{"id": "\xff"}', 400),
    (b"[" * 100_000, 400),
    (b'{"spec": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    (b'{"colour": 1, "id": "x"\x00}', 400),
    (b'"text"', 422),
    (b"[1, 2]", 422),
    (b"null", 422),
    (b'{"priority": 1e999}', 422),
    (b'{"priority": 99999999999999999999999}', 422),
    (b'{"id": "\\ud800"}', 400),
    (b'{"id": "a\\u0000b"}', 422),
]


@pytest.mark.parametrize(
    ("body", "status"), BAD_BODIES, ids=[ascii(b)[:30] for b, _ in BAD_BODIES]
)
def test_a_body_that_is_no_task_is_refused(client, body, status):
    """S15, S29."""
    reply = client.post("/tasks", body)
    assert reply.status == status, reply.body
    assert {"code", "message", "status", "id", "allowed"} <= reply.json.keys()


def exchange(server, sent):
    """What a server says to raw bytes, until it closes."""
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(sent)
        connection.settimeout(10)
        return connection.recv(65_536)


SMUGGLED = [
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"NONSENSE\r\n\r\n",
    b"GET \x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil/api/v1/tasks HTTP/1.1\r\nHost: evil\r\n\r\n",
]


@pytest.mark.parametrize("sent", SMUGGLED, ids=ascii)
def test_a_request_that_can_be_read_in_two_ways_is_refused(server, sent):
    status = int(exchange(server, sent).split()[1])
    assert 400 <= status < 500


def test_what_follows_a_body_is_no_header(server, client):
    """S34, M3: a proxy has judged the headers, and not what comes behind the body."""
    chunked = (
        b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Type: application/json\r\nTrailer: Authorization\r\n"
    )
    body = b'\r\ne\r\n{"queue": "q"}\r\n0\r\n'
    own = b"Authorization: Bearer " + client.token.encode() + b"\r\n"
    said = exchange(server, chunked + body + own + b"\r\n")
    assert b" 401 " in said.splitlines()[0]
    said = exchange(server, chunked + own + body + b"Authorization: Bearer x\r\n\r\n")
    assert b" 201 " in said.splitlines()[0]


def test_a_trailer_says_nothing_of_the_caller_s_address(tmp_path):
    """M3: neither in the audit nor where wrong tokens are counted."""
    with running_server(f"sqlite:///{tmp_path}/t.db", proxies=("127.0.0.1",)) as server:
        admin = server.caller("admin")
        said = exchange(
            server,
            b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/json\r\nX-Forwarded-For: 9.9.9.9\r\n"
            b"Authorization: Bearer " + admin.token.encode() + b"\r\n\r\n"
            b'e\r\n{"queue": "q"}\r\n0\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n',
        )
        assert b" 201 " in said.splitlines()[0]
        assert admin.get("/audit?limit=1").json["entries"][0]["client"] == "9.9.9.9"


# ---- numbers that take long to read ----

LONG = "7" * 200_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tasks", '{"queue": "q", "spec": %s}'),
        ("/tasks", '[{"queue": "q"}, {"queue": "q", "spec": {"a": [-%s]}}]'),
        ("/tasks", '{"queue": "q", "spec_text": "%s"}'),
        ("/tasks", '{"queue": "q", "priority": %s}'),
        ("/tasks", '{"queue": "q", "delay": 1.%s}'),
        ("/runs", '{"workflow": "w", "flow": "", "variables": {"N": %s}}'),
        ("/runs", '{"workflow": "w", "parameters": {"N": %s}}'),
        ("/workflows", '{"files": {}, "name": %s}'),
        ("/workflows/w/check", '{"parameters": {"N": %s}}'),
        ("/runs/w/hold", '{"ids": [%s]}'),
        ("/runs/w/dry-run", '{"command": {"verb": "hold", "ids": [%s]}}'),
        ("/tokens", '{"name": "x", "scopes": ["read"], "lasts": %s}'),
        ("/workers", '{"queues": ["q"], "pid": %s}'),
        ("/reports", '[{"kind": "messages", "task": %s}]'),
    ],
)
def test_a_number_of_many_digits_is_refused_before_it_is_read(admin, path, body):
    """S27, S35, H7: to read it would keep everybody waiting."""
    reply = admin.post(path, (body % LONG).encode())
    assert reply.status in (400, 422), (reply.status, reply.body[:300])
    if reply.status == 400:
        assert b"more than 4300 digits" in reply.body


def test_a_number_too_large_for_any_quantity_is_refused(admin):
    """S35."""
    for field, value in (("delay", 10**400), ("lease", 10**400), ("timeout", 10**400)):
        reply = admin.post("/tasks", {"queue": "q", field: value})
        assert reply.status in (400, 422), (field, reply.body)
    many = {"name": "x", "scopes": ["read"], "lasts": 10**400}
    assert admin.post("/tokens", many).status == 422


@pytest.mark.parametrize("words", ["fields=id,spec", "fields=rn,spec&vocabulary=scylla"])
def test_a_spec_that_an_earlier_version_took_can_be_read(tmp_path, words):
    """S35, H7: specs with longer numbers are in stores of earlier versions."""
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        client = server.caller("submit")
        assert client.post("/tasks", {"id": "old", "queue": "q", "spec": 1}).status == 201
        with apsw.Connection(f"{tmp_path}/t.db") as connection:
            connection.execute("UPDATE task SET spec = ? WHERE id = 'old'", (f"[{LONG}]",))
        reply = client.get(f"/tasks?queue=q&{words}")
        assert reply.status == 200, reply.body[:300]
        assert LONG.encode() in reply.body
