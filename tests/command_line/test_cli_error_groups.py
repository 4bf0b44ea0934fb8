"""Failures that are alike are one line with one command, wherever a run is looked at."""

import pytest

WIDE = """
[task parameters]
    m = 1..5
[scheduler]
    [[events]]
        stall timeout = PT0S
[scheduling]
    [[graph]]
        R1 = member<m> => join
[runtime]
    [[member<m>]]
        script = echo "CFL violated at step $CYLC_TASK_PARAM_m" >&2; exit 3
    [[join]]
        script = true
"""
ALIKE = (
    "5 tasks failed in the same way (member_m*): exit 3, CFL violated at step …; 1 task "
    "waits for them"
)
TRIGGER = "tidewheel trigger wide/run1 '1/member_m*:failed'"
LOG = "tidewheel log wide/run1 1/member_m1 --err"


@pytest.fixture
def stalled(tidewheel):
    folder = tidewheel.folder / "wide"
    folder.mkdir()
    (folder / "flow.cylc").write_text(WIDE)
    return tidewheel("run", "wide")


def test_one_cause_of_many_failures_is_one_line_in_run_show_and_why(tidewheel, stalled):
    for said in (stalled.out, stalled.err, tidewheel("show").out):
        assert said.count(ALIKE) == 1 and TRIGGER in said and LOG in said, said
        assert "1/member_m2 failed and" not in said
        assert f"{TRIGGER}  # run them now\n" in said
        assert f"{LOG:{len(TRIGGER)}}  # read what its job wrote\n" in said
    why = tidewheel("why", "1/join").out
    assert f"1/join waits: {ALIKE}" in why and TRIGGER in why
    assert why.count("member_m3") == 0
    page = tidewheel("show", "--json").json
    [group] = page["groups"]
    assert (group["text"], group["count"], group["name"]) == (ALIKE, 5, "member_m*")
    assert group["ids"] == [one["id"] for one in page["causes"]]
    assert (group["log"], group["end"]) == ("1/member_m1", "exit 3")
    assert group["error"] == "CFL violated at step 1"


def test_tasks_that_failed_and_were_repaired_count_as_succeeded_at_the_end(tidewheel):
    folder = tidewheel.folder / "wide"
    folder.mkdir()
    fails = 'echo "CFL violated at step $CYLC_TASK_PARAM_m" >&2; exit 3'
    repaired = WIDE.replace(fails, "test -e $CYLC_WORKFLOW_SHARE_DIR/table")
    (folder / "flow.cylc").write_text(repaired.replace("PT0S", "PT1H"))
    with tidewheel.started("run", "wide") as running:
        running.read_until("stalled:")
        (tidewheel.state / "runs" / "wide" / "run1" / "share" / "table").write_text("")
        assert tidewheel("trigger", "wide", "1/member_m*:failed").status == 0
        assert running.read_until("completed after").endswith(": 6 succeeded\n")


@pytest.mark.usefixtures("stalled")
def test_why_of_a_run_says_what_keeps_it_without_naming_a_task(tidewheel):
    said = tidewheel("why", "wide").out
    assert "run wide/run1  stalled" in said
    assert ALIKE in said and TRIGGER in said and LOG in said
    assert tidewheel("why", "wide", "--json").json["groups"][0]["text"] == ALIKE


@pytest.mark.usefixtures("stalled")
def test_a_stalled_run_that_is_resumed_still_says_how_its_jobs_ended(tidewheel):
    again = tidewheel("run", "wide/run1")
    assert "wide/run1 resumes" in again.out
    assert ALIKE in again.out, again.out


@pytest.mark.usefixtures("stalled")
def test_a_run_that_was_stopped_while_it_was_stalled_still_says_how_its_jobs_ended(tidewheel):
    with tidewheel.started("run", "wide/run1", "--stall-timeout", "1h") as running:
        running.read_until("then stops")
        assert tidewheel("stop", "wide").status == 0
        running.wait()
    assert tidewheel("runs", "--json").json["runs"][0]["status"] == "stopped"
    with tidewheel.started("run", "wide/run1") as running:
        running.read_until(ALIKE)
        tidewheel("stop", "wide")
        running.wait()


REPAIRED = """
[scheduling]
    [[graph]]
        R1 = '''
            good => last
            odd:fail => tidy
        '''
[runtime]
    [[good]]
        script = test ! -e $MARK || { echo "CFL violated" >&2; exit 3; }
        post-script = touch $MARK
        [[[environment]]]
            MARK = $CYLC_WORKFLOW_SHARE_DIR/worn
    [[odd]]
        script = exit 4
    [[last, tidy]]
        script = true
"""


def test_a_completed_run_names_a_task_that_failed_when_it_ran_again(tidewheel):
    folder = tidewheel.folder / "repaired"
    folder.mkdir()
    (folder / "flow.cylc").write_text(REPAIRED)
    assert "completed" in tidewheel("run", "repaired").out
    handled = "1/odd failed (exit 4): no message; handled by 1/tidy"
    assert handled in tidewheel("show").out  # nobody has to act on it
    tidewheel("trigger", "1/good")
    resumed = tidewheel("run", "repaired/run1")
    again = "1/good succeeded earlier, but when run again failed (exit 3): CFL violated"
    assert f"warning: {again}" in resumed.err, resumed
    for said in (tidewheel("show").out, tidewheel("why", "repaired").out):
        assert again in said and handled in said
        assert "tidewheel trigger repaired/run1 1/good --flow 1" in said
        assert "tidewheel log repaired/run1 1/good --err" in said
    # What failed as the graph allows needs nobody; what failed when it ran again does.
    assert "needs action" not in tidewheel("why", "repaired", "1/odd").out
    assert f"{again} (needs action)" in tidewheel("why", "repaired", "1/good").out
    # Who has set its success since has acted.
    tidewheel("set", "1/good")
    tidewheel("run", "repaired/run1")
    assert again not in tidewheel("show").out + tidewheel("why", "repaired", "1/good").out
    # In its flow it counts: a run whose required task failed is not completed.
    tidewheel("trigger", "1/good", "--flow", "1")
    assert "stalled" in tidewheel("run", "repaired/run1", "--stall-timeout", "0").out


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        ("nosuch", "; is the command on the PATH of the job, or in bin/ of the workflow?"),
        ("$CYLC_WORKFLOW_RUN_DIR/plain", "; is the file executable (chmod +x), and is its #!"),
        ("false", ""),
    ],
)
def test_a_command_that_was_not_found_or_is_no_program_says_what_to_look_at_once(
    tidewheel, script, advice
):
    folder = tidewheel.folder / "wide"
    folder.mkdir()
    (folder / "plain").write_text("")
    flow = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"
    (folder / "flow.cylc").write_text(f"{flow}script = {script}\n")
    stalled = tidewheel("run", "wide", "--stall-timeout", "0")
    assert stalled.status == 1
    for said in (stalled.err, tidewheel("show").out, tidewheel("why", "1/a").out):
        assert said.count("; is the ") == said.count(advice or "; is the ") == bool(advice)
