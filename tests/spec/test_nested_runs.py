"""A task that is a run of another workflow, under virtual time (issue 19)."""

from dataclasses import fields
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tidewheel import Workflow
from tidewheel.core.graph.checks.names import OF_JOBS
from tidewheel.core.graph.definition import NodeDef
from tidewheel.core.graph.findings import Findings, InvalidDefinition
from tidewheel.core.operator import nested
from tidewheel.core.operator.nested import DEPTH_MAX
from tidewheel.core.operator.verbs import (
    Broadcast,
    Hold,
    Kill,
    Pause,
    Release,
    Reload,
    Remove,
    Resume,
    Stop,
    Trigger,
)
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.items import node_fields
from tidewheel.formats.flow_cylc.workflow import LoadOptions, load_workflow
from tidewheel.services.run_service import RunService

CHILD = """
[scheduling]
    [[graph]]
        R1 = x => y
[runtime]
    [[x, y]]
        script = true
"""


def parent(workflow: str = "./post/", more: str = "", graph: str = "a => post => z") -> str:
    return f"""
[scheduling]
    [[graph]]
        R1 = {graph}
[runtime]
    [[a, z]]
        script = true
    [[post]]
        workflow = {workflow}
{more}
"""


@pytest.fixture
def flow(tmp_path: Path):
    made: list[DrivenRun] = []

    def make(text: str, **options: object) -> DrivenRun:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        options.setdefault("files", {"post/flow.cylc": CHILD})
        made.append(DrivenRun(folder, text, **options))
        return made[-1]

    yield make
    for run in made:
        run.close()


def test_a_task_is_a_run_of_a_folder_and_ends_as_that_run_ends(flow):
    run = flow(parent())
    run.ends("1/a")
    assert run.running == []
    post = run.nested("1/post/01")
    assert (post.workflow, post.status) == ("flow/post", "running")
    assert Path(run.nested("1/post/01").folder).name == "post"  # where a reload finds it
    run.ends("1/post/01/1/x")
    assert run.status == "running"
    run.ends("1/post/01/1/y")
    assert run.nested("1/post/01").status == "completed"
    assert run.running == ["1/z/1"]
    assert run.ends("1/z").status == "completed"


def test_a_task_is_a_run_of_a_registered_workflow_of_a_version(flow):
    run = flow(parent("imaging/1.2", graph="post => z"))
    assert "no workflow 'imaging' is registered" in run.log
    run.registers("imaging", "1.2", CHILD).registers("imaging", "2.0", CHILD)
    run.gives(Trigger(ids=("1/post",)))
    assert run.nested("1/post/02").folder == "imaging/1.2 of the registry"
    run.ends("1/post/02/1/x").ends("1/post/02/1/y").ends("1/z")
    assert run.status == "completed"


def test_a_version_that_is_not_there_is_a_failure_to_submit_that_names_those_that_are(flow):
    run = flow(parent("imaging/1.3"))
    run.registers("imaging", "1.2", CHILD).ends("1/a")
    assert "imaging/1.3" in run.log and "1.2" in run.log
    assert run.status == "stalled"


@pytest.mark.parametrize("everywhere", [False, True])
def test_restart_at_every_step_is_no_restart(flow, everywhere):
    run = flow(parent())
    crash = run.crash_everywhere if everywhere else run.crash
    for task in ("1/a", "1/post/01/1/x", "1/post/01/1/y", "1/z"):
        crash()
        run.ends_unheard(task)
        crash()
    assert run.status == "completed"
    assert run.submitted == ["1/a/01", "1/post/01/1/x/01", "1/post/01/1/y/01", "1/z/01"]


def test_a_failure_is_tried_again_as_a_new_run(flow):
    more = "        execution retry delays = PT1M"
    child = CHILD.replace(
        "R1 = x => y", "R1 = x => y\n[scheduler]\n[[events]]\nstall timeout = PT0S"
    )
    run = flow(parent(more=more), files={"post/flow.cylc": child})
    run.ends("1/a").fails("1/post/01/1/x")
    assert run.nested("1/post/01").status == "stalled"
    assert run.view.status == "running"
    run.waits(60.0)
    run.ends("1/post/02/1/x").ends("1/post/02/1/y").ends("1/z")
    assert run.status == "completed"
    assert "its run flow/run1/1/post/01: stalled" in run.log


