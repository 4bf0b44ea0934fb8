"""A store behind a server, in the hands of Python programs: clients, workers, and thieves."""

import asyncio

import pytest

from tests.server.conftest import register
from tests.support.http_server import running_server
from tests.support.patience import allowed
from tidewheel import AsyncClient, Client, Worker
from tidewheel.config import Credentials, StoreSettings
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    HostProcess,
    KeysetPage,
    NewWorker,
    TaskFilter,
    UsageSample,
)
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import BadSetting, NotFound, Refused, StoreUnreachable
from tidewheel.runners.python.runner import Handlers
from tidewheel.store.remote import open_remote_store

PROCESS = HostProcess(host="tern", boot_id="boot-1", pid=4711, started=1234.0)


def url(server):
    return f"http://{server.address}"


def settings(server, caller):
    return StoreSettings(url=url(server), credentials=Credentials(token=caller.token))


def do(server, caller, work):
    """Something with the store as this caller sees it."""

    async def session():
        store = open_remote_store(settings(server, caller))
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(session())


async def hire(store, name="w", process=PROCESS):
    worker = NewWorker(name=name, process=process, queues=("q",), slots=1, capacity=Resources())
    return await store.register_worker(worker)


# ---- clients ----


def test_a_blocking_client_does_through_a_server_what_it_does_with_a_store(server, client):
    with Client(url(server), token=client.token) as near:
        made = near.submit("clients", spec={"a": [1, None]}, name="through a server")
        assert near.get(made.id).spec == {"a": [1, None]}
        assert [task.id for task in near.list(queue="clients")] == [made.id]
        assert near.why(made.id)
        assert near.cancel(made.id)
        [ended] = near.wait(made.id, timeout=allowed(10))
        assert ended.status == "cancelled"
        with pytest.raises(NotFound, match="nobody"):
            near.get("nobody")


def test_a_client_leases_and_reports_through_a_server(server, admin):
    async def work():
        async with AsyncClient(url(server), token=admin.token) as near:
            made = await near.submit("leases", spec=1, timeout="1h")
            [leased] = await near.lease("leases")
            assert leased.id == made.id
            await near.started(leased)
            await near.heartbeat(leased, progress=0.5)
            assert (await near.get(made.id)).progress == 0.5
            await near.message(leased, "half way", output="half")
            await near.report_usage(leased, UsageSample(memory_bytes=5))
            await near.complete(leased, metrics={"rows": 1})
            [attempt] = await near.attempts(made.id)
            assert (attempt.metrics, attempt.ended_by) == ('{"rows":1}', "succeed")
            [output] = await near.outputs(made.id)
            assert (output.text, output.output) == ("half way", "half")
            await near.sign_off()

    asyncio.run(work())


def test_a_worker_in_python_executes_handlers_through_a_server(server, admin, tmp_path):
    handlers = Handlers()

    @handlers.register("double")
    def double(spec, job):
        job.message(str(spec * 2))

    where = settings(server, admin)
    with Client(url(server), token=admin.token) as near:
        made = near.submit("handlers", handler="double", spec=21)
        with Worker(where, handlers=handlers, queues=["handlers"], home=tmp_path):
            [ended] = near.wait(made.id, timeout=allowed(30))
        assert ended.status == "succeeded"
        assert [one.text for one in near.outputs(made.id)] == ["42"]


def test_a_token_is_for_a_server(tmp_path):
    for where in (None, f"sqlite:///{tmp_path}/a.db"):
        with pytest.raises(BadSetting, match="give the address of the server"):
            AsyncClient(where, token="tw_1_x")


def test_a_server_that_went_away_and_came_back_is_spoken_to_again(tmp_path, own_port):
    address = f"sqlite:///{tmp_path}/tidewheel.db"
    with running_server(address, port=own_port) as first:
        admin = first.caller("admin")
        near = Client(url(first), token=admin.token)
        task = near.submit("q", spec=1)
    with pytest.raises(StoreUnreachable):
        near.get(task.id)
    with running_server(address, port=own_port):
        assert near.get(task.id).spec == 1
        near.submit("q", spec=2)
    near.close()


def test_of_several_servers_one_that_answers_is_spoken_to(tmp_path):
    store, nobody = f"sqlite:///{tmp_path}/both.db", "http://127.0.0.1:1"
    with running_server(store) as second:
        token = second.caller("admin").token
        with running_server(store) as first:
            near = Client(f"{nobody}, {url(first)},{url(second)}", token=token)
            near.submit("q", id="t1")
        assert near.get("t1").id == "t1"
    with pytest.raises(StoreUnreachable, match="does not answer"):
        near.get("t1")
    near.close()


def test_a_list_longer_than_a_page_comes_whole_and_in_order(server, client):
    tasks = [NewTask(id=f"page{number}", queue="pages") for number in range(1_050)]

    async def work(store):
        await store.submit(tasks)
        found = await store.list_tasks(TaskFilter(queue="pages"), KeysetPage(count=10_000))
        some = await store.list_tasks(TaskFilter(queue="pages"), KeysetPage(count=1_020))
        return [task.id for task in found], [task.id for task in some]

    everything, some = do(server, client, work)
    assert everything == [task.id for task in reversed(tasks)]
    assert some == everything[:1_020]


def test_more_than_a_server_takes_at_once_is_sent_in_parts_unless_it_is_all_or_none(
    server, client
):
    spec = f'"{"x" * 250_000}"'
    tasks = [NewTask(id=f"large{number}", queue="large", spec=spec) for number in range(40)]

    async def each(store):
        return await store.submit(tasks, atomic=False)

    async def all_or_none(store):
        return await store.submit(tasks)

    with pytest.raises(BadSetting, match="use several"):
        do(server, client, all_or_none)
    assert client.get("/tasks?queue=large").json["tasks"] == []
    answers = do(server, client, each)
    assert [(one.id, one.created) for one in answers] == [(task.id, True) for task in tasks]


