"""``tidewheel events``: what happens, line by line, from a store and from a server."""

import json
import signal

import pytest

from tests.support.http_server import running_server
from tests.support.json_page import promised
from tests.support.prepared_run import PreparedRun


@pytest.fixture(params=["store", "server"])
def where(request, tidewheel):
    """Options and environment with which a command reaches the same tasks."""
    tidewheel("submit", "--", "true")  # makes the store
    if request.param == "store":
        yield (), {}
        return
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        token = server.caller("read").token
        yield ("--store", f"http://{server.address}"), {"TIDEWHEEL_TOKEN": token}


def test_each_step_is_a_line_with_what_it_was_and_what_it_is(tidewheel, where):
    options, environment = where
    with tidewheel.started("events", "--json", *options, **environment) as followed:
        start = json.loads(followed.read_until("start"))
        name = tidewheel("submit", "--", "true").word
        told = json.loads(followed.read_until(name))
        assert (told["event"], told["data"]["to"]) == ("task", "ready")
        assert (told.keys(), told["data"].keys()) == _promised()
        tidewheel("cancel", name)
        followed.read_until("cancelled")
        followed.send(signal.SIGINT)
        assert followed.wait().status == 0
    since = ("--since", start["id"], "--count", "2")
    lines = tidewheel("events", *since, *options, **environment).out.splitlines()
    assert [line.split("  ")[1:] for line in lines] == [
        [name, "→ ready"],
        [name, "ready → cancelled (cancel)"],
    ]


def _promised():
    """The keys of the example in docs/json.md."""
    document = promised()["tidewheel events"]
    return document.keys(), document["data"].keys()


def test_a_run_is_told_with_its_status_and_its_tasks(tidewheel, where):
    options, environment = where
    run = PreparedRun(tidewheel)
    asked = ("events", "--run", run.name, "--kind", "run", "--count", "2")
    with tidewheel.started(*asked, "--json", *options, **environment) as followed:
        start = json.loads(followed.read_until("start"))
        run.starts().succeeds("1/prep")
        assert followed.wait().status == 0
    told = tidewheel(*asked, "--since", start["id"], *options, **environment).out
    assert f"{run.name}  running" in told
    assert f"{run.name} 1/prep  → preparing" in told
    assert f"{run.name} 1/prep  → succeeded" in told


def test_what_cannot_be_followed_is_refused(tidewheel, where):
    options, environment = where
    for asked in (("--since", "yesterday"), ("--run", "nobody")):
        answer = tidewheel("events", *asked, *options, **environment)
        assert (answer.status, answer.out) == (2, "")
