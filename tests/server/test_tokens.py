"""Tokens, the audit, repeated requests, failed logins, health and figures over HTTP."""

from itertools import count

import pytest

from tests.support.http_server import Caller, in_path, running_server
from tests.support.patience import eventually
from tests.support.postgres import PostgresServer

_numbers = count(1)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kind(request):
    return request.param


def key():
    return f"key-{next(_numbers)}"


def test_an_admin_makes_lists_and_revokes_tokens(server, admin):
    """S4: shown once, stored as a hash, last use shown, dead within a second."""
    body = {"name": "ci", "scopes": ["submit"], "queues": ["ci-*"], "lasts": "1h"}
    made = admin.post("/tokens", body)
    assert made.status == 201
    text, number = made.json["token"], made.json["stored"]["number"]
    caller = Caller(server.address, text)
    assert caller.post("/tasks", {"queue": "ci-1"}).status == 201
    [stored] = [t for t in admin.get("/tokens").json["tokens"] if t["number"] == number]
    assert stored["used_at"] is not None and stored["names"] == ["queue:ci-*"]
    assert text.split("_", 2)[2].encode() not in admin.get("/tokens").body
    assert admin.post(f"/tokens/{number}/revoke").json["revoked_at"] is not None
    eventually(lambda: caller.get("/tasks?queue=ci-1").status == 401, "revoked")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "", "scopes": ["read"]},
        {"name": "x", "scopes": ["read"]},
        {"name": "x", "scopes": ["read"], "queues": []},
        {"name": "x", "scopes": ["read"], "names": [f"a{n}" for n in range(101)]},
        {"name": "x", "scopes": ["read"], "lasts": -1},
        {"name": "x", "scopes": ["admin"], "queues": ["a"]},
    ],
)
def test_a_token_that_breaks_a_rule_is_refused(admin, body):
    assert admin.post("/tokens", body).status == 422


PLAIN = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true\n"


def test_a_token_for_queues_alone_is_for_no_workflow(server, admin):
    """S6: it neither sees runs, nor begins them, nor touches a name of the registry."""
    name = f"prod-{next(_numbers)}"
    files = {"files": {"flow.cylc": PLAIN}, "name": name}
    assert admin.post("/workflows", {"bundles": [files | {"version": "1.0"}]}).status == 201
    begun = admin.post("/runs", {"workflow": name, "version": "1.0"})
    run = f"/runs/{in_path(begun.json['run']['name'])}"
    body = {"name": "ci", "scopes": ["submit", "operate"], "queues": ["ci-*"]}
    made = admin.post("/tokens", body)
    assert made.json["stored"]["names"] == ["queue:ci-*"]
    ci = Caller(server.address, made.json["token"])
    assert ci.post("/tasks", {"queue": "ci-1"}).status == 201
    refused = [
        ci.get(run),
        ci.get(f"{run}/definition"),
        ci.get(f"{run}/log?id=1/a"),
        ci.post(f"{run}/stop", {}),
        ci.get(f"/workflows/{name}"),
        ci.post("/workflows", {"bundles": [files | {"version": "1.0.1"}]}),
        ci.ask("DELETE", f"/workflows/{name}/1.0"),
        ci.post("/runs", {"workflow": name}),
        ci.post("/runs", {"workflow": "x", "flow": PLAIN, "queue": "ci-evil"}),
    ]
    assert [one.status for one in refused] == [403] * len(refused), [r.body for r in refused]
    assert [one["name"] for one in ci.get("/workflows").json["workflows"]] == []
    assert ci.get("/runs").json["runs"] == []


def test_a_token_for_workflows_alone_is_for_their_runs(server, admin):
    """S6."""
    number = next(_numbers)
    made = admin.post(
        "/tokens", {"name": "n", "scopes": ["submit"], "workflows": [f"wfa{number}*"]}
    )
    its = Caller(server.address, made.json["token"])
    assert its.post("/runs", {"workflow": f"wfa{number}x", "flow": PLAIN}).status == 201
    assert its.post("/runs", {"workflow": f"wfb{number}", "flow": PLAIN}).status == 403
    assert its.post("/tasks", {"queue": "default"}).status == 403
    assert its.post("/tasks", {"queue": f"run:wfa{number}x/run1"}).status == 201


def test_a_worker_of_a_queue_has_the_files_of_runs_in_it(server, admin):
    begun = admin.post(
        "/runs", {"workflow": "gpu-run", "flow": PLAIN, "queue": f"gpu{next(_numbers)}"}
    ).json["run"]
    run = in_path(begun["name"])
    worker = server.caller("worker", queues=[begun["queue"]])
    assert worker.get(f"/runs/{run}/definition").status == 200
    assert worker.get(f"/runs/{run}").status == 403
    other = server.caller("worker", queues=["cpu"])
    assert other.get(f"/runs/{run}/definition").status == 403
    reader = server.caller("read", queues=[begun["queue"]])
    assert reader.get(f"/runs/{run}/definition").status == 403


