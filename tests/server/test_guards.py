"""Who may call what: every route, every scope, every queue (S2, S5, S6, R003-37, R003-75)."""

import re
from itertools import count

import pytest

from tests.server.conftest import register
from tests.support.http_server import Caller, in_path
from tidewheel.core.queue.access import Scope
from tidewheel.server.call import Call
from tidewheel.server.resources.web_pages import DOCS_PATHS, PAGES
from tidewheel.server.route_table import ROUTES
from tidewheel.server.routes import API, Needs, Open, Route

OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/login"), ("POST", "/login")}
# Whoever signs in is not known yet.
OPEN |= {("GET", "/login/oidc"), ("GET", "/login/oidc/callback"), ("POST", "/login/oidc")}
OPEN |= {("GET", "/login/continue.js"), ("POST", "/login/proxy"), ("GET", f"{API}/sign-in")}
OPEN |= {("POST", f"{API}/sign-in/device"), ("POST", f"{API}/sign-in/token")}
# The web page holds nothing of anybody's; everything it shows comes by a guarded route.
OPEN |= {("GET", path) for path in ("/assets/{name}", *PAGES)}
OPEN |= {("GET", path) for path in ("/docs", "/docs/", *DOCS_PATHS)}
GUARDED = [route for route in ROUTES if (route.method, route.path) not in OPEN]
_numbers = count(1)


def path_of(route, **names):
    """The path with something in each place."""
    filled = route.path
    for name in route.path_names:
        filled = filled.replace(f"{{{name}}}", in_path(names.get(name, "x")))
    # A stream that begins has no end; whoever may listen is told that this is no id.
    return "/" + filled + ("?since=x" if filled.endswith("/events") else "")


def body_of(route):
    return {} if route.changes else None


def test_only_these_routes_are_open():
    """S2: a new route that is open has to be added here by somebody who means it."""
    found = {(route.method, route.path) for route in ROUTES if isinstance(route.guard, Open)}
    assert found == OPEN


def test_a_route_without_a_policy_cannot_be_made():
    """S2: default deny by construction."""

    async def handler(call: Call) -> object:
        return call

    with pytest.raises(TypeError, match="guard"):
        Route(method="GET", path="/x", handler=handler, says="x")
    with pytest.raises(TypeError, match="no guard"):
        Route(method="GET", path="/x", guard=None, handler=handler, says="x")
    with pytest.raises(AssertionError):
        Needs(scopes=(), names=handler)


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: route.verb)
def test_nobody_is_let_in_without_a_token(server, route):
    """S2."""
    reply = server.stranger().ask(route.method, path_of(route), body_of(route))
    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert "bearer" in reply.headers["www-authenticate"].lower()


METHODS = ("GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE", "PROPFIND")


def is_served(method, path):
    """Whether a route of the table answers to this path, as it is or as a name of something."""
    return any(
        route.method == method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", route.path), path)
        for route in ROUTES
    )


def test_no_method_is_answered_that_the_table_does_not_name(server, admin):
    """S2: no HEAD, no OPTIONS and no method of others slips past the guards."""
    wrong = []
    for path in sorted({route.path for route in ROUTES}):
        route = next(route for route in ROUTES if route.path == path)
        served = {method for method in METHODS if is_served(method, path)}
        for method in METHODS:
            if method in served:
                continue
            for caller in (server.stranger(), admin):
                reply = caller.ask(method, path_of(route))
                allowed = reply.headers.get("allow", "")
                if reply.status != 405 or set(allowed.split(", ")) != served:
                    wrong.append((method, path, reply.status, allowed))
    assert wrong == []


@pytest.fixture(scope="module")
def dead_tokens(server, admin):
    """One that was revoked, one that ran out, one with the secret of another."""
    revoked = server.caller("admin")
    number = revoked.token.split("_")[1]
    assert admin.post(f"/tokens/{number}/revoke").status == 200
    mixed = f"tw_{number}_{admin.token.split('_', 2)[2]}"
    return {"revoked": revoked.token, "of two": mixed}


BAD = [
    ("malformed", "Bearer nonsense"),
    ("empty", "Bearer "),
    ("of another kind", "Basic dHc6eA=="),
    ("unknown", "Bearer tw_999999_" + "A" * 43),
    ("too long", "Bearer tw_1_" + "A" * 5_000),
    ("odd", "Bearer tw_0x1_" + "A" * 43),
]


