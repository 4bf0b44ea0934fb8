"""Scenario 2: the simulation finds every known bug; one that survives fails here.

Each bug is put into a copy of the package, and the simulator of that copy must report a broken
invariant within so many schedules. A copy without a bug must pass, or the gate proves nothing.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted.bug import Bug, Edit, run_with, some_of
from tests.planted.run_bugs import NAMED_BUGS, RUN_BUGS
from tests.planted.sched_bugs import LIST_BUGS, SCHED_BUGS
from tests.planted.service_bugs import SERVICE_BUGS
from tests.planted.store_bugs import STORE_BUGS

SCHEDULES_MAX = 2_000
SCHEDULES_OF_CONTROL = 60
SEED = 400  # the same every time: how soon a bug is found is a fact about the simulation


def simulate(
    package: Path, schedules: int, seed: int = SEED
) -> subprocess.CompletedProcess[str]:
    given = ("--seed", seed, "--schedules", schedules)
    return run_with(package, "tests.kit.simulate", *given)


@pytest.mark.parametrize(
    "bug", some_of([*STORE_BUGS, *SERVICE_BUGS], name_of=lambda bug: bug.name)
)
def test_the_simulation_finds(bug: Bug, package, request):
    bug.apply(package)
    run = simulate(package, SCHEDULES_MAX, bug.seed or SEED)
    found = re.search(r"^violation after (\d+) schedules", run.stdout, re.MULTILINE)
    assert found, f"it survived:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    assert run.returncode == 1
    invariant = re.search(r"^invariant: (.*)$", run.stdout, re.MULTILINE)
    assert invariant
    request.node.user_properties += [("schedules", found[1]), ("found by", invariant[1])]


@pytest.mark.nightly  # what it shows, tests/sim shows of the package itself
def test_a_copy_without_a_bug_passes(package):
    run = simulate(package, SCHEDULES_OF_CONTROL)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert f"no violation in {SCHEDULES_OF_CONTROL} schedules" in run.stdout


def test_there_are_enough_bugs_and_each_has_its_name():
    names = {bug.name for bug in (*STORE_BUGS, *SERVICE_BUGS)}
    assert len(names) == len(STORE_BUGS) + len(SERVICE_BUGS) >= 20


def test_every_bug_fits_the_source_and_uses_names_that_are_there(package, tmp_path):
    """A bug that ends in a NameError would be found by anything."""
    named = [one.bug for one in NAMED_BUGS]
    bugs = (*STORE_BUGS, *SERVICE_BUGS, *RUN_BUGS, *SCHED_BUGS, *LIST_BUGS, *named)
    edits = [edit for bug in bugs for edit in bug.edits]
    (tmp_path / "edited").mkdir()
    for number, edit in enumerate(edits):
        path, text = edit.edited(package)
        (tmp_path / "edited" / f"{number}{path.suffix}").write_text(text)
    ruff = (Path(sys.executable).parent / "ruff", "check", "--isolated", "--no-cache")
    rules = ("--select", "F821", "--output-format", "concise")
    checked = subprocess.run(
        [*ruff, *rules, tmp_path / "edited"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_a_bug_that_no_longer_fits_the_source_is_loud(package):
    with pytest.raises(AssertionError, match="0 times"):
        Edit("core/queue/lease.py", "no such line", "").apply(package)
