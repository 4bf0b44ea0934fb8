"""What is kept of the past of runs: always true, and never too much."""

from tidewheel.core.operator.views import ChangesView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.persistence import ForgetMemory, ForgetStored, PutChain, PutMemory
from tidewheel.store.change_rows import changed_rows
from tidewheel.views.past import (
    CHANGES_BETWEEN,
    Before,
    Checkpoint,
    Checkpoints,
    Forgotten,
    Replay,
)


def memory(point: int, submits: int = 1) -> PutMemory:
    return PutMemory((point, "a"), frozenset({1}), (), (), submits)


def checkpoint(batch: int, rows: int) -> Checkpoint:
    held = {number: PutChain("a", number, 1) for number in range(rows)}
    return Checkpoint(batch, Instant(float(batch)), held, Forgotten(), (batch,), Before())


def log(batches: int) -> list[ChangesView]:
    """Every batch forgets a point, and the first one again and again."""
    chains = [PutChain("a", number, 1) for number in range(CHANGES_BETWEEN // 4)]
    return [
        ChangesView(
            number,
            Instant(float(number)),
            changed_rows(
                [*chains, ForgetMemory(memory(number)), ForgetMemory(memory(1, number))]
            ).text,
        )
        for number in range(1, batches + 1)
    ]


def test_a_replay_from_a_checkpoint_comes_to_the_same_as_one_from_the_beginning():
    batches = log(20)
    whole = Replay()
    passed = whole.play(batches)
    assert len(passed) >= 4
    for one in passed:
        rest = Replay(one)
        rest.play([later for later in batches if later.batch > one.batch])
        assert rest.ledger.rows == whole.ledger.rows
        assert (rest.batch, rest.at, rest.recent) == (whole.batch, whole.at, whole.recent)
        assert rest.forgotten.points() == whole.forgotten.points() == set(range(1, 21))
        assert rest.forgotten.recall(1, "a").submits == 20


def test_what_was_forgotten_as_it_was_stored_is_known_as_it_was_stored():
    batches = [
        [memory(1), memory(2, 5)],
        [ForgetStored(1, ("a",))],
        [ForgetStored(1, ("a",)), memory(1, 7)],
        [ForgetStored(1, ("a",))],
    ]
    replay = Replay()
    known = []
    for number, changes in enumerate(batches, 1):
        replay.play([ChangesView(number, Instant(0.0), changed_rows(changes).text)])
        past = replay.forgotten.recall(1, "a")
        known.append((past and past.submits, ("memory", 1, "a") in replay.ledger.rows))
    assert known == [(None, True), (1, False), (1, True), (7, False)]
    assert replay.forgotten.recall(2, "a") is None


def test_what_was_forgotten_later_is_not_known_at_a_checkpoint():
    first, *_ = Replay().play(log(20))
    assert first.forgotten.points() == set(range(1, first.batch + 1))
    assert first.forgotten.recall(1, "a").submits == first.batch
    assert first.forgotten.recall(first.batch + 1, "a") is None


def test_the_newest_that_were_forgotten_come_with_all_of_their_points():
    replay = Replay()
    replay.play(log(20))
    newest = {row.key[0]: row for row in replay.forgotten.newest(3)}
    assert newest.keys() == {1, 20, 19}
    assert newest[1].submits == 20


def test_the_nearest_is_never_behind_the_moment():
    kept = Checkpoints()
    kept.keep(7, [checkpoint(batch, 1) for batch in (10, 20, 30)])
    found = [kept.nearest(7, batch, None) for batch in (9, 10, 29, 99)]
    assert [one and one.batch for one in found] == [None, 10, 20, 30]
    at = [kept.nearest(7, None, Instant(time)) for time in (9.9, 20.0, 99.0)]
    assert [one and one.batch for one in at] == [None, 20, 30]
    assert kept.nearest(8, 99, None) is None


def test_never_more_rows_are_kept_than_may_be():
    kept = Checkpoints(rows_max=100)
    for run in (1, 2, 3):
        kept.keep(run, [checkpoint(batch, 10) for batch in (10, 20, 30, 40)])
        assert kept.rows_held <= 100
    assert kept.nearest(1, 99, None) is None, "the run that nobody looks at went first"
    assert kept.nearest(2, 99, None) is not None and kept.nearest(3, 99, None) is not None
    kept.keep(3, [checkpoint(batch, 30) for batch in range(100, 200, 10)])
    assert 0 < kept.rows_held <= 100
    assert kept.nearest(2, 99, None) is None
    kept.keep(3, [checkpoint(500, 200)])
    assert kept.rows_held <= 100
