"""RELIABILITY 10, 20-22: workers that are killed or told to go."""

import os
import random

import pytest

from tests.support.audit import audit, until_all_ended
from tests.support.fleet import is_gone
from tests.support.patience import allowed, eventually, scaled
from tidewheel.errors import LeaseLost, WrongStatus

KILLS = scaled(20)
# Less than any of these tests takes: nothing can have been found out by waiting for a lease.
LONG_LEASE_SECONDS = 600.0


def signals_of(client, task_id):
    return [entry.signal and entry.signal.value for entry in client.history(task_id)]


def status_of(client, task_id):
    return client.get(task_id).status.value


def until_status(client, task_id, *wanted):
    eventually(lambda: status_of(client, task_id) in wanted, f"{task_id} is {wanted}")


@pytest.mark.timeout(3600)
@pytest.mark.req("R002-58", "R002-59")
def test_no_task_is_lost_or_ends_twice_however_often_workers_are_killed(crew, client, request):
    seed = request.config.getoption("randomly_seed", 1)
    chance = random.Random(seed)
    client.configure_queue("default", lease_seconds=1.0)
    crew.monitor()
    workers = [crew.worker("--slots", "4") for _ in range(3)]
    submitted = []
    command = f"{crew.noting('begin')}; sleep 0.0$((RANDOM % 90)); {crew.noting('end')}"
    for number in range(KILLS):
        tasks = [
            {"id": f"{number}.{n}", "max_lapses": 1000}
            | ({"command": command} if n % 3 == 0 else {"handler": "last", "spec": 0.05})
            for n in range(24)
        ]
        client.submit_many(tasks, atomic=True)
        submitted += [task["id"] for task in tasks]
        # Wait until there is something to lose.
        begun = len(crew.executions())
        more = chance.randint(1, 12)
        eventually(lambda n=begun + more: len(crew.executions()) >= n, "jobs have begun")
        place = chance.randrange(3)
        workers[place].kill()
        workers[place] = crew.worker("--slots", "4")
    ended = until_all_ended(client, len(submitted), scaled(50))
    assert set(ended.values()) == {"succeeded"}
    happened = audit(client, crew, submitted)
    assert happened["lapse"] + happened["adopt"] > 0, f"seed {seed}: nobody was missed"


@pytest.mark.req("R002-58", "R002-53")
def test_a_killed_workers_task_is_taken_over_within_lease_and_monitor_interval(crew, client):
    client.configure_queue("default", lease_seconds=1.5)
    crew.monitor()
    workers = [crew.worker() for _ in range(2)]
    for worker in workers:
        worker.says("worker.registered")
    client.submit(id="a", handler="last", spec=3.0, max_lapses=9)
    [begun] = eventually(crew.executions, "it has begun")
    next(worker for worker in workers if worker.pid == begun.pid).kill()
    killed_at = client.run(client.asynchronous.store.now())
    eventually(lambda: len(crew.executions()) == 2, "it has begun again")
    lapse, claim = client.history("a")[-2:]
    assert (lapse.signal.value, claim.signal.value) == ("lapse", "claim")
    # A lease, a pass of the monitor, and what a busy machine takes for both.
    assert lapse.at - killed_at < 1.5 + 0.2 + 5.0
    assert client.wait("a", timeout=allowed(30))[0].status == "succeeded"


@pytest.mark.req("R002-58")
def test_a_job_outlives_its_worker_and_is_adopted_by_the_next(crew, client):
    gate = crew.folder / "gate"
    os.mkfifo(gate)
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    command = f"{crew.noting('begin')}; read -r word < {gate}; echo $word; {crew.noting('end')}"
    client.submit(id="a", command=command)
    first = crew.worker()
    eventually(crew.executions, "it has begun")
    first.kill()
    crew.worker().says("lease.adopted")
    gate.write_text("hello\n")
    assert client.wait("a", timeout=allowed(30))[0].status == "succeeded"
    assert signals_of(client, "a") == [None, "claim", "adopt", "succeed"]
    assert len(crew.executions("begin")) == len(crew.executions("end")) == 1
    audit(client, crew, ["a"])


@pytest.mark.req("R002-73", "R002-71", "R002-72")
def test_a_worker_told_to_go_hands_its_tasks_to_another_at_once(crew, client):
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    hold = f"{crew.noting('begin')}; [ $TIDEWHEEL_ATTEMPT != 1 ] || sleep 600"
    ids = [f"t{n}" for n in range(4)]
    client.submit_many([{"id": one, "command": hold} for one in ids])
    first = crew.worker("--slots", "8")
    eventually(lambda: len(crew.executions()) == 4, "all have begun")
    crew.worker("--slots", "4").says("worker.registered")
    assert first.end() == 0
    assert {task.status for task in client.wait(*ids, timeout=allowed(30))} == {"succeeded"}
    for one in ids:
        assert signals_of(client, one) == [None, "claim", "yield", "claim", "succeed"]
    assert not crew.jobs()
    audit(client, crew, ids)


