"""Of what a token does not cover nothing is told, and no code of others sees more by it."""

import pytest

from tests.server.conftest import register
from tests.server.test_access_table import without_names
from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import FLOW
from tests.support.workflow_folders import sip_files

FILES = {"flow.cylc": FLOW}


def sbi(number, *blocks, workflow="vis"):
    """A request for blocks, each with the ids of those that it waits for."""
    return {
        "id": number,
        "version": "2.0",
        "scheduling_block": {"id": "SB-1"},
        "processing_blocks": [
            {
                "id": name,
                "type": "offline",
                "workflow": {"id": workflow, "parameters": {"site": "x"}},
                "dependencies": [
                    {"type": "processing_block", "value": one, "condition": "complete"}
                    for one in after
                ],
            }
            for name, after in blocks
        ],
    }


def block_id(team, number):
    return f"PB-20261117-{team}-{number}"


def sbi_id(team, number):
    return f"SBI-20261117-{team}-{number}"


@pytest.fixture
def own(tmp_path):
    """A server with a store of its own, where nothing is registered."""
    with running_server(f"sqlite:///{tmp_path}/t.db", home=tmp_path / "home") as server:
        yield server


def sees(server, run):
    return server.do(server.store.find_run(run)).sees


# ---- whose sight the jobs of a run have ----


def registered(caller, name, version="1", **changed):
    body = {"files": FILES, "name": name, "version": version} | changed
    assert (reply := caller.post("/workflows", body)).status in (200, 201), reply.body


def begun(caller, workflow, **changed):
    reply = caller.post("/runs", {"workflow": workflow} | changed)
    assert reply.status == 201, reply.body
    return reply.json["run"]["name"]


def test_h4_code_that_a_team_registered_sees_no_more_when_an_admin_begins_it(own):
    team, admin = own.caller("submit", names=["team-a", "shared"]), own.caller("admin")
    registered(team, "team-a/nightly")
    assert sees(own, begun(admin, "team-a/nightly")) == ("team-a", "shared")
    narrow = own.caller("submit", names=["team-a/nightly", "team-b"])
    assert sees(own, begun(narrow, "team-a/nightly")) == ("team-a/nightly",)
    other = own.caller("submit", names=["workflow:team-a/nightly", "team-b"])
    assert sees(own, begun(other, "team-a/nightly")) == ("workflow:team-a/nightly",)


def test_h4_what_somebody_at_the_store_or_an_admin_registered_sees_what_its_beginner_sees(own):
    admin, team = own.caller("admin"), own.caller("submit", names=["team-a"])
    registered(admin, "team-a/nightly")
    assert sees(own, begun(team, "team-a/nightly")) == ("team-a",)
    assert sees(own, begun(admin, "team-a/nightly")) == ("*",)


def test_h4_a_definition_that_is_sent_has_the_sight_of_its_sender(own):
    admin = own.caller("admin")
    registered(own.caller("submit", names=["team-a"]), "team-a/nightly")
    assert sees(own, begun(admin, "team-a/nightly", flow=FLOW)) == ("*",)


def test_h4_a_version_is_taken_over_by_who_registers_the_same_and_sees_more(own):
    admin, team = own.caller("admin"), own.caller("submit", names=["team-a"])
    registered(team, "team-a/nightly")
    registered(admin, "team-a/nightly")
    assert sees(own, begun(admin, "team-a/nightly")) == ("*",)
    registered(team, "team-a/nightly")  # it is the admin's already
    assert sees(own, begun(admin, "team-a/nightly")) == ("*",)


def test_h4_blocks_of_a_registered_workflow_see_what_its_registrant_sees(own):
    team, admin = own.caller("submit", names=["vis", "raw"]), own.caller("admin")
    assert team.post("/workflows", {"files": sip_files()}).status == 201
    block = block_id("x", 1)
    assert admin.post("/sbis", sbi(sbi_id("x", 1), (block, ()))).status == 201
    assert sees(own, block) == ("vis", "raw")


# ---- names and versions ----


@pytest.mark.parametrize("version", ["beta", "1"])
def test_l2_a_token_for_a_name_reaches_no_version_of_the_name_above_it(own, version):
    admin = own.caller("admin")
    registered(admin, "team-a/nightly", version)
    narrow = own.caller("submit", "operate", names=["team-a/nightly/beta"])
    path = f"/workflows/{in_path('team-a/nightly/beta')}"
    for reply in (
        narrow.get(path),
        narrow.post(f"{path}/check", {}),
        narrow.post(f"{path}/render", {}),
        narrow.ask("DELETE", path),
        narrow.post("/runs", {"workflow": "team-a/nightly/beta"}),
    ):
        assert reply.status in (404, 422), reply.body
        assert "no workflow 'team-a/nightly/beta'" in reply.body.decode()
        assert "registered versions" not in reply.body.decode()
    assert admin.get("/runs").json["runs"] == []
    assert admin.get(f"/workflows/{in_path('team-a/nightly')}/{version}").status == 200


