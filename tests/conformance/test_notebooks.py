"""What services write down: one holds the pen, and whoever comes next reads on."""

LEASE = 30.0


def test_the_first_who_asks_holds_a_notebook_and_others_hear_that_it_is_held(store):
    held = store.claim_notebook("notifier", "tern/1", LEASE)
    assert (held.epoch, held.owner, held.body) == (1, "tern/1", "")
    assert store.claim_notebook("notifier", "gull/2", LEASE) is None
    assert store.claim_notebook("another", "gull/2", LEASE).epoch == 1


def test_what_was_written_is_read_by_whoever_comes_after_the_lease(store, clock):
    held = store.claim_notebook("notifier", "tern/1", LEASE)
    assert store.write_notebook("notifier", held.epoch, '{"seen": "ø"}', LEASE)
    clock.advance(LEASE - 1)
    assert store.claim_notebook("notifier", "gull/2", LEASE) is None
    clock.advance(1)
    following = store.claim_notebook("notifier", "gull/2", LEASE)
    assert (following.epoch, following.owner, following.body) == (2, "gull/2", '{"seen": "ø"}')


def test_writing_holds_it_for_longer(store, clock):
    held = store.claim_notebook("notifier", "tern/1", LEASE)
    clock.advance(LEASE - 1)
    assert store.write_notebook("notifier", held.epoch, "one", LEASE)
    clock.advance(LEASE - 1)
    assert store.claim_notebook("notifier", "gull/2", LEASE) is None


def test_one_who_slept_over_its_lease_writes_nothing_once_another_holds_it(store, clock):
    slept = store.claim_notebook("notifier", "tern/1", LEASE)
    clock.advance(LEASE + 1)
    following = store.claim_notebook("notifier", "gull/2", LEASE)
    assert not store.write_notebook("notifier", slept.epoch, "late", LEASE)
    store.leave_notebook("notifier", slept.epoch)
    assert store.claim_notebook("notifier", "tern/1", LEASE) is None
    assert store.write_notebook("notifier", following.epoch, "mine", LEASE)
    assert store.notebook("notifier").body == "mine"


def test_a_notebook_that_was_let_go_can_be_had_at_once_and_not_be_written_before(store):
    held = store.claim_notebook("notifier", "tern/1", LEASE)
    store.write_notebook("notifier", held.epoch, "so far", LEASE)
    store.leave_notebook("notifier", held.epoch)
    assert not store.write_notebook("notifier", held.epoch, "more", LEASE)
    seen = store.notebook("notifier")
    assert (seen.owner, seen.deadline_at, seen.body) == (None, None, "so far")
    assert store.claim_notebook("notifier", "gull/2", LEASE).epoch == 2


def test_the_notebook_of_one_who_is_dead_for_sure_can_be_had_before_its_lease_ends(store):
    dead = store.claim_notebook("notifier", "tern/1", LEASE)
    assert store.claim_notebook("notifier", "gull/2", LEASE, dead_epoch=dead.epoch).epoch == 2
    assert store.claim_notebook("notifier", "tern/3", LEASE, dead_epoch=dead.epoch) is None


def test_nobody_ever_held_a_notebook_that_is_not_there(store):
    assert store.notebook("notifier") is None
    assert not store.write_notebook("notifier", 1, "text", LEASE)


def test_what_no_database_can_hold_is_written_without_it(store):
    held = store.claim_notebook("notifier", "tern\0/1", LEASE)
    assert store.write_notebook("notifier", held.epoch, "a\0b\ud800", LEASE)
    assert "\0" not in store.notebook("notifier").body
