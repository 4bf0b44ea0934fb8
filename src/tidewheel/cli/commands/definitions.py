"""Defines the commands that show a definition: validate, list, config, view, graph."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidewheel.cli.definitions import Definition, UnknownName, definition_command
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, safe, safe_lines, say, say_json
from tidewheel.cli.pages.findings import (
    COLOURS,
    check_places_here,
    counted,
    judged,
    note_findings,
    refuse,
    show_findings,
)
from tidewheel.cli.palette import PALETTE
from tidewheel.cli.session import option
from tidewheel.core.graph.findings import (
    Finding,
    Findings,
    Position,
    Severity,
    finding_document,
)
from tidewheel.core.queue.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tidewheel.cli.drawing.sketch import Wishes
    from tidewheel.cli.pages.settings import Tree
    from tidewheel.core.graph.definition import Leaf, NodeDef
    from tidewheel.formats.flow_cylc.source_text import SourceText
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
    from tidewheel.services.definitions.graph import ShownWindow


@definition_command(
    "validate", "validate my-workflow", "validate my-workflow --strict -s MEMBERS=4"
)
@option("--strict", "Treat warnings as errors.")
def validate_command(definition: Definition, *, strict: bool) -> int:
    """Check a workflow definition: print every mistake with its place and how to fix it.

    DIR is a folder with a flow.cylc, by default the current folder. FILE is a flow.cylc, a
    Python file or a SIP definition (.yaml, .yml, .json, each also with .j2). NAME or
    NAME/VERSION is a registered workflow. For a SIP definition, the output also says whether it
    can be registered and run. Exit 2 if there is an error.
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
        told = {"valid": valid, **(verdicts.document(strict=strict) if verdicts else {})}
        found = [finding_document(one) for one in judgement]
        say_json(told | {"findings": found, "counts": counts})
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
    ones = {many: re.sub("ies$", "y", many).removesuffix("s") for many in size}
    words = ", ".join(
        f"{number} {ones[many] if number == 1 else many}" for many, number in size.items()
    )
    remarks = counted(findings, (Severity.WARNING, Severity.NOTE))
    good = click.style("valid", fg=PALETTE[Status.SUCCEEDED].colour, bold=True)
    return f"{good}: {words}" + (f" ({remarks})" if remarks else "")


def _counts(loaded: LoadedWorkflow) -> dict[str, int]:
    """Returns how many tasks, families, recurrences and edges a workflow has.

    A condition on a family counts as one edge for each member.
    """
    from tidewheel.core.graph.definition import Group, leaves

    graph, workflow = loaded.graph, loaded.workflow
    if graph is None or workflow is None:
        return dict.fromkeys(("tasks", "families", "recurrences", "edges"), 0)

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
        "families": len(workflow.families),
        "recurrences": len({section.sequence for section in workflow.sections}),
        "edges": sum(size(leaf) for leaf, _ in edges),
    }


def _told(definition: Definition, findings: Findings, source: SourceText | None) -> int:
    """Prints the errors of a definition, if there are any, after what could be shown;
    returns the exit status."""
    return refuse(findings, source, as_json=definition.as_json) if findings.has_errors else 0


# ---- `list`: the tasks and families of a workflow ----


@definition_command("list")
@option("-t --tree", "List families as a tree, with their tasks.")
@option(
    "-p --points START STOP",
    "List the tasks at each point; STOP may be an interval from START.",
    nargs=2,
)
@option("-a --all everything", "List families and unused tasks, too.")
def list_command(
    definition: Definition, *, tree: bool, points: tuple[str, str] | None, everything: bool
) -> int:
    """List the tasks of a workflow, with their titles."""
    if sum((tree, points is not None, everything)) > 1:
        raise click.UsageError("give only one of --tree, --points and --all")
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
        found = {name: nodes.get(name) for name in sorted(nodes if everything else used)}
        documents = [
            {
                "name": name,
                "title": _title(node),
                "families": list(node.lineage[1:]) if node is not None else [],
                "family": loaded.settings.families.is_family(name),
                "in_graph": name in used,
            }
            for name, node in found.items()
        ]
        if definition.as_json:
            say_json({"namespaces" if everything else "tasks": documents})
        else:
            _say_titled([(name, _title(node)) for name, node in found.items()])
    return _told(definition, findings, loaded.source)


def _title(node: NodeDef | None) -> str:
    """Returns the first line of the title of a task or family; "" if it has none."""
    lines = dict(node.meta).get("title", "").splitlines() if node is not None else []
    return lines[0] if lines else ""


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
            say(name if style.is_unwritten else f"{point}/{name}")
    if shown.window.cut:
        note("not all tasks are listed: there are too many; give an earlier STOP")


# ---- `config`: the settings after inheritance ----