def test_a_run_that_is_stalled_keeps_its_task_running_until_it_is_mended(flow):
    run = flow(parent())
    run.ends("1/a").fails("1/post/01/1/x")
    assert (run.nested("1/post/01").status, run.status) == ("stalled", "running")
    told = "[1/post/01:running] (received)its run flow/run1/1/post/01: stalled: 1/x failed"
    assert run.log.count(told) == 1
    run.crash_everywhere()
    assert run.log.count(told) == 1
    run.tells("1/post/01", Trigger(ids=("1/x",)))
    run.ends("1/post/01/1/x").ends("1/post/01/1/y").ends("1/z")
    assert run.status == "completed"


def test_a_run_in_which_nothing_ran_is_no_success(flow):
    nothing = CHILD.replace("R1 = x => y", "R1 = x:fail => y\n").replace(
        "[scheduling]", "[scheduling]\n    initial cycle point = 1\n    final cycle point = 1"
    )
    run = flow(parent(), files={"post/flow.cylc": nothing.replace("R1 =", "R1/2 =")})
    run.ends("1/a")
    assert run.status == "stalled"
    assert "1/z" not in run.running


# ---- values ----


def test_what_was_lost_in_a_run_is_told_and_counted_by_the_run_around_it(flow):
    post = CHILD.replace("x => y", '"""x => y\n x:fail => m"""').replace("[x, y]", "[x, y, m]")
    run = flow(parent(), files={"post/flow.cylc": post}).ends("1/a").fails("1/post/01/1/x")
    run.ends("1/post/01/1/m").crash().ends("1/z")
    assert "(received)its run flow/run1/1/post/01 completed with 1 lost" in run.log
    assert run.view.reason == "completed, 1 lost"


def test_inputs_are_variables_of_the_template_and_values_come_back_by_task(flow):
    child = """#!jinja2
    [scheduling]
        [[graph]]
            R1 = x => y
    [runtime]
        [[x, y]]
            script = echo {{ FILE }} {{ LEVELS[1] }} {{ TIDEWHEEL_PARENT_POINT }}
    """
    more = """
        [[[inputs]]]
            FILE = a.file
            LEVELS = a.levels
    [[z]]
        [[[inputs]]]
            IMAGE = post.y.image
"""
    run = flow(parent(more=more), files={"post/flow.cylc": child})
    run.ends("1/a", file="obs.nc", levels=[10, 50])
    assert "echo obs.nc 50 1" in run.jobs["1/post/01/1/x/01"]
    run.ends("1/post/01/1/x", n=1).ends("1/post/01/1/y", image="i.fits")
    assert "IMAGE=i.fits" in run.jobs["1/z/01"]
    assert '{"post": {"x": {"n": 1}, "y": {"image": "i.fits"}}}' in run.jobs["1/z/01"]


def test_a_value_that_is_missing_is_a_failure_to_submit(flow):
    run = flow(parent(more="        [[[inputs]]]\n            FILE = a.file"))
    run.ends("1/a", other=1)
    assert "it takes FILE from a.file" in run.log
    assert run.status == "stalled"


def test_values_that_are_too_many_are_not_passed_on_and_that_is_told(flow):
    run = flow(parent())
    run.ends("1/a").ends("1/post/01/1/x", text="x" * 60_000)
    run.ends("1/post/01/1/y", text="y" * 60_000)
    assert "are not passed on" in run.log
    assert run.running == ["1/z/1"]


# ---- what goes down ----


def test_killing_the_task_aborts_the_run_for_good(flow):
    run = flow(parent(more="        execution retry delays = PT1M"))
    run.ends("1/a").starts("1/post/01/1/x")
    run.gives(Kill(ids=("1/post",)))
    assert run.nested("1/post/01").status == "stopping"
    run.fails("1/post/01/1/x")
    child = run.nested("1/post/01")
    assert (child.status, child.is_aborted) == ("stopped", True)
    assert run.waits(120.0).status == "stalled"  # held, and not tried again
    run.gives(Release(ids=("1/post",)))
    run.gives(Trigger(ids=("1/post",)))
    run.ends("1/post/02/1/x").ends("1/post/02/1/y").ends("1/z")
    assert run.status == "completed"


