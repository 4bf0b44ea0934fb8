"""Many processes on one store: none shares a task, and each hears what the others do."""

from collections import Counter

import pytest

import tidewheel
from tests.support.audit import statuses
from tests.support.fleet import fleet
from tests.support.patience import eventually, scaled
from tests.support.volumes import folder_in_memory

WORKERS = 8
# PostgreSQL is where claims really meet; a SQLite file has one writer at a time.
TASKS = {"postgres": scaled(10_000), "sqlite": scaled(4_000)}
ONE_CLIENT = """
import sys
import tidewheel

number = sys.argv[1]
with tidewheel.Client() as client:
    for n in range(30):
        client.submit_many([{"id": f"{number}.{n}.{half}", "command": "true"} for half in "ab"])
        client.cancel(f"{number}.{n}.b")
"""
LEASE_SECONDS = 600.0  # nothing here may lapse, however slow the machine is


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with folder_in_memory() as folder, fleet(folder, url) as crew:
        yield crew


@pytest.mark.timeout(3600)
@pytest.mark.req("R002-35", "R002-27", "R002-88")
def test_eight_workers_drain_ten_thousand_tasks_and_share_none(crew):
    count = TASKS["sqlite" if crew.store.startswith("sqlite") else "postgres"]
    with crew.client() as client:
        client.configure_queue("default", lease_seconds=LEASE_SECONDS)
        tasks = [{"id": f"t{n}", "handler": "note"} for n in range(count)]
        for start in range(0, count, 1000):
            client.submit_many(tasks[start : start + 1000], atomic=True)
        client.pause_queue("default")
        workers = [crew.worker("--slots", "64", "--no-monitor") for _ in range(WORKERS)]
        eventually(lambda: len(client.workers()) == WORKERS, "all are there")
        client.resume_queue("default")
        eventually(
            lambda: not client.queue("default").counts, "the queue is empty", scaled(300)
        )
        assert {worker.end() for worker in workers} == {0}
        executions = Counter((one.task_id, one.attempt) for one in crew.executions())
        assert executions == {(f"t{n}", 1): 1 for n in range(count)}
        assert Counter(statuses(client).values()) == {"succeeded": count}
        assert client.verify() == []
    # Each has done its part, or this would be about one worker.
    assert len({one.pid for one in crew.executions()}) == WORKERS


@pytest.mark.req("R002-31")
def test_a_worker_hears_at_once_what_another_process_submits_and_cancels(crew):
    """It polls and beats once an hour: only the news of the store can have woken it."""
    here = {"store": crew.store, "home": crew.home, "slots": 2, "poll_seconds": 3600.0}
    with tidewheel.Worker(**here), crew.client() as client:
        client.configure_queue("default", lease_seconds=3600.0)
        eventually(client.workers, "it is registered")
        for number in range(2):
            submitted = crew.start("submit", "--id", f"t{number}", "--", "true")
            assert submitted.process.wait(30) == 0, submitted.log
            eventually(lambda n=number: client.get(f"t{n}").ended, "it was executed")
        crew.start("submit", "--id", "long", "--", "sleep", "600")
        eventually(crew.jobs, "the long one runs")
        crew.start("cancel", "long")
        eventually(lambda: client.get("long").ended, "the long one was cancelled")
        assert client.get("long").status == "cancelled"


@pytest.mark.req("R002-27")
def test_clients_of_many_processes_do_not_disturb_each_other(crew):
    """Each submits its own tasks and cancels half of them, all at once."""
    with crew.client() as client:
        (crew.folder / "one.py").write_text(ONE_CLIENT)
        clients = [crew.run_python("one.py", str(number)) for number in range(4)]
        for one in clients:
            assert one.process.wait(60) == 0, one.log
        found = statuses(client)
        assert client.verify() == []
    for number in range(4):
        own = {task_id: found[task_id] for task_id in found if task_id[0] == str(number)}
        assert Counter(own.values()) == {"ready": 30, "cancelled": 30}
