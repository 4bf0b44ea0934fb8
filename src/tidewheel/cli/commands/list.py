"""``tidewheel list``: the tasks and families of a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.definitions import Definition, definition_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidewheel.core.graph.definition import NodeDef
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow


@definition_command("list")
@click.option("-t", "--tree", is_flag=True, help="List families as a tree, with their tasks.")
@click.option(
    "-p",
    "--points",
    nargs=2,
    metavar="START STOP",
    help="List the tasks at each point; STOP may be an interval from START.",
)
@click.option(
    "-a", "--all", "everything", is_flag=True, help="List families and unused tasks, too."
)
def command(
    definition: Definition, *, tree: bool, points: tuple[str, str] | None, everything: bool
) -> int:
    """List the tasks of a workflow, with their titles."""
    from tidewheel.cli.pages.findings import refuse
    from tidewheel.core.graph.findings import Findings

    if sum((tree, points is not None, everything)) > 1:
        raise click.UsageError("give one of --tree, --points and --all")
    findings = Findings()
    loaded = definition.load(findings)
    if loaded.graph is None:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    if tree:
        _say_tree(loaded, as_json=definition.as_json)
    elif points is not None:
        _say_points(loaded, points, as_json=definition.as_json)
    else:
        _say_names(loaded, as_json=definition.as_json, everything=everything)
    if findings.has_errors:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    return 0


def _nodes(loaded: LoadedWorkflow) -> Mapping[str, NodeDef]:
    """Every namespace, those without a section included."""
    assert loaded.graph is not None
    used = {name: node.definition for name, node in loaded.graph.nodes.items()}
    return {**loaded.settings.nodes, **used}


def title_of(node: NodeDef | None) -> str:
    """The first line of its title."""
    lines = dict(node.meta).get("title", "").splitlines() if node is not None else []
    return lines[0] if lines else ""


def _say_names(loaded: LoadedWorkflow, *, as_json: bool, everything: bool) -> None:
    from tidewheel.cli.output import say_json

    assert loaded.graph is not None
    nodes = _nodes(loaded)
    names = sorted(nodes if everything else loaded.graph.nodes)
    if as_json:
        documents = [_document(loaded, name, nodes.get(name)) for name in names]
        say_json({"namespaces" if everything else "tasks": documents})
        return
    _say_titled([(name, title_of(nodes.get(name))) for name in names])


def _document(loaded: LoadedWorkflow, name: str, node: NodeDef | None) -> dict[str, object]:
    assert loaded.graph is not None
    return {
        "name": name,
        "title": title_of(node),
        "families": list(node.lineage[1:]) if node is not None else [],
        "family": loaded.settings.families.is_family(name),
        "in_graph": name in loaded.graph.nodes,
    }


def _say_titled(rows: list[tuple[str, str]]) -> None:
    from tidewheel.cli.output import safe, say

    width = max((len(name) for name, title in rows if title), default=0)
    for name, title in rows:
        if title:
            say(f"{name:<{width}}  " + click.style(safe(title), dim=True))
        else:
            say(name)


def _say_tree(loaded: LoadedWorkflow, *, as_json: bool) -> None:
    from tidewheel.cli.output import say_json
    from tidewheel.formats.flow_cylc.families import ROOT

    assert loaded.graph is not None
    nodes = _nodes(loaded)
    inside: dict[str, list[str]] = {}
    for name in sorted(nodes):
        if name != ROOT:
            parent = loaded.settings.families.first_parents.get(name, ROOT)
            inside.setdefault(parent, []).append(name)
    if as_json:
        say_json({"tree": _tree_document(ROOT, nodes, inside)})
    else:
        _say_titled(list(_tree_rows(ROOT, nodes, inside, ("", ""))))


def _tree_document(
    name: str, nodes: Mapping[str, NodeDef], inside: Mapping[str, list[str]]
) -> dict[str, object]:
    below = [_tree_document(one, nodes, inside) for one in inside.get(name, ())]
    return {"name": name, "title": title_of(nodes.get(name)), "children": below}


def _tree_rows(
    name: str,
    nodes: Mapping[str, NodeDef],
    inside: Mapping[str, list[str]],
    lead: tuple[str, str],
) -> Iterator[tuple[str, str]]:
    """`lead` is what stands before the name itself, and before what is below it."""
    own, below = lead
    yield own + name, title_of(nodes.get(name))
    children = inside.get(name, [])
    for number, child in enumerate(children):
        last = number == len(children) - 1
        branch, rest = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _tree_rows(child, nodes, inside, (below + branch, below + rest))


def _say_points(loaded: LoadedWorkflow, points: tuple[str, str], *, as_json: bool) -> None:
    from tidewheel.cli.output import note, say, say_json
    from tidewheel.services.definitions.graph import read_window

    shown = read_window(loaded, *points)
    nodes, style = shown.graph.nodes, shown.graph.cycling.style
    by_point: dict[str, list[str]] = {}
    for task in sorted(shown.window.tasks, key=lambda one: (one.point, one.node)):
        if task.node in nodes and (shown.stop is None or task.point <= shown.stop):
            by_point.setdefault(style.text(task.point), []).append(task.node)
    if as_json:
        documents = [{"point": point, "tasks": names} for point, names in by_point.items()]
        say_json({"points": documents, "cut": shown.window.cut})
        return
    for point, names in by_point.items():
        for name in names:
            say(f"{point}/{name}")
    if shown.window.cut:
        note("there are more; give a nearer STOP")
