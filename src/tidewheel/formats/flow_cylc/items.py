"""Every item of a flow.cylc that a current Cylc accepts.

An item is used, or it is accepted with a note why it has no effect here; what is not in this
table is refused with the nearest name that is, or with what to write now (`upgrade`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidewheel.formats.flow_cylc.values import READERS, ValueKind, plain_text
from tidewheel.formats.flow_cylc.xtriggers import read_xtrigger

# The types of the table: sections know their entries, items their kind and use.

_READERS = {**READERS, ValueKind.XTRIGGER: lambda raw: read_xtrigger(plain_text(raw))}


@dataclass(frozen=True, slots=True)
class ItemSpec:
    """One item that is accepted."""

    kind: ValueKind
    default: object = None
    choices: tuple[str, ...] = ()
    # Why it has no effect in tidewheel; empty for an item that has one.
    idle_because: str = ""
    read: Callable[[str], object] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "read", _READERS[self.kind])


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """One section that is accepted; ``other`` is for names that the person chooses."""

    entries: Mapping[str, ItemSpec | SectionSpec] = field(default_factory=dict)
    other: ItemSpec | SectionSpec | None = None
    idle_because: str = ""


def idle(because: str, kind: ValueKind = ValueKind.TEXT) -> ItemSpec:
    """Returns an item that a current Cylc accepts and that has no effect here."""
    return ItemSpec(kind, idle_because=because)


TEXT = ItemSpec(ValueKind.TEXT, "")
TEXTS = ItemSpec(ValueKind.TEXTS, ())
DURATION = ItemSpec(ValueKind.DURATION)
DURATIONS = ItemSpec(ValueKind.DURATIONS, ())
BOOLEAN = ItemSpec(ValueKind.BOOLEAN)
POINT = ItemSpec(ValueKind.POINT, "")

# The table.

CYCLING_MODES = (
    "gregorian",
    "integer",
    "360day",
    "365day",
    "366day",
    "360_day",
    "365_day",
    "366_day",
)
WORKFLOW_EVENTS = (
    "startup",
    "shutdown",
    "abort",
    "stall",
    "stall timeout",
    "workflow timeout",
    "inactivity timeout",
    "restart timeout",
)
# Cylc 7's names of workflow events, which a current Cylc still understands.
OLD_WORKFLOW_EVENTS = {
    "aborted": "abort",
    "inactivity": "inactivity timeout",
    "stalled": "stall",
    "timeout": "stall timeout",
}
TASK_EVENTS = (
    "submitted",
    "submission timeout",
    "submission retry",
    "submission failed",
    "started",
    "execution timeout",
    "retry",
    "succeeded",
    "failed",
    "late",
    "expired",
    "warning",
    "critical",
    "custom",
)
RUN_MODES = ("live", "skip")

_NO_POLLING = "jobs report by themselves and are never polled"
_NO_PLATFORMS = "logs of jobs are kept where the job ran and read from there"

META = SectionSpec({"title": TEXT, "description": TEXT, "URL": TEXT}, other=TEXT)

SCHEDULER = SectionSpec(
    {
        "UTC mode": BOOLEAN,
        "allow implicit tasks": BOOLEAN,
        "install": idle("the whole folder is stored when a run starts", ValueKind.TEXTS),
        "cycle point format": TEXT,
        "cycle point num expanded year digits": ItemSpec(ValueKind.INTEGER, 0),
        "cycle point time zone": TEXT,
        "main loop": SectionSpec(
            other=SectionSpec({"interval": DURATION}, other=TEXT),
            idle_because="tidewheel has no main loop plugins",
        ),
        "events": SectionSpec(
            {
                "handlers": TEXTS,
                "handler events": TEXTS,
                "mail events": TEXTS,
                **{f"{event} handlers": TEXTS for event in WORKFLOW_EVENTS[:-1]},
                "workflow timeout": DURATION,
                "abort on workflow timeout": BOOLEAN,
                "stall timeout": ItemSpec(ValueKind.DURATION, 3600.0),
                "abort on stall timeout": BOOLEAN,
                "inactivity timeout": DURATION,
                "abort on inactivity timeout": BOOLEAN,
                "restart timeout": idle(
                    "a completed run that is started again ends at once; give it a later final "
                    "point: --fcp POINT",
                    ValueKind.DURATION,
                ),
                "expected task failures": idle(
                    "it is for tests of Cylc itself", ValueKind.TEXTS
                ),
            }
        ),
        "mail": SectionSpec(
            {"footer": TEXT, "to": TEXT, "from": TEXT, "task event batch interval": DURATION}
        ),
        # Of tidewheel, not of Cylc (SEMANTICS §5, §12).
        "prune across points": BOOLEAN,
        "job commands": BOOLEAN,
    }
)

TASK_PARAMETERS = SectionSpec(
    {"templates": SectionSpec(other=TEXT)}, other=ItemSpec(ValueKind.PARAMETER)
)

SCHEDULING = SectionSpec(
    {
        "initial cycle point": POINT,
        "final cycle point": POINT,
        "initial cycle point constraints": TEXTS,
        "final cycle point constraints": TEXTS,
        "hold after cycle point": POINT,
        "stop after cycle point": POINT,
        "cycling mode": ItemSpec(ValueKind.TEXT, "gregorian", CYCLING_MODES),
        "runahead limit": ItemSpec(ValueKind.TEXT, "P4"),
        "sequential xtriggers": BOOLEAN,
        "queues": SectionSpec(
            other=SectionSpec(
                {
                    "limit": ItemSpec(ValueKind.INTEGER, 0),
                    "members": ItemSpec(ValueKind.NAMES, ()),
                }
            )
        ),
        "special tasks": SectionSpec(
            {
                "clock-trigger": TEXTS,
                "external-trigger": TEXTS,
                "clock-expire": TEXTS,
                "sequential": TEXTS,
            }
        ),
        "xtriggers": SectionSpec(other=ItemSpec(ValueKind.XTRIGGER)),
        "graph": SectionSpec(other=ItemSpec(ValueKind.GRAPH)),
    }
)

NAMESPACE = SectionSpec(
    {
        "inherit": ItemSpec(ValueKind.TEXTS, ()),
        "completion": TEXT,
        "platform": TEXT,
        "script": TEXT,
        "init-script": TEXT,
        "env-script": TEXT,
        "err-script": TEXT,
        "exit-script": TEXT,
        "pre-script": TEXT,
        "post-script": TEXT,
        "work sub-directory": TEXT,
        "execution polling intervals": idle(_NO_POLLING, ValueKind.DURATIONS),
        "execution retry delays": DURATIONS,
        "execution time limit": DURATION,
        "submission polling intervals": idle(_NO_POLLING, ValueKind.DURATIONS),
        "submission retry delays": DURATIONS,
        "run mode": ItemSpec(ValueKind.TEXT, "live", RUN_MODES),
        "meta": META,
        "skip": SectionSpec({"outputs": TEXTS, "disable task event handlers": BOOLEAN}),
        "simulation": SectionSpec(
            {
                "default run length": ItemSpec(ValueKind.DURATION, 10.0),
                "speedup factor": ItemSpec(ValueKind.NUMBER),
                "time limit buffer": ItemSpec(ValueKind.DURATION, 30.0),
                "fail cycle points": TEXTS,
                "fail try 1 only": ItemSpec(ValueKind.BOOLEAN, True),
                "disable task event handlers": ItemSpec(ValueKind.BOOLEAN, True),
            }
        ),
        "environment filter": SectionSpec({"include": TEXTS, "exclude": TEXTS}),
        "job": SectionSpec(
            {"batch system": TEXT, "batch submit command template": TEXT},
        ),
        "remote": SectionSpec(
            {
                "host": TEXT,
                "owner": TEXT,
                "retrieve job logs": idle(_NO_PLATFORMS, ValueKind.BOOLEAN),
                "retrieve job logs max size": idle(_NO_PLATFORMS),
                "retrieve job logs retry delays": idle(_NO_PLATFORMS, ValueKind.DURATIONS),
            }
        ),
        "events": SectionSpec(
            {
                "handlers": TEXTS,
                "handler events": TEXTS,
                "handler retry delays": DURATIONS,
                "mail events": TEXTS,
                "execution timeout": DURATION,
                "submission timeout": DURATION,
                "late offset": DURATION,
                **{f"{event} handlers": TEXTS for event in TASK_EVENTS},
            }
        ),
        "mail": SectionSpec({"from": TEXT, "to": TEXT}),
        "workflow state polling": SectionSpec(
            {
                "interval": DURATION,
                "max-polls": ItemSpec(ValueKind.INTEGER),
                "message": TEXT,
                "alt-cylc-run-dir": TEXT,
                "verbose mode": idle(
                    "what was asked and found is always shown", ValueKind.BOOLEAN
                ),
            }
        ),
        "environment": SectionSpec(other=TEXT),
        "directives": SectionSpec(other=TEXT),
        "outputs": SectionSpec(other=TEXT),
        "parameter environment templates": SectionSpec(other=TEXT),
    }
)

FLOW = SectionSpec(
    {
        "meta": META,
        "scheduler": SCHEDULER,
        "task parameters": TASK_PARAMETERS,
        "scheduling": SCHEDULING,
        "runtime": SectionSpec(other=NAMESPACE),
    }
)
