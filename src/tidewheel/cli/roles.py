"""Runs services in the foreground, from their options to the signal that ends them.

The commands `worker`, `monitor`, `scheduler`, `server` and `up` begin here.

Each kind of service is a class of its own (`client/embedded`, `server/role`);
`Roles` makes those of one process.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidewheel.cli.capacity_options import offered
from tidewheel.cli.exit_codes import SIGNALLED, ExitCode
from tidewheel.cli.output import note, plural, safe, say_json
from tidewheel.cli.service_log import ServiceLog
from tidewheel.cli.session import NewStore, Session
from tidewheel.client.embedded import (
    DUE,
    Monitor,
    Notifier,
    Role,
    Scheduler,
    Worker,
    left_behind,
    told,
    unknown_queues,
    until_idle,
)
from tidewheel.client.tokens import passwords_of, without_password
from tidewheel.config import (
    COMMAND_RUNNERS,
    JobLimits,
    OnStop,
    ServerSettings,
    home_directory,
    is_loopback,
    monitor_settings,
    scheduler_settings,
)
from tidewheel.credentials import STANDARD_INPUT
from tidewheel.errors import BadSetting, NoStore, Refused, Unavailable
from tidewheel.runners.job_users import JobUsers, become_user, known_user
from tidewheel.wiring.machine import keep_keys_from_jobs, spare_garbage_collector
from tidewheel.wiring.stores import is_embedded, opened_store, require_store, store_settings
from tidewheel.wiring.workers import require_shell_without_engine, usable_cores, worker_name

if TYPE_CHECKING:
    from tidewheel.ports.store import Store
    from tidewheel.runners.python.runner import Handlers
    from tidewheel.server.role import Welcome

Kind = TypeVar("Kind", bound=Role)

AGAIN_SECONDS = 1.0  # between tries to see whether a worker is idle
LOOK_SECONDS_MAX = 5.0  # of a worker that comes or goes, at what it leaves
NO_ANSWER = (Refused, Unavailable, TimeoutError)  # of the store to that


class Roles:
    """Makes the roles of one process: they share its store, its log, and how long they wait for
    a store that does not answer yet. No job can read the keys of this process from now on."""

    def __init__(
        self,
        session: Session,
        log: ServiceLog,
        wait_for_store: float | None,
        token_file: str | None = None,
    ) -> None:
        self.log = log
        # A service that is started with its database waits for it, unless told how long.
        self.patience = math.inf if wait_for_store is None else wait_for_store
        self._store = session.store
        keep_keys_from_jobs(token_file, passwords_of(session.store or ""))

    @classmethod
    def logged(cls, session: Session, wait_for_store: float | None) -> Roles:
        """Makes roles whose log also has the errors that libraries log."""
        log = ServiceLog(as_json=session.as_json)
        log.hear_logs()
        return cls(session, log, wait_for_store)

    def make(self, kind: Callable[..., Kind], **fields: Any) -> Kind:  # noqa: ANN401 - its own
        shared = {"on_report": self.log.report, "wait_for_store_seconds": self.patience}
        return kind(self._store, **shared, **fields)

    def worker(self, **fields: Any) -> Worker:  # noqa: ANN401 - those of Worker
        around = partial(told, on_job=self.log.job)
        return self.make(Worker, around_runner=around, **fields)


def _given(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns the options that have a value: all of them, or those with these names."""
    return {
        name: value
        for name, value in options.items()
        if value is not None and name in (names or options)
    }


def run_worker(session: Session, options: dict[str, Any]) -> int:
    """Runs a worker until a signal, or until it is idle if that was asked for.

    Returns the exit status.
    """
    log = ServiceLog(as_json=session.as_json, sums_up=True)  # handlers log as they like
    roles = Roles(session, log, options["wait_for_store"], options["token_file"])
    job_users = _job_users(options)  # root looks at nothing that is the worker's user's
    session.require_if_named()
    became_user = job_users is not None or options["user"] is not None
    handlers = _load_handlers(options["handlers"])
    on_stop = OnStop.YIELD if options["yields"] else OnStop.DRAIN
    if options["leaves"]:
        on_stop = OnStop.LEAVE
    worker = roles.worker(
        handlers=handlers,
        job_users=job_users,
        queues=options["queues"],
        tie_jobs=options["tie_jobs"],
        job_limits=JobLimits(**dict(options["job_limits"])),
        on_stop=on_stop,
        **offered(options),
        **_given(options, "slots", "name", "grace_seconds"),
    )
    require_shell_without_engine(worker.settings, job_users)
    if not session.as_json:
        _tell_user_of_jobs(options, job_users, became_user=became_user)
        queues, slots = safe(", ".join(worker.settings.queues)), worker.settings.slots
        note(f"serving {queues} with {plural(slots, 'slot')}; Ctrl-C stops")
    beside: list[Role] = []
    if is_embedded(session.store) and not options["no_monitor"]:
        beside.append(roles.make(Monitor))
    names = handlers.names if handlers else frozenset()

    async def wait_for_idle() -> None:
        await worker.until_started()
        while True:
            # The worker says so, and goes on when it is back.
            with suppress(Unavailable, NoStore):
                async with _store_there(session.store) as store:
                    return await until_idle(store, worker.settings, names, worker.rests)
            await asyncio.sleep(AGAIN_SECONDS)

    async def look_and_go_on() -> None:
        await worker.until_started()
        with suppress(*NO_ANSWER):
            left, unknown = await _look(session.store, worker, names)
            log.skips({why: n for why, n in left.items() if not why.startswith(DUE)}, unknown)
        await asyncio.Event().wait()

    goes_when_idle = options["exit_when_idle"]
    until = wait_for_idle if goes_when_idle else look_and_go_on
    spare_garbage_collector()
    signalled = asyncio.run(attend(worker, beside, until))
    is_idle = goes_when_idle and signalled is None
    status = _take_leave(log, _look(session.store, worker, names), idle=is_idle)
    if not goes_when_idle:
        return ExitCode.DONE
    return status if signalled is None else SIGNALLED[signalled]


