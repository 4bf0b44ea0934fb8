"""What many requests ask at the same time is handed to the store together, and told apart."""

import asyncio
from dataclasses import replace
from functools import wraps

import pytest

from tests.kit.memory.store import MemoryStore
from tidewheel.core.queue.access import AuditEntry
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.requests import Beat, WorkerBeats
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import BadSetting, Duplicate, NotFound, StoreBusy, StoreUnreachable
from tidewheel.server.app import RouteTable
from tidewheel.server.request_batches import (
    BEATS_MAX,
    PATIENCE_SECONDS,
    REST_SECONDS_MAX,
    AuditedTask,
    GatheredRequests,
    Gathering,
)
from tidewheel.server.route_table import ROUTES


def in_a_loop(test):
    @wraps(test)
    def run():
        asyncio.run(test())

    return run


class Doubling:
    """Answers numbers with their doubles, and 13 with an error, when it is let."""

    def __init__(self):
        self.calls, self.began = [], asyncio.Queue()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self, numbers):
        self.calls.append(numbers)
        self.began.put_nowait(len(numbers))
        await self.may_end.wait()
        return [ValueError("13") if one == 13 else 2 * one for one in numbers]


@in_a_loop
async def test_what_is_asked_during_a_call_goes_into_the_next_one_together():
    work = Doubling()
    gathering = Gathering(work, count_max=10)
    assert await asyncio.gather(*map(gathering.ask, (1, 2, 3))) == [2, 4, 6]
    work.may_end.clear()
    first = asyncio.ensure_future(gathering.ask(4))
    assert [await work.began.get() for _ in range(2)] == [3, 1]
    others = [asyncio.ensure_future(gathering.ask(one)) for one in (5, 6)]
    work.may_end.set()
    assert await asyncio.gather(first, *others) == [8, 10, 12]
    assert work.calls == [[1, 2, 3], [4], [5, 6]]


@in_a_loop
async def test_an_error_is_told_to_whom_it_concerns():
    found = await asyncio.gather(
        *map(Gathering(Doubling(), count_max=10).ask, (1, 13, 2)), return_exceptions=True
    )
    assert found[::2] == [2, 4]
    assert isinstance(found[1], ValueError)


@in_a_loop
async def test_no_call_is_given_more_than_it_may_have():
    work = Doubling()
    found = await asyncio.gather(*map(Gathering(work, count_max=2).ask, range(5)))
    assert found == [0, 2, 4, 6, 8]
    assert work.calls == [[0, 1], [2, 3], [4]]


@in_a_loop
async def test_whoever_asks_while_a_call_ends_is_answered_too():
    gathering = Gathering(Doubling(), count_max=10)

    async def again_and_again(number):
        for _ in range(20):
            assert await gathering.ask(number) == 2 * number

    await asyncio.gather(*map(again_and_again, range(7)))


@in_a_loop
async def test_a_call_that_takes_long_holds_up_nobody_for_long():
    work = Doubling()
    work.may_end.clear()
    gathering = Gathering(work, count_max=10)
    asked = [asyncio.ensure_future(gathering.ask(1))]
    await work.began.get()
    asked.append(asyncio.ensure_future(gathering.ask(2)))
    await work.began.get()  # beside the first, which has not ended
    work.may_end.set()
    assert await asyncio.gather(*asked) == [2, 4]


@in_a_loop
async def test_whoever_goes_away_takes_nobody_along():
    work = Doubling()
    work.may_end.clear()
    gathering = Gathering(work, count_max=10)
    gone, stays = (asyncio.ensure_future(gathering.ask(one)) for one in (1, 2))
    await work.began.get()
    gone.cancel()
    work.may_end.set()
    assert await stays == 4


@in_a_loop
async def test_what_can_wait_is_gathered_for_a_while_after_a_call():
    work = Doubling()
    gathering = Gathering(work, count_max=10, rest_seconds=REST_SECONDS_MAX)
    assert await gathering.ask(1) == 2
    second = asyncio.ensure_future(gathering.ask(2))
    await asyncio.sleep(0)  # it has asked
    await asyncio.sleep(0)  # without a rest its call would have begun
    assert await asyncio.gather(gathering.ask(3), second) == [6, 4]
    assert work.calls == [[1], [2, 3]]


@in_a_loop
async def test_a_call_that_is_full_does_not_rest():
    work = Doubling()
    gathering = Gathering(work, count_max=2, rest_seconds=REST_SECONDS_MAX)
    found = await asyncio.gather(*map(gathering.ask, range(5)))
    assert found == [0, 2, 4, 6, 8]
    assert work.calls == [[0, 1], [2, 3], [4]]


async def asked_one_by_one(gathering, *numbers):
    """Asks in different steps of the loop, and returns what is answered."""
    asked = []
    for number in numbers:
        asked.append(gathering.ask(number))
        await asyncio.sleep(0)
    return await asyncio.gather(*asked)


