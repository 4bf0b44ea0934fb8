"""Tasks over HTTP: submit, look, cancel, claim, report."""

import json
import threading
from itertools import count

import pytest

from tests.support.http_server import in_path
from tidewheel.server.route_table import ROUTES

_numbers = count(1)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kind(request):
    return request.param


def fresh(prefix="t"):
    return f"{prefix}-{next(_numbers)}"


def submit(client, **task):
    task.setdefault("id", fresh())
    task.setdefault("spec", {})
    reply = client.post("/tasks", task)
    assert reply.status == 201, reply.body
    return task["id"]


def claim(worker, task_id):
    reply = worker.post(f"/tasks/{in_path(task_id)}/claim", {"worker": worker.id})
    assert reply.status == 200, reply.body
    return {"worker": worker.id, "attempt": reply.json["attempt"]}


@pytest.mark.req("R002-87", "R002-1", "R002-23")
def test_a_task_is_stored_with_all_defaults_and_read_back(client, reader):
    task_id = submit(client, id="rn/with slash%2F", queue="q", spec={"a": [1, 2]})
    reply = reader.get(f"/tasks/{in_path(task_id)}")
    assert reply.status == 200
    task = reply.json
    assert (task["id"], task["queue"], task["status"]) == (task_id, "q", "ready")
    assert (task["progress"], task["attempt"], task["owner"]) == (0.0, 0, None)


@pytest.mark.req("R002-4", "R002-87")
@pytest.mark.parametrize(
    "spec", ["null", "1.10", "123456789012345678901234567890", '{"a": 1e400}', '"\\u0000x"']
)
def test_a_spec_comes_back_letter_by_letter(client, reader, spec):
    task_id = fresh()
    body = f'{{"id": "{task_id}", "spec": {spec}}}'.encode()
    assert client.post("/tasks", body).status == 201
    assert f'"spec":{spec}'.encode() in reader.get(f"/tasks/{task_id}").body


@pytest.mark.req("R002-2")
def test_the_same_task_again_is_no_new_one_and_a_different_one_is_a_conflict(client):
    task_id = submit(client, spec=1)
    again = client.post("/tasks", {"id": task_id, "spec": 1})
    assert (again.status, again.json["created"]) == (200, False)
    other = client.post("/tasks", {"id": task_id, "spec": 2})
    assert (other.status, other.code) == (409, "duplicate")


@pytest.mark.parametrize(
    "said",
    [
        '"spec": {"n": 1}',
        '"spec": null',
        '"spec":  [1.0, 1e400, "\\u00e9 é"] ',
        '"spec": {}, "queue": null, "handler": null, "command": null, "priority": null',
        '"queue": "usual", "handler": "h", "priority": 7',
        '"command": "true", "priority": 0',
        '"name": null, "handler": "h"',
    ],
)
def test_a_task_says_the_same_alone_and_in_a_list(client, said):
    body = f'{{"id": "{fresh("alone")}", {said}}}'.encode()
    assert client.post("/tasks", body).status == 201
    again = client.post("/tasks?in_order=true", b"[" + body + b"]")
    assert [one["created"] for one in again.json["answers"]] == [False], again.json


@pytest.mark.parametrize(
    "said",
    [
        '"spec": NaN',
        '"spec": {"a": 1,}',
        '"spec": "\\ud800"',
        '"spec": {}, "spec_text": "1"',
        '"priority": "high"',
        '"priority": 1.5',
        '"handler": 3',
        '"queue": ["q"]',
        '"colour": 1, "handler": "h"',
        '"command": "true", "handler": "h"',
    ],
)
def test_a_task_is_judged_the_same_alone_and_in_a_list(client, said):
    body = f'{{"id": "{fresh("alone")}", {said}}}'.encode()
    alone, listed = client.post("/tasks", body), client.post("/tasks", b"[" + body + b"]")
    assert alone.status == listed.status
    found = [one.removeprefix("[0]: ") for one in listed.json["findings"]]
    assert alone.json["findings"] == found


