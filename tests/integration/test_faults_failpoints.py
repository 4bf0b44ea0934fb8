"""RELIABILITY, "Built to be tested": kill -9 at every named place loses nothing (D1, D6)."""

import signal

import pytest

from tests.integration.test_faults_run_store import PLACES as RUN_PLACES
from tests.support.audit import audit, until_all_ended
from tests.support.patience import eventually
from tidewheel.errors import BadSetting
from tidewheel.failpoints import (
    AROUND_BATCH,
    FAILPOINTS,
    NOTIFYING,
    RUN_TOLD,
    failpoint_named,
    go_on,
)

# What a program of one line asks for, of the tasks that `prepare` made.
CLIENT = "import tidewheel; client = tidewheel.Client(); client.{}"
BY_CLIENTS = {
    "submit": "submit(id='new', command='true')",
    "arm": "arm('unarmed')",
    "amend": "amend('unarmed', name='other')",
    "cancel": "cancel('ready')",
    "cancel_matching": "cancel_matching(tag='red')",
    "add_edges": "add_continuations('unarmed', ['child'])",
    "remove_edges": "remove_continuations('parent', ['child'])",
    "configure_queue": "configure_queue('default', lease_seconds=77)",
    "pause_queue": "pause_queue('default')",
    "claim_by_id": "lease_by_id('ready')",
}
BY_WORKERS = ("register_worker", "stop_worker", "claim", "heartbeat", "report", "adopt")
BY_MONITORS = ("take_back_lapsed_leases", "delete_tasks")


def around_commit(operations):
    return [f"{one}_{when}_commit" for one in operations for when in ("before", "after")]


CLIENT_PLACES = around_commit(BY_CLIENTS)
MONITOR_PLACES = [*around_commit(BY_MONITORS), "retention_exported"]
WORKER_PLACES = [
    *around_commit(BY_WORKERS),
    "job_before_start",
    "job_spawned_before_record",
    "job_exited_before_report",
]


def is_killed(program):
    """It got to its failpoint, and no further."""
    eventually(lambda: not program.runs, "it has reached its failpoint")
    assert program.process.returncode == -signal.SIGKILL, program.log


def prepare(client):
    client.submit(id="ready", command="true", tag="red")
    client.submit(id="unarmed", command="true", armed=False)
    client.submit(id="parent", command="true", armed=False)
    client.submit_many(
        [{"id": "child", "command": "true", "needs": ["parent"], "armed": False}]
    )


def seen(client):
    """All that an operation of a client can change."""
    tasks = client.list(limit=100)
    edges = [edge for task in tasks for edge in client.edges(task.id)]
    return (
        [(one.id, one.status, one.name, one.armed) for one in tasks],
        edges,
        [(queue.queue, queue.settings) for queue in client.queues()],
    )


def test_every_failpoint_is_walked_over():
    walked = (*CLIENT_PLACES, *WORKER_PLACES, *MONITOR_PLACES, *RUN_PLACES)
    walked += (*AROUND_BATCH, *NOTIFYING, *RUN_TOLD)
    assert sorted(walked) == sorted(FAILPOINTS)


@pytest.mark.parametrize("place", CLIENT_PLACES)
def test_a_client_that_dies_has_done_all_or_nothing(crew, client, place):
    prepare(client)
    before = seen(client)
    operation, _, when = place.removesuffix("_commit").rpartition("_")
    program = CLIENT.format(BY_CLIENTS[operation])
    is_killed(crew.run_python("-c", program, TIDEWHEEL_FAILPOINT=place))
    assert (seen(client) == before) is (when == "before")
    assert client.verify() == []


@pytest.mark.parametrize("place", WORKER_PLACES)
def test_a_worker_that_dies_loses_no_task(crew, client, place):
    # A monitor that has watched for a lease takes it back: whoever adopts must be quicker.
    lease_seconds = 4.0 if place.startswith("adopt") else 0.6
    client.configure_queue("default", lease_seconds=lease_seconds)
    command = f"{crew.noting('begin')}; sleep 0.5"
    ids = [f"t{number}" for number in range(3)]
    client.submit_many([{"id": one, "command": command, "max_lapses": 9} for one in ids])
    if place.startswith("adopt"):
        first = crew.worker("--slots", "2")
        eventually(crew.executions, "there is something to adopt")
        first.kill()
    doomed = crew.worker("--slots", "2", TIDEWHEEL_FAILPOINT=place)
    if place.startswith("stop_worker"):
        eventually(crew.executions, "it works")
        doomed.send(signal.SIGTERM)
    is_killed(doomed)
    crew.monitor()
    crew.worker("--slots", "3")
    assert set(until_all_ended(client, len(ids)).values()) == {"succeeded"}
    audit(client, crew, ids)


@pytest.mark.parametrize("place", MONITOR_PLACES)
def test_a_monitor_that_dies_is_replaced_by_any_other(crew, client, place):
    client.submit(id="lapsed", command="true", max_lapses=9)
    client.lease(lease_seconds=0.1)
    client.submit(id="old", command="true")
    client.complete(client.lease_by_id("old"))
    export = crew.folder / "export"
    settings = {
        "TIDEWHEEL_RETENTION_SECONDS": "0.01",
        "TIDEWHEEL_EXPORT_DIRECTORY": str(export),
    }
    is_killed(crew.monitor(TIDEWHEEL_FAILPOINT=place, **settings))
    crew.monitor(**settings)
    eventually(lambda: [task.id for task in client.list()] == ["lapsed"], "it was removed")
    eventually(lambda: client.get("lapsed").status.value == "ready", "it was taken back")
    lines = "".join(path.read_text() for path in export.iterdir()).splitlines()
    assert lines and all('"old"' in line for line in lines)
    assert client.verify() == []


def test_a_failpoint_is_named_exactly_or_refused():
    assert failpoint_named(None) is go_on
    for wrong in ("claim", "claim_after_commit:x", ":1"):
        with pytest.raises(BadSetting, match="claim_after_commit"):
            failpoint_named(wrong)
    twice = failpoint_named("claim_after_commit:2")
    twice("claim_after_commit")  # once: nothing happens
    twice("submit_after_commit")
