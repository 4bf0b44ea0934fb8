"""``tidewheel rehearse``, as somebody meets it who wants to know what a workflow would do."""

from xml.etree import ElementTree

import pytest

FLOW = '''
[scheduling]
    initial cycle point = 20300101T00Z
    final cycle point = {final}
    [[xtriggers]]
        data = echo(succeed=True):PT30S
    [[graph]]
        PT6H = """
            @data => prep => MODELS:succeed-all => post?
            post[-PT6H]? => prep
            post:fail? => mail
        """
[runtime]
    [[root]]
        script = false
    [[MODELS]]
        execution retry delays = PT10M
        [[[simulation]]]
            default run length = PT1H
    [[model_a, model_b]]
        inherit = MODELS
    [[prep, post, mail]]
'''


@pytest.fixture(autouse=True)
def flow(tidewheel):
    """Writes a workflow into the folder `flow`."""

    def write(text=FLOW, final="20300101T12Z"):
        folder = tidewheel.folder / "flow"
        folder.mkdir(exist_ok=True)
        (folder / "flow.cylc").write_text(text.format(final=final), encoding="utf-8")

    write()
    return write


def test_a_rehearsal_says_what_would_run_and_what_decides_its_length(tidewheel):
    shown = tidewheel("rehearse", "flow")
    assert shown.status == 0
    lines = shown.out.splitlines()
    assert lines[0].startswith("flow completed: 12 tasks in 3h 2m of virtual time, 2030-01-01")
    assert "assumed: xtrigger data (echo) is satisfied after 30 s" in lines
    assert ["model_a", "3", "0s", "1h"] in [line.split() for line in lines]
    assert any(
        "20300101T0600Z/prep" in one and "xtrigger, 30s after 20300101T0000Z/post" in one
        for one in lines
    )
    assert not tidewheel.state.exists(), "it needs no store"


def test_a_rehearsal_in_which_nothing_runs_exits_with_1_as_a_run_does(tidewheel, flow):
    flow(
        "[scheduling]\n    cycling mode = integer\n    initial cycle point = 1\n"
        "    final cycle point = 2\n    [[graph]]\n        P1 = a[+P9] => b\n        R1/3 = a\n"
        "[runtime]\n    [[a, b]]\n"
    )
    shown, run = tidewheel("rehearse", "flow"), tidewheel("run", "flow")
    assert (shown.status, run.status) == (1, 1)
    assert "completed without running anything" in shown.err
    assert tidewheel("rehearse", "flow", "--json").status == 1


def test_a_stall_is_explained_and_exits_with_1(tidewheel):
    shown = tidewheel("rehearse", "flow", "--fail", "20300101T06/model_a")
    assert shown.status == 1
    assert "flow stalled" in shown.out
    assert (
        "20300101T0600Z/model_a failed and is incomplete: it needs the output succeeded"
        in shown.out
    )
    assert "1 retry, 2 failed" in shown.out


def test_what_a_handled_failure_leaves_behind_is_named(tidewheel):
    shown = tidewheel("rehearse", "flow", "--fail", "20300101T12/post")
    assert (shown.status, "20300101T1200Z/mail" in shown.out) == (0, True)
    stalled = tidewheel("rehearse", "flow", "--fail", "20300101T00/post")
    assert stalled.status == 1
    assert (
        "20300101T0600Z/prep needs 20300101T0000Z/post:succeeded: 20300101T0000Z/post failed, "
        "handled by 20300101T0000Z/mail"
    ) in stalled.out


def test_lengths_and_slots_change_the_end(tidewheel):
    seconds = [
        tidewheel("--json", "rehearse", "flow", *options).json["makespan_seconds"]
        for options in (
            [],
            ["--length", "MODELS=2h"],
            ["--length", "model_a=20m", "--slots", "1"],
        )
    ]
    assert seconds == [10950.0, 21750.0, 14550.0]


def test_json_has_every_submission(tidewheel):
    answer = tidewheel("rehearse", "flow", "--json", "--until", "20300101T00").json
    assert answer["status"] == "stopped"
    assert answer["begins_at"] == "2030-01-01T00:00:00Z"
    last = answer["submissions"][-1]
    assert last["id"] == "20300101T0000Z/post"
    assert last["triggered_off"] == ["20300101T0000Z/model_a", "20300101T0000Z/model_b"]
    assert (last["ready_seconds"], last["start_seconds"], last["end_seconds"]) == (
        3640.0,
        3640.0,
        3650.0,
    )


