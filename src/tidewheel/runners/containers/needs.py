"""Finds what a compose file asks of its host, before any engine sees it (S26).

The policy has the last word, on the file as docker-compose resolves it. This is the same policy
on the file as its author wrote it, with paths as they will be, so that such a stage waits for a
worker that allows it, instead of being refused by one that does not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from tidewheel.config import COMPOSE, CONTAINERS, SWARM
from tidewheel.core.operator.definition import RUN_DIRECTORY
from tidewheel.core.queue.resources import COMPOSE_2_LABEL, allow_label
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.containers.placement import (
    NODE_LABELS,
    NodeConstraint,
    constraints_in,
    read_constraint,
)
from tidewheel.runners.containers.policy import (
    OWN_NETWORKS,
    SOCKETS,
    HostFolders,
    denials,
    early_denials,
    is_below,
    mount_of,
    replicas,
)
from tidewheel.runners.containers.swarm_keys import refused, swarm_troubles

ONLY_POINT = "1"  # of stages, which do not repeat
# Folders that no host has, in place of those that a job will have.
_ROOT = "/tidewheel-job"
_RUN, _HOME = f"{_ROOT}/run", "/home-of-nobody"
_FILES = f"{_RUN}/log/job/{ONLY_POINT}/stage/01/files"
_PATHS = {
    "${TIDEWHEEL_JOB_FILES}": _FILES,
    f"${{{RUN_DIRECTORY}}}": _RUN,
    "${HOME}": _HOME,
}
_FLAGS = frozenset({"external", "privileged", "oom_kill_disable", "use_api_socket"})
_FALSE = frozenset({"", "n", "no", "false", "off"})


def asked_of_host(document: object, task: str, *, is_for_swarm: bool) -> list[str]:
    """Returns what a worker must allow so that a compose file can be executed, in words of
    `config.ALLOWABLE`.

    The file is one that engines accept, with values in place of its variables; None asks for
    nothing. ``task`` is the name of the task in its run of stages; ``is_for_swarm`` says that
    only a Swarm can run it.
    """
    if not isinstance(document, dict):
        return []
    ground, written = _ground(task), _placed(document)
    found = [
        *early_denials(written),
        *denials(_resolved(written), ground, is_swarm=is_for_swarm),
    ]
    return sorted({one.what for one in found if one.what})


def _ground(task: str) -> HostFolders:
    return HostFolders(
        files=_FILES,
        project="\0",  # no name begins so
        folders=(f"{_RUN}/share", f"{_RUN}/work/{ONLY_POINT}/{task}"),
        sockets=SOCKETS,
        root=_ROOT,
    )


def mounted_of_host(document: object, task: str, *, is_long: bool) -> list[str]:
    """Returns the files and folders of the host, beside those of the job, that a compose file
    mounts in the long way (`type: bind`) or in the short one: an engine makes a folder that is
    not there for the short one alone, a Swarm for neither."""
    if not isinstance(document, dict):
        return []
    ground, services = _ground(task), _resolved(_placed(document))["services"].values()
    volumes = [one for each in services for one in each.get("volumes") or ()]
    mounts = [mount_of(one) for one in volumes if isinstance(one, dict) == is_long]
    paths = [source for kind, source in mounts if kind == "bind" and source != _TO_COME]
    return sorted({_as_written(one) for one in paths if not ground.holds(one)})


_TO_COME = "."  # the path of a mount that has no source yet, as `mount_of` has it


def folders_of_job(document: object) -> dict[str, str]:
    """Returns the folders of its job that a compose file mounts, by their paths from there,
    each with where a container finds it: they are new, and empty, for each job."""
    if not isinstance(document, dict):
        return {}
    found: dict[str, str] = {}
    for service in _resolved(_placed(document))["services"].values():
        for one in service.get("volumes") or ():
            kind, source = mount_of(one)
            if kind == "bind" and is_below(source, _FILES):
                inner = one.get("target") if isinstance(one, dict) else one.split(":")[1]
                found.setdefault(posixpath.relpath(source, _FILES), str(inner))
    return found


def _as_written(path: str) -> str:
    if path.startswith(f"{_ROOT}/"):
        return f"{posixpath.relpath(path, _FILES)} (from the job's folder)"
    return f"~{path.removeprefix(_HOME)}" if path.startswith(f"{_HOME}/") else path


# By driver: the option that says where logs are sent to, and what that is without it.
_RECEIVERS = {
    "fluentd": ("fluentd-address", "localhost:24224"),
    "gelf": ("gelf-address", ""),
    "splunk": ("splunk-url", ""),
    "syslog": ("syslog-address", ""),
}
_LATER = frozenset({"fluentd-async", "fluentd-async-connect"})  # options: not at the start


def log_receivers(document: object) -> list[str]:
    """Returns what must listen, and where, so that containers of a file can be started: engines
    connect to it before."""
    found: dict[str, None] = {}
    for service in _services(document) if isinstance(document, dict) else ():
        logging = service.get("logging")
        driver = str(logging.get("driver")) if isinstance(logging, dict) else ""
        options = logging.get("options") if isinstance(logging, dict) else None
        given = {str(key): str(value) for key, value in (options or {}).items()}
        option, usual = _RECEIVERS.get(driver, ("", ""))
        where = given.get(option, usual)
        is_later = any(given.get(one, "").lower() == "true" for one in _LATER)
        if where and not is_later and not where.startswith("udp:"):
            found[f"{driver} must listen at {where} for its logs"] = None
    return list(found)


def node_labels_of(document: object) -> list[str]:
    """Returns the labels with values, as NAME=VALUE, that nodes of a Swarm must have so that
    each service of a file has a node."""
    found = (_LABEL_CONSTRAINT.fullmatch(one) for one in _constraints(document))
    return list(dict.fromkeys(f"{one[1]}={one[2]}" for one in found if one is not None))


_LABEL_CONSTRAINT = re.compile(rf"\s*{re.escape(NODE_LABELS)}(\S+?)\s*==\s*(\S+)\s*")


def nodes_named(document: object) -> list[str]:
    """Returns the constraints of a file that only certain nodes of a Swarm meet: by name,
    address, engine or platform."""
    read = ((one, read_constraint(one)) for one in _constraints(document))
    found = (text.strip() for text, one in read if one is not None and _names_nodes(one))
    return list(dict.fromkeys(found))


def _names_nodes(one: NodeConstraint) -> bool:
    return one.wants and one.key.lower().startswith(_OF_CERTAIN_NODES)


# Neither the role, of which each Swarm has nodes, nor labels, which one can give.
_OF_CERTAIN_NODES = ("node.hostname", "node.id", "node.ip", "node.platform.", "engine.labels.")


def _constraints(document: object) -> list[str]:
    services = _services(document) if isinstance(document, dict) else []
    return [one for service in services for one in constraints_in(service)]


def published_ports(document: object) -> list[str]:
    """Returns the ports of the host that services of a file publish by their numbers, so that
    nothing else there may have them; not those for which an engine chooses a free one."""
    services = _services(document) if isinstance(document, dict) else []
    entries = (
        one
        for service in services
        if service.get("network_mode") != "host"
        for one in _entries(service, "ports")
    )
    return list(dict.fromkeys(filter(None, map(_published, entries))))


def _published(entry: object) -> str:
    """Returns the port of the host that one entry of `ports` takes; "" if any will do."""
    if isinstance(entry, dict):
        port, protocol = str(entry.get("published") or ""), str(entry.get("protocol") or "")
        is_one_of_many = "-" in port
    else:
        ends, _, protocol = str(entry).partition("/")
        outer, _, inner = ends.rpartition(":")
        port = outer.rpartition(":")[2]
        is_one_of_many = "-" in port and "-" not in inner
    if port in ("", "0") or is_one_of_many:
        return ""
    return f"{port}/{protocol}" if protocol not in ("", "tcp") else port


def own_overlays(document: object) -> list[str]:
    """Returns the networks, as their file calls them, that services are in and the file makes
    as overlays: only a Swarm has such."""
    if not isinstance(document, dict) or not isinstance(document.get("networks"), dict):
        return []
    used = {one for service in _services(document) for one in _joined(service)}
    return [
        str(name)
        for name, body in document["networks"].items()
        if name in used and isinstance(body, dict) and not _is_external(body)
        if body.get("driver") == "overlay"
    ]


def runner_for(document: object, *, is_for_swarm: bool) -> str:
    """Returns the name by which a stage with a compose file asks for its runner.

    ``is_for_swarm`` says that the stage itself asks for nodes that only a Swarm has. Secrets
    and configs that others made only a Swarm has, too. What no Swarm does as the file says is
    for the engine beside a worker. Else a file with overlays is for a Swarm: an engine that is
    in none cannot make them. So is one with a port of the host for several replicas, which only
    a Swarm shares among them.
    """
    if is_for_swarm or handed_by_swarm(document):
        return SWARM
    if refused(swarm_troubles(document)):
        return COMPOSE
    return SWARM if made_by_swarm(document) else CONTAINERS


def made_by_swarm(document: object) -> str:
    """Says what of a compose file only a Swarm makes, for a stage that one node may run; "" if
    an engine makes all of it."""
    if overlays := own_overlays(document):
        return (
            f"overlays, such as the network {overlays[0]}; to run on one engine, leave out "
            "driver:"
        )
    for service in _services(document) if isinstance(document, dict) else ():
        ports = published_ports({"services": {"": service}})
        if ports and replicas(service) > 1:
            return (
                f"one port for several replicas, such as {ports[0]}; to run on one engine, "
                "leave out the number of the port"
            )
    return ""


def compose_2_keys(
    document: object, newer: Sequence[str], *, is_for_swarm: bool
) -> tuple[str, ...]:
    """Returns the keys of a compose file for which it takes docker compose 2. ``newer`` are
    those that version 1 does not know; `configs` it knows, and leaves out, but for a Swarm."""
    if is_for_swarm or not isinstance(document, dict):
        return tuple(newer)
    dropped = ["configs"] if any(one.get("configs") for one in _services(document)) else []
    return (*newer, *dropped)


class External(NamedTuple):
    """Names something that a compose file uses and that has to be there before."""

    kind: str  # network, volume, secret, config or container
    name: str  # on the engine

    def sentence(self, runner: str) -> str:
        """Says where it must be, and how to make it there."""
        return f"{self} must exist on {_WHERE[runner]}{self.remedy(runner)}"

    def remedy(self, runner: str) -> str:
        """Returns the command that makes it, in brackets; none for a container."""
        if self.kind == "container":
            return ""
        name = quote(self.name)
        command = f"docker {self.kind} create {name}"
        overlay = f"docker network create --driver overlay --attachable {name}"
        if self.kind == "network":
            both = f"{command}; on a Swarm: {overlay}"
            command = {SWARM: overlay, COMPOSE: command}.get(runner, both)
        elif self.kind != "volume":
            command += " FILE"
        elif runner != COMPOSE:
            command += ", on each node of a Swarm"
        return f" ({command})"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


_WHERE = {
    COMPOSE: "the engine of the worker that runs the stage",
    SWARM: "the Swarm of the worker that runs the stage",
    CONTAINERS: "the engine or Swarm of the worker that runs the stage",
}


def handed_by_swarm(document: object) -> list[External]:
    """Returns the external secrets and configs that services of a file are handed: no engine
    has such, also none with docker compose 2."""
    return [one for one in externals(document) if one.kind in ("secret", "config")]


def externals(document: object) -> list[External]:
    """Returns all that a compose file uses and does not make, in the order of the file.

    The file may be one that no engine accepts. docker-compose looks for every external volume
    of the file, and for those networks, secrets and configs that a service uses. What each
    engine has by itself is not among them.
    """
    if not isinstance(document, dict):
        return []
    services = _services(document)
    found = list(_of_services(services))
    used: Mapping[str, set[str]] = {
        "networks": {one for service in services for one in _joined(service)},
        "secrets": {_source(one) for each in services for one in _entries(each, "secrets")},
        "configs": {_source(one) for each in services for one in _entries(each, "configs")},
    }
    for section in ("networks", "volumes", "secrets", "configs"):
        bodies = document.get(section)
        for key, body in bodies.items() if isinstance(bodies, dict) else ():
            if _is_external(body) and (section == "volumes" or key in used[section]):
                found.append(External(section.removesuffix("s"), real_name(str(key), body)))
    own = {External("network", name) for name in OWN_NETWORKS}
    return [one for one in dict.fromkeys(found) if one not in own]


def _of_services(services: Sequence[Mapping[str, Any]]) -> Iterator[External]:
    """Yields containers, and networks by their names, of others that services name."""
    for service in services:
        for key in ("network_mode", "pid", "ipc"):
            kind, colon, name = str(service.get(key) or "").partition(":")
            if kind == "container" and colon:
                yield External("container", name)
            elif key == "network_mode" and kind and not colon and kind != "default":
                yield External("network", kind)
        for link in _entries(service, "external_links"):
            yield External("container", str(link).partition(":")[0])
        for one in _entries(service, "volumes_from"):
            kind, colon, name = str(one).partition(":")
            if kind == "container" and colon:
                yield External("container", name.partition(":")[0])


def _services(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in document["services"].values() if isinstance(one, dict)]


def _joined(service: Mapping[str, Any]) -> list[str]:
    """Returns the networks of a service, as its file calls them."""
    if service.get("network_mode"):
        return []
    return [str(one) for one in _entries(service, "networks")] or ["default"]


def _entries(service: Mapping[str, Any], key: str) -> list[Any]:
    """Returns the entries of a list, or the keys of a mapping; none of anything else."""
    there = service.get(key)
    return list(there) if isinstance(there, list | dict) else []


def _source(entry: object) -> str:
    return str(entry.get("source") if isinstance(entry, dict) else entry)


def real_name(key: str, body: Mapping[str, Any] | None) -> str:
    """Returns the name on the engine of what a file calls by a key."""
    body = body or {}
    external = body.get("external")
    named = external.get("name") if isinstance(external, dict) else None
    return str(named or body.get("name") or key)


def _is_external(body: object) -> bool:
    return isinstance(body, dict) and bool(_flag(body.get("external")))


def need_labels(
    document: object, newer: Sequence[str], task: str, *, is_for_swarm: bool
) -> frozenset[str]:
    """Returns the labels of workers that can execute a compose file."""
    asked = asked_of_host(document, task, is_for_swarm=is_for_swarm)
    found = frozenset(map(allow_label, asked))
    keys = compose_2_keys(document, newer, is_for_swarm=is_for_swarm)
    return found | {COMPOSE_2_LABEL} if keys else found


def _placed(value: Any) -> Any:  # noqa: ANN401 - whatever a compose file holds
    """Returns a file with the folders of a job in place of the variables that name them."""
    if isinstance(value, dict):
        return {
            key: _flag(one) if key in _FLAGS else _placed(one) for key, one in value.items()
        }
    if isinstance(value, list):
        return [_placed(one) for one in value]
    if isinstance(value, str):
        for name, path in _PATHS.items():
            value = value.replace(name, path)
    return value


def _flag(value: object) -> object:
    return value.lower() not in _FALSE if isinstance(value, str) else value


def _resolved(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a file with paths as docker-compose makes them, without what it merges."""
    services = {
        name: _resolved_service(service) for name, service in document["services"].items()
    }
    files = {
        kind: {
            name: _with_path(body, "file") for name, body in (document.get(kind) or {}).items()
        }
        for kind in ("secrets", "configs")
    }
    return {**document, "services": services, **files}


def _resolved_service(service: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in service.items() if key != "extends"}
    if kept.get("volumes"):
        kept["volumes"] = [_resolved_mount(one) for one in kept["volumes"]]
    return kept


def _resolved_mount(volume: object) -> object:
    if isinstance(volume, dict):
        is_path = str(volume.get("source", "")).startswith((".", "~"))
        return _with_path(volume, "source") if is_path else volume
    source, colon, rest = str(volume).partition(":")
    is_path = bool(colon) and source.startswith((".", "~"))
    return f"{_path(source)}:{rest}" if is_path else volume


def _with_path(body: Any, key: str) -> Any:  # noqa: ANN401 - whatever a compose file holds
    if not isinstance(body, dict) or not body.get(key):
        return body
    return {**body, key: _path(str(body[key]))}


def _path(text: str) -> str:
    if text.startswith("~"):
        return f"{_HOME}{text[1:]}"
    return posixpath.normpath(posixpath.join(_FILES, text))
