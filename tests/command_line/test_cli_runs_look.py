"""Looking at runs: runs, show, why, tree, log; with a scheduler or without one."""

import json
from contextlib import closing

import apsw
import pytest

from tests.support.many_commands import answers
from tests.support.prepared_run import NOW, PreparedRun
from tidewheel.core.operator.requests import StoredBroadcast
from tidewheel.core.sched import events
from tidewheel.core.sched.events import FlowChoice

CHAIN = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 9
    runahead limit = P1
    [[graph]]
        P1 = a => b => c
        P2 = isolated
[runtime]
    [[a, b, c, isolated]]
"""


def started(tidewheel, *args):
    return PreparedRun(tidewheel, *args).starts()


def half_done(tidewheel):
    """1/model_a failed and is handled, so 1/post is lost and 2/prep is blocked."""
    return started(tidewheel).succeeds("1/prep").fails("1/model_a").starts_job("1/model_b")


# ---- runs ----


def test_runs_are_listed_newest_first(tidewheel):
    assert "there are no runs yet; start one: tidewheel run DIR" in tidewheel("runs").err
    first = started(tidewheel)
    second = PreparedRun(tidewheel)
    rows = [line.split() for line in tidewheel("runs").out.splitlines()]
    assert [row[:4] for row in rows] == [
        ["RUN", "NUMBER", "STATUS", "SCHEDULER"],
        [second.name, "2", "created", "no"],
        [first.name, "1", "running", "yes"],
    ]
    assert tidewheel("runs", "--json", "--workflow", "other").json == {"runs": [], "next": None}
    first.is_let_go()
    assert f"resume it: tidewheel run {first.name}" in tidewheel("runs").out


@pytest.mark.parametrize("mode", ["simulation", "dummy", "skip"])
def test_a_run_without_real_jobs_is_not_listed_like_a_real_one(tidewheel, mode):
    folder = tidewheel.folder / "plain"
    folder.mkdir()
    (folder / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n")
    for options in (["--mode", mode], ["--new"]):
        assert tidewheel("run", "plain", *options).status == 0
    real, played = tidewheel("runs").out.splitlines()[1:]
    assert f"completed ({mode} mode: " in played and "mode" not in real
    listed = tidewheel("runs", "--json").json["runs"]
    assert [one["mode"] for one in listed] == ["live", mode]
    assert f"completed ({mode} mode: " in tidewheel("tree", "plain/run1").out


def test_a_run_that_has_ended_can_be_deleted_with_its_files(tidewheel):
    run = started(tidewheel)
    run.writes_log("1/prep", "job.out", "hello\n")
    refused = tidewheel("runs", "--delete", run.name, "--yes")
    assert refused.status == 2 and f"tidewheel stop {run.name}" in refused.err
    run.is_let_go()
    for part in (run.name.partition("/")[0], "1", run.name[:-1]):
        refused = tidewheel("runs", "--delete", part, "--yes")
        assert refused.status == 2
        assert f"mean {run.name}: tidewheel runs --delete {run.name}" in refused.err
    unasked = tidewheel("runs", "--delete", run.name)
    assert unasked.status == 2 and "Add --yes" in unasked.err
    folder = tidewheel.state / "runs" / run.name
    assert f"{run.name}: " in unasked.err and f"{folder} (" in unasked.err
    assert tidewheel("runs", "--json").json["runs"] and folder.exists()
    kept = tidewheel.on_terminal("runs", "--delete", run.name, typed="n\n")
    assert kept.status == 2 and "nothing was deleted" in kept.out and folder.exists()
    gone = tidewheel.on_terminal("runs", "--delete", run.name, typed="y\n")
    assert gone.status == 0 and f"{run.name} is deleted" in gone.out
    assert tidewheel("runs", "--json").json == {"runs": [], "next": None}
    assert not (tidewheel.state / "runs" / run.name).exists()


def ages(tidewheel, name, days):
    with closing(apsw.Connection(str(tidewheel.state / "tidewheel.db"))) as store:
        ended = "UPDATE run SET ended_at = unixepoch('subsec') - ? WHERE name = ?"
        store.execute(ended, [days * 86_400, name])


def test_runs_that_ended_long_ago_are_deleted_together_and_no_others(tidewheel):
    folders = {name: tidewheel.folder / name for name in ("plain", "other")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n")
        assert tidewheel("run", folder.name, "--mode", "skip").status == 0
    assert tidewheel("run", "plain", "--new", "--mode", "skip").status == 0
    going_on = started(tidewheel)
    for name, days in (("plain/run1", 40), ("plain/run2", 2), ("other/run1", 40)):
        ages(tidewheel, name, days)
    ages(tidewheel, going_on.name, 40)
    asked = ("runs", "--delete-older", "P30D", "--workflow", "plain")
    tried = tidewheel(*asked, "--dry-run")
    assert tried.status == 0 and "plain/run1: completed, ended 40d ago, " in tried.err
    assert "run2" not in tried.err and "nothing was deleted" in tried.err
    unasked = tidewheel(*asked)
    assert unasked.status == 2 and "Add --yes" in unasked.err
    kept = tidewheel.on_terminal(*asked, typed="n\n")
    assert kept.status == 2 and "nothing was deleted" in kept.out
    folder = tidewheel.state / "runs" / "plain" / "run1"
    assert folder.exists()
    gone = tidewheel(*asked, "--yes")
    assert (gone.status, gone.out) == (0, "plain/run1 is deleted\n") and not folder.exists()
    told = tidewheel("runs", "--delete-older", "30d", "--yes", "--json").json
    assert told == {"deleted": ["other/run1"], "kept": [], "dry_run": False}
    left = [one["name"] for one in tidewheel("runs", "--json").json["runs"]]
    assert left == [going_on.name, "plain/run2"], "what is driven or young is kept"
    assert "no run ended more than 30d ago" in tidewheel("runs", "--delete-older", "30d").err


def test_a_run_that_went_on_while_its_deletion_was_asked_is_kept(tidewheel):
    folder = tidewheel.folder / "plain"
    folder.mkdir()
    (folder / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n")
    assert tidewheel("run", "plain", "--mode", "skip").status == 0
    ages(tidewheel, "plain/run1", 40)
    asked = tidewheel.on_terminal(
        *("runs", "--delete-older", "P30D"),
        when_asked=("Delete this permanently?", lambda: ages(tidewheel, "plain/run1", 0)),
        typed="y\n",
    )
    assert asked.status == 1 and "plain/run1 is kept: it went on meanwhile" in asked.out
    assert tidewheel("show", "plain/run1").status == 0


# ---- show: the run ----


@pytest.mark.req("R001-40")
def test_a_run_shows_progress_and_what_is_active_in_which_flow(tidewheel):
    half_done(tidewheel)
    shown = tidewheel("show").out
    assert shown.startswith("run forecast/run1  running\n")
    lines = [line.split() for line in shown.splitlines()]
    [point] = [line for line in lines if line[:1] == ["1"]]
    assert point[1:5] == ["1/5", "####................", "1", "running,"]
    [active] = [line for line in lines if line[:1] == ["1/model_b"]]
    assert active[:4] == ["1/model_b", "running", "1", "01"]


BRANCHES = """
[scheduling]
    [[graph]]
        R1 = \"\"\"
            a => b => c
            a:fail => mend
            x? => y
            x:fail? => z
            y => !w
            v => u & w
        \"\"\"