@pytest.mark.parametrize(("kind", "header"), BAD, ids=[kind for kind, _ in BAD])
def test_a_token_that_is_none_lets_nobody_in(own_server, kind, header):
    """S2, S4."""
    reply = Caller(own_server.address, headers={"Authorization": header}).get("/tasks")
    assert reply.status == 401, kind


@pytest.fixture
def own_server(tmp_path):
    """Failed logins are counted by address, and all tests come from the same."""
    from tests.support.http_server import running_server  # noqa: PLC0415 - one test's business

    with running_server(f"sqlite:///{tmp_path}/own.db") as running:
        yield running


def test_revoked_and_mixed_tokens_let_nobody_in(server, dead_tokens):
    for kind, token in dead_tokens.items():
        assert Caller(server.address, token).get("/tasks").status == 401, kind


def test_a_token_that_ran_out_lets_nobody_in(own_server):
    caller = own_server.caller("read", lasts=1e-9)
    assert caller.get("/tasks").status == 401


@pytest.mark.parametrize("scope", list(Scope))
def test_each_scope_opens_what_the_table_says_and_nothing_else(server, scope):
    """S5: over all routes at once; what is allowed may still fail for other reasons."""
    caller = server.caller(scope)
    wrong = []
    for route in GUARDED:
        reply = caller.ask(route.method, path_of(route), body_of(route))
        includes = {scope, Scope.READ} if scope is not Scope.ADMIN else set(Scope)
        # PATCH of a task asks for more where it looks into the body, which is empty here.
        needed = (Scope.SUBMIT,) if route.guard.narrow else route.guard.scopes
        may = not includes.isdisjoint(needed)
        # Whoever has the scope may be told that the worker named is not its own.
        refused = reply.status == 403 and "needs a token with scope" in reply.json["message"]
        if may == refused or reply.status == 401 or reply.status >= 500:
            wrong.append((route.verb, reply.status, reply.body[:200]))
    assert wrong == []


def task_in(caller, queue):
    task_id = f"p-{next(_numbers)}"
    reply = caller.post("/tasks", {"id": task_id, "queue": queue, "spec": 1, "armed": False})
    assert reply.status == 201
    return task_id


ACTS = [
    ("GET", "/tasks/{id}", None),
    ("GET", "/tasks/{id}/history", None),
    ("GET", "/tasks?queue={queue}", None),
    ("GET", "/queues/{queue}", None),
    ("POST", "/tasks", {"queue": "{queue}"}),
    ("POST", "/tasks", [{"queue": "a"}, {"queue": "{queue}"}]),
    ("POST", "/tasks?atomic=each", [{"queue": "a"}, {"queue": "{queue}"}]),
    ("POST", "/tasks", {"queue": "a", "needs": ["{id}"]}),
    ("POST", "/tasks", {"queue": "a", "continuations": ["{id}"]}),
    ("POST", "/tasks/{id}/arm", {}),
    ("POST", "/tasks/{id}/cancel", {}),
    ("PATCH", "/tasks/{id}", {"name": "n"}),
    ("PATCH", "/tasks/{id}", {"state": "cancelled"}),
    ("POST", "/tasks/cancel", {"ids": ["{own}", "{id}"]}),
    ("POST", "/tasks/cancel", {"filter": {"queue": "{queue}"}}),
    ("POST", "/tasks/cancel", {"filter": {"tag": "x"}}),
    ("POST", "/tasks/{id}/add_continuations", {"values": ["{own}"]}),
    ("POST", "/tasks/{own}/add_continuations", {"values": ["{id}"]}),
    ("POST", "/tasks/add_continuations", [{"targets": ["{own}"], "values": ["{id}"]}]),
    ("POST", "/tasks/remove_continuations", [{"targets": ["{id}"], "values": ["{own}"]}]),
    ("POST", "/queues/{queue}/pause", {}),
    ("POST", "/queues/{queue}/resume", {}),
    ("PATCH", "/queues/{queue}", {"aging": True}),
    ("POST", "/queues/{queue}/claim", {"worker": "{worker}"}),
    ("POST", "/tasks/{id}/claim", {"worker": "{worker}"}),
    ("POST", "/workers", {"name": "w", "queues": ["a", "{queue}"]}),
]


