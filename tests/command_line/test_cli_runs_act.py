"""Acting on runs from the command line: each verb reaches the scheduler as a command."""

import json

import pytest

from tests.support.many_commands import answers
from tests.support.prepared_run import PreparedRun
from tidewheel.core.operator.verbs import VERBS

REFLOW = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    [[graph]]
        P1 = \"\"\"
            foo[-P1] => foo => woo => bar & baz => qux
        \"\"\"
[runtime]
    [[foo, woo, bar, baz, qux]]
"""


def started(tidewheel, *args):
    return PreparedRun(tidewheel, *args).starts()


WORDS_AND_COMMANDS = [
    (["trigger", "1/a"], {"ids": ["1/a"]}),
    (["trigger", "forecast//1/a", "//1/b"], {"ids": ["1/a", "1/b"]}),
    (["trigger", "1", "1/a", "--flow", "1"], {"ids": ["1/a"], "flow": "1"}),
    (
        ["trigger", "fore", "1/a", "--reflow", "--until", "2", "--until-task", "2/x"],
        {"ids": ["1/a"], "flow": "new", "until": "2", "until_tasks": ["2/x"]},
    ),
    (
        ["trigger", "1/a", "--flow=new", "--wait", "--from", "2", "--ignore-before"],
        {
            "ids": ["1/a"],
            "flow": "new",
            "wait": True,
            "from_point": "2",
            "ignore_before": True,
        },
    ),
    (
        ["set", "1/a", "--out", "x,y", "-o", "z"],
        {"ids": ["1/a"], "outputs": ["x,y", "z"]},
    ),
    (["set", "1/a", "-p", "all"], {"ids": ["1/a"], "prerequisites": ["all"]}),
    (["remove", "1/a", "--forget"], {"ids": ["1/a"], "forget": True}),
    (
        ["remove", "1/a", "--kill", "--flow", "1"],
        {"ids": ["1/a"], "kill": True, "flow": "1"},
    ),
    (["hold", "--after", "2"], {"after": "2"}),
    (["hold", "forecast", "1/a"], {"ids": ["1/a"]}),
    (["release", "--all"], {"everything": True}),
    (["kill", "*/a:running"], {"ids": ["*/a:running"]}),
    (["poll", "forecast", "*"], {"ids": ["*"]}),
    (["pause"], {}),
    (["resume", "forecast"], {}),
    (["stop"], {}),
    (["stop", "--now"], {"mode": "now"}),
    (["stop", "--kill"], {"mode": "kill"}),
    (["stop", "--at", "2"], {"at_point": "2"}),
    (["stop", "forecast//2"], {"at_point": "2"}),
    (["stop", "forecast//2/a"], {"after_task": "2/a"}),
    (["stop", "--after", "2/a"], {"after_task": "2/a"}),
    (["stop", "--wall-clock", "2030-01-01T00:00Z"], {"at_time": "2030-01-01T00:00Z"}),
    (["stop", "--flow", "2"], {"flow": 2}),
    (
        ["broadcast", "-p", "1", "-n", "a", "-s", "[environment]X=1", "-s", "script=true"],
        {
            "points": ["1"],
            "namespaces": ["a"],
            "settings": ["[environment]X=1", "script=true"],
        },
    ),
    (["broadcast", "--clear"], {"clear": True}),
    (["broadcast", "-c", "[environment]X"], {"cancel": ["[environment]X"]}),
    (["broadcast", "-e", "2"], {"expire": "2"}),
    (
        ["message", "forecast", "1/a", "WARNING: slow", "hello"],
        {"id": "1/a", "texts": ["WARNING: slow", "hello"]},
    ),
    (["message", "forecast", "1/a", "--output", "x"], {"id": "1/a", "output": "x"}),
    (
        ["ext-trigger", "new data", "file-1"],
        {"message": "new data", "trigger_id": "file-1"},
    ),
    (["ext-trigger", "forecast", "new data"], {"message": "new data"}),
]


def test_a_verb_becomes_the_command_of_its_name(tidewheel):
    run = started(tidewheel)
    with run.hearing() as heard:
        given = answers(tidewheel, [words for words, _ in WORDS_AND_COMMANDS])
    assert [(one.status, one.err) for one in given] == [(0, "")] * len(WORDS_AND_COMMANDS)
    expected = [{"verb": words[0]} | asked for words, asked in WORDS_AND_COMMANDS]
    assert [json.loads(one) for one in heard] == expected


def test_every_verb_of_the_table_has_a_command(tidewheel):
    listed = {line.split()[0] for line in tidewheel("--help").out.splitlines() if line.strip()}
    assert set(VERBS) <= listed


def test_a_file_of_broadcast_settings_is_read(tidewheel):
    run = started(tidewheel)
    (tidewheel.folder / "more").write_text("# how\nscript = true\n[environment]\nX = 1 # one\n")
    with run.hearing() as heard:
        tidewheel("broadcast", "-F", "more")
    assert json.loads(heard[0])["settings"] == ["script=true", "[environment]X=1 # one"]


def test_answers_say_what_becomes_of_each_task(tidewheel):
    run = started(tidewheel).succeeds("1/prep").fails("1/model_a").succeeds("1/model_b")
    words_and_answers = [
        (
            ["trigger", "1/model_a"],
            "1/model_a runs now in flow 1\n  no longer lost if it succeeds: 1/post, 2/prep\n",
        ),
        (["trigger", "1/prep"], "1/prep runs now alone (flow none)\n"),
        (
            ["set", "3/post", "--out", "failed"],
            "3/post was set, but still runs when its prerequisites are satisfied\n",
        ),
        (["trigger", "2/prep"], "2/prep runs now in flow 1\n"),
        (["trigger", "2/prep"], "2/prep is unchanged: it is active already\n"),
        (["hold", "2/prep"], "2/prep is held\n"),
        (["release", "2/prep"], "2/prep is released\n"),
        (["pause"], f"{run.name} is paused; resume it: tidewheel resume {run.name}\n"),
        (["resume"], f"{run.name} resumes\n"),
        (["stop", "--at", "2"], f"{run.name} stops at point 2\n"),
    ]
    asked = [*(words for words, _ in words_and_answers), ["set", "1/post", "--json"]]
    with run.answering():
        *told, last = answers(tidewheel, asked)
    assert [one.out for one in told] == [said for _, said in words_and_answers]
    given = last.json
    assert (given["run"], given["verb"], given["number"]) == (run.name, "set", 11)
    assert "1/post" in given["answer"]["tasks"]


def test_tasks_that_are_not_in_the_pool_are_listed_first(tidewheel):
    with started(tidewheel).answering():
        given = tidewheel("trigger", "3/model*", "--all-at-point")
    assert given.err == (
        "trigger 3/model_a, which is future\ntrigger 3/model_b, which is future\n"
    )
    assert given.out.startswith("3/model_a runs now in flow 1\n3/model_b runs now in flow 1\n")


def test_a_refusal_of_the_scheduler_is_told_with_what_to_do(tidewheel):
    run = started(tidewheel)
    with run.answering():
        refused = tidewheel("remove", "1/prep")
    assert refused.status == 2
    assert refused.err == (
        "tidewheel: 1/prep: active\n"
        "  Remove with --kill, or wait until no job of these tasks runs\n"
    )


def test_a_scheduler_that_does_not_answer_is_no_success(tidewheel):
    started(tidewheel)
    silent = tidewheel("pause", "--timeout", "0.2s")
    assert silent.status == 3
    assert "did not answer pause within" in silent.err
    assert "tidewheel show forecast/run1 --history" in silent.err


def test_who_waits_for_a_scheduler_that_is_silent_is_told_what_for(tidewheel):
    """After a kill -9 nothing was said for half a minute."""
    started(tidewheel)
    waited = "waiting for the scheduler of forecast/run1 to answer"
    assert waited in tidewheel("pause", "--timeout", "5s").err
    assert waited not in tidewheel("pause", "--timeout", "0.2s").err
    assert waited not in tidewheel("pause", "--timeout", "5s", "--json").err


# ---- dry run ----


@pytest.mark.req("R001-53")
def test_a_dry_run_lists_and_draws_what_would_run_and_does_nothing(tidewheel):
    run = started(tidewheel, REFLOW, "reflow")
    run.succeeds("1/foo", "2/foo", "1/woo", "2/woo", "1/bar", "1/baz", "1/qux")
    run.succeeds("2/bar", "2/baz", "2/qux")
    tried = tidewheel("trigger", "2/woo", "--reflow", "--dry-run", "--json").json
    assert [one["id"] for one in tried["runs"]] == ["2/woo", "2/bar", "2/baz", "2/qux"]
    assert [one["flows"] for one in tried["runs"]] == [[2]] * 4
    shown = tidewheel("trigger", "2/woo", "--reflow", "--dry-run").out
    assert "nothing was done" in shown
    assert "4 jobs would run" in shown
    assert "  2/woo  flow 2\n  ├─ 2/bar  flow 2\n" in shown
    offered = "2/woo --reflow  # run it again, and then everything after it\n"
    assert offered in tidewheel("why", "2/woo").out
    bounds = ["--until-task", "2/bar", "--until-task", "2/baz", "--dry-run", "--json"]
    bounded = tidewheel("trigger", "2/woo", "--reflow", *bounds).json
    assert [one["id"] for one in bounded["runs"]] == ["2/woo", "2/bar", "2/baz"]
    assert tidewheel("show", "--history", "--json").json["commands"] == []


def test_a_dry_run_says_what_would_wait_and_needs_no_scheduler(tidewheel):
    run = started(tidewheel, REFLOW, "reflow")
    run.succeeds("1/foo", "1/woo", "1/bar", "1/baz", "1/qux").is_let_go()
    tried = tidewheel("trigger", "1/bar", "--reflow", "--dry-run", "--json").json
    assert [one["id"] for one in tried["runs"]] == ["1/bar"]
    [waiting] = tried["waits"]
    assert waiting["id"] == "1/qux"
    assert "1/baz" in waiting["reasons"][0]["text"]
    shown = tidewheel("trigger", "1/bar", "--reflow", "--dry-run").out
    assert "would wait" in shown


# ---- reload ----


def test_reload_stores_the_definition_and_gives_its_digest(tidewheel):
    run = started(tidewheel)
    file = run.folder / "flow.cylc"
    file.write_text(file.read_text().replace("post[-P1] => prep", "mail[-P1]:start? => prep"))
    with run.hearing() as heard:
        answer = tidewheel("reload", run.name)
    assert answer.status == 0, answer.err
    digest = json.loads(heard[0])["definition"]
    assert digest != run.view.definition
    assert run.stored_definition(digest).workflow == "forecast"


def test_reload_of_a_broken_definition_changes_nothing(tidewheel):
    run = started(tidewheel)
    file = run.folder / "flow.cylc"
    file.write_text(file.read_text().replace("prep => model_a", "prep => => model_a"))
    with run.hearing() as heard:
        answer = tidewheel("reload")
    assert answer.status == 2
    assert "flow.cylc:" in answer.err
    assert f"nothing was reloaded: {run.name} continues with its old definition" in answer.err
    assert heard == []


@pytest.mark.parametrize(
    ("kind", "file"), [("python", "other.py"), ("stages", "other-1.0.0.yaml.j2")]
)
def test_variables_for_a_definition_that_takes_none_are_refused(tidewheel, kind, file):
    run = started(tidewheel)
    tidewheel("init", "other", "--kind", kind)
    with run.hearing() as heard:
        answer = tidewheel("reload", run.name, f"other/{file}", "-s", "A=1")
    assert answer.status == 2
    assert "-s/--set is for a flow.cylc, not for a" in answer.err
    assert heard == []


def test_reload_from_another_folder(tidewheel):
    run = started(tidewheel)
    (tidewheel.folder / "other").mkdir()
    text = (run.folder / "flow.cylc").read_text()
    (tidewheel.folder / "other" / "flow.cylc").write_text(text + "        script = false\n")
    with run.hearing() as heard:
        assert tidewheel("reload", run.name, "other").status == 0
    digest = json.loads(heard[0])["definition"]
    assert run.stored_definition(digest).workflow == "forecast"
