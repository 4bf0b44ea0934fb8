"""The engines that run jobs elsewhere, each real and private to the test session."""

import pytest

from tests.support.container_engine import missing_part, running_swarm
from tests.support.slurm import slurm_cluster
from tests.support.slurm_binaries import missing_reason


@pytest.fixture(scope="session")
def whole_cluster():
    """One for the session; with pytest-xdist, one for each worker."""
    if reason := missing_reason():
        pytest.skip(reason)
    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm(whole_cluster):
    """The cluster of the session, without jobs, whatever a test before has done to it."""
    yield whole_cluster
    whole_cluster.mend()


@pytest.fixture(scope="session")
def whole_swarm():
    """The manager and the worker of a Swarm; one for the session, as above."""
    if reason := missing_part():
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
