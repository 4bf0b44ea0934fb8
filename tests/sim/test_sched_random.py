"""The scheduling core does what the oracle says, whatever the graph, the ends and the order.

A failure prints a case made smaller and the command that shows it again. SIM_SEED replays other
workflows, SCHED_GRAPHS asks for another number of them (with no bound on time).
"""

import os

import pytest

from tests.sim.campaigns import CORES, Bounds, campaigns_of

BOUNDS = Bounds(seconds=35, at_least=500)
HOURS = 3600


@pytest.fixture
def campaigns():
    with campaigns_of("tests.sim.sched_oracle_campaign") as campaigns:
        yield campaigns


@pytest.mark.timeout(BOUNDS.seconds + HOURS)
def test_random_workflows_do_what_the_oracle_says(campaigns, base_seed, request):
    asked = int(os.environ.get("SCHED_GRAPHS") or 0)
    if asked:
        graphs = campaigns.count(base_seed, "--graphs", -(-asked // CORES))
    else:
        graphs = campaigns.count_within(BOUNDS, base_seed, "--graphs")
    request.node.user_properties.append(("graphs", graphs))
    assert graphs >= (asked or BOUNDS.at_least)
