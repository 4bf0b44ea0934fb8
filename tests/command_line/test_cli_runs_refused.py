"""What is refused about runs, and what each refusal says to do."""

import json

import pytest

from tests.support.many_commands import answers
from tests.support.prepared_run import PreparedRun

LOOKS = ["show", "why", "tree", "log"]
ACTS = ["trigger", "set", "remove", "hold", "release", "kill", "poll"]


def started(tidewheel, *args):
    return PreparedRun(tidewheel, *args).starts()


def test_an_unknown_run_is_refused_naming_the_list(tidewheel):
    started(tidewheel)
    for answer in answers(tidewheel, [[verb, "nope", "1/prep"] for verb in [*LOOKS, *ACTS]]):
        assert answer.status == 2
        assert answer.err == (
            "tidewheel: there is no run 'nope' in this store\n  List all runs: tidewheel runs\n"
        )


def test_why_of_a_task_of_the_queue_leads_to_its_page(tidewheel):
    task = tidewheel("submit", "--", "true").word
    answer = tidewheel("why", task)
    assert answer.status == 2
    assert f"{task!r} is a task of the queue, not a run" in answer.err
    assert f"tidewheel task {task}" in answer.err


def test_a_run_of_a_known_workflow_is_not_taken_for_a_task(tidewheel):
    started(tidewheel)
    assert "there is no run 'forecast/run9'" in tidewheel("show", "forecast/run9").err


def test_an_ambiguous_prefix_is_refused_with_the_names(tidewheel):
    PreparedRun(tidewheel, workflow="forecast")
    PreparedRun(tidewheel, workflow="forest")
    answer = tidewheel("show", "fore")
    assert answer.status == 2
    assert "forecast/run1" in answer.err
    assert "forest/run1" in answer.err
    assert "Write more of the name" in answer.err


def test_where_there_are_several_runs_one_must_be_named(tidewheel):
    first, second = PreparedRun(tidewheel), PreparedRun(tidewheel)
    asked = [["show"], ["why", "1/prep"], ["trigger", "1/prep"], ["pause"]]
    for answer in answers(tidewheel, asked):
        assert answer.status == 2
        assert f"which run? There are {second.name}, {first.name}" in answer.err
        assert "Name one as RUN" in answer.err


def test_of_several_runs_the_only_one_that_is_driven_is_meant(tidewheel):
    run, _ = started(tidewheel), PreparedRun(tidewheel)
    assert tidewheel("show", "--json").json["run"]["name"] == run.name


def test_a_workflow_stands_for_its_newest_run(tidewheel):
    PreparedRun(tidewheel)
    second = PreparedRun(tidewheel)
    assert tidewheel("show", "forecast", "--json").json["run"]["name"] == second.name


def test_without_any_run_the_answer_says_how_to_start_one(tidewheel):
    answer = tidewheel("show")
    assert (answer.status, "tidewheel run" in answer.err) == (2, True)


def test_an_unknown_task_is_refused_with_the_nearest_name(tidewheel):
    verbs = ["show", "why", "log", *ACTS]
    with started(tidewheel).answering():
        found = answers(tidewheel, [[verb, "forecast", "1/perp"] for verb in verbs])
    for answer in found:
        assert answer.status == 2
        assert "there is no task perp in this workflow" in answer.err
        assert "did you mean prep?" in answer.err.lower()


def test_a_glob_that_matches_nothing_is_refused_with_what_is_there(tidewheel):
    with started(tidewheel).answering():
        answer = tidewheel("trigger", "3/mod*")
    assert answer.status == 2
    assert "no task in the pool matches 3/mod*" in answer.err
    assert "--all-at-point" in answer.err


def test_a_flow_that_does_not_exist_is_refused_with_those_that_do(tidewheel):
    with started(tidewheel).answering():
        asked = [[verb, "1/prep", "--flow", "7"] for verb in ("trigger", "set", "remove")]
        for answer in answers(tidewheel, [*asked, ["stop", "--flow", "7"]]):
            assert answer.status == 2
            assert answer.err == "tidewheel: there is no flow 7\n  Known flows: 1\n"


