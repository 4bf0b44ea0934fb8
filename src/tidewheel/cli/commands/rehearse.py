"""Does ``tidewheel rehearse``: plays a workflow on a virtual clock, without running a job."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidewheel.cli.definitions import PATH, Definition, UnknownName, definition_command
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, plural, say, say_json
from tidewheel.cli.pages.findings import note_findings, refuse
from tidewheel.cli.session import option
from tidewheel.core.graph.findings import Findings
from tidewheel.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidewheel.core.graph.graph import Graph
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
    from tidewheel.services.rehearsal.assumptions import AssumedEnd, AssumedValues, Assumptions
    from tidewheel.services.rehearsal.play import Progress
    from tidewheel.services.rehearsal.record import Rehearsal

FAIL_ACCEPTED = "POINT/NAME or POINT/NAME@TRY, globs allowed: 3/model, '*/model@1'"

EPILOG = """\b
Examples:
  tidewheel rehearse my-workflow
  tidewheel rehearse my-workflow --until 20301231T23 --length model=40m --slots 8
  tidewheel rehearse my-workflow --fail '*/model@1' --timeline
  tidewheel rehearse my-workflow --fail 3/model --svg=plan.svg
  tidewheel rehearse my-workflow --value fetch.file=obs.nc
Jobs take as long as in earlier runs; if there are none, as long as [[simulation]] says, or 10
seconds. NAME may also be a family.
"""


@definition_command("rehearse", epilog=EPILOG)
@option("--until POINT", "Play no tasks beyond this point.")
@option("--at TIME", "The time at which the virtual clock starts. [default: the first point]")
@option(
    "--fail failures ID[@TRY]...",
    "Let these tasks fail: 3/model at every try, '*/model@1' at the first; repeatable.",
)
@option(
    "--length lengths NAME=DURATION...",
    "How long jobs of this task or family take: model=40m; repeatable. If several of these "
    "options match a task, the last one is used.",
)
@option(
    "--value values TASK.NAME=VALUE...",
    "A value that a task returns: fetch.file=obs.nc, list.files=[1,2]; JSON, or a string.",
)
@option("--slots", "How many jobs run at once.", type=click.IntRange(1), shown=100)
@option(
    "--history/--no-history learns",
    "Let jobs take as long as in earlier runs of this workflow, if there are any.",
    shown=True,
)
@option(
    "--store --server store URL",
    "The store or server with the earlier runs (or set TIDEWHEEL_STORE or TIDEWHEEL_SERVER).",
)
@option("--timeline", "Draw when each task runs, as text.")
@option("--svg", "Write the timeline as an SVG picture to this file.", type=PATH)
@option("--trigger-log", "Write to this file what triggered each task.", type=PATH)
def command(definition: Definition, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Play a workflow on a virtual clock: what would run when, what would wait, what stalls.

    Nothing is run or stored. Limits, runahead, retries, clock triggers and expiry work as in a
    run. Exit 1 if the workflow stalls or waits for a release, if nothing would run or if
    there are too many tasks to play, 2 if there is an error in the definition.
    """
    svg: Path | None = options["svg"]
    if svg is not None and svg.suffix != ".svg":
        raise click.UsageError(f"--svg takes a file such as plan.svg, not {str(svg)!r}")
    findings = Findings()
    loaded = definition.load(findings)
    if loaded.graph is None or findings.has_errors:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    if not definition.as_json:
        note_findings(findings, loaded.source)
    assumptions = _assumptions(
        loaded, options["failures"], options["lengths"], options["slots"]
    )
    assumptions = replace(assumptions, values=_values(loaded.graph, options["values"]))
    if options["learns"]:
        learnt = _learnt(definition, loaded, options["store"])
        assumptions = replace(assumptions, learnt=learnt)
    rehearsal, real_seconds = _play(loaded, assumptions, options["until"], options["at"])
    _show(rehearsal, options, real_seconds, as_json=definition.as_json)
    if rehearsal.ran_nothing and not definition.as_json:
        from tidewheel.core.sched.pool import NOTHING_RAN

        note(NOTHING_RAN)
    fails = rehearsal.is_stalled or rehearsal.is_cut or rehearsal.ran_nothing
    return ExitCode.FAILED if fails else ExitCode.DONE


def _play(
    loaded: LoadedWorkflow, assumptions: Assumptions, until: str | None, at: str | None
) -> tuple[Rehearsal, float]:
    """Plays the workflow; returns the rehearsal, and how many real seconds it took."""
    from tidewheel.core.queue.task import Instant
    from tidewheel.services.rehearsal.assumptions import point_of
    from tidewheel.services.rehearsal.play import POINTS_DEFAULT, last_of, rehearse

    graph = loaded.graph
    assert graph is not None
    if at and graph.cycling.is_integer:
        raise click.UsageError(
            "--at is only for date-time cycling; this workflow has integer points"
        )
    begins_at = Instant(float(point_of(at, loaded))) if at else None
    last = point_of(until, loaded) if until else last_of(graph)
    if last is not None and last < graph.cycling.initial:
        text = graph.cycling.style.text
        first = text(graph.cycling.initial)
        raise BadSetting("--until", text(last), f"the initial point {first}, or a later point")
    if last is not None and not until:
        point = graph.cycling.style.text(last)
        count = POINTS_DEFAULT
        note(f"there is no final point: only the first {count} points are played, to {point};")
        note("for more, give --until POINT")
    began = time.monotonic()
    with _news(graph) as show:
        rehearsal = rehearse(graph, assumptions, at=begins_at, until=last, on_progress=show)
    return rehearsal, time.monotonic() - began