def test_every_finding_of_a_bad_task_is_named(client):
    body = {"priority": -1.5, "armed": "yes", "colour": 1, "needs": 3, "id": "x"}
    reply = client.post("/tasks", body)
    assert (reply.status, reply.code) == (422, "invalid")
    said = " ".join(reply.json["findings"])
    assert all(name in said for name in ("priority", "armed", "colour", "needs"))
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["id"] == reply.headers["x-request-id"]


@pytest.mark.req("R002-30")
def test_a_batch_answers_each_by_itself(client):
    good, taken = fresh(), submit(client, spec=1)
    tasks = [
        {"id": good, "spec": 1},
        {"id": taken, "spec": 1},
        {"id": taken, "spec": 2},
        {"id": fresh(), "priority": -1},
        {"id": fresh(), "colour": "red"},
        7,
    ]
    reply = client.post("/tasks?atomic=each", tasks)
    assert reply.status == 201
    assert reply.json["inserted"] == [good] and reply.json["present"] == [taken]
    assert [one["index"] for one in reply.json["failed"]] == [2]
    assert [one["index"] for one in reply.json["invalid"]] == [3, 4, 5]


def test_all_or_none_is_what_a_list_means_by_default(client, reader):
    good = fresh()
    reply = client.post("/tasks", [{"id": good}, {"id": fresh(), "priority": -1}])
    assert reply.status == 422
    assert reader.get(f"/tasks/{good}").status == 404


@pytest.mark.req("R002-29")
def test_tasks_are_listed_page_by_page_with_filters_and_without_specs(client, reader):
    queue = fresh("queue")
    ids = [submit(client, queue=queue, spec={"n": n}, tag="x") for n in range(5)]
    first = reader.get(f"/tasks?queue={queue}&limit=2&status=ready,running&tag=x").json
    assert [task["id"] for task in first["tasks"]] == ids[:2:-1]
    assert "spec" not in first["tasks"][0]
    rest = reader.get(f"/tasks?queue={queue}&limit=100&before={first['next']}").json
    assert [task["id"] for task in rest["tasks"]] == ids[2::-1]
    assert rest["next"] is None
    named = reader.get(f"/tasks?queue={queue}&fields=id,spec&limit=1").json
    assert named["tasks"] == [{"id": ids[4], "spec": {"n": 4}}]


@pytest.mark.parametrize(
    "query",
    ["status=sleeping", "limit=0", "limit=x", "colour=red", "fields=id,no", "before=-1"],
)
def test_a_filter_that_is_not_understood_is_refused(reader, query):
    assert reader.get(f"/tasks?{query}").status == 422


@pytest.mark.req("R002-38", "R002-44", "R002-48", "R002-87")
def test_a_task_is_claimed_kept_alive_and_finished(client, worker, reader):
    task_id = submit(client, queue="q")
    held = claim(worker, task_id)
    path = f"/tasks/{task_id}"
    assert worker.post(f"{path}/started", held).json["status"] == "running"
    beat = worker.post(f"{path}/heartbeat", held | {"progress": 0.5})
    assert (beat.status, beat.json["answer"]) == (200, "go_on")
    said = [{"number": 1, "text": "half", "output": "half"}]
    assert worker.post(f"{path}/outputs", held | {"messages": said}).status == 200
    samples = [{"memory_bytes": 5, "cpu_percent": 50.0}]
    assert worker.post(f"{path}/usage", held | {"samples": samples}).status == 200
    end = held | {"ending": "succeeded", "metrics": {"n": 1}, "exit_status": 0}
    assert worker.post(f"{path}/finish", end).json["status"] == "succeeded"
    assert reader.get(path).json["progress"] == 1.0
    assert [o["output"] for o in reader.get(f"{path}/outputs").json["outputs"]] == ["half"]
    assert reader.get(f"{path}/usage").json["usage"][0]["memory_bytes"] == 5
    [attempt] = reader.get(f"{path}/attempts").json["attempts"]
    assert (attempt["ended_by"], attempt["metrics"]) == ("succeed", {"n": 1})
    steps = [one["to"] for one in reader.get(f"{path}/history").json["history"]]
    assert steps == ["ready", "running", "succeeded"]


