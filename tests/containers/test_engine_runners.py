"""The runners of containers pass the one suite for runners: a real engine, a real Swarm."""

import json
import os
from contextlib import asynccontextmanager

import pytest

from tests.kit.runner_conformance import (
    SPOKEN,
    Behaviour,
    ProcessRunnerConformance,
    RunnerConformance,
    claimed,
)
from tests.support.container_engine import IMAGE
from tidewheel.runners.containers.docker_cli import Cli
from tidewheel.runners.containers.engines import ComposeEngine, SwarmEngine
from tidewheel.runners.containers.runner import EngineRunner

SAY = 'echo "$$TIDEWHEEL_SAY"'


def script(behaviour, mailbox):
    tell = f"echo there > {mailbox}"
    said = [{"text": text, "output": output} for text, output in SPOKEN]
    return {
        Behaviour.SUCCEED: "true",
        Behaviour.FAIL: "echo it was set to fail >&2; exit 3",
        Behaviour.SPEAK: "; ".join(
            f"{SAY}'{json.dumps(one)}'" for one in [*said, {"progress": 0.5}]
        ),
        Behaviour.REPEAT_SPEC: (
            'printf "%s%s\\n" "$$TIDEWHEEL_SAY" "$$TIDEWHEEL_SPEC" '
            '| sed "s/.say.:/\\"text\\":/"'
        ),
        Behaviour.LAST: f"{tell}; sleep 600",
        Behaviour.REFUSE_TO_END: f"trap '' TERM; {tell}; while :; do sleep 600; done",
    }[behaviour]


def stage_spec(runner, behaviour, mailbox, spec):
    service = {
        "image": IMAGE,
        "init": behaviour is not Behaviour.REFUSE_TO_END,
        "command": ["sh", "-c", script(behaviour, mailbox)],
        "volumes": [f"{mailbox}:{mailbox}"],
    }
    compose = json.dumps({"version": "3.8", "services": {"only": service}})
    return json.dumps({**json.loads(spec or "{}"), "runner": runner, "compose": compose})


class EngineConformance(RunnerConformance):
    engine_class = ComposeEngine
    jobs_at_once = 4  # each takes about a second to be created

    @pytest.fixture(autouse=True)
    def _engine(self, engine):
        self.private = engine
        yield
        assert engine.left_behind() == {}

    @asynccontextmanager
    async def open_runner(self, _home):
        environ = {**os.environ, **self.private.environment}
        runner = EngineRunner(
            self.engine_class(Cli(environ)),
            allowed=("bind-mounts",),
            usage_interval_seconds=0.1,
        )
        try:
            yield runner
        finally:
            runner.stop()
            await runner.stopped()

    def task(self, behaviour, mailbox, **fields):
        name = self.engine_class.name
        spec = stage_spec(name, behaviour, mailbox, fields.pop("spec", None))
        # A Swarm stops by the grace that its services were made with.
        grace = 1.0 if behaviour is Behaviour.REFUSE_TO_END else 10.0
        return claimed(command="true", spec=spec, max_termination_seconds=grace, **fields)


class TestComposeRunner(EngineConformance):
    engine_class = ComposeEngine
    test_usage = ProcessRunnerConformance.test_the_usage_of_a_job_is_sampled_while_it_runs


class TestSwarmRunner(EngineConformance):
    engine_class = SwarmEngine
