"""Formats what pages show of runs and tasks: words and times, with shapes and colours.

Also why a run does not go on, what two definitions differ in, and the exception that ended a
handler.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

import click

from tidewheel.cli.output import (
    ColumnsOf,
    Item,
    StyledWord,
    on_terminal,
    plural,
    safe,
    say,
    say_columns,
)
from tidewheel.cli.palette import RUN_STATUSES, TASK_STATES
from tidewheel.core.queue.task import TaskError
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.quantities import show_duration, show_instant

if TYPE_CHECKING:
    from tidewheel.core.sched.pool import TaskPool
    from tidewheel.core.sched.task_state import Key
    from tidewheel.scheduler.run_engine import RunEngine


Document = Mapping[str, object]

Columns = ColumnsOf[Document]

SHOWN_MAX = 20  # of a list on a page for people
LABEL_WIDTH = 14
BAR_WIDTH = 20


def documents(page: Document, name: str) -> Sequence[Document]:
    """Returns the list of documents that a document has under this name."""
    return cast("Sequence[Document]", page[name])


def texts(page: Document, name: str) -> Sequence[str]:
    return cast("Sequence[str]", page[name])


def value_text(value: object) -> str:
    """Returns a value of a document as people read it: what it lists, without brackets."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return str(value)


def status_cell(status: object) -> StyledWord:
    """Returns the status of a run or a block with the look that the palette has for it."""
    return StyledWord(str(status), RUN_STATUSES.get(str(status)))


def run_cell(run: Document) -> StyledWord:
    """Returns the status of a run, with what was not done of it: `completed, 2 lost`, and its
    mode if its jobs are not real."""
    status, counts = str(run["status"]), cast("Mapping[str, int]", run.get("undone", {}))
    undone = [f"{count} {kind}" for kind, count in counts.items() if count]
    word = ", ".join([status, *undone]) + mode_note(cast("str | None", run.get("mode")))
    return status_cell(status)._replace(word=word)


MODES = {
    "simulation": "simulation mode: no jobs run",
    "dummy": "dummy mode: jobs only sleep",
    "skip": "skip mode: no jobs run",
}


def mode_note(mode: str | None) -> str:
    """Returns what is added about a run whose jobs are not real; "" if they are."""
    return f" ({MODES[mode]})" if mode in MODES else ""


def state_cell(page: Document) -> StyledWord:
    """Returns the state of a task, with the remarks on it in parentheses."""
    state, remarks = str(page["state"]), texts(page, "remarks")
    word = f"{state} ({', '.join(remarks)})" if remarks else state
    return StyledWord(word, TASK_STATES.get(state))


def flows_text(page: Document) -> str:
    """Returns the numbers of the flows that a task belongs to, or `none`; "" for a stage."""
    if "flows" not in page:
        return ""
    flows = cast("Sequence[int]", page["flows"])
    return ",".join(map(str, flows)) or "none"


# Where documents have ids of tasks, alone or in a list.
_IDS = frozenset(
    {"id", "held", "children", "after", "comes_back", "killed", "polled", "submitted"}
    | {"forgotten", "refused", "waits_for", "stop_after", "ids"}
)


def shown_page(page: Document) -> Document:
    """Returns a view of a run as people read it.

    In a run of stages these are known by their names: nobody has written a point, nor asked for
    flows.
    """
    return cast("Document", _shown(page, "")) if page.get("stages") else page


def stage_id(text: str) -> str:
    """Returns the id of a task of a run of stages as people read it: without the point."""
    return text.partition("/")[2] or text


def _shown(value: object, key: str) -> object:
    if isinstance(value, Mapping):
        found = {one: _shown(inner, one) for one, inner in value.items() if one != "flows"}
        if "shown" in value:
            found |= {"name": value["shown"], "id": value["shown"]}
        return found
    if isinstance(value, list | tuple):
        return [_shown(one, key) for one in value]
    return stage_id(value) if key in _IDS and isinstance(value, str) else value


def moment(page: Document, name: str) -> str:
    """Returns a time as date and time of day, in UTC to the second; empty if there is none."""
    text = page[name]
    return "" if text is None else str(text).partition(".")[0].rstrip("Z").replace("T", " ")


def at(name: str) -> Callable[[Document], str]:
    """Returns a function for a column of a table, which shows the time of this name."""
    return lambda page: moment(page, name)


