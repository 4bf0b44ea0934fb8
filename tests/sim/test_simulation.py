"""Scenarios 1, 3, 4, 20, 43 and 45: whole systems under faults, from one seed.

A failure prints the command that shows it again; its seed then joins ONCE_FAILED of seeds.py.
"""

import re

import pytest

from tests.sim.campaigns import campaigns_of, output_of
from tests.sim.seeds import CAMPAIGNS

QUEUE = CAMPAIGNS["queue"]
WORLDS = 15  # lived through twice


@pytest.fixture
def campaigns():
    with campaigns_of(QUEUE) as campaigns:
        yield campaigns


@pytest.mark.parametrize("seed", QUEUE.begins())
def test_nothing_breaks_whatever_fails(campaigns, seed):
    campaigns.hold(seed, QUEUE.each)


def test_without_faults_nothing_lapses_and_nothing_is_done_twice(campaigns, base_seed):
    output_of(campaigns.start(base_seed, 20, "--calm"))


def test_one_seed_is_one_history_in_every_process(campaigns, base_seed):
    runs = [campaigns.start(base_seed, WORLDS, "--digests", hash_seed=seed) for seed in (1, 2)]
    digests = [re.findall(r"^digest .*$", output_of(run), re.MULTILINE) for run in runs]
    assert len(digests[0]) == WORLDS
    assert digests[0] == digests[1]
