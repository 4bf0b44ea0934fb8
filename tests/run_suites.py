"""Runs every test suite within its budget of seconds, and closes with one table.

A suite that outlives its budget is ended with everything it started, and counts as failed: a
slow suite is a bug to mend, not a reason to wait. Results lie in build/junit, where
`make traceability` reads them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "junit"

# How long an interrupted suite may take to stop its servers before it is killed.
GRACE_SECONDS = 10
NO_TESTS_COLLECTED = 5  # pytest's exit status


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One row of the table below."""

    name: str
    paths: tuple[str, ...]
    budget_seconds: int
    workers: int = 0  # of pytest-xdist; 0 where the tests themselves use both cores
    args: tuple[str, ...] = ()

    @property
    def report(self) -> Path:
        """Where pytest leaves the results."""
        return RESULTS / f"{self.name.replace(' ', '-')}.xml"


# A budget is about twice what the suite has ever taken: whoever exceeds it hangs, or has grown,
# and a machine that is busy with something else has done neither. The time limit of one test is
# pyproject's, longer than any single wait in it, so that a wait says what it waited for.
SUITES = (
    Suite(
        name="command line",
        paths=("tests/command_line",),
        budget_seconds=240,  # here and in the next two each command is a real process
        workers=2,
    ),
    Suite(name="stages", paths=("tests/stages",), budget_seconds=240, workers=2),
    Suite(
        name="through a server", paths=("tests/through_server",), budget_seconds=240, workers=2
    ),
    Suite(name="unit", paths=("tests/unit", "tests/tidy"), budget_seconds=150, workers=2),
    Suite(name="spec", paths=("tests/spec",), budget_seconds=180, workers=2),
    Suite(name="conformance", paths=("tests/conformance",), budget_seconds=240, workers=2),
    Suite(
        name="simulation",
        paths=("tests/sim",),
        budget_seconds=300,
        workers=2,
        args=("--timeout=290",),  # one test may be one long campaign
    ),
    Suite(
        name="planted bugs",
        paths=("tests/planted",),
        budget_seconds=240,
        workers=2,
        args=("--timeout=230",),  # one test is one campaign
    ),
    Suite(
        name="terminal and notifications",
        paths=("tests/terminal", "tests/notifications"),
        budget_seconds=180,
        workers=2,
    ),
    Suite(name="server", paths=("tests/server",), budget_seconds=240, workers=2),
    Suite(
        name="documentation",
        paths=("tests/documentation",),
        budget_seconds=240,
        workers=2,
        args=("--timeout=230",),  # one page is one test, and types all of its commands
    ),
    Suite(
        name="fuzz",
        paths=("tests/fuzz",),
        budget_seconds=180,
        workers=2,
        args=("--timeout=170",),  # one test is ten thousand requests
    ),
    Suite(
        name="browser",
        paths=tuple(
            f"tests/browser/test_{name}.py"
            for name in (
                "page",
                "graph",
                "views",
                "places",
                "registry_pages",
                "documentation",
                "units",
            )
        ),
        budget_seconds=300,
        workers=2,
    ),
    Suite(
        name="browser in trouble",
        paths=tuple(
            f"tests/browser/test_{name}.py"
            for name in ("logs", "acting", "manners", "hostile", "reconnect", "large")
        ),
        budget_seconds=240,
        workers=2,
    ),
    Suite(name="several machines", paths=("tests/machines",), budget_seconds=240, workers=2),
    Suite(
        name="real processes",
        paths=("tests/integration",),
        budget_seconds=300,
        workers=2,
        args=("--ignore-glob=*/test_storage_*", "--ignore-glob=*/test_runner*"),
    ),
    Suite(
        name="real runners and disks",
        paths=("tests/integration",),
        budget_seconds=180,
        workers=2,
        args=("--ignore-glob=*/test_[a-q]*", "--ignore-glob=*/test_runs_*"),
    ),
    Suite(
        name="containers",
        paths=tuple(
            f"tests/containers/test_{name}.py"
            for name in ("compose_policy", "engine_runners", "stages")
        ),
        budget_seconds=180,
        workers=3,  # they mostly wait for engines
        args=("--timeout=120",),  # engines start, die and come back
    ),
    Suite(
        name="runs in containers",
        paths=tuple(
            f"tests/containers/test_{name}.py"
            for name in ("sip_runs", "block_abort", "stage_faults", "stages_afar")
        ),
        budget_seconds=180,
        workers=3,
        args=("--timeout=120",),
    ),
    Suite(
        name="Slurm",
        paths=("tests/engines",),
        budget_seconds=180,
        workers=3,  # they mostly wait for Slurm
        args=("--timeout=100",),  # Slurm takes its time to find that a node is dead
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one suite ended."""

    suite: Suite
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    note: str = ""


def main() -> int:
    """Run the suites that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("suite", nargs="*", help=", ".join(suite.name for suite in SUITES))
    options = parser.parse_args()
    unknown = set(options.suite) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(f"no suite is called {', '.join(sorted(unknown))}")

    RESULTS.mkdir(parents=True, exist_ok=True)
    wanted = [suite for suite in SUITES if not options.suite or suite.name in options.suite]
    outcomes = [run(suite, options.seed) for suite in wanted]
    print_table(outcomes, options.seed)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def run(suite: Suite, seed: int) -> Outcome:
    """Run one suite to its end, or to the end of its budget."""
    suite.report.unlink(missing_ok=True)  # an old result must not speak for this run
    paths = [path for path in suite.paths if (ROOT / path).exists()]
    if not paths:
        return Outcome(suite=suite, note="no tests yet")
    print(f"\n== {suite.name} (budget {suite.budget_seconds} s, seed {seed})", flush=True)
    started = time.monotonic()
    process = subprocess.Popen(
        pytest_command(suite, paths, seed),
        cwd=ROOT,
        # Whoever runs everything can wait for twice the examples that `make check` tries.
        env={"HYPOTHESIS_PROFILE": "ci", **os.environ},
        start_new_session=True,  # a process group of its own, to be ended as a whole
    )
    try:
        status = process.wait(timeout=suite.budget_seconds)
    except subprocess.TimeoutExpired:
        end_group(process)
        # The report, if there is one, counts the interrupted test as passed: it proves nothing.
        suite.report.unlink(missing_ok=True)
        return Outcome(
            suite=suite, failed=1, seconds=time.monotonic() - started, note="over its budget"
        )
    except KeyboardInterrupt:
        end_group(process)
        raise
    seconds = time.monotonic() - started
    if status == NO_TESTS_COLLECTED:
        return Outcome(suite=suite, seconds=seconds, note="no tests yet")
    return outcome_of(suite, seconds, status)


def pytest_command(suite: Suite, paths: list[str], seed: int) -> list[str]:
    """The command line of one suite."""
    return [
        *(sys.executable, "-m", "pytest", "-q"),
        f"--randomly-seed={seed}",
        *(("-n", str(suite.workers)) if suite.workers else ()),
        f"--junit-xml={suite.report}",
        *suite.args,
        *paths,
    ]


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the group, so that fixtures stop their servers; then kill what is left."""
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError):  # nobody is left, as it should be
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def outcome_of(suite: Suite, seconds: float, status: int) -> Outcome:
    """Count what pytest reported; a suite that ended badly has failed, reported or not."""
    passed = failed = skipped = 0
    if suite.report.exists():
        for case in ET.parse(suite.report).iter("testcase"):
            kinds = {child.tag for child in case}
            failed += bool(kinds & {"failure", "error"})
            skipped += "skipped" in kinds
            passed += not kinds & {"failure", "error", "skipped"}
    return Outcome(
        suite=suite,
        passed=passed,
        failed=max(failed, 1) if status else failed,
        skipped=skipped,
        seconds=seconds,
        note=f"pytest ended with {status}" if status else "",
    )


def print_table(outcomes: list[Outcome], seed: int) -> None:
    """One row per suite, then the closing line that CI reads."""
    print(f"\n{'suite':<28}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}{'budget':>8}")
    for outcome in outcomes:
        print(
            f"{outcome.suite.name:<28}{outcome.passed:>8}{outcome.failed:>8}"
            f"{outcome.skipped:>9}{outcome.seconds:>9.1f}{outcome.suite.budget_seconds:>8}"
            f"  {outcome.note}".rstrip()
        )
    print(f"random seed: {seed} (again: make test SEED={seed})")
    skipped = sum(outcome.skipped for outcome in outcomes)
    print(
        f"{sum(outcome.passed for outcome in outcomes)} passed, "
        f"{sum(outcome.failed for outcome in outcomes)} failed"
        + (f", {skipped} skipped" if skipped else "")
    )


if __name__ == "__main__":
    sys.exit(main())
