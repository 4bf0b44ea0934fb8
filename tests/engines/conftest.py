"""Engines for the tests of this folder: a Swarm of two, started once for each pytest worker."""

from __future__ import annotations

import pytest

from tests.support.container_engine import missing_part, running_swarm


@pytest.fixture(scope="session")
def swarm():
    """The manager and the worker of a Swarm."""
    if reason := missing_part():
        pytest.skip(reason)
    with running_swarm() as engines:
        yield engines


@pytest.fixture
def engine(swarm):
    """An engine that holds nothing of anybody's; it manages the Swarm."""
    manager, worker = swarm
    yield manager
    for each in (worker, manager):
        if each.left_behind():
            each.clear()
