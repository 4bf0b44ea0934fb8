"""The door to runs over HTTP is the same door: views, commands, logs, beginnings, ends."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.http_server import running_server
from tests.support.patience import eventually
from tests.support.prepared_run import FLOW, PreparedRun
from tidewheel.api.views import VIEWS
from tidewheel.client import AsyncClient
from tidewheel.client.runs import Runs
from tidewheel.core.graph.findings import InvalidDefinition
from tidewheel.core.operator.definition import (
    NewRun,
    RunOptions,
    StoredDefinition,
    StoredFile,
    sealed,
)
from tidewheel.core.operator.verbs import Hold, Pause, Reload, Trigger
from tidewheel.errors import (
    AmbiguousRun,
    Declined,
    NoAnswer,
    NotFound,
    NotRunning,
    Refused,
    RunHeld,
)
from tidewheel.store.remote.store import RemoteStore
from tidewheel.store.remote.transport import Transport
from tidewheel.wiring.stores import open_store

SIMPLE = "[scheduling]\n[[graph]]\nR1 = a => b\n[runtime]\n[[a, b]]\nscript = true\n"


@pytest.fixture
def run(tidewheel):
    return PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")


@pytest.fixture
def server(tidewheel):
    tidewheel.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        yield running


class Visitor:
    """Somebody who comes to the runs near or far."""

    def __init__(self, open_store, home):
        self._open, self._home = open_store, home

    def ask(self, question):
        return self.ask_client(lambda client: question(Runs(client, self._home)))

    def ask_client(self, question):
        async def session():
            store = self._open()
            try:
                return await question(AsyncClient(store))
            finally:
                await store.close()

        return asyncio.run(session())


@pytest.fixture
def far(server):
    """With a token that may do everything."""
    token = server.caller("admin").token
    url = f"http://{server.address}"
    return Visitor(lambda: RemoteStore(Transport(url, token)), None)


@pytest.fixture
def near(tidewheel):
    return Visitor(lambda: open_store(tidewheel.store), tidewheel.state)


LOOKS = [
    ("runs", {}),
    ("runs", {"workflow": "nobody"}),
    ("show", {"run": "forecast"}),
    ("show", {"run": "fore", "ids": ["1/model_a", "1/post"]}),
    ("facts", {"run": "1"}),
    ("why", {"run": "forecast", "ids": ["1/post"]}),
    ("tree", {"run": "forecast", "window": 0}),
    ("tree", {"run": "forecast", "ids": ["1"], "all": True}),
    ("dump", {"run": "forecast"}),
    ("history", {"run": "forecast", "count": 5}),
    ("job-log-search", {"run": "forecast", "text": "step", "task": "1/*"}),
    ("broadcasts", {"run": "forecast"}),
    ("select", {"run": "forecast", "ids": ["1/*"], "all_at_point": True}),
    ("submissions", {"run": "forecast", "name": "prep"}),
    ("changes", {"run": "forecast", "after": 1, "count": 2}),
    ("workflow-state", {"run": "forecast", "id": "1/prep"}),
    ("workflow-state", {"run": "yet-to-come", "id": "1/prep:succeeded"}),
    ("dry-run", {"run": "forecast", "command": {"verb": "trigger", "ids": ["1/model_a"]}}),
    ("dry-run", {"run": "forecast", "command": {"verb": "hold", "ids": ["2/prep"]}}),
    ("summary", {"run": "forecast"}),
    ("tasks", {"run": "forecast"}),
    ("graph", {"run": "forecast"}),
    ("graph", {"run": "forecast", "ids": ["1/post"], "window": 2}),
    ("attempts", {"run": "forecast", "count": 2}),
    ("critical-path", {"run": "forecast", "id": "1/model_a"}),
    ("past", {"run": "forecast", "batch": 2}),
    ("versions", {"run": "forecast"}),
    ("past", {"run": "forecast", "count": 3}),
    ("past-graph", {"run": "forecast", "batch": 2, "window": 0}),
]
# Its end as a document, below; lines of one that is there: test_log_search.py.
# Of a run that was reloaded: tests/browser/test_registry_pages.py.
SHOWN_ELSEWHERE = {"log", "log-search", "log-line", "diff"}


def without_time(document):
    """They are asked one after the other."""
    return {name: said for name, said in document.items() if name != "now"}


@pytest.mark.usefixtures("run")
def test_why_a_job_of_a_run_waits_is_the_same_near_and_far(near, far):
    """Only the store knows whether anybody drives the run of the job."""

    async def why(client):
        waiting = [one.id for one in await client.list() if one.status == "ready"]
        return {task: await client.why(task) for task in waiting}

    here = near.ask_client(why)
    assert all(here.values())
    assert far.ask_client(why) == here


@pytest.mark.usefixtures("run")
def test_every_view_is_the_same_near_and_far(near, far):
    for name, arguments in LOOKS:

        async def look(runs, name=name, arguments=arguments):
            return await runs.look(name, **arguments)

        here = json.loads(json.dumps(near.ask(look)))
        assert without_time(far.ask(look)) == without_time(here), (name, arguments)


def test_no_view_is_left_out_of_the_comparison():
    assert {name for name, _ in LOOKS} - {"runs"} == set(VIEWS) - SHOWN_ELSEWHERE


@pytest.mark.usefixtures("run")
def test_names_and_views_are_refused_in_the_same_words(tidewheel, near, far):
    PreparedRun(tidewheel, workflow="forest")
    for kind, ask in (
        (NotFound, lambda runs: runs.show("nope")),
        (AmbiguousRun, lambda runs: runs.find("fore")),
        (Refused, lambda runs: runs.why("forecast", "1/nobody")),
        (Refused, lambda runs: runs.look("show", run="forecast", ids="1/prep")),
        (Refused, lambda runs: runs.find("forest/run2")),
    ):
        said = []
        for visitor in (near, far):
            with pytest.raises(kind) as refused:
                visitor.ask(ask)
            said.append(str(refused.value))
        assert said[0] == said[1]
    for visitor in (near, far):
        assert visitor.ask(lambda runs: runs.find()).name == "forecast/run1"
        with pytest.raises(Refused, match="there is no view 'everything'") as refused:
            visitor.ask(lambda runs: runs.look("everything", run="forecast"))
        assert all(name in str(refused.value) for name in VIEWS)


def test_a_command_is_obeyed_declined_or_not_heard(run, far):
    with run.answering():
        done = far.ask(lambda runs: runs.give("forecast", Hold(ids=("2/prep",))))
        assert (done.run, done.verb, done.document["tasks"]) == (
            run.name,
            "hold",
            {"2/prep": "1"},
        )
        with pytest.raises(Declined, match="there is no flow 7"):
            far.ask(lambda runs: runs.give("forecast", Trigger(ids=("1/prep",), flow="7")))
    with pytest.raises(NoAnswer, match=r"did not answer pause within 0\.1 s"):
        far.ask(lambda runs: runs.give("forecast", Pause(), seconds_max=0.1))
    number = far.ask(lambda runs: runs.door.post("forecast", Pause(), who=""))
    newest = far.ask(lambda runs: runs.history("forecast"))["commands"][0]
    assert (newest["number"], newest["answered_at"]) == (number, None)
    run.is_let_go()
    with pytest.raises(NotRunning, match="tidewheel run forecast/run1"):
        far.ask(lambda runs: runs.give("forecast", Pause()))


def test_a_definition_is_sent_and_can_be_reloaded(run, far):
    old = far.ask(lambda runs: runs.definition("forecast"))
    assert old == run.stored_definition(old.digest)
    new = sealed(
        StoredDefinition(
            digest="",
            workflow="forecast",
            text=FLOW.replace("final cycle point = 3", "final cycle point = 4"),
            files=(StoredFile("bin/plot", b"\x00\xff", executable=True),),
        )
    )
    far.ask(lambda runs: runs.save_definition("forecast", new))
    assert run.stored_definition(new.digest) == new
    tried = far.ask(lambda runs: runs.dry_run("forecast", Reload(definition=new.digest)))
    assert tried["verb"] == "reload"
    assert far.ask(lambda runs: runs.definition("forecast")) == old
    other = sealed(StoredDefinition(digest="", workflow="forest", text=SIMPLE))
    with pytest.raises(Refused, match="is a run of forecast, not of forest"):
        far.ask(lambda runs: runs.save_definition("forecast", other))


def test_a_log_is_followed_until_it_is_over(run, far):
    run.writes_log("1/model_b", "job.out", "first\n")
    seen = []

    async def follow(runs):
        offset, wish = 0, {"id": "1/model_b"}
        while True:
            part = await runs.log_part("forecast", wish, offset=offset, wait_seconds=20)
            seen.append(part.content)
            offset = part.next_offset
            wish = {"id": "1/model_b", "submit": part.place.submit, "attempt": 1}
            if len(seen) == 1:
                threading.Thread(target=grow).start()
            if part.over:
                return part

    def grow():
        run.writes_log("1/model_b", "job.out", "first\nsecond\n")
        run.succeeds("1/model_b")

    last = far.ask(follow)
    assert b"".join(seen) == b"first\nsecond\n"
    assert last.found and last.place.path == f"{run.name}/log/job/1/model_b/01/job.out"


@pytest.mark.usefixtures("run")
def test_the_end_of_a_log_comes_as_a_document(run, far, near):
    run.writes_log("1/model_a", "job.err", "no disk\n")

    async def look(runs):
        return await runs.look("log", run="forecast", id="1/model_a", file="err")

    ours, theirs = near.ask(look), far.ask(look)
    for name in ("run", "id", "submit", "attempt", "text", "cut"):
        assert ours[name] == theirs[name]
    with pytest.raises(NotFound):
        far.ask(lambda runs: runs.look("log", run="forecast", id="1/model_a", file="job"))


# ---- beginning ----


def simple(**fields):
    return sealed(StoredDefinition(digest="x", workflow="simple", text=SIMPLE, **fields))


def test_a_run_begins_waits_for_a_scheduler_and_is_deleted(far, near):
    new = NewRun(workflow="simple", definition="", folder="/home/me")
    begun = far.ask(lambda runs: runs.begin(new, simple()))
    assert (begun.name, begun.status, begun.folder) == ("simple/run1", "created", "/home/me")
    assert begun.given is not None and begun.options.mode == "live"
    seen = near.ask(lambda runs: runs.find("simple"))
    assert (seen.definition, seen.queue) == (simple().digest, "run:simple/run1")
    [listed] = far.ask(lambda runs: runs.list())["runs"]
    assert listed["offered"] and not listed["driven"]
    assert far.ask(lambda runs: runs.delete("simple/run1")).name == "simple/run1"
    assert far.ask(lambda runs: runs.list())["runs"] == []


def test_the_same_key_begins_one_run(far):
    new = NewRun(workflow="simple", definition="", request="as one pleases")
    first, again = (far.ask(lambda runs: runs.begin(new, simple())) for _ in range(2))
    assert first.name == again.name == "simple/run1"


def test_what_is_wrong_with_a_definition_is_told_with_its_place(far):
    text = "[scheduling]\n[[graph]]\nR1 = a => \n[runtim]\n"
    bad = sealed(StoredDefinition(digest="", workflow="simple", text=text))
    with pytest.raises(InvalidDefinition) as refused:
        far.ask(lambda runs: runs.begin(NewRun(workflow="simple", definition=""), bad))
    places = {one.position.line for one in refused.value.findings}
    assert {3, 4} <= places
    assert far.ask(lambda runs: runs.list())["runs"] == []


def test_a_run_that_was_stopped_is_offered_again(run, far, near):
    with pytest.raises(RunHeld):
        far.ask(lambda runs: runs.carry_on("forecast"))
    with pytest.raises(RunHeld):
        far.ask(lambda runs: runs.delete("forecast"))
    run.is_let_go()
    with pytest.raises(Refused, match="which cannot be changed to 2"):
        far.ask(lambda runs: runs.carry_on("forecast", RunOptions(mode="", initial="2")))
    far.ask(lambda runs: runs.carry_on("forecast", RunOptions(mode="", final="5")))
    assert near.ask(lambda runs: runs.find("forecast")).given == RunOptions(mode="", final="5")


def test_a_server_that_stops_lets_go_of_those_who_wait(tidewheel, run):
    """The command stays where the scheduler finds it."""
    with ThreadPoolExecutor(1) as pool:
        with running_server(tidewheel.store, home=tidewheel.state) as running:
            operator = running.caller("operate")
            asked = pool.submit(operator.post, "/runs/forecast/pause?wait_s=60")
            history = "/runs/forecast/history"
            eventually(lambda: operator.get(history).json["commands"], "it is asked")
        told = asked.result()
    assert (told.status, told.code) == (503, "no_answer")
    with run.hearing() as heard:
        eventually(lambda: heard == ['{"verb": "pause"}'], "it is heard")
