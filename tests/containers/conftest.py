"""A Swarm of two engines, real and private to the test session."""

import os

import pytest

from tests.support.compose_program import put_quick_compose
from tests.support.container_engine import DOCKER, running_swarm
from tests.support.patience import eventually_told


@pytest.fixture(scope="session", autouse=True)
def quick_compose(tmp_path_factory):
    """Every stage calls docker-compose, several times."""
    folder = tmp_path_factory.mktemp("programs")
    put_quick_compose(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield


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
    # Again and again: a network that a service has just left is still in use.
    eventually_told(lambda: _is_cleared(whole_swarm), "the engines are empty again", 90.0)


def _is_cleared(engines):
    full = [engine for engine in engines if engine.left_behind()]
    for engine in full:
        engine.clear()
    return not full


@pytest.fixture
def engine(swarm):
    """A single engine; it manages the Swarm."""
    return swarm[0]
