"""RELIABILITY 25, 26: a disk that is full or fails costs time, never a task."""

import asyncio
import random
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.conformance.door import Door, new_task
from tests.support.faulty_disk import faulty_disk
from tests.support.volumes import folder_in_memory, mounted
from tidewheel.config import StoreSettings
from tidewheel.errors import StoreFull, StoreUnreachable
from tidewheel.store.sqlite import open_sqlite_store

KIB = 1024
SPEC = '"' + "x" * 20 * KIB + '"'


@contextmanager
def opened(folder, vfs=None):
    """A store in a folder, whose clock stands still: what did not change looks the same."""

    async def opening():
        settings = StoreSettings(url=f"sqlite:///{folder}/tidewheel.db")
        return open_sqlite_store(settings, clock=lambda: 1_800_000_000.0, vfs=vfs)

    door = Door(opening)
    try:
        yield door
    finally:
        door.leave()


def submit_until_full(store):
    """The ids that were acknowledged before the disk was full."""
    acknowledged = []
    while True:
        task_id = f"t{len(acknowledged)}"
        try:
            store.put(task_id, spec=SPEC)
        except StoreFull:
            return acknowledged
        acknowledged.append(task_id)


def test_a_full_disk_refuses_writes_answers_reads_and_heals_without_a_restart(tmp_path):
    disk = mounted(tmp_path / "disk", 3 * KIB * KIB)
    with disk as volume, opened(volume.path) as store:
        worker = store.hire()
        store.put("first")
        held = store.hold("first", worker)
        acknowledged = submit_until_full(store)
        assert len(acknowledged) > 20
        before = store.everything()
        assert sorted(store.listed()) == sorted(["first", *acknowledged])
        for attempt in (
            lambda: store.put("more", spec=SPEC),
            lambda: store.submit([new_task(f"m{n}", spec=SPEC) for n in range(9)]),
        ):
            with pytest.raises(StoreFull, match="nothing was changed"):
                attempt()
        assert store.everything() == before
        assert store.verify() == []

        volume.grow(16 * KIB * KIB)
        store.put("later", spec=SPEC)
        assert store.finish(held) == "succeeded"
        assert len(store.take(1000, worker)) == len(acknowledged) + 1
        assert store.verify() == []


def test_a_disk_that_fills_up_again_and_again_tears_no_transition_apart(tmp_path):
    """Each round leaves a little room, so that another statement is the one that fails."""
    chance = random.Random(7)
    disk = mounted(tmp_path / "disk", 3 * KIB * KIB)
    with disk as volume, opened(volume.path) as store:
        worker = store.hire()
        store.put(*(f"t{n}" for n in range(30)), max_retries=100)
        refused = 0
        for number in range(40):
            room = volume.fill(spare_bytes=chance.randrange(64) * KIB)
            for _ in range(5):
                try:
                    for held in store.take(chance.randint(1, 5), worker):
                        store.finish(held, chance.choice(["failed", "yielded"]))
                    store.put(f"more-{number}", spec=SPEC)
                except StoreFull:
                    refused += 1
                assert store.verify() == []
            room.unlink()
        assert refused > 20


CHANGES = {
    "submit": lambda store, _: store.submit([new_task(f"n{n}") for n in range(3)]),
    "claim": lambda store, work: store.take(2, work.worker),
    "heartbeat": lambda store, work: store.beat(work.held, 0.5),
    "success": lambda store, work: store.finish(work.held),
    "failure": lambda store, work: store.finish(work.held, "failed"),
    "cancel": lambda store, _: store.cancel(["parent", "other"]),
}


class Work:
    """A store with a chain, a lease and a spare task; the same each time."""

    def __init__(self, store):
        store.put("parent", "other", "spare")
        store.submit_chain("parent", "child", "grandchild")
        self.worker = store.hire()
        self.held = store.hold("parent", self.worker)


@pytest.mark.parametrize(("operations", "forever"), [({"write"}, False), ({"sync"}, True)])
@pytest.mark.parametrize("name", CHANGES)
def test_an_io_error_at_any_write_leaves_a_change_whole_or_undone(name, operations, forever):
    """RELIABILITY 8: fail the n-th operation of the disk, for every n that there is."""
    nth = failed = 0
    with faulty_disk("faulty") as disk, folder_in_memory() as memory:
        while failed == nth:
            nth += 1
            folder = memory / str(nth)
            with opened(folder, vfs="faulty") as store:
                failed += fails_whole(store, CHANGES[name], disk, (nth, operations, forever))
                after = store.everything()
            with opened(folder) as store:
                assert store.everything() == after
    assert failed >= 1


