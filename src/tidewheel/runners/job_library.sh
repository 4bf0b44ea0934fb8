# The common part of every job of a run: its environment, its directories, its last words.
#
# A job sets what is known about it (TIDEWHEEL_WORKFLOW_ID, TIDEWHEEL_TASK_NAME, …), reads this
# file, and calls what follows in the order of its parts. The worker gives TIDEWHEEL_RUN_DIR,
# TIDEWHEEL_JOB_DIR and TIDEWHEEL_BIN. On the common way no process is started here: each would
# cost as much as all the rest.
#
# Every job pays for each line of this file (docs/decisions/0052): a loop over the names cost
# four times what the assignments cost, and what few jobs need is read when they need it.

# First, while there are few variables: with each change of TZ bash makes its environment anew.
tidewheel__now() { # puts the time in UTC into tidewheel__time
    printf -v tidewheel__time '%(%FT%T%z)T' -1
    if [[ $tidewheel__time == *+0000 ]]; then
        tidewheel__time=${tidewheel__time%+0000}Z
    else
        TZ=UTC printf -v tidewheel__time '%(%FT%TZ)T' -1
    fi
}
if [[ $TIDEWHEEL_UTC == True ]]; then
    export TZ=UTC
fi
tidewheel__now

export TIDEWHEEL_{WORKFLOW_{ID,NAME,UUID,{INITIAL,FINAL,START}_CYCLE_POINT},CYCLING_MODE,UTC} \
    TIDEWHEEL_TASK_{CYCLE_POINT,NAME,SUBMIT_NUMBER,TRY_NUMBER,FLOW_NUMBERS,NAMESPACE_HIERARCHY}
