"""RELIABILITY 13, 32: processes that stand still and then go on as if nothing had happened.

On PostgreSQL only. A process that stands still while it writes to a SQLite file keeps the file
locked, and everybody else waits for it: that is a file on one machine.
"""

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.fleet import fleet, is_gone
from tests.support.patience import eventually
from tidewheel.config import StoreSettings
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import StoreUnreachable
from tidewheel.store.postgres import open_postgres_store

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def crew(postgres_url, tmp_path):
    with fleet(tmp_path, postgres_url) as crew:
        yield crew


def signals_of(client, task_id):
    return [entry.signal and entry.signal.value for entry in client.history(task_id)]


def until_status(client, task_id, wanted):
    eventually(lambda: client.get(task_id).status == wanted, f"{task_id} is {wanted}")


def zombie(crew, client, *, after_resume):
    """A worker stands still for three leases while another ends its task; then it goes on."""
    client.configure_queue("default", lease_seconds=3.0)  # only that of the still one lapses
    crew.monitor()
    gate = crew.folder / "gate"
    os.mkfifo(gate)
    slow = f"read -r word < {gate}; echo late; {crew.noting('end')}; sleep {after_resume}"
    command = f'{crew.noting("begin")}; if [ "$TIDEWHEEL_ATTEMPT" = 1 ]; then {slow}; fi'
    client.submit(id="a", command=command)
    first = crew.worker("--name", "first")
    eventually(crew.executions, "it has begun")
    eventually(lambda: client.attempts("a")[0].started_at, "its worker has said so")
    first.send(signal.SIGSTOP)
    crew.worker("--name", "second")
    until_status(client, "a", "succeeded")
    before = client.history("a"), client.get("a"), client.attempts("a")
    gate.write_text("go\n")
    eventually(lambda: crew.executions("end"), "the old job went on")
    return first, before


@pytest.mark.req("R002-52", "R003-59")
def test_a_worker_that_stood_still_cannot_end_a_task_that_was_given_to_another(crew, client):
    first, before = zombie(crew, client, after_resume=0)
    [execution] = crew.executions("end")
    eventually(lambda: is_gone(execution.pid), "the old job has ended")
    first.send(signal.SIGCONT)
    first.says("report.refused")
    assert (client.history("a"), client.get("a"), client.attempts("a")) == before
    assert signals_of(client, "a") == [None, "claim", "lapse", "claim", "succeed"]
    # What the old job said late is in its own attempt's log, and nowhere else.
    [old] = crew.home.glob("tasks/*/*/1/job.out")
    [new] = crew.home.glob("tasks/*/*/2/job.out")
    assert (old.read_text(), new.read_text()) == ("late\n", "")
    assert client.verify() == []


@pytest.mark.req("R002-52", "R002-60")
def test_a_worker_that_stood_still_ends_the_job_that_is_no_longer_its_own(crew, client):
    first, before = zombie(crew, client, after_resume=600)
    [execution] = crew.executions("end")
    # Both attempts at once: so it can be, and so it is written.
    assert not is_gone(execution.pid)
    assert "executed at least once" in README.read_text()
    first.send(signal.SIGCONT)
    eventually(lambda: is_gone(execution.pid), "the old job was ended")
    eventually(lambda: not crew.jobs(), "nothing of it is left")
    assert (client.history("a"), client.get("a"), client.attempts("a")) == before
    # And the worker goes on with other work.
    client.submit(id="b", command="true")
    until_status(client, "b", "succeeded")


def test_a_process_that_stands_still_in_a_transaction_does_not_keep_its_locks(postgres_url):
    """It holds the rows of a task when it stops; the server ends its transaction."""
    settings = StoreSettings(url=postgres_url, busy_seconds_max=1.0)
    locked, go_on = threading.Event(), threading.Event()

    def stand_still(tx):
        tx.rows("lock_tasks", ids=["a"])
        locked.set()
        go_on.wait(30)
        return tx.rows("get_now")

    async def scenario():
        still, other = open_postgres_store(settings), open_postgres_store(settings)
        await other.submit([NewTask(id="a", queue="q", spec="{}")])
        standing = asyncio.create_task(still.transact(stand_still))
        await asyncio.to_thread(locked.wait, 30)
        answers = await asyncio.gather(other.cancel(["a"]), return_exceptions=True)
        if isinstance(answers[0], Exception):  # it gave up just before the server did
            answers = [await other.cancel(["a"])]
        go_on.set()
        with pytest.raises(StoreUnreachable):
            await standing
        now = await still.now()  # with a new connection
        await still.close()
        await other.close()
        return answers[0], now

    [cancelled], now = asyncio.run(scenario())
    assert cancelled.status == "cancelled" and now > 0