def took(page: Document) -> str:
    """Returns how long a job ran; "" if it has not ended."""
    began, ended = page["started_at"], page["ended_at"]
    if began is None or ended is None:
        return ""
    length = datetime.fromisoformat(str(ended)) - datetime.fromisoformat(str(began))
    return show_duration(length.total_seconds())


def bar(done: int, total: int) -> str:
    filled = 0 if not total else round(BAR_WIDTH * done / total)
    if not on_terminal():
        return "#" * filled + "." * (BAR_WIDTH - filled)
    return "█" * filled + "░" * (BAR_WIDTH - filled)


def counts_text(page: Document) -> str:
    """Returns how many tasks are in each state, such as `2 running, 3 succeeded`."""
    found = cast("Mapping[str, int]", page["counts"])
    return ", ".join(f"{number} {state}" for state, number in found.items())


def say_some(title: str, found: Sequence[Item], columns: ColumnsOf[Item]) -> None:
    """Prints a section with a table of what was found; nothing if that is empty."""
    if found:
        section(title)
        say_columns(found, columns, indent=2)


def section(title: str) -> None:
    say()
    say(click.style(title, bold=True) if on_terminal() else title)


def say_lines(title: str, lines: Iterable[str]) -> None:
    """Prints a section, or nothing at all if it has no lines."""
    for number, line in enumerate(lines):
        if not number:
            section(title)
        say(line)


def more_text(count: int, shown_max: int = SHOWN_MAX) -> str:
    """Returns how many more a list has than are shown, as a line; "" if all are shown."""
    return f"and {count - shown_max} more: --json shows all" if count > shown_max else ""


def say_more(count: int) -> None:
    """Prints how many more a list has than are shown; nothing if all are shown."""
    if text := more_text(count):
        say(f"  {text}")


def fact(label: str, text: object) -> None:
    """Prints a fact with its label on one line, or nothing if there is no such fact."""
    if text not in (None, "", []):
        say(f"  {label:{LABEL_WIDTH}}{safe(text)}")


LEFT_NAMED_MAX = 20


