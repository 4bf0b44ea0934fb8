"""What each item of flow.cylc is for, in one line, for docs/reference/flow_items.md."""

from __future__ import annotations

# Keyed by section and item; a section that stands in several places has its words once.
WORDS: dict[str, dict[str, str]] = {
    "[meta]": {
        "title": "A few words, shown in lists.",
        "description": "A longer description.",
        "URL": "Where to read on; handlers get it as `%(URL)s`.",
        "…": "Anything else that handlers or people want to know.",
    },
    "[scheduler]": {
        "UTC mode": "Points and logs in UTC instead of local time.",
        "allow implicit tasks": "Tasks that do nothing need no heading under `[runtime]`.",
        "install": "Which files Cylc would copy.",
        "cycle point format": "How points are written, `CCYYMMDDThhmm` and the like.",
        "cycle point num expanded year digits": "Years with more than four digits.",
        "cycle point time zone": "In which zone points are written.",
        "prune across points": "Whether what can no longer happen at other points is given up.",
        "job commands": "Whether jobs may act on their own run, beyond speaking and looking.",
    },
    "[scheduler][main loop]": {"…": "Plugins of Cylc's main loop."},
    "[scheduler][events]": {
        "handlers": "Commands for each of the `handler events`.",
        "handler events": "For which events the `handlers` are called.",
        "mail events": "For which events mail is sent.",
        "startup handlers": "When the run starts.",
        "shutdown handlers": "When it stops.",
        "abort handlers": "When it stops because of a failure.",
        "stall handlers": "When it stalls.",
        "stall timeout handlers": "When a stall was not fixed in time.",
        "workflow timeout handlers": "When it takes longer than `workflow timeout`.",
        "inactivity timeout handlers": "When nothing happened for `inactivity timeout`.",
        "workflow timeout": "How long a run may take.",
        "abort on workflow timeout": "Whether the run is stopped then.",
        "stall timeout": "How long a stalled run waits for an operator; an hour by default.",
        "abort on stall timeout": "Whether the run is stopped then; true unless set to false.",
        "inactivity timeout": "How long nothing may happen.",
        "abort on inactivity timeout": "Whether the run is stopped then.",
        "restart timeout": "How long a completed run that is started again waits for work.",
        "expected task failures": "For tests of Cylc.",
    },
    "[scheduler][mail]": {
        "footer": "Text below each mail.",
        "to": "Who gets the mail.",
        "from": "The sender of the mail.",
        "task event batch interval": "How long mail about tasks is collected.",
    },
    "[task parameters]": {
        "…": "A parameter and its values: `1..5`, `1..9..2`, names, or a list that a task "
        "returns: `list.files`."
    },
    "[task parameters][templates]": {"…": "How a parameter is written into names of tasks."},
    "[scheduling]": {
        "initial cycle point": "Where the run begins.",
        "final cycle point": "Where it ends; without one it has no end.",
        "initial cycle point constraints": "Where it may begin: `T00`, …",
        "final cycle point constraints": "Where it may end.",
        "hold after cycle point": "Tasks beyond it are held.",
        "stop after cycle point": "The run stops here; the next start resumes.",
        "cycling mode": "Numbers, or dates of a calendar.",
        "runahead limit": "How far tasks may be ahead of the oldest unfinished point.",
        "sequential xtriggers": "Points are checked one after the other.",
    },
    "[scheduling][queues][…]": {
        "limit": "How many of its members may be active at once; 0: any number.",
        "members": "Tasks and families; `default` has all others.",
    },
    "[scheduling][special tasks]": {
        "clock-trigger": "Tasks that wait for the time of their point: `a(PT1H)`.",
        "external-trigger": 'Tasks that wait for a message: `a("data")`; see `ext-trigger`.',
        "clock-expire": "Tasks that are given up at this time after their point.",
        "sequential": "Tasks each of which needs the one of the point before.",
    },
    "[scheduling][xtriggers]": {
        "…": "A label and what is called until it is true: `wall_clock(offset=PT1H)`, "
        "`workflow_state(…)`, `echo`, `xrandom`, or a function of the folder `lib/python`."
    },
    "[scheduling][graph]": {"…": "A recurrence and its graph: `P1D = a => b`."},
    "[runtime][…]": {
        "inherit": "Families from which it has its settings, the nearest first.",
        "completion": "When it is complete, as an expression: `succeeded or failed`.",
        "workflow": "It is a run of this workflow, `NAME/VERSION` or `./FOLDER`, and no job.",
        "platform": "Where it runs: Slurm, or workers with labels, as `platforms.toml` says.",
        "script": "What its job does.",
        "init-script": "Before all else, also before it counts as started.",
        "env-script": "Before the environment is set.",
        "err-script": "After a failure.",
        "exit-script": "After a success.",
        "pre-script": "Before `script`.",
        "post-script": "After `script`.",
        "work sub-directory": "In which folder below `work` it runs.",
        "execution polling intervals": "How often Cylc would ask for it.",
        "execution retry delays": "How often, and after how long, it is tried again.",
        "execution time limit": "How long a job may run before it is ended.",
        "submission polling intervals": "How often Cylc would ask for it.",
        "submission retry delays": "The same for jobs that could not begin.",
        "run mode": "`skip` makes its outputs without a job.",
    },
    "[runtime][…][meta]": {
        "title": "A few words, shown beside the task.",
        "description": "A longer description.",
        "URL": "Where to read on; handlers get it as `%(URL)s`.",
        "…": "Anything else that handlers or people want to know.",
    },
    "[runtime][…][skip]": {
        "outputs": "Which outputs `run mode = skip` makes.",
        "disable task event handlers": "Whether no handlers are called then.",
    },
    "[runtime][…][simulation]": {
        "default run length": "How long it takes in a rehearsal or simulation.",
        "speedup factor": "Instead: the run length is the time limit divided by this.",
        "time limit buffer": "Cylc adds this to the time limit.",
        "fail cycle points": "At which points it fails; `all`.",
        "fail try 1 only": "Whether only the first try fails.",
        "disable task event handlers": "Whether no handlers are called then.",
    },
    "[runtime][…][environment filter]": {
        "include": "Only these variables of `environment` are set.",
        "exclude": "These are not.",
    },
    "[runtime][…][job]": {
        "batch system": "`slurm`; others are kept, and jobs run where the run's workers are.",
        "batch submit command template": "How Cylc would submit it.",
    },
    "[runtime][…][remote]": {
        "host": "Where Cylc would run it.",
        "owner": "As which user Cylc would run it.",
        "retrieve job logs": "Whether Cylc would fetch its logs.",
        "retrieve job logs max size": "How much of them.",
        "retrieve job logs retry delays": "When to try again.",
    },
    "[runtime][…][events]": {
        "handlers": "Commands for each of the `handler events`.",
        "handler events": "For which events the `handlers` are called.",
        "handler retry delays": "When a handler that failed is called again.",
        "mail events": "For which events mail is sent.",
        "execution timeout": "After so long the event `execution timeout` happens.",
        "submission timeout": "The same while it waits to begin.",
        "late offset": "How long after the time of its point a task is late.",
        "submitted handlers": "When a runner accepted it.",
        "submission timeout handlers": "When it waits too long to begin.",
        "submission retry handlers": "When it could not begin and is tried again.",
        "submission failed handlers": "When it could not begin.",
        "started handlers": "When it began.",
        "execution timeout handlers": "When it runs too long.",
        "retry handlers": "When it failed and is tried again.",
        "succeeded handlers": "When it succeeded.",
        "failed handlers": "When it failed for good.",
        "late handlers": "When it is late.",
        "expired handlers": "When it was given up by `clock-expire`.",
        "warning handlers": "When the job said something at level WARNING.",
        "critical handlers": "When the job said something at level CRITICAL.",
        "custom handlers": "When the job said something at level CUSTOM.",
    },
    "[runtime][…][mail]": {"from": "The sender of the mail.", "to": "Who gets the mail."},
    "[runtime][…][workflow state polling]": {
        "interval": "How often the other run is asked.",
        "max-polls": "How often at most.",
        "message": "The message of an output to wait for.",
        "alt-cylc-run-dir": "Where Cylc would look for it.",
        "verbose mode": "What Cylc would print.",
    },
    "[runtime][…][environment]": {"…": "A variable of the job and its value."},
    "[runtime][…][inputs]": {"…": "A variable of the job, and the value of an earlier task."},
    "[runtime][…][directives]": {"…": "A line for a batch system."},
    "[runtime][…][outputs]": {"…": "An output and the message that makes it."},
    "[runtime][…][parameter environment templates]": {"…": "A variable made from parameters."},
}

# What is read and kept, though nothing here acts on it; a section's words count for all in it.
_WHERE = "kept; jobs run where the run's workers are"
KEPT: dict[str, str] = {
    "[runtime][…][remote]": _WHERE,
    "[runtime][…][workflow state polling] alt-cylc-run-dir": "kept; the store knows all runs",
}
OF_TIDEWHEEL = "used; only in tidewheel"
OURS = {"[runtime][…] workflow", "[scheduler] prune across points", "[scheduler] job commands"}