def _assumptions(
    loaded: LoadedWorkflow, failures: Iterable[str], lengths: Iterable[str], slots: int
) -> Assumptions:
    from tidewheel.quantities import parse_duration
    from tidewheel.services.rehearsal.assumptions import Assumptions

    assert loaded.graph is not None
    seconds: dict[str, float] = {}
    for one in lengths:
        pattern, sign, duration = one.partition("=")
        if not sign or not pattern:
            raise BadSetting("--length", one, "NAME=DURATION, for example model=40m")
        length = parse_duration(duration, f"--length of {pattern}")
        seconds |= dict.fromkeys(_meant(loaded.graph, pattern), length)
    return Assumptions(
        lengths=seconds, ends=[_failure(loaded, one) for one in failures], slots=slots
    )


def _values(graph: Graph, given: Iterable[str]) -> list[AssumedValues]:
    """Returns what tasks are assumed to return, JSON objects by the names of the tasks."""
    import json

    from tidewheel.core.queue.values import read_value, values_text
    from tidewheel.services.rehearsal.assumptions import AssumedValues

    found: dict[str, dict[str, object]] = {}
    for text in given:
        left, sign, value = text.partition("=")
        pattern, dot, name = left.partition(".")
        if not (sign and dot and pattern and name):
            raise BadSetting("--value", text, "TASK.NAME=VALUE, for example fetch.file=obs.nc")
        for task in _meant(graph, pattern):
            found.setdefault(task, {}).update([read_value(f"{name}={value}")])
    return [
        AssumedValues("*", task, values_text(json.dumps(values)))
        for task, values in found.items()
    ]


def _learnt(
    definition: Definition, loaded: LoadedWorkflow, where: str | None
) -> dict[str, float]:
    """Returns how many seconds tasks took in earlier runs, by name; makes no store if there
    is none."""
    import asyncio

    from tidewheel.cli.runs.remote import folder_text
    from tidewheel.config import home_directory
    from tidewheel.services.rehearsal.assumptions import learnt_lengths
    from tidewheel.wiring.services import run_door
    from tidewheel.wiring.stores import opened_store, require_if_named, store_exists

    assert loaded.workflow is not None
    if not store_exists(where):
        require_if_named(where)  # one that was named should be there
        return {}
    workflow, folder = loaded.workflow.name, str(definition.path.resolve())
    folders = (definition.origin,) if definition.origin else (folder, folder_text(folder))

    async def ask() -> dict[str, float]:
        async with opened_store(where) as store:
            door = run_door(store, home_directory())
            return await learnt_lengths(door, workflow, folders)

    learnt = asyncio.run(ask())
    if learnt and not definition.as_json:
        note(f"for {plural(len(learnt), 'task')} the run time of earlier runs is assumed")
    return learnt


def _meant(graph: Graph, pattern: str) -> list[str]:
    from tidewheel.services.rehearsal.assumptions import named_in_python, names_meant

    found = names_meant(graph, named_in_python(graph, pattern))
    if not found:
        known = [*graph.nodes, *graph.families]
        raise UnknownName("task or family", pattern, known, "see: tidewheel list")
    return found


def _failure(loaded: LoadedWorkflow, text: str) -> AssumedEnd:
    from tidewheel.services.rehearsal.assumptions import (
        AssumedEnd,
        named_in_python,
        point_pattern,
    )

    assert loaded.graph is not None
    task, at, number = text.partition("@")
    point, slash, name = task.rpartition("/")
    if not name or (slash and not point) or (at and not number.isdecimal()):
        raise BadSetting("--fail", text, FAIL_ACCEPTED)
    _meant(loaded.graph, name)
    name = named_in_python(loaded.graph, name)
    return AssumedEnd(point_pattern(point, loaded), name, int(number) if at else None)


@contextmanager
def _news(graph: Graph) -> Iterator[Callable[[Progress], None]]:
    """Yields a function that shows how far the rehearsal is, on one line of a terminal.

    The line is wiped at the end; where there is no terminal, nothing is shown.
    """
    is_shown = sys.stderr.isatty()

    def show(progress: Progress) -> None:
        if is_shown:
            point = graph.cycling.style.text(progress.point)
            text = f"rehearsing {point}: {progress.submissions:,} tasks so far"
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    try:
        yield show
    finally:
        if is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def _show(
    rehearsal: Rehearsal, options: Mapping[str, Any], real_seconds: float, *, as_json: bool
) -> None:
    from tidewheel.cli.pages import rehearsal as page

    files = {"trigger_log": rehearsal.trigger_lines(), "svg": page.svg_lines(rehearsal)}
    for option_name, lines in files.items():
        path: Path | None = options[option_name]
        if path is not None:
            with path.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
            note(f"written to {path}")
    if as_json:
        say_json(page.document(rehearsal, real_seconds))
        return
    page.say_summary(rehearsal, real_seconds)
    if options["timeline"]:
        say()
        for line in page.timeline(rehearsal):
            say(line)