def filled(value, names):
    match value:
        case str():
            for name, text in names.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        case list():
            return [filled(one, names) for one in value]
        case dict():
            return {key: filled(one, names) for key, one in value.items()}
        case _:
            return value


@pytest.fixture(scope="module")
def of_queue_a(server):
    """Everything but admin, in queue a only."""
    caller = server.caller("submit", "operate", "worker", queues=["a", "a-*"])
    caller.id = register(caller, "a")
    return caller


@pytest.mark.parametrize(("method", "path", "body"), ACTS)
def test_a_token_for_one_queue_can_do_nothing_in_another(admin, of_queue_a, method, path, body):
    """S5: every item of a bulk request counts, and nothing of a mixed one is done."""
    theirs, own = task_in(admin, "b"), task_in(admin, "a")
    before = admin.get(f"/tasks/{theirs}").json, admin.get(f"/tasks/{own}").json
    tasks = len(admin.get("/tasks?queue=a&limit=1000").json["tasks"])
    names = {"id": theirs, "own": own, "queue": "b", "worker": of_queue_a.id}
    reply = of_queue_a.ask(method, filled(path, names), filled(body, names))
    is_by_id = "{id}" in f"{path}{body}"  # whose it is only the store knows: as if not there
    told = {"not_found", "unknown_dependency"} if is_by_id else {"forbidden"}
    assert reply.code in told, reply.body
    assert before == (admin.get(f"/tasks/{theirs}").json, admin.get(f"/tasks/{own}").json)
    assert tasks == len(admin.get("/tasks?queue=a&limit=1000").json["tasks"])


def test_lists_show_only_what_the_token_covers(admin, of_queue_a):
    seen, unseen = task_in(admin, "a-1"), task_in(admin, "b")
    ids = {task["id"] for task in of_queue_a.get("/tasks?limit=1000").json["tasks"]}
    assert seen in ids and unseen not in ids
    queues = {one["queue"] for one in of_queue_a.get("/queues").json["queues"]}
    assert "a-1" in queues and "b" not in queues
    assert b'queue="b"' not in of_queue_a.get("//metrics").body


@pytest.mark.req("R003-37")
def test_nobody_speaks_for_a_worker_of_another_token(server, admin, worker):
    """S6: also not an admin, and not for one that came past every server."""
    other = server.caller("worker")
    task_id = task_in(admin, "q")
    admin.post(f"/tasks/{task_id}/arm")
    for stranger in (other, admin):
        for named in (worker.id, "worker-99999", "nobody"):
            reply = stranger.post(f"/tasks/{task_id}/claim", {"worker": named})
            assert (reply.status, reply.code) == (404, "not_found"), named
    held = worker.post(f"/tasks/{task_id}/claim", {"worker": worker.id}).json
    report = {"worker": worker.id, "attempt": held["attempt"], "ending": "succeeded"}
    assert other.post(f"/tasks/{task_id}/finish", report).status == 404
    other.id = register(other)
    mine = report | {"worker": other.id}
    assert other.post(f"/tasks/{task_id}/finish", mine).code == "lease_lost"
    beats = {"worker": worker.id, "beats": [{"id": task_id, "attempt": held["attempt"]}]}
    assert other.post("/heartbeats", beats).status == 404
    assert worker.post(f"/tasks/{task_id}/finish", report).json["status"] == "succeeded"


@pytest.mark.req("R003-75")
def test_clients_do_not_report_and_workers_do_not_create(client, worker, admin):
    task_id = task_in(admin, "q")
    running = {"state": "running", "execution_info": {"worker": worker.id}}
    assert client.patch(f"/tasks/{task_id}", running).status == 403
    ended = {"state": "terminated", "execution_info": {"exit_status": 0}}
    assert client.patch(f"/tasks/{task_id}", ended).status == 403
    assert worker.patch(f"/tasks/{task_id}", {"state": "available"}).status == 403
    assert worker.patch(f"/tasks/{task_id}", {"state": "cancelled"}).status == 403
    assert worker.post("/tasks", {"queue": "q"}).status == 403
    assert worker.post(f"/tasks/{task_id}/add_continuations", {"values": ["x"]}).status == 403
