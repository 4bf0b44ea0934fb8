"""Seeds 002 and 003 over HTTP: their words, resources and transitions."""

from itertools import count

import pytest

_numbers = count(1)
BANYAN = "?vocabulary=banyan"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kind(request):
    return request.param


def fresh():
    return f"s-{next(_numbers)}"


def create(client, **task):
    task = {"_id": fresh(), "command": "true", "queue": "q"} | task
    reply = client.post(f"/tasks{BANYAN}", task)
    assert reply.status == 201, reply.body
    return task["_id"]


def state(reader, task_id):
    return reader.get(f"/tasks/{task_id}{BANYAN}").json["state"]


def start(client, worker, **task):
    """A task that this worker runs."""
    task_id = create(client, state="available", **task)
    running = {"state": "running", "execution_info": {"worker": worker.id}}
    assert worker.patch(f"/tasks/{task_id}", running).status == 200
    return task_id


@pytest.mark.req("R003-3", "R003-4", "R003-61")
def test_a_task_is_inactive_until_it_is_made_available(client, reader):
    task_id = create(client)
    assert state(reader, task_id) == "inactive"
    assert client.patch(f"/tasks/{task_id}", {"state": "available"}).status == 200
    assert state(reader, task_id) == "available"
    for word in ("running", "terminated", "cancelled"):
        reply = client.post(f"/tasks{BANYAN}", {"state": word})
        assert reply.status == 422 and "state" in reply.json["message"]


@pytest.mark.req("R003-31")
def test_workers_list_what_is_available_with_the_fields_they_need(client, worker):
    asked = {"memory": "1GiB", "cores": 0.5}
    task_id = create(
        client, state="available", queue="b", requested_resources=asked, max_termination_time=7
    )
    fields = "_id,max_termination_time,requested_resources"
    page = worker.get(f"/tasks{BANYAN}&queue=b&status=available&fields={fields}").json
    assert page["tasks"] == [
        {
            "_id": task_id,
            "max_termination_time": 7.0,
            "requested_resources": {"memory": 2**30, "cores": 0.5, "gpus": 0},
        }
    ]


@pytest.mark.req("R003-32", "R003-33", "R003-35", "R003-69")
def test_a_worker_claims_by_patch_and_only_one_wins(server, client, worker, reader):
    task_id = start(client, worker)
    other = server.caller("worker")
    theirs = other.post("/workers", {"name": "o", "queues": ["q"]}).json["id"]
    lost = other.patch(
        f"/tasks/{task_id}", {"state": "running", "execution_info": {"worker": theirs}}
    )
    assert (lost.status, lost.code) == (409, "wrong_status")
    assert worker.post(f"/tasks/{task_id}/execution_info/time_started", {}).status == 200
    info = reader.get(f"/tasks/{task_id}/execution_info").json
    assert info["worker"] == worker.id and info["time_started"] is not None
    assert reader.get(f"/tasks/{task_id}{BANYAN}").json["retry_count"] == 1


@pytest.mark.req("R003-54", "R003-55", "R003-57")
def test_usage_is_appended_by_post_and_patch_and_read_as_series(client, worker, reader):
    task_id = start(client, worker)
    info = f"/tasks/{task_id}/execution_info"
    for method in ("POST", "PATCH"):
        assert worker.ask(method, f"{info}/report_memory_usage", {"bytes": 5}).status == 200
        assert (
            worker.ask(method, f"{info}/report_cpu_utilization", {"percent": 50}).status == 200
        )
        assert worker.ask(method, f"{info}/report_gpu_usage", {"percent": 1}).status == 200
    for name, field, value in (
        ("memory_usage", "bytes", 5),
        ("cpu_utilization", "percent", 50.0),
        ("gpu_usage", "percent", 1.0),
    ):
        series = reader.get(f"{info}/{name}").json[name]
        assert [point[field] for point in series] == [value, value]


@pytest.mark.req("R003-58", "R003-64", "R003-70", "R003-71", "R003-72")
def test_a_task_terminates_by_its_exit_status_and_is_retried_while_it_may(
    client, worker, reader
):
    child = create(client)
    task_id = start(client, worker, max_retry_count=1, continuations=[child])
    failed = {"state": "terminated", "execution_info": {"exit_status": 3}}
    assert worker.patch(f"/tasks/{task_id}", failed).json["status"] == "ready"
    claim = {"state": "running", "execution_info": {"worker": worker.id}}
    assert worker.patch(f"/tasks/{task_id}", claim).status == 200
    good = {"state": "terminated", "execution_info": {"exit_status": 0}}
    assert worker.patch(f"/tasks/{task_id}", good).json["status"] == "succeeded"
    assert state(reader, task_id) == "terminated"
    assert state(reader, child) == "available"
    history = reader.get(f"/tasks/{task_id}/current_history").json["history"]
    assert [one["exit_status"] for one in history] == [3, 0]
    assert worker.patch(f"/tasks/{task_id}", good).status == 409