def test_what_was_changed_by_whom_is_in_the_audit_and_only_admins_read_it(
    server, admin, client, operator
):
    """S30."""
    made = client.post("/tasks", {"id": "audited", "queue": "q"})
    operator.post("/queues/audited/pause")
    client.post("/tasks/nobody/cancel")
    entries = admin.get("/audit?limit=50").json["entries"]
    [stored] = [e for e in entries if e["correlation"] == made.headers["x-request-id"]]
    assert (stored["verb"], stored["status"]) == ("POST /api/v1/tasks", 201)
    assert "audited" in stored["target"] and stored["client"] == "127.0.0.1"
    seen = {(one["verb"], one["status"]) for one in entries}
    assert ("POST /api/v1/queues/{queue}/pause", 200) in seen
    for caller in (client, operator, server.caller("read"), server.caller("worker")):
        assert caller.get("/audit").status == 403


def test_the_same_request_with_the_same_key_is_done_once(client, reader):
    """T12: also when nobody chose an id."""
    given, queue = key(), f"once-{key()}"
    first = client.post("/tasks", {"queue": queue}, Idempotency_Key=given)
    again = client.post("/tasks", {"queue": queue}, Idempotency_Key=given)
    assert (first.status, again.status) == (201, 201)
    assert first.body == again.body
    assert again.headers["idempotency-replayed"] == "true"
    assert len(reader.get(f"/tasks?queue={queue}").json["tasks"]) == 1


def test_a_key_is_good_for_one_request_of_one_caller(server, client):
    """T12: another body is a conflict; another's key is another key."""
    given = key()
    assert client.post("/tasks", {"queue": "q"}, Idempotency_Key=given).status == 201
    other = client.post("/tasks", {"queue": "q", "priority": 3}, Idempotency_Key=given)
    assert (other.status, other.code) == (409, "key_reused")
    caller = server.caller("submit")
    assert caller.post("/tasks", {"queue": "q"}, Idempotency_Key=given).status == 201
    assert client.post("/tasks", {"queue": "q"}, Idempotency_Key="x" * 300).status == 422


def test_ids_follow_from_the_key_so_that_a_lost_answer_makes_no_second_task(server, client):
    """Scenario 12: the server died before it could keep its answer."""
    given, body = key(), [{"queue": "lost"}, {"queue": "lost"}]
    first = client.post("/tasks?atomic=each", body, Idempotency_Key=given).json["inserted"]
    server.do(forget(server.store))
    again = client.post("/tasks?atomic=each", body, Idempotency_Key=given).json
    assert again["present"] == first and again["inserted"] == []


async def forget(store):
    """All kept answers, as if they had never been kept."""
    await store.transact(lambda tx: tx.rows("forget_answers", keep_seconds=-1.0, count=1_000))


def test_after_ten_wrong_tokens_an_address_has_to_wait(tmp_path):
    """S28, M2: a good token is let in from there all the same, seen here before or not."""
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        good = server.caller("read")
        bad = Caller(server.address, "tw_1_" + "A" * 43)
        assert [bad.get("/tasks").status for _ in range(10)] == [401] * 10
        reply = bad.get("/tasks")
        assert (reply.status, reply.code) == (429, "too_many_failures")
        assert int(reply.headers["retry-after"]) > 0
        assert server.stranger().get("/tasks").status == 429
        assert good.get("/tasks").status == 200
        assert server.stranger().get("//healthz").status == 200


def test_strangers_without_a_token_are_not_counted(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        assert {server.stranger().get("/tasks").status for _ in range(15)} == {401}
        assert server.caller("read").get("/tasks").status == 200


def test_health_and_readiness_need_no_token(server):
    stranger = server.stranger()
    assert stranger.get("//healthz").json == {"status": "ok"}
    assert stranger.get("//readyz").json == {"status": "ok"}


def test_a_server_whose_database_is_gone_lives_is_not_ready_and_recovers():
    """S29: and tells nothing about where the database is."""
    with PostgresServer.running() as database:
        url = database.create_database("served")
        with running_server(url) as server:
            caller, stranger = server.caller("submit"), server.stranger()
            assert caller.post("/tasks", {"id": "before"}).status == 201
            database.crash()
            assert stranger.get("//healthz").status == 200
            assert stranger.get("//readyz").status == 503
            reply = caller.post("/tasks", {"id": "during"})
            assert (reply.status, reply.code) == (503, "store_unreachable")
            assert int(reply.headers["retry-after"]) > 0
            assert b"socket" not in reply.body and b"host" not in reply.body
            database.start()
            eventually(lambda: stranger.get("//readyz").status == 200, "ready again")
            assert caller.get("/tasks/before").status == 200


@pytest.mark.req("R002-88")
def test_prometheus_reads_depth_and_age_of_queues(client, reader):
    client.post("/tasks", {"queue": 'odd "queue"\\', "spec": 1})
    reply = reader.get("//metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    assert 'tidewheel_queue_tasks{queue="odd \\"queue\\"\\\\",status="ready"} 1' in text
    assert "tidewheel_queue_oldest_ready_seconds{" in text
    assert "tidewheel_http_request_seconds_bucket{" in text