[runtime]
    [[a, b, c, mend, x, y, z, w, v, u]]
"""


def test_only_what_succeeded_or_has_no_work_is_counted_as_done(tidewheel):
    run = started(tidewheel, BRANCHES, "branches").fails("1/a").succeeds("1/x", "1/y")
    page = tidewheel("show", "--json").json
    [point] = page["points"]
    ends = ("failed", "succeeded", "lost", "not taken", "removed")
    assert [point["counts"][one] for one in ends] == [1, 2, 2, 1, 1]
    assert point["done"] == 4  # x and y; z is not taken, and y removes w
    assert tidewheel("tree", "--json").json["points"][0]["done"] == 4
    run.fails("1/v").happens(events.TasksRemoved(tasks=(run.key("1/v"),), at=NOW))
    [point] = tidewheel("show", "--json").json["points"]
    assert (point["counts"]["removed"], point["done"]) == (2, 4)  # by somebody: it is not done


def test_a_lost_task_is_shown_as_a_chain(tidewheel):
    half_done(tidewheel)
    page = tidewheel("show", "--json").json
    assert page["lost"] == [
        {
            "id": "1/post",
            "flow": 1,
            "chain": "1/post will not run: it needs 1/model_a:succeeded; "
            "1/model_a failed, handled by 1/mail",
        }
    ]
    [cause] = page["causes"]
    assert (cause["id"], cause["state"], cause["remarks"]) == ("2/prep", "waiting", ["blocked"])


def test_a_stalled_run_names_its_causes_and_what_to_do(tidewheel):
    run = started(tidewheel).fails("1/prep")
    shown = tidewheel("show")
    assert "run forecast/run1  stalled" in shown.out
    assert "because       1/prep failed, incomplete\n" in shown.out
    assert "stalled because" in shown.out
    assert f"tidewheel trigger {run.name} 1/prep" in shown.out


def test_looking_needs_no_scheduler(tidewheel):
    run = half_done(tidewheel).is_let_go()
    page = tidewheel("show", "--json").json
    assert (page["run"]["driven"], page["run"]["scheduler"]) == (False, None)
    assert [one["id"] for one in page["active"]] == ["1/model_b", "1/mail"]
    assert f"resume it: tidewheel run {run.name}" in tidewheel("show").out
    [reason, *_] = tidewheel("why", "1/post", "--json").json["tasks"][0]["reasons"]
    assert reason["commands"] == [f"tidewheel run {run.name}"]


def test_a_run_that_was_never_started_can_be_looked_at(tidewheel):
    run = PreparedRun(tidewheel)
    page = tidewheel("show", "--json").json
    assert (page["run"]["status"], page["points"], page["active"]) == ("created", [], [])
    assert f"{run.name} has not been started" in tidewheel("why", "1/prep").out


@pytest.mark.req("R001-31")
def test_a_run_says_how_far_its_stop_point_is(tidewheel):
    run = started(tidewheel, CHAIN, "chain")
    run.happens(events.StopPointSet(5, run.now))
    bounds = tidewheel("show", "--json").json["bounds"]
    assert (bounds["stop"], bounds["points_to_stop"], bounds["final"]) == ("5", 3, "9")
    assert "after point 5 (3 points to go)" in tidewheel("show").out


@pytest.mark.req("R001-40")
def test_flows_are_listed_once_there_is_more_than_one(tidewheel):
    run = started(tidewheel, CHAIN, "chain").succeeds("1/a", "1/b", "1/c")
    assert "flows" not in tidewheel("show").out.split("\n")
    run.happens(
        events.TasksTriggered(tasks=(run.key("1/b"),), at=run.now, flow=FlowChoice.NEW, until=1)
    )
    page = tidewheel("show", "--json").json
    assert [(one["flow"], one["until"], one["tasks"] > 0) for one in page["flows"]] == [
        (1, None, True),
        (2, "1", True),
    ]
    [task] = [one for one in page["active"] if one["id"] == "1/b"]
    assert task["flows"] == [2]
    assert "flow 2" in tidewheel("tree").out


# ---- show: a task ----


@pytest.mark.req("R001-52")
def test_outputs_are_shown_one_by_one_and_those_made_by_hand_are_marked(tidewheel):
    run = started(tidewheel).starts_job("1/prep")
    with run.answering():
        assert tidewheel("set", "1/prep", "--out", "half").status == 0
    [task] = tidewheel("show", "1/prep", "--json").json["tasks"]
    outputs = {one["output"]: one for one in task["outputs"]}
    assert outputs["half"]["made"]
    assert outputs["half"]["by_hand"]
    assert outputs["half"]["by"].startswith("by hand (")
    assert outputs["started"]["by"] == "submission 01"
    assert not outputs["started"]["by_hand"]
    assert not outputs["succeeded"]["made"]
    [line] = [line for line in tidewheel("show", "1/prep").out.splitlines() if "half" in line]
    assert line.split()[:4] == ["+", "half", "by", "hand"]


@pytest.mark.req("R001-52")
def test_outputs_made_by_hand_stay_marked_when_the_task_has_left_the_pool(tidewheel):
    run = started(tidewheel).fails("1/prep")
    with run.answering():
        tidewheel("set", "1/prep")
    [task] = tidewheel("show", "1/prep", "--json").json["tasks"]
    outputs = {one["output"]: one for one in task["outputs"]}
    assert (task["in_pool"], task["state"]) == (False, "succeeded")
    assert outputs["succeeded"]["by_hand"]
    assert not outputs["failed"]["by_hand"]


@pytest.mark.req("R001-52")
def test_an_output_that_is_set_after_the_end_is_shown_as_made(tidewheel):
    run = started(tidewheel).succeeds("1/prep")
    with run.answering():
        assert tidewheel("set", "1/prep", "--out", "half").status == 0
    [task] = tidewheel("show", "1/prep", "--json").json["tasks"]
    outputs = {one["output"]: one for one in task["outputs"]}
    assert not task["in_pool"]
    assert outputs["half"]["made"] and outputs["half"]["by_hand"]
    assert outputs["half"]["flows"] == [1]
    assert not outputs["succeeded"]["by_hand"] and not outputs["failed"]["made"]
    with run.answering():
        assert tidewheel("remove", "1/prep").status == 0
    [task] = tidewheel("show", "1/prep", "--json").json["tasks"]
    assert not any(one["by_hand"] for one in task["outputs"])


def test_prerequisites_are_shown_with_the_state_of_each_parent(tidewheel):
    half_done(tidewheel)
    [task] = tidewheel("show", "1/post", "--json").json["tasks"]
    [arrow] = task["prerequisites"]
    assert (arrow["text"], arrow["satisfied"]) == ("1/model_a & 1/model_b", False)
    atoms = {one["id"]: (one["state"], one["parent"]) for one in arrow["atoms"]}
    assert atoms == {"1/model_a": ("lost", "failed"), "1/model_b": ("open", "running")}
    [first] = tidewheel("show", "1/prep", "--json").json["tasks"]
    [before] = first["prerequisites"][0]["atoms"]
    assert (before["id"], before["state"], before["before_start"]) == ("0/post", "true", True)


RETRIES = """
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        execution retry delays = PT1H
    [[b]]
