"""Reads settings once at the edge, checks them there, and hands them down as frozen objects.

Only this module reads the environment. A setting comes from the command line, else from a
``TIDEWHEEL_*`` variable, else from its default here.

Keys (a token, the address of a database with its password) are taken out of the environment by
processes whose jobs could read it there; ``ENVIRON`` finds them all the same.
"""

from __future__ import annotations

import json
import os
from collections import ChainMap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field, fields
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from tidewheel.core.queue.lease import LEASE_SECONDS_MAX, RUN_LEASE_SECONDS_DEFAULT
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.resources import (
    ALLOW_LABEL_PREFIX,
    RUNNER_LABEL_PREFIX,
    Resources,
    allow_label,
    runner_label,
)
from tidewheel.core.queue.submission import SubmitLimits, name_finding
from tidewheel.core.queue.tokens import PREFIX
from tidewheel.errors import BadSetting
from tidewheel.failpoints import Failpoint, failpoint_named
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

MESSAGE_BYTES_CONFIGURABLE_MAX = 1024 * 1024
RETENTION_SECONDS_DEFAULT = 30 * 86_400.0
WORKERS_RETENTION_SECONDS_DEFAULT = 7 * 86_400.0
ADOPT_INTERVAL_SECONDS_DEFAULT = 10.0
WORKERS_RETENTION_SECONDS_MIN = 3600.0  # a worker that is only out of reach is not forgotten

STORE_VARIABLE, TOKEN_VARIABLE = KEY_VARIABLES = ("TIDEWHEEL_STORE", "TIDEWHEEL_TOKEN")
TAKEN_KEYS: dict[str, str] = {}  # see `credentials.take_keys`
ENVIRON: Mapping[str, str] = ChainMap(os.environ, TAKEN_KEYS)

TOKEN_FILE = "token"
SERVER_FILE = "server.json"
ATTEMPT_KEY_FILE = "attempt-key"  # by which servers sign the tokens of jobs
RULES_FILE = "notify.toml"  # who is told of what (docs/notifications.md)
IN_CLEAR = "TIDEWHEEL_ALLOW_PLAIN_HTTP"
PORTS = 65_536
SHELL = "shell"  # the runner that workers have without being told, unless they run containers
COMPOSE = "compose"  # the runner of stages on the engine beside the worker
SWARM = "swarm"  # the runner of stages for several nodes, or for nodes with a label
CONTAINERS = "containers"  # a task may leave it to the worker which of these runners it is


class RunnerRow(NamedTuple):
    """Describes a runner that a worker may have besides bash and handlers."""

    name: str  # in options, settings and the label `runner:NAME` of tasks
    package: str  # of tidewheel.runners; its `runner.py` has `open_runner(name, parts)`
    runs_commands: bool  # so a platform of a run may mean it; else it runs stages
    program: str | None = None  # by which it is found on a machine; None: only if asked for


RUNNER_ROWS = (
    RunnerRow("slurm", "slurm", runs_commands=True, program="sbatch"),
    RunnerRow(COMPOSE, "containers", runs_commands=False),
    RunnerRow(SWARM, "containers", runs_commands=False),
)
RUNNERS = tuple(row.name for row in RUNNER_ROWS)
COMMAND_RUNNERS = tuple(row.name for row in RUNNER_ROWS if row.runs_commands)
CONTAINER_RUNNERS = tuple(row.name for row in RUNNER_ROWS if not row.runs_commands)


