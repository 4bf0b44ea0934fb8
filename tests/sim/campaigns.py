"""Campaigns of a simulator in processes of their own; none outlives its test."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCHEDULES_MAX = 100_000  # for each core: the time ends the campaign
CORES = 2
SEEDS_APART = 2_000_000  # so that the cores do not do the same


@contextmanager
def campaigns_of(module: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts that simulator with any arguments, as often as wanted."""
    started = []

    def start(*arguments: object, hash_seed: int = 0) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:  # closes its pipe and waits for it
            process.kill()


def output_of(process: subprocess.Popen[str]) -> str:
    """What a simulator printed that found nothing wrong."""
    output, _ = process.communicate()
    if process.returncode != 0:
        pytest.fail(output, pytrace=False)
    return output
