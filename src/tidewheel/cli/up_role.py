"""From the options of ``tidewheel up`` to all roles in one process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewheel.cli.capacity_options import offered
from tidewheel.cli.output import note, safe, say_json
from tidewheel.cli.roles import attend_to_end, open_journal, patience
from tidewheel.cli.service_log import ServiceLog
from tidewheel.cli.session import Session
from tidewheel.client.embedded import Embedded, Monitor, Notifier, Scheduler, Worker
from tidewheel.client.local_run import SLOTS_DEFAULT
from tidewheel.client.observed_runner import told
from tidewheel.client.server_file import without_password
from tidewheel.config import OnStop, ServerSettings
from tidewheel.wiring.machine import spare_garbage_collector
from tidewheel.wiring.stores import store_settings
from tidewheel.wiring.workers import usable_cores

if TYPE_CHECKING:
    from tidewheel.cli.commands.up import Options
    from tidewheel.server.metrics import Metrics
    from tidewheel.server.role import Welcome

RUN_QUEUES = "run:*"


def run_up(session: Session, settings: ServerSettings, options: Options) -> int:
    """Until a signal."""
    from tidewheel.server.metrics import Metrics
    from tidewheel.server.role import Server, Up

    journal = open_journal(session)
    wait = patience(options["wait_for_store"])
    metrics = Metrics()
    new = session.new_store()

    def ready(welcome: Welcome) -> None:
        new.tell()
        _welcome(welcome, session)

    server = Server(
        session.store,
        settings=settings,
        on_ready=ready,
        local=True,
        metrics=metrics,
    )
    if not options["no_worker"] and os.geteuid() == 0 and not session.as_json:
        note("this is root, and so are its jobs; a user of its own is safer")
    up = Up(
        session.store,
        server,
        [_workers(session, options, journal), _watchers(session, options, journal, metrics)],
        on_report=journal.report,
        wait_for_store_seconds=wait,
    )
    spare_garbage_collector()
    # Not in the server's fast loop: it starts no process in a group of its own, as handlers
    # and xtriggers must be (docs/decisions/0022).
    try:
        asyncio.run(attend_to_end(up))
    finally:
        new.tell()
    return 0


def _workers(session: Session, options: Options, journal: ServiceLog) -> list[Embedded]:
    """One for each kind: a run has as many jobs at once as its graph allows, a queue as many as
    there are cores. They share what this machine has."""
    if options["no_worker"]:
        return []
    given = {"on_stop": OnStop(options["on_stop"]), **offered(dict(options))}
    if options["grace"] is not None:
        given["grace_seconds"] = options["grace"]
    slots = options["slots"]

    def worker(queues: Sequence[str], count: int, beside: Worker | None) -> Worker:
        return Worker(
            session.store,
            on_report=journal.report,
            around_runner=lambda runner: told(runner, journal.job),
            beside=beside,
            queues=queues,
            slots=count,
            **given,
        )

    of_queues = worker(options["queues"], slots or usable_cores(), None)
    return [of_queues, worker((RUN_QUEUES,), slots or SLOTS_DEFAULT, of_queues)]


def _watchers(
    session: Session, options: Options, journal: ServiceLog, metrics: Metrics
) -> list[Embedded]:
    found: list[Embedded] = []
    if not options["no_scheduler"]:
        found.append(Scheduler(session.store, on_report=journal.report, on_batch=metrics.batch))
    if not options["no_monitor"]:
        found.append(Monitor(session.store, on_report=journal.report))
    found.append(Notifier(session.store, on_report=journal.report))
    return found


def _welcome(welcome: Welcome, session: Session) -> None:
    from tidewheel.server.static_page import index_page

    store = without_password(store_settings(session.store).url)
    token_file = None if welcome.token_file is None else str(welcome.token_file)
    if session.as_json:
        say_json(
            {
                "url": welcome.url,
                "login": welcome.login,
                "token_file": token_file,
                "store": store,
                "pid": os.getpid(),
            }
        )
        return
    url, own = welcome.url, "" if session.store is None else f" --server {welcome.url}"
    note(f"answering at {url}; Ctrl-C stops")
    note(f"browser: {welcome.login} (good once, for 5 minutes)")
    if index_page(None) is None:
        note("  it shows a plain page; in a clone, `make web` builds the full one (needs npm)")
    if token_file is not None:
        note(f"programs: the token is in {safe(token_file)}")
    note(f"begin: tidewheel submit{own} -- echo hello; tidewheel run DIR --server {url}")