@pytest.mark.req("R004-44")
def test_a_success_hands_on_values_and_they_are_shown_beside_the_outputs(
    client, worker, reader
):
    task_id = submit(client, queue="q")
    path = f"/tasks/{task_id}"
    assert reader.get(f"{path}/outputs").json == {"outputs": [], "values": None}
    end = claim(worker, task_id) | {"ending": "succeeded"}
    for bad in ([1], "x", 3, {"a": "x" * 65536}):
        refused = worker.post(f"{path}/finish", end | {"values": bad})
        assert (refused.status, refused.code) == (422, "bad_values")
    why = {"error": {"code": "x"}, "values": {"a": 1}}
    assert worker.post(f"{path}/finish", end | {"ending": "failed"} | why).status == 422
    values = {"beams": [4, 1.5], "name": "Ω"}
    assert worker.post(f"{path}/finish", end | {"values": values}).json["status"] == "succeeded"
    assert reader.get(f"{path}/outputs").json == {"outputs": [], "values": values}


@pytest.mark.req("R004-20", "R004-21")
def test_nodes_and_buffer_are_asked_for_and_offered_over_http(client, worker, reader):
    queue = fresh("nodes")
    asked = {"nodes": 2, "exclusive": True, "buffer": "1TB"}
    task_id = submit(client, queue=queue, **asked)
    shown = reader.get(f"/tasks/{task_id}").json["resources"]
    assert (shown["nodes"], shown["exclusive"], shown["buffer_bytes"]) == (2, True, 10**12)
    body = {"worker": worker.id, "n": 9}
    claim_path = f"/queues/{queue}/claim"
    for free in (
        {},
        {"nodes": 2},
        {"nodes": 2, "idle_nodes": 1, "buffer_bytes": 10**12},
        {"nodes": 1, "buffer_bytes": 10**12},
    ):
        assert worker.post(claim_path, body | {"resources": free}).json["tasks"] == []
    free = {"nodes": 3, "idle_nodes": 2, "buffer_bytes": 10**12}
    [task] = worker.post(claim_path, body | {"resources": free}).json["tasks"]
    assert (task["id"], task["resources"]) == (task_id, shown)
    for bad in ({"nodes": -1}, {"exclusive": True}, {"idle_nodes": -1}):
        assert worker.post(claim_path, body | {"resources": bad}).status == 422
    for bad in ({"nodes": 0}, {"nodes": 1.5}, {"exclusive": 1}, {"buffer": "much"}):
        assert client.post("/tasks", {"spec": 1, **bad}).status == 422, bad


@pytest.mark.req("R004-21")
def test_a_worker_that_knows_nothing_of_nodes_gets_no_exclusive_task(client, worker):
    """One of before there were nodes would take others beside it."""
    queue = fresh("older")
    alone, shared = [submit(client, queue=queue, exclusive=one) for one in (True, False)]
    body = {"worker": worker.id, "n": 9}
    claim_path = f"/queues/{queue}/claim"
    older = worker.post(claim_path, body | {"resources": {"cpu": 8.0}}).json["tasks"]
    assert [one["id"] for one in older] == [shared]
    newer = worker.post(claim_path, body | {"resources": {"nodes": 1}}).json["tasks"]
    assert [one["id"] for one in newer] == [alone]


@pytest.mark.req("R002-41", "R002-66", "R003-33")
def test_a_claim_of_a_task_that_is_not_ready_names_the_status_it_needs(client, worker):
    task_id = submit(client, queue="q")
    claim(worker, task_id)
    reply = worker.post(f"/tasks/{task_id}/claim", {"worker": worker.id})
    assert (reply.status, reply.code) == (409, "wrong_status")
    assert reply.json["allowed"] == ["ready"]


