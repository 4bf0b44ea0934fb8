"""The stores under test: each test that asks for `store` runs on every one of them."""

import pytest

from tests.conformance.worlds import (
    MemoryWorld,
    PostgresWorld,
    SqliteWorld,
)
from tests.conformance.worlds import prepare_template as with_schema_and_clock

KINDS = ("memory", "sqlite", "postgres")


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
