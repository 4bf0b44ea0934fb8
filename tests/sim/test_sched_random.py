"""The scheduling core does what the oracle says, whatever the graph, the ends and the order.

A failure prints a case made smaller and the command that shows it again. SCHED_GRAPHS asks for
another number of workflows.
"""

import os

import pytest

from tests.sim.campaigns import campaigns_of
from tests.sim.seeds import CAMPAIGNS

ORACLE = CAMPAIGNS["oracle"]
HOURS = 3600


@pytest.mark.timeout(HOURS)
@pytest.mark.parametrize("seed", ORACLE.begins())
def test_random_workflows_do_what_the_oracle_says(seed):
    asked = int(os.environ.get("SCHED_GRAPHS") or ORACLE.each)
    with campaigns_of(ORACLE) as campaigns:
        campaigns.hold(seed, asked)
