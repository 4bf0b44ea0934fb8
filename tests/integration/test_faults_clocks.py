"""RELIABILITY 43: leases live on the database's clock, and no other clock matters."""

import time

import pytest

from tests.support.audit import audit
from tests.support.fleet import fleet
from tests.support.patience import allowed, eventually
from tests.support.skewed_clock import forget_clock, skewed_by

LEASE_SECONDS = 4.0  # none may lapse because two cores are busy


@pytest.fixture
def crew(postgres_url, tmp_path):
    with fleet(tmp_path, postgres_url) as crew:
        yield crew
    for program in crew.programs:
        forget_clock(program.pid)


def is_off_by_hours(program):
    """What it prints it stamps with its own clock."""
    line = next(one for one in program.log.splitlines() if "worker.registered" in one)
    stamp = line.split()[0]
    said = time.mktime(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    return abs(said - time.time()) > 3600  # noqa: TID251 - it is this clock that is asked


@pytest.mark.req("R002-57", "R002-38")
def test_workers_and_monitors_with_wrong_clocks_keep_their_leases_and_lose_them_in_time(crew):
    ahead, behind = skewed_by("+2h"), skewed_by("-2h")
    crew.monitor(**ahead)
    crew.monitor(**behind)
    workers = [crew.worker("--slots", "2", **clock) for clock in (ahead, behind)]
    for worker in workers:
        worker.says("worker.registered")
        assert is_off_by_hours(worker)
    with crew.client() as client:
        client.configure_queue("default", lease_seconds=LEASE_SECONDS)
        ids = [f"t{n}" for n in range(4)]
        for one in ids:
            client.submit(id=one, handler="last", spec=2.2 * LEASE_SECONDS)
        ended = client.wait(*ids, timeout=allowed(40))
        assert {task.status for task in ended} == {"succeeded"}
        # Each lived through more than two leases, and none lapsed.
        happened = audit(client, crew, ids)
        assert happened == {"claim": 4, "succeed": 4}
        now = client.run(client.asynchronous.store.now())
        assert all(0 <= now - entry.at < 120 for one in ids for entry in client.history(one))

        # Nor does a wrong clock keep a dead worker's lease alive.
        client.submit(id="last", handler="last", spec=600)
        eventually(lambda: client.get("last").owner, "it runs")
        for worker in workers:
            worker.kill()
        eventually(lambda: client.get("last").status == "ready", "its lease has lapsed")