@definition_command(
    "config",
    "config my-workflow --task model",
    "config my-workflow -i '[runtime][model]script' -i '[scheduling]'",
)
@option("-t --task TEXT", "Print only this task or family.")
@option(
    "-i --item items [SECTION]...ITEM...",
    "Print only this section, or the value of this item; repeatable.",
)
def config_command(definition: Definition, *, task: str | None, items: tuple[str, ...]) -> int:
    """Print the settings of a workflow; those of a task include what it inherits.

    `completion` is the condition under which a task is complete: as written, or as the graph
    implies.
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
    if findings.has_errors and not tree:  # no definition at all
        return refuse(findings, loaded.source, as_json=definition.as_json)
    found = {item: _find(tree, item) for item in items}
    if task:
        section = "runtime" if "runtime" in tree else "stages"
        known = tree[section]
        assert isinstance(known, dict)
        if task not in known:
            raise UnknownName("task or family", task, known, "see: tidewheel list --all")
        tree = {section: {task: known[task]}}
    if definition.as_json:
        values = [{"item": item, "value": value} for item, value in found.items()]
        say_json({"items": values} if items else {"config": tree})
    else:
        for value in found.values() if items else (tree,):
            text = value if isinstance(value, str) else "\n".join(tree_lines(value))
            say(safe_lines(text))
    return _told(definition, findings, loaded.source)


def _find(tree: Tree, item: str) -> str | Tree:
    """Returns the value or section that an item names; "" for one that could be set and is not.

    Raises UnknownName for what no definition can have.
    """
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
@option("-i --plain --inline plain", "Print the text before its templates are rendered.")
@option("-m --mark", "Begin each line with its file and its line number.")
@option("-p -j --process --jinja2 process", "", hidden=True)
def view_command(definition: Definition, *, plain: bool, mark: bool, process: bool) -> int:
    """Print a definition with its included files in place and its templates rendered."""
    definition.refuse_python("view")
    if plain and process:
        raise click.UsageError(
            "give --plain (templates as written) or --process (templates rendered), not both"
        )
    findings = Findings()
    source = (_plain if plain else _rendered)(definition, findings)
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


# ---- `graph`: what waits for what, as a picture or for programs ----

STDOUT = "-"
BOXES_MAX = 3000  # of a picture; nobody reads more
LINES_MAX = 20_000
EDGES_LOOKED_AT_MAX = 200_000  # before families are collapsed

GRAPH_EPILOG = """\b
Examples:
  tidewheel graph my-workflow
  tidewheel graph my-workflow 20300101 20300103 --svg=graph.svg --cycles
  tidewheel graph my-workflow --reference 1 3
