"""Has the commands that show a definition: ``validate``, ``list``, ``config``, ``view``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.definitions import Definition, UnknownName, definition_command
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, safe, safe_lines, say, say_json
from tidewheel.cli.pages.findings import (
    COLOURS,
    check_places_here,
    counted,
    judged,
    refuse,
    show_findings,
)
from tidewheel.cli.palette import PALETTE
from tidewheel.core.graph.findings import Findings, Severity, finding_document
from tidewheel.core.queue.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidewheel.cli.pages.settings import Tree
    from tidewheel.core.graph.definition import Leaf, NodeDef
    from tidewheel.core.graph.findings import Finding
    from tidewheel.formats.flow_cylc.source_text import SourceText
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow

VALIDATE_EPILOG = """\b
Examples:
  tidewheel validate my-workflow
  tidewheel validate my-workflow --strict -s MEMBERS=4
"""


@definition_command("validate", epilog=VALIDATE_EPILOG)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
def validate_command(definition: Definition, *, strict: bool) -> int:
    """Check a workflow definition: every mistake with its place and what to do about it.

    DIR has a flow.cylc in it; without DIR it is the folder you are in. FILE is a flow.cylc, a
    Python file or a SIP definition (.yaml, .yml, .json, each also with .j2). For a SIP
    definition you also learn whether it can be registered and run. Exit 2 if there is an error.
    """
    findings = Findings()
    loaded, verdicts = definition.load_judged(findings)
    if loaded.graph is not None:
        check_places_here(loaded.graph, findings)
    judgement = judged(findings, strict=strict)
    valid = loaded.graph is not None and not any(
        one.severity is Severity.ERROR for one in judgement
    )
    counts = _counts(loaded)
    if definition.as_json:
        say_json(
            {
                "valid": valid,
                **(verdicts.document(strict=strict) if verdicts else {}),
                "findings": [finding_document(one) for one in judgement],
                "counts": counts,
            }
        )
        return 0 if valid else ExitCode.REFUSED
    show_findings(judgement, loaded.source, say)
    if findings.left_out:
        say(f"… and {findings.left_out} more")
    say(_verdict(verdicts.size if verdicts else counts, judgement, valid=valid))
    if verdicts:
        say(verdicts.sentence(strict=strict))
    return 0 if valid else ExitCode.REFUSED


def _verdict(size: Mapping[str, int], findings: Sequence[Finding], *, valid: bool) -> str:
    if not valid:
        found = counted(findings, (Severity.ERROR, Severity.WARNING))
        return click.style("not valid", fg=COLOURS[Severity.ERROR], bold=True) + f": {found}"
    words = ", ".join(_count(number, what) for what, number in size.items())
    remarks = counted(findings, (Severity.WARNING, Severity.NOTE))
    good = click.style("valid", fg=PALETTE[Status.SUCCEEDED].colour, bold=True)
    return f"{good}: {words}" + (f" ({remarks})" if remarks else "")


def _count(number: int, many: str) -> str:
    one = many.removesuffix("ies") + "y" if many.endswith("ies") else many.removesuffix("s")
    return f"{number} {one if number == 1 else many}"


def _counts(loaded: LoadedWorkflow) -> dict[str, int]:
    """Returns how large the workflow is; as an edge, a family counts once for each member."""
    from tidewheel.core.graph.definition import Group, leaves

    graph, workflow = loaded.graph, loaded.workflow
    if graph is None or workflow is None:
        return {"tasks": 0, "families": 0, "recurrences": 0, "edges": 0}

    def size(leaf: Leaf) -> int:
        family = leaf.family if isinstance(leaf, Group) else None
        return len(graph.families[family].members) if family else 1

    edges = {
        (leaf, target)
        for arrow in graph.arrows
        for leaf in leaves(arrow.condition)
        for target in arrow.targets
    }
    return {
        "tasks": len(graph.nodes),
        "families": len(graph.families),
        "recurrences": len({section.sequence for section in workflow.sections}),
        "edges": sum(size(leaf) for leaf, _ in edges),
    }


def _told(definition: Definition, findings: Findings, source: SourceText | None) -> int:
    """Returns the exit status of a command that has shown what it could; tells the errors."""
    if not findings.has_errors:
        return 0
    return refuse(findings, source, as_json=definition.as_json)


# ---- `list`: the tasks and families of a workflow ----


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
def list_command(
    definition: Definition, *, tree: bool, points: tuple[str, str] | None, everything: bool
) -> int:
    """List the tasks of a workflow, with their titles."""
    if sum((tree, points is not None, everything)) > 1:
        raise click.UsageError("give one of --tree, --points and --all")
    findings = Findings()
    loaded = definition.load(findings)
    if loaded.graph is None:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    # Every namespace, those without a section included.
    used = {name: node.definition for name, node in loaded.graph.nodes.items()}
    nodes = {**loaded.settings.nodes, **used}
    if tree:
        _say_tree(loaded, nodes, as_json=definition.as_json)
    elif points is not None:
        _say_points(loaded, points, as_json=definition.as_json)
    else:
        names = sorted(nodes if everything else used)
        _say_names(loaded, {name: nodes.get(name) for name in names}, definition, everything)
    return _told(definition, findings, loaded.source)


def _title(node: NodeDef | None) -> str:
    """Returns the first line of the title of a task or family."""
    lines = dict(node.meta).get("title", "").splitlines() if node is not None else []
    return lines[0] if lines else ""


def _say_names(
    loaded: LoadedWorkflow,
    nodes: Mapping[str, NodeDef | None],
    definition: Definition,
    everything: bool,
) -> None:
    assert loaded.graph is not None
    if not definition.as_json:
        _say_titled([(name, _title(node)) for name, node in nodes.items()])
        return
    documents = [
        {
            "name": name,
            "title": _title(node),
            "families": list(node.lineage[1:]) if node is not None else [],
            "family": loaded.settings.families.is_family(name),
            "in_graph": name in loaded.graph.nodes,
        }
        for name, node in nodes.items()
    ]
    say_json({"namespaces" if everything else "tasks": documents})


def _say_titled(rows: list[tuple[str, str]]) -> None:
    width = max((len(name) for name, title in rows if title), default=0)
    for name, title in rows:
        say(f"{name:<{width}}  " + click.style(safe(title), dim=True) if title else name)


def _say_tree(loaded: LoadedWorkflow, nodes: Mapping[str, NodeDef], *, as_json: bool) -> None:
    from tidewheel.formats.flow_cylc.families import ROOT

    inside: dict[str, list[str]] = {}
    for name in sorted(nodes):
        if name != ROOT:
            parent = loaded.settings.families.first_parents.get(name, ROOT)
            inside.setdefault(parent, []).append(name)

    def document(name: str) -> dict[str, object]:
        below = [document(one) for one in inside.get(name, ())]
        return {"name": name, "title": _title(nodes.get(name)), "children": below}

    def rows(name: str, own: str = "", below: str = "") -> Iterator[tuple[str, str]]:
        """Yields rows of a tree; `own` stands before the name, `below` before children."""
        yield own + name, _title(nodes.get(name))
        children = inside.get(name, [])
        for number, child in enumerate(children, start=1):
            branch, rest = ("└─ ", "   ") if number == len(children) else ("├─ ", "│  ")
            yield from rows(child, below + branch, below + rest)

    if as_json:
        say_json({"tree": document(ROOT)})
    else:
        _say_titled(list(rows(ROOT)))


def _say_points(loaded: LoadedWorkflow, points: tuple[str, str], *, as_json: bool) -> None:
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


# ---- `config`: the settings after inheritance ----

CONFIG_EPILOG = """\b
Examples:
  tidewheel config my-workflow --task model
  tidewheel config my-workflow -i '[runtime][model]script' -i '[scheduling]'