class OnStop(StrEnum):
    """Says how a worker treats its jobs when it is asked to stop."""

    YIELD = "yield"  # end them and give the tasks to other workers at once (seed 002)
    DRAIN = "drain"  # let them finish, take no new ones
    LEAVE = "leave"  # let them run; the next worker of this host adopts them


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Holds the token to show to a server, and the certificates to check servers by."""

    token: str | None = field(default=None, repr=False)
    origin: str = ""  # where the token comes from, for messages
    ca: str | None = None  # a file with certificates to believe instead of the system's
    in_clear: bool = False  # whether the token may go to another machine without TLS


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The address of a store, and how long to wait for the database."""

    url: str  # the address of a database or of a server
    credentials: Credentials = field(default_factory=Credentials)  # token and CA for a server
    submit: SubmitLimits = field(default_factory=SubmitLimits)  # see SubmitLimits
    busy_seconds_max: float = 10.0  # how long to wait for a database lock or a connection
    statement_seconds_max: float = 30.0  # how long PostgreSQL may take for one SQL statement
    batch_operations_max: int = 256  # how many operations SQLite writes in one commit
    connections_max: int = 4  # PostgreSQL connections; heartbeats and blocking calls add one
    poll_seconds: float = 0.05  # how soon changes by other processes are noticed on SQLite

    def __post_init__(self) -> None:
        _positive(self, "busy_seconds_max", "statement_seconds_max", "batch_operations_max")
        _positive(self, "connections_max", "poll_seconds")
        self._check_token()

    def _check_token(self) -> None:
        """Raises BadSetting if a token would go over the network for everybody to read; that of
        a job goes wherever its worker said."""
        token = self.credentials.token
        if token is None or token.startswith(PREFIX) or self.credentials.in_clear:
            return
        for one in self.url.split(","):
            if one.strip().lower().startswith("http:") and not is_here(one):
                shown = one.strip().rpartition("@")[2]
                raise BadSetting(
                    "server",
                    shown,
                    "https://HOST, or an address of this machine: over http the token would be "
                    f"sent unencrypted; on a network that you trust, set {IN_CLEAR}=1",
                )


Where = str | StoreSettings | None  # a store: its address, its settings, or this user's own


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """The settings of a monitor, which takes back lapsed leases and deletes old records."""

    interval_seconds: float = 1.0  # seconds between two checks of the leases
    lapsed_per_pass_max: int = 500  # how many leases are taken back in one transaction
    # How long completed runs, and ended tasks of no run, are kept; None: for ever.
    retention_seconds: float | None = RETENTION_SECONDS_DEFAULT
    # How long stopped or silent workers are listed, 3600 or more; None: for ever.
    workers_retention_seconds: float | None = WORKERS_RETENTION_SECONDS_DEFAULT
    retention_interval_seconds: float = 60.0  # seconds between two searches for old records
    deleted_per_batch_max: int = 1_000  # how many tasks or workers are deleted in one batch
    export_directory: Path | None = None  # where tasks are written before they are deleted

    def __post_init__(self) -> None:
        _positive(self, "interval_seconds", "lapsed_per_pass_max")
        _positive(self, "retention_interval_seconds", "deleted_per_batch_max")
        kept = self.workers_retention_seconds
        if kept is not None and kept < WORKERS_RETENTION_SECONDS_MIN:
            least = f"{WORKERS_RETENTION_SECONDS_MIN:.0f} or more"
            accepted = f"{least}; None, in the environment 0, keeps workers permanently"
            raise BadSetting("workers_retention_seconds", kept, accepted)


SMTP_DEFAULT = "localhost:25"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """The settings of a scheduler, which drives runs and takes over runs of dead schedulers."""

    lease_seconds: float = RUN_LEASE_SECONDS_DEFAULT  # silence after which it loses its runs
    interval_seconds: float = 1.0  # seconds between two searches for runs without a scheduler
    runs_max: int = 1_000  # how many runs one process drives at once, nested ones not counted
    smtp: str = SMTP_DEFAULT  # the mail server for mail about events, HOST or HOST:PORT
    # Whether event handlers and xtrigger functions run in the scheduler's process if the
    # definition came from its owner's folder on this machine; all others are tasks for workers.
    trust_definitions: bool = False
    # The address space of the separate process that drives a very large run.
    run_memory_bytes_max: int = 8 * 1024**3

    def __post_init__(self) -> None:
        _positive(self, "interval_seconds", "runs_max", "run_memory_bytes_max")
        port = self.smtp.rpartition(":")[2] if ":" in self.smtp else "25"
        if not self.smtp or not (port.isascii() and port.isdecimal()):
            raise BadSetting("TIDEWHEEL_SMTP", self.smtp, "HOST or HOST:PORT")
        _check_lease("scheduler lease", self.lease_seconds)


class QuotaRow(NamedTuple):
    """Describes a quota of each token, and of each team, on one server."""

    name: str  # in settings, metrics and messages
    default: float
    unit: str
    is_rate: bool = True  # per second, with ten seconds' worth at once; else held at one time


# One person's programs never meet these; tokens of scope admin have no quota at all.
QUOTAS = (
    QuotaRow("requests", 500.0, "requests"),  # but for reports and claims of workers
    QuotaRow("tasks", 5_000.0, "tasks"),
    QuotaRow("runs", 5.0, "runs and definitions"),
    QuotaRow("bytes", 8.0 * 1024 * 1024, "bytes sent"),
    QuotaRow("links", 0.5, "login links"),
    QuotaRow("streams", 100, "streams of events", is_rate=False),
)
QUOTA_OFF = "off"


