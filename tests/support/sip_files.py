"""SIP definitions as files, whose stages are containers of the tests' own image."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.stages import compose_text, service

# The folder that all stages of a run share, on each engine of this machine.
SHARE = ["${TIDEWHEEL_RUN_DIR}/share:/share"]
# Each start is a line of the journal; it goes on until it is told to end.
WAIT = "echo begin {name} >> /share/journal; until [ -e /share/go ]; do sleep 0.1; done"


def one_service(script: str, **keys: object) -> str:
    """A compose file with one service, called `work`."""
    return compose_text(work=service(script, volumes=SHARE, **keys))


def waiting(name: str, **keys: object) -> str:
    """A stage that notes its begin and waits for `share/go`."""
    return one_service(WAIT.format(name=name), **keys)


def write_sip(folder: Path, file: str, text: str, stages: Mapping[str, str]) -> Path:
    """A definition with a compose file for each stage, all of version 1.0.0."""
    for name, compose in stages.items():
        place = folder / "stages" / name / "1.0.0"
        place.mkdir(parents=True, exist_ok=True)
        (place / "docker_compose.yaml").write_text(compose)
    folder.mkdir(exist_ok=True)
    path = folder / file
    path.write_text(text)
    return path
