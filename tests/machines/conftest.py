"""A server, its network and workers elsewhere, on each database."""

from itertools import count

import pytest

from tests.support.afar import afar

_numbers = count(1)


@pytest.fixture(params=["sqlite", "postgres"])
def far(request, tmp_path):
    """Everything but the workers."""
    store = None
    if request.param == "postgres":
        database = request.getfixturevalue("postgres_server")
        store = database.create_database(f"far_{next(_numbers)}")
    with afar(tmp_path, store) as made:
        yield made


@pytest.fixture
def client(far):
    """Somebody beside the store, whom no network concerns."""
    with far.client() as client:
        yield client
