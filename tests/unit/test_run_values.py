"""Commands as they are stored, names of submissions, runs as they are seen."""

import json

import pytest

from tidewheel.core.operator import verbs
from tidewheel.core.operator.definition import JobName, RunOptions, read_job_name
from tidewheel.core.operator.verbs import VERBS, command_text, read_command
from tidewheel.core.operator.views import RunView
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
        ('{"verb": "pause", "x": 1}', "pause knows no 'x'; it takes nothing else"),
        ('{"verb": "kill", "idz": []}', "kill knows no 'idz'; it takes ids"),
        ('{"verb": "kill", "ids": "1/a"}', "ids must be a list of texts"),
        ('{"verb": "kill", "ids": [1]}', "ids must be a list of texts"),
        ('{"verb": "stop", "mode": 1}', "mode must be a text"),
    ],
)
def test_what_is_no_command_is_refused_with_what_would_be(text, said):
    with pytest.raises(Refused, match=said.replace("[", r"\[")):
        read_command(text)


def test_a_submission_has_one_name_and_its_files_have_one_place():
    name = JobName("work/flow/run1", "20300101T0000Z", "model", 3)
    assert name.task_id == "work/flow/run1/20300101T0000Z/model/3"
    assert read_job_name(name.task_id) == name
    assert name.text == "20300101T0000Z/model/03"
    assert name.log_folder(1) == "log/job/20300101T0000Z/model/03"
    assert name.log_folder(2) == "log/job/20300101T0000Z/model/03/attempt-2"
    assert name.work_folder == "work/20300101T0000Z/model"
    assert name.share_folder == "share/cycle/20300101T0000Z"


@pytest.mark.parametrize(("deadline", "driven"), [(None, False), (10.0, True), (5.0, False)])
def test_a_run_is_driven_while_somebody_holds_it(deadline, driven):
    run = RunView(
        number=1,
        name="flow/run1",
        workflow="flow",
        definition="",
        options=RunOptions(),
        folder="",
        queue="run:flow/run1",
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
    assert run.is_driven(5.0) is driven