def test_l2_a_version_that_begins_with_a_letter_is_reached_beside_its_name(own):
    team = own.caller("submit", names=["team-a"])
    registered(team, "team-a/nightly", "beta")
    path = f"/workflows/{in_path('team-a/nightly')}/beta"
    assert team.get(path).json["version"] == "beta"
    run = begun(team, "team-a/nightly", version="beta")
    assert run == "team-a/nightly/run1"


# ---- runs that are called otherwise than their workflow ----


def test_l3_a_run_belongs_to_whoever_covers_its_name_and_so_do_its_tasks(own):
    admin = own.caller("admin")
    run = begun(admin, "nightly", flow=FLOW, name="team-a/odd")
    admin.post("/tasks", {"id": "job", "queue": f"run:{run}", "armed": False})
    for names, is_seen in (
        (["team-a"], True),
        (["run:team-a/*"], True),
        (["workflow:team-a"], True),
        (["workflow:nightly"], False),
        (["nightly"], False),
    ):
        caller = own.caller("read", names=names)
        assert (caller.get(f"/runs/{in_path(run)}").status == 200) is is_seen, names
        assert (caller.get("/tasks/job").status == 200) is is_seen, names
        assert bool(caller.get("/runs").json["runs"]) is is_seen, names
        assert (caller.get(f"/events/snapshot?run={run}").status == 200) is is_seen, names


# ---- why ----


def test_why_does_not_name_the_task_of_another_team_that_has_a_worker_for_itself(own):
    worker, admin = own.caller("worker"), own.caller("admin")
    body = {"name": "w", "queues": ["mine/q", "zebra/q"], "slots": 4, "host": "h"}
    body["capacity"] = {"cpu": 8, "nodes": 1}
    owner = worker.post("/workers", body).json["id"]
    alone = {"id": "zebra-task", "queue": "zebra/q", "command": "true", "exclusive": True}
    assert admin.post("/tasks", alone).status == 201
    free = {"cpu": 8, "nodes": 1, "idle_nodes": 1}
    claimed = worker.post("/queues/zebra%2Fq/claim", {"worker": owner, "resources": free})
    assert [one["id"] for one in claimed.json["tasks"]] == ["zebra-task"]
    own_task = {"id": "mine-task", "queue": "mine/q", "command": "true"}
    assert admin.post("/tasks", own_task).status == 201
    told = own.caller("read", names=["mine"]).get("/tasks/mine-task/why")
    assert "that you may not see uses nodes exclusively" in told.json["reasons"][0]
    assert b"zebra" not in told.body
    [known] = own.caller("read").get("/tasks/mine-task/why").json["reasons"]
    assert "Task zebra-task uses nodes of" in known


def test_why_does_not_name_the_task_of_another_team_that_is_waited_for(own):
    admin = own.caller("admin")
    admin.post("/tasks", {"id": "zebra-task", "queue": "zebra/q", "armed": False})
    admin.post("/tasks", {"id": "mine-task", "queue": "mine/q", "needs": ["zebra-task"]})
    told = own.caller("read", names=["mine"]).get("/tasks/mine-task/why")
    assert told.json["reasons"] == ["It waits for a task in a queue that you may not see."]
    graph = own.caller("read", names=["mine"]).get("/tasks/mine-task/graph")
    assert b"zebra" not in graph.body


def test_the_values_of_a_needed_task_of_another_team_are_not_told(own):
    admin, worker = own.caller("admin"), own.caller("worker")
    owner = worker.post("/workers", {"name": "w", "queues": ["*"]}).json["id"]
    for task_id, queue in (("zebra-task", "zebra/q"), ("mine-first", "mine/q")):
        admin.post("/tasks", {"id": task_id, "queue": queue, "spec": 1})
        held = {"worker": owner, "attempt": 1}
        assert worker.post(f"/tasks/{task_id}/claim", {"worker": owner}).status == 200
        end = held | {"ending": "succeeded", "values": {"of": task_id}}
        assert worker.post(f"/tasks/{task_id}/finish", end).status == 200
    needs = ["zebra-task", "mine-first"]
    admin.post("/tasks", {"id": "mine-task", "queue": "mine/q", "spec": 1, "needs": needs})
    told = own.caller("worker", names=["mine"]).get("/tasks/mine-task/inputs")
    assert told.json["inputs"] == [
        {"id": "mine-first", "queue": "mine/q", "values": {"of": "mine-first"}}
    ]
    assert b"zebra" not in told.body
    assert own.caller("worker", names=["zebra"]).get("/tasks/mine-task/inputs").status == 404
    assert len(own.caller("read").get("/tasks/mine-task/inputs").json["inputs"]) == 2


