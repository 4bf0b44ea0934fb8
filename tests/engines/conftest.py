"""The engines that run jobs elsewhere, each real and private to the test session."""

import pytest

from tests.support.slurm import slurm_cluster
from tests.support.slurm_binaries import SLURM


@pytest.fixture(scope="session")
def whole_cluster():
    """One for the session; with pytest-xdist, one for each worker."""
    if reason := SLURM.missing_reason():
        pytest.skip(reason)
    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm(whole_cluster):
    """The cluster of the session, without jobs, whatever a test before has done to it."""
    yield whole_cluster
    whole_cluster.mend()
