"""Commands that are tried: what they would change is what they change, and nothing is done."""

import asyncio

import pytest

from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import FLOW, PreparedRun
from tidewheel.core.operator.definition import sealed
from tidewheel.wiring.stores import opened_store


@pytest.fixture
def run(tidewheel):
    return PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")


@pytest.fixture
def server(tidewheel):
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        yield running


@pytest.fixture
def operator(run, server):
    caller = server.caller("operate")
    caller.path = f"/runs/{in_path(run.name)}"
    return caller


def states(operator):
    """Every task of the run, and the run itself, as people see them."""
    tree = operator.get(f"{operator.path}/tree?all=true").json
    dump = operator.get(f"{operator.path}/dump").json
    return tree["points"], dump, tree["status"]


def state_of(operator, task):
    [found] = operator.get(f"{operator.path}?ids={task}").json["tasks"]
    remarks = f" ({', '.join(found['remarks'])})" if found["remarks"] else ""
    return found["state"] + remarks


COMMANDS = [
    ("trigger", {"ids": ["1/model_a"]}, {"1/model_a"}),
    ("set", {"ids": ["1/model_b"]}, {"1/model_b"}),
    ("set", {"ids": ["1/model_a"], "outputs": ["succeeded"]}, {"1/model_a", "1/post"}),
    ("remove", {"ids": ["1/model_b"], "kill": True}, {"1/model_b"}),
    ("hold", {"ids": ["1/model_b"]}, {"1/model_b"}),
    ("hold", {"ids": ["3/prep"]}, {"3/prep"}),
    ("kill", {"ids": ["1/model_b"]}, {"1/model_b"}),
    ("stop", {"mode": "clean"}, set()),
    ("stop", {"at_point": "2"}, set()),
    ("pause", {}, set()),
]


@pytest.mark.parametrize(("verb", "body", "changed"), COMMANDS)
def test_what_is_tried_is_what_would_happen(operator, run, verb, body, changed):
    before = states(operator)
    tried = operator.post(f"{operator.path}/{verb}?dry_run=true", body)
    assert tried.status == 200, tried.body
    assert states(operator) == before
    assert operator.get(f"{operator.path}/history").json["commands"] == []
    told = {one["id"]: one["after"] for one in tried.json["changes"]}
    assert (tried.json["verb"], told.keys() & changed) == (verb, changed)
    with run.answering():
        assert operator.post(f"{operator.path}/{verb}", body).status == 200
    assert {task: state_of(operator, task) for task in told} == told
    assert operator.get(f"{operator.path}/tree").json["status"] == tried.json["status"]["after"]


def test_the_audit_tells_what_was_done_to_which_tasks_and_not_what_was_tried(
    server, operator, run
):
    body = {"ids": ["1/model_a", "3/prep"]}
    assert operator.post(f"{operator.path}/hold?dry_run=true", body).status == 200
    with run.answering():
        assert operator.post(f"{operator.path}/hold", body).status == 200
    [entry] = server.caller("admin").get("/audit").json["entries"]
    assert entry["words"] == f"held 1/model_a, 3/prep in {run.name}"
    assert entry["verb"] == "POST /api/v1/runs/{run}/hold"


def test_held_tasks_that_would_be_released_would_run(operator, run):
    with run.answering():
        assert operator.post(f"{operator.path}/hold", {"ids": ["2/prep"]}).status == 200
    tried = operator.post(f"{operator.path}/release?dry_run=true", {"everything": True}).json
    assert [one["id"] for one in tried["changes"]] == ["2/prep"]


def test_the_jobs_that_would_be_killed_are_named(operator):
    body = {"ids": ["1/model_b"]}
    tried = operator.post(f"{operator.path}/kill?dry_run=true", body).json
    assert tried["killed"] == ["1/model_b"]


def test_a_reload_is_tried_with_the_definition_that_is_named(operator, run):
    before = states(operator)
    text = (run.folder / "flow.cylc").read_text()
    longer = text.replace("post[-P1]", "fresh\npost[-P1]") + "[[fresh]]\n"
    body = {"workflow": "forecast", "text": longer}
    saved = operator.post(f"{operator.path}/definitions", body)
    assert saved.status == 201, saved.body
    asked = {"definition": saved.json["digest"]}
    tried = operator.post(f"{operator.path}/reload?dry_run=true", asked)
    assert tried.status == 200, tried.body
    fresh = [one["id"] for one in tried.json["runs"] if one["id"].endswith("/fresh")]
    assert fresh and states(operator) == before
    nobody = operator.post(f"{operator.path}/reload?dry_run=true", {"definition": "0" * 64})
    assert nobody.status == 404


def test_h1_a_reload_is_tried_without_running_a_strangers_code(tidewheel, server):
    """H1: whoever may only look could have had it run by the server."""
    flow = "#!jinja2\n{% set x = 'struck' if environ else '' %}\n" + FLOW.replace(
        "post[-P1] => prep", "post[-P1] => prep{{ x }}"
    ).replace("[[post, mail]]", "[[post, mail, prepstruck]]")
    run = PreparedRun(tidewheel, flow, "striking").starts()
    folder = tidewheel.state / "runs" / run.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "flow.cylc").write_text(flow)
    path = f"/runs/{in_path(run.name)}/reload?dry_run=true"
    tried = server.caller("operate").post(path, {})
    assert tried.status == 200, tried.body
    assert b"struck" not in tried.body


def test_a_reload_of_what_the_run_has_is_tried_as_it_would_be_done(tidewheel, server):
    """Nobody is kept from a run that has begun, by rules that came later."""
    flow = FLOW + "[[[events]]]\nfailed handlers = ssh host 'tell %(id)s'\n"
    run = PreparedRun(tidewheel, flow).starts()

    async def save_as_from_its_folder():
        async with opened_store(tidewheel.store) as store:
            same = sealed(await store.definition(run.view.definition), trusted=True)
            await store.save_definition(same)
            return same.digest

    asked = {"definition": asyncio.run(save_as_from_its_folder())}
    assert asked["definition"] != run.view.definition
    operator = server.caller("operate")
    path = f"/runs/{in_path(run.name)}"
    tried = operator.post(f"{path}/reload?dry_run=true", asked)
    assert tried.status == 200, tried.body


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("hold", {"ids": ["1/x"]}, 409),
        ("hold", {}, 409),
        ("kill", {"ids": ["3/prep"]}, 409),
        ("broadcast", {"settings": ["script=true"]}, 409),
        ("message", {"id": "1/model_b", "texts": ["x"]}, 409),
        ("set", {"ids": 7}, 422),
    ],
)
def test_what_cannot_be_tried_is_refused(operator, verb, body, status):
    assert operator.post(f"{operator.path}/{verb}?dry_run=true", body).status == status


def test_who_may_only_look_may_try(operator, server):
    reader = server.caller("read")
    body = {"command": {"verb": "hold", "ids": ["2/prep"]}}
    tried = reader.post(f"{operator.path}/dry-run", body)
    assert (tried.status, tried.json["verb"]) == (200, "hold")
    assert reader.post(f"{operator.path}/hold?dry_run=true", body["command"]).status == 403
    for bad in ({"command": {}}, {"command": []}, {}, {"command": {"verb": "fly"}}):
        assert reader.post(f"{operator.path}/dry-run", bad).status == 422
    other = server.caller("read", names=["nightly"])
    assert other.post(f"{operator.path}/dry-run", body).status == 403
    told = server.caller("admin").get("/audit").json["entries"]
    assert {entry["status"] for entry in told} == {403}  # refused, and nothing done
