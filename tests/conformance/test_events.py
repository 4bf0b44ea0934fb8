"""The event stream: every step once and in one order, whoever wrote it, in whatever order."""

import random

import pytest

from tests.conformance.door import Door, new_task
from tests.conformance.run_steps import Driver, active, claim_run, make_run
from tests.conformance.together import together
from tidewheel.core.operator.stream import (
    EVERY_EVENT,
    EventCursor,
    EventFilter,
    EventKind,
    EventPlace,
    read_cursor,
)
from tidewheel.core.queue.requests import End, Ending, Report
from tidewheel.core.sched.persistence import DropTask
from tidewheel.errors import BadSetting

WRITERS, ROUNDS = 4, 25


def shown(event):
    """An event in short."""
    if event.kind is EventKind.RUN:
        return ("run", event.run, event.status, event.batch)
    return ("task", event.task_id, event.signal and event.signal.value, event.to_status.value)


class Reader:
    """Somebody who follows along, a page at a time."""

    def __init__(self, door: Door, cursor=None, which=EVERY_EVENT, count=1000):
        self._door, self._which, self._count = door, which, count
        self.cursor = door.events_head() if cursor is None else cursor
        self.events, self.lost = [], 0

    def read(self):
        """Everything that can be told now; what is new of it."""
        before = len(self.events)
        while True:
            page = self._door.events_after(self.cursor, self._which, self._count)
            self.events += page.events
            self.lost += page.is_lost
            # A cursor travels as text.
            self.cursor = read_cursor(str(page.next))
            if page.is_last:
                return [shown(event) for event in self.events[before:]]


def test_a_reader_hears_every_step_once_and_in_order(store):
    reader = Reader(store)
    store.put("a", "b")
    assert reader.read() == [("task", "a", None, "ready"), ("task", "b", None, "ready")]
    held = store.hold("a")
    store.finish(held)
    assert reader.read() == [
        ("task", "a", "claim", "running"),
        ("task", "a", "succeed", "succeeded"),
    ]
    assert reader.read() == []
    done = reader.events[-1]
    assert (done.queue, done.run, done.name) == ("q", None, None)
    assert (done.attempt, done.worker, done.progress) == (1, held.worker, 1.0)
    assert done.from_status.value == "running"


def test_an_event_says_when_it_was(store, clock):
    reader = Reader(store)
    clock.advance(5)
    store.put("a")
    reader.read()
    assert [event.at for event in reader.events] == [clock.now]


def test_the_step_that_ends_an_attempt_says_how_its_job_exited(store):
    reader = Reader(store)
    store.put("a")
    store.finish(store.hold("a"), "failed", exit_status=3)
    reader.read()
    told = [(e.signal and e.signal.value, e.exit_status) for e in reader.events]
    assert told == [(None, None), ("claim", None), ("fail", 3)]


def test_pages_of_any_size_tell_the_same(store):
    start = store.events_head()
    driver = Driver.of(store)
    driver.submit("a", "b")
    store.put("c", "d")
    driver.over("a")
    store.run_through("c")
    whole = Reader(store, start)
    whole.read()
    assert len(whole.events) == 1 + 1 + 2 + 2 + 1 + 2
    for count in (1, 2, 3, 5):
        parts = Reader(store, start, count=count)
        parts.read()
        assert parts.events == whole.events
    places = [event.place for event in whole.events]
    assert places == sorted(set(places))


