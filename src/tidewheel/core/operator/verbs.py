"""Defines the verbs of operators, a type each, the same for CLI, REST and jobs (SEMANTICS §8).

Ids are texts as people write them (`2/foo`, `foo.2`, globs, families, `:status` selectors);
they are resolved against the run when the command is applied, not before. `flow` is "" (what
SEMANTICS says by default), "new", "all", "none" or numbers as in "1,3".

`TABLE` has one row for each verb: its command, and the words that the audit and the run's log
have for it; what people type and read is its row in `cli/verbs.py`. What a verb does to a run
is its rule in `command_events`. Only the union `Command` repeats the types, for type checkers.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import ClassVar

from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Run tasks now."""

    verb: ClassVar[str] = "trigger"
    ids: tuple[str, ...]
    flow: str = ""
    until: str = ""
    until_tasks: tuple[str, ...] = ()
    wait: bool = False
    ignore_before: bool = False
    from_point: str = ""
    all_at_point: bool = False
    on_resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """Complete outputs, satisfy prerequisites, or set values, by hand."""

    verb: ClassVar[str] = "set"
    ids: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()  # "1/a:succeeded", "all", "xtrigger/NAME"
    values: tuple[str, ...] = ()  # "NAME=VALUE": the values that later tasks get
    flow: str = ""
    wait: bool = False
    all_at_point: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Take tasks out of the pool, or forget that they ran."""

    verb: ClassVar[str] = "remove"
    ids: tuple[str, ...]
    flow: str = ""
    forget: bool = False
    kill: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keep tasks from being submitted: those in `ids`, or all after the point `after`."""

    verb: ClassVar[str] = "hold"
    ids: tuple[str, ...] = ()
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Release held tasks: those in `ids`, or all."""

    verb: ClassVar[str] = "release"
    ids: tuple[str, ...] = ()
    everything: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """End the jobs of tasks."""

    verb: ClassVar[str] = "kill"
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Check on the jobs of tasks now."""

    verb: ClassVar[str] = "poll"
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Submit no more tasks until the run is resumed."""

    verb: ClassVar[str] = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Continue to submit tasks."""

    verb: ClassVar[str] = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop the run at a point, a time or a task, or in a mode: clean, now, kill."""

    verb: ClassVar[str] = "stop"
    mode: str = "clean"
    at_point: str = ""
    after_task: str = ""
    at_time: str = ""
    flow: int | None = None
    reason: str = ""  # for people: why the run was stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """Use another definition: a stored one, or the one that is now in the run's folder."""

    verb: ClassVar[str] = "reload"
    definition: str = ""  # "": read the run's folder again, where the scheduler can


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast:
    """Change settings of tasks from now on."""

    verb: ClassVar[str] = "broadcast"
    points: tuple[str, ...] = ("*",)
    namespaces: tuple[str, ...] = ("root",)
    settings: tuple[str, ...] = ()  # "[environment]NAME=VALUE", "script=…"
    cancel: tuple[str, ...] = ()  # settings without values
    clear: bool = False
    expire: str = ""  # a point: settings for earlier points are cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Send a message on behalf of a task, in place of its job."""

    verb: ClassVar[str] = "message"
    id: str  # POINT/NAME or POINT/NAME/SUBMIT
    texts: tuple[str, ...] = ()
    output: str = ""
    values: tuple[str, ...] = ()  # NAME=VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtTrigger:
    """Report a message from outside the run; the oldest task that waits for it continues."""

    verb: ClassVar[str] = "ext-trigger"
    message: str
    trigger_id: str = ""


Command = (
    Trigger
    | Set
    | Remove
    | Hold
    | Release
    | Kill
    | Poll
    | Pause
    | Resume
    | Stop
    | Reload
    | Broadcast
    | Message
    | ExtTrigger
)


class RunVerb(NamedTuple):
    """Describes one verb on a run: its command, and what the audit and the run's log say of it.

    `whom` and `unnamed` are said by the audit: in braces stand the names of the request's path,
    and `what` is all that was named besides; `unnamed` is said where nothing was named.
    """

    command: type[Command]
    wish: str  # the audit: somebody wanted to …
    done: str  # the audit: somebody …
    whom: str = "{what} in {run}"
    unnamed: str = "tasks"
    log_name: str = ""  # in the run's log, as existing jobs look for it; "": its own name
    reopens: bool = False  # a run that has ended; every other verb needs one that is driven
    by_scheduler: bool = False  # it concerns more than the pool: the scheduler obeys it itself

    @property
    def name(self) -> str:
        return self.command.verb


