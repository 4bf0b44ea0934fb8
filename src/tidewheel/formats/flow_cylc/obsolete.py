"""What older Cylcs called things, and what to write now.

What a current Cylc still upgrades is upgraded here too, with a warning; what it no longer knows
is refused, with the same advice. Paths are those of the section that holds the old name; `*` is
any namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tidewheel.formats.flow_cylc.items import TASK_EVENTS


@dataclass(frozen=True, slots=True)
class Moved:
    """It has another name or place now; `to` is the whole new path."""

    to: tuple[str, ...]
    convert: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """It has no meaning any more and is ignored."""

    advice: str = "remove it"


@dataclass(frozen=True, slots=True)
class Gone:
    """No Cylc of today accepts it."""

    advice: str


Change = Moved | Dropped | Gone
Path = tuple[str, ...]

_NAMESPACE = ("runtime", "*")
_MAILS_ARE_GLOBAL = "remove it: how mail is sent is a setting of the machine, not of a workflow"


def _runahead(text: str) -> str:
    """Cylc 7 counted all active points, Cylc 8 those beyond the first."""
    return f"P{int(text) - 1}" if re.fullmatch(r"\s*0*[1-9]\d{0,8}\s*", text) else text


_OLD_WORKFLOW_EVENTS = {
    "timeout": "stall timeout",
    "abort on timeout": "abort on stall timeout",
    "inactivity": "inactivity timeout",
    "abort on inactivity": "abort on inactivity timeout",
    "startup handler": "startup handlers",
    "shutdown handler": "shutdown handlers",
    "timeout handler": "stall timeout handlers",
    "stalled handler": "stall handlers",
    "aborted handler": "abort handlers",
    "inactivity handler": "inactivity timeout handlers",
}
_DROPPED_WORKFLOW_EVENTS = (
    "reset timer",
    "reset inactivity timer",
    "abort on stalled",
    *(
        f"abort if {event} handler fails"
        for event in ("startup", "shutdown", "timeout", "inactivity", "stalled")
    ),
)
_DROPPED_OF_CYLC = (
    "force run mode",
    "authentication",
    "include at start-up",
    "exclude at start-up",
    "log resolved dependencies",
    "required run mode",
    "health check interval",
    "abort if any task fails",
    "disable automatic shutdown",
    "environment",
    "reference test",
    "simulation",
)

# Sections that were renamed come first: what is inside of them is then found at its new place.
CHANGES: dict[Path, dict[str, Change]] = {
    (): {
        "cylc": Moved(("scheduler",)),
        "visualization": Dropped(),
        "title": Gone("write it under [meta]"),
        "description": Gone("write it under [meta]"),
        "group": Gone("write it under [meta]"),
        "URL": Gone("write it under [meta]"),
        "dependencies": Gone("write [scheduling] [[graph]]"),
        "special tasks": Gone("write [scheduling] [[special tasks]]"),
        "parameters": Gone("write [task parameters]"),
        "graph": Gone("write [scheduling] [[graph]]"),
    },
    ("scheduler",): {
        "parameters": Moved(("task parameters",)),
        "parameter templates": Moved(("task parameters", "templates")),
        "task event mail interval": Moved(("scheduler", "mail", "task event batch interval")),
        **{name: Dropped() for name in _DROPPED_OF_CYLC},
    },
    ("scheduler", "events"): {
        **{
            old: Moved(("scheduler", "events", new))
            for old, new in _OLD_WORKFLOW_EVENTS.items()
        },
        **{
            f"mail {name}": Moved(("scheduler", "mail", name))
            for name in ("to", "from", "footer")
        },
        "mail smtp": Dropped(_MAILS_ARE_GLOBAL),
        **{name: Dropped() for name in _DROPPED_WORKFLOW_EVENTS},
    },
    ("scheduling",): {
        "max active cycle points": Moved(("scheduling", "runahead limit"), _runahead),
        "hold after point": Moved(("scheduling", "hold after cycle point")),
        "spawn to max active cycle points": Dropped(),
        "initial cycle time": Gone("write: initial cycle point"),
        "final cycle time": Gone("write: final cycle point"),
        "runahead factor": Gone("write: runahead limit = P4"),
    },
    _NAMESPACE: {
        "suite state polling": Moved((*_NAMESPACE, "workflow state polling")),
        "extra log files": Dropped("remove it: files in the job's log directory are shown"),
        "title": Gone("write it under [[[meta]]]"),
        "description": Gone("write it under [[[meta]]]"),
        "URL": Gone("write it under [[[meta]]]"),
        "command scripting": Gone("write: script"),
        "pre-command scripting": Gone("write: pre-script"),
        "post-command scripting": Gone("write: post-script"),
        "environment scripting": Gone("write: env-script"),
        "initial scripting": Gone("write: init-script"),
        "retry delays": Gone("write: execution retry delays"),
        "event hooks": Gone("write [[[events]]]"),
        "job submission": Gone("write: platform"),
        "dummy mode": Gone("remove it: a run in dummy mode needs no settings"),
        "simulation mode": Gone("write [[[simulation]]]"),
    },
    (*_NAMESPACE, "events"): {
        **{
            f"{event} handler": Moved((*_NAMESPACE, "events", f"{event} handlers"))
            for event in TASK_EVENTS
        },
        "mail to": Moved((*_NAMESPACE, "mail", "to")),
        "mail from": Moved((*_NAMESPACE, "mail", "from")),
        "mail smtp": Dropped(_MAILS_ARE_GLOBAL),
        "reset timer": Dropped(),
        "mail retry delays": Dropped(),
    },
    (*_NAMESPACE, "job"): {
        **{
            name: Moved((*_NAMESPACE, name))
            for name in (
                "execution polling intervals",
                "execution retry delays",
                "execution time limit",
                "submission polling intervals",
                "submission retry delays",
            )
        },
        "shell": Dropped("remove it: jobs run in bash"),
    },
    (*_NAMESPACE, "remote"): {"suite definition directory": Dropped()},
    (*_NAMESPACE, "workflow state polling"): {
        "run-dir": Moved((*_NAMESPACE, "workflow state polling", "alt-cylc-run-dir")),
        "template": Dropped(),
        "host": Dropped(),
        "user": Dropped(),
    },
}
