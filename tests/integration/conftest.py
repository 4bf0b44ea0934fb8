"""Processes of tidewheel on a SQLite file, unless a module makes its crew of something else."""

import pytest

from tests.support.fleet import fleet


@pytest.fixture
def crew(tmp_path):
    with fleet(tmp_path) as crew:
        yield crew


@pytest.fixture
def client(crew):
    with crew.client() as client:
        yield client
