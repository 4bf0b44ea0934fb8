"""Does ``tidewheel graph``: shows what waits for what, as a picture or for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.definitions import Definition, UnknownName, definition_command
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, safe, say, say_json
from tidewheel.cli.pages.findings import note_findings, refuse
from tidewheel.cli.session import option
from tidewheel.core.graph.findings import Findings, finding_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidewheel.cli.drawing.sketch import Sketch, Wishes
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
    from tidewheel.services.definitions.graph import ShownWindow

STDOUT = "-"
BOXES_MAX = 3000  # of a picture; nobody reads more
LINES_MAX = 20_000
EDGES_LOOKED_AT_MAX = 200_000  # before families are collapsed

EPILOG = """\b
Examples:
  tidewheel graph my-workflow
  tidewheel graph my-workflow 20300101 20300103 --svg=graph.svg --cycles
  tidewheel graph my-workflow --reference 1 3
In the pictures a dashed line is a parent that its child can do without, or an output that
need not happen; a word on a line is an output other than success.
"""


@definition_command("graph", epilog=EPILOG)
@click.argument("start", required=False)
@click.argument("stop", required=False)
@option("--reference form", "Print it in Cylc's reference format.", flag_value="reference")
@option("--dot form", "Print it in the language of Graphviz.", flag_value="dot")
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
def command(
    definition: Definition,
    start: str | None,
    stop: str | None,
    form: str | None,
    svg: str | None,
    **drawing: object,
) -> int:
    """Show a workflow's graph from START to STOP: who waits for whom.

    START is a point, by default the initial one. STOP is a point or an interval from START; by
    default there are three points. Findings go to standard error; exit 2 if there is an error.
    """
    from tidewheel.services.definitions.graph import (
        TASKS_MAX,
        TASKS_READ_MAX,
        drawn_in,
        graph_document,
        read_window,
    )

    if sum(map(bool, (form, svg, definition.as_json))) > 1:
        raise click.UsageError("give one of --reference, --dot, --svg and --json")
    if svg not in (None, STDOUT) and not str(svg).endswith(".svg"):
        raise click.UsageError(f"--svg takes a file with a name such as graph.svg, not {svg!r}")
    findings = Findings()
    loaded = definition.load(findings)
    if loaded.graph is None:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    suicides = bool(drawing["suicide"])
    is_text = form is None and svg is None and not definition.as_json
    tasks_max = TASKS_READ_MAX if is_text else TASKS_MAX
    shown = read_window(loaded, start, stop, tasks_max=tasks_max, suicides=suicides)
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
        _say(_lines(shown, wishes, form), svg or STDOUT)
    if shown.window.cut:
        last = shown.stop if shown.stop is not None else shown.start
        point = shown.graph.cycling.style.text(last)
        note(f"there is too much to be shown: only what is until {point}; give a nearer STOP")
    return status


def _lines(shown: ShownWindow, wishes: Wishes, form: str | None) -> Iterable[str]:
    """Returns the lines of the form that was asked for, a picture by default."""
    if form == "reference":
        from tidewheel.core.graph.graph import reference_lines

        return reference_lines(shown.graph, shown.window)
    if form == "dot":
        from tidewheel.cli.drawing.svg import dot_lines

        return dot_lines(_sketch(shown, wishes), shown.graph.name)
    from tidewheel.cli.drawing.layout import lay_out
    from tidewheel.cli.drawing.svg import svg_lines

    _refuse_too_large(len(shown.window.tasks), len(shown.window.edges), EDGES_LOOKED_AT_MAX)
    sketch = _sketch(shown, wishes)
    _refuse_too_large(len(sketch.boxes), len(sketch.lines))
    return svg_lines(sketch, lay_out(sketch), shown.graph.name)


def _refuse_too_large(boxes: int, lines: int, both_max: int = 0) -> None:
    """Refuses a picture that nobody would read; `both_max` holds before families are
    collapsed."""
    from tidewheel.services.definitions.graph import BadWindow

    if boxes + lines > both_max if both_max else boxes > BOXES_MAX or lines > LINES_MAX:
        raise BadWindow(
            f"the picture would have {boxes} boxes and {lines} lines; at most {BOXES_MAX} and "
            f"{LINES_MAX} are drawn: give a STOP nearer to START, or collapse families with "
            "--group-all"
        )


def _sketch(shown: ShownWindow, wishes: Wishes) -> Sketch:
    from tidewheel.cli.drawing.sketch import make_sketch
    from tidewheel.services.definitions.graph import edge_facts

    facts = edge_facts(shown.graph, shown.window, shown.start)
    return make_sketch(shown.graph, shown.window, facts, wishes)


def _text_lines(shown: ShownWindow, *, suicides: bool) -> Iterator[str]:
    """Yields the lines that show the graph to a person at a terminal."""
    from tidewheel.cli.drawing.terminal import text_points

    if shown.is_empty:
        yield "there is no task between START and STOP"
    for page in text_points(shown.graph, shown.window):
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
