"""Containers on the engine beside the worker, made by docker-compose, started by us.

docker-compose only creates them. Starting is ours: a container that was created is started
once, by whoever holds the lease, also after a worker died in between; and what a service
waits for (``depends_on``) is judged from the same look as everything else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidewheel.runners.containers.docker_cli import (
    CREATE_SECONDS_MAX,
    Cli,
    EngineAway,
    create_words,
    json_rows,
    whole_seconds,
    without_chatter,
)
from tidewheel.runners.containers.logs import TARGET, make_outputs_folder
from tidewheel.runners.containers.outcome import KILLED, out_of_memory
from tidewheel.runners.containers.project import (
    LABELS,
    PROJECT,
    RUNNER,
    CannotCreate,
    Phase,
    ProjectPart,
    ProjectPlan,
    Sightings,
    StageWishes,
    Tags,
    label_fields,
    labelled,
    sighted,
)
from tidewheel.runners.job_directory import OUTPUTS, OUTPUTS_NAME

NAME = "compose"
SERVICE = "com.docker.compose.service"
INSPECTED_AT_ONCE = 200
REMOVE_TRIES = 20
_PHASES = {"created": Phase.CREATED, "exited": Phase.ENDED, "dead": Phase.ENDED}
_LISTED = (".ID", ".State", ".Status")
_LABELS = (*LABELS, SERVICE)


class ComposeEngine:
    """The port Engine."""

    name = NAME
    look_seconds = 2.0
    logs_end = True
    replicas_are_parts = True
    parts_are_here = True

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self._ended: dict[str, ProjectPart] = {}  # by id: what has ended does not change

    def fit(self, document: dict[str, Any], plan: ProjectPlan, stage: StageWishes) -> None:
        """A stage ends: nothing of it is started again by the engine."""
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
        """Everything, started by nobody."""
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
            raise CannotCreate(create_words(said, _images(file)))

    async def look(self) -> Sightings:
        """One list of all containers; of those that ended, once, how."""
        fields = [f"{{{{json {name}}}}}" for name in _LISTED]
        fields += label_fields(_LABELS)
        text = await self.cli.ask(
            *("ps", "--all", "--no-trunc", "--filter", f"label={RUNNER}={NAME}"),
            *("--format", f"[{','.join(fields)}]"),
        )
        rows = json_rows(text)
        await self._learn_ends([row[0] for row in rows if row[1] in ("exited", "dead")])
        self._forget_but({row[0] for row in rows})
        return sighted(self._part_of(row) for row in rows)

    async def remains(self) -> list[Tags]:
        return await labelled(self.cli, NAME)

    async def start(self, parts: Sequence[ProjectPart]) -> None:
        """All at once; one that cannot be started has ended."""
        answer = await self.cli.call(self.cli.docker, "start", *(part.id for part in parts))
        if answer.status != 0:
            await self._learn_ends([part.id for part in parts], never_started=True)

    async def stop(
        self, plan: ProjectPlan, parts: Sequence[ProjectPart], grace_seconds: float
    ) -> None:
        """The signal that each container wants, the grace, then SIGKILL."""
        del parts  # some may have been started since they were looked at
        mark = ("--filter", f"label={PROJECT}={plan.project}")
        running = (await self.cli.ask("ps", "--quiet", *mark)).split()
        if running:
            grace = whole_seconds(grace_seconds)
            await self.cli.call(
                *(self.cli.docker, "stop", "--time", str(grace), *running),
                seconds_max=grace + CREATE_SECONDS_MAX,
            )

    async def remove(self, project: str) -> None:
        """Containers, then what they used."""
        for _ in range(REMOVE_TRIES):
            if not await self._remove_once(project):
                return
        raise EngineAway(f"{project} cannot be removed: something of it is still in use")

    async def _remove_once(self, project: str) -> bool:
        """Returns whether there was anything."""
        mark = ("--filter", f"label={PROJECT}={project}")
        found = False
        for listing, removing in (
            (("ps", "--all", "--quiet"), ("rm", "--force", "--volumes")),
            (("network", "ls", "--quiet"), ("network", "rm")),
            (("volume", "ls", "--quiet"), ("volume", "rm", "--force")),
        ):
            ids = (await self.cli.ask(*listing, *mark)).split()
            if ids:
                found = True
                await self.cli.call(self.cli.docker, *removing, *ids)
        return found

    def log_arguments(self, part: ProjectPart) -> tuple[str, ...]:
        del part
        return ("logs",)

    def events_arguments(self) -> tuple[str, ...] | None:
        return (
            *("events", "--filter", "type=container", "--filter", f"label={RUNNER}={NAME}"),
            *("--filter", "event=start", "--filter", "event=die"),
            *("--filter", "event=destroy", "--filter", "event=health_status"),
            *("--format", "{{.ID}}"),
        )

    async def _learn_ends(self, ids: Sequence[str], *, never_started: bool = False) -> None:
        unknown = [id_ for id_ in ids if id_ not in self._ended]
        for first in range(0, len(unknown), INSPECTED_AT_ONCE):
            some = unknown[first : first + INSPECTED_AT_ONCE]
            answer = await self.cli.call(
                *(self.cli.docker, "inspect", "--type", "container", "--format"),
                f'[{{{{json .Id}}}},{{{{json (index .Config.Labels "{SERVICE}")}}}},'
                "{{json .State}}]",
                *some,
            )
            # Of those removed meanwhile nothing is told, and nothing has to be.
            rows = json_rows(answer.out)
            killed = [id_ for id_, _, state in rows if _was_killed(state)]
            lacking = await out_of_memory(self.cli, killed)
            for id_, service, state in rows:
                if not never_started or (state["Status"] == "created" and state["Error"]):
                    state["OOMKilled"] |= id_ in lacking
                    self._ended[id_] = _ended_part(id_, service, state)

    def _part_of(self, row: Sequence[str]) -> tuple[Tags, ProjectPart]:
        """A row of the list of containers."""
        id_, state, status, *values = row
        labels = dict(zip(_LABELS, values, strict=True))
        part = self._ended.get(id_) or ProjectPart(
            id=id_,
            service=labels[SERVICE],
            phase=_PHASES.get(state, Phase.RUNNING),
            is_healthy="(healthy)" in status,
        )
        return Tags.read(NAME, labels), part

    def _forget_but(self, ids: set[str]) -> None:
        for gone in self._ended.keys() - ids:
            del self._ended[gone]


def _images(file: Path) -> list[str]:
    """Returns those of a file, as version 2 says only for which service one is missing."""
    services = json.loads(file.read_bytes())["services"].values()
    return sorted({str(service["image"]) for service in services})


def _was_killed(state: dict[str, Any]) -> bool:
    """Says whether a container was ended by SIGKILL and the engine has not said why."""
    return state["ExitCode"] == KILLED and not state["OOMKilled"]


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
