"""Stages where docker compose is of version 2: what a file says is what the containers get."""

import asyncio
import json
import os

import pytest

from tests.kit.runner_conformance import DEADLINE_SECONDS, RecordedReports, assigned, claimed
from tests.support.compose_2 import compose_2_folder
from tests.support.stages import compose_text, files_of, service, stage_spec
from tidewheel.config import ALLOWABLE
from tidewheel.core.queue.requests import Ending
from tidewheel.runners.containers.docker_cli import Cli
from tidewheel.runners.containers.engines import ComposeEngine, SwarmEngine
from tidewheel.runners.containers.runner import EngineRunner

ENGINES = {"compose": ComposeEngine, "swarm": SwarmEngine}


@pytest.fixture(scope="module")
def environ():
    folder = compose_2_folder()
    if folder is None:
        pytest.skip("apt-get could not fetch docker compose 2 of the next Debian")
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def played(kind, engine, environ, home, text):
    """How a stage ends, and what its services printed."""

    async def play():
        assignment = assigned(claimed(command="true", spec=stage_spec(kind, text)), home)
        cli = Cli({**environ, **engine.environment})
        assert cli.is_compose_2
        runner = EngineRunner(ENGINES[kind](cli), allowed=tuple(ALLOWABLE))
        job = await runner.start(assignment, RecordedReports())
        async with asyncio.timeout(DEADLINE_SECONDS):
            end = await job.wait()
        runner.stop()
        await runner.stopped()
        return end, files_of(assignment.directory)

    return asyncio.run(play())


LIMITS = {"resources": {"limits": {"cpus": "0.50", "memory": "64M"}}, "replicas": 2}
# A service, what it prints, and what stands beside the services.
STAGES = {
    "plain": (service("echo one"), "one", {}),
    "limits": (service("echo $$((6 * 7))", deploy=LIMITS), "42", {}),
    "port": (service("echo up", ports=["127.0.0.1:18080:80"]), "up", {}),
    "variable": (service("echo $$A", environment={"A": "b c"}), "b c", {}),
    "volume": (service("ls -d /v", volumes=["data:/v"]), "/v", {"volumes": {"data": None}}),
    "network": (service("echo in", networks=["n"]), "in", {"networks": {"n": {}}}),
}


@pytest.mark.req("R004-57")
@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("kind", ENGINES)
def test_a_stage_runs_where_docker_compose_is_of_version_2(
    kind, name, engine, environ, tmp_path
):
    body, printed, beside = STAGES[name]
    if kind == "swarm" and name == "port":
        body = body | {"ports": ["18080:80"]}
    text = json.dumps(json.loads(compose_text(a=body)) | beside)
    end, files = played(kind, engine, environ, tmp_path, text)
    assert end.ending is Ending.SUCCEEDED, end
    assert set(files["service-a.log"].splitlines()) == {printed}


@pytest.mark.parametrize("kind", ENGINES)
def test_a_stage_that_fails_and_one_that_lacks_something_say_so(
    kind, engine, environ, tmp_path
):
    end, _ = played(
        kind, engine, environ, tmp_path / "1", compose_text(a=service("echo oh; exit 3"))
    )
    assert end.ending is Ending.FAILED and "oh" in str(end.error), end
    lacking = json.loads(compose_text(a=service("true", networks=["lab"])))
    text = json.dumps(lacking | {"networks": {"lab": {"external": True}}})
    end, _ = played(kind, engine, environ, tmp_path / "2", text)
    assert "network lab does not exist on the" in str(end.error), end


def test_secrets_that_others_made_are_refused_on_an_engine(engine, environ, tmp_path):
    document = json.loads(compose_text(a=service("true", secrets=["key"])))
    text = json.dumps(document | {"secrets": {"key": {"external": True}}})
    end, _ = played("compose", engine, environ, tmp_path, text)
    assert "secret key needs a Swarm" in str(end.error), end
