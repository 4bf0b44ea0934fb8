"""Judges what a compose file asks of the host; the worker's owner may allow more (S26).

Theory of operation
-------------------
A caller that may speak to a container engine is root on its host, and a client that may submit
a stage speaks to it through the worker. So a file is judged after templating, interpolation and
merging, in the form that is then executed: nothing that is decided here can be changed
afterwards. Keys that are known to stay inside the container are listed; any other is refused,
known danger with its own words. ``before_resolving`` looks at the author's text alone for
what would make docker-compose itself read files of the host.

A job's containers see the job's own folder and its run's ``share`` and ``work``, nothing
else. Of two mounts one must not lie inside the other: a container that may write to a folder
could put a link in it, and the engine follows links when it mounts the other one.

An allowance is ``WHAT``, for every queue of the worker, or ``QUEUE:WHAT``. The worker's owner
says so, not the queue: its settings lie in the store, and the host is the worker's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import PurePosixPath
from typing import Any

from tidewheel.lazy_dataclasses import NamedTuple, dataclass

_VOLUME_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
SOCKETS = ("/var/run/docker.sock", "/run/docker.sock")  # where an engine listens
OWN_NETWORKS = frozenset({"host", "bridge", "none"})  # that an engine has by itself
MOUNT_TYPES = frozenset({"bind", "volume", "tmpfs", "image"})


class Denied(NamedTuple):
    """Describes something that a compose file asks for, and that must be allowed first."""

    what: str  # what would have to be allowed; "": nothing helps
    seen: str
    why: str

    @property
    def message(self) -> str:
        remedy = "leave it out"
        if self.what:
            remedy += f", or have the worker allow it (--allow-compose {self.what})"
        return f"{self.seen}: {self.why}; {remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFolders:
    """Names the folders, networks and volumes of the host that belong to the job."""

    files: str  # everything below it
    project: str  # what names of its own networks and volumes begin with
    folders: tuple[str, ...] = ()  # these, as a whole
    sockets: tuple[str, ...]  # of the engine
    root: str  # above all of these: no job can put a link on the way to it

    def holds(self, source: str) -> bool:
        """Says whether a path is the job's own, and not a link to something else."""
        path = os.path.normpath(source)
        named = path in self.folders or is_below(path, self.files)
        return named and self.link_on(path) is None

    def link_on(self, source: str) -> str | None:
        """Returns where a path below the root leads; None if no link is on the way.

        The engine follows links when it mounts: a job that puts one in the place of a folder
        of its run would move the mount of a later stage.
        """
        path = os.path.normpath(source)
        if not is_below(path, self.root):
            return None
        leads = os.path.realpath(path)
        plain = os.path.join(os.path.realpath(self.root), os.path.relpath(path, self.root))
        return None if leads == os.path.normpath(plain) else leads

    def names(self, real: str) -> bool:
        """Says whether a network or volume is the job's own.

        ``real`` is its full name, which docker-compose writes out.
        """
        return real.startswith(f"{self.project}_")


def is_below(path: str, folder: str) -> bool:
    """Says whether a path is this folder, or lies in it; neither may have `.` or `..` in it."""
    return path == folder or PurePosixPath(folder) in PurePosixPath(path).parents


def service_mounts(
    services: Mapping[str, Any], ground: HostFolders, handed_out: Iterable[str] = ()
) -> Iterator[Denied]:
    """Yields mounts of the host that are not the job's, and mounts that lie inside another."""
    mounts = []
    for name, service in services.items():
        for volume in (service or {}).get("volumes") or []:
            kind, source = mount_of(volume)
            if kind not in MOUNT_TYPES:
                seen = f"service {name}: a mount of type {kind}"
                yield Denied(
                    "bind-mounts", seen, "tidewheel cannot tell what it gives access to"
                )
            elif kind == "bind":
                mounts.append(source)
                yield from _mount(name, source, ground)
    yield from _nested([*mounts, *map(os.path.normpath, handed_out)])


def mount_of(volume: object) -> tuple[str, str]:
    """Returns the type and the source of a mount, which can be written in two ways.

    The path of a folder or file of the host is normalized: it has no `.` or `..` in it.
    """
    if isinstance(volume, dict):
        kind, source = str(volume.get("type", "volume")), str(volume.get("source") or "")
    else:
        source, colon, _ = str(volume).partition(":")
        kind, source = "volume", source if colon else ""
    is_path = bool(source) and not _VOLUME_NAME.fullmatch(source)
    is_bind = kind == "bind" or (kind == "volume" and is_path)
    return ("bind", os.path.normpath(source)) if is_bind else (kind, source)


