"""A Swarm of two engines, real and private to the test session."""

import pytest

from tests.support.container_engine import DOCKER, running_swarm


@pytest.fixture(scope="session")
def whole_swarm():
    """The manager and the worker; one for the session, with pytest-xdist one for each of it."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    with running_swarm() as engines:
        yield engines


@pytest.fixture
def swarm(whole_swarm):
    """Both, without anything of tidewheel's, whatever a test before has left."""
    yield whole_swarm
    for engine in whole_swarm:
        if engine.left_behind():
            engine.clear()


@pytest.fixture
def engine(swarm):
    """A single engine; it manages the Swarm."""
    return swarm[0]