"""


def test_a_failure_with_a_retry_left_is_no_output(tidewheel):
    started(tidewheel, RETRIES, "retries").fails("1/a")
    [task] = tidewheel("show", "1/a", "--json").json["tasks"]
    assert (task["state"], task["remarks"], task["try"]) == ("waiting", ["retrying"], 2)
    made = {one["output"] for one in task["outputs"] if one["made"]}
    assert made == {"submitted", "started"}
    assert task["submissions"][0]["status"] == "failed"


CLOCKS = """
[scheduling]
    initial cycle point = 20900101T00Z
    [[xtriggers]]
        late = wall_clock()
        early = wall_clock(offset=-P100Y)
    [[graph]]
        R1 = '''
            @late => a
            @early => b
        '''
[runtime]
    [[a, b]]
"""


def test_an_xtrigger_that_a_task_did_without_is_told_from_one_that_it_waited_for(tidewheel):
    a, b = "20900101T0000Z/a", "20900101T0000Z/b"
    run = started(tidewheel, CLOCKS, "clocks")

    def xtrigger(one):
        [task] = tidewheel("show", one, "--json").json["tasks"]
        [found] = task["xtriggers"]
        return found["label"], found["satisfied"], found["by_hand"]

    assert [xtrigger(a), xtrigger(b)] == [("late", False, False), ("early", False, False)]
    [reason] = tidewheel("why", a, "--json").json["tasks"][0]["reasons"]
    assert reason["until"] == "2090-01-01T00:00:00Z" and reason["passes"]
    told = tidewheel("why", a).out
    assert f"{a} waits for the xtrigger late until 2090-01-01T00:00:00Z" in told
    assert "(clears on its own, in " in told
    assert "- late  wall_clock  at 2090-01-01 00:00:00" in tidewheel("show", a).out
    run.happens(events.XtriggerSatisfied("early", (run.key(b),), NOW)).succeeds(b)
    with run.answering():
        assert tidewheel("trigger", run.name, a, b).status == 0
    run.succeeds(a, b)
    assert [xtrigger(a), xtrigger(b)] == [("late", True, True), ("early", True, False)]
    assert "+ late  wall_clock, by hand" in tidewheel("show", a).out


def test_submissions_are_shown_with_times_ends_and_logs(tidewheel):
    run = half_done(tidewheel)
    run.writes_log("1/model_a", "job.err", "no space left\n")
    [task] = tidewheel("show", "1/model_a", "--json").json["tasks"]
    [submission] = task["submissions"]
    assert (submission["submit"], submission["status"]) == (1, "failed")
    assert submission["error"] == "the disk is full"
    assert submission["ended_at"] is not None
    [attempt] = submission["attempts"]
    assert (attempt["ended_by"], len(attempt["logs"])) == ("fail", 1)
    assert attempt["logs"][0].endswith("log/job/1/model_a/01/job.err")
    assert "MODELS" in tidewheel("show", "1/model_a").out


def test_a_name_alone_shows_the_task_wherever_it_is(tidewheel):
    half_done(tidewheel)
    page = tidewheel("show", "forecast", "model_a", "--json").json
    assert [one["id"] for one in page["tasks"]] == ["1/model_a"]
    page = tidewheel("show", "1/MODELS", "--json").json
    assert [one["id"] for one in page["tasks"]] == ["1/model_a", "1/model_b"]
    page = tidewheel("show", "*:failed", "--json").json
    assert [one["id"] for one in page["tasks"]] == ["1/model_a"]
    assert "none of them is expired" in tidewheel("show", "*/prep:expired").err


# ---- why ----


def test_why_says_every_reason_whether_it_passes_and_what_would_help(tidewheel):
    run = started(tidewheel)
    [task] = tidewheel("why", "1/post", "--json").json["tasks"]
    assert [(one["text"], one["passes"]) for one in task["reasons"]] == [
        ("1/post needs 1/model_a:succeeded; 1/model_a has not run", True),
        ("1/post needs 1/model_b:succeeded; 1/model_b has not run", True),
    ]
    assert task["reasons"][0]["commands"] == [
        f"tidewheel set {run.name} 1/post --pre 1/model_a:succeeded"
    ]
    shown = tidewheel("why", "forecast", "1/post").out
    assert "1/model_a has not run (clears on its own)" in shown


def test_why_of_a_task_that_succeeded_asks_for_no_action(tidewheel):
    run = started(tidewheel).succeeds("1/prep")
    shown = tidewheel("why", run.name, "1/prep").out
    assert "1/prep succeeded in flow 1\n" in shown and "needs action" not in shown
    again = "# run it again, and then everything after it"
    assert f"tidewheel trigger {run.name} 1/prep --reflow  {again}" in shown


def test_the_command_that_why_names_works(tidewheel):
    run = started(tidewheel).fails("1/prep")
    reason, job = tidewheel("why", "1/prep", "--json").json["tasks"][0]["reasons"]
    assert not reason["passes"]
    assert job["text"].startswith("its last job: ")
    assert job["commands"] == [f"tidewheel log {run.name} 1/prep --err"]
    with run.answering():
        program, *words = reason["commands"][0].split()
        assert program == "tidewheel"
        assert tidewheel(*words).status == 0
    assert tidewheel("show", "--json").json["run"]["status"] == "running"


SHORT = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        {recurrence} = \"\"\"
            a?
            a:fail? => mend
        \"\"\"
[runtime]
    [[a, mend]]
"""


