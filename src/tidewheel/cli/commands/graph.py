"""``tidewheel graph``: what waits for what, as a picture or for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.definitions import Definition, UnknownName, definition_command
from tidewheel.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidewheel.cli.drawing.sketch import Wishes
    from tidewheel.core.graph.findings import Findings
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
    from tidewheel.services.definitions.graph import ShownWindow

STDOUT = "-"

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
@click.option(
    "--reference", "form", flag_value="reference", help="Print it in Cylc's reference format."
)
@click.option("--dot", "form", flag_value="dot", help="Print it in the language of Graphviz.")
@click.option(
    "--svg",
    "svg",
    is_flag=False,
    flag_value=STDOUT,
    metavar="[FILE]",
    help="Draw a picture, into this file or to standard output.",
)
@click.option(
    "-g",
    "--group",
    multiple=True,
    metavar="FAMILY",
    help="Draw this family as one box; repeatable.",
)
@click.option("-A", "--group-all", is_flag=True, help="Draw every family as one box.")
@click.option("-c", "--cycles", is_flag=True, help="Draw a frame around each point.")
@click.option("--suicide", is_flag=True, help="Show suicide arrows, too.")
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
    from tidewheel.cli.output import note
    from tidewheel.cli.pages.findings import refuse
    from tidewheel.cli.pages.graph import text_lines
    from tidewheel.core.graph.findings import Findings
    from tidewheel.services.definitions.graph import (
        TASKS_MAX,
        TASKS_READ_MAX,
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
    is_text = form is None and svg is None and not definition.as_json
    shown = read_window(
        loaded,
        start,
        stop,
        tasks_max=TASKS_READ_MAX if is_text else TASKS_MAX,
        suicides=bool(drawing["suicide"]),
    )
    if definition.as_json:
        _say_json(shown, loaded, findings)
        return ExitCode.REFUSED if findings.has_errors else 0
    _note_findings(findings, loaded)
    wishes = _wishes(loaded, drawing)
    if is_text:
        _say(text_lines(shown, suicides=bool(drawing["suicide"])), STDOUT)
    else:
        _say(_lines(shown, wishes, form), svg or STDOUT)
    if shown.window.cut:
        note(_how_far(shown))
    return ExitCode.REFUSED if findings.has_errors else 0


def _lines(shown: ShownWindow, wishes: Wishes, form: str | None) -> Iterable[str]:
    from tidewheel.cli.pages import graph
    from tidewheel.core.graph.graph import reference_lines

    match form:
        case "reference":
            return reference_lines(shown.graph, shown.window)
        case "dot":
            return graph.dot_document(shown, wishes)
        case _:
            return graph.svg_document(shown, wishes)


def _say(lines: Iterable[str], file: str) -> None:
    from tidewheel.cli.output import note, say

    text = "\n".join(lines)
    if file == STDOUT:
        say(text)
    else:
        Path(file).write_text(text + "\n", encoding="utf-8")
        note(f"written to {file}")


def _say_json(shown: ShownWindow, loaded: LoadedWorkflow, findings: Findings) -> None:
    from tidewheel.cli.output import say_json
    from tidewheel.core.graph.findings import finding_document
    from tidewheel.services.definitions.graph import drawn_in, graph_document

    document = graph_document(shown, drawn_in(loaded))
    say_json(document | {"findings": [finding_document(one) for one in findings.sorted()]})


def _how_far(shown: ShownWindow) -> str:
    stop = shown.stop if shown.stop is not None else shown.start
    point = shown.graph.cycling.style.text(stop)
    return f"there is too much to be shown: only what is until {point}; give a nearer STOP"


def _note_findings(findings: Findings, loaded: LoadedWorkflow) -> None:
    """Errors and warnings; what is merely remarkable is for validate."""
    from tidewheel.cli.output import note
    from tidewheel.cli.pages.findings import show_findings
    from tidewheel.core.graph.findings import Severity

    worse = [one for one in findings.sorted() if one.severity is not Severity.NOTE]
    show_findings(worse, loaded.source, note)


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