def read_quotas(texts: Iterable[str]) -> dict[str, float | None]:
    """Returns quotas by name from texts such as `requests=100` or `links=off`."""
    known = [row.name for row in QUOTAS]
    found: dict[str, float | None] = {}
    for text in texts:
        name, _, value = text.partition("=")
        number = None
        with suppress(ValueError):
            number = None if value == QUOTA_OFF else float(value)
        if name not in known or (value != QUOTA_OFF and not (number and number > 0)):
            accepted = f"NAME=N or NAME={QUOTA_OFF}, where NAME is {', '.join(known)}"
            raise BadSetting("quota", text, accepted)
        found[name] = number
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The address at which a server listens, and the limits on what it accepts.

    `streams_max` to `cancels_max` are numbers of requests under way, whatever their kind. Once
    there are so many, the server refuses new requests of the kind that the row names; reports
    of workers are never refused.
    """

    host: str = "127.0.0.1"  # the address to listen on
    port: int = 8450  # the port to listen on; 0: any free port
    hosts: tuple[str, ...] = ()  # host names by which clients reach it, besides its own address
    certificate: Path | None = None  # the certificate for TLS; needs `key`
    key: Path | None = None  # the private key of the certificate; needs `certificate`
    attempt_key_file: Path | None = None  # the key for jobs' tokens; None: `home`/attempt-key
    proxies: tuple[str, ...] = ()  # addresses of proxies whose X-Forwarded headers are trusted
    body_bytes_max: int = 8 * 1024 * 1024  # the size of a request's body
    header_bytes_max: int = 32 * 1024  # the total size of a request's headers
    url_bytes_max: int = 8 * 1024  # the length of a request's URL
    header_seconds_max: float = 10.0  # how long the headers of a request may take to arrive
    body_seconds_max: float = 30.0  # how long the body of a request may take to arrive
    request_seconds_max: float = 30.0  # how long the server may take to answer a request
    wait_seconds_max: float = 60.0  # how long a worker's claim may wait for tasks
    connections_max: int = 2_000  # open connections from all addresses in total
    connections_per_address_max: int = 1_000  # connections from one address; more for `proxies`
    channels_max: int = 500  # how many workers may keep a channel open to hear of work
    followers_max: int = 1_000  # clients that may follow events at the same time
    streams_max: int = 48  # at this many requests, new ones to follow events are refused
    reads_max: int = 64  # at this many requests, new ones that only read are refused
    submits_max: int = 128  # at this many requests, submissions and most changes are refused
    claims_max: int = 192  # at this many requests, no worker can register or take tasks
    cancels_max: int = 256  # at this many requests, those of operators are refused, too
    strangers_max: int = 32  # requests under way that need no token; counted separately
    slow_max: int = 128  # slow requests (views, definitions) under way; counted separately
    # CPU time to read one definition that is too large for the server's own process.
    definition_cpu_seconds_max: float = 60.0
    definition_memory_bytes_max: int = 2 * 1024**3  # address space to read such a definition
    submit_rate: float | None = None  # tasks per second for each queue; None: no limit
    quotas: tuple[str, ...] = ()  # NAME=N or NAME=off for each quota that is not the default
    failures_max: int = 10  # wrong tokens from one address in a minute; more get 429
    stop_seconds_max: float = 10.0  # how long a stopping server waits for open requests
    manual: Path | None = None  # folder of the built documentation; None: the installed one
    home: Path | None = None  # the state directory; None: that of the user who runs the server
    access_file: Path | None = None  # who may sign in, with which rights; None: no sign-in
    web: Path | None = None  # folder of the built web page; None: the installed one

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            fault = "--certificate and --key must be given together"
            raise BadSetting("TLS", "one file", fault=fault)
        if not 0 <= self.port < PORTS:
            raise BadSetting("port", self.port, f"0 (any) to {PORTS - 1}")
        _positive(self, "body_bytes_max", "header_bytes_max", "connections_max")
        _positive(self, "connections_per_address_max", "strangers_max", "slow_max")
        _positive(self, "streams_max", "reads_max", "submits_max", "claims_max", "cancels_max")
        _positive(self, "definition_cpu_seconds_max", "definition_memory_bytes_max")
        if self.submit_rate is not None:
            _positive(self, "submit_rate")
        read_quotas(self.quotas)

    def quota(self, name: str) -> float | None:
        """Returns a quota as it is set; None: no limit."""
        default = next(row.default for row in QUOTAS if row.name == name)
        return read_quotas(self.quotas).get(name, default)

    @property
    def state_directory(self) -> Path:
        """Returns the state directory, in which the files of runs are: the one that was set,
        else that of this user."""
        return self.home or home_directory()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """The kernel's limits on a helper process, which reads a definition or drives one run.

    None: the helper has the same limit as the process that started it.
    """

    cpu_seconds: float | None = None  # CPU time for each piece of work
    memory_bytes: int | None = None  # address space

    def __post_init__(self) -> None:
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        _positive(self, *given)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """The kernel's limits on each process of a job.

    None: the process has the same limit as the worker's own process.
    """

    cpu_seconds: float | None = None  # CPU time
    memory_bytes: int | None = None  # address space
    open_files: int | None = None  # files that are open at the same time
    processes: int | None = None  # processes of the worker's user in total; root has no limit
    file_bytes: int | None = None  # size of each file that the process writes, logs included

    def __post_init__(self) -> None:
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        _positive(self, *given)


PREPARE_SECONDS_DEFAULT = 600.0  # in which an engine fetches images and makes containers


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of a worker: what it offers, and how it treats its jobs."""

    name: str  # the name of the worker in lists and messages
    queues: tuple[str, ...] = ("default",)  # names or patterns of the queues that it serves
    slots: int = 1  # how many tasks it runs at once
    capacity: Resources = field(default_factory=Resources)  # what it offers to tasks
    lease_seconds: float | None = None  # the length of its leases; None: as the queue says
    poll_seconds: float = 5.0  # how often it looks for tasks if no wake-up arrives
    # Seconds between two searches for dead workers on this host whose jobs it can adopt.
    adopt_interval_seconds: float = ADOPT_INTERVAL_SECONDS_DEFAULT
    # At a stop, YIELD ends the jobs and gives their tasks to other workers, DRAIN finishes
    # the jobs, LEAVE lets them run, and the next worker on this host adopts them.
    on_stop: OnStop = OnStop.YIELD
    grace_seconds: float = 30.0  # how long jobs may take to end when it stops (yield, drain)
    tie_jobs: bool = False  # whether jobs are ended when the worker ends, even if it is killed
    job_limits: JobLimits = field(default_factory=JobLimits)  # limits of each process of a job
    usage_interval_seconds: float = 5.0  # how often the resources that jobs use are measured
    runners: tuple[str, ...] = ()  # further runners: slurm, compose, swarm
    shell: bool = True  # whether it runs commands with bash
    allow_compose: tuple[str, ...] = ()  # what compose files may use of this host
    # How long an engine may take to fetch images and create containers.
    prepare_seconds: float = PREPARE_SECONDS_DEFAULT
    secrets: Path | None = None  # a folder with a file for each secret
    # A command that prints a secret; the name of the secret is added as its last argument.
    secrets_command: tuple[str, ...] = ()
    home: Path = Path()  # the state directory

    def __post_init__(self) -> None:
        self._check_runners()
        _positive(self, "slots", "poll_seconds", "usage_interval_seconds")
        _positive(self, "adopt_interval_seconds", "prepare_seconds")
        if self.capacity.nodes < 1:
            raise BadSetting("nodes", self.capacity.nodes, "1 or more machines")
        for one in self.capacity.flavours:
            if not 1 <= one.nodes <= self.capacity.nodes:
                accepted = f"1 to {self.capacity.nodes}, the nodes of all flavours together"
                raise BadSetting(f"nodes {one.flavour}", one.nodes, accepted)
        if not self.queues:
            raise BadSetting("queues", self.queues, "at least one queue name")
        for queue in self.queues:
            if finding := name_finding("queue", queue):
                raise BadSetting("queue", queue, fault=finding)
        if self.lease_seconds is not None:
            _check_lease("lease_seconds", self.lease_seconds)
        if self.grace_seconds < 0:
            raise BadSetting("grace_seconds", self.grace_seconds, "0 or more")
        if self.secrets is not None and not self.secrets.is_dir():
            raise BadSetting(
                "secrets", str(self.secrets), "a folder with a file for each secret"
            )

    def _check_runners(self) -> None:
        for runner in self.runners:
            if runner not in RUNNERS:
                raise BadSetting("runner", runner, " or ".join(RUNNERS))
        read_allowances(self.allow_compose)
        given = runner_labels(self.runners) | allow_labels(self.allow_compose)
        for label in self.capacity.labels - given:
            if label.startswith((RUNNER_LABEL_PREFIX, ALLOW_LABEL_PREFIX)):
                is_runner = label.startswith(RUNNER_LABEL_PREFIX)
                by = f"--{'runner' if is_runner else 'allow-compose'} {label.partition(':')[2]}"
                fault = f"--label {label} cannot be given by hand; {by} adds it"
                raise BadSetting("label", label, fault=fault)
        if self.tie_jobs and self.runners:
            fault = (
                f"--runner {', '.join(self.runners)} cannot be combined with --tie-jobs: "
                "such jobs do not end with their worker; leave out one of the two"
            )
            raise BadSetting("runner", self.runners, fault=fault)