def test_a_kill_is_a_kill_although_the_scheduler_of_the_run_dies_before_its_end(flow):
    run = flow(parent(more="        execution retry delays = PT1M"))
    run.ends("1/a").starts("1/post/01/1/x")
    run.gives(Kill(ids=("1/post",)))
    run.crash_everywhere().fails("1/post/01/1/x")
    assert run.nested("1/post/01").is_aborted
    assert run.waits(120.0).status == "stalled"


def test_a_run_is_killed_before_anybody_has_taken_it(flow):
    run = flow(parent())
    run.takes_nested = False
    run.ends("1/a")
    assert run.nested("1/post/01").status == "created"
    run.gives(Kill(ids=("1/post",)))
    run.takes_nested = True
    run.goes_on()
    assert run.nested("1/post/01").is_aborted
    assert "1/post/01/1/x/01" not in run.submitted


@pytest.mark.parametrize("state", ["paused", "stalled", "stopping"])
def test_a_run_is_killed_in_whatever_state_it_is(flow, state):
    run = flow(parent())
    run.ends("1/a").starts("1/post/01/1/x")
    if state == "paused":
        run.gives(Hold(ids=("1/post",)))
    elif state == "stalled":
        run.fails("1/post/01/1/x")
    else:
        run.tells("1/post/01", Stop(mode="clean"))
    assert run.nested("1/post/01").status == state
    run.gives(Kill(ids=("1/post",)))
    if state != "stalled":
        run.fails("1/post/01/1/x")
    assert run.nested("1/post/01").is_aborted
    assert run.status == "stalled"


def test_a_task_that_is_removed_with_kill_takes_its_run_along(flow):
    run = flow(parent())
    run.ends("1/a").starts("1/post/01/1/x")
    run.gives(Remove(ids=("1/post",), kill=True))
    run.fails("1/post/01/1/x")
    assert run.nested("1/post/01").is_aborted
    assert run.status == "completed"


def test_a_task_that_a_reload_made_a_job_is_still_killed_as_the_run_that_it_is(flow):
    run = flow(parent())
    run.ends("1/a").starts("1/post/01/1/x")
    other = parent().replace("workflow = ./post/", "script = true")
    run.gives(Reload(definition=run.reads(other)))
    run.crash().gives(Kill(ids=("1/post",)))
    run.fails("1/post/01/1/x")
    assert run.nested("1/post/01").is_aborted


def test_in_other_modes_such_a_task_is_played(flow):
    run = flow(parent(), mode="skip")
    assert run.status == "completed"
    assert run.look(lambda store, _: store.runs(nested=True))[0].parent is None


def test_a_limit_group_counts_a_run_as_one_task(flow):
    queues = "[scheduling]\n    [[queues]]\n        [[[default]]]\n            limit = 1\n"
    text = parent(graph="post & z").replace("[scheduling]\n", queues, 1)
    run = flow(text)
    begun = ["1/post/01/1/x/01"] if "1/z/01" not in run.submitted else ["1/z/01"]
    assert run.submitted == begun


def test_stop_with_kill_goes_down_and_a_clean_stop_waits(flow):
    run = flow(parent())
    run.ends("1/a").starts("1/post/01/1/x")
    run.gives(Stop(mode="clean"))
    assert (run.status, run.nested("1/post/01").status) == ("stopping", "running")
    run.gives(Stop(mode="kill"))
    run.fails("1/post/01/1/x")
    assert run.status == "stopped"
    assert run.nested("1/post/01").is_aborted


def test_stop_now_leaves_the_run_and_hears_of_its_end_when_it_goes_on(flow):
    run = flow(parent())
    run.ends("1/a").starts("1/post/01/1/x")
    run.gives(Stop(mode="now"))
    run.ends("1/post/01/1/x").ends("1/post/01/1/y")
    assert run.status == "stopped"
    run.carries_on().ends("1/z")
    assert run.status == "completed"


def test_pause_and_resume_go_down_through_every_level(flow):
    middle = CHILD.replace("script = true", "workflow = ./deep/")
    files = {"post/flow.cylc": middle, "post/deep/flow.cylc": CHILD}
    run = flow(parent(), files=files)
    run.ends("1/a")
    names = ("1/post/01", "1/post/01/1/x/01")
    run.gives(Pause())
    assert [run.nested(name).status for name in names] == ["paused", "paused"]
    run.crash_everywhere()
    assert [run.nested(name).status for name in names] == ["paused", "paused"]
    run.ends("1/post/01/1/x/01/1/x")
    assert "1/post/01/1/x/01/1/y/01" not in run.submitted
    run.gives(Resume())
    assert [run.nested(name).status for name in names] == ["running", "running"]
    assert "1/post/01/1/x/01/1/y/01" in run.submitted


