"""Several who share a server: what one does, or does wrong, is no matter of the others."""

import hashlib
import http.client
import json
import resource
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.server.conftest import register
from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, in_path, running_server
from tests.support.patience import allowed, eventually
from tests.support.prepared_run import PreparedRun
from tidewheel.config import ServerSettings
from tidewheel.server.app import make_room

FLOW = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true\n"


@pytest.fixture
def own_server(tmp_path):
    """Where nobody else has connections or workers."""
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        yield server


def test_a_token_for_one_workflow_cancels_nothing_of_another_by_a_filter(server, admin):
    """S5: a token may be for every queue and yet not for every workflow."""
    admin.post("/tasks", {"id": "theirs", "queue": "run:others/run1", "spec": 1})
    narrow = server.caller("submit", "operate", names=["mine"])
    reply = narrow.post("/tasks/cancel", {"filter": {"status": "ready"}})
    assert (reply.status, reply.code) == (403, "forbidden")
    assert admin.get("/tasks/theirs").json["status"] == "ready"
    own = {"filter": {"queue": "run:mine/run1"}}
    assert narrow.post("/tasks/cancel", own).json == {"cancelled": []}


def test_nobody_takes_the_id_of_a_job_of_another_s_run(server, admin):
    """Its run could not submit it any more."""
    narrow = server.caller("submit", names=["queue:a", "mine"])
    for body in (
        {"id": "others/run1/1/a/1", "queue": "a"},
        [{"queue": "a"}, {"id": "others/run1/20260101T0000Z/a/01", "queue": "a"}],
    ):
        reply = narrow.post("/tasks?atomic=each", body)
        assert (reply.status, reply.code) == (403, "forbidden")
        assert "choose another id" in reply.json["message"]
    for fine in ("mine/run1/1/a/1", "others/run1/1/a", "others/run1/1/a/x"):
        assert narrow.post("/tasks", {"id": fine, "queue": "a"}).status == 201
    assert admin.post("/tasks", {"id": "others/run1/1/a/1", "queue": "a"}).status == 201


def test_a_run_of_another_workflow_is_not_described_to_those_who_ask_for_its_tasks(
    server, admin
):
    asked = {"workflow": "hidden", "flow": FLOW, "queue": "secret-queue"}
    number = admin.post("/runs", asked).json["run"]["number"]
    narrow = server.caller("read", names=["a", "mine"])
    for text, status in ((number, 404), ("hid", 403), (in_path("hidden/run1"), 403)):
        reply = narrow.get(f"/tasks?run={text}&queue=a")
        assert reply.status == status
        assert b"secret-queue" not in reply.body
        assert "%2F" in str(text) or b"hidden/run1" not in reply.body


def test_a_page_and_figures_know_no_worker_that_serves_only_others(own_server):
    worker = own_server.caller("worker")
    register(worker, "b")
    narrow = own_server.caller("read", queues=["a"])
    page = narrow.get("//status")
    assert page.status == 200 and b"worker-1" not in page.body
    assert b"tidewheel_workers 0" in narrow.get("//metrics").body
    assert b"worker-1" in own_server.caller("read", queues=["b"]).get("//status").body


def test_wrong_tokens_of_a_neighbour_do_not_keep_workers_from_their_heartbeats(own_server):
    """S28, M2: nor those who come from there for the first time."""
    worker = own_server.caller("worker", queues=["a"])
    worker.id = register(worker, "a")
    bad = Caller(own_server.address, "tw_1_" + "A" * 43)
    assert [bad.get("/tasks").status for _ in range(11)] == [401] * 10 + [429]
    assert worker.post("/heartbeats", {"worker": worker.id, "beats": []}).status == 200
    assert own_server.caller("read").get("/tasks").status == 200
    new = own_server.caller("worker", queues=["a"])
    assert register(new, "a")
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    code = new.post("/login-links").json["path"].partition("?")[2]
    assert own_server.stranger().post("//login", code.encode(), **form).status == 303


def test_m2_wrong_tokens_around_a_restart_lock_out_neither_a_worker_nor_its_job(tmp_path):
    """M2: a server that has just started knows nobody but those in the store."""
    url = f"sqlite:///{tmp_path}/t.db"
    bad = "tw_1_" + "A" * 43
    with running_server(url) as server:
        worker = server.caller("worker", "submit", queues=["a"])
        worker.id = register(worker, "a")
        worker.post("/tasks", {"id": "t", "queue": "a", "command": "true"})
        [task] = worker.post("/queues/a/claim", {"worker": worker.id}).json["tasks"]
        held = {"worker": worker.id, "attempt": task["attempt"]}
        job = worker.post("/tasks/t/token", held).json["token"]
        assert {Caller(server.address, bad).get("/tasks").status for _ in range(20)} == {
            401,
            429,
        }
    with running_server(url) as server:
        wrong = [Caller(server.address, text) for text in (bad, f"{job[:-3]}abc", "nonsense")]
        for _ in range(20):
            assert {one.get("/tasks/t").status for one in wrong} <= {401, 429}
        assert Caller(server.address, bad).get("/tasks").code == "too_many_failures"
        beat = {"worker": worker.id, "beats": [{"id": "t", "attempt": task["attempt"]}]}
        known = Caller(server.address, worker.token)
        [answer] = known.post("/heartbeats", beat).json["answers"]
        assert answer["answer"] == "go_on"
        assert Caller(server.address, job).get("/tasks/t").status == 200
        assert register(known, "a") != worker.id
        assert known.post("/tasks/t/finish", {**held, "ending": "succeeded"}).status == 200