def runner_labels(runners: Iterable[str]) -> frozenset[str]:
    """Returns the labels that a worker with these runners offers: `runner:NAME` for each, and
    `runner:containers` if one of them runs containers."""
    names = set(runners)
    if not names.isdisjoint(CONTAINER_RUNNERS):
        names.add(CONTAINERS)
    return frozenset(map(runner_label, names))


# The words for what a worker may be told to allow, and what each means.
ALLOWABLE: Mapping[str, str] = {
    "privileged": "privileged containers: root on the host",
    "host-network": "the network of the host, its interfaces and its local services",
    "host-pid": "the processes of the host",
    "host-ipc": "the shared memory of the host",
    "host-userns": "the users of the host, and its host name and cgroups",
    "cap-add": "added kernel capabilities",
    "devices": "devices of the host, GPUs among them",
    "security-opt": "security options, such as running unconfined",
    "sysctls": "kernel parameters",
    "engine-socket": "the engine itself: root on the host",
    "bind-mounts": "folders and files of the host outside the job's own",
    "volumes-from": "volumes of other containers",
    "external": "networks, volumes, secrets and configs that the job did not create",
    "volume-drivers": "volumes with their own drivers or options, which can mount anything",
    "logging": "other log drivers: the logs of the job will be missing",
    "build": "building images on the host",
    "files": "env_file, extends and include: reading files of the host",
    "runtime": "other container runtimes",
    "ports": "ports on addresses of the host that others can reach",
    "limits": "more containers, memory, processes or open files than a stage may have",
}
EVERYWHERE = ""  # instead of a queue