def _take_leave(
    log: ServiceLog,
    look: Coroutine[Any, Any, tuple[Counter[str], list[str]]],
    *,
    idle: bool,
) -> int:
    """Logs what a worker leaves, and returns the exit status of one that is idle."""
    try:
        left, unknown = asyncio.run(look)
    except NO_ANSWER as error:
        log.leaves_unseen(str(error) or "the store did not answer", idle=idle)
        return ExitCode.UNAVAILABLE
    log.leaves(left, unknown, idle=idle)
    return ExitCode.FAILED if left else ExitCode.DONE


def _tell_user_of_jobs(
    options: dict[str, Any], job_users: JobUsers | None, *, became_user: bool
) -> None:
    """Warns of what jobs can reach because of the user that they run as."""
    if os.geteuid() == 0:
        note(
            "this worker runs as root, so its jobs run as root; start it as a dedicated "
            "user, or with --run-as"
        )
    elif not became_user and options["token_file"] not in (None, STANDARD_INPUT):
        note(
            "jobs run as this worker's user and can read its --token-file; start the "
            "worker as root, with --user NAME"
        )
    if job_users is None and options["secrets"] is not None:
        note(
            "jobs run as this worker's user and can read all of its --secrets; if there "
            "are several teams, run their jobs as other users (--run-as)"
        )


def _job_users(options: dict[str, Any]) -> JobUsers | None:
    """Gives up root, if this worker is to be a user, and starts the launcher of jobs as other
    users; None without --run-as."""
    path, own = options["run_as"], options["user"]
    if own is not None:
        if path is not None:
            fault = (
                "--user cannot be combined with --run-as, whose file names the worker's user; "
                "leave out --user"
            )
            raise BadSetting("user", own, fault=fault)
        if os.geteuid() != 0:
            fault = (
                "--user works only if root starts the worker; leave it out, or start it as root"
            )
            raise BadSetting("user", own, fault=fault)
        become_user(known_user("user", own))
        keep_keys_from_jobs()  # the kernel may have opened it when it became another user's
    if path is None:
        return None
    if options["tie_jobs"]:
        fault = (
            "--tie-jobs cannot be combined with --run-as; use a queue with a fence instead "
            "(tidewheel queues NAME --fence-kill)"
        )
        raise BadSetting("tie-jobs", True, fault=fault)
    if unfit := set(options["runners"]) & set(COMMAND_RUNNERS):
        named = ", ".join(sorted(unfit))
        fault = (
            f"--runner {named} cannot be combined with --run-as: its jobs run as the "
            "worker's user; leave out one of the two"
        )
        raise BadSetting("runner", named, fault=fault)
    users = JobUsers(path.absolute())
    keep_keys_from_jobs()  # the kernel forgets it when a process becomes another user
    return users


@asynccontextmanager
async def _store_there(store_url: str | None) -> AsyncIterator[Store]:
    """Opens the store of a worker that has started. If its file was moved away since, that is
    NoStore: a new one in its place would have no tasks, as if all work were done."""
    require_store(store_url)
    async with opened_store(store_url) as store:
        yield store


async def _look(
    store_url: str | None, worker: Worker, names: frozenset[str]
) -> tuple[Counter[str], list[str]]:
    """Returns how many tasks of its queues are not for a worker, by reason, and those of its
    queues that the store does not know. Raises one of NO_ANSWER."""
    async with asyncio.timeout(LOOK_SECONDS_MAX), _store_there(store_url) as store:
        left = await left_behind(store, worker.settings, names)
        return left, await unknown_queues(store, worker.settings)


