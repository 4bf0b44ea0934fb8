"""From the options of ``tidewheel run`` to the end of the run, in this process."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tidewheel.cli.capacity_options import OPTION_NAMES, lacking, offered
from tidewheel.cli.definitions import Definition
from tidewheel.cli.exit_codes import SIGNALLED, ExitCode, FinalStatus
from tidewheel.cli.output import note
from tidewheel.cli.pages.findings import check_places_here, refuse, show_findings
from tidewheel.cli.pages.run_progress import RunPage, page_for
from tidewheel.cli.pages.workflows import tell_refusal
from tidewheel.cli.runs.owed_result import Owed, is_still_asked, tell_again, under_way, words_of
from tidewheel.cli.runs.pending import UntakenWaits, waits_in_vain
from tidewheel.cli.runs.registered import (
    TellOfStages,
    found_run,
    is_exactly,
    named_request,
    registered_here,
    tell_of_namesake,
    the_run,
    unknown_name,
    with_parameters,
)
from tidewheel.cli.session import GlobalOptions, NewStore
from tidewheel.client.run_here import LEFT, LOST, RunEnd, RunHere, RunHereSettings
from tidewheel.config import CONTAINER_RUNNERS, CONTAINERS, home_directory
from tidewheel.core.graph.findings import Findings, InvalidDefinition, Severity
from tidewheel.core.graph.node import RunMode
from tidewheel.core.operator.definition import (
    SIP,
    NewRun,
    RunOptions,
    StoredDefinition,
    is_same_content,
)
from tidewheel.core.operator.end_reasons import UndoneKind, is_at_own_stop_point
from tidewheel.core.operator.registry import RunRequest
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.pool import RunStatus
from tidewheel.errors import Aborted, Refused, Unavailable
from tidewheel.ports.store import Store
from tidewheel.runners.processes import is_process_alive
from tidewheel.scheduler.choosing import (
    is_driven,
    is_same_request,
    newest_of,
    run_to_carry_on,
)
from tidewheel.scheduler.run_driver import ERROR
from tidewheel.scheduler.run_owner import last_numbered
from tidewheel.scheduler.telling import DRAIN_SECONDS
from tidewheel.services.definitions.kept import Captured
from tidewheel.services.service import OnReport
from tidewheel.wiring.machine import spare_garbage_collector
from tidewheel.wiring.services import deliver_left, run_door
from tidewheel.wiring.stores import (
    is_remote,
    opened_store,
    require_if_named,
    store_exists,
    store_settings,
)

if TYPE_CHECKING:
    from tidewheel.scheduler.outcome import Work
    from tidewheel.scheduler.stage import Stage
    from tidewheel.services.definitions.sip import StageSource

STAGES_TOLD_MAX = 5
UNDELIVERED_MAX = 100  # runs that are looked at


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be run: a definition that was read, or the name of a run."""

    captured: Captured | None
    folder: str
    options: RunOptions
    name: str
    is_new: bool
    given: RunOptions  # what counts for a run that is carried on: a default is not given
    registered: RunRequest | None = None  # what the same words would ask of the registry
    fail_on: tuple[UndoneKind, ...] = ()  # of a completed run

    @property
    def words(self) -> str:
        """What the result of a run is owed to."""
        if self.captured is not None:
            variables = self.captured.definition.variables
            return words_of(self.folder, self.options, variables)
        variables = "" if self.registered is None else self.registered.parameters_text
        return words_of(self.name, self.options, variables)

    @property
    def request(self) -> str | None:
        """The parameters, of a SIP definition."""
        is_sip = self.captured is not None and self.captured.definition.kind == SIP
        return self.options.parameters if is_sip else None


def run_definition(definition: Definition, options: dict[str, Any]) -> int:
    outer = click.get_current_context().find_object(GlobalOptions) or GlobalOptions()
    where = options["store"] = options["store"] or outer.store
    try:
        wanted = _wanted(definition, options)
        if isinstance(wanted, int):
            return wanted
        return _run_wanted(where, wanted, options, as_json=definition.as_json)
    except InvalidDefinition as error:
        return tell_refusal(error, as_json=definition.as_json)


def _run_wanted(
    where: str | None, wanted: Wanted, options: dict[str, Any], *, as_json: bool
) -> int:
    if is_remote(where):
        return _run_far(where, wanted, options, as_json=as_json)
    if options["detach"]:
        raise click.UsageError("--detach needs a server, where the run goes on: --server URL")
    spare_garbage_collector()
    return asyncio.run(_run(where, wanted, _here(options), as_json=as_json))