def test_while_the_task_is_held_its_run_is_paused(flow):
    run = flow(parent())
    run.ends("1/a")
    run.gives(Hold(ids=("1/post",)))
    assert run.nested("1/post/01").status == "paused"
    run.gives(Release(ids=("1/post",)))
    assert run.nested("1/post/01").status == "running"


def test_the_time_limit_of_the_task_stops_its_run(flow):
    run = flow(parent(more="        execution time limit = PT1M"))
    run.ends("1/a").starts("1/post/01/1/x").waits(61.0)
    run.fails("1/post/01/1/x")
    assert "longer than the limit of 1/post" in run.nested("1/post/01").reason
    assert run.status == "stalled"


# ---- bounds and rights ----


def test_a_workflow_that_runs_itself_ends_at_a_bounded_depth(flow):
    run = flow(parent("imaging/1", graph="post"))
    run.registers("imaging", "1", parent("imaging/1", graph="post"))
    run.gives(Trigger(ids=("1/post",)))
    deepest = "/".join(["1/post/02", *["1/post/01"] * (DEPTH_MAX - 1)])
    assert run.nested(deepest).status == "stalled"
    with pytest.raises(Refused):
        run.nested(f"{deepest}/1/post/01")


def test_no_more_runs_than_a_scheduler_can_hold_are_begun_in_one(flow, monkeypatch):
    monkeypatch.setattr(nested, "OPEN_MAX", 2)
    more = "    [[p1, p2, p3]]\n"
    run = flow(parent(graph="p1 & p2 & p3", more=more + "        workflow = ./post/"))
    assert sum(name.endswith("/1/x/01") for name in run.submitted) == 2
    assert "2 runs are open in flow/run1 already" in run.log


def test_a_run_sees_no_workflow_of_others_and_gives_its_own_sight_to_what_it_runs(flow):
    run = flow(parent("team-b/secret/1"), sees=("flow", "team-a"))
    run.registers("team-b/secret", "1", CHILD).ends("1/a")
    assert "there is no registered workflow 'team-b/secret' that this run may use" in run.log
    ours = flow(parent("team-a/own/1"), sees=("flow", "team-a"))
    ours.registers("team-a/own", "1", CHILD, sees=("team-a", "team-c")).ends("1/a")
    assert ours.nested("1/post/01").sees == ("team-a",)
    assert ours.nested("1/post/01").queue == ours.view.queue


def test_what_jobs_may_do_is_no_more_than_in_the_parent(flow):
    run = flow(parent(), job_commands=False)
    run.ends("1/a")
    assert run.nested("1/post/01").options.job_commands is False


# ---- why ----


def why(run, *ids):
    arguments = {"run": run.view.name, "ids": list(ids)}

    def ask(store, _):
        return RunService(store, run.home).look("why", arguments)

    return run.look(ask)["tasks"][0]["reasons"]


def test_why_reaches_a_run_that_is_stalled_two_levels_down(flow):
    middle = CHILD.replace("script = true", "workflow = ./deep/")
    run = flow(parent(), files={"post/flow.cylc": middle, "post/deep/flow.cylc": CHILD})
    run.ends("1/a").fails("1/post/01/1/x/01/1/x")
    reasons = why(run, "1/post")
    deep = "flow/run1/1/post/01/1/x/01"
    texts = [one["text"] for one in reasons]
    stuck = "running, and something in it is stuck"
    assert f"1/post is the run flow/run1/1/post/01, {stuck}" == texts[0]
    assert (reasons[0]["passes"], reasons[0]["needs_action"]) == (False, True)
    assert f"1/x is the run {deep}, stalled: 1/x failed, incomplete" in texts
    last = next(one for one in reasons if one["text"].startswith(f"{deep}: 1/x failed"))
    assert not last["passes"]
    assert last["commands"][0] == f"tidewheel trigger {deep} 1/x"
    assert all(one["actions"] == [] for one in reasons[-2:])  # not for the run that was asked


