"""Commands as they are stored, names of submissions, runs as they are seen."""

import json

import pytest

from tidewheel.core.operator import verbs
from tidewheel.core.operator.definition import JobName, RunOptions, read_job_name
from tidewheel.core.operator.verbs import VERBS, command_text, read_command, reopens
from tidewheel.core.operator.views import RunView, only_run
from tidewheel.errors import Refused


@pytest.mark.parametrize(
    "command",
    [
        verbs.Trigger(ids=("1/a", "2/b"), flow="new", until="3", wait=True),
        verbs.Set(ids=("1/a",), outputs=("x", "succeeded")),
        verbs.Stop(flow=2),
        verbs.Stop(),
        verbs.Pause(),
        verbs.Broadcast(points=("1",), settings=("script=true",)),
        verbs.Message(id="1/a/01", texts=("hello",)),
    ],
)
def test_a_command_is_the_same_after_it_was_stored(command):
    assert read_command(command_text(command)) == command


def test_what_was_not_said_is_not_stored():
    assert json.loads(command_text(verbs.Kill(ids=("1/a",)))) == {
        "verb": "kill",
        "ids": ["1/a"],
    }


def test_every_verb_is_known_by_its_own_name():
    assert all(kind.verb == verb for verb, kind in VERBS.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", 'a command is a JSON object with a "verb"'),
        ("[]", 'a command is a JSON object with a "verb"'),
        ("{}", 'a command is a JSON object with a "verb"'),
        ('{"verb": "dance"}', "trigger, set, remove"),
        ('{"verb": "kill"}', "kill needs ids"),
        ('{"verb": "pause", "x": 1}', "pause has no field 'x'; it has no fields"),
        ('{"verb": "kill", "idz": []}', "kill has no field 'idz'; its fields are ids"),
        ('{"verb": "kill", "ids": "1/a"}', "ids must be a list of strings"),
        ('{"verb": "kill", "ids": [1]}', "ids must be a list of strings"),
        ('{"verb": "stop", "mode": 1}', "mode must be a string"),
    ],
)
def test_what_is_no_command_is_refused_with_what_would_be(text, said):
    with pytest.raises(Refused, match=said.replace("[", r"\[")):
        read_command(text)


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ('{"verb": "trigger", "ids": ["1/a"]}', True),
        ('{"verb": "set", "ids": ["1/a"]}', True),
        ('{"verb": "release", "ids": ["1/a"]}', True),
        ('{"verb": "pause"}', False),
        ('{"verb": "remove", "ids": ["1/a"]}', False),
        ('{"verb": "trigger"}', False),
        ('{"verb": "verb of a later version"}', False),
        ("", False),
    ],
)
def test_a_run_that_has_ended_goes_on_with_a_few_commands_and_not_with_a_text_that_is_none(
    text, goes_on
):
    assert reopens(text) is goes_on


def test_a_submission_has_one_name_and_its_files_have_one_place():
    name = JobName("work/flow/run1", "20300101T0000Z", "model", 3)
    assert name.task_id == "work/flow/run1/20300101T0000Z/model/3"
    assert read_job_name(name.task_id) == name
    assert name.text == "20300101T0000Z/model/03"
    assert name.log_folder(1) == "log/job/20300101T0000Z/model/03"
    assert name.log_folder(2) == "log/job/20300101T0000Z/model/03/attempt-2"
    assert name.work_folder == "work/20300101T0000Z/model"
    assert name.share_folder == "share/cycle/20300101T0000Z"


def view(name="flow/run1", *, deadline=None):
    return RunView(
        number=1,
        name=name,
        workflow="flow",
        definition="",
        options=RunOptions(),
        folder="",
        queue=f"run:{name}",
        status="running",
        reason="",
        epoch=1,
        batch=1,
        owner=None,
        deadline_at=deadline,
        created_at=0.0,
        updated_at=0.0,
        ended_at=None,
    )


@pytest.mark.parametrize(("deadline", "driven"), [(None, False), (10.0, True), (5.0, False)])
def test_a_run_is_driven_while_somebody_holds_it(deadline, driven):
    assert view(deadline=deadline).is_driven(5.0) is driven


def test_who_names_no_run_means_the_only_one_or_the_only_one_that_is_driven():
    alone = view("old")
    assert only_run([alone], 5.0) is alone
    driven = view("new", deadline=10.0)
    assert only_run([alone, driven, view("older", deadline=5.0)], 5.0) is driven


@pytest.mark.parametrize(
    ("views", "said"),
    [
        ([], "there is no run in this store; start one: tidewheel run DIR"),
        ([view("a"), view("b")], "which run? There are a, b; name one as RUN"),
        (
            [view("a", deadline=9.0), view("b"), view("c", deadline=9.0)],
            "which run? There are a, c; name one as RUN",
        ),
        ([*map(view, "abcdefg")], "which run? There are a, b, c, d, e and 2 more; name one"),
    ],
)
def test_where_it_is_not_clear_which_run_is_meant_those_that_could_be_are_named(views, said):
    with pytest.raises(Refused) as refused:
        only_run(views, 5.0)
    assert str(refused.value).startswith(said)
