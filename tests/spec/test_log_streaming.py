"""Logs of a worker whose server is elsewhere: everything arrives, once, in its own place."""

import asyncio
from pathlib import Path
from random import Random

from tests.kit.virtual_time import VirtualClock, in_virtual_time
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import LeaseLost, StoreUnreachable
from tidewheel.services.service import Surroundings
from tidewheel.worker.attempts import Attempt
from tidewheel.worker.log_upload import CHUNK_BYTES_MAX, LogUpload, LogWay, Receipt


class Host:
    """The files of jobs, and a server that keeps copies of them."""

    def __init__(self):
        self.files = {}
        self.copies = {}
        self.requests = []
        self.away = self.loses_answers = self.refuses = False
        self.bytes_max = 10**9
        self.idle_heard = 0
        self.reports = []
        self.clock = VirtualClock()
        around = Surroundings(clock=self.clock, chance=Random(1), on_report=self.reports.append)
        self.logs = LogUpload(LogWay(self.read, self.send), around, self)
        self.running = asyncio.create_task(self.logs.run())

    def ring(self):
        self.idle_heard += 1

    def writes(self, directory, stream, content):
        key = (Path(directory), stream)
        self.files[key] = self.files.get(key, b"") + content

    async def read(self, directory, stream, offset, bytes_max):
        content = self.files.get((directory, stream), b"")
        return content[offset : offset + bytes_max], len(content)

    async def send(self, holder, stream, offset, content):
        if self.away:
            raise StoreUnreachable("away")
        self.requests.append((holder.attempt, stream, offset, len(content)))
        if self.refuses:
            raise LeaseLost(holder.task_id, asked=("w", 1), held=(None, 1))
        key = (holder.task_id, holder.attempt, stream)
        copy = self.copies.get(key, b"")
        if offset <= len(copy):
            copy += content[len(copy) - offset :]
        self.copies[key] = copy[: self.bytes_max]
        if self.loses_answers:
            self.loses_answers = False
            raise StoreUnreachable("the answer got lost")
        return Receipt(len(self.copies[key]), len(self.copies[key]) >= self.bytes_max)

    async def passes(self, seconds):
        await self.clock.sleep(seconds)
        for _ in range(50):
            await asyncio.sleep(0)

    def copy(self, attempt=1, stream="out"):
        return self.copies.get(("t", attempt, stream), b"")

    def begins(self, number=1, *, adopted=False):
        one = attempt(number)
        self.logs.begin(one, Path(str(number)), adopted=adopted)
        return one


def attempt(number, command="true", run=7):
    task = Claimed(
        seq=1,
        id="t",
        queue="q",
        name=None,
        attempt=number,
        spec=None,
        command=command,
        handler=None,
        priority=1,
        deadline_at=0.0,
        lease_seconds=10.0,
        timeout_seconds=None,
        max_termination_seconds=1.0,
        resources=Resources(),
        fence_kill=False,
        run=run,
    )
    holder = Holder(task_id="t", attempt=number, worker="worker-1")
    return Attempt(task, ("t", number), holder, 0.0, None, lambda _: None)


@in_virtual_time
async def test_what_a_job_writes_arrives_within_a_second_while_it_runs():
    host = Host()
    host.begins()
    host.writes("1", "job", b"#!/bin/bash")
    await host.passes(0.0)
    assert host.copy(stream="job") == b"#!/bin/bash"
    host.writes("1", "out", b"one\n")
    host.writes("1", "err", b"oh\n")
    await host.passes(1.0)
    assert (host.copy(), host.copy(stream="err")) == (b"one\n", b"oh\n")
    requests = len(host.requests)
    await host.passes(60.0)
    assert len(host.requests) == requests  # nothing new, nothing sent


@in_virtual_time
async def test_the_rest_is_sent_at_the_end_and_then_the_worker_is_told():
    host = Host()
    one = host.begins()
    await host.passes(10.3)
    host.writes("1", "out", b"the last words")
    host.writes("1", "status", b"exit=0\n")
    host.logs.end(one)
    assert not host.logs.idle
    await host.passes(0.0)
    assert host.copy() == b"the last words"
    assert host.copy(stream="status") == b"exit=0\n"
    assert host.logs.idle and host.idle_heard == 1


