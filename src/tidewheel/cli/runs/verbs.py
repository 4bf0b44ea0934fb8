"""The verbs with which people act on a run, and their options: one table (SEMANTICS §8).

An option fills one field of the command of that name in `core/runs/commands.py`, whose type
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
    ("--flow", "-f"), "flow", "Into these flows: 2, or 1,3, or new, all, none.", "FLOW"
)
_AT_POINT = VerbOption(
    ("--all-at-point",),
    "all_at_point",
    "A glob or family takes tasks that are not in the pool, too.",
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
        VerbOption(("--reflow",), "flow", "A new flow begins there.", value="new"),
        _FLOW,
        VerbOption(("--wait",), "wait", "Flow on only when another flow arrives at the task."),
        VerbOption(("--until",), "until", "The new flow ends at this point.", "POINT"),
        VerbOption(
            ("--until-task",), "until_tasks", "The new flow ends there; repeatable.", "ID"
        ),
        VerbOption(
            ("--from",), "from_point", "Chains that it starts begin at this point.", "POINT"
        ),
        VerbOption(
            ("--ignore-before",),
            "ignore_before",
            "What lies before the first point of the new flow counts as done.",
        ),
        VerbOption(("--on-resume",), "on_resume", "In a paused run: when it is resumed."),
        _AT_POINT,
    ),
    ("trigger forecast 3/model", "trigger forecast 3/obs --reflow --until 5 --dry-run"),
)

SET = Verb(
    "set",
    "[RUN] ID...",
    """Complete outputs of tasks by hand, or satisfy what they wait for.

    Without --out and --pre: whatever completes the task. Children follow as if it had happened.
    """,
    (
        VerbOption(
            ("--out", "--output", "-o"), "outputs", "An output; repeatable, or A,B.", "OUTPUT"
        ),
        VerbOption(
            ("--pre", "--prerequisite", "-p"),
            "prerequisites",
            "1/a:succeeded, xtrigger/NAME or all; repeatable.",
            "WHAT",
        ),
        _FLOW,
        VerbOption(("--wait",), "wait", "Children follow only when another flow arrives."),
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
        VerbOption(("--forget",), "forget", "What needs it goes on waiting."),
        VerbOption(("--kill",), "kill", "Active tasks, too: their jobs are killed."),
    ),
    ("remove forecast 3/model", "remove forecast '*/model:failed' --forget"),
)

HOLD = Verb(
    "hold",
    "[RUN] [ID]...",
    """Keep tasks from running until they are released, also those that are yet to come.""",
    (VerbOption(("--after",), "after", "Every task beyond this point.", "POINT"),),
    ("hold forecast 3/model", "hold forecast --after 5"),
)

RELEASE = Verb(
    "release",
    "[RUN] [ID]...",
    """Let held tasks run.""",
    (VerbOption(("--all",), "everything", "All of them, and forget the hold point."),),
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
    """Ask how the jobs of active tasks are.""",
    (),
    ("poll forecast '*'",),
)

PAUSE = Verb("pause", "[RUN]", """Submit nothing more until the run is resumed.""")

RESUME = Verb("resume", "[RUN]", """Let a paused run go on.""")

STOP = Verb(
    "stop",
    "[RUN[//POINT|//ID]]",
    """Stop a run so that it can be carried on: tidewheel run RUN.

    Active tasks finish first, unless --now leaves or --kill ends their jobs. With a point, a
    task or a time it stops there; with --flow only that flow does.
    """,
    (
        VerbOption(("--now",), "mode", "Jobs run on and are found again.", value="now"),
        VerbOption(("--kill",), "mode", "Kill the jobs of active tasks.", value="kill"),
        VerbOption(("--at",), "at_point", "After this point; none takes it back.", "POINT"),
        VerbOption(("--after",), "after_task", "When this task has ended.", "ID"),
        VerbOption(
            ("--at-time", "--wall-clock", "-w"), "at_time", "At this time (ISO 8601).", "TIME"
        ),
        VerbOption(
            ("--flow", "-f"), "flow", "This flow: its waiting tasks go, no more spawn.", "N"
        ),
    ),
    ("stop forecast", "stop forecast --at 10", "stop forecast --now"),
)

TABLE = {
    verb.name: verb
    for verb in (TRIGGER, SET, REMOVE, HOLD, RELEASE, KILL, POLL, PAUSE, RESUME, STOP)
}
