"""Finds what a compose file asks of its host, before any engine sees it (S26).

The policy has the last word, on the file as docker-compose resolves it. This is the same policy
on the file as its author wrote it, with paths as they will be, so that such a stage waits for a
worker that allows it, instead of being refused by one that does not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from tidewheel.core.operator.definition import RUN_DIRECTORY
from tidewheel.core.queue.resources import COMPOSE_2_LABEL, allow_label
from tidewheel.runners.containers.policy import (
    SOCKETS,
    HostFolders,
    denials,
    early_denials,
)

ONLY_POINT = "1"  # of stages, which do not repeat
# Folders that no host has, in place of those that a job will have.
_ROOT = "/tidewheel-job"
_FILES, _RUN, _HOME = f"{_ROOT}/files", f"{_ROOT}/run", "/home-of-nobody"
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
    ground = HostFolders(
        files=_FILES,
        project="\0",  # no name begins so
        folders=(f"{_RUN}/share", f"{_RUN}/work/{ONLY_POINT}/{task}"),
        sockets=SOCKETS,
        root=_ROOT,
    )
    written = _placed(document)
    found = [
        *early_denials(written),
        *denials(_resolved(written), ground, is_swarm=is_for_swarm),
    ]
    return sorted({one.what for one in found if one.what})


def compose_2_keys(
    document: object, newer: Sequence[str], *, is_for_swarm: bool
) -> tuple[str, ...]:
    """Returns the keys of a compose file for which it takes docker compose 2. ``newer`` are
    those that version 1 does not know; others it knows, and leaves out, but for a Swarm."""
    if is_for_swarm or not isinstance(document, dict):
        return tuple(newer)
    services = [one for one in document["services"].values() if isinstance(one, dict)]
    dropped = ["configs"] if any(one.get("configs") for one in services) else []
    handed = [each for one in services for each in one.get("secrets") or ()]
    names = {each.get("source") if isinstance(each, dict) else each for each in handed}
    secrets = document.get("secrets") or {}
    if any(_is_external(body) for name, body in secrets.items() if name in names):
        dropped.append("external secrets")
    return (*newer, *dropped)


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
