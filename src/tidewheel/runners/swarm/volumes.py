"""Named volumes of a stage that a single container uses: they go with that container.

A named volume stays on the node on which a Swarm made it, and no manager can remove it from
another node. One without a name is removed by its node, with its container. For a container
that shares it with no other the two are the same; it is started only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tidewheel.runners.engine.policy_mounts import mount_of

_PLAIN = frozenset({"labels", "name"})  # what a volume may say and still be like any other
_MOUNT_LENGTH = 2  # "data:/data"


def make_nameless(document: dict[str, Any], project: str) -> None:
    """Take the names from volumes that nobody shares; services have their ``deploy``."""
    volumes = document.get("volumes") or {}
    services = document["services"].values()
    users = Counter(
        source
        for service in services
        for kind, source in map(mount_of, service.get("volumes") or [])
        if kind == "volume"
        for _ in range(_containers(service))
    )
    nameless = {
        name
        for name, body in volumes.items()
        if users[name] <= 1 and _is_plain(body or {}, f"{project}_")
    }
    for service in services:
        mounts = [_without_name(mount, nameless) for mount in service.get("volumes") or []]
        if mounts:
            service["volumes"] = mounts
    used = {mount_of(mount)[1] for one in services for mount in one.get("volumes") or []}
    for name in nameless - used:
        del volumes[name]


def _containers(service: Mapping[str, Any]) -> int:
    """How many of it may be on one node."""
    deploy = service["deploy"]
    return 1 if deploy["mode"] == "global" else int(deploy.get("replicas") or 1)


def _is_plain(body: Mapping[str, Any], own: str) -> bool:
    return body.keys() <= _PLAIN and str(body.get("name", own)).startswith(own)


def _without_name(mount: object, nameless: set[str]) -> object:
    kind, source = mount_of(mount)
    if kind != "volume" or source not in nameless:
        return mount
    if isinstance(mount, dict):
        return {key: value for key, value in mount.items() if key != "source"}
    parts = str(mount).removesuffix(":rw").split(":")
    return parts[1] if len(parts) == _MOUNT_LENGTH else mount
