"""One server per module, over a file of its own, with somebody for each scope."""

from itertools import count

import pytest

from tests.support.http_server import running_server

_numbers = count(1)


@pytest.fixture(scope="module")
def kind():
    """Which database; a module whose tests concern the store tries both."""
    return "sqlite"


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory, request):
    """A real server on a socket."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('server')}/tidewheel.db"
    else:
        database = request.getfixturevalue("postgres_server")
        url = database.create_database(f"server_{next(_numbers)}")
    # All callers come from one address here, and some are meant to fail.
    with running_server(url, failures_max=1_000, quotas=("links=off",)) as running:
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