@pytest.mark.parametrize(("recurrence", "points"), [("P1", ("1", "2")), ("R1", ("1",))])
def test_why_says_how_a_completed_run_is_reopened(tidewheel, recurrence, points):
    flow = SHORT.format(recurrence=recurrence)
    if recurrence == "R1":
        flow = flow.replace("final cycle point = 2", "final cycle point = 1")
    run = started(tidewheel, flow).succeeds(*(f"{point}/a" for point in points)).is_let_go()
    assert tidewheel("show", "--json").json["run"]["status"] == "completed"
    mend = tidewheel("why", "1/mend", "--json").json["tasks"][0]["reasons"]
    assert mend[-1]["commands"] == [f"tidewheel trigger {run.name} 1/mend"]
    assert mend[-1]["actions"] == [{"verb": "trigger", "ids": ["1/mend"]}]
    kept = tidewheel("trigger", "1/mend")
    assert kept.status == 0, "as it was offered"
    assert f"tidewheel run {run.name}" in kept.out
    said = "1 command waits and is carried out when the run resumes"
    shown = tidewheel("why", "1/mend").out
    assert f"{run.name} is completed, and no scheduler has taken it yet; {said}" in shown
    for page in (tidewheel("runs").out, tidewheel("show").out):
        assert f"{said}; resume it: tidewheel run {run.name}" in page
    assert tidewheel("show", "--json").json["run"]["kept"] == 1
    assert ("--fcp POINT" in mend[0]["text"]) == (recurrence == "P1")
    assert "trigger, set and release reopen it" in mend[0]["text"]