def test_a_draining_worker_finishes_what_it_has_and_leaves_the_rest(crew, client):
    client.submit_many([{"id": f"t{n}", "handler": "last", "spec": 0.5} for n in range(9)])
    worker = crew.worker("--slots", "3", "--drain")
    eventually(lambda: len(crew.executions()) >= 2, "some have begun")
    assert worker.end() == 0
    begun = {one.task_id for one in crew.executions()}
    assert {one.task_id for one in crew.executions("end")} == begun
    for n in range(9):
        wanted = "succeeded" if f"t{n}" in begun else "ready"
        assert status_of(client, f"t{n}") == wanted


@pytest.mark.req("R003-40", "R003-41", "R003-45", "R002-62", "R002-63")
def test_a_cancel_reaches_a_running_job_at_once_and_ends_its_whole_tree(crew, client):
    """The lease is so long that no heartbeat could have brought the news."""
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    daemon = f"setsid bash -c '{crew.noting('daemon')}; sleep 600' < /dev/null &"
    child = f"bash -c '{crew.noting('child')}; sleep 600' &"
    command = f"{daemon} {child} {crew.noting('begin')}; wait"
    client.submit(id="a", command=command, max_termination="1s")
    crew.worker()
    words = ("begin", "child", "daemon")
    eventually(lambda: all(crew.executions(word) for word in words), "the tree has grown")
    tree = crew.jobs()
    assert len(tree) >= 4
    [cancelled] = client.cancel("a")
    assert cancelled.status == "cancelling"
    until_status(client, "a", "cancelled")
    eventually(lambda: all(map(is_gone, tree)), "the tree is gone")
    assert signals_of(client, "a")[:3] == [None, "claim", "cancel"]


@pytest.mark.req("R003-43")
def test_a_task_that_is_cancelled_after_its_worker_died_ends_by_its_lease(crew, client):
    client.configure_queue("default", lease_seconds=1.5)
    worker = crew.worker("--no-monitor")
    client.submit(id="a", handler="last", spec=600)
    eventually(crew.executions, "it has begun")
    worker.kill()
    assert client.cancel("a")[0].status == "cancelling"
    crew.monitor()
    until_status(client, "a", "cancelled")
    assert signals_of(client, "a") == [None, "claim", "cancel", "lapse"]


@pytest.mark.req("R002-59")
def test_a_task_that_kills_every_worker_fails_in_the_end_and_others_proceed(crew, client):
    client.configure_queue("default", lease_seconds=1.5)
    crew.monitor()
    client.submit(id="poison", handler="poison", max_lapses=2, priority=99)
    ids = [f"t{n}" for n in range(20)]
    client.submit_many([{"id": one, "handler": "note"} for one in ids])
    worker, deaths = crew.worker("--slots", "2"), 0

    def supervised():
        """Whoever runs workers starts a new one when one dies."""
        nonlocal worker, deaths
        if not worker.runs:
            worker, deaths = crew.worker("--slots", "2"), deaths + 1
        return status_of(client, "poison") == "failed"

    eventually(supervised, "the poison has failed", seconds_max=50)
    assert deaths >= 2
    assert client.get("poison").errors[-1].code == "lease_lapsed"
    assert len(crew.executions()) >= 3
    ended = client.wait(*ids, timeout=allowed(30))
    assert {task.status for task in ended} == {"succeeded"}
    assert [one.attempt for one in crew.executions() if one.task_id == "poison"] == [1, 2, 3]
    audit(client, crew, ["poison", *ids])


def test_tied_jobs_die_with_their_worker_wherever_they_went(crew, client):
    daemon = f"setsid bash -c '{crew.noting('daemon')}; exec -a away sleep 600' < /dev/null &"
    client.submit(id="a", command=f"{daemon} {crew.noting('begin')}; sleep 600")
    worker = crew.worker("--tie-jobs")
    eventually(lambda: crew.executions("daemon") and crew.executions(), "the tree has grown")
    tree = crew.jobs()
    assert len(tree) >= 3
    worker.kill()
    eventually(lambda: all(map(is_gone, tree)), "the tree is gone")


@pytest.mark.req("R002-58")
def test_a_fenced_job_dies_with_its_worker_and_runs_again_after_its_lease(crew, client):
    """D4: no successor goes on with it, not even one that starts at once."""
    client.configure_queue("default", lease_seconds=3.0, fence_kill=True)
    alone = f"mkdir {crew.folder}/alone || {crew.noting('overlap')}"
    client.submit(id="a", command=f"{alone}; {crew.noting('begin')}; sleep 600", max_lapses=9)
    crew.monitor()
    worker = crew.worker()
    eventually(crew.executions, "it has begun")
    job = crew.jobs()
    worker.kill()
    crew.worker()
    eventually(lambda: all(map(is_gone, job)), "the job is gone")
    (crew.folder / "alone").rmdir()
    eventually(lambda: len(crew.executions()) == 2, "it has begun again")
    assert crew.executions("overlap") == []
    assert signals_of(client, "a") == [None, "claim", "lapse", "claim"]


def test_without_a_lease_nothing_is_accepted(crew, client):
    """The same rules for somebody who speaks to the store by himself."""
    client.submit(id="a", command="true")
    leased = client.lease(lease_seconds=0.2)[0]
    crew.monitor()
    until_status(client, "a", "ready")
    for say in (client.complete, client.yield_, client.heartbeat):
        with pytest.raises((LeaseLost, WrongStatus)):
            say(leased)
    assert signals_of(client, "a") == [None, "claim", "lapse"]
