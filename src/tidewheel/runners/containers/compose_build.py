"""Turns a task into the file that an engine executes: reads, resolves, judges, marks it.

``compose.yaml``   the author's text
``compose.json``   what is executed: the same after interpolation and merging, judged by the
                   policy, with our labels and variables
``project.json``   the plan, for an adopter of the job
``files/``         what relative paths of the file mean; mounts may lie here
``outputs/``       where containers beside the worker write values, see ``logs``

This is the one place beside the front ends that reads YAML (decision 0024): docker-compose 1.x
prints nothing else, and what a file would make docker-compose read from the host has to be
known before it does so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tidewheel.core.operator.definition import RUN_DIRECTORY, read_job_name
from tidewheel.ports.runners import Assignment
from tidewheel.runners.containers import policy
from tidewheel.runners.containers.block_network import attach, network_name
from tidewheel.runners.containers.docker_cli import Cli
from tidewheel.runners.containers.logs import SAY, SPEC, prefix_of
from tidewheel.runners.containers.needs import externals, handed_by_swarm, real_name
from tidewheel.runners.containers.policy import SOCKETS, HostFolders, is_below, mount_of
from tidewheel.runners.containers.project import (
    NAME_LENGTH_MAX,
    Condition,
    Engine,
    ProjectPlan,
    Tags,
    project_name,
)
from tidewheel.runners.containers.stage_spec import (
    BadStage,
    StageSpec,
    read_stage_spec,
    require_no_secrets,
)
from tidewheel.runners.job_directory import write_whole
from tidewheel.runners.job_environment import identity

NODES_MAX = 50_000  # counted as often as aliases repeat them
DEPTH_MAX = 32

Document = dict[str, Any]


class _Loader(yaml.CSafeLoader):
    """Loads YAML safely, and also refuses a key that is there twice."""


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    keys = [
        loader.construct_object(key)
        for key, _ in node.value
        if key.tag != "tag:yaml.org,2002:merge"
    ]
    twice = {str(key) for key in keys if isinstance(key, str | int) and keys.count(key) > 1}
    if twice:
        line = node.start_mark.line + 1
        raise BadStage(f"compose file, line {line}: {', '.join(sorted(twice))} is there twice")
    loader.flatten_mapping(node)
    return dict(loader.construct_pairs(node))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def read_compose_text(text: str) -> Document:
    """Returns the file as its author wrote it; raises BadStage if it is no compose file."""
    document = _read(text, "the compose file")
    services = document.get("services")
    if not isinstance(services, dict) or not services:
        raise BadStage(
            "the compose file has no services; expected a mapping with at least one service"
        )
    if bad := [name for name, body in services.items() if not isinstance(body, dict)]:
        raise BadStage(f"service {bad[0]}: it is not a mapping; expected one with an image")
    for body in (document, services, *services.values()):
        # Others that read the file may take such a key for a text, and see what we do not.
        if odd := [key for key in body if not isinstance(key, str)]:
            raise BadStage(
                f"the key {odd[0]!r} is not a string; write it plainly, or in quotes"
            )
    return document


def read_resolved(text: str) -> Document:
    """Returns the resolved file that docker-compose (YAML) or docker compose (JSON) printed."""
    if text.lstrip().startswith("{"):
        resolved = json.loads(text)
        assert isinstance(resolved, dict), "docker compose prints an object"
        return resolved
    return _read(text, "the answer of docker-compose")


def _read(text: str, what: str) -> Document:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise BadStage(f"{what} is empty; expected a mapping with services")
        _check_size(node)
        document = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise BadStage(f"{what} is not YAML: {_where(error)}") from None
    except RecursionError:
        raise BadStage(
            f"{what} is nested too deeply; at most {DEPTH_MAX} levels are accepted"
        ) from None
    if not isinstance(document, dict):
        raise BadStage(f"{what} is not a mapping; expected one with services")
    return document


def _check_size(root: yaml.Node) -> None:
    """Raises BadStage if a file is too large or too deep with every alias written out. A few
    lines can stand for a billion."""
    waiting, count = [(root, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > NODES_MAX:
            raise BadStage(
                f"the compose file has more than {NODES_MAX} values, aliases included"
            )
        if depth > DEPTH_MAX:
            raise BadStage(
                "the compose file is nested too deeply; "
                f"at most {DEPTH_MAX} levels are accepted"
            )
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                waiting += [(key, depth + 1), (value, depth + 1)]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(value, depth + 1) for value in node.value]


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    return problem if mark is None else f"line {mark.line + 1}: {problem}"


# Files of one attempt.
TEXT, EXECUTED, PLAN, FILES = "compose.yaml", "compose.json", "project.json", "files"
SPEC_BYTES_MAX = 64 * 1024  # of one variable
SERVICES_MAX = 200
REPLICAS_MAX = 1000
# How a job speaks to a server itself, with a token of its attempt, where there is a server.
VOICE = ("TIDEWHEEL_SERVER", "TIDEWHEEL_TOKEN")
FILES_MODE = 0o777  # for whichever user a container has; nobody else gets to it


async def prepare(
    engine: Engine, assignment: Assignment, allowed: frozenset[str], home: Path | None = None
) -> ProjectPlan:
    """Writes the files that an engine's ``create`` needs, and returns the plan of the project.

    Raises BadStage if the task is wrong.
    """
    task = assignment.task
    assert task.spec is not None, "the worker asks accepts() first"
    spec = read_stage_spec(task.spec)
    written = read_compose_text(spec.compose)
    sections = (written.get(kind) for kind in ("services", "networks", "secrets", "configs"))
    names = [str(name) for one in sections if isinstance(one, dict) for name in one]
    _refuse(policy.before_resolving(written, allowed))
    folder = assignment.directory
    (folder / FILES).mkdir(exist_ok=True)
    (folder / FILES).chmod(FILES_MODE)
    write_whole(folder / TEXT, spec.compose.encode(errors="replace"), mode=0o600)
    tags = Tags(
        runner=engine.name,
        project=project_name(assignment.store, task.id, task.attempt, max(map(len, names))),
        store=assignment.store,
        task_id=task.id,
        attempt=task.attempt,
    )
    variables = {  # that ${NAME} in a compose file can mean
        **identity(task),
        **assignment.environment,
        "TIDEWHEEL_JOB_FILES": str(folder / FILES),
    }
    document = await resolve(engine.cli, folder, tags.project, variables)
    _check_shape(document, tags.project)
    _drop_valueless(document, written)
    for service in document["services"].values():
        require_no_secrets(as_mapping(service.get("environment")))
    if told := literally(spec.environment):  # the task's own count more than the file's
        for service in document["services"].values():
            service["environment"] = as_mapping(service.get("environment")) | told
    ground = _ground(assignment, tags.project, engine.cli, home)
    is_swarm = not engine.parts_are_here
    _refuse(policy.findings(document, ground, allowed, is_swarm=is_swarm))
    lost = [] if is_swarm else _lost_in_version_1(document)
    if lost and not engine.cli.is_compose_2:
        raise BadStage(
            f"docker-compose 1 ignores {', '.join(lost)}; use docker compose 2 or a Swarm"
        )
    await require_externals(engine, document)
    if "limits" not in allowed:
        policy.with_limits(document)
    notes = await engine.place(document, spec)
    network = network_name(assignment) if spec.network_names else ""
    plan = replace(
        _plan(document, tags, prefix_of(assignment.secret), network, engine),
        notes=tuple(notes),
    )
    _mark(document, plan, _told_to_jobs(assignment, spec, plan))
    if network:
        is_new = engine.cli.is_compose_2 and engine.parts_are_here  # no stack on a Swarm
        attach(document, network, spec.network_names, is_compose_2=is_new)
    _make_mounts(document, folder, ground)
    engine.fit(document, plan, assignment)
    write_whole(folder / EXECUTED, json.dumps(document, indent=1).encode(), mode=0o600)
    write_whole(folder / PLAN, msgspec.json.encode(plan), mode=0o600)
    return plan


# How docker is asked for what others made: which of these are there, and what they are.
_ASKED = {
    "network": (("network", "inspect"), (".Name", ".Scope", ".Attachable")),
    "volume": (("volume", "inspect"), (".Name",)),
    "secret": (("secret", "inspect"), (".Spec.Name",)),
    "config": (("config", "inspect"), (".Spec.Name",)),
    "container": (("inspect", "--type", "container"), (".Name",)),
}


async def require_externals(engine: Engine, document: Document) -> None:
    """Raises BadStage, with all of them, if things that a resolved file uses and does not make
    are not there.

    Of volumes on other nodes of a Swarm nobody here knows. docker compose 2 takes an overlay
    that it does not see for one that comes with its first container.
    """
    cli, is_swarm = engine.cli, not engine.parts_are_here
    bodies = (document.get("networks") or {}).items()
    overlays = {
        real_name(key, one) for key, one in bodies if (one or {}).get("driver") == "overlay"
    }
    wanted = [
        one
        for one in externals(document)
        if one.kind not in (("volume",) if is_swarm else ("secret", "config"))
        and not (cli.is_compose_2 and not is_swarm and one.name in overlays)
    ]
    missing = [f"{one} needs a Swarm" for one in handed_by_swarm(document) if not is_swarm]
    for kind, (how, fields) in _ASKED.items():
        asked = [one for one in wanted if one.kind == kind]
        # What begins otherwise is no name, and could be an option of docker.
        names = [one.name for one in asked if one.name[:1].isalnum()]
        rows = await cli.inspect(how, fields, names) if names else []
        there = {str(name).removeprefix("/"): rest for name, *rest in rows}
        for one in asked:
            if trouble := _trouble(there.get(one.name), is_swarm=is_swarm):
                missing.append(f"{one} {trouble}{one.remedy(engine.name)}")
    if missing:
        told = "; ".join(missing)
        raise BadStage(
            f"the compose file uses something that must exist before it runs: {told}"
        )


def _trouble(found: list[Any] | None, *, is_swarm: bool) -> str:
    """Says why something cannot be used; "" if it can. ``found`` is what docker says of it
    beside its name: of a network its scope, and whether containers may join it."""
    if found is None:
        return f"does not exist on the {'Swarm' if is_swarm else 'engine'} of this worker"
    if not found:
        return ""
    scope, is_attachable = found
    if is_swarm and scope != "swarm":
        return "belongs to a single engine, and services of a Swarm cannot join it"
    if not is_swarm and scope == "swarm" and not is_attachable:
        return "belongs to a Swarm, and was made without --attachable"
    return ""


async def resolve(
    cli: Cli, folder: Path, project: str, variables: Mapping[str, str]
) -> Document:
    """Returns the compose file as docker-compose itself resolves it.

    Raises BadStage if docker-compose does not accept it.
    """
    answer = await cli.call(
        *cli.compose,
        *("-f", str(folder / TEXT), "-p", project, "--project-directory", str(folder / FILES)),
        *("config", *(("--format", "json") if cli.is_compose_2 else ())),
        environment=cli.plain_environment() | dict(variables),
    )
    if answer.status != 0:
        words = answer.words.replace(str(folder / TEXT), "compose file").replace("'./", "'")
        raise BadStage(f"docker-compose does not accept the compose file: {words}")
    document = read_resolved(answer.out)
    # Services with a profile are for people who ask for them, and nobody can here.
    # Version 2 prints `entrypoint: null`, which no Swarm reads.
    services = document["services"] = {
        name: {key: value for key, value in service.items() if value is not None}
        for name, service in (document.get("services") or {}).items()
        if not service.get("profiles")
    }
    if not services:
        raise BadStage(
            "every service of the compose file has a profile; remove the profile from at least "
            "one service"
        )
    return document


def read_plan(directory: Path) -> ProjectPlan | None:
    """Returns the plan that a dead worker left; None if the worker had not got so far."""
    try:
        kept = msgspec.json.decode((directory / PLAN).read_bytes())
        if "tags" not in kept:  # a worker of an earlier version wrote it
            kept = {"tags": {**kept, "task_id": kept["task"]}, **kept}
        return msgspec.convert(kept, ProjectPlan)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse(findings: list[str]) -> None:
    if findings:
        shown = findings[: policy.FINDINGS_SHOWN_MAX]
        raise BadStage("the compose file is refused: " + "; ".join(shown))


def judge_mounts(
    engine: Engine, assignment: Assignment, plan: ProjectPlan, home: Path | None
) -> None:
    """Raises BadStage if a link was put on the way to a mount since the file was judged."""
    ground = _ground(assignment, plan.project, engine.cli, home)
    document = json.loads((assignment.directory / EXECUTED).read_bytes())
    for service in document["services"].values():
        for kind, source in map(mount_of, service.get("volumes") or []):
            if kind == "bind" and (leads := ground.link_on(source)) is not None:
                raise BadStage(f"the mount {source} was replaced by a link to {leads}")


def _ground(assignment: Assignment, project: str, cli: Cli, home: Path | None) -> HostFolders:
    folder = assignment.directory
    folders: tuple[str, ...] = ()
    root = folder.parent if home is None else home
    if run := assignment.environment.get(RUN_DIRECTORY):
        # Not the share folder of its point: a container of another stage that has all of share
        # could put a link in its place, and the engine would follow it.
        below = ("share", read_job_name(assignment.task.id).work_folder)
        folders = tuple(f"{run}/{one}" for one in below)
        root = Path(run).parent if home is None else home
    return HostFolders(
        files=str(folder / FILES),
        project=project,
        folders=folders,
        sockets=(*SOCKETS, *cli.sockets),
        root=str(root),
    )


def _check_shape(document: Document, project: str) -> None:
    services = document["services"]
    if len(services) > SERVICES_MAX:
        raise BadStage(
            f"the stage has {len(services)} services; at most {SERVICES_MAX} are accepted"
        )
    for name, service in services.items():
        if not service.get("image"):
            raise BadStage(f"service {name} has no image; name the image that it runs")
        if len(project) + 1 + len(name) > NAME_LENGTH_MAX:
            room = NAME_LENGTH_MAX - len(project) - 1
            raise BadStage(f"service {name}: the name is too long; up to {room} characters fit")
        if not 1 <= policy.replicas(service) <= REPLICAS_MAX:
            raise BadStage(
                f"service {name} has {policy.replicas(service)} replicas; expected 1 to "
                f"{REPLICAS_MAX}"
            )


def _lost_in_version_1(document: Document) -> list[str]:
    """Returns what docker-compose 1 leaves out of containers without saying so: configs, and
    secrets that do not come from a file."""
    secrets = document.get("secrets") or {}
    from_files = {name for name, body in secrets.items() if (body or {}).get("file")}
    found = {
        f"{kind} ({source} of service {name})"
        for name, service in document["services"].items()
        for kind in ("configs", "secrets")
        for source in map(_source, service.get(kind) or [])
        if kind == "configs" or source not in from_files
    }
    return sorted(found)


def _source(entry: object) -> str:
    return str(entry.get("source") if isinstance(entry, dict) else entry)


def _drop_valueless(document: Document, written: Document) -> None:
    """Drops variables that the file only names, as HOME: docker-compose gave them its own."""
    for name, service in document["services"].items():
        valueless = _valueless((written["services"].get(name) or {}).get("environment"))
        told = as_mapping(service.get("environment"))
        if not valueless.isdisjoint(told):
            service["environment"] = {k: v for k, v in told.items() if k not in valueless}


def _valueless(environment: object) -> set[str]:
    if isinstance(environment, dict):
        return {str(name) for name, value in environment.items() if value is None}
    entries = environment if isinstance(environment, list) else []
    return {str(entry) for entry in entries if "=" not in str(entry)}


def _plan(
    document: Document, tags: Tags, prefix: str, network: str, engine: Engine
) -> ProjectPlan:
    services = document["services"]
    counts = {name: policy.replicas(service) for name, service in services.items()}
    return ProjectPlan(
        tags=tags,
        prefix=prefix,
        network=network,
        parts=counts if engine.replicas_are_parts else dict.fromkeys(services, 1),
        needs={name: _needs(service) for name, service in services.items()},
    )


def _needs(service: Mapping[str, Any]) -> dict[str, Condition]:
    needs: dict[str, Condition] = {}
    for link in service.get("links") or []:
        needs[str(link).partition(":")[0]] = Condition.STARTED
    for mode in ("network_mode", "pid", "ipc"):
        kind, _, other = str(service.get(mode, "")).partition(":")
        if kind == "service":
            needs[other] = Condition.STARTED
    given = service.get("depends_on") or {}
    for other in given:
        told = given[other] if isinstance(given, dict) else {}
        word = (told or {}).get("condition", Condition.STARTED.value)
        needs[other] = Condition(word)
    return needs


def _told_to_jobs(assignment: Assignment, spec: StageSpec, plan: ProjectPlan) -> dict[str, str]:
    voice = {name: assignment.environment.get(name) for name in VOICE}
    told = {**identity(assignment.task), SAY: plan.prefix}
    told |= {name: value for name, value in voice.items() if value is not None}
    if len(spec.rest) <= SPEC_BYTES_MAX:
        told[SPEC] = spec.rest
    return told


def _mark(document: Document, plan: ProjectPlan, told: Mapping[str, str]) -> None:
    """Puts the labels of the attempt on everything, and its variables into each container."""
    own, variables = literally(plan.tags.labels()), literally(told)
    for service in document["services"].values():
        service["labels"] = as_mapping(service.get("labels")) | own
        # Of variables without a value docker-compose would take its own: the worker's.
        given = as_mapping(service.get("environment")).items()
        has_value = {name: value for name, value in given if value is not None}
        service["environment"] = has_value | variables
        for key in ("container_name", "restart", "depends_on", "profiles"):
            service.pop(key, None)
    networks = document["networks"] = document.get("networks") or {}
    networks.setdefault("default", None)
    for kind in ("networks", "volumes"):
        for name, body in (document.get(kind) or {}).items():
            if not (body or {}).get("external"):
                marked = as_mapping((body or {}).get("labels")) | own
                document[kind][name] = {**(body or {}), "labels": marked}


def literally(values: Mapping[str, str]) -> dict[str, str]:
    """Returns texts with each $ escaped: the file is read again, and a $ begins a variable."""
    return {name: value.replace("$", "$$") for name, value in values.items()}


def as_mapping(entries: object) -> dict[str, Any]:
    """Returns labels or variables as a mapping, also where they are a list of NAME=VALUE."""
    if isinstance(entries, dict):
        return dict(entries)
    pairs = (str(entry).partition("=") for entry in entries or [])  # type: ignore[attr-defined]
    return {name: value for name, _, value in pairs}


def _make_mounts(document: Document, folder: Path, ground: HostFolders) -> None:
    """Makes the folders that are mounted and are no others' than the job's and its run's.

    Those below ``files`` an engine would make root's; those beside it, which a worker allows,
    an engine makes and a Swarm does not.
    """
    for service in document["services"].values():
        for volume in service.get("volumes") or []:
            kind, source = mount_of(volume)
            if kind != "bind" or not is_below(source, ground.root):
                continue
            path = Path(source)
            if is_below(source, str(folder / FILES)):
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(FILES_MODE)
            elif ground.link_on(source) is None and not path.exists():
                path.mkdir(parents=True)