@in_virtual_time
async def test_a_large_log_goes_in_chunks():
    host = Host()
    log = Random(2).randbytes(25 * CHUNK_BYTES_MAX // 2)
    host.writes("1", "out", log)
    one = host.begins()
    host.logs.end(one)
    await host.passes(3.0)
    assert host.copy() == log
    assert max(size for *_, size in host.requests) == CHUNK_BYTES_MAX


@in_virtual_time
async def test_a_log_is_delivered_after_the_server_was_away():
    host = Host()
    one = host.begins()
    host.writes("1", "out", b"before ")
    await host.passes(1.0)
    host.away = True
    host.writes("1", "out", b"meanwhile ")
    await host.passes(600.0)
    host.writes("1", "out", b"end")
    host.logs.end(one)
    await host.passes(600.0)
    assert host.copy() == b"before " and not host.logs.idle
    host.away = False
    await host.passes(10.0)
    assert host.copy() == b"before meanwhile end" and host.logs.idle


@in_virtual_time
async def test_a_chunk_whose_answer_got_lost_is_there_once():
    host = Host()
    host.begins()
    host.writes("1", "out", b"one ")
    host.loses_answers = True
    await host.passes(1.0)
    host.writes("1", "out", b"two")
    await host.passes(10.0)
    assert host.copy() == b"one two"


@in_virtual_time
async def test_whoever_adopts_a_job_goes_on_where_its_log_was_left():
    host = Host()
    host.copies["t", 1, "out"] = b"from the dead "
    host.writes("1", "out", b"from the dead worker and on")
    host.begins(adopted=True)
    await host.passes(1.0)
    assert host.copy() == b"from the dead worker and on"
    assert (1, "out", 0, 0) in host.requests
    assert (1, "out", 14, 13) in host.requests


@in_virtual_time
async def test_a_server_that_has_less_than_it_said_is_sent_the_rest_again():
    host = Host()
    host.begins()
    host.writes("1", "out", b"0123456789")
    await host.passes(1.0)
    host.copies["t", 1, "out"] = b"0123"  # its disk was set back
    host.writes("1", "out", b"ab")
    await host.passes(3.0)
    assert host.copy() == b"0123456789ab"


@in_virtual_time
async def test_a_log_whose_middle_was_cut_goes_on_with_what_is_left():
    host = Host()
    host.begins()
    host.writes("1", "out", b"a long beginning")
    await host.passes(1.0)
    host.files[Path("1"), "out"] = b"[cut] end"
    await host.passes(1.0)
    host.writes("1", "out", b" more")
    await host.passes(1.0)
    assert host.copy() == b"a long beginning[cut] end more"


@in_virtual_time
async def test_a_full_copy_is_sent_no_more():
    host = Host()
    host.bytes_max = 5
    one = host.begins()
    host.writes("1", "out", b"0123456789")
    await host.passes(1.0)
    requests = len(host.requests)
    host.writes("1", "out", b"more")
    await host.passes(10.0)
    assert len(host.requests) == requests
    host.logs.end(one)
    await host.passes(0.0)
    assert host.logs.idle


@in_virtual_time
async def test_a_log_that_is_refused_is_let_go_and_others_go_on():
    host = Host()
    host.begins(1)
    host.writes("1", "out", b"x")
    host.refuses = True
    await host.passes(1.0)
    host.refuses = False
    host.begins(2)
    host.writes("2", "out", b"y")
    host.writes("1", "out", b"z")
    await host.passes(5.0)
    assert (host.copy(1), host.copy(2)) == (b"", b"y")
    assert [one.event for one in host.reports] == ["log.refused"]


@in_virtual_time
async def test_each_attempt_has_a_log_of_its_own():
    host = Host()
    first = host.begins(1)
    host.writes("1", "out", b"stale")
    host.away = True
    await host.passes(30.0)
    host.logs.end(first)
    host.begins(2)
    host.writes("2", "out", b"current")
    host.away = False
    await host.passes(10.0)
    assert (host.copy(1), host.copy(2)) == (b"stale", b"current")


@in_virtual_time
async def test_a_log_that_begins_when_its_attempt_is_over_is_sent_and_forgotten():
    """A handler may print for the first time while another thread ends its attempt."""
    host = Host()
    over = attempt(1, None)
    over.ended = True
    host.logs.end(over)
    host.writes("1", "out", b"late\n")
    host.logs.begin(over, Path("1"), adopted=False)
    await host.passes(1.0)
    assert (host.copy(), host.logs.rest_seconds()) == (b"late\n", None)


@in_virtual_time
async def test_a_job_that_wrote_nothing_has_empty_logs():
    host = Host()
    host.logs.end(host.begins())
    await host.passes(0.0)
    assert host.copies == {("t", 1, name): b"" for name in ("job", "status", "out", "err")}


@in_virtual_time
async def test_of_a_task_outside_of_runs_only_its_logs_are_sent():
    host = Host()
    one = attempt(1, run=None)
    host.logs.begin(one, Path("1"), adopted=False)
    host.writes("1", "job", b"#!/bin/bash")
    host.writes("1", "out", b"hello")
    host.logs.end(one)
    await host.passes(0.0)
    assert host.copies == {("t", 1, "out"): b"hello", ("t", 1, "err"): b""}