@pytest.mark.req("R002-46", "R002-52", "R003-59")
def test_a_report_for_a_superseded_attempt_is_a_conflict(client, worker):
    """S6: the attempt is the fencing token."""
    task_id = submit(client, queue="q")
    held = claim(worker, task_id)
    assert worker.post(f"/tasks/{task_id}/yield", held).json["status"] == "ready"
    again = claim(worker, task_id)
    for verb, more in (("heartbeat", {}), ("finish", {"ending": "succeeded"}), ("yield", {})):
        reply = worker.post(f"/tasks/{task_id}/{verb}", held | more)
        assert (reply.status, reply.code) == (409, "lease_lost"), verb
    assert worker.post(f"/tasks/{task_id}/heartbeat", again).status == 200


@pytest.mark.req("R002-63", "R002-65", "R002-68", "R003-39", "R003-41")
def test_cancel_is_told_at_the_next_heartbeat_and_wins(client, worker):
    task_id = submit(client, queue="q")
    held = claim(worker, task_id)
    asked = client.post(f"/tasks/{task_id}/cancel")
    assert (asked.json["status"], asked.json["changed"]) == ("cancelling", True)
    assert client.post(f"/tasks/{task_id}/cancel").json["changed"] is False
    assert worker.post(f"/tasks/{task_id}/heartbeat", held).json["answer"] == "cancel"
    end = worker.post(f"/tasks/{task_id}/finish", held | {"ending": "succeeded"})
    assert end.json["status"] == "cancelled"
    late = worker.post(f"/tasks/{task_id}/heartbeat", held)
    assert (late.status, late.code) == (409, "cancelled")


def test_many_heartbeats_are_answered_one_by_one(client, worker):
    ids = [submit(client, queue="q") for _ in range(3)]
    beats = [{"id": one, "attempt": claim(worker, one)["attempt"]} for one in ids]
    client.post(f"/tasks/{ids[1]}/cancel")
    beats[2]["attempt"] = 9
    reply = worker.post("/heartbeats", {"worker": worker.id, "beats": beats})
    assert [one["answer"] for one in reply.json["answers"]] == ["go_on", "cancel", "lost"]


@pytest.mark.req("R002-32", "R002-33", "R002-34")
def test_a_queue_hands_out_the_oldest_of_the_highest_priority(client, worker):
    queue = fresh("claims")
    low = submit(client, queue=queue, priority=9)
    high = [submit(client, queue=queue, priority=100) for _ in range(2)]
    body = {"worker": worker.id, "n": 2}
    first = worker.post(f"/queues/{queue}/claim", body).json["tasks"]
    assert [task["id"] for task in first] == high
    then = worker.post(f"/queues/{queue}/claim", body).json["tasks"]
    assert [task["id"] for task in then] == [low]


def test_a_claim_can_wait_for_a_task(client, worker):
    queue, got = fresh("waits"), []
    body = {"worker": worker.id, "wait_s": 15}
    asking = threading.Thread(
        target=lambda: got.append(worker.post(f"/queues/{queue}/claim", body))
    )
    asking.start()
    task_id = submit(client, queue=queue)
    asking.join(20)
    assert [task["id"] for task in got[0].json["tasks"]] == [task_id]


def test_everything_is_cancelled_only_by_who_says_so(client):
    kept = submit(client, queue=fresh("kept"))
    refused = client.post("/tasks/cancel", {"filter": {}})
    assert refused.status == 422 and '"all": true' in refused.json["findings"][0]
    assert client.get(f"/tasks/{kept}").json["status"] == "ready"
    done = client.post("/tasks/cancel", {"filter": {}, "all": True})
    assert kept in [one["id"] for one in done.json["cancelled"]]


def test_many_tasks_are_cancelled_by_filter_or_by_ids(client):
    queue = fresh("cancels")
    ids = [submit(client, queue=queue, tag="old") for _ in range(3)]
    by_id = client.post("/tasks/cancel", {"ids": ids[:1]}).json["cancelled"]
    assert [(one["id"], one["status"]) for one in by_id] == [(ids[0], "cancelled")]
    rest = client.post("/tasks/cancel", {"filter": {"queue": queue, "tag": "old"}})
    assert sorted(one["id"] for one in rest.json["cancelled"]) == sorted(ids[1:])
    assert client.post("/tasks/cancel", {}).status == 422
    assert client.post("/tasks/cancel", {"ids": ["nobody"]}).status == 404


