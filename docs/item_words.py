"""What each item of flow.cylc is for, in one line, for docs/reference/flow_items.md."""

from __future__ import annotations

# Keyed by section and item; a section that stands in several places has its words once.
WORDS: dict[str, dict[str, str]] = {
    "[meta]": {
        "title": "A few words; handlers get them as `%(workflow_title)s`.",
        "description": "A longer description; handlers get it as `%(workflow_description)s`.",
        "URL": "An address with more information; handlers get it as `%(workflow_URL)s`.",
        "…": "Any other information for handlers (`%(workflow_…)s`) or people; `version`: the "
        "version under which the workflow is registered.",
    },
    "[scheduler]": {
        "UTC mode": "Sets `CYLC_UTC` of jobs; no effect on points (UTC) or logs.",
        "allow implicit tasks": "Tasks without a heading under `[runtime]` are allowed.",
        "install": "Which files Cylc would copy.",
        "cycle point format": "The format of points, for example `CCYYMMDDThhmm`.",
        "cycle point num expanded year digits": "Years with more than four digits.",
        "cycle point time zone": "The time zone of points; UTC by default.",
        "prune across points": "Whether a task that can never run because of a task at another "
        "point is removed; else it stays, blocked.",
        "job commands": "Whether jobs may give commands to their own run.",
    },
    "[scheduler][main loop]": {"…": "Plugins of Cylc's main loop."},
    "[scheduler][events]": {
        "handlers": "Commands that run at each of the `handler events`.",
        "handler events": "For which events the `handlers` are called.",
        "mail events": "For which events mail is sent.",
        "startup handlers": "When the run starts.",
        "shutdown handlers": "When the run stops or completes.",
        "abort handlers": "When the run aborts, for example after `workflow timeout`.",
        "stall handlers": "When the run stalls.",
        "stall timeout handlers": "When the run was stalled for longer than `stall timeout`.",
        "workflow timeout handlers": "When the run takes longer than `workflow timeout`.",
        "inactivity timeout handlers": "When nothing happened for `inactivity timeout`.",
        "workflow timeout": "How long a run may take.",
        "abort on workflow timeout": "Whether the run aborts after `workflow timeout`.",
        "stall timeout": "How long a stalled run waits for an operator; an hour by default.",
        "abort on stall timeout": "Whether the run stops after `stall timeout`; by default it "
        "does.",
        "inactivity timeout": "How long a run may have no activity.",
        "abort on inactivity timeout": "Whether the run aborts after `inactivity timeout`.",
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
    "[task parameters][templates]": {
        "…": "How a value of this parameter appears in names of tasks: `_m%(m)02d` makes "
        "`model_m07` of `model<m>`."
    },
    "[scheduling]": {
        "initial cycle point": "The point at which the run begins.",
        "final cycle point": "The point at which the run ends; without it, the run has no end.",
        "initial cycle point constraints": "Points at which the run may begin: `T00`, …",
        "final cycle point constraints": "Points at which the run may end.",
        "hold after cycle point": "Tasks after this point are held.",
        "stop after cycle point": "The run stops after this point; the next start resumes it.",
        "cycling mode": "Numbers, or dates of a calendar.",
        "runahead limit": "How far tasks may be ahead of the oldest unfinished point.",
        "sequential xtriggers": "Xtriggers are checked one point after the other.",
    },
    "[scheduling][queues][…]": {
        "limit": "How many members may be active at the same time; 0: any number.",
        "members": "Tasks and families; the group `default` has all others.",
    },
    "[scheduling][special tasks]": {
        "clock-trigger": "Tasks that wait for the time of their point: `a(PT1H)`.",
        "external-trigger": 'Tasks that wait for a message: `a("data")`; see `ext-trigger`.',
        "clock-expire": "Tasks that expire this long after the time of their point: `a(PT6H)`.",
        "sequential": "Tasks that wait until they have succeeded at the point before.",
    },
    "[scheduling][xtriggers]": {
        "…": "A label and the function that is called until it returns true: "
        "`wall_clock(offset=PT1H)`, `workflow_state(…)`, `echo`, `xrandom`, "
        "or a function of the folder `lib/python`."
    },
    "[scheduling][graph]": {"…": "A recurrence and its graph: `P1D = a => b`."},
    "[runtime][…]": {
        "inherit": "Families from which the task inherits settings, the nearest first.",
        "completion": "When the task is complete, as an expression: `succeeded or failed`.",
        "workflow": "The task is a run of this workflow, `NAME/VERSION` or `./FOLDER`.",
        "platform": "Where jobs run: Slurm, or workers with labels (`platforms.toml`).",
        "script": "The commands of the job.",
        "init-script": "Commands before all others, also before the task counts as started.",
        "env-script": "Commands before the environment is set.",
        "err-script": "Commands after a failure.",
        "exit-script": "Commands after a success.",
        "pre-script": "Commands before `script`.",
        "post-script": "Commands after `script`.",
        "work sub-directory": "The folder below `work` in which the job runs.",
        "execution polling intervals": "How often Cylc would poll the job.",
        "execution retry delays": "How often a failed task is retried, and after which delays.",
        "execution time limit": "How long a job may run before it is ended.",
        "submission polling intervals": "How often Cylc would poll the job.",
        "submission retry delays": "The same for jobs that could not be started.",
        "run mode": "With `skip` the outputs are made without a job.",
    },
    "[runtime][…][meta]": {
        "title": "A few words, shown beside the task.",
        "description": "A longer description.",
        "URL": "An address with more information; handlers get it as `%(URL)s`.",
        "…": "Any other information for handlers or people.",
    },
    "[runtime][…][skip]": {
        "outputs": "The outputs that `run mode = skip` makes.",
        "disable task event handlers": "With `True`, no handlers are called in this mode.",
    },
    "[runtime][…][simulation]": {
        "default run length": "How long a job takes in rehearsals, simulation and dummy mode.",
        "speedup factor": "The run length is the time limit divided by this, if both are set.",
        "time limit buffer": "Cylc adds this to the time limit.",
        "fail cycle points": "The points at which the task fails, or `all`.",
        "fail try 1 only": "Whether only the first try fails.",
        "disable task event handlers": "With `True`, no handlers are called in this mode.",
    },
    "[runtime][…][environment filter]": {
        "include": "Only these variables of `environment` are set.",
        "exclude": "These variables are not set.",
    },
    "[runtime][…][job]": {
        "batch system": "`slurm`, `background`, or a name in `platforms.toml`.",
        "batch submit command template": "How Cylc would submit the job.",
    },
    "[runtime][…][remote]": {
        "host": "The host of the job: this machine, or a name in `platforms.toml`.",
        "owner": "The user of the job; write a platform instead.",
        "retrieve job logs": "Whether Cylc would fetch the logs of the job.",
        "retrieve job logs max size": "How much of the logs Cylc would fetch.",
        "retrieve job logs retry delays": "When Cylc would try to fetch the logs again.",
    },
    "[runtime][…][events]": {
        "handlers": "Commands that run at each of the `handler events`.",
        "handler events": "For which events the `handlers` are called.",
        "handler retry delays": "The delays after which a failed handler is called again.",
        "mail events": "For which events mail is sent.",
        "execution timeout": "If the job runs longer, the event `execution timeout` happens; "
        "the job continues.",
        "submission timeout": "If a submitted job waits longer to begin, the event `submission "
        "timeout` happens.",
        "late offset": "How long after the time of its point a task is late.",
        "submitted handlers": "When a runner accepted the job.",
        "submission timeout handlers": "When the job waits too long to begin.",
        "submission retry handlers": "When the job could not begin and is tried again.",
        "submission failed handlers": "When the job could not begin and has no retries left.",
        "started handlers": "When the job began.",
        "execution timeout handlers": "When the job runs too long.",
        "retry handlers": "When the job failed and is tried again.",
        "succeeded handlers": "When the task succeeded.",
        "failed handlers": "When the task failed and has no retries left.",
        "late handlers": "When the task is late.",
        "expired handlers": "When the task expired (`clock-expire`).",
        "warning handlers": "When the job sent a message of level WARNING.",
        "critical handlers": "When the job sent a message of level CRITICAL.",
        "custom handlers": "When the job sent a message of level CUSTOM.",
    },
    "[runtime][…][mail]": {"from": "The sender of the mail.", "to": "Who gets the mail."},
    "[runtime][…][workflow state polling]": {
        "interval": "How often the other run is checked.",
        "max-polls": "The largest number of checks.",
        "message": "The message of an output to wait for.",
        "alt-cylc-run-dir": "The folder in which Cylc would look for the run.",
        "verbose mode": "Whether Cylc would print more.",
    },
    "[runtime][…][environment]": {"…": "A variable of the job and its value."},
    "[runtime][…][inputs]": {"…": "A variable of the job, and the value of an earlier task."},
    "[runtime][…][directives]": {"…": "A line for a batch system."},
    "[runtime][…][outputs]": {"…": "An output and the message that makes it."},
    "[runtime][…][parameter environment templates]": {"…": "A variable made from parameters."},
}

# What is read, though nothing here acts on it; a section's words count for all in it.
KEPT: dict[str, str] = {
    "[runtime][…][remote] owner": "refused",
    "[runtime][…][workflow state polling] alt-cylc-run-dir": "kept; the store knows all runs",
}
OF_TIDEWHEEL = "used; only in tidewheel"
OURS = {
    "[runtime][…] workflow",
    "[runtime][…][inputs] …",
    "[scheduler] prune across points",
    "[scheduler] job commands",
}