# ---- tree ----


def test_the_tree_has_points_families_tasks_and_submissions(tidewheel):
    half_done(tidewheel)
    lines = tidewheel("tree").out.splitlines()
    assert lines[0] == "forecast/run1  running"
    assert lines[1].startswith("1  1 running, 1 preparing")
    [model] = [line for line in lines if "model_a" in line]
    assert model.startswith("│  ├─ model_a  failed  [01 failed")
    assert "├─ MODELS" in lines
    assert lines[-1] == "└─ prep  waiting (blocked)"


@pytest.mark.req("R001-50")
def test_the_window_is_everything_within_some_edges_of_the_pool(tidewheel):
    started(tidewheel, CHAIN, "chain").succeeds("1/a")

    def seen(edges):
        page = tidewheel("tree", "--window", str(edges), "--json").json
        tasks = [task for point in page["points"] for task in point["children"]]
        return {one["id"]: (one["distance"], one["state"]) for one in tasks}

    nearest = seen(0)
    assert nearest["1/b"] == (0, "preparing")
    assert "1/a" not in nearest
    near = seen(1)
    assert near["1/a"] == (1, "succeeded")  # the past, from history
    assert near["1/c"] == (1, "future")  # the future, from the graph
    assert "2/c" not in near
    assert seen(2)["2/c"] == (2, "future")