set -a # exported, until `set +a`
TIDEWHEEL_TASK_ID=$TIDEWHEEL_TASK_CYCLE_POINT/$TIDEWHEEL_TASK_NAME
printf -v TIDEWHEEL_TASK_JOB '%s/%02d' "$TIDEWHEEL_TASK_ID" "$TIDEWHEEL_TASK_SUBMIT_NUMBER"
TIDEWHEEL_WORKFLOW_NAME_BASE=${TIDEWHEEL_WORKFLOW_NAME##*/}
TIDEWHEEL_WORKFLOW_RUN_DIR=$TIDEWHEEL_RUN_DIR
TIDEWHEEL_WORKFLOW_LOG_DIR=$TIDEWHEEL_RUN_DIR/log/scheduler
TIDEWHEEL_WORKFLOW_SHARE_DIR=$TIDEWHEEL_RUN_DIR/share
TIDEWHEEL_WORKFLOW_WORK_DIR=$TIDEWHEEL_RUN_DIR/work
TIDEWHEEL_WORKFLOW_HOST=${HOSTNAME:-localhost}
TIDEWHEEL_WORKFLOW_OWNER=${USER:-${LOGNAME:-}}
TIDEWHEEL_TASK_LOG_DIR=$TIDEWHEEL_JOB_DIR
TIDEWHEEL_TASK_LOG_ROOT=$TIDEWHEEL_JOB_DIR/job
TIDEWHEEL_TASK_WORK_DIR=$TIDEWHEEL_RUN_DIR/work/$TIDEWHEEL_TASK_ID
TIDEWHEEL_TASK_SHARE_CYCLE_DIR=$TIDEWHEEL_RUN_DIR/share/cycle/$TIDEWHEEL_TASK_CYCLE_POINT
TIDEWHEEL_VERBOSE=false
TIDEWHEEL_DEBUG=false

CYLC_WORKFLOW_ID=$TIDEWHEEL_WORKFLOW_ID
CYLC_WORKFLOW_NAME=$TIDEWHEEL_WORKFLOW_NAME
CYLC_WORKFLOW_NAME_BASE=$TIDEWHEEL_WORKFLOW_NAME_BASE
CYLC_WORKFLOW_UUID=$TIDEWHEEL_WORKFLOW_UUID
CYLC_WORKFLOW_RUN_DIR=$TIDEWHEEL_WORKFLOW_RUN_DIR
CYLC_WORKFLOW_LOG_DIR=$TIDEWHEEL_WORKFLOW_LOG_DIR
CYLC_WORKFLOW_SHARE_DIR=$TIDEWHEEL_WORKFLOW_SHARE_DIR
CYLC_WORKFLOW_WORK_DIR=$TIDEWHEEL_WORKFLOW_WORK_DIR
CYLC_WORKFLOW_HOST=$TIDEWHEEL_WORKFLOW_HOST
CYLC_WORKFLOW_OWNER=$TIDEWHEEL_WORKFLOW_OWNER
CYLC_WORKFLOW_INITIAL_CYCLE_POINT=$TIDEWHEEL_WORKFLOW_INITIAL_CYCLE_POINT
CYLC_WORKFLOW_FINAL_CYCLE_POINT=$TIDEWHEEL_WORKFLOW_FINAL_CYCLE_POINT
CYLC_WORKFLOW_START_CYCLE_POINT=$TIDEWHEEL_WORKFLOW_START_CYCLE_POINT
CYLC_CYCLING_MODE=$TIDEWHEEL_CYCLING_MODE
CYLC_UTC=$TIDEWHEEL_UTC
CYLC_VERBOSE=$TIDEWHEEL_VERBOSE
CYLC_DEBUG=$TIDEWHEEL_DEBUG
CYLC_TASK_ID=$TIDEWHEEL_TASK_ID
CYLC_TASK_JOB=$TIDEWHEEL_TASK_JOB
CYLC_TASK_NAME=$TIDEWHEEL_TASK_NAME
CYLC_TASK_CYCLE_POINT=$TIDEWHEEL_TASK_CYCLE_POINT
CYLC_TASK_SUBMIT_NUMBER=$TIDEWHEEL_TASK_SUBMIT_NUMBER
CYLC_TASK_TRY_NUMBER=$TIDEWHEEL_TASK_TRY_NUMBER
CYLC_TASK_FLOW_NUMBERS=$TIDEWHEEL_TASK_FLOW_NUMBERS
CYLC_TASK_NAMESPACE_HIERARCHY=$TIDEWHEEL_TASK_NAMESPACE_HIERARCHY
CYLC_TASK_LOG_DIR=$TIDEWHEEL_TASK_LOG_DIR
CYLC_TASK_LOG_ROOT=$TIDEWHEEL_TASK_LOG_ROOT
CYLC_TASK_WORK_DIR=$TIDEWHEEL_TASK_WORK_DIR
CYLC_TASK_SHARE_CYCLE_DIR=$TIDEWHEEL_TASK_SHARE_CYCLE_DIR
# The names that older scripts know.
CYLC_SUITE_NAME=$TIDEWHEEL_WORKFLOW_ID
CYLC_SUITE_UUID=$TIDEWHEEL_WORKFLOW_UUID
CYLC_SUITE_HOST=$TIDEWHEEL_WORKFLOW_HOST
CYLC_SUITE_OWNER=$TIDEWHEEL_WORKFLOW_OWNER
CYLC_SUITE_RUN_DIR=$TIDEWHEEL_RUN_DIR
CYLC_SUITE_DEF_PATH=$TIDEWHEEL_RUN_DIR
CYLC_SUITE_LOG_DIR=$TIDEWHEEL_WORKFLOW_LOG_DIR
CYLC_SUITE_WORK_DIR=$TIDEWHEEL_WORKFLOW_WORK_DIR
CYLC_SUITE_SHARE_DIR=$TIDEWHEEL_WORKFLOW_SHARE_DIR
CYLC_SUITE_SHARE_PATH=$TIDEWHEEL_WORKFLOW_SHARE_DIR
CYLC_SUITE_INITIAL_CYCLE_POINT=$TIDEWHEEL_WORKFLOW_INITIAL_CYCLE_POINT
CYLC_SUITE_INITIAL_CYCLE_TIME=$TIDEWHEEL_WORKFLOW_INITIAL_CYCLE_POINT
CYLC_SUITE_FINAL_CYCLE_POINT=$TIDEWHEEL_WORKFLOW_FINAL_CYCLE_POINT
CYLC_SUITE_FINAL_CYCLE_TIME=$TIDEWHEEL_WORKFLOW_FINAL_CYCLE_POINT
CYLC_TASK_CYCLE_TIME=$TIDEWHEEL_TASK_CYCLE_POINT
CYLC_TASK_WORK_PATH=$TIDEWHEEL_TASK_WORK_DIR
CYLC_VERSION=8.5.4 # of the interface that existing scripts find here
CYLC_TASK_COMMS_METHOD=poll
PYTHONUNBUFFERED=1
CYLC_RUN_DIR=${TIDEWHEEL_RUN_DIR%"/$TIDEWHEEL_WORKFLOW_ID"}
PATH=$TIDEWHEEL_RUN_DIR/share/bin:$TIDEWHEEL_RUN_DIR/bin:$TIDEWHEEL_BIN:$PATH
PYTHONPATH=$TIDEWHEEL_RUN_DIR/share/lib/python:$TIDEWHEEL_RUN_DIR/lib/python${PYTHONPATH:+:$PYTHONPATH}
if [[ $TIDEWHEEL_CYCLING_MODE != integer ]]; then
    ISODATETIMECALENDAR=$TIDEWHEEL_CYCLING_MODE
    ISODATETIMEREF=$TIDEWHEEL_TASK_CYCLE_POINT
fi
set +a
CYLC_TASK_MESSAGE_STARTED_PID= # a worker says that a job has started: there is no such process

# Where existing scripts look for it; the id is the process group, as they kill it.
read -r _ _ _ _ tidewheel__group _ <"/proc/$$/stat" || tidewheel__group=$$
if [[ ${TIDEWHEEL_JOB_RUNNER:=background} == slurm ]]; then
    tidewheel__group=$SLURM_JOB_ID
fi
printf 'CYLC_JOB_RUNNER_NAME=%s\nCYLC_JOB_ID=%d\nCYLC_JOB_PID=%d\nCYLC_JOB_INIT_TIME=%s\n' \
    "$TIDEWHEEL_JOB_RUNNER" "$tidewheel__group" $$ "$tidewheel__time" >>"$TIDEWHEEL_JOB_DIR/job.status"
unset tidewheel__group tidewheel__time

# What a job may do with its own failure; an init-script may take some away.
CYLC_FAIL_SIGNALS='EXIT ERR TERM XCPU'

# ---- for the text of jobs ----

tidewheel__enter() {
    # The worker has made it, unless it is a directory of the job's own choice.
    cd -- "$CYLC_TASK_WORK_DIR" 2>/dev/null || {
        mkdir -p -- "$CYLC_TASK_WORK_DIR" && cd -- "$CYLC_TASK_WORK_DIR"
    } || exit 1
}

# How a job ended, in the words of Cylc's jobs; whoever ends otherwise is seen by its wrapper.
tidewheel__write_exit() { # SUCCEEDED, ERR or a signal
    local tidewheel__time
    tidewheel__now
    printf 'CYLC_JOB_EXIT=%s\nCYLC_JOB_EXIT_TIME=%s\n' "$1" "$tidewheel__time" \
        >>"$TIDEWHEEL_JOB_DIR/job.status" || :
}

tidewheel__succeeded() { # right after the last part, of which a script may have taken -e away
    local tidewheel__status=$?
    ((tidewheel__status != 0)) || tidewheel__write_exit SUCCEEDED
    return "$tidewheel__status"
}

tidewheel__inputs() { # JSON: what the tasks before this one returned
    export TIDEWHEEL_INPUTS=$TIDEWHEEL_JOB_DIR/inputs.json
    printf '%s\n' "$1" >"$TIDEWHEEL_INPUTS" || exit 1 # a job without its values is none
}

# What few jobs call: job_functions.sh has it, and is read by the first that calls any of it.
tidewheel__more() { . "${TIDEWHEEL_JOB_LIBRARY%/*}/job_functions.sh" || exit 1; }
tidewheel__file() { tidewheel__more; tidewheel__file "$@"; }
tidewheel__work_in() { tidewheel__more; tidewheel__work_in "$@"; }
tidewheel__say_started() { tidewheel__more; tidewheel__say_started "$@"; }
tidewheel__one_by_one() { tidewheel__more; tidewheel__one_by_one "$@"; }
tidewheel__to_come() { tidewheel__more; tidewheel__to_come "$@"; }
tidewheel__guard() { tidewheel__more; tidewheel__guard "$@"; }
cylc__job__disable_fail_signals() { tidewheel__more; cylc__job__disable_fail_signals "$@"; }
cylc__job__wait_cylc_message_started() { tidewheel__more; cylc__job__wait_cylc_message_started "$@"; }
cylc__job__poll_grep_workflow_log() { tidewheel__more; cylc__job__poll_grep_workflow_log "$@"; }
cylc__job_abort() { tidewheel__more; cylc__job_abort "$@"; }