@in_a_loop
async def test_of_a_crowd_as_many_are_waited_for_as_came_the_last_time():
    work = Doubling()
    gathering = Gathering(work, count_max=10, crowd_seconds=3_600)
    assert await asyncio.gather(*map(gathering.ask, (1, 2, 3))) == [2, 4, 6]
    assert await asked_one_by_one(gathering, 4, 5, 6) == [8, 10, 12]
    assert work.calls == [[1, 2, 3], [4, 5, 6]]


@in_a_loop
async def test_who_came_during_a_call_waits_for_the_rest_of_the_crowd():
    work = Doubling()
    gathering = Gathering(work, count_max=10, crowd_seconds=3_600)
    await asyncio.gather(*map(gathering.ask, (1, 2)))
    work.may_end.clear()
    first = asyncio.gather(*map(gathering.ask, (3, 4)))
    assert [await work.began.get() for _ in range(2)] == [2, 2]
    others = [gathering.ask(5)]
    work.may_end.set()
    await first
    others.append(gathering.ask(6))
    assert await asyncio.gather(*others) == [10, 12]
    assert work.calls[2:] == [[5, 6]]


@in_a_loop
async def test_a_crowd_that_has_left_is_soon_expected_no_more():
    work = Doubling()
    gathering = Gathering(work, count_max=10, crowd_seconds=0.001)
    await asyncio.gather(*map(gathering.ask, range(4)))
    for number in (4, 5):  # for each of these there is a wait, though not a long one
        asked = gathering.ask(number)
        await asyncio.sleep(0)
        assert len(work.calls) == number - 3
        assert await asked == 2 * number
    asked = gathering.ask(6)
    await asyncio.sleep(0)
    assert work.calls[-1] == [6]
    assert await asked == 12


@in_a_loop
async def test_who_is_alone_waits_for_nobody():
    gathering = Gathering(Doubling(), count_max=10, crowd_seconds=3_600)
    for number in range(5):
        assert await gathering.ask(number) == 2 * number


@in_a_loop
async def test_who_waits_for_the_end_of_a_rest_is_answered_beside_a_call_that_is_stuck():
    work = Doubling()
    work.may_end.clear()
    gathering = Gathering(work, count_max=10, rest_seconds=REST_SECONDS_MAX)
    asked = []
    for number in (1, 2, 3):
        asked.append(asyncio.ensure_future(gathering.ask(number)))
        await work.began.get()
    work.may_end.set()
    assert await asyncio.gather(*asked) == [2, 4, 6]


class Storing(MemoryStore):
    """Notes what it is given together, and breaks at a task that is called so."""

    def __init__(self, error=None):
        super().__init__(clock=lambda: 1.0)
        self.error, self.calls = error, []

    async def submit_audited(self, tasks, entries_of):
        self.calls.append([task.id for task in tasks])
        if any(task.id == "bad" for task in tasks):
            raise self.error
        return await super().submit_audited(tasks, entries_of)


def told(outcome):
    """What the audit is to say of a task."""
    facts = {"token": 1, "who": "me", "client": "here", "verb": "POST /tasks"}
    return AuditEntry(**facts, target=outcome.id, status=201, correlation="c")


def task(name):
    return AuditedTask(NewTask(id=TaskId(name), queue="q", handler="h"), told)


async def submitted(store, *names):
    asked = GatheredRequests(store, store).submissions.ask
    found = await asyncio.gather(*(asked(task(one)) for one in names), return_exceptions=True)
    return [getattr(one, "id", one) for one in found]


@in_a_loop
async def test_a_task_that_is_refused_refuses_no_other():
    store = Storing()
    await store.submit([NewTask(id=TaskId("taken"), queue="another", handler="h")])
    a, taken, b = await submitted(store, "a", "taken", "b")
    assert (a, b) == ("a", "b")
    assert isinstance(taken, Duplicate)
    # Alone it is asked once more, as another of the same call could have been the reason.
    assert store.calls == [["a", "taken", "b"], ["taken"]]
    # Who is refused is told of by whoever hears it, in its own words.
    assert [one.target for one in await store.audit()] == ["b", "a"]


@in_a_loop
async def test_a_task_is_not_refused_for_another_caller_s_that_is_refused_too():
    store = Storing()
    await store.submit([NewTask(id=TaskId("old"), queue="q", handler="h", unique_key="k")])
    ask = GatheredRequests(store, store).submissions.ask
    mine = NewTask(id=TaskId("mine"), queue="q", handler="h", name="n")
    theirs = replace(mine, id=TaskId("theirs"), unique_key="k")
    asked = (ask(AuditedTask(one, told)) for one in (theirs, mine))
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(one, Duplicate) for one in found] == [True, False], found
    assert found[1].id == "mine"


@in_a_loop
async def test_who_comes_late_to_a_call_that_is_stuck_does_not_wait_for_its_end():
    goes_on = asyncio.Event()

    async def work(items):
        if "stuck" in items:
            await goes_on.wait()
        return items

    gathering = Gathering(work, count_max=100)
    stuck = asyncio.ensure_future(gathering.ask("stuck"))
    loop = asyncio.get_running_loop()
    patient = loop.create_future()
    loop.call_later(2 * PATIENCE_SECONDS, patient.set_result, None)
    await patient
    assert await gathering.ask("late") == "late"
    goes_on.set()
    assert await stuck == "stuck"