def test_why_a_task_does_not_run_is_said_in_words(client, reader):
    parent = submit(client)
    child = submit(client, needs=[parent])
    [reason] = reader.get(f"/tasks/{child}/why").json["reasons"]
    assert parent in reason
    [edge] = reader.get(f"/tasks/{child}/graph").json["edges"]
    assert (edge["parent"], edge["child"], edge["state"]) == (parent, child, "open")


@pytest.mark.req("R002-28")
def test_what_is_not_there_is_not_found(reader, client):
    for path in ("/tasks/nobody", "/tasks/nobody/history", "/tasks/nobody/why"):
        assert (reader.get(path).status, reader.get(path).code) == (404, "not_found")
    assert client.post("/tasks/nobody/cancel").status == 404
    assert reader.get("/nothing").status == 404
    assert client.ask("DELETE", "/tasks").status == 405


def test_a_queue_is_paused_resumed_and_configured(operator, client, worker, reader):
    queue = fresh("paused")
    submit(client, queue=queue)
    assert operator.post(f"/queues/{queue}/pause").json["paused"] is True
    assert worker.post(f"/queues/{queue}/claim", {"worker": worker.id}).json["tasks"] == []
    assert operator.post(f"/queues/{queue}/resume").json["paused"] is False
    limits = [{"concurrency_max": 2}]
    changed = operator.patch(f"/queues/{queue}", {"lease_seconds": 30, "limits": limits})
    assert changed.json["lease_seconds"] == 30
    assert changed.json["limits"][0]["concurrency_max"] == 2
    [seen] = [q for q in reader.get("/queues").json["queues"] if q["queue"] == queue]
    assert seen["counts"]["ready"] == 1
    assert operator.patch(f"/queues/{queue}", {"lease_seconds": -1}).status == 422


def test_workers_are_listed_until_they_sign_off(server, reader):
    caller = server.caller("worker")
    reply = caller.post("/workers", {"name": "once", "queues": ["q"]})
    assert reply.status == 201
    named = [one["name"] for one in reader.get("/workers").json["workers"]]
    assert "once" in named
    assert caller.post(f"/workers/{reply.json['id']}/stop").status == 200
    named = [one["name"] for one in reader.get("/workers").json["workers"]]
    assert "once" not in named
    assert caller.post("/workers", {"name": "a\nb", "queues": ["q"]}).status == 422


def test_the_openapi_document_names_every_route_and_resolves(reader):
    document = reader.get("/openapi.json").json
    assert document["openapi"] == "3.1.0"
    listed = {(m.upper(), p) for p, one in document["paths"].items() for m in one}
    assert listed == {(route.method, route.path) for route in ROUTES if not route.page}
    text = json.dumps(document)
    names = {ref.split('"')[0] for ref in text.split('"#/components/schemas/')[1:]}
    assert names <= document["components"]["schemas"].keys()
    ids = [op["operationId"] for one in document["paths"].values() for op in one.values()]
    assert len(ids) == len(set(ids))
    page = reader.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert b"<script" not in page.body and b"http" not in page.body.split(b"<table")[1]
    for fields in (b"one, or a list of: id, queue", b"a list of: targets,", b"until_tasks"):
        assert fields in page.body, "who reads the page knows what to send"


def test_what_would_have_been_accepted_is_told(reader, admin):
    """The words of a choice, the nearest name, and that a body is wanted at all."""
    for reply, said in (
        (reader.get("/statistics?by=colour"), "expected one of queue, name"),
        (reader.get("/tasks?limt=1"), "there is no parameter 'limt'; did you mean 'limit'?"),
        (admin.post("/tokens", {"name": "x", "scopes": ["all"]}), "one of read, submit,"),
        (admin.post("/tasks", b"", Content_Type="application/json"), "the body is empty"),
        (admin.post("/tasks", {"queue": ""}), "queue is empty; give 1 to 256"),
    ):
        assert said in reply.json["message"], reply.json