class TestTogether:
    """Many tasks are claimed at once, and succeed at once."""

    NAMES = ("a", "b", "c", "d", "e")

    def end(self, store, held):
        ends = [Report(holder=one.holder, end=End(ending=Ending.SUCCEEDED)) for one in held]
        assert [one.refused for one in store.report(ends)] == [None] * len(ends)

    def test_each_task_has_its_own_steps_however_many_made_them(self, store):
        start = store.events_head()
        store.put(*self.NAMES)
        held = store.take(5)
        store.put("f")
        self.end(store, held)
        whole = Reader(store, start)
        told = whole.read()
        assert sorted(told[5:10]) == [("task", name, "claim", "running") for name in self.NAMES]
        assert sorted(told[11:]) == [
            ("task", name, "succeed", "succeeded") for name in self.NAMES
        ]
        assert {event.worker for event in whole.events[5:10]} == {held[0].worker}
        for count in (1, 2, 3, 7):
            parts = Reader(store, start, count=count)
            parts.read()
            assert (parts.lost, parts.events) == (0, whole.events)
        places = [event.place for event in whole.events]
        assert places == sorted(set(places))
        for name in self.NAMES:
            assert store.signals(name) == [None, "claim", "succeed"]
            first = store.history(name, count=2)
            assert store.history(name, after=first[-1].seq) == store.history(name)[2:]

    def test_what_comes_later_counts_for_its_task_alone(self, store, clock):
        store.put(*self.NAMES)
        adopted, cancelled, *others = store.take(5)
        heir = store.hire()
        store.adopt(adopted.holder, heir)
        store.cancel([cancelled.id])
        clock.advance(3600)
        store.lapse()
        again = store.take(5)
        assert len(again) == 4
        self.end(store, again)
        assert store.signals(cancelled.id) == [None, "claim", "cancel", "lapse"]
        assert {entry.worker for entry in store.history(adopted.id)[1:2]} == {adopted.worker}
        twice = [None, "claim", "adopt", "lapse", "claim", "succeed"]
        assert store.signals(adopted.id) == twice
        for one in others:
            assert store.signals(one.id) == [None, "claim", "lapse", "claim", "succeed"]
            claims = [(e.attempt, e.worker) for e in store.history(one.id) if e.worker]
            assert claims[0] == (1, one.worker)
            assert {again[0].worker} == {worker for n, worker in claims if n == 2}

    def test_one_that_is_deleted_takes_no_steps_of_others_with_it(self, store):
        start = store.events_head()
        store.put(*self.NAMES)
        self.end(store, store.take(5))
        after = Reader(store)
        before = Reader(store, start)
        assert store.delete(["a", "c"]) == 2
        assert store.verify() == []
        assert store.signals("b") == [None, "claim", "succeed"]
        store.put("f")
        assert (after.read(), after.lost) == ([("task", "f", None, "ready")], 0)
        before.read()
        assert before.lost == 1
        assert store.delete(["b", "d", "e"]) == 3

    def test_the_retention_finds_them_oldest_first_with_all_others(self, store, clock):
        store.put(*self.NAMES, "x", "y")
        held = store.take(3)
        store.run_through("x", ending="aborted")
        clock.advance(1)
        self.end(store, held)
        clock.advance(1)
        store.run_through("y")
        self.end(store, store.take(2))
        clock.advance(1)
        found = [view.id for view in store.expired_tasks(0, 100)]
        assert found[:4] == ["x", *sorted(one.id for one in held)]
        assert sorted(found[4:]) == ["d", "e", "y"]
        assert [view.id for view in store.expired_tasks(0, 3)] == found[:3]
        while found := store.expired_tasks(0, 2):
            assert store.delete([view.id for view in found]) == len(found)
            assert store.verify() == []


def test_a_run_is_told_from_its_making_to_its_end(store):
    reader = Reader(store)
    driver = Driver.of(store, "nightly")
    name = driver.run.name
    [task] = driver.submit("model")
    driver.write(status="paused", reason="somebody asked", changes=[DropTask((1, "model"))])
    assert reader.read() == [
        ("run", name, "created", 0),
        ("run", name, "running", 1),
        ("task", task, None, "ready"),
        ("run", name, "paused", 2),
    ]
    _, first, step, last = reader.events
    assert (first.number, first.workflow, first.queue) == (
        *(driver.run.number, "nightly", driver.run.queue),
    )
    assert list(first.changes) == active("model")
    assert (step.run, step.queue) == (name, driver.run.queue)
    assert (last.reason, list(last.changes)) == ("somebody asked", [DropTask((1, "model"))])


def test_a_lease_of_a_run_is_no_event(store):
    driver = Driver.of(store)
    reader = Reader(store)
    store.renew_run(driver.lease)
    assert reader.read() == []
    driver.write(ends=True, status="stopped")
    claim_run(store, driver.run)
    assert reader.read() == [("run", driver.run.name, "stopped", 1)]


