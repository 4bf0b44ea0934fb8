"""Runs from Python: the same views and commands as on the command line."""

import pytest

from tests.support.prepared_run import PreparedRun
from tidewheel import Client
from tidewheel.core.operator.verbs import Hold, Trigger
from tidewheel.errors import AmbiguousRun, NotFound, NotRunning, Refused, Unavailable


@pytest.fixture
def run(tidewheel):
    return PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")


@pytest.fixture
def client(tidewheel):
    with Client(tidewheel.store) as client:
        yield client


def test_a_program_sees_what_people_see(run, client):
    [listed] = client.runs.list()["runs"]
    assert listed["name"] == run.name == client.runs.find("fore").name
    assert client.runs.show("forecast")["lost"][0]["id"] == "1/post"
    assert client.runs.show("forecast", "1/model_a")["tasks"][0]["state"] == "failed"
    [task] = client.runs.why("forecast", "1/post")["tasks"]
    assert not task["reasons"][0]["passes"]
    assert client.runs.tree("forecast", window=0)["points"][0]["point"] == "1"


def test_a_command_is_given_answered_and_recorded(run, client):
    with run.answering():
        answer = client.runs.give("forecast", Hold(ids=("2/prep",)), who="the test")
        with pytest.raises(Refused, match="there is no flow 7"):
            client.runs.give("forecast", Trigger(ids=("1/prep",), flow="7"))
    assert (answer.run, answer.verb, answer.document["tasks"]) == (
        run.name,
        "hold",
        {"2/prep": "1"},
    )
    first, second = client.runs.history("forecast")["commands"]
    assert second["who"] == "the test"
    assert first["refused"].startswith("there is no flow 7")


def test_a_scheduler_that_is_silent_or_gone_is_told_apart(run, client):
    with pytest.raises(Unavailable, match="did not answer hold within"):
        client.runs.give("forecast", Hold(ids=("2/prep",)), seconds_max=0.1)
    run.is_let_go()
    with pytest.raises(NotRunning, match="tidewheel run forecast/run1"):
        client.runs.give("forecast", Hold(ids=("2/prep",)))


@pytest.mark.usefixtures("run")
def test_a_trigger_is_tried_without_doing_it(client):
    tried = client.runs.dry_run("forecast", Trigger(ids=("1/model_a",)))
    assert tried["runs"][0]["id"] == "1/model_a"
    assert tried["comes_back"] == ["1/post", "2/prep"]
    assert client.runs.history("forecast")["commands"] == []


@pytest.mark.usefixtures("run")
def test_names_that_mean_nothing_or_too_much_are_refused(tidewheel, client):
    PreparedRun(tidewheel, workflow="forest")
    with pytest.raises(NotFound):
        client.runs.show("nope")
    with pytest.raises(AmbiguousRun):
        client.runs.show("fore")
    with pytest.raises(Refused, match="there is no view"):
        client.runs.look("everything", run="forecast")
    with pytest.raises(Refused, match="ids must be a list"):
        client.runs.look("show", run="forecast", ids="1/prep")
