"""Runs what ``tidewheel run`` asks for in this process, to the end of the run."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from shlex import quote
from typing import Any

import click

from tidewheel.cli.capacity_options import OPTION_NAMES
from tidewheel.cli.definitions import Definition
from tidewheel.cli.exit_codes import SIGNALLED
from tidewheel.cli.pages.run_progress import RunPage, page_for
from tidewheel.cli.runs.pending_tasks import UntakenWaits
from tidewheel.cli.runs.request import (
    Chosen,
    TellOfStages,
    Wanted,
    found_run,
    is_exactly,
    new_run,
    refuse_another,
    registered_here,
    settings_here,
    tell_of_change,
    tell_of_changed_folder,
    tell_of_namesake,
    tell_of_needs,
    the_run,
    unknown_name,
    wanted_from,
)
from tidewheel.cli.runs.result import Owed, is_still_asked, settled, tell_again, under_way
from tidewheel.cli.session import NewStore, Session, check_apart, refuse_said
from tidewheel.client.local_run import RunHere, RunHereSettings, own_settings
from tidewheel.client.tokens import passwords_of
from tidewheel.config import home_directory
from tidewheel.core.operator.definition import StoredDefinition
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import PAGE_COUNT_MAX
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.pool import RunStatus
from tidewheel.errors import Aborted, Refused, Unavailable
from tidewheel.ports.store import Store
from tidewheel.runners.processes import is_process_alive
from tidewheel.scheduler.event_handlers import DRAIN_SECONDS
from tidewheel.scheduler.restart_options import (
    is_driven,
    is_same_request,
    newest_of,
    run_to_carry_on,
)
from tidewheel.services.paths import last_numbered
from tidewheel.services.service import OnReport
from tidewheel.wiring.machine import keep_keys_from_jobs, spare_garbage_collector
from tidewheel.wiring.services import deliver_left, run_door
from tidewheel.wiring.stores import (
    is_remote,
    opened_store,
    require_if_named,
    store_exists,
    store_settings,
)

UNDELIVERED_MAX = 100  # runs that are looked at


def run_definition(definition: Definition, options: dict[str, Any]) -> int:
    check_apart(("fail_on",), "detach")
    outer = click.get_current_context().find_object(Session) or Session()
    where = options["store"] = options["store"] or outer.store
    wanted = wanted_from(definition, options)
    if isinstance(wanted, int):
        return wanted
    if is_remote(where):
        return _run_far(where, wanted, options, as_json=definition.as_json)
    if options["detach"]:
        raise click.UsageError("--detach needs a server, where the run continues: --server URL")
    keep_keys_from_jobs(passwords=passwords_of(where or ""))
    spare_garbage_collector()
    settings = settings_here(options)
    return asyncio.run(_run(where, wanted, settings, as_json=definition.as_json))


def _run_far(
    where: str | None, wanted: Wanted, options: dict[str, Any], *, as_json: bool
) -> int:
    from tidewheel.cli.runs.remote import Following, run_on_server

    only_here = ("slots", "tie_jobs", "trigger_log", *OPTION_NAMES)
    refuse_said(only_here, "works only without a server; leave it out")
    how = Following(
        server=store_settings(where).url,
        detach=options["detach"],
        as_json=as_json,
        is_named=where is not None,
    )
    return asyncio.run(run_on_server(where, wanted, how))


async def _run(
    where: str | None, wanted: Wanted, settings: RunHereSettings, *, as_json: bool
) -> int:
    if wanted.captured is None and not store_exists(where):
        require_if_named(where)
        raise unknown_name(wanted.name)  # nor can it be in a store that is yet to be made
    new = NewStore(where, as_json=as_json)
    async with opened_store(where) as store:
        new.tell()
        chosen = await _choose(store, wanted, lambda stages: tell_of_needs(stages, settings))
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
            return settled(owed, end, None, wanted.fail_on)
        if not chosen.is_new:
            settings = replace(settings, given=wanted.given)
        page = page_for(run, is_new=chosen.is_new, as_json=as_json, stream=sys.stdout)
        if run.status in (RunStatus.STALLED, RunStatus.STOPPED):
            page.recalls(await run_door(store, home).look("show", {"run": run.name}))
        untaken = UntakenWaits(run_door(store, home), run.name, is_here=True)

        def claimed() -> None:
            page.claimed()
            owed.note(wanted.words)

        here = RunHere(
            where,
            store,
            run,
            settings,
            on_claimed=claimed,
            on_batch=page.on_batch,
            on_report=page.on_report,
        )
        left = asyncio.create_task(_deliver_left(where, store, run, on_report=page.on_report))
        watching = asyncio.create_task(untaken.watch(page.submitted, page.untaken, page.line))
        signals = _Signals(here, page)
        with page:
            end = await here.to_the_end()
            watching.cancel()
            await signals.awaits(left, DRAIN_SECONDS)
        if not chosen.is_new:
            with suppress(Refused, Unavailable):  # of one that cannot be read
                page.remembers(await run_door(store, home).look("show", {"run": run.name}))
        page.show_end(end)
        return settled(owed, end, signals.last, wanted.fail_on)


class _Signals:
    """Obeys signals: Ctrl-C stops the run, and again leaves it; SIGTERM leaves it at once."""

    def __init__(self, here: RunHere, page: RunPage) -> None:
        self.last: signal.Signals | None = None
        self._here, self._page = here, page
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
        else:
            self._page.stopping()
            self._here.ask_stop()

    async def awaits(self, task: asyncio.Task[None], seconds_max: float) -> None:
        """Waits for a task beside the run, not longer than this nor after SIGTERM.

        Then it cancels the task.
        """
        terminated = asyncio.create_task(self._terminated.wait())
        await asyncio.wait(
            (task, terminated), timeout=seconds_max, return_when=asyncio.FIRST_COMPLETED
        )
        terminated.cancel()
        task.cancel()
        await asyncio.wait((task,))


async def _deliver_left(
    where: str | None,
    store: Store,
    run: RunView,
    *,
    is_over: bool = False,
    on_report: OnReport | None = None,
) -> None:
    """Calls event handlers that ended runs of this workflow could not call before being killed.
    Those of the run itself it calls only if the run is over; else its scheduler does."""
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
                await deliver_left(where, store, one, home, own_settings(), on_report)


async def _choose(store: Store, wanted: Wanted, tell: TellOfStages) -> Chosen:
    if wanted.captured is not None:
        await tell_of_namesake(store, wanted)
        return await _chosen(store, wanted, wanted.captured.definition, wanted.words)
    named = await found_run(store.find_run, wanted)
    if is_exactly(named, wanted.name) and not wanted.is_another:
        return await _named(store, named, wanted)
    found = await registered_here(store, wanted, tell)
    if found is not None and found.captured is not None:
        return await _chosen(store, found, found.captured.definition, wanted.words)

    async def workflows() -> list[str]:
        registered = await store.workflows(None, PAGE_COUNT_MAX)
        runs = await store.runs(count=PAGE_COUNT_MAX)
        return [*(one.name for one in registered), *(one.name for one in runs)]

    return await _named(store, await the_run(named, wanted, workflows), wanted)


async def _named(store: Store, run: RunView, wanted: Wanted) -> Chosen:
    refuse_another(run, wanted)
    tell_of_changed_folder(run, run.folder, await store.definition(run.definition))
    return Chosen(run)


async def _chosen(
    store: Store, wanted: Wanted, definition: StoredDefinition, words: str
) -> Chosen:
    runs = await store.runs(workflow=definition.workflow)
    if not wanted.is_new and not wanted.name:
        now, request = await store.now(), wanted.request
        newest = newest_of(runs, wanted.folder)
        is_same = newest is not None and is_same_request(newest, request)
        if newest is not None and is_same and is_driven(newest, now, is_process_alive):
            raise under_way(newest, f"look at it: tidewheel show {quote(newest.name)}")
        further = bool(wanted.options.final)
        found = run_to_carry_on(
            runs, wanted.folder, now, is_process_alive, goes_further=further, request=request
        )
        if found is not None:
            tell_of_change(found, definition.digest, " once it runs")
            return Chosen(found)
        if newest is not None and _is_owed(newest, definition, words, now):
            return Chosen(newest, is_over=True)
    await store.save_definition(definition)
    name = wanted.name
    if not name and (last := last_numbered(definition.workflow, home_directory())):
        # The store finds a name, unless folders of runs are left that it does not know.
        is_known = any(run.name == f"{definition.workflow}/run{last}" for run in runs)
        name = "" if is_known else f"{definition.workflow}/run{last + 1}"
    new = new_run(wanted, definition, wanted.folder, name)
    return Chosen(await store.create_run(new), is_new=True)


def _is_owed(run: RunView, definition: StoredDefinition, words: str, now: Instant) -> bool:
    """Says whether the result of a run that is over is owed to a command of these words.

    It is not if the definition has changed since. Raises RunUnderWay if another process is
    about to tell it.
    """
    owed = Owed.here(home_directory(), run)
    if not owed.to(words):
        return False
    if (teller := owed.teller(now)) is not None:
        raise under_way(run, f"look at it: tidewheel show {quote(run.name)}", teller)
    return is_still_asked(run, definition.digest)