REOPENING = [["trigger", "1/prep"], ["set", "1/prep"], ["release", "--all"]]
COMMANDS = [
    ["remove", "1/prep"],
    ["hold", "1/prep"],
    ["kill", "1/prep"],
    ["poll", "1/prep"],
    ["pause"],
    ["resume"],
    ["stop"],
    ["reload"],
    ["broadcast", "-s", "script=true"],
    ["message", "forecast", "1/prep", "hello"],
    ["ext-trigger", "hello"],
]


def test_a_run_that_nobody_drives_obeys_nobody_and_says_how_to_carry_it_on(tidewheel):
    run = started(tidewheel).is_let_go()
    for answer in answers(tidewheel, COMMANDS):
        assert answer.status == 2
        assert f"{run.name} is running, but its scheduler is gone" in answer.err
        assert f"tidewheel run {run.name}" in answer.err
    assert tidewheel("show", "--history", "--json").json["commands"] == []


def test_a_run_that_nobody_drives_keeps_what_reopens_it_and_says_how_to_carry_it_on(tidewheel):
    run = started(tidewheel).is_let_go()
    for answer in answers(tidewheel, REOPENING):
        assert answer.status == 0
        assert f"tidewheel run {run.name}" in answer.out + answer.err
    kept = tidewheel("show", "--history", "--json").json["commands"]
    assert sorted(one["verb"] for one in kept) == ["release", "set", "trigger"]


def test_an_offered_command_has_the_name_of_a_run_as_a_shell_takes_it(tidewheel):
    PreparedRun(tidewheel, workflow="my flow$(id)").starts().is_let_go()
    quoted = "'my flow$(id)/run1'"
    assert f"tidewheel run {quoted}" in tidewheel("hold", "1/prep").err
    assert f"tidewheel run {quoted}" in tidewheel("show").out
    assert f"tidewheel run {quoted}" in tidewheel("runs").out
    assert f"tidewheel trigger {quoted} POINT/NAME" in tidewheel("trigger").err


def test_a_dry_run_on_a_run_that_is_over_shows_what_follows_when_it_is_reopened(tidewheel):
    """A run that its stall timeout had ended was shown to wait for its own stop."""
    events = "[scheduler]\n[[events]]\nstall timeout = PT0S\n"
    graph = "[scheduling]\n[[graph]]\nR1 = a => b\n"
    tasks = "[runtime]\n[[a]]\nscript = test -e $CYLC_WORKFLOW_SHARE_DIR/mended\n[[b]]\n"
    folder = tidewheel.folder / "tide"
    folder.mkdir()
    (folder / "flow.cylc").write_text(events + graph + tasks)
    assert tidewheel("run", "tide").status == 1
    tried = tidewheel("trigger", "tide", "1/a", "--dry-run", "--json").json
    assert tried["status"] == {"before": "stalled", "after": "running"}
    assert [one["id"] for one in tried["runs"]] == ["1/a", "1/b"]
    assert [one["after"] for one in tried["changes"]] == ["preparing (by hand)"]
    assert (tried["waits"], tried["notices"]) == ([], [])


def test_a_run_that_is_named_is_not_resumed_with_an_option_that_starts_another(tidewheel):
    run = PreparedRun(tidewheel)
    for named in (run.name, str(run.view.number)):
        for option, words in (("--new", ["--new"]), ("--run-name", ["--run-name", "other"])):
            answer = tidewheel("run", named, *words)
            assert (answer.status, answer.out) == (2, "")
            assert f"{run.name} is a run, and {option} starts another one" in answer.err


def test_a_verb_without_tasks_asks_for_them(tidewheel):
    started(tidewheel)
    found = answers(tidewheel, [[verb, "forecast"] for verb in ACTS])
    for verb, answer in zip(ACTS, found, strict=True):
        assert answer.status == 2
        assert "say which tasks of forecast/run1:" in answer.err
        assert f"See: tidewheel {verb} --help" in answer.err


WORDS_AND_REFUSALS = [
    (["trigger", "1/prep", "--reflow", "--flow", "1"], "--reflow and --flow"),
    (["stop", "--now", "--kill"], "--now and --kill"),
    (["pause", "forecast", "1/prep"], "concerns the whole run"),
    (["message", "forecast", "1/prep", "x", "--progress", "0.5"], "only inside a job"),
    (["message", "hello"], "you are not inside a job"),
    (["tree", "1/prep", "--window", "1"], "applies to the whole pool"),
    (["log", "1/prep", "1/post"], "one task at a time"),
    (["reload", "forecast", "nowhere"], "tidewheel reload forecast/run1 DIR"),
    (["trigger", "1/prep", "--until", "2", "--dry-run"], "--reflow"),
]


