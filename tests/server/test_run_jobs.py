"""Jobs of a run with tokens of their own, and their logs: what reaches the run."""

import asyncio

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, in_path, running_server
from tests.support.prepared_run import FLOW, PreparedRun
from tidewheel.core.operator.definition import JOB_OUTPUTS
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import Refused
from tidewheel.services.job_api import JobApi
from tidewheel.services.workflow_state import answer, definitions_of, question_of_id
from tidewheel.wiring.services import run_door
from tidewheel.wiring.stores import opened_store


@pytest.fixture(scope="module")
def tidewheel(tmp_path_factory):
    return CommandLine(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def run(tidewheel):
    prepared = PreparedRun(tidewheel)
    prepared.commands["prep"] = f"export {JOB_OUTPUTS}=half"  # as the script of a job says it
    return prepared.starts()


@pytest.fixture(scope="module")
def closed_run(tidewheel):
    """Its jobs may speak, and no more."""
    flow = "[scheduler]\n    job commands = False\n" + FLOW
    return PreparedRun(tidewheel, flow, "closed", sees=("closed", "public*")).starts()


@pytest.fixture(scope="module")
def public_run(tidewheel):
    return PreparedRun(tidewheel, FLOW, "public").starts()


@pytest.fixture(scope="module")
def server(tidewheel):
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        yield running


@pytest.fixture(scope="module")
def caller(server):
    return server.caller("worker", queues=["run:*"])


class Job:
    """The job of a submission, held over HTTP."""

    def __init__(self, server, caller, run, submission):
        self.id, self.caller = f"{run.name}/{submission}", caller
        self.path = f"/tasks/{in_path(self.id)}"
        self.run_path = f"/runs/{in_path(run.name)}"
        self.owner = caller.post("/workers", {"name": "w", "queues": ["run:*"]}).json["id"]
        held = caller.post(f"{self.path}/claim", {"worker": self.owner})
        assert held.status == 200, held.body
        given = caller.post(f"{self.path}/token", {"worker": self.owner, "attempt": 1})
        self.own = Caller(server.address, given.json["token"])

    def sends(self, content, stream="out", offset=0):
        path = f"{self.path}/logs/{stream}?worker={self.owner}&attempt=1&offset={offset}"
        return self.caller.ask("PUT", path, content, Content_Type="text/plain")


@pytest.fixture(scope="module")
def job(server, caller, run):
    return Job(server, caller, run, "1/prep/1")


@pytest.fixture(scope="module")
def closed_job(server, caller, closed_run):
    return Job(server, caller, closed_run, "1/prep/1")


def test_h4_a_job_looks_at_its_own_run_and_at_what_its_submitter_may_see(
    job, closed_job, run, public_run
):
    """S6: its worker's token is for all runs, that of the run's submitter for some."""
    its, other = closed_job.own, job.run_path
    for path in ("", "/history", "/definition", "/workflow-state?id=//*/*"):
        assert its.get(closed_job.run_path + path).status == 200, path
        assert its.get(f"/runs/{in_path(public_run.name)}{path}").status == 200, path
        refused = its.get(other + path)
        assert refused.status == 403, path
        assert "it is for closed, public*" in refused.json["message"]
    for text, status in ((run.view.number, 404), ("forec", 403), ("forecast", 403)):
        assert (found := its.get(f"/runs/{text}")).status == status
        assert b"run1" not in found.body
    told = its.get("/runs").json["runs"]
    assert {one["name"] for one in told} == {"closed/run1", public_run.name}


def test_a_job_of_a_run_that_somebody_at_the_store_began_sees_every_run(job, closed_job):
    assert job.own.get(closed_job.run_path).status == 200
    assert {one["name"] for one in job.own.get("/runs").json["runs"]} >= {"closed/run1"}


def test_a_job_operates_its_own_run_where_the_definition_allows_it(job, closed_job, run):
    """S6."""
    with run.answering():
        done = job.own.post(f"{job.run_path}/hold", {"ids": ["2/prep"]})
        assert done.status == 200, done.body
    [asked, *_] = job.own.get(f"{job.run_path}/history").json["commands"]
    assert (asked["verb"], asked["who"]) == ("hold", "job 1/prep/01")
    refused = closed_job.own.post(f"{closed_job.run_path}/hold", {"ids": ["2/prep"]})
    assert refused.status == 403 and "job commands" in refused.json["message"]
    other = job.own.post(f"{closed_job.run_path}/hold", {"ids": ["2/prep"]})
    assert other.status == 403
    assert job.own.ask("DELETE", job.run_path).status == 403


def test_what_a_job_says_reaches_its_run(server, job):
    assert (
        job.own.post("/job/messages", {"text": "half way"}, Idempotency_Key="k").status == 200
    )
    found = server.do(server.store.find_run(job.id.rsplit("/", 3)[0]))
    inbox = server.do(server.store.read_inbox(found.number, 100))
    assert any("half way" in repr(one) for one in inbox.happenings)


def test_an_output_that_its_task_does_not_declare_is_refused_with_the_nearest(job):
    for number, (output, status) in enumerate((("hall", 422), ("half", 200), ("started", 200))):
        said = job.own.post("/job/messages", {"output": output}, Idempotency_Key=f"o{number}")
        assert said.status == status, said.body
        if status == 422:
            assert "half" in said.json["message"] and "prep" in said.json["message"]


def test_the_log_of_a_job_elsewhere_is_found_where_people_look(server, tidewheel, run, job):
    """S11, R001: the same layout as of a job that ran here."""
    assert job.sends(b"hello\n").json["size"] == 6
    job.sends(b"from afar\n", offset=6)
    job.sends(b"#!/bin/bash\n", "job")
    job.sends(b"pid=1\n", "status")
    reader = server.caller("read")
    assert reader.get(f"{job.path}/logs/out").body == b"hello\nfrom afar\n"
    assert reader.get(f"{job.run_path}/log?id=1/prep").body == b"hello\nfrom afar\n"
    assert tidewheel("log", run.name, "1/prep").out == "hello\nfrom afar\n"
    assert tidewheel("log", run.name, "1/prep", "--file", "job").out == "#!/bin/bash\n"
    node = tidewheel.state / "runs" / run.name / "log/job/1/prep"
    assert (node / "NN").readlink().name == "01"


def test_h4_a_worker_that_opens_the_store_shows_a_job_no_more(
    tidewheel, closed_run, public_run, run
):
    """S6: the same by the socket of a worker, without a server."""

    async def looks(name, **arguments):
        async with opened_store(tidewheel.store) as store:
            calls = JobApi(run_door(store, tidewheel.state), tidewheel.state)
            caller = TaskId(f"{closed_run.name}/1/prep/1")
            return await calls(caller, {"look": name, "arguments": arguments})

    shown = asyncio.run(looks("runs"))["runs"]
    assert {one["name"] for one in shown} == {closed_run.name, public_run.name}
    for text, name in (("public", public_run.name), ("", closed_run.name)):
        assert asyncio.run(looks("facts", run=text))["run"]["name"] == name
    for name in ("facts", "tasks", "history", "log", "workflow-state"):
        with pytest.raises(Refused, match="see runs of closed, public"):
            asyncio.run(looks(name, run=run.name, id=""))
    number = run.view.number
    for text in (f"~x/{number}", f"~x/{run.name}", f"{run.name}//", f"{number}//", "~x/forec"):
        with pytest.raises(Refused):
            asyncio.run(looks("workflow-state", run=text, id="*/*"))
    with pytest.raises(Refused, match="see runs of closed, public"):  # as if it were there
        asyncio.run(looks("workflow-state", run="nobody", id="*/*"))
    told = asyncio.run(looks("workflow-state", run="public-later", id="*/*"))
    assert "public-later" in told["reason"] and told["tasks"] == []


def test_h4_an_xtrigger_sees_no_more_than_the_submitter_of_its_run(
    tidewheel, closed_run, public_run, run
):
    async def asked(asker, workflow):
        async with opened_store(tidewheel.store) as store:
            definition_of = definitions_of(store, tidewheel.state)
            question = question_of_id(f"{workflow}//1/prep")
            return await answer(store, question, definition_of, asker.view.number)

    assert "may not look at" in asyncio.run(asked(closed_run, run.name)).reason
    assert asyncio.run(asked(closed_run, public_run.name)).run == public_run.name
    assert asyncio.run(asked(run, closed_run.name)).run == closed_run.name


def test_h4_who_gives_a_run_code_and_sees_less_narrows_what_its_jobs_see(server, tidewheel):
    """Else the token of an operator would see by a broadcast what only the submitter may."""
    run = PreparedRun(tidewheel, FLOW, "given").starts()
    operator = server.caller("operate", names=["given", "public/x"])
    path = f"/runs/{in_path(run.name)}/broadcast?wait_s=0"
    assert operator.post(path, {"settings": ["script=true"]}).status == 202
    assert server.do(server.store.find_run(run.name)).sees == ("given", "public/x")
    narrower = server.caller("operate", names=["given"])
    assert narrower.post(path, {"settings": ["script=true"]}).status == 202
    assert server.do(server.store.find_run(run.name)).sees == ("given",)


def test_h4_a_job_sees_its_own_run_also_if_nothing_else(server, tidewheel):
    """Who began it and who registered it may have nothing in common."""
    run = PreparedRun(tidewheel, FLOW, "blind", ()).starts()
    worker = server.caller("worker")
    owner = worker.post("/workers", {"name": "w", "queues": ["run:*"]}).json["id"]
    path = f"/tasks/{in_path(f'{run.name}/1/prep/1')}"
    assert worker.post(f"{path}/claim", {"worker": owner}).status == 200
    given = worker.post(f"{path}/token", {"worker": owner, "attempt": 1}).json["token"]
    its = Caller(server.address, given)
    assert [one["name"] for one in its.get("/runs").json["runs"]] == [run.name]
    assert its.get(f"/runs/{in_path(run.name)}/history").status == 200
    assert its.get(f"{path}/why").status == its.get(f"{path}/graph").status == 200
