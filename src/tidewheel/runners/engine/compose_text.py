"""Reading the text of a compose file, and what docker-compose makes of it.

The one place beside the front ends that reads YAML (decision 0024): docker-compose 1.x
prints nothing else, and what a file would make docker-compose read from the host has to be
known before it does so.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from tidewheel.runners.engine.stage_spec import BadStage

NODES_MAX = 50_000  # counted as often as aliases repeat them
DEPTH_MAX = 32

Document = dict[str, Any]


class _Loader(yaml.CSafeLoader):
    """The safe loader, which also refuses a key that is there twice."""


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
    """The file as its author wrote it; BadStage if it is not a compose file at all."""
    document = _read(text, "the compose file")
    services = document.get("services")
    if not isinstance(services, dict) or not services:
        raise BadStage(
            "the compose file has no services; accepted is a mapping with at least one service"
        )
    if bad := [name for name, body in services.items() if not isinstance(body, dict)]:
        raise BadStage(f"service {bad[0]}: it is no mapping; accepted is one with an image")
    for body in (document, services, *services.values()):
        # Others that read the file may take such a key for a text, and see what we do not.
        if odd := [key for key in body if not isinstance(key, str)]:
            raise BadStage(f"the key {odd[0]!r} is no text; write it plainly, or in quotes")
    return document


def read_resolved(text: str) -> Document:
    """What docker-compose or docker compose says the file means: YAML or JSON."""
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
            raise BadStage(f"{what} is empty; accepted is a mapping with services")
        _check_size(node)
        document = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise BadStage(f"{what} is not YAML: {_where(error)}") from None
    except RecursionError:
        raise BadStage(
            f"{what} is nested too deeply; up to {DEPTH_MAX} levels are read"
        ) from None
    if not isinstance(document, dict):
        raise BadStage(f"{what} is no mapping; accepted is one with services")
    return document


def _check_size(root: yaml.Node) -> None:
    """As it would be with every alias written out: a few lines can stand for a billion."""
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
                f"the compose file is nested too deeply; {DEPTH_MAX} levels are read"
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
