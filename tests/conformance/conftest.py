"""The stores under test: each test that asks for `store` runs on every one of them."""

import pytest

from tests.conformance.remote_world import RemoteWorld, ServerBefore
from tests.conformance.worlds import (
    MemoryWorld,
    PostgresWorld,
    SqliteWorld,
)
from tests.conformance.worlds import prepare_template as with_schema_and_clock

KINDS = ("memory", "sqlite", "postgres", "remote")
# Where a server is asked for what it asks its store for. What is about runs has its own door,
# tokens and wake-ups are a server's own (tests/server), databases are no business of it.
OVER_HTTP = frozenset(
    {
        *("test_cancelling", "test_claims", "test_dependencies", "test_edges", "test_leases"),
        *("test_limits", "test_looking", "test_matrix", "test_nodes", "test_reports"),
        *("test_retention", "test_statistics", "test_submission", "test_values"),
        "test_yielding",
    }
)


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if _applies(item)]


def _applies(item):
    is_remote = getattr(item, "callspec", None) and item.callspec.params.get("kind") == "remote"
    return not is_remote or item.module.__name__.rpartition(".")[2] in OVER_HTTP


@pytest.fixture
def prepare_template():
    """Databases of this suite have the schema, and a clock that the test moves."""
    return with_schema_and_clock


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server):
    """One database for all tests that leave its schema alone."""
    return postgres_server.create_database(
        "conformance", postgres_server.template(with_schema_and_clock)
    )


@pytest.fixture(scope="session")
def server_before():
    """One server for all tests, each of which puts a store behind it."""
    server = ServerBefore()
    yield server
    server.stop()


@pytest.fixture(params=KINDS)
def kind(request):
    """Which store; a test that needs a real database narrows it down."""
    return request.param


@pytest.fixture
def world(kind, request):
    """An empty database with a clock that the test moves."""
    if kind == "memory":
        world = MemoryWorld()
    elif kind == "sqlite":
        world = SqliteWorld()
    elif kind == "remote":
        world = RemoteWorld(request.getfixturevalue("server_before"))
    else:
        world = PostgresWorld(request.getfixturevalue("shared_postgres_url"))
    yield world
    world.close()


@pytest.fixture
def store(world):
    """The store as one process sees it; it must be sound when the test is over."""
    door = world.open()
    yield door
    assert door.verify() == []


@pytest.fixture
def clock(world):
    """The database's clock."""
    return world.clock