def _mount(service: str, source: str, ground: HostFolders) -> Iterator[Denied]:
    seen = f"service {service}: the mount {source}"
    if source.endswith(".sock") or any(is_below(s, source) for s in ground.sockets):
        why = (
            "it would reach the engine or another service of the host, and could act as "
            "its root"
        )
        yield Denied("engine-socket", seen, why)
    if (leads := ground.link_on(source)) is not None:
        yield Denied("bind-mounts", seen, f"the path contains a link, which leads to {leads}")
    elif not ground.holds(source):
        yield Denied(
            "bind-mounts", seen, f"it lies outside the job's folder {ground.files}; use ./NAME"
        )


def _nested(paths: list[str]) -> Iterator[Denied]:
    sources = sorted(set(paths))
    for inner in sources:
        for outer in sources:
            if inner != outer and is_below(inner, outer):
                seen = f"the mount {inner} lies inside the mount {outer}"
                why = "a container could put a link in its place; mount only one of them"
                yield Denied("bind-mounts", seen, why)


def top_level_volumes(volumes: Mapping[str, Any], ground: HostFolders) -> Iterator[Denied]:
    """Yields named volumes that belong to others, or have drivers or options of their own."""
    for name, volume in volumes.items():
        body = volume or {}
        real = body.get("name")
        if body.get("external") or (real and not ground.names(real)):
            yield Denied("external", f"volume {name} is external", "it belongs to others")
        if body.get("driver") not in (None, "", "local"):
            seen = f"volume {name}: driver {body['driver']}"
            yield Denied(
                "volume-drivers", seen, "tidewheel cannot tell what it gives access to"
            )
        if body.get("driver_opts"):
            seen = f"volume {name}: driver_opts"
            yield Denied("volume-drivers", seen, "they can mount any folder of the host")


def top_level_files(
    kind: str, entries: Mapping[str, Any], ground: HostFolders
) -> Iterator[Denied]:
    """Yields secrets and configs that do not come from files in the job's folder."""
    for name, entry in entries.items():
        body = entry or {}
        if body.get("external") or body.get("driver") or body.get("template_driver"):
            yield Denied("external", f"{kind} {name} is external", "it belongs to others")
        if variable := body.get("environment"):
            seen = f"{kind} {name}: from the variable {variable}"
            yield Denied("external", seen, "variables of the worker are not for stages")
        file = body.get("file")
        if file and not ground.holds(str(file)):
            seen = f"{kind} {name}: the file {file}"
            yield Denied("files", seen, f"it lies outside the job's folder {ground.files}")


FINDINGS_SHOWN_MAX = 20

CONTAINERS_MAX = 100  # of a stage
MEMORY_FILES_BYTES_MAX = 1024**3  # of /dev/shm, and of each tmpfs
PROCESSES_MAX = 10_000  # of a container
ULIMITS_MAX = {"nofile": 1_048_576, "nproc": PROCESSES_MAX}
OTHER_ULIMITS_MAX = 8 * 1024**2