def test_a_token_that_was_good_and_is_not_counts_as_a_wrong_one(own_server):
    admin, guest = own_server.caller("admin"), own_server.caller("read")
    assert guest.get("/tasks").status == 200
    number = guest.token.split("_")[1]
    assert admin.post(f"/tokens/{number}/revoke").status == 200
    eventually(lambda: guest.get("/tasks").status == 401, "the revocation counts")
    eventually(lambda: guest.get("/tasks").status == 429, "it is one of the wrong ones")
    assert admin.get("/tasks").status == 200


def test_a_claim_whose_caller_hung_up_takes_nothing(own_server):
    """Else the task would wait for its lease to end, and lapse once for nothing."""
    worker = own_server.caller("worker", "submit", queues=["a"])
    worker.id = register(worker, "a")
    waiting = http.client.HTTPConnection(own_server.address, timeout=allowed(20))
    headers = {"Authorization": f"Bearer {worker.token}", "Content-Type": "application/json"}
    body = json.dumps({"worker": worker.id, "wait_s": 60})
    waiting.request("POST", "/api/v1/queues/a/claim", body, headers)
    looker = own_server.caller("read")
    eventually(lambda: connections(looker) == 2, "two of us")
    waiting.close()
    eventually(lambda: connections(looker) == 1, "one hung up")
    worker.post("/tasks", {"queue": "a", "spec": 1})
    [task] = worker.post("/queues/a/claim", {"worker": worker.id, "wait_s": 30}).json["tasks"]
    assert task["attempt"] == 1


def test_however_soon_its_caller_hangs_up_a_claim_takes_nothing(own_server):
    """The request may be on its way through the server when that is noticed."""
    worker = own_server.caller("worker", "submit", queues=["a"])
    worker.id = register(worker, "a")
    headers = {"Authorization": f"Bearer {worker.token}", "Content-Type": "application/json"}
    body = json.dumps({"worker": worker.id, "wait_s": 60})
    for _ in range(60):
        gone = [http.client.HTTPConnection(own_server.address, timeout=20) for _ in range(5)]
        for one in gone:
            one.request("POST", "/api/v1/queues/a/claim", body, headers)
        for one in gone:
            one.close()
        worker.post("/tasks", {"queue": "a", "spec": 1})
        wanted = {"worker": worker.id, "wait_s": 8}
        assert len(worker.post("/queues/a/claim", wanted).json["tasks"]) == 1


def test_a_waiting_claim_is_answered_when_a_delayed_task_is_due(own_server):
    worker = own_server.caller("worker", "submit", queues=["a"])
    worker.id = register(worker, "a")
    worker.post("/tasks", {"queue": "a", "spec": 1, "delay": 1})
    nothing = worker.post("/queues/a/claim", {"worker": worker.id}).json
    assert nothing["tasks"] == [] and 0 < nothing["next_due_s"] <= 1
    wanted = {"worker": worker.id, "wait_s": 3}
    assert len(worker.post("/queues/a/claim", wanted).json["tasks"]) == 1


def test_a_request_that_comes_again_while_it_is_at_work_waits_for_its_answer(own_server):
    """Whoever lost patience, and asks once more with the same key, is given nothing more."""
    worker = own_server.caller("worker", "submit", queues=["a"])
    worker.id = register(worker, "a")
    body = {"worker": worker.id, "wait_s": 20}
    with ThreadPoolExecutor() as threads:
        asking = [
            threads.submit(worker.post, "/queues/a/claim", body, Idempotency_Key="same")
            for _ in range(3)
        ]
        looker = own_server.caller("read")
        eventually(lambda: connections(looker) == 1 + len(asking), "all of us")
        worker.post("/tasks", [{"queue": "a", "spec": 1}] * 3)
        first, *others = [one.result().json["tasks"] for one in asking]
    assert len(first) == 1 and others == [first, first]


def connections(caller):
    """How many the server has, with the one that asks."""
    text = caller.get("//metrics").body.decode()
    [line] = [one for one in text.splitlines() if one.startswith("tidewheel_http_connections ")]
    return int(line.split()[1])


