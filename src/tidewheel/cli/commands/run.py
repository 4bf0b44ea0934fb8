"""Does ``tidewheel run``: runs a workflow, or carries one on; alone, so that it starts fast."""

from __future__ import annotations

from typing import Any

import click

from tidewheel.cli.capacity_options import offering_options
from tidewheel.cli.definitions import PATH, Definition, by_path, definition_command
from tidewheel.cli.parameters import DURATION
from tidewheel.cli.session import option
from tidewheel.core.operator.views import UNDONE_KINDS

EPILOG = """\b
Examples:
  tidewheel run my-workflow                the folder with its flow.cylc
  tidewheel run my-workflow/run2           resume a run that was stopped
  tidewheel run my-workflow --new --icp 20300101T00Z --stopcp 20300107T00Z
  tidewheel run my-workflow --mode simulation
  tidewheel run vis-ingest-1.0.0.yaml.j2 -p nodes=4 -p site=north
  tidewheel run vis-ingest/1.0.0 -p nodes=4        a registered workflow
  tidewheel run my-workflow --server https://tide.example.org
Ctrl-C waits until active tasks have finished, then stops the run. A second Ctrl-C, or SIGTERM,
exits at once: jobs keep running, and the next start finds them.
From another terminal: tidewheel show, why, trigger, stop …
"""


@definition_command("run", epilog=EPILOG, meant=by_path)
@option("--new is_new", "Start a new run, even if one could be resumed.")
@option("--run-name --name name TEXT", "Start a new run with this name.", default="")
@option(
    "--startcp --start-cycle-point start POINT",
    "Start at this point; everything before it counts as done.",
    default="",
)
@option("--start-task -t start_tasks ID...", "Start from these tasks only; repeatable.")
@option(
    "--stopcp --stop-cycle-point stop POINT",
    "Stop after this point; the next start resumes the run.",
    default="",
)
@option(
    "--hold-after --hold-cycle-point --holdcp hold_after POINT",
    "Hold every task beyond this point.",
    default="",
)
@option("--pause paused", "Start the run paused.")
@option(
    "--mode -m",
    "live runs the jobs; simulation only waits for their run length; dummy runs empty jobs; "
    "skip lets each task succeed at once.",
    type=click.Choice(["live", "simulation", "dummy", "skip"]),
    shown="live",
)
@option("--abort-if-any-task-fails", "Stop the run at the first task that fails.")
@option(
    "--stall-timeout stall_timeout_seconds",
    "How long a stalled run waits for action before it stops; with 0 it stops at once. "
    "[default: as defined, else 1h]",
    type=DURATION,
)
@option(
    "--fail-on ...",
    "Exit 1 also if the run completes with tasks that are lost (something they need "
    "failed) or skipped (expired, removed by hand, or brought too late by a reload); "
    "repeatable.",
    type=click.Choice(UNDONE_KINDS),
)
@option(
    "--priority",
    "The priority of all tasks of the run: if workers serve several runs, tasks with a higher "
    "priority start first.",
    type=click.IntRange(-1, 100),
)
@option("--slots", "How many jobs to run at once.", type=click.IntRange(1), shown=100)
@offering_options
@option("--tie-jobs", "Jobs are ended when this process ends, even if it is killed.")
@option("--trigger-log", "Write to this file what triggered each task.", type=PATH)
@option("--detach", "With a server: begin the run, but do not follow it.")
@option(
    "--store --server store URL",
    "The store of the run (or TIDEWHEEL_STORE), or the server that runs it.",
)
def command(definition: Definition, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Run a workflow until it is complete, or resume one that was stopped.

    Instead of DIR or FILE you can name a run, or NAME[/VERSION] of a registered workflow.
    The newest run of the definition is resumed if it was stopped, stalled or interrupted; else
    a new one starts. While it is running, only --new or --run-name starts another. With
    --server, the definition is sent to the server and its schedulers drive the run; this
    command follows it.
    Without a server, event handlers and xtrigger functions of a definition from your folder run
    in this process.

    Exit 0 if the run completed or reached its stop point, 1 if it stalled, failed or had
    nothing to run, 2 if the request or the definition was wrong, 3 if the store or the server
    does not answer, 4 if it was stopped before its end or another scheduler drives it now, 130
    after Ctrl-C, 143 after SIGTERM (see the manual, Exit codes).
    """
    from tidewheel.cli.runs.local import run_definition

    return run_definition(definition, options)
