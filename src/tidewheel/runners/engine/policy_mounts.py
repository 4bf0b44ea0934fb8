"""Which folders and files of the host a compose file may mount or hand out.

A job's containers see the job's own folder and its run's ``share`` and ``work``, nothing
else. Of two mounts one must not lie inside the other: a container that may write to a folder
could put a link in it, and the engine follows links when it mounts the other one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

_VOLUME_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
SOCKETS = ("/var/run/docker.sock", "/run/docker.sock")  # where an engine listens
MOUNT_TYPES = frozenset({"bind", "volume", "tmpfs", "image"})


class Denied(NamedTuple):
    """Something that a file asks for."""

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
class Ground:
    """What belongs to the job."""

    files: str  # everything below it
    project: str  # what names of its own networks and volumes begin with
    folders: tuple[str, ...] = ()  # these, as a whole
    sockets: tuple[str, ...]  # of the engine

    def holds(self, source: str) -> bool:
        """Whether a path is the job's own."""
        path = os.path.normpath(source)
        return path in self.folders or is_below(path, self.files)

    def names(self, real: str) -> bool:
        """Whether a network or volume is the job's own; docker compose writes names out."""
        return real.startswith(f"{self.project}_")


class Mount(NamedTuple):
    """A folder or file of the host in a container."""

    service: str
    source: str


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies in it; both without dots."""
    return path == folder or PurePosixPath(folder) in PurePosixPath(path).parents


def service_mounts(
    services: Mapping[str, Any], ground: Ground, handed_out: Iterable[str] = ()
) -> Iterator[Denied]:
    """Mounts of the host that are not the job's, and files that lie inside of a mount."""
    mounts = []
    for name, service in services.items():
        for volume in (service or {}).get("volumes") or []:
            kind, source = mount_of(volume)
            if kind not in MOUNT_TYPES:
                seen = f"service {name}: a mount of type {kind}"
                yield Denied("bind-mounts", seen, "it is not known what it reaches")
            elif kind == "bind":
                mounts.append(Mount(name, source))
    for mount in mounts:
        yield from _mount(mount, ground)
    yield from _nested(
        [*(mount.source for mount in mounts), *map(os.path.normpath, handed_out)]
    )


def mount_of(volume: object) -> tuple[str, str]:
    """The type and the source of a mount, in either of the two ways of writing it; of a folder
    or file of the host the path without dots."""
    if isinstance(volume, dict):
        kind, source = str(volume.get("type", "volume")), str(volume.get("source") or "")
    else:
        source, colon, _ = str(volume).partition(":")
        kind, source = "volume", source if colon else ""
    is_bind = kind == "bind" or (kind == "volume" and _is_path(source))
    return ("bind", os.path.normpath(source)) if is_bind else (kind, source)


def _is_path(source: str) -> bool:
    return bool(source) and not _VOLUME_NAME.fullmatch(source)


def _mount(mount: Mount, ground: Ground) -> Iterator[Denied]:
    seen = f"service {mount.service}: the mount {mount.source}"
    if mount.source.endswith(".sock") or any(is_below(s, mount.source) for s in ground.sockets):
        why = "it would reach the engine or another service of the host, and be its root"
        yield Denied("engine-socket", seen, why)
    if not ground.holds(mount.source):
        yield Denied(
            "bind-mounts", seen, f"it lies outside the job's folder {ground.files}; use ./NAME"
        )


def _nested(paths: list[str]) -> Iterator[Denied]:
    sources = sorted(set(paths))
    for inner in sources:
        for outer in sources:
            if inner != outer and is_below(inner, outer):
                seen = f"the mount {inner} lies inside the mount {outer}"
                why = "a container could put a link in its place; mount one of them"
                yield Denied("bind-mounts", seen, why)


def top_level_volumes(volumes: Mapping[str, Any], ground: Ground) -> Iterator[Denied]:
    """Named volumes that are more than a place of the job's own."""
    for name, volume in volumes.items():
        body = volume or {}
        real = body.get("name")
        if body.get("external") or (real and not ground.names(real)):
            yield Denied("external", f"volume {name} is external", "it belongs to others")
        if body.get("driver") not in (None, "", "local"):
            seen = f"volume {name}: driver {body['driver']}"
            yield Denied("volume-drivers", seen, "it is not known what it reaches")
        if body.get("driver_opts"):
            seen = f"volume {name}: driver_opts"
            yield Denied("volume-drivers", seen, "they can mount any folder of the host")


def top_level_files(kind: str, entries: Mapping[str, Any], ground: Ground) -> Iterator[Denied]:
    """Secrets and configs that come from elsewhere."""
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