def test_a_server_takes_as_many_open_files_as_it_may_have_connections():
    """Before it is full for heartbeats, it turns away those who can wait."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = ServerSettings(connections_max=100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (600, hard))
    try:
        make_room(few)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(700, hard)
        make_room(ServerSettings(connections_max=1))  # never fewer
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(700, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_long_list_of_mistakes_is_told_by_its_beginning(client):
    """To word each of a million would keep all others waiting."""
    for body in ([{"x": 1}] * 50_000, {f"x{number}": 1 for number in range(50_000)}):
        reply = client.post("/tasks", body)
        assert (reply.status, len(reply.json["findings"])) == (422, 20)
    each = client.post("/tasks?atomic=each", [{"x": 1}] * 2_000)
    assert len(each.json["invalid"]) == 2_000


def test_heartbeats_are_answered_while_somebody_looks_at_a_large_run(tmp_path):
    """A view of some thousand tasks is worked out beside the requests, not before them."""
    tidewheel = CommandLine(tmp_path)
    names = [f"t{number}" for number in range(4_000)]
    flow = f"[scheduling]\n[[graph]]\nR1 = {' & '.join(names)}\n[runtime]\n[[root]]\n"
    run = PreparedRun(tidewheel, flow + f"[[{', '.join(names)}]]\n", "large").starts()
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        worker, reader = server.caller("worker"), server.caller("read")
        beat = {"worker": register(worker), "beats": []}
        path = f"/runs/{in_path(run.name)}/dump"
        assert len(reader.get(path).json["tasks"]) == len(names)  # all that is read once is
        with ThreadPoolExecutor() as threads:
            looking = [threads.submit(reader.get, path) for _ in range(8)]
            answered = 0
            while not all(one.done() for one in looking):
                assert worker.post("/heartbeats", beat).status == 200
                answered += 1
        # If they waited for views, there were one before the first and one after each.
        assert answered > len(looking) + 1


# What a second reviewer found: nothing of these leads to a name that is not covered.


def test_pages_of_lists_say_nothing_of_what_is_not_covered(own_server):
    """By how full a page is, and where it ends, one would learn of others' tasks and runs."""
    admin = own_server.caller("admin")
    for number in range(5):
        admin.post(
            "/tasks", {"id": f"theirs-{number}", "queue": "zebra", "spec": 1, "tag": "secret"}
        )
        admin.post("/tasks", {"id": f"mine-{number}", "queue": "mine", "spec": 1})
        admin.post("/runs", {"workflow": "zebra", "flow": FLOW})
        admin.post("/runs", {"workflow": "mine", "flow": FLOW})
    narrow = own_server.caller("read", names=["mine"])
    for path in ("/tasks?tag=secret&limit=1", "/runs?workflow=zebra&limit=1"):
        assert narrow.get(path).json["next"] is None
    for what in ("tasks", "runs"):
        seen, following = [], ""
        while following is not None:
            page = narrow.get(f"/{what}?limit=2" + (f"&before={following}" * bool(following)))
            seen += [one.get("id") or one["name"] for one in page.json[what]]
            following = page.json["next"]
        assert len(seen) == 5 and all("mine" in one for one in seen)


def test_a_refusal_does_not_name_the_queue_that_an_id_leads_to(server, admin):
    admin.post("/tasks", {"id": "of-zebra", "queue": "zebra/hidden", "armed": False})
    narrow = server.caller("submit", "operate", names=["mine"])
    for path, body in (
        ("/tasks/get", {"ids": ["of-zebra"]}),
        ("/tasks", {"queue": "mine", "needs": ["of-zebra"]}),
        ("/tasks/cancel", {"ids": ["of-zebra"]}),
        ("/tasks/of-zebra/cancel", {}),
        # A guess is not confirmed.
        ("/tasks", {"queue": "mine", "needs": ["of-zebra"], "spec": "zebra/hidden"}),
    ):
        reply = narrow.post(path, body)
        assert reply.status in (404, 422) and b"hidden" not in reply.body, path
        assert b"'of-zebra'" in reply.body, path
    assert b"'zebra/seen'" in narrow.post("/tasks", {"queue": "zebra/seen"}).body


def test_of_a_worker_that_serves_others_too_only_one_s_own_queues_are_shown(own_server):
    worker = own_server.caller("worker")
    register(worker, "mine", "zebra-hidden", "run:zebra/*")
    for pattern in ("mine", "workflow:mine"):
        shown = own_server.caller("read", names=[pattern]).get("/workers").json["workers"]
        assert [one["queues"] for one in shown] == ([["mine"]] if pattern == "mine" else [])


def test_nobody_guesses_the_id_that_a_keyed_submission_of_another_gets(own_server):
    """Who took it before would keep that submission from ever being stored."""
    client = own_server.caller("submit")
    number = client.token.split("_")[1]
    guess = "k-" + hashlib.sha256(f"{number}/nightly/0".encode()).hexdigest()[:32]
    made = client.post("/tasks", {"queue": "q"}, Idempotency_Key="nightly").json["id"]
    assert made.startswith("k-") and made != guess


def test_a_definition_of_another_workflow_is_not_reached_by_its_digest(own_server):
    admin = own_server.caller("admin")
    for team in ("mine", "zebra"):
        admin.post("/runs", {"workflow": team, "flow": FLOW + f"# {team}\n"})
    digest = admin.get(f"/runs/{in_path('zebra/run1')}/definition").json["digest"]
    narrow = own_server.caller("operate", names=["mine"])
    path, command = f"/runs/{in_path('mine/run1')}", {"verb": "reload", "definition": digest}
    tried = narrow.post(f"{path}/dry-run", {"command": command})
    assert tried.status == 404, tried.body
