"""Runs projects on the engine beside the worker (Compose), or on a Swarm.

Compose
-------
docker-compose only creates containers. Starting is ours: a container that was created is
started once, by the worker that holds the lease, also after a worker died in between; and what
a service waits for (``depends_on``) is judged from the same look as everything else.

Swarm
-----
Services of a Swarm run once, placed by constraints, watched through a manager. They are plain
services that are never restarted, not ``replicated-job`` services: when one of those is
removed, its task is wanted ``complete`` for ever and its container runs on (measured with
engine 20.10); and a docker of that age cannot deploy them in a stack.

A Swarm's task goes through New, Pending, Assigned, Accepted, Preparing, Ready, Starting,
Running to Complete, Failed, Rejected, Shutdown, Orphaned or Remove. "No suitable node" is said
of a task that is Pending: it waits, and starts when a node comes.

A named volume stays on the node on which a Swarm made it, and no manager can remove it from
another node. One without a name is removed by its node, with its container. For a container
that shares it with no other the two are the same, since it is started only once: so named
volumes that a single container uses become nameless.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tidewheel.config import COMPOSE, SWARM
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Assignment
from tidewheel.runners.containers import docker_cli, placement, swarm_keys
from tidewheel.runners.containers.block_network import (
    as_networks,
    join_options,
    join_own_networks,
    name_on_engine,
)
from tidewheel.runners.containers.compose_build import as_mapping, literally
from tidewheel.runners.containers.logs import TARGET, make_outputs_folder
from tidewheel.runners.containers.outcome import KILLED, out_of_memory
from tidewheel.runners.containers.policy import FINDINGS_SHOWN_MAX, PROCESSES_MAX, mount_of
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
    Tags,
    sighted,
)
from tidewheel.runners.containers.stage_spec import BadStage, StageSpec
from tidewheel.runners.job_directory import OUTPUTS, OUTPUTS_NAME

SERVICE = "com.docker.compose.service"
INSPECTED_AT_ONCE = 200
_PHASES = {"created": Phase.CREATED, "exited": Phase.ENDED, "dead": Phase.ENDED}
_LABELS = (*LABELS, SERVICE)
_LISTED = (".ID", ".State", ".Status", *LABEL_FIELDS, f'(.Label "{SERVICE}")')
_ENDED = (".Id", f'(index .Config.Labels "{SERVICE}")', ".State")


class ComposeEngine(Engine):
    """Runs projects on the engine beside the worker."""

    name = COMPOSE
    look_seconds = 2.0
    logs_end = True
    replicas_are_parts = True
    parts_are_here = True
    network_driver = "bridge"
    log_command = ("logs",)
    events_command = (
        *("events", "--filter", "type=container", "--filter", f"label={RUNNER}={COMPOSE}"),
        *("--filter", "event=start", "--filter", "event=die"),
        *("--filter", "event=destroy", "--filter", "event=health_status"),
        *("--format", "{{.ID}}"),
    )
    kinds: ClassVar = dict.fromkeys(("container", "network", "volume"), PROJECT)

    def __init__(self, cli: docker_cli.Cli) -> None:
        super().__init__(cli)
        self._ended: dict[str, ProjectPart] = {}  # by id: what has ended does not change

    def fit(self, document: dict[str, Any], plan: ProjectPlan, assignment: Assignment) -> None:
        """Gives each service the folder for values, and lets the engine restart none."""
        del plan
        join_own_networks(document)
        outputs = make_outputs_folder(assignment.directory)
        for service in document["services"].values():
            service["environment"][OUTPUTS] = f"{TARGET}/{OUTPUTS_NAME}"
            service["volumes"] = [*(service.get("volumes") or []), f"{outputs}:{TARGET}:rw"]
            deploy = service.get("deploy") or {}
            limits = (deploy.get("resources") or {}).get("limits") or {}
            if limits and self.cli.is_compose_2:  # which wants all of them in one place
                limits.setdefault("pids", service.pop("pids_limit", PROCESSES_MAX))
            elif limits.get("pids") is None:  # else the engine sets none
                service.setdefault("pids_limit", PROCESSES_MAX)
            for key in ("restart_policy", "placement", "mode", "endpoint_mode", "labels"):
                deploy.pop(key, None)
            if deploy:
                service["deploy"] = deploy
            else:
                service.pop("deploy", None)

    async def create(
        self, plan: ProjectPlan, file: Path, files: Path, seconds_max: float
    ) -> None:
        """Creates all containers, networks and volumes, and starts none of them."""
        # Without this version 1 would pass over deploy.resources.
        for_version_1 = () if self.cli.is_compose_2 else ("--compatibility",)
        answer = await self.cli.call(
            *(*self.cli.tied, *self.cli.compose, *for_version_1),
            *("-f", str(file), "-p", plan.project, "--project-directory", str(files)),
            *("up", "--no-start", "--no-build"),
            seconds_max=seconds_max,
        )
        if answer.status != 0:
            said = replace(answer, err=docker_cli.without_chatter(answer.err)).words
            # Version 2 says only for which service an image is missing.
            services = json.loads(file.read_bytes())["services"].values()
            images = sorted({str(service["image"]) for service in services})
            raise CannotCreate(docker_cli.create_words(said, images))
        if not self.cli.is_compose_2:
            await self._join_networks(plan, json.loads(file.read_bytes()))

    async def _join_networks(self, plan: ProjectPlan, document: Mapping[str, Any]) -> None:
        """Puts containers into all but the first of their networks, as version 1 only does when
        it starts them itself."""
        wanted = {
            name: networks
            for name, service in document["services"].items()
            if len(networks := service.get("networks") or {}) > 1
        }
        if not wanted:
            return
        form = ("--format", docker_cli.json_format((".ID", f'(.Label "{SERVICE}")')))
        mark = ("--all", "--no-trunc", "--filter", f"label={PROJECT}={plan.project}")
        rows = docker_cli.json_rows(await self.cli.ask("ps", *mark, *form))
        services = {id_: service for id_, service in rows if service in wanted}
        fields = (".Id", ".NetworkSettings.Networks")
        how = ("inspect", "--type", "container")
        joins = [
            (*join_options(service, networks[key]), real, id_)
            for id_, there in await self.cli.inspect(how, fields, services)
            for service in (services[id_],)
            for networks in (as_networks(wanted[service]),)
            for key in networks
            if (real := name_on_engine(plan.project, key, document)) not in there
        ]
        calls = (self.cli.call(self.cli.docker, "network", "connect", *one) for one in joins)
        for answer in await asyncio.gather(*calls):
            if answer.status != 0:
                raise CannotCreate(docker_cli.create_words(answer.words))

    async def look(self) -> Sightings:
        """Lists all containers by one call, and asks once of each that ended how it ended."""
        mark = ("--filter", f"label={RUNNER}={COMPOSE}")
        form = ("--format", docker_cli.json_format(_LISTED))
        rows = docker_cli.json_rows(
            await self.cli.ask("ps", "--all", "--no-trunc", *mark, *form)
        )
        await self._learn_ends([row[0] for row in rows if row[1] in ("exited", "dead")])
        for gone in self._ended.keys() - {row[0] for row in rows}:
            del self._ended[gone]
        return sighted(self._part_of(row) for row in rows)

    async def begins(self, parts: Sequence[ProjectPart]) -> list[str]:
        """Asks the engine when the containers were started."""
        asked, ids = ("inspect", "--type", "container"), [part.id for part in parts]
        return [text for (text,) in await self.cli.inspect(asked, (".State.StartedAt",), ids)]

    async def start(self, parts: Sequence[ProjectPart]) -> None:
        """Starts all of these parts by one call; a part that cannot be started has ended."""
        answer = await self.cli.call(self.cli.docker, "start", *(part.id for part in parts))
        if answer.status != 0:
            await self._learn_ends([part.id for part in parts], never_started=True)

    async def stop(self, project: str, grace_seconds: float) -> None:
        """Sends the signal that each container wants, then after the grace SIGKILL.

        The containers are listed anew: some may have been started since the last look.
        """
        mark = ("--filter", f"label={PROJECT}={project}")
        running = (await self.cli.ask("ps", "--quiet", *mark)).split()
        if running:
            grace = docker_cli.whole_seconds(grace_seconds)
            await self.cli.call(
                *(self.cli.docker, "stop", "--time", str(grace), *running),
                seconds_max=grace + docker_cli.STOP_SECONDS_MAX,
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
                    has_run = state["Status"] != "created"
                    self._ended[id_] = ProjectPart(
                        id=id_,
                        service=service,
                        phase=Phase.ENDED,
                        exit_status=int(state["ExitCode"]) if has_run else None,
                        out_of_memory=bool(state["OOMKilled"]) or id_ in lacking,
                        error=str(state["Error"]),
                        ended_at=str(state["FinishedAt"]),
                    )

    def _part_of(self, row: Sequence[str]) -> tuple[Tags, ProjectPart]:
        """Returns the tags and the part that a row of the list of containers stands for."""
        id_, state, status, *values = row
        labels = dict(zip(_LABELS, values, strict=True))
        part = self._ended.get(id_) or ProjectPart(
            id=id_,
            service=labels[SERVICE],
            phase=_PHASES.get(state, Phase.RUNNING),
            is_healthy="(healthy)" in status,
        )
        return Tags.read(COMPOSE, labels), part


LABEL_ADVICE = "; nodes get labels by: docker node update --label-add NAME=VALUE NODE"
_EXIT = re.compile(r"non-zero exit \((\d+)\)")
BAD = frozenset({"Failed", "Rejected", "Orphaned"})
OVER = BAD | {"Complete", "Shutdown", "Remove"}
WAITING = frozenset({"New", "Pending", "Allocated"})
PREPARING = frozenset({"Assigned", "Accepted", "Preparing", "Ready", "Starting"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """Holds what does not change about a service of a Swarm, from its start to its end."""

    name: str  # PROJECT_SERVICE
    service: str
    tags: Tags
    wanted: int | None  # how many tasks are to complete; None: one on each node


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmTask:
    """Describes a task of a Swarm, as a line of `docker service ps` shows it."""

    id: str
    service: str  # its full name
    state: str
    wanted_state: str
    error: str
    node: str

    @classmethod
    def read(cls, row: Mapping[str, str]) -> SwarmTask:
        return cls(
            id=row["ID"],
            service=row["Name"].rpartition(".")[0],
            state=row["CurrentState"].partition(" ")[0],
            wanted_state=row["DesiredState"],
            error=row["Error"].strip('"'),
            node=row["Node"],
        )


def part_of(facts: ServiceFacts, tasks: Sequence[SwarmTask]) -> ProjectPart:
    """Returns the part of a project that a service of a Swarm is, judged by its tasks."""
    bad = [task for task in tasks if task.state in BAD]
    done = sum(task.state == "Complete" for task in tasks)
    wanted = facts.wanted if facts.wanted is not None else max(1, len(tasks))
    part = ProjectPart(
        id=facts.name,
        service=facts.service,
        phase=Phase.RUNNING,
        tasks=tuple(task.id for task in tasks),
    )
    if bad:
        return _bad_part(part, bad[-1])
    if done >= wanted:
        return replace(part, phase=Phase.ENDED, exit_status=0)
    open_tasks = [task for task in tasks if task.state not in OVER]
    if tasks and not open_tasks and len(tasks) >= wanted:
        words = "it was shut down by its node or by another user"
        return replace(part, phase=Phase.ENDED, error=words)
    if all(task.state in WAITING for task in open_tasks):
        error = next((task.error for task in open_tasks if task.error), "")
        if "constraints" in error:
            error += LABEL_ADVICE
        return replace(part, phase=Phase.PENDING, error=error)
    if not done and all(task.state in WAITING | PREPARING for task in open_tasks):
        return replace(part, phase=Phase.PREPARING)
    lost = next((task.node for task in open_tasks if task.wanted_state == "Shutdown"), "")
    return replace(part, error=f"its node {lost} does not answer" if lost else "")


def _bad_part(part: ProjectPart, task: SwarmTask) -> ProjectPart:
    """Returns a part that its first failure ended; the list of tasks begins with the newest."""
    found = _EXIT.search(task.error)
    error = "" if found else task.error or f"its task is {task.state.lower()}"
    if error and docker_cli.is_about_an_image(error):
        error = docker_cli.create_words(error)
    if error and task.node:
        error = f"{error} (node {task.node})"
    exit_status = int(found[1]) if found else None
    return replace(part, phase=Phase.ENDED, exit_status=exit_status, error=error)


_PLAIN = frozenset({"labels", "name"})  # what a volume may say and still be like any other
_MOUNT_LENGTH = 2  # "data:/data"


def make_nameless(document: dict[str, Any], project: str) -> None:
    """Removes the names of volumes that one container alone uses, in the document itself.

    Each service must have a ``deploy``.
    """
    volumes, own = document.get("volumes") or {}, f"{project}_"
    services = document["services"].values()
    users = Counter(
        source
        for service in services
        for kind, source in map(mount_of, service.get("volumes") or [])
        if kind == "volume"
        for _ in range(_containers_on_a_node(service["deploy"]))
    )
    nameless = {
        name
        for name, body in volumes.items()
        if users[name] <= 1
        and (body or {}).keys() <= _PLAIN
        and str((body or {}).get("name", own)).startswith(own)
    }
    for service in services:
        mounts = [_without_name(mount, nameless) for mount in service.get("volumes") or []]
        if mounts:
            service["volumes"] = mounts
    used = {mount_of(mount)[1] for one in services for mount in one.get("volumes") or []}
    for name in nameless - used:
        del volumes[name]


def _containers_on_a_node(deploy: Mapping[str, Any]) -> int:
    return 1 if deploy["mode"] == "global" else int(deploy.get("replicas") or 1)


def _without_name(mount: object, nameless: set[str]) -> object:
    kind, source = mount_of(mount)
    if kind != "volume" or source not in nameless:
        return mount
    if isinstance(mount, dict):
        return {key: value for key, value in mount.items() if key != "source"}
    parts = str(mount).removesuffix(":rw").split(":")
    return parts[1] if len(parts) == _MOUNT_LENGTH else mount


FORMAT_VERSION = "3.8"
MODES = {"global": "global", "global-job": "global"}  # any other: replicated
STOPPED_LOOK_SECONDS = 0.3
STOP_SECONDS_MORE = 20.0  # than the grace: a node that is down never says that all has ended
LIST_TRIES = 5
STACK = "com.docker.stack.namespace"
INSPECT_TASK = ("inspect", "--type", "task")
_STOPPING = (".ID", ".Status.State", ".Spec.ContainerSpec.StopGracePeriod", ".NodeID")
_RUNNING = (".Status.State", ".Status.Timestamp")
_FINAL = frozenset({"complete", "failed", "shutdown", "rejected", "orphaned", "remove"})


class SwarmEngine(Engine):
    """Runs projects on a Swarm, through one of its managers."""

    name = SWARM
    look_seconds = 1.0
    logs_end = False
    replicas_are_parts = False
    parts_are_here = False
    network_driver = "overlay"
    log_command = ("service", "logs", "--raw")
    events_command = None  # a manager hears nothing of containers on other nodes
    # Containers of this node; other nodes see to theirs. Networks and volumes come after what
    # is not found without them (`remains`).
    kinds: ClassVar = {
        "container": PROJECT,
        "secret": STACK,
        "config": STACK,
        "network": PROJECT,
        "volume": PROJECT,
    }
    remove_rest_seconds = STOPPED_LOOK_SECONDS

    def __init__(self, cli: docker_cli.Cli) -> None:
        super().__init__(cli)
        self._facts: dict[str, ServiceFacts] = {}  # by name: what a service is does not change
        self._lacked_memory: dict[str, bool] = {}  # by name, of services that were killed

    async def place(self, document: dict[str, Any], spec: StageSpec) -> list[str]:
        """Puts the constraints of a stage, and what its labels mean, on each service.

        Raises BadStage if the Swarm would not do what the file says.
        """
        troubles = swarm_keys.swarm_troubles(document)
        if wrong := swarm_keys.refused(troubles):
            told = "; ".join(one.message for one in wrong[:FINDINGS_SHOWN_MAX])
            raise BadStage(f"a Swarm cannot run the compose file: {told}")
        labels = placement.asked_labels(document, spec)
        nodes = await self._nodes() if any(one.value is None for one in labels) else []
        found = [placement.constraints_of(label, nodes) for label in labels]
        added = [constraint for one in found for constraint in one.constraints]
        placement.place(document, [*spec.constraints, *added])
        return [one.note for one in found if one.note] + [one.seen for one in troubles]

    async def _nodes(self) -> list[placement.SwarmNode]:
        ids = (await self.cli.ask("node", "ls", "--quiet")).split()
        fields = (".ID", ".Description.Hostname", ".Spec.Labels")
        rows = await self.cli.inspect(("node", "inspect"), fields, ids)
        return [placement.SwarmNode(id_, name, labels or {}) for id_, name, labels in rows]

    def fit(self, document: dict[str, Any], plan: ProjectPlan, assignment: Assignment) -> None:
        """Changes a file so that services run once, to their end, on nodes that will do."""
        labels = literally(plan.tags.labels())
        # A Swarm judges a file by the version that it names; docker-compose reads all alike.
        document["version"] = FORMAT_VERSION
        document.pop("name", None)
        for service in document["services"].values():
            deploy = service["deploy"] = dict(service.get("deploy") or {})
            deploy["mode"] = MODES.get(str(deploy.get("mode")), "replicated")
            placement.move_limits(service, deploy)
            swarm_keys.fit_to_swarm(document, service)
            if "scale" in service:
                deploy.setdefault("replicas", service.pop("scale"))
            deploy["restart_policy"] = {"condition": "none"}
            deploy["labels"] = as_mapping(deploy.get("labels")) | labels
            resources = deploy.get("resources") or {}
            for share in (resources.get("limits"), resources.get("reservations")):
                if share and "cpus" in share:  # as a number, which docker refuses
                    share["cpus"] = str(share["cpus"])
            if not service.get("ports"):
                deploy["endpoint_mode"] = "dnsrr"  # works without IPVS on the nodes
            service["stop_grace_period"] = (
                f"{docker_cli.whole_seconds(assignment.task.max_termination_seconds)}s"
            )
        make_nameless(document, plan.project)

    async def create(
        self, plan: ProjectPlan, file: Path, files: Path, seconds_max: float
    ) -> None:
        """Deploys the project as a stack, which the Swarm starts at once."""
        del files
        answer = await self.cli.call(
            *(*self.cli.tied, self.cli.docker, "stack", "deploy", "--resolve-image", "never"),
            *("--with-registry-auth", "--compose-file", str(file), plan.project),
            seconds_max=seconds_max,
        )
        if answer.status != 0:
            said = replace(answer, err=docker_cli.without_chatter(answer.err)).words
            raise CannotCreate(docker_cli.create_words(said))

    async def look(self) -> Sightings:
        """Returns the projects whose services are there, each service judged by its tasks."""
        mark = ("--filter", f"label={RUNNER}={SWARM}")
        names = (await self.cli.ask("service", "ls", *mark, "--format", "{{.Name}}")).split()
        await self._learn_facts(names)
        known = [self._facts[name] for name in names if name in self._facts]
        rows = await self._task_rows([facts.name for facts in known])
        parts = []
        for facts in known:
            tasks = [row for row in rows if row.service == facts.name]
            parts.append((facts.tags, await self._with_memory(part_of(facts, tasks))))
        return sighted(parts)

    async def begins(self, parts: Sequence[ProjectPart]) -> list[str]:
        """Asks the manager since when tasks run; it knows that of those that still do."""
        tasks, fields = [one for part in parts for one in part.tasks], _RUNNING
        rows = await self.cli.inspect(INSPECT_TASK, fields, tasks) if tasks else []
        return [since for state, since in rows if state == "running"]

    async def start(self, parts: Sequence[ProjectPart]) -> None:
        """Does nothing: a Swarm starts by itself what it is given."""

    async def remove(self, project: str) -> None:
        """Removes the services of a project, then everything that they used."""
        await self.stop(project, 0.0)
        await super().remove(project)

    async def stop(self, project: str, grace_seconds: float) -> None:
        """Removes the services: a Swarm stops their containers with the grace they were made
        with, and kills them after it."""
        del grace_seconds
        mark = ("--filter", f"label={PROJECT}={project}")
        services = (await self.cli.ask("service", "ls", "--quiet", *mark)).split()
        if not services:
            return
        docker = self.cli.docker
        listed = await self.cli.call(
            docker, "service", "ps", "--quiet", "--no-trunc", *services
        )
        await self.cli.call(docker, "service", "rm", *services)
        await self._until_ended(listed.out.split())

    async def _until_ended(self, tasks: Sequence[str]) -> None:
        """Waits until no container of these tasks runs, as far as their nodes can say."""
        end_at: float | None = None
        while tasks:
            rows = await self.cli.inspect(INSPECT_TASK, _STOPPING, tasks)
            rows = [row for row in rows if row[1] not in _FINAL and row[3]]
            grace_seconds = max((row[2] or 10e9 for row in rows), default=0.0) / 1e9
            end_at = end_at or time.monotonic() + grace_seconds + STOP_SECONDS_MORE
            if not rows or time.monotonic() > end_at:
                return
            tasks = [row[0] for row in rows]
            await asyncio.sleep(STOPPED_LOOK_SECONDS)

    async def _with_memory(self, part: ProjectPart) -> ProjectPart:
        """Returns a part with whether it ran out of memory. A Swarm never says so; the engine
        of this node does, of its own containers."""
        if part.exit_status != KILLED:
            return part
        if part.id not in self._lacked_memory:
            fields = (".Status.ContainerStatus.ContainerID",)
            found = await self.cli.inspect(INSPECT_TASK, fields, part.tasks)
            containers = [id_ for (id_,) in found if id_]
            self._lacked_memory[part.id] = bool(await out_of_memory(self.cli, containers))
        return replace(part, out_of_memory=self._lacked_memory[part.id])

    async def _learn_facts(self, names: Sequence[str]) -> None:
        for gone in self._facts.keys() - set(names):
            del self._facts[gone]
            self._lacked_memory.pop(gone, None)
        unknown = [name for name in names if name not in self._facts]
        if not unknown:
            return
        fields = (".Spec.Name", ".Spec.Labels", ".Spec.Mode")
        for name, labels, mode in await self.cli.inspect(
            ("service", "inspect"), fields, unknown
        ):
            if PROJECT in labels:
                tags = Tags.read(SWARM, labels)
                short = name.removeprefix(f"{tags.project}_")
                wanted = (mode.get("Replicated") or {}).get("Replicas")
                self._facts[name] = ServiceFacts(
                    name=name, service=short, tags=tags, wanted=wanted
                )

    async def _task_rows(self, names: Sequence[str]) -> list[SwarmTask]:
        if not names:
            return []
        listing = (self.cli.docker, "service", "ps", "--no-trunc", "--format", "{{json .}}")
        answer = await self.cli.call(*listing, *names)
        for _ in range(LIST_TRIES):
            if "not found" not in answer.err.lower():
                break  # else one has gone during the list, which spoils it for all
            answer = await self.cli.call(*listing, *names)
        if answer.status != 0 and "no such service" not in answer.err.lower():
            raise docker_cli.EngineAway(f"docker service ps: {answer.words}")
        return [SwarmTask.read(row) for row in docker_cli.json_rows(answer.out)]
