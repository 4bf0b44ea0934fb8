"""Processes that do the same at the same moment: real threads on real databases."""

import asyncio
import os
import threading
from collections import Counter

import pytest

from tests.conformance.door import Held, new_task
from tests.conformance.run_steps import Driver
from tests.conformance.together import in_rounds, together
from tidewheel.config import StoreSettings
from tidewheel.core.operator.requests import NewCommand
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import (
    Beat,
    ClaimRequest,
    End,
    Ending,
    QueueSettings,
    Report,
    WorkerBeats,
)
from tidewheel.errors import (
    DependencyCycle,
    Duplicate,
    LeaseLost,
    StoreUnreachable,
    Unavailable,
    WrongStatus,
)
from tidewheel.store.postgres import open_postgres_store
from tidewheel.store.sqlite import open_sqlite_store

WORKERS = 8
DONE = End(ending=Ending.SUCCEEDED)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request):
    """Memory is one process by itself."""
    return request.param


def refusals(answers, *kinds):
    """How many answers are none of these refusals; any other answer is counted as it is."""
    return Counter(
        type(answer).__name__ if isinstance(answer, kinds) else answer for answer in answers
    )


def trying(operation, *kinds):
    """An operation whose expected refusals are answers."""

    def attempt(door):
        try:
            return operation(door)
        except kinds as refused:
            return refused

    return attempt


@pytest.mark.req("R002-35", "R002-33", "R002-89")
def test_eight_workers_drain_ten_thousand_tasks_and_share_none(store, world):
    names = [f"t{n}" for n in range(10_000)]
    store.submit([new_task(name, priority=hash(name) % 5) for name in names])

    def work(door):
        worker, mine = door.hire(), []
        request = ClaimRequest(queue="q", worker=worker, count=100, lease_seconds=600)
        while claimed := door.claim(request):
            mine += [(task.id, task.attempt) for task in claimed]
            reports = [Report(holder=Held(task, worker).holder, end=DONE) for task in claimed]
            assert [one.refused for one in door.report(reports)] == [None] * len(reports)
        return mine

    shares = together(world, *[work] * WORKERS)
    taken = Counter(pair for share in shares for pair in share)
    assert taken == Counter((name, 1) for name in names)
    assert sum(bool(share) for share in shares) > 1
    assert [queue.counts for queue in store.queues()] == [{}]


@pytest.mark.req("R003-34", "R003-33", "R002-34", "R002-89")
def test_of_many_claims_for_one_task_exactly_one_wins(store, world):
    names = [f"t{n}" for n in range(20)]
    store.put(*names)

    def claim_all(door, rounds):
        worker = door.hire()
        return [
            name
            for name in rounds(names)
            if not isinstance(
                trying(lambda d, name=name: d.hold(name, worker), WrongStatus)(door),
                WrongStatus,
            )
        ]

    won = [name for share in in_rounds(world, *[claim_all] * 4) for name in share]
    assert sorted(won) == sorted(names)
    assert {store.get(name).attempt for name in names} == {1}


@pytest.mark.req("R002-67", "R002-27", "R002-61")
def test_a_cancel_beside_a_claim_leaves_no_task_unasked(store, world):
    names = [f"t{n}" for n in range(300)]
    store.put(*names)

    def claim(door):
        worker, taken = door.hire(), []
        while held := door.take(3, worker=worker):
            taken += held
        return taken

    def cancel(door):
        return [door.cancel_one(name) for name in names]

    first, second, answers = together(world, claim, claim, cancel)
    assert all(answer.changed for answer in answers)
    running = {held.id for held in first + second}
    for answer in answers:
        expected = "cancelling" if answer.id in running else "cancelled"
        assert (answer.status, store.status(answer.id)) == (expected, expected)


@pytest.mark.req("R002-67")
def test_a_heartbeat_beside_a_cancel_and_an_end_never_resurrects(store, world):
    names = [f"t{n}" for n in range(40)]
    store.put(*names)
    worker = store.hire()
    held = store.take(40, worker=worker)
    beats = [Beat(task_id=name, attempt=1, progress=0.5) for name in names]

    def beat(door):
        return [door.heartbeat(worker, beats) for _ in range(20)]

    def end(door):
        return [door.report([Report(holder=one.holder, end=DONE)])[0].status for one in held]

    _, _, ends = together(world, beat, lambda d: [d.cancel([n]) for n in names], end)
    for name, status in zip(names, ends, strict=True):
        assert store.status(name) == status
        assert status in ("cancelled", "succeeded")
        assert store.signals(name).count("claim") == 1
    assert set(store.heartbeat(worker, beats)) == {LeaseAnswer.LOST}


