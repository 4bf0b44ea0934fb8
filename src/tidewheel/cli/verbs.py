"""The verbs with which people act on a run, and their options: one table (SEMANTICS §8).

An option fills one field of the command of that name in `core/operator/commands.py`, whose type
says whether it is a flag, a text, a number or several texts. Spellings of Cylc are accepted
where they mean the same.
"""

from __future__ import annotations

from typing import NamedTuple


class VerbOption(NamedTuple):
    """One option; with a `value` it is a flag that stands for that value of the field."""

    names: tuple[str, ...]
    field: str
    help: str
    metavar: str = ""
    value: str | None = None


class Verb(NamedTuple):
    """One command; `words` are what is written behind its name."""

    name: str
    words: str
    help: str
    options: tuple[VerbOption, ...] = ()
    examples: tuple[str, ...] = ()


_FLOW = VerbOption(
    ("--flow", "-f"), "flow", "In these flows: 2, or 1,3, or new, all, none.", "FLOW"
)
_AT_POINT = VerbOption(
    ("--all-at-point",),
    "all_at_point",
    "Let a glob or family select tasks outside the pool, too.",
)

TRIGGER = Verb(
    "trigger",
    "[RUN] ID...",
    """Run tasks now, whatever they wait for.

    A task in the pool runs in its own flows; one that ran already runs alone, unless others
    were lost because of it; one that never ran joins the flows that are active. The answer says
    which.
    """,
    (
        VerbOption(
            ("--reflow",),
            "flow",
            "Begin a new flow: everything after the task runs again.",
            value="new",
        ),
        _FLOW,
        VerbOption(
            ("--wait",), "wait", "What follows waits until another flow arrives at the task."
        ),
        VerbOption(("--until",), "until", "The new flow ends at this point.", "POINT"),
        VerbOption(
            ("--until-task",),
            "until_tasks",
            "The new flow ends at this task; repeatable.",
            "ID",
        ),
        VerbOption(
            ("--from",),
            "from_point",
            "What the task starts at every point begins at this one.",
            "POINT",
        ),
        VerbOption(
            ("--ignore-before",),
            "ignore_before",
            "Everything before the first point of the new flow counts as done.",
        ),
        VerbOption(
            ("--on-resume",), "on_resume", "In a paused run: run the tasks when it is resumed."
        ),
        _AT_POINT,
    ),
    ("trigger forecast 3/model", "trigger forecast 3/obs --reflow --until 5 --dry-run"),
)

SET = Verb(
    "set",
    "[RUN] ID...",
    """Complete outputs of tasks by hand, or satisfy what they wait for.

    Without --out and --pre, all outputs that make the task complete are set. What waits for
    them follows as if they had happened.
    """,
    (
        VerbOption(
            ("--out", "--output", "-o"),
            "outputs",
            "Set this output; repeatable, or A,B.",
            "OUTPUT",
        ),
        VerbOption(
            ("--pre", "--prerequisite", "-p"),
            "prerequisites",
            "Satisfy 1/a:succeeded, xtrigger/NAME or all; repeatable.",
            "WHAT",
        ),
        _FLOW,
        VerbOption(("--wait",), "wait", "What follows waits until another flow arrives."),
        _AT_POINT,
    ),
    ("set forecast 3/model", "set forecast 3/post --pre 3/model:succeeded"),
)

REMOVE = Verb(
    "remove",
    "[RUN] ID...",
    """Take tasks out of the pool; of those that are not in it, forget that they ran.

    What needs a removed task is lost, unless --forget leaves it open.
    """,
    (
        VerbOption(("--flow", "-f"), "flow", "Only in these flows: 2, or 1,3.", "FLOW"),
        VerbOption(("--forget",), "forget", "Let what needs the task go on waiting."),
        VerbOption(("--kill",), "kill", "Remove active tasks, too, and kill their jobs."),
    ),
    ("remove forecast 3/model", "remove forecast '*/model:failed' --forget"),
)

HOLD = Verb(
    "hold",
    "[RUN] [ID]...",
    """Keep tasks from running until they are released, even tasks that do not exist yet.""",
    (VerbOption(("--after",), "after", "Hold every task beyond this point.", "POINT"),),
    ("hold forecast 3/model", "hold forecast --after 5"),
)

RELEASE = Verb(
    "release",
    "[RUN] [ID]...",
    """Let held tasks run.""",
    (VerbOption(("--all",), "everything", "Release all of them, and forget the hold point."),),
    ("release forecast 3/model", "release forecast --all"),
)

KILL = Verb(
    "kill",
    "[RUN] ID...",
    """End the jobs of active tasks. They fail without retries and are held.""",
    (),
    ("kill forecast 3/model",),
)

POLL = Verb(
    "poll",
    "[RUN] ID...",
    """Check on the jobs of active tasks now, instead of waiting for their reports.""",
    (),
    ("poll forecast '*'",),
)

PAUSE = Verb(
    "pause", "[RUN]", """Start nothing new until the run is resumed; running jobs go on."""
)

RESUME = Verb("resume", "[RUN]", """Let a paused run go on.""")

STOP = Verb(
    "stop",
    "[RUN[//POINT|//ID]]",
    """Stop a run so that it can be carried on: tidewheel run RUN.

    Active tasks finish first, unless --now leaves or --kill ends their jobs. With a point, a
    task or a time it stops there; with --flow only that flow does.
    """,
    (
        VerbOption(
            ("--now",), "mode", "Leave jobs running; the next start finds them.", value="now"
        ),
        VerbOption(("--kill",), "mode", "Kill the jobs of active tasks.", value="kill"),
        VerbOption(
            ("--at",), "at_point", "Stop after this point; `none` cancels that.", "POINT"
        ),
        VerbOption(("--after",), "after_task", "Stop when this task has ended.", "ID"),
        VerbOption(
            ("--at-time", "--wall-clock", "-w"),
            "at_time",
            "Stop at this time (ISO 8601).",
            "TIME",
        ),
        VerbOption(
            ("--flow", "-f"), "flow", "Stop only this flow: its waiting tasks are removed.", "N"
        ),
    ),
    ("stop forecast", "stop forecast --at 10", "stop forecast --now"),
)

TABLE = {
    verb.name: verb
    for verb in (TRIGGER, SET, REMOVE, HOLD, RELEASE, KILL, POLL, PAUSE, RESUME, STOP)
}