In pictures, a dashed line means that the child can run without this parent, or that the output
is optional; a dashed violet one (--suicide) removes the child. A word on a line is an output
other than success.
"""


@definition_command("graph", epilog=GRAPH_EPILOG)
@click.argument("start", required=False)
@click.argument("stop", required=False)
@option(
    "--reference form", "Print the graph in Cylc's reference format.", flag_value="reference"
)
@option("--dot form", "Print the graph in the language of Graphviz.", flag_value="dot")
@option(
    "--svg svg [FILE]",
    "Draw a picture, into this file or to standard output.",
    is_flag=False,
    flag_value=STDOUT,
)
@option("-g --group FAMILY...", "Draw this family as one box; repeatable.")
@option("-A --group-all", "Draw every family as one box.")
@option("-c --cycles", "Draw a frame around each point.")
@option("--suicide", "Show suicide arrows, too.")
def graph_command(
    definition: Definition,
    form: str | None,
    svg: str | None,
    **drawing: Any,  # noqa: ANN401
) -> int:
    """Show a workflow's graph from START to STOP: which task waits for which.

    START is a point, by default the initial one. STOP is a point or an interval from START; by
    default three points are shown. Findings go to standard error; exit 2 if there is an error.
    """
    from tidewheel.services.definitions.graph import (
        TASKS_MAX,
        TASKS_READ_MAX,
        drawn_in,
        graph_document,
        read_window,
    )

    if sum(map(bool, (form, svg, definition.as_json))) > 1:
        raise click.UsageError("give only one of --reference, --dot, --svg and --json")
    if svg not in (None, STDOUT) and not str(svg).endswith(".svg"):
        raise click.UsageError(f"--svg takes a file with a name such as graph.svg, not {svg!r}")
    findings = Findings()
    loaded = definition.load(findings)
    if loaded.graph is None:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    suicides = bool(drawing["suicide"])
    is_text = form is None and svg is None and not definition.as_json
    tasks_max = TASKS_READ_MAX if is_text else TASKS_MAX
    ends = drawing["start"], drawing["stop"]
    shown = read_window(loaded, *ends, tasks_max=tasks_max, suicides=suicides)
    status = ExitCode.REFUSED if findings.has_errors else ExitCode.DONE
    if definition.as_json:
        found = [finding_document(one) for one in findings.sorted()]
        say_json(graph_document(shown, drawn_in(loaded)) | {"findings": found})
        return status
    note_findings(findings, loaded.source)
    wishes = _wishes(loaded, drawing)
    if is_text:
        _say(_text_lines(shown, suicides=suicides), STDOUT)
    else:
        _say(_graph_lines(shown, wishes, form), svg or STDOUT)
    if shown.window.cut:
        last = shown.stop if shown.stop is not None else shown.start
        point = shown.graph.cycling.style.text(last)
        note(
            f"there are too many tasks: only those up to {point} are shown; give an earlier "
            "STOP"
        )
    return status


def _graph_lines(shown: ShownWindow, wishes: Wishes, form: str | None) -> Iterable[str]:
    """Returns the lines of the form that was asked for, a picture by default."""
    if form == "reference":
        from tidewheel.core.graph.graph import reference_lines

        return reference_lines(shown.graph, shown.window)
    from tidewheel.cli.drawing.layout import lay_out
    from tidewheel.cli.drawing.sketch import make_sketch
    from tidewheel.cli.drawing.svg import dot_lines, svg_lines
    from tidewheel.services.definitions.graph import edge_facts

    window = shown.window
    if form != "dot":
        _refuse_too_large(len(window.tasks), len(window.edges), EDGES_LOOKED_AT_MAX)
    facts = edge_facts(shown.graph, window, shown.start)
    sketch = make_sketch(shown.graph, window, facts, wishes)
    if form == "dot":
        return dot_lines(sketch, shown.graph.name)
    _refuse_too_large(len(sketch.boxes), len(sketch.lines))
    return svg_lines(sketch, lay_out(sketch), shown.graph.name)


def _refuse_too_large(boxes: int, lines: int, both_max: int = 0) -> None:
    """Raises BadWindow for a picture that nobody would read.

    `both_max`, if given, is the limit for boxes and lines together, before families are
    collapsed.
    """
    from tidewheel.services.definitions.graph import BadWindow

    if both_max and boxes + lines > both_max:
        raise BadWindow(
            f"there are {boxes} tasks and {lines} edges from START to STOP; at most {both_max} "
            "in total can be drawn, even with --group-all: give a STOP nearer to START"
        )
    if not both_max and (boxes > BOXES_MAX or lines > LINES_MAX):
        raise BadWindow(
            f"the picture would have {boxes} boxes and {lines} lines; at most "
            f"{BOXES_MAX} and {LINES_MAX} are possible: give a STOP nearer to START, or "
            "collapse families with --group-all"
        )


def _text_lines(shown: ShownWindow, *, suicides: bool) -> Iterator[str]:
    """Yields the lines that show the graph to a person at a terminal."""
    from tidewheel.cli.drawing.terminal import text_points

    if not shown.graph.nodes:
        yield "the graph has no tasks"
    elif shown.is_empty:
        yield "there is no task between START and STOP"
    for page in text_points(shown.graph, shown.window):
        if not shown.graph.cycling.style.is_unwritten:
            yield click.style(page.point, bold=True)
        width = max(2 * row.depth + len(row.name) for row in page.rows)
        for row in page.rows:
            name = "  " * row.depth + row.name
            waits = f"after {row.waits_for}" if row.waits_for else ""
            removed = f"removed by {row.removed_by}" if suicides and row.removed_by else ""
            told = "; ".join(part for part in (waits, removed) if part)
            beside = f"  {click.style(safe(told), dim=True)}" if told else ""
            yield f"  {name:<{width if told else 0}}{beside}"


def _say(lines: Iterable[str], file: str) -> None:
    text = "\n".join(lines)
    if file == STDOUT:
        say(text)
    else:
        Path(file).write_text(text + "\n", encoding="utf-8")
        note(f"written to {file}")


def _wishes(loaded: LoadedWorkflow, drawing: Mapping[str, object]) -> Wishes:
    from tidewheel.cli.drawing.sketch import Wishes
    from tidewheel.services.definitions.graph import drawn_in

    families = loaded.graph.families if loaded.graph is not None else {}
    collapsed = drawing["group"]
    assert isinstance(collapsed, tuple)
    for name in collapsed:
        if name not in families:
            raise UnknownName("family", name, families, "see: tidewheel list --tree")
    if drawing["group_all"]:
        collapsed = tuple(families)
    return Wishes(
        drawn_in=drawn_in(loaded),
        collapsed=frozenset(collapsed),
        frame_points=bool(drawing["cycles"]),
    )
