"""``tidewheel config``: a definition's settings after inheritance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.definitions import Definition, UnknownName, definition_command

if TYPE_CHECKING:
    from tidewheel.cli.pages.settings import Tree
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow

EPILOG = """\b
Examples:
  tidewheel config my-workflow --task model
  tidewheel config my-workflow -i '[runtime][model]script' -i '[scheduling]'
"""


@definition_command("config", epilog=EPILOG)
@click.option("-t", "--task", help="Only this task or family.")
@click.option(
    "-i",
    "--item",
    "items",
    multiple=True,
    metavar="[SECTION]...ITEM",
    help="Only this section or the value of this item; repeatable.",
)
def command(definition: Definition, *, task: str | None, items: tuple[str, ...]) -> int:
    """Print the settings of a workflow as they hold for each task, with what it inherits.

    `completion` is what makes a task complete, as it was written or as the graph implies it.
    """
    from tidewheel.cli.pages.findings import refuse
    from tidewheel.core.graph.findings import Findings

    definition.refuse_python("config")
    if task is not None and items:
        raise click.UsageError("give --task or --item, not both")
    findings = Findings()
    loaded = definition.load(findings)
    if findings.has_errors and not loaded.source.lines:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    tree = _tree(definition, loaded)
    if items:
        _say_items(tree, items, as_json=definition.as_json)
    else:
        _say_tree(_only_task(tree, task) if task else tree, as_json=definition.as_json)
    if findings.has_errors:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    return 0


def _tree(definition: Definition, loaded: LoadedWorkflow) -> Tree:
    from tidewheel.cli.pages.settings import config_tree, sip_tree

    return sip_tree(definition) if definition.is_sip else config_tree(loaded)


def _only_task(tree: Tree, task: str) -> Tree:
    section = "runtime" if "runtime" in tree else "stages"
    known = tree[section]
    assert isinstance(known, dict)
    if task not in known:
        raise UnknownName("task or family", task, known, "see: tidewheel list --all")
    return {section: {task: known[task]}}


def _say_tree(tree: Tree, *, as_json: bool) -> None:
    from tidewheel.cli.output import safe_lines, say, say_json
    from tidewheel.cli.pages.settings import tree_lines

    if as_json:
        say_json({"config": tree})
    else:
        say(safe_lines("\n".join(tree_lines(tree))))


def _say_items(tree: Tree, items: tuple[str, ...], *, as_json: bool) -> None:
    from tidewheel.cli.output import safe_lines, say, say_json
    from tidewheel.cli.pages.settings import tree_lines

    found = {item: _find(tree, item) for item in items}
    if as_json:
        say_json({"items": [{"item": item, "value": value} for item, value in found.items()]})
        return
    for value in found.values():
        text = value if isinstance(value, str) else "\n".join(tree_lines(value))
        say(safe_lines(text))


def _find(tree: Tree, item: str) -> str | Tree:
    """A value or a section; empty for what could be set here and is not."""
    from tidewheel.cli.pages.settings import is_known, path_of

    path = path_of(item)
    here: str | Tree = tree
    for depth, name in enumerate(path):
        if isinstance(here, dict) and name in here:
            here = here[name]
            continue
        namespace_is_unknown = path[0] in ("runtime", "stages") and depth == 1
        if is_known(path) and not namespace_is_unknown:
            return ""
        known = here if isinstance(here, dict) else {}
        raise UnknownName("item", item, _paths(path[:depth], known), "see: tidewheel config")
    return here


def _paths(above: list[str], known: Tree) -> list[str]:
    head = "".join(f"[{name}]" for name in above)
    return [
        f"{head}{name}" if isinstance(value, str) else f"{head}[{name}]"
        for name, value in known.items()
    ]
