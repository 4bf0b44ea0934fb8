"""The joint simulation finds every known bug of schedulers; one that survives fails here.

Each bug is put into a copy of the package, in which the simulation must then report a broken
invariant, or the test that is named must fail. A copy without a bug must pass.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.planted.bug import Bug, run_with, some_of
from tests.planted.run_bugs import NAMED_BUGS, RUN_BUGS, NamedBug

SCHEDULES_MAX = 500
SCHEDULES_OF_CONTROL = 20
SEED = 11_000  # the same every time: how soon a bug is found is a fact about the simulation


def simulate(package: Path, schedules: int) -> subprocess.CompletedProcess[str]:
    given = ("--seed", SEED, "--schedules", schedules)
    return run_with(package, "tests.sim.joint_campaign", *given)


@pytest.mark.parametrize("bug", some_of(RUN_BUGS, name_of=lambda bug: bug.name))
def test_the_joint_simulation_finds(bug: Bug, package, request):
    bug.apply(package)
    run = simulate(package, SCHEDULES_MAX)
    found = re.search(r"^violation after (\d+) schedules", run.stdout, re.MULTILINE)
    assert found, f"it survived:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    assert run.returncode == 1
    invariant = re.search(r"^invariant: (.*)$", run.stdout, re.MULTILINE)
    assert invariant
    request.node.user_properties += [("schedules", found[1]), ("found by", invariant[1])]


@pytest.mark.parametrize("named", some_of(NAMED_BUGS, name_of=lambda named: named.bug.name))
def test_the_named_test_finds(named: NamedBug, package):
    named.bug.apply(package)
    run = run_with(package, "pytest", "-q", "-n0", "-p", "no:cacheprovider", named.test)
    assert run.returncode == 1, f"it survived:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    assert "1 failed" in run.stdout


@pytest.mark.nightly  # what it shows, tests/sim shows of the package itself
def test_a_copy_without_a_bug_passes(package):
    run = simulate(package, SCHEDULES_OF_CONTROL)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    tests = [named.test for named in NAMED_BUGS]
    run = run_with(package, "pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]


def test_there_are_enough_bugs_and_each_has_its_name():
    names = {bug.name for bug in (*RUN_BUGS, *(named.bug for named in NAMED_BUGS))}
    assert len(names) == len(RUN_BUGS) + len(NAMED_BUGS) >= 12
