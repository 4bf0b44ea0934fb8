"""A node: what a person said about one named step, after inheritance, before any point.

Values only, shared wherever two nodes say the same: ten thousand nodes that inherit one
environment hold one environment. Durations are seconds. Two nodes are equal when they say the
same, wherever it was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tidewheel.core.graph.findings import NOWHERE, Position
from tidewheel.core.queue.resources import NO_RESOURCES, Resources

# Ordered names and values: order matters in an environment; a tuple can be shared and hashed.
Pairs = tuple[tuple[str, str], ...]


class RunMode(StrEnum):
    """Says what running this node means."""

    LIVE = "live"
    SIMULATION = "simulation"
    DUMMY = "dummy"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """Shell text, in the order in which a job runs it; `on_error` only when it fails."""

    init: str = ""
    env: str = ""
    pre: str = ""
    main: str = ""
    post: str = ""
    on_exit: str = ""
    on_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Holds what is called or mailed when something happens to a task of this node."""

    # (event, commands): "failed" -> ("notify %(id)s",); the event "" is every one of `events`.
    handlers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    handled_events: tuple[str, ...] = ()
    handler_retry_delays: tuple[float, ...] = ()
    mail_events: tuple[str, ...] = ()
    execution_timeout_seconds: float | None = None
    submission_timeout_seconds: float | None = None
    late_offset_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Holds where mail about this node comes from and goes to."""

    sender: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Holds how a job of this node is played instead of run."""

    run_seconds: float = 10.0
    speedup_factor: float | None = None
    fail_points: tuple[str, ...] = ()
    fail_first_try_only: bool = True
    handlers_disabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Holds what a skipped job pretends to have done."""

    outputs: tuple[str, ...] = ()
    handlers_disabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePolling:
    """Holds how a node that waits for a task of another workflow asks for it."""

    # workflow::task:status, from the graph; empty for a node that does not wait.
    target: str = ""
    interval_seconds: float | None = None
    polls_max: int | None = None
    message: str = ""
    run_directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The n-th retry waits for the n-th delay; there are as many retries as delays."""

    execution: tuple[float, ...] = ()
    submission: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlace:
    """Says where and with which directives a job runs; the last two are Cylc 7's words."""

    platform: str = ""
    directives: Pairs = ()
    work_subdirectory: str = ""
    batch_system: str = ""
    remote_host: str = ""


NO_SCRIPTS = Scripts()
NO_EVENTS = Events()
NO_MAIL = Mail()
DEFAULT_SIMULATION = Simulation()
DEFAULT_SKIP = Skip()
NO_POLLING = StatePolling()
NO_RETRIES = Retries()
ANYWHERE = NodePlace()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDef:
    """One named step of a workflow, or a family that others inherit from."""

    name: str
    # Where its settings came from, nearest first, itself included: ("foo", "FAM", "root").
    lineage: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str | int], ...] = ()
    scripts: Scripts = NO_SCRIPTS
    environment: Pairs = ()
    # Custom outputs only: (name, message).
    outputs: Pairs = ()
    completion: str = ""
    run_mode: RunMode = RunMode.LIVE
    retries: Retries = NO_RETRIES
    time_limit_seconds: float | None = None
    place: NodePlace = ANYWHERE
    # What a worker must have free for it.
    resources: Resources = NO_RESOURCES
    meta: Pairs = ()
    events: Events = NO_EVENTS
    mail: Mail = NO_MAIL
    simulation: Simulation = DEFAULT_SIMULATION
    skip: Skip = DEFAULT_SKIP
    polling: StatePolling = NO_POLLING
    position: Position = field(default=NOWHERE, compare=False)
