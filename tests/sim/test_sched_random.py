"""The scheduling core does what the oracle says, whatever the graph, the ends and the order.

A failure prints a case made smaller and the command that shows it again. SIM_SEED replays other
workflows, SCHED_GRAPHS asks for another number of them (with no bound on time).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAMPAIGN_SECONDS = 35
GRAPHS_MIN = 500
GRAPHS_MAX = 1_000_000  # for each core: the time ends the campaign
HOURS = 3600
CORES = 2
SEEDS_APART = 2_000_000  # so that the cores do not do the same


def start(seed: int, graphs: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.sim.sched_oracle_campaign", "--seed", str(seed)),
            *("--graphs", str(graphs), "--seconds", str(seconds)),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def agreed(process: subprocess.Popen[str]) -> int:
    output, _ = process.communicate()
    found = re.search(r"no disagreement in (\d+) graphs", output)
    if process.returncode != 0 or found is None:
        pytest.fail(output, pytrace=False)
    return int(found[1])


@pytest.fixture
def base_seed(request):
    """New workflows for every commit, which is then green or red and not sometimes either."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    of_commit = int(asked.stdout[:8], 16) if asked.returncode == 0 else 1
    chosen = int(os.environ.get("SIM_SEED") or of_commit)
    request.node.user_properties.append(("base seed", chosen))
    print(f"base seed {chosen}")  # noqa: T201 - shown with a failure
    return chosen


@pytest.mark.timeout(CAMPAIGN_SECONDS + HOURS)
def test_random_workflows_do_what_the_oracle_says(base_seed, request):
    asked = os.environ.get("SCHED_GRAPHS")
    graphs, seconds = GRAPHS_MAX, float(CAMPAIGN_SECONDS)
    if asked:
        graphs, seconds = -(-int(asked) // CORES), float(HOURS)
    runs = [start(base_seed + core * SEEDS_APART, graphs, seconds) for core in range(CORES)]
    try:
        count = sum(agreed(run) for run in runs)
    finally:
        for run in runs:
            with run:
                run.kill()
    request.node.user_properties.append(("graphs", count))
    assert asked or count >= GRAPHS_MIN, "this machine is too slow, or too busy, to tell"