def test_why_says_who_paused_the_run_of_a_task(flow):
    run = flow(parent())
    run.ends("1/a").gives(Hold(ids=("1/post",)))
    held = [one for one in why(run, "1/post") if one["text"] == "1/post is held"]
    assert [one["commands"] for one in held] == [["tidewheel release flow/run1 1/post"]]
    assert not any("resume" in line for one in why(run, "1/post") for line in one["commands"])
    run.gives(Release(ids=("1/post",)))
    run.tells("1/post/01", Pause())
    lines = [line for one in why(run, "1/post") for line in one["commands"]]
    assert "tidewheel resume flow/run1/1/post/01" in lines


def test_the_outermost_run_is_told_once_of_a_run_that_stalls_two_levels_down(flow):
    middle = CHILD.replace("script = true", "workflow = ./deep/")
    run = flow(parent(), files={"post/flow.cylc": middle, "post/deep/flow.cylc": CHILD})
    run.ends("1/a").fails("1/post/01/1/x/01/1/x")
    deep = "flow/run1/1/post/01/1/x/01"
    told = f"[1/post/01:running] (received)its run {deep}: stalled: 1/x failed, incomplete"
    assert run.log.count(told) == 1
    run.crash_everywhere()
    assert run.log.count(told) == 1
    assert run.status == "running"


def test_why_of_a_task_after_a_run_names_what_is_stalled_in_it(flow):
    run = flow(parent())
    run.ends("1/a").fails("1/post/01/1/x")
    first, *others = why(run, "1/z")
    assert first["text"] == "1/z needs 1/post:succeeded; 1/post is active"
    assert not first["passes"]
    inside = "flow/run1/1/post/01"
    assert [one["text"] for one in others][:2] == [
        f"1/post is the run {inside}, stalled: 1/x failed, incomplete",
        f"{inside}: 1/x failed and is incomplete: it needs the output succeeded",
    ]
    run.tells("1/post/01", Trigger(ids=("1/x",)))
    assert [one["passes"] for one in why(run, "1/z")] == [True]


def test_why_says_that_nobody_has_taken_the_run_yet(flow):
    run = flow(parent())
    run.takes_nested = False
    run.ends("1/a")
    texts = [one["text"] for one in why(run, "1/post")]
    assert "1/post is the run flow/run1/1/post/01, created" in texts
    assert any("no scheduler has taken flow/run1/1/post/01 yet" in one for one in texts)


def test_why_names_how_the_last_run_ended_and_how_a_new_one_is_begun(flow):
    run = flow(parent())
    run.ends("1/a").tells("1/post/01", Stop(mode="now"))
    reasons = why(run, "1/post")
    texts = [one["text"] for one in reasons]
    assert any(
        one.startswith("1/post is the run flow/run1/1/post/01, stopped") for one in texts
    )
    assert "tidewheel trigger flow/run1 1/post" in reasons[0]["commands"]


def test_why_says_that_the_run_of_a_failed_task_was_carried_on_and_how_the_task_is_mended(flow):
    run = flow(parent())
    run.ends("1/a").tells("1/post/01", Stop(mode="now"))
    assert run.status == "stalled"
    run.tells("1/post/01", Trigger(ids=("1/x",)))
    carried_on = "the run flow/run1/1/post/01 was resumed after 1/post had failed"
    told = [one for one in why(run, "1/post") if carried_on in one["text"]]
    assert [(one["passes"], one["commands"][0]) for one in told] == [
        (False, "tidewheel show flow/run1/1/post/01")
    ]
    run.ends("1/post/01/1/x").ends("1/post/01/1/y")
    assert run.nested("1/post/01").status == "completed"
    reasons = why(run, "1/post")
    (told,) = [one for one in reasons if carried_on in one["text"]]
    assert told["text"].endswith("and has completed: this does not change 1/post, so set it")
    assert not told["passes"]
    assert told["commands"] == [
        "tidewheel set flow/run1 1/post",
        "tidewheel show flow/run1/1/post/01",
    ]
    assert not [one for one in reasons if "1/post is the run" in one["text"]]


def test_a_run_that_takes_longer_to_read_than_its_lease_lasts_is_kept(flow):
    run = flow(parent())
    run.takes_nested = False
    run.ends("1/a")
    run.takes_nested = True
    run.way_to_store.delays("definition", before=25.0)
    renewed = run.way_to_store.calls["renew_run"]
    run.waits_in_the_middle(4.0, times=7)
    assert run.way_to_store.calls["renew_run"] - renewed >= 5
    assert (run.nested("1/post/01").status, run.nested("1/post/01").epoch) == ("running", 1)


