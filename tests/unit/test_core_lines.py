"""In which order tasks are claimed under rules: lines, aging, turns."""

from tidewheel.core.queue.limits import KeyLane, Waiting, choose


def lane(key, *tasks, room=99, turn=0):
    waiting = [Waiting(rank=rank, seq=seq, ready_at=at) for rank, seq, at in tasks]
    return KeyLane(key=key, tasks=waiting, room=room, turn=turn)


def seqs(lanes, count=99, aging_at=None, turns=None):
    return [one.task.seq for one in choose(lanes, count, aging_at=aging_at, turns=turns)]


def test_without_aging_the_oldest_of_the_highest_priority_of_all_keys_goes_first():
    lanes = [lane("a", (-9, 4, 0), (-1, 1, 0)), lane(None, (-9, 3, 0)), lane("b", (-5, 2, 0))]
    assert seqs(lanes) == [3, 4, 2, 1]
    assert seqs(lanes, count=2) == [3, 4]
    assert [one.key for one in choose(lanes, 2, aging_at=None, turns=None)] == [None, "a"]


def test_no_more_of_a_key_than_there_is_room_for():
    lanes = [lane("a", (-9, 1, 0), (-9, 2, 0), room=1), lane("b", (-5, 3, 0), room=0)]
    assert seqs(lanes) == [1]
    assert seqs([]) == []


def test_with_aging_a_line_is_where_its_head_is():
    waited, young = (-1, 2, 0.0), (-1, 1, 99.0)
    assert seqs([lane(None, (-50, 3, 90.0), waited)], aging_at=100.0) == [2, 3]
    assert seqs([lane(None, (-50, 3, 90.0), young, waited)], aging_at=100.0) == [3, 1, 2]


def test_aging_ends_at_255_and_what_is_above_is_one_line():
    tasks = [(-300, 9, 99.0), (-256, 8, 99.0), (-255, 5, 99.0), (-200, 4, 0.0), (0, 3, 0.0)]
    assert seqs([lane(None, *tasks)], aging_at=1000.0) == [9, 8, 3, 4, 5]


def test_in_a_fair_queue_who_had_a_turn_waits_for_all_others():
    lanes = [
        lane("a", (-9, 1, 0), (-9, 2, 0), (-9, 3, 0), turn=4),
        lane("b", (-1, 4, 0), turn=2),
        lane(None, (-1, 5, 0), (-1, 6, 0), turn=4),
        lane("c", turn=0),
    ]
    assert seqs(lanes, turns=4) == [4, 1, 5, 2, 6, 3]
    assert seqs(lanes, count=3, turns=4) == [4, 1, 5]
