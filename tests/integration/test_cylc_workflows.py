"""Workflows whose jobs use Cylc's commands on their own run, with real processes."""

import pytest

FLOWS = {
    "what a job wrote down instead of saying it is found by a poll": """
[scheduling]
    [[graph]]
        R1 = \"\"\"
            quiet:start => asker
            quiet:ready => heard
        \"\"\"
[runtime]
    [[quiet]]
        script = \"\"\"
            echo "CYLC_MESSAGE=2030-01-01T00:00:00Z|INFO|all is ready" \\
                >> "$CYLC_TASK_LOG_ROOT.status"
            cylc__job__poll_grep_workflow_log -F '[1/quiet/01:running] (polled)all is ready'
        \"\"\"
        [[[outputs]]]
            ready = all is ready
    [[asker]]
        script = cylc poll "$CYLC_WORKFLOW_ID//1/quiet"
    [[heard]]
""",
    "what was broadcast counts also for retries": """
[scheduling]
    [[graph]]
        R1 = caster => weak
[runtime]
    [[caster]]
        script = cylc broadcast -n weak -s 'execution retry delays = PT0S' "$CYLC_WORKFLOW_ID"
    [[weak]]
        script = ((CYLC_TASK_TRY_NUMBER == 2))
""",
    "a killed job is tried again once its task is released": """
[scheduling]
    [[graph]]
        R1 = victim:start => killer
[runtime]
    [[victim]]
        script = ((CYLC_TASK_TRY_NUMBER == 2)) || sleep 60
        execution retry delays = PT0S
    [[killer]]
        script = \"\"\"
            cylc__job__wait_cylc_message_started
            cylc kill "$CYLC_WORKFLOW_ID//1/victim" "$CYLC_WORKFLOW_ID//1/nobody"
            cylc__job__poll_grep_workflow_log -F '[1/victim:waiting(held)] job killed'
            cylc__job__poll_grep_workflow_log -E '1/victim/01:running.* => waiting\\(held\\)'
            cylc dump -t "$CYLC_WORKFLOW_ID" > dump
            diff dump - <<< $'1/killer:running\\n1/victim:waiting (held)'
            cylc release "$CYLC_WORKFLOW_ID//1/victim"
        \"\"\"
""",
    "scripts find the process group of a job where they look for it": """
[scheduling]
    [[graph]]
        R1 = \"\"\"
            sleeper:start => ender
            sleeper:fail? => after
            sleeper?
        \"\"\"
[runtime]
    [[sleeper]]
        script = sleep 60
    [[ender]]
        script = \"\"\"
            status="$CYLC_WORKFLOW_RUN_DIR/log/job/1/sleeper/NN/job.status"
            kill -- "-$(sed -n 's/^CYLC_JOB_ID=//p' "$status")"
        \"\"\"
    [[after]]
""",
}
RAN = {
    "what a job wrote down instead of saying it is found by a poll": "quiet asker heard",
    "what was broadcast counts also for retries": "caster weak weak",
    "a killed job is tried again once its task is released": "victim killer victim",
    "scripts find the process group of a job where they look for it": "sleeper ender after",
}


@pytest.mark.parametrize("name", FLOWS)
def test_existing_scripts_find_what_they_expect(tidewheel, name):
    folder = tidewheel.folder / "flow"
    folder.mkdir()
    (folder / "flow.cylc").write_text(FLOWS[name])
    log = tidewheel.folder / "triggers.log"
    options = ("--compat", "cylc8", "--stall-timeout", "0", "--trigger-log", str(log))
    assert tidewheel("run", "flow", *options).status == 0
    ran = [line.split()[0].removeprefix("1/") for line in log.read_text().splitlines()]
    assert sorted(ran) == sorted(RAN[name].split())