def _here(options: dict[str, Any]) -> RunHereSettings:
    return RunHereSettings(
        slots=options["slots"],
        tie_jobs=options["tie_jobs"],
        trigger_log=options["trigger_log"],
        **offered(options),
    )


def _run_far(
    where: str | None, wanted: Wanted, options: dict[str, Any], *, as_json: bool
) -> int:
    from tidewheel.cli.runs.remote import Manner, run_on_server

    only_here = ("slots", "tie_jobs", "trigger_log", *OPTION_NAMES)
    for option in click.get_current_context().command.params:
        if option.name in only_here and _is_said(option.name):
            raise click.UsageError(
                f"{option.opts[0]} is for a run that is driven in this process"
            )
    server = store_settings(where).url
    manner = Manner(
        server=server,
        detach=options["detach"],
        as_json=as_json,
        is_named=where is not None,
    )
    far = asyncio.run(run_on_server(where, wanted, manner))
    if far.end is None:
        return ExitCode.DONE
    return _settled(far.owed, far.end, far.signalled, wanted.fail_on)


def _is_said(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _wanted(definition: Definition, options: dict[str, Any]) -> Wanted | int:
    """What was asked for, or the exit status if it is wrong."""
    given = _options(definition, options)
    if not definition.path.exists():
        return _wanted_by_name(definition, options, given)
    findings = Findings()
    loaded, captured, stages = definition.load_for_run(given, findings)
    is_near = not is_remote(options["store"])  # else the server says what is known there
    if is_near and loaded.graph is not None and given.mode == RunMode.LIVE:
        check_places_here(loaded.graph, findings)
    if captured is None or findings.has_errors:
        return refuse(findings, loaded.source, as_json=definition.as_json)
    if not definition.as_json:
        worse = [one for one in findings.sorted() if one.severity is not Severity.NOTE]
        show_findings(worse, loaded.source, note)
    if captured.too_large:
        some = ", ".join(captured.too_large[:3])
        note(f"too large to be kept with the run, left where they are: {some}")
    if stages is not None and is_near:
        _tell_of_needs(stages, _here(options))
    folder = str(definition.path.resolve())
    return Wanted(
        captured,
        folder,
        given,
        options["name"],
        is_new=options["is_new"],
        given=_without_defaults(given),
        registered=named_request(definition.path),
        fail_on=options["fail_on"],
    )


def _wanted_by_name(
    definition: Definition, options: dict[str, Any], given: RunOptions
) -> Wanted:
    asked = named_request(definition.path)
    if definition.is_python or definition.is_sip or (options["is_new"] and asked is None):
        raise Refused(f"there is no file or folder {definition.path}")
    if asked is not None:
        asked = with_parameters(asked, definition, given, options["name"])
    return Wanted(
        None,
        "",
        given,
        str(definition.path),
        is_new=options["is_new"],
        given=_without_defaults(given),
        registered=asked,
        fail_on=options["fail_on"],
    )


def _tell_of_needs(stages: StageSource, settings: RunHereSettings) -> None:
    """Rather than wait in silence for a worker that nobody has started."""
    from tidewheel.scheduler.container_stage import stages_without

    for runner, names in stages_without(stages, settings.runners).items():
        option = CONTAINER_RUNNERS[0] if runner == CONTAINERS else runner
        note(
            f"{_some(names)}: containers, and nothing here runs them without --runner {option};"
            " they wait for a worker that has it"
        )
    assert settings.capacity is not None, "the options say it"
    short: dict[str, list[str]] = {}
    for stage in stages.parameters.definition.stages:
        if options := lacking(stage.asked(), settings.capacity):
            short.setdefault(options, []).append(stage.id)
    for options, names in short.items():
        note(
            f"{_some(names)}: wants more than is offered here, and waits for a worker that "
            f"offers it; or say {options}"
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - STAGES_TOLD_MAX
    return ", ".join(names[:STAGES_TOLD_MAX]) + (f" and {more} more" if more > 0 else "")


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
        parameters=_parameters(definition),
        priority=options["priority"],
    )


def _parameters(definition: Definition) -> str:
    """As they are kept; what is no JSON is told when the definition is read with it."""
    if not definition.is_sip:
        return ""
    given = definition.variables(Findings())
    return json.dumps(given, default=str, sort_keys=True) if given else ""


def _without_defaults(options: RunOptions) -> RunOptions:
    return options if _is_said("mode") else replace(options, mode="")


class Chosen(NamedTuple):
    """The run that is meant: to be driven, or only to be told of since it has ended."""

    run: RunView
    is_new: bool = False
    is_over: bool = False


async def _run(
    where: str | None, wanted: Wanted, settings: RunHereSettings, *, as_json: bool
) -> int:
    if wanted.captured is None and not store_exists(where):
        require_if_named(where)
        raise unknown_name(wanted.name)  # nor can it be in a store that is yet to be made
    new = NewStore(where, as_json=as_json)
    async with opened_store(where) as store:
        new.tell()
        chosen = await _choose(store, wanted, lambda stages: _tell_of_needs(stages, settings))
        run, home = chosen.run, home_directory()
        if run.is_aborted:
            raise Aborted(run.name, run.reason)
        owed = Owed.here(home, run)
        if chosen.is_over:
            owed.note(wanted.words)
            end = await tell_again(run_door(store, home), run, as_json=as_json)
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await _deliver_left(where, store, run, is_over=True)
            return _settled(owed, end, None, wanted.fail_on)
        if not chosen.is_new:
            settings = replace(settings, given=wanted.given)
        page = page_for(run, is_new=chosen.is_new, as_json=as_json, stream=sys.stdout)
        untaken = UntakenWaits(run_door(store, home), run.name, is_here=True)

        def claimed() -> None:
            page.claimed()
            owed.note(wanted.words)

        def on_batch(stage: Stage, work: Work) -> None:
            page.on_batch(stage, work)
            untaken.heed(work)

        here = RunHere(
            where,
            store,
            run,
            settings,
            on_claimed=claimed,
            on_batch=on_batch,
            on_report=page.on_report,
        )
        left = asyncio.create_task(_deliver_left(where, store, run, on_report=page.on_report))
        watching = asyncio.create_task(untaken.watch(page.line))
        signals = _Signals(here, page, lambda: _tell_who_waits(store, run, page))
        with page:
            end = await here.to_the_end()
            watching.cancel()
            await signals.awaits(left, DRAIN_SECONDS)
            signals.over()
        if not chosen.is_new:
            with suppress(Refused, Unavailable):  # of one that cannot be read
                page.remembers(await run_door(store, home).look("show", {"run": run.name}))
        page.show_end(end)
        return _settled(owed, end, signals.last, wanted.fail_on)


class _Signals:
    """Ctrl-C stops the run, and again leaves it; SIGTERM leaves it at once."""

    def __init__(
        self, here: RunHere, page: RunPage, tell: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self.last: signal.Signals | None = None
        self._here, self._page, self._tell = here, page, tell
        self._telling: asyncio.Task[None] | None = None
        self._terminated = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in SIGNALLED:
            loop.add_signal_handler(number, self._hear, number)

    def _hear(self, number: signal.Signals) -> None:
        self.last = number
        if number is signal.SIGTERM:
            self._terminated.set()
            self._page.leaving()
            self._here.leave()
            return
        self._page.stopping()
        self._here.ask_stop()
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def awaits(self, task: asyncio.Task[None], seconds_max: float) -> None:
        """Wait for what is done beside the run, no longer than this, nor after SIGTERM."""
        terminated = asyncio.create_task(self._terminated.wait())
        await asyncio.wait(
            (task, terminated), timeout=seconds_max, return_when=asyncio.FIRST_COMPLETED
        )
        terminated.cancel()
        task.cancel()
        await asyncio.wait((task,))

    def over(self) -> None:
        """Nobody waits for anybody any more."""
        if self._telling is not None:
            self._telling.cancel()


async def _deliver_left(
    where: str | None,
    store: Store,
    run: RunView,
    *,
    is_over: bool = False,
    on_report: OnReport | None = None,
) -> None:
    """Call the handlers of runs of the same workflow that were killed at their very end.

    Those of the run itself only if it is over; else whoever drives it calls them.
    """
    home = home_directory()
    try:
        found = await store.undelivered_runs(0.0, UNDELIVERED_MAX)
        now = await store.now()
    except (Unavailable, Refused):
        return
    for one in found:
        is_own = one.number == run.number
        is_left = is_over if is_own else Owed.here(home, one).has_left_handlers(now)
        if one.workflow == run.workflow and is_left:
            with suppress(Unavailable, Refused):  # it hides none of the others
                await deliver_left(where, store, one, home, on_report)


async def _tell_who_waits(store: Store, run: RunView, page: RunPage) -> None:
    """A run that stops awaits its active tasks, also those that nobody will ever take."""
    with suppress(Unavailable, Refused):
        for line in await waits_in_vain(run_door(store, home_directory()), run.name):
            page.line(line)


async def _choose(store: Store, wanted: Wanted, tell: TellOfStages) -> Chosen:
    if wanted.captured is not None:
        await tell_of_namesake(store, wanted)
        return await _chosen(store, wanted, wanted.captured.definition, wanted.words)
    named = await found_run(store.find_run, wanted)
    if is_exactly(named, wanted.name):
        return Chosen(named)
    found = await registered_here(store, wanted, tell)
    if found is not None and found.captured is not None:
        return await _chosen(store, found, found.captured.definition, wanted.words)
    return Chosen(the_run(named))


async def _chosen(
    store: Store, wanted: Wanted, definition: StoredDefinition, words: str
) -> Chosen:
    runs = await store.runs(workflow=definition.workflow)
    if not wanted.is_new and not wanted.name:
        now, request = await store.now(), wanted.request
        newest = newest_of(runs, wanted.folder)
        if (
            newest is not None
            and is_same_request(newest, request)
            and is_driven(newest, now, is_process_alive)
        ):
            raise under_way(newest, _look_at(newest))
        found = run_to_carry_on(
            runs,
            wanted.folder,
            now,
            is_process_alive,
            goes_further=bool(wanted.options.final),
            request=request,
        )
        if found is not None:
            _tell_of_change(found, definition.digest)
            return Chosen(found)
        if newest is not None and _is_owed(newest, definition, words, now):
            return Chosen(newest, is_over=True)
    await store.save_definition(definition)
    new = NewRun(
        workflow=definition.workflow,
        definition=definition.digest,
        name=wanted.name or _unused_name(definition.workflow, runs),
        options=wanted.options,
        folder=wanted.folder,
    )
    return Chosen(await store.create_run(new), is_new=True)


def _is_owed(run: RunView, definition: StoredDefinition, words: str, now: Instant) -> bool:
    """Whether the result of a run that is over is what is asked for, and nobody tells it."""
    owed = Owed.here(home_directory(), run)
    if not owed.to(words):
        return False
    if (teller := owed.teller(now)) is not None:
        raise under_way(run, _look_at(run), teller)
    return is_still_asked(run, definition.digest)


def _look_at(run: RunView) -> str:
    return f"look at it: tidewheel show {run.name}"


def _unused_name(workflow: str, runs: Sequence[RunView]) -> str:
    """Empty: the store finds one, unless folders of runs are left that it does not know."""
    last = last_numbered(workflow, home_directory())
    is_known = not last or any(run.name == f"{workflow}/run{last}" for run in runs)
    return "" if is_known else f"{workflow}/run{last + 1}"


def _tell_of_change(run: RunView, digest: str) -> None:
    if not is_same_content(run.definition, digest):
        note(
            f"the definition has changed since {run.name} took it, which goes on with the old "
            f"one; give it the new one once it runs: tidewheel reload {run.name}"
        )


def _settled(
    owed: Owed,
    end: RunEnd,
    signalled: signal.Signals | None,
    fail_on: Sequence[UndoneKind],
) -> int:
    """The exit status; with it the result is told, unless the run goes on without us."""
    status = _exit_status(end, signalled, fail_on)
    goes_on = end.status in (LOST, LEFT) and signalled is not signal.SIGINT
    return status if goes_on else FinalStatus(status, owed.settle)


def _exit_status(
    end: RunEnd, signalled: signal.Signals | None, fail_on: Sequence[UndoneKind]
) -> ExitCode:
    """docs/exit_codes.md"""
    if end.status == RunStatus.COMPLETED:
        is_done = end.has_run_anything and not any(map(end.undone.count, fail_on))
        return ExitCode.DONE if is_done else ExitCode.FAILED
    if end.was_aborted or end.status in (RunStatus.STALLED, ERROR):
        return ExitCode.FAILED
    if signalled is not None:
        return SIGNALLED[signalled]
    return ExitCode.DONE if is_at_own_stop_point(end.reason) else ExitCode.STOPPED
