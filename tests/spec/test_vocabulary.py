"""Seeds 002 and 003: their own words for tasks, and the documents that their readers know."""

import asyncio
from datetime import datetime

import pytest

from tests.kit.memory import MemoryStore
from tidewheel import AsyncClient
from tidewheel.core.queue.requests import UsageSample
from tidewheel.core.queue.status import Status
from tidewheel.errors import BadSetting
from tidewheel.vocabulary import (
    STATUS_WORDS,
    Vocabulary,
    banyan_task,
    scylla_task,
    statuses_named,
)

RN = "2e822247-e4f5-480d-ac83-873faad2511c"


def instant(text: str) -> float:
    return datetime.fromisoformat(f"2021-10-09T{text}+00:00").timestamp()


class World:
    """A store with a clock that the test sets, spoken to without `await`."""

    def __init__(self) -> None:
        self.time = instant("12:10:21")
        self.store = MemoryStore(clock=lambda: self.time)
        self.client = AsyncClient(self.store)

    def __getattr__(self, name):
        def call(*args, **fields):
            return asyncio.run(getattr(self.client, name)(*args, **fields))

        return call

    def at(self, text: str) -> "World":
        self.time = instant(text)
        return self

    def lapse(self) -> None:
        asyncio.run(self.store.take_back_lapsed_leases(watched_seconds=1e9, count_max=10))

    def workers(self, count: int) -> str:
        """Hire workers until one has the number that the document names."""
        for _ in range(count):
            worker = self.register_worker()
        return worker

    def scylla(self, task_id: str = RN) -> dict:
        return asyncio.run(self._scylla(task_id))

    async def _scylla(self, task_id: str) -> dict:
        return scylla_task(await self.store.get(task_id), await self.client.history(task_id))

    def banyan(self, task_id: str) -> dict:
        return asyncio.run(self._banyan(task_id))

    async def _banyan(self, task_id: str) -> dict:
        return banyan_task(
            await self.store.get(task_id),
            await self.client.attempts(task_id),
            await self.client.edges(task_id),
            await self.client.usage(task_id),
        )


@pytest.fixture
def world():
    return World()


# ---- 002, "Client Process" to "Yielding" ----

SUBMITTED = {
    "rn": RN,
    "spec": {"orderId": "233", "details": {"product1": {"quantity": 1, "price": 100}}},
    "queue": "task_queue",
    "priority": 50,
    "status": "ready",
    "eligible": True,
    "progress": 0.0,
    "created": "2021-10-09T12:10:21Z",
    "updated": "2021-10-09T12:10:21Z",
    "errors": [],
    "owner": None,
    "deadline": None,
    "history": [],
}
ASSIGNED = {"_typ": "TaskAssignment", "worker": "worker-27", "time": "2021-10-09T12:10:21Z"}


def submitted(world: World) -> World:
    world.submit("task_queue", id=RN, spec=SUBMITTED["spec"], priority=50)
    return world


def running(world: World):
    submitted(world).workers(27)
    return world.lease("task_queue", lease_seconds=1980)[0]


@pytest.mark.req("R002-1", "R002-4", "R002-18", "R002-23")
def test_a_submitted_task_is_the_document_of_the_seed(world):
    assert submitted(world).scylla() == SUBMITTED


@pytest.mark.req("R002-18", "R002-38", "R002-40")
def test_a_running_task_has_owner_deadline_and_assignment(world):
    running(world)
    assert world.scylla() == SUBMITTED | {
        "status": "running",
        "eligible": False,
        "owner": "worker-27",
        "deadline": "2021-10-09T12:43:21Z",
        "history": [ASSIGNED],
    }


@pytest.mark.req("R002-19", "R002-20", "R002-21", "R002-50")
def test_an_aborted_task_has_its_error_and_keeps_its_owner(world):
    error = {"code": "new task added", "args": {}, "description": "new task superseded"}
    world.abort(running(world), error)
    document = world.scylla()
    assert document["status"] == "aborted"
    assert document["errors"] == [error]
    assert (document["owner"], document["deadline"]) == ("worker-27", None)


@pytest.mark.req("R002-48", "R002-19", "R002-20", "R002-21")
def test_a_completed_task_has_progress_one_and_no_errors(world):
    world.complete(running(world))
    document = world.scylla()
    assert (document["status"], document["progress"]) == ("completed", 1.0)
    assert (document["errors"], document["owner"]) == ([], "worker-27")


@pytest.mark.req("R002-53", "R002-54", "R002-22")
def test_a_lapsed_lease_is_a_timeout_with_the_progress_so_far(world):
    task = running(world)
    world.heartbeat(task, progress=0.23)
    world.at("13:11:21").lapse()
    assert world.scylla() == SUBMITTED | {
        "updated": "2021-10-09T13:11:21Z",
        "history": [
            ASSIGNED,
            {
                "_typ": "TaskTimeout",
                "worker": "worker-27",
                "progress": 0.23,
                "time": "2021-10-09T13:11:21Z",
            },
        ],
    }


@pytest.mark.req("R002-69", "R002-70", "R002-72")
def test_a_yield_is_an_entry_of_its_own_and_never_a_timeout(world):
    task = running(world)
    world.heartbeat(task, progress=0.1)
    world.at("12:11:21").yield_(task)
    world.at("14:00:00").lapse()
    assert world.scylla()["history"] == [
        ASSIGNED,
        {
            "_typ": "TaskYield",
            "worker": "worker-27",
            "progress": 0.1,
            "time": "2021-10-09T12:11:21Z",
        },
    ]


@pytest.mark.req("R002-62", "R002-20", "R002-21")
def test_a_cancelled_running_task_is_shown_as_cancelled_at_once(world):
    running(world)
    world.cancel(RN)
    document = world.scylla()
    assert (document["status"], document["owner"], document["deadline"]) == (
        "cancelled",
        None,
        None,
    )


