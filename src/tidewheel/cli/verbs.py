"""Lists the verbs with which people act on a run: a row each, from which all surfaces derive.

A row says the options and the help of `tidewheel VERB`, whether it may be tried with --dry-run,
how its answer is told, the key that does the same in the terminal interface, and how scripts
written for Cylc call it. The value itself is the command of that name in
`core/operator/verbs.py`: an option fills one of its fields, whose type says whether it is a
flag, a text, a number or several texts. Spellings of Cylc are accepted where they mean the same
(SEMANTICS §8).

A row without `words` belongs to a command whose words mean more than options can say; it stands
in `cli/commands/verbs.py` or, as it has to be quick, in `cli/commands/message.py`. This module
imports nothing of tidewheel: --help and the `cylc` of jobs read it, and both have to be quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tidewheel.lazy_dataclasses import NamedTuple

NOTHING: Mapping[str, object] = MappingProxyType({})
YES = (("y", ""),)


class VerbOption(NamedTuple):
    """Describes an option of a verb, written as `option` of `cli/session.py` takes it.

    An example is `--out -o outputs OUTPUT`. The parameter `mode_is_now` is a flag that stands
    for the value `now` of the field `mode`.
    """

    names: str
    help: str

    @property
    def parameter(self) -> str:
        first, *others = self.names.split()
        said = [word for word in others if word.islower() and word.isidentifier()]
        return said[0] if said else first.strip("-").replace("-", "_")

    @property
    def field(self) -> str:
        return self.parameter.partition("_is_")[0]


class CylcCall(NamedTuple):
    """Says how a script that was written for Cylc calls the verb inside a job.

    Options stand between commas with all of their names; one that takes a value ends with "=".
    An option that the verb does not have itself is accepted and changes nothing.
    """

    options: str = ""
    name: str = ""  # if it is called otherwise there
    aliases: tuple[str, ...] = ()
    always: Mapping[str, object] = NOTHING  # fields that Cylc implies
    idle_values: tuple[str, ...] = ()  # that say what holds anyway
    # As in Cylc it is done when it is queued: what the run then declines it says in its log,
    # and a script goes on while what it has asked for begins.
    is_queued: bool = False


class Verb(NamedTuple):
    """Describes a verb; `words` is what follows its name on the command line."""

    name: str
    summary: str  # in the list of commands
    words: str = ""
    help: str = ""
    said: Mapping[str, str] = MappingProxyType({})  # its options: names, and what they do
    examples: tuple[str, ...] = ()
    replaces_ids: str = ""  # a field that says which tasks are meant: then none need be named
    dry_run: bool = False  # it can be tried: the answer is what it would do
    of_run: str = "has received the command"  # what became of the run
    of_task: str = "done"  # what became of each task; {flow}: in which flows
    key: str = ""  # in the terminal interface
    key_word: str = ""  # how the help there calls it, if not by its name
    confirm: tuple[tuple[str, str], ...] = YES  # keys that confirm it there, and the mode meant
    cylc: CylcCall | None = None

    @property
    def options(self) -> list[VerbOption]:
        return [VerbOption(names, text) for names, text in self.said.items()]


_FLOW = {"--flow -f FLOW": "Use these flows: 2, or 1,3, or `new`, `all`, `none`."}
_AT_POINT = {"--all-at-point": "Let a glob or family select tasks outside the pool, too."}

ROWS = (
    Verb(
        "trigger",
        "Run tasks now, or see what that would do.",
        "[RUN] ID...",
        """Run tasks now, whatever they wait for.

    A task in the pool runs in its own flows (a flow is one pass through the graph; most runs
    have one). A task that already ran in an active flow runs alone, and the tasks after it do
    not run again, unless they were lost because of it. Any other task runs in all active
    flows. The answer says which flows these are.
    """,
        {
            "--reflow flow_is_new": "Start a new flow: everything downstream runs again.",
            **_FLOW,
            "--wait": "Downstream tasks wait until another flow reaches this task.",
            "--until POINT": "The new flow ends at this point.",
            "--until-task until_tasks ID": "The new flow ends at this task; repeatable.",
            "--from from_point POINT": "In the new flow, start tasks without parents at this "
            "point.",
            "--ignore-before": "Everything before the first point of the new flow counts as "
            "done.",
            "--on-resume": "In a paused run: run the tasks when it is resumed.",
            **_AT_POINT,
        },
        ("trigger forecast 3/model", "trigger forecast 3/obs --reflow --until 5 --dry-run"),
        dry_run=True,
        of_task="will run{flow}",
        key="t",
        cylc=CylcCall("--flow=, --wait, --meta=, --on-resume", is_queued=True),
    ),
    Verb(
        "set",
        "Complete outputs by hand, or satisfy prerequisites.",
        "[RUN] ID...",
        """Complete outputs of tasks by hand, or satisfy what they wait for.

    Without --out, --pre and --value, all outputs that make the task complete are set. Tasks
    that wait for these outputs continue as if a job had made them.
    """,
        {
            "--out --output -o outputs OUTPUT": "Set this output; repeatable, or A,B.",
            "--pre --prerequisite -p prerequisites WHAT": "Satisfy this prerequisite: "
            "1/a:succeeded, xtrigger/NAME or all; repeatable.",
            "--value values NAME=VALUE": "Set a value that later tasks get from this task: "
            "JSON, or a string; repeatable. Without --out it completes no output.",
            **_FLOW,
            "--wait": "Downstream tasks wait until another flow reaches this task.",
            **_AT_POINT,
        },
        ("set forecast 3/model", "set forecast 3/post --pre 3/model:succeeded"),
        dry_run=True,
        of_task="was set{flow}",
        key="s",
        key_word="set (complete)",
        cylc=CylcCall(
            "-o --out --output=, -p --pre --prerequisite=, --flow=, --wait, --meta=",
            idle_values=("required",),  # it is set if nothing is named
            is_queued=True,
        ),
    ),
    Verb(
        "remove",
        "Take tasks out of the pool, or forget that they ran.",
        "[RUN] ID...",
        """Take tasks out of the pool; if a task is not in the pool, forget that it ran.

    Tasks that need a removed task are lost, unless --forget leaves them waiting.
    """,
        {
            "--flow -f FLOW": "Remove the tasks only from these flows: 2, or 1,3.",
            "--forget": "Tasks that need a removed task keep waiting and are not lost.",
            "--kill": "Remove active tasks, too, and kill their jobs.",
        },
        ("remove forecast 3/model", "remove forecast '*/model:failed' --forget"),
        dry_run=True,
        of_task="is removed",
        key="x",
        # In Cylc a removed task that is active is killed.
        cylc=CylcCall("--flow=, --no-spawn", always={"kill": True}, is_queued=True),
    ),
    Verb(
        "hold",
        "Keep tasks from running.",
        "[RUN] [ID]...",
        "Keep tasks from running until they are released, even tasks that do not exist yet.",
        {
            "--after POINT": "Hold every task beyond this point.",
        },
        ("hold forecast 3/model", "hold forecast --after 5"),
        replaces_ids="after",
        dry_run=True,
        of_run="holds",
        of_task="is held",
        key="H",
        cylc=CylcCall("--after=", is_queued=True),
    ),
    Verb(
        "release",
        "Let held tasks run.",
        "[RUN] [ID]...",
        """Let held tasks run.""",
        {
            "--all everything": "Release all held tasks, and remove the hold point.",
        },
        ("release forecast 3/model", "release forecast --all"),
        replaces_ids="everything",
        dry_run=True,
        of_run="has released everything that was held",
        of_task="is released",
        key="R",
        cylc=CylcCall("--all", aliases=("unhold",), is_queued=True),
    ),
    Verb(
        "kill",
        "End the jobs of active tasks.",
        "[RUN] ID...",
        """End the jobs of active tasks. These tasks fail without retries and are held.""",
        {},
        ("kill forecast 3/model",),
        dry_run=True,
        of_task="is being killed",
        key="K",
        cylc=CylcCall(is_queued=True),
    ),
    Verb(
        "poll",
        "Check on the jobs of active tasks now.",
        "[RUN] ID...",
        """Check on the jobs of active tasks now, instead of waiting for their reports.""",
        {},
        ("poll forecast '*'",),
        of_task="is being polled",
        cylc=CylcCall(is_queued=True),
    ),
    Verb(
        "pause",
        "Start nothing new until the run is resumed.",
        "[RUN]",
        """Start nothing new until the run is resumed; running jobs continue.""",
        of_run="is paused; resume it: tidewheel resume {run}",
        key="P",
        cylc=CylcCall(),
    ),
    Verb(
        "resume",
        "Resume a paused run.",
        "[RUN]",
        """Resume a paused run.""",
        of_run="resumes",
        key="U",
        cylc=CylcCall("--no-detach", name="play", aliases=("resume", "unpause")),
    ),
    Verb(
        "stop",
        "Stop a run, now or later; `run` resumes it.",
        "[RUN[//POINT|//ID]]",
        """Stop a run. To resume it: tidewheel run RUN.

    Active tasks finish first, unless --now leaves their jobs running or --kill ends them. With
    --at, --after or --at-time the run stops later; with --flow only this flow stops.
    """,
        {
            "--now mode_is_now": "Leave jobs running; the next start finds them.",
            "--kill mode_is_kill": "Kill the jobs of active tasks.",
            "--at at_point POINT": "Stop after this point; `none` removes the stop point.",
            "--after after_task ID": "Stop when this task has ended.",
            "--at-time --wall-clock -w TIME": "Stop at this time (ISO 8601).",
            "--flow -f N": "Stop only this flow: its waiting tasks are removed.",
        },
        ("stop forecast", "stop forecast --at 10", "stop forecast --now"),
        dry_run=True,
        of_run="stops",
        of_task="is the last task: the run stops after it",
        key="S",
        confirm=(("y", "clean"), ("l", "now"), ("K", "kill")),
        cylc=CylcCall(
            "-k --kill, -n --now, --flow=, -w --wall-clock=, --max-polls=, --interval=",
            aliases=("shutdown",),
        ),
    ),
    Verb(
        "reload",
        "Apply a changed definition to a run.",
        of_run="continues with the new definition",
        cylc=CylcCall("-g --global"),
    ),
    Verb(
        "broadcast",
        "Change settings of tasks that have not started yet.",
        of_run="changes settings of tasks that have not started yet",
        cylc=CylcCall(
            "-p --point=, -n --namespace=, -s --set=, -F --set-file --file=, "
            "-c --cancel=, -G --cancel-file=, -C --clear, -e --expire=, "
            "-d --display, -k --display-task=, -b --box, -r --raw, --format=",
            aliases=("bcast",),
        ),
    ),
    Verb("message", "Send a text or an output, from a job or on its behalf."),
    Verb(
        "ext-trigger",
        "Send a run an external message that tasks wait for.",
        cylc=CylcCall("--max-tries=, --retry-interval=", aliases=("external-trigger",)),
    ),
)

TABLE = {verb.name: verb for verb in ROWS}