@pytest.mark.req("R002-55", "R002-56")
def test_renewals_beside_two_monitors_leave_each_task_to_one_of_them(store, world, clock):
    names = [f"t{n}" for n in range(60)]
    store.put(*names)
    worker = store.hire()
    store.take(60, worker=worker)
    clock.advance(11)

    def renew(door):
        return {
            name: door.heartbeat(worker, [Beat(task_id=name, attempt=1)])[0] for name in names
        }

    def watch(door):
        lapsed = []
        for _ in range(20):
            lapsed += door.lapse(count_max=5)
        return [task_id for task_id, _ in lapsed]

    answers, one, other = together(world, renew, watch, watch)
    lapsed = Counter(one + other)
    assert set(lapsed.values()) <= {1}
    for name in names:
        kept = answers[name] is LeaseAnswer.GO_ON
        assert kept != (name in lapsed)
        assert store.status(name) == ("running" if kept else "ready")
        assert store.signals(name) == [None, "claim"] + ([] if kept else ["lapse"])


@pytest.mark.req("R002-52", "R002-56")
def test_a_late_end_beside_the_monitor_happens_whole_or_not_at_all(store, world, clock):
    names = [f"t{n}" for n in range(60)]
    store.put(*names)
    held = store.take(60, worker=store.hire())
    clock.advance(11)

    def end(door):
        return [
            trying(lambda d, one=one: d.finish(one), LeaseLost, WrongStatus)(door)
            for one in held
        ]

    def watch(door):
        return [task_id for _ in range(30) for task_id, _ in door.lapse(count_max=3)]

    ends, lapsed = together(world, end, watch)
    for one, ended in zip(held, ends, strict=True):
        assert (ended == "succeeded") != (one.id in lapsed)
        assert store.status(one.id) == ("succeeded" if ended == "succeeded" else "ready")


@pytest.mark.req("R003-27", "R003-15", "R002-89")
def test_parents_that_end_at_the_same_moment_release_their_children_once(store, world):
    parents = [f"p{n}" for n in range(WORKERS * 5)]
    store.put(*parents)
    for n in range(5):
        store.put(f"c{n}", needs=parents)
    store.submit_chain("c0", "d", "e")
    held = {name: store.hold(name) for name in parents}

    def end(share):
        return lambda door: [door.finish(held[name]) for name in share]

    together(world, *(end(parents[n::WORKERS]) for n in range(WORKERS)))
    for n in range(5):
        assert store.signals(f"c{n}") == [None, "satisfy"]
    assert store.statuses("d", "e") == ["waiting", "waiting"]


@pytest.mark.req("R003-16", "R002-89")
def test_two_parents_that_end_at_the_same_moment_never_both_leave_their_child_waiting(
    store, world
):
    """Each may see the other as not yet ended; then nobody would release the child."""
    for n in range(25):
        store.put(f"a{n}", f"b{n}")
        store.put(f"c{n}", needs=[f"a{n}", f"b{n}"])
    held = {name: store.hold(name) for n in range(25) for name in (f"a{n}", f"b{n}")}

    def end(letter):
        return lambda door, rounds: [
            door.finish(held[f"{letter}{n}"]) for n in rounds(range(25))
        ]

    in_rounds(world, end("a"), end("b"))
    assert store.statuses(*(f"c{n}" for n in range(25))) == ["ready"] * 25


@pytest.mark.req("R003-49")
def test_ends_and_cancels_in_one_graph_do_not_wait_for_each_other_for_ever(store, world):
    for n in range(20):
        store.put(f"a{n}", f"b{n}")
        store.put(f"c{n}", needs=[f"a{n}", f"b{n}"])
        if n:
            store.put(f"x{n}", needs=[f"a{n - 1}", f"b{n}"])
    held = {name: store.hold(name) for n in range(20) for name in (f"a{n}", f"b{n}")}
    together(
        world,
        lambda d: [d.finish(held[f"a{n}"]) for n in range(20)],
        lambda d: [d.finish(held[f"b{n}"]) for n in reversed(range(20))],
        lambda d: [d.cancel([f"c{n}", f"b{n}"]) for n in range(0, 20, 2)],
    )
    finals = Counter(store.status(f"c{n}") for n in range(20))
    assert set(finals) <= {"ready", "cancelled"}
    assert all(store.status(f"c{n}") == "cancelled" for n in range(0, 20, 2))


