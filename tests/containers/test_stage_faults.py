"""RELIABILITY 10, 18, 20 for containers: workers and engines that die in mid-stage."""

import json

import pytest

from tests.support.container_engine import DOCKER, running_engines, until_nothing_is_left
from tests.support.fleet import fleet
from tests.support.patience import eventually, eventually_told
from tests.support.stages import compose_text, service

LEASE_SECONDS, LONG_LEASE_SECONDS = 10.0, 600.0
# Each start is a line of the journal; it goes on until it is told to end.
WAIT = "echo begin >> /data/journal; until [ -e /data/go ]; do sleep 0.1; done"
SLOW = pytest.mark.timeout(170)


def waiting_stage(script=WAIT, **keys):
    return compose_text(a=service(script, volumes=["./data:/data"], **keys))


def stage_with_volumes():
    """Which has a volume by name and one without, beside the folder that all have."""
    mounts = ["./data:/data", "kept:/kept", "/scratch"]
    stage = {"version": "3.8", "services": {"a": service(WAIT, volumes=mounts)}}
    return json.dumps(stage | {"volumes": {"kept": {}}})


class Scene:
    """Workers that share an engine."""

    def __init__(self, crew, client, engine):
        self.crew, self.client, self.engine = crew, client, engine

    def worker(self, kind, *arguments):
        environment = self.engine.environment | {"TIDEWHEEL_ADOPT_INTERVAL_SECONDS": "1"}
        return self.crew.start("worker", "--runner", kind, *arguments, **environment)

    def submit(self, kind, text, **fields):
        return self.client.submit(runner=kind, compose=text, **fields).id

    def data(self, attempt=1):
        """The folder that a stage shares with its test."""
        pattern = f"tasks/*/*/{attempt}/files/data"
        return eventually(
            lambda: next(self.crew.home.glob(pattern), None), "the folder of the stage", 90.0
        )

    def begun(self, attempt=1):
        journal = self.data(attempt) / "journal"
        return journal.read_text().split() if journal.exists() else []

    def until_begun(self, attempt=1):
        eventually(lambda: self.begun(attempt), f"attempt {attempt} has begun", 90.0)

    def kill_engine(self):
        """As soon as it has in writing what runs."""
        running = ("ps", "-q", "--filter", "label=tidewheel.runner")
        eventually_told(lambda: self.engine.docker(*running), "the engine shows what runs")
        self.engine.kill()

    def until(self, task_id, *statuses):
        eventually(
            lambda: self.client.get(task_id).status.value in statuses,
            f"{task_id} is {' or '.join(statuses)}",
            90.0,
        )
        return self.client.get(task_id)

    def until_nothing_is_left(self):
        until_nothing_is_left(self.engine)


@pytest.fixture
def crew(tmp_path):
    with fleet(tmp_path) as crew:
        yield crew


@pytest.fixture
def scene(engine, crew):  # in this order: the engine is cleared after its workers are gone
    with crew.client() as client:
        yield Scene(crew, client, engine)


