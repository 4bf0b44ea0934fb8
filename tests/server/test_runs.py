"""Runs over HTTP: the documents people see, commands, logs; S5 for workflows, S11 for logs."""

import os

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import in_path, running_server
from tests.support.patience import eventually
from tests.support.prepared_run import PreparedRun
from tidewheel.core.sched import events
from tidewheel.core.sched.events import StopMode


@pytest.fixture(scope="module")
def tidewheel(tmp_path_factory):
    return CommandLine(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def run(tidewheel):
    return PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")


@pytest.fixture(scope="module")
def server(tidewheel, run):
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        running.path = f"/runs/{in_path(run.name)}"
        yield running


@pytest.fixture(scope="module")
def reader(server):
    return server.caller("read")


@pytest.fixture(scope="module")
def operator(server):
    return server.caller("operate")


def test_a_run_is_seen_as_on_the_command_line(server, reader, tidewheel, run):
    shown = reader.get(server.path).json
    assert shown["lost"] == tidewheel("show", run.name, "--json").json["lost"]
    assert [one["name"] for one in reader.get("/runs").json["runs"]] == [run.name]
    [task] = reader.get(f"{server.path}?ids=1/model_a").json["tasks"]
    assert task["state"] == "failed"
    [why] = reader.get(f"{server.path}/why?ids=1/post").json["tasks"]
    assert not why["reasons"][0]["passes"]
    assert reader.get(f"{server.path}/tree").json["points"]
    assert reader.get(f"{server.path}/pool?n=0").json["points"][0]["point"] == "1"
    assert reader.get("/runs/fore").status == 200
    assert reader.get("/runs/nobody").status == 404
    assert reader.get(f"{server.path}/why").status == 422


def test_a_task_is_seen_with_its_parents_outputs_flows_and_reasons(server, reader):
    [task] = reader.get(f"{server.path}?ids=1/post").json["tasks"]
    [arrow] = task["prerequisites"]
    parents = {atom["id"]: (atom["parent"], atom["state"]) for atom in arrow["atoms"]}
    assert parents["1/model_a"] == ("failed", "lost")
    assert parents["1/model_b"][1] == "open" and not arrow["satisfied"]
    assert task["why"][0]["text"].startswith("1/post will not run")
    [prep] = reader.get(f"{server.path}?ids=1/prep").json["tasks"]
    made = {one["output"]: (one["made"], one["by_hand"]) for one in prep["outputs"]}
    assert (made["succeeded"], made["half"]) == ((True, False), (False, False))
    assert (prep["flows"], prep["submissions"][0]["status"]) == ([1], "succeeded")


def test_what_happened_is_seen_job_by_job_and_batch_by_batch(server, reader):
    jobs = reader.get(f"{server.path}/submissions").json["submissions"]
    by_id = {one["id"]: one for one in jobs}
    assert by_id["1/prep"]["status"] == "succeeded"
    assert None not in [
        by_id["1/prep"][f"{step}_at"] for step in ("queued", "started", "ended")
    ]
    assert by_id["1/model_b"]["started_at"] is None
    first = reader.get(f"{server.path}/changes?limit=1").json
    [batch] = first["batches"]
    assert (batch["batch"], first["next"]) == (1, 1)
    assert {one["id"]: one["state"] for one in batch["tasks"]}["1/prep"] == "preparing"
    rest = reader.get(f"{server.path}/changes?after=1").json
    assert rest["next"] is None and rest["batches"][0]["batch"] == 2
    last = {one["id"]: one for batch in rest["batches"] for one in batch["tasks"]}
    assert last["1/model_a"]["state"] == "failed" and not last["1/model_a"]["in_pool"]
    assert any("1/prep" in batch["left_pool"] for batch in rest["batches"])


def test_a_command_is_obeyed_refused_and_written_down(server, operator, run):
    with run.answering():
        done = operator.post(f"{server.path}/hold", {"ids": ["2/prep"]})
        assert (done.status, done.json["answer"]["tasks"]) == (200, {"2/prep": "1"})
        refused = operator.post(f"{server.path}/trigger", {"ids": ["1/prep"], "flow": "7"})
        assert refused.status == 409 and "there is no flow 7" in refused.json["message"]
    commands = operator.get(f"{server.path}/history").json["commands"]
    assert {one["verb"] for one in commands} == {"hold", "trigger"}
    assert all("a test (token" in one["who"] for one in commands)


def test_a_command_that_reopens_a_run_is_kept_where_no_scheduler_serves(tmp_path):
    tidewheel = CommandLine(tmp_path)
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    run.happens(events.RunStopped(StopMode.NOW, run.now), ends=True)
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        operator, path = server.caller("operate"), f"/runs/{in_path(run.name)}"
        for verb, body in (("hold", {"ids": ["2/prep"]}), ("pause", {}), ("stop", {})):
            refused = operator.post(f"{path}/{verb}", body)
            assert (refused.status, refused.json["code"]) == (409, "not_running")
            assert f"tidewheel run {run.name}" in refused.json["message"]
        unknown = operator.post(f"{path}/trigger", {"ids": ["1/nobody"]})
        assert (unknown.status, unknown.json["code"]) == (409, "refused")
        kept = operator.post(f"{path}/trigger", {"ids": ["1/model_a"]})
        assert (kept.status, kept.json["answer"]) == (
            202,
            {"kept": True, "status": "stopped", "next": f"tidewheel run {run.name}"},
        )
        assert operator.post(f"{path}/release?wait_s=0", {"everything": True}).status == 202
        assert operator.get(path).json["run"]["offered"]
        commands = operator.get(f"{path}/history").json["commands"]
        assert [one["verb"] for one in commands] == ["release", "trigger"]
        document = operator.get("/openapi.json").json["paths"]
        assert "202" in document["/api/v1/runs/{run}/trigger"]["post"]["responses"]


def test_a_trigger_can_be_tried_without_doing_it(server, operator):
    path = f"{server.path}/trigger?dry_run=true"
    asked = operator.get(f"{server.path}/history").json
    tried = operator.post(path, {"ids": ["1/model_a"]}).json
    assert tried["runs"][0]["id"] == "1/model_a"
    assert operator.get(f"{server.path}/history").json == asked


@pytest.mark.parametrize(
    "body", [{"ids": "1/a"}, {"ids": [1]}, {"colour": 1}, {}, [], {"verb": "stop", "ids": []}]
)
def test_a_command_that_is_none_is_refused(server, operator, body):
    assert operator.post(f"{server.path}/trigger", body).status == 422


def test_a_token_for_another_workflow_sees_and_does_nothing(server, run):
    """S5."""
    other = server.caller("operate", "submit", names=["nightly*"])
    assert other.get("/runs").json["runs"] == []
    for part in ("", "/why?ids=1/a", "/tree", "/pool", "/history", "/log"):
        assert other.get(server.path + part).status == 403, part
    assert other.post(f"{server.path}/pause").status == 403
    jobs = f"run:{run.name}"
    assert other.get(f"/tasks?queue={in_path(jobs)}").status == 403
    assert other.post("/tasks/cancel", {"filter": {"queue": jobs}}).status == 403
    own = server.caller("operate", names=["forecast"])
    assert own.get(server.path).status == 200
    assert own.get(f"/tasks?run={in_path(run.name)}").json["tasks"] != []


@pytest.fixture
def job_log(tidewheel, run):
    folder = tidewheel.state / "runs" / run.name / "log/job/1/model_a/01"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.out"
    path.unlink(missing_ok=True)
    return path


def test_a_log_is_read_by_its_end_or_in_parts(server, reader, job_log):
    job_log.write_bytes(b"0123456789<script>\x1b[31m\xff")
    path = f"{server.path}/log?id=1/model_a"
    whole = reader.get(path)
    assert whole.body == job_log.read_bytes()
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["x-content-type-options"] == "nosniff"
    part = reader.get(f"{path}&offset=2&limit=3")
    assert (part.body, part.headers["x-log-size"]) == (b"234", str(len(whole.body)))
    assert reader.get(f"{path}&limit=1").body == b"\xff"
    assert reader.get(f"{path}&offset=99999").body == b""
    assert reader.get(f"{path}&limit=2000000").status == 422


@pytest.mark.parametrize(
    "query",
    [
        "id=1/model_a&file=../../../etc/passwd",
        "id=1/model_a&file=/etc/passwd",
        "id=../../etc/passwd",
        "id=1/../model_a",
        "id=1/model_a&file=%2e%2e",
        "id=1/model_a&submit=7",
        "id=1/nobody",
        "file=../x",
    ],
)
def test_a_log_that_is_none_is_not_found(server, reader, job_log, query):
    """S11, S29: no path of the host is told."""
    job_log.write_text("x")
    reply = reader.get(f"{server.path}/log?{query}")
    assert reply.status == 404 and str(job_log.parents[6]).encode() not in reply.body


def test_why_there_is_no_log_is_told(server, reader):
    said = {
        "id=1/nobody": "there is no task nobody",
        "id=1/model_a&file=nothing": "it has out, err, job",
        "id=1/model_a&submit=7": "no submission 7",
    }
    for query, reason in said.items():
        reply = reader.get(f"{server.path}/log?{query}")
        assert (reply.status, reply.code) == (404, "not_found")
        assert reason in reply.json["message"]


@pytest.mark.parametrize("kind", ["link", "folder link", "fifo", "folder"])
def test_what_is_no_plain_file_of_the_run_is_not_read(server, reader, job_log, tmp_path, kind):
    """S11."""
    secret = tmp_path / "job.out"
    secret.write_text("secret")
    folder = job_log.parent
    match kind:
        case "link":
            job_log.symlink_to(secret)
        case "folder link":
            folder.rename(folder.with_name("moved"))
            folder.symlink_to(tmp_path)
        case "fifo":
            os.mkfifo(job_log)
        case "folder":
            job_log.mkdir()
    try:
        reply = reader.get(f"{server.path}/log?id=1/model_a")
        assert reply.status == 404 and b"secret" not in reply.body
    finally:
        if kind == "folder link":
            folder.unlink()
            folder.with_name("moved").rename(folder)
        if kind == "folder":
            job_log.rmdir()


def test_the_log_of_a_task_is_read_where_its_worker_ran_it(server, tidewheel):
    caller = server.caller("submit")
    assert (
        caller.post("/tasks", {"id": "says", "command": "echo hello; echo no >&2"}).status
        == 201
    )
    assert caller.get("/tasks/says/logs/out").status == 404
    assert tidewheel("worker", "--exit-when-idle").status == 0
    assert caller.get("/tasks/says/logs/out").body == b"hello\n"
    assert caller.get("/tasks/says/logs/err?offset=1").body == b"o\n"
    assert caller.get("/tasks/says/logs/out?attempt=2").status == 404
    for stream in ("status", "..%2Fjob.out", "job.out"):
        assert caller.get(f"/tasks/says/logs/{stream}").status == 404


def test_the_plain_page_has_queues_of_runs_until_these_are_over(tmp_path):
    tidewheel = CommandLine(tmp_path)
    small = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"
    run = PreparedRun(tidewheel, small, "small").starts()
    queue = f"run:{run.name}".encode()
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        reader = server.caller("read")
        eventually(lambda: queue in reader.get("//status").body, "its task is ready")
        run.succeeds("1/a").is_let_go()
        eventually(lambda: queue not in reader.get("//status").body, "nothing is left of it")
        assert run.name.encode() in reader.get("//status").body
