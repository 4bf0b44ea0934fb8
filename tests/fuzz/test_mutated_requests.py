"""Mutated requests over all routes: no error of ours, a server alive, a sound store (S35)."""

import json
import random
from urllib.parse import quote

import pytest

from tests.server.conftest import register
from tests.support.http_server import running_server
from tests.support.patience import scaled
from tests.support.raw_http import RawConnection
from tidewheel.server.load_shedding import STREAM_MEDIA_TYPE
from tidewheel.server.route_table import ROUTES
from tidewheel.server.validation import field_names

COUNT = scaled(10_000)

NAMES = ["t", "held", "q", "worker-1", "99", "x" * 300, "..", "a/b", "%", "\x00", "ü", "-1"]
NAMES += ["'; DROP TABLE task; --", "\x1b[31m", "a\r\nX: y", "1/a", "9" * 30, "\u202e", ""]
VALUES = [None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, 1e308, -0.0]
VALUES += ["", "t", "held", "q", "worker-1", "10m", "2GiB", "ready", "\x00", "x" * 5_000]
VALUES += [[], {}, [[]], [None] * 100, {"": 0}, {"a": {"a": {"a": {}}}}, ["t", "t"], [1, "t"]]
NOISE = b'{}[]",:0-9.eatrnulfs\\u \x00\xff\n'


def fields_of(kind):
    """What a form may hold; a union of forms is as good as its first."""
    first = next(iter(getattr(kind, "__args__", ())), kind)
    return list(field_names(first)) if hasattr(first, "__struct_fields__") else []


class Fuzzer:
    """Requests by chance, each near to one that is right."""

    def __init__(self, seed, token):
        self._chance, self._token = random.Random(seed), token

    def request(self):
        """A route, and the bytes with which it may be asked for."""
        chance = self._chance
        route = chance.choice(ROUTES)
        path = route.path
        for name in route.path_names:
            path = path.replace(f"{{{name}}}", quote(chance.choice(NAMES), safe=""))
        path += self._query(route)
        method = route.method if chance.random() < 0.97 else chance.choice(["PUT", "HEAD"])
        body = self._body(route) if route.changes or chance.random() < 0.02 else b""
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", *self._headers(body)]
        return route, "\r\n".join([*head, "", ""]).encode("latin-1", "replace") + body

    def _query(self, route):
        chance = self._chance
        known = fields_of(route.query) if route.query else []
        names = chance.sample(known, chance.randint(0, min(3, len(known))))
        if chance.random() < 0.05:
            names.append("colour")
        given = [f"{name}={quote(self._text())}" for name in names]
        return "?" + "&".join(given) if given else ""

    def _text(self):
        value = self._chance.choice(VALUES)
        return value if isinstance(value, str) else json.dumps(value)

    def _headers(self, body):
        chance = self._chance
        kinds = ["application/json"] * 20 + ["text/plain", "application/json; charset=x", ""]
        yield f"Authorization: Bearer {self._token}"
        yield f"Content-Type: {chance.choice(kinds)}"
        yield f"Content-Length: {len(body)}"
        if chance.random() < 0.2:
            yield f"Idempotency-Key: {chance.choice(['k', 'k2', 'x' * 300, ''])}"
        if chance.random() < 0.05:
            yield f"X-CSRF-Token: {chance.choice(['x', ''])}"

    def _body(self, route):
        chance = self._chance
        known = fields_of(route.body) if route.body is not None else []
        names = chance.sample(known, chance.randint(0, len(known)))
        if chance.random() < 0.05:
            names.append("colour")
        form = {name: chance.choice(VALUES) for name in names}
        if "worker" in form and chance.random() < 0.7:
            form["worker"] = "worker-1"
        if "attempt" in form and chance.random() < 0.7:
            form["attempt"] = 1
        whole = [form] * chance.randint(0, 3) if chance.random() < 0.15 else form
        raw = bytearray(json.dumps(whole).encode())
        for _ in range(chance.choice([0, 0, 0, 1, 5])):
            raw[chance.randrange(len(raw))] = chance.choice(NOISE)
        return bytes(raw)


@pytest.mark.timeout(60 + COUNT // 100)
def test_mutated_requests_cause_no_error_of_ours(tmp_path, request):
    seed = request.config.getoption("randomly_seed", 1)  # which pytest-randomly prints
    with running_server(
        f"sqlite:///{tmp_path}/t.db",
        home=tmp_path,
        failures_max=COUNT,
        wait_seconds_max=0.01,
        request_seconds_max=15.0,
    ) as server:
        admin = server.caller("admin")
        worker = register(admin, "q")
        assert worker == "worker-1"
        admin.post("/tasks", {"id": "held", "queue": "q", "spec": 1})
        admin.post("/queues/q/claim", {"worker": worker})
        admin.post("/tasks", {"id": "t", "queue": "q", "spec": 1})
        fuzzer, connection = Fuzzer(seed, admin.token), RawConnection(server.address)
        for number in range(COUNT):
            route, sent = fuzzer.request()
            streams = route.media_type == STREAM_MEDIA_TYPE
            status, body = connection.ask(sent, streams=streams)
            assert 0 < status < 500, (seed, number, status, sent, body)
            assert b"Traceback" not in body and b"SELECT " not in body, (seed, number, sent)
        connection.close()
        assert admin.get("//readyz").status == 200
        assert server.do(server.store.verify()) == []