def read_allowances(entries: Iterable[str]) -> dict[str, frozenset[str]]:
    """Returns what is allowed, in words of `ALLOWABLE`, by queue (EVERYWHERE: in each).

    Raises BadSetting for an entry that means nothing.
    """
    allowed: dict[str, frozenset[str]] = {}
    for entry in entries:
        queue, colon, what = entry.rpartition(":")  # a queue may be called run:NAME
        if what not in ALLOWABLE or (colon and not queue) or "*" in queue:
            accepted = (
                "WHAT or QUEUE:WHAT, where QUEUE is the whole name of a queue, without *, and "
                f"WHAT is one of {', '.join(ALLOWABLE)}"
            )
            raise BadSetting("allow-compose", entry, accepted)
        allowed[queue] = allowed.get(queue, frozenset()) | {what}
    return allowed


def allow_labels(entries: Iterable[str]) -> frozenset[str]:
    """Returns the labels that a worker with these allowances offers."""
    return frozenset(map(allow_label, entries))


def home_directory(environ: Mapping[str, str] = ENVIRON) -> Path:
    """Returns the state directory of this user, with the store and the logs of jobs:
    TIDEWHEEL_HOME, else `tidewheel` in XDG_STATE_HOME, else in ~/.local/state."""
    if explicit := environ.get("TIDEWHEEL_HOME"):
        return Path(explicit).absolute()
    state = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state).absolute() / "tidewheel"


def store_url(environ: Mapping[str, str] = ENVIRON) -> str | None:
    """Returns the address that the environment names: TIDEWHEEL_STORE, else TIDEWHEEL_SERVER;
    None if it names neither."""
    if store := environ.get(STORE_VARIABLE):
        return store
    server = environ.get("TIDEWHEEL_SERVER")
    if server and not server.startswith(("http://", "https://")):
        raise BadSetting("TIDEWHEEL_SERVER", server, "http://HOST:PORT or https://HOST")
    return server or None


