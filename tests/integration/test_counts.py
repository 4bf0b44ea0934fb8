"""What a unit of work costs, in numbers that no clock and no load changes. They only fall.

A rise needs its reason in the commit that brings it. `python -m bench.counts` tells them all.
"""

import pytest

from bench.counts import of_commands, of_each

# Modules of tidewheel, and all; one of --version hides the memory of services before all else.
# Goals: a start-up of 0.25 s for one task, 0.05 s for --version.
MODULES_MAX = {"--version": (6, 97), "submit": (90, 298), "run": (224, 441)}
# What each further task of a chain costs; a fraction of a turn may be a renewed lease.
HOP_MAX = {"syncs": 2.2, "statements": 36, "calls": 610}
JOB_MAX = {"processes": 1, "folders": 9, "files": 4, "links": 2}
TRIES = 3  # what renews a lease or looks around meanwhile counts, too: the least counts


def test_commands_load_no_more_modules_than_they_did():
    loaded = of_commands()
    assert loaded.keys() == MODULES_MAX.keys()
    for command, counts in loaded.items():
        assert counts <= MODULES_MAX[command], command
        assert counts[1] <= MODULES_MAX[command][1], command


@pytest.mark.parametrize(("unit", "most"), [("hops", HOP_MAX), ("jobs", JOB_MAX)])
def test_a_task_costs_no_more_commits_statements_calls_files_and_processes(unit, most):
    seen = []
    for _ in range(TRIES):
        seen.append(of_each(unit))
        assert seen[-1].keys() == most.keys()
        if all(seen[-1][name] <= most[name] for name in most):
            return
    raise AssertionError(f"{unit}: {seen}, and {most} at most")