def test_a_run_that_waits_for_a_stalled_one_shows_it_among_its_causes(flow):
    run = flow(parent())
    run.ends("1/a")

    def show(store, _):
        return RunService(store, run.home).look("show", {"run": "flow/run1"})

    assert run.look(show)["causes"] == []
    run.fails("1/post/01/1/x")
    (cause,) = run.look(show)["causes"]
    assert cause["id"] == "1/post"


@pytest.mark.parametrize(
    "setting", ["script=false", "pre-script=true", "[environment]A=1", "[directives]-N=1"]
)
def test_settings_of_jobs_cannot_be_broadcast_to_a_task_that_is_a_run(flow, setting):
    run = flow(parent())
    with pytest.raises(Refused, match="cannot be broadcast to post: it is a run of another"):
        run.gives(Broadcast(namespaces=("post",), settings=(setting,)))
    run.gives(Broadcast(settings=(setting,)))  # to all: others have jobs
    run.gives(Broadcast(namespaces=("post",), settings=("execution time limit=PT1H",)))


# ---- what is found before it runs ----

ROOT = "    [[root]]\n        pre-script = true\n        platform = x"


@pytest.mark.parametrize(
    ("workflow", "more", "code"),
    [
        ("./nowhere/", "", "bad-workflow"),
        ("/etc", "", "bad-workflow"),
        ("./", "", "bad-workflow"),
        ("..", "", "bad-workflow"),
        ("./post/../../x", "", "bad-workflow"),
        ("./post/", "        script = true", "two-works"),
        ("flow/1.0", "", "runs-itself"),
        ("./post/", "        pre-script = true", "run-without-job"),
        ("./post/", "        [[[environment]]]\n            A = 1", "run-without-job"),
        ("./post/", "        [[[directives]]]\n            -N = 1", "run-without-job"),
        ("./post/", "        platform = localhost", "run-without-job"),
        ("./post/", "        platform = localhost\n" + ROOT, "run-without-job"),
        ("./post/", ROOT, None),
    ],
)
def test_a_task_that_cannot_be_such_a_run_is_found_when_it_is_validated(
    tmp_path, workflow, more, code
):
    (tmp_path / "post").mkdir()
    (tmp_path / "post" / "flow.cylc").write_text(CHILD)
    (tmp_path / "flow.cylc").write_text(parent(workflow, more))
    findings = Findings()
    load_workflow(tmp_path, LoadOptions(now=0.0, name="flow"), findings)
    assert [one.code for one in findings.sorted()] == ([] if code is None else [code])


def test_what_only_jobs_have_is_called_as_in_flow_cylc():
    """A new field of a node is in the list, or means something to a run."""
    items = {
        f"{group}.{field}" if field else group: f"[{section}]{item}" if section else item
        for section, item, group, field in node_fields()
    }
    assert {path: items[path] for path in OF_JOBS} == OF_JOBS
    groups = {path.partition(".")[0] for path in OF_JOBS}
    whole = {"inputs", "outputs", "completion", "workflow", "run_mode", "retries", "skip"}
    whole |= {"time_limit_seconds", "meta", "events", "mail", "simulation", "polling"}
    whole |= {"until", "resources"}  # of stages, which are no runs
    said = {one.name for one in fields(NodeDef)} - {"name", "lineage", "parameters", "position"}
    assert groups | whole == said


def test_in_python_what_only_jobs_have_is_refused_for_a_run():
    flow = Workflow("flow")
    post = flow.task("post", workflow="imaging/1.2", environment={"A": "1"})
    with flow.cycle("R1"):
        flow.task("a", script="true") >> post
    with pytest.raises(InvalidDefinition, match="of post has no effect"):
        flow.compile()


def test_in_python_a_task_is_a_run_of_a_registered_workflow():
    flow = Workflow("flow")
    fetch = flow.task("fetch", script="true")
    post = flow.task("post", workflow="imaging/1.2", inputs={"FILE": "fetch.file"})
    with flow.cycle("R1"):
        fetch >> post
    compiled = flow.compile()
    node = compiled.graph.nodes["post"].definition
    assert (node.workflow, node.inputs) == ("imaging/1.2", (("FILE", "fetch.file"),))