@pytest.mark.req("R002-2", "R002-27")
def test_clients_that_submit_the_same_at_once_make_one_task(store, world):
    batches = [[new_task(f"t{n}", name=f"n{n}") for n in range(k, k + 20)] for k in range(30)]

    def submit(door):
        return [one for batch in batches for one in door.submit(batch) if one.created]

    created = Counter(one.id for share in together(world, *[submit] * 4) for one in share)
    assert set(created.values()) == {1}
    assert len(created) == len(store.listed()) == 49


def test_of_two_different_tasks_under_one_id_name_or_key_one_is_stored(store, world):
    def submit(spec):
        tasks = [
            task
            for n in range(15)
            for task in (
                new_task(f"id{n}", spec=spec),
                new_task(f"name{n}{spec}", name=f"n{n}", spec=spec),
                new_task(f"key{n}{spec}", unique_key=f"k{n}", spec=spec),
            )
        ]
        return lambda door, rounds: [
            trying(lambda d, task=task: d.submit([task])[0].created, Duplicate)(door)
            for task in rounds(tasks)
        ]

    answers = zip(*in_rounds(world, submit("[1]"), submit("[2]")), strict=True)
    for pair in answers:
        assert refusals(pair, Duplicate) == {True: 1, "Duplicate": 1}
    assert len(store.listed()) == 45


@pytest.mark.req("R003-26")
def test_edges_added_at_once_never_close_a_circle(store, world):
    for n in range(15):
        store.put(*(f"{letter}{n}" for letter in "abcd"), armed=False)
        store.add_edges([(f"a{n}", f"b{n}"), (f"c{n}", f"d{n}")])

    def add(first, second):
        return lambda door, rounds: [
            trying(
                lambda d, n=n: d.add_edges([(f"{first}{n}", f"{second}{n}")]),
                DependencyCycle,
            )(door)
            for n in rounds(range(15))
        ]

    answers = zip(*in_rounds(world, add("b", "c"), add("d", "a")), strict=True)
    for pair in answers:
        assert refusals(pair, DependencyCycle) == {None: 1, "DependencyCycle": 1}


def test_a_limit_holds_however_many_ask_at_once(store, world):
    limits = (Limit(concurrency_max=5), Limit(key="k", concurrency_max=2))
    store.configure_queue("q", QueueSettings(limits=limits))
    store.put(*(f"k{n}" for n in range(100)), limit_key="k", priority=99)
    store.put(*(f"t{n}" for n in range(100)))

    def claim(door):
        worker = door.hire()
        return [held.id for _ in range(10) for held in door.take(3, worker=worker)]

    running = [name for share in together(world, *[claim] * 6) for name in share]
    assert len(running) == 5
    assert sum(name.startswith("k") for name in running) == 2


OPENING = {"sqlite": open_sqlite_store, "postgres": open_postgres_store}
ANSWERED_SECONDS_MAX = 30.0  # a store that is slow answers sooner, one that forgot never


@pytest.mark.parametrize(
    "settings",
    [
        QueueSettings(limits=(Limit(key="*", concurrency_max=1),), lease_seconds=600),
        QueueSettings(fair=True, lease_seconds=600),
        QueueSettings(
            fair=True, limits=(Limit(key="b", concurrency_max=2),), lease_seconds=600
        ),
    ],
)
def test_no_key_is_forgotten_while_others_submit_end_and_claim(store, world, settings):
    """Limits and turns are set while tasks come in: each of them is noticed by some claim."""
    each, clients, workers = 40, 2, 3
    done = []

    def submit(place, door):
        for number in range(each):
            keyed = {"limit_key": "abc"[number % 3]} if number % 4 else {}
            door.put(f"{place} {number}", f"{place} {number} too", **keyed)

    def work(door):
        worker = door.hire()
        while len(done) < clients * each * 2:
            for held in door.take(3, worker=worker):
                door.finish(held)
                done.append(held.id)

    together(
        world,
        *(lambda door, place=place: submit(place, door) for place in range(clients)),
        *[work] * workers,
        lambda door: door.configure_queue("q", settings),
    )
    assert len(set(done)) == len(done) == clients * each * 2
    assert store.verify() == []


