"""Lists every item of a flow.cylc that a current Cylc accepts, and which field it fills.

An item is used, or it is accepted with a note why it has no effect here; what is not in this
table is refused with the nearest name that is, or with what to write now (`upgrade`).

From a row follow how an item is read, the field of a node or of the settings that has its value
(`runtime`, `settings`), its broadcast, the editors' files and the reference. An item without a
field is read by hand where its section is; tests/tidy/test_settings_read.py lists those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from tidewheel.formats.flow_cylc.values import READERS, ValueKind, plain_text
from tidewheel.formats.flow_cylc.xtriggers import read_xtrigger
from tidewheel.lazy_dataclasses import dataclass

# The types of the table: sections know their entries, items their kind and use.

_READERS = {**READERS, ValueKind.XTRIGGER: lambda raw: read_xtrigger(plain_text(raw))}


@dataclass(frozen=True, slots=True)
class ItemSpec:
    """Describes one item that is accepted."""

    kind: ValueKind
    default: object = None
    choices: tuple[str, ...] = ()
    # Why it has no effect in tidewheel; empty for an item that has one.
    idle_because: str = ""
    # The field that it fills: of `NodeDef` for a namespace ("place.platform": a field of a
    # field), of the section's own settings for every other section.
    to: str = ""
    read: Callable[[str], object] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "read", _READERS[self.kind])


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """Describes a section that is accepted; ``other`` is for names that people choose."""

    entries: Mapping[str, ItemSpec | SectionSpec] = field(default_factory=dict)
    other: ItemSpec | SectionSpec | None = None
    idle_because: str = ""
    to: str = ""  # the field that has all of its items as pairs


def idle(because: str, kind: ValueKind = ValueKind.TEXT) -> ItemSpec:
    """Returns an item that a current Cylc accepts and that has no effect here."""
    return ItemSpec(kind, idle_because=because)


def _items_of(kind: ValueKind, default: object = None) -> Callable[..., ItemSpec]:
    """Returns a function that makes items of one kind, given a field and perhaps a default."""

    def item(to: str = "", default: object = default) -> ItemSpec:
        return ItemSpec(kind, default, to=to)

    return item


text, texts = _items_of(ValueKind.TEXT, ""), _items_of(ValueKind.TEXTS, ())
duration, durations = _items_of(ValueKind.DURATION), _items_of(ValueKind.DURATIONS, ())
boolean, point = _items_of(ValueKind.BOOLEAN), _items_of(ValueKind.POINT, "")


# The table.

CYCLING_MODES = (
    *("gregorian", "integer", "360day", "365day", "366day", "360_day", "365_day", "366_day"),
)
WORKFLOW_EVENTS = (
    *("startup", "shutdown", "abort", "stall", "stall timeout", "workflow timeout"),
    *("inactivity timeout", "restart timeout"),
)
# Cylc 7's names of workflow events, which a current Cylc still understands.
OLD_WORKFLOW_EVENTS = {
    "aborted": "abort",
    "inactivity": "inactivity timeout",
    "stalled": "stall",
    "timeout": "stall timeout",
}
TASK_EVENTS = (
    *("submitted", "submission timeout", "submission retry", "submission failed", "started"),
    *("execution timeout", "retry", "succeeded", "failed", "late", "expired"),
    *("warning", "critical", "custom"),
)
RUN_MODES = ("live", "skip")

_NO_POLLING = "jobs send reports; they are polled only by the command poll"
_NO_PLATFORMS = "workers keep the logs of jobs, or send them to the server"

_META = {"title": text(), "description": text(), "URL": text()}
META = SectionSpec(_META, other=text())

EVENTS = SectionSpec(
    {
        "handlers": texts("handlers"),
        "handler events": texts("handled_events"),
        "mail events": texts("mail_events"),
        **{f"{event} handlers": texts("handlers") for event in WORKFLOW_EVENTS[:-1]},
        "workflow timeout": duration("workflow_timeout_seconds"),
        "abort on workflow timeout": boolean("abort_on_workflow_timeout"),
        "stall timeout": duration("stall_timeout_seconds", 3600.0),
        "abort on stall timeout": boolean("abort_on_stall_timeout"),
        "inactivity timeout": duration("inactivity_timeout_seconds"),
        "abort on inactivity timeout": boolean("abort_on_inactivity_timeout"),
        "restart timeout": idle(
            "a completed run that is started again ends at once; give it a later final "
            "point: --fcp POINT",
            ValueKind.DURATION,
        ),
        "expected task failures": idle("it is for tests of Cylc itself", ValueKind.TEXTS),
    }
)
MAIL = SectionSpec(
    {
        "footer": text("footer"),
        "to": text("to"),
        "from": text("sender"),
        "task event batch interval": duration("batch_interval_seconds"),
    }
)
SCHEDULER = SectionSpec(
    {
        "UTC mode": boolean("utc_mode"),
        "allow implicit tasks": boolean("implicit_tasks_allowed"),
        "install": idle(
            "the files of the folder are stored when a run starts", ValueKind.TEXTS
        ),
        "cycle point format": text("point_format"),
        "cycle point num expanded year digits": ItemSpec(
            ValueKind.INTEGER, 0, to="expanded_year_digits"
        ),
        "cycle point time zone": text("time_zone"),
        "main loop": SectionSpec(
            other=SectionSpec({"interval": duration("")}, other=text()),
            idle_because="tidewheel has no main loop plugins",
        ),
        "events": EVENTS,
        "mail": MAIL,
        # Of tidewheel, not of Cylc (SEMANTICS §5, §12).
        "prune across points": boolean("prune_across_points"),
        "job commands": boolean("job_commands"),
    }
)

TASK_PARAMETERS = SectionSpec(
    {"templates": SectionSpec(other=text())}, other=ItemSpec(ValueKind.PARAMETER)
)

SCHEDULING = SectionSpec(
    {
        "initial cycle point": point("initial_point"),
        "final cycle point": point("final_point"),
        "initial cycle point constraints": texts("initial_constraints"),
        "final cycle point constraints": texts("final_constraints"),
        "hold after cycle point": point("hold_after"),
        "stop after cycle point": point("stop_after"),
        "cycling mode": ItemSpec(ValueKind.TEXT, "gregorian", CYCLING_MODES, to="cycling_mode"),
        "runahead limit": ItemSpec(ValueKind.TEXT, "P4", to="runahead_limit"),
        "sequential xtriggers": boolean(""),
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
                "clock-trigger": texts("clock_trigger"),
                "external-trigger": texts("external_trigger"),
                "clock-expire": texts("clock_expire"),
                "sequential": texts("sequential"),
            }
        ),
        "xtriggers": SectionSpec(other=ItemSpec(ValueKind.XTRIGGER)),
        "graph": SectionSpec(other=ItemSpec(ValueKind.GRAPH)),
    }
)

NAMESPACE = SectionSpec(
    {
        "inherit": texts(),
        "completion": text("completion"),
        "workflow": text("workflow"),  # of tidewheel, not of Cylc
        "platform": text("place.platform"),
        "script": text("scripts.main"),
        "init-script": text("scripts.init"),
        "env-script": text("scripts.env"),
        "err-script": text("scripts.on_error"),
        "exit-script": text("scripts.on_exit"),
        "pre-script": text("scripts.pre"),
        "post-script": text("scripts.post"),
        "work sub-directory": text("place.work_subdirectory"),
        "execution polling intervals": idle(_NO_POLLING, ValueKind.DURATIONS),
        "execution retry delays": durations("retries.execution"),
        "execution time limit": duration("time_limit_seconds"),
        "submission polling intervals": idle(_NO_POLLING, ValueKind.DURATIONS),
        "submission retry delays": durations("retries.submission"),
        "run mode": ItemSpec(ValueKind.TEXT, "live", RUN_MODES, to="run_mode"),
        "meta": SectionSpec(_META, other=text(), to="meta"),
        "skip": SectionSpec(
            {
                "outputs": texts("skip.outputs"),
                "disable task event handlers": boolean("skip.handlers_disabled"),
            }
        ),
        "simulation": SectionSpec(
            {
                "default run length": duration("simulation.run_seconds", 10.0),
                "speedup factor": ItemSpec(ValueKind.NUMBER, to="simulation.speedup_factor"),
                "time limit buffer": idle(
                    "a simulated job has no time limit", ValueKind.DURATION
                ),
                "fail cycle points": texts("simulation.fail_points"),
                "fail try 1 only": boolean("simulation.fail_first_try_only", True),
                "disable task event handlers": boolean("simulation.handlers_disabled", True),
            }
        ),
        "environment filter": SectionSpec(
            {"include": texts("environment"), "exclude": texts("environment")}
        ),
        "job": SectionSpec(
            {
                "batch system": text("place.batch_system"),
                "batch submit command template": idle(
                    "the runner of the platform calls sbatch itself"
                ),
            }
        ),
        "remote": SectionSpec(
            {
                "host": text("place.remote_host"),
                "owner": text(),  # refused
                "retrieve job logs": idle(_NO_PLATFORMS, ValueKind.BOOLEAN),
                "retrieve job logs max size": idle(_NO_PLATFORMS),
                "retrieve job logs retry delays": idle(_NO_PLATFORMS, ValueKind.DURATIONS),
            }
        ),
        "events": SectionSpec(
            {
                "handlers": texts("events.handlers"),
                "handler events": texts("events.handled_events"),
                "handler retry delays": durations("events.handler_retry_delays"),
                "mail events": texts("events.mail_events"),
                "execution timeout": duration("events.execution_timeout_seconds"),
                "submission timeout": duration("events.submission_timeout_seconds"),
                "late offset": duration("events.late_offset_seconds"),
                **{f"{event} handlers": texts("events.handlers") for event in TASK_EVENTS},
            }
        ),
        "mail": SectionSpec({"from": text("mail.sender"), "to": text("mail.to")}),
        "workflow state polling": SectionSpec(
            {
                "interval": duration("polling.interval_seconds"),
                "max-polls": ItemSpec(ValueKind.INTEGER, to="polling.polls_max"),
                "message": text("polling.message"),
                "alt-cylc-run-dir": text("polling.run_directory"),
                "verbose mode": idle(
                    "each poll and its result are always shown", ValueKind.BOOLEAN
                ),
            }
        ),
        "environment": SectionSpec(other=text(), to="environment"),
        "inputs": SectionSpec(other=text(), to="inputs"),  # of tidewheel, not of Cylc
        "directives": SectionSpec(other=text(), to="place.directives"),
        "outputs": SectionSpec(other=text(), to="outputs"),
        "parameter environment templates": SectionSpec(other=text()),
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


def node_fields() -> Iterator[tuple[str, str, str, str]]:
    """Yields section, item, group and field for each item of a namespace that fills a node.

    The section is "" for an item outside of sections; the item is "" for a section whose items
    are kept as pairs; the field is "" where the group is itself the value.
    """
    for name, entry in NAMESPACE.entries.items():
        rows = [("", name, entry.to)]
        if isinstance(entry, SectionSpec):
            inner = entry.entries.items() if not entry.to else ()
            rows = [(name, one, spec.to) for one, spec in inner] or [(name, "", entry.to)]
        for section, item, to in rows:
            if to:
                group, _, field_name = to.partition(".")
                yield section, item, group, field_name