"""


@definition_command("config", epilog=CONFIG_EPILOG)
@click.option("-t", "--task", help="Only this task or family.")
@click.option(
    "-i",
    "--item",
    "items",
    multiple=True,
    metavar="[SECTION]...ITEM",
    help="Only this section or the value of this item; repeatable.",
)
def config_command(definition: Definition, *, task: str | None, items: tuple[str, ...]) -> int:
    """Print the settings of a workflow as they hold for each task, with what it inherits.

    `completion` is what makes a task complete, as it was written or as the graph implies it.
    """
    from tidewheel.cli.pages.settings import config_tree, sip_tree, tree_lines

    definition.refuse_python("config")
    if task is not None and items:
        raise click.UsageError("give --task or --item, not both")
    findings = Findings()
    loaded = definition.load(findings)
    if findings.has_errors and not loaded.source.lines:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    tree = sip_tree(definition) if definition.is_sip else config_tree(loaded)
    found = {item: _find(tree, item) for item in items}
    if task:
        tree = _only_task(tree, task)
    if definition.as_json:
        values = [{"item": item, "value": value} for item, value in found.items()]
        say_json({"items": values} if items else {"config": tree})
    else:
        for value in found.values() if items else (tree,):
            text = value if isinstance(value, str) else "\n".join(tree_lines(value))
            say(safe_lines(text))
    return _told(definition, findings, loaded.source)


def _only_task(tree: Tree, task: str) -> Tree:
    section = "runtime" if "runtime" in tree else "stages"
    known = tree[section]
    assert isinstance(known, dict)
    if task not in known:
        raise UnknownName("task or family", task, known, "see: tidewheel list --all")
    return {section: {task: known[task]}}


def _find(tree: Tree, item: str) -> str | Tree:
    """Returns a value or a section; empty for what could be set here and is not."""
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
        head = "".join(f"[{name}]" for name in path[:depth])
        paths = [
            f"{head}{name}" if isinstance(value, str) else f"{head}[{name}]"
            for name, value in known.items()
        ]
        raise UnknownName("item", item, paths, "see: tidewheel config")
    return here


# ---- `view`: the text as it is parsed ----


@definition_command("view")
@click.option(
    "-i",
    "--plain",
    "--inline",
    "plain",
    is_flag=True,
    help="Print the text before its templates are rendered.",
)
@click.option(
    "-m", "--mark", is_flag=True, help="Begin each line with the file and line it comes from."
)
@click.option("-p", "-j", "--process", "--jinja2", "process", is_flag=True, hidden=True)
def view_command(definition: Definition, *, plain: bool, mark: bool, process: bool) -> int:
    """Print a definition with its included files in place and its templates rendered."""
    definition.refuse_python("view")
    if plain and process:
        raise click.UsageError("--plain is before templating, --process after it")
    findings = Findings()
    source = _plain(definition, findings) if plain else _rendered(definition, findings)
    if source is None or (findings.has_errors and not source.lines):
        return refuse(findings, source, as_json=definition.as_json)
    places = [source.position(number) for number in range(len(source.lines))]
    if definition.as_json:
        lines = [
            {"text": text, "file": place.file, "line": place.line or None}
            for text, place in zip(source.lines, places, strict=True)
        ]
        say_json({"files": list(source.files), "lines": lines})
    else:
        width = max((len(str(place)) for place in places), default=0)
        for text, place in zip(source.lines, places, strict=True):
            head = f"{place!s:<{width}} | " if mark else ""
            say(head + "\t".join(safe(part) for part in text.split("\t")))
    return _told(definition, findings, source)


def _rendered(definition: Definition, findings: Findings) -> SourceText:
    if definition.is_sip:
        from tidewheel.services.definitions.sip import load_sip_file

        how = definition.load_options()
        return load_sip_file(definition.path, how, findings).loaded.source
    from tidewheel.formats.flow_cylc.source_loader import read_source

    return read_source(definition.path, definition.source_options(), findings)


def _plain(definition: Definition, findings: Findings) -> SourceText | None:
    from tidewheel.core.graph.findings import Position
    from tidewheel.formats.flow_cylc.source_loader import find_flow_file
    from tidewheel.formats.flow_cylc.source_text import Inlined, SourceFolder, SourceText

    if definition.is_sip:
        from tidewheel.services.definitions.sip import sip_text_as_written

        return sip_text_as_written(definition.path, findings)
    found = find_flow_file(definition.path, findings)
    if found is None:
        return None
    folder, name = found
    inlined = Inlined(SourceFolder(folder.resolve()), findings)
    inlined.add(name, Position(name))
    files = tuple(inlined.folder.names) or (name,)
    return SourceText(folder, files, inlined.lines, inlined.origins)