def _load_handlers(where: str | None) -> Handlers | None:
    """Returns the Handlers object that MODULE:OBJECT names, also from modules in this folder.
    Returns None if nothing is named; raises BadSetting if there is no such object."""
    if where is None:
        return None
    from tidewheel.runners.python import runner

    accepted = "MODULE:OBJECT, where OBJECT is a tidewheel.Handlers"
    module_name, colon, name = where.partition(":")
    if not colon:
        raise BadSetting("handlers", where, accepted)
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise BadSetting("handlers", where, f"{accepted} ({error})") from error
    except Exception as error:  # the module is the user's, and may do anything
        raise BadSetting("handlers", where, f"{accepted} ({_raised(error)})") from error
    handlers = getattr(module, name, None)
    if isinstance(handlers, runner.Handlers):
        return handlers
    found = sorted(key for key, one in vars(module).items() if isinstance(one, runner.Handlers))
    seen = f"module {module_name} has no {name!r}"
    if handlers is not None:
        seen = f"{name!r} of module {module_name} is not a tidewheel.Handlers"
    has = f"the module has: {', '.join(found)}" if found else "the module has none"
    raise BadSetting("handlers", where, f"{accepted} ({seen}; {has})")


def _raised(error: Exception) -> str:
    """Returns what a user's module raised while it was imported, and where in its folder."""
    from traceback import extract_tb

    here = f"{Path.cwd()}{os.sep}"
    places = [(one.filename, one.lineno) for one in extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    own = [
        f"{file.removeprefix(here)}:{line}" for file, line in places if file.startswith(here)
    ]
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    what = f"{type(error).__name__}: {text}"
    return f"{own[-1]} raised {what}" if own else what


def run_monitor(session: Session, options: dict[str, Any]) -> int:
    """Runs a monitor until a signal."""
    session.require_if_named()
    roles = Roles.logged(session, options.pop("wait_for_store"))
    given = _given(options)
    if "retention_seconds" in given:
        given["retention_seconds"] = given["retention_seconds"] or None
    if "export_directory" in given:
        given["export_directory"] = Path(given["export_directory"]).absolute()
    monitor = roles.make(Monitor, settings=replace(monitor_settings(), **given))
    if not session.as_json:
        note("taking back lapsed leases and deleting old records; Ctrl-C stops")
    asyncio.run(attend(monitor))
    return 0


def run_scheduler(session: Session, options: dict[str, Any]) -> int:
    """Runs a scheduler and a notifier until a signal."""
    session.require_if_named()
    roles = Roles.logged(session, options.pop("wait_for_store"))
    settings = replace(scheduler_settings(), **_given(options))
    scheduler = roles.make(Scheduler, settings=settings)
    if not session.as_json:
        note("driving runs that have no other scheduler; Ctrl-C stops")
    spare_garbage_collector()
    asyncio.run(attend(scheduler, [roles.make(Notifier)]))
    return 0


def run_server(session: Session, listening: dict[str, Any], options: dict[str, Any]) -> int:
    """Runs a server until a signal."""
    # The one command that loads a web server.
    from tidewheel.server.role import Server, run_in_fast_loop

    roles = Roles.logged(session, options["wait_for_store"])
    new = NewStore(session.store, as_json=session.as_json)

    def ready(welcome: Welcome) -> None:
        new.tell()
        token_file = None if welcome.token_file is None else str(welcome.token_file)
        if session.as_json:
            say_json({"url": welcome.url, "token_file": token_file})
            return
        note(f"answering at {welcome.url}; Ctrl-C stops")
        if token_file is not None:
            note(f"there was no token, so an admin token was created: {safe(token_file)}")

    home = home_directory()
    server = Server(
        session.store,
        settings=ServerSettings(home=home, **listening),
        on_ready=ready,
        on_report=roles.log.report,
        wait_for_store_seconds=roles.patience,
    )
    beside: list[Role] = [roles.make(Notifier, home=home)]
    if is_embedded(session.store) and not options["no_monitor"]:
        beside.append(roles.make(Monitor))
    try:
        run_in_fast_loop(attend(server, beside))
    finally:
        new.tell()
    return 0


async def attend(
    service: Role, beside: Sequence[Role] = (), until: Callable[[], Any] | None = None
) -> signal.Signals | None:
    """Runs a service with others beside it, until a signal, its own end, or that of another.

    It also ends when ``until`` returns. Returns the signal that came first; None if none came.
    """
    loop = asyncio.get_running_loop()
    signals: list[signal.Signals] = []
    ends_by_itself = False

    def hear(number: signal.Signals) -> None:
        if not ends_by_itself:
            signals.append(number)
        service.ask_stop()

    for number in SIGNALLED:
        loop.add_signal_handler(number, hear, number)
    others = [asyncio.create_task(other.run()) for other in beside]
    main = asyncio.create_task(service.run())
    waiting = main if until is None else asyncio.create_task(until())
    watched = {main, waiting, *others}
    while not main.done():
        done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        if done - {main}:
            ends_by_itself = True
            service.ask_stop()
    waiting.cancel()
    for other in beside:
        other.ask_stop()
    outcomes = await asyncio.gather(main, *others, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    if waiting.done() and not waiting.cancelled():
        waiting.result()  # raises what ended it
    return signals[0] if signals else None


# ---- `tidewheel up`: all roles in one process ----

RUN_QUEUES = "run:*"


def run_up(session: Session, listening: dict[str, Any], options: dict[str, Any]) -> int:
    """Runs all roles in one process until a signal."""
    from tidewheel.server.metrics import Metrics
    from tidewheel.server.role import Server, Up

    roles = Roles.logged(session, options["wait_for_store"])
    metrics = Metrics()
    how = ServerSettings(home=home_directory(), **listening)
    # Alone on a machine, whoever gives a definition from a folder could run its code anyway.
    is_own = is_loopback(how.host) and not how.proxies
    is_trusting = options["trust_definitions"] or is_own
    new = NewStore(session.store, as_json=session.as_json)

    def ready(welcome: Welcome) -> None:
        new.tell()
        _welcome(welcome, session)

    server = Server(
        session.store,
        settings=how,
        on_ready=ready,
        local=True,
        makes_link=_is_seen(session),
        metrics=metrics,
        on_report=roles.log.report,
    )
    watchers: list[Role] = []
    if not options["no_scheduler"]:
        settings = replace(scheduler_settings(), trust_definitions=is_trusting)
        watchers.append(roles.make(Scheduler, settings=settings, on_batch=metrics.batch))
    if not options["no_monitor"]:
        watchers.append(roles.make(Monitor))
    watchers.append(roles.make(Notifier))
    if not options["no_worker"] and os.geteuid() == 0 and not session.as_json:
        note("this process runs as root, so its jobs run as root; start it as a dedicated user")
    up = Up(
        session.store,
        server,
        [_workers(roles, options), watchers],
        on_report=roles.log.report,
        wait_for_store_seconds=roles.patience,
    )
    spare_garbage_collector()
    # Not in the server's fast loop: it starts no process in a group of its own, as handlers
    # and xtriggers must be (docs/decisions/0022).
    try:
        asyncio.run(attend(up))
    finally:
        new.tell()
    return 0


def _workers(roles: Roles, options: dict[str, Any]) -> list[Role]:
    """Makes two workers, which share what this machine has; none with --no-worker.

    One is for queues, with a slot per core; the other is for runs, which have as many jobs at
    once as their graph allows.
    """
    if options["no_worker"]:
        return []
    from tidewheel.client.local_run import SLOTS_DEFAULT

    given = offered(options) | _given(options, "grace_seconds")
    given["on_stop"], slots = OnStop(options["on_stop"]), options["slots"]
    name = worker_name()
    of_queues = roles.worker(
        name=f"{name} tasks",
        queues=options["queues"],
        slots=slots or usable_cores(),
        **given,
    )
    of_runs = roles.worker(
        name=f"{name} runs",
        queues=(RUN_QUEUES,),
        slots=slots or SLOTS_DEFAULT,
        beside=of_queues,
        **given,
    )
    require_shell_without_engine(of_queues.settings, None)
    return [of_queues, of_runs]


def _is_seen(session: Session) -> bool:
    """Says whether what is printed is seen by whoever typed the command, and by nobody else: a
    journal or the log of a container keeps it, and a link to log in with is for one person."""
    return (sys.stdout if session.as_json else sys.stderr).isatty()


def _welcome(welcome: Welcome, session: Session) -> None:
    from tidewheel.server.static_page import index_page

    store = without_password(store_settings(session.store).url)
    token_file = None if welcome.token_file is None else str(welcome.token_file)
    if session.as_json:
        told = {"url": welcome.url, "login": welcome.login, "token_file": token_file}
        say_json(told | {"store": store, "pid": os.getpid()})
        return
    url, own = welcome.url, "" if session.store is None else f" --server {welcome.url}"
    note(f"answering at {url}; Ctrl-C stops")
    link = welcome.login or f"tidewheel token link{own} prints a link"
    note(f"browser: {link} (single use, expires in 5 minutes)")
    if index_page(None) is None:
        note("  it shows a plain page; in a clone, `make web` builds the full one (needs npm)")
    if token_file is not None:
        note(f"programs: the token is in {safe(token_file)}")
    note(f"begin: tidewheel submit{own} -- echo hello; tidewheel run DIR --server {url}")
