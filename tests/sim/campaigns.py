"""Simulators in processes of their own; none outlives its test."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sim.seeds import Campaign

ROOT = Path(__file__).parents[2]


class Campaigns:
    """Starts one simulator with any arguments, as often as wanted."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.started: list[subprocess.Popen[str]] = []

    def start(
        self, seed: int, count: int, *arguments: str, hash_seed: int = 0
    ) -> subprocess.Popen[str]:
        """So many worlds from this seed on."""
        process = subprocess.Popen(
            [sys.executable, "-m", *self.campaign.command(seed, count), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def hold(self, seed: int, count: int) -> None:
        """The test fails if something is wrong in one of them."""
        output = output_of(self.start(seed, count))
        assert count_in(output) == count, output


@contextmanager
def campaigns_of(campaign: Campaign) -> Iterator[Campaigns]:
    campaigns = Campaigns(campaign)
    yield campaigns
    for process in campaigns.started:
        with process:  # closes its pipe and waits for it
            process.kill()


def output_of(process: subprocess.Popen[str]) -> str:
    """What a simulator printed that found nothing wrong."""
    output, _ = process.communicate()
    if process.returncode != 0:
        pytest.fail(output, pytrace=False)
    return output


def count_in(output: str) -> int:
    """How many worlds a simulator says that it has lived through."""
    found = re.search(r"^no (?:violation|disagreement) in (\d+) ", output, re.MULTILINE)
    assert found, output
    return int(found[1])