def test_a_batch_that_was_undone_is_not_told(store):
    driver = Driver.of(store)
    reader = Reader(store)
    batch = driver.batch(submissions=[driver.task("a"), driver.task("a")])
    with pytest.raises(AssertionError):
        store.write_batch(driver.lease, batch)
    assert reader.read() == []


def test_filters_choose_a_run_a_queue_or_a_kind(store):
    start = store.events_head()
    one, two = Driver.of(store, "one"), Driver.of(store, "two")
    one.submit("a")
    two.submit("a")
    store.put("plain")

    def told(**which):
        return {event[:2] for event in Reader(store, start, EventFilter(**which)).read()}

    ours = {("run", one.run.name), ("task", f"{one.run.name}/1/a/1")}
    assert told(run=one.run.name) == ours
    assert told(queue=one.run.queue) == ours
    assert told(run=one.run.name, kind=EventKind.TASK) == {("task", f"{one.run.name}/1/a/1")}
    assert told(queue="q") == {("task", "plain")}
    assert told(kind=EventKind.RUN) == {("run", one.run.name), ("run", two.run.name)}
    assert told(run="nobody") == set()


def test_a_page_without_a_wanted_event_still_leads_on(store):
    start = store.events_head()
    store.put(*(f"t{n}" for n in range(5)))
    page = store.events_after(start, EventFilter(queue="other"), 3)
    assert (list(page.events), page.is_last) == ([], False)
    page = store.events_after(page.next, EventFilter(queue="other"), 3)
    assert (list(page.events), page.is_last) == ([], True)
    assert page.next == store.events_head()


def test_a_reader_of_runs_is_not_behind_because_of_tasks(store):
    """It may follow for years a store that only forgets tasks."""
    runs = EventFilter(kind=EventKind.RUN)
    start = store.events_head()
    store.put(*(f"t{n}" for n in range(5)))
    page = store.events_after(start, runs, 3)
    assert (list(page.events), page.is_last) == ([], True)
    assert page.next == store.events_head()
    driver = Driver.of(store)
    store.put("u")
    [*told] = store.events_after(page.next, runs).events
    assert {shown(event)[:2] for event in told} == {("run", driver.run.name)}


def test_at_the_end_nothing_is_told_and_nothing_is_lost(store):
    store.put("a")
    page = store.events_after(store.events_head(), EVERY_EVENT)
    assert (list(page.events), page.is_last, page.is_lost) == ([], True, False)


def test_a_cursor_beyond_the_end_is_of_another_past(store):
    """A store that was restored from an older copy, or begun anew."""
    store.put("a")
    head = store.events_head()
    beyond = EventCursor(head.store, EventPlace(head.place.major + 10**6, 0))
    page = store.events_after(beyond, EVERY_EVENT)
    assert (page.is_lost, page.next) == (True, head)
    other = EventCursor("ffffffff", head.place)
    assert store.events_after(other, EVERY_EVENT).is_lost


def test_a_reader_that_comes_after_retention_learns_what_it_missed(store):
    store.put("a", "b")
    start = store.events_head()
    store.run_through("a", "b")
    seen = Reader(store, start)
    seen.read()
    assert store.delete(["a"]) == 1
    late = Reader(store, start)
    late.read()
    assert (late.lost, late.cursor) == (1, store.events_head())
    # Who had read it before it was deleted has missed nothing.
    store.put("c")
    assert (seen.read(), seen.lost) == ([("task", "c", None, "ready")], 0)
    assert (late.read(), late.lost) == ([("task", "c", None, "ready")], 1)


def test_a_deleted_run_is_told_to_those_who_had_seen_it(store):
    driver = Driver.of(store)
    start = store.events_head()
    driver.submit("a")
    driver.write(ends=True, status="completed")
    reader = Reader(store, start)
    reader.read()
    store.delete_run(driver.run.number)
    assert (reader.read(), reader.lost) == ([("run", driver.run.name, "deleted", 2)], 0)
    late = Reader(store, start)
    late.read()
    assert late.lost == 1


def test_of_runs_deleted_long_ago_nothing_is_left(store, clock):
    first, second = make_run(store), make_run(store)
    start = store.events_head()
    store.delete_run(first.number)
    clock.advance(40 * 86_400)
    store.delete_run(second.number)
    late = Reader(store, start)
    late.read()
    assert late.lost == 1