def own_store_url(environ: Mapping[str, str] = ENVIRON) -> str:
    """Returns the address of this user's own store, a file in the state directory; it is used
    if no other store was named."""
    return f"sqlite:///{home_directory(environ)}/tidewheel.db"


def is_here(server: str) -> bool:
    """Says whether an address can only be that of a server on this machine."""
    try:
        return is_loopback(urlsplit(server.strip()).hostname or "")
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Says whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """Describes this user's server as its file in the state directory does: address, store and
    process."""

    url: str
    store: str
    process: HostProcess


def found_server(home: Path) -> FoundServer | None:
    """Returns the server that the file in the state directory names, which may be dead by now;
    None if there is no such file, or it cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads((home / SERVER_FILE).read_text(encoding="utf-8"))
        process = HostProcess(
            host=str(told["host"]),
            boot_id=str(told["boot_id"]),
            pid=int(told["pid"]),
            started=float(told["started"]),
        )
        return FoundServer(url=str(told["url"]), store=str(told["store"]), process=process)
    return None


def failpoint(environ: Mapping[str, str] = ENVIRON) -> Failpoint:
    """Returns the failpoint that TIDEWHEEL_FAILPOINT names, at which this process dies, for
    tests; without one, a failpoint that does nothing."""
    return failpoint_named(environ.get("TIDEWHEEL_FAILPOINT"))


def submit_limits(environ: Mapping[str, str] = ENVIRON) -> SubmitLimits:
    """Returns the limits on the size of what clients and jobs store; a job's message may have
    as many bytes as TIDEWHEEL_MESSAGE_BYTES_MAX says."""
    name = "TIDEWHEEL_MESSAGE_BYTES_MAX"
    text = environ.get(name)
    if text is None:
        return SubmitLimits()
    if not text.isdecimal() or not 0 < int(text) <= MESSAGE_BYTES_CONFIGURABLE_MAX:
        accepted = f"a number of bytes, 1 to {MESSAGE_BYTES_CONFIGURABLE_MAX}"
        raise BadSetting(name, text, accepted)
    return SubmitLimits(message_bytes_max=int(text))


def monitor_settings(environ: Mapping[str, str] = ENVIRON) -> MonitorSettings:
    """Returns the settings of a stand-alone monitor, from its environment (R002-85)."""
    retention = _number(environ, "TIDEWHEEL_RETENTION_SECONDS", RETENTION_SECONDS_DEFAULT)
    workers = _number(
        environ, "TIDEWHEEL_WORKERS_RETENTION_SECONDS", WORKERS_RETENTION_SECONDS_DEFAULT
    )
    export = environ.get("TIDEWHEEL_EXPORT_DIRECTORY")
    return MonitorSettings(
        interval_seconds=_number(environ, "TIDEWHEEL_MONITOR_INTERVAL_SECONDS", 1.0),
        retention_seconds=retention if retention > 0 else None,
        workers_retention_seconds=workers if workers > 0 else None,
        export_directory=Path(export).absolute() if export else None,
    )


def adopt_interval_seconds(environ: Mapping[str, str] = ENVIRON) -> float:
    """Returns the seconds that a worker lets pass between two searches for dead workers on its
    host."""
    name = "TIDEWHEEL_ADOPT_INTERVAL_SECONDS"
    return _number(environ, name, ADOPT_INTERVAL_SECONDS_DEFAULT)


def scheduler_settings(environ: Mapping[str, str] = ENVIRON) -> SchedulerSettings:
    """Returns the settings of a scheduler from the environment, for `tidewheel run` and
    `tidewheel scheduler` alike."""
    lease = "TIDEWHEEL_SCHEDULER_LEASE_SECONDS"
    return SchedulerSettings(
        lease_seconds=_number(environ, lease, RUN_LEASE_SECONDS_DEFAULT),
        interval_seconds=_number(environ, "TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS", 1.0),
        smtp=environ.get("TIDEWHEEL_SMTP", SMTP_DEFAULT),
    )


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if text is None:
        return default
    try:
        return float(text)
    except ValueError:
        raise BadSetting(name, text, "a number of seconds") from None


def _check_lease(name: str, seconds: float) -> None:
    if not 0 < seconds <= LEASE_SECONDS_MAX:
        raise BadSetting(name, seconds, f"more than 0, up to {LEASE_SECONDS_MAX:.0f}")


def _positive(settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if not value > 0:
            raise BadSetting(name, value, "more than 0")
