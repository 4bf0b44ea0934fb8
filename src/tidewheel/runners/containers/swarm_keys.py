"""Judges what a Swarm makes of a compose file: what it refuses, and what it leaves out.

docker-compose takes much that a Swarm does not. Some of it a Swarm refuses; some it leaves out
and starts the containers all the same, on another network or with fewer powers than the file
says. What changes what a container reaches, or how it is confined, is refused here before the
Swarm sees it; what only tunes a container is left out, and told. What a Swarm can do under
another name is put there (`placement.move_limits`, `fit_to_swarm`).

The file is judged as its author wrote it, when a definition is validated, and again as
docker-compose resolves it, right before it is executed. A test asks the real docker about each
key of a service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.containers.placement import (
    constraint_is_readable,
    constraints_in,
    contradiction,
)
from tidewheel.runners.containers.policy import size_bytes

Path = tuple[str, ...]
HOST_NETWORK = "tidewheel-host"  # the name in the file of the network of the host
_HOST = "host"
NETWORK_NAME_LENGTH_MAX = 49  # what is left of 63 beside `tw-DIGEST_`
_DEFAULT = "default"  # the network of services that name none


class SwarmTrouble(NamedTuple):
    """Describes a key that means something else on a Swarm, or nothing."""

    path: Path  # of the key, in the file
    is_refused: bool  # else it is left out, and the stage runs without it
    seen: str
    hint: str

    @property
    def message(self) -> str:
        return f"{self.seen}; {self.hint}"


class _Rule(NamedTuple):
    """Says when a key of a service cannot be had on a Swarm, and why."""

    is_lost: Callable[[Any], bool]
    why: str


def _is_shared(value: object) -> bool:
    return str(value) == _HOST or str(value).startswith(("container:", "service:"))


def _is_other_network(value: object) -> bool:
    return str(value) not in ("", "None", "bridge", "default", _HOST)


_UNKNOWN = "a Swarm does not know this key"
_DROPPED = "a Swarm ignores this key"
_POWERS = "a Swarm ignores this key: the containers run without what it asks for"
_CONFINED = "a Swarm ignores this key, and isolates its containers differently"
REMOVE = "remove it"

# Without these a container is not what its file says, so that no Swarm is to run it.
REFUSED: Mapping[str, _Rule] = {
    **dict.fromkeys(("annotations", "device_cgroup_rules", "dns_opt"), _Rule(bool, _UNKNOWN)),
    **dict.fromkeys(("gpus", "group_add", "runtime"), _Rule(bool, _UNKNOWN)),
    **dict.fromkeys(("use_api_socket", "volumes_from"), _Rule(bool, _UNKNOWN)),
    **dict.fromkeys(("cgroup", "uts"), _Rule(bool, _UNKNOWN)),
    **dict.fromkeys(("devices", "privileged"), _Rule(bool, _POWERS)),
    **dict.fromkeys(("cgroup_parent", "security_opt", "userns_mode"), _Rule(bool, _CONFINED)),
    **dict.fromkeys(("ipc", "pid"), _Rule(_is_shared, _DROPPED)),
    "external_links": _Rule(bool, _DROPPED),
    "network_mode": _Rule(
        _is_other_network, "a Swarm ignores this key and uses another network"
    ),
}
# Without these, which tune a container on one engine, it runs as well, or nearly.
LEFT_OUT = (
    *("blkio_config", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota", "cpu_rt_period"),
    *("cpu_rt_runtime", "cpu_shares", "cpuset", "domainname", "mac_address", "mem_swappiness"),
    *("memswap_limit", "oom_kill_disable", "oom_score_adj", "pids_limit", "platform"),
    "pull_policy",
)
_OF_NETWORKS = (
    *("priority", "link_local_ips", "mac_address", "driver_opts"),
    *("gw_priority", "interface_name"),
)
_NOT_OF_SWARMS = ("bridge", "none")  # drivers of networks on one host
_STARTED = "service_started"


def swarm_troubles(document: object, constraints: Sequence[str] = ()) -> list[SwarmTrouble]:
    """Returns all that a Swarm does not do of a compose file; None has nothing of the kind.

    ``constraints`` are those that a stage itself adds to each service.
    """
    services = document.get("services") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(services, dict):
        return []
    found: list[SwarmTrouble] = []
    for name, service in services.items():
        if isinstance(service, dict):
            path = ("services", str(name))
            found += _service(path, service)
            found += _ordered(path, service)
            found += _nested(path, service)
            found += _placed(path, service, constraints)
    return [*found, *_networks(document.get("networks"), _used_networks(services))]


def refused(troubles: Sequence[SwarmTrouble]) -> list[SwarmTrouble]:
    """Returns those for which no Swarm is to run a file."""
    return [one for one in troubles if one.is_refused]


def _named(path: Path) -> str:
    return ".".join(path)


def _service(path: Path, service: Mapping[str, Any]) -> Iterator[SwarmTrouble]:
    for key, value in service.items():
        rule = REFUSED.get(key)
        if rule is not None and rule.is_lost(value):
            yield SwarmTrouble(
                (*path, key), True, f"{_named((*path, key))}: {rule.why}", REMOVE
            )
        elif key in LEFT_OUT:
            seen = f"{_named((*path, key))}: {_UNKNOWN} and ignores it"
            yield SwarmTrouble((*path, key), False, seen, REMOVE)


def _ordered(path: Path, service: Mapping[str, Any]) -> Iterator[SwarmTrouble]:
    """Yields what asks for an order of services: a Swarm starts all of them at once."""
    given = service.get("depends_on") or ()
    place = (*path, "depends_on")
    told = given.values() if isinstance(given, dict) else ()
    conditions = [one.get("condition", _STARTED) for one in told if isinstance(one, dict)]
    late = [one for one in conditions if one != _STARTED]
    if late:
        seen = f"{_named(place)} waits for {late[0]}: a Swarm starts all services at once"
        hint = "make a separate stage of each service, one after the other"
        yield SwarmTrouble(place, True, seen, hint)
    elif given:
        seen = f"{_named(place)}: a Swarm starts all services at once"
        hint = (
            "let the service itself wait for the other service, or make a separate stage of "
            "each service"
        )
        yield SwarmTrouble(place, False, seen, hint)
    for link in service.get("links") or ():
        other, _, alias = str(link).partition(":")
        if alias and alias != other:
            seen = (
                f"{_named((*path, 'links'))}: a Swarm ignores this key, so no service is found "
                f"as {alias}"
            )
            hint = f"give {other} the alias {alias} in a network: networks.NAME.aliases"
            yield SwarmTrouble((*path, "links"), True, seen, hint)


def _nested(path: Path, service: Mapping[str, Any]) -> Iterator[SwarmTrouble]:
    """Yields keys below those of a service that a Swarm does not know."""
    found: list[Path] = []
    networks = service.get("networks")
    for name, body in networks.items() if isinstance(networks, dict) else ():
        there = body if isinstance(body, dict) else {}
        found += [("networks", str(name), key) for key in _OF_NETWORKS if key in there]
        for key in ("ipv4_address", "ipv6_address"):
            if there.get(key):
                place = (*path, "networks", str(name), key)
                seen = f"{_named(place)}: a Swarm chooses addresses itself"
                yield SwarmTrouble(place, False, seen, REMOVE)
    resources = _at(service, "deploy", "resources")
    if _at(resources, "reservations").get("devices"):
        found.append(("deploy", "resources", "reservations", "devices"))
    if "pids" in _at(resources, "limits"):
        found.append(("deploy", "resources", "limits", "pids"))
    if "start_interval" in _at(service, "healthcheck"):
        found.append(("healthcheck", "start_interval"))
    for one in dict.fromkeys(found):
        place = (*path, *one)
        yield SwarmTrouble(place, True, f"{_named(place)}: {_UNKNOWN}", REMOVE)


def _at(body: object, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        body = body.get(key) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else {}


def _placed(
    path: Path, service: Mapping[str, Any], constraints: Sequence[str]
) -> Iterator[SwarmTrouble]:
    """Yields constraints that no node can meet."""
    own = constraints_in(service)
    place = (*path, "deploy", "placement", "constraints")
    for one in own:
        if "{{" not in one and not constraint_is_readable(one):
            seen = f"{_named(path)} has the constraint {one!r}, which no Swarm can read"
            hint = (
                "expected NAME == VALUE or NAME != VALUE, with node.id, node.hostname, "
                "node.role, node.platform.os, node.platform.arch, node.ip, node.labels.LABEL "
                "or engine.labels.LABEL"
            )
            yield SwarmTrouble(place, True, seen, hint)
    if (two := contradiction([*own, *constraints])) is not None:
        seen = f"{_named(path)}: no node can meet both {two[0]!r} and {two[1]!r}"
        hint = "remove one of the constraints, or the label of the stage"
        yield SwarmTrouble(place, True, seen, hint)


def _networks(networks: object, used: set[str]) -> Iterator[SwarmTrouble]:
    """Yields what no Swarm makes of networks; it makes those that services are in."""
    for name, body in networks.items() if isinstance(networks, dict) else ():
        there = body if isinstance(body, dict) else {}
        path = ("networks", str(name))
        external = there.get("external")
        real = _at(external).get("name") or there.get("name") or name
        if name not in used:
            continue
        if external and real == "none":
            yield SwarmTrouble(path, True, f"{_named(path)}: no Swarm has that network", REMOVE)
        elif there.get("driver") in _NOT_OF_SWARMS and not external:
            seen = f"{_named(path)}.driver is {there['driver']}: it does not reach other nodes"
            yield SwarmTrouble((*path, "driver"), True, seen, "remove it, or write overlay")
        elif len(str(real)) > NETWORK_NAME_LENGTH_MAX and not external:
            seen = f"{_named(path)}: its name has {len(str(real))} characters"
            hint = f"up to {NETWORK_NAME_LENGTH_MAX} fit on a Swarm"
            yield SwarmTrouble(path, True, seen, hint)
        ipam = _at(there, "ipam")
        entries = [one for one in ipam.get("config") or () if isinstance(one, dict)]
        found: list[Path] = [("enable_ipv6",)] if "enable_ipv6" in there else []
        found += [("ipam", "options")] if "options" in ipam else []
        found += [("ipam", "config", key) for one in entries for key in one if key != "subnet"]
        for place in dict.fromkeys(found):
            seen = f"{_named((*path, *place))}: {_UNKNOWN}"
            yield SwarmTrouble((*path, *place), True, seen, REMOVE)


def _used_networks(services: Mapping[str, Any]) -> set[str]:
    bodies = [one for one in services.values() if isinstance(one, dict)]
    return {name for one in bodies for name in one.get("networks") or (_DEFAULT,)}


# What a Swarm can do, but under another name.

_SAY_NOTHING = (*REFUSED, "attach", "expose", "links")  # what is there and was not refused
_OF_PORTS = ("target", "published", "protocol", "mode")
_ONCE = ("update_config", "rollback_config")  # of services that live on
_SHARED_MEMORY = "/dev/shm"


def fit_to_swarm(document: dict[str, Any], service: dict[str, Any]) -> None:
    """Changes a resolved service in place, so that a Swarm does what its file says."""
    if service.pop("network_mode", None) == _HOST:
        networks = document["networks"] = document.get("networks") or {}
        networks[HOST_NETWORK] = {"external": True, "name": _HOST}
        service["networks"] = {HOST_NETWORK: None}
    if (size := service.pop("shm_size", None)) is not None:
        mounted = {
            "type": "tmpfs",
            "target": _SHARED_MEMORY,
            "tmpfs": {"size": size_bytes(size)},
        }
        service["volumes"] = [*(service.get("volumes") or []), mounted]
    if ports := service.get("ports"):
        service["ports"] = list(map(_port, ports))
    for key in (*LEFT_OUT, *_SAY_NOTHING):
        service.pop(key, None)
    for key in _ONCE:
        service["deploy"].pop(key, None)


def _port(port: object) -> object:
    """Returns a port as a Swarm reads it: on all addresses, which the policy has judged."""
    if not isinstance(port, dict):
        return port
    kept = {key: value for key, value in port.items() if key in _OF_PORTS}
    if str(kept.get("published", "")).isdecimal():  # which docker compose 2 writes as a text
        kept["published"] = int(kept["published"])
    return kept