def test_a_task_that_waits_is_ready_but_not_eligible(world):
    submitted(world)
    world.submit("task_queue", id="after", spec=1, needs=[RN])
    document = world.scylla("after")
    assert (document["status"], document["eligible"]) == ("ready", False)


def test_a_delayed_task_is_ready_but_not_eligible(world):
    world.submit("task_queue", id="later", spec=1, delay="1h")
    document = world.scylla("later")
    assert (document["status"], document["eligible"]) == ("ready", False)


@pytest.mark.req("R002-14")
def test_scylla_has_five_statuses():
    words = set(STATUS_WORDS[Vocabulary.SCYLLA].values())
    assert words == {"ready", "running", "completed", "aborted", "cancelled"}


# ---- 003 ----


@pytest.mark.req("R003-3", "R003-11")
def test_a_new_task_is_inactive_with_counts_of_its_own(world):
    world.submit(id="child", command="true", armed=False, retries=2, memory="1GiB", cpu=2)
    world.submit(id="parent", command="true", continuations=["child"])
    assert world.banyan("child") == {
        "_id": "child",
        "name": None,
        "command": "true",
        "state": "inactive",
        "continuations": [],
        "requested_resources": {"memory": 2**30, "cores": 2.0, "gpus": 0},
        "estimated_runtime": None,
        "max_termination_time": 10.0,
        "max_retry_count": 2,
        "retry_count": 0,
        "pending_dependency_count": 1,
        "execution_info": None,
        "history": [],
    }
    parent = world.banyan("parent")
    assert (parent["state"], parent["continuations"]) == ("available", ["child"])


@pytest.mark.req("R003-52", "R003-55", "R003-58", "R003-69")
def test_each_attempt_is_an_execution_info_in_order(world):
    world.submit(id="job", command="false", retries=1)
    for minute in (10, 20):
        task = world.at(f"12:{minute}:00").lease()[0]
        world.started(task)
        world.report_usage(task, UsageSample(memory_bytes=1000, cpu_percent=50.0))
        world.at(f"12:{minute}:30").fail(task, "no luck")
    document = world.banyan("job")
    assert document["retry_count"] == 2
    assert document["execution_info"] == document["history"][-1]
    assert document["history"][0] == {
        "worker": "worker-1",
        "exit_status": None,
        "time_started": "2021-10-09T12:10:00Z",
        "time_terminated": "2021-10-09T12:10:30Z",
        "memory_usage": [{"time": "2021-10-09T12:10:00Z", "bytes": 1000}],
        "cpu_utilization": [{"time": "2021-10-09T12:10:00Z", "percent": 50.0}],
        "gpu_usage": [],
    }
    assert [one["time_started"][14:16] for one in document["history"]] == ["10", "20"]


@pytest.mark.req("R003-40")
def test_a_cancelled_running_task_is_pending_cancellation(world):
    world.submit(id="job", command="sleep 60")
    world.lease()
    world.cancel("job")
    assert world.banyan("job")["state"] == "pending_cancellation"


@pytest.mark.req("R003-46")
def test_a_cancelled_task_whose_attempt_ended_by_itself_is_terminated(world):
    world.submit(id="job", command="true")
    [task] = world.lease()
    world.cancel("job")
    world.complete(task)
    assert world.get("job").status is Status.CANCELLED
    assert world.banyan("job")["state"] == "terminated"


@pytest.mark.req("R003-47")
def test_a_cancelled_task_that_was_stopped_is_cancelled(world):
    world.submit(id="job", command="sleep 60")
    [task] = world.lease()
    world.cancel("job")
    world.yield_(task)
    assert world.banyan("job")["state"] == "cancelled"


def test_success_and_failure_are_both_terminated(world):
    world.submit(id="good", command="true")
    world.submit(id="bad", command="false")
    good, bad = world.lease(n=2)
    world.complete(good)
    world.abort(bad, "it broke")
    assert [world.banyan(name)["state"] for name in ("good", "bad")] == ["terminated"] * 2


# ---- filters ----


@pytest.mark.parametrize(
    ("word", "vocabulary", "statuses"),
    [
        ("waiting", "tidewheel", ["waiting"]),
        ("ready", "tidewheel", ["ready"]),
        ("READY", "tidewheel", ["ready"]),
        ("ready", "scylla", ["waiting", "ready"]),
        ("completed", "tidewheel", ["succeeded"]),
        ("aborted", "tidewheel", ["failed"]),
        ("cancelled", "tidewheel", ["cancelled"]),
        ("cancelled", "scylla", ["cancelling", "cancelled"]),
        ("inactive", "tidewheel", ["waiting"]),
        ("available", "tidewheel", ["ready"]),
        ("terminated", "tidewheel", ["succeeded", "failed"]),
        ("pending_cancellation", "banyan", ["cancelling"]),
        ("unknown", "tidewheel", ["cancelling"]),
    ],
)
def test_filters_take_the_words_of_all_three(word, vocabulary, statuses):
    assert [s.value for s in statuses_named([word], Vocabulary(vocabulary))] == statuses


def test_several_words_are_joined_and_none_is_doubled():
    found = statuses_named(["terminated", "failed", "running"])
    assert found == (Status.RUNNING, Status.SUCCEEDED, Status.FAILED)


def test_an_unknown_word_is_refused_with_the_nearest():
    with pytest.raises(BadSetting, match="did you mean running"):
        statuses_named(["runnig"])


@pytest.mark.parametrize("vocabulary", list(Vocabulary))
def test_every_status_has_a_word(vocabulary):
    assert set(STATUS_WORDS[vocabulary]) == set(Status)
