"""The oracle finds every known scheduling bug; one that survives fails here.

Each bug is put into a copy of the package, whose runs of random workflows must then disagree
with the oracle. A copy without a bug must agree, or the gate proves nothing.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.planted.bug import Bug, run_with, some_of
from tests.planted.sched_bugs import LIST_BUGS, SCHED_BUGS
from tests.sim.sched_oracle_campaign import problems
from tests.sim.sched_oracle_lists import draw_with_lists

GRAPHS_MAX = 2_000
GRAPHS_OF_CONTROL = 60
WORLDS_MAX = 3  # of properties, from the seed that a bug names
SEED = 500  # the same every time: how soon a bug is found is a fact about the oracle


def compare(package: Path, graphs: int) -> subprocess.CompletedProcess[str]:
    given = ("--as-drawn", "--seed", SEED, "--graphs", graphs)
    return run_with(package, "tests.sim.sched_oracle_campaign", *given)


@pytest.mark.parametrize("bug", some_of(SCHED_BUGS, name_of=lambda bug: bug.name))
def test_the_oracle_finds(bug: Bug, package, request):
    bug.apply(package)
    run = compare(package, GRAPHS_MAX)
    found = re.search(
        r"^disagreement after (\d+) graphs\nseed (\d+): (.*)$", run.stdout, re.MULTILINE
    )
    assert found, f"it survived:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    assert run.returncode == 1
    seed = int(found[2])
    assert not problems(draw_with_lists(seed), seed)[0], (
        "the core shows this without the bug, too"
    )
    request.node.user_properties += [("graphs", found[1]), ("found by", found[3][:200])]


@pytest.mark.parametrize("bug", some_of(LIST_BUGS, name_of=lambda bug: bug.name))
def test_the_properties_find(bug: Bug, package, request):
    bug.apply(package)
    given = ("--seed", bug.seed, "--schedules", WORLDS_MAX)
    run = run_with(package, "tests.sim.properties_campaign", *given)
    found = re.search(r"^violation after (\d+) schedules", run.stdout, re.MULTILINE)
    assert found, f"it survived:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    assert run.returncode == 1
    request.node.user_properties += [("schedules", found[1])]


@pytest.mark.nightly  # what it shows, tests/sim shows of the package itself
def test_a_copy_without_a_bug_agrees(package):
    run = compare(package, GRAPHS_OF_CONTROL)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert f"no disagreement in {GRAPHS_OF_CONTROL} graphs" in run.stdout


def test_there_are_enough_bugs_and_each_has_its_name():
    assert len({bug.name for bug in SCHED_BUGS}) == len(SCHED_BUGS) >= 12
    assert len({bug.name for bug in LIST_BUGS}) == len(LIST_BUGS) >= 3