@pytest.mark.req("R001-51")
def test_a_task_without_edges_is_found_by_its_name_and_by_its_point(tidewheel):
    started(tidewheel, CHAIN, "chain").succeeds("1/isolated")

    def ids(*words):
        page = tidewheel("tree", "chain", *words, "--json").json
        return [task["id"] for point in page["points"] for task in point["children"]]

    assert ids("isolated") == ids("*/iso*") == ids("iso*")
    assert "1/isolated" in ids("isolated")
    assert ids("7") == ["7/a", "7/b", "7/c", "7/isolated"]


# ---- log ----


def test_logs_of_jobs_and_of_the_run_are_printed(tidewheel):
    run = half_done(tidewheel)
    run.writes_log("1/model_a", "job.out", "one\ntwo \x1b[2J\n")
    run.writes_log("1/model_a", "job.err", "bad\n")
    asked = [
        ["log", "1/model_a"],
        ["log", "forecast//1/model_a", "--err"],
        ["log", "1/model_a/1", "--file", "e"],
        ["log", "1/model_a", "-f"],
    ]
    shown = "one\ntwo \\x1b[2J\n"
    assert [one.out for one in answers(tidewheel, asked)] == [shown, "bad\n", "bad\n", shown]
    assert tidewheel("log", "1/model_a", "--path").out.endswith("/1/model_a/01/job.out\n")
    folder = tidewheel.state / "runs" / run.name / "log" / "scheduler"
    folder.mkdir(parents=True)
    (folder / "log").write_text("INFO - started\n")
    assert tidewheel("log").out == "INFO - started\n"


def test_the_log_of_a_run_leaves_out_debug_lines_until_they_are_asked_for(tidewheel):
    run = half_done(tidewheel)
    run.writes_log("1/model_a", "job.out", "DEBUG: of a job, which is shown whole\n")
    folder = tidewheel.state / "runs" / run.name / "log" / "scheduler"
    folder.mkdir(parents=True)
    lines = ["INFO - begun", "DEBUG - queued", "    as told", "ERROR - failed", "    twice"]
    (folder / "log").write_text("".join(f"{line}\n" for line in lines))
    shown = tidewheel("log", "forecast")
    assert shown.out.splitlines() == ["INFO - begun", "ERROR - failed", "    twice"]
    assert shown.err == "2 DEBUG lines are left out; to see them, add --level debug\n"
    whole = tidewheel("log", "forecast", "--level", "debug")
    assert (whole.out.splitlines(), whole.err) == (lines, "")
    assert tidewheel("log", "forecast", "--json").json["text"].splitlines() == lines
    assert "which is shown whole" in tidewheel("log", "1/model_a").out


