"""Runs every test suite within its budget of seconds, and closes with one table.

A suite that outlives its budget is ended with everything it started, and counts as failed: a
slow suite is a bug to mend, not a reason to wait. Results lie in build/junit, where
`make traceability` reads them.

Where real processes, engines and browsers take part, a test that fails is tried once more,
within the same budget. If it passes then, its name stands in the table and in the last line:
it is unsteady, and whoever reads that finds out why (docs/decisions/0032).
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
# pytest's exit statuses
TESTS_FAILED = 1
NO_TESTS_COLLECTED = 5
BAD = frozenset({"failure", "error"})  # in a report
SECOND_TRIES_MAX = 3  # more than that is no trouble of a moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One row of the table below."""

    name: str
    paths: tuple[str, ...]
    budget_seconds: int
    workers: int = 0  # of pytest-xdist; 0 where the tests themselves use both cores
    args: tuple[str, ...] = ()
    real: bool = True  # processes, engines, browsers: not the same from one try to the next
    results: Path = RESULTS

    @property
    def report(self) -> Path:
        """Where pytest leaves the results."""
        return self.results / f"{self.name.replace(' ', '-')}.xml"

    @property
    def second_report(self) -> Path:
        """The same of what was tried again."""
        return self.report.with_suffix(".again.xml")


# Of conformance: stores side by side, many tasks, many workers.
AT_LENGTH = ("agreement", "volume", "concurrency", "block_concurrency")