@in_a_loop
async def test_what_nobody_waits_for_any_more_is_not_begun():
    double = Doubling()
    double.may_end.clear()
    gathering = Gathering(double, count_max=100)
    first = asyncio.ensure_future(gathering.ask(1))
    await double.began.get()
    gone, last = (asyncio.ensure_future(gathering.ask(one)) for one in (2, 3))
    gone.cancel()
    double.may_end.set()
    assert (await first, await last) == (2, 6)
    assert double.calls == [[1], [3]]


@in_a_loop
async def test_a_task_that_breaks_the_store_breaks_no_other():
    store = Storing(AssertionError("a mistake of ours"))
    a, bad, b = await submitted(store, "a", "bad", "b")
    assert (a, b) == ("a", "b")
    assert isinstance(bad, AssertionError)
    assert sorted(store.calls[1:]) == [["a"], ["b"], ["bad"]]
    assert sorted(one.target for one in await store.audit()) == ["a", "b"]


@in_a_loop
async def test_what_may_be_stored_is_not_stored_again():
    store = Storing(StoreUnreachable("the answer was lost"))
    found = await submitted(store, "a", "bad")
    assert all(isinstance(one, StoreUnreachable) for one in found)
    assert store.calls == [["a", "bad"]]


@in_a_loop
async def test_a_task_that_is_not_there_is_unknown():
    store = Storing()
    with pytest.raises(NotFound, match="nobody"):
        await GatheredRequests(store, store).tasks.ask(TaskId("nobody"))


class Renewing(MemoryStore):
    """Notes whose heartbeats it is given together, and breaks at those of worker-13."""

    def __init__(self):
        super().__init__(clock=lambda: 1.0)
        self.calls = []

    async def heartbeats(self, told):
        self.calls.append([one.worker for one in told])
        if "worker-13" in self.calls[-1]:
            raise StoreBusy("somebody holds its lease")
        return await super().heartbeats(told)

    async def heartbeat(self, worker, beats):
        return (await self.heartbeats([WorkerBeats(worker, beats)]))[0]


def beats(*progress):
    return [Beat(task_id=TaskId(f"{n}"), attempt=1, progress=p) for n, p in enumerate(progress)]


async def renewed(store, **told):
    heartbeat = GatheredRequests(store, store).heartbeat
    asked = (heartbeat(f"worker-{name[1:]}", some) for name, some in told.items())
    return await asyncio.gather(*asked, return_exceptions=True)


@in_a_loop
async def test_heartbeats_that_come_at_once_are_stored_together_and_answered_apart():
    store = Renewing()
    assert await renewed(store, w1=beats(None, 0.5), w2=beats(1.0), w3=[]) == [
        [LeaseAnswer.LOST] * 2,
        [LeaseAnswer.LOST],
        [],
    ]
    assert store.calls == [["worker-1", "worker-2", "worker-3"]]


@in_a_loop
async def test_a_worker_whose_heartbeats_fail_keeps_no_other_from_its_leases():
    store = Renewing()
    first, broken, wrong, last = await renewed(
        store, w1=beats(0.1), w13=beats(0.1), w2=beats(7.0), w3=beats(0.2)
    )
    assert first == last == [LeaseAnswer.LOST]
    assert isinstance(broken, StoreBusy)
    assert isinstance(wrong, BadSetting)
    assert store.calls[0] == ["worker-1", "worker-13", "worker-3"]
    assert sorted(store.calls[1:]) == [["worker-1"], ["worker-13"], ["worker-3"]]


@in_a_loop
async def test_a_worker_with_very_many_leases_holds_up_no_other():
    store = Renewing()
    await renewed(store, w1=beats(0.1), w2=beats(*[0.1] * (BEATS_MAX + 1)))
    assert sorted(store.calls) == [["worker-1"], ["worker-2"]]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.verb)
def test_the_table_finds_each_route_by_its_path(route):
    table = RouteTable(ROUTES)
    path = route.path.replace("{", "x%2Fy-").replace("}", "")
    found, parameters = table.find(route.method, path)
    assert found is route
    assert parameters == {name: f"x%2Fy-{name}" for name in route.path_names}
    assert route in table.others(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//",
        "/api/v1/tasks/",
        "/api/v1/tasks//logs/out",
        "/api/v1",
        "/healthz/",
        "healthz",
    ],
)
def test_a_path_with_an_empty_part_or_without_a_slash_is_that_of_no_resource(path):
    found = RouteTable(ROUTES).find("GET", path)
    assert found is None or path == "/"


def test_a_fixed_word_goes_before_a_parameter_and_a_method_of_its_own_before_both():
    table = RouteTable(ROUTES)
    assert table.find("POST", "/api/v1/tasks/cancel")[0].path.endswith("/tasks/cancel")
    assert table.find("GET", "/api/v1/tasks/cancel")[1] == {"id": "cancel"}