def test_the_trigger_log_can_be_compared_with_other_engines(tidewheel):
    done = tidewheel("rehearse", "flow", "--compat", "cylc8", "--trigger-log", "log")
    assert (done.status, done.err) == (0, "written to log\n")
    lines = (tidewheel.folder / "log").read_text("utf-8").splitlines()
    assert lines[0] == "20300101T0000Z/prep -triggered off ['20291231T1800Z/post'] in flow 1"
    assert len(lines) == 12


def test_a_timeline_is_drawn_with_letters(tidewheel):
    shown = tidewheel("rehearse", "flow", "--timeline", "--fail", "*/model_a@1").out
    chart = shown.partition("|0s")[2].splitlines()[1:]
    bars = {line.split("  ")[0]: line for line in chart}
    assert bars["20300101T0000Z/model_a"].endswith("█✖")
    assert bars["20300101T0000Z/model_a #2"].endswith("█")
    assert bars["20300101T0000Z/model_b"].count("█") > 10


def test_a_picture_is_drawn_with_the_colours_of_the_palette(tidewheel):
    drawn = tidewheel("rehearse", "flow", "--svg", "plan.svg", "--fail", "*/model_a@1")
    assert drawn.status == 0
    root = ElementTree.parse(tidewheel.folder / "plan.svg").getroot()
    titles = [one.text for one in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "flow"
    assert "20300101T0000Z/model_a: +40s, 1h, failed, waited for parent" in titles
    assert {"#2e9e4f", "#d33f3f"} <= {one.get("fill") for one in root.iter()}


def test_a_workflow_without_an_end_is_played_for_some_points(tidewheel, flow):
    flow(FLOW.replace("final cycle point = {final}", ""))
    shown = tidewheel("rehearse", "flow")
    assert shown.status == 0
    assert "only the first 10 points are played, to 20300103T0600Z" in shown.err
    assert "flow stopped at the last point: 40 tasks" in shown.out


def test_a_terminal_sees_how_far_it_is_and_no_trace_of_it_afterwards(tidewheel):
    shown = tidewheel.on_terminal("rehearse", "flow", "--fcp", "20310101T00Z").out
    assert "rehearsing 2030" in shown
    assert "tasks so far" in shown
    assert "\r\x1b[K" in shown.rpartition("so far")[2]
    assert "more" in shown, "a long path is cut"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail", "1/modle_a"], "there is no task or family 'modle_a'"),
        (["--fail", "/post"], "Expected POINT/NAME"),
        (["--fail", "20300101T00/post@x"], "Expected POINT/NAME"),
        (["--fail", "nonsense/post"], "nonsense"),
        (["--length", "post"], "NAME=DURATION"),
        (["--length", "post=soon"], "--length of post is 'soon'"),
        (["--length", "pots=1h"], "Did you mean 'post'?"),
        (["--slots", "0"], "--slots"),
        (["--until", "20290101"], "or a later point"),
        (["--until", "never"], "never"),
        (["--at", "whenever"], "whenever"),
        (["--svg", "plan.png"], "plan.svg"),
        (["--svg", "no/such/plan.svg"], "no/such/plan.svg"),
    ],
)
def test_what_makes_no_sense_is_refused_with_advice(tidewheel, options, said):
    refused = tidewheel("rehearse", "flow", *options)
    assert said in refused.err
    assert refused.status in (2, 3)
    assert "Traceback" not in refused.err


def test_plain_numbers_have_no_clock(tidewheel):
    (tidewheel.folder / "once").write_text("[scheduling]\n[[graph]]\nR1 = a => b\n", "utf-8")
    assert tidewheel("rehearse", "once", "--at", "1").status == 2
    shown = tidewheel("rehearse", "once", "--fail", "b", "--fail", "7/a")
    assert "once" in shown.out or "stalled" in shown.out
    assert "--fail 7/a matches no task that ran" in shown.out


def test_an_error_in_the_definition_exits_with_2(tidewheel, flow):
    flow("[scheduling]\n[[graph]]\nR1 = a => a\n")
    refused = tidewheel("rehearse", "flow")
    assert (refused.status, refused.out) == (2, "")
    assert "error" in refused.err


def test_jobs_take_as_long_as_in_earlier_runs(tidewheel, flow):
    flow(
        "[scheduling]\n    [[graph]]\n        R1 = a => b\n"
        "[runtime]\n    [[a]]\n        script = true\n    [[b]]\n"
        "        run mode = skip\n        [[[simulation]]]\n"
        "            default run length = PT1H\n"
    )
    assert "10s" in tidewheel("rehearse", "flow").out
    assert tidewheel("run", "flow").status == 0
    learnt = tidewheel("rehearse", "flow")
    assert "for 1 task the run time of earlier runs is assumed" in learnt.err
    assert "10s" not in learnt.out
    assert "10s" in tidewheel("rehearse", "flow", "--no-history").out
