"""`/metrics`: figures for Prometheus and for autoscalers, in its own text format."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.conftest import register
from tests.support.command_line import CommandLine
from tests.support.http_server import running_server
from tests.support.patience import eventually
from tests.support.prepared_run import PreparedRun
from tidewheel.server.metrics import Histogram, Metrics, StoreFigures, text


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kind(request):
    return request.param


def figures(caller):
    """{name: {labels as a sorted tuple: value}} of every sample, as a parser reads them."""
    reply = caller.get("//metrics")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return parsed(reply.body.decode())


def parsed(body):
    found = {}
    for family in text_string_to_metric_families(body):
        assert family.documentation and family.type in ("gauge", "counter", "histogram")
        for sample in family.samples:
            assert sample.name.startswith("tidewheel_")
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), "a sample comes once"
            found[sample.name][labels] = sample.value
    return found


def awaited(caller, name, labels, wanted):
    """Until a figure has this value: what the store knows may be a second old."""
    key = tuple(sorted(labels.items()))
    look = lambda: figures(caller).get(name, {}).get(key)  # noqa: E731 - a name for one line
    eventually(lambda: look() == wanted, f"{name} {labels} = {wanted}")


def test_an_autoscaler_sees_depth_and_age_of_each_queue_and_the_leases(server, admin):
    queue = 'odd "name"\\ of a queue'
    for _ in range(3):
        admin.post("/tasks", {"queue": queue, "spec": 1})
    admin.post("/tasks", {"queue": queue, "spec": 1, "armed": False})
    worker = server.caller("worker")
    worker_id = register(worker, queue)
    before = figures(admin)["tidewheel_leases"][()]
    path = "/queues/odd%20%22name%22%5C%20of%20a%20queue/claim"
    assert len(worker.post(path, {"worker": worker_id}).json["tasks"]) == 1
    tasks = "tidewheel_queue_tasks"
    awaited(admin, tasks, {"queue": queue, "status": "ready"}, 2.0)
    awaited(admin, tasks, {"queue": queue, "status": "running"}, 1.0)
    awaited(admin, tasks, {"queue": queue, "status": "waiting"}, 1.0)
    awaited(admin, "tidewheel_leases", {}, before + 1)
    assert figures(admin)["tidewheel_queue_oldest_ready_seconds"][("queue", queue),] >= 0.0


def test_the_database_says_how_it_is(admin, kind):
    found = figures(admin)
    if kind == "sqlite":
        assert found["tidewheel_database_file_bytes"][()] > 0
        assert found["tidewheel_database_wal_bytes"][()] >= 0
    else:
        assert {dict(labels)["table"] for labels in found["tidewheel_database_dead_rows"]} >= {
            "task",
            "ready",
            "lease",
            "event",
        }
        assert sum(found["tidewheel_database_connections"].values()) >= 1
        assert found["tidewheel_database_oldest_transaction_seconds"][()] >= 0.0


def test_each_route_says_how_often_and_how_long(admin):
    admin.get("/tasks/nobody-has-this-one")
    found = figures(admin)
    route = ("route", "GET /api/v1/tasks/{id}")
    assert found["tidewheel_http_requests_total"][route, ("status", "404")] >= 1.0
    count = found["tidewheel_http_request_seconds_count"][route,]
    assert count >= 1.0
    assert found["tidewheel_http_request_seconds_bucket"][("le", "+Inf"), route] == count
    assert found["tidewheel_http_requests_under_way"][()] >= 1.0
    assert found["tidewheel_http_connections"][()] >= 1.0
    kinds = {dict(one)["kind"] for one in found["tidewheel_http_turned_away_total"]}
    assert kinds == {"report", "cancel", "claim", "submit", "read", "stream"}


def test_a_bucket_counts_everything_up_to_its_bound():
    metrics = Metrics()
    for seconds in (0.001, 0.003, 0.02, 99.0):
        metrics.count("GET /x", 200, seconds)
    seen = StoreFigures(queues=[], workers=[], runs=[], figures=[])
    buckets = parsed(text(metrics, seen))["tidewheel_http_request_seconds_bucket"]
    counts = [value for (_, (name, route)), value in buckets.items() if route == "GET /x"]
    assert counts == [1, 2, 3, 3, 3, 3, 3, 4]
    assert Histogram((1.0,)).counts == [0, 0]


def test_nobody_sees_figures_of_queues_that_the_token_does_not_cover(server, admin):
    admin.post("/tasks", {"queue": "hidden", "spec": 1})
    awaited(admin, "tidewheel_queue_paused", {"queue": "hidden"}, 0.0)
    narrow = server.caller("read", queues=["shown"])
    assert b"hidden" not in narrow.get("//metrics").body


def test_runs_are_counted_by_status_and_their_pools_measured(tmp_path):
    tidewheel = CommandLine(tmp_path)
    run = PreparedRun(tidewheel).starts().succeeds("1/prep")
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        found = figures(server.caller("read"))
        assert found["tidewheel_runs"] == {(("status", "running"),): 1.0}
        assert found["tidewheel_run_pool_tasks"][("run", run.name),] >= 1.0
        other = figures(server.caller("read", names=["other"]))
        assert "tidewheel_run_pool_tasks" not in other and "tidewheel_runs" not in other
