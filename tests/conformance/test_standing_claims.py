"""A claim that a worker left is carried out by the write that makes its tasks ready."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import psycopg
import pytest

from tests.conformance.door import Door, Held, new_task
from tests.conformance.together import together
from tests.kit.memory.store import MemoryStore
from tests.support.patience import allowed, eventually
from tidewheel.core.queue.access import AuditEntry
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import ClaimRequest, End, Ending, QueueSettings, Report
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import NotFound, Refused, StoreUnreachable
from tidewheel.ports.store import StandingClaim
from tidewheel.store.postgres import PostgresStore
from tidewheel.store.postgres_wire import Wire
from tidewheel.store.transaction import Conflict, no_news

SUCCEEDED = End(ending=Ending.SUCCEEDED)


def left_by(store, worker, count=1, queue="q", *, for_ends=False, on_settled=lambda: None):
    """A claim that a worker left with the store, and what became of it."""
    told = SimpleNamespace(tasks="standing", unsure=False, asked_at=None)

    def settle(claim, tasks):
        on_settled()
        told.tasks = tasks if tasks is None else [task.id for task in tasks]
        told.held = [Held(task, worker) for task in tasks or ()]
        told.unsure, told.asked_at = claim.is_unsure, claim.asked_at

    async def leave():
        free = Resources(cpu=8)
        request = ClaimRequest(queue=queue, worker=worker, count=count, free=free)
        told.claim = StandingClaim(request, lambda: 7.0, settle, for_ends=for_ends)
        assert store.store.post_claim(told.claim)

    store.in_loop(leave())
    return told


def test_a_task_is_handed_over_by_the_transaction_that_submits_it(store):
    worker = store.hire()
    told = left_by(store, worker)
    store.put("a", "b")
    assert told.tasks == ["a"]
    assert (told.asked_at, told.unsure) == (7.0, False)
    task = store.get("a")
    assert (task.status, task.owner, task.attempt) == ("running", worker, 1)
    assert [entry.signal for entry in store.history("a", count=10)][-1] == "claim"
    assert store.get("b").status == "ready"
    store.finish(told.held[0])
    assert store.get("a").status == "succeeded"


def test_the_end_of_a_task_hands_over_the_one_that_needs_it(store):
    worker = store.hire()
    store.put("a")
    store.put("b", needs=["a"])
    first = store.hold("a", worker)
    told = left_by(store, worker)
    store.finish(first)
    assert told.tasks == ["b"]


def test_ends_take_as_many_of_the_next_tasks_along_as_were_accepted(store):
    worker = store.hire()
    store.put("a", "b", "c", "d", "e", "f")
    held = [store.hold(name, worker) for name in ("a", "b", "c")]
    told = left_by(store, worker, count=3, for_ends=True)
    stale = replace(held[2].holder, attempt=7)
    ends = [
        Report(holder=one, end=SUCCEEDED) for one in (held[0].holder, held[1].holder, stale)
    ]
    answers = store.report(ends)
    assert [answer.refused is None for answer in answers] == [True, True, False]
    assert told.tasks == ["d", "e"]
    assert {store.get(name).status for name in ("c", "d", "e")} == {"running"}
    assert store.get("f").status == "ready"
    assert store.verify() == []


def test_a_claim_for_ends_waits_for_ends_of_its_own_worker(store):
    worker, other = store.hire(), store.hire()
    store.put("a", "b")
    mine, theirs = store.hold("a", worker), store.hold("b", other)
    told = left_by(store, worker, for_ends=True)
    store.put("c", "d")
    store.finish(theirs)
    assert told.tasks == "standing"
    store.finish(mine)
    assert told.tasks == ["c"]


def test_a_claim_is_carried_out_once_and_a_withdrawn_one_never(store):
    worker = store.hire()
    told, gone = left_by(store, worker), left_by(store, worker)
    assert gone.claim.withdraw()
    store.put("a")
    store.put("b")
    assert (told.tasks, gone.tasks) == (["a"], "standing")
    assert store.get("b").status == "ready"
    assert not told.claim.withdraw()


def test_what_does_not_fit_is_left_and_what_is_in_another_queue_is_not_looked_for(store):
    told = left_by(store, store.hire())
    store.put("elsewhere", queue="other")
    assert told.tasks == "standing"
    store.put("large", resources=Resources(cpu=64))
    assert told.tasks == []
    assert store.get("large").status == "ready"


def test_a_write_that_is_refused_hands_over_nothing_and_the_claim_stands(store):
    told = left_by(store, store.hire())
    with pytest.raises(Refused):
        store.submit([new_task("a"), new_task("b", needs=["missing"])])
    assert told.tasks == "standing"
    store.put("c")
    assert told.tasks == ["c"]


@pytest.mark.parametrize("unclaimable", ["limited", "paused", "unknown worker"])
def test_limits_pauses_and_unknown_workers_are_left_to_a_claim_of_its_own(store, unclaimable):
    worker = store.hire() if unclaimable != "unknown worker" else "worker-77"
    if unclaimable == "limited":
        store.configure_queue("q", QueueSettings(limits=(Limit(concurrency_max=1),)))
    elif unclaimable == "paused":
        store.pause_queue("q", paused=True)
    told = left_by(store, worker)
    store.put("a")
    assert told.tasks == ([] if unclaimable == "paused" else None)
    assert store.get("a").status == "ready"


def test_a_delayed_task_is_not_handed_over_and_told_of(store):
    told = left_by(store, store.hire())
    store.put("later", delay_seconds=30.0)
    assert told.tasks in ("standing", [])
    assert store.get("later").status == "ready"
    assert store.get("later").owner is None


def test_many_writes_at_once_hand_over_each_task_once(store):
    worker = store.hire()
    claims = [left_by(store, worker, count=3) for _ in range(5)]

    async def submit_all():
        await asyncio.gather(*(store.store.submit([new_task(f"t{n}")]) for n in range(20)))

    store.in_loop(submit_all())
    given = [task for told in claims if told.tasks != "standing" for task in told.tasks]
    assert len(given) == len(set(given)) >= 1
    running = [task for n in range(20) if (task := store.get(f"t{n}")).status == "running"]
    assert sorted(task.id for task in running) == sorted(given)
    held = [one for told in claims for one in getattr(told, "held", ())]
    answers = store.report([Report(holder=one.holder, started=True) for one in held])
    assert all(answer.refused is None for answer in answers)


def test_a_write_whose_caller_goes_away_hands_over_its_tasks_when_it_is_written(store):
    told = left_by(store, store.hire())

    async def go_away():
        submitting = asyncio.create_task(store.store.submit([new_task("a")]))
        await asyncio.sleep(0)
        submitting.cancel()
        async with asyncio.timeout(allowed(20)):
            await told.claim.wait()

    store.in_loop(go_away())
    assert (told.tasks, told.unsure) == (["a"], False)


def test_a_write_does_not_fail_for_a_worker_whose_loop_is_closed(store):
    gone = SimpleNamespace(store=store.store, in_loop=asyncio.run)
    told = left_by(gone, store.hire())
    store.put("a")
    assert told.tasks == "standing"
    assert store.get("a").status == "running"  # until its lease lapses, as of any dead worker


def entry_of(target):
    given = {"token": 1, "who": "me", "client": "here", "verb": "POST /tasks", "status": 201}
    return AuditEntry(target=target, correlation="c", **given)


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_submission_that_waits_while_it_claims_holds_up_no_entry_of_the_audit(store, world):
    """Decision 0053: the head of the audit is locked last, also behind a standing claim."""
    other, told = world.open(), left_by(store, store.hire())
    with psycopg.connect(world.settings.url) as blocker, ThreadPoolExecutor(1) as threads:
        blocker.execute("LOCK TABLE tidewheel.lease IN SHARE MODE")  # no lease is written
        waiting = threads.submit(
            store.submit_audited, [new_task("a")], lambda _: [entry_of("a")]
        )
        blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        eventually(lambda: world.execute(blocked) != [(0,)], "the claim waits")
        other.add_audit([entry_of("b")])
        assert not waiting.done()
        blocker.rollback()
        waiting.result(allowed(20))
    assert told.tasks == ["a"]
    assert [one.target for one in store.audit()] == ["a", "b"]


@pytest.mark.parametrize("kind", ["postgres"])
def test_servers_that_submit_claim_and_audit_at_once_run_into_no_deadlock(store, world):
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    names = [f"t{n}" for n in range(40)]

    def serve(number):
        def submit(door):
            worker = door.hire(slots=100)
            for name in names:
                left_by(door, worker, count=3)
                task = new_task(f"{name}-{number}")
                door.submit_audited([task], lambda _, one=task: [entry_of(one.id)])

        return submit

    def cancel(door):
        for name in names:
            with suppress(NotFound):
                door.cancel_one(f"{name}-0")
            door.add_audit([entry_of(name)])

    together(world, *(serve(number) for number in range(4)), cancel)
    assert len(store.audit(count=1000)) == 5 * len(names)
    assert world.execute("SELECT pg_stat_force_next_flush()")
    assert world.execute(deadlocks) == [(0,)]


class StoreWithRival(MemoryStore):
    """A store where somebody else is first: what a write did is undone, and it runs again."""

    rival = None

    async def transact(self, script, news=no_news):
        rival, self.rival = self.rival, None
        if rival is not None:

            def undone(tx):
                script(tx)
                raise Conflict

            with suppress(Conflict):
                await super().transact(undone, news)
            await rival()
        return await super().transact(script, news)


def test_a_write_that_is_run_again_hands_over_nothing_of_its_first_run():
    async def opening():
        return StoreWithRival(lambda: 1000.0)

    store = Door(opening)
    worker = store.hire()
    store.put("a")
    store.put("b", needs=["a"])
    first = store.hold("a", worker)
    told = left_by(store, worker)
    store.store.rival = partial(store.store.cancel, "b")
    store.finish(first)
    assert store.get("b").status == "cancelled"
    assert told.tasks in ("standing", [])
    store.leave()


# ---- what other processes say (PostgreSQL) ----


class Listening:
    """A process with a standing claim that hears what others say, and what it met, in order."""

    def __init__(self, store, worker):
        self._store, self.met, self._is_listening = store, [], threading.Event()
        self.stop = store.listen(self._hear)
        assert self._is_listening.wait(allowed(20))
        self.met.clear()
        self.told = left_by(store, worker, on_settled=lambda: self.met.append("settled"))

    def _hear(self, wake):
        self.met.append("everything" if wake.everything else set(wake.queues))
        self._is_listening.set()

    def settles(self):
        async def settled():
            async with asyncio.timeout(allowed(20)):
                await self.told.claim.wait()

        self._store.in_loop(settled())
        return self.told


@pytest.mark.parametrize("kind", ["postgres"])
def test_what_another_process_submits_is_handed_over_before_anybody_is_woken(store, world):
    worker = store.hire()
    listening = Listening(store, worker)
    world.open().put("a", "b")
    told = listening.settles()
    assert (told.tasks, told.asked_at, told.unsure) == (["a"], 7.0, False)
    assert told.claim.is_first
    eventually(lambda: store.in_loop(asyncio.sleep(0)) or {"q"} in listening.met, "a wake")
    assert listening.met == ["settled", {"q"}]
    task = store.get("a")
    assert (task.status, task.owner, task.attempt) == ("running", worker, 1)
    assert store.get("b").status == "ready"
    listening.stop()


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_claim_where_others_are_heard_is_one_round_trip(world, monkeypatch):
    trips = []

    def noted(way):
        def call(wire, *given, **how):
            if threading.current_thread().name == "tidewheel-postgres-listener":
                trips.append(way.__name__)
            return way(wire, *given, **how)

        return call

    for way in (Wire.ask, Wire.commit, Wire.roll_back):
        monkeypatch.setattr(Wire, way.__name__, noted(way))
    store, other = world.open(), world.open()
    listening = Listening(store, store.hire())
    other.put("a")
    assert listening.settles().tasks == ["a"]
    assert trips == ["ask"]
    assert other.get("a").status == "running"
    assert other.verify() == []


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_claim_that_fails_where_others_are_heard_is_told_as_unsure(world):
    def fail(name):
        if name == "claim_before_commit":
            raise StoreUnreachable("gone")

    async def opening():
        return PostgresStore(world.settings, failpoint=fail)

    store = Door(opening)
    listening = Listening(store, store.hire())
    other = world.open()
    other.put("a")
    told = listening.settles()
    assert (told.tasks, told.unsure) == (None, True)
    assert other.get("a").status == "ready"
    eventually(lambda: store.in_loop(asyncio.sleep(0)) or {"q"} in listening.met, "a wake")
    assert other.verify() == []
    store.leave()


@pytest.mark.parametrize("kind", ["postgres"])
def test_what_others_say_while_a_claim_is_made_is_heard_after_it(world):
    is_claiming, may_go_on = threading.Event(), threading.Event()

    def wait(name):
        if name == "claim_before_commit":
            is_claiming.set()
            assert may_go_on.wait(allowed(20))

    async def opening():
        return PostgresStore(world.settings, failpoint=wait)

    store, other = Door(opening), world.open()
    listening = Listening(store, store.hire())
    other.put("a")
    assert is_claiming.wait(allowed(20))
    queues = {f"q{number}" for number in range(9)}
    for queue in sorted(queues):
        other.put(f"in {queue}", queue=queue)
    may_go_on.set()
    assert listening.settles().tasks == ["a"]
    eventually(
        lambda: (
            store.in_loop(asyncio.sleep(0))
            or queues | {"q"}
            == set().union(*(met for met in listening.met if met != "settled"))
        ),
        "all wakes",
    )
    store.leave()
