"""Scenarios 1, 3, 4, 20, 43 and 45: whole systems under faults, from one seed.

A failure prints the command that shows it again. Once mended, its seed joins REGRESSIONS.
"""

import re

import pytest

from tests.sim.campaigns import Bounds, campaigns_of, output_of
from tidewheel.testing.world import run_schedule

BOUNDS = Bounds(seconds=90, at_least=500)

# Seeds that show a bug which once was there, and which one. A seed is a world only until the
# simulator draws differently, so each of these bugs also has a test of its own.
REGRESSIONS = {
    41000383: "a claim that came after the farewell of its worker broke it",
    52001420: "a monitor that stood still during a call took leases back after an outage",
    4021256014: "the judge did not see that a refused adoption settles the attempt",
    2018517559: "the simulator mixed up what a job had said while its worker stood still",
    62002742: "a monitor took an old answer for a sign that the store was there",
}


@pytest.fixture
def campaigns():
    with campaigns_of("tidewheel.testing.simulate") as campaigns:
        yield campaigns


def test_nothing_breaks_whatever_fails(campaigns, base_seed, request):
    schedules = campaigns.count_within(BOUNDS, base_seed, "--schedules")
    request.node.user_properties.append(("schedules", schedules))
    assert schedules >= BOUNDS.at_least


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_broke_once_holds(seed):
    broken = run_schedule(seed).broken
    assert broken is None, f"{broken}; again: make sim SEED={seed} SCHEDULES=1"


def test_without_faults_nothing_lapses_and_nothing_is_done_twice(campaigns, base_seed):
    output_of(campaigns.start("--seed", base_seed, "--schedules", 60, "--calm"))


def test_one_seed_is_one_history_in_every_process(campaigns, base_seed):
    options = ("--seed", base_seed, "--schedules", 50, "--digests")
    runs = [campaigns.start(*options, hash_seed=hash_seed) for hash_seed in (1, 2)]
    digests = [re.findall(r"^digest .*$", output_of(run), re.MULTILINE) for run in runs]
    assert len(digests[0]) == 50
    assert digests[0] == digests[1]