TABLE = (
    RunVerb(
        Trigger, wish="trigger", done="triggered", log_name="force_trigger_tasks", reopens=True
    ),
    RunVerb(
        Set,
        wish="set outputs or prerequisites of",
        done="set outputs or prerequisites of",
        reopens=True,
    ),
    RunVerb(
        Remove, wish="remove", done="removed", whom="{what} from {run}", log_name="remove_tasks"
    ),
    RunVerb(Hold, wish="hold", done="held"),
    RunVerb(Release, wish="release", done="released", reopens=True),
    RunVerb(Kill, wish="kill the jobs of", done="killed the jobs of", log_name="kill_tasks"),
    RunVerb(Poll, wish="poll the jobs of", done="polled the jobs of", log_name="poll_tasks"),
    RunVerb(Pause, wish="pause", done="paused", whom="{run}"),
    RunVerb(Resume, wish="resume", done="resumed", whom="{run}"),
    RunVerb(Stop, wish="stop", done="stopped", whom="{run}"),
    RunVerb(
        Reload,
        wish="reload the definition of",
        done="reloaded the definition of",
        whom="{run}",
        log_name="reload_workflow",
        by_scheduler=True,
    ),
    RunVerb(
        Broadcast,
        wish="broadcast settings to",
        done="broadcast settings to",
        whom="{run}",
        by_scheduler=True,
    ),
    RunVerb(
        Message,
        wish="send a message as the job of",
        done="sent a message as the job of",
        unnamed="a task",
        by_scheduler=True,
    ),
    RunVerb(
        ExtTrigger,
        wish="send an external trigger to",
        done="sent an external trigger to",
        whom="{run}",
        by_scheduler=True,
    ),
)
ROWS = {row.name: row for row in TABLE}
VERBS: dict[str, type[Command]] = {row.name: row.command for row in TABLE}
REOPENING = tuple(row.command for row in TABLE if row.reopens)  # SEMANTICS §8
REOPENING_VERBS = tuple(row.name for row in TABLE if row.reopens)


def command_text(command: Command) -> str:
    """Returns a command as JSON, as it is stored and sent; defaults are left out."""
    said = {
        field.name: getattr(command, field.name)
        for field in fields(command)
        if getattr(command, field.name) != field.default
    }
    return json.dumps({"verb": command.verb} | {k: _plain(v) for k, v in said.items()})


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def read_command(text: str) -> Command:
    """Returns the command that a JSON text holds; raises Refused for any other text."""
    try:
        said = json.loads(text)
        verb = said.pop("verb")
        kind = VERBS[verb]
    except (ValueError, KeyError, TypeError, AttributeError):
        accepted = ", ".join(VERBS)
        raise Refused(f'a command is a JSON object with a "verb": {accepted}') from None
    return _built(verb, kind, said)


def reopens(text: str) -> bool:
    """Says whether a command, as it is stored, makes a run go on that has ended."""
    try:
        return isinstance(read_command(text), REOPENING)
    except Refused:
        return False


def ends_jobs(command: Command) -> bool:
    """Says whether a command is to end every job of a run: also those that run on after a clean
    stop, which no scheduler needs to have taken up for it."""
    return isinstance(command, Stop) and command.mode == "kill"


# How a field may look in JSON, by its annotation.
_SHAPES: dict[str, tuple[type, str]] = {
    "tuple[str, ...]": (list, "a list of strings"),
    "str": (str, "a string"),
    "bool": (bool, "true or false"),
    "int | None": (int, "a number"),
}


def _built(verb: str, kind: type[Command], said: dict[str, object]) -> Command:
    known = {field.name: str(field.type) for field in fields(kind)}
    given: dict[str, object] = {}
    for name, value in said.items():
        if name not in known:
            fields_are = f"its fields are {', '.join(known)}" if known else "it has no fields"
            raise Refused(f"{verb} has no field {name!r}; {fields_are}")
        shape, words = _SHAPES[known[name]]
        texts = value if isinstance(value, list) else ()
        if not isinstance(value, shape) or not all(isinstance(one, str) for one in texts):
            raise Refused(f"{verb}: {name} must be {words}, not {json.dumps(value)}")
        given[name] = tuple(value) if isinstance(value, list) else value
    missing = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.name not in given
    ]
    if missing:
        raise Refused(f"{verb} needs {', '.join(missing)}")
    made: Command = kind(**given)  # type: ignore[arg-type]  # checked above
    return made