def test_nothing_names_the_block_of_another_team_that_a_block_waits_for(own):
    admin = own.caller("admin")
    assert admin.post("/workflows", {"files": sip_files()}).status == 201
    theirs, mine, last = block_id("zebra", 1), block_id("mine", 1), block_id("mine", 2)
    assert admin.post("/sbis", sbi(sbi_id("zebra", 1), (theirs, ()))).status == 201
    both = sbi(sbi_id("mine", 1), (mine, (theirs,)), (last, (mine,)))
    assert admin.post("/sbis", both).status == 201
    team = own.caller("read", names=["PB-20261117-mine-*"])
    for path in (
        f"/processing-blocks/{mine}",
        f"/processing-blocks/{last}",
        "/processing-blocks",
        f"/runs/{last}",
        f"/runs/{last}/summary",
        "/runs",
        "/runs?summary=true",
    ):
        for _ in range(2):  # what was worked out for an admin is not shown to others
            reply = team.get(path)
            assert reply.status == 200 and b"zebra" not in reply.body, (path, reply.body)
            assert admin.get(path).status == 200
    waits = team.get(f"/processing-blocks/{mine}").json["waits"]
    assert waits == ["another block, which you may not see, to be complete"]
    assert theirs in admin.get(f"/processing-blocks/{mine}").json["waits"][0]


# ---- pages ----


@pytest.fixture
def crowded(own):
    """Another team has more, and newer, of everything."""
    admin = own.caller("admin", "worker")
    assert admin.post("/workflows", {"files": sip_files()}).status == 201
    worker = register(admin, "*")
    for team, number in (("mine", 1), ("zebra", 1), ("zebra", 2), ("zebra", 3)):
        block = block_id(team, number)
        assert admin.post("/sbis", sbi(sbi_id(team, number), (block, ()))).status == 201
        task = {"id": f"{team}-{number}", "queue": f"{team}/q", "name": f"{team}-{number}"}
        assert admin.post("/tasks", task | {"command": "true"}).status == 201
        held = {"worker": worker}
        claimed = admin.post(f"/tasks/{task['id']}/claim", held).json
        ended = held | {"attempt": claimed["attempt"], "ending": "succeeded"}
        assert admin.post(f"/tasks/{task['id']}/finish", ended).status == 200
    return own


def test_l5_those_of_others_take_no_place_in_a_page(crowded):
    names = ["mine", "PB-20261117-mine-*", "SBI-20261117-mine-*"]
    team = crowded.caller("read", names=names)
    for path, key, is_mine in (
        ("/sbis", "sbis", lambda one: one["id"] == sbi_id("mine", 1)),
        ("/processing-blocks", "blocks", lambda one: one["id"] == block_id("mine", 1)),
        ("/ended-attempts", "attempts", lambda one: one["queue"] == "mine/q"),
        ("/tasks", "tasks", lambda one: one["id"] == "mine-1"),
        ("/runs", "runs", lambda one: one["name"] == block_id("mine", 1)),
    ):
        reply = team.get(f"{path}?limit=1")
        assert [is_mine(one) for one in reply.json[key]] == [True], reply.body
    assert team.get("/statistics?by=queue").json["groups"].keys() == {"mine/q"}


# ---- what else was told ----


def test_a_report_on_a_task_of_another_team_says_no_more_than_that_it_is_unknown(own):
    admin, worker = own.caller("admin"), own.caller("worker", names=["mine"])
    admin.post("/tasks", {"id": "zebra-task", "queue": "zebra/q", "armed": False})
    owner = register(worker, "mine")
    reports = [{"id": one, "attempt": 1, "started": True} for one in ("zebra-task", "no-task!")]
    told = worker.post("/reports", {"worker": owner, "reports": reports}).json["answers"]
    first, second = (one["refused"]["message"] for one in told)
    assert first.replace("zebra-task", "ID") == second.replace("no-task!", "ID")
    assert [one["refused"]["code"] for one in told] == ["not_found"] * 2