def test_words_that_do_not_go_together_are_refused(tidewheel):
    started(tidewheel)
    found = answers(tidewheel, [words for words, _ in WORDS_AND_REFUSALS])
    for (_, said), answer in zip(WORDS_AND_REFUSALS, found, strict=True):
        assert answer.status == 2
        assert said in answer.err


def test_refusals_come_as_json_too(tidewheel):
    started(tidewheel).is_let_go()
    answer = tidewheel("--json", "hold", "1/prep")
    error = json.loads(answer.err)["error"]
    assert (answer.status, error["code"]) == (2, "not_running")
    assert error["advice"].endswith("tidewheel run forecast/run1")


def test_a_store_that_cannot_be_reached_is_unavailable(tidewheel):
    (tidewheel.folder / "x.db").mkdir()
    answer = tidewheel("runs", "--store", "sqlite:///x.db")
    assert answer.status == 3


def test_a_run_that_is_named_keeps_its_variables_and_says_so(tidewheel):
    run = PreparedRun(tidewheel)
    for words in (["-s", "N=9"], ["-z", "L=a,b"], ["-p", "site=north"]):
        answer = tidewheel("run", run.name, *words)
        assert (answer.status, answer.out) == (2, "")
        assert "keeps its variables" in answer.err
    missing = tidewheel("run", run.name, "-S", "nowhere")
    assert missing.status == 2 and "nowhere" in missing.err


def test_release_takes_tasks_or_all_of_them(tidewheel):
    run = started(tidewheel)
    answer = tidewheel("release", run.name, "1/prep", "--all", "-n")
    assert answer.status == 2 and "not both" in answer.out + answer.err


PLAYED = """
[scheduling]
    initial cycle point = 20300101T00Z
    final cycle point = 20300103T00Z
    [[graph]]
        P1D = a => b
[runtime]
    [[a, b]]
        script = true
"""


@pytest.fixture
def daily(tidewheel):
    (tidewheel.folder / "daily").mkdir()
    (tidewheel.folder / "daily/flow.cylc").write_text(PLAYED)
    return tidewheel


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stopcp", "20200101"], "the stop point 20200101T0000Z is before 20300101T0000Z"),
        (
            ["--startcp", "20300102T00Z", "--stopcp", "20300101T00Z"],
            "the stop point 20300101T0000Z is before 20300102T0000Z",
        ),
        (["--start-task", "20300101T0000Z/nosuch"], "nosuch"),
        (["--start-task", "20300101T0700Z/b"], "20300101T0700Z"),
    ],
)
def test_a_run_in_which_nothing_would_run_is_refused_before_there_is_one(daily, words, said):
    answer = daily("run", "daily", *words)
    assert answer.status == 2 and said in answer.out + answer.err
    assert daily("runs", "--json").json["runs"] == []


@pytest.mark.parametrize("mode", ["simulation", "skip"])
def test_a_run_without_real_jobs_says_so_wherever_it_is_shown(daily, mode):
    done = daily("run", "daily", "--mode", mode)
    assert done.status == 0
    lines = done.out.splitlines()
    told = f"({mode} mode: no jobs run)"
    assert told in lines[0] and told in next(one for one in lines if "completed after" in one)
    for words in (["show", "daily"], ["why", "daily"]):
        assert told in daily(*words).out, words


WAITING = """
[scheduling]
    [[special tasks]]
        external-trigger = arrive("new scan")
    [[graph]]
        R1 = arrive
[runtime]
    [[arrive]]
"""


def test_what_why_says_of_an_awaited_message_is_the_command_that_sends_it(tidewheel):
    run = started(tidewheel, WAITING)
    why = tidewheel("why", run.name, "1/arrive", "--json").json
    [reason] = why["tasks"][0]["reasons"]
    assert reason["text"] == "1/arrive waits for the message 'new scan'"
    assert reason["commands"] == [f"tidewheel ext-trigger {run.name} 'new scan'"]
    assert reason["actions"] == [{"verb": "ext-trigger", "message": "new scan"}]
