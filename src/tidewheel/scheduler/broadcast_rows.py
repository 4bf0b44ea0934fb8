"""From the command `broadcast` to the settings that it sets or takes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import RunMode
from tidewheel.core.graph.suggestions import nearest
from tidewheel.core.operator import verbs
from tidewheel.core.operator.requests import StoredBroadcast
from tidewheel.core.operator.selection import read_point
from tidewheel.errors import Refused
from tidewheel.scheduler.broadcasts import (
    EVERY_POINT,
    Setting,
    is_for_shells,
    matching_items,
    read_setting,
)

ROOT = "root"


def rows_of(
    command: verbs.Broadcast,
    there: Sequence[StoredBroadcast],
    graph: Graph,
    containers: Set[str] = frozenset(),
) -> list[StoredBroadcast]:
    """What changes: refused as a whole if a setting, a point or a name is wrong.

    ``containers`` are nodes that no shell runs.
    """
    points = [_point_text(text, graph) for text in command.points]
    namespaces = [_namespace(name, graph) for name in command.namespaces]
    settings = [read_setting(text) for text in command.settings]
    for namespace in namespaces:
        _check_reached(namespace, settings, graph, containers)
    rows = [
        StoredBroadcast(point, namespace, item, value)
        for point in points
        for namespace in namespaces
        for item, value in settings
    ]
    rows += [_gone(one) for one in _taken_back(command, there, points, namespaces)]
    if command.expire:
        last = read_point(graph.cycling, command.expire)
        rows += [
            _gone(one)
            for one in there
            if one.point != EVERY_POINT and read_point(graph.cycling, one.point) < last
        ]
    if not rows and not (command.clear or command.cancel or command.expire):
        raise Refused("broadcast what? Give a setting: -s '[environment]NAME=VALUE'")
    return rows


def _taken_back(
    command: verbs.Broadcast,
    there: Iterable[StoredBroadcast],
    points: Sequence[str],
    namespaces: Sequence[str],
) -> list[StoredBroadcast]:
    """Of what was broadcast: all for these points and names, or the items that are named."""
    if not (command.clear or command.cancel):
        return []
    everywhere = list(command.points) == [EVERY_POINT] and command.clear
    everybody = list(command.namespaces) == [ROOT] and command.clear
    found = [
        one
        for one in there
        if (everywhere or one.point in points) and (everybody or one.namespace in namespaces)
    ]
    if command.clear:
        return found
    items = {one.setting for one in found}
    gone = {item for text in command.cancel for item in matching_items(text, items)}
    return [one for one in found if one.setting in gone]


def _check_reached(
    namespace: str, settings: Iterable[Setting], graph: Graph, containers: Set[str]
) -> None:
    """A setting that could change nothing is refused: whoever gives it means something else."""
    meant = {
        name
        for name, node in graph.nodes.items()
        if namespace in (node.definition.lineage or (name,))
        and node.definition.run_mode is not RunMode.SKIP  # it runs nothing anyway
    }
    for item, _ in settings:
        if meant and meant <= containers and is_for_shells(item):
            who = namespace if namespace in containers else "what this run has"
            raise Refused(
                f"{item} cannot be broadcast to {namespace}: {who} runs as containers, and "
                "what they do is in their compose file; their variables can be changed "
                "([environment]NAME=VALUE) and their time limit (execution time limit=PT1H)"
            )


def _gone(one: StoredBroadcast) -> StoredBroadcast:
    return one._replace(value=None)


def _point_text(text: str, graph: Graph) -> str:
    if text == EVERY_POINT:
        return text
    return graph.cycling.style.text(read_point(graph.cycling, text))


def _namespace(name: str, graph: Graph) -> str:
    known = {ROOT, *graph.nodes, *graph.families}
    if name not in known:
        like = nearest(name, known)
        hint = f"did you mean {like}?" if like else "tidewheel list shows tasks and families"
        raise Refused(f"there is no task or family {name}; {hint}")
    return name