def test_what_the_document_says_about_answers_is_what_comes(client, reader):
    """As an outsider's generated client would read them: media types and required fields."""
    document = reader.get("/openapi.json").json
    task_id = submit(client, queue="q")
    for path, filled_in in (
        ("/api/v1/tasks", "/tasks?queue=q&limit=1"),
        ("/api/v1/tasks/{id}", f"/tasks/{task_id}"),
        ("/api/v1/tasks/{id}/history", f"/tasks/{task_id}/history"),
        ("/api/v1/queues", "/queues"),
        ("/api/v1/docs", "/docs"),
        ("/metrics", "//metrics"),
        ("/login", "//login"),
    ):
        reply = reader.get(filled_in)
        [(media, told)] = document["paths"][path]["get"]["responses"]["200"]["content"].items()
        assert reply.headers["content-type"].startswith(media), path
        if name := told["schema"].get("$ref", "").rpartition("/")[2]:
            required = document["components"]["schemas"][name].get("required", [])
            assert set(required) <= reply.json.keys(), path


@pytest.mark.req("R003-60")
def test_statistics_are_there_for_all_for_queues_and_for_names(server, client, worker, reader):
    queue, name = fresh("statistics"), fresh("model")
    for number, ending in enumerate(("succeeded", "failed")):
        task_id = submit(client, queue=queue, name=f"{name}{number}")
        end = claim(worker, task_id) | {"ending": ending}
        if ending == "failed":
            end["error"] = {"code": "x"}
        assert worker.post(f"/tasks/{task_id}/finish", end).status == 200
    found = reader.get(f"/statistics?queue={queue}&by=name").json
    assert found["all"]["ended_by"] == {"succeed": 1, "fail": 1}
    assert found["all"]["success_rate"] == 0.5
    assert found["all"]["run_seconds"]["count"] == 2
    assert found["groups"].keys() == {f"{name}0", f"{name}1"}
    assert reader.get("/statistics?by=queue").json["groups"][queue]["attempts"] == 2
    assert reader.get(f"/tasks/{task_id}/statistics").json["all"]["attempts"] == 1
    other = server.caller("read", queues=["elsewhere"])
    assert other.get("/statistics?by=queue").json["groups"] == {}


def ended_badly(client, worker, **task):
    task_id = submit(client, **task)
    said = claim(worker, task_id) | {"ending": "failed", "error": {"code": "exit"}}
    assert worker.post(f"/tasks/{task_id}/finish", said).status == 200
    return task_id


def test_tasks_that_failed_are_submitted_again_once_and_a_dry_run_stores_nothing(
    client, worker, reader
):
    first, second = ended_badly(client, worker), ended_badly(client, worker)
    body = {"ids": [first, second, "nobody"]}
    tried = client.post("/tasks/resubmit", body | {"dry_run": True}).json["tasks"]
    assert [one["created"] for one in tried] == [True, True, False]
    assert reader.get(f"/tasks/{in_path(tried[0]['id'])}").status == 404
    made = client.post("/tasks/resubmit", body).json["tasks"]
    assert made == tried
    assert made[2]["refused"] == "there is no such task; it may have been deleted"
    again = client.post("/tasks/resubmit", body).json["tasks"]
    assert [(one["id"], one["created"]) for one in again[:2]] == [
        (one["id"], False) for one in made[:2]
    ]
    assert reader.post("/tasks/resubmit", body).status == 403


def test_what_a_token_does_not_cover_is_not_submitted_again_nor_named(server, client, worker):
    hidden = ended_badly(client, worker, queue="theirs")
    own = submit(client, queue="mine", needs=[hidden])
    child = submit(client, queue="theirs", needs=[own])
    caller = server.caller("submit", names=("mine",))
    told = caller.post("/tasks/resubmit", {"ids": [hidden, own], "with_children": True}).json
    assert [one["again_of"] for one in told["tasks"]] == [hidden, own]
    assert [one["created"] for one in told["tasks"]] == [False, False]
    assert told["tasks"][0]["refused"] == "there is no such task; it may have been deleted"
    assert hidden not in told["tasks"][1]["refused"]
    assert child not in json.dumps(told)
