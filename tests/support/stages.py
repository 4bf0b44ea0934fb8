"""Stages for the runners of containers: compose files, specs, and a runner to start them."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.container_engine import IMAGE, PrivateEngine
from tidewheel.runners.containers.docker_cli import Cli
from tidewheel.runners.containers.engines import ComposeEngine, SwarmEngine
from tidewheel.runners.containers.runner import EngineRunner

ENGINES = {"compose": ComposeEngine, "swarm": SwarmEngine}
SAY = 'echo "$$TIDEWHEEL_SAY"'


def service(script: str, **keys: object) -> dict[str, object]:
    """A service that runs a script of sh; pid 1 hands signals on."""
    return {"image": IMAGE, "init": True, "command": ["sh", "-c", script], **keys}


def compose_text(**services: Mapping[str, object]) -> str:
    return json.dumps({"version": "3.8", "services": services})


def stage_spec(runner: str, compose: str, **rest: object) -> str:
    """The spec of a task that is a stage."""
    return json.dumps({"runner": runner, "compose": compose, **rest})


@asynccontextmanager
async def opened_runner(
    kind: str, engine: PrivateEngine | None, allowed: Sequence[str] = ()
) -> AsyncIterator[EngineRunner]:
    """A runner that speaks to an engine; without one, to an address where nobody listens."""
    nobody: dict[str, str] = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    environ = {**os.environ, **(nobody if engine is None else engine.environment)}
    made: Any = ENGINES[kind]
    runner = EngineRunner(made(Cli(environ)), allowed=allowed)
    try:
        yield runner
    finally:
        runner.stop()
        await runner.stopped()


def files_of(directory: Path) -> dict[str, str]:
    """The logs of an attempt, by name."""
    return {
        path.name: path.read_text()
        for path in directory.iterdir()
        if path.suffix in (".out", ".err", ".log")
    }
