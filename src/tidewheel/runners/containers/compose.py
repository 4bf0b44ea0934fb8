"""Runs containers on the engine beside the worker, made by docker-compose, started by us.

docker-compose only creates them. Starting is ours: a container that was created is started
once, by the worker that holds the lease, also after a worker died in between; and what a
service waits for (``depends_on``) is judged from the same look as everything else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tidewheel.runners.containers.docker_cli import (
    CREATE_SECONDS_MAX,
    Cli,
    create_words,
    json_format,
    json_rows,
    whole_seconds,
    without_chatter,
)
from tidewheel.runners.containers.logs import TARGET, make_outputs_folder
from tidewheel.runners.containers.outcome import KILLED, out_of_memory
from tidewheel.runners.containers.project import (
    LABEL_FIELDS,
    LABELS,
    PROJECT,
    RUNNER,
    CannotCreate,
    Engine,
    Phase,
    ProjectPart,
    ProjectPlan,
    Sightings,
    StageWishes,
    Tags,
    sighted,
)
from tidewheel.runners.job_directory import OUTPUTS, OUTPUTS_NAME

NAME = "compose"
SERVICE = "com.docker.compose.service"
INSPECTED_AT_ONCE = 200
_PHASES = {"created": Phase.CREATED, "exited": Phase.ENDED, "dead": Phase.ENDED}
_LABELS = (*LABELS, SERVICE)
_LISTED = (".ID", ".State", ".Status", *LABEL_FIELDS, f'(.Label "{SERVICE}")')
_ENDED = (".Id", f'(index .Config.Labels "{SERVICE}")', ".State")


class ComposeEngine(Engine):
    """Runs projects on the engine beside the worker."""

    name = NAME
    look_seconds = 2.0
    logs_end = True
    replicas_are_parts = True
    parts_are_here = True
    log_command = ("logs",)
    events_command = (
        *("events", "--filter", "type=container", "--filter", f"label={RUNNER}={NAME}"),
        *("--filter", "event=start", "--filter", "event=die"),
        *("--filter", "event=destroy", "--filter", "event=health_status"),
        *("--format", "{{.ID}}"),
    )
    kinds: ClassVar = dict.fromkeys(("container", "network", "volume"), PROJECT)

    def __init__(self, cli: Cli) -> None:
        super().__init__(cli)
        self._ended: dict[str, ProjectPart] = {}  # by id: what has ended does not change

    def fit(self, document: dict[str, Any], plan: ProjectPlan, stage: StageWishes) -> None:
        """Gives each service the folder for values, and lets the engine restart none."""
        del plan
        outputs = make_outputs_folder(stage.directory)
        for service in document["services"].values():
            service["environment"][OUTPUTS] = f"{TARGET}/{OUTPUTS_NAME}"
            service["volumes"] = [*(service.get("volumes") or []), f"{outputs}:{TARGET}:rw"]
            deploy = service.get("deploy") or {}
            for key in ("restart_policy", "placement", "mode", "endpoint_mode", "labels"):
                deploy.pop(key, None)
            if deploy:
                service["deploy"] = deploy
            else:
                service.pop("deploy", None)

    async def create(self, plan: ProjectPlan, file: Path, files: Path) -> None:
        """Creates all containers, networks and volumes, and starts none of them."""
        # Without this version 1 would pass over deploy.resources.
        for_version_1 = () if self.cli.uses_plugin else ("--compatibility",)
        answer = await self.cli.call(
            *(*self.cli.tied, *self.cli.compose, *for_version_1),
            *("-f", str(file), "-p", plan.project, "--project-directory", str(files)),
            *("up", "--no-start", "--no-build"),
            seconds_max=CREATE_SECONDS_MAX,
        )
        if answer.status != 0:
            said = replace(answer, err=without_chatter(answer.err)).words
            # Version 2 says only for which service an image is missing.
            services = json.loads(file.read_bytes())["services"].values()
            images = sorted({str(service["image"]) for service in services})
            raise CannotCreate(create_words(said, images))

    async def look(self) -> Sightings:
        """Lists all containers by one call, and asks once of each that ended how it ended."""
        mark = ("--filter", f"label={RUNNER}={NAME}")
        form = ("--format", json_format(_LISTED))
        rows = json_rows(await self.cli.ask("ps", "--all", "--no-trunc", *mark, *form))
        await self._learn_ends([row[0] for row in rows if row[1] in ("exited", "dead")])
        for gone in self._ended.keys() - {row[0] for row in rows}:
            del self._ended[gone]
        return sighted(self._part_of(row) for row in rows)

    async def start(self, parts: Sequence[ProjectPart]) -> None:
        """Starts all of these parts by one call; a part that cannot be started has ended."""
        answer = await self.cli.call(self.cli.docker, "start", *(part.id for part in parts))
        if answer.status != 0:
            await self._learn_ends([part.id for part in parts], never_started=True)

    async def stop(self, project: str, grace_seconds: float) -> None:
        """Sends the signal that each container wants, then after the grace SIGKILL.

        They are listed anew: some may have been started since they were looked at.
        """
        mark = ("--filter", f"label={PROJECT}={project}")
        running = (await self.cli.ask("ps", "--quiet", *mark)).split()
        if running:
            grace = whole_seconds(grace_seconds)
            await self.cli.call(
                *(self.cli.docker, "stop", "--time", str(grace), *running),
                seconds_max=grace + CREATE_SECONDS_MAX,
            )

    async def _learn_ends(self, ids: Sequence[str], *, never_started: bool = False) -> None:
        unknown = [id_ for id_ in ids if id_ not in self._ended]
        for first in range(0, len(unknown), INSPECTED_AT_ONCE):
            some = unknown[first : first + INSPECTED_AT_ONCE]
            rows = await self.cli.inspect(("inspect", "--type", "container"), _ENDED, some)
            # Those that SIGKILL ended, and the engine has not said why.
            killed = [
                id_
                for id_, _, state in rows
                if state["ExitCode"] == KILLED and not state["OOMKilled"]
            ]
            lacking = await out_of_memory(self.cli, killed)
            for id_, service, state in rows:
                if not never_started or (state["Status"] == "created" and state["Error"]):
                    state["OOMKilled"] |= id_ in lacking
                    self._ended[id_] = _ended_part(id_, service, state)

    def _part_of(self, row: Sequence[str]) -> tuple[Tags, ProjectPart]:
        """Reads a row of the list of containers."""
        id_, state, status, *values = row
        labels = dict(zip(_LABELS, values, strict=True))
        part = self._ended.get(id_) or ProjectPart(
            id=id_,
            service=labels[SERVICE],
            phase=_PHASES.get(state, Phase.RUNNING),
            is_healthy="(healthy)" in status,
        )
        return Tags.read(NAME, labels), part


def _ended_part(id_: str, service: str, state: dict[str, Any]) -> ProjectPart:
    error = str(state["Error"])
    return ProjectPart(
        id=id_,
        service=service,
        phase=Phase.ENDED,
        exit_status=None if state["Status"] == "created" else int(state["ExitCode"]),
        out_of_memory=bool(state["OOMKilled"]),
        error=error,
        ended_at=str(state["FinishedAt"]),
    )