HARMLESS = frozenset(
    {"annotations", "attach", "blkio_config", "cap_drop", "command", "configs"}
    | {"container_name", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota"}
    | {"cpu_rt_period", "cpu_rt_runtime", "cpu_shares", "cpus", "cpuset", "depends_on"}
    | {"deploy", "dns", "dns_opt", "dns_search", "domainname", "entrypoint", "environment"}
    | {"expose", "extra_hosts", "group_add", "healthcheck", "hostname", "image", "init"}
    | {"isolation", "labels", "links", "mac_address", "mem_limit", "mem_reservation"}
    | {"mem_swappiness", "memswap_limit", "networks", "pids_limit", "platform", "ports"}
    | {"profiles", "pull_policy", "read_only", "restart", "scale", "secrets", "shm_size"}
    | {"stdin_open", "stop_grace_period", "stop_signal", "tmpfs", "tty", "ulimits", "user"}
    | {"volumes", "working_dir"}
)
TOP_LEVEL = frozenset(
    {"version", "name", "services", "networks", "volumes", "configs", "secrets"}
)
NETWORK_DRIVERS = frozenset({None, "", "bridge", "overlay", "default", "none"})
LOG_DRIVERS = frozenset({None, "", "json-file", "local", "journald"})

READS_FILES = frozenset({"env_file", "label_file", "credential_spec", "build", "extends"})
OWN_NETWORK_MODES = frozenset({"", "none", "bridge", "default"})  # or that of another service

Service = Mapping[str, Any]


class _Rule(NamedTuple):
    """Judges a key of a service by which it may reach out of the container."""

    what: str  # of config.ALLOWABLE
    is_bad: Callable[[Any], bool]
    why: str


def _is_host(value: object) -> bool:
    return value == "host" or str(value).startswith("container:")


def _is_foreign_network(value: object) -> bool:
    """Says whether a mode names a network that is not of the project itself."""
    mode = "" if value is None else str(value)
    return mode not in OWN_NETWORK_MODES and not mode.startswith("service:")


def _is_below_zero(value: object) -> bool:
    """Says whether an OOM score is negative: the kernel would kill others in its place. What is
    no number counts as negative, too."""
    try:
        return int(str(value)) < 0
    except ValueError:
        return True


def _is_risky_option(value: object) -> bool:
    safe = ("no-new-privileges", "no-new-privileges:true", "no-new-privileges=true")
    return isinstance(value, list) and any(one not in safe for one in value)


SERVICE_RULES: Mapping[str, _Rule] = {
    "privileged": _Rule("privileged", bool, "its processes would be root on the host"),
    "network_mode": _Rule(
        "host-network", _is_foreign_network, "it would be on a network that is not its own"
    ),
    "pid": _Rule(
        "host-pid", _is_host, "it would see and signal processes that are not its own"
    ),
    "ipc": _Rule(
        "host-ipc", _is_host, "it would share memory with processes that are not its own"
    ),
    "userns_mode": _Rule("host-userns", bool, "its root would be root on the host"),
    "uts": _Rule("host-userns", _is_host, "it could rename the host"),
    "cgroup": _Rule("host-userns", _is_host, "it would see the cgroups of the host"),
    "cgroup_parent": _Rule(
        "host-userns", bool, "it would escape the limits that are set for containers"
    ),
    "cap_add": _Rule("cap-add", bool, "it would have powers over the kernel"),
    "devices": _Rule("devices", bool, "it would reach devices of the host"),
    "device_cgroup_rules": _Rule("devices", bool, "it would reach devices of the host"),
    "gpus": _Rule("devices", bool, "it would reach devices of the host"),
    "security_opt": _Rule(
        "security-opt", _is_risky_option, "it would be less isolated from the host"
    ),
    "sysctls": _Rule("sysctls", bool, "it would change parameters of the kernel"),
    "volumes_from": _Rule("volumes-from", bool, "it would reach files of other containers"),
    "external_links": _Rule("external", bool, "it would reach containers of others"),
    "build": _Rule("build", bool, "an image would be built on the host; name a built image"),
    "extends": _Rule(
        "files", bool, "files of the host would be read; copy their text into this file"
    ),
    "env_file": _Rule("files", bool, "files of the host would be read; use environment"),
    "label_file": _Rule("files", bool, "files of the host would be read; use labels"),
    "runtime": _Rule("runtime", bool, "another runtime may isolate it less from the host"),
    "credential_spec": _Rule("files", bool, "files of the host would be read"),
    "oom_kill_disable": _Rule("privileged", bool, "it could take all memory of the host"),
    "oom_score_adj": _Rule(
        "privileged", _is_below_zero, "processes of the host would be killed in its place"
    ),
    "use_api_socket": _Rule("engine-socket", bool, "it would be root on the host"),
}


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNLIMITED = -1


def size_bytes(value: object) -> int:
    """Returns a size as docker reads it; what is no size, or below 0, counts as no limit."""
    found = _SIZE.fullmatch(str(value).strip())
    if found is None:
        return _UNLIMITED
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " "))


def _tmpfs_sizes(service: Service) -> Iterator[tuple[str, object]]:
    """Yields each tmpfs of a service with its size; "" if none is given."""
    given = service.get("tmpfs") or []
    for entry in [given] if isinstance(given, str) else given:
        yield str(entry).partition(":")[0], _tmpfs_size(str(entry))
    for volume in service.get("volumes") or []:
        if isinstance(volume, dict) and volume.get("type") == "tmpfs":
            size = (volume.get("tmpfs") or {}).get("size")
            yield str(volume.get("target")), "" if size is None else size


def _tmpfs_size(entry: str) -> str:
    """Returns the size among the options of a tmpfs, behind its path; "" if none is given."""
    options = entry.partition(":")[2].split(",")
    sizes = [one.removeprefix("size=") for one in options if one.startswith("size=")]
    return sizes[-1] if sizes else ""