# ---- whose is what ----


@pytest.fixture
def thief(server):
    """Another worker's token."""
    return server.caller("worker")


def test_a_report_speaks_for_workers_of_this_token_only(client, worker, thief):
    client.post("/tasks", {"id": "reported", "queue": "a", "spec": 1})
    [task] = worker.post("/queues/a/claim", {"worker": worker.id}).json["tasks"]
    end = {"ending": "succeeded"}
    report = {"id": task["id"], "attempt": task["attempt"], "end": end}
    body = {"worker": worker.id, "reports": [report]}
    assert thief.post("/reports", body).status == 404
    own = register(thief, "a")
    [stolen] = thief.post("/reports", {**body, "worker": own}).json["answers"]
    assert (stolen["status"], stolen["refused"]["code"]) == (None, "lease_lost")
    assert thief.get(f"/workers/{worker.id}/cancelling").status == 404
    both = [report, {**report, "id": "nobody"}]
    [told, unknown] = worker.post("/reports", {**body, "reports": both}).json["answers"]
    assert (told["status"], unknown["refused"]["code"]) == ("succeeded", "not_found")


def test_a_lease_is_adopted_on_the_same_host_with_the_same_token_only(server, client, thief):
    """To name a host proves nothing; who registered a worker may take over from it."""
    client.post("/tasks", {"id": "orphan", "queue": "q", "command": "true"})
    dead = server.caller("worker")

    async def take(store):
        worker = await hire(store)
        await store.claim_by_id("orphan", worker)
        return worker

    owner = do(server, dead, take)
    holder = Holder(task_id="orphan", attempt=1, worker=owner)

    async def look(store):
        return await store.orphans("tern", "boot-1")

    async def adopt(store):
        return await store.adopt(holder, await hire(store, "heir"))

    assert do(server, thief, look) == []
    with pytest.raises(Refused, match="not registered with this token"):
        do(server, thief, adopt)
    [lease] = do(server, dead, look)
    assert (lease.owner, lease.process, lease.task.id) == (owner, PROCESS, "orphan")
    assert do(server, dead, adopt).attempt == 1
    assert client.get("/tasks/orphan/history").json["history"][-1]["signal"] == "adopt"


def test_a_worker_that_does_not_say_where_it_runs_leaves_nothing_to_adopt(worker):
    register(worker)
    for host in ("127.0.0.1", "-", ""):
        answer = worker.get(f"/orphans?host={host}&boot_id=boot-1")
        assert (answer.status, answer.json["leases"]) == (200, [])


def test_tasks_by_their_ids_are_shown_to_those_who_may_see_each(server, client):
    client.post("/tasks", [{"id": "seen", "queue": "ci-1"}, {"id": "hidden", "queue": "x"}])
    narrow = server.caller("read", queues=["ci-*"])
    assert narrow.post("/tasks/get", {"ids": ["seen"]}).json["tasks"][0]["id"] == "seen"
    assert narrow.post("/tasks/get", {"ids": ["seen", "hidden"]}).status == 404
    assert narrow.get("/queues/x/peek").status == 403
    assert narrow.get("/ended-attempts").json["attempts"] == []
    assert narrow.get("/verify").status == 403


def test_a_token_whose_secret_the_caller_keeps_works_and_is_never_shown(admin):
    digest = "a" * 64
    made = admin.post(
        "/tokens", {"name": "own", "scopes": ["read"], "names": ["*"], "digest": digest}
    )
    assert (made.status, made.json["token"]) == (201, None)
    assert digest not in admin.get("/tokens").body.decode()
    for bad in ("A" * 64, "a" * 63, "a" * 65, "x"):
        refused = admin.post("/tokens", {"name": "n", "scopes": ["read"], "digest": bad})
        assert refused.status == 422


def test_what_a_server_does_for_others_is_refused_with_a_hint(server, admin):
    for operation, given in (
        ("take_back_lapsed_leases", {"watched_seconds": 1.0, "count_max": 1}),
        ("delete_tasks", {"seqs": [1]}),
        ("claim_run", {}),
        ("touch_token", {}),
    ):

        async def work(store, operation=operation, given=given):
            return await getattr(store, operation)(**given)

        with pytest.raises(Refused, match="--store postgresql://"):
            do(server, admin, work)


def test_a_submission_is_answered_in_order_where_that_is_asked_for(client):
    tasks = [{"id": "o1", "queue": "o"}, {"id": "", "queue": "o"}, {"id": "o1", "queue": "o"}]
    told = client.post("/tasks?atomic=each&in_order=true", tasks).json["answers"]
    assert [one["created"] for one in told] == [True, False, False]
    assert [one["refused"] and one["refused"]["code"] for one in told] == [
        None,
        "invalid",
        None,
    ]


def test_a_spec_is_the_same_letter_by_letter_also_where_json_alone_would_not_say(client):
    for number, text in enumerate(("null", " {} ", "[1.50, 1e400]", '"\\u00e9"')):
        name = f"letters{number}"
        assert client.post("/tasks", {"id": name, "spec_text": text}).status == 201
        told = client.get(f"/tasks/{name}").json
        assert told.get("spec_text", text) == text
        assert ("spec_text" in told) == (text in ("null", " {} "))
    both = client.post("/tasks", {"spec": 1, "spec_text": "1"})
    assert both.status == 422 and "both" in both.json["message"]
    assert client.post("/tasks", {"spec_text": "{"}).status == 422