def test_a_text_is_searched_in_the_logs_of_a_run_and_of_all_its_jobs(tidewheel):
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    run.writes_log("1/prep", "job.out", "ok\nCFL violated at 3\n")
    run.writes_log("1/model_a", "job.err", "cfl violated at 17 \x1b[2J\x08\n")
    folder = tidewheel.state / "runs" / run.name / "log" / "scheduler"
    folder.mkdir(parents=True)
    lines = ("DEBUG - cfl violated, says a job", "INFO - begun", "ERROR - failed", "    twice")
    (folder / "log").write_text("".join(f"2026-11-18T05:00:00Z {line}\n" for line in lines[:3]))
    with (folder / "log").open("a") as log:
        log.write(f"{lines[3]}\n")
    whole = tidewheel("log", "forecast", "--search", "cfl violated")
    assert whole.out.splitlines() == [
        "log:1: 2026-11-18T05:00:00Z DEBUG - cfl violated, says a job",
        "1/model_a/01 err:1: cfl violated at 17 \\x08",
        "1/prep/01 out:2: CFL violated at 3",
    ]
    assert whole.err.startswith("3 lines in 3 logs, ")
    for words, found in (
        (["--search", "cfl", "--task", "prep"], ["1/prep/01 out:2: CFL violated at 3"]),
        (
            ["--search", "CFL", "--case", "--task", "1/*"],
            ["1/prep/01 out:2: CFL violated at 3"],
        ),
        (["1/prep", "--search", "v*3", "--glob"], ["1/prep/01 out:2: CFL violated at 3"]),
        (["--level", "error"], ["2026-11-18T05:00:00Z ERROR - failed", "    twice"]),
        (["--search", "twice", "--level", "error"], ["log:4:     twice"]),
        (["--search", "nowhere"], []),
    ):
        assert tidewheel("log", "forecast", *words).out.splitlines() == found, words
    told = tidewheel("log", "forecast", "--search", "cfl", "--limit", "1", "--json").json
    assert (len(told["hits"]), told["done"]) == (1, False)
    for words in (["--search", "x", "-f"], ["--task", "prep"], ["--level", "loud"]):
        assert tidewheel("log", "forecast", *words).status == 2, words
    refused = tidewheel("log", "forecast", "1/prep", "--search", "x", "--task", "y")
    assert refused.status == 2
    assert "give the task 1/prep or --task y, not both" in refused.err


def test_a_log_that_is_not_there_is_refused_with_what_is(tidewheel):
    run = half_done(tidewheel)
    run.writes_log("1/model_a", "job.err", "bad\n")
    words_and_refusals = [
        (["log", "1/model_a"], "It has job.err"),
        (["log", "1/post"], "tidewheel why forecast/run1 1/post"),
        (["log", "1/model_a", "--file", "stdin"], "It has out, err"),
        (["log", "1/model_a", "-s", "7"], "has no submission 7\n  Its submissions: 1"),
    ]
    told = answers(tidewheel, [words for words, _ in words_and_refusals])
    for (_, said), answer in zip(words_and_refusals, told, strict=True):
        assert (answer.status, said in answer.err) == (2, True)


# ---- the rest ----


def test_history_says_who_asked_what_and_what_became_of_it(tidewheel):
    run = started(tidewheel)
    with run.answering():
        tidewheel("hold", "2/prep")
        tidewheel("set", "1/post", "--flow", "7")
    commands = tidewheel("show", "--history", "--json").json["commands"]
    assert [(one["verb"], one["refused"]) for one in commands] == [
        ("set", "there is no flow 7; known flows: 1"),
        ("hold", None),
    ]
    assert all(one["who"] and one["at"] for one in commands)
    shown = tidewheel("show", "--history").out
    assert "hold 2/prep" in shown
    assert "refused: there is no flow 7" in shown


def test_broadcasts_are_listed(tidewheel):
    run = started(tidewheel)
    assert "no settings are broadcast" in tidewheel("broadcast").err
    run.broadcasts(StoredBroadcast("1", "prep", "[environment]X", "2"))
    assert tidewheel("broadcast", "--json").json["broadcasts"] == [
        {"point": "1", "namespace": "prep", "setting": "[environment]X", "value": "2"}
    ]


def test_a_terminal_gets_colour_and_a_pipe_does_not(tidewheel):
    half_done(tidewheel)
    assert "\x1b[34m▶ running" in tidewheel.on_terminal("tree").out
    assert "\x1b[34m▶ running" in tidewheel.on_terminal("show").out
    assert "\x1b" not in tidewheel("show").out


def test_an_evil_name_of_a_folder_reaches_no_terminal(tidewheel):
    run = started(tidewheel)
    run.writes_log("1/prep", "job.out", "x")
    answer = tidewheel("show", "--json", "1/prep\x1b[2J")
    assert "\x1b" not in answer.err
    assert json.loads(answer.err)["error"]["code"] == "refused"