def with_limits(document: Mapping[str, Any]) -> None:
    """Gives each tmpfs that has no size the one that it may have: an engine gives it half of
    the host's memory."""
    for service in (document.get("services") or {}).values():
        if given := service.get("tmpfs"):
            entries = [given] if isinstance(given, str) else given
            service["tmpfs"] = [_with_size(str(entry)) for entry in entries]
        for volume in service.get("volumes") or []:
            if isinstance(volume, dict) and volume.get("type") == "tmpfs":
                own = volume.get("tmpfs") or {}
                volume["tmpfs"] = {"size": MEMORY_FILES_BYTES_MAX} | own


def _with_size(entry: str) -> str:
    if _tmpfs_size(entry):
        return entry
    return f"{entry}{',' if ':' in entry else ':'}size={MEMORY_FILES_BYTES_MAX}"


def _amounts(service: Service) -> Iterator[tuple[str, int, int]]:
    """Yields what a service asks for that has a limit: its words, amount and limit."""
    if (shm := service.get("shm_size")) is not None:
        yield f"shm_size {shm}", size_bytes(shm), MEMORY_FILES_BYTES_MAX
    for path, size in _tmpfs_sizes(service):
        if size != "":
            yield f"tmpfs {path} of {size}", size_bytes(size), MEMORY_FILES_BYTES_MAX
    limits = ((service.get("deploy") or {}).get("resources") or {}).get("limits") or {}
    for count in (service.get("pids_limit"), limits.get("pids")):
        if count is not None:
            yield f"pids_limit {count}", _number(count), PROCESSES_MAX
    for name, given in (service.get("ulimits") or {}).items():
        values = given.values() if isinstance(given, dict) else [given]
        most = ULIMITS_MAX.get(name, OTHER_ULIMITS_MAX)
        for value in values:
            if (name, _number(value)) != ("core", 0):
                yield f"ulimit {name} {value}", _number(value), most