def fails_whole(store, change, disk, fault):
    """Whether the change met the fault; if so it is undone, and can be made again."""
    work = Work(store)
    before = store.everything()
    nth, operations, forever = fault
    disk.fail(nth, operations=operations, forever=forever)
    try:
        change(store, work)
    except StoreUnreachable:
        disk.mend()
        assert store.everything() == before
        assert store.verify() == []
        change(store, work)
        return True
    finally:
        disk.mend()
        assert store.verify() == []
    return False


def test_an_io_error_while_reading_is_told_and_leaves_the_store_usable(tmp_path):
    with faulty_disk("faulty") as disk, opened(tmp_path) as writer:
        writer.put(*(f"t{n}" for n in range(50)), spec=SPEC)
        told = 0
        for nth in range(1, 12):
            with opened(tmp_path, vfs="faulty") as store:  # with nothing in its cache
                disk.fail(nth, operations={"read"}, forever=False)
                try:
                    store.listed()
                except StoreUnreachable:
                    told += 1
                disk.mend()
                assert len(store.listed()) == 50
        assert told >= 5


def test_a_disk_that_stays_broken_keeps_nobody_waiting(tmp_path):
    with faulty_disk("faulty") as disk, opened(tmp_path, vfs="faulty") as store:
        store.put("a")
        disk.fail(1, operations={"write", "sync"}, forever=True)

        async def many():
            calls = [store.store.submit([new_task(f"n{n}")]) for n in range(20)]
            return await asyncio.gather(*calls, return_exceptions=True)

        assert {type(answer) for answer in asyncio.run(many())} == {StoreUnreachable}
        disk.mend()
        assert store.listed() == ["a"]
        store.put("b")


def test_a_store_whose_file_was_deleted_says_so_and_no_empty_one_takes_its_place(tmp_path):
    with opened(tmp_path) as store:
        for file in tmp_path.glob("tidewheel.db*"):
            file.unlink()
        with pytest.raises(StoreUnreachable, match=r"tidewheel\.db cannot be read or written"):
            store.listed()
        assert not (tmp_path / "tidewheel.db").exists()


@pytest.mark.parametrize("part", ["wal", "shm"])
def test_a_store_whose_log_or_its_index_is_gone_stores_nothing_more_and_keeps_what_it_has(
    tmp_path, part
):
    with opened(tmp_path) as store:
        store.put("a")
        (tmp_path / f"tidewheel.db-{part}").unlink()
        with pytest.raises(
            StoreUnreachable, match=f"-{part}, a part of the store, was deleted"
        ):
            store.put("b")
    with opened(tmp_path) as store:
        assert store.listed() == ["a"]


def test_what_another_process_stores_by_a_new_index_is_not_undone_by_who_has_the_old_one(
    tmp_path,
):
    url = f"sqlite:///{tmp_path}/tidewheel.db"
    other = (
        f"import tidewheel\nwith tidewheel.Client({url!r}) as c: c.submit(id='b', command='b')"
    )
    with opened(tmp_path) as store:
        store.put("a")
        (tmp_path / "tidewheel.db-shm").unlink()
        subprocess.run([sys.executable, "-c", other], check=True)
        with pytest.raises(StoreUnreachable, match="-shm, a part of the store, was deleted"):
            store.put("c")
    with opened(tmp_path) as store:
        assert store.listed() == ["b", "a"]


def test_nor_is_it_by_the_connections_that_read(tmp_path):
    url = f"sqlite:///{tmp_path}/tidewheel.db"
    other = (
        f"import tidewheel\nwith tidewheel.Client({url!r}) as c: c.submit(id='b', command='b')"
    )
    with opened(tmp_path) as store:
        store.put("a")
        assert store.listed() == ["a"]
        (tmp_path / "tidewheel.db-shm").unlink()
        subprocess.run([sys.executable, "-c", other], check=True)
        with pytest.raises(StoreUnreachable, match="-shm, a part of the store, was deleted"):
            store.put("c")
    with opened(tmp_path) as store:
        assert store.listed() == ["b", "a"]


@pytest.mark.parametrize("other", [False, True])
def test_a_store_whose_file_is_gone_or_another_stores_nothing_more(tmp_path, other):
    kept = tmp_path / "kept"
    kept.mkdir()
    with opened(tmp_path) as store:
        store.put("a")
        assert store.listed() == ["a"]
        for file in tmp_path.glob("tidewheel.db*"):
            file.rename(kept / file.name)
        if other:
            (tmp_path / "tidewheel.db").write_bytes(b"")
        with pytest.raises(StoreUnreachable, match="was deleted, moved or replaced"):
            store.put("b")
        (tmp_path / "tidewheel.db").unlink(missing_ok=True)
        for file in kept.iterdir():
            file.rename(tmp_path / file.name)
        store.put("c")
        assert store.listed() == ["c", "a"]
