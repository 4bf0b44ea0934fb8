# What some jobs of a run call; job_library.sh reads this file for the first call.

tidewheel__file() { # PATH SIZE SHA256 TASK: a file that a task before this one returned
    local seen
    if [[ ! -f $1 ]]; then
        seen='is not there'
    elif [[ $(stat --dereference --format=%s -- "$1") != "$2" ]]; then
        seen="has another size than the $2 bytes that it had then"
    elif [[ $(sha256sum <"$1") != "$3 "* ]]; then
        seen='has changed since'
    else
        return 0
    fi
    printf 'the file %s, which %s returned, %s\n' "$1" "$4" "$seen" >&2
    exit 1
}

# ---- for the text of jobs ----

tidewheel__work_in() { # PATH below the run's work directory, as [work sub-directory] says
    export TIDEWHEEL_TASK_WORK_DIR=$CYLC_WORKFLOW_WORK_DIR/$1
    export CYLC_TASK_WORK_DIR=$TIDEWHEEL_TASK_WORK_DIR CYLC_TASK_WORK_PATH=$TIDEWHEEL_TASK_WORK_DIR
}

tidewheel__say_started() {
    "$TIDEWHEEL_BIN/tidewheel" message --output started || :
}

# No loop: with BASH_COMPAT=4.3 a `break` in a part would leave out the later ones.
tidewheel__one_by_one() { # PART…
    tidewheel__to_come "${@:2}"
    if (($# > 1)); then
        "$1"
        tidewheel__has_returned || exit 0 # the wrapper says why this is no success
        tidewheel__one_by_one "${@:2}"
    else
        "$@"
    fi
}

# Whatever a part does, `exit 0` or `exec`, the file remembers what has not run yet: the wrapper
# reads it, and fails a job that ended without an error before its last part.
tidewheel__to_come() { # PART…
    local tidewheel__name tidewheel__names=
    for tidewheel__name in "${@#tidewheel__}"; do
        [[ $tidewheel__name == environment ]] ||
            tidewheel__names+="${tidewheel__names:+, }${tidewheel__name//_/-}"
    done
    printf 'TIDEWHEEL_JOB_TO_COME=%s\n' "$tidewheel__names" >>"$TIDEWHEEL_JOB_DIR/job.status" || :
}

tidewheel__is_cut_short() {
    local line to_come=
    while read -r line; do
        [[ $line != TIDEWHEEL_JOB_TO_COME=* ]] || to_come=${line#*=}
    done <"$TIDEWHEEL_JOB_DIR/job.status"
    [[ -n $to_come ]] || ! tidewheel__has_returned
}

# A function of a workflow in Python is noted when it is called, and struck out when it returns.
tidewheel__has_returned() {
    local line to_return=
    while read -r line; do
        [[ $line != TIDEWHEEL_TO_RETURN=* ]] || to_return=${line#*=}
    done <"$TIDEWHEEL_JOB_DIR/job.status"
    [[ -z $to_return ]]
}

# The parts run in a shell of their own: whatever they do to traps and options, this one hears
# how they ended, and hears a signal at once. Its own names are long, as theirs may be any.
tidewheel__guard() {
    local tidewheel__signal tidewheel__status=0
    tidewheel__before=${!:-} # begun by an init-script
    for tidewheel__signal in $CYLC_FAIL_SIGNALS; do
        [[ $tidewheel__signal == E* ]] ||
            trap "tidewheel__signalled $tidewheel__signal" "$tidewheel__signal"
    done
    tidewheel__one_by_one "$@" &
    wait "$!" || tidewheel__status=$?
    trap '' TERM XCPU
    if ((tidewheel__status == 0)) && tidewheel__is_cut_short; then
        tidewheel__last_script err_script ERR >&2 # the wrapper says why it failed
    elif ((tidewheel__status == 0)); then
        tidewheel__write_exit SUCCEEDED
        tidewheel__last_script exit_script
    elif ((tidewheel__status > 128)); then
        tidewheel__failed EXIT "$tidewheel__status"
    else
        tidewheel__failed ERR "$tidewheel__status"
    fi
    exit 0
}

tidewheel__signalled() {
    trap '' TERM XCPU
    kill -s "$1" 0 # the other processes of this job
    tidewheel__write_exit "$1"
    tidewheel__last_script err_script "$1" >&2
    # A job is over when its script is; a signal may come before that has begun.
    [[ ${!:-} == "$tidewheel__before" ]] || wait "$!" || :
    exit $((128 + $(kill -l "$1")))
}

tidewheel__failed() {
    if [[ " $CYLC_FAIL_SIGNALS " == *" $1 "* ]]; then
        tidewheel__write_exit "$1"
        tidewheel__last_script err_script "$1" >&2
    elif tidewheel__has_claimed_success; then
        exit 0
    fi
    exit "$2"
}

# An err-script or exit-script changes nothing about how the job ended.
tidewheel__last_script() {
    local tidewheel__function=tidewheel__$1
    shift
    if declare -F "$tidewheel__function" >/dev/null; then
        ("$tidewheel__function" "$@") || printf '%s: status %d\n' "${tidewheel__function#tidewheel__}" "$?" >&2
    fi
}

# A job that took its failure into its own hands may say in job.status how it ended.
tidewheel__has_claimed_success() {
    local line
    while read -r line; do
        [[ $line != CYLC_JOB_EXIT=SUCCEEDED ]] || return 0
    done <"$TIDEWHEEL_JOB_DIR/job.status"
    return 1
}

# ---- for the scripts of existing workflows ----

cylc__job__disable_fail_signals() { # [SIGNAL…]; without one: all of them
    local signal left
    (($#)) || CYLC_FAIL_SIGNALS=
    for signal in "$@"; do
        left=" $CYLC_FAIL_SIGNALS "
        CYLC_FAIL_SIGNALS=${left/" $signal "/ }
    done
}

# A worker knows that a job has started before the job does; its scheduler soon after.
cylc__job__wait_cylc_message_started() {
    local last=$((SECONDS + 10))
    until grep -qs -- "\[$CYLC_TASK_JOB[(:].* => running" "$CYLC_WORKFLOW_LOG_DIR/log"; do
        ((SECONDS <= last)) || return 0
        sleep 0.05
    done
}

cylc__job__poll_grep_workflow_log() { # ARGUMENTS of grep
    local last=$((SECONDS + 60)) pause=0.05
    until grep -s "$@" "$CYLC_WORKFLOW_LOG_DIR/log"; do
        if ((SECONDS > last)); then
            printf 'nothing like this within a minute in %s: grep %s\n' \
                "$CYLC_WORKFLOW_LOG_DIR/log" "$*" >&2
            exit 1
        fi
        sleep "$pause"
        pause=0.2
    done
}

cylc__job_abort() { # MESSAGE
    "$TIDEWHEEL_BIN/tidewheel" message "CRITICAL:aborted/\"$1\"" || :
    exit 1
}