@pytest.mark.parametrize(
    "text",
    ["", "1", "abcd1234-1", "abcd1234-1-2-3", "abcd1234--1-2", f"abcd1234-{2**63}-0", "Ä-1-1"],
)
def test_what_is_no_cursor_is_refused(text):
    with pytest.raises(BadSetting, match="id of an event"):
        read_cursor(text)


class TestSeveralProcesses:
    """Real databases, several writers."""

    @pytest.fixture(params=["sqlite", "postgres"])
    def kind(self, request):
        return request.param

    def test_what_writers_do_at_once_is_told_once_and_in_each_ones_order(self, store, world):
        """RELIABILITY 42; the seed is printed by pytest-randomly."""
        seed = random.randrange(2**32)
        start = store.events_head()
        done = []

        def write(number):
            dice = random.Random(seed + number)

            def writing(door):
                for turn in range(ROUNDS):
                    name = f"w{number}-{turn}"
                    door.submit([new_task(f"{name}-{n}") for n in range(dice.randint(1, 4))])
                    door.run_through(f"{name}-0")
                done.append(number)

            return writing

        def read(door):
            reader = Reader(door, start, count=random.Random(seed).randint(1, 50))
            while len(done) < WRITERS:
                reader.read()
            reader.read()
            return reader

        *_, reader = together(world, *(write(n) for n in range(WRITERS)), read)
        every = Reader(store, start)
        every.read()
        assert reader.lost == 0
        assert reader.events == every.events
        steps = [(e.task_id, e.signal and e.signal.value) for e in reader.events]
        assert len(steps) == len(set(steps))
        for task_id in {event.task_id for event in reader.events}:
            told = [signal for name, signal in steps if name == task_id]
            assert told == store.signals(task_id)


class TestLateCommits:
    """PostgreSQL only: numbers are given in another order than that of commits."""

    @pytest.fixture
    def kind(self):
        return "postgres"

    @pytest.fixture
    def late(self, world):
        """A transaction that somebody else keeps open, which has written a step already."""
        import psycopg  # noqa: PLC0415 - one class's business

        with psycopg.connect(world.settings.url) as connection:
            yield connection

    STEP = """INSERT INTO tidewheel.history (task_seq, at, signal, from_status, to_status,
                                             attempt, worker, progress)
              VALUES (%s, 0, 'adopt', 'running', 'running', 1, 'worker-1', 0)"""

    def test_a_late_commit_is_neither_missed_nor_does_it_repeat_others(self, store, late):
        store.put("late")
        seq = store.get("late").seq
        held = store.hold("late")
        reader = Reader(store)
        late.execute(self.STEP, (seq,))
        store.put("a", "b")
        # Later ones have committed, but something older may still come.
        assert reader.read() == []
        late.commit()
        assert reader.read() == [
            ("task", "late", "adopt", "running"),
            ("task", "a", None, "ready"),
            ("task", "b", None, "ready"),
        ]
        store.finish(held)
        assert reader.read() == [("task", "late", "succeed", "succeeded")]
        assert reader.lost == 0

    def test_whoever_began_first_is_told_first_even_if_it_wrote_last(self, store, late):
        store.put("late")
        held = store.hold("late")
        late.execute("SELECT pg_current_xact_id()")
        reader = Reader(store, count=1)
        store.put("a", "b")
        late.execute(self.STEP, (store.get("late").seq,))
        late.commit()
        told = [task_id for _, task_id, *_ in reader.read()]
        assert told == [held.id, "a", "b"]

    def test_one_that_is_undone_holds_up_nobody_for_ever(self, store, late):
        reader = Reader(store)
        late.execute(self.STEP, (1,))
        store.put("a")
        assert reader.read() == []
        late.rollback()
        assert reader.read() == [("task", "a", None, "ready")]

    def test_what_is_deleted_before_it_could_be_told_is_not_passed_over(self, store, late):
        reader = Reader(store)
        late.execute("SELECT pg_current_xact_id()")
        store.put("a")
        store.run_through("a")
        assert store.delete(["a"]) == 1
        assert (reader.read(), reader.lost) == ([], 0)
        late.commit()
        reader.read()
        assert reader.lost == 1
        store.put("b")
        assert (reader.read(), reader.lost) == ([("task", "b", None, "ready")], 1)