def _number(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        return _UNLIMITED


def _resources(services: Mapping[str, Service], *, is_swarm: bool) -> Iterator[Denied]:
    """Yields what is more than a stage may have of its host, and what has no limit at all."""
    containers = sum(replicas(service or {}) for service in services.values())
    if containers > CONTAINERS_MAX:
        seen = f"{containers} containers"
        yield Denied("limits", seen, f"a stage may have at most {CONTAINERS_MAX} on one host")
    for name, service in services.items():
        for seen, amount, most in _amounts(service or {}):
            if not 0 < amount <= most:
                why = f"expected 1 to {most}, because all jobs of the host share this"
                yield Denied("limits", f"service {name}: {seen}", why)
        for port in (service or {}).get("ports") or []:
            seen = f"service {name}: port {_port_text(port)}"
            if is_swarm:  # which does not heed the address
                why = "a Swarm publishes it on all addresses of its nodes"
                yield Denied("ports", seen, why)
            elif not _is_loopback(port):
                why = "others could reach it on the host's addresses; write 127.0.0.1:PORT:PORT"
                yield Denied("ports", seen, why)


def replicas(service: Service) -> int:
    """Returns how many containers a service asks for."""
    deployed = (service.get("deploy") or {}).get("replicas")
    wanted = service.get("scale") if deployed is None else deployed
    return 1 if wanted is None else _number(wanted)


def _port_text(port: object) -> str:
    if not isinstance(port, dict):
        return str(port)
    return ":".join(
        str(port[key]) for key in ("host_ip", "published", "target") if port.get(key)
    )


def _is_loopback(port: object) -> bool:
    """Says whether a port is published on a loopback address alone; without an address it is
    published on all of them."""
    if isinstance(port, dict):
        address = str(port.get("host_ip") or "")
    else:
        address = str(port).rpartition(":")[0].rpartition(":")[0]
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def findings(
    document: Mapping[str, Any],
    ground: HostFolders,
    allowed: frozenset[str],
    *,
    is_swarm: bool,
) -> list[str]:
    """Returns everything that a resolved file asks for and may not have, in words."""
    return _told(denials(document, ground, is_swarm=is_swarm), allowed)


def denials(
    document: Mapping[str, Any], ground: HostFolders, *, is_swarm: bool
) -> list[Denied]:
    """Returns everything that a resolved file asks for and that must be allowed first, where it
    is executed by a Swarm or by the engine beside the worker."""
    secrets, configs = document.get("secrets") or {}, document.get("configs") or {}
    found = [
        Denied("", f"the key {key}", "it is not known to be harmless")
        for key in document
        if key not in TOP_LEVEL and not str(key).startswith("x-")
    ]
    found += _networks(document.get("networks") or {}, ground)
    found += top_level_volumes(document.get("volumes") or {}, ground)
    found += top_level_files("secret", secrets, ground)
    found += top_level_files("config", configs, ground)
    services: Mapping[str, Service] = document.get("services") or {}
    for name, service in services.items():
        found += _service(name, service or {})
    # Files that containers get as secrets and configs are mounted as well.
    entries = [entry or {} for entry in (*secrets.values(), *configs.values())]
    handed_out = [str(entry["file"]) for entry in entries if entry.get("file")]
    found += service_mounts(services, ground, handed_out)
    found += _resources(services, is_swarm=is_swarm)
    return found


def before_resolving(document: Mapping[str, Any], allowed: frozenset[str]) -> list[str]:
    """Returns what is refused in the author's text already, before docker-compose reads it.

    docker-compose must not be shown keys that make it read files of the host; and what is
    written there cannot be taken back by merging.
    """
    return _told(early_denials(document), allowed)


def early_denials(document: Mapping[str, Any]) -> list[Denied]:
    """Returns what must be allowed before docker-compose may read the author's text."""
    found = []
    if document.get("include"):
        why = "files of the host would be read; copy their text into this file"
        found.append(Denied("files", "include", why))
    for name, service in document["services"].items():
        for key, value in service.items():
            rule = SERVICE_RULES.get(key)
            if rule is None or (key not in READS_FILES and "$" in str(value)):
                continue
            inside = key == "extends" and not (isinstance(value, dict) and value.get("file"))
            if rule.is_bad(value) and not inside:
                found.append(_denied(name, key, value))
    return found


def _service(name: str, service: Service) -> Iterator[Denied]:
    for key, value in service.items():
        rule = SERVICE_RULES.get(key)
        if rule is not None:
            if rule.is_bad(value):
                yield _denied(name, key, value)
        elif key == "logging":
            driver = (value or {}).get("driver")
            if driver not in LOG_DRIVERS:
                seen = f"service {name}: logging driver {driver}"
                yield Denied(
                    "logging", seen, "its output could not be read back; use json-file"
                )
        elif key not in HARMLESS and not key.startswith("x-"):
            seen = f"service {name}: {key}"
            yield Denied(
                "",
                seen,
                "tidewheel does not know whether this key has effects outside the container",
            )
    resources = (service.get("deploy") or {}).get("resources") or {}
    if (resources.get("reservations") or {}).get("devices"):
        seen = f"service {name}: deploy.resources.reservations.devices"
        yield Denied("devices", seen, "it would reach devices of the host")


def _denied(name: str, key: str, value: object) -> Denied:
    rule = SERVICE_RULES[key]
    shown = f" {value}" if isinstance(value, str | bool | int) else ""
    return Denied(rule.what, f"service {name}: {key}{shown}", rule.why)


def _networks(networks: Mapping[str, Any], ground: HostFolders) -> Iterator[Denied]:
    for name, network in networks.items():
        body = network or {}
        external, driver = body.get("external"), body.get("driver")
        real = body.get("name") or (external.get("name") if isinstance(external, dict) else "")
        if "host" in (driver, real) or (external and not real and name == "host"):
            seen = f"network {name} is the network of the host"
            yield Denied("host-network", seen, "containers would reach its local services")
            continue
        if external or (real and not ground.names(real)):
            seen = f"network {name} is external ({real or name})"
            yield Denied("external", seen, "it belongs to others")
        if driver not in NETWORK_DRIVERS:
            seen = f"network {name}: driver {driver}"
            yield Denied("host-network", seen, "it reaches interfaces of the host")
        if body.get("driver_opts"):
            seen = f"network {name}: driver_opts"
            yield Denied("host-network", seen, "they can reach interfaces of the host")
        ipam = body.get("ipam") or {}
        own_driver = (ipam.get("driver") or "default") != "default"
        # An engine makes a route to whatever address is named, also where the host has one.
        if ipam.get("config") or ipam.get("options") or own_driver:
            seen = f"network {name}: ipam"
            why = "it could take over addresses of the host's own networks"
            yield Denied("host-network", seen, why)


def _told(found: Iterable[Denied], allowed: frozenset[str]) -> list[str]:
    return [denied.message for denied in found if denied.what not in allowed]
