"""Tokens of jobs over HTTP: good for one attempt, dead with its lease (S6, S7)."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from tests.server.conftest import register
from tests.support.http_server import Caller, in_path
from tests.support.patience import eventually
from tidewheel.core.queue.tokens import attempt_token
from tidewheel.server.route_table import ROUTES
from tidewheel.server.routes import Needs

_numbers = count(1)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kind(request):
    return request.param


class Held:
    """A task in a worker's hands, and its job's own token."""

    def __init__(self, server, worker, client, **fields):
        self.task, self.worker = f"t{next(_numbers)} ä", worker
        self.path = f"/tasks/{in_path(self.task)}"
        body = {"id": self.task, "command": "true", "retries": 3, "retry_delays": [0]}
        assert client.post("/tasks", body | fields).status == 201
        self.owner = register(worker)
        self.claim()
        self.job = Caller(server.address, self.token())

    def claim(self):
        held = worker_post(self, "claim", attempt=None)
        self.attempt = held.json["attempt"]

    def token(self):
        return worker_post(self, "token").json["token"]

    def says(self, text="", job=None, **more):
        key = more.pop("key", None) or f"key {next(_numbers)}"
        body = {"text": text} | more
        return (job or self.job).post(f"{self.path}/messages", body, Idempotency_Key=key)

    def fails(self):
        worker_post(self, "finish", ending="failed", error={"code": "x"})


def worker_post(held, what, **more):
    body = {"worker": held.owner, "attempt": getattr(held, "attempt", None)} | more
    body = {name: value for name, value in body.items() if value is not None}
    reply = held.worker.post(f"{held.path}/{what}", body)
    assert reply.status == 200, reply.body
    return reply


@pytest.fixture
def held(server, worker, client):
    return Held(server, worker, client)


def outputs(reader, held):
    return [
        (o["text"], o["output"]) for o in reader.get(f"{held.path}/outputs").json["outputs"]
    ]


def test_a_job_says_something_makes_outputs_and_tells_how_far_it_is(reader, held):
    assert held.says("half way", output="half", progress=0.5).json == {
        "id": held.task,
        "attempt": 1,
    }
    assert outputs(reader, held) == [("half way", "half")]
    assert reader.get(held.path).json["progress"] == 0.5


def test_a_job_need_not_know_its_own_id(reader, held):
    heard = held.job.post("/job/messages", {"text": "here I am"}, Idempotency_Key="k")
    assert heard.json["id"] == held.task
    assert held.worker.post("/job/messages", {"text": "x"}).status == 403
    assert outputs(reader, held) == [("here I am", None)]


def test_a_job_looks_at_its_own_task_and_nothing_else(server, reader, held, worker, client):
    other = Held(server, worker, client)
    assert held.job.get(held.path).json["id"] == held.task
    assert held.job.get(f"{held.path}/history").status == 200
    for path in (other.path, f"{other.path}/outputs"):
        assert held.job.get(path).status == 403
    assert held.says("evil", job=other.job).status == 403
    assert outputs(reader, held) == []


def test_a_job_may_do_nothing_that_its_worker_may(held):
    """S6: default is to refuse."""
    body = {"worker": held.owner, "attempt": 1}
    for path, given in [
        (f"{held.path}/heartbeat", body),
        (f"{held.path}/finish", body | {"ending": "succeeded"}),
        (f"{held.path}/yield", body),
        (f"{held.path}/token", body),
        (f"{held.path}/cancel", None),
        ("/workers", {"name": "w", "queues": ["default"]}),
        ("/queues/default/claim", {"worker": held.owner}),
        ("/tasks", {"command": "true"}),
        ("/tokens", {"name": "x", "scopes": ["read"]}),
        ("/login-links", None),
    ]:
        assert held.job.post(path, given).status == 403, path
    for path in ("/tasks", "/queues", "/workers", "/runs", "/audit", "//metrics", "/home"):
        assert held.job.get(path).status == 403, path


def test_every_route_that_is_not_for_jobs_refuses_them(held):
    """A new route is closed to jobs unless it says otherwise."""
    for route in ROUTES:
        if isinstance(route.guard, Needs) and route.guard.job is None:
            path = "/" + route.path
            for name in route.path_names:
                path = path.replace(f"{{{name}}}", "x")
            assert held.job.ask(route.method, path).status == 403, route.verb


def test_a_token_is_dead_when_its_attempt_has_ended(reader, held):
    old = held.job
    assert held.says("first").status == 200
    held.fails()
    late = held.says("late", job=old)
    assert (late.status, late.code) == (401, "attempt_over")
    held.claim()
    assert held.says("of another attempt", job=old).status == 401
    assert old.get(held.path).status == 401
    assert [text for text, _ in outputs(reader, held)] == ["first"]


def test_a_token_ends_with_the_token_of_its_worker(server, client, admin):
    """S4: within a second."""
    caller = server.caller("worker")
    held = Held(server, caller, client)
    assert held.says("x").status == 200
    number = int(caller.token.split("_")[1])
    admin.post(f"/tokens/{number}/revoke")
    eventually(lambda: held.says("y").status == 401, "revoked")


def test_the_same_message_with_the_same_key_counts_once(server, reader, held, worker, client):
    """S7."""
    for _ in range(3):
        assert held.says("once", key="k").status == 200
    assert held.says("twice", key="k").status == 409
    assert [text for text, _ in outputs(reader, held)] == ["once"]
    other = Held(server, worker, client)  # the same key of another job is another's
    assert other.says("once", key="k").status == 200
    assert [text for text, _ in outputs(reader, other)] == ["once"]


def test_a_message_without_a_key_is_refused_as_it_could_be_sent_again(reader, held):
    """S7."""
    for body in ({"text": "x"}, {"output": "x"}):
        reply = held.job.post(f"{held.path}/messages", body)
        assert reply.status == 422 and "Idempotency-Key" in reply.json["message"]
    assert held.job.post(f"{held.path}/messages", {"progress": 0.5}).status == 200
    assert outputs(reader, held) == []


def test_the_same_message_sent_at_once_counts_once(reader, held):
    """S7: not only one after the other."""
    with ThreadPoolExecutor(8) as crowd:
        for number in range(5):
            sent = [
                crowd.submit(held.says, f"m{number}", key=f"at once {number}") for _ in "8" * 8
            ]
            assert {one.result().status for one in sent} == {200}
    assert [text for text, _ in outputs(reader, held)] == [f"m{n}" for n in range(5)]


def test_what_a_worker_sends_is_numbered_by_itself(reader, held):
    assert held.says("direct 1").status == 200
    worker_post(held, "outputs", messages=[{"number": 1, "text": "worker 1"}])
    assert held.says("direct 2").status == 200
    worker_post(held, "outputs", messages=[{"number": 2, "text": "worker 2"}])
    texts = [text for text, _ in outputs(reader, held)]
    assert sorted(texts) == ["direct 1", "direct 2", "worker 1", "worker 2"]
    assert texts.index("direct 1") < texts.index("direct 2")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": 1},
        {"progress": 2},
        {"output": ""},
        {"output": "a\nb"},
        {"text": "x", "colour": 1},
        {"text": "x" * 2_000_000},
    ],
)
def test_a_message_that_is_none_is_refused(reader, held, body):
    reply = held.job.post(f"{held.path}/messages", body, Idempotency_Key="k")
    assert reply.status in (413, 422)
    assert outputs(reader, held) == []


def test_no_other_token_can_be_made_of_one(server, held):
    good = held.job.token
    prefix, parent, attempt, name, code = good.split(".")
    wrong = [
        good[:-1],
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good + "A",
        f"{prefix}.{parent}.2.{name}.{code}",
        f"{prefix}.{int(parent) + 1}.{attempt}.{name}.{code}",
        f"{prefix}.999999.{attempt}.{name}.{code}",
        f"{prefix}.{parent}.{attempt}.eHl6.{code}",
        f"{prefix}.{parent}.{attempt}..{code}",
        f"{prefix}.0.{attempt}.{name}.{code}",
        "twa.",
        "twa." + "9" * 5000,
        attempt_token(int(parent), b"0" * 64, (held.task, 1), 1),
    ]
    for token in wrong:
        assert Caller(server.address, token).get(held.path).status == 401, token
    assert held.job.get(held.path).status == 200


def test_only_the_holder_of_a_lease_gets_its_token(server, held, client):
    stranger = server.caller("worker")
    own = register(stranger)
    path = f"{held.path}/token"
    assert stranger.post(path, {"worker": held.owner, "attempt": 1}).status == 404
    assert stranger.post(path, {"worker": own, "attempt": 1}).status == 409
    assert held.worker.post(path, {"worker": held.owner, "attempt": 2}).status == 409
    assert client.post(path, {"worker": held.owner, "attempt": 1}).status == 403


def test_a_worker_does_not_speak_as_a_job(held):
    reply = held.worker.post(f"{held.path}/messages", {"text": "x"})
    assert reply.status == 403 and "outputs" in reply.json["message"]
