"""RELIABILITY 25, 30: workers whose disk is full, under the store or under the logs."""

import os

import pytest

from tests.support.audit import audit
from tests.support.fleet import fleet
from tests.support.patience import allowed, eventually
from tests.support.volumes import mounted

MIB = 1024 * 1024


@pytest.fixture
def volume(tmp_path):
    with mounted(tmp_path / "disk", 2 * MIB) as volume:
        yield volume


def test_an_end_that_found_the_store_full_is_reported_when_there_is_room_again(
    tmp_path, volume
):
    """Nobody is restarted; the job is not run again."""
    (tmp_path / "crew").mkdir()
    store = f"sqlite:///{volume.path}/tidewheel.db"
    with fleet(tmp_path / "crew", store) as crew, crew.client() as client:
        gate = crew.folder / "gate"
        os.mkfifo(gate)
        client.configure_queue("default", lease_seconds=600.0)
        client.submit(id="a", command=f"{crew.noting('begin')}; read -r word < {gate}")
        worker = crew.worker()
        eventually(crew.executions, "it has begun")
        ballast = volume.fill()
        gate.write_text("go\n")
        eventually(lambda: not crew.jobs(), "the job has ended")
        worker.says("disk under the database is full")
        assert client.get("a").status == "running"  # reads work
        ballast.unlink()
        assert client.wait("a", timeout=allowed(40))[0].status == "succeeded"
        assert worker.runs
        audit(client, crew, ["a"])


def test_a_full_disk_under_the_logs_costs_the_log_and_not_the_result(tmp_path, volume):
    (tmp_path / "crew").mkdir()
    with fleet(tmp_path / "crew") as crew, crew.client() as client:
        worker = crew.worker(TIDEWHEEL_HOME=str(volume.path / "home"))
        worker.says("worker.registered")
        # More than there is room for, and the job does not mind.
        chatty = f"{crew.noting('begin')}; head -c {4 * MIB} /dev/zero; exit 0"
        client.submit(id="chatty", command=chatty)
        assert client.wait("chatty", timeout=allowed(30))[0].status == "succeeded"
        assert client.attempts("chatty")[0].exit_status == 0
        assert worker.runs
        # With room again, the next one is as good as new.
        for log in volume.path.rglob("job.out"):
            log.unlink()
        client.submit(id="next", command="echo hello")
        assert client.wait("next", timeout=allowed(30))[0].status == "succeeded"
        [out] = [log for log in volume.path.rglob("job.out") if log.stat().st_size]
        assert out.read_text() == "hello\n"


def test_a_task_that_cannot_be_written_down_goes_back_until_there_is_room(tmp_path, volume):
    (tmp_path / "crew").mkdir()
    with fleet(tmp_path / "crew") as crew, crew.client() as client:
        worker = crew.worker(TIDEWHEEL_HOME=str(volume.path / "home"))
        worker.says("worker.registered")
        ballast = volume.fill()
        client.submit(id="a", command="true")
        worker.says("No space left")
        eventually(lambda: client.workers()[0].trouble, "the worker says why it does nothing")
        assert "No space left" in client.workers()[0].trouble
        ballast.unlink()
        [task] = client.wait("a", timeout=allowed(30))
        assert (task.status, task.failures) == ("succeeded", 0)
        eventually(lambda: client.workers()[0].trouble is None, "the trouble is over")
        assert worker.runs
