"""Changes settings of tasks to come while a run is going: broadcasts (SEMANTICS §8).

A setting is written as in flow.cylc with its section before it: `script`, `[environment]NAME`,
`[events]execution timeout`. Values are read as flow.cylc reads them. A broadcast to a point
counts more than one to all points, and one to a nearer namespace more than one to a family.

`rows_of` turns the command into rows. `EffectiveSettings` (`submissions`) has the settings that
tasks of a run find: those of the definition in force, with what was broadcast over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from textwrap import dedent
from typing import Any

from tidewheel.core.graph.checks.names import is_of_jobs
from tidewheel.core.graph.definition import NodeDef, Pairs, RunMode
from tidewheel.core.graph.findings import nearest
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator import verbs
from tidewheel.core.operator.requests import StoredBroadcast
from tidewheel.core.operator.selection import read_point
from tidewheel.core.queue.secret_references import REFERENCE
from tidewheel.core.sched.flows import flows_it_ran_in
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import JobPhase, Key
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.items import (
    NAMESPACE,
    TASK_EVENTS,
    ItemSpec,
    SectionSpec,
    node_fields,
)
from tidewheel.formats.flow_cylc.values import BadValue, ValueKind, unquoted
from tidewheel.lazy_dataclasses import NamedTuple, pattern

EVERY_POINT = "*"
Setting = tuple[str, str]  # the item with its section, and the value as it was written

# The field of a node, and the field within it; "" for a field that is the value itself.
_FIELDS = {
    f"[{section}]{item}" if section else item: (group, field)
    for section, item, group, field in node_fields()
}
# Items that had another place before; existing scripts still name it.
_MOVED = {
    "[job]execution time limit": "execution time limit",
    "[job]execution retry delays": "execution retry delays",
    "[job]submission retry delays": "submission retry delays",
    "[suite state polling]interval": "[workflow state polling]interval",
    "[suite state polling]max-polls": "[workflow state polling]max-polls",
    "title": "[meta]title",
    "description": "[meta]description",
    "URL": "[meta]URL",
}
_HANDLERS = {
    "[events]handlers": "",
    **{f"[events]{event} handlers": event for event in TASK_EVENTS},
}
_OF_SHELLS = ("scripts", "place")
# What decides where jobs go, or whether there are jobs at all.
PLACING = ("platform", "[remote]host", "[job]batch system", "run mode")
_PAIRS = ("environment", "directives", "meta", "outputs")
_UNCHANGEABLE = {
    "inherit": "the families of a task are part of the definition; change them with reload",
    "[outputs]": "the outputs of a task are part of the graph; change them with reload",
    "[inputs]": "the values that a task takes are part of the graph; change them with reload",
    "[environment filter]": (
        "which variables a task gets is decided when the definition is read; "
        "change it with reload"
    ),
    "[parameter environment templates]": (
        "the variables are made when the definition is read; broadcast [environment]NAME=VALUE"
    ),
    "workflow": "the workflow of a task is part of the definition; change it with reload",
    "completion": "the completion condition is part of the graph; change it with reload",
    "[remote]owner": "it is no longer accepted; name a platform on which jobs run as that user",
}

_PART = pattern(r"\s*\[([^\]]*)\]")
_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_ONE_TEXT = (ValueKind.TEXT,)


class ReadSetting(NamedTuple):
    """Says how a value is read, and how it becomes part of a node."""

    read: Callable[[str], object]
    put: Callable[[NodeDef, Any], NodeDef]


def is_placing(one: StoredBroadcast) -> bool:
    """Says whether a broadcast may send jobs elsewhere, or give them a secret."""
    if one.setting in PLACING:
        return True
    return one.setting.startswith("[environment]") and REFERENCE in str(one.value)


def read_setting(text: str) -> Setting:
    """Reads `[SECTION]ITEM=VALUE`; raises Refused if no such item can have this value."""
    left, equals, value = text.partition("=")
    if not equals:
        raise Refused(f"{text!r} has no value; write [SECTION]ITEM=VALUE")
    item = read_item(left)
    accepted = tuple(RunMode) if item == "run mode" else _spec(item).choices
    try:
        found = _applied(item).read(value)
        if accepted and found and found not in accepted:
            raise BadValue("not one of the accepted values", f"write {' or '.join(accepted)}")
    except BadValue as bad:
        hint = f"; {bad.hint}" if bad.hint else ""
        raise Refused(f"{item} = {value.strip()}: {bad}{hint}") from None
    return item, value.strip()


def read_item(text: str) -> str:
    """Returns an item as it is written today; raises Refused if none such can be broadcast."""
    rest, sections = text, []
    while match := _PART.match(rest):
        sections.append(match[1].strip())
        rest = rest[match.end() :]
    item = "".join(f"[{name}]" for name in sections) + rest.strip()
    item = _MOVED.get(item, item)
    _applied(item)
    return item


def matching_items(text: str, items: Iterable[str]) -> list[str]:
    """Returns the items that `--cancel TEXT` takes back: one, or all of a section."""
    asked = text.strip()
    if asked.startswith("[") and asked.endswith("]"):
        return [item for item in items if item.startswith(asked)]
    item = read_item(asked)
    return [one for one in items if one == item]


def check_inputs(rows: Iterable[StoredBroadcast], graph: Graph) -> None:
    """Raises Refused for a variable that is an input of a task: it would have no effect there,
    since a value counts more than [environment]."""
    for row in rows:
        name = row.setting.removeprefix("[environment]")
        if row.value is None or name == row.setting:
            continue
        for task, inputs in graph.inputs.items():
            lineage = graph.nodes[task].definition.lineage or (task,)
            taken = next((one for one in inputs if one.variable == name), None)
            if taken is not None and row.namespace in lineage:
                value = ".".join(taken.path) or "NAME"
                raise Refused(
                    f"{row.setting} cannot be broadcast to {row.namespace}: {task} takes it "
                    f"from {taken}; set that value: set POINT/{taken.node} --value {value}=…"
                )


def settings_for(
    broadcasts: Iterable[StoredBroadcast], point: str, lineage: Sequence[str]
) -> list[Setting]:
    """Returns the settings broadcast to a task: each item once, with the value that counts."""
    ranks = {name: rank for rank, name in enumerate(reversed(lineage))}
    meant = [
        (one.point != EVERY_POINT, ranks[one.namespace], one)
        for one in broadcasts
        if one.value is not None
        and one.point in (EVERY_POINT, point)
        and one.namespace in ranks
    ]
    # Stable: of two that count the same, the later one wins.
    meant.sort(key=lambda row: row[:2])
    found: dict[str, str] = {}
    for _, _, one in meant:
        found[one.setting] = one.value or ""
    return list(found.items())


def with_settings(node: NodeDef, settings: Iterable[Setting]) -> NodeDef:
    """Returns the node with these settings over its own; they were checked when given."""
    new_variables: list[tuple[str, str]] = []
    own = {name for name, _ in node.environment}
    for item, value in settings:
        name = item.removeprefix("[environment]")
        applied = _applied(item)
        if name != item and name not in own:
            new_variables.append((name, str(applied.read(value))))
        else:
            node = applied.put(node, applied.read(value))
    if not new_variables:
        return node
    # New variables stand first: those of the node may use them.
    return replace(node, environment=(*new_variables, *node.environment))


@cache
def _applied(item: str) -> ReadSetting:
    for refused, why in _UNCHANGEABLE.items():
        if item == refused or (refused.endswith("]") and item.startswith(refused)):
            raise Refused(f"{item} cannot be broadcast: {why}")
    spec = _spec(item)
    variable = item.removeprefix("[environment]")
    if variable != item and not _VARIABLE.fullmatch(variable):
        accepted = "write letters, digits and _, and begin with a letter or _"
        raise Refused(f"{variable!r} is not a valid variable name; {accepted}")
    read = _text if spec.kind in _ONE_TEXT else spec.read
    section, _, name = item.removeprefix("[").partition("]")
    if item.startswith("[") and section in _PAIRS:
        return ReadSetting(read, partial(_put_pair, section, name))
    if item in _HANDLERS:
        return ReadSetting(read, partial(_put_handler, _HANDLERS[item]))
    if item == "run mode":
        return ReadSetting(
            read, lambda node, value: replace(node, run_mode=RunMode(value or "live"))
        )
    if item in _FIELDS:
        return ReadSetting(read, partial(_put_field, *_FIELDS[item], spec.default))
    if not spec.idle_because:
        raise Refused(f"{item} cannot be broadcast; change it in the definition, then reload")
    # Accepted for existing scripts, without an effect here, as in a definition.
    return ReadSetting(read, lambda node, _: node)


def _spec(item: str) -> ItemSpec:
    spec: ItemSpec | SectionSpec | None = NAMESPACE
    rest, walked = item, ""
    while isinstance(spec, SectionSpec):
        match = _PART.match(rest)
        name = match[1] if match else rest
        found = spec.entries.get(name) or (spec.other if name else None)
        if found is None:
            raise _unknown(item, walked, name, spec)
        walked, rest = f"{walked}[{name}]", rest[match.end() :] if match else ""
        spec = found
    if rest or spec is None:
        raise Refused(f"{item!r} is not a setting of a task; write [SECTION]ITEM=VALUE")
    return spec


def _unknown(item: str, walked: str, name: str, spec: SectionSpec) -> Refused:
    if not name:
        return Refused(f"{item!r} names a section; name an item of it: {walked}ITEM=VALUE")
    like = nearest(name, spec.entries)
    if like and isinstance(spec.entries[like], SectionSpec):
        like = f"[{like}]"
    hint = f"did you mean {walked}{like}?" if like else f"expected {', '.join(spec.entries)}"
    return Refused(f"there is no setting {item!r} of a task; {hint}")


def _text(raw: str) -> object:
    """Reads a text as flow.cylc does, but for `#`: in a broadcast it begins no comment."""
    text = raw.strip()
    if text[:1] in ("'", '"'):
        with suppress(BadValue):  # quotes that belong to the text: "a" and "b"
            text = unquoted(text)
    return dedent(text).strip()


def _put_pair(section: str, name: str, node: NodeDef, value: str) -> NodeDef:
    directed = section == "directives"
    pairs: Pairs = node.place.directives if directed else getattr(node, section)
    if any(one == name for one, _ in pairs):
        pairs = tuple((one, value if one == name else old) for one, old in pairs)
    else:
        pairs = (*pairs, (name, value))
    return _put_field(*(("place", section) if directed else (section, "")), (), node, pairs)


def _put_handler(event: str, node: NodeDef, commands: tuple[str, ...]) -> NodeDef:
    others = [one for one in node.events.handlers if one[0] != event]
    handlers = (*others, (event, commands)) if commands else tuple(others)
    return replace(node, events=replace(node.events, handlers=handlers))


def _put_field(
    group: str, field: str, default: object, node: NodeDef, value: object
) -> NodeDef:
    said: Any = default if value is None else value
    if field:
        said = replace(getattr(node, group), **{field: said})
    return replace(node, **{group: said})


ROOT = "root"


def rows_of(
    command: verbs.Broadcast,
    there: Sequence[StoredBroadcast],
    graph: Graph,
    containers: Set[str] = frozenset(),
) -> list[StoredBroadcast]:
    """Returns the rows that a command changes; raises Refused if any part of it is wrong.

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
    """Returns the broadcasts to take back: all for these points and names, or named items."""
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
    """Raises Refused for settings of shells that would reach only tasks run as containers, and
    for settings of jobs that would reach only tasks that are runs. They could change nothing,
    so something else must be meant."""
    meant = {
        name
        for name, node in graph.nodes.items()
        if namespace in (node.definition.lineage or (name,))
        and node.definition.run_mode is not RunMode.SKIP  # it runs nothing anyway
    }
    are_runs = all(graph.nodes[name].definition.workflow for name in meant)
    for item, _ in settings:
        if meant and are_runs and is_of_jobs(item):
            raise Refused(
                f"{item} cannot be broadcast to {namespace}: it is a run of another workflow, "
                "and has no job; broadcast it to that run"
            )
        # Containers have neither scripts nor a batch system.
        is_for_shells = item.startswith("[directives]") or (
            _FIELDS.get(item, ("",))[0] in _OF_SHELLS
        )
        if meant and meant <= containers and is_for_shells:
            who = namespace if namespace in containers else f"every task of {namespace}"
            raise Refused(
                f"{item} cannot be broadcast to {namespace}: {who} runs as containers, and "
                "what they do is in their compose file; their variables can be changed "
                "([environment]NAME=VALUE) and their time limit (execution time limit=PT1H)"
            )