def test_how_it_ended_must_be_said(client, worker):
    task_id = start(client, worker)
    reply = worker.patch(f"/tasks/{task_id}", {"state": "terminated"})
    assert reply.status == 422 and "exit_status" in reply.json["message"]


@pytest.mark.req("R003-38", "R003-40", "R003-65")
def test_a_running_task_is_pending_cancellation_until_its_worker_answers(
    client, worker, reader
):
    task_id = start(client, worker)
    assert client.patch(f"/tasks/{task_id}", {"state": "cancelled"}).status == 200
    assert state(reader, task_id) == "pending_cancellation"
    assert (
        reader.get("/tasks?status=unknown&queue=q&fields=id").json["tasks"][0]["id"] == task_id
    )
    done = worker.patch(f"/tasks/{task_id}", {"state": "cancelled"})
    assert done.json["status"] == "cancelled"


@pytest.mark.req("R003-67")
def test_nothing_goes_back_to_inactive(client):
    task_id = create(client, state="available")
    reply = client.patch(f"/tasks/{task_id}", {"state": "inactive"})
    assert (reply.status, reply.code) == (409, "wrong_status")


@pytest.mark.req("R003-12")
def test_fields_change_only_while_a_task_is_inactive(client, reader):
    task_id = create(client)
    change = {"max_retry_count": 4, "requested_resources": {"cores": 2}, "name": task_id}
    assert client.patch(f"/tasks/{task_id}", change).status == 200
    task = reader.get(f"/tasks/{task_id}").json
    assert (task["max_retries"], task["resources"]["cpu"]) == (4, 2.0)
    client.patch(f"/tasks/{task_id}", {"state": "available"})
    assert client.patch(f"/tasks/{task_id}", change).status == 409
    assert client.patch(f"/tasks/{task_id}", {}).status == 422
    both = {"retries": 1, "max_retry_count": 1}
    assert client.patch(f"/tasks/{task_id}", both).status == 422


@pytest.mark.req("R003-6")
def test_continuations_change_only_through_their_own_resources(client):
    task_id = create(client)
    reply = client.patch(f"/tasks/{task_id}", {"continuations": []})
    assert reply.status == 422


@pytest.mark.req("R003-22", "R003-23", "R003-25", "R003-26", "R003-29")
@pytest.mark.parametrize("plural", ["s", ""])
def test_continuations_are_added_and_removed_one_by_one_and_in_bulk(client, reader, plural):
    first, second, child, other = (create(client) for _ in range(4))

    def children(task_id):
        return reader.get(f"/tasks/{task_id}{BANYAN}&fields=continuations").json[
            "continuations"
        ]

    add, remove = f"add_continuation{plural}", f"remove_continuation{plural}"
    for _ in range(2):
        assert client.post(f"/tasks/{first}/{add}", {"values": [child]}).json["edges"] == 1
    bulk = [{"targets": [first, second], "values": [child, other]}]
    assert client.post(f"/tasks/{add}", bulk).json["edges"] == 4
    assert sorted(children(second)) == sorted([child, other])
    assert client.post(f"/tasks/{child}/{add}", {"values": [first]}).code == "cycle"
    assert client.post(f"/tasks/{first}/{remove}", {"values": [child]}).status == 200
    assert client.post(f"/tasks/{remove}", bulk[0]).status == 200
    assert children(first) == [] and children(second) == []
    assert client.post(f"/tasks/{add}", [{"targets": [], "values": []}]).status == 422


@pytest.mark.req("R002-14", "R002-22", "R002-87")
def test_scylla_clients_see_their_fields_and_history(client, worker, reader):
    rn = fresh()
    body = {"rn": rn, "queue": "q", "spec": {"n": 12345678901234567890123}}
    assert client.post("/tasks?vocabulary=scylla", body).status == 201
    held = worker.post(f"/tasks/{rn}/claim", {"worker": worker.id}).json
    report = {"worker": worker.id, "attempt": held["attempt"]}
    worker.post(f"/tasks/{rn}/yield", report)
    task = reader.get(f"/tasks/{rn}?vocabulary=scylla").json
    assert (task["rn"], task["status"], task["owner"]) == (rn, "ready", None)
    assert task["spec"] == body["spec"]
    assert [one["_typ"] for one in task["history"]] == ["TaskAssignment", "TaskYield"]
    done = reader.get("/tasks?vocabulary=scylla&status=completed&fields=rn,status").json
    assert all(one["status"] == "completed" for one in done["tasks"])
