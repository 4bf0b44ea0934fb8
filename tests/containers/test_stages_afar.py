"""Stages of a worker that knows nothing but a server: logs, words, tokens, and its death."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.afar import afar
from tests.support.container_engine import IMAGE, until_nothing_is_left
from tests.support.http_server import Caller, in_path
from tests.support.patience import eventually, eventually_told
from tests.support.run_crew import ended
from tests.support.stages import SAY, compose_text, service

EXAMPLE = Path(__file__).parents[2] / "examples" / "containers"
LONG_LEASE_SECONDS = 600.0
SCRIPT = f"""
echo one; echo oh >&2
{SAY}'{{"text": "half way", "output": "half"}}'
echo $$TIDEWHEEL_TOKEN > /data/token
until [ -e /data/go ]; do sleep 0.1; done
echo two
"""


@pytest.fixture
def far(tmp_path, engine):  # in this order: it is cleared after its workers are gone
    del engine
    with afar(tmp_path, None) as made:
        yield made


def log(far, task_id, stream="out"):
    reply = far.caller("read").get(f"/tasks/{in_path(task_id)}/logs/{stream}?attempt=1")
    return reply.body.decode() if reply.status == 200 else None


@pytest.mark.timeout(170)
@pytest.mark.req("R004-58", "R004-62")
@pytest.mark.parametrize("kind", ["compose", "swarm"])
def test_a_stage_behind_a_server_is_read_heard_and_adopted(far, engine, kind):
    with far.client() as client:
        client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
        first = far.worker_afar("w", "--runner", kind, **engine.environment)
        text = compose_text(a=service(SCRIPT, volumes=["./data:/data"]))
        client.submit(id="x", runner=kind, compose=text)
        eventually_told(lambda: log(far, "x") == "a | one\n", "its first line is at the server")
        eventually_told(lambda: log(far, "x", "err") == "a | oh\n", "its errors, too")
        [data] = far.home_of("w").glob("tasks/*/*/1/files/data")

        written = data / "token"
        token = eventually(
            lambda: written.exists() and written.read_text().strip(), "it has a token"
        )
        assert token.startswith("twa.") and token != far.token
        job = Caller(far.caller("read").address, token)
        sent = job.post("/job/messages", {"text": "by token"}, Idempotency_Key="once")
        assert sent.status < 300, sent.body
        assert job.get("/tasks").status in (401, 403)

        first.kill()
        far.worker_afar("w", "--runner", kind, **engine.environment).says("adopted")
        (data / "go").touch()
        eventually(lambda: client.get("x").status.value == "succeeded", "it ends", 90.0)
        eventually_told(lambda: log(far, "x") == "a | one\na | two\n", "all of its log")
        said = sorted((one.text, one.output) for one in client.outputs("x"))
        assert said == [("by token", None), ("half way", "half")]
        assert client.get("x").attempt == 1
    until_nothing_is_left(engine)
    assert "token" not in json.dumps(engine.rows("ps", "-a"))


@pytest.mark.timeout(170)
@pytest.mark.req("R004-44", "R004-57")
def test_stages_of_a_run_hand_values_on_through_a_server(far, engine, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "example")
    far.start("scheduler")
    far.worker_afar("w", "--queue", "run:*", "--runner", "compose", **engine.environment)
    operator = {
        "TIDEWHEEL_STORE": "",
        "TIDEWHEEL_SERVER": far.url,
        "TIDEWHEEL_TOKEN": far.new_token("submit", "operate", "read"),
    }
    run = far.start("run", "example/survey-1.0.0.yaml.j2", "-p", f"image={IMAGE}", **operator)
    assert ended(run, 90.0) == 0, run.log
    share = far.home_of("w") / "runs" / "survey" / "run1" / "share"
    assert (share / "image").read_text() == "phase scaled by 8\namplitude scaled by 8\n"
    assert engine.left_behind() == {}