def unmatched_texts(command: verbs.Broadcast, rows: Iterable[StoredBroadcast]) -> list[str]:
    """Returns what is told of settings to be cancelled that were not broadcast."""
    gone = [row.setting for row in rows if row.value is None]
    unmatched = (text for text in command.cancel if not matching_items(text, gone))
    return [f"{text} was not broadcast, so it was not cancelled" for text in unmatched]


def idle_texts(rows: Iterable[StoredBroadcast], pool: TaskPool) -> list[str]:
    """Returns which settings reach no task, because none of those named runs at the point, or
    reach one only if it runs again. A job may broadcast to the next point at the last one, so
    this is only told."""
    plan = pool.plan
    places = dict.fromkeys(
        row[:2] for row in rows if row.value is not None and row.point != EVERY_POINT
    )
    found = []
    for text, namespace in places:
        point = read_point(plan.graph.cycling, text)
        nodes = (
            node
            for node in plan.nodes.values()
            if namespace in (node.definition.lineage or (node.name,))
        )
        if not any(node.is_at(point) for node in nodes):
            of = "" if namespace == ROOT else f" named {namespace}"
            if namespace in plan.graph.families:
                of = f" of {namespace}"
            found.append(f"no task{of} runs at {text}")
        elif namespace in plan.nodes and (seen := _begun(pool, (point, namespace))):
            name = plan.name_of((point, namespace))
            found.append(f"{name} {seen}, so what is broadcast counts only if it runs again")
    return found


def _begun(pool: TaskPool, key: Key) -> str:
    """Returns that a task is active or has ended; "" if it is to run, or that was long ago."""
    task, memory = pool.tasks.get(key), pool.memory.get(key[0], {}).get(key[1])
    if task is not None:
        ended = task.stage is JobPhase.INCOMPLETE
        return "has ended" if ended else "is active" if task.is_active else ""
    return "has ended" if memory is not None and flows_it_ran_in(pool, key) else ""


def _gone(one: StoredBroadcast) -> StoredBroadcast:
    return one._replace(value=None)


def _point_text(text: str, graph: Graph) -> str:
    if text == EVERY_POINT:
        return text
    return graph.cycling.style.text(read_point(graph.cycling, text))


def _namespace(name: str, graph: Graph) -> str:
    known = {ROOT, *graph.nodes, *graph.families}
    if name not in known and name not in graph.nodes:  # or it is an element
        like = nearest(name, known)
        hint = (
            f"did you mean {like}?"
            if like
            else "to list tasks and families: tidewheel list --all"
        )
        raise Refused(f"there is no task or family {name}; {hint}")
    return name