@pytest.fixture
def own_engine(tmp_path):
    """An engine that may be killed, and is in no Swarm."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    with (
        running_engines("e1") as [engine],
        fleet(tmp_path) as crew,
        crew.client() as client,
    ):
        yield Scene(crew, client, engine)


@SLOW
@pytest.mark.req("R004-62")
@pytest.mark.parametrize("kind", ["compose", "swarm"])
def test_a_stage_whose_worker_was_killed_is_adopted_and_started_once(scene, kind):
    scene.client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    first = scene.worker(kind)
    task = scene.submit(kind, waiting_stage(WAIT + "; echo done"))
    scene.until_begun()
    first.kill()
    scene.worker(kind).says("adopted")
    (scene.data() / "go").touch()
    ended = scene.until(task, "succeeded", "failed")
    assert (ended.status.value, ended.attempt) == ("succeeded", 1)
    assert scene.begun() == ["begin"]
    assert (scene.data().parents[1] / "job.out").read_text() == "a | done\n"
    scene.until_nothing_is_left()


@SLOW
@pytest.mark.req("R004-60")
@pytest.mark.parametrize("kind", ["compose", "swarm"])
def test_a_cancelled_stage_leaves_no_container_behind(scene, kind):
    scene.worker(kind)
    task = scene.submit(kind, waiting_stage(), max_termination=2)
    scene.until_begun()
    scene.client.cancel(task)
    scene.until(task, "cancelled")
    scene.until_nothing_is_left()


@SLOW
@pytest.mark.req("R004-16")
def test_a_stage_that_runs_too_long_is_ended_with_all_of_it(scene):
    scene.worker("compose")
    script = "trap '' TERM; " + WAIT
    text = waiting_stage(script, init=False)
    task = scene.submit("compose", text, timeout=3, max_termination=1)
    ended = scene.until(task, "failed")
    assert ended.errors[-1].code == "timed_out"
    scene.until_nothing_is_left()


@SLOW
def test_what_is_left_of_a_lease_that_is_over_is_removed_by_whoever_starts_next(scene):
    scene.client.configure_queue("default", lease_seconds=1.0)
    first = scene.worker("compose", "--no-monitor")
    task = scene.submit("compose", waiting_stage(), max_lapses=0)
    scene.until_begun()
    first.kill()
    scene.crew.monitor()
    scene.until(task, "failed")
    assert scene.engine.left_behind()
    scene.worker("compose").says("leftover")
    scene.until_nothing_is_left()


@SLOW
@pytest.mark.req("R004-60")
@pytest.mark.parametrize("kind", ["compose", "swarm"])
def test_networks_that_no_container_uses_any_more_are_removed_too(scene, kind):
    """As by a worker that was killed after it had removed the containers."""
    scene.client.configure_queue("default", lease_seconds=1.0)
    first = scene.worker(kind, "--no-monitor")
    task = scene.submit(kind, waiting_stage(), max_lapses=0)
    scene.until_begun()
    first.kill()
    scene.engine.clear_containers()
    left = scene.engine.left_behind
    eventually_told(lambda: set(left()) == {"networks"}, lambda: f"a network alone: {left()}")
    scene.crew.monitor()
    scene.until(task, "failed")
    scene.worker(kind).says("leftover")
    scene.until_nothing_is_left()


@SLOW
def test_a_worker_without_the_runner_leaves_stages_alone(scene):
    task = scene.submit("compose", waiting_stage())
    other = scene.submit("compose", compose_text(a=service("true")))
    plain = scene.client.submit(command="true").id
    scene.crew.start("worker")
    scene.until(plain, "succeeded")
    assert scene.client.get(task).status.value == "ready"
    assert scene.client.get(other).status.value == "ready"


@SLOW
def test_a_stage_that_the_engine_took_with_it_is_given_back_and_runs_again(own_engine):
    scene = own_engine
    worker = scene.worker("compose")
    task = scene.submit("compose", waiting_stage())
    scene.until_begun()
    scene.kill_engine()
    worker.says("does not answer")
    assert scene.client.get(task).status.value == "running"
    scene.engine.start()
    scene.until_begun(attempt=2)
    (scene.data(attempt=2) / "go").touch()
    ended = scene.until(task, "succeeded", "failed")
    assert (ended.status.value, ended.attempt, ended.failures) == ("succeeded", 2, 0)
    scene.until_nothing_is_left()


@SLOW
def test_a_stage_that_outlives_its_engine_goes_on_as_if_nothing_had_happened(own_engine):
    scene = own_engine
    scene.engine.kill()
    scene.engine.start("--live-restore")
    worker = scene.worker("compose")
    task = scene.submit("compose", waiting_stage(WAIT + "; echo done"))
    scene.until_begun()
    scene.kill_engine()
    worker.says("does not answer")
    scene.engine.start("--live-restore")
    (scene.data() / "go").touch()
    ended = scene.until(task, "succeeded", "failed")
    assert (ended.status.value, ended.attempt) == ("succeeded", 1)
    assert scene.begun() == ["begin"]
    assert (scene.data().parents[1] / "job.out").read_text() == "a | done\n"
    scene.until_nothing_is_left()


@SLOW
def test_stages_wait_for_an_engine_that_is_not_there(own_engine):
    scene = own_engine
    scene.engine.kill()
    task = scene.submit("compose", compose_text(a=service("true")))
    scene.worker("compose").says("does not answer")
    assert scene.client.get(task).failures == 0
    scene.engine.start()
    assert scene.until(task, "succeeded", "failed").status.value == "succeeded"


@SLOW
@pytest.mark.req("R004-32")
def test_two_stages_run_at_once_on_the_two_nodes_that_their_labels_name(scene, swarm):
    manager, node = swarm
    manager.docker("node", "update", "--label-add", "zone=here", "m1")
    manager.docker("node", "update", "--label-add", "zone=there", "w1")
    volumes = {engine: set(engine.docker("volume", "ls", "-q").split()) for engine in swarm}
    scene.worker("swarm", "--slots", "2")
    text = stage_with_volumes()
    tasks = {
        zone: scene.submit("swarm", text, spec={"node": {"labels": {"zone": zone}}})
        for zone in ("here", "there")
    }
    running = ("ps", "-q", "--filter", "label=tidewheel.runner=swarm")
    eventually_told(
        lambda: (
            len(manager.docker(*running).split()) == len(node.docker(*running).split()) == 1
        ),
        "one stage on each node",
    )
    for data in scene.crew.home.glob("tasks/*/*/1/files/data"):
        (data / "go").touch()
    for task in tasks.values():
        assert scene.until(task, "succeeded", "failed").status.value == "succeeded"
    until_nothing_is_left(manager, node)
    for engine, before in volumes.items():
        eventually_told(
            lambda engine=engine, before=before: (
                set(engine.docker("volume", "ls", "-q").split()) <= before
            ),
            f"no volume is left on {engine.name}",
        )


@SLOW
@pytest.mark.req("R004-16")
def test_a_stage_that_no_node_can_take_says_so_and_waits_however_short_its_timeout_is(scene):
    scene.worker("swarm")
    wanted = {"node": {"constraints": ["node.labels.soon == here"]}}
    text = compose_text(a=service("true"))
    waits = scene.submit("swarm", text, spec=wanted)
    limited = scene.submit("swarm", text, spec=wanted, timeout=30)
    for task in (waits, limited):
        [said] = eventually(lambda task=task: scene.client.outputs(task), "why it waits", 90.0)
        assert "no suitable node" in said.text and "docker node update --label-add" in said.text
        assert scene.client.get(task).status.value == "running"
    scene.client.cancel(waits)
    scene.until(waits, "cancelled")
    [attempt] = scene.client.attempts(limited)
    eventually_told(  # the last heartbeat was later than its timeout is after the claim
        lambda: scene.client.get(limited).deadline_at > attempt.claimed_at + 30 + LEASE_SECONDS,
        "a heartbeat after the timeout",
        90.0,
    )
    assert scene.client.get(limited).status.value == "running"
    scene.engine.docker("node", "update", "--label-add", "soon=here", "m1")
    ended = scene.until(limited, "succeeded", "failed")
    assert ended.status.value == "succeeded", ended.errors
    scene.until_nothing_is_left()


@SLOW
@pytest.mark.req("R004-18")
def test_a_label_means_whichever_value_nodes_have_and_contradicts_no_constraint(scene):
    scene.engine.docker("node", "update", "--label-add", "station=00", "m1")
    scene.worker("swarm")
    plain = compose_text(a=service("true"))
    placed = json.loads(plain)
    constraints = {"placement": {"constraints": ["node.labels.station == 00"]}}
    placed["services"]["a"]["deploy"] = constraints
    labels = {"node": {"labels": ["station"]}}
    for text, words in (
        (plain, ["the stage runs on nodes with station=00"]),
        (json.dumps(placed), []),
    ):
        task = scene.submit("swarm", text, spec=labels)
        assert scene.until(task, "succeeded", "failed").status.value == "succeeded"
        said = [one.text.partition(": ")[2] for one in scene.client.outputs(task)]
        assert said == words
    other = scene.submit("swarm", json.dumps(placed), spec={"node": {"labels": ["station=01"]}})
    [error] = scene.until(other, "succeeded", "failed").errors
    assert "no node can meet both 'node.labels.station == 00'" in error.description


@SLOW
@pytest.mark.req("R004-16")
def test_what_ends_a_stage_that_is_prepared_for_too_long_is_not_called_its_timeout(scene):
    scene.worker("compose", "--prepare-limit", "0.001")
    task = scene.submit("compose", compose_text(a=service("true")), timeout="1h")
    [error] = scene.until(task, "succeeded", "failed").errors
    assert error.code == "prepare" and "--prepare-limit" in error.description
    scene.until_nothing_is_left()