def left_running(run: str, pool: TaskPool | None, status: str) -> Iterator[str]:
    """Yields which jobs of a run that is driven here no more still run, and how to end them."""
    if pool is None or status not in ("stopped", "left"):
        return
    names = [pool.plan.name_of(key) for key, task in pool.tasks.items() if task.has_job]
    if not names:
        return
    rest = len(names) - LEFT_NAMED_MAX
    which = ", ".join(names[:LEFT_NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
    runs, what = ("runs and is", "it") if len(names) == 1 else ("run and are", "them")
    yield f"{which} still {runs} found again when the run is resumed"
    if status == "stopped":
        yield f"to end {what} instead: tidewheel stop {quote(run)} --kill --run"


# ---- how the tasks of a run have ended ----

# States of tasks that have ended, and how news and the end of a run call them.
STATES_OF_ENDS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "submit-failed": "submission failed",
    "expired": "expired",
}


def ends_of(shown: Mapping[str, object]) -> Counter[str]:
    """Counts how the tasks of a run have ended, from the view of it."""
    counts: Any = shown["counts"]
    return Counter({STATES_OF_ENDS[k]: v for k, v in counts.items() if k in STATES_OF_ENDS})


def counted_ends(ends: Counter[str]) -> list[str]:
    """Returns each word with its number, such as `2 failed`."""
    return [f"{count} {word}" for word, count in sorted(ends.items())]


# ---- why a run does not go on: failures that are alike in one line, then each other cause ----

CAUSES_MAX = 10


_EFFECTS = {  # of the commands that are offered under a cause; of `set` without an option
    "trigger": "run it now",
    "set": "count it as succeeded without running it",
    "log": "read what its job wrote",
    "release": "let it run",
    "resume": "let the run continue",
    "run": "resume the run",
    "kill": "end its job",
    "show": "look at that run",
}
_EFFECTS_OF_SET = {
    "--pre": "count this prerequisite as met",
    "--out": "count this output as made",
    "--value": "give the value by hand",
}


def stall_words(waits: str, until: float | None) -> str:
    """Returns for how long a stalled run waits, and until when if ``until`` is given."""
    at = "" if until is None else f", at {show_instant(math.ceil(until))}"
    return f"{waits} for you, then stops{at}"


def commands_with_effects(commands: Sequence[str]) -> Iterator[str]:
    """Yields each command with a comment that says what it does, the comments in a column.

    A shell takes the whole line.
    """
    width = max(map(len, commands), default=0)
    for one in commands:
        effect = _effect(one.split())
        yield f"{one:{width}}  # {effect}" if effect else one


def _effect(words: Sequence[str]) -> str:
    verb = words[1] if len(words) > 1 else ""
    effect = _EFFECTS.get(verb, "")
    if verb == "set":
        effect = next((_EFFECTS_OF_SET[one] for one in words if one in _EFFECTS_OF_SET), effect)
    if "--reflow" in words:
        effect = "run it again, and then everything after it"
    if any("*" in one for one in words):
        effect = re.sub(r"\bit\b", "them", effect.replace("its job", "their jobs"))
    return effect


def other_causes(shown: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Returns the causes that are in no group of failures, from the view of a run."""
    told = {id_ for group in documents(shown, "groups") for id_ in texts(group, "ids")}
    return [one for one in documents(shown, "causes") if one["id"] not in told]


def cause_lines(shown: Mapping[str, object]) -> Iterator[str]:
    """Yields the lines that say why a run does not go on by itself, from the view of it."""
    groups, others = documents(shown, "groups"), other_causes(shown)
    for group in groups[:CAUSES_MAX]:
        yield str(group["text"])
        yield from (f"  {one}" for one in commands_with_effects(texts(group, "commands")))
    for cause in others[: CAUSES_MAX - len(groups)]:
        for reason in documents(cause, "reasons"):
            yield str(reason["text"])
            yield from (f"  {one}" for one in commands_with_effects(texts(reason, "commands")))
    told = sum(cast("int", one["count"]) for one in groups[:CAUSES_MAX])
    yield from _more(told + len(others[: CAUSES_MAX - len(groups)]), shown)


def _more(told: int, shown: Mapping[str, object]) -> Iterator[str]:
    if (more := len(documents(shown, "causes")) - told) > 0:
        yield f"and {plural(more, 'task')} more"


def stall_text(engine: RunEngine) -> str:
    """Returns how long a stalled run waits for somebody before it stops; "" if it does not."""
    from tidewheel.core.sched.spawn import STALL
    from tidewheel.scheduler.timers import timer_key

    seconds = engine.run_timers.stall_seconds
    at = engine.timers.at(timer_key(None, STALL))
    return stall_words(show_duration(seconds), at) if seconds and at is not None else ""


def causes(engine: RunEngine, errors: Mapping[Key, str]) -> Iterator[str]:
    """Yields the lines that say why a run stands still, each with the commands that help;
    `errors` says how jobs ended."""
    from tidewheel.core.sched.lifecycle import only_held, root_causes
    from tidewheel.core.sched.pool import RunStatus
    from tidewheel.core.sched.task_state import PoolState
    from tidewheel.views.error_groups import (
        FailedJob,
        failure_of,
        group_commands,
        grouped,
        told_group,
    )

    pool, run = engine.pool, engine.run.name
    held = only_held(pool) if pool.run.status == RunStatus.WAITING_FOR_RELEASE else ()
    found = [*held, *root_causes(pool)]
    failed = [task for task in found if task.standing is PoolState.INCOMPLETE]
    jobs = {key: FailedJob(None, error) for key, error in errors.items()}
    no_job = FailedJob(None, "")
    failures = (
        failure_of(pool, one.key, one.ended, jobs.get(one.key, no_job)) for one in failed
    )
    groups = grouped(failures)
    told = 0
    for those in groups[:CAUSES_MAX]:
        told += len(those)
        yield told_group(pool, those)
        commands = group_commands(run, pool, those)
        yield from (f"  {one}" for one in commands_with_effects(commands))
    others = [one for one in found if one.standing is not PoolState.INCOMPLETE]
    shown = others[: max(0, CAUSES_MAX - len(groups))]
    for task in shown:
        yield from _one_cause(engine, task.key)
    if (more := len(found) - told - len(shown)) > 0:
        yield f"and {plural(more, 'task')} more"


def _one_cause(engine: RunEngine, key: Key) -> Iterable[str]:
    from tidewheel.core.sched.explain import why
    from tidewheel.views.run_facts import command_lines

    reasons = why(engine.pool, key)
    words = "; ".join(reason.text for reason in reasons)
    command = next((one.command for one in reasons if one.command), "")
    name = engine.pool.plan.name_of(key)
    yield words if words.startswith(name) else f"{name}: {words}"
    commands = command_lines(engine.run.name, command)
    yield from (f"  {one}" for one in commands_with_effects(commands))


# ---- the exception that ended a handler: what it was, where, and the last calls to there ----
# A runner keeps the traceback with the error of the attempt, as Python writes it. Calls inside
# of libraries are left out, unless there are no others.

FRAMES_SHOWN_MAX = 3
_BEGIN = "Traceback (most recent call last):\n"
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)\n((?:    .*\n)*)', re.MULTILINE)
_LIBRARY = re.compile(r"[/\\](?:(?:site|dist)-packages|lib[/\\]python3[^/\\]*)[/\\]|^<")
_MARKS = re.compile(r"^[ ~^]+$")  # below a line of code: which part of it


class TraceFrame(NamedTuple):
    """Holds one call of a traceback: the place, its function, and the line of code there."""

    path: str
    line: int
    function: str
    code: str

    @property
    def place(self) -> str:
        return f"{PurePath(self.path).name}:{self.line}"


def traceback_of(error: TaskError) -> str:
    """Returns the traceback that is kept with an error; "" if there is none."""
    facts = json.loads(error.args)
    found = facts.get("traceback") if isinstance(facts, dict) else None
    return found if isinstance(found, str) else ""


def last_frames(error: TaskError) -> list[TraceFrame]:
    """Returns the last calls before an exception, innermost last; [] if nothing is known."""
    last = traceback_of(error).rpartition(_BEGIN)[2]  # others are those that it came from
    frames = [
        TraceFrame(path, int(line), function, _first_line(code))
        for path, line, function, code in _FRAME.findall(last)
    ]
    own = [frame for frame in frames if not _LIBRARY.search(frame.path)]
    return (own or frames)[-FRAMES_SHOWN_MAX:]


def _first_line(code: str) -> str:
    lines = [line.strip() for line in code.splitlines() if not _MARKS.match(line)]
    return lines[0] if lines else ""


def error_text(error: TaskError) -> str:
    """Returns an error in one line; of an exception also its class and its place."""
    if not traceback_of(error):
        return error.description
    place = "".join(f" ({frame.place})" for frame in last_frames(error)[-1:])
    return f"{error.code}: {error.description}{place}"


# ---- what two definitions differ in ----

_SIGNS = {"same": " ", "added": "+", "removed": "-"}
RENDERED = "(definition, templates rendered)"  # what has no path: the text after its templates


def diff_lines(files: Iterable[Mapping[str, Any]], old: str, new: str) -> Iterator[str]:
    """Yields in which lines the files of two versions differ, as `diff -u` has them."""
    for file in files:
        path = safe(file["path"] or RENDERED)
        yield f"--- {safe(old)}/{path}"
        yield f"+++ {safe(new)}/{path}"
        if "executable" in file:
            yield f"{path} is {'now' if file['executable'] else 'no longer'} executable"
        if file["hunks"] is None:
            yield f"{path} is {file['change']}; it is not text, or too long to be compared"
        for hunk in file["hunks"] or ():
            first = {
                side: next((line[side] for line in hunk if line[side] is not None), 0)
                for side in ("old", "new")
            }
            yield f"@@ -{first['old']} +{first['new']} @@"
            for line in hunk:
                yield f"{_SIGNS[line['kind']]}{safe(line['text'])}"


# ---- advice about a run that was reached through a server ----


def reached(text: str, run: str, option: str) -> str:
    """Returns the text with the option (`` --server URL``) in each command about the run."""
    if not option or "tidewheel " not in text:
        return text
    named = {run, quote(run), quote(f"run:{run}")}
    run_words = "|".join(map(re.escape, sorted(named, key=len, reverse=True)))
    command = rf"\btidewheel [a-z-]+ (?:--queue )?(?:{run_words})(?![\w/:.-])(?! --server)"
    return re.sub(command, lambda found: found[0] + option, text)
