"""Scenario 6: schedulers, workers and faults around one run, from one seed.

A failure prints the workflow and the command that shows it again; its seed then joins
ONCE_FAILED of seeds.py.
"""

import re

import pytest

from tests.sim.campaigns import campaigns_of, output_of
from tests.sim.seeds import CAMPAIGNS

RUNS = CAMPAIGNS["runs"]


@pytest.fixture
def campaigns():
    with campaigns_of(RUNS) as campaigns:
        yield campaigns


@pytest.mark.parametrize("seed", RUNS.begins())
def test_a_run_comes_to_the_same_end_whatever_fails(campaigns, seed):
    campaigns.hold(seed, RUNS.each)


def test_without_faults_no_job_is_done_twice(campaigns, base_seed):
    output_of(campaigns.start(base_seed, 20, "--calm"))


def test_one_seed_is_one_history_in_every_process(campaigns, base_seed):
    runs = [campaigns.start(base_seed, 25, "--digests", hash_seed=seed) for seed in (1, 2)]
    digests = [re.findall(r"^digest .*$", output_of(run), re.MULTILINE) for run in runs]
    assert len(digests[0]) == 25
    assert digests[0] == digests[1]
