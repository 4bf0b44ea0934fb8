"""One server per module, over a file of its own, with somebody for each scope."""

import pytest

from tests.support.http_server import running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A real server on a socket."""
    folder = tmp_path_factory.mktemp("server")
    # All callers come from one address here, and some are meant to fail.
    url = f"sqlite:///{folder}/tidewheel.db"
    with running_server(url, failures_max=1_000) as running:
        yield running


@pytest.fixture(scope="module")
def admin(server):
    """May do everything."""
    return server.caller("admin")


@pytest.fixture(scope="module")
def client(server):
    """Submits tasks."""
    return server.caller("submit")


@pytest.fixture(scope="module")
def operator(server):
    """Intervenes."""
    return server.caller("operate")


@pytest.fixture(scope="module")
def reader(server):
    """Only looks."""
    return server.caller("read")


@pytest.fixture(scope="module")
def worker(server):
    """Claims and reports; `worker.id` is its registered worker."""
    caller = server.caller("worker")
    caller.id = register(caller)
    return caller


def register(caller, *queues):
    """A worker of this caller's."""
    body = {"name": "w", "queues": list(queues) or ["default", "q", "a", "b"], "slots": 100}
    reply = caller.post("/workers", body)
    assert reply.status == 201, reply.body
    return reply.json["id"]