def test_a_new_task_is_refused_alike_for_a_need_of_others_and_for_one_that_is_not_there(own):
    admin, team = own.caller("admin"), own.caller("submit", names=["mine"])
    admin.post("/tasks", {"id": "zebra-task", "queue": "zebra/q", "armed": False})
    mine = {"id": "mine-0", "queue": "mine/q", "armed": False}
    assert team.post("/tasks", mine).status == 201
    for tie in ("needs", "continuations"):
        told = {}
        for other in ("zebra-task", "ghost-task"):
            one = {"id": "mine-1", "queue": "mine/q", tie: ["mine-0", other]}
            # Something else is wrong, too: what is told first does not depend on the other.
            again = {"id": "mine-0", "queue": "mine/q", "spec": "another"}
            bodies = (one, [one], [again, one], [one, again])
            told[other] = [
                without_names(team.post(f"/tasks{query}", body), other)
                for body in bodies
                for query in ("", "?atomic=each", "?atomic=each&in_order=true")
            ]
        assert told["zebra-task"] == told["ghost-task"]
    assert admin.get("/tasks/mine-1").status == 404


def test_the_holder_of_a_name_in_a_queue_of_others_is_not_told(own):
    admin, team = own.caller("admin"), own.caller("submit", names=["mine"])
    admin.post("/tasks", {"id": "zebra-task", "queue": "zebra/q", "name": "model"})
    for query in ("", "?atomic=each"):
        body = {"queue": "mine/q", "name": "model"}
        reply = team.post(f"/tasks{query}", [body])
        assert b"is taken" in reply.body and b"zebra" not in reply.body
    team.post("/tasks", {"id": "own", "queue": "mine/q", "armed": False})
    reply = team.patch("/tasks/own", {"name": "model"})
    assert b"is taken" in reply.body and b"zebra" not in reply.body
    assert b"zebra-task" in admin.post("/tasks", {"name": "model"}).body


def test_a_name_that_one_covers_and_others_begin_alike_leads_to_one_s_own_run(own):
    """What others have decides neither whether a run is found nor which."""
    admin = own.caller("admin")
    mine = begun(admin, "forecast", flow=FLOW, name="mine/forecast")
    team = own.caller("read", names=["mine"])
    assert team.get("/runs/forecast").json["run"]["name"] == mine
    for number in range(12):
        begun(admin, "forecast", flow=FLOW, name=f"mice/forecast{number:02}")
    assert team.get("/runs/forecast").json["run"]["name"] == mine
    assert team.get("/runs/mi").json["run"]["name"] == mine
    assert team.get("/runs/mice").status == team.get("/runs/rats").status == 403


def test_who_asked_for_a_task_of_others_is_in_the_audit(own):
    admin = own.caller("admin")
    admin.post("/tasks", {"id": "zebra-task", "queue": "zebra/q", "armed": False})
    assert own.caller("read", names=["mine"]).get("/tasks/zebra-task").status == 404
    entries = admin.get("/audit").json["entries"]
    assert any(one["target"] == "zebra-task" and one["status"] == 404 for one in entries)


def test_figures_of_the_server_as_a_whole_are_for_those_who_may_see_everything(own):
    """How often others call a route, or how the database grows, is nobody else's matter."""
    admin = own.caller("admin")
    begun(admin, "mine", flow=FLOW)
    told = own.caller("read", names=["mine"]).get("//metrics").body
    assert b'tidewheel_runs{status="created"} 1' in told
    assert b"http_requests" not in told and b"database" not in told
    assert b"http_requests_total" in admin.get("//metrics").body


def test_the_state_of_a_run_is_that_of_the_run_whose_name_was_judged(own):
    """A `~` at the beginning of a name means a user elsewhere, not here."""
    admin = own.caller("admin")
    begun(admin, "zebra", flow=FLOW)
    begun(admin, "mine", flow=FLOW, name="~mine/zebra/run1")
    team = own.caller("read", names=["~mine"])
    path = f"/runs/{in_path('~mine/zebra/run1')}/workflow-state?id=*/*"
    assert team.get(path).json["run"] == "~mine/zebra/run1"


def test_a_circle_through_a_task_of_others_does_not_name_it(own):
    admin, team = own.caller("admin"), own.caller("submit", names=["mine"])
    admin.post("/tasks", {"id": "first", "queue": "mine/q", "armed": False})
    admin.post("/tasks", {"id": "zebra-task", "queue": "zebra/q", "needs": ["first"]})
    admin.post("/tasks", {"id": "last", "queue": "mine/q", "needs": ["zebra-task"]})
    for reply in (
        team.post("/tasks/last/add_continuations", {"values": ["first"]}),
        team.post("/tasks", {"queue": "mine", "needs": ["last"], "continuations": ["first"]}),
    ):
        assert reply.code == "cycle" and b"a task of others" in reply.body, reply.body
        assert b"zebra" not in reply.body
