"""Jobs of a run with tokens of their own, and their logs: what reaches the run."""

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, in_path, running_server
from tests.support.prepared_run import FLOW, PreparedRun
from tidewheel.core.operator.definition import JOB_OUTPUTS


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
    return PreparedRun(tidewheel, flow, "closed").starts()


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


def test_a_job_looks_at_its_own_run_and_at_no_other(job, closed_job):
    assert job.own.get(job.run_path).json["run"] is not None
    assert job.own.get(f"{job.run_path}/history").status == 200
    assert job.own.get(closed_job.run_path).status == 403
    assert job.own.get("/runs").status == 403


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
