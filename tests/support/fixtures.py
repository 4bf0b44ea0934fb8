"""Fixtures that hand out real parts; loaded for every suite by tests/conftest.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.support.ports import free_port
from tests.support.postgres import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the session; with pytest-xdist, one for each worker."""
    with PostgresServer.running() as server:
        yield server


@pytest.fixture
def prepare_template() -> Callable[[str], None]:
    """What is done to the database that `postgres_url` copies: nothing.

    A suite that wants the schema in it overrides this in its conftest.py with a fixture that
    returns a module-level function of the address; each function runs once per server.
    """
    return _leave_empty


@pytest.fixture
def postgres_url(
    postgres_server: PostgresServer, prepare_template: Callable[[str], None]
) -> Iterator[str]:
    """The address of a database that no other test has seen."""
    name = f"test_{next(_numbers)}"
    yield postgres_server.create_database(name, postgres_server.template(prepare_template))
    postgres_server.drop_database(name)


@pytest.fixture
def own_port() -> int:
    """A port that nobody else is given while the server of a test is away."""
    return free_port()


def _leave_empty(url: str) -> None:
    del url
