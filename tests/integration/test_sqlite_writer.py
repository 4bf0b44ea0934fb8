"""Where writes to a SQLite file are carried out: by their caller, or by the store's thread."""

import asyncio
import contextlib
import subprocess
import sys
import threading
import time

import apsw
import pytest

from tidewheel.config import StoreSettings
from tidewheel.store.sqlite import open_sqlite_store

LONG_SECONDS, VERY_LONG_SECONDS = 0.02, 0.1
INTERRUPTED = """
import asyncio, random, signal, sys
import apsw
from tidewheel.config import StoreSettings
from tidewheel.store.sqlite import open_sqlite_store

path, count = sys.argv[1:]
store = open_sqlite_store(StoreSettings(url=f"sqlite:///{path}"))
other = apsw.Connection(path)
other.set_busy_timeout(10_000)
is_armed = False

def interrupt(*_):
    global is_armed
    was_armed, is_armed = is_armed, False
    if was_armed:
        raise KeyboardInterrupt

async def write(times):
    for _ in range(times):
        await store.transact(lambda tx: tx.rows("pause_queue", queue="q", paused=True))
        await asyncio.sleep(0)

signal.signal(signal.SIGALRM, interrupt)
for _ in range(int(count)):
    loop = asyncio.new_event_loop()
    is_armed = True
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.005))
    try:
        loop.run_until_complete(write(1_000_000))
    except KeyboardInterrupt:
        pass
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.wait_for(write(2), 20))
    other.execute("BEGIN IMMEDIATE; COMMIT")
    loop.close()
asyncio.run(store.close())
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def on(path, main):
    """What a coroutine returns that is given a new store on this file."""

    async def opened():
        store = open_sqlite_store(StoreSettings(url=f"sqlite:///{path}"))
        try:
            return await main(store)
        finally:
            await store.close()

    return asyncio.run(opened())


def thread(_tx):
    return threading.current_thread()


def slow_thread(_tx, seconds=LONG_SECONDS):
    """A script that takes as long as a commit on a slow disk."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    return threading.current_thread()


def ours(threads):
    return [one is threading.main_thread() for one in threads]


def test_a_write_that_is_alone_is_carried_out_by_its_caller(path):
    async def main(store):
        return [await store.transact(thread) for _ in range(2)]

    assert ours(on(path, main))[0]


def test_a_turn_of_the_loop_writes_once_and_leaves_the_rest_to_the_thread(path):
    async def main(store):
        return await asyncio.gather(*[store.transact(thread) for _ in range(50)])

    assert ours(on(path, main)) == [True] + [False] * 49


def test_a_loop_that_writes_without_end_lets_others_have_their_turn(path):
    async def main(store):
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        for _ in range(100):
            await store.transact(thread)
        counting.cancel()
        return turns

    assert on(path, main) >= 50


def test_a_locked_file_stops_the_write_and_not_the_loop(path):
    async def main(store):
        await store.transact(thread)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        await asyncio.sleep(0)
        write = asyncio.create_task(store.transact(thread))
        await asyncio.sleep(0)  # it has begun: this line is reached while the file is locked
        assert not write.done()
        other.execute("COMMIT")
        other.close()
        return [await asyncio.wait_for(write, 20)]

    assert ours(on(path, main)) == [False]


def test_on_a_slow_disk_the_thread_has_the_writes(path):
    async def main(store):
        threads = []
        for _ in range(20):
            threads.append(await store.transact(slow_thread))
            await asyncio.sleep(0)
        return threads

    where = ours(on(path, main))
    assert 2 <= sum(where) <= 4  # two, and one whenever twenty times as long has passed


def test_a_refused_write_of_the_caller_leaves_nothing_behind(path):
    def refused(tx):
        tx.rows("pause_queue", queue="q", paused=True)
        raise ValueError("no")

    async def main(store):
        with pytest.raises(ValueError, match="no"):
            await store.transact(refused)
        await asyncio.sleep(0)
        await store.pause_queue("r", paused=True)
        return [view.queue for view in await store.queues()]

    assert on(path, main) == ["r"]


def test_after_a_very_long_write_the_thread_has_those_that_follow_also_between_short_ones(path):
    async def main(store):
        threads = []
        for _ in range(5):
            threads.append(await store.transact(lambda tx: slow_thread(tx, VERY_LONG_SECONDS)))
            await asyncio.sleep(0)
            await store.transact(thread)
            await asyncio.sleep(0)
        return threads

    assert ours(on(path, main)) == [True] + [False] * 4


def test_ctrl_c_at_any_moment_of_a_write_leaves_the_file_and_the_store_usable(path):
    """A loop in the main thread, such as that of a notebook, is interrupted at any line."""
    program = [sys.executable, "-c", INTERRUPTED, str(path), "100"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stderr == ""
    assert ended.returncode == 0


def paused(tx):
    """Which queues are paused, by one query."""
    return [row[0] for row in tx.rows("list_queues")]


def test_a_look_waits_for_no_write_and_sees_what_is_committed(path):
    begun, go_on = threading.Event(), threading.Event()

    def slow(tx):
        tx.rows("pause_queue", queue="q", paused=True)
        begun.set()
        assert go_on.wait(20)

    async def main(store):
        looks = [await store.look_up(paused)]
        await store.pause_queue("p", paused=True)
        looks.append(await store.look_up(paused))
        writes = [asyncio.create_task(store.transact(one)) for one in (thread, slow)]
        await asyncio.to_thread(begun.wait, 20)
        looks.append(await store.look_up(paused))
        go_on.set()
        await asyncio.gather(*writes)
        looks.append(await store.look_up(paused))
        return looks

    assert on(path, main) == [[], ["p"], ["p"], ["p", "q"]]


def test_a_look_leaves_nothing_that_a_later_write_of_another_process_would_meet(path):
    async def main(store):
        await store.pause_queue("p", paused=True)
        assert await store.look_up(paused) == ["p"]
        async with contextlib.AsyncExitStack() as stack:
            other = open_sqlite_store(StoreSettings(url=f"sqlite:///{path}"))
            stack.push_async_callback(other.close)
            await other.pause_queue("q", paused=True)
        await store.pause_queue("r", paused=True)
        return await store.look_up(paused)

    assert on(path, main) == ["p", "q", "r"]