def test_a_write_that_comes_while_the_store_closes_is_done_or_refused(kind, world, tmp_path):
    """Never left without an answer, and what was answered with success is there afterwards."""

    def settings(turn):
        if kind == "postgres":
            return world.settings
        return StoreSettings(url=f"sqlite:///{tmp_path}/{turn}.db")

    async def write(store, queue, done):
        try:
            while True:
                await store.pause_queue(queue, paused=True)
                done.add(queue)
        except Unavailable as refused:
            return refused

    async def one_turn(turn):
        done = set()
        store = OPENING[kind](settings(turn))
        writers = [asyncio.create_task(write(store, f"{turn}-{n}", done)) for n in range(20)]
        while len(done) < turn % 20:  # closed at another moment each time
            await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        late = asyncio.create_task(write(store, f"{turn}-late", done))
        answers = asyncio.gather(*writers, late, closing)
        await asyncio.wait_for(answers, ANSWERED_SECONDS_MAX)
        looking = OPENING[kind](settings(turn))
        paused = {one.queue for one in await looking.queues() if one.settings.paused}
        await looking.close()
        assert done <= paused

    for turn in range(40):
        asyncio.run(one_turn(turn))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_opened_before_a_fork_is_closed_in_the_child_and_serves_its_parent(kind, world):
    store = OPENING[kind](world.settings)

    async def asked():
        calls = [store.pause_queue("q", paused=True), store.queues(), store.get("a")]
        answers = asyncio.gather(*calls, return_exceptions=True)
        told = [type(one).__name__ for one in await asyncio.wait_for(answers, 20)]
        await store.close()
        return told

    async def goes_on():
        await store.pause_queue("q", paused=True)
        await store.close()

    with asyncio.Runner() as runner:
        runner.run(store.queues())  # so there is a thread, and a connection that rests
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writable, " ".join(asyncio.run(asked())).encode())
            finally:
                os._exit(0)
        os.close(writable)
        os.waitpid(child, 0)
        with os.fdopen(readable) as pipe:
            assert pipe.read() == "ForkedProcess ForkedProcess ForkedProcess"
        runner.run(goes_on())


def test_a_write_behind_a_slow_commit_of_a_closing_store_is_answered(tmp_path):
    go_on = threading.Event()

    async def main():
        store = open_sqlite_store(StoreSettings(url=f"sqlite:///{tmp_path}/x.db"))
        # The first write of a turn is carried out here, the second in the store's thread.
        quick = asyncio.create_task(store.transact(lambda _: None))
        slow = asyncio.create_task(store.transact(lambda _: go_on.wait()))
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)  # all have begun
        try:
            with pytest.raises(StoreUnreachable, match="is closed"):
                await asyncio.wait_for(
                    store.pause_queue("q", paused=True), ANSWERED_SECONDS_MAX
                )
        finally:
            go_on.set()
            await asyncio.gather(quick, slow, closing)

    asyncio.run(main())


def test_a_trigger_at_the_moment_of_the_end_is_heard_by_somebody(store, world):
    """It comes before the last batch, which reopens the run then, or after it, and does so."""
    drivers = [Driver.of(store, f"wf{n}") for n in range(60)]

    def ask(door, rounds):
        for driver in rounds(drivers):
            body = '{"verb": "trigger", "ids": ["1/a"]}'
            run = driver.run.number
            door.post_command(NewCommand(run=run, body=body, who="me", reopens=True))

    def end(door, rounds):
        for driver in rounds(drivers):
            batch = driver.batch(status="completed", ends=True)
            door.write_batch(driver.lease, batch)

    in_rounds(world, ask, ask, end)
    offered = {run.number for run in store.claimable_runs(99)}
    assert offered == {driver.run.number for driver in drivers}


def test_heartbeats_of_several_workers_extend_each_only_its_own_leases(store, clock):
    """A server stores together what came at once; who names another's lease has lost it."""
    store.put(*"abc")
    mine, other = store.take(2, worker=store.hire()), store.take(1)[0]
    clock.advance(5)
    own = [Beat(task_id=one.id, attempt=1, progress=0.5) for one in mine]
    stolen = Beat(task_id=mine[0].id, attempt=1, progress=0.9)
    its = Beat(task_id=other.id, attempt=1)
    old = Beat(task_id=other.id, attempt=2)
    told = [
        WorkerBeats(other.worker, [stolen, its, old]),
        WorkerBeats(mine[0].worker, [*own, its]),
        WorkerBeats("nobody", [its]),
        WorkerBeats(other.worker, []),
    ]
    go_on, lost = LeaseAnswer.GO_ON, LeaseAnswer.LOST
    assert store.heartbeats(told) == [[lost, go_on, lost], [go_on, go_on, lost], [lost], []]
    for one in (*mine, other):
        assert store.get(one.id).deadline_at == clock.now + 10
    assert [store.get(one.id).progress for one in (*mine, other)] == [0.5, 0.5, 0.0]
    assert {one.seen_at for one in store.workers()} == {clock.now}
