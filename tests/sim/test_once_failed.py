"""Every world in which something was wrong once: it stays mended."""

import pytest

from tests.sim.campaigns import campaigns_of
from tests.sim.seeds import CAMPAIGNS

ONCE_FAILED = [(name, seed) for name, one in CAMPAIGNS.items() for seed in one.once_failed]


@pytest.mark.parametrize(("name", "seed"), ONCE_FAILED)
def test_what_broke_once_holds(name, seed):
    with campaigns_of(CAMPAIGNS[name]) as campaigns:
        campaigns.hold(seed, 1)
