"""From the options of ``tidewheel run`` to the end of the run, in this process."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from tidewheel import wiring
from tidewheel.cli.definitions import Definition
from tidewheel.cli.findings_page import refuse, show_findings
from tidewheel.cli.printing import note
from tidewheel.cli.run_page import RunPage, page_for
from tidewheel.cli.session import GlobalOptions
from tidewheel.client.run_here import RunEnd, RunHere, RunHereSettings
from tidewheel.config import home_directory
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.core.runs.definition import NewRun, RunOptions
from tidewheel.core.runs.views import RunView
from tidewheel.errors import NotFound, Refused
from tidewheel.ports import Store
from tidewheel.runners.processes import is_process_alive
from tidewheel.services.definitions import Captured, capture
from tidewheel.services.scheduler.choosing import run_to_carry_on
from tidewheel.services.scheduler.run_owner import last_numbered
from tidewheel.sources.flow_cylc.template_variables import read_variables

FAILED, UNAVAILABLE = 1, 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be run: a definition that was read, or the name of a run."""

    captured: Captured | None
    folder: str
    options: RunOptions
    name: str
    is_new: bool
    given: RunOptions  # what counts for a run that is carried on: a default is not given


def run_definition(definition: Definition, options: dict[str, Any]) -> int:
    outer = click.get_current_context().find_object(GlobalOptions) or GlobalOptions()
    where = options["store"] or outer.store
    wanted = _wanted(definition, options)
    if isinstance(wanted, int):
        return wanted
    if wiring.is_remote(where):
        return _run_far(where, wanted, options, as_json=definition.as_json)
    if options["detach"]:
        raise click.UsageError("--detach needs a server, where the run goes on: --server URL")
    settings = RunHereSettings(
        slots=options["slots"],
        tie_jobs=options["tie_jobs"],
        runners=options["runners"],
        allow_compose=options["allow_compose"],
        trigger_log=options["trigger_log"],
    )
    wiring.spare_garbage_collector()
    return asyncio.run(_run(where, wanted, settings, as_json=definition.as_json))


def _run_far(
    where: str | None, wanted: Wanted, options: dict[str, Any], *, as_json: bool
) -> int:
    from tidewheel.cli.run_on_server import Manner, run_on_server

    for name in ("slots", "tie_jobs", "trigger_log"):
        if _is_said(name):
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is for a run that is driven in this process")
    server = wiring.store_settings(where).url
    manner = Manner(
        server=server,
        detach=options["detach"],
        as_json=as_json,
        is_named=where is not None,
    )
    end = asyncio.run(run_on_server(where, wanted, manner))
    return 0 if end is None else _exit_status(end)


def _is_said(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _wanted(definition: Definition, options: dict[str, Any]) -> Wanted | int:
    """What was asked for, or the exit status if it is wrong."""
    given = _options(definition, options)
    if not definition.path.exists():
        if definition.path.suffix == ".py" or options["is_new"]:
            raise Refused(f"there is no file or folder {definition.path}")
        name = str(definition.path)
        return Wanted(None, "", given, name, is_new=False, given=_without_defaults(given))
    findings = Findings()
    loaded = definition.load_for_run(given, findings)
    if loaded.graph is None or findings.has_errors:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    if not definition.as_json:
        worse = [one for one in findings.sorted() if one.severity is not Severity.NOTE]
        show_findings(worse, loaded.source, note)
    variables = read_variables(definition.source_options().variables, Findings())
    captured = capture(loaded, definition.path, variables)
    if captured.too_large:
        some = ", ".join(captured.too_large[:3])
        note(f"too large to be kept with the run, left where they are: {some}")
    folder = str(definition.path.resolve())
    return Wanted(
        captured,
        folder,
        given,
        options["name"],
        is_new=options["is_new"],
        given=_without_defaults(given),
    )


def _options(definition: Definition, options: dict[str, Any]) -> RunOptions:
    return RunOptions(
        compat=definition.compat or "",
        mode=options["mode"],
        initial=definition.icp,
        final=definition.fcp,
        start=options["start"],
        start_tasks=tuple(options["start_tasks"]),
        stop=options["stop"],
        hold_after=options["hold_after"],
        paused=options["paused"],
        now=time.time_ns() / 1e9,
        abort_if_any_task_fails=options["aborts"],
        stall_timeout_seconds=options["stall_timeout"],
    )


def _without_defaults(options: RunOptions) -> RunOptions:
    return options if _is_said("mode") else replace(options, mode="")


async def _run(
    where: str | None, wanted: Wanted, settings: RunHereSettings, *, as_json: bool
) -> int:
    async with wiring.opened_store(where) as store:
        run, is_new = await _choose(store, wanted)
        if not is_new:
            settings = replace(settings, given=wanted.given)
        page = page_for(run, is_new=is_new, as_json=as_json, stream=sys.stdout)
        here = RunHere(
            where,
            store,
            run,
            settings,
            on_batch=page.on_batch,
            on_report=page.on_report,
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _ask_stop, here, page)
        with page:
            end = await here.to_the_end()
        page.show_end(end)
        return _exit_status(end)


def _ask_stop(here: RunHere, page: RunPage) -> None:
    page.stopping()
    here.ask_stop()


async def _choose(store: Store, wanted: Wanted) -> tuple[RunView, bool]:
    """The run to be driven, and whether it is new."""
    if wanted.captured is None:
        try:
            return await store.find_run(wanted.name), False
        except NotFound:
            raise Refused(
                f"there is neither a folder nor a run {wanted.name!r}; name a folder with a "
                "flow.cylc, a Python file, or one of: tidewheel runs"
            ) from None
    definition = wanted.captured.definition
    runs = await store.runs(workflow=definition.workflow)
    if not wanted.is_new and not wanted.name:
        found = run_to_carry_on(
            runs,
            wanted.folder,
            await store.now(),
            is_process_alive,
            goes_further=bool(wanted.options.final),
        )
        if found is not None:
            _tell_of_change(found, definition.digest)
            return found, False
    await store.save_definition(definition)
    new = NewRun(
        workflow=definition.workflow,
        definition=definition.digest,
        name=wanted.name or _unused_name(definition.workflow, runs),
        options=wanted.options,
        folder=wanted.folder,
    )
    return await store.create_run(new), True


def _unused_name(workflow: str, runs: Sequence[RunView]) -> str:
    """Empty: the store finds one, unless folders of runs are left that it does not know."""
    last = last_numbered(workflow, home_directory())
    is_known = not last or any(run.name == f"{workflow}/run{last}" for run in runs)
    return "" if is_known else f"{workflow}/run{last + 1}"


def _tell_of_change(run: RunView, digest: str) -> None:
    if run.definition != digest:
        note(
            f"the definition has changed since {run.name} took it, which goes on with the old "
            f"one; give it the new one once it runs: tidewheel reload {run.name}"
        )


def _exit_status(end: RunEnd) -> int:
    if end.status in ("lost", "left"):
        return UNAVAILABLE
    if end.was_aborted or end.status in ("stalled", "error"):
        return FAILED
    return 0 if end.status != "completed" or end.has_run_anything else FAILED
