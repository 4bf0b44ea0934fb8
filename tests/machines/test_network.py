"""RELIABILITY 37-41: a bad network between workers and their server heals by itself."""

import random

import pytest

from tests.kit.tcp_proxy import Fault, Harm
from tests.support.audit import audit, until_all_ended
from tests.support.fleet import is_gone
from tests.support.patience import eventually, pace, scaled

LEASE_SECONDS = 1.5
# What a worker asks of its server while it works.
REQUESTS = (b"/claim", b"/reports", b"/heartbeats", b"/logs/out", b"/channel", b"/ready-queues")
WORKING = ("--slots", "4", "--queue", "*")


def prepare(client, far, count, seconds="0.0$((RANDOM % 90))"):
    """Tasks that write down that they ran."""
    client.configure_queue("default", lease_seconds=LEASE_SECONDS)
    command = f"{far.noting('begin')}; echo ran $TIDEWHEEL_TASK_ID; sleep {seconds}"
    ids = [f"t{n}" for n in range(count)]
    client.submit_many(
        [{"id": one, "command": command, "max_lapses": 1000} for one in ids], atomic=True
    )
    return ids


def settle(client, far, ids):
    """Everything is done, and as it should be."""
    until_all_ended(client, len(ids))
    happened = audit(client, far, ids)
    assert set(client.get(one).status.value for one in ids) == {"succeeded"}
    return happened


@pytest.mark.parametrize("harm", [Harm.CUT_REQUEST, Harm.CUT_ANSWER, Harm.REPEAT])
def test_requests_that_are_cut_or_come_twice_do_no_harm(far, client, harm):
    far.proxy.harm(Fault(harm, b"POST /api/v1/workers", 100))
    faults = [
        Fault(harm, only, after)
        for only in REQUESTS
        for after in ((0, 60, 300) if harm is Harm.CUT_REQUEST else (0, 0))
    ]
    far.proxy.harm(*faults)
    far.worker_afar("w", *WORKING)
    ids = prepare(client, far, 40)
    settle(client, far, ids)
    # A request that comes twice is counted when it has come.
    eventually(lambda: far.proxy.happened[harm] >= len(REQUESTS), "most were harmed")


@pytest.mark.parametrize("far", ["sqlite"], indirect=True)
@pytest.mark.parametrize("harm", [Harm.HOLD, Harm.HOLD_ANSWER])
def test_requests_that_are_overtaken_by_later_ones_do_no_harm(far, client, harm):
    far.worker_afar("w", *WORKING)
    ids = prepare(client, far, 40)
    for only in (b"/reports", b"/claim", b"/logs/out", b"/heartbeats"):
        before = far.proxy.happened[harm]
        far.proxy.harm(Fault(harm, only))
        eventually(
            lambda b=before: far.proxy.happened[harm] > b or done(client, ids), only.decode()
        )
        pace(0.3)
        far.proxy.release()
    settle(client, far, ids)


def done(client, ids):
    return all(client.get(one).status.value == "succeeded" for one in ids)


@pytest.mark.parametrize(
    ("far", "silent", "seconds"),
    [
        ("sqlite", {"requests": True}, 1.0),
        ("sqlite", {"answers": True}, 3 * LEASE_SECONDS),
        ("postgres", {"requests": True}, 3 * LEASE_SECONDS),
        ("postgres", {"answers": True}, 1.0),
    ],
    indirect=["far"],
)
def test_a_network_that_falls_silent_heals_by_itself(far, client, silent, seconds):
    """In each direction by itself, for less and for more than a lease."""
    workers = [far.worker_afar(name, *WORKING) for name in "ab"]
    ids = prepare(client, far, 30, seconds="0.4")
    eventually(lambda: len(far.executions()) >= 4, "some run")
    far.proxy.silence(**silent)
    pace(seconds)
    far.proxy.heal()
    settle(client, far, ids)
    assert all(one.runs for one in workers)


@pytest.mark.parametrize("far", ["sqlite"], indirect=True)
def test_a_server_that_is_refused_for_a_while_is_found_again(far, client):
    far.worker_afar("w", *WORKING)
    ids = prepare(client, far, 20, seconds="0.3")
    eventually(lambda: len(far.executions()) >= 2, "some run")
    for _ in range(3):
        far.proxy.refuse()
        pace(0.7)
        far.proxy.heal()
        pace(0.3)
    settle(client, far, ids)


@pytest.mark.timeout(3600)
def test_whatever_happens_to_the_network_nothing_is_lost_or_done_twice(far, client, request):
    """T16, from the seed of the run."""
    seed = request.config.getoption("randomly_seed", 1)
    chance = random.Random(seed)
    for name in "abc":
        far.worker_afar(name, *WORKING)
    ids = prepare(client, far, 120, seconds="0.$((RANDOM % 4))")
    proxy = far.proxy
    for _ in range(scaled(12)):
        match chance.randrange(6):
            case 0:
                proxy.cut_all()
            case 1:
                proxy.refuse()
            case 2:
                requests = chance.random() < 0.5
                proxy.silence(requests=requests, answers=not requests)
            case 3:
                proxy.delay(chance.uniform(0.0, 0.3))
            case _:
                harm = chance.choice(list(Harm))
                after = chance.randrange(400)
                proxy.harm(*(Fault(harm, only, after) for only in chance.sample(REQUESTS, 3)))
        pace(chance.uniform(0.1, 0.8))
        proxy.heal()
    settle(client, far, ids)


@pytest.mark.parametrize("far", ["sqlite"], indirect=True)
def test_a_fenced_job_ends_before_its_lease_while_the_server_is_out_of_reach(far, client):
    """RELIABILITY 17: nobody runs it twice at once. A quarter of the lease is left for it."""
    client.configure_queue("default", lease_seconds=8.0, fence_kill=True)
    worker = far.worker_afar("w", *WORKING)
    client.submit(command=f"{far.noting('begin')}; exec sleep 600", id="a", max_lapses=10)
    [first] = eventually(far.executions, "it runs")
    far.proxy.silence(requests=True)
    eventually(lambda: is_gone(first.pid), "the fence has ended it")
    assert [one.signal.value for one in client.history("a") if one.signal] == ["claim"]
    assert worker.runs
    far.proxy.heal()
    eventually(lambda: len(far.executions()) == 2, "it runs again")
    assert client.verify() == []
