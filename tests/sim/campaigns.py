"""Campaigns of a simulator in processes of their own, on both cores; none outlives its test."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = 2
SEEDS_APART = 2_000_000  # so that the cores do not do the same
COUNT_MAX = 1_000_000  # for each core: the time ends the campaign


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A campaign takes so long; on a slow machine longer, until it has seen enough to tell.

    How long it may take at most is said by the budget of its suite.
    """

    seconds: int
    at_least: int


class Campaigns:
    """Starts one simulator with any arguments, as often as wanted."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object, hash_seed: int = 0) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", self.module, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def count(self, seed: int, *arguments: object) -> int:
        """How many worlds from that seed on were simulated, with nothing wrong in any."""
        runs = [
            self.start("--seed", seed + core * SEEDS_APART, *arguments) for core in range(CORES)
        ]
        return sum(count_in(output_of(run)) for run in runs)

    def count_within(self, bounds: Bounds, seed: int, counted: str) -> int:
        """The same for as long as that; `counted` is the option that says how many at most."""
        each = -(-bounds.at_least // CORES)
        return self.count(
            seed, counted, COUNT_MAX, "--seconds", bounds.seconds, "--at-least", each
        )


@contextmanager
def campaigns_of(module: str) -> Iterator[Campaigns]:
    campaigns = Campaigns(module)
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
    found = re.search(r"^no (?:violation|disagreement) in (\d+) ", output, re.MULTILINE)
    assert found, output
    return int(found[1])
