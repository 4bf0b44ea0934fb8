"""What a compose file may not ask of the host, unless the worker's owner allows it (S26).

Theory of operation
-------------------
Whoever may speak to a container engine is root on its host, and whoever may submit a stage
speaks to it through the worker. So a file is judged after templating, interpolation and
merging, in the form that is then executed: nothing that is decided here can be changed
afterwards. Keys that are known to stay inside the container are listed; any other is refused,
known danger with its own words. ``before_resolving`` looks at the author's text alone for
what would make docker-compose itself read files of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tidewheel.runners.engine.policy_mounts import (
    Denied,
    Ground,
    service_mounts,
    top_level_files,
    top_level_volumes,
)

FINDINGS_SHOWN_MAX = 20

# What a worker may be told to allow, and what that means.
ALLOWABLE: Mapping[str, str] = {
    "privileged": "privileged containers: root of the host",
    "host-network": "the network of the host, its interfaces and its local services",
    "host-pid": "the processes of the host",
    "host-ipc": "the shared memory of the host",
    "host-userns": "the users of the host, and its host name and cgroups",
    "cap-add": "added kernel capabilities",
    "devices": "devices of the host, GPUs among them",
    "security-opt": "security options, such as running unconfined",
    "sysctls": "kernel parameters",
    "engine-socket": "the engine itself: root of the host",
    "bind-mounts": "folders and files of the host outside the job's own",
    "volumes-from": "volumes of other containers",
    "external": "networks, volumes, secrets and configs that others made",
    "volume-drivers": "volumes with drivers or options of their own, which can mount anything",
    "logging": "other log drivers: the logs of the job will be missing",
    "build": "building images on the host",
    "files": "env_file, extends and include: reading files of the host",
    "runtime": "other container runtimes",
}

HARMLESS = frozenset(
    [
        "annotations",
        "attach",
        "blkio_config",
        "cap_drop",
        "command",
        "configs",
        "container_name",
        "cpu_count",
        "cpu_percent",
        "cpu_period",
        "cpu_quota",
        "cpu_rt_period",
        "cpu_rt_runtime",
        "cpu_shares",
        "cpus",
        "cpuset",
        "depends_on",
        "deploy",
        "dns",
        "dns_opt",
        "dns_search",
        "domainname",
        "entrypoint",
        "environment",
        "expose",
        "extra_hosts",
        "group_add",
        "healthcheck",
        "hostname",
        "image",
        "init",
        "isolation",
        "labels",
        "links",
        "mac_address",
        "mem_limit",
        "mem_reservation",
        "mem_swappiness",
        "memswap_limit",
        "networks",
        "pids_limit",
        "platform",
        "ports",
        "profiles",
        "pull_policy",
        "read_only",
        "restart",
        "scale",
        "secrets",
        "shm_size",
        "stdin_open",
        "stop_grace_period",
        "stop_signal",
        "tmpfs",
        "tty",
        "ulimits",
        "user",
        "volumes",
        "working_dir",
    ]
)
TOP_LEVEL = frozenset(
    {"version", "name", "services", "networks", "volumes", "configs", "secrets"}
)
NETWORK_DRIVERS = frozenset({None, "", "bridge", "overlay", "default", "none"})
LOG_DRIVERS = frozenset({None, "", "json-file", "local", "journald"})

READS_FILES = frozenset({"env_file", "label_file", "credential_spec", "build", "extends"})
OWN_NETWORK_MODES = frozenset({"", "none", "bridge", "default"})  # or that of another service

Service = Mapping[str, Any]


class Rule(NamedTuple):
    """A key of a service that reaches out of the container."""

    what: str  # of ALLOWABLE
    is_bad: Callable[[Any], bool]
    why: str


def _is_host(value: object) -> bool:
    return value == "host" or str(value).startswith("container:")


def _is_foreign_network(value: object) -> bool:
    """Any other word is the name of a network that is there, whoever made it."""
    mode = "" if value is None else str(value)
    return mode not in OWN_NETWORK_MODES and not mode.startswith("service:")


def _is_below_zero(value: object) -> bool:
    """Whether others would be killed before it; what is no number is as good as that."""
    try:
        return int(str(value)) < 0
    except ValueError:
        return True


def _is_set(value: object) -> bool:
    return bool(value)


def _is_risky_option(value: object) -> bool:
    safe = ("no-new-privileges", "no-new-privileges:true", "no-new-privileges=true")
    return isinstance(value, list) and any(one not in safe for one in value)


SERVICE_RULES: Mapping[str, Rule] = {
    "privileged": Rule("privileged", _is_set, "its processes would be root of the host"),
    "network_mode": Rule(
        "host-network", _is_foreign_network, "it would be on a network not its own"
    ),
    "pid": Rule("host-pid", _is_host, "it would see and signal processes not its own"),
    "ipc": Rule("host-ipc", _is_host, "it would share memory with processes not its own"),
    "userns_mode": Rule("host-userns", _is_set, "its root would be root of the host"),
    "uts": Rule("host-userns", _is_host, "it could rename the host"),
    "cgroup": Rule("host-userns", _is_host, "it would see the cgroups of the host"),
    "cgroup_parent": Rule(
        "host-userns", _is_set, "it would leave the limits set for containers"
    ),
    "cap_add": Rule("cap-add", _is_set, "it would have powers over the kernel"),
    "devices": Rule("devices", _is_set, "it would reach devices of the host"),
    "device_cgroup_rules": Rule("devices", _is_set, "it would reach devices of the host"),
    "gpus": Rule("devices", _is_set, "it would reach devices of the host"),
    "security_opt": Rule("security-opt", _is_risky_option, "it would be confined less"),
    "sysctls": Rule("sysctls", _is_set, "it would change parameters of the kernel"),
    "volumes_from": Rule("volumes-from", _is_set, "it would reach files of other containers"),
    "external_links": Rule("external", _is_set, "it would reach containers of others"),
    "build": Rule("build", _is_set, "an image would be built on the host; name a built image"),
    "extends": Rule("files", _is_set, "files of the host would be read; write it out"),
    "env_file": Rule("files", _is_set, "files of the host would be read; use environment"),
    "label_file": Rule("files", _is_set, "files of the host would be read; use labels"),
    "runtime": Rule("runtime", _is_set, "another runtime may confine it less"),
    "credential_spec": Rule("files", _is_set, "files of the host would be read"),
    "oom_kill_disable": Rule("privileged", _is_set, "it could take all memory of the host"),
    "oom_score_adj": Rule(
        "privileged", _is_below_zero, "processes of the host would be killed in its place"
    ),
    "use_api_socket": Rule("engine-socket", _is_set, "it would be root of the host"),
}


def findings(document: Mapping[str, Any], ground: Ground, allowed: frozenset[str]) -> list[str]:
    """Everything that a resolved file asks for and may not have, in words."""
    found = [
        *_top_level_keys(document),
        *_networks(document.get("networks") or {}, ground),
        *top_level_volumes(document.get("volumes") or {}, ground),
        *top_level_files("secret", document.get("secrets") or {}, ground),
        *top_level_files("config", document.get("configs") or {}, ground),
    ]
    services: Mapping[str, Service] = document.get("services") or {}
    for name, service in services.items():
        found += _service(name, service or {})
    found += service_mounts(services, ground, _handed_out(document))
    return _told(found, allowed)


def before_resolving(document: Mapping[str, Any], allowed: frozenset[str]) -> list[str]:
    """What docker-compose need not be asked about, and must not be shown where it would read
    files of the host: what is written there cannot be taken back by merging."""
    found = []
    if document.get("include"):
        found.append(
            Denied("files", "include", "files of the host would be read; write it out")
        )
    for name, service in document["services"].items():
        for key, value in service.items():
            rule = SERVICE_RULES.get(key)
            if rule is None or (key not in READS_FILES and "$" in str(value)):
                continue
            inside = key == "extends" and not (isinstance(value, dict) and value.get("file"))
            if rule.is_bad(value) and not inside:
                found.append(_denied(name, key, value))
    return _told(found, allowed)


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
            yield Denied("", seen, "this key is not known to stay inside the container")
    yield from _deploy(name, service.get("deploy") or {})


def _deploy(name: str, deploy: Mapping[str, Any]) -> Iterator[Denied]:
    reserved = (deploy.get("resources") or {}).get("reservations") or {}
    if reserved.get("devices"):
        seen = f"service {name}: deploy.resources.reservations.devices"
        yield Denied("devices", seen, "it would reach devices of the host")


def _denied(name: str, key: str, value: object) -> Denied:
    rule = SERVICE_RULES[key]
    shown = f" {value}" if isinstance(value, str | bool | int) else ""
    return Denied(rule.what, f"service {name}: {key}{shown}", rule.why)


def _top_level_keys(document: Mapping[str, Any]) -> Iterator[Denied]:
    for key in document:
        if key not in TOP_LEVEL and not str(key).startswith("x-"):
            yield Denied("", f"the key {key}", "it is not known to be harmless")


def _handed_out(document: Mapping[str, Any]) -> list[str]:
    """Files that containers get as secrets and configs: they are mounted as well."""
    entries = [
        *(document.get("secrets") or {}).values(),
        *(document.get("configs") or {}).values(),
    ]
    return [str(entry["file"]) for entry in entries if (entry or {}).get("file")]


def _networks(networks: Mapping[str, Any], ground: Ground) -> Iterator[Denied]:
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
        if _chooses_addresses(body.get("ipam") or {}):
            seen = f"network {name}: ipam"
            why = "its addresses could take those of the host's own networks"
            yield Denied("host-network", seen, why)


def _chooses_addresses(ipam: Mapping[str, Any]) -> bool:
    """An engine makes a route to whatever is named here, also where the host has one."""
    driver = ipam.get("driver") or "default"
    return bool(ipam.get("config") or ipam.get("options")) or driver != "default"


def _told(found: Iterable[Denied], allowed: frozenset[str]) -> list[str]:
    return [denied.message for denied in found if denied.what not in allowed]
