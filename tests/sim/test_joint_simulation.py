"""Scenario 6: schedulers, workers and faults around one run, from one seed.

A failure prints the workflow and the command that shows it again. Once mended, its seed joins
REGRESSIONS. SIM_SEED replays other worlds; `make sim` looks for more.
"""

import re

import pytest

from tests.sim.campaigns import Bounds, campaigns_of, output_of
from tests.sim.joint_world import run_schedule

BOUNDS = Bounds(seconds=35, at_least=100)

# Seeds that show a bug which once was there, and which one. A seed is a world only until the
# simulator draws differently, so each of these bugs also has a test of its own.
REGRESSIONS = {
    2: "verify took every task that was submitted and still pooled for a mistake",
    41: "a copy of an old batch that came late broke the store",
    6084: "a run that stalled again in the pass in which its stall ended had no stall timer",
    2925859822: "a task that was not taken and then removed came back and waited for ever",
    197057536071: "the simulator lost the answers of a scheduler whose cut should have ended",
}


@pytest.fixture
def campaigns():
    with campaigns_of("tests.sim.joint_campaign") as campaigns:
        yield campaigns


def test_a_run_comes_to_the_same_end_whatever_fails(campaigns, base_seed, request):
    schedules = campaigns.count_within(BOUNDS, base_seed, "--schedules")
    request.node.user_properties.append(("schedules", schedules))
    assert schedules >= BOUNDS.at_least


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_broke_once_holds(seed):
    broken = run_schedule(seed).broken
    assert broken is None, f"{broken}; again: make sim SEED={seed} SCHEDULES=1"


def test_without_faults_no_job_is_done_twice(campaigns, base_seed):
    output_of(campaigns.start("--seed", base_seed, "--schedules", 20, "--calm"))


def test_one_seed_is_one_history_in_every_process(campaigns, base_seed):
    options = ("--seed", base_seed, "--schedules", 25, "--digests")
    runs = [campaigns.start(*options, hash_seed=hash_seed) for hash_seed in (1, 2)]
    digests = [re.findall(r"^digest .*$", output_of(run), re.MULTILINE) for run in runs]
    assert len(digests[0]) == 25
    assert digests[0] == digests[1]