SUITES = (
    # A command that hangs is told with its stack, within the budget.
    Suite(
        name="command line",
        paths=("tests/command_line",),
        budget_seconds=180,  # here and in the next two each command is a real process
        workers=2,
    ),
    Suite(
        name="stages",
        paths=("tests/stages",),
        budget_seconds=180,
        workers=2,
    ),
    Suite(
        name="through a server",
        paths=("tests/through_server",),
        budget_seconds=180,
        workers=2,
    ),
    Suite(
        name="unit",
        paths=("tests/unit", "tests/tidy"),
        budget_seconds=120,
        workers=2,
        real=False,
    ),
    Suite(name="spec", paths=("tests/spec",), budget_seconds=120, workers=2, real=False),
    Suite(
        name="conformance",
        paths=("tests/conformance",),
        budget_seconds=120,
        workers=2,
        args=tuple(f"--ignore-glob=*/test_{name}.py" for name in AT_LENGTH),
        real=False,
    ),
    Suite(
        name="conformance at length",
        paths=tuple(f"tests/conformance/test_{name}.py" for name in AT_LENGTH),
        budget_seconds=120,
        workers=2,
        real=False,
    ),
    Suite(
        name="simulation",
        paths=("tests/sim/test_simulation.py",),
        budget_seconds=180,
        workers=2,
        args=("--timeout=170",),  # one test may be one long campaign
        real=False,
    ),
    Suite(
        name="simulation of runs",
        paths=("tests/sim",),
        budget_seconds=180,
        workers=2,
        args=("--timeout=170", "--ignore-glob=*/test_simulation.py"),
        real=False,
    ),
    Suite(
        name="planted bugs",
        paths=("tests/planted/test_planted_bugs.py",),
        budget_seconds=120,
        workers=2,
        args=("--timeout=110",),
        real=False,
    ),
    Suite(
        name="planted bugs of runs",
        paths=(
            "tests/planted/test_planted_run_bugs.py",
            "tests/planted/test_planted_sched_bugs.py",
        ),
        budget_seconds=120,
        workers=2,
        args=("--timeout=110",),
        real=False,
    ),
    Suite(
        name="terminal and notifications",
        paths=("tests/terminal", "tests/notifications"),
        budget_seconds=120,
        workers=2,
        args=("--timeout=60",),
    ),
    Suite(name="server", paths=("tests/server",), budget_seconds=120, workers=2),
    Suite(
        name="documentation",
        paths=("tests/documentation",),
        budget_seconds=180,
        workers=2,
        args=("--timeout=110",),  # one page is one test, and types all of its commands
    ),
    Suite(
        name="fuzz",
        paths=("tests/fuzz",),
        budget_seconds=120,
        workers=2,
        args=("--timeout=110",),  # one test is ten thousand requests
        real=False,
    ),
    Suite(
        name="browser",
        paths=tuple(f"tests/browser/test_{name}.py" for name in ("page", "graph", "views")),
        budget_seconds=120,
        workers=2,
    ),
    Suite(
        name="browser elsewhere",
        paths=tuple(
            f"tests/browser/test_{name}.py"
            for name in ("places", "registry_pages", "documentation", "units")
        ),
        budget_seconds=120,
        workers=2,
    ),
    Suite(
        name="browser in trouble",
        paths=tuple(
            f"tests/browser/test_{name}.py"
            for name in ("logs", "acting", "manners", "hostile", "reconnect", "large")
        ),
        budget_seconds=120,
        workers=2,
    ),
    Suite(name="several machines", paths=("tests/machines",), budget_seconds=180, workers=2),
    Suite(
        name="real processes",
        paths=("tests/integration",),
        budget_seconds=180,
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
        args=("--timeout=170",),  # engines start, die and come back
    ),
    Suite(
        name="runs in containers",
        paths=tuple(
            f"tests/containers/test_{name}.py"
            for name in ("sip_runs", "block_abort", "stage_faults", "stages_afar")
        ),
        budget_seconds=180,
        workers=3,
        args=("--timeout=170",),
    ),
    Suite(
        name="Slurm",
        paths=("tests/engines",),
        budget_seconds=180,
        workers=3,  # they mostly wait for Slurm
        args=("--timeout=170",),  # Slurm sends what was lost again after a minute
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
    unsteady: tuple[str, ...] = ()  # passed, at the second try


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
    for report in (suite.report, suite.second_report):
        report.unlink(missing_ok=True)  # an old result must not speak for this run
    paths = [path for path in suite.paths if (ROOT / path).exists()]
    if not paths:
        return Outcome(suite=suite, note="no tests yet")
    print(f"\n== {suite.name} (budget {suite.budget_seconds} s, seed {seed})", flush=True)
    started = time.monotonic()
    try:
        status = run_pytest(pytest_command(suite, paths, seed), suite.budget_seconds)
        unsteady: tuple[str, ...] = ()
        failed = tests(suite.report, bad=True)
        if suite.real and status == TESTS_FAILED and 0 < len(failed) <= SECOND_TRIES_MAX:
            left_seconds = suite.budget_seconds - (time.monotonic() - started)
            print(f"-- again, alone: {', '.join(failed)}", flush=True)
            again = run_pytest(second_command(suite, paths, seed), left_seconds)
            if again == 0 and set(failed) <= set(tests(suite.second_report, bad=False)):
                status, unsteady = 0, failed
    except subprocess.TimeoutExpired:
        # The report, if there is one, counts the interrupted test as passed: it proves nothing.
        suite.report.unlink(missing_ok=True)
        return Outcome(
            suite=suite, failed=1, seconds=time.monotonic() - started, note="over its budget"
        )
    seconds = time.monotonic() - started
    if status == NO_TESTS_COLLECTED:
        return Outcome(suite=suite, seconds=seconds, note="no tests yet")
    return outcome_of(suite, seconds, status, unsteady)


def run_pytest(command: list[str], seconds_max: float) -> int:
    """Its exit status; TimeoutExpired when it was ended, with everything it started."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        # Whoever runs everything can wait for twice the examples that `make check` tries.
        env={"HYPOTHESIS_PROFILE": "ci", **os.environ},
        start_new_session=True,  # a process group of its own, to be ended as a whole
    )
    try:
        return process.wait(timeout=seconds_max)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        end_group(process)
        raise


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


def second_command(suite: Suite, paths: list[str], seed: int) -> list[str]:
    """The command line of what has failed in it, one test after the other."""
    return [
        *(sys.executable, "-m", "pytest", "-q", "-n", "0"),
        *("--last-failed", "--last-failed-no-failures", "none"),
        f"--randomly-seed={seed}",
        f"--junit-xml={suite.second_report}",
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


def tests(report: Path, *, bad: bool) -> tuple[str, ...]:
    """The names of those that pytest reported as failed, or of the others."""
    named = {
        f"{case.get('classname')}.{case.get('name')}": None
        for case, kinds in cases(report)
        if bool(kinds & BAD) == bad
    }
    return tuple(named)


def cases(report: Path) -> list[tuple[ET.Element, set[str]]]:
    """Every test of a report, with what is said of it."""
    if not report.exists():
        return []
    return [(case, {child.tag for child in case}) for case in ET.parse(report).iter("testcase")]


def outcome_of(
    suite: Suite, seconds: float, status: int, unsteady: tuple[str, ...] = ()
) -> Outcome:
    """Count what pytest reported; a suite that ended badly has failed, reported or not."""
    told = [kinds for _, kinds in cases(suite.report)]
    failed = 0 if unsteady else sum(bool(kinds & BAD) for kinds in told)
    return Outcome(
        suite=suite,
        passed=sum(not kinds & (BAD | {"skipped"}) for kinds in told) + len(unsteady),
        failed=max(failed, 1) if status else failed,
        skipped=sum("skipped" in kinds for kinds in told),
        seconds=seconds,
        note=f"pytest ended with {status}" if status else note_of(unsteady),
        unsteady=unsteady,
    )


def note_of(unsteady: tuple[str, ...]) -> str:
    return f"{len(unsteady)} only at the second try" if unsteady else ""


def print_table(outcomes: list[Outcome], seed: int) -> None:
    """One row per suite, then the closing line that CI reads."""
    print(f"\n{'suite':<28}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}{'budget':>8}")
    for outcome in outcomes:
        print(
            f"{outcome.suite.name:<28}{outcome.passed:>8}{outcome.failed:>8}"
            f"{outcome.skipped:>9}{outcome.seconds:>9.1f}{outcome.suite.budget_seconds:>8}"
            f"  {outcome.note}".rstrip()
        )
    for outcome in outcomes:
        for name in outcome.unsteady:
            print(f"UNSTEADY, passed only at the second try: {name}")
    print(f"random seed: {seed} (again: make test SEED={seed})")
    skipped = sum(outcome.skipped for outcome in outcomes)
    print(
        f"{sum(outcome.passed for outcome in outcomes)} passed, "
        f"{sum(outcome.failed for outcome in outcomes)} failed"
        + (f", {skipped} skipped" if skipped else "")
    )


if __name__ == "__main__":
    sys.exit(main())
